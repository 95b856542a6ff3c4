//! Checks of a database: SQLite's own, and the comparison of two databases.
//!
//! The database may be damaged, so values are compared as bytes, whatever type they should have.

use std::os::fd::{AsFd, BorrowedFd};

use rusqlite::{Connection, OpenFlags};

use super::{Store, StoreError, StoreUse, check_file, duplicate, file_in, schema};
use crate::formats::item::Names;
use crate::sql::database::{self, OpenFor};
use crate::sql::engine::{self, Row, Rows, Sqlite, params};
use crate::sql::index_url::IndexUrl;
use ibi::Ibi;
use ibi::message;
use ibi::message::Message;

/// The number of messages of SQLite about a damaged database that are reported.
const COMPLAINTS: usize = 5;

/// Page cache of a database that is only used for comparison, in KiB; it needs less than a refill.
const CACHE_KIB: i64 = -32_768;

/// The columns of an item that are compared, in this order. The first four are its names.
const COLUMNS: [&str; 16] = [
    "rep",
    "ibip",
    "rep_key",
    "ibip_key",
    "state",
    "service_rep",
    "service_ibip",
    "language",
    "target",
    "removed_at",
    "life",
    "sidecar",
    "relations",
    "keys of relations",
    "aliases",
    "speaker",
];

const STATE: usize = 4;
const SIDECAR: usize = 11;

/// Both keys, and relations and aliases in a fixed order, so that equal items have equal rows. The parameter
/// separates lines.
const ROW: &str = "
    SELECT rep, ibip, rep_key, ibip_key, state, service_rep, service_ibip, language, target,
        removed_at, life, sidecar,
        (SELECT string_agg(kind || ' ' || coalesce(target_rep, '') || ' ' || coalesce(target_ibip, ''),
            ?1 ORDER BY kind) FROM relation WHERE source = item.id) AS relations,
        (SELECT string_agg(coalesce(target_rep_key, '') || ' ' || coalesce(target_ibip_key, ''),
            ?1 ORDER BY kind) FROM relation WHERE source = item.id) AS keys,
        (SELECT string_agg(name, ?1 ORDER BY name) FROM alias WHERE alias.item = item.id) AS aliases,
        (SELECT max(coalesce(speaker, '')) FROM relation WHERE source = item.id) AS speaker,
        EXISTS (SELECT 1 FROM unsettled WHERE unsettled.item = item.id) AS unsettled
    FROM item";

/// An item for which two databases differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name to report.
    pub subject: String,
    /// Its names, unless they cannot be read.
    pub names: Option<Names>,
    /// The difference.
    pub kind: DifferenceKind,
}

/// A difference of two databases about an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Only the first has it.
    OnlyFirst,
    /// Only the second has it.
    OnlySecond {
        /// Whether it is a removed item in the second.
        is_removed: bool,
        /// Whether it was minted and is not known to be in the tree.
        is_unsettled: bool,
    },
    /// Both have it.
    Differs {
        /// The columns that differ; `None` if only the sidecars do.
        what: Option<Message>,
        /// Whether the sidecars differ.
        sidecar: bool,
        /// Whether it is removed in the first, and in the second.
        is_removed: (bool, bool),
    },
}

impl Store {
    /// Creates an empty store in a temporary file, which ends with this value.
    pub fn temporary() -> Result<Store, StoreError> {
        let mut connection = Connection::open("")?;
        connection.pragma_update(None, "journal_mode", "off")?;
        schema::migrate(&mut connection)?;
        let connection = engine::Connection::Sqlite(Sqlite::prepared(connection)?);
        Ok(Store::over(connection, None))
    }

    /// Sets the cache size of a filled temporary store for random access.
    pub fn widen(&self) -> Result<(), StoreError> {
        match self.lock().sqlite() {
            Some(connection) => Ok(connection.pragma_update(None, "cache_size", CACHE_KIB)?),
            None => Ok(()),
        }
    }

    /// Opens a database for checking only. If the store is idle, no auxiliary files are written
    /// either.
    pub fn open_as_it_is(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
        store_use: StoreUse,
    ) -> Result<Store, StoreError> {
        if let Some(url) = index {
            return Store::connect(url, OpenFor::Reading);
        }
        let directory = duplicate(directory)?;
        check_file(directory.as_fd(), OpenFor::Reading)?;
        let path = file_in(directory.as_fd());
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let has_log = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
        let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = if store_use == StoreUse::Idle && !has_log {
            flags |= OpenFlags::SQLITE_OPEN_URI;
            // A file that does not change while it is open.
            Connection::open_with_flags(format!("file:{}?immutable=1", path.display()), flags)
        } else {
            Connection::open_with_flags(path, flags)
        };
        let connection = opened.map_err(database::plain)?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        schema::check(&connection)?;
        let connection = engine::Connection::Sqlite(Sqlite::prepared(connection)?);
        Ok(Store::beside(connection, directory))
    }

    /// SQLite's messages about the database, and whether its schema is ours.
    pub fn complaints(&self) -> Result<Vec<Message>, StoreError> {
        let connection = self.lock();
        // A server checks its own files, and lets no row belong to no item.
        if connection.sqlite().is_none() {
            return Ok(Vec::new());
        }
        let mut complaints = Vec::new();
        let check = format!("PRAGMA integrity_check({COMPLAINTS})");
        connection.visit(&check, &[], |row| {
            let complaint = text(row, 0)?;
            if complaint != "ok" {
                complaints.push(Message::verbatim(complaint.replace('\n', " ")));
            }
            Ok(())
        })?;
        connection.visit("PRAGMA foreign_key_check", &[], |row| {
            if complaints.len() < COMPLAINTS {
                let table = text(row, 0)?;
                complaints.push(message!("a row of {table} belongs to no item", table));
            }
            Ok(())
        })?;
        if let Some(connection) = connection.sqlite()
            && schema::is_altered(connection)?
        {
            complaints.push(message!("its tables are not those that ibifs makes"));
        }
        Ok(complaints)
    }

