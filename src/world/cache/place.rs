//! The directory of a cache. Another user who may rename it leads its process nowhere else.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{CacheError, PIECES};
use crate::os::opening::by_descriptor;

/// The number of links in a row that are followed.
const LINKS: usize = 40;

/// Makes the directory of a cache, for its user alone, and opens it. One that is there must belong to the user, others
/// may not write it, and it is empty or a cache.
pub(crate) fn open_directory(directory: &Path) -> Result<OwnedFd, CacheError> {
    let failed = |error| CacheError::Directory(directory.to_owned(), error);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(directory).map_err(failed)?;
    let user = rustix::process::geteuid().as_raw();
    let opened = open_end(directory, user).map_err(|errno| failed(errno.into()))?;
    let open = || CacheError::Open(directory.to_owned());
    let opened = opened.ok_or_else(open)?;
    let about = rustix::fs::fstat(&opened).map_err(|errno| failed(errno.into()))?;
    if about.st_uid != user || about.st_mode & 0o022 != 0 {
        return Err(open());
    }
    // A directory of the user's to which another one leads is emptied in part, and filled.
    if !is_cache(&opened).map_err(failed)? {
        return Err(CacheError::Foreign(directory.to_owned()));
    }
    Ok(opened)
}

/// Opens a directory by its path. None if that ends with a link of another user, who is not root: the owner of the
/// directory above may have put it in the place of the cache.
fn open_end(path: &Path, user: u32) -> Result<Option<OwnedFd>, Errno> {
    let open = |at: BorrowedFd<'_>, path: &Path, flags| {
        rustix::fs::openat(at, path, flags | OFlags::CLOEXEC, Mode::empty())
    };
    let directory = OFlags::PATH | OFlags::DIRECTORY;
    let (mut above, mut path) = (open(CWD, Path::new("."), directory)?, path.to_owned());
    for _ in 0..LINKS {
        let Some(name) = path.file_name() else {
            return open(above.as_fd(), &path, directory).map(Some);
        };
        let to_above = Path::new(".").join(path.parent().unwrap_or(&path));
        above = open(above.as_fd(), &to_above, directory)?;
        let found = open(
            above.as_fd(),
            Path::new(name),
            OFlags::PATH | OFlags::NOFOLLOW,
        )?;
        let about = rustix::fs::fstat(&found)?;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => return Ok(Some(found)),
            FileType::Symlink if ![0, user].contains(&about.st_uid) => return Ok(None),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
                path = PathBuf::from(OsString::from_vec(target.into_bytes()));
            }
            _ => return Err(Errno::NOTDIR),
        }
    }
    Err(Errno::LOOP)
}

/// Whether a directory is a cache, or becomes one: it is empty, but for what is at the root of a disk, and hidden files.
/// The marker of a cache is made first, so that a crash leaves no directory that is not a cache.
fn is_cache(directory: &OwnedFd) -> std::io::Result<bool> {
    let directory = PathBuf::from(by_descriptor(directory.as_fd()));
    let pieces = directory.join(PIECES);
    match pieces.symlink_metadata() {
        Ok(found) => return Ok(found.is_dir()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    for entry in std::fs::read_dir(&directory)? {
        let name = entry?.file_name();
        if name != "lost+found" && !name.as_bytes().starts_with(b".") {
            return Ok(pieces.is_dir());
        }
    }
    match std::fs::create_dir(&pieces) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(true),
    }
}
