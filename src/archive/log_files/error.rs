//! The reasons for which the log cannot be read or written.

use rustix::io::Errno;

use crate::archive::tree::{Action, TreeError};
use crate::formats::tlog::LogError;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The reason for which the log of a store cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFileError {
    /// The system's reason.
    File(TreeError),
    /// A file is a link, a FIFO or the like.
    NotRegular {
        /// Its path in the store.
        path: String,
    },
    /// A file of the log is missing.
    Missing {
        /// Its path in the store.
        path: String,
    },
    /// A file of the log is not what was written.
    Damaged {
        /// Its path in the store.
        path: String,
    },
    /// A key or the checkpoint is not one of this log.
    Refused {
        /// Its path in the store.
        path: String,
        /// The reason.
        error: LogError,
    },
    /// A file would be too long to be read.
    Full {
        /// Its path in the store.
        path: String,
    },
    /// A checkpoint is signed with an old key of the log, which never was as that says.
    OldKey {
        /// The number of entries with which the log got another key.
        size: u64,
    },
    /// A log cannot have this origin.
    Name {
        /// The origin.
        origin: String,
    },
    /// The line of an entry is missing, or is not one.
    Line {
        /// The number of the entry.
        number: u64,
    },
    /// A line cannot be written.
    Unwritable {
        /// The number that it would have.
        number: u64,
    },
    /// The line or a tile was changed, so that there is no proof.
    Unproved {
        /// The number of the entry.
        number: u64,
    },
    /// The log ends before an entry.
    NoEntry {
        /// The number of the entry.
        number: u64,
    },
    /// The log was never as long as was asked.
    Shorter {
        /// The number of entries.
        older: u64,
    },
}

impl From<TreeError> for LogFileError {
    fn from(error: TreeError) -> LogFileError {
        LogFileError::File(error)
    }
}

/// The error of an action on a path in the store.
pub(super) fn failed(action: Action, path: &str) -> impl Fn(Errno) -> LogFileError + use<> {
    let path = path.to_owned();
    move |errno| TreeError::new(action, &path, errno).into()
}

/// The system's reason in an error of the standard library.
pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl LogFileError {
    /// The fault, without a remedy.
    pub fn fault(&self) -> Message {
        match self {
            LogFileError::File(error) => error.message(),
            LogFileError::NotRegular { path } => message!("'{path}' is not a regular file", path),
            LogFileError::Missing { path } => message!("'{path}' is missing", path),
            LogFileError::Damaged { path } => message!("'{path}' is damaged", path),
            LogFileError::Refused { path, error } => message!("'{path}': {error}", path, error),
            LogFileError::Full { path } => message!("'{path}' is full", path),
            LogFileError::OldKey { size } => message!(
                "it is signed with an old key of the log, with which the log was never so: it got another one after {size} events, and the old one may have been stolen",
                size
            ),
            LogFileError::Name { origin } => message!(
                "'{origin}' cannot be the name of a log: it is empty, or has a space, a control character or '+'",
                origin
            ),
            LogFileError::Line { number } => message!(
                "the line of entry {number} is missing in 'log/events', or damaged",
                number
            ),
            LogFileError::Unwritable { number } => message!(
                "entry {number} cannot be logged: its line has a newline, or is longer than 65,536 bytes",
                number
            ),
            LogFileError::Unproved { number } => message!(
                "entry {number} cannot be proved: its line or a tile was changed",
                number
            ),
            LogFileError::NoEntry { number } => {
                message!("the log ends before entry {number}", number)
            }
            LogFileError::Shorter { older } => {
                message!("the log has fewer entries than {older}", older)
            }
        }
    }

    /// Whether a backup has the files as they were.
    pub(super) fn is_of_files(&self) -> bool {
        matches!(
            self,
            LogFileError::Missing { .. }
                | LogFileError::Damaged { .. }
                | LogFileError::Refused { .. }
                | LogFileError::Line { .. }
                | LogFileError::Unproved { .. }
        )
    }
}

impl Localize for LogFileError {
    fn message(&self) -> Message {
        let error = self.fault();
        if self.is_of_files() {
            message!(
                "{error}; restore the directory 'log' of the store from a backup",
                error
            )
        } else {
            error
        }
    }
}

display_message!(LogFileError);

impl std::error::Error for LogFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogFileError::File(error) => Some(error),
            LogFileError::Refused { error, .. } => Some(error),
            _ => None,
        }
    }
}
