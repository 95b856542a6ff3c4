//! The texts beside and in an item: what can be read, written and removed through the mount.

use crate::support::World;

/// The sidecar read through the mount is the one on disk, also right after ibifs has changed it,
/// and in both trees.
#[test]
fn a_sidecar_is_seen_as_soon_as_it_changes() {
    let world = World::new().with_a();
    world.sh("mint A one > one; ibip A/.mint/one > ibip; mint A two > two");
    for tree in ["one", "ibip"] {
        world.sh(&format!("cat A/$(cat {tree})/.ibi > /dev/null"));
    }
    world.sh("ln -sfn ../../../$(cat two) \"A/$(cat one)!\"");
    for tree in ["one", "ibip"] {
        world.sh(&format!(
            "cmp A/$(cat {tree})/.ibi A.store/col/$(cat one)/.ibi
             grep -q '^ibi.nextedition ' A/$(cat {tree})/.ibi"
        ));
        world.prints(&format!("stat -c %h A/$(cat {tree})/.ibi"), "1");
    }
}

/// `<ibi>:(oai_dc)` and `<ibi>?GetFileList` are read only: opening them for writing is EPERM.
#[test]
fn what_is_made_up_cannot_be_written() {
    let world = World::new().with_a();
    world.sh("mint A one > one");
    for name in [":(oai_dc)", "?GetFileList"] {
        world.complains(
            &format!("echo x > \"A/$(cat one){name}\""),
            "Operation not permitted",
        );
        world.sh(&format!("cat \"A/$(cat one){name}\" > /dev/null"));
    }
}

/// A metadata text of more than 1 MiB is no record (`<ibi>:(oai_dc)` is EFBIG) and cannot be
/// renamed onto `<ibi>:`; one that was written there can be read and removed.
#[test]
fn a_metadata_text_that_is_too_large_can_be_removed() {
    let world = World::new().with_a();
    world.sh("mint A one > one; seq -f 'title: Rainfall %.0f' 60000 > big");
    world.complains(
        "year=A/$(dirname $(cat one)); cp big $year/.x; mv $year/.x \"A/$(cat one):\"",
        "File too large",
    );
    world.sh("cat big > \"A/$(cat one):\"");
    world.complains("cat \"A/$(cat one):(oai_dc)\"", "File too large");
    world.sh("cmp big \"A/$(cat one):\"");
    world.sh("rm \"A/$(cat one):\"");
    world.sh("test ! -e \"A/$(cat one):\"");
    world.prints("grep -c Rainfall \"A/$(cat one):(oai_dc)\" || true", "0");
}
