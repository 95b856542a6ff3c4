//! Copies the database as it is at one instant, with SQLite's backup interface.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{Store, StoreError, check_file, file_in};
use crate::archive::database::{self, OpenFor};

impl Store {
    /// Copies the current contents of the index to a new database in a directory, without blocking
    /// writers. The copy is on disk when this returns.
    pub fn copy_to(&self, directory: BorrowedFd<'_>) -> Result<(), StoreError> {
        check_file(directory, OpenFor::Writing)?;
        match self.lock().sqlite() {
            Some(connection) => at_once(connection, &file_in(directory)),
            None => Ok(()),
        }
    }
}

/// Copies the current contents of a database to one at a path that was checked.
pub(super) fn at_once(source: &Connection, target: &Path) -> Result<(), StoreError> {
    let mut target = Connection::open(target).map_err(database::plain)?;
    let backup = Backup::new(source, &mut target)?;
    // A copy in several steps starts again after each write by another connection.
    while backup.step(-1)? != StepResult::Done {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
