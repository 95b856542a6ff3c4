//! Whether the index has been changed since: told in a moment, and without waiting for anybody.

use parking_lot::{Mutex, MutexGuard};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Store, StoreError, file_in};
use crate::archive::database;

/// So many threads may ask at once; others wait for one of them.
const WATCHES: usize = 4;

/// What tells whether others change the index: connections of their own, since the other one may be
/// busy for long.
#[derive(Debug, Default)]
pub(super) struct Version {
    /// Raised by each connection that notices a change, be it the same one: all that matters is that
    /// none is passed over.
    number: AtomicI64,
    watches: [Mutex<Option<Watch>>; WATCHES],
}

/// A connection, and what SQLite has last told it; only it can make something of that.
#[derive(Debug)]
struct Watch {
    connection: Connection,
    told: i64,
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
    /// Has it told from now on whether others change the index.
    pub fn watch(&self) -> Result<(), StoreError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        for place in &self.version.watches {
            let path = file_in(directory.as_fd());
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags).map_err(database::plain)?;
            // Who asks does not wait, not even for a moment.
            connection.busy_timeout(Duration::ZERO)?;
            let told = Watch::ask(&connection)?;
            *place.lock() = Some(Watch { connection, told });
        }
        Ok(())
    }

    /// A number that is another one, and larger, after each change that somebody else makes. What is
    /// read after it was told is as new as that or newer. None where it cannot be told at once, or
    /// nobody watches.
    pub fn version(&self) -> Result<Option<i64>, StoreError> {
        let mut free = self.version.free();
        let Some(watch) = &mut *free else {
            return Ok(None);
        };
        match Watch::ask(&watch.connection) {
            Ok(told) => {
                if watch.told != told {
                    watch.told = told;
                    self.version.number.fetch_add(1, Ordering::SeqCst);
                }
                Ok(Some(self.version.number.load(Ordering::SeqCst)))
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
