//! Mounting as an ordinary user, and where FUSE is not to be had.

use crate::support::TestEnv;

/// Runs a script as an ordinary user with a /dev of its own, which holds /dev/fuse as Debian has it
/// unless `prepare` takes it away.
pub fn as_user(env: &TestEnv, prepare: &str, script: &str) -> std::process::Output {
    std::fs::write(env.root().join("script"), script).expect("a script");
    env.run(&format!(
        "mkdir -p bin home; cp -f $(command -v ibifs) bin; chmod 777 . home bin
         unshare -m bash -c '
             mount -t tmpfs none /dev
             for n in null:1:3 zero:1:5 urandom:1:9 fuse:10:229; do
                 IFS=: read -r name major minor <<< $n
                 mknod -m 666 /dev/$name c $major $minor
             done
             ln -s /proc/self/fd /dev/fd
             {prepare}
             export HOME=$PWD/home PATH=$PWD/bin:/usr/bin:/bin
             exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -eu script'"
    ))
}

#[track_caller]
fn says(output: &std::process::Output, status: i32, printed: &str, complaint: &str) {
    let messages = (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned(),
        String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned(),
    );
    assert_eq!(
        messages,
        (Some(status), printed.to_owned(), complaint.to_owned())
    );
}

/// An ordinary user mounts through fusermount3, mints, deposits and unmounts; what it makes is its
/// own.
#[test]
fn an_ordinary_user_mounts_through_fusermount3() {
    let env = TestEnv::new();
    let output = as_user(
        &env,
        "",
        "cd home; ibifs init S --host u.example.org > /dev/null; mkdir m; ibifs mount S m
         mkdir -p m/.mint/x/doc; echo text > m/.mint/x/doc/file; cat m/.mint/$(readlink m/.mint/.x)/doc/file
         mkdir -p tree/doc; echo more > tree/doc/file; cp -a tree m/.mint/
         cat m/.mint/tree/doc/file; stat -c %U m/.mint/tree/doc/file m/.mint/x/.ibi
         cmp m/.mint/x/doc/file S/col/$(ibifs ls m example.org --json | grep -o 'example[^\"]*' | sed -n 2p)/doc/file
         ibifs umount m; ibifs fsck S",
    );
    says(
        &output,
        0,
        "text\nmore\nnobody\nnobody\n3 items, 0 findings",
        "",
    );
}

/// The reason of a refusal of fusermount3 to unmount is printed, for example that /etc/mtab has no such mount.
#[test]
fn what_fusermount3_says_of_an_unmount_is_printed() {
    let env = TestEnv::new();
    let output = as_user(
        &env,
        "",
        "cd home; ibifs init S --host u.example.org > /dev/null; mkdir m; ibifs mount S m
         printf '#!/bin/sh\\necho no mtab here >&2; exit 1' > ../bin/fusermount3; chmod 755 ../bin/fusermount3
         code=0; ibifs umount m || code=$?; rm ../bin/fusermount3; ibifs umount m; exit $code",
    );
    says(
        &output,
        5,
        "",
        "ibifs: 'm' could not be unmounted: no mtab here; see who uses it with 'fuser -m m'",
    );
}

/// An ordinary user's daemon passes all bytes itself, as the kernel may not: every way to write is seen by every way
/// to read, in both trees, and `ibifs status` gives the reason.
#[test]
fn an_ordinary_users_bytes_go_through_the_daemon() {
    let env = TestEnv::new();
    std::fs::write(env.root().join("bytes.py"), BYTES).expect("a program");
    let output = as_user(
        &env,
        "",
        "cd home; ibifs init S --host u.example.org > /dev/null; mkdir m; ibifs mount S m
         ibifs status m | sed -n 3p; ibifs status m --json | grep -c '\"mount_point\"'
         mkdir -p m/.mint/x/doc; rep=$(readlink m/.mint/.x); ibip=$(getfattr --only-values -n user.ibi.ibip m/.mint/x)
         python3 ../bytes.py m/.mint/$rep/doc m/$ibip/doc
         ibifs umount m; ibifs status S | sed -n 2p; ibifs fsck S",
    );
    says(
        &output,
        0,
        "data     the daemon reads and writes files: FUSE passthrough requires CAP_SYS_ADMIN\n1\nsame\n\
         mounted  no\n2 items, 0 findings",
        "",
    );
}

