//! What is known of ibifs mounts besides the system's table of mounts.

use std::path::Path;

use crate::fuse::fs::{DATA, DataPath};
pub use crate::os::mounts::{Mounted, mounts, mounts_of};

impl Mounted {
    /// Whether it is an ibifs mount.
    pub fn is_ours(&self) -> bool {
        self.kind == "fuse.ibifs"
    }

    /// Whether it is a mount of items of other Archives.
    pub fn is_world(&self) -> bool {
        self.kind == "fuse.ibifs-world"
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
        let mut text = vec![0; 1024];
        let length = rustix::fs::getxattr(&self.mount_point, DATA, &mut text).ok()?;
        text.truncate(length);
        DataPath::parse(std::str::from_utf8(&text).ok()?)
    }
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
                user: None,
            };
            assert_eq!(mounted.is_ours(), expected);
        }
    }
}
