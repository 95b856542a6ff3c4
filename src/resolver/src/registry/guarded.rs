//! The permissions of a resolver's database. Only its owner may read it: it holds personal addresses, and
//! hashes from which keys and passwords can be guessed.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::RegistryError;

/// The mode bits that must be clear.
const OTHERS: u32 = 0o077;

/// Creates the database if it does not exist, and refuses one that is open to other users. A file of another
/// type is reported when the database is opened.
pub(super) fn guard(directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), RegistryError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let failed = |errno: Errno| RegistryError::Directory(errno.into());
    let not_made = match rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR) {
        // Independent of the umask. SQLite gives its auxiliary files the same mode.
        Ok(made) => {
            return rustix::fs::fchmod(&made, Mode::RUSR | Mode::WUSR).map_err(failed);
        }
        Err(errno) => errno,
    };
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
        Ok(_) => Ok(()),
        // SQLite would make it, with a mode that lets others read it.
        Err(Errno::NOENT) => Err(failed(not_made)),
        Err(errno) => Err(failed(errno)),
    }
}
