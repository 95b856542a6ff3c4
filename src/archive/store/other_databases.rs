//! Other databases of a store, beside its index: files in its directory. The parts that several hosts share are in
//! tables of the server, if the index is in one.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rusqlite::Connection;

use super::server_schema::INDEX;
use super::{BesideError, SOON, StoreError, copy, duplicate};
use crate::os::identity::host_name;
use crate::sql::database::{self, OpenFor, Unfit};
use crate::sql::engine::{self, Postgres, Sqlite};
use crate::sql::index_url::IndexUrl;
use ibi::message;
use ibi::message::{Localize, Message};

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

/// A database, as its errors name it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    file: Message,
    remedy: Message,
}

impl Named {
    /// The database in a file, and what helps if that is damaged.
    pub(super) fn new(file: &str, remedy: Message) -> Named {
        Named {
            file: Message::verbatim(file),
            remedy,
        }
    }

    /// A database that ends with this process.
    fn temporary() -> Named {
        Named {
            file: message!("a temporary database"),
            remedy: message!("start the program again"),
        }
    }

    /// An error of the database.
    pub(super) fn error(&self, error: StoreError) -> StoreError {
        StoreError::Beside(Box::new(BesideError {
            file: self.file.clone(),
            remedy: self.remedy.clone(),
            error,
        }))
    }

    /// An error of the database, with that of the system.
    pub(super) fn error_in(&self, connection: &Connection, error: StoreError) -> StoreError {
        self.error(error.with_cause(connection))
    }

    /// The error of a file that is gone.
    pub(super) fn missing(&self) -> StoreError {
        self.error(StoreError::Broken {
            what: Unfit::Missing.message(),
        })
    }
}

/// Opens a database in a store's directory. Also returns a descriptor of the directory, whose path
/// SQLite uses until the database is closed. Returns None if the database does not exist and is
/// opened for reading.
fn open(
    directory: BorrowedFd<'_>,
    file: &str,
    named: &Named,
    purpose: OpenFor,
    migrations: &[&str],
) -> Result<Option<(Connection, OwnedFd)>, StoreError> {
    let directory = duplicate(directory).map_err(|error| named.error(error))?;
    let name = OsStr::new(file);
    match database::check(directory.as_fd(), name, purpose) {
        Err(Unfit::Missing) => return Ok(None),
        Err(unfit) => {
            let what = unfit.message();
            return Err(named.error(StoreError::Broken { what }));
        }
        Ok(()) => {}
    }
    let path = database::path_in(directory.as_fd(), name);
    let opened = Connection::open(path).map_err(database::plain);
    let mut connection = opened.map_err(|error| named.error(error.into()))?;
    let prepared = (|| {
        database::share(&connection)?;
        connection.pragma_update(None, "synchronous", "normal")?;
        database::migrate(&mut connection, migrations)
    })();
    prepared.map_err(|error| named.error_in(&connection, error.into()))?;
    Ok(Some((connection, directory)))
}

/// A database that is a file in a store's directory, or part of the database of its index in a server.
#[derive(Debug)]
pub(super) struct Shared {
    connection: engine::Connection,
    /// Its name in errors; None for one in a server, whose errors name that.
    named: Option<Named>,
    /// The directory of the file; SQLite uses its path until the connection above is closed.
    _directory: Option<OwnedFd>,
}

