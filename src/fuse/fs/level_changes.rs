//! A mounted tree, for what changes its items beside the mount, and for questions that do not come from the kernel.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use crate::archive::store::ItemId;
use crate::archive::{Archive, ArchiveError, RunAs, SearchPage, Taken};
use crate::formats::question::Address;
use crate::formats::search::SearchQuery;
use crate::os::caller::Caller;

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

    /// Sets the address of the daemon's socket, which the root of the mount then has as an attribute.
    pub fn set_socket(&self, address: &Address) {
        let _ = self.0.socket.set(address.to_text());
    }

    /// Returns what [`Namespace::search`] does.
    ///
    /// [`Namespace::search`]: crate::fuse::namespace::Namespace::search
    pub fn search(
        &self,
        caller: &Caller,
        act: RunAs<'_>,
        query: &SearchQuery,
        most: usize,
        timeout: Duration,
    ) -> Result<Option<SearchPage>, ArchiveError> {
        self.0.namespace.search(caller, act, query, most, timeout)
    }

    /// Invalidates what the kernel knows of items that were taken in.
    pub fn took(&self, taken: &[Taken]) {
        if !taken.is_empty() {
            self.0.namespace.took(&self.0.invalidator, taken);
        }
    }
}
