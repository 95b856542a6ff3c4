//! Attributes: mode, owner, size, times; and what a change of them takes away.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Access, AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::ErrnoResult;
use crate::fuse::attr::{Attr, Time};
use crate::os::caller::Caller;
use crate::os::opening::{self, by_descriptor};

/// ESTALE unless a file is regular. The kernel opens other files by itself, so that one has taken the place
/// of a regular file since. The type is checked before opening: a FIFO would block us, and opening a device
/// may have effects. ESTALE makes the kernel look the name up again.
pub(super) fn is_regular(file: BorrowedFd<'_>) -> ErrnoResult<()> {
    match FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::STALE),
    }
}

/// Whether a file has a set-user-id or set-group-id bit.
pub(super) fn has_set_id(file: BorrowedFd<'_>) -> bool {
    let bits = (Mode::SUID | Mode::SGID).as_raw_mode();
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_mode & bits != 0)
}

/// Changes a file's content, owner or ACL, charged to the caller. Whether set-id bits survive that depends
/// on who does it: if there are any, it is done with the caller's credentials.
pub(super) fn minding_set_id<T>(
    file: BorrowedFd<'_>,
    caller: &Caller,
    change: impl FnMut() -> ErrnoResult<T>,
) -> ErrnoResult<T> {
    if caller.is_other() && has_set_id(file) {
        caller.act(change)
    } else {
        caller.charged(change)
    }
}

/// A change of attributes; None leaves one as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttributeChange {
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

/// EACCES if a caller does not have this access to a file, by whatever path.
pub fn check_access(file: BorrowedFd<'_>, access: Access, caller: &Caller) -> ErrnoResult<()> {
    let path = by_descriptor(file);
    caller.act(|| rustix::fs::accessat(rustix::fs::CWD, path.as_str(), access, AtFlags::EACCESS))
}

/// EACCES or EPERM if the native filesystem would not let a caller remove a directory from another.
pub fn check_removal(
    directory: BorrowedFd<'_>,
    victim: BorrowedFd<'_>,
    caller: &Caller,
) -> ErrnoResult<()> {
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

/// File capabilities (capabilities(7)); a write removes them.
pub const CAPABILITY: &str = "security.capability";

/// Truncates a file that need not be open: unlike ftruncate, to the size that it has already this
/// changes no time on some filesystems. EAGAIN where another program has a lease on it.
fn truncate(file: BorrowedFd<'_>, size: u64) -> ErrnoResult<()> {
    is_regular(file)?;
    // truncate(2) would wait for the lease; while the file is open for writing there is no lease.
    let _open = opening::again(file, OFlags::WRONLY)?;
    let path = CString::new(by_descriptor(file)).map_err(|_| Errno::INVAL)?;
    let size = libc::off_t::try_from(size).map_err(|_| Errno::FBIG)?;
    // SAFETY: the pointer is to a C string that lives for the call.
    #[expect(clippy::disallowed_methods, reason = "the path is a descriptor")]
    match unsafe { libc::truncate(path.as_ptr(), size) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Changes attributes, through the open file if the caller has one.
///
/// An empty change is what the kernel asks for before a write that clears set-id bits, and for a change of
/// the owner to the same one, which clears them too. It can be a write only while some process has the file
/// open for writing, which `is_written` returns.
pub fn change(
    file: BorrowedFd<'_>,
    open: Option<BorrowedFd<'_>>,
    change: &AttributeChange,
    caller: &Caller,
    is_written: impl Fn() -> bool,
) -> ErrnoResult<()> {
    let has_owner = change.uid.is_some() || change.gid.is_some();
    let is_empty = !has_owner
        && change.mode.is_none()
        && change.size.is_none()
        && change.accessed.is_none()
        && change.modified.is_none();
    if is_empty && has_set_id(file) && caller.keeps_set_id() && is_written() {
        // Such a write takes away the capability alone.
        return match opening::remove_attribute(file, CAPABILITY) {
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
            result => result,
        };
    }
    if has_owner || is_empty {
        let uid = change.uid.map(Uid::from_raw);
        let gid = change.gid.map(Gid::from_raw);
        let set = || rustix::fs::chownat(file, "", uid, gid, AtFlags::EMPTY_PATH);
        match minding_set_id(file, caller, set) {
            // This is a write, whose caller need not be the owner, or chown(2) without an owner, with which
            // no other user may clear the bits. If it can be either, clearing them is safer than leaving
            // them to a file that others write.
            Err(Errno::PERM) if is_empty && is_written() => {
                clear_set_id(file, caller)?;
            }
            result => result?,
        }
    }
    if let Some(mode) = change.mode {
        opening::set_mode(file, Mode::from_raw_mode(mode & 0o7777))?;
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

/// EPERM if a capability is to be removed for a change of owner that the caller may not make, because it
/// clears set-id bits: the kernel asks for the one before it asks for the other.
pub fn check_loss(
    file: BorrowedFd<'_>,
    caller: &Caller,
    is_written: impl Fn() -> bool,
) -> ErrnoResult<()> {
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

/// Clears the set-id bits that a write by this caller clears.
fn clear_set_id(file: BorrowedFd<'_>, caller: &Caller) -> ErrnoResult<()> {
    rustix::fs::chownat(file, "", None, None, AtFlags::EMPTY_PATH)?;
    let stat = rustix::fs::fstat(file)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    // chown(2) leaves the set-group-ID bit of a file that its group may not execute; a write from outside the group
    // clears it.
    if mode.contains(Mode::SGID) && !caller.belongs_to(stat.st_gid) {
        opening::set_mode(file, mode - Mode::SGID)?;
    }
    Ok(())
}

/// The attributes of a file.
pub fn attributes(file: impl AsFd) -> ErrnoResult<Attr> {
    Attr::of(file)
}

/// Returns how full the native filesystem is.
pub fn statistics(file: BorrowedFd<'_>) -> ErrnoResult<rustix::fs::StatVfs> {
    rustix::fs::fstatvfs(file)
}
