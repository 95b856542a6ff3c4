//! The number of accesses to items, as far as it was recorded.
//!
//! This is a database of its own, because it is not an index of the tree: the counts exist nowhere
//! else. If it is lost, only the counts are lost.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rusqlite::{Connection, OptionalExtension};

use super::{StoreError, beside, copy};
use crate::archive::database::{self, OpenFor};
use ibi::message;

/// File name of the database.
pub const ACCESSES_FILE: &str = "accesses.sqlite3";

/// As in the relation store: one entry for each version, and no entry is ever changed.
const MIGRATIONS: &[&str] = &["
    -- An item that was reached, by the name that it had then.
    CREATE TABLE access (
        name  TEXT PRIMARY KEY,
        count INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
"];

/// The open database.
#[derive(Debug)]
pub struct Accesses {
    connection: Connection,
    /// The directory of the database; SQLite uses its path until the connection above is closed.
    _directory: OwnedFd,
}

impl Accesses {
    /// Opens the database in a store's directory, and creates it if necessary.
    pub fn open(directory: BorrowedFd<'_>) -> Result<Accesses, StoreError> {
        let opened = Accesses::opened(directory, OpenFor::Writing)?;
        opened.ok_or_else(|| StoreError::Broken {
            what: message!("{file} is gone again", file = ACCESSES_FILE),
        })
    }

    /// Opens the database if it exists.
    pub fn open_if_there(directory: BorrowedFd<'_>) -> Result<Option<Accesses>, StoreError> {
        Accesses::opened(directory, OpenFor::Reading)
    }

    fn opened(directory: BorrowedFd<'_>, purpose: OpenFor) -> Result<Option<Accesses>, StoreError> {
        let opened = beside::open(directory, ACCESSES_FILE, purpose, MIGRATIONS)?;
        Ok(opened.map(|(connection, directory)| Accesses {
            connection,
            _directory: directory,
        }))
    }

    /// Adds accesses to items, by their names: all or none.
    pub fn add<'a>(
        &mut self,
        counted: impl IntoIterator<Item = (&'a String, &'a u64)>,
    ) -> Result<(), StoreError> {
        let transaction = database::writing(&mut self.connection)?;
        for (name, count) in counted {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            transaction
                .prepare_cached(
                    "INSERT INTO access VALUES (?1, ?2)
                     ON CONFLICT DO UPDATE SET count = count + excluded.count",
                )?
                .execute((name, count))?;
        }
        Ok(transaction.commit()?)
    }

    /// The number of accesses to an item.
    pub fn of(&self, name: &str) -> Result<u64, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT count FROM access WHERE name = ?1")?;
        let found: Option<i64> = statement.query_row([name], |row| row.get(0)).optional()?;
        Ok(found.map_or(0, |count| u64::try_from(count).unwrap_or(0)))
    }

    /// Copies the current contents to the database of another store, without blocking writers.
    pub fn copy_to(&self, directory: BorrowedFd<'_>) -> Result<(), StoreError> {
        let name = OsStr::new(ACCESSES_FILE);
        database::check(directory, name, OpenFor::Writing).map_err(|unfit| StoreError::Broken {
            what: message!("{file}: {unfit}", file = ACCESSES_FILE, unfit),
        })?;
        copy::at_once(&self.connection, &database::path_in(directory, name))
    }
}
