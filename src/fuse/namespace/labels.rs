//! The labels of `.mint`: names that users have given to minted items. Each user has separate labels.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;

use rustix::io::Errno;

use super::names::text;
use super::{Entry, Namespace};
use crate::archive::store::{Item, ItemId};
use crate::fuse::errno;
use crate::fuse::inode::{NodeKind, View};
use crate::fuse::inside::ErrnoResult;
use crate::os::caller::Caller;

/// The most labels of a user. A new one replaces the oldest.
const LABELS: usize = 10_000;

/// The labels of all users. No other lock is taken under its lock.
#[derive(Debug, Default)]
pub(super) struct Labels {
    inner: Mutex<(u64, HashMap<u32, OfUser>)>,
}

/// A user's labels, each with its item and a sequence number.
type OfUser = BTreeMap<String, (ItemId, u64)>;

impl Labels {
    /// The item of a user's label.
    pub(super) fn find(&self, uid: u32, label: &str) -> Option<ItemId> {
        let inner = self.inner.lock();
        let (item, _) = inner.1.get(&uid)?.get(label)?;
        Some(*item)
    }

    /// Adds a label to an item. Returns false if the user has that label already.
    pub(super) fn add(&self, uid: u32, label: &str, item: ItemId) -> bool {
        let mut inner = self.inner.lock();
        let (next, users) = &mut *inner;
        let labels = users.entry(uid).or_default();
        if labels.contains_key(label) {
            return false;
        }
        if labels.len() >= LABELS {
            let oldest = labels.iter().min_by_key(|(_, (_, order))| *order);
            if let Some(oldest) = oldest.map(|(label, _)| label.clone()) {
                labels.remove(&oldest);
            }
        }
        *next += 1;
        labels.insert(label.to_owned(), (item, *next));
        true
    }

    /// Removes a user's label and returns its item.
    pub(super) fn forget(&self, uid: u32, label: &str) -> Option<ItemId> {
        let mut inner = self.inner.lock();
        let labels = inner.1.get_mut(&uid)?;
        let (item, _) = labels.remove(label)?;
        if labels.is_empty() {
            inner.1.remove(&uid);
        }
        Some(item)
    }

    /// Removes all labels of an item.
    pub(super) fn forget_item(&self, item: ItemId) {
        let mut inner = self.inner.lock();
        for labels in inner.1.values_mut() {
            labels.retain(|_, (labelled, _)| *labelled != item);
        }
    }

    /// A user's labels.
    pub(super) fn of(&self, uid: u32) -> Vec<(String, ItemId)> {
        let inner = self.inner.lock();
        let labels = inner.1.get(&uid).into_iter().flatten();
        labels
            .map(|(label, (item, _))| (label.clone(), *item))
            .collect()
    }
}

impl Namespace {
    /// Looks up `.mint/NAME` and `.mint/.NAME` for the caller's user.
    pub(super) fn lookup_label(&self, caller: &Caller, name: &OsStr) -> ErrnoResult<Entry> {
        let name = text(name)?;
        let (label, is_link) = match name.strip_prefix('.') {
            Some(label) => (label, true),
            None => (name, false),
        };
        let item = self.labelled(caller, label)?;
        if is_link {
            let target = format!("../{}", item.names.preferred()).into_bytes();
            // In a sticky directory a user removes what belongs to that user.
            self.virtual_entry(View::Mint, NodeKind::OwnLink(target, caller.uid))
        } else {
            self.item_entry_beside(caller, &item, View::Mint)
        }
    }

    /// The item of a label of the caller's user.
    pub(super) fn labelled(&self, caller: &Caller, label: &str) -> ErrnoResult<Item> {
        let id = self.labels.find(caller.uid, label).ok_or(Errno::NOENT)?;
        self.archive
            .store()
            .item(id)
            .map_err(errno::of_index)?
            .ok_or(Errno::NOENT)
    }

    /// `rm .mint/.NAME` removes the label and leaves the item.
    pub(super) fn forget_label(&self, caller: &Caller, name: &str) -> ErrnoResult<()> {
        let label = name.strip_prefix('.').ok_or(Errno::PERM)?;
        match self.labels.forget(caller.uid, label) {
            Some(_) => Ok(()),
            None => Err(Errno::NOENT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_each_users_own_and_the_oldest_gives_way() {
        let labels = Labels::default();
        // The first one is the last in the alphabet.
        assert!(labels.add(1, "z", ItemId(1)));
        assert!(!labels.add(1, "z", ItemId(2)));
        assert!(labels.add(2, "a", ItemId(2)));
        assert_eq!(labels.find(1, "z"), Some(ItemId(1)));
        assert_eq!(labels.find(2, "a"), Some(ItemId(2)));
        assert_eq!(labels.find(2, "z"), None);
        for number in 0..LABELS {
            assert!(labels.add(1, &format!("b{number}"), ItemId(3)));
        }
        assert_eq!(labels.find(1, "z"), None);
        assert!(labels.find(1, "b0").is_some());
        assert_eq!(labels.of(1).len(), LABELS);
        assert_eq!(labels.find(2, "a"), Some(ItemId(2)));
        assert_eq!(labels.forget(2, "a"), Some(ItemId(2)));
        assert_eq!(labels.forget(2, "a"), None);
    }

    #[test]
    fn a_removed_item_loses_its_labels_and_no_other_item_does() {
        let labels = Labels::default();
        for (uid, label, item) in [(1, "a", 1), (1, "b", 2), (2, "a", 1), (2, "c", 3)] {
            assert!(labels.add(uid, label, ItemId(item)));
        }
        labels.forget_item(ItemId(1));
        assert_eq!(labels.of(1), [("b".to_owned(), ItemId(2))]);
        assert_eq!(labels.of(2), [("c".to_owned(), ItemId(3))]);
    }
}
