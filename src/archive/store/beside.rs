//! Other databases of a store, beside its index: files in its directory. What several hosts have to share of them is in
//! tables of the server, if the index is in one.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rusqlite::{Connection, Params, Row};

use super::engine::{self, INDEX, Postgres, Sqlite};
use super::{SOON, StoreError, copy, duplicate};
use crate::archive::database::{self, OpenFor, Unfit};
use crate::formats::index_url::IndexUrl;
use crate::os::identity::host_name;
use ibi::message;

/// The most characters of a host's name in that of a file.
const LONGEST_HOST: usize = 64;

/// The name of the file of a cache. A file is of one host, as SQLite has it: where several may share the store, each has
/// its own.
pub fn cache_file(file: &'static str, index: Option<&IndexUrl>) -> Cow<'static, str> {
    if index.is_none() {
        return Cow::Borrowed(file);
    }
    let is_plain =
        |character: &char| character.is_ascii_alphanumeric() || "-.".contains(*character);
    let host: String = host_name()
        .chars()
        .filter(is_plain)
        .take(LONGEST_HOST)
        .collect();
    Cow::Owned(format!("{file}.{host}"))
}

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
    let prepared = (|| {
        database::share(&connection)?;
        connection.pragma_update(None, "synchronous", "normal")?;
        database::migrate(&mut connection, migrations)
    })();
    prepared.map_err(|error| StoreError::from(error).with_cause(&connection))?;
    Ok(Some((connection, directory)))
}

/// A database that is a file in a store's directory, or part of the database of its index in a server.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connection: engine::Connection,
    /// The directory of the file; SQLite uses its path until the connection above is closed.
    _directory: Option<OwnedFd>,
}

impl Shared {
    /// Opens a database. Returns None if it does not exist and is opened for reading.
    pub(super) fn open(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
        file: &str,
        purpose: OpenFor,
        migrations: &[&str],
    ) -> Result<Option<Shared>, StoreError> {
        let Some(url) = index else {
            let opened = open(directory, file, purpose, migrations)?;
            return opened
                .map(|(connection, directory)| Shared::over(connection, Some(directory)))
                .transpose();
        };
        let server = Postgres::connect(url, SOON)?;
        let connection = engine::Connection::Postgres(Box::new(server));
        match purpose {
            OpenFor::Reading => INDEX.check(&connection)?,
            OpenFor::Writing => INDEX.migrate(&connection)?,
        }
        Ok(Some(Shared {
            connection,
            _directory: None,
        }))
    }

    /// Replaces the rows of tables in another database by those of this one.
    pub(super) fn copy_to(
        &self,
        target: &Shared,
        tables: &[(&str, &str)],
    ) -> Result<(), StoreError> {
        let copy = || copy::rows(&self.connection, &target.connection, tables);
        match self.connection.server() {
            Some(server) => server.at_one_instant(copy),
            None => copy(),
        }
    }

    /// A database of SQLite that was opened.
    pub(super) fn over(
        connection: Connection,
        directory: Option<OwnedFd>,
    ) -> Result<Shared, StoreError> {
        Ok(Shared {
            connection: engine::Connection::Sqlite(Sqlite::prepared(connection)?),
            _directory: directory,
        })
    }
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
