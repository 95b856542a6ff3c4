//! A little reserved disk space, so that items can be removed when the disk is full: a tombstone is written
//! before the item is removed.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::Tree;
use crate::os::writing;

/// The file that reserves the space.
pub const RESERVE: &str = "reserve";

/// Enough for the tombstones and rows of a few dozen items.
const BYTES: u64 = 256 << 10;

/// Gives a file a size by writing it.
fn filled(file: &OwnedFd, size: u64) -> Result<(), Errno> {
    rustix::fs::ftruncate(file, 0)?;
    rustix::fs::seek(file, SeekFrom::Start(0))?;
    writing::write_all(file, &vec![0; BYTES.min(size) as usize])
}

impl Tree {
    /// Reserves the space, unless it is reserved already or too little is free.
    pub fn keep_reserve(&self) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o644);
        let Ok(file) = rustix::fs::openat(&self.root, RESERVE, flags | OFlags::CLOEXEC, mode)
        else {
            return;
        };
        // After the reserve was used, less space may be free: the next removal then gets that.
        let mut sizes = (0..4).map(|halved| BYTES >> halved);
        let set_aside = |size| match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size)
        {
            // The filesystem has no fallocate(2).
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => filled(&file, size),
            other => other,
        };
        if !sizes.any(|size| set_aside(size).is_ok()) {
            log::debug!("no room is set aside");
            self.spend_reserve();
        }
    }

    /// Frees the reserved space; false if none was reserved.
    pub fn spend_reserve(&self) -> bool {
        rustix::fs::unlinkat(&self.root, RESERVE, AtFlags::empty()).is_ok()
    }
}
