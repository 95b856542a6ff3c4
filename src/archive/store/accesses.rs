//! The number of accesses to items, as far as it was recorded.
//!
//! This is a database of its own, or a table of its own in a server, because it is not an index of the tree: the
//! counts exist nowhere else. If it is lost, only the counts are lost.

use std::os::fd::BorrowedFd;

use super::StoreError;
use super::other_databases::{Named, Shared};
use crate::sql::database::OpenFor;
use crate::sql::engine::{Connection, Sync, params};
use crate::sql::index_url::IndexUrl;
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

fn named() -> Named {
    let remedy = message!(
        "end the services of the store, and put the file of a backup in its place, or remove it: then counting starts over"
    );
    Named::new(ACCESSES_FILE, remedy)
}

/// The open database.
#[derive(Debug)]
pub struct Accesses(Shared);

impl Accesses {
    /// Opens the counts of the store in a directory, whose index is in `index` if not in a file. Creates the database if
    /// necessary.
    pub fn open(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
    ) -> Result<Accesses, StoreError> {
        let opened = Accesses::opened(directory, index, OpenFor::Writing)?;
        opened.ok_or_else(|| named().missing())
    }

    /// Opens the counts if there are any.
    pub fn open_if_there(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
    ) -> Result<Option<Accesses>, StoreError> {
        Accesses::opened(directory, index, OpenFor::Reading)
    }

    fn opened(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
        purpose: OpenFor,
    ) -> Result<Option<Accesses>, StoreError> {
        let opened = Shared::open(
            directory,
            index,
            ACCESSES_FILE,
            &named(),
            purpose,
            MIGRATIONS,
        )?;
        Ok(opened.map(Accesses))
    }

    /// Adds accesses to items, by their names: all or none.
    pub fn add<'a>(
        &mut self,
        counted: impl IntoIterator<Item = (&'a String, &'a u64)>,
    ) -> Result<(), StoreError> {
        let counted: Vec<_> = counted.into_iter().collect();
        let add = |connection: &Connection| {
            for (name, count) in &counted {
                let count = i64::try_from(**count).unwrap_or(i64::MAX);
                connection.execute(
                    "INSERT INTO access (name, count) VALUES (?1, ?2)
                     ON CONFLICT (name) DO UPDATE SET count = access.count + excluded.count",
                    params![*name, count],
                )?;
            }
            Ok(())
        };
        self.0
            .run(|connection| connection.transact(Sync::Later, add))
    }

    /// The number of accesses to an item.
    pub fn of(&self, name: &str) -> Result<u64, StoreError> {
        let sql = "SELECT count FROM access WHERE name = ?1";
        let first =
            |connection: &Connection| connection.first(sql, params![name], |row| row.get(0));
        let found: Option<i64> = self.0.run(first)?;
        Ok(found.map_or(0, |count| u64::try_from(count).unwrap_or(0)))
    }

    /// Replaces the counts of a store in another directory, or with an index elsewhere, by these.
    pub fn copy_to(
        &self,
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
    ) -> Result<(), StoreError> {
        let target = Accesses::open(directory, index)?;
        self.0.copy_to(&target.0, &[("access", "name, count")])
    }
}
