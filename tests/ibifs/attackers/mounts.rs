//! A user who mounts a filesystem of their own, under the type of ibifs and with a source of their choice, and answers
//! or not: it counts for no other user, and no command waits for it.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::mount::MountFlags;

use crate::support::TestEnv;

/// A mount whose daemon never answers, as the kernel has it once fusermount3(1) has made it for a user; it ends when
/// this is dropped.
fn silent_mount(source: &Path, at: &Path, user: u32, options: &str) -> File {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let device = device.expect("/dev/fuse");
    let data = format!(
        "fd={},rootmode=40000,user_id={user},group_id={user}{options}",
        device.as_raw_fd()
    );
    let data = CString::new(data).expect("no NUL");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount(source, at, "fuse.ibifs", flags, &*data).expect("mounted");
    device
}

/// Runs a script where only the mounts of this environment are, so that others can end, and `ibifs` is killed if it hangs.
fn alone(env: &TestEnv, script: &str) {
    env.sh(&format!(
        "unshare -m --propagation private bash -euo pipefail -s <<'END'
         # There may be none, and one of them may have lain below another.
         {{ findmnt -rno TARGET -t fuse.ibifs,fuse.ibifs-world | grep -v \"^$PWD/\" || true; }} | xargs -r -d '\\n' -n 1 umount -l || true
         ibifs() {{ timeout -k 1 20 ibifs \"$@\"; }}
         as() {{ setpriv --reuid=$1 --regid=$1 --clear-groups timeout -k 1 20 \"${{@:2}}\"; }}
         no() {{ ! \"$@\"; }}
         {script}\nEND"
    ));
}

/// It is none of the stores that are mounted, and its store is not opened.
#[test]
fn a_mount_of_another_user_is_no_store() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A x > x; ibifs init theirs --host b.example.org; chown -R 1001:1001 theirs; chmod 755 . theirs
         mkdir m; chown 1001 m",
    );
    let root = env.root();
    for options in ["", ",allow_other"] {
        let _silent = silent_mount(&root.join("theirs"), &root.join("m"), 1001, options);
        alone(
            &env,
            "ibifs status > said; test \"$(grep ^store said)\" = \"store    $PWD/A.store\"
             ibifs show $(<x) > shown; grep -q $(<x) shown; ibifs ls A > /dev/null; ibifs upn > /dev/null
             code=0; ibifs umount m 2> said || code=$?; test $code = 4; grep -q 'user 1001 has mounted' said",
        );
        env.sh("umount -l m");
    }
    // The owner's own command sees it, and no other one.
    let _own = silent_mount(&root.join("theirs"), &root.join("m"), 1001, "");
    alone(
        &env,
        "as 1002 ibifs status > others; no grep -q theirs others
         as 1001 ibifs status > own; grep -q \"^store    $PWD/theirs\" own; grep -q 'daemon does not answer' own",
    );
}

/// A store that root has mounted is opened by way of its mount only if root or the caller owns it.
#[test]
fn the_store_of_another_user_is_named_before_it_is_opened() {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > x; chown -R 1001:1001 A.store; chmod 755 . A.store");
    alone(
        &env,
        "code=0; ibifs show $(<x) 2> said || code=$?; test $code = 4; grep -q 'belongs to user 1001' said
         code=0; ibifs ls A 2> said || code=$?; test $code = 4
         ibifs show --store A.store $(<x) > /dev/null; ibifs status > said; no grep -q A.store said
         as 1001 ibifs show $(<x) > /dev/null",
    );
}

/// With user_allow_other: the store of root can be mounted while another user's silent mount names it, not on that
/// mount or in it, and what changes the store does not wait.
#[test]
fn a_silent_mount_of_another_user_delays_no_mount() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs umount A; mkdir m; ln -s m link");
    let root = env.root();
    let _silent = silent_mount(&root.join("A.store"), &root.join("m"), 1001, ",allow_other");
    alone(
        &env,
        "ibifs mount A.store A; ibifs mint A > /dev/null; ibifs status > said; test $(grep -c ^store said) = 1
         for at in m m/below link; do
             code=0; ibifs mount A.store $at 2> said || code=$?; test $code -ge 1 -a $code -lt 100; cat said
             grep -Eq 'user 1001 has mounted|does not answer' said
         done
         ibifs umount A; ibifs mint A.store > /dev/null",
    );
}

/// The daemon of root itself that does not answer is named, and not waited for.
#[test]
fn a_daemon_that_has_stopped_is_named() {
    let env = TestEnv::new().with_a();
    alone(
        &env,
        "daemon=$(sed -n 's/^pid //p' A.store/lock); kill -STOP $daemon; trap 'kill -CONT $daemon' EXIT
         ibifs status > said; grep -q 'daemon does not answer' said",
    );
}
