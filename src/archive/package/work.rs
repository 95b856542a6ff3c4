//! The destination of packages, and the staging directory in it where they are assembled.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::PackageError;
use crate::archive::tree::Action;
use crate::archive::tree::{clear, each_entry_of, open_far};
use crate::os::directory::{Directory, is_own};
use crate::os::renaming;
use crate::os::serving::Server;
use ibi::message;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The file in a staging directory that an export has made.
const MARK: &str = ".made-by-ibifs-export";

/// A directory for packages, locked against other exports.
#[derive(Debug)]
pub(super) struct ExportDirectory {
    destination: OwnedFd,
    staging: &'static str,
    /// The staging directory, where the next package is assembled.
    pub(super) directory: OwnedFd,
}

impl ExportDirectory {
    /// Makes a directory where it is missing, locks it, and calls `prepare` with it.
    pub(super) fn begin(
        path: &Path,
        staging: &'static str,
        prepare: impl FnOnce(&OwnedFd) -> Result<(), PackageError>,
    ) -> Result<ExportDirectory, PackageError> {
        let shown = path.as_os_str().as_encoded_bytes();
        #[expect(clippy::disallowed_methods, reason = "the user named it")]
        std::fs::create_dir_all(path).map_err(|error| {
            PackageError::io(Action::Make, shown)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        let destination = Directory::open(path)
            .map_err(PackageError::io(Action::Open, shown))?
            .into();
        match rustix::fs::flock(&destination, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(PackageError::Busy),
            Err(errno) => return Err(PackageError::io(Action::Lock, shown)(errno)),
        }
        prepare(&destination)?;
        let directory = own_directory(&destination, staging).map_err(|errno| match errno {
            Errno::PERM => PackageError::Unfit {
                what: message!(
                    "'{path}' in the destination was not made by an export of this user; move it away, or name another directory",
                    path = staging
                ),
            },
            errno => PackageError::io(Action::Make, staging)(errno),
        })?;
        let work = ExportDirectory {
            destination,
            staging,
            directory,
        };
        // Left behind by an interrupted export.
        work.clear()?;
        Ok(work)
    }

    /// Empties the staging directory, but for what marks it.
    pub(super) fn clear(&self) -> Result<(), PackageError> {
        clear(&self.directory)
            .and_then(|()| mark(&self.directory))
            .map_err(PackageError::io(Action::Empty, self.staging))
    }

    /// Opens something below the destination.
    pub(super) fn open(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_far(&self.destination, path.as_bytes(), flags)
    }

    /// Moves everything that has been made into a new directory in the staging directory.
    pub(super) fn gather(&self, name: &str) -> Result<(), PackageError> {
        let gathered = (|| {
            let mut names = Vec::new();
            let listed = open_far(&self.directory, b".", DIRECTORY)?;
            each_entry_of(&listed, |name, _| names.push(name.to_owned()))?;
            names.retain(|name| name != MARK.as_bytes());
            make_directories(&self.directory, name.as_bytes())?;
            let to = open_far(&self.directory, name.as_bytes(), DIRECTORY)?;
            names.iter().try_for_each(|name| {
                rustix::fs::renameat(&self.directory, &name[..], &to, &name[..])
            })
        })();
        gathered.map_err(PackageError::io(Action::Make, name))
    }

    /// Moves something from the staging directory to its path, when it is on disk: what is there after a power cut is
    /// complete. EEXIST where the path exists.
    pub(super) fn appear(&self, made: &str, path: &str) -> Result<(), Errno> {
        rustix::fs::syncfs(&self.directory)?;
        let (parent, name) = self.place(path)?;
        renaming::rename_new(&self.directory, made, &parent, name)
    }

    /// Like [`ExportDirectory::appear`], but replaces what is there.
    pub(super) fn replace(&self, made: &str, path: &str) -> Result<(), Errno> {
        let (parent, name) = self.place(path)?;
        rustix::fs::renameat(&self.directory, made, &parent, name)
    }

    /// The directory of a path, which is made if it is missing, and the name there.
    fn place<'a>(&self, path: &'a str) -> Result<(OwnedFd, &'a str), Errno> {
        let (parent, name) = parent_of(path);
        make_directories(&self.destination, parent.as_bytes())?;
        let parent = self.open(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((parent, name))
    }

    /// Waits for the disk and removes the staging directory.
    pub(super) fn end(self) -> Result<(), PackageError> {
        let failed = PackageError::io(Action::Sync, self.staging);
        rustix::fs::syncfs(&self.destination).map_err(failed)?;
        clear(&self.directory).map_err(PackageError::io(Action::Empty, self.staging))?;
        let (parent, name) = parent_of(self.staging);
        if let Ok(parent) = self.open(parent, OFlags::PATH | OFlags::DIRECTORY) {
            let _ = rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR);
        }
        Ok(())
    }
}

/// The directory of a path, and the name there.
pub(super) fn parent_of(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

/// Marks the staging directory. Another user may give its name to any directory that lies in the destination: what is in a
/// directory without this file is not removed.
fn mark(staging: &OwnedFd) -> Result<(), Errno> {
    new_file(staging, MARK.as_bytes(), 0o600).map(drop)
}

/// Opens a directory that no other user may write, and makes it if it is missing. EPERM if it is another user's, or holds
/// other things than those of an export: others may write in a destination.
fn own_directory(below: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let (parent, name) = parent_of(path);
    make_directories(below, parent.as_bytes())?;
    let parent = Directory::from(open_far(below, parent.as_bytes(), DIRECTORY)?);
    let made = rustix::fs::mkdirat(&parent, name, Mode::RWXU);
    if !matches!(made, Ok(()) | Err(Errno::EXIST)) {
        made?;
    }
    let directory = parent.directory(name)?;
    let stat = directory.stat()?;
    // A server of files may have made another user of root.
    let is_made = made.is_ok() && Server::of(&directory) == Server::Machine;
    let entries = directory.entries()?;
    let is_marked = entries.iter().any(|(name, _)| name == MARK.as_bytes());
    let is_ours = is_marked || entries.is_empty();
    if (is_own(&stat) || is_made) && is_ours && stat.st_mode & 0o022 == 0 {
        Ok(directory.into())
    } else {
        Err(Errno::PERM)
    }
}

/// Makes a directory below another one, with the missing levels above it.
pub(super) fn make_directories(below: &OwnedFd, path: &[u8]) -> Result<(), Errno> {
    match open_far(below, path, OFlags::PATH | OFlags::DIRECTORY) {
        Ok(_) => return Ok(()),
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let mut made = Vec::new();
    let mut directory = open_far(below, b".", OFlags::PATH | OFlags::DIRECTORY)?;
    for name in path.split(|byte| *byte == b'/') {
        match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        directory = open_far(&directory, name, OFlags::PATH | OFlags::DIRECTORY)?;
        made.push(name);
    }
    Ok(())
}

/// Makes a new file below a directory, with the directories above it.
pub(super) fn make_file(below: &OwnedFd, path: &str) -> Result<File, Errno> {
    new_file(below, path.as_bytes(), 0o666)
}

/// The same for any path, with this mode.
pub(super) fn new_file(below: &OwnedFd, path: &[u8], mode: u32) -> Result<File, Errno> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (&b"."[..], path),
    };
    make_directories(below, parent)?;
    let parent = open_far(below, parent, OFlags::PATH | OFlags::DIRECTORY)?;
    Directory::from(parent).create(name, mode)
}

/// Writes a new file below a directory.
pub(super) fn write_file(below: &OwnedFd, path: &str, bytes: &[u8]) -> Result<(), PackageError> {
    let written = make_file(below, path).and_then(|mut file| {
        file.write_all(bytes)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    });
    written.map_err(PackageError::io(Action::Write, path))
}
