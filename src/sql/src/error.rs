//! Errors of databases, as sentences with the remedy.

use std::io::ErrorKind;

use rusqlite::{Connection, ErrorCode};
use rustix::io::Errno;

use crate::database::SchemaError;
use ibi::message::{Localize, Message};
use ibi::names::Names;
use ibi::{display_message, message};

/// File name of the index of an Archive: an error that names no other file is one of the index.
pub const FILE: &str = "relations.sqlite3";

/// The reason why the disk refuses a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// It is full, or a quota is used up.
    Full,
    /// It gives an error, or is read-only.
    Broken,
}

impl DiskFault {
    /// The fault that a system error means, if it is one of the disk.
    #[must_use]
    pub fn of(errno: Errno) -> Option<DiskFault> {
        match errno {
            Errno::NOSPC | Errno::DQUOT => Some(DiskFault::Full),
            Errno::IO | Errno::ROFS => Some(DiskFault::Broken),
            _ => None,
        }
    }
}

/// An error of a database beside the index.
#[derive(Debug)]
pub struct BesideError {
    /// The file.
    pub file: Message,
    /// The remedy if it is damaged, and what is lost with it.
    pub remedy: Message,
    /// The error; never one of this kind.
    pub error: StoreError,
}

impl BesideError {
    /// Whether the database is damaged, as [`StoreError::is_damage`] is of the index.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.error.is_damage()
    }
}

impl Localize for BesideError {
    fn message(&self) -> Message {
        let (file, remedy) = (&self.file, &self.remedy);
        match &self.error {
            StoreError::Broken { what } => message!("{file}: {what}; {remedy}", file, what, remedy),
            error if error.is_damage() => message!(
                "{file} is damaged ({error}); {remedy}",
                file,
                error = error.cause(),
                remedy
            ),
            error => error.message_of(file),
        }
    }
}

/// An error of the relation store.
#[derive(Debug)]
pub enum StoreError {
    /// SQLite refused or failed.
    Sqlite(rusqlite::Error),
    /// A directory, a device or a pipe is in the place of the database.
    NotAFile,
    /// SQLite failed because of a system error.
    System {
        /// SQLite's error.
        error: rusqlite::Error,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A newer ibifs has written this database.
    Newer {
        /// The schema version found.
        found: usize,
        /// The newest one that this program knows.
        known: usize,
    },
    /// The database is older than this program and open read-only.
    Older {
        /// The schema version found.
        found: usize,
    },
    /// A value that ibifs cannot have written.
    Broken {
        /// The table, the column and the value.
        what: Message,
    },
    /// The server of the index does not answer.
    Away {
        /// Host, port and database.
        place: String,
        /// The event.
        what: Message,
    },
    /// The server of the index refused.
    Server {
        /// Host, port and database.
        place: String,
        /// The kind of the error.
        kind: ErrorKind,
        /// The message.
        what: Message,
    },
    /// A process on another machine writes the index.
    InUse {
        /// The name of the machine.
        host: String,
        /// The number of the process there.
        pid: u32,
    },
    /// This process was not heard of for so long that another one may have taken its place.
    Lapsed,
    /// Another transaction came first, time and again.
    Conflict,
    /// A name is already recorded for another item.
    Taken {
        /// The name.
        name: String,
        /// The item that has it.
        holder: Box<Names>,
    },
    /// An error of a database beside the index.
    Beside(Box<BesideError>),
}

impl From<SchemaError> for StoreError {
    fn from(error: SchemaError) -> StoreError {
        match error {
            SchemaError::Sqlite(error) => StoreError::Sqlite(error),
            SchemaError::Newer { found, known } => StoreError::Newer { found, known },
            SchemaError::Version(found) => StoreError::Broken {
                what: message!("schema version {found}", found),
            },
        }
    }
}

impl StoreError {
    /// The kind of the system error, for callers that report a number.
    pub fn kind(&self) -> ErrorKind {
        let error = match self {
            StoreError::Sqlite(error) => error,
            StoreError::System { cause, .. } => return cause.kind(),
            StoreError::Server { kind, .. } => return *kind,
            StoreError::Away { .. } | StoreError::Conflict => return ErrorKind::WouldBlock,
            StoreError::InUse { .. } => return ErrorKind::ResourceBusy,
            StoreError::Lapsed => return ErrorKind::StaleNetworkFileHandle,
            StoreError::Beside(beside) => return beside.error.kind(),
            _ => return ErrorKind::Other,
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => ErrorKind::StorageFull,
            Some(ErrorCode::ReadOnly) => ErrorKind::ReadOnlyFilesystem,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorKind::ResourceBusy,
            Some(ErrorCode::OutOfMemory) => ErrorKind::OutOfMemory,
            Some(ErrorCode::PermissionDenied) => ErrorKind::PermissionDenied,
            _ => ErrorKind::Other,
        }
    }
}

impl StoreError {
    /// Adds the system's error if SQLite only reports that input or output failed.
    pub fn with_cause(self, connection: &Connection) -> StoreError {
        let StoreError::Sqlite(error) = self else {
            return self;
        };
        let is_systems = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen)
        );
        // SAFETY: the handle is that of an open connection that no other thread uses now.
        let errno = unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) };
        match (is_systems, errno) {
            (true, 1..) => StoreError::System {
                error,
                cause: std::io::Error::from_raw_os_error(errno),
            },
            _ => StoreError::Sqlite(error),
        }
    }

    /// The fault of the disk that is the cause, if it is one.
    pub fn disk_fault(&self) -> Option<DiskFault> {
        match self {
            StoreError::System { cause, .. } => Errno::from_io_error(cause).and_then(DiskFault::of),
            StoreError::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => Some(DiskFault::Full),
                Some(ErrorCode::SystemIoFailure | ErrorCode::ReadOnly) => Some(DiskFault::Broken),
                _ => None,
            },
            StoreError::Server { kind, .. } => {
                (*kind == ErrorKind::StorageFull).then_some(DiskFault::Full)
            }
            StoreError::Beside(beside) => beside.error.disk_fault(),
            _ => None,
        }
    }

    /// Whether the index is damaged, and not only in use, inaccessible or newer than this program.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
        match self {
            StoreError::Sqlite(error) => error
                .sqlite_error_code()
                .is_none_or(|code| matches!(code, DatabaseCorrupt | NotADatabase | Unknown)),
            StoreError::Broken { .. } | StoreError::NotAFile => true,
            StoreError::System { .. }
            | StoreError::Newer { .. }
            | StoreError::Older { .. }
            | StoreError::Away { .. }
            | StoreError::Server { .. }
            | StoreError::Conflict
            | StoreError::InUse { .. }
            | StoreError::Lapsed
            | StoreError::Taken { .. }
            | StoreError::Beside(_) => false,
        }
    }
}

