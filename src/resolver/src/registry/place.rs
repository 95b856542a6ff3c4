//! The place of the database of a resolver: a file, or a database of a server, which several resolvers share.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{RegistryError, guarded, schema};
use ibifs_os::directory::Directory;
use ibifs_sql::database::{self, OpenFor};
use ibifs_sql::engine::{Connection, Postgres, Sqlite};
use ibifs_sql::error::StoreError;
use ibifs_sql::index_url::{IndexUrl, IndexUrlError, NamedBy};

/// The time that a command waits for a server.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The place of a resolver's database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryPlace {
    /// A file.
    File(PathBuf),
    /// A database of a server.
    Server(IndexUrl),
}

impl RegistryPlace {
    /// The place that a user names: a URL with the scheme of a server, or the path of a file.
    ///
    /// # Errors The URL is incomplete, or has a password.
    pub fn parse(text: &OsStr) -> Result<RegistryPlace, IndexUrlError> {
        let is_url = |text: &&str| {
            ["postgres://", "postgresql://"]
                .iter()
                .any(|scheme| text.starts_with(scheme))
        };
        match text.to_str().filter(is_url) {
            Some(url) => {
                let url = IndexUrl::parse(url)?.named_by(NamedBy::Caller);
                Ok(RegistryPlace::Server(url))
            }
            None => Ok(RegistryPlace::File(text.into())),
        }
    }

    /// Opens the database there. Creates or migrates it where needed. A file is in the directory that is returned.
    pub(super) fn open(&self) -> Result<(Connection, Option<OwnedFd>), RegistryError> {
        match self {
            RegistryPlace::File(path) => {
                let (connection, directory) = open_file(path)?;
                Ok((connection, Some(directory)))
            }
            RegistryPlace::Server(url) => {
                let server = Postgres::connect(url, TIMEOUT)?;
                let connection = Connection::Postgres(Box::new(server));
                schema::SERVER.migrate(&connection)?;
                Ok((connection, None))
            }
        }
    }
}

fn open_file(path: &Path) -> Result<(Connection, OwnedFd), RegistryError> {
    let name = path.file_name().ok_or(RegistryError::NoName)?;
    let above = match path.parent() {
        Some(above) if above != Path::new("") => above,
        _ => Path::new("."),
    };
    let directory = OwnedFd::from(
        Directory::open(above).map_err(|errno| RegistryError::Directory(errno.into()))?,
    );
    guarded::guard(&directory, name, path)?;
    let mut connection = connect(&directory, name)?;
    let migrated = database::migrate(&mut connection, schema::MIGRATIONS);
    migrated.map_err(|error| StoreError::from(error).with_cause(&connection))?;
    Ok((Connection::Sqlite(Sqlite::prepared(connection)?), directory))
}

pub(super) fn connect(
    directory: &OwnedFd,
    name: &OsStr,
) -> Result<rusqlite::Connection, RegistryError> {
    database::check(directory.as_fd(), name, OpenFor::Writing).map_err(RegistryError::Unfit)?;
    let path = database::path_in(directory.as_fd(), name);
    let connection = rusqlite::Connection::open(path).map_err(database::plain)?;
    let shared = database::share(&connection)
        .and_then(|()| connection.pragma_update(None, "synchronous", "full"));
    shared.map_err(|error| StoreError::from(error).with_cause(&connection))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_no_path() {
        let place = |text: &str| RegistryPlace::parse(OsStr::new(text));
        let path = "srv/resolver.db";
        assert_eq!(place(path), Ok(RegistryPlace::File(path.into())));
        for url in [
            "postgres://u@h:5432/d",
            "postgresql://u@h/d?sslmode=require",
        ] {
            let expected = RegistryPlace::Server(IndexUrl::parse(url).expect(url));
            assert_eq!(place(url), Ok(expected));
        }
        assert_eq!(place("postgres://u:p@h/d"), Err(IndexUrlError::Password));
        assert!(place("postgres://h/d").is_err());
    }
}
