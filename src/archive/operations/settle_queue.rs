//! Minted items whose directories are not known to be on disk yet.
//!
//! The index is synced at each mint and lists them as unsettled. They are removed from that list in
//! groups, after a sync for which no caller waits.

use std::sync::Arc;

use super::ArchiveError;
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::store::{ItemId, Store};
use crate::archive::tree::{Place, Tree};
use crate::os::processors;

/// The number of minted items that are synced at once: as many as a start after a crash checks quickly.
const GROUP: usize = 1024;

/// A group up to this size is cheaper to sync item by item than with the whole filesystem.
const FEW: usize = 16;

/// A minted item whose directory is in place.
type Placed = (ItemId, Place);

/// The minted items that are waiting to be synced.
#[derive(Debug)]
pub(super) struct SettleQueue {
    tree: Arc<Tree>,
    store: Arc<Store>,
    placed: RankedMutex<Vec<Placed>>,
}

impl SettleQueue {
    pub(super) fn new(tree: Arc<Tree>, store: Arc<Store>) -> SettleQueue {
        SettleQueue {
            tree,
            store,
            placed: RankedMutex::new(Rank::Leaf, Vec::new()),
        }
    }

    /// Adds a directory that is in place. A full group is synced in a separate thread.
    pub(super) fn add(&self, id: ItemId, place: Place) {
        let group = {
            let mut placed = self.placed.lock();
            placed.push((id, place));
            match placed.len() {
                GROUP.. => std::mem::take(&mut *placed),
                _ => return,
            }
        };
        let (tree, store) = (Arc::clone(&self.tree), Arc::clone(&self.store));
        let settling = move || {
            if let Err(error) = settle(&tree, &store, &group) {
                log::warn!("cannot sync what was minted: {error}");
            }
        };
        if let Err(error) = processors::spawn_unbound("settle", settling) {
            // They stay in the index's list, and the next start checks them.
            log::warn!("cannot sync what was minted: {error}");
        }
    }

    /// Syncs all minted items that are in place.
    pub(super) fn settle_now(&self) -> Result<(), ArchiveError> {
        let group = std::mem::take(&mut *self.placed.lock());
        settle(&self.tree, &self.store, &group)
    }
}

fn settle(tree: &Tree, store: &Store, group: &[Placed]) -> Result<(), ArchiveError> {
    match group.len() {
        0 => return Ok(()),
        1..=FEW => {
            for (_, place) in group {
                match tree.sync_item(place) {
                    // The item was removed since; removals are synced.
                    Err(error) if error.errno() == rustix::io::Errno::NOENT => {}
                    other => other?,
                }
            }
        }
        _ => tree.sync_all()?,
    }
    let ids: Vec<ItemId> = group.iter().map(|(id, _)| *id).collect();
    Ok(store.settle(&ids)?)
}
