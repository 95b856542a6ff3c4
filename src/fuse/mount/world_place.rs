//! The place at which the items of other Archives are mounted that belong to a mounted store.

use std::path::{Path, PathBuf};

use rustix::mount::UnmountFlags;

use super::{MountError, Mounted, mounts, unmount, unmount_idle};
use crate::fuse::namespace::{WORLD, WorldEntry};
use crate::os::system_files;

/// Returns where they are mounted. For root in the store's own mount. For another user beside it: fusermount3 mounts
/// nothing in a mount that only its user may enter, nor in a read-only one.
///
/// # Errors
/// The environment names no directory for an ordinary user.
pub fn world_place(mount_point: &Path) -> Result<PathBuf, MountError> {
    if is_inside() {
        return Ok(mount_point.join(WORLD));
    }
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let above = absolute("XDG_RUNTIME_DIR")
        .or_else(|| absolute("XDG_CACHE_HOME"))
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .ok_or(MountError::NoWorldPlace)?;
    let mount_point = mount_point.strip_prefix("/").unwrap_or(mount_point);
    Ok(above.join("ibifs").join(mount_point).join(WORLD))
}

/// Whether they are mounted in the store's own mount.
pub fn is_inside() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns what the store's root shows of it.
pub(super) fn world_entry(mount_point: &Path) -> Result<WorldEntry, MountError> {
    if is_inside() {
        Ok(WorldEntry::Directory)
    } else {
        Ok(WorldEntry::Link(world_place(mount_point)?))
    }
}

/// Unmounts the items of other Archives that belong to a mounted store, if any are mounted.
#[expect(
    clippy::disallowed_methods,
    reason = "empty directories of an ordinary user's own"
)]
pub fn unmount_world(mount_point: &Path) {
    let Ok(place) = world_place(mount_point) else {
        return;
    };
    let is_there = |mount: &Mounted| mount.is_world() && mount.mount_point == place;
    for mount in mounts().into_iter().filter(is_there) {
        if unmount_idle(&place) {
            continue;
        }
        abort(&mount);
        if let Err(refused) = unmount(&place) {
            log::warn!("unmounting {}: {refused}", place.display());
        }
    }
    if is_inside() {
        return;
    }
    // The directories were made for it alone; those that others need as well are not empty.
    let mut directory = Some(place.as_path());
    while let Some(path) = directory.filter(|path| path.components().count() > 1) {
        if path.file_name().is_some_and(|name| name == "ibifs")
            || std::fs::remove_dir(path).is_err()
        {
            break;
        }
        directory = path.parent();
    }
}

/// Lets the requests fail that wait for the network. A process that has come there by a link of the store's mount would
/// keep that in use as well.
fn abort(mount: &Mounted) {
    let aborted = if is_inside() {
        rustix::mount::unmount(&mount.mount_point, UnmountFlags::FORCE).map_err(Into::into)
    } else {
        let number = mount.device.split(':').next_back().unwrap_or_default();
        system_files::write(format!("/sys/fs/fuse/connections/{number}/abort"), "1")
    };
    if let Err(error) = aborted {
        log::debug!("aborting {}: {error}", mount.mount_point.display());
    }
}
