//! A little room on the disk that is set aside, so that there is some to remove things with when it is
//! full: a tombstone is written before an item goes.

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};

use super::Tree;

/// The file that keeps the room.
pub const RESERVE: &str = "reserve";

/// As much as tombstones and rows of a few dozen items take.
const BYTES: u64 = 256 << 10;

impl Tree {
    /// Sets room aside, where that has not been done and there is enough.
    pub fn keep_reserve(&self) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o644);
        let Ok(file) = rustix::fs::openat(&self.root, RESERVE, flags | OFlags::CLOEXEC, mode)
        else {
            return;
        };
        // What has been spent may have left less: then that is kept for the next removal.
        let mut sizes = (0..4).map(|halved| BYTES >> halved);
        let set_aside = |size| rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size);
        if !sizes.any(|size| set_aside(size).is_ok()) {
            log::debug!("no room is set aside");
            self.spend_reserve();
        }
    }

    /// Gives the room back to the disk; says whether there was any.
    pub fn spend_reserve(&self) -> bool {
        rustix::fs::unlinkat(&self.root, RESERVE, AtFlags::empty()).is_ok()
    }
}
