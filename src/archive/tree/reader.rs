//! Items opened with the rights of the calling thread.
//!
//! The levels above the item are checked when it is opened, and the permissions below it at each read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::action::Action;
use super::entry_stat::entry_stat;
use super::place::{Place, TreeError, failed};
use super::root::{Tree, open_beneath};
use super::small::{SMALL_FILE_LIMIT, read_small_in};
use crate::formats::entry::EntryStat;

/// An item's directory, opened for reading. The permissions of the caller at the time of each read apply
/// below it; the levels above it are not checked again.
#[derive(Debug)]
pub struct OpenItem {
    pub(super) directory: OwnedFd,
    pub(super) place: Place,
    /// Whether files are opened only from the kernel's caches, so that no thread waits for a disk.
    pub(super) is_cached_only: bool,
    /// Whether hidden directories are withheld.
    pub(super) is_without_hidden: bool,
    /// Whether all of its content is withheld.
    pub(super) is_withheld: bool,
}

impl OpenItem {
    /// Withholds hidden directories, or does not.
    #[must_use]
    pub fn without_hidden(self, is_without_hidden: bool) -> OpenItem {
        OpenItem {
            is_without_hidden,
            ..self
        }
    }

    /// Whether hidden directories, whose names begin with a dot, are withheld with all that is in them.
    #[must_use]
    pub fn is_without_hidden(&self) -> bool {
        self.is_without_hidden
    }

    /// Withholds all of its content, or does not.
    #[must_use]
    pub fn withholding(self, is_withheld: bool) -> OpenItem {
        OpenItem {
            is_withheld,
            ..self
        }
    }

    /// Whether all of its content is withheld: names, files and directories.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        self.is_withheld
    }

    /// Returns its place.
    pub fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.place.as_str())
    }

    /// The error of an operation on a path in the item.
    pub fn error(&self, action: Action, path: &[u8], errno: Errno) -> TreeError {
        failed(action, &self.shown(&String::from_utf8_lossy(path)))(errno)
    }

    /// Reads a small file of the item, as [`Tree::read_small`] does.
    pub fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        read_small_in(&self.directory, path, &self.shown(path), SMALL_FILE_LIMIT)
    }
}

impl Tree {
    /// The path to an item as a reader takes it. The levels above the item, and `col`, which is the root of a
    /// mount, must let the reader through. The store's own directory does not count: it admits only the owner
    /// of the store.
    pub(super) fn way_to<'a>(&self, place: &'a Place) -> Result<(BorrowedFd<'_>, &'a str), Errno> {
        let areas = self.areas()?;
        match place.as_str().split_once('/') {
            Some(("col", path)) => Ok((areas.col.as_fd(), path)),
            Some(("ibip", path)) => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                rustix::fs::openat(&areas.col, ".", flags, Mode::empty())?;
                Ok((areas.ibip.as_fd(), path))
            }
            _ => Err(Errno::NOENT),
        }
    }

    /// Reads what is known of a level of reps, all items if its path is empty, with the rights of the calling thread.
    pub fn stat_level(&self, path: &str) -> Result<EntryStat, TreeError> {
        let found = self.areas().and_then(|areas| {
            // A search of `.` needs the right to pass.
            let path = if path.is_empty() { "." } else { path };
            let found = open_beneath(&areas.col, path, OFlags::PATH | OFlags::DIRECTORY)?;
            rustix::fs::fstat(&found)
        });
        let stat = found.map_err(failed(Action::Read, path))?;
        Ok(entry_stat(&stat))
    }

    /// Opens an item for reading, with the rights of the calling thread. EACCES where a level above the item
    /// does not let it through.
    pub fn open_for_reader(&self, place: &Place) -> Result<OpenItem, TreeError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = self
            .way_to(place)
            .and_then(|(area, path)| open_beneath(area, path, flags));
        Ok(OpenItem {
            directory: opened.map_err(failed(Action::Open, place.as_str()))?,
            place: place.clone(),
            is_cached_only: false,
            is_without_hidden: false,
            is_withheld: false,
        })
    }

    /// Like [`Tree::open_for_reader`], for a thread that must not wait for a disk. EAGAIN where it would have
    /// to wait; EINVAL on a kernel without RESOLVE_CACHED (before 5.12).
    pub fn open_cached(&self, place: &Place) -> Result<OpenItem, TreeError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
        let opened = self.way_to(place).and_then(|(area, path)| {
            rustix::fs::openat2(area, path, flags, Mode::empty(), resolve)
        });
        Ok(OpenItem {
            directory: opened.map_err(failed(Action::Open, place.as_str()))?,
            place: place.clone(),
            is_cached_only: true,
            is_without_hidden: false,
            is_withheld: false,
        })
    }
}
