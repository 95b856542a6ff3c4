//! A check that a store and a mount point do not lie one in the other. Both may have several paths: bind mounts give a
//! directory more than one, and so does a mounted store.

use std::path::{Path, PathBuf};

use super::table::{Mounted, mounts};

/// The most levels of mounted stores that lie in one another.
const DEPTH: usize = 8;

/// A directory, identified by its filesystem and the path there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DirectoryPath {
    device: String,
    path: PathBuf,
}

impl DirectoryPath {
    fn meets(&self, other: &DirectoryPath) -> bool {
        let (path, others) = (&self.path, &other.path);
        self.device == other.device && (path.starts_with(others) || others.starts_with(path))
    }
}

/// Whether one of two paths lies in the other. Both paths must be free of symbolic links.
pub(super) fn is_nested(store: &Path, mount_point: &Path) -> bool {
    let mounts = mounts();
    let points = places(mount_point, &mounts);
    store.starts_with(mount_point)
        || mount_point.starts_with(store)
        || places(store, &mounts)
            .iter()
            .any(|place| points.iter().any(|point| place.meets(point)))
}

/// The places of a path: on its own filesystem and, if that is a mounted store, within the store.
fn places(path: &Path, mounts: &[Mounted]) -> Vec<DirectoryPath> {
    let mut found = Vec::new();
    let mut path = path.to_owned();
    for _ in 0..DEPTH {
        // Of several mounts at one place, the last one is visible.
        let holds = |mount: &&Mounted| path.starts_with(&mount.mount_point);
        let depth = |mount: &&Mounted| mount.mount_point.components().count();
        let Some(mount) = mounts.iter().filter(holds).max_by_key(depth) else {
            break;
        };
        let below = path.strip_prefix(&mount.mount_point).unwrap_or(&path);
        found.push(DirectoryPath {
            device: mount.device.clone(),
            path: mount.root.join(below),
        });
        if !mount.is_ours() {
            break;
        }
        path = mount.source.clone();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(mount_point: &str, device: &str, root: &str, kind: &str, source: &str) -> Mounted {
        Mounted {
            mount_point: mount_point.into(),
            device: device.to_owned(),
            root: root.into(),
            kind: kind.to_owned(),
            source: source.into(),
            is_fixed: false,
            user: Some(0),
        }
    }

    #[test]
    fn a_directory_has_a_place_on_each_filesystem() {
        let mounts = [
            mounted("/", "8:1", "/", "ext4", "/dev/sda1"),
            mounted("/b", "8:1", "/data/S", "ext4", "/dev/sda1"),
            mounted("/m", "0:40", "/", "fuse.ibifs", "/data/S"),
            mounted("/m/over", "0:41", "/", "tmpfs", "none"),
        ];
        let overlaps = |path: &str| -> Vec<String> {
            let found = places(Path::new(path), &mounts);
            let describe =
                |place: &DirectoryPath| format!("{} {}", place.device, place.path.display());
            found.iter().map(describe).collect()
        };
        assert_eq!(overlaps("/data/S/col"), ["8:1 /data/S/col"]);
        assert_eq!(overlaps("/b/col"), ["8:1 /data/S/col"]);
        assert_eq!(overlaps("/m/x.org"), ["0:40 /x.org", "8:1 /data/S"]);
        assert_eq!(overlaps("/m/over/x"), ["0:41 /x"]);
    }
}
