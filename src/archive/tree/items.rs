//! The directory of an item: made for a copying program, moved, removed, synced.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::action::Action;
use super::new_directory::{give_away, has_default_acl, open_below};
use super::place::SIDECAR;
use super::place::{Creator, Place, TreeError, failed};
use super::root::Tree;
use super::small::SMALL_FILE_LIMIT;
use crate::os::charging;
use crate::os::opening;
use crate::os::renaming;

impl Tree {
    /// When the directory of an item was made here, in seconds since 1970; None where the filesystem does not know.
    pub(in crate::archive) fn born(&self, place: &Place) -> Option<i64> {
        let directory = self.open_item(place).ok()?;
        let stat =
            rustix::fs::statx(&directory, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
        let is_known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        is_known.then_some(stat.stx_btime.tv_sec)
    }

    /// Makes the directory of an item that is copied in, and the missing levels above it. As with any mkdir,
    /// a default ACL and the set-group-ID bit of the level above apply, and the copying program syncs. EEXIST
    /// if the directory exists.
    pub fn make_item(&self, place: &Place, creator: Creator) -> Result<(), TreeError> {
        self.make_levels(place.parent())?;
        let parent = self.open_directory(place.parent())?;
        let failed = |errno| failed(Action::Make, place.as_str())(errno);
        let inherits = has_default_acl(&parent);
        // With a default ACL the kernel ignores the umask, which is the last caller's here.
        let mode = Mode::from_raw_mode(if inherits {
            creator.mode
        } else {
            creator.mode & !creator.umask
        });
        charging::charged(|| rustix::fs::mkdirat(&parent, place.name(), mode)).map_err(failed)?;
        let given = (|| {
            let item = open_below(&parent, place.name())?;
            // If the level above has the bit, the kernel has set it here, and given its group.
            let set_gid = Mode::from_raw_mode(rustix::fs::fstat(&item)?.st_mode) & Mode::SGID;
            let gid = set_gid.is_empty().then_some(creator.gid);
            give_away(&item, creator.uid, gid)?;
            if inherits {
                Ok(())
            } else {
                opening::set_mode(item.as_fd(), mode | set_gid)
            }
        })();
        given.map_err(|errno| {
            let _ = rustix::fs::unlinkat(&parent, place.name(), AtFlags::REMOVEDIR);
            failed(errno)
        })
    }

    /// Waits until an item's directory, its sidecar and its name are on disk.
    pub fn sync_item(&self, place: &Place) -> Result<(), TreeError> {
        let sidecar = format!("{}/{SIDECAR}", place.as_str());
        match self.open_beneath(&sidecar, OFlags::RDONLY) {
            // A file that is too large for a sidecar is not one, and may take long to sync.
            Ok(file) if is_small(&file) => {
                rustix::fs::fsync(file).map_err(failed(Action::Sync, &sidecar))?;
            }
            Ok(_) => {}
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(Action::Open, &sidecar)(errno)),
        }
        self.sync_directory(place.as_str())?;
        self.sync_directory(place.parent())
    }

    /// Moves an item from its IBIp to the place that its rep gives it. Open descriptors stay valid.
    pub(in crate::archive) fn move_item(&self, from: &Place, to: &Place) -> Result<(), TreeError> {
        self.make_levels(to.parent())?;
        let source = self.open_directory(from.parent())?;
        let target = self.open_directory(to.parent())?;
        renaming::rename_new(&source, from.name(), &target, to.name())
            .map_err(failed(Action::Move, from.as_str()))?;
        let synced = self
            .sync_directory(to.parent())
            .and_then(|()| self.sync_directory(from.parent()));
        if synced.is_err() {
            // The caller gets an error, which must mean that the item has not moved.
            let _ = renaming::rename_new(&target, to.name(), &source, from.name());
        }
        synced
    }

    /// Removes an item's directory. ENOTEMPTY if it holds anything but its sidecar.
    pub fn remove_item(&self, place: &Place) -> Result<(), TreeError> {
        let failed = |errno| failed(Action::Remove, place.as_str())(errno);
        if !self.holds_only_sidecar(place)? {
            return Err(failed(Errno::NOTEMPTY));
        }
        let item = self.open_item(place)?;
        match rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let parent = self.open_directory(place.parent())?;
        rustix::fs::unlinkat(&parent, place.name(), AtFlags::REMOVEDIR).map_err(failed)?;
        self.sync_directory(place.parent())
    }

    /// Whether an item's directory holds nothing but, at most, its sidecar.
    pub fn holds_only_sidecar(&self, place: &Place) -> Result<bool, TreeError> {
        let mut only = true;
        self.each_name(place.as_str(), |name, _| only &= name == SIDECAR.as_bytes())?;
        Ok(only)
    }
}

/// Whether a file is a regular one, small enough for a sidecar.
fn is_small(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && u64::try_from(stat.st_size).is_ok_and(|size| size <= SMALL_FILE_LIMIT)
    })
}
