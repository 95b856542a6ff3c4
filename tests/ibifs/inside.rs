//! Inside an item everything is an ordinary POSIX filesystem, in both trees: the same script does
//! the same as in a native directory.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Needs, TestEnv};

/// One item, met in both trees, next to a native directory.
struct Places {
    env: TestEnv,
    rep: String,
    ibip: String,
    next: AtomicU32,
}

impl Places {
    /// A mount with these options, one item in it, and a native directory.
    #[track_caller]
    fn mounted(options: &str) -> Places {
        Places::mounted_in(TestEnv::new(), options)
    }

    #[track_caller]
    fn mounted_in(env: TestEnv, options: &str) -> Places {
        env.sh(&format!(
            "ibifs init A.store --host archive-a.example.org
             mkdir A native
             ibifs mount -o {options} A.store A
             mkdir -p A/.mint/it/doc"
        ));
        let rep = format!("A/{}", env.sh("rep A/.mint/it"));
        let ibip = format!("A/{}", env.sh("ibip A/.mint/it"));
        let next = AtomicU32::new(0);
        Places {
            env,
            rep,
            ibip,
            next,
        }
    }

    #[track_caller]
    fn new() -> Places {
        Places::mounted("defaults")
    }

    #[track_caller]
    fn with(needed: Needs) -> Places {
        Places::mounted_in(TestEnv::with(needed), "defaults")
    }

    /// Runs a script in an empty directory of the native filesystem, of the item in the rep tree,
    /// and of the item in the IBIp tree: it must succeed and print the same. Gives what it prints.
    #[track_caller]
    fn same(&self, script: &str) -> String {
        let mut printed = Vec::new();
        for place in ["native", &self.rep, &self.ibip] {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let directory = format!("{place}/work-{number}");
            printed.push(self.env.sh(&format!(
                "W=$PWD; mkdir {directory}; cd {directory}\n{HELP}\n{script}"
            )));
        }
        assert_eq!(printed[0], printed[1], "native and rep tree: {script}");
        assert_eq!(printed[0], printed[2], "native and IBIp tree: {script}");
        printed.swap_remove(0)
    }

    /// Runs a script with `$REP` and `$IBIP`, the same empty directory of the item in both trees.
    #[track_caller]
    fn across(&self, script: &str) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.env.sh(&format!(
            "REP=$PWD/{}/work-{number}; IBIP=$PWD/{}/work-{number}; mkdir $REP\n{HELP}\n{script}",
            self.rep, self.ibip
        ))
    }
}

