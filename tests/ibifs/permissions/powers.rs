//! No user gains anything by a set-id bit, a capability, a device or a user namespace.

use crate::support::{Needs, TestEnv};

/// Writes a file by every way there is, as its owner, as a member of its group and as root, and tells
/// what is left of its set-id bits and of its capability.
const WAYS: &str = r#"
import ctypes, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def ok(result):
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def allocate(mode, length): ok(libc.fallocate(f, mode, ctypes.c_long(0), ctypes.c_long(length)))
def direct():
    m = mmap.mmap(-1, 4096); m.write(b'x' * 4096)
    os.writev(os.open('f', os.O_RDWR | os.O_DIRECT), [m])
def mapping():
    m = mmap.mmap(f, 4096); m[0:1] = b'x'; m.flush()
def splice():
    r, w = os.pipe(); os.write(w, b'abc'); os.splice(r, f, 3)
ways = {
    'write': lambda: os.write(f, b'x'), 'pwrite': lambda: os.pwrite(f, b'x', 1), 'writev': lambda: os.writev(f, [b'x', b'y']),
    'append': lambda: os.write(os.open('f', os.O_WRONLY | os.O_APPEND), b'x'), 'direct': direct, 'mapping': mapping,
    'truncate': lambda: os.truncate('f', 3), 'ftruncate': lambda: os.ftruncate(f, 2),
    'O_TRUNC': lambda: os.open('f', os.O_WRONLY | os.O_TRUNC), 'fallocate': lambda: allocate(0, 9000), 'punch': lambda: allocate(3, 2),
    'copy_file_range': lambda: os.copy_file_range(os.open('s', os.O_RDONLY), f, 3),
    'sendfile': lambda: os.sendfile(f, os.open('s', os.O_RDONLY), 0, 3), 'splice': splice,
    'chown': lambda: os.chown('f', -1, os.getgid()), 'chown to nobody': lambda: os.chown('f', -1, -1),
}
os.chdir(sys.argv[1]); open('s', 'w').write('source')
for way in ways:
    for uid, gid in [(60001, 60001), (60002, 60010), (0, 0)]:
        for mode in [0o6775, 0o2765, 0o0775, 0o4766]:
            open('f', 'wb').write(bytes(4096)); os.chown('f', 60001, 60010); os.chmod('f', mode)
            os.setxattr('f', 'security.capability', struct.pack('<IIIII', 0x02000001, 1 << 13, 0, 0, 0))
            r, w = os.pipe()
            if os.fork() == 0:
                try:
                    os.setgroups([]); os.setresgid(gid, gid, gid); os.setresuid(uid, uid, uid)
                    f = os.open('f', os.O_RDWR) if 'chown' not in way else None
                    ways[way](); os.write(w, b'done')
                except OSError as error: os.write(w, str(error.errno).encode())
                os._exit(0)
            os.wait(); printed = os.read(r, 99).decode(); os.close(r); os.close(w)
            stat = os.stat('f'); has = 'security.capability' in os.listxattr('f'); os.unlink('f')
            print(f'{way} by {uid}:{gid} of {mode:o}: {printed} {stat.st_mode & 0o7777:o} {stat.st_uid}:{stat.st_gid} capability {has}')
"#;

