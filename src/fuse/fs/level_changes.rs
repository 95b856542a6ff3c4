//! A mounted tree, for what changes its items beside the mount.

use std::sync::Arc;

use super::Inner;
use crate::archive::{Archive, Taken};

/// The mounted tree and the kernel's cache of it.
#[derive(Clone, Debug)]
pub struct LevelChanges(pub(super) Arc<Inner>);

impl LevelChanges {
    /// The Archive that is mounted.
    pub fn archive(&self) -> &Archive {
        self.0.namespace.archive()
    }

    /// Invalidates what the kernel knows of items that were taken in.
    pub fn took(&self, taken: &[Taken]) {
        if !taken.is_empty() {
            self.0.namespace.took(&self.0.invalidator, taken);
        }
    }
}
