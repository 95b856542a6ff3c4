//! The relation store. It contains all SQL of the Archive behind a small interface.
//!
//! It is an index of the tree, so that no lookup walks the tree, and the ledger of the dates that were given
//! out. The engine is SQLite with a write-ahead log. The ledger, originals and removed items are synced at
//! each commit, and survive a power cut once a call has returned. Copies, which the copying program has not
//! synced either, reach the disk with the next such commit. Every write is one immediate transaction. One
//! connection writes; another process may have a read-only one open.
//!
//! Threads may share a `Store`. Its locks are in the table of [`crate::archive::lock_order`].

mod accesses;
mod beside;
mod claims;
mod compare;
mod completion;
mod copy;
mod error;
mod group;
mod harvest;
mod levels;
mod numbers;
mod query;
mod record;
mod recovery_log;
mod rows;
mod schema;
mod transaction;
mod version;
mod write;

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, named_params, params};

use crate::archive::database::{self, Unfit};
use crate::archive::lock_order::{Rank, RankedGuard, RankedMutex};
use crate::archive::owner::Owner;
use crate::formats::item::{Names, State};
use ibi::message;
use ibi::message::Localize;
use ibi::relation::{Language, RelationKind};
use ibi::{AliasPair, Ibip, Rep, Timestamp};

pub use accesses::{ACCESSES_FILE, Accesses};
pub use claims::{Contested, OneSided};
pub use compare::{Difference, DifferenceKind};
pub use error::StoreError;
pub use harvest::{HARVEST_FILE, Harvest, HarvestPage, RecordState, Stamped, Window};
pub use numbers::Counts;
pub use recovery_log::{JointNumber, LoggedJoint};
pub use write::Refill;

use transaction::Sync;

/// File name of the relation store.
pub const FILE: &str = "relations.sqlite3";

/// An item's number in this index. It has no meaning outside the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub i64);

/// An item in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its number in the index.
    pub id: ItemId,
    /// The known forms of its identifier.
    pub names: Names,
    /// Original, Copy or Deleted.
    pub state: State,
    /// The Archive service that holds the original, if known.
    pub service: Option<Names>,
    /// Its language, if declared.
    pub language: Option<Language>,
    /// Its target (default) file below `doc/`, if declared.
    pub target: Option<String>,
    /// When it was removed, for a Deleted one.
    pub removed_at: Option<Timestamp>,
}

impl Item {
    /// Its approximate size in bytes.
    pub fn size(&self) -> usize {
        let names = [Some(&self.names), self.service.as_ref()];
        let forms = names.into_iter().flatten().map(|names| {
            names.rep().map_or(0, |rep| rep.as_str().len())
                + names.ibip().map_or(0, |ibip| ibip.as_str().len())
        });
        size_of::<Item>() + forms.sum::<usize>() + self.target.as_ref().map_or(0, String::len)
    }
}

/// An item to be recorded.
#[derive(Clone, Debug)]
pub struct Record {
    /// The forms of its identifier.
    pub names: Names,
    /// Original, Copy or Deleted.
    pub state: State,
    /// The Archive service that holds the original.
    pub service: Option<Names>,
    /// Its language.
    pub language: Option<Language>,
    /// Its target file.
    pub target: Option<String>,
    /// When it was removed.
    pub removed_at: Option<Timestamp>,
    /// The last accepted sidecar, byte for byte.
    pub sidecar: Option<Vec<u8>>,
    /// The relations that the sidecar declares.
    pub relations: Vec<(RelationKind, Names)>,
    /// Recorded aliases.
    pub aliases: Vec<AliasPair>,
}

impl Record {
    /// An item of which only the names and the state are known.
    pub fn bare(names: Names, state: State) -> Record {
        Record {
            names,
            state,
            service: None,
            language: None,
            target: None,
            removed_at: None,
            sidecar: None,
            relations: Vec::new(),
            aliases: Vec::new(),
        }
    }
}

/// A minted item whose directory is not known to be on disk.
#[derive(Debug)]
pub struct Unsettled {
    /// The item.
    pub item: Item,
    /// Its sidecar, byte for byte.
    pub sidecar: Vec<u8>,
    /// The owner of the new directory, None for the Archive itself.
    pub owner: Option<Owner>,
}

/// The open relation store.
#[derive(Debug)]
pub struct Store {
    connection: RankedMutex<Connection>,
    version: version::Version,
    /// The directory of the database; None for one in memory. SQLite uses its path until the
    /// connection above is closed.
    directory: Option<OwnedFd>,
    waiting: RankedMutex<Vec<Arc<group::PendingWrite>>>,
}

