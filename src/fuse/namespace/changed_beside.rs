//! Files that a program has changed in the store, beside the mount: what the kernel knows of them is
//! invalidated. `ibifs work` names them, by an attribute of the item's sidecar: the kernel locks a file whose
//! attribute is set, and no directory whose names are invalidated.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Namespace;
use super::invalidation::{Context, Stale};
use crate::archive::store::ItemId;
use crate::archive::tree::Place;
use crate::fuse::errno;
use crate::fuse::inside::ErrnoResult;
use crate::os::opening;

/// The attribute. Its value is paths relative to the item, each ended by a NUL: after `-` the name has another
/// file or none, after `=` the same file has changed.
pub const CHANGED_BESIDE: &str = "user.ibi.changed";

impl Namespace {
    /// Invalidates what the kernel knows of names in an item, and of the files that have them now.
    pub(super) fn changed_beside(
        &self,
        by: &Context<'_>,
        id: ItemId,
        paths: &[u8],
    ) -> ErrnoResult<()> {
        let item = self
            .archive
            .store()
            .item(id)
            .map_err(errno::of_index)?
            .ok_or(Errno::NOENT)?;
        let _content = self.archive.change_content(id);
        let root = self.archive.tree().open_item(&Place::of(&item.names));
        let root = root.map_err(|error| error.errno())?;
        let mut stale = Vec::new();
        for changed in paths.split(|byte| *byte == 0) {
            let (is_name, path) = match changed.split_first() {
                Some((b'-', path)) => (true, path),
                Some((b'=', path)) => (false, path),
                Some(_) => return Err(Errno::INVAL),
                None => continue,
            };
            let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
                Some(cut) => (&path[..cut], &path[cut + 1..]),
                None => (&b"."[..], path),
            };
            if name.is_empty() {
                let known = self.known_directory(root.as_fd());
                stale.extend(known.into_iter().map(Stale::Listing));
                continue;
            }
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let Ok(parent) = opening::beneath(&root, parent, flags, resolve) else {
                continue;
            };
            let name = OsStr::from_bytes(name);
            if is_name {
                for known in self.known_directory(parent.as_fd()) {
                    stale.push(Stale::Name(known, name.to_owned()));
                    stale.push(Stale::Listing(known));
                }
            }
            if let Ok(stat) = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                let known = self.nodes.in_all_views(stat.st_dev, stat.st_ino);
                stale.extend(known.into_iter().map(Stale::Listing));
            }
        }
        by.cache.invalidate(stale);
        Ok(())
    }
}
