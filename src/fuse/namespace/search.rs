//! Search permission on the path to an item that is reached by its IBIp or in `.mint`.
//!
//! In the rep tree the kernel checks each level above an item. A path that does not lead through these
//! levels must not give more access: the native filesystem is asked whether the caller could search them,
//! and the kernel does not cache the name, so that it is asked again for every user.

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::AtFlags;

use super::{Entry, ErrnoResult, NameLifetime, Namespace, Stale};
use crate::archive::store::Item;
use crate::archive::tree::Place;
use crate::fuse::inode::{Node, NodeKind, View};
use crate::os::caller::Caller;

/// The permission bits of a level that every user may search.
const SEARCHABLE: u32 = 0o111;

impl Namespace {
    /// The entry of an item's directory, for a caller whose path does not lead through the levels above it.
    pub(super) fn item_entry_beside(
        &self,
        caller: &Caller,
        item: &Item,
        view: View,
    ) -> ErrnoResult<Entry> {
        let is_restricted = self.check_search(caller, item)?;
        let entry = self.item_entry(item, view)?;
        let lifetime = if is_restricted {
            NameLifetime::Uncached
        } else {
            entry.lifetime
        };
        Ok(Entry { lifetime, ..entry })
    }

    /// EACCES if a caller may not search the levels above an item. Returns whether there are users who may
    /// not.
    pub(super) fn check_search(&self, caller: &Caller, item: &Item) -> ErrnoResult<bool> {
        let place = Place::of(&item.names);
        if !self.is_restricted(&place)? {
            return Ok(false);
        }
        caller.act(|| match self.archive.tree().open_for_reader(&place) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.errno()),
        })?;
        Ok(true)
    }

    fn is_restricted(&self, place: &Place) -> ErrnoResult<bool> {
        let directory = self.archive.tree().open_item(place)?;
        // Not `col/` itself; the kernel checks the item's own directory.
        let levels = place.as_str().split('/').count().saturating_sub(2);
        let mut above = String::from("..");
        for _ in 0..levels {
            let stat = rustix::fs::statat(directory.as_fd(), &above, AtFlags::empty())?;
            let path = format!("/proc/self/fd/{}/{above}", directory.as_raw_fd());
            let acl = rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0; 0][..]);
            if stat.st_mode & SEARCHABLE != SEARCHABLE || acl.is_ok() {
                return Ok(true);
            }
            above.push_str("/..");
        }
        Ok(false)
    }

    /// After the permissions of a level have changed: the names of the items below it in the IBIp tree, which
    /// the kernel may have cached.
    pub(super) fn stale_search(&self, level: &Node) -> Vec<Stale> {
        let NodeKind::Level(path) = &level.kind else {
            return Vec::new();
        };
        let below = format!("{}/", path.to_ascii_lowercase());
        let mut stale = Vec::new();
        for id in self.nodes.items_in(View::Ibip) {
            if let Ok(Some(item)) = self.archive.store().item(id)
                && let Some(rep) = item.names.rep()
                && rep.as_str().to_ascii_lowercase().starts_with(&below)
                && let Some(ibip) = item.names.ibip()
            {
                let prefix = NodeKind::Prefix(ibip.prefix().to_owned());
                let prefix = self.nodes.id_of_virtual(&prefix);
                stale.push(Stale::Name(prefix, ibip.suffix().into()));
            }
        }
        stale
    }
}
