//! The relation store. It contains all SQL of the Archive behind a small interface.
//!
//! It is an index of the tree, so that no lookup walks the tree, and the ledger of the dates that were given
//! out. The engine is SQLite with a write-ahead log, or a PostgreSQL server ([`crate::sql`]). The ledger, originals and
//! removed items are synced at each commit, and survive a power cut once a call has returned. Copies, which the
//! copying program has not synced either, reach the disk with the next such commit of SQLite, and at once in a server.
//! Every write is one transaction, and no other one that writes is beside it. One process writes, or
//! several that share an index in a server ([`presence`] knows which); others may have a read-only connection open.
//!
//! Threads may share a `Store`. Its locks are in the table of [`crate::archive::lock_order`].

mod accesses;
mod aliases;
mod arrivals;
mod changes;
mod claims;
mod compare;
mod completion;
mod content;
mod copy;
mod dates;
mod grants;
mod group;
mod harvest;
mod history;
mod item;
mod items;
mod levels;
mod logged;
mod near;
mod numbers;
mod other_databases;
mod pictures;
mod prefixes;
mod presence;
mod query;
mod readers;
mod recent;
mod record;
mod recovery_log;
mod relation_changes;
mod relations;
mod rows;
mod schema;
mod sealed;
mod search;
mod server_schema;
mod speakers;
mod transaction;
mod turn;
mod version;
mod write;

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::OpenFlags;

use crate::archive::lock_order::{Rank, RankedGuard, RankedMutex};
use crate::os::processors::spawn_unbound;
use crate::os::random;
use crate::sql::database::{self, OpenFor, Unfit};
use crate::sql::engine::{Connection, Postgres, Sqlite};
use crate::sql::index_url::IndexUrl;
use ibi::message;
use ibi::message::Localize;
use server_schema::INDEX;

pub use crate::sql::error::{BesideError, DiskFault, FILE, StoreError};
pub use accesses::{ACCESSES_FILE, Accesses};
pub use arrivals::HELD;
pub use changes::{ChangeCounts, ChangeNumber};
pub use compare::{Difference, DifferenceKind};
pub(in crate::archive) use content::block_of;
pub use content::{ContentRow, ContentStatistics, ContentTotals};
pub use grants::{DateRequest, Grant, GrantTerms, MakeRecords, RECORDED_AHEAD};
pub use harvest::{ChangePart, RecordChange};
pub use harvest::{HARVEST_FILE, Harvest, RecordState, Stamped, Window};
pub use history::{EventRow, Teller};
pub use item::{By, Item, ItemId, Record, Speaker, Unsettled};
pub use levels::{PrefixRow, key_after_level, key_after_prefix, level_bounds};
pub use logged::Logged;
pub use near::Remembered;
pub use numbers::Counts;
pub use other_databases::cache_file;
pub use pictures::{PICTURES_FILE, PictureCache};
pub use presence::{BEAT, HostState, Sharing, Standing};
pub use recovery_log::{JointNumber, LoggedJoint};
pub use relation_changes::RelationChange;
pub use search::{FileText, FileVersion, Found, Progress, SearchEntry, SearchIndex, TextIndex};
pub use speakers::Kinds;
pub use turn::Turn;
pub use write::Refill;

/// The time that a mount and a service wait for the server of an index.
const SOON: Duration = Duration::from_millis(1_500);

/// The time that a command waits for it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The use by other processes of a store that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreUse {
    /// No process writes it.
    Idle,
    /// A process may be writing it.
    InUse,
}

/// The open relation store.
#[derive(Debug)]
pub struct Store {
    connection: RankedMutex<Connection>,
    readers: readers::Readers,
    version: version::Version,
    /// The directory of the database; None for one in memory. SQLite uses its path until the
    /// connection above is closed.
    directory: Option<OwnedFd>,
    /// The server of the index; None if it is a file.
    url: Option<IndexUrl>,
    /// The row of this process in it.
    presence: Mutex<Option<presence::Presence>>,
    /// The time up to which it gives out no date.
    fence: Mutex<Option<grants::Fence>>,
    /// The connection for turns.
    turn: Mutex<Option<Postgres>>,
    waiting: RankedMutex<Vec<Arc<group::PendingWrite>>>,
    asking: RankedMutex<Vec<Arc<grants::PendingGrant>>>,
    recent: recent::Recent,
    arrivals: arrivals::Arrivals,
    sealed: sealed::SealedItems,
    /// Records events, if that has begun.
    teller: OnceLock<history::Teller>,
}

impl Store {
    /// Opens the index of a store for writing: the database in its directory, or the one of a server. Creates or
    /// migrates its tables if necessary.
    pub fn open(directory: BorrowedFd<'_>, index: Option<&IndexUrl>) -> Result<Store, StoreError> {
        if let Some(url) = index {
            return Store::connect(url, OpenFor::Writing);
        }
        let (connection, directory) = Store::open_file(directory)?;
        Ok(Store {
            recent: recent::Recent::some(),
            ..Store::over(connection, Some(directory))
        })
    }

