//! Exit codes, and failures that carry one. They are listed in ibifs(1).

use std::fmt;
use std::path::Path;

use crate::archive::ArchiveError;
use crate::archive::backup::BackupError;
use crate::archive::package::PackageError;
use crate::archive::scrub::ScrubError;
use crate::archive::store::StoreError;
use crate::archive::transfer::TransferError;
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::fuse::mount::{MountError, Mounted};
use ibi::message;
use ibi::message::{Localize, Message, ToArgument};

/// The exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed, or found something wrong.
    Failed = 1,
    /// A usage error.
    Usage = 2,
    /// The item, relation or store does not exist.
    NotFound = 3,
    /// Refused: not an original, a circle, a date not minted.
    Refused = 4,
    /// The store is in use.
    Busy = 5,
    /// FUSE cannot be used here.
    NoFuse = 6,
}

impl Exit {
    /// The status in a word, for JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Failed => "failed",
            Exit::Usage => "usage",
            Exit::NotFound => "not-found",
            Exit::Refused => "refused",
            Exit::Busy => "in-use",
            Exit::NoFuse => "no-fuse",
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

/// The failure of a command: one line for a person, printed in that person's language, and an exit status for a
/// script.
#[derive(Debug)]
pub struct Failure {
    /// The failure, and its reason.
    pub message: Message,
    /// The exit status.
    pub exit: Exit,
}

impl Failure {
    /// The same failure, with its subject in front.
    #[must_use]
    pub fn before(self, what: &(impl ToArgument + ?Sized)) -> Failure {
        let error = self.message;
        Failure::new(self.exit, message!("{what}: {error}", what, error))
    }

    /// The same failure, with what it leaves to do behind it.
    #[must_use]
    pub fn and(self, left: &Message) -> Failure {
        let error = self.message;
        Failure::new(self.exit, message!("{error}; {left}", error, left))
    }

    /// The failure as JSON: word, status and sentence, which is in English.
    #[must_use]
    pub fn json(&self) -> String {
        json::error(
            self.exit.word(),
            self.exit as i32,
            &self.message.to_string(),
        )
    }

