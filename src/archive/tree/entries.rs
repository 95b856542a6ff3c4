//! The names in an open directory, with their types.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;

use super::place::failed;
use super::{Action, TreeError};

pub(super) fn each_name_of(
    directory: &OwnedFd,
    path: &str,
    visit: impl FnMut(&[u8], bool),
) -> Result<(), TreeError> {
    each_entry_of(directory, visit).map_err(failed(Action::List, path))
}

/// Calls `visit` with every name in an open directory and whether the name is a directory.
pub fn each_entry_of(directory: &OwnedFd, mut visit: impl FnMut(&[u8], bool)) -> Result<(), Errno> {
    each_typed_of(directory, |name, file_type| {
        visit(name, file_type == FileType::Directory);
    })
}

pub(super) fn each_typed_of(
    directory: &OwnedFd,
    mut visit: impl FnMut(&[u8], FileType),
) -> Result<(), Errno> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let file_type = match entry.file_type() {
            FileType::Unknown => {
                rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| {
                        FileType::from_raw_mode(stat.st_mode)
                    })
            }
            known => known,
        };
        visit(name, file_type);
    }
    Ok(())
}
