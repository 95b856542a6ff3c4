//! The items that this process has recorded last. A program that fills an item causes several questions for it, which would
//! be a query each. Kept only where no other process writes the index, and changed under the lock of the connection.

use super::{Item, ItemId};
use crate::archive::lock_order::{Rank, RankedMutex};

/// The most items that are kept: more than rsync makes directories before it fills the first.
const MOST: usize = 512;

/// The items, each in the slot of its number.
#[derive(Debug)]
pub(super) struct Recent(RankedMutex<Vec<Option<Item>>>);

fn slot(id: ItemId) -> usize {
    usize::try_from(id.0.unsigned_abs()).unwrap_or_default() % MOST
}

impl Recent {
    /// Keeps no item.
    pub(super) fn none() -> Recent {
        Recent(RankedMutex::new(Rank::Leaf, Vec::new()))
    }

    /// Keeps items from now on.
    pub(super) fn some() -> Recent {
        Recent(RankedMutex::new(Rank::Leaf, vec![None; MOST]))
    }

    /// Notes an item as it is recorded now.
    pub(super) fn note(&self, item: Item) {
        if let Some(kept) = self.0.lock().get_mut(slot(item.id)) {
            *kept = Some(item);
        }
    }

    /// The item with a number.
    pub(super) fn item(&self, id: ItemId) -> Option<Item> {
        let kept = self.0.lock();
        kept.get(slot(id))?.clone().filter(|item| item.id == id)
    }

    /// Forgets all items: some of them may be recorded otherwise.
    pub(super) fn clear(&self) {
        self.0.lock().fill(None);
    }
}
