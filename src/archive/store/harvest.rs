//! The state reported to harvesters: the datestamp of each record and a digest of its content.
//!
//! This is a database of its own, or tables of their own in a server, because it is not an index of the tree: it
//! records when a change was noticed, which the tree does not show. If it is lost, no record is lost: every record
//! gets a new datestamp, and harvesters fetch it again.
//!
//! No change is missed: a datestamp is the second in which a change is written here, and a list
//! reads the clock within a transaction as well. A change that a list does not contain yet gets a
//! datestamp that is not before the date of that list. In a server that clock is the server's, and a harvester may ask
//! any of the hosts that share it.

mod changes;

use parking_lot::Mutex;
use std::os::fd::BorrowedFd;

use super::StoreError;
use super::other_databases::{Named, Shared};
use super::query::limit;
use crate::sql::database::OpenFor;
use crate::sql::engine::{Connection, Sync, params};
use crate::sql::index_url::IndexUrl;
use ibi::message;

pub use changes::{ChangePart, RecordChange};

/// File name of the database.
pub const HARVEST_FILE: &str = "harvest.sqlite3";

/// As in the relation store: one entry for each version, and no entry is ever changed.
const MIGRATIONS: &[&str] = &["
    -- One row a record that was ever reported. `mark` is a digest of what it said; NULL once it is deleted.
    CREATE TABLE record (
        name      TEXT PRIMARY KEY,
        datestamp INTEGER NOT NULL,
        mark      BLOB
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX record_by_date ON record (datestamp, name);

    -- Whether all records of the store have been looked at since the database was made.
    CREATE TABLE whole (one INTEGER PRIMARY KEY CHECK (one = 1)) STRICT;
",
"
    -- The datestamp with which a record was reported first, or first again after it was deleted; NULL where that is not
    -- known.
    ALTER TABLE record ADD COLUMN since INTEGER;

    -- Since when no change was missed.
    ALTER TABLE whole ADD COLUMN since INTEGER;
    UPDATE whole SET since = (SELECT max(datestamp) FROM record);
",
"
    -- Records that are there in a form that not all have: the last byte of their mark is 1.
    CREATE INDEX record_with_form ON record (datestamp, name) WHERE mark IS NULL OR substr(mark, -1) = x'01';
"];

/// The condition for the records of [`Window::with_form`], as the index of each engine has it.
fn with_form(connection: &Connection) -> &'static str {
    match connection.server() {
        None => "(mark IS NULL OR substr(mark, -1) = x'01')",
        Some(_) => "(mark IS NULL OR substr(mark, length(mark)) = '\\x01'::bytea)",
    }
}

/// The present state of an item's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// It has a record.
    Present {
        /// A digest of what it says.
        digest: Vec<u8>,
        /// Whether it has the form that not all have.
        has_form: bool,
    },
    /// It was removed. Harvesters get a deleted record, whether or not they knew the item.
    Removed,
    /// It has no record, or none that is public. Only a record that was reported before is reported
    /// as deleted.
    Withdrawn,
}

/// A record that is or was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The canonical spelling of the item's name.
    pub name: String,
    /// The time at which its last change was noticed, in Unix seconds.
    pub datestamp: i64,
    /// Whether the record is deleted.
    pub is_deleted: bool,
}

/// The digest with which a record was reported, if it is not deleted, and the record.
type ReportedRecord = (Option<Vec<u8>>, Stamped);

/// A page of records, in the order of datestamp and name.
#[derive(Debug)]
pub struct HarvestPage {
    /// The records.
    pub records: Vec<Stamped>,
    /// Whether more follow.
    pub has_more: bool,
    /// The time at which they were read, in Unix seconds.
    pub at: i64,
}

/// Selects the records that are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// From this second, inclusive.
    pub from: Option<i64>,
    /// Until this second, inclusive.
    pub until: Option<i64>,
    /// After the record of this datestamp and name.
    pub after: Option<(i64, String)>,
    /// Those whose names begin with this and a slash.
    pub below: Option<String>,
    /// Deleted ones, and those that are there in the form that not all have.
    pub with_form: bool,
}

impl Window {
    /// A condition in SQL.
    fn of_form(&self, connection: &Connection) -> &'static str {
        if self.with_form {
            with_form(connection)
        } else {
            "1 = 1"
        }
    }

    /// Returns the bounds of the names: they begin with `below` and a slash.
    fn span(&self) -> [Option<String>; 2] {
        // The character after the slash.
        [
            self.below.as_ref().map(|below| format!("{below}/")),
            self.below.as_ref().map(|below| format!("{below}0")),
        ]
    }
}

fn named() -> Named {
    let remedy = message!(
        "end the services of the store and remove it: then harvesters collect all records again, and deletions of records whose items are still there are forgotten"
    );
    Named::new(HARVEST_FILE, remedy)
}

