//! Inside an item everything is an ordinary filesystem: each operation, by descriptor, on the
//! native one beneath.
//!
//! Nothing here goes by path: a directory is a descriptor, a name one component of it, and a file
//! opened with O_PATH is reached through `/proc/self/fd`. The kernel has checked the caller's
//! permissions before (`default_permissions`); what is made is made with the caller's credentials.
//! This room knows neither items nor identifiers.

use std::ffi::{CStr, CString, OsStr};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    Access, AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid,
};
use rustix::io::{Errno, ReadWriteFlags};

use crate::fuse::attr::{Attr, Time};
use crate::os::caller::Caller;
use crate::os::opening::{self, by_descriptor};

/// The outcome of an operation on the native filesystem.
pub type Outcome<T> = Result<T, Errno>;

/// Finds a name in a directory: the file, opened with O_PATH, links not followed.
pub fn find(directory: BorrowedFd<'_>, name: &OsStr) -> Outcome<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Opens with O_PATH what is open already, whatever its name means by now.
pub fn find_open(file: BorrowedFd<'_>) -> Outcome<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::open(by_descriptor(file), flags, Mode::empty())
}

/// What there is to make under a new name.
#[derive(Clone, Copy, Debug)]
pub enum New<'a> {
    /// A directory.
    Directory,
    /// A symbolic link with its target.
    Link(&'a [u8]),
    /// Any other node, by the type in its mode, with its device number.
    Node(u32),
}

/// Makes a name in a directory for a caller, who owns it afterwards.
pub fn make(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    new: New<'_>,
    mode: u32,
    umask: u32,
    caller: &Caller,
) -> Outcome<OwnedFd> {
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
) -> Outcome<OwnedFd> {
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
        // Somebody has been quicker.
        let found = match find(directory, name) {
            Err(Errno::NOENT) => continue,
            found => found?,
        };
        is_regular(found.as_fd())?;
        return match caller.act(|| open_by_descriptor(found.as_fd(), flags)) {
            // The kernel holds the directory meanwhile. Once it has looked the name up again, it opens
            // the file without.
            Err(opening::LEASED) => Err(Errno::STALE),
            opened => opened,
        };
    }
}

/// The flags to open a file with on the native filesystem: direct I/O is the kernel's business
/// with its caller, whose buffers ours are not. Whether a write appends is told with each: pages of
/// a mapping never do.
fn open_flags(flags: i32) -> OFlags {
    let flags = OFlags::from_bits_retain(flags as u32);
    let ours = OFlags::DIRECT | OFlags::NOCTTY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND;
    flags - ours
}

/// Opens with these flags; to append where nothing else is allowed, as in a file with that flag.
pub fn open_or_append<T>(
    asked: i32,
    flags: OFlags,
    open: impl Fn(OFlags) -> Outcome<T>,
) -> Outcome<T> {
    match open(flags) {
        Err(Errno::PERM) if asked & libc::O_APPEND != 0 => open(flags | OFlags::APPEND),
        outcome => outcome,
    }
}

/// The flags to open a file with that has been found already.
pub fn content_flags(flags: i32) -> OFlags {
    (open_flags(flags) - OFlags::NOFOLLOW) | OFlags::CLOEXEC
}

/// Opens a file for reading or writing its content. EAGAIN where another program has a lease on it.
pub fn open(file: BorrowedFd<'_>, flags: i32, caller: &Caller) -> Outcome<OwnedFd> {
    is_regular(file)?;
    let open = || open_by_descriptor(file, flags);
    if flags & libc::O_TRUNC != 0 {
        minding_set_id(file, caller, open)
    } else {
        open()
    }
}

/// The kernel opens all but regular files by itself: whatever else is found has taken the place of
/// one since. It is looked at before it is opened, for to open a FIFO would hold us up, and to open a
/// device may do something already. ESTALE has the kernel look the name up again.
fn is_regular(file: BorrowedFd<'_>) -> Outcome<()> {
    match FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::STALE),
    }
}

fn open_by_descriptor(file: BorrowedFd<'_>, flags: i32) -> Outcome<OwnedFd> {
    open_or_append(flags, content_flags(flags), |flags| {
        opening::settled(opening::again(file, flags)?, flags)
    })
}

/// Whether a file has a set-user-id or set-group-id bit.
pub fn has_set_id(file: BorrowedFd<'_>) -> bool {
    let bits = (Mode::SUID | Mode::SGID).as_raw_mode();
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_mode & bits != 0)
}

