//! The directory of a backup: opened, made, and closed to other users.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;

use super::finding::BackupError;
use crate::archive::Archive;
use crate::archive::tree::Action;
use crate::os::directory::Directory;

/// Rejects a destination that is in the store or above it, opens it, and makes the directory.
pub(super) fn closed_directory(
    from: &Archive,
    destination: &Path,
) -> Result<(PathBuf, Directory, Closed), BackupError> {
    let failed = |error: std::io::Error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let shown = destination.display().to_string();
        BackupError::Archive(from.tree().error(Action::Make, &shown, errno).into())
    };
    let path = std::fs::canonicalize(destination).or_else(|_| {
        let absolute = std::path::absolute(destination)?;
        let parent = std::fs::canonicalize(absolute.parent().unwrap_or(&absolute))?;
        Ok(parent.join(absolute.file_name().unwrap_or_default()))
    });
    let path = path.map_err(failed)?;
    let store = from.tree().path();
    if path.starts_with(store) || store.starts_with(&path) {
        return Err(BackupError::Nested);
    }
    let opened = held(&path).map_err(|errno| failed(errno.into()))?;
    let is_closed = close_to_others(from, &opened).map_err(|errno| failed(errno.into()))?;
    Ok((path, opened, is_closed))
}

/// Opens the destination, and makes it where it is missing.
fn held(path: &Path) -> Result<Directory, Errno> {
    let Some(name) = path.file_name() else {
        return Directory::open(path);
    };
    let above = Directory::open(path.parent().unwrap_or(path))?;
    match rustix::fs::mkdirat(&above, name.as_bytes(), Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => above.directory(name.as_bytes()),
        Err(errno) => Err(errno),
    }
}

/// The right of other users to write in a directory.
pub(super) enum Closed {
    /// They could not before.
    Before,
    /// They could until now.
    Now,
    /// They can: it is another user's.
    Never,
}

/// Keeps other users from writing in a directory, but for those who may write in the store: its owner and its mode are
/// those of an earlier backup.
pub(super) fn close_to_others(from: &Archive, directory: &Directory) -> Result<Closed, Errno> {
    let (stat, store) = (directory.stat()?, rustix::fs::fstat(from.tree().root())?);
    if stat.st_uid != store.st_uid && stat.st_uid != owner_of_new(directory)? {
        return Ok(Closed::Never);
    }
    if stat.st_mode & !store.st_mode & 0o022 == 0 {
        return Ok(Closed::Before);
    }
    rustix::fs::fchmod(directory, Mode::RWXU)?;
    Ok(Closed::Now)
}

/// The user to whom belongs what this process makes in a directory: a filesystem of a network may have another number.
fn owner_of_new(directory: &Directory) -> Result<u32, Errno> {
    let (name, made) = directory.create_random(".ibifs-backup-", 0o600)?;
    let stat = rustix::fs::fstat(&made);
    directory.remove_file(&name)?;
    Ok(stat?.st_uid)
}
