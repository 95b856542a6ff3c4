//! One Archive on several hosts, each with mounts, network, name and processes of its own: the short form of a trial of
//! `tests/cluster/run`, which has the others.

use crate::support::TestEnv;

/// Two hosts mint while their daemons are killed, and declare relations among the same items.
#[test]
fn two_hosts() {
    let env = TestEnv::new();
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/run");
    let ibifs = env!("CARGO_BIN_EXE_ibifs");
    let printed = env.sh(&format!(
        "TMPDIR=$PWD python3 -B {run} {ibifs} --hosts 2 --short --only kill,relations > said 2> failed || {{ cat said failed; exit 1; }}; cat said"
    ));
    assert!(
        printed.contains("0 lost, 0 duplicates, fsck 0"),
        "{printed}"
    );
    assert!(
        printed.contains("no cycle, no lost end, fsck 0"),
        "{printed}"
    );
}
