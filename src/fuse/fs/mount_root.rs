//! Looking up in the mount itself what was renamed in one tree while the kernel knows it in another.
//!
//! When the old name is invalidated there, the directory has none for the kernel until a process looks up the new one:
//! getcwd(2) fails with ENOENT in it and gives a path that does not exist below it, and rename(2) fails with ESTALE.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::thread::Timespec;

use crate::os::answering;
use crate::os::opening;

/// The longest time of a lookup.
const LONGEST: Duration = Duration::from_secs(1);
/// The number of times that a lookup is tried, and the time between two: the kernel moves no directory while another
/// rename in the mount is not over.
const TRIES: usize = 100;
const BETWEEN_TRIES: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// The root of the mount.
#[derive(Debug)]
pub struct MountRoot {
    path: CString,
    device: u64,
}

impl MountRoot {
    /// The root of what was just mounted there.
    ///
    /// # Errors
    /// It does not answer.
    pub fn at(mount_point: &Path) -> std::io::Result<MountRoot> {
        let root = opening::found(mount_point, OFlags::DIRECTORY)?;
        Ok(MountRoot {
            path: CString::new(mount_point.as_os_str().as_bytes())?,
            device: rustix::fs::fstat(root)?.st_dev,
        })
    }

    /// Looks up a directory, so that the kernel finds that it is one that it knows by another name. A thread of this
    /// process that waits for itself could not be killed.
    pub(super) fn look_up(&self, directory: &Path) {
        let Ok(path) = CString::new(directory.as_os_str().as_bytes()) else {
            return;
        };
        let looked_up = answering::within(LONGEST, |_| {
            let root = opening::found(&*self.path, OFlags::DIRECTORY)?;
            // Something else may be mounted there by now.
            if rustix::fs::fstat(&root)?.st_dev != self.device {
                return Err(Errno::XDEV);
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            for _ in 0..TRIES {
                match rustix::fs::openat2(&root, &*path, flags, Mode::empty(), below) {
                    Err(Errno::STALE | Errno::AGAIN) => {
                        let _ = rustix::thread::nanosleep(&BETWEEN_TRIES);
                    }
                    found => return found.map(|_| 0),
                }
            }
            Err(Errno::STALE)
        });
        match looked_up {
            Some(Ok(_)) => {}
            Some(Err(errno)) => log::debug!("{}: {errno}", directory.display()),
            None => log::debug!("{}: not looked up", directory.display()),
        }
    }
}
