//! Findings, counts and errors of a backup.

use std::path::PathBuf;

use crate::archive::ArchiveError;
use crate::archive::finding::{findings, with_detail};
use crate::archive::store::StoreError;
use crate::archive::tree::TreeError;
use crate::formats::item::Names;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

findings! {
    /// A report of a path that is not, or may not be, in the backup as it is in the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BackupCode {
        // It changed during each attempt to copy it.
        Unsteady "unsteady" Warning
            "changed each time that it was copied; run the backup again when it is no longer written"
        // It cannot be read or created.
        NotCopied "not-copied" Error
            "is not in the backup as it is now"
        // The store has lost it; the backup still has it.
        Kept "kept" Warning
            "is missing from the store, though it was not removed; the backup still has it"
        // The new generation is dated after it, so that it is the newest one.
        Ahead "ahead" Warning
            "is a generation of a date to come, and the new one is dated after it; see that the clock is right, then rename the directories to their dates"
        // The store itself has an error there, and so has the backup.
        Unsound "unsound" Warning
            "the store itself has errors, and so has the backup; run 'ibifs fsck' on both"
    }
}

/// One finding of a backup.
#[derive(Clone, Debug)]
pub struct BackupFinding {
    /// The kind of finding.
    pub code: BackupCode,
    /// The path, relative to the store.
    pub path: Vec<u8>,
    /// More about this case, if there is more to say.
    pub detail: Option<Message>,
}

impl BackupCode {
    /// Whether something is not in the backup as it is in the store.
    pub fn is_incomplete(self) -> bool {
        matches!(self, BackupCode::Unsteady | BackupCode::NotCopied)
    }
}

impl BackupFinding {
    /// A sentence: what is wrong, and what can be done.
    pub fn sentence(&self) -> Message {
        with_detail(self.code, self.detail.as_ref())
    }
}

/// Counts of what a backup has done.
#[derive(Clone, Debug, Default)]
pub struct BackupTally {
    /// Items in the backup.
    pub items: u64,
    /// Files and other entries that were copied.
    pub copied: u64,
    /// Bytes copied for them.
    pub bytes: u64,
    /// Entries that were already there.
    pub unchanged: u64,
    /// Entries that were removed from an earlier backup.
    pub removed: u64,
    /// Number of findings of what is not in the backup as it is in the store.
    pub incomplete: u64,
    /// Directories begun, for the progress report.
    pub(super) units: u64,
}

/// The reason why a backup failed or is not finished.
#[derive(Debug)]
pub enum BackupError {
    /// An operation on the store or the backup failed.
    Archive(ArchiveError),
    /// The backup would lie in the store, or the store in the backup.
    Nested,
    /// The destination holds something other than a backup.
    NotABackup {
        /// The destination.
        path: PathBuf,
    },
    /// The destination has generations, and no number of them was given.
    Generations {
        /// The destination.
        path: PathBuf,
    },
    /// The destination is one generation of a backup.
    Generation {
        /// The destination.
        path: PathBuf,
    },
    /// The destination is a backup of one generation, and several are wanted.
    OneGeneration {
        /// The destination.
        path: PathBuf,
    },
    /// There is no finished backup of this date.
    NoGeneration {
        /// The backup.
        path: PathBuf,
        /// The beginning of the date.
        date: String,
    },
    /// Another user may exchange names in the destination.
    OfOthers {
        /// The destination.
        path: PathBuf,
    },
    /// The destination is a backup of another Archive.
    OtherArchive {
        /// The names of that Archive.
        service: Box<Names>,
    },
    /// The earlier backup has since been used as a store.
    Used {
        /// An item that the source store does not know.
        names: Box<Names>,
    },
    /// A finding could not be reported.
    Report(std::io::Error),
}

impl Localize for BackupError {
    fn message(&self) -> Message {
        match self {
            BackupError::Archive(error) => error.message(),
            BackupError::Nested => message!(
                "the backup would be inside the store, or the store inside it; name another directory"
            ),
            BackupError::NotABackup { path } => message!(
                "'{path}' is not empty and not a backup; name a new directory",
                path = path.display()
            ),
            BackupError::Generations { path } => message!(
                "'{path}' has generations; give --keep for a new one, or name a new directory",
                path = path.display()
            ),
            BackupError::Generation { path } => message!(
                "'{path}' is one generation of a backup, which stays as it is; name the directory above it",
                path = path.display()
            ),
            BackupError::OneGeneration { path } => message!(
                "'{path}' is a backup without generations; name a new directory, or leave out --keep",
                path = path.display()
            ),
            BackupError::NoGeneration { path, date } if date.is_empty() => message!(
                "'{path}' is no finished backup; 'ibifs backup --list' shows what there is",
                path = path.display()
            ),
            BackupError::NoGeneration { path, date } => message!(
                "'{path}' has no generation whose date begins with '{date}'; 'ibifs backup --list' shows them",
                path = path.display(),
                date
            ),
            BackupError::OfOthers { path } => message!(
                "other users can write in '{path}'; name a new directory",
                path = path.display()
            ),
            BackupError::OtherArchive { service } => message!(
                "it is the backup of another Archive, whose service is {service}; name a new directory",
                service
            ),
            BackupError::Used { names } => message!(
                "it has been used as a store and holds {names}, which the store does not know; \
                 name a new directory",
                names
            ),
            BackupError::Report(error) => message!("standard output: {error}", error),
        }
    }
}

display_message!(BackupError);

impl std::error::Error for BackupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BackupError::Archive(error) => Some(error),
            BackupError::Report(error) => Some(error),
            BackupError::Nested
            | BackupError::NotABackup { .. }
            | BackupError::Generations { .. }
            | BackupError::Generation { .. }
            | BackupError::OneGeneration { .. }
            | BackupError::NoGeneration { .. }
            | BackupError::OfOthers { .. }
            | BackupError::OtherArchive { .. }
            | BackupError::Used { .. } => None,
        }
    }
}

impl From<ArchiveError> for BackupError {
    fn from(error: ArchiveError) -> BackupError {
        BackupError::Archive(error)
    }
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> BackupError {
        BackupError::Archive(error.into())
    }
}

impl From<TreeError> for BackupError {
    fn from(error: TreeError) -> BackupError {
        BackupError::Archive(error.into())
    }
}
