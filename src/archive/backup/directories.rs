//! Names in a directory of a store, by descriptors: listed and removed. The errors name the path.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use super::finding::BackupError;
use crate::archive::tree::Action;
use crate::archive::tree::{Tree, clear, joined, open_far};

pub(super) fn failed(tree: &Tree, action: Action, path: &[u8], errno: Errno) -> BackupError {
    let shown = crate::formats::fixity::shown(path);
    BackupError::Archive(tree.error(action, &shown, errno).into())
}

pub(super) fn fstat(tree: &Tree, file: &OwnedFd, path: &[u8]) -> Result<Stat, BackupError> {
    rustix::fs::fstat(file).map_err(|errno| failed(tree, Action::Read, path, errno))
}

pub(super) fn is_directory(parent: &OwnedFd, name: &[u8]) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

pub(super) fn list(directory: &OwnedFd) -> Result<Vec<(Vec<u8>, bool)>, Errno> {
    let mut names = Vec::new();
    crate::archive::tree::each_entry_of(directory, |name, is_directory| {
        names.push((name.to_vec(), is_directory));
    })?;
    Ok(names)
}

pub(super) fn names_of(tree: &Tree, path: &[u8]) -> Result<Vec<(Vec<u8>, bool)>, BackupError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    tree.open_far(path, flags)
        .and_then(|directory| list(&directory))
        .map_err(|errno| failed(tree, Action::List, path, errno))
}

/// Removes a name and, for a directory, everything below it.
pub(super) fn remove(tree: &Tree, path: &[u8], name: &[u8]) -> Result<(), BackupError> {
    let removed = tree
        .open_far(path, OFlags::PATH | OFlags::DIRECTORY)
        .and_then(|above| {
            match rustix::fs::unlinkat(&above, name, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => {}
                removed => return removed,
            }
            clear(&open_far(&above, name, OFlags::RDONLY | OFlags::DIRECTORY)?)?;
            rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR)
        });
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed(tree, Action::Remove, &joined(path, name), errno)),
    }
}
