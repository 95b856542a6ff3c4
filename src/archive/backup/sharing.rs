//! Files that a new generation shares with the one before: the blocks, where the filesystem can share them, else the
//! inode itself.
//!
//! An inode has one owner, one mode and one set of times, and nothing writes to it again: an update makes a new file. A
//! file is shared if the original has not changed since the earlier generation was begun. The time of change of a copy says
//! nothing here: each new name of it sets that.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::copier::{Copier, DirectoryPair};
use super::directories::{failed, is_directory};
use super::earlier::{ALWAYS, Earlier};
use super::finding::BackupError;
use super::metadata;
use super::note::Sharing;
use crate::archive::tree::{Action, SIDECAR, joined};
use crate::os::directory::{is_own, is_same_file};

/// The areas in which files may have a second name. Elsewhere a file with one counts as another user's.
const LINKED: [&[u8]; 3] = [b"col/", b"ibip/", b"fixity/"];

/// Whether an earlier copy has the owner and the mode that a new copy would get.
fn has_owner_and_mode(original: &Stat, copy: &Stat) -> bool {
    let is_owners = (original.st_uid, original.st_gid) == (copy.st_uid, copy.st_gid);
    let is_users = is_own(copy) && !rustix::process::geteuid().is_root();
    let refused = if is_owners { 0 } else { metadata::SET_IDS };
    (is_owners || is_users) && original.st_mode & !refused == copy.st_mode
}

impl Copier<'_> {
    /// The file of the earlier generation that is as the original is now.
    pub(super) fn unchanged(
        &self,
        pair: &DirectoryPair,
        name: &[u8],
        original: &Stat,
    ) -> Option<Stat> {
        let earlier = self.earlier.as_ref()?;
        let directory = pair.earlier.as_ref()?;
        if FileType::from_raw_mode(original.st_mode) != FileType::RegularFile
            || metadata::changed(original) >= earlier.since
        {
            return None;
        }
        let copy = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_unchanged =
            metadata::is_like(original, &copy) && has_owner_and_mode(original, &copy);
        is_unchanged.then_some(copy)
    }

    /// Makes a file of the earlier generation one of this, too. False where it has to be copied.
    pub(super) fn is_shared(
        &mut self,
        pair: &DirectoryPair,
        name: &[u8],
        copy: &Stat,
    ) -> Result<bool, BackupError> {
        let (path, to) = (joined(&pair.path, name), self.to);
        let (Some(earlier), Some(directory)) = (&self.earlier, &pair.earlier) else {
            return Ok(false);
        };
        let is_linked = LINKED.iter().any(|area| path.starts_with(area))
            && !name.starts_with(SIDECAR.as_bytes());
        if earlier.sharing != Sharing::Files || !is_linked {
            return Ok(false);
        }
        let temporary = self.temporary();
        let staging = self.staging(&path)?;
        match rustix::fs::linkat(directory, name, staging, &temporary, AtFlags::empty()) {
            Ok(()) => {}
            // No further name for this file alone.
            Err(Errno::MLINK | Errno::NOENT | Errno::ACCESS) => return Ok(false),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV) => {
                self.share_by(Sharing::Nothing);
                return Ok(false);
            }
            Err(errno) => return Err(failed(to, Action::Link, &path, errno)),
        }
        // The name may lead to another file by now.
        let linked = staging.entry(&temporary);
        if !linked.is_ok_and(|linked| is_same_file(linked.stat(), copy)) {
            let _ = staging.remove_file(&temporary);
            return Ok(false);
        }
        self.place(&temporary, pair, name)?;
        Ok(true)
    }

    /// Gives an empty file the blocks of an earlier copy. False where its content has to be copied.
    pub(super) fn is_cloned(
        &mut self,
        pair: &DirectoryPair,
        name: &[u8],
        original: &Stat,
        to: &OwnedFd,
    ) -> bool {
        let by_blocks = |earlier: &Earlier<'_>| earlier.sharing == Sharing::Blocks;
        if !self.earlier.as_ref().is_some_and(by_blocks) || original.st_size == 0 {
            return false;
        }
        let Some(copy) = self.unchanged(pair, name, original) else {
            return false;
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Some(directory) = &pair.earlier else {
            return false;
        };
        let Ok(from) = rustix::fs::openat(directory, name, flags, Mode::empty()) else {
            return false;
        };
        if !rustix::fs::fstat(&from).is_ok_and(|found| is_same_file(&found, &copy)) {
            return false;
        }
        let cloned = rustix::fs::ioctl_ficlone(to, &from);
        if cloned.is_err() {
            self.share_by(Sharing::Files);
        }
        cloned.is_ok()
    }

    fn share_by(&mut self, sharing: Sharing) {
        if let Some(earlier) = &mut self.earlier {
            earlier.sharing = sharing;
        }
    }

    /// Copies from the earlier generation what the store has lost. None where there is no earlier one, or this copies
    /// from it already.
    fn with_earlier<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, BackupError>,
    ) -> Result<Option<T>, BackupError> {
        let Some(earlier) = self.earlier.as_mut().filter(|it| it.since != ALWAYS) else {
            return Ok(None);
        };
        let since = std::mem::replace(&mut earlier.since, ALWAYS);
        let from = std::mem::replace(&mut self.from, earlier.tree);
        let done = act(self);
        self.from = from;
        if let Some(earlier) = &mut self.earlier {
            earlier.since = since;
        }
        done.map(Some)
    }

    /// Keeps a directory of the earlier generation with all below it. False where that has none.
    pub(super) fn keep_directory(&mut self, path: &[u8]) -> Result<bool, BackupError> {
        let store = self.from;
        let kept = self.with_earlier(|it| {
            let is_there = it.unit_as_it_is(path)?;
            let mut above = path;
            while let Some(cut) = above.iter().rposition(|byte| *byte == b'/') {
                above = &above[..cut];
                if store.open_far(above, OFlags::PATH).is_err() {
                    it.set_metadata(above, None)?;
                }
            }
            Ok(is_there)
        })?;
        Ok(kept == Some(true))
    }

    /// Keeps an entry of the earlier generation, if this one has nothing there.
    pub(super) fn keep_entry(
        &mut self,
        pair: &DirectoryPair,
        name: &[u8],
    ) -> Result<(), BackupError> {
        let nothing = AtFlags::SYMLINK_NOFOLLOW;
        if is_directory(&pair.to, name) || rustix::fs::statat(&pair.to, name, nothing).is_ok() {
            return Ok(());
        }
        self.with_earlier(|it| {
            if let Some(pair) = it.pair(&pair.path)? {
                it.entry(&pair, name, &mut Default::default())?;
            }
            Ok(())
        })
        .map(drop)
    }
}
