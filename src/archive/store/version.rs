//! Detects changes of the index by other connections, immediately and without waiting.

use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::{SOON, Store, StoreError, readers, spawn};
use crate::sql::engine::Postgres;
use crate::sql::index_url::IndexUrl;

/// The number of threads that may ask at once; others wait for one of them.
const WATCHES: usize = 4;

/// Watches for changes of the index. It has connections of its own, since the main one may be busy
/// for a long time.
#[derive(Debug, Default)]
pub(super) struct Version {
    /// Raised by each connection that notices a change, even if another one has noticed the same
    /// change: what matters is that no change is missed.
    number: AtomicI64,
    watches: [Mutex<Option<Watch>>; WATCHES],
    /// The last state that was seen of a server, which is asked by a thread of its own: its answers take time.
    server: OnceLock<Arc<Seen>>,
}

/// The number of writes that a server has seen.
#[derive(Debug)]
struct Seen(AtomicI64);

/// [`Seen`] while the server does not answer.
const UNKNOWN: i64 = -1;

/// The interval at which a server is asked.
const EVERY: Duration = Duration::from_millis(250);

/// Asks a server until no reader wants to know any more.
fn follow(url: &IndexUrl, seen: &Weak<Seen>) {
    let mut server = Postgres::connect(url, SOON);
    while let Some(seen) = seen.upgrade() {
        if server.is_err() {
            server = Postgres::connect(url, SOON);
        }
        let writes = server.as_ref().map_err(StoreError::cause);
        let writes = writes.and_then(|server| server.writes().map_err(|error| error.cause()));
        let writes = writes.unwrap_or_else(|error| {
            log::debug!("changes of the index are not seen: {error}");
            UNKNOWN
        });
        seen.0.store(writes, Ordering::SeqCst);
        drop(seen);
        std::thread::sleep(EVERY);
    }
}

/// A connection and the last value of its `data_version`, which is only comparable within one connection.
#[derive(Debug)]
struct Watch {
    connection: Connection,
    data_version: i64,
}

impl Version {
    fn free(&self) -> MutexGuard<'_, Option<Watch>> {
        let [first, ..] = &self.watches;
        let free = self.watches.iter().find_map(Mutex::try_lock);
        free.unwrap_or_else(|| first.lock())
    }
}

impl Watch {
    fn ask(connection: &Connection) -> Result<i64, rusqlite::Error> {
        let mut statement = connection.prepare_cached("PRAGMA data_version")?;
        statement.query_row([], |row| row.get(0))
    }
}

impl Store {
    /// Prepares for many threads: they read beside each other, and changes of the index by others are watched for.
    pub fn watch(&self) -> Result<(), StoreError> {
        if let Some(url) = &self.url {
            let url = url.clone();
            let seen = Arc::new(Seen(AtomicI64::new(UNKNOWN)));
            let watched = Arc::downgrade(&seen);
            let _ = self.version.server.set(seen);
            return spawn("index", move || follow(&url, &watched));
        }
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        for place in &self.version.watches {
            let connection = readers::open(directory)?;
            // The query must not wait at all.
            connection.busy_timeout(Duration::ZERO)?;
            let data_version = Watch::ask(&connection)?;
            *place.lock() = Some(Watch {
                connection,
                data_version,
            });
        }
        self.open_readers(directory)
    }

    /// A number that grows with each change by another connection. Data read after this call is at
    /// least as new as the number, except that a server is asked every quarter of a second. None if the number is
    /// not available at once, or the store does not watch for changes.
    pub fn version(&self) -> Result<Option<i64>, StoreError> {
        if let Some(seen) = self.version.server.get() {
            let writes = seen.0.load(Ordering::SeqCst);
            return Ok((writes != UNKNOWN).then_some(writes));
        }
        let mut free = self.version.free();
        let Some(watch) = &mut *free else {
            return Ok(None);
        };
        match Watch::ask(&watch.connection) {
            Ok(data_version) => {
                if watch.data_version != data_version {
                    watch.data_version = data_version;
                    self.version.number.fetch_add(1, Ordering::SeqCst);
                }
                Ok(Some(self.version.number.load(Ordering::SeqCst)))
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
