//! The database of a resolver is for its owner alone: it holds addresses of persons, and what keys and
//! passwords can be guessed by.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::RegistryError;

/// What a database may be to others: nothing.
const OTHERS: u32 = 0o077;

/// Makes the database where there is none, and refuses one that is open to others. Whatever else has its
/// name is told of when it is opened.
pub(super) fn guard(directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), RegistryError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    if let Ok(made) = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR) {
        // Whatever mask this process has: SQLite gives the files beside it the same mode.
        let set = rustix::fs::fchmod(&made, Mode::RUSR | Mode::WUSR);
        return set.map_err(|errno| RegistryError::Directory(errno.into()));
    }
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat)
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && stat.st_mode & OTHERS != 0 =>
        {
            Err(RegistryError::Open {
                path: path.to_owned(),
                mode: stat.st_mode & 0o7777,
            })
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(RegistryError::Directory(errno.into())),
    }
}
