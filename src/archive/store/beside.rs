//! Other databases in a store, beside its index.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rusqlite::{Connection, Params, Row};

use super::{StoreError, duplicate};
use crate::archive::database::{self, OpenFor, Unfit};
use ibi::message;

/// Opens a database in a store's directory. Also returns a descriptor of the directory, whose path
/// SQLite uses until the database is closed. Returns None if the database does not exist and is
/// opened for reading.
pub(super) fn open(
    directory: BorrowedFd<'_>,
    file: &str,
    purpose: OpenFor,
    migrations: &[&str],
) -> Result<Option<(Connection, OwnedFd)>, StoreError> {
    let directory = duplicate(directory)?;
    let name = OsStr::new(file);
    match database::check(directory.as_fd(), name, purpose) {
        Err(Unfit::Missing) => return Ok(None),
        Err(unfit) => {
            return Err(StoreError::Broken {
                what: message!("{file}: {unfit}", file, unfit),
            });
        }
        Ok(()) => {}
    }
    let path = database::path_in(directory.as_fd(), name);
    let mut connection = Connection::open(path).map_err(database::plain)?;
    database::share(&connection)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    database::migrate(&mut connection, migrations)?;
    Ok(Some((connection, directory)))
}

/// The rows of a statement, each read by `read`.
pub(super) fn each<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(params)?;
    let mut values = Vec::new();
    while let Some(row) = found.next()? {
        values.push(read(row)?);
    }
    Ok(values)
}
