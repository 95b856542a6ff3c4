//! Power cuts: a store on a disk of its own is cut off in the middle of work, and what was promised
//! before is there afterwards.
//!
//! In each cycle three clients of a mount do what their random source say in both trees: they mint, write, sync,
//! rename, relate, copy in, remove, and replace sidecars. At a step drawn beforehand the disk is cut
//! off: what was not synced is gone, the unwritten journal included. Then the store is started again,
//! looked at through the mount and held against the model, checked, and its index rebuilt.
//!
//! The promises, which leave room for nothing else:
//!
//! - No name is handed out twice, and each that a process has seen is there: Original, `doc`, a whole
//!   sidecar. A mint that was answered is there even if no process had time to see its name.
//! - A relation that was declared or taken back stays so, at both ends; so does what a sidecar says
//!   that was put in place of an original's, synced before or not.
//! - An item that was removed stays removed.
//! - A file that was synced is whole, and has its name. One that was written to since has each of its
//!   pieces as it was then or as it was written later. Names inside an item are as they were at one
//!   moment after the last sync of it.
//! - An item that was copied in is there if it was synced. If not, it may be there in part or not at
//!   all; the index says the same as the tree.
//! - What was in flight has happened, or has not; of a relation each end by itself.
//!
//! `IBIFS_TEST_SEED` replays a run as far as the machine allows: the same operations with the same
//! items, cut off at the same step. `IBIFS_TEST_CYCLES` is the number of cycles for both formats
//! together, 40 if it is not set. Images lie in the directory for temporary files, best in memory.
//!
//! A cut here ends the filesystem, not the disk: whatever the filesystem has handed to the disk is
//! kept, and a disk that lies about its own cache is not shown.

mod check;
mod client;
mod model;
mod record;
mod rig;

use crate::support::{Disk, Format, Rng, TestEnv, seed, switch};
use rig::{Rig, Tally};

/// The number of cycles of a store before a fresh one takes its place.
const CYCLES_OF_A_STORE: usize = 20;

fn cut_again_and_again(format: Format) {
    let cycles = switch("IBIFS_TEST_CYCLES").map_or(40, |cycles| cycles as usize) / 2;
    let mut rng = Rng::from_seed(seed());
    let mut tally = Tally::default();
    let started = std::time::Instant::now();
    while tally.cycles < cycles {
        let mut rig = Rig::new(format);
        for _ in 0..CYCLES_OF_A_STORE.min(cycles - tally.cycles) {
            rig.cycle(&mut rng, &mut tally);
        }
    }
    println!("{format:?}: {tally:?} in {:.1?}", started.elapsed());
}

/// Power cuts on ext4: what was promised is there.
#[test]
fn what_was_promised_outlives_power_cuts_on_ext4() {
    cut_again_and_again(Format::Ext4);
}

/// Power cuts on XFS: what was promised is there.
#[test]
fn what_was_promised_outlives_power_cuts_on_xfs() {
    cut_again_and_again(Format::Xfs);
}

/// An item that was removed by one of its names comes back by the other, unsynced, and the kernel writes
/// names out before contents: what its tombstone said is still known after the cut.
#[test]
fn what_comes_back_by_another_name_is_known() {
    let env = TestEnv::new();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 128);
    let rep = "example.net/library/2001/09.16.00.38.40";
    env.sh(&format!(
        "mkdir A; ibifs init --host archive-a.example.org disk/S; ibifs mount disk/S A
         mkdir -p A/32G4GL2W/FEQUJT; echo 'ibi {{ibip 32G4GL2W/FEQUJT}}' > A/32G4GL2W/FEQUJT/.ibi
         rm -r A/32G4GL2W/FEQUJT; sync
         mkdir -p A/{rep}; echo 'ibi {{rep {rep} ibip 32G4GL2W/FEQUJT}}' > A/{rep}/.ibi
         test ! -e disk/S/deleted/ibip/32G4GL2W/FEQUJT; echo x > disk/x; sync disk/x; daemon disk/S > pid"
    ));
    disk.cut();
    env.run("kill -9 $(< pid); umount -l A");
    disk.unmount();
    disk.mount();
    env.sh("ibifs mount disk/S A; ibifs umount A; ibifs fsck disk/S | grep ' 0 findings$'");
}
