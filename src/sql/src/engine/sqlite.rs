//! SQLite, a file in the store.

use rusqlite::config::DbConfig;
use rusqlite::{CachedStatement, Connection};

use super::{Sync, TransactionError, Value};
use crate::error::StoreError;

/// A connection to a database of SQLite.
#[derive(Debug)]
pub struct Sqlite(Connection);

/// Page cache of the store, as SQLite's negative number of KiB: the default.
const CACHE: i64 = -2_000;

/// Page cache during a refill.
const REFILL_CACHE: i64 = -65_536;

/// The value of SQLite's `synchronous` pragma, with a write-ahead log.
fn word(sync: Sync) -> &'static str {
    match sync {
        Sync::Now => "full",
        Sync::Later => "normal",
    }
}

impl Sqlite {
    /// A connection with the options that the store needs.
    pub fn prepared(connection: Connection) -> Result<Sqlite, StoreError> {
        connection.pragma_update(None, "foreign_keys", "on")?;
        connection.set_prepared_statement_cache_capacity(64);
        // Otherwise SQLite plans a statement again when a bound value changes that its planner has used.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Sqlite(connection))
    }

    /// The connection of the library.
    pub fn raw(&self) -> &Connection {
        &self.0
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, StoreError> {
        Ok(self.0.prepare_cached(sql)?)
    }

    pub(super) fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        let mut statement = self.prepare(sql)?;
        bind(&mut statement, params)?;
        Ok(statement.raw_execute().map(drop)?)
    }

    /// Without foreign keys a table is emptied at once, not row by row. The larger cache avoids writing a page
    /// each time a row is added to it.
    pub(super) fn refill_begins(&self) -> Result<(), StoreError> {
        self.0.pragma_update(None, "foreign_keys", "off")?;
        Ok(self.0.pragma_update(None, "cache_size", REFILL_CACHE)?)
    }

    pub(super) fn refill_ends(&self) -> Result<(), StoreError> {
        self.0.pragma_update(None, "cache_size", CACHE)?;
        self.0.pragma_update(None, "foreign_keys", "on")?;
        Ok(self.0.release_memory()?)
    }

    /// Begins a transaction. It is immediate: no other process writes between reading and writing.
    pub(super) fn begin(&self, sync: Sync) -> Result<(), StoreError> {
        let begun = (|| {
            self.end_abandoned()?;
            if sync == Sync::Now {
                self.0.pragma_update(None, "synchronous", word(sync))?;
            }
            self.execute("BEGIN IMMEDIATE", &[])
        })();
        if begun.is_err() {
            self.relax(sync)?;
        }
        begun.map_err(|error| error.with_cause(&self.0))
    }

    /// Ends a transaction: a commit, unless the change has failed.
    pub(super) fn end<T, E: TransactionError>(
        &self,
        sync: Sync,
        changed: Result<T, E>,
    ) -> Result<T, E> {
        let ended = changed.and_then(|value| {
            self.execute("COMMIT", &[])?;
            Ok(value)
        });
        if ended.is_err() && !self.0.is_autocommit() {
            // Some errors have ended the transaction already.
            let _ = self.execute("ROLLBACK", &[]);
        }
        self.relax(sync)?;
        ended.map_err(|error| error.map_engine(|error| error.with_cause(&self.0)))
    }

    /// Reads in one transaction.
    pub(super) fn at_one_instant<T, E: TransactionError>(
        &self,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.end_abandoned()?;
        self.execute("BEGIN", &[])?;
        let found = read();
        let ended = self.execute("ROLLBACK", &[]);
        let found = found?;
        ended?;
        Ok(found)
    }

    /// Ends a transaction in which a thread has panicked.
    fn end_abandoned(&self) -> Result<(), StoreError> {
        if self.0.is_autocommit() {
            return Ok(());
        }
        self.execute("ROLLBACK", &[])
    }

    fn relax(&self, sync: Sync) -> Result<(), StoreError> {
        if sync == Sync::Now {
            self.0
                .pragma_update(None, "synchronous", word(Sync::Later))?;
        }
        Ok(())
    }
}

/// Runs a statement that answers with rows.
pub(super) fn rows<'statement>(
    statement: &'statement mut CachedStatement<'_>,
    params: &[Value<'_>],
) -> Result<rusqlite::Rows<'statement>, StoreError> {
    bind(statement, params)?;
    Ok(statement.raw_query())
}

fn bind(statement: &mut CachedStatement<'_>, params: &[Value<'_>]) -> Result<(), StoreError> {
    for (number, value) in params.iter().enumerate() {
        statement.raw_bind_parameter(number + 1, value)?;
    }
    Ok(())
}