/// Capabilities and set-id bits are as natively after every way to write a file, with and without passthrough.
#[test]
fn capabilities_and_set_id_bits_go_as_natively() {
    let env = TestEnv::with(Needs::Posix);
    std::fs::write(env.root().join("ways.py"), WAYS).expect("a program");
    env.sh("chmod 755 .; mkdir native A; ibifs init A.store --host archive-a.example.org; ibifs mount A.store A
              mkdir -p A/.mint/it/doc; rep A/.mint/it > rep; ibifs umount A");
    let native = env.sh("python3 ways.py native");
    let count = native.lines().count();
    assert_eq!(count, 16 * 3 * 4);
    let keeps = |line: &&str| line.ends_with("capability True");
    assert!(native.lines().filter(keeps).count() < count / 4, "{native}");
    for passthrough in ["yes", "no"] {
        let mounted = env.sh(&format!(
            "ibifs mount -o suid,passthrough={passthrough} A.store A; python3 ways.py A/$(cat rep)/doc; ibifs umount A"
        ));
        assert_eq!(mounted.lines().count(), count);
        for (native, mounted) in native.lines().zip(mounted.lines()) {
            // The pages of a mapping are written by the daemon, and what writes takes it away.
            let native = if passthrough == "no" && native.starts_with("mapping") {
                native.replace("True", "False")
            } else {
                native.to_owned()
            };
            assert_eq!(mounted, native, "with passthrough={passthrough}");
        }
    }
}

/// By default a set-id program gains nothing and a device cannot be opened; with `-o suid,dev` by root
/// both are as asked.
#[test]
fn programs_and_devices_have_no_power_unless_root_says_so() {
    let env = TestEnv::new();
    env.sh("chmod 755 .; mkdir A; ibifs init A.store --host archive-a.example.org; ibifs mount A.store A; mkdir -p A/.mint/it/doc
              chmod 755 A/.mint/it/doc; rep A/.mint/it > rep; doc=A/$(cat rep)/doc; cp /usr/bin/python3 $doc/id; cp $doc/id $doc/cap
              chmod 6755 $doc/id; setcap cap_dac_override+ep $doc/cap; mknod -m 666 $doc/null c 1 3; mknod -m 666 $doc/fifo p");
    let tried = "
        doc=A/$(cat rep)/doc; as() { setpriv --reuid 60001 --regid 60001 --clear-groups \"$@\"; }
        as $doc/id -c 'import os; print(os.geteuid(), os.getegid())'
        as $doc/cap -c 'print([line.split()[1] for line in open(\"/proc/self/status\") if line.startswith(\"CapEff\")][0] != \"0\" * 16)'
        for n in null fifo; do as timeout 30 /usr/bin/python3 -c 'import os, sys; os.open(sys.argv[1], os.O_RDWR)' $doc/$n 2> err && echo opened || tail -1 err | cut -d: -f1; done";
    let nothing = "60001 60001\nFalse\nPermissionError\nopened";
    let all = "0 0\nTrue\nopened\nopened";
    env.prints(tried, nothing);
    for (options, expected) in [
        ("suid,dev", all),
        ("suid", "0 0\nTrue\nPermissionError\nopened"),
        ("dev", "60001 60001\nFalse\nopened\nopened"),
        ("suid,dev,nosuid,nodev", nothing),
        ("rw", nothing),
    ] {
        env.sh(&format!(
            "ibifs umount A; ibifs mount -o {options} A.store A"
        ));
        env.prints(tried, expected);
    }
}

/// A user who is root in a user namespace of its own is here who it was outside.
#[test]
fn root_of_a_user_namespace_is_no_root_here() {
    let env = TestEnv::new();
    env.sh(
        "chmod 755 .; mkdir A; ibifs init A.store --host archive-a.example.org; ibifs mount A.store A; mkdir -p A/.mint/it/doc A/.mint/theirs/doc
         doc=A/$(rep A/.mint/it)/doc; theirs=A/$(rep A/.mint/theirs); echo theirs > $theirs/doc/f; chown -R 60001:60001 $theirs; echo secret > $doc/secret; chmod 600 $doc/secret
         mkdir $doc/private; chmod 700 $doc/private; item=${doc%/doc}; chmod 755 $item
         cat > script <<'END'
[ $(id -u) = 0 ]
no() { ! \"$@\" 2> /dev/null || { echo \"allowed: $*\"; exit 1; }; }
no cat $doc/secret; no touch $doc/new; no chmod 666 $doc/secret; no chown 0:0 $doc/secret; no rm -f $doc/secret; no ls $doc/private
no mkdir A/.mint/x; no ln -s ../../../${theirs#A/} \"$item!\"; no setfattr -n user.ibi.language -v en $item; no sh -c \"echo > $item/.ibi\"
no mknod $theirs/doc/null c 1 3; no setfattr -n trusted.x -v y $theirs/doc/f; no chown 12345 $theirs/doc/f
echo more >> $theirs/doc/f; touch $theirs/doc/made; mkdir $theirs/doc/d; chmod 4755 $theirs/doc/f; [ $(stat -c %u:%g $theirs/doc/made) = 0:0 ]
setfattr -n user.ibi.language -v en $theirs
END
         export doc theirs item
         setpriv --reuid 60001 --regid 60001 --clear-groups unshare -U -r bash -eu script
         [ \"$(stat -c %u:%g $theirs/doc/made $theirs/doc/d | sort -u)\" = 60001:60001 ]; [ $(cat $doc/secret) = secret ]",
    );
}