impl Store {
    /// Opens the database of a store's directory for writing. Creates or migrates it if necessary.
    pub fn open(directory: BorrowedFd<'_>) -> Result<Store, StoreError> {
        let directory = duplicate(directory)?;
        check_file(directory.as_fd(), true)?;
        let path = file_in(directory.as_fd());
        let mut connection = Connection::open(path).map_err(database::plain)?;
        database::share(&connection)?;
        connection.pragma_update(None, "synchronous", Sync::Later.word())?;
        Store::prepared(&mut connection)?;
        schema::migrate(&mut connection)?;
        Ok(Store::over(connection, Some(directory)))
    }

    /// Opens the database read-only, beside a writer.
    pub fn open_read_only(directory: BorrowedFd<'_>) -> Result<Store, StoreError> {
        let directory = duplicate(directory)?;
        check_file(directory.as_fd(), false)?;
        let path = database::path_to_read(file_in(directory.as_fd()), directory.as_fd());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let mut connection = Connection::open_with_flags(path, flags).map_err(database::plain)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        Store::prepared(&mut connection)?;
        schema::check(&connection)?;
        Ok(Store::beside(connection, directory))
    }

    fn over(connection: Connection, directory: Option<OwnedFd>) -> Store {
        Store::ranked(Rank::Index, connection, directory)
    }

    /// A read-only store that a thread may use while it has another one locked.
    fn beside(connection: Connection, directory: OwnedFd) -> Store {
        Store::ranked(Rank::IndexBefore, connection, Some(directory))
    }

    fn ranked(rank: Rank, connection: Connection, directory: Option<OwnedFd>) -> Store {
        Store {
            connection: RankedMutex::new(rank, connection),
            version: version::Version::default(),
            directory,
            waiting: RankedMutex::new(Rank::CommitQueue, Vec::new()),
        }
    }

    fn prepared(connection: &mut Connection) -> Result<(), StoreError> {
        connection.pragma_update(None, "foreign_keys", "on")?;
        connection.set_prepared_statement_cache_capacity(64);
        // Otherwise SQLite plans a statement again when a bound value changes that its planner has used.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(())
    }

