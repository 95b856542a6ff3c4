//! The errors of a resolver's database, each with its remedy.

use std::path::PathBuf;

use rustix::io::Errno;

use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use ibifs_formats::item::Names;
use ibifs_sql::database::{SchemaError, Unfit};
use ibifs_sql::engine::TransactionError;
use ibifs_sql::error::{DiskFault, StoreError};

/// An error of a resolver's database.
#[derive(Debug)]
pub enum RegistryError {
    /// The path of the database has no file name.
    NoName,
    /// The directory of the database cannot be opened.
    Directory(std::io::Error),
    /// Users other than its owner can read or write the database.
    Open {
        /// The path.
        path: PathBuf,
        /// The mode.
        mode: u32,
    },
    /// The file is not suitable as a database.
    Unfit(Unfit),
    /// SQLite or a server refused, failed, or does not answer.
    Engine(StoreError),
    /// A newer version of the program has written it; this is the schema.
    Newer(usize),
    /// A value that this program does not write.
    Broken(Message),
    /// A secret cannot be hashed: the system returns no random numbers.
    Hash(argon2::password_hash::Error),
    /// No Archive is registered by this identifier of its service.
    NotRegistered(Box<Names>),
    /// The forms of the identifier belong to different Archives.
    TwoArchives(Box<Names>),
    /// No actor of the protocol of 2009 has this identifier.
    NoActor(String),
    /// No document is registered by this identifier.
    NoDocument(String),
    /// The key is not the one of this Archive.
    WrongKey(Box<Names>),
}

impl Localize for RegistryError {
    fn message(&self) -> Message {
        match self {
            RegistryError::NoName => message!("--db requires the path of a file"),
            RegistryError::Directory(error) => {
                message!("the directory of the resolver's database: {error}", error)
            }
            RegistryError::Open { path, mode } => {
                let path = path.display();
                message!(
                    "the resolver's database '{path}' is accessible to other users (mode {mode}); restrict it with 'chmod 600 {path}'",
                    path,
                    mode = format!("{mode:04o}")
                )
            }
            RegistryError::Unfit(unfit) => message!("the resolver's database: {unfit}", unfit),
            RegistryError::Engine(error) => of_engine(error),
            RegistryError::Newer(found) => message!(
                "the resolver's database has schema {found}; use a newer ibifs",
                found
            ),
            RegistryError::Broken(what) => message!(
                "the resolver's database is damaged ({what}); restore a copy of it",
                what
            ),
            RegistryError::Hash(error) => message!(
                "a secret cannot be hashed: {error}",
                error = Message::foreign(error.to_string())
            ),
            RegistryError::NotRegistered(service) => message!(
                "no Archive is registered with the service {service}; the administrator of the resolver issues its key (ibifs resolver register)",
                service
            ),
            RegistryError::TwoArchives(service) => message!(
                "{service} are names of two registered Archives, or differ from the registered names; unregister the wrong one",
                service
            ),
            RegistryError::NoActor(id) => message!(
                "no actor {id} is registered; see 'ibifs resolver actors'",
                id
            ),
            RegistryError::NoDocument(id) => message!(
                "no document {id} is registered; see 'ibifs resolver documents'",
                id
            ),
            RegistryError::WrongKey(service) => message!(
                "the registration key is not that of {service}; register it again to get a new one (ibifs resolver register)",
                service
            ),
        }
    }
}

display_message!(RegistryError);

impl std::error::Error for RegistryError {}

impl RegistryError {
    /// The fault of the disk that is the cause, if it is one.
    pub fn disk_fault(&self) -> Option<DiskFault> {
        match self {
            RegistryError::Engine(error) => error.disk_fault(),
            RegistryError::Directory(error) => Errno::from_io_error(error).and_then(DiskFault::of),
            _ => None,
        }
    }

    /// Whether a later request may succeed: the server does not answer, or is busy with others.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            RegistryError::Engine(StoreError::Away { .. } | StoreError::Conflict)
        )
    }
}

/// An error of SQLite or of a server.
fn of_engine(error: &StoreError) -> Message {
    let error = match error {
        StoreError::Away { place, what } => {
            return message!(
                "the resolver's database in {place} cannot be reached ({what}); see whether the server runs, and try again",
                place,
                what
            );
        }
        StoreError::Server { place, what, .. } => {
            return message!("the resolver's database in {place}: {what}", place, what);
        }
        StoreError::Conflict => {
            return message!(
                "another process changed the resolver's database at the same time; try again"
            );
        }
        StoreError::Sqlite(error) => Message::foreign(error.to_string()),
        StoreError::System { cause, .. } => cause.message(),
        other => other.cause(),
    };
    message!("the resolver's database: {error}", error)
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> RegistryError {
        match error {
            StoreError::Newer { found, .. } => RegistryError::Newer(found),
            StoreError::Broken { what } => RegistryError::Broken(what),
            other => RegistryError::Engine(other),
        }
    }
}

impl TransactionError for RegistryError {
    fn of_engine(self) -> Result<StoreError, RegistryError> {
        match self {
            RegistryError::Engine(error) => Ok(error),
            other => Err(other),
        }
    }
}

impl From<rusqlite::Error> for RegistryError {
    fn from(error: rusqlite::Error) -> RegistryError {
        RegistryError::Engine(error.into())
    }
}

impl From<SchemaError> for RegistryError {
    fn from(error: SchemaError) -> RegistryError {
        StoreError::from(error).into()
    }
}
