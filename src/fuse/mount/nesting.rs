//! Whether a store and a mount point lie one in the other, by whatever names: bind mounts give one
//! directory several, and so does a mounted store.

use std::path::{Path, PathBuf};

use super::table::{Mounted, mounts};

/// How many mounted stores lie one in the other at most.
const DEPTH: usize = 8;

/// A directory by the filesystem that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    device: String,
    path: PathBuf,
}

impl Place {
    fn meets(&self, other: &Place) -> bool {
        let (path, others) = (&self.path, &other.path);
        self.device == other.device && (path.starts_with(others) || others.starts_with(path))
    }
}

/// Whether one of two paths, both without links, leads into the other.
pub(super) fn is_nested(store: &Path, mount_point: &Path) -> bool {
    let mounts = mounts();
    let points = places(mount_point, &mounts);
    store.starts_with(mount_point)
        || mount_point.starts_with(store)
        || places(store, &mounts)
            .iter()
            .any(|place| points.iter().any(|point| place.meets(point)))
}

/// Where a path is: on its own filesystem; and if that is a mounted store, somewhere in the store, too.
fn places(path: &Path, mounts: &[Mounted]) -> Vec<Place> {
    let mut found = Vec::new();
    let mut path = path.to_owned();
    for _ in 0..DEPTH {
        // The last of those that are mounted at one place is the one that is seen.
        let holds = |mount: &&Mounted| path.starts_with(&mount.mount_point);
        let depth = |mount: &&Mounted| mount.mount_point.components().count();
        let Some(mount) = mounts.iter().filter(holds).max_by_key(depth) else {
            break;
        };
        let below = path.strip_prefix(&mount.mount_point).unwrap_or(&path);
        found.push(Place {
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
            user: None,
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
        let told = |path: &str| -> Vec<String> {
            let found = places(Path::new(path), &mounts);
            let told = |place: &Place| format!("{} {}", place.device, place.path.display());
            found.iter().map(told).collect()
        };
        assert_eq!(told("/data/S/col"), ["8:1 /data/S/col"]);
        assert_eq!(told("/b/col"), ["8:1 /data/S/col"]);
        assert_eq!(told("/m/x.org"), ["0:40 /x.org", "8:1 /data/S"]);
        assert_eq!(told("/m/over/x"), ["0:41 /x"]);
    }
}