    fn lock(&self) -> RankedGuard<'_, Connection> {
        self.connection.lock()
    }

    /// The item with this rep, in any spelling.
    pub fn find_by_rep(&self, rep: &Rep) -> Result<Option<Item>, StoreError> {
        self.find("rep_key = ?1", [rep.canonical()])
    }

    /// The item with this IBIp, in any spelling.
    pub fn find_by_ibip(&self, ibip: &Ibip) -> Result<Option<Item>, StoreError> {
        self.find("ibip_key = ?1", [ibip.canonical()])
    }

    /// The item with this recorded alias.
    pub fn find_by_alias(&self, alias: &AliasPair) -> Result<Option<Item>, StoreError> {
        self.find(
            "id = (SELECT item FROM alias WHERE name = ?1)",
            [alias.to_string()],
        )
    }

    /// The item that has one of these names. If both forms are known, the rep has precedence.
    pub fn find_by_names(&self, names: &Names) -> Result<Option<Item>, StoreError> {
        if let Some(rep) = names.rep()
            && let Some(item) = self.find_by_rep(rep)?
        {
            return Ok(Some(item));
        }
        match names.ibip() {
            Some(ibip) => self.find_by_ibip(ibip),
            None => Ok(None),
        }
    }

    /// The item with this number.
    pub fn item(&self, id: ItemId) -> Result<Option<Item>, StoreError> {
        self.find("id = ?1", [id.0])
    }

    /// The last accepted sidecar, byte for byte.
    pub fn sidecar(&self, id: ItemId) -> Result<Option<Vec<u8>>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT sidecar FROM item WHERE id = ?1")?;
        Ok(statement
            .query_row([id.0], |row| row.get(0))
            .optional()?
            .flatten())
    }

    /// The last accepted sidecar of the item with one of these names, even if other columns are damaged.
    pub fn accepted_sidecar(&self, names: &Names) -> Result<Option<Vec<u8>>, StoreError> {
        let connection = self.lock();
        let keys = [
            ("rep_key", names.rep().map(Rep::canonical)),
            ("ibip_key", names.ibip().map(Ibip::canonical)),
        ];
        for (column, key) in keys {
            let sql = format!("SELECT sidecar FROM item WHERE {column} = ?1");
            let mut statement = connection.prepare_cached(&sql)?;
            let found: Option<Option<Vec<u8>>> =
                statement.query_row([key], |row| row.get(0)).optional()?;
            if let Some(sidecar) = found {
                return Ok(sidecar);
            }
        }
        Ok(None)
    }

    /// The last date given out, as last recorded. Later dates may have been given out since, up to
    /// [`Store::reserved_date`].
    pub fn last_date(&self) -> Result<Option<Timestamp>, StoreError> {
        self.ledger("last")
    }

    /// The date up to which dates may have been given out since the last one was recorded; None if
    /// the last one is exact.
    pub fn reserved_date(&self) -> Result<Option<Timestamp>, StoreError> {
        self.ledger("reserved")
    }

    fn ledger(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        let connection = self.lock();
        let date: Option<Option<String>> = connection
            .query_row(&format!("SELECT {column} FROM ledger"), [], |row| {
                row.get(0)
            })
            .optional()?;
        date.flatten()
            .map(|text| {
                Timestamp::parse_rfc3339(&text).map_err(|_| StoreError::Broken {
                    what: message!("ledger.{column} is '{text}'", column, text),
                })
            })
            .transpose()
    }

    /// `archive.ibi` as it was when the store was last used, byte for byte.
    pub fn facts(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT text FROM facts")?;
        Ok(statement.query_row([], |row| row.get(0)).optional()?)
    }

    /// Whether the store has no items.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM item)";
        Ok(self.lock().query_row(sql, [], |row| row.get(0))?)
    }

    /// The items whose mint was not settled, see [`Store::mint`].
    pub fn unsettled(&self) -> Result<Vec<Unsettled>, StoreError> {
        let connection = self.lock();
        // CROSS JOIN: the few unsettled items are read first, regardless of SQLite's estimate.
        let sql = format!(
            "SELECT {}, item.sidecar, uid, gid, mode FROM unsettled
             CROSS JOIN item ON item.id = unsettled.item ORDER BY unsettled.item",
            rows::ITEM
        );
        let mut statement = connection.prepare(&sql)?;
        let mut found = statement.query([])?;
        let mut unsettled = Vec::new();
        while let Some(row) = found.next()? {
            let (uid, gid, mode): (Option<u32>, Option<u32>, Option<u32>) =
                (row.get("uid")?, row.get("gid")?, row.get("mode")?);
            unsettled.push(Unsettled {
                item: rows::item(row)?,
                sidecar: row.get::<_, Option<_>>("sidecar")?.unwrap_or_default(),
                owner: uid
                    .zip(gid)
                    .zip(mode)
                    .map(|((uid, gid), mode)| Owner { uid, gid, mode }),
            });
        }
        Ok(unsettled)
    }

    /// The relations that an item's own sidecar declares.
    pub fn relations_of(&self, id: ItemId) -> Result<Vec<(RelationKind, Names)>, StoreError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT {} FROM relation WHERE source = ?1 ORDER BY kind",
            rows::RELATION
        );
        query::each(&connection, &sql, [id.0], rows::relation)
    }

    /// The relations that other items declare to the item with these names, by either form. Each
    /// item declares a kind once.
    pub fn relations_to(&self, names: &Names) -> Result<Vec<(RelationKind, Item)>, StoreError> {
        let connection = self.lock();
        let forms = named_params! {
            ":rep": names.rep().map(Rep::canonical),
            ":ibip": names.ibip().map(Ibip::canonical),
        };
        query::each(&connection, &pointing(), forms, |row| {
            Ok((rows::relation(row)?.0, rows::item(row)?))
        })
    }

    /// The aliases recorded for an item.
    pub fn aliases_of(&self, id: ItemId) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT name FROM alias WHERE item = ?1 ORDER BY name")?;
        let names = statement.query_map([id.0], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Whether any item that is not removed has a rep.
    pub fn has_reps(&self) -> Result<bool, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare(
            "SELECT 1 FROM item WHERE rep_key IS NOT NULL AND state <> 'Deleted' LIMIT 1",
        )?;
        Ok(statement.exists([])?)
    }

    /// The number of items that are not removed.
    pub fn held_items(&self) -> Result<u64, StoreError> {
        let connection = self.lock();
        let sql = "SELECT count(*) FROM item WHERE state <> 'Deleted'";
        let found: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        Ok(found.unsigned_abs())
    }

    /// At most `most` of the items here whose reps have a prefix, the latest first.
    pub fn latest_of_prefix(&self, prefix: &str, most: usize) -> Result<Vec<Item>, StoreError> {
        let below = query::below("rep_key");
        self.items(
            &format!("{below} AND state <> 'Deleted' ORDER BY rep_key DESC LIMIT ?2"),
            params![prefix.to_ascii_lowercase(), query::limit(most)],
        )
    }

    /// At most `most` items after one, in the order of their numbers, including removed items.
    pub fn items_after(&self, after: ItemId, most: usize) -> Result<Vec<Item>, StoreError> {
        self.items(
            "id > ?1 ORDER BY id LIMIT ?2",
            params![after.0, query::limit(most)],
        )
    }

    /// Calls a closure for every item, in the order of their names.
    pub fn each_item(
        &self,
        visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_item_where("", visit)
    }

    /// The same for removed items.
    pub fn each_removed(
        &self,
        visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_item_where("WHERE state = 'Deleted'", visit)
    }

    fn each_item_where(
        &self,
        condition: &'static str,
        mut visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT {} FROM item {condition} ORDER BY coalesce(rep_key, ibip_key)",
            rows::ITEM
        );
        let mut statement = connection.prepare(&sql)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            visit(&rows::item(row)?)?;
        }
        Ok(())
    }
}