fn opened(
    directory: BorrowedFd<'_>,
    index: Option<&IndexUrl>,
    purpose: OpenFor,
) -> Result<Option<Shared>, StoreError> {
    Shared::open(
        directory,
        index,
        HARVEST_FILE,
        &named(),
        purpose,
        MIGRATIONS,
    )
}

/// The open database.
#[derive(Debug)]
pub struct Harvest {
    database: Mutex<Shared>,
    is_kept: bool,
}

impl Harvest {
    /// Opens the records of the store in a directory, whose index is in `index` if not in a file. Creates the database
    /// if necessary.
    pub fn open(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
    ) -> Result<Harvest, StoreError> {
        let opened = opened(directory, index, OpenFor::Writing)?;
        let database = opened.ok_or_else(|| named().missing())?;
        Ok(Harvest {
            database: Mutex::new(database),
            is_kept: true,
        })
    }

    /// Replaces the records of a store with an index elsewhere by those of the store in a directory, if it has any.
    pub fn copy_all(
        directory: BorrowedFd<'_>,
        from: Option<&IndexUrl>,
        to: Option<&IndexUrl>,
    ) -> Result<(), StoreError> {
        let Some(source) = opened(directory, from, OpenFor::Reading)? else {
            return Ok(());
        };
        let target = Harvest::open(directory, to)?;
        let tables = [
            ("record", "name, datestamp, mark, since"),
            ("whole", "one, since"),
        ];
        source.copy_to(&target.database.lock(), &tables)
    }

    /// Opens a database that ends with this process.
    pub fn temporary() -> Result<Harvest, StoreError> {
        Ok(Harvest {
            database: Mutex::new(Shared::temporary(MIGRATIONS)?),
            is_kept: false,
        })
    }

    /// Whether the contents outlive this process.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Runs an action on the database.
    fn run<T>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.database.lock().run(act)
    }

    /// Runs `act` in a write transaction, so that nothing else is written or listed meanwhile.
    fn transact<T>(
        &self,
        act: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.run(|connection| connection.transact(Sync::Later, act))
    }

    /// Records the present state of items. An item whose state differs from the one reported before
    /// gets the present second as its datestamp. Returns the record of each item, None for one that
    /// was never reported.
    pub fn note(
        &self,
        states: &[(String, RecordState)],
        now: &dyn Fn() -> i64,
    ) -> Result<Vec<Option<Stamped>>, StoreError> {
        // In most cases nothing has changed, and a write transaction would only make others wait.
        let known = states.iter().map(|(name, state)| match self.known(name)? {
            None if *state == RecordState::Withdrawn => Ok(Some(None)),
            Some((digest, stamped)) if digest == state.digest() => Ok(Some(Some(stamped))),
            _ => Ok(None),
        });
        let known: Result<Vec<Option<Option<Stamped>>>, StoreError> = known.collect();
        if let Some(known) = known?.into_iter().collect() {
            return Ok(known);
        }
        self.transact(|connection| {
            let stamp = stamp(connection, now)?;
            let mut noted = Vec::new();
            for (name, state) in states {
                noted.push(match known_of(connection, name)? {
                    None if *state == RecordState::Withdrawn => None,
                    Some((digest, stamped)) if digest == state.digest() => Some(stamped),
                    _ => Some(put(connection, name, state, stamp)?),
                });
            }
            Ok(noted)
        })
    }

    fn known(&self, name: &str) -> Result<Option<ReportedRecord>, StoreError> {
        self.run(|connection| known_of(connection, name))
    }

    /// At most `most` of the records in a window.
    pub fn page(
        &self,
        window: &Window,
        most: usize,
        now: &dyn Fn() -> i64,
    ) -> Result<HarvestPage, StoreError> {
        self.transact(|connection| {
            let at = second(connection, now)?;
            // No name is empty, so this precedes all records of that second.
            let from = (window.from.unwrap_or(i64::MIN), String::new());
            let after = window
                .after
                .clone()
                .unwrap_or_else(|| from.clone())
                .max(from);
            let [first, last] = window.span();
            let sql = format!(
                "SELECT name, datestamp, mark IS NULL AS is_deleted FROM record
                 WHERE (datestamp, name) > (?1, ?2) AND datestamp <= ?3
                     AND (CAST(?4 AS TEXT) IS NULL OR name > ?4 AND name < ?5) AND {}
                 ORDER BY datestamp, name LIMIT ?6",
                window.of_form(connection)
            );
            let until = window.until.unwrap_or(i64::MAX);
            let values = params![
                after.0,
                after.1,
                until,
                first,
                last,
                limit(most.saturating_add(1))
            ];
            let mut records = connection.each(&sql, values, |row| {
                Ok(Stamped {
                    name: row.get("name")?,
                    datestamp: row.get("datestamp")?,
                    is_deleted: row.get("is_deleted")?,
                })
            })?;
            let has_more = records.len() > most;
            records.truncate(most);
            Ok(HarvestPage {
                records,
                has_more,
                at,
            })
        })
    }

    /// Returns the number of records in a window.
    pub fn count(&self, window: &Window) -> Result<u64, StoreError> {
        let [first, last] = window.span();
        let (from, until) = (
            window.from.unwrap_or(i64::MIN),
            window.until.unwrap_or(i64::MAX),
        );
        let count: i64 = self.run(|connection| {
            let sql = format!(
                "SELECT count(*) FROM record WHERE datestamp BETWEEN ?1 AND ?2
                     AND (CAST(?3 AS TEXT) IS NULL OR name > ?3 AND name < ?4) AND {}",
                window.of_form(connection)
            );
            connection.value(&sql, params![from, until, first, last])
        })?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The names of at most `most` records that are not deleted, in order, after a name.
    pub fn names_after(&self, name: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let sql =
            "SELECT name FROM record WHERE name > ?1 AND mark IS NOT NULL ORDER BY name LIMIT ?2";
        self.run(|connection| connection.each(sql, params![name, limit(most)], |row| row.get(0)))
    }

    /// Returns what the names of records begin with, as `of` has it from a name: at most so many. Each is found by one
    /// step in the index of names.
    pub fn beginnings(
        &self,
        of: &dyn Fn(&str) -> String,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT name FROM record WHERE name > ?1 ORDER BY name LIMIT 1";
        self.run(|connection| {
            let mut found: Vec<String> = Vec::new();
            let mut after = String::new();
            while found.len() < most {
                let next: Option<String> =
                    connection.first(sql, params![&after], |row| row.get(0))?;
                let Some(name) = next else {
                    break;
                };
                let beginning = of(&name);
                // The character after the slash.
                after = format!("{beginning}0");
                found.push(beginning);
            }
            Ok(found)
        })
    }

    /// The earliest datestamp of all records; None if the database is empty.
    pub fn earliest(&self) -> Result<Option<i64>, StoreError> {
        self.run(|connection| connection.value("SELECT min(datestamp) FROM record", &[]))
    }

    /// Whether all records of the store have been noted.
    pub fn is_whole(&self) -> Result<bool, StoreError> {
        self.run(|connection| connection.exists("SELECT 1 FROM whole", &[]))
    }

    /// Records that all records of the store have been noted.
    pub fn set_whole(&self, now: &dyn Fn() -> i64) -> Result<(), StoreError> {
        self.transact(|connection| {
            let stamp = stamp(connection, now)?;
            let sql = "INSERT INTO whole (one, since) VALUES (1, ?1) ON CONFLICT (one) DO NOTHING";
            connection.execute(sql, params![stamp])
        })
    }
}