impl Shared {
    /// Opens a database. Returns None if it does not exist and is opened for reading.
    pub(super) fn open(
        directory: BorrowedFd<'_>,
        index: Option<&IndexUrl>,
        file: &str,
        named: &Named,
        purpose: OpenFor,
        migrations: &[&str],
    ) -> Result<Option<Shared>, StoreError> {
        let Some(url) = index else {
            let opened = open(directory, file, named, purpose, migrations)?;
            return opened
                .map(|(connection, directory)| Shared::over(connection, named, Some(directory)))
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
            named: None,
            _directory: None,
        }))
    }

    /// Runs an action on the database. Its errors name the file.
    pub(super) fn run<T>(
        &self,
        act: impl FnOnce(&engine::Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        act(&self.connection).map_err(|error| self.error(error))
    }

    fn error(&self, error: StoreError) -> StoreError {
        match (&self.named, self.connection.sqlite()) {
            (Some(named), Some(connection)) => named.error_in(connection, error),
            _ => error,
        }
    }

    /// Replaces the rows of tables in another database by those of this one.
    pub(super) fn copy_to(
        &self,
        target: &Shared,
        tables: &[(&str, &str)],
    ) -> Result<(), StoreError> {
        // Two files have the same name, in two directories.
        let file = if target.named.is_some() { target } else { self };
        let copy = || {
            copy::rows(&self.connection, &target.connection, tables)
                .map_err(|error| file.error(error))
        };
        match self.connection.server() {
            Some(server) => server.at_one_instant(copy),
            None => copy(),
        }
    }

    /// Opens a database that ends with this process.
    pub(super) fn temporary(migrations: &[&str]) -> Result<Shared, StoreError> {
        let named = Named::temporary();
        let opened = Connection::open("").map_err(|error| named.error(error.into()));
        let mut connection = opened?;
        database::migrate(&mut connection, migrations)
            .map_err(|error| named.error_in(&connection, error.into()))?;
        Shared::over(connection, &named, None)
    }

    /// A database of SQLite that was opened.
    fn over(
        connection: Connection,
        named: &Named,
        directory: Option<OwnedFd>,
    ) -> Result<Shared, StoreError> {
        let prepared = Sqlite::prepared(connection).map_err(|error| named.error(error))?;
        Ok(Shared {
            connection: engine::Connection::Sqlite(prepared),
            named: Some(named.clone()),
            _directory: directory,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        ACCESSES_FILE, Accesses, DiskFault, HARVEST_FILE, Harvest, PICTURES_FILE, PictureCache,
        SearchIndex, TextIndex,
    };
    use super::*;
    use crate::os::testing::TemporaryDirectory;
    use std::io::ErrorKind;

    /// A damaged file is named, and counts not as damage of the index.
    #[test]
    fn errors_name_the_file() {
        let place = TemporaryDirectory::new();
        let (search, texts) = ("search.sqlite3", "search-text.sqlite3.a-host");
        let files = [HARVEST_FILE, ACCESSES_FILE, PICTURES_FILE, search, texts];
        for file in files {
            std::fs::write(place.path().join(file), "no database ".repeat(100)).expect("written");
        }
        let directory = place.opened();
        let directory = directory.as_fd();
        let opened = [
            Harvest::open(directory, None).map(drop),
            Accesses::open(directory, None).map(drop),
            PictureCache::open(directory, PICTURES_FILE).map(drop),
            SearchIndex::open(directory, search).map(drop),
            TextIndex::open(directory, texts).map(drop),
        ];
        for (file, opened) in files.iter().zip(opened) {
            let error = opened.expect_err(file);
            let begin = format!("{file} is damaged (file is not a database); end ");
            assert!(error.to_string().starts_with(&begin), "{error}");
            assert_eq!((error.is_damage(), error.disk_fault()), (false, None));
        }
    }

    #[test]
    fn errors_of_the_disk_keep_their_meaning() {
        let named = Named::new("harvest.sqlite3", message!("remove it"));
        let failed = |code: i32| {
            let error = rusqlite::ffi::Error::new(code);
            rusqlite::Error::SqliteFailure(error, None)
        };
        let full = named.error(failed(rusqlite::ffi::SQLITE_FULL).into());
        assert_eq!(full.disk_fault(), Some(DiskFault::Full));
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        let broken = named.error(StoreError::System {
            error: failed(rusqlite::ffi::SQLITE_IOERR_WRITE),
            cause: rustix::io::Errno::IO.into(),
        });
        let sentence = "harvest.sqlite3: Input/output error (os error 5)";
        assert_eq!(broken.to_string(), sentence);
        assert_eq!(broken.disk_fault(), Some(DiskFault::Broken));
        let newer = named.error(StoreError::Newer { found: 9, known: 3 });
        let sentence = "harvest.sqlite3 has schema 9, this ibifs knows 3; use a newer ibifs";
        assert_eq!(newer.to_string(), sentence);
        let linked = named.error(StoreError::Broken {
            what: Unfit::NotAFile.message(),
        });
        let sentence = "harvest.sqlite3: is not a file; remove it";
        assert_eq!(linked.to_string(), sentence);
    }
}