/// Random changes of a file by two directories of it, beside the same changes in memory.
const BYTES: &str = "
import ctypes, mmap, os, random, sys
rep, ibip = sys.argv[1:]
seed = int.from_bytes(os.urandom(4), 'big'); r = random.Random(seed)
libc = ctypes.CDLL(None, use_errno=True)
names = [rep + '/f', ibip + '/f']
open(names[0], 'w').close()
files = [os.open(n, os.O_RDWR) for n in names]
size, model = 3 << 20, bytearray()
def same(what):
    for n, f in zip(names, files):
        assert os.fstat(f).st_size == os.stat(n).st_size == len(model), (seed, what)
        assert os.pread(f, len(model) + 1, 0) == model, (seed, what)
    assert open(r.choice(names), 'rb').read() == model, (seed, what)
for turn in range(150):
    f, what = r.choice(files), r.choice('write write append truncate map allocate punch copy reopen'.split())
    at, n = r.randrange(size), r.randrange(1, r.choice([9, 5000, 1 << 20]))
    if what == 'write':
        bytes_ = r.randbytes(n); assert os.pwrite(f, bytes_, at) == n
        model.extend(bytes(max(0, at - len(model)))); model[at:at + n] = bytes_
    elif what == 'append':
        a = os.open(r.choice(names), os.O_WRONLY | os.O_APPEND); bytes_ = r.randbytes(n % 70000)
        os.write(a, bytes_); os.close(a); model.extend(bytes_)
    elif what == 'truncate':
        os.ftruncate(f, at); del model[at:]; model.extend(bytes(at - len(model)))
    elif what == 'map' and len(model) > 4096:
        with mmap.mmap(f, len(model)) as m:
            at %= len(model); bytes_ = r.randbytes(min(n, len(model) - at)); m[at:at + len(bytes_)] = bytes_
            model[at:at + len(bytes_)] = bytes_; assert m[:] == model, (seed, turn)
    elif what == 'allocate':
        os.posix_fallocate(f, at, n); model.extend(bytes(max(0, at + n - len(model))))
    elif what == 'punch' and at < len(model):
        assert libc.fallocate(f, 3, ctypes.c_long(at), ctypes.c_long(n)) == 0, (seed, ctypes.get_errno())
        end = min(at + n, len(model)); model[at:end] = bytes(end - at)
    elif what == 'copy' and len(model) > 9:
        to = open(rep + '/g', 'wb+'); n = min(n, len(model))
        os.copy_file_range(f, to.fileno(), n, 0, 0); to.seek(0); got = to.read()
        assert got and got == model[:len(got)], (seed, turn)
    elif what == 'reopen':
        i = files.index(f); os.close(f); names[i] = r.choice([rep, ibip]) + '/f'
        files[i] = os.open(names[i], os.O_RDWR)
    same((turn, what))
print('same')
";

/// Without passthrough, too, the kernel asks for much at once: reads ahead, and writes by the MiB.
#[test]
fn requests_for_bytes_are_large() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A.store --host archive-a.example.org; mkdir A
         RUST_LOG=fuser=debug ibifs mount -f -o passthrough=no A.store A 2> log &
         until mountpoint -q A; do sleep 0.02; done
         mkdir -p A/.mint/x/doc; dd if=/dev/zero of=A/.mint/x/doc/f bs=8M count=1 status=none
         sync A/.mint/x/doc/f; echo 1 > /proc/sys/vm/drop_caches; cat A/.mint/x/doc/f > /dev/null; ibifs umount A; wait
         test $(grep -c ' WRITE ' log) -le 16; test $(grep -c ' READ ' log) -le 40",
    );
}

