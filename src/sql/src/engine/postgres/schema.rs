//! Schemas in PostgreSQL, under the rules of those of SQLite: lists that only grow. Texts are compared as bytes, as
//! SQLite compares them.

use std::io::ErrorKind;

use super::super::{Connection, params};
use crate::error::StoreError;
use ibi::message;

/// A schema. It has a table `epoch` of one row, whose column `writes` each transaction that writes changes first.
#[derive(Debug)]
pub struct Schema {
    /// The table with the number of entries that a database has had.
    pub table: &'static str,
    /// One entry for each version.
    pub migrations: &'static [&'static str],
}

/// The tables of all schemas. A database has one of them, since the names of their other tables may be the same.
const TABLES: [&str; 2] = ["ibifs", "ibifs_registry"];

impl Schema {
    /// The number of entries that a database has had; None if it has none.
    pub fn version(&self, connection: &Connection) -> Result<Option<usize>, StoreError> {
        if !has_table(connection, self.table)? {
            return Ok(None);
        }
        let sql = format!("SELECT version FROM {}", self.table);
        let found: Option<i64> = connection.first(&sql, &[], |row| row.get(0))?;
        Ok(found.and_then(|found| usize::try_from(found).ok()))
    }

    /// Checks, without writing, that the database has the schema that this program knows.
    pub fn check(&self, connection: &Connection) -> Result<(), StoreError> {
        let known = self.migrations.len();
        match self.version(connection)?.unwrap_or_default() {
            found if found > known => Err(StoreError::Newer { found, known }),
            found if found < known => Err(StoreError::Older { found }),
            _ => Ok(()),
        }
    }

    /// Updates the database to the newest schema. Fails if a newer ibifs has written it, or if it has another one.
    pub fn migrate(&self, connection: &Connection) -> Result<(), StoreError> {
        let Connection::Postgres(server) = connection else {
            return Ok(());
        };
        let (table, known) = (self.table, self.migrations.len());
        let found = self.version(connection)?;
        let missing =
            self.migrations
                .get(found.unwrap_or_default()..)
                .ok_or(StoreError::Newer {
                    found: found.unwrap_or_default(),
                    known,
                })?;
        if missing.is_empty() {
            return Ok(());
        }
        for other in TABLES.into_iter().filter(|it| *it != table) {
            if found.is_none() && has_table(connection, other)? {
                return Err(StoreError::Server {
                    place: server.place().to_owned(),
                    kind: ErrorKind::AlreadyExists,
                    what: message!("it holds other data of ibifs; name an empty database"),
                });
            }
        }
        // Two hosts may do this at once: the second waits for the row of the first, or for its tables. The server may
        // refuse to make a table that appears meanwhile.
        let created = server.batch(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (one BIGINT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL);
             INSERT INTO {table} VALUES (1, 0) ON CONFLICT DO NOTHING"
        ));
        if let Err(error) = created
            && self.version(connection)?.is_none()
        {
            return Err(error);
        }
        server.batch("BEGIN")?;
        let migrated = (|| {
            let sql = format!("SELECT version FROM {table} WHERE one = ?1 FOR UPDATE");
            let found: i64 = connection.value(&sql, params![1_i64])?;
            let missing = self
                .migrations
                .get(usize::try_from(found).unwrap_or_default()..);
            for migration in missing.unwrap_or_default() {
                server.batch(migration)?;
            }
            let known = i64::try_from(known).unwrap_or(i64::MAX);
            let sql = format!("UPDATE {table} SET version = ?1");
            connection.execute(&sql, params![known])
        })();
        server.end(migrated)
    }
}

fn has_table(connection: &Connection, table: &str) -> Result<bool, StoreError> {
    let sql = format!(
        "SELECT 1 FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_name = '{table}'"
    );
    connection.exists(&sql, &[])
}
