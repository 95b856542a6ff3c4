//! Power cuts: a disk of its own is cut off in the middle of work, and what was promised before is
//! there afterwards.

use crate::support::{Disk, Format, World};

/// What was minted is there after a power cut, whole, and the store mounts by itself.
#[test]
fn what_was_minted_outlives_a_power_cut() {
    for format in [Format::Ext4, Format::Xfs] {
        let world = World::new();
        let disk = Disk::new(world.root(), "disk", format, 320);
        world.sh("ibifs init disk/store --host archive-a.example.org; mkdir A
             ibifs mount disk/store A; mint A one > name");
        let daemon = world.sh("daemon disk/store");
        disk.cut();
        world.sh(&format!("kill -9 {daemon}; ibifs umount A"));
        disk.unmount();
        disk.mount();
        world.sh("ibifs mount disk/store A; test -d A/$(< name)/doc
             test $(state A/$(< name)) = Original; ibifs umount A; ibifs fsck disk/store");
    }
}
