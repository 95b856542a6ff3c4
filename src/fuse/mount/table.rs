//! Facts about ibifs mounts besides the system's table of mounts.

use std::ffi::CString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use crate::fuse::fs::{DATA, DataPath};
use crate::os::answering;
pub use crate::os::mounts::{Mounted, mounts, mounts_of};

/// The time that the daemon of a mount has to answer.
const ANSWER: Duration = Duration::from_secs(3);

/// Returns how files are read and written on a mount, as reported by its daemon. None if it does not answer.
pub fn data(mounted: &Mounted) -> Option<DataPath> {
    let path = CString::new(mounted.mount_point.as_os_str().as_bytes()).ok()?;
    let read = |buffer: &mut [u8]| rustix::fs::getxattr(path.as_c_str(), DATA, buffer);
    let text = answering::within(ANSWER, read)?.ok()?;
    DataPath::parse(std::str::from_utf8(&text).ok()?)
}

/// Whether the daemon of a mount has exited; None if it neither has nor answers. The kernel may cache the attributes
/// of the root, but always asks the daemon for statfs.
pub(super) fn is_dead(mount_point: &Path) -> Option<bool> {
    let path = CString::new(mount_point.as_os_str().as_bytes()).ok()?;
    #[expect(clippy::disallowed_methods, reason = "the look has a time limit")]
    let asked = answering::within(ANSWER, |_| rustix::fs::statfs(path.as_c_str()).map(|_| 0))?;
    Some(asked.err() == Some(Errno::NOTCONN))
}

/// The path of a directory without symbolic links; None if a daemon on the way does not answer.
pub(super) fn canonical(path: &Path) -> Option<std::io::Result<std::path::PathBuf>> {
    let found = answering::within(ANSWER, |buffer| {
        let found = std::fs::canonicalize(path)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let bytes = found.as_os_str().as_bytes();
        let buffer = buffer.get_mut(..bytes.len()).ok_or(Errno::NAMETOOLONG)?;
        buffer.copy_from_slice(bytes);
        Ok(bytes.len())
    })?;
    let found = found.map(|bytes| std::ffi::OsString::from_vec(bytes).into());
    Some(found.map_err(std::io::Error::from))
}
