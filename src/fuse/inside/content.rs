//! The content of open files.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::{Errno, ReadWriteFlags};

use super::ErrnoResult;
use super::attributes::{has_set_id, minding_set_id};
use crate::os::caller::Caller;

/// Reads up to `size` bytes at an offset; fewer at the end of the file only.
pub fn read(file: BorrowedFd<'_>, offset: u64, size: usize) -> ErrnoResult<Vec<u8>> {
    let mut buffer = vec![0; size];
    let mut done = 0;
    while done < size {
        match rustix::io::pread(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => continue,
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    buffer.truncate(done);
    Ok(buffer)
}

/// Writes bytes, charged to a caller: this thread charges the same user until it stops. Returns how many
/// were written.
pub fn write_as(
    file: BorrowedFd<'_>,
    place: Where,
    bytes: &[u8],
    keeps_set_id: bool,
    caller: &Caller,
) -> ErrnoResult<usize> {
    if !keeps_set_id && caller.is_other() && has_set_id(file) {
        caller.act(|| write(file, place, bytes))
    } else {
        caller.charged_and_keep(|| write(file, place, bytes))
    }
}

/// The place at which bytes are written.
#[derive(Clone, Copy, Debug)]
pub enum Where {
    /// At an offset.
    At(u64),
    /// At the end of the file.
    End,
}

fn write(file: BorrowedFd<'_>, place: Where, bytes: &[u8]) -> ErrnoResult<usize> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        let written = match place {
            Where::At(offset) => rustix::io::pwrite(file, rest, offset + done as u64),
            Where::End => {
                let (rest, flags) = ([IoSlice::new(rest)], ReadWriteFlags::APPEND);
                rustix::io::pwritev2(file, &rest, 0, flags)
            }
        };
        match written {
            Ok(count) => done += count,
            Err(Errno::INTR) => continue,
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Syncs a file, its content alone if asked.
pub fn sync(file: BorrowedFd<'_>, content_only: bool) -> ErrnoResult<()> {
    if content_only {
        rustix::fs::fdatasync(file)
    } else {
        rustix::fs::fsync(file)
    }
}

/// Returns where the next data or hole begins, or makes a plain seek.
pub fn seek(file: BorrowedFd<'_>, offset: i64, whence: i32) -> ErrnoResult<i64> {
    // SAFETY: lseek takes no pointer and the descriptor is open for the call.
    let position = unsafe { libc::lseek(file.as_raw_fd(), offset, whence) };
    match position {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        position => Ok(position),
    }
}

/// Allocates, punches, zeroes, by the modes of fallocate(2).
pub fn allocate(
    file: BorrowedFd<'_>,
    mode: i32,
    offset: u64,
    length: u64,
    caller: &Caller,
) -> ErrnoResult<()> {
    let mode = rustix::fs::FallocateFlags::from_bits_retain(mode as u32);
    minding_set_id(file, caller, || {
        rustix::fs::fallocate(file, mode, offset, length)
    })
}

/// Returns how many bytes of a range are copied at once: the protocol's answer has 32 bits, and a caller that wants
/// more asks again.
pub fn copied_at_once(length: u64) -> usize {
    usize::try_from(length.min(1 << 30)).unwrap_or(1 << 30)
}

/// Copies a range within the native filesystem, sharing blocks where it can.
pub fn copy_range(
    from: BorrowedFd<'_>,
    mut offset: u64,
    to: BorrowedFd<'_>,
    mut to_offset: u64,
    length: usize,
    caller: &Caller,
) -> ErrnoResult<usize> {
    minding_set_id(to, caller, || {
        rustix::fs::copy_file_range(from, Some(&mut offset), to, Some(&mut to_offset), length)
    })
}

/// The ioctls that are supported, with the bytes that each takes and gives: flags and generation.
const IOCTLS: [(u32, usize, usize); 5] = [
    (FS_IOC_GETFLAGS, 0, 4),
    (FS_IOC_SETFLAGS, 4, 0),
    (FS_IOC_FSGETXATTR, 0, FSXATTR),
    (FS_IOC_FSSETXATTR, FSXATTR, 0),
    (FS_IOC_GETVERSION, 0, 4),
];

const FS_IOC_GETFLAGS: u32 = 0x8008_6601;

const FS_IOC_SETFLAGS: u32 = 0x4008_6602;

const FS_IOC_FSGETXATTR: u32 = 0x801c_581f;

const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;

const FS_IOC_GETVERSION: u32 = 0x8008_7601;

/// The size of the kernel's `struct fsxattr`.
const FSXATTR: usize = 28;

/// Reads or sets a file's flags by one of the ioctls that filesystems share; ENOTTY for others.
pub fn control(
    file: BorrowedFd<'_>,
    command: u32,
    input: &[u8],
    caller: &Caller,
) -> ErrnoResult<Vec<u8>> {
    let known = IOCTLS.iter().find(|(known, ..)| *known == command);
    let (_, takes, gives) = known.ok_or(Errno::NOTTY)?;
    let mut bytes = [0_u8; 32];
    let given = input.get(..*takes).ok_or(Errno::INVAL)?;
    bytes[..*takes].copy_from_slice(given);
    // SAFETY: each of these commands reads or writes at most FSXATTR bytes, of which there are 32.
    let done = || match unsafe {
        libc::ioctl(file.as_raw_fd(), command as libc::Ioctl, bytes.as_mut_ptr())
    } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    };
    caller.act(done)?;
    Ok(bytes[..*gives].to_vec())
}
