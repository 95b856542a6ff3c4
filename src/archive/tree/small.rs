//! Small files of the store, read and replaced as a whole: sidecars, metadata texts, tombstones, records.
//!
//! A file is written in `staging/`, synced and renamed into place, and the directory is synced.

use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::action::Action;
use super::place::{Place, TreeError, failed};
use super::root::{Tree, open_beneath};
use crate::archive::owner::Owner;
use crate::os::charging;
use crate::os::renaming;
use crate::os::writing::{self, Durability};

/// A sidecar or metadata text larger than this many bytes is refused.
pub const SMALL_FILE_LIMIT: u64 = 1 << 20;

impl Tree {
    /// Reads a whole regular file below the store. None where it does not exist, EFBIG beyond
    /// [`SMALL_FILE_LIMIT`].
    pub fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        let (directory, below) = self.kept_above(path);
        read_small_in(directory, below, path, SMALL_FILE_LIMIT)
    }

    fn write_in_item(&self, place: &Place, name: &str, bytes: &[u8]) -> Result<(), TreeError> {
        let item = self.open_item(place)?;
        let stat = rustix::fs::fstat(&item).map_err(failed(Action::Read, place.as_str()))?;
        let owner = Owner {
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: 0o644,
            doc_mode: 0o644,
        };
        self.write_small(place.as_str(), name, bytes, Some(owner))
    }

    /// Renames a file that is not accepted to the first free name of `<aside>-1`, `<aside>-2` and so on. None
    /// where it does not exist.
    pub(in crate::archive) fn set_aside(
        &self,
        directory: &str,
        name: &str,
        aside: &str,
    ) -> Result<Option<String>, TreeError> {
        let opened = self.open_directory(directory)?;
        for number in 1u32.. {
            let aside = format!("{aside}-{number}");
            match renaming::rename_new(&opened, name, &opened, aside.as_str()) {
                Ok(()) => {
                    self.sync_directory(directory)?;
                    return Ok(Some(aside));
                }
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(failed(Action::Rename, name)(errno)),
            }
        }
        Ok(None)
    }

    /// Saves bytes in a new file of an item: the first free of `<name>-1`, `<name>-2` and so on.
    pub fn keep(&self, place: &Place, name: &str, bytes: &[u8]) -> Result<(), TreeError> {
        for number in 1u32.. {
            let name = format!("{name}-{number}");
            if self
                .read_small(&format!("{}/{name}", place.as_str()))?
                .is_none()
            {
                return self.write_in_item(place, &name, bytes);
            }
        }
        Ok(())
    }

    /// Renames a small file below the store over another and syncs the directory.
    pub fn rename_small(&self, directory: &str, from: &str, to: &str) -> Result<(), TreeError> {
        let parent = self.open_directory(directory)?;
        rustix::fs::renameat(&parent, from, &parent, to).map_err(failed(Action::Rename, from))?;
        self.sync_directory(directory)
    }

    /// Writes a small file below the store: in `staging/`, synced, renamed into place, with the directory
    /// synced. With an `owner` the space is charged to the charged user; otherwise the file is the Archive's
    /// own.
    pub(in crate::archive) fn write_small(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        owner: Option<Owner>,
    ) -> Result<(), TreeError> {
        let mode = owner.map_or(0o644, |owner| owner.mode);
        self.write_small_as(directory, name, bytes, owner, mode)
    }

    /// Removes a small file, if it exists; the removal is on disk when this returns.
    pub(super) fn remove_small(
        &self,
        parent: &str,
        name: &str,
        failed: impl FnOnce(Errno) -> TreeError,
    ) -> Result<(), TreeError> {
        let directory = match self.open_directory(parent) {
            Err(error) if error.errno() == Errno::NOENT => return Ok(()),
            other => other?,
        };
        match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) => self.sync_directory(parent),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    pub(super) fn write_small_as(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        owner: Option<Owner>,
        mode: u32,
    ) -> Result<(), TreeError> {
        let shown = format!("{directory}/{name}");
        let failed = |errno| failed(Action::Write, &shown)(errno);
        let staging = self.open_directory("staging")?;
        let _own = owner.is_none().then(|| charging::charge_to(None));
        let ids = owner.map(Owner::ids);
        let made = self.with_new_name("write", |name| {
            writing::create(&staging, name, bytes, mode, ids)
        });
        let (temporary, file) = made.map_err(failed)?;
        let target = self.open_beneath(directory, OFlags::PATH | OFlags::DIRECTORY);
        let written = match target {
            Ok(target) => writing::rename_into_place(
                &file,
                (&staging, &temporary),
                (&target, name),
                Durability::Synced,
            ),
            Err(errno) => {
                let _ = rustix::fs::unlinkat(&staging, &temporary, AtFlags::empty());
                Err(errno)
            }
        };
        written.map_err(failed)?;
        self.sync_directory(directory)
    }
}

pub(super) fn read_small_in(
    directory: &OwnedFd,
    path: &str,
    shown: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, TreeError> {
    let file = match open_beneath(directory, path, OFlags::RDONLY) {
        Ok(file) => std::fs::File::from(file),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(failed(Action::Open, shown)(errno)),
    };
    read_opened(&file, shown, limit)
}

/// Reads a whole regular file that is open. EINVAL for another file type, EFBIG beyond the limit.
pub(super) fn read_opened(
    file: &std::fs::File,
    shown: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, TreeError> {
    let io = |error: std::io::Error| {
        failed(Action::Read, shown)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(failed(Action::Read, shown)(Errno::INVAL));
    }
    // With room for the whole file, one call reads it.
    let room = metadata.len().min(limit) + 1;
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    let read = file.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if read as u64 > limit {
        return Err(failed(Action::Read, shown)(Errno::FBIG));
    }
    Ok(Some(bytes))
}
