//! Further connections to the index, so that a thread that only reads waits for no other.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

use rusqlite::OpenFlags;

use super::{Store, StoreError, file_in};
use crate::archive::lock_order::{Rank, RankedGuard, RankedMutex};
use crate::sql::database;
use crate::sql::engine::{Connection, Sqlite};

/// The number of threads that may read beside the one that has the connection for writing: one more than a single client of a
/// service is answered in.
const READERS: usize = 5;

/// The time that a reader waits while SQLite has the database for itself.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The connections, once they are open.
#[derive(Debug, Default)]
pub(super) struct Readers(OnceLock<Vec<RankedMutex<Connection>>>);

/// A connection that reads the database in a directory, beside one that writes.
pub(super) fn open(directory: &OwnedFd) -> Result<rusqlite::Connection, StoreError> {
    let path = file_in(directory.as_fd());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags).map_err(database::plain)?;
    // The first read opens the log. Later ones are those of threads that act as users, who may not.
    connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
    Ok(connection)
}

impl Store {
    /// Opens the connections, if the index is a file.
    pub(super) fn open_readers(&self, directory: &OwnedFd) -> Result<(), StoreError> {
        let opened = (0..READERS).map(|_| {
            let connection = open(directory)?;
            connection.busy_timeout(TIMEOUT)?;
            let connection = Connection::Sqlite(Sqlite::prepared(connection)?);
            Ok(RankedMutex::new(Rank::Index, connection))
        });
        let opened = opened.collect::<Result<Vec<_>, StoreError>>()?;
        let _ = self.readers.0.set(opened);
        Ok(())
    }

    /// A connection for statements that only read: the one for writing if it is free, else a free reader. Each sees
    /// what was committed before.
    pub(super) fn reading(&self) -> RankedGuard<'_, Connection> {
        if self.arrivals.any() {
            return self.lock();
        }
        self.reading_rows()
    }

    /// The same, for what does not concern items whose rows are held back.
    pub(super) fn reading_rows(&self) -> RankedGuard<'_, Connection> {
        let readers = self.readers.0.get().into_iter().flatten();
        let all = std::iter::once(&self.connection).chain(readers);
        let free = all.into_iter().find_map(RankedMutex::try_lock);
        free.unwrap_or_else(|| self.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;

    /// A thread that writes, or reads for a long time, keeps no other reader waiting.
    #[test]
    fn threads_read_beside_each_other() {
        let directory = TemporaryDirectory::new();
        let store = Store::open(directory.opened().as_fd(), None).expect("a store");
        store.watch().expect("connections");
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let _main = store.lock();
            scope.spawn(|| sender.send(store.reading().exists("SELECT 1 FROM item", &[])));
            let answer = receiver.recv_timeout(TIMEOUT).expect("an answer");
            assert!(!answer.expect("read"));
        });
    }
}
