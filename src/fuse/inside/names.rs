//! Finding, making, opening, renaming and removing names.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::ErrnoResult;
use super::attributes::{is_regular, minding_set_id};
use crate::os::caller::Caller;
use crate::os::opening::{self, by_descriptor};

/// Finds a name in a directory: the file, opened with O_PATH, links not followed.
pub fn find(directory: BorrowedFd<'_>, name: &OsStr) -> ErrnoResult<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Opens with O_PATH a file that is open already, even if its name leads elsewhere by now.
pub fn find_open(file: BorrowedFd<'_>) -> ErrnoResult<OwnedFd> {
    opening::found(by_descriptor(file), OFlags::empty())
}

/// A node that is made under a new name.
#[derive(Clone, Copy, Debug)]
pub enum New<'a> {
    /// A directory.
    Directory,
    /// A symbolic link with its target.
    Link(&'a [u8]),
    /// Any other node, by the type in its mode, with its device number.
    Node(u32),
}

/// Makes a name in a directory with the caller's credentials.
pub fn make(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    new: New<'_>,
    mode: u32,
    umask: u32,
    caller: &Caller,
) -> ErrnoResult<OwnedFd> {
    caller.make(umask, || match new {
        New::Directory => rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(mode & 0o7777)),
        New::Link(target) => rustix::fs::symlinkat(target, directory, name),
        New::Node(device) => {
            let kind = FileType::from_raw_mode(mode);
            let bits = Mode::from_raw_mode(mode & 0o7777);
            rustix::fs::mknodat(directory, name, kind, bits, u64::from(device))
        }
    })?;
    find(directory, name)
}

/// Makes and opens a regular file.
pub fn create(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    flags: i32,
    mode: u32,
    umask: u32,
    caller: &Caller,
) -> ErrnoResult<OwnedFd> {
    let ours = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let bits = Mode::from_raw_mode(mode & 0o7777);
    let make = || {
        open_or_append(flags, open_flags(flags) | ours, |flags| {
            let made = rustix::fs::openat(directory, name, flags | OFlags::NONBLOCK, bits)?;
            opening::settled(made, flags)
        })
    };
    loop {
        match caller.make(umask, make) {
            Err(Errno::EXIST) if flags & libc::O_EXCL == 0 => {}
            Err(opening::LEASED) => return Err(Errno::STALE),
            made => return made,
        }
        // Another process has made it meanwhile.
        let found = match find(directory, name) {
            Err(Errno::NOENT) => continue,
            found => found?,
        };
        is_regular(found.as_fd())?;
        return match caller.act(|| open_by_descriptor(found.as_fd(), flags)) {
            // The kernel locks the directory meanwhile. ESTALE makes it look the name up again and open
            // the file without that lock.
            Err(opening::LEASED) => Err(Errno::STALE),
            opened => opened,
        };
    }
}

/// The flags with which a file is opened on the native filesystem. Direct I/O is between the kernel and its
/// caller, whose buffers ours are not. Each write says whether it appends: pages of a mapping never do.
fn open_flags(flags: i32) -> OFlags {
    let flags = OFlags::from_bits_retain(flags as u32);
    let ours = OFlags::DIRECT | OFlags::NOCTTY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND;
    flags - ours
}

/// Opens with these flags, or with O_APPEND if nothing else is allowed: a file may have the attribute `a`.
pub fn open_or_append<T>(
    asked: i32,
    flags: OFlags,
    open: impl Fn(OFlags) -> ErrnoResult<T>,
) -> ErrnoResult<T> {
    match open(flags) {
        Err(Errno::PERM) if asked & libc::O_APPEND != 0 => open(flags | OFlags::APPEND),
        result => result,
    }
}

/// The flags with which a file is opened that has been found already.
pub fn content_flags(flags: i32) -> OFlags {
    (open_flags(flags) - OFlags::NOFOLLOW) | OFlags::CLOEXEC
}

/// Opens a file for reading or writing its content. EAGAIN where another program has a lease on it.
pub fn open(file: BorrowedFd<'_>, flags: i32, caller: &Caller) -> ErrnoResult<OwnedFd> {
    is_regular(file)?;
    let open = || open_by_descriptor(file, flags);
    if flags & libc::O_TRUNC != 0 {
        minding_set_id(file, caller, open)
    } else {
        open()
    }
}

fn open_by_descriptor(file: BorrowedFd<'_>, flags: i32) -> ErrnoResult<OwnedFd> {
    open_or_append(flags, content_flags(flags), |flags| {
        opening::settled(opening::again(file, flags)?, flags)
    })
}

/// Opens a directory for listing.
pub fn open_directory(directory: BorrowedFd<'_>) -> ErrnoResult<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, ".", flags, Mode::empty())
}

/// The target of a symbolic link.
pub fn read_link(link: BorrowedFd<'_>) -> ErrnoResult<Vec<u8>> {
    Ok(rustix::fs::readlinkat(link, "", Vec::new())?.into_bytes())
}

/// The way in which a name is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// unlink(2): all but directories.
    Unlink,
    /// rmdir(2): an empty directory.
    Rmdir,
}

/// Removes a name.
pub fn remove(directory: BorrowedFd<'_>, name: &OsStr, removal: Removal) -> ErrnoResult<()> {
    let flags = match removal {
        Removal::Unlink => AtFlags::empty(),
        Removal::Rmdir => AtFlags::REMOVEDIR,
    };
    rustix::fs::unlinkat(directory, name, flags)
}

/// Renames, with the flags of renameat2.
pub fn rename(
    from: BorrowedFd<'_>,
    name: &OsStr,
    to: BorrowedFd<'_>,
    new_name: &OsStr,
    flags: u32,
) -> ErrnoResult<()> {
    rustix::fs::renameat_with(
        from,
        name,
        to,
        new_name,
        RenameFlags::from_bits_retain(flags),
    )
}

/// Renames for a caller, who will own a whiteout that is left in the old place.
pub fn rename_for(
    from: BorrowedFd<'_>,
    name: &OsStr,
    to: BorrowedFd<'_>,
    new_name: &OsStr,
    flags: u32,
    caller: &Caller,
) -> ErrnoResult<()> {
    let rename = || rename(from, name, to, new_name, flags);
    if RenameFlags::from_bits_retain(flags).contains(RenameFlags::WHITEOUT) {
        caller.act(rename)
    } else {
        // The directory may grow.
        caller.charged(rename)
    }
}

/// Makes a hard link. The directory may grow, which is charged to the caller.
pub fn link(
    file: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &OsStr,
    caller: &Caller,
) -> ErrnoResult<OwnedFd> {
    let from = by_descriptor(file);
    caller.charged(|| {
        rustix::fs::linkat(
            rustix::fs::CWD,
            from.as_str(),
            directory,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )
    })?;
    find(directory, name)
}
