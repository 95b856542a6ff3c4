//! Transactions. Each is immediate, and is synced at once or with the next one that is.

use rusqlite::{Connection, TransactionBehavior};

use super::{Store, StoreError};

/// When a commit reaches the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Now,
    Later,
}

impl Sync {
    /// The value of SQLite's `synchronous` pragma for it, with a write-ahead log.
    pub(super) fn word(self) -> &'static str {
        match self {
            Sync::Now => "full",
            Sync::Later => "normal",
        }
    }
}

impl Store {
    /// Runs one immediate transaction.
    pub(super) fn write<T>(
        &self,
        sync: Sync,
        change: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        transact(&mut self.lock(), sync, change)
    }
}

/// Runs one immediate transaction.
pub(super) fn transact<T>(
    connection: &mut Connection,
    sync: Sync,
    change: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if sync == Sync::Now {
        connection.pragma_update(None, "synchronous", sync.word())?;
    }
    let written = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let written = change(&transaction)?;
        transaction.commit()?;
        Ok(written)
    })();
    if sync == Sync::Now {
        connection.pragma_update(None, "synchronous", Sync::Later.word())?;
    }
    written.map_err(|error: StoreError| error.with_cause(connection))
}
