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

mod claims;
mod compare;
mod copy;
mod error;
mod files;
mod group;
mod rows;
mod schema;
mod touched;
mod write;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, named_params};

use crate::ibi::{AliasPair, Ibip, Rep, Timestamp};
use crate::item::{Names, State};
use crate::locks::locked;
use crate::relation::{Language, RelationKind};

pub use claims::{Contested, OneSided};
pub use compare::{Difference, DifferenceKind};
pub use error::StoreError;
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
    /// Where the database lies, unless it is in memory. SQLite goes by this until it is closed, above.
    _directory: Option<OwnedFd>,
    waiting: Mutex<Vec<Arc<group::Waiting>>>,
}

impl Store {
    /// Opens the database of a store's directory for writing, making or migrating it where needed.
    pub fn open(directory: BorrowedFd<'_>) -> Result<Store, StoreError> {
        let directory = kept(directory)?;
        files::check(directory.as_fd(), true)?;
        let path = files::path_in(directory.as_fd());
        let mut connection = Connection::open(path).map_err(files::plain)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", Sync::Later.word())?;
        Store::prepared(&mut connection)?;
        schema::migrate(&mut connection)?;
        Ok(Store::over(connection, Some(directory)))
    }

    /// Opens the database for reading only, beside a writer.
    pub fn open_read_only(directory: BorrowedFd<'_>) -> Result<Store, StoreError> {
        let directory = kept(directory)?;
        files::check(directory.as_fd(), false)?;
        let path = files::path_in(directory.as_fd());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(files::plain)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        Store::prepared(&mut connection)?;
        schema::check(&connection)?;
        Ok(Store::over(connection, Some(directory)))
    }

    fn over(connection: Connection, directory: Option<OwnedFd>) -> Store {
        Store {
            connection: Mutex::new(connection),
            _directory: directory,
            waiting: Mutex::default(),
        }
    }

    fn prepared(connection: &mut Connection) -> Result<(), StoreError> {
        connection.pragma_update(None, "foreign_keys", "on")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        locked(&self.connection)
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

    /// Which items declare what of the item with these names, by either form.
    pub fn relations_to(&self, names: &Names) -> Result<Vec<(RelationKind, Item)>, StoreError> {
        let connection = self.lock();
        let sql = format!(
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
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query(named_params! {
            ":rep": names.rep().map(Rep::canonical),
            ":ibip": names.ibip().map(Ibip::canonical),
        })?;
        let mut relations: Vec<(RelationKind, Item)> = Vec::new();
        while let Some(row) = found.next()? {
            let pair = (rows::relation(row)?.0, rows::item(row)?);
            if !relations.contains(&pair) {
                relations.push(pair);
            }
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
        let key = path.to_ascii_lowercase();
        let found = self.first_below("rep", "rep_key", &key)?;
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
            "SELECT substr(ibip, 1, instr(ibip, '/') - 1) FROM item {}
             AND ibip_key > ?1 AND state <> 'Deleted' ORDER BY ibip_key LIMIT 1",
            listed_by(without_rep)
        ))?;
        let mut prefixes = Vec::new();
        let mut after = String::new();
        while let Some(prefix) = statement
            .query_row([&after], |row| row.get::<_, String>(0))
            .optional()?
        {
            // '0' follows '/' in ASCII.
            after = format!("{}0", prefix.to_ascii_uppercase());
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

    /// Every item, one at a time, in the order of their names.
    pub fn each_item(
        &self,
        mut visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT {} FROM item ORDER BY coalesce(rep_key, ibip_key)",
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

/// Items in the order of their IBIps: by an index that has only those asked for.
fn listed_by(without_rep: bool) -> &'static str {
    match without_rep {
        true => "INDEXED BY item_without_rep WHERE rep_key IS NULL",
        false => "WHERE ibip_key IS NOT NULL",
    }
}
