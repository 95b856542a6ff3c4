//! Copies file content from one descriptor to another: shared where the filesystem can do so, otherwise
//! copied, preserving holes.

use std::os::fd::OwnedFd;

use rustix::fs::{SeekFrom, Stat};
use rustix::io::Errno;

/// The number of bytes that are copied at once.
const BLOCK: usize = 1 << 20;

/// The side on which copying failed.
#[derive(Debug)]
pub(super) enum ContentError {
    From(Errno),
    To(Errno),
}

/// Copies a whole file into an empty one and returns the number of bytes copied.
pub(super) fn copy(from: &OwnedFd, to: &OwnedFd, stat: &Stat) -> Result<u64, ContentError> {
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    if size == 0 {
        return Ok(0);
    }
    // If the filesystem refuses to share, for whatever reason, the content is copied.
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(0);
    }
    let mut moved = 0;
    let mut offset = 0;
    while offset < size {
        let (start, end) = match rustix::fs::seek(from, SeekFrom::Data(offset)) {
            Ok(start) => {
                let end = rustix::fs::seek(from, SeekFrom::Hole(start)).unwrap_or(size);
                (start, end.min(size))
            }
            // The rest of the file is a hole.
            Err(Errno::NXIO) => break,
            Err(_) => (offset, size),
        };
        moved += range(from, to, start, end)?;
        offset = end.max(start + 1);
    }
    rustix::fs::ftruncate(to, size).map_err(ContentError::To)?;
    Ok(moved)
}

/// Copies a range, up to the end of the file.
fn range(from: &OwnedFd, to: &OwnedFd, start: u64, end: u64) -> Result<u64, ContentError> {
    let mut at = start;
    let mut in_kernel = true;
    let mut buffer = Vec::new();
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(BLOCK);
        if in_kernel {
            let (mut read, mut write) = (at, at);
            let wanted = wanted.min(64 * BLOCK);
            match rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut write), wanted) {
                // A file with a wrong size, such as one in /proc, or one that is shorter now.
                Ok(0) => in_kernel = false,
                Ok(count) => at += count as u64,
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                    return Err(ContentError::To(errno));
                }
                // Two filesystems, or an error on one side, which reading and writing will show.
                Err(_) => in_kernel = false,
            }
            continue;
        }
        buffer.resize(BLOCK, 0);
        let wanted = wanted.min(BLOCK);
        let count = match rustix::io::pread(from, &mut buffer[..wanted], at) {
            Ok(0) => break,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(ContentError::From(errno)),
        };
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            match rustix::io::pwrite(to, rest, at) {
                Ok(count) => {
                    at += count as u64;
                    rest = &rest[count..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(ContentError::To(errno)),
            }
        }
    }
    Ok(at - start)
}

/// Copies the content of a file into an empty one, preserving holes.
pub fn copy_content(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(from)?;
    copy(from, to, &stat)
        .map(drop)
        .map_err(|error| match error {
            ContentError::From(errno) | ContentError::To(errno) => errno,
        })
}
