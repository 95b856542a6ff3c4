//! A user who may write in a store may write anything into its lock file, which names the daemon
//! and its mount: no other process is ended, no other directory written, no mount cut off for it.

use crate::support::TestEnv;

/// Writes the lock of A.store again: process `$1`, mount point `$2`.
const FORGE: &str = "forge() { printf 'pid %s\\nmountpoint %s\\n' $1 $2 > A.store/lock; }";

/// A tree is unmounted in which a process works, and the lock names another one: none is ended, and
/// the command says so. With the daemon's own number, the daemon is.
#[test]
fn only_the_daemon_is_ended() {
    let innocents = [
        "sleep 60 &",
        // The lock file is open, but not locked.
        "sleep 60 < A.store/lock &",
        "flock --no-fork notes sleep 60 3< A.store/lock > /dev/null 2>&1 &",
    ];
    for innocent in innocents {
        let env = TestEnv::new().with_a();
        env.sh(&format!(
            "{FORGE}; daemon A.store > daemon; (cd A; exec sleep 60 > /dev/null 2>&1) & sitter=$!
             {innocent}
             innocent=$!; waits test /proc/$sitter/cwd -ef A; waits grep -Eqx 'sleep|flock' /proc/$innocent/comm
             forge $innocent $PWD/A; exit=0
             ibifs umount A 2> complaint || exit=$?
             test $exit = 5; grep -qF \"fuser -v $PWD/A.store/lock\" complaint; no grep -q $innocent complaint
             kill -0 $innocent; kill -0 $(<daemon)
             kill $innocent; forge $(<daemon) $PWD/A; kill $sitter
             for i in $(seq 100); do test -d /proc/$(<daemon) || break; sleep 0.1; done
             no test -d /proc/$(<daemon); ibifs mount A.store A; ibifs umount A"
        ));
    }
}

/// A process that was killed and is not waited for is named as the daemon: the mount stays.
#[test]
fn only_a_killed_daemon_loses_its_mount() {
    let env = TestEnv::new().with_a();
    let complaint = env.sh(&format!(
        "{FORGE}; daemon A.store > daemon
         python3 -c 'import subprocess, time; p = subprocess.Popen([\"true\"]); print(p.pid, flush=True); time.sleep(60)' > zombie & parent=$!
         until test -s zombie && grep -q 'State:.Z' /proc/$(<zombie)/status; do sleep 0.1; done
         exec 9< A; forge $(<zombie) $PWD/A; no ibifs mount A.store A; ls A > /dev/null; ls /dev/fd/9/ > /dev/null
         forge $(<daemon) $PWD/A; kill $parent; ibifs mount A.store A 2>&1 || true"
    ));
    assert!(complaint.contains("mounted at"), "{complaint}");
}

/// The lock names a directory of another user's as the mount point: nothing is made there, and the
/// command reports that the store is in use.
#[test]
fn only_a_mount_of_the_store_is_written_through() {
    let env = TestEnv::new().with_a().with_b();
    env.sh(&format!(
        "{FORGE}; mkdir -p other/.mint; mint A x > rep
         for point in other B none; do
             forge $(daemon A.store) $PWD/$point; exit=0
             ibifs mint A.store > out 2> complaint || exit=$?
             test $exit = 5; grep -q 'the store is in use' complaint; test ! -s out
             no ibifs relate --store A.store $(<rep) --translation $(<rep) --lang pt
         done
         test -z \"$(ls other/.mint)\"; ibifs ls B | wc -l | grep -qx 1
         forge $(daemon A.store) $PWD/A; ibifs mint A.store | wc -l | grep -qx 2; ibifs ls A | wc -l | grep -qx 3"
    ));
}

/// A lock file that is removed or replaced while a daemon runs, which many do with one that looks stale,
/// lets no user in beside it, and commands find their way to the daemon and its mount all the same.
#[test]
fn a_removed_lock_admits_no_second_daemon() {
    for removed in [
        "rm A.store/lock",
        "rm A.store/lock; touch A.store/lock",
        "cp A.store/lock l; rm A.store/lock; cp l A.store/lock",
    ] {
        let env = TestEnv::new().with_a();
        env.sh(&format!(
            "daemon A.store > daemon; mkdir A/.mint/x B; ls A.store/staging > staging; touch A.store/staging/kept
             {removed}
             exit=0; ibifs mount A.store B 2> complaint || exit=$?
             test $exit = 5; grep -q 'the store is in use' complaint; grep -q $(<daemon) complaint
             test -e A.store/staging/kept; no mountpoint B
             ibifs status A.store | grep -q \"process $(<daemon)\"
             ibifs mint A.store > minted; rep A/$(head -n 1 minted); ibifs fsck A.store | tail -n 1
             ibifs umount A
             ibifs mount A.store A 2> printed || cat printed >&2; cat printed >&2; test ! -s printed; grep -q \"pid $(daemon A.store)\" A.store/lock"
        ));
    }
}