    /// Opens the index read-only, beside a writer.
    pub fn open_read_only(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
    ) -> Result<Store, StoreError> {
        if let Some(url) = index {
            return Store::connect(url, OpenFor::Reading);
        }
        let directory = duplicate(directory)?;
        check_file(directory.as_fd(), OpenFor::Reading)?;
        let path = database::path_to_read(file_in(directory.as_fd()), directory.as_fd());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection =
            rusqlite::Connection::open_with_flags(path, flags).map_err(database::plain)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        schema::check(&connection).map_err(|error| error.with_cause(&connection))?;
        let connection = Connection::Sqlite(Sqlite::prepared(connection)?);
        Ok(Store::beside(connection, directory))
    }

    /// Opens the database in a directory for writing.
    fn open_file(directory: BorrowedFd<'_>) -> Result<(Connection, OwnedFd), StoreError> {
        let directory = duplicate(directory)?;
        check_file(directory.as_fd(), OpenFor::Writing)?;
        let path = file_in(directory.as_fd());
        let mut connection = rusqlite::Connection::open(path).map_err(database::plain)?;
        let prepared = (|| {
            database::share(&connection)?;
            connection.pragma_update(None, "synchronous", "normal")?;
            schema::migrate(&mut connection)
        })();
        prepared.map_err(|error| error.with_cause(&connection))?;
        let connection = Connection::Sqlite(Sqlite::prepared(connection)?);
        Ok((connection, directory))
    }

    /// Connects to the server of an index.
    fn connect(url: &IndexUrl, purpose: OpenFor) -> Result<Store, StoreError> {
        let server = Postgres::connect(url, TIMEOUT)?;
        let connection = Connection::Postgres(Box::new(server));
        let rank = match purpose {
            OpenFor::Reading => {
                INDEX.check(&connection)?;
                Rank::IndexBefore
            }
            OpenFor::Writing => {
                INDEX.migrate(&connection)?;
                Rank::Index
            }
        };
        let store = Store::ranked(rank, connection, None);
        Ok(Store {
            url: Some(url.clone()),
            ..store
        })
    }

    /// Limits the wait of each statement to what the callers of a service accept, if the index is in a server.
    pub fn answer_soon(&self) {
        self.lock().set_timeout(SOON);
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
            readers: readers::Readers::default(),
            version: version::Version::default(),
            directory,
            url: None,
            presence: Mutex::default(),
            fence: Mutex::default(),
            turn: Mutex::default(),
            waiting: RankedMutex::new(Rank::CommitQueue, Vec::new()),
            asking: RankedMutex::new(Rank::CommitQueue, Vec::new()),
            recent: recent::Recent::none(),
            arrivals: arrivals::Arrivals::default(),
            sealed: sealed::SealedItems::default(),
            teller: OnceLock::new(),
        }
    }

    fn lock(&self) -> RankedGuard<'_, Connection> {
        let connection = self.connection.lock();
        self.record_arrivals(&connection);
        connection
    }
}

/// A number that no other process draws.
fn random_number() -> Result<i64, StoreError> {
    random_bytes().map(i64::from_ne_bytes)
}

fn random_bytes<const N: usize>() -> Result<[u8; N], StoreError> {
    random::draw().map_err(|errno| StoreError::Broken {
        what: message!(
            "no random number can be drawn: {error}",
            error = std::io::Error::from(errno)
        ),
    })
}

/// Runs a thread that asks the server of an index time and again.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    spawn_unbound(name, run).map_err(|error| StoreError::Broken {
        what: message!("no thread can watch it: {error}", error),
    })
}

/// A duplicate of the descriptor, which stays open until SQLite has finished.
fn duplicate(directory: BorrowedFd<'_>) -> Result<OwnedFd, StoreError> {
    let cannot_open = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    directory
        .try_clone_to_owned()
        .map_err(|cause| StoreError::System {
            error: rusqlite::Error::SqliteFailure(cannot_open, None),
            cause,
        })
}

/// The path of the database in a store's open directory.
fn file_in(directory: BorrowedFd<'_>) -> PathBuf {
    database::path_in(directory, OsStr::new(FILE))
}

fn check_file(directory: BorrowedFd<'_>, purpose: OpenFor) -> Result<(), StoreError> {
    database::check(directory, OsStr::new(FILE), purpose).map_err(|unfit| match unfit {
        Unfit::NotAFile => StoreError::NotAFile,
        Unfit::Missing | Unfit::Shared => StoreError::Broken {
            what: unfit.message(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ibifs reindex` and `ibifs fsck --repair` set a damaged index aside.
    #[test]
    fn no_free_descriptor_is_no_damage() {
        // SAFETY: no process has so many descriptors; the number is only passed to the system, which refuses it.
        let directory = unsafe { BorrowedFd::borrow_raw(i32::MAX) };
        let error = duplicate(directory).expect_err("no directory");
        assert!(!error.is_damage());
        let begin = "relations.sqlite3: ";
        assert!(error.to_string().starts_with(begin), "{error}");
    }
}
