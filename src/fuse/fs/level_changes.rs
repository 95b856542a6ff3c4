//! A mounted tree, for what changes its items beside the mount.

use std::collections::HashSet;
use std::sync::Arc;

use super::Inner;
use crate::archive::store::ItemId;
use crate::archive::{Archive, Taken};

/// The mounted tree and the kernel's cache of it.
#[derive(Clone, Debug)]
pub struct LevelChanges(pub(super) Arc<Inner>);

impl LevelChanges {
    /// The Archive that is mounted.
    pub fn archive(&self) -> &Archive {
        self.0.namespace.archive()
    }

    /// Returns what finds the items in which programs have files open for writing: none when the mount has ended.
    pub fn items_being_written(&self) -> impl Fn() -> HashSet<ItemId> + Send + 'static {
        let inner = Arc::downgrade(&self.0);
        move || {
            let inner = inner.upgrade();
            inner.map_or_else(HashSet::new, |it| it.items_being_written())
        }
    }

    /// Invalidates what the kernel knows of items that were taken in.
    pub fn took(&self, taken: &[Taken]) {
        if !taken.is_empty() {
            self.0.namespace.took(&self.0.invalidator, taken);
        }
    }
}
