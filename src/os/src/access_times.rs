//! The times of access of files that are read through this process.
//!
//! A descriptor with O_NOATIME changes none. A file that the kernel reads itself by FUSE passthrough is opened again,
//! with the flags of the program that reads, at the mount at which the registered file was opened: that is registered
//! as a copy of the mount has it, which changes none (mount_setattr(2)). Only root can make one.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::OpenTreeFlags;

use super::opening;

/// The effect of reading on times of access.
#[derive(Debug)]
pub struct AccessTimes {
    is_kept: bool,
    /// The directory below which no times change, and the path that it is a copy of.
    copy: Option<(OwnedFd, PathBuf)>,
}

impl AccessTimes {
    /// They change as the filesystem has it.
    pub fn kept() -> AccessTimes {
        AccessTimes {
            is_kept: true,
            copy: None,
        }
    }

    /// They do not change, of files below a directory.
    pub fn not_kept(directory: &Path) -> AccessTimes {
        let copy = copy(directory);
        if let Err(errno) = &copy {
            log::debug!(
                "{}: no mount without times of access: {errno}",
                directory.display()
            );
        }
        AccessTimes {
            is_kept: false,
            copy: copy.ok().map(|copy| (copy, directory.to_owned())),
        }
    }

    /// Reading an open file changes no time any more, if times are not kept.
    pub fn apply_to(&self, file: impl AsFd) {
        if self.is_kept {
            return;
        }
        // Refused to a user who does not own the file.
        let _ = rustix::fs::fcntl_getfl(&file)
            .and_then(|flags| rustix::fs::fcntl_setfl(&file, flags | OFlags::NOATIME));
    }

    /// The same file for a registration by which no time changes. None where they are kept, or the file has no such name.
    pub fn without(&self, file: BorrowedFd<'_>) -> Option<OwnedFd> {
        let (copy, directory) = self.copy.as_ref()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let below = path.strip_prefix(directory).ok()?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let found = opening::beneath(copy, below, flags, resolve).ok()?;
        let (one, other) = (
            rustix::fs::fstat(file).ok()?,
            rustix::fs::fstat(&found).ok()?,
        );
        // It may have been renamed meanwhile.
        ((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)).then_some(found)
    }
}

/// `MOUNT_ATTR_NOATIME` and `MOUNT_ATTR__ATIME` of mount_setattr(2).
const NOATIME: u64 = 0x10;
const ATIME: u64 = 0x70;

/// A copy of the mount at a directory that is mounted nowhere and changes no times of access.
fn copy(directory: &Path) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = rustix::mount::open_tree(CWD, directory, flags)?;
    let attributes = libc::mount_attr {
        attr_set: NOATIME,
        attr_clr: ATIME,
        propagation: 0,
        userns_fd: 0,
    };
    let empty: &CStr = c"";
    // SAFETY: the path ends with a null byte, and the kernel reads as many bytes of the structure as its size says; both
    // live until it returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            copy.as_raw_fd(),
            empty.as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        return Ok(copy);
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}