    /// The items for which this store and another differ. Both are read in the order of the names,
    /// side by side.
    pub fn differences(&self, second: &Store) -> Result<Vec<Difference>, StoreError> {
        let (first, second) = (self.lock(), second.lock());
        let mut differences = Vec::new();
        for (order, key) in [
            ("WHERE rep_key IS NOT NULL ORDER BY rep_key", 2),
            ("WHERE rep_key IS NULL ORDER BY ibip_key", 3),
        ] {
            let sql = format!("{ROW} {order}");
            let (mut first, mut second) = (first.prepare(&sql)?, second.prepare(&sql)?);
            let lines = params!["\n"];
            let (first, second) = (first.rows(lines)?, second.rows(lines)?);
            side_by_side(first, second, key, &mut differences)?;
        }
        Ok(differences)
    }
}

fn text(row: &Row<'_>, column: usize) -> Result<String, StoreError> {
    Ok(row.bytes(column)?.map_or_else(String::new, |bytes| {
        String::from_utf8_lossy(&bytes).into_owned()
    }))
}

/// One item in a database.
struct Said {
    columns: Vec<Option<Vec<u8>>>,
    is_unsettled: bool,
}

impl Said {
    fn of(row: &Row<'_>) -> Result<Said, StoreError> {
        let columns = (0..COLUMNS.len()).map(|column| row.bytes(column));
        Ok(Said {
            columns: columns.collect::<Result<_, _>>()?,
            is_unsettled: row.get(COLUMNS.len())?,
        })
    }

    fn shown(&self, column: usize) -> String {
        match self.columns.get(column) {
            Some(Some(bytes)) => String::from_utf8_lossy(bytes)
                .trim_end()
                .replace('\n', ", "),
            _ => String::new(),
        }
    }

    fn is_removed(&self) -> bool {
        self.columns[STATE].as_deref() == Some(b"Deleted")
    }

    /// Its names, if they are valid and match its keys.
    fn names(&self) -> Option<Names> {
        let mut ibis = Vec::new();
        for (column, key) in [(0, 2), (1, 3)] {
            let (Some(value), known) = (&self.columns[column], &self.columns[key]) else {
                match self.columns[key] {
                    None => continue,
                    Some(_) => return None,
                }
            };
            let ibi = Ibi::parse(std::str::from_utf8(value).ok()?).ok()?;
            let canonical = match (&ibi, column) {
                (Ibi::Rep(rep), 0) => rep.canonical(),
                (Ibi::Ibip(ibip), 1) => ibip.canonical(),
                _ => return None,
            };
            if known.as_deref() != Some(canonical.as_bytes()) {
                return None;
            }
            ibis.push(ibi);
        }
        Names::collect(ibis)
    }

    fn subject(&self) -> String {
        match self.columns[0] {
            Some(_) => self.shown(0),
            None => self.shown(1),
        }
    }

    fn differs(&self, kind: DifferenceKind) -> Difference {
        Difference {
            subject: self.subject(),
            names: self.names(),
            kind,
        }
    }

    fn compared(&self, second: &Said) -> Option<Difference> {
        let mut what = Vec::new();
        for (column, name) in COLUMNS.iter().enumerate() {
            if self.columns[column] != second.columns[column] && column != SIDECAR {
                what.push(message!(
                    "{name} '{value}' in the tree, '{indexed}' in the index",
                    name,
                    value = self.shown(column),
                    indexed = second.shown(column)
                ));
            }
        }
        let sidecar = self.columns[SIDECAR] != second.columns[SIDECAR];
        (sidecar || !what.is_empty()).then(|| {
            self.differs(DifferenceKind::Differs {
                what: Message::joined(what),
                sidecar,
                is_removed: (self.is_removed(), second.is_removed()),
            })
        })
    }

    fn only_second(&self) -> Difference {
        self.differs(DifferenceKind::OnlySecond {
            is_removed: self.is_removed(),
            is_unsettled: self.is_unsettled,
        })
    }
}

fn side_by_side(
    mut first: Rows<'_>,
    mut second: Rows<'_>,
    key: usize,
    differences: &mut Vec<Difference>,
) -> Result<(), StoreError> {
    use std::cmp::Ordering::{Greater, Less};
    let next = |rows: &mut Rows<'_>| rows.next_row()?.map(|row| Said::of(&row)).transpose();
    let (mut left, mut right) = (next(&mut first)?, next(&mut second)?);
    loop {
        let order = match (&left, &right) {
            (None, None) => return Ok(()),
            (Some(_), None) => Less,
            (None, Some(_)) => Greater,
            (Some(left), Some(right)) => left.columns[key].cmp(&right.columns[key]),
        };
        differences.extend(match (order, &left, &right) {
            (Less, Some(left), _) => Some(left.differs(DifferenceKind::OnlyFirst)),
            (Greater, _, Some(right)) => Some(right.only_second()),
            (_, Some(left), Some(right)) => left.compared(right),
            _ => None,
        });
        if order != Greater {
            left = next(&mut first)?;
        }
        if order != Less {
            right = next(&mut second)?;
        }
    }
}