/// A duplicate of the descriptor, which stays open until SQLite has finished.
fn duplicate(directory: BorrowedFd<'_>) -> Result<OwnedFd, StoreError> {
    directory
        .try_clone_to_owned()
        .map_err(|error| StoreError::Broken {
            what: message!("its directory cannot be kept open: {error}", error),
        })
}

/// The path of the database in a store's open directory.
fn file_in(directory: BorrowedFd<'_>) -> PathBuf {
    database::path_in(directory, OsStr::new(FILE))
}

fn check_file(directory: BorrowedFd<'_>, is_written: bool) -> Result<(), StoreError> {
    database::check(directory, OsStr::new(FILE), is_written).map_err(|unfit| match unfit {
        Unfit::NotAFile => StoreError::NotAFile,
        Unfit::Missing | Unfit::Shared => StoreError::Broken {
            what: unfit.message(),
        },
    })
}

/// The condition for relations to an item by either form.
fn pointing() -> String {
    format!(
        "SELECT {}, {} FROM relation JOIN item ON item.id = relation.source
             WHERE target_rep_key = :rep AND state <> 'Deleted'
             UNION
             SELECT {}, {} FROM relation JOIN item ON item.id = relation.source
             WHERE target_ibip_key = :ibip AND state <> 'Deleted'
             ORDER BY rep, ibip, kind",
        rows::RELATION,
        rows::ITEM,
        rows::RELATION,
        rows::ITEM
    )
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    /// A row whose key does not match its name is damaged; the iteration must end all the same.
    #[test]
    fn prefixes_of_damaged_rows_end() {
        let mut connection = Connection::open_in_memory().expect("a database");
        Store::prepared(&mut connection).expect("options");
        schema::migrate(&mut connection).expect("tables");
        let damaged = "INSERT INTO item (ibip, ibip_key, state) VALUES
            ('2A/B', 'JA/B', 'Copy'), ('KA/B', 'K', 'Copy'), ('LA/B', 'LA/B', 'Copy')";
        connection.execute_batch(damaged).expect("rows");
        let store = Store::over(connection, None);
        assert_eq!(store.prefixes(false).expect("read"), ["2A", "KA", "LA"]);
    }

    /// Statements that run for each relation of each item are planned only once, and use indices.
    #[test]
    fn statements_are_planned_once() {
        let mut connection = Connection::open_in_memory().expect("a database");
        Store::prepared(&mut connection).expect("options");
        schema::migrate(&mut connection).expect("tables");
        // As in a store that SQLite has analysed.
        let fill = "
            INSERT INTO item (id, rep, rep_key, state) WITH RECURSIVE number (n) AS
                (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 100)
                SELECT n, 'a/b' || n, 'a/b' || n, 'Copy' FROM number;
            INSERT INTO relation SELECT id, 'ibi.metadata', 'a/b1', 'a/b' || (id % 9), NULL, NULL FROM item;
            ANALYZE;";
        connection.execute_batch(fill).expect("rows");
        let mut statement = connection.prepare(&pointing()).expect("a statement");
        for name in ["a/b1", "a/b2", "c"] {
            let mut found = statement
                .query(named_params! { ":rep": name, ":ibip": name })
                .expect("asked");
            while found.next().expect("read").is_some() {}
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        let plan = format!("EXPLAIN QUERY PLAN {}", pointing());
        let mut statement = connection.prepare(&plan).expect("a statement");
        let found = statement
            .query_map(named_params! { ":rep": "a", ":ibip": "a" }, |row| {
                row.get::<_, String>("detail")
            })
            .expect("asked");
        let plan: Vec<String> = found.map(|line| line.expect("a line")).collect();
        let plan = plan.join("\n");
        for index in ["relation_by_rep", "relation_by_ibip"] {
            assert!(
                plan.contains(&format!("SEARCH relation USING INDEX {index}")),
                "{plan}"
            );
        }
    }
}
