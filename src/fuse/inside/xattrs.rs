//! Extended attributes.

use std::ffi::{CString, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use super::ErrnoResult;
use super::attributes::minding_set_id;
use crate::os::caller::Caller;
use crate::os::opening;
use crate::os::opening::by_descriptor;

fn c_name(name: &OsStr) -> ErrnoResult<CString> {
    CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)
}

/// The value of an extended attribute; ERANGE where it is longer than `limit` (0: no limit).
pub fn get_attribute(file: BorrowedFd<'_>, name: &OsStr, limit: usize) -> ErrnoResult<Vec<u8>> {
    let (path, name) = (by_descriptor(file), c_name(name)?);
    read_growing(limit, |buffer| {
        rustix::fs::getxattr(path.as_str(), name.as_c_str(), buffer)
    })
}

/// The names of the extended attributes, each ended by a NUL.
pub fn list_attributes(
    file: BorrowedFd<'_>,
    limit: usize,
    caller: &Caller,
) -> ErrnoResult<Vec<u8>> {
    let path = by_descriptor(file);
    let list = |limit| read_growing(limit, |buffer| rustix::fs::listxattr(path.as_str(), buffer));
    if caller.uid == 0 {
        return list(limit);
    }
    // A name that the caller must not see does not count to its limit.
    let mut names = list(0)?;
    let is_hidden = |name: &[u8]| name.starts_with(b"trusted.");
    if names.split(|byte| *byte == 0).any(is_hidden) && !caller.administers() {
        names = names
            .split_inclusive(|byte| *byte == 0)
            .filter(|name| !is_hidden(name))
            .flatten()
            .copied()
            .collect();
    }
    Ok(names)
}

fn read_growing(
    limit: usize,
    read: impl Fn(&mut [u8]) -> ErrnoResult<usize>,
) -> ErrnoResult<Vec<u8>> {
    // 64 KiB is the kernel's own limit for both values and lists.
    let mut buffer = vec![0; if limit == 0 { 65536 } else { limit.min(65536) }];
    let count = read(&mut buffer)?;
    buffer.truncate(count);
    Ok(buffer)
}

/// Sets an extended attribute.
pub fn set_attribute(
    file: BorrowedFd<'_>,
    name: &OsStr,
    value: &[u8],
    flags: i32,
    caller: &Caller,
) -> ErrnoResult<()> {
    let name = c_name(name)?;
    let flags = rustix::fs::XattrFlags::from_bits_retain(flags as u32);
    let set = || opening::set_attribute(file, name.as_c_str(), value, flags);
    if name.to_bytes().starts_with(b"system.posix_acl_") {
        minding_set_id(file, caller, set)
    } else {
        caller.charged(set)
    }
}

/// Removes an extended attribute.
pub fn remove_attribute(file: BorrowedFd<'_>, name: &OsStr) -> ErrnoResult<()> {
    opening::remove_attribute(file, c_name(name)?.as_c_str())
}