impl StoreError {
    /// The cause without the remedy.
    pub fn cause(&self) -> Message {
        match self {
            StoreError::Sqlite(error) => Message::foreign(error.to_string()),
            StoreError::Broken { what } => what.clone(),
            other => other.message(),
        }
    }

    /// The sentence, of a database in this file.
    fn message_of(&self, file: &Message) -> Message {
        match self {
            StoreError::Sqlite(error) if self.is_damage() => message!(
                "{file} is damaged ({error}); 'ibifs reindex' rebuilds it from the tree",
                file,
                error = Message::foreign(error.to_string())
            ),
            StoreError::NotAFile => message!(
                "{file} is not a regular file; remove it and run 'ibifs reindex'",
                file
            ),
            StoreError::Sqlite(error) => message!(
                "{file}: {error}",
                file,
                error = Message::foreign(error.to_string())
            ),
            StoreError::System { cause, .. } => message!("{file}: {cause}", file, cause),
            StoreError::Newer { found, known } => message!(
                "{file} has schema {found}, this ibifs knows {known}; use a newer ibifs",
                file,
                found,
                known
            ),
            StoreError::Older { found } => message!(
                "{file} has the older schema {found}; mount the store or run 'ibifs reindex' once",
                file,
                found
            ),
            StoreError::Broken { what } => {
                message!(
                    "{file}: {what}; 'ibifs reindex' rebuilds it from the tree",
                    file,
                    what
                )
            }
            StoreError::Away { place, what } => message!(
                "the index in {place} cannot be reached ({what}); see whether the server runs, and try again",
                place,
                what
            ),
            StoreError::Server { place, what, .. } => {
                message!("the index in {place}: {what}", place, what)
            }
            StoreError::InUse { host, pid } => message!(
                "the index is in use by process {pid} on {host}; run this there, or after it has ended",
                pid,
                host
            ),
            StoreError::Lapsed => message!(
                "this process could not reach the index for so long that another one may write it now; start it again"
            ),
            StoreError::Conflict => {
                message!("another host changed the index at the same time; try again")
            }
            StoreError::Taken { name, holder } => {
                message!("'{name}' is already recorded for {holder}", name, holder)
            }
            StoreError::Beside(beside) => beside.message(),
        }
    }
}

impl Localize for StoreError {
    fn message(&self) -> Message {
        self.message_of(&Message::verbatim(FILE))
    }
}

display_message!(StoreError);

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Sqlite(error) => Some(error),
            StoreError::System { cause, .. } => Some(cause),
            StoreError::Beside(beside) => Some(&beside.error),
            StoreError::NotAFile
            | StoreError::Newer { .. }
            | StoreError::Older { .. }
            | StoreError::Broken { .. }
            | StoreError::Away { .. }
            | StoreError::Server { .. }
            | StoreError::Conflict
            | StoreError::InUse { .. }
            | StoreError::Lapsed
            | StoreError::Taken { .. } => None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Sqlite(error)
    }
}