    /// A failure with its message.
    pub fn new(exit: Exit, message: impl Localize) -> Failure {
        let message = message.message();
        Failure { message, exit }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters in quoted text must not add lines.
        OneLine(localized(&self.message)).fmt(f)
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Failure {
        let exit = match &error {
            ArchiveError::NotAStore { .. }
            | ArchiveError::Missing { .. }
            | ArchiveError::Unknown { .. }
            | ArchiveError::NoRelation { .. } => Exit::NotFound,
            ArchiveError::Busy(_)
            | ArchiveError::Store(
                StoreError::Away { .. } | StoreError::Conflict | StoreError::InUse { .. },
            ) => Exit::Busy,
            ArchiveError::Exists(_)
            | ArchiveError::HasOne { .. }
            | ArchiveError::ClosedStore { .. }
            | ArchiveError::IsAStore { .. }
            | ArchiveError::UnfitDirectory { .. }
            | ArchiveError::IndexInUse { .. }
            | ArchiveError::IndexInFile { .. }
            | ArchiveError::Unfinished { .. }
            | ArchiveError::Generation { .. }
            | ArchiveError::OtherDatabase { .. }
            | ArchiveError::NotMintedYet { .. }
            | ArchiveError::NotMintedHere(_)
            | ArchiveError::MayNotName { .. }
            | ArchiveError::AliasTaken { .. }
            | ArchiveError::NoAlias { .. }
            | ArchiveError::ServiceItem
            | ArchiveError::NotOriginal { .. }
            | ArchiveError::NotAllowed(_)
            | ArchiveError::Sealed { .. }
            | ArchiveError::SealRefused { .. }
            | ArchiveError::Cycle { .. }
            | ArchiveError::Wait(_)
            | ArchiveError::NotEmpty(_)
            | ArchiveError::Draft(_)
            | ArchiveError::Given(_)
            | ArchiveError::NotStoreOwner { .. }
            | ArchiveError::ReadOnly => Exit::Refused,
            ArchiveError::Ibi(_) => Exit::Usage,
            ArchiveError::Store(_)
            | ArchiveError::Tree(_)
            | ArchiveError::Facts { .. }
            | ArchiveError::NameSpaces { .. }
            | ArchiveError::FactsChanged
            | ArchiveError::Log { .. }
            | ArchiveError::TransferRecord { .. }
            | ArchiveError::Lock { .. }
            | ArchiveError::Sidecar { .. }
            | ArchiveError::Changed(_)
            | ArchiveError::OtherItem { .. } => Exit::Failed,
        };
        match &error {
            ArchiveError::NotAStore { path } => Failure::new(exit, not_a_store(path, &error)),
            _ => Failure::new(exit, error),
        }
    }
}

/// Returns why a directory is not a store; a mount point or a directory in a mount leads to one.
fn not_a_store(path: &Path, error: &ArchiveError) -> Message {
    let resolved = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Some(mounted) = Mounted::containing(&resolved) else {
        return error.message();
    };
    let (path, store) = (path.display(), mounted.source.display());
    if mounted.mount_point == resolved {
        message!(
            "'{path}' is a mount point of the store '{store}'; name the store",
            path,
            store
        )
    } else {
        message!(
            "'{path}' is in the mounted store '{store}'; name the store",
            path,
            store
        )
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        ArchiveError::from(error).into()
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        let exit = match error {
            BackupError::Archive(error) => return error.into(),
            BackupError::Nested
            | BackupError::NotABackup { .. }
            | BackupError::Generations { .. }
            | BackupError::Generation { .. }
            | BackupError::OneGeneration { .. }
            | BackupError::NoGeneration { .. }
            | BackupError::OfOthers { .. }
            | BackupError::OtherArchive { .. }
            | BackupError::Used { .. } => Exit::Refused,
            BackupError::Report(_) => Exit::Failed,
        };
        Failure::new(exit, error)
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Failure {
        let exit = match error {
            TransferError::Archive(error) => return error.into(),
            TransferError::SameArchive | TransferError::Skip(_) => Exit::Refused,
            TransferError::Busy(_) => Exit::Busy,
            TransferError::System(_) | TransferError::Remote(_) => Exit::Failed,
        };
        Failure::new(exit, error)
    }
}

impl From<ScrubError> for Failure {
    fn from(error: ScrubError) -> Failure {
        let exit = match &error {
            ScrubError::Busy => Exit::Busy,
            ScrubError::Tree(_) | ScrubError::Report(_) => Exit::Failed,
        };
        Failure::new(exit, error)
    }
}

impl From<PackageError> for Failure {
    fn from(error: PackageError) -> Failure {
        let exit = match error {
            PackageError::Archive(error) => return error.into(),
            PackageError::Nothing { .. } => Exit::NotFound,
            PackageError::Busy => Exit::Busy,
            PackageError::Exists { .. } | PackageError::Unfit { .. } => Exit::Refused,
            PackageError::Io { .. }
            | PackageError::File { .. }
            | PackageError::BrokenSeal(_)
            | PackageError::Broken { .. }
            | PackageError::Object(_)
            | PackageError::Undeclared
            | PackageError::Nameless => Exit::Failed,
        };
        Failure::new(exit, error)
    }
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Failure {
        let exit = match error {
            MountError::Archive(error) => return error.into(),
            MountError::MountPoint { .. } => Exit::NotFound,
            MountError::Mounted { .. } => Exit::Busy,
            MountError::NoFuse { .. } | MountError::NoHelper => Exit::NoFuse,
            MountError::Option { .. }
            | MountError::Fallback
            | MountError::NoWorld { .. }
            | MountError::NoWorldPlace => Exit::Usage,
            MountError::Nested { .. }
            | MountError::AllowOther
            | MountError::SymlinksFollowed
            | MountError::CannotAct
            | MountError::ReadOnlyDisk { .. } => Exit::Refused,
            MountError::Failed { .. } | MountError::Dead { .. } => Exit::Failed,
        };
        Failure::new(exit, error)
    }
}
