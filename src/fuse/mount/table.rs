//! What is known of ibifs mounts besides the system's table of mounts.

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

impl Mounted {
    /// Returns whether it is an ibifs mount of root or of this user.
    pub fn is_ours(&self) -> bool {
        self.kind == "fuse.ibifs" && self.is_trusted()
    }

    /// Returns whether it is a mount of items of other Archives, of root or of this user.
    pub fn is_world(&self) -> bool {
        self.kind == "fuse.ibifs-world" && self.is_trusted()
    }

    /// The ibifs mount that contains a canonical path.
    pub fn containing(path: &Path) -> Option<Mounted> {
        mounts()
            .into_iter()
            .filter(|mount| path.starts_with(&mount.mount_point))
            .max_by_key(|mount| mount.mount_point.as_os_str().len())
            .filter(Mounted::is_ours)
    }

    /// How files are read and written there, as reported by its daemon. None if it does not answer.
    pub fn data(&self) -> Option<DataPath> {
        let path = CString::new(self.mount_point.as_os_str().as_bytes()).ok()?;
        let read = |buffer: &mut [u8]| rustix::fs::getxattr(path.as_c_str(), DATA, buffer);
        let text = answering::within(ANSWER, read)?.ok()?;
        DataPath::parse(std::str::from_utf8(&text).ok()?)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_ours_by_its_type() {
        for (kind, expected) in [("fuse.ibifs", true), ("fuse", false), ("fuse.sshfs", false)] {
            let mounted = Mounted {
                mount_point: "/m".into(),
                source: "/store".into(),
                kind: kind.to_owned(),
                device: "0:42".to_owned(),
                root: "/".into(),
                is_fixed: false,
                user: Some(0),
            };
            assert_eq!(mounted.is_ours(), expected);
        }
    }
}
