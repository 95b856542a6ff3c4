//! The search indexes that a mount or a service keeps open.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{SearchIndexes, SearchScope, SearchStop};
use crate::archive::operations::{Archive, ArchiveError, RunAs};

/// After this time all items of the index of the public are read again: permissions can change without a change of the
/// index of the store.
const READ_AGAIN: Duration = Duration::from_secs(1800);

/// The search indexes of a scope, which are opened by the first search.
#[derive(Debug)]
pub struct SearchCache {
    scope: SearchScope,
    indexes: OnceLock<Arc<SearchIndexes>>,
    /// The time at which all items were read last. Held while the index is brought up to date.
    read: Mutex<Option<Instant>>,
}

impl SearchCache {
    /// Those of a scope; nothing is opened yet.
    pub fn of(scope: SearchScope) -> SearchCache {
        SearchCache {
            scope,
            indexes: OnceLock::new(),
            read: Mutex::default(),
        }
    }

    /// Opens the indexes: in the store, or temporary ones if that cannot be written.
    ///
    /// # Errors
    /// They can be neither opened nor made.
    pub fn open(&self, archive: &Archive) -> Result<&Arc<SearchIndexes>, ArchiveError> {
        if let Some(indexes) = self.indexes.get() {
            return Ok(indexes);
        }
        let opened = Arc::new(archive.search_indexes(self.scope)?);
        Ok(self.indexes.get_or_init(|| opened))
    }

    /// Brings the descriptions up to date. None if that takes longer than `timeout`; then more of them are up to date
    /// the next time.
    ///
    /// # Errors
    /// The indexes, or the index of the store, cannot be read or written.
    pub fn up_to_date(
        &self,
        archive: &Archive,
        act: RunAs<'_>,
        timeout: Duration,
    ) -> Result<Option<&Arc<SearchIndexes>>, ArchiveError> {
        let indexes = self.open(archive)?;
        let until = Instant::now() + timeout;
        let Some(mut read) = self.read.try_lock_until(until) else {
            return Ok(None);
        };
        let since = *read.get_or_insert_with(Instant::now);
        if self.scope == SearchScope::Public && since.elapsed() >= READ_AGAIN {
            indexes.descriptions.read_again()?;
            *read = Some(Instant::now());
        }
        let stop = &mut |_| SearchStop::at(until);
        let is_current = archive
            .read_as(act)
            .update_search(&indexes.descriptions, stop)?;
        Ok(is_current.then_some(indexes))
    }
}
