//! The reasons why a zip file ends early.

use std::fmt;

use crate::archive::ArchiveError;

/// The most entries of a zip file. The attributes of each are held until the end, some 300 bytes.
pub(super) const MOST_ENTRIES: usize = 1_000_000;
/// The most entries of a bag, of which the manifest is held until the end as well.
pub(super) const MOST_IN_A_BAG: usize = 200_000;

/// The reason why a zip file ends early.
#[derive(Debug)]
pub(super) enum ZipError {
    /// The item cannot be read.
    Archive(ArchiveError),
    /// A file cannot be read, or work has been cancelled.
    Io(std::io::Error),
    /// An entry that the format cannot have.
    Format(rawzip::Error),
    /// The file with this path has changed while it was read.
    Changed(Vec<u8>),
    /// The item has more than so many files and directories.
    TooMany(usize),
}

impl fmt::Display for ZipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZipError::Archive(error) => error.fmt(f),
            ZipError::Io(error) => error.fmt(f),
            ZipError::Format(error) => error.fmt(f),
            ZipError::Changed(path) => write!(
                f,
                "{} has changed while it was read",
                String::from_utf8_lossy(path)
            ),
            ZipError::TooMany(most) => write!(f, "it has more than {most} files and directories"),
        }
    }
}

impl std::error::Error for ZipError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ZipError::Archive(error) => Some(error),
            ZipError::Io(error) => Some(error),
            ZipError::Format(error) => Some(error),
            ZipError::Changed(_) | ZipError::TooMany(_) => None,
        }
    }
}

impl From<ArchiveError> for ZipError {
    fn from(error: ArchiveError) -> ZipError {
        ZipError::Archive(error)
    }
}

impl From<std::io::Error> for ZipError {
    fn from(error: std::io::Error) -> ZipError {
        ZipError::Io(error)
    }
}

impl From<rawzip::Error> for ZipError {
    fn from(error: rawzip::Error) -> ZipError {
        ZipError::Format(error)
    }
}

impl From<tokio::task::JoinError> for ZipError {
    fn from(error: tokio::task::JoinError) -> ZipError {
        ZipError::Io(std::io::Error::other(error))
    }
}