const HELP: &str = r#"
export PYTHONDONTWRITEBYTECODE=1
# What python's os module says of a piece of code: nothing, or the error's name.
py() { python3 -c "
import os, sys, errno, stat, fcntl, mmap, socket, ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
def renameat2(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags):
        raise OSError(ctypes.get_errno(), 'renameat2')
def tried(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
$1" "${@:2}"; }
# An ordinary user, in one more group.
as() { setpriv --reuid "$1" --regid "$1" --groups "$2" -- "${@:3}"; }
"#;

/// Every file type can be made, looked at and removed; a FIFO and a socket work.
#[test]
fn every_file_type_can_be_made() {
    let places = Places::new();
    places.same(
        "umask 022
         echo text > regular; mkdir directory; ln -s regular link; ln -s nowhere dangling
         mkfifo fifo; mknod character c 1 3; mknod block b 7 200
         py \"s = socket.socket(socket.AF_UNIX); s.bind('socket'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('socket'); c.send(b'hello'); print(s.accept()[0].recv(9))\"
         stat -c '%n|%F|%a|%h|%s|%u|%g|%t,%T' *
         (echo through the pipe > fifo) & cat fifo; wait
         py \"os.mknod('plain', 0o640 | stat.S_IFREG)\"; stat -c '%n %F %a' plain
         readlink link dangling; cat link; cat dangling 2>&1 | sed 's/.*: //' || true
         rm -r ./*; ls -A",
    );
}

/// Renaming replaces, refuses and exchanges as renameat2 says, between directories too, and no
/// inode number changes by it.
#[test]
fn rename_with_its_flags() {
    let places = Places::with(Needs::RenameFlags);
    places.same(
        "mkdir a b a/full empty; echo 1 > a/one; echo 2 > b/two; echo f > a/full/f
         ino() { stat -c %i \"$@\" | tr '\\n' ' '; }
         before=$(ino a/one b/two a/full)
         py \"print(tried(renameat2, 'a/one', 'b/two', 1))\"
         mv -n a/one b/two || true; cat a/one b/two
         py \"print(tried(renameat2, 'a/one', 'b/two', 2))\"; cat a/one b/two
         [ \"$before\" = \"$(ino b/two a/one a/full)\" ] && echo same numbers
         py \"print(tried(renameat2, 'a/full', 'b/two', 2))\"; cat a/full b/two/f
         py \"print(tried(renameat2, 'a/full', 'nothing', 2))\"
         py \"print(tried(renameat2, 'a', 'a/below', 0))\"
         py \"print(tried(os.rename, 'empty', 'b/two'))\"
         py \"print(tried(os.rename, 'b/two', 'empty'))\"; ls b empty
         py \"print(tried(os.rename, 'a/full', 'empty'))\"
         py \"print(tried(os.rename, 'empty', 'a/full'))\"
         mv a/one a/renamed; mv a moved; ls -R .
         py \"print(tried(os.rename, 'gone', 'x'))\"",
    );
}

/// Hard links are one file, counted, by whichever name and through either tree.
#[test]
fn hard_links_are_counted() {
    let places = Places::with(Needs::HardLinks);
    places.same(
        "echo 1 > one; ln one two; mkdir d; ln two d/three; echo more >> d/three
         stat -c '%n %h %s' one two d/three
         rm one; stat -c '%n %h' two d/three
         mv -f d/three other; stat -c '%n %h' two other; ls d
         ln -s x link; ln -P link again; stat -c '%n %h %F' link again
         py \"print(tried(os.link, 'd', 'e'), tried(os.link, 'two', 'other'))\"
         [ $(stat -c %i two) = $(stat -c %i other) ] && echo one inode",
    );
    let counts = places.across(
        "echo 1 > $REP/one; stat -c %h $IBIP/one; ln $IBIP/one $IBIP/two; stat -c %h $REP/one
         ln $REP/one $IBIP/three; stat -c %h $IBIP/two; rm $REP/one; stat -c %h $IBIP/three
         rm $IBIP/two; stat -c %h $REP/three",
    );
    assert_eq!(counts, "1\n2\n3\n2\n1");
}

/// Extended attributes are kept, listed and removed; long values, many, on every kind of file; what
/// is set in one tree is there in the other.
#[test]
fn extended_attributes() {
    let places = Places::new();
    places.same(
        "echo 1 > file; mkdir directory
         for x in file directory; do
             setfattr -n user.short -v 'a value' $x
             setfattr -n user.empty $x
             py \"os.setxattr('$x', 'user.long', bytes(range(256)) * 7)
print(tried(os.setxattr, '$x', 'user.short', b'', os.XATTR_CREATE))
print(tried(os.setxattr, '$x', 'user.none', b'', os.XATTR_REPLACE))
print(tried(os.getxattr, '$x', 'user.none'), tried(os.removexattr, '$x', 'user.none'))
print(tried(os.setxattr, '$x', 'user.' + 'n' * 251, b''), tried(os.setxattr, '$x', 'user.big', b'x' * 65537))
print(tried(os.setxattr, '$x', 'nonsense', b''))
print(sorted(os.listxattr('$x')), len(os.getxattr('$x', 'user.long')))\"
             getfattr -d $x
             setfattr -x user.short $x
             setfattr -n trusted.t -v 1 $x; getfattr -d -m - $x
         done",
    );
    let seen = places.across(
        "mkdir $REP/d; getfattr -d $IBIP/d; setfattr -n user.x -v 1 $REP/d
         getfattr --only-values -n user.x $IBIP/d; echo
         setfattr -n user.x -v 2 $IBIP/d; getfattr --only-values -n user.x $REP/d; echo
         setfattr -x user.x $REP/d; getfattr -d $IBIP/d",
    );
    assert_eq!(seen, "1\n2");
}

/// ACLs are stored, inherited from default ACLs, and right at once in the other tree.
#[test]
fn access_control_lists() {
    let places = Places::new();
    places.same(
        "umask 077
         mkdir d; setfacl -m u:1:rwx,g:2:r-x,d:u:3:rwx,d:g:4:r--,d:m:rwx d
         touch d/file; mkdir d/sub; mkfifo d/fifo; ln -s x d/link; touch d/sub/deep
         getfacl -nR d; stat -c '%n %a' d d/*
         chmod 750 d; getfacl -n d; setfacl -b d/file; getfacl -n d/file
         setfacl -k d; touch d/later; getfacl -n d/later d
         setfacl -x u:1 d; stat -c %a d; cp -a d e; getfacl -nR e",
    );
    let seen = places.across(
        "mkdir -m 700 $REP/d; stat -c %a $IBIP/d; getfacl -cn $IBIP/d
         setfacl -m u:1:rwx $REP/d; stat -c %a $IBIP/d; getfacl -cn $IBIP/d | grep user:1
         setfacl -b $IBIP/d; getfacl -cn $REP/d; chmod 711 $REP/d; stat -c %a $IBIP/d",
    );
    let plain = "user::rwx\ngroup::---\nother::---\n";
    assert_eq!(seen, format!("700\n{plain}\n770\nuser:1:rwx\n{plain}\n711"));
}

/// Times are stored to the nanosecond, before 1970 and after 2038, and set by themselves.
#[test]
fn times_to_the_nanosecond() {
    let places = Places::new();
    places.same(
        "touch file; mkdir d; ln -s file link
         for t in 1234567890123456789 1 999999999 -1 -1000000001 4102444800000000007; do
             py \"os.utime('file', ns=($t, $t + 5)); os.utime('d', ns=($t + 1, $t))
os.utime('link', ns=($t + 2, $t + 3), follow_symlinks=False)
for n in ('file', 'd', 'link'):
    s = os.lstat(n); print(n, s.st_atime_ns, s.st_mtime_ns)\"
         done
         touch -h -d @7.000000008 link; stat -c '%n %X %y' link
         py \"a = os.stat('file').st_ctime_ns; time.sleep(0.02); os.chmod('file', 0o600)
b = os.stat('file').st_ctime_ns; time.sleep(0.02); open('file', 'w').write('x'); s = os.stat('file')
print(a < b < s.st_ctime_ns, b < s.st_mtime_ns)
a = os.stat('d').st_mtime_ns; time.sleep(0.02); os.mkdir('d/x'); print(a < os.stat('d').st_mtime_ns)
a = os.stat('d').st_mtime_ns; time.sleep(0.02); os.rmdir('d/x'); print(a < os.stat('d').st_mtime_ns)\"",
    );
}

/// Modes with set-id and sticky bits, owners, and what a change of owner or content takes away.
#[test]
fn modes_and_owners() {
    let places = Places::mounted("allow_other,suid");
    places.same(
        "umask 0; touch f; mkdir d
         for m in 0 777 4755 2755 6711 1777 2770 640; do chmod $m f d; stat -c '%n %a' f d; done
         chown 1234:2345 f d; stat -c '%n %u %g %a' f d
         chmod 6755 f; chown 3:4 f; stat -c %a f
         chmod 6777 f; as 1234 1234 bash -c 'echo x >> f'; stat -c %a f
         chmod 6777 f; as 1234 1234 truncate -s 1 f; stat -c %a f
         chmod 6777 f; echo y >> f; stat -c %a f
         chmod 2777 d; chown 3:77 d; mkdir d/sub; touch d/file; stat -c '%n %g %a' d/*
         chmod 2777 d; as 1234 1234 mkdir d/theirs; stat -c '%u %g %a' d/theirs
         ln -s f l; chown -h 5:6 l; stat -c '%n %u %g' l f
         chown 1234:88 f; chmod 644 f; as 1234 1234 chmod 2755 f; stat -c %a f",
    );
}

/// Changing the owner to nobody changes the time of change, and takes set-id bits away where that is
/// the caller's to do: a file's owner, or who writes it.
#[test]
fn a_change_of_owner_to_nobody() {
    let places = Places::mounted("allow_other,suid");
    places.same(
        "chmod 755 .; echo x > f
         py \"
def messages(act):
    print(tried(act), oct(os.stat('f').st_mode), flush=True)
def told_as(uid, group, act):
    if os.fork() == 0:
        os.setgroups([group]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
        messages(act); os._exit(0)
    os.wait()
for owner in (0, 0), (1234, 1234), (1234, 77):
    for mode in 0o4711, 0o2755, 0o6777, 0o2767, 0o755:
        for who in (1234, 1234), (1234, 77), (99, 99), (0, 0):
            os.chown('f', *owner); os.chmod('f', mode); print(owner, oct(mode), who, flush=True)
            told_as(*who, lambda: os.chown('f', -1, -1))
os.chown('f', 0, 77); os.chmod('f', 0o755); before = os.stat('f').st_ctime_ns; time.sleep(0.02)
told_as(99, 99, lambda: os.chown('f', -1, -1)); print(os.stat('f').st_ctime_ns != before)
opened = os.open('f', os.O_WRONLY); os.chmod('f', 0o4711)
told_as(99, 99, lambda: os.write(opened, b'z')); messages(lambda: os.fstat(opened).st_mode)\"",
    );
}

/// A program with set-id bits that one user runs can be run and opened by others, and whether a write
/// takes the bits away depends on who writes, not on who opened the file.
#[test]
fn set_id_files_open_by_several_users() {
    for options in ["allow_other,suid", "allow_other,suid,passthrough=no"] {
        let places = Places::mounted(options);
        places.same(
            "chmod 755 .; cp /bin/sleep program; chmod 4755 program
             as 1234 1234 ./program 1 & sleep 0.3
             as 99 99 ./program 0 && echo others run it; ./program 0 && echo so does root; wait
             py \"
def told_as(uid, group, act):
    if os.fork() == 0:
        os.setgroups([group]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
        print(tried(act), flush=True); os._exit(0)
    os.wait()
users = (0, 0), (1234, 1234), (99, 99), (99, 77)
for mode in 0o4777, 0o2777, 0o2767:
    for opener in users:
        for writer in users + ((1234, 99), (0, 1)):
            # Whether the bits are there before the file is opened or come while it is open.
            late = writer[1] % 2
            open('f', 'w').write('x' * 9); os.chown('f', 1234, 77)
            os.chmod('f', 0o777 if late else mode)
            os.setgroups([opener[1]]); os.setegid(opener[0]); os.seteuid(opener[0])
            opened = os.open('f', os.O_RDWR)
            os.seteuid(0); os.setegid(0); os.setgroups([])
            other = os.open('f', os.O_RDONLY); os.chmod('f', mode)
            told_as(*writer, lambda: os.write(opened, b'y'))
            told_as(*writer, lambda: os.close(os.open('f', os.O_RDWR)))
            print(oct(mode), opener, writer, oct(os.stat('f').st_mode), flush=True)
            os.close(opened); os.close(other)\"",
        );
    }
}

/// A mapping of a descriptor that appends writes where it lies, and nothing else does.
#[test]
fn mappings_of_files_opened_to_append() {
    for options in ["passthrough=yes", "passthrough=no"] {
        let places = Places::mounted_in(TestEnv::with(Needs::FileFlags), options);
        places.same(
            "py \"
opened = os.open('f', os.O_RDWR | os.O_CREAT | os.O_APPEND); os.write(opened, b'x' * 5000)
mapped = mmap.mmap(opened, 5000); mapped[0:3] = mapped[4500:4503] = b'new'; mapped.flush()
os.pwrite(opened, b'end', 0); mapped[1000] = 65; mapped.close(); os.close(opened)\"
             stat -c %s f; md5sum < f
             chattr +a f; echo y >> f; no bash -c 'echo z > f' && echo refused; chattr -a f; tail -c 9 f",
        );
    }
}

/// Appended data lies behind what another has written meanwhile, also in the store itself, where the kernel does not
/// see it.
#[test]
fn appending_comes_behind_what_others_wrote() {
    for options in ["passthrough=yes", "passthrough=no"] {
        let places = Places::mounted(options);
        let rep = &places.rep;
        places.env.prints(
            &format!(
                "{HELP} py \"
for path in 'f', 'g':
    opened = os.open('{rep}/' + path, os.O_WRONLY | os.O_CREAT | os.O_APPEND); os.write(opened, b'one ')
    with open('A.store/col/' + '{rep}'[2:] + '/' + path if path == 'f' else '{ibip}/' + path, 'a') as other: other.write('two ')
    os.write(opened, b'three'); os.close(opened); print(open('A.store/col/' + '{rep}'[2:] + '/' + path).read())\"",
                ibip = places.ibip
            ),
            "one two three\none two three",
        );
    }
}

/// A process that holds capabilities over files, without being root, can use them. The capabilities that any user has
/// in a user namespace of its own count for nothing.
#[test]
fn capabilities_of_ordinary_users() {
    let places = Places::mounted("allow_other,suid");
    places.same(
        "chmod 755 .; mkdir -m 700 shut; echo x > shut/roots; chmod 600 shut/roots
         able() { setpriv --reuid 1234 --regid 1234 --clear-groups --inh-caps \"$1\" \
             --ambient-caps \"$1\" -- \"${@:2}\" 2>&1 | sed 's/.*: //' || true; }
         for caps in +dac_override +chown,+fowner +dac_override,+fowner,+fsetid,+chown,+mknod; do
             able $caps bash -c 'umask 022; mkdir shut/d; echo y > shut/f; ln -s x shut/l
                 mknod shut/c c 1 3; mkfifo shut/p; mv shut/p shut/q; cat shut/roots
                 chown 5:6 shut/roots; chmod 2755 shut/f; setfacl -m u:7:r shut/roots
                 truncate -s 1 shut/roots; echo z >> shut/f'
             stat -c '%n %u %g %a' shut/*; getfacl -cn shut/roots
             rm -rf shut/[dflcq]; setfacl -b shut/roots; chmod 600 shut/roots
         done
         mkdir group; chgrp 77 group; chmod 2777 group
         py \"os.umask(0); os.setgroups([]); os.setresgid(9, 9, 9); os.setresuid(9, 9, 9)
libc.unshare(0x10000000); os.close(os.open('group/f', os.O_CREAT, 0o2775))\"; stat -c '%a %g' group/f",
    );
}

/// A rename leaves whiteouts in the old place, and hidden attributes are for administrators to see.
#[test]
fn whiteouts_and_hidden_attributes() {
    let places = Places::mounted_in(TestEnv::with(Needs::RenameFlags), "allow_other");
    places.same(
        "chmod 777 .; touch a; chown 1234:1234 a
         py \"os.setresgid(1234, 1234, 1234); os.setresuid(1234, 1234, 1234)
print(tried(renameat2, 'a', 'b', 4))\"; stat -c '%n %F %u %g %t,%T' a b
         setfattr -n trusted.t -v 1 b; setfattr -n user.u -v 2 b
         getfattr -m - b; as 1234 1234 getfattr -m - b
         setpriv --reuid 1234 --inh-caps +sys_admin --ambient-caps +sys_admin getfattr -m - b
         py \"os.setresuid(9, 9, 9); libc.unshare(0x10000000); print(os.listxattr('b'))\"",
    );
}

/// An ordinary user owns what it makes, with its umask and groups, and is refused what others own.
#[test]
fn an_ordinary_user_owns_what_it_makes() {
    let places = Places::mounted_in(TestEnv::with(Needs::HardLinks), "allow_other");
    places.same(
        "chmod 755 . ; mkdir -m 1777 open; mkdir -m 750 group; chgrp 4321 group; chmod 2770 group
         mkdir -m 700 shut; echo x > open/roots; chmod 600 open/roots
         as 1234 1234,4321 bash -c '
             umask 027; echo mine > open/mine; mkdir open/dir; mkfifo open/fifo; ln -s x open/link
             echo g > group/file; mkdir group/dir
             umask 0; touch open/free
             cat open/roots; ls shut; rm open/roots; mv open/roots open/x; chown 1 open/mine
             touch here; chmod 777 group; setfacl -m u:5:r open/roots; setfattr -n user.x open/roots
             setfacl -m u:5:r open/mine; setfattr -n user.x -v 1 open/mine
             ln open/mine open/hard; mknod dev c 1 3; chgrp 4321 open/free; chgrp 99 open/free; true
         ' 2>&1 | sed 's/.*: //'
         as 1235 1235 bash -c 'cat open/mine; ls group; rm -f open/free; echo x > open/free' 2>&1 | sed 's/.*: //' || true
         stat -c '%n %u %g %a %h' open/* group/*; getfacl -cn open/mine",
    );
}

/// Truncating, holes, allocating and punching: sizes, blocks and bytes as in a native file.
#[test]
fn truncation_and_holes() {
    for options in ["passthrough=yes", "passthrough=no"] {
        let places = Places::mounted(options);
        places.same(
            "py \"
f = os.open('holes', os.O_RDWR | os.O_CREAT)
os.pwrite(f, b'a' * 4096, 1 << 20); os.pwrite(f, b'b' * 4096, 8 << 20); os.ftruncate(f, 16 << 20); os.fsync(f)
def seeks():
    at, found = 0, []
    while True:
        data = tried(os.lseek, f, at, os.SEEK_DATA)
        if isinstance(data, str): return found + [data]
        at = os.lseek(f, data, os.SEEK_HOLE); found.append((data, at))
print(seeks(), os.fstat(f).st_blocks)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
def fallocate(*arguments):
    r = libc.fallocate(f, *arguments); s = os.fstat(f)
    print(arguments, r and errno.errorcode[ctypes.get_errno()], s.st_size, s.st_blocks)
fallocate(0, 2 << 20, 1 << 20); fallocate(1, 16 << 20, 1 << 20); fallocate(3, 1 << 20, 4096); fallocate(16, 8 << 20, 4096)
fallocate(0, 16 << 20, 2 << 20); fallocate(3, 0, 0); fallocate(2, 0, 4096)
print(sum(os.pread(f, 32 << 20, 0)), os.fstat(f).st_size)
os.ftruncate(f, 5); os.ftruncate(f, 10); print(os.pread(f, 99, 0), os.fstat(f).st_size)
print(tried(os.ftruncate, os.open('holes', os.O_RDONLY), 1), tried(os.truncate, 'holes', -1))\"
             truncate -s 5M sparse; echo end >> sparse; cp --sparse=always sparse copy; sync copy sparse
             du -k sparse copy; cmp sparse copy; stat -c %s copy; : > sparse; stat -c '%s %b' sparse
             dd if=/dev/zero of=direct bs=4096 count=4 oflag=direct status=none; dd if=direct iflag=direct bs=4096 status=none | wc -c
             py \"a, b = os.open('copy', os.O_RDONLY), os.open('range', os.O_RDWR | os.O_CREAT)
print(os.copy_file_range(a, b, 100, (5 << 20) - 50, 7), os.pread(b, 200, 7)[-10:], os.fstat(b).st_size)\"",
        );
    }
}

/// A change by a mapping is in the times of the file as soon as its descriptor is closed, and a moment later if the
/// mapping outlives the descriptor.
#[test]
fn mapped_writes_change_times() {
    for options in ["passthrough=yes", "passthrough=no"] {
        let places = Places::mounted(options);
        places.same(
            "py \"
for turn in range(20):
    f = os.open('f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 8192); m = mmap.mmap(f, 8192); a = os.stat('f').st_mtime_ns
    time.sleep(0.02); assert os.stat('f').st_mtime_ns == a == os.fstat(f).st_mtime_ns
    m[0] = turn; m.flush(); m.close(); os.close(f); b = os.stat('f').st_mtime_ns; assert a < b, turn
f = os.open('f', os.O_RDWR); m = mmap.mmap(f, 8192); os.stat('f'); os.close(f); assert os.stat('f').st_mtime_ns == b
time.sleep(0.02); m[5000] = 1; m.flush(); time.sleep(0.3); c = os.stat('f').st_mtime_ns; m.close(); print(b < c)
child = os.fork()
if child == 0:
    f = os.open('f', os.O_RDWR); m = mmap.mmap(f, 8192); os.fstat(f); time.sleep(0.02); m[1] = 7; os._exit(0)
os.waitpid(child, 0); print(c < os.stat('f').st_mtime_ns)\"",
        );
    }
}

/// Bytes written through a shared mapping or a descriptor in one tree are read in the other.
#[test]
fn mappings_are_shared_between_the_trees() {
    for options in ["passthrough=yes", "passthrough=no"] {
        let places = Places::mounted(options);
        let seen = places.across(
            "py \"
import sys
rep, ibip = sys.argv[1:]
a = os.open(rep + '/f', os.O_RDWR | os.O_CREAT); os.ftruncate(a, 8192)
b = os.open(ibip + '/f', os.O_RDWR)
ma, mb = mmap.mmap(a, 8192), mmap.mmap(b, 8192)
for i in range(200):
    ma[i] = i; assert mb[i] == i, i
    mb[i + 4096] = i; assert ma[i + 4096] == i, i
ma.flush(); mb.flush()
assert os.pread(a, 200, 0) == bytes(range(200)) == os.pread(b, 200, 4096)
for i in range(200):
    os.pwrite(a, b'%03d' % i, 300); assert os.pread(b, 3, 300) == b'%03d' % i; assert mb[300:303] == b'%03d' % i
    os.pwrite(b, b'%03d' % i, 400); assert os.pread(a, 3, 400) == b'%03d' % i; assert ma[400:403] == b'%03d' % i
os.pwrite(b, b'end', 10000); assert os.fstat(a).st_size == 10003 == os.stat(rep + '/f').st_size
os.close(a); os.close(b); ma[0] = 77; ma.close(); mb.close()
assert open(ibip + '/f', 'rb').read(1) == bytes([77]); print('shared')\" $REP $IBIP",
        );
        assert_eq!(seen, "shared", "with {options}");
        places.same(
            "py \"
f = os.open('f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 100000); m = mmap.mmap(f, 100000)
m[5:9] = b'text'; print(os.pread(f, 4, 5)); p = mmap.mmap(f, 100000, mmap.MAP_PRIVATE); p[5:9] = b'mine'
print(os.pread(f, 4, 5), m[5:9]); m.flush(); os.ftruncate(f, 7); print(os.pread(f, 9, 0))\"
             cp /usr/bin/true run; ./run && echo ran",
        );
    }
}

/// Locks of both kinds hold between two processes, also where each is in another tree.
#[test]
fn locks_hold_between_processes_and_trees() {
    let places = Places::new();
    let script = "
        touch $1/lock
        exec 9> $1/lock; flock 9; flock -n $2/lock true && echo not held || echo held
        flock -u 9; flock -n $2/lock true && echo free || echo still held
        py \"
a = open(sys.argv[1] + '/lock', 'r+'); fcntl.lockf(a, fcntl.LOCK_EX, 10, 5)
if not os.fork():
    b = open(sys.argv[2] + '/lock', 'r+')
    print(tried(fcntl.lockf, b, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 7), tried(fcntl.lockf, b, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 20))
    print(tried(fcntl.lockf, b, fcntl.LOCK_SH | fcntl.LOCK_NB, 0, 0)); sys.stdout.flush(); os._exit(0)
os.wait(); fcntl.lockf(a, fcntl.LOCK_UN, 10, 5)
if not os.fork():
    b = open(sys.argv[2] + '/lock', 'r+'); print(tried(fcntl.lockf, b, fcntl.LOCK_EX | fcntl.LOCK_NB)); sys.stdout.flush(); os._exit(0)
os.wait()\" $1 $2";
    let native = places.env.sh(&format!(
        "{HELP}\nmkdir native/l; set native/l native/l\n{script}"
    ));
    assert!(native.starts_with("held\nfree\nEAGAIN None"), "{native}");
    for pair in ["$REP $REP", "$REP $IBIP", "$IBIP $REP"] {
        let seen = places.across(&format!("set -- {pair}\n{script}"));
        assert_eq!(seen, native, "{pair}");
    }
}

/// O_APPEND, O_EXCL, O_TRUNC, O_DIRECTORY, O_NOFOLLOW, O_TMPFILE where the kernel offers it, and open
/// files that have lost their name.
#[test]
fn open_flags_and_unlinked_files() {
    for options in ["passthrough=yes", "passthrough=no"] {
        let places = Places::mounted_in(TestEnv::with(Needs::OpenAfterRemoval), options);
        places.same(
            "py \"
a = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL); b = os.open('log', os.O_WRONLY | os.O_APPEND)
for i in range(50): os.write(a, b'a'); os.write(b, b'bb')
print(os.stat('log').st_size, tried(os.open, 'log', os.O_CREAT | os.O_EXCL))
os.symlink('log', 'link'); print(tried(os.open, 'link', os.O_RDONLY | os.O_NOFOLLOW), tried(os.open, 'link', os.O_CREAT | os.O_EXCL))
print(tried(os.open, 'log', os.O_RDONLY | os.O_DIRECTORY)); os.mkdir('d'); print(tried(os.open, 'd', os.O_RDWR))
f = os.open('gone', os.O_RDWR | os.O_CREAT, 0o600); os.write(f, b'content'); os.unlink('gone')
print(os.pread(f, 9, 0), os.fstat(f).st_nlink, os.path.exists('gone')); os.write(f, b'!'); os.ftruncate(f, 6)
print(os.pread(f, 9, 0), os.fstat(f).st_size); os.fchmod(f, 0o444); print(oct(os.fstat(f).st_mode)); os.utime(f, ns=(1, 2)); print(os.fstat(f).st_mtime_ns)
g = os.open('gone', os.O_RDWR | os.O_CREAT | os.O_TRUNC); os.write(g, b'new'); print(os.pread(f, 9, 0), os.pread(g, 9, 0))
r = os.open('ro', os.O_RDWR | os.O_CREAT, 0o400); print(os.write(r, b'allowed'))
os.close(os.open('log', os.O_WRONLY | os.O_TRUNC)); print(os.stat('log').st_size); os.write(a, b'z'); print(open('log').read())
old = os.open('old', os.O_RDWR | os.O_CREAT); os.write(old, b'old'); open('fresh', 'w').write('fresh'); os.rename('fresh', 'old')
print(os.pread(old, 9, 0), open('old').read(), os.fstat(old).st_nlink)
h = os.open('d', os.O_RDONLY); os.rmdir('d'); print(os.listdir(h), tried(os.mkdir, '/proc/self/fd/%d/x' % h))\"",
        );
    }
}

/// Flags are set and read by chattr and lsattr, and do at once what they say.
#[test]
fn flags_of_files() {
    let places = Places::with(Needs::FileFlags);
    places.same(
        "said() { bash -c \"$1\" 2>&1 | sed 's/.*: //' || true; }
         echo one > f; mkdir d; flags() { lsattr -d \"$1\" | cut -d' ' -f1 | tr -d e-; }
         flags f; chattr +a f; flags f; echo two >> f; said 'echo three > f'; said 'rm f'
         chattr -a f; chattr +i f; flags f; said 'echo four >> f'; said 'mv f g'; said 'chmod 600 f'
         chattr -i f; chattr +d d; flags d; cat f; lsattr -v f > /dev/null; rm f
         py \"f = open('x', 'w'); print(tried(fcntl.ioctl, f, 0x12345678, 0))\"",
    );
}

/// A listing that the kernel remembers of one tree knows what has changed since through the other,
/// and through the same; a program that looks up the names it lists gets all of them.
#[test]
fn listings_remembered_are_true() {
    let places = Places::new();
    places.across(
        "python3 - $REP $IBIP <<'END'
import os, sys
rep, ibip = sys.argv[1:]
names = set()
for turn in range(400):
    one, other = (rep, ibip) if turn % 3 else (ibip, rep)
    for place in (one, other):
        assert set(os.listdir(place)) == names, (turn, place)
    with os.scandir(other) as entries:
        assert {entry.name for entry in entries if entry.stat(follow_symlinks=False)} == names, turn
    name = 'n%d' % (turn % 90)
    if turn % 90 == 5 and 'n1' in names and name not in names:
        os.rename(one + '/n1', one + '/' + name); names -= {'n1'}
    elif name in names:
        os.unlink(one + '/' + name); names.remove(name); continue
    elif turn % 4 == 0:
        os.symlink('x', one + '/' + name)
    else:
        open(one + '/' + name, 'w').close()
    names.add(name)
END",
    );
    places.same(
        "mkdir -p a/b/c; for i in $(seq 300); do echo $i > a/f$i; echo $i > a/b/g$i; ln -s f$i a/b/c/l$i; done
         for i in 1 2 3; do find . | sort | md5sum; ls -lR --time-style=+ . | sed 's/^total.*//' | md5sum; done
         find . -type f -printf '%p %s %m\\n' | sort | md5sum; du -a --apparent-size a/b/c | wc -l
         rm a/b/g7; ls a/b | wc -l; ls -l a/b | wc -l; find a/b -name g7; tar cf - a | tar tf - | sort | md5sum",
    );
}

/// Names of 255 bytes and names that are not UTF-8 are names like any other; longer ones are refused.
#[test]
fn long_and_strange_names() {
    let places = Places::new();
    places.same(
        "py \"
names = [b'n' * 255, b'\\xff\\xfe', b'a\\nb', b' ', b'\\xc3\\xa9', b'*', b'-rf', b'x' * 200 + b'\\x80', b'...', b'!', b'34PGRBS:', b'.mint', b'.ibi']
for n in names:
    open(n, 'w').write('x'); os.mkdir(b'd'); os.rename(b'd', b'D' + n[:254]); os.symlink(n, b'l' + n[:254])
print(sorted(os.listdir(b'.')), tried(os.mkdir, b'n' * 256), tried(open, b'n' * 256))
for n in names: assert os.readlink(b'l' + n[:254]) == n and open(b'l' + n[:254]).read() == 'x'
os.symlink(b't' * 4095, 'far'); print(len(os.readlink('far')))\"
         rm -r ./* .mint .ibi ./..?* ; ls -A",
    );
}

/// 3,000 entries are each listed once, and removed while they are being listed.
#[test]
fn big_directories_are_listed_whole_and_removed() {
    let places = Places::new();
    places.same(
        "mkdir big; cd big; seq -f 'a rather long name of a file, number %05g' 3000 | xargs -d '\\n' touch
         ls | wc -l; ls | sort -u | wc -l; find . -type f | wc -l
         py \"
seen = []
with os.scandir('.') as entries:
    for entry in entries:
        seen.append(entry.name); os.unlink(entry.name)
print(len(seen), len(set(seen)), os.listdir('.'))\"
         seq 3000 | xargs mkdir; ls | wc -l; stat -c %h .; cd ..; rm -r big; ls -A",
    );
}

/// Deep trees, past the length of a path, are made, walked and removed.
#[test]
fn deep_trees() {
    let places = Places::with(Needs::LongPaths);
    places.same(
        "py \"
here = os.open('.', os.O_RDONLY)
name = 'd' * 100
for i in range(60):
    os.mkdir(name); os.chdir(name)
open('bottom', 'w').write('deep'); print(open('bottom').read()); os.fchdir(here)\"
         find . -name bottom | wc -c; du -s --apparent-size . | cut -f2; rm -r d*; ls -A
         p=$(printf 'a/%.0s' $(seq 300)); mkdir -p $p; echo x > $p/f; cat $p/f; cp -a a b; diff -r a b && rm -r a b",
    );
}

/// cp -a and rsync -aHAX keep everything, into and out of an item; a second run moves nothing.
#[test]
fn copies_are_complete() {
    let places = Places::with(Needs::HardLinks);
    places.same(&format!(
        "{TREE}
         cp -a src copied; show src > 1; show copied > 2; diff 1 2 && echo cp
         rsync -aHAX --numeric-ids src/ synced/; show synced > 3; diff 1 3 && echo rsync
         rsync -aHAXi --numeric-ids src/ synced/; echo more >> src/file; touch -d @9 src/file
         rsync -aHAXi --numeric-ids src/ synced/; rsync -aHAXic --numeric-ids --delete src/ synced/
         rsync -aHAXS --inplace --delete src/ copied/; rsync -aHAXi --numeric-ids src/ copied/
         cp -a src $W/native/out-$$; rsync -aHAXi --numeric-ids $W/native/out-$$/ src/ && echo out and back"
    ));
}

/// tar with ACLs and attributes packs and unpacks an item's files unchanged.
#[test]
fn archives_are_complete() {
    let places = Places::with(Needs::HardLinks);
    places.same(&format!(
        "{TREE}
         tar --xattrs --acls --sparse -cf all.tar src; mkdir out; tar --xattrs --acls -xpf all.tar -C out
         show src > 1; (cd out; show src > ../2); diff 1 2 && echo unpacked
         tar --xattrs --acls -df all.tar && echo no difference"
    ));
}

const TREE: &str = r#"
    umask 022
    mkdir -p src/sub/deep src/empty; echo text > src/file; ln src/file src/sub/hard
    ln -s ../file src/sub/link; ln -s /nowhere src/dangling; mkfifo src/fifo; mknod src/dev c 1 3
    truncate -s 3M src/sparse; echo end >> src/sparse
    setfattr -n user.a -v b src/file; setfattr -n user.dir -v c src/sub
    setfacl -m u:7:rw,g:8:r src/file; setfacl -m d:u:9:rwx src/sub/deep
    chmod 4755 src/sub/deep; chmod 640 src/sparse; chown 11:12 src/empty src/sub/link -h
    printf x > "src/$(printf '\xff\nname')"
    find src -depth -exec touch -h -d '2001-02-03 04:05:06.123456789' {} +
    show() { (cd "$1"; find . -depth -printf '%p|%y|%m|%n|%U|%G|%s|%T@|%l\n' | sort
        find . -type f -exec md5sum {} + | sort; getfacl -PnR .
        find . '(' -type f -o -type d ')' -exec getfattr -d {} + | sort); }
"#;

/// git clones into an item, commits there, and finds nothing wrong.
#[test]
pub fn git_works() {
    let places = Places::new();
    places.same(
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
         export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
         git init -q -b main first; cd first; mkdir d; for i in $(seq 60); do echo $i > d/$i; done; ln -s d/1 link; echo '#!' > run; chmod +x run
         git add .; git commit -qm one; cd ..
         git clone -q first second; git clone -q --no-hardlinks first third; cd second
         echo changed >> d/3; git mv d/4 moved; git status --short; git commit -qam two; git status --short; git log --oneline
         git fsck --full; git gc -q; git fsck --full; git checkout -q -b other HEAD~1; git merge -q main; git stash list
         cd ../first; git fetch -q ../second main; git log --oneline FETCH_HEAD; git worktree add -q ../tree; ls ../tree | wc -l",
    );
}

/// sqlite3 keeps its databases in an item, with either journal, and two processes write at once.
#[test]
fn databases_work() {
    for options in ["passthrough=yes", "passthrough=no"] {
        let places = Places::mounted(options);
        places.same(
            "for mode in wal delete truncate persist; do
                 sqlite3 $mode.db \"pragma journal_mode=$mode; create table t (who, n);\"
                 for p in 1 2; do
                     (for n in $(seq 25); do echo \"insert into t values ($p, $n);\"; done | sqlite3 -cmd '.timeout 20000' $mode.db) &
                 done; wait
                 sqlite3 $mode.db 'select count(*), sum(n) from t; pragma integrity_check;'
                 cp $mode.db copy.db; sqlite3 copy.db 'select count(*) from t'
             done",
        );
        let seen = places.across(
            "sqlite3 $REP/x.db 'pragma journal_mode=wal; create table t (n);'
             (for n in $(seq 25); do echo \"insert into t values ($n);\"; done | sqlite3 -cmd '.timeout 20000' $REP/x.db) &
             (for n in $(seq 25); do echo \"insert into t values ($n);\"; done | sqlite3 -cmd '.timeout 20000' $IBIP/x.db) &
             wait; sqlite3 $IBIP/x.db 'select count(*) from t; pragma integrity_check'",
        );
        assert_eq!(seen, "wal\n50\nok", "with {options}");
    }
}
