//! Listing directories.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;

use super::ErrnoResult;

/// Lists names from an offset on, until `visit` returns false.
pub fn list(
    directory: BorrowedFd<'_>,
    offset: u64,
    mut visit: impl FnMut(&CStr, u64, FileType, u64) -> bool,
) -> ErrnoResult<()> {
    rustix::fs::seek(directory, rustix::fs::SeekFrom::Start(offset))?;
    while let Some(ListedPart { is_all: true }) = list_part(directory, &mut visit)? {}
    Ok(())
}

/// A part of a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListedPart {
    /// Whether `visit` took all of it.
    pub is_all: bool,
}

/// Bytes of names at a time. In an answer they take up to a third more, and the C library asks for 32 KiB.
const PART: usize = 24 * 1024;

/// Lists the next names of a directory; None at its end. To continue after a part of which not all was
/// taken, seek: that costs some filesystems as much as reading from the beginning.
pub fn list_part(
    directory: BorrowedFd<'_>,
    visit: &mut impl FnMut(&CStr, u64, FileType, u64) -> bool,
) -> ErrnoResult<Option<ListedPart>> {
    let mut buffer = Vec::with_capacity(PART);
    let mut entries = rustix::fs::RawDir::new(directory, buffer.spare_capacity_mut());
    let mut part = None;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let next = entry.next_entry_cookie();
        if !visit(entry.file_name(), entry.ino(), entry.file_type(), next) {
            return Ok(Some(ListedPart { is_all: false }));
        }
        part = Some(ListedPart { is_all: true });
        if entries.is_buffer_empty() {
            break;
        }
    }
    Ok(part)
}
