//! Transactions. Each is the only one that writes, and is synced at once or with the next one that is.

use super::{Store, StoreError};
use crate::sql::engine::{Connection, Sync};

impl Store {
    /// Runs one transaction that writes.
    pub(super) fn write<T>(
        &self,
        sync: Sync,
        change: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.lock().transact(sync, change)
    }
}
