//! The texts beside and in an item: what can be read, written and removed through the mount.

use crate::support::TestEnv;

/// The sidecar read through the mount is the one on disk, also right after ibifs has changed it,
/// and in both trees.
#[test]
fn a_sidecar_is_seen_as_soon_as_it_changes() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; ibip A/.mint/one > ibip; mint A two > two");
    for tree in ["one", "ibip"] {
        env.sh(&format!("cat A/$(cat {tree})/.ibi > /dev/null"));
    }
    env.sh("ln -sfn ../../../$(cat two) \"A/$(cat one)!\"");
    for tree in ["one", "ibip"] {
        env.sh(&format!(
            "cmp A/$(cat {tree})/.ibi A.store/col/$(cat one)/.ibi
             grep -q '^ibi.nextedition ' A/$(cat {tree})/.ibi"
        ));
        env.prints(&format!("stat -c %h A/$(cat {tree})/.ibi"), "1");
    }
}

/// `<ibi>:(oai_dc)` and `<ibi>?GetFileList` are read only: opening them for writing is EPERM.
#[test]
fn what_is_made_up_cannot_be_written() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one");
    for name in [":(oai_dc)", "?GetFileList"] {
        env.complains(
            &format!("echo x > \"A/$(cat one){name}\""),
            "Operation not permitted",
        );
        env.sh(&format!("cat \"A/$(cat one){name}\" > /dev/null"));
    }
}

/// A metadata text of more than 1 MiB is no record (`<ibi>:(oai_dc)` is EFBIG) and cannot be
/// renamed onto `<ibi>:`; to write it there fails, and what was written can be read and removed.
#[test]
fn a_metadata_text_that_is_too_large_can_be_removed() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; seq -f 'title: Rainfall %.0f' 60000 > big");
    env.complains(
        "year=A/$(dirname $(cat one)); cp big $year/.x; mv $year/.x \"A/$(cat one):\"",
        "File too large",
    );
    env.complains("cat big > \"A/$(cat one):\"", "File too large");
    env.complains("cat \"A/$(cat one):(oai_dc)\"", "File too large");
    env.sh("cmp big \"A/$(cat one):\"");
    env.sh("rm \"A/$(cat one):\"");
    env.sh("test ! -e \"A/$(cat one):\"");
    env.prints("grep -c Rainfall \"A/$(cat one):(oai_dc)\" || true", "0");
}
