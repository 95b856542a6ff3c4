//! Small pictures of files, as they were drawn for pages.
//!
//! This is a database of its own: it can be removed at any time, and pictures are drawn again. It knows files by a key
//! that changes with them, and forgets the pictures that were drawn first when it grows too large.

use std::os::fd::BorrowedFd;

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};

use super::StoreError;
use super::other_databases::{Named, Shared};
use crate::sql::database::OpenFor;
use crate::sql::engine::{Connection, params};
use ibi::message;

/// File name of the database.
pub const PICTURES_FILE: &str = "pictures.sqlite3";

/// The bytes of pictures that are kept.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// After so many new bytes it is looked whether there are more.
const LOOK_AFTER: u64 = 8 * 1024 * 1024;

/// As in the relation store: one entry for each version, and no entry is ever changed.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE picture (
        number INTEGER PRIMARY KEY,
        key    TEXT NOT NULL UNIQUE,
        bytes  BLOB NOT NULL
    ) STRICT;
"];

/// The open database.
#[derive(Debug)]
pub struct PictureCache {
    /// With the number of bytes that were written since it was last looked how many there are.
    open: Mutex<(Shared, u64)>,
}

impl PictureCache {
    /// Opens the database of this name in a store's directory, and creates it if necessary.
    pub fn open(directory: BorrowedFd<'_>, file: &str) -> Result<PictureCache, StoreError> {
        // A file may become secret after it was drawn. SQLite gives its log the same permissions.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let _ = rustix::fs::openat(directory, file, flags, Mode::from_raw_mode(0o600));
        let remedy =
            message!("end the services of the store and remove it: then pictures are drawn again");
        let named = Named::new(file, remedy);
        let opened = Shared::open(directory, None, file, &named, OpenFor::Writing, MIGRATIONS)?;
        let cache = PictureCache {
            open: Mutex::new((opened.ok_or_else(|| named.missing())?, 0)),
        };
        cache.run(|connection, _| forget(connection, MOST_BYTES))?;
        Ok(cache)
    }

    /// Runs an action on the database, with the number of bytes that were written. Its errors name the file.
    fn run<T>(
        &self,
        act: impl FnOnce(&Connection, &mut u64) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut open = self.open.lock();
        let (database, written) = &mut *open;
        database.run(|connection| act(connection, written))
    }

    /// The picture with this key.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT bytes FROM picture WHERE key = ?1";
        self.run(|connection, _| connection.first(sql, params![key], |row| row.get(0)))
    }

    /// Keeps a picture.
    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_within(key, bytes, MOST_BYTES, LOOK_AFTER)
    }

    fn put_within(
        &self,
        key: &str,
        bytes: &[u8],
        most: u64,
        look_after: u64,
    ) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO picture (key, bytes) VALUES (?1, ?2)";
        self.run(|connection, written| {
            connection.execute(sql, params![key, bytes])?;
            *written += bytes.len() as u64;
            if *written >= look_after {
                *written = 0;
                forget(connection, most)?;
            }
            Ok(())
        })
    }
}

/// Forgets the pictures before the latest with so many bytes.
fn forget(connection: &Connection, most: u64) -> Result<(), StoreError> {
    connection.execute(
        "DELETE FROM picture WHERE number <= (
            SELECT number FROM (
                SELECT number, sum(length(bytes)) OVER (ORDER BY number DESC) AS bytes FROM picture
            ) WHERE bytes > ?1 ORDER BY number DESC LIMIT 1
        )",
        params![i64::try_from(most).unwrap_or(i64::MAX)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;
    use std::os::fd::AsFd;

    #[test]
    fn the_latest_pictures_are_kept() {
        let place = TemporaryDirectory::new();
        let directory = std::fs::File::open(place.path()).expect("a directory");
        let cache = PictureCache::open(directory.as_fd(), PICTURES_FILE).expect("a database");
        for number in 0..10 {
            let key = format!("key{number}");
            cache.put_within(&key, &[7; 10], 45, 10).expect("kept");
        }
        cache
            .put_within("key9", &[8; 10], 45, 10)
            .expect("replaced");
        drop(cache);
        let cache =
            PictureCache::open(directory.as_fd(), PICTURES_FILE).expect("the same database");
        let found = |number: u8| cache.get(&format!("key{number}")).expect("read");
        for number in 0..6 {
            assert_eq!(found(number), None, "{number}");
        }
        for number in 6..9 {
            assert_eq!(found(number), Some(vec![7; 10]), "{number}");
        }
        assert_eq!(found(9), Some(vec![8; 10]));
    }
}
