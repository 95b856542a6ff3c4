//! Copies the index as it is at one instant to a file: with SQLite's backup interface, from a server row by row.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{Store, StoreError, check_file, file_in};
use crate::sql::database::{self, OpenFor};
use crate::sql::engine::{self, Sync, Value};

impl Store {
    /// Copies the current contents of the index to a new database in a directory, without blocking
    /// writers. The copy is on disk when this returns.
    pub fn copy_to(&self, directory: BorrowedFd<'_>) -> Result<(), StoreError> {
        check_file(directory, OpenFor::Writing)?;
        let source = self.lock();
        match &*source {
            engine::Connection::Sqlite(connection) => {
                at_once(connection.raw(), &file_in(directory))?;
                // Files may change before they are copied, too.
                let (target, _directory) = Store::open_file(directory)?;
                target.execute("DELETE FROM content", &[])
            }
            engine::Connection::Postgres(server) => server.at_one_instant(|| {
                let (target, _directory) = Store::open_file(directory)?;
                rows(&source, &target, TABLES)
            }),
        }
    }
}

/// The tables and their columns, each after those that it refers to.
const TABLES: &[(&str, &str)] = &[
    (
        "item",
        "id, rep, rep_key, ibip, ibip_key, state, service_rep, service_ibip, language, target, removed_at, life, sidecar, changed",
    ),
    (
        "relation",
        "source, kind, target_rep, target_rep_key, target_ibip, target_ibip_key, speaker",
    ),
    ("alias", "name, item"),
    ("ledger", "one, last, reserved"),
    ("unsettled", "item, uid, gid, mode"),
    ("facts", "one, text"),
    ("touched", "level"),
    ("joint", "number, places, before"),
    ("epoch", "one, number"),
    (
        "relation_change",
        "source, kind, target, target_rep, target_ibip, declared, changed",
    ),
    ("event_item", "name, first"),
    ("event_log", "one, size"),
    ("event", "number, item, salt, line"),
];

/// Replaces all rows of tables by those of another database.
pub(super) fn rows(
    source: &engine::Connection,
    target: &engine::Connection,
    tables: &[(&str, &str)],
) -> Result<(), StoreError> {
    target.transact(Sync::Now, |target| {
        for (table, _) in tables.iter().rev() {
            target.execute(&format!("DELETE FROM {table}"), &[])?;
        }
        for (table, columns) in tables {
            let count = columns.split(',').count();
            let marks: Vec<String> = (1..=count).map(|number| format!("?{number}")).collect();
            // Several hosts may have left a mark of the same level.
            let insert = format!(
                "INSERT INTO {table} ({columns}) VALUES ({}) ON CONFLICT DO NOTHING",
                marks.join(", ")
            );
            source.visit(&format!("SELECT {columns} FROM {table}"), &[], |row| {
                let cells = (0..count).map(|column| row.cell(column));
                let cells = cells.collect::<Result<Vec<_>, _>>()?;
                let values: Vec<Value<'_>> = cells.iter().map(|cell| cell.value()).collect();
                target.execute(&insert, &values)
            })?;
        }
        Ok(())
    })
}

/// Copies the current contents of a database to one at a path that was checked.
pub(super) fn at_once(source: &Connection, target: &Path) -> Result<(), StoreError> {
    let mut target = Connection::open(target).map_err(database::plain)?;
    let backup = Backup::new(source, &mut target)?;
    // A copy in several steps starts again after each write by another connection.
    while backup.step(-1)? != StepResult::Done {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
