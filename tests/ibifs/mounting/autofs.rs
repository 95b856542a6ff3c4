//! Mounting at the first access, as autofs and systemd's automount units do it. Until their mount command has ended, the
//! kernel lets only processes of their process group on to the mount point.

use super::does;
use crate::support::TestEnv;

/// Plays an automounter: mounts autofs at a path and runs a command for each request.
const AUTOMOUNTER: &str = r#"
import ctypes, fcntl, os, struct, subprocess, sys
kind, point, *command = sys.argv[1:]
os.setpgid(0, 0)
requests, kernel = os.pipe()
data = f'fd={kernel},pgrp={os.getpgrp()},minproto=5,maxproto=5,{kind}'
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b'automounter', point.encode(), b'autofs', 0, data.encode()) == 0, ctypes.get_errno()
os.close(kernel)
root = os.open(point, os.O_RDONLY)
READY, FAIL = 0x9360, 0x9361
while packet := os.read(requests, 4096):
    token, = struct.unpack_from('I', packet, 8)
    if kind == 'indirect':
        name = packet[44:].split(b'\0')[0].decode()
        os.makedirs(f'{point}/{name}', exist_ok=True)
    done = subprocess.run(command, stdin=subprocess.DEVNULL)
    fcntl.ioctl(root, FAIL if done.returncode else READY, token)
"#;

/// The functions of the scripts here. `automounts KIND COMMAND...` has autofs at M and runs the command at the first
/// access.
const PRELUDE: &str = r#"
automounter=
at_end() { ends $automounter; umount -qlR M || true; while umount -ql M; do :; done; umount -qlR W || true; }
trap at_end EXIT
automounts() {
    python3 automounter.py $1 $PWD/M "${@:2}" & automounter=$!
    waits eval 'test "$(kind)" = autofs'
}
over() { kill $automounter; wait $automounter || true; umount -l M; }
# No access waits for ever.
within() { timeout -s KILL 60 "$@"; }
# The processes that serve the mount at $1.
servers() { pgrep -f -- "--ready-fd [0-9]* -- .* $PWD/$1\$"; }
"#;

fn automounted(script: &str) {
    let env = TestEnv::new();
    std::fs::write(env.root().join("automounter.py"), AUTOMOUNTER).expect("a program");
    does(&env, &format!("{PRELUDE}\n{script}"));
}

/// A store is there at the first access, by any user; its daemon has left the automounter's group then, and closes
/// the store when it is unmounted, after which the next access mounts it again.
#[test]
fn a_store_is_mounted_at_the_first_access() {
    automounted(
        "for command in \"mount -t fuse.ibifs $PWD/S $PWD/M\" \"mount -t ibifs $PWD/S $PWD/M\" \"ibifs mount $PWD/S $PWD/M\"; do
             automounts direct $command
             for again in 1 2; do
                 within ls -a M | grep -qx example.org; test $(kind) = fuse.ibifs; within mkdir M/.mint/x
                 daemon=$(servers M); test $(ps -o sid= $daemon) = $daemon; test $(ps -o pgid= $daemon) = $daemon
                 umount M; test $(kind) = autofs; waits eval '! servers M'
             done
             over
         done
         test $(ibifs ls S | wc -l) = 7; ibifs fsck S | grep -q ' 0 findings'",
    );
}

/// Maps of autofs with keys.
#[test]
fn a_store_is_mounted_below_a_directory_of_autofs() {
    automounted(
        "automounts indirect mount -t fuse.ibifs $PWD/S $PWD/M/archive
         within ls -a M/archive | grep -qx example.org; within mkdir M/archive/.mint/x
         umount M/archive; within ls -a M/archive | grep -qx example.org; umount M/archive; over
         ibifs fsck S | grep -q '2 items, 0 findings'",
    );
}

/// An error of the mount command is one of the access, and so is a daemon that was killed, until its mount is removed.
#[test]
fn an_access_ends_when_the_store_cannot_be_mounted() {
    automounted(
        "automounts direct mount -t fuse.ibifs $PWD/T $PWD/M
         refused 'No such file or directory' within ls M; no servers M
         ibifs init T --host t.example.org > /dev/null
         within ls -a M | grep -qx example.org; kill -9 $(servers M)
         waits eval \"(refused 'Transport endpoint is not connected' within ls M)\"
         ibifs umount M; test $(kind) = autofs
         within ls -a M | grep -qx example.org; ibifs umount M; ibifs fsck T | grep -q ' 0 findings'",
    );
}

/// Items of other Archives: the process in a store's mount, a mount of its own, that of a URL, and one by a process that
/// has mounted elsewhere before, which the automounter's group does not have.
#[test]
fn items_of_other_archives_are_mounted_at_the_first_access() {
    automounted(
        "mkdir W; cache=$PWD/C
         automounts direct mount -t fuse.ibifs -o world=http://127.0.0.1:1,world-cache=$cache $PWD/S $PWD/M
         within ls M > /dev/null; test \"$(findmnt -nro FSTYPE M/.world)\" = fuse.ibifs-world
         umount -R M; waits eval '! servers M'; over
         world=\"ibifs world --resolver http://127.0.0.1:1 --cache $cache\"
         for has_other in '' yes; do
             for command in \"$world M\" \"mount -t fuse.ibifs -o cache=$cache http://127.0.0.1:1 $PWD/M\"; do
                 test ! $has_other || $world W
                 automounts direct $command
                 within stat M/. > /dev/null; test $(kind) = fuse.ibifs-world
                 umount M; test $(kind) = autofs; over
                 test ! $has_other || umount W
                 waits eval '! pgrep -f -- \"--cache $cache\"'
             done
         done",
    );
}
