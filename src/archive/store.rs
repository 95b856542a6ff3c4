//! The relation store: all the SQL, and nothing but the verbs of the Archive.
//!
//! An index of what the tree says, kept so that no lookup walks the tree, and the ledger of dates
//! handed out. SQLite with a write-ahead log. The ledger and what is said of originals and removed
//! items is synced at each commit and survives a power cut as soon as a call returns; what is said
//! of copies, which whoever copies has not synced either, follows with the next such commit. Every
//! write is one immediate transaction. One connection writes; a read-only one may be open beside
//! it in another process.
//!
//! A `Store` may be shared by threads; its lock is a leaf but for the queue of what waits to be
//! committed with it.

mod accesses;
mod begins;
mod beside;
mod claims;
mod compare;
mod copy;
mod error;
mod group;
mod harvest;
mod numbers;
mod rows;
mod schema;
mod touched;
mod version;
mod write;

use parking_lot::{Mutex, MutexGuard};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, named_params};

use crate::archive::database::{self, Unfit};
use crate::formats::item::{Names, State};
use ibi::relation::{Language, RelationKind};
use ibi::rep::component_key;
use ibi::{AliasPair, Ibip, Rep, Timestamp};

pub use accesses::{ACCESSES_FILE, Accesses};
pub use claims::{Contested, OneSided};
pub use compare::{Difference, DifferenceKind};
pub use error::StoreError;
pub use harvest::{HARVEST_FILE, Harvest, HarvestPage, Mark, Stamped, Window};
pub use numbers::Counts;
pub use write::Refill;

use write::Sync;

/// File name of the relation store.
pub const FILE: &str = "relations.sqlite3";

/// An item's number in this index; it means nothing outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub i64);

/// What the Archive knows of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its number in the index.
    pub id: ItemId,
    /// The forms of its identifier that are known here.
    pub names: Names,
    /// Original, Copy or Deleted.
    pub state: State,
    /// The Archive service that holds the original, where known.
    pub service: Option<Names>,
    /// Its language, where declared.
    pub language: Option<Language>,
    /// Its target (default) file below `doc/`, where declared.
    pub target: Option<String>,
    /// When it was removed, for a Deleted one.
    pub removed_at: Option<Timestamp>,
}

impl Item {
    /// How many bytes it takes, roughly.
    pub fn size(&self) -> usize {
        let names = [Some(&self.names), self.service.as_ref()];
        let forms = names.into_iter().flatten().map(|names| {
            names.rep().map_or(0, |rep| rep.as_str().len())
                + names.ibip().map_or(0, |ibip| ibip.as_str().len())
        });
        size_of::<Item>() + forms.sum::<usize>() + self.target.as_ref().map_or(0, String::len)
    }
}

/// What is to be recorded of an item.
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
    /// The sidecar as last believed, byte for byte.
    pub sidecar: Option<Vec<u8>>,
    /// What the sidecar declares.
    pub relations: Vec<(RelationKind, Names)>,
    /// Recorded aliases.
    pub aliases: Vec<AliasPair>,
}

impl Record {
    /// An item of which nothing is known but its names and state.
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

/// For whom an item is made, should it have to be made again: user, group and permission bits.
pub type Maker = (u32, u32, u32);

/// An item that has been minted and whose directory is not known to be on disk.
#[derive(Debug)]
pub struct Unsettled {
    /// The item.
    pub item: Item,
    /// Its sidecar, byte for byte.
    pub sidecar: Vec<u8>,
    /// For whom it is made, unless for the Archive itself.
    pub maker: Option<Maker>,
}

/// The open relation store.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<Connection>,
    version: version::Version,
    /// Where the database lies, unless it is in memory. SQLite goes by this until it is closed, above.
    directory: Option<OwnedFd>,
    waiting: Mutex<Vec<Arc<group::Waiting>>>,
}

