//! Copying the database as it is at one instant, by SQLite's own interface for it.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{Store, StoreError, check_file, file_in};
use crate::archive::database;

impl Store {
    /// Writes what the index says now into a new database in a directory; whoever writes the index
    /// meanwhile is not held up. It is on disk when this returns.
    pub fn copy_to(&self, directory: BorrowedFd<'_>) -> Result<(), StoreError> {
        check_file(directory, true)?;
        at_once(&self.lock(), &file_in(directory))
    }
}

/// Writes what a database says now into one at a path that was checked.
pub(super) fn at_once(source: &Connection, target: &Path) -> Result<(), StoreError> {
    let mut target = Connection::open(target).map_err(database::plain)?;
    let backup = Backup::new(source, &mut target)?;
    // In steps, each write of somebody else would have it begin anew.
    while backup.step(-1)? != StepResult::Done {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