/// Without /dev/fuse, without the right to open it, without fusermount3: each says what to do, with
/// exit status 6.
#[test]
fn where_fuse_is_not_to_be_had_the_remedy_is_named() {
    let mount = "cd home; test -e S || ibifs init S --host u.example.org > /dev/null; mkdir -p m; ibifs mount S m";
    let env = TestEnv::new();
    says(
        &as_user(&env, "rm /dev/fuse", mount),
        6,
        "",
        "ibifs: cannot open /dev/fuse: No such file or directory (os error 2); load the module with \
         'modprobe fuse', in a container pass the device in (--device /dev/fuse)",
    );
    says(
        &as_user(&env, "chmod 600 /dev/fuse", mount),
        6,
        "",
        "ibifs: cannot open /dev/fuse: Permission denied (os error 13); let all users open it, as \
         Debian does: 'chmod 666 /dev/fuse' as root",
    );
    says(
        &as_user(
            &env,
            "",
            &mount.replace("ibifs mount", "PATH=../bin ibifs mount"),
        ),
        6,
        "",
        "ibifs: an ordinary user needs fusermount3 to mount; install it with 'apt install fuse3'",
    );
}

/// The items of other Archives are mounted beside the store's mount, which nothing can be mounted in, and end with it.
#[test]
fn an_ordinary_user_has_the_items_of_others() {
    let env = TestEnv::new();
    let output = as_user(
        &env,
        "",
        r#"cd home; export XDG_RUNTIME_DIR=$PWD/run; mkdir run m n
        ibifs init S --host u.example.org > /dev/null; ibifs mount S m; one=$(ibifs mint m | head -n 1); echo text > m/$one/doc/x; ibifs umount m
        exec 3< <(exec ibifs serve S --listen 127.0.0.1:0 --url http://u.example.org); server=$!; read -r line <&3; trap 'kill $server' EXIT
        ibifs init T --host t.example.org > /dev/null; count() { grep -c "$PWD/[nr].* - fuse" /proc/self/mountinfo || true; }
        # Mounts and directories that are left, once there are none.
        left() { echo $(count) $(find run -mindepth 2 2> /dev/null | wc -l); }
        over() { for _ in $(seq 3000); do test "$(left)" = '0 0' && break; sleep 0.01; done; left; }
        for options in rw ro,world=fallback; do
            ibifs mount T n -o $options,world-archive=${line##* },world-cache=C; readlink n/.world | sed "s:$PWD:HOME:"; cat n/.world/$one/doc/x
            ibifs world status n/.world --json | grep -c '"items": 1'; count
            case $options in ro*) cat n/$one/doc/x;; esac
            ibifs umount n; over
        done
        # After the daemon was killed.
        ibifs mount T n -o world-archive=${line##* },world-cache=C; kill -9 $(sed -n 's/^pid //p' T/lock); ibifs umount n; over
        # fusermount3 alone.
        ibifs mount T n -o world-archive=${line##* },world-cache=C; fusermount3 -u n; over"#,
    );
    let place = format!("HOME/run/ibifs{}/home/n/.world", env.root().display());
    let shown = format!("{place}\ntext\n1\n2");
    let expected = format!("{shown}\n0 0\n{shown}\ntext\n0 0\n0 0\n0 0");
    says(&output, 0, &expected, "");
}

/// Copies that an ordinary user makes belong to that user. What let a program act as its owner or group in the original
/// does not let others act as that user.
#[test]
fn a_users_copy_of_a_set_id_program_acts_as_nobody_else() {
    let env = TestEnv::new();
    let made = as_user(
        &env,
        "",
        "cd home; ibifs init S --host u.example.org > /dev/null; mkdir m; ibifs mount S m
         mkdir -p m/.mint/x/doc; getfattr --only-values -n user.ibi.rep m/.mint/x > x; ibifs umount m",
    );
    says(&made, 0, "", "");
    env.sh("cd home/S/col/$(cat home/x)/doc; cp /bin/true tool; chmod 6755 tool; mkdir set; chmod 3755 set; mkfifo pipe; chmod 2644 pipe");
    let backup = as_user(
        &env,
        "",
        "cd home; ibifs backup S D > /dev/null; cd D/col/$(< x)/doc; stat -c '%n %a %U' tool set pipe
         cd ~; ibifs backup S D > /dev/null; cd D/col/$(< x)/doc; stat -c '%n %a' set",
    );
    says(
        &backup,
        0,
        "tool 755 nobody\nset 1755 nobody\npipe 644 nobody\nset 1755",
        "",
    );
}