impl Store {
    /// Opens the database of a store's directory for writing, making or migrating it where needed.
    pub fn open(directory: BorrowedFd<'_>) -> Result<Store, StoreError> {
        let directory = kept(directory)?;
        check_file(directory.as_fd(), true)?;
        let path = file_in(directory.as_fd());
        let mut connection = Connection::open(path).map_err(database::plain)?;
        database::share(&connection)?;
        connection.pragma_update(None, "synchronous", Sync::Later.word())?;
        Store::prepared(&mut connection)?;
        schema::migrate(&mut connection)?;
        Ok(Store::over(connection, Some(directory)))
    }

    /// Opens the database for reading only, beside a writer.
    pub fn open_read_only(directory: BorrowedFd<'_>) -> Result<Store, StoreError> {
        let directory = kept(directory)?;
        check_file(directory.as_fd(), false)?;
        let path = database::path_to_read(file_in(directory.as_fd()), directory.as_fd());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let mut connection = Connection::open_with_flags(path, flags).map_err(database::plain)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        Store::prepared(&mut connection)?;
        schema::check(&connection)?;
        Ok(Store::over(connection, Some(directory)))
    }

    fn over(connection: Connection, directory: Option<OwnedFd>) -> Store {
        Store {
            connection: Mutex::new(connection),
            version: version::Version::default(),
            directory,
            waiting: Mutex::default(),
        }
    }

    fn prepared(connection: &mut Connection) -> Result<(), StoreError> {
        connection.pragma_update(None, "foreign_keys", "on")?;
        connection.set_prepared_statement_cache_capacity(64);
        // Else SQLite plans a statement anew whenever a value is bound that its planner looked at.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }

    fn find(&self, condition: &str, key: &str) -> Result<Option<Item>, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT {} FROM item WHERE {condition}", rows::ITEM);
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query([key])?;
        found.next()?.map(rows::item).transpose()
    }

    /// The item with this rep, in whatever spelling.
    pub fn find_by_rep(&self, rep: &Rep) -> Result<Option<Item>, StoreError> {
        self.find("rep_key = ?1", &rep.canonical())
    }

    /// The item with this IBIp, in whatever spelling.
    pub fn find_by_ibip(&self, ibip: &Ibip) -> Result<Option<Item>, StoreError> {
        self.find("ibip_key = ?1", &ibip.canonical())
    }

    /// The item with this recorded alias.
    pub fn find_by_alias(&self, alias: &AliasPair) -> Result<Option<Item>, StoreError> {
        self.find(
            "id = (SELECT item FROM alias WHERE name = ?1)",
            &alias.to_string(),
        )
    }