/// Changes a file's content, owner or ACL, which the caller pays for. Whether its set-id bits outlive
/// that depends on who does it; where there are any, it is done as the caller.
fn minding_set_id<T>(
    file: BorrowedFd<'_>,
    caller: &Caller,
    change: impl FnMut() -> Outcome<T>,
) -> Outcome<T> {
    if caller.is_other() && has_set_id(file) {
        caller.act(change)
    } else {
        caller.charged(change)
    }
}

/// Opens a directory for listing.
pub fn open_directory(directory: BorrowedFd<'_>) -> Outcome<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, ".", flags, Mode::empty())
}

/// The target of a symbolic link.
pub fn read_link(link: BorrowedFd<'_>) -> Outcome<Vec<u8>> {
    Ok(rustix::fs::readlinkat(link, "", Vec::new())?.into_bytes())
}

/// Removes a name.
pub fn remove(directory: BorrowedFd<'_>, name: &OsStr, is_directory: bool) -> Outcome<()> {
    let flags = if is_directory {
        AtFlags::REMOVEDIR
    } else {
        AtFlags::empty()
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
) -> Outcome<()> {
    rustix::fs::renameat_with(
        from,
        name,
        to,
        new_name,
        RenameFlags::from_bits_retain(flags),
    )
}

/// Renames for a caller, who owns a whiteout that is left in the old place.
pub fn rename_for(
    from: BorrowedFd<'_>,
    name: &OsStr,
    to: BorrowedFd<'_>,
    new_name: &OsStr,
    flags: u32,
    caller: &Caller,
) -> Outcome<()> {
    let rename = || rename(from, name, to, new_name, flags);
    if RenameFlags::from_bits_retain(flags).contains(RenameFlags::WHITEOUT) {
        caller.act(rename)
    } else {
        // The directory may grow.
        caller.charged(rename)
    }
}

/// Makes a hard link; the directory may grow, which the caller pays for.
pub fn link(
    file: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &OsStr,
    caller: &Caller,
) -> Outcome<OwnedFd> {
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

/// A change of attributes; what is None stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Last access.
    pub accessed: Option<NewTime>,
    /// Last change of content.
    pub modified: Option<NewTime>,
}

/// A time to set.
#[derive(Clone, Copy, Debug)]
pub enum NewTime {
    /// The present, by the kernel's clock.
    Now,
    /// This one.
    At(Time),
}

impl NewTime {
    fn as_timespec(this: Option<NewTime>) -> Timespec {
        let (tv_sec, tv_nsec) = match this {
            None => (0, rustix::fs::UTIME_OMIT),
            Some(NewTime::Now) => (0, rustix::fs::UTIME_NOW),
            Some(NewTime::At(time)) => (time.seconds, time.nanoseconds.into()),
        };
        Timespec { tv_sec, tv_nsec }
    }
}

/// Refuses a caller what it may not do with a file now, whatever the way to it.
pub fn check_access(file: BorrowedFd<'_>, access: Access, caller: &Caller) -> Outcome<()> {
    let path = by_descriptor(file);
    caller.act(|| rustix::fs::accessat(rustix::fs::CWD, path.as_str(), access, AtFlags::EACCESS))
}

/// Refuses a caller to remove a directory from another, as the native filesystem would.
pub fn check_removal(
    directory: BorrowedFd<'_>,
    victim: BorrowedFd<'_>,
    caller: &Caller,
) -> Outcome<()> {
    check_access(directory, Access::WRITE_OK | Access::EXEC_OK, caller)?;
    let above = rustix::fs::fstat(directory)?;
    let is_sticky = Mode::from_raw_mode(above.st_mode).contains(Mode::SVTX);
    let owners = [above.st_uid, rustix::fs::fstat(victim)?.st_uid];
    if is_sticky && !caller.owns_all() && !owners.contains(&caller.uid) {
        Err(Errno::PERM)
    } else {
        Ok(())
    }
}

/// Truncates a file that need not be open: unlike ftruncate, to the size that it has already this
/// changes no time on some filesystems. EAGAIN where another program has a lease on it.
fn truncate(file: BorrowedFd<'_>, size: u64) -> Outcome<()> {
    is_regular(file)?;
    // truncate(2) would wait for the lease; while the file is open for writing there is none.
    let _open = opening::again(file, OFlags::WRONLY)?;
    let path = CString::new(by_descriptor(file)).map_err(|_| Errno::INVAL)?;
    let size = libc::off_t::try_from(size).map_err(|_| Errno::FBIG)?;
    // SAFETY: the pointer is to a C string that lives for the call.
    match unsafe { libc::truncate(path.as_ptr(), size) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// What makes a program powerful; a write takes it away.
pub const CAPABILITY: &str = "security.capability";

/// Changes attributes, through the open file where the caller has one. To change nothing is what the
/// kernel asks for before a write that takes set-id bits away, and for a change of the owner to the
/// same one, which takes them away too. A write it may be only where some process has the file open for
/// writing: `is_written` tells.
pub fn change(
    file: BorrowedFd<'_>,
    open: Option<BorrowedFd<'_>>,
    change: &Change,
    caller: &Caller,
    is_written: impl Fn() -> bool,
) -> Outcome<()> {
    let has_owner = change.uid.is_some() || change.gid.is_some();
    let is_empty = !has_owner
        && change.mode.is_none()
        && change.size.is_none()
        && change.accessed.is_none()
        && change.modified.is_none();
    let path = by_descriptor(file);
    if is_empty && has_set_id(file) && caller.keeps_set_id() && is_written() {
        // What such a write takes away is the capability alone.
        return match rustix::fs::removexattr(path.as_str(), CAPABILITY) {
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
            outcome => outcome,
        };
    }
    if has_owner || is_empty {
        let uid = change.uid.map(Uid::from_raw);
        let gid = change.gid.map(Gid::from_raw);
        let set = || rustix::fs::chownat(file, "", uid, gid, AtFlags::EMPTY_PATH);
        match minding_set_id(file, caller, set) {
            // A write comes to this, and whoever writes need not be the owner. So does chown(2)
            // without an owner, by which nobody else may take the bits away. Where it may be either, they
            // are better lost than left to what others write.
            Err(Errno::PERM) if is_empty && is_written() => {
                take_set_id_away(file, caller)?;
            }
            outcome => outcome?,
        }
    }
    if let Some(mode) = change.mode {
        rustix::fs::chmod(path.as_str(), Mode::from_raw_mode(mode & 0o7777))?;
    }
    if let Some(size) = change.size {
        minding_set_id(file, caller, || match open {
            Some(open) => rustix::fs::ftruncate(open, size),
            None => truncate(file, size),
        })?;
    }
    if change.accessed.is_some() || change.modified.is_some() {
        let times = Timestamps {
            last_access: NewTime::as_timespec(change.accessed),
            last_modification: NewTime::as_timespec(change.modified),
        };
        rustix::fs::utimensat(file, "", &times, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// Refuses to take a capability away for a change of owner that is not the caller's to make, because
/// it takes set-id bits away: the kernel asks for the one before it asks for the other.
pub fn check_loss(
    file: BorrowedFd<'_>,
    caller: &Caller,
    is_written: impl Fn() -> bool,
) -> Outcome<()> {
    let stat = rustix::fs::fstat(file)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    let loses_group =
        mode.contains(Mode::SGID) && (mode.contains(Mode::XGRP) || !caller.belongs_to(stat.st_gid));
    let is_own = stat.st_uid == caller.uid || caller.owns_all();
    if !is_own && (mode.contains(Mode::SUID) || loses_group) && !is_written() {
        Err(Errno::PERM)
    } else {
        Ok(())
    }
}

/// Takes from a file the set-id bits that do not outlive a write by this caller.
fn take_set_id_away(file: BorrowedFd<'_>, caller: &Caller) -> Outcome<()> {
    rustix::fs::chownat(file, "", None, None, AtFlags::EMPTY_PATH)?;
    let stat = rustix::fs::fstat(file)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    // Where the group may not execute, its members may write and leave the bit.
    if mode.contains(Mode::SGID) && !caller.belongs_to(stat.st_gid) {
        rustix::fs::chmod(by_descriptor(file), mode - Mode::SGID)?;
    }
    Ok(())
}

fn c_name(name: &OsStr) -> Outcome<CString> {
    CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)
}

/// The value of an extended attribute; ERANGE where it is longer than `limit` (0: no limit).
pub fn get_attribute(file: BorrowedFd<'_>, name: &OsStr, limit: usize) -> Outcome<Vec<u8>> {
    let (path, name) = (by_descriptor(file), c_name(name)?);
    read_growing(limit, |buffer| {
        rustix::fs::getxattr(path.as_str(), name.as_c_str(), buffer)
    })
}

/// The names of the extended attributes, each ended by a NUL.
pub fn list_attributes(file: BorrowedFd<'_>, limit: usize, caller: &Caller) -> Outcome<Vec<u8>> {
    let path = by_descriptor(file);
    let list = |limit| read_growing(limit, |buffer| rustix::fs::listxattr(path.as_str(), buffer));
    if caller.uid == 0 {
        return list(limit);
    }
    // What the caller must not see does not count to its limit.
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

fn read_growing(limit: usize, read: impl Fn(&mut [u8]) -> Outcome<usize>) -> Outcome<Vec<u8>> {
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
) -> Outcome<()> {
    let (path, name) = (by_descriptor(file), c_name(name)?);
    let flags = rustix::fs::XattrFlags::from_bits_retain(flags as u32);
    let set = || rustix::fs::setxattr(path.as_str(), name.as_c_str(), value, flags);
    if name.to_bytes().starts_with(b"system.posix_acl_") {
        minding_set_id(file, caller, set)
    } else {
        caller.charged(set)
    }
}

/// Removes an extended attribute.
pub fn remove_attribute(file: BorrowedFd<'_>, name: &OsStr) -> Outcome<()> {
    let (path, name) = (by_descriptor(file), c_name(name)?);
    rustix::fs::removexattr(path.as_str(), name.as_c_str())
}

/// Reads up to `size` bytes at an offset; fewer at the end of the file only.
pub fn read(file: BorrowedFd<'_>, offset: u64, size: usize) -> Outcome<Vec<u8>> {
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

/// Writes bytes for a caller, who pays for them; this thread goes on paying until it is told to stop.
/// Says how many were written.
pub fn write_as(
    file: BorrowedFd<'_>,
    place: Where,
    bytes: &[u8],
    keeps_set_id: bool,
    caller: &Caller,
) -> Outcome<usize> {
    if !keeps_set_id && caller.is_other() && has_set_id(file) {
        caller.act(|| write(file, place, bytes))
    } else {
        caller.charged_and_keep(|| write(file, place, bytes))
    }
}

/// Where bytes are written.
#[derive(Clone, Copy, Debug)]
pub enum Where {
    /// At an offset.
    At(u64),
    /// Behind what is there, wherever that ends by now.
    End,
}

fn write(file: BorrowedFd<'_>, place: Where, bytes: &[u8]) -> Outcome<usize> {
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
pub fn sync(file: BorrowedFd<'_>, content_only: bool) -> Outcome<()> {
    if content_only {
        rustix::fs::fdatasync(file)
    } else {
        rustix::fs::fsync(file)
    }
}

/// Where the next data or hole begins, or a plain seek.
pub fn seek(file: BorrowedFd<'_>, offset: i64, whence: i32) -> Outcome<i64> {
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
) -> Outcome<()> {
    let mode = rustix::fs::FallocateFlags::from_bits_retain(mode as u32);
    minding_set_id(file, caller, || {
        rustix::fs::fallocate(file, mode, offset, length)
    })
}

/// Copies a range within the native filesystem, sharing blocks where it can.
pub fn copy_range(
    from: BorrowedFd<'_>,
    mut offset: u64,
    to: BorrowedFd<'_>,
    mut to_offset: u64,
    length: usize,
    caller: &Caller,
) -> Outcome<usize> {
    minding_set_id(to, caller, || {
        rustix::fs::copy_file_range(from, Some(&mut offset), to, Some(&mut to_offset), length)
    })
}

/// Flags and generation of a file by ioctl: which are answered and what each carries.
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
) -> Outcome<Vec<u8>> {
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

/// The attributes of a file.
pub fn attributes(file: impl AsFd) -> Outcome<Attr> {
    Attr::of(file)
}

/// How full the native filesystem is.
pub fn statistics(file: BorrowedFd<'_>) -> Outcome<rustix::fs::StatVfs> {
    rustix::fs::fstatvfs(file)
}

/// Lists names from an offset on; `visit` says whether it wants more.
pub fn list(
    directory: BorrowedFd<'_>,
    offset: u64,
    mut visit: impl FnMut(&CStr, u64, FileType, u64) -> bool,
) -> Outcome<()> {
    rustix::fs::seek(directory, rustix::fs::SeekFrom::Start(offset))?;
    while let Some(Part { is_all: true }) = list_part(directory, &mut visit)? {}
    Ok(())
}

/// A part of a listing.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Whether all of it was wanted.
    pub is_all: bool,
}

/// Names at a time: so many that they fit into an answer of the 32 KiB that the C library asks for,
/// where they take up to a third more.
const PART: usize = 24 * 1024;

/// Lists the next names of a directory; None at its end. To go on after a part of which not all was
/// wanted, seek: that costs some filesystems as much as reading from the beginning.
pub fn list_part(
    directory: BorrowedFd<'_>,
    visit: &mut impl FnMut(&CStr, u64, FileType, u64) -> bool,
) -> Outcome<Option<Part>> {
    let mut buffer = Vec::with_capacity(PART);
    let mut entries = rustix::fs::RawDir::new(directory, buffer.spare_capacity_mut());
    let mut part = None;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let next = entry.next_entry_cookie();
        if !visit(entry.file_name(), entry.ino(), entry.file_type(), next) {
            return Ok(Some(Part { is_all: false }));
        }
        part = Some(Part { is_all: true });
        if entries.is_buffer_empty() {
            break;
        }
    }
    Ok(part)
}
