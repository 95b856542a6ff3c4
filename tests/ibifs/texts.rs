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