impl RecordState {
    /// The value of the column `mark`.
    fn digest(&self) -> Option<Vec<u8>> {
        match self {
            RecordState::Present { digest, has_form } => {
                let mut mark = digest.clone();
                mark.push(u8::from(*has_form));
                Some(mark)
            }
            RecordState::Removed | RecordState::Withdrawn => None,
        }
    }
}

fn known_of(connection: &Connection, name: &str) -> Result<Option<ReportedRecord>, StoreError> {
    let sql = "SELECT datestamp, mark FROM record WHERE name = ?1";
    let found = connection.first(sql, params![name], |row| Ok((row.get(0)?, row.bytes(1)?)))?;
    Ok(found.map(|(datestamp, digest)| {
        let stamped = Stamped {
            name: name.to_owned(),
            datestamp,
            is_deleted: digest.is_none(),
        };
        (digest, stamped)
    }))
}

/// The present second, by the clock of the server if the records are in one.
fn second(connection: &Connection, now: &dyn Fn() -> i64) -> Result<i64, StoreError> {
    Ok(connection.seconds()?.unwrap_or_else(now))
}

/// The present second, or the last datestamp if the clock has been set back since.
fn stamp(connection: &Connection, now: &dyn Fn() -> i64) -> Result<i64, StoreError> {
    let last: Option<i64> = connection.value("SELECT max(datestamp) FROM record", &[])?;
    Ok(second(connection, now)?.max(last.unwrap_or(i64::MIN)))
}

fn put(
    connection: &Connection,
    name: &str,
    state: &RecordState,
    datestamp: i64,
) -> Result<Stamped, StoreError> {
    let digest = state.digest();
    connection.execute(
        "INSERT INTO record (name, datestamp, mark, since) VALUES (?1, ?2, ?3, ?2)
         ON CONFLICT (name) DO UPDATE SET datestamp = ?2, mark = ?3,
            since = CASE WHEN record.mark IS NULL THEN ?2 ELSE record.since END",
        params![name, datestamp, digest.as_deref()],
    )?;
    Ok(Stamped {
        name: name.to_owned(),
        datestamp,
        is_deleted: digest.is_none(),
    })
}

#[cfg(test)]
mod tests;