    /// The item that has one of these names; its rep decides where both are known.
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
        let connection = self.lock();
        let sql = format!("SELECT {} FROM item WHERE id = ?1", rows::ITEM);
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query([id.0])?;
        found.next()?.map(rows::item).transpose()
    }

    /// The sidecar as last believed, byte for byte.
    pub fn sidecar(&self, id: ItemId) -> Result<Option<Vec<u8>>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT sidecar FROM item WHERE id = ?1")?;
        Ok(statement
            .query_row([id.0], |row| row.get(0))
            .optional()?
            .flatten())
    }

    /// The sidecar last believed of the item with one of these names, whatever else its row holds.
    pub fn believed(&self, names: &Names) -> Result<Option<Vec<u8>>, StoreError> {
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

    /// The last date handed out, as last written down. Later ones may have been handed out since,
    /// up to [`Store::reserved_date`].
    pub fn last_date(&self) -> Result<Option<Timestamp>, StoreError> {
        self.ledger("last")
    }

    /// The date up to which dates may have been handed out since the last one was written down;
    /// None where that is known exactly.
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
                    what: format!("ledger.{column} is '{text}'"),
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

    /// Whether nothing has ever been recorded.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM item)";
        Ok(self.lock().query_row(sql, [], |row| row.get(0))?)
    }

    /// The items whose mint was not settled, see [`Store::mint`].
    pub fn unsettled(&self) -> Result<Vec<Unsettled>, StoreError> {
        let connection = self.lock();
        // CROSS JOIN: the few that are unsettled come first, whatever SQLite thinks of their number.
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
                maker: uid
                    .zip(gid)
                    .zip(mode)
                    .map(|((uid, gid), mode)| (uid, gid, mode)),
            });
        }
        Ok(unsettled)
    }

    /// What an item's own sidecar declares.
    pub fn relations_of(&self, id: ItemId) -> Result<Vec<(RelationKind, Names)>, StoreError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT {} FROM relation WHERE source = ?1 ORDER BY kind",
            rows::RELATION
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query([id.0])?;
        let mut relations = Vec::new();
        while let Some(row) = found.next()? {
            relations.push(rows::relation(row)?);
        }
        Ok(relations)
    }

    /// Which items declare what of the item with these names, by either form. Each declares a kind
    /// once.
    pub fn relations_to(&self, names: &Names) -> Result<Vec<(RelationKind, Item)>, StoreError> {
        let connection = self.lock();
        let sql = pointing();
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query(named_params! {
            ":rep": names.rep().map(Rep::canonical),
            ":ibip": names.ibip().map(Ibip::canonical),
        })?;
        let mut relations = Vec::new();
        while let Some(row) = found.next()? {
            relations.push((rows::relation(row)?.0, rows::item(row)?));
        }
        Ok(relations)
    }

    /// The aliases recorded for an item.
    pub fn aliases_of(&self, id: ItemId) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT name FROM alias WHERE item = ?1 ORDER BY name")?;
        let names = statement.query_map([id.0], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// The recorded spelling of a level of the rep tree (`sid.inpe.br/mtc-m13@80`), if any item
    /// that is here lies below it.
    pub fn spelling_of_level(&self, path: &str) -> Result<Option<String>, StoreError> {
        // Only the subdomain may end in a dot, which its spelling alone has.
        let key: Vec<String> = path.split('/').map(component_key).collect();
        let found = self.first_below("rep", "rep_key", &key.join("/"))?;
        Ok(found.and_then(|rep| {
            let depth = path.split('/').count();
            let end = rep.match_indices('/').nth(depth - 1)?.0;
            Some(rep[..end].to_owned())
        }))
    }

    /// The recorded spelling of an IBIp prefix, if any item that is here has it.
    pub fn spelling_of_prefix(&self, prefix: &str) -> Result<Option<String>, StoreError> {
        let found = self.first_below("ibip", "ibip_key", &prefix.to_ascii_uppercase())?;
        Ok(found.and_then(|ibip| ibip.split_once('/').map(|(prefix, _)| prefix.to_owned())))
    }

    fn first_below(
        &self,
        column: &str,
        key_column: &str,
        key: &str,
    ) -> Result<Option<String>, StoreError> {
        let connection = self.lock();
        // '0' follows '/' in ASCII: the range holds exactly what lies below the key.
        let sql = format!(
            "SELECT {column} FROM item WHERE {key_column} > ?1 || '/' AND {key_column} < ?1 || '0'
             AND state <> 'Deleted' LIMIT 1"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    /// Whether a recorded alias begins with this first component.
    pub fn has_alias_prefix(&self, prefix: &str) -> Result<bool, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT 1 FROM alias WHERE name > ?1 || '/' AND name < ?1 || '0' LIMIT 1",
        )?;
        Ok(statement.exists([prefix])?)
    }

    /// The names of the items here under an IBIp prefix; of those without a rep if asked.
    pub fn names_under_prefix(
        &self,
        prefix: &str,
        without_rep: bool,
    ) -> Result<Vec<Names>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&format!(
            "SELECT rep, ibip FROM item {}
             AND ibip_key > ?1 || '/' AND ibip_key < ?1 || '0' AND state <> 'Deleted'
             ORDER BY ibip_key",
            listed_by(without_rep)
        ))?;
        let mut found = statement.query([prefix.to_ascii_uppercase()])?;
        let mut names = Vec::new();
        while let Some(row) = found.next()? {
            names.extend(rows::names("item", row.get(0)?, row.get(1)?)?);
        }
        Ok(names)
    }

    /// The IBIp prefixes, as recorded, of the items here; of those without a rep if asked.
    pub fn prefixes(&self, without_rep: bool) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        // One step of the index for each prefix, however many items have it.
        let mut statement = connection.prepare_cached(&format!(
            "SELECT substr(ibip, 1, instr(ibip, '/') - 1), ibip_key FROM item {}
             AND ibip_key > ?1 AND state <> 'Deleted' ORDER BY ibip_key LIMIT 1",
            listed_by(without_rep)
        ))?;
        let mut prefixes = Vec::new();
        let mut after = String::new();
        while let Some((prefix, key)) = statement
            .query_row([&after], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })
            .optional()?
        {
            // '0' follows '/' in ASCII. By the key, which the index goes by, even where a damaged row
            // has another name beside it.
            after = match key.split_once('/') {
                Some((first, _)) => format!("{first}0"),
                None => key,
            };
            prefixes.push(prefix);
        }
        Ok(prefixes)
    }

    /// Whether any item that is here has a rep.
    pub fn has_reps(&self) -> Result<bool, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare(
            "SELECT 1 FROM item WHERE rep_key IS NOT NULL AND state <> 'Deleted' LIMIT 1",
        )?;
        Ok(statement.exists([])?)
    }

    /// How many items are here.
    pub fn held_items(&self) -> Result<u64, StoreError> {
        let connection = self.lock();
        let sql = "SELECT count(*) FROM item WHERE state <> 'Deleted'";
        let found: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        Ok(found.unsigned_abs())
    }

    /// The items here whose reps begin with a prefix, the latest first: so many.
    pub fn latest_of_prefix(&self, prefix: &str, most: usize) -> Result<Vec<Item>, StoreError> {
        let prefix = prefix.to_ascii_lowercase();
        let connection = self.lock();
        // The digits of a year follow the slash; "0" is the character after it.
        let sql = format!(
            "SELECT {} FROM item WHERE rep_key > ?1 || '/' AND rep_key < ?1 || '0'
             AND state <> 'Deleted' ORDER BY rep_key DESC LIMIT ?2",
            rows::ITEM
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut found = statement.query(rusqlite::params![prefix, most])?;
        let mut items = Vec::new();
        while let Some(row) = found.next()? {
            items.push(rows::item(row)?);
        }
        Ok(items)
    }

    /// The items, removed ones included, in the order of their numbers: so many, after one.
    pub fn items_after(&self, after: ItemId, most: usize) -> Result<Vec<Item>, StoreError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT {} FROM item WHERE id > ?1 ORDER BY id LIMIT ?2",
            rows::ITEM
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut found = statement.query([after.0, most])?;
        let mut items = Vec::new();
        while let Some(row) = found.next()? {
            items.push(rows::item(row)?);
        }
        Ok(items)
    }

    /// Every item, one at a time, in the order of their names.
    pub fn each_item(
        &self,
        visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_item_where("", visit)
    }

    /// The same for those that were removed.
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

/// A descriptor of our own, which nobody closes before SQLite is done with it.
fn kept(directory: BorrowedFd<'_>) -> Result<OwnedFd, StoreError> {
    directory
        .try_clone_to_owned()
        .map_err(|error| StoreError::Broken {
            what: format!("its directory cannot be kept open: {error}"),
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
            what: unfit.to_string(),
        },
    })
}

/// What points to an item by either form.
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

/// Items in the order of their IBIps: by an index that has only those asked for.
fn listed_by(without_rep: bool) -> &'static str {
    if without_rep {
        "INDEXED BY item_without_rep WHERE rep_key IS NULL"
    } else {
        "WHERE ibip_key IS NOT NULL"
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    /// A row whose key is not that of its name is damaged; looking through it ends all the same.
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

    /// What is asked for each relation of each item is planned once, and by indices.
    #[test]
    fn statements_are_planned_once() {
        let mut connection = Connection::open_in_memory().expect("a database");
        Store::prepared(&mut connection).expect("options");
        schema::migrate(&mut connection).expect("tables");
        // As in a store whose rows SQLite has counted.
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
