//! The way to an item that is met beside it: by its IBIp, or in `.mint`.
//!
//! The levels above an item protect it in the rep tree, where the kernel looks at each. Where an item is met
//! without passing them, the native filesystem is asked whether the caller could; and the kernel does not
//! remember the name, so that each user is asked about anew, whoever was let through before.

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::AtFlags;

use super::{Entry, Namespace, Outcome, Stale};
use crate::archive::store::Item;
use crate::archive::tree::Place;
use crate::fuse::inode::{Kind, Node, View};
use crate::os::caller::Caller;

/// The bits that let everybody through a level.
const PASSABLE: u32 = 0o111;

impl Namespace {
    /// The entry of an item's directory, for a caller who has not passed the levels above it.
    pub(super) fn item_entry_beside(
        &self,
        caller: &Caller,
        item: &Item,
        view: View,
    ) -> Outcome<Entry> {
        let is_restricted = self.check_way(caller, item)?;
        let entry = self.item_entry(item, view)?;
        Ok(Entry {
            lasting: entry.lasting && !is_restricted,
            ..entry
        })
    }

    /// Refuses a caller whom the levels above an item do not let through; whether they are not open to
    /// everybody.
    pub(super) fn check_way(&self, caller: &Caller, item: &Item) -> Outcome<bool> {
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

    fn is_restricted(&self, place: &Place) -> Outcome<bool> {
        let directory = self.archive.tree().open_item(place)?;
        // Without the area; the item itself is looked at by the kernel.
        let levels = place.as_str().split('/').count().saturating_sub(2);
        let mut above = String::from("..");
        for _ in 0..levels {
            let stat = rustix::fs::statat(directory.as_fd(), &above, AtFlags::empty())?;
            let path = format!("/proc/self/fd/{}/{above}", directory.as_raw_fd());
            let acl = rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0; 0][..]);
            if stat.st_mode & PASSABLE != PASSABLE || acl.is_ok() {
                return Ok(true);
            }
            above.push_str("/..");
        }
        Ok(false)
    }

    /// After who may pass a level has changed: the names beside the items below it that the kernel may
    /// remember.
    pub fn stale_ways(&self, level: &Node) -> Vec<Stale> {
        let Kind::Level(path) = &level.kind else {
            return Vec::new();
        };
        let below = format!("{}/", path.to_ascii_lowercase());
        let mut stale = Vec::new();
        for id in self.nodes.items_met(View::Ibip) {
            if let Ok(Some(item)) = self.archive.store().item(id)
                && let Some(rep) = item.names.rep()
                && rep.as_str().to_ascii_lowercase().starts_with(&below)
                && let Some(ibip) = item.names.ibip()
            {
                let prefix = Kind::Prefix(ibip.prefix().to_owned());
                let prefix = self.nodes.number_of_virtual(&prefix);
                stale.push(Stale::Name(prefix, ibip.suffix().into()));
            }
        }
        stale
    }
}
