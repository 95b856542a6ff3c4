//! The names in an open directory, with their types.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, RawDir, RawDirEntry};
use rustix::io::Errno;

/// The memory for one read of a directory, in bytes.
const BUFFER: usize = 32 * 1024;

/// Calls `visit` with every name in an open directory and whether the name is a directory.
pub fn each_entry_of(directory: &OwnedFd, mut visit: impl FnMut(&[u8], bool)) -> Result<(), Errno> {
    each_typed_of(directory, |name, file_type| {
        visit(name, file_type == FileType::Directory);
    })
}

/// Calls `visit` with every name in an open directory and its type.
pub fn each_typed_of(
    directory: &OwnedFd,
    mut visit: impl FnMut(&[u8], FileType),
) -> Result<(), Errno> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        visit_entry(directory.as_fd(), &entry?, &mut visit);
    }
    Ok(())
}

/// Calls `visit` with the names that one read of an open directory gives, from where the last one ended, and whether
/// each is a directory. Returns false at the end.
pub fn next_entries_of(
    directory: BorrowedFd<'_>,
    mut visit: impl FnMut(&[u8], bool),
) -> Result<bool, Errno> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        visit_entry(directory, &entry?, &mut |name, file_type| {
            visit(name, file_type == FileType::Directory);
        });
        if entries.is_buffer_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn visit_entry(
    directory: BorrowedFd<'_>,
    entry: &RawDirEntry<'_>,
    visit: &mut impl FnMut(&[u8], FileType),
) {
    let name = entry.file_name().to_bytes();
    if name == b"." || name == b".." {
        return;
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
