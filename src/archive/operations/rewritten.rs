//! The items whose sidecars the Archive itself has written.

use crate::archive::lock_order::{Rank, RankedMutex};
use crate::formats::item::Names;

/// A list that a front end takes from time to time to invalidate its caches of these items.
#[derive(Debug)]
pub(super) struct RewrittenSidecars(RankedMutex<Vec<Names>>);

impl Default for RewrittenSidecars {
    fn default() -> RewrittenSidecars {
        RewrittenSidecars(RankedMutex::new(Rank::Leaf, Vec::new()))
    }
}

impl RewrittenSidecars {
    pub(super) fn add(&self, names: Names) {
        self.0.lock().push(names);
    }

    /// Takes all items added since the last call.
    pub(super) fn take(&self) -> Vec<Names> {
        std::mem::take(&mut *self.0.lock())
    }
}
