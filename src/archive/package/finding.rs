//! Results and errors of exporting and importing packages.

use std::path::PathBuf;

use rustix::io::Errno;

use super::naming::MTREE;
use super::rules::Fault;
use crate::archive::ArchiveError;
use crate::archive::finding::findings;
use crate::archive::manifest::BrokenSeal;
use crate::archive::store::StoreError;
use crate::archive::tree::Action;
use crate::archive::tree::TreeError;
use crate::formats::entry::LineError;
use crate::formats::item::SidecarError;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The result of exporting an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportOutcome {
    /// The package is new, at this path below the destination.
    New(String),
    /// The package exists and has a new version.
    Version(String, u64),
    /// The package exists and has the same content.
    Unchanged(String),
}

impl ExportOutcome {
    /// The path of the package below the destination.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            ExportOutcome::New(path)
            | ExportOutcome::Version(path, _)
            | ExportOutcome::Unchanged(path) => path,
        }
    }
}

findings! {
    /// A problem with a file of an item.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Problem {
        // It differs from the scrubbed content, although its time has not changed since.
        Damaged "damaged" Error
            "is damaged: its content differs from the last scrub, and it has not been written since; restore it from a copy, or run 'ibifs scrub --accept' if it is right"
        Unreadable(errno: Errno) "unreadable" Error
            "cannot be read: {error}" (error = std::io::Error::from(*errno))
        Unsteady "unsteady" Warning
            "changed each time that it was read; export the item when it is no longer written"
        NoFile "no-file" Error
            "is a socket or a device, which a package cannot hold; remove it from the item"
        Missing "missing" Error
            "is in the package's list of files, and is not there; get the package again"
        NotRegular "no-regular-file" Error
            "is a link or another thing that a package does not have; get the package again"
        // Its digest differs from that in the package.
        Differs "differs" Error
            "is not what the package says; get the package again"
        Stray "stray" Error
            "is not in the package's list of files; get the package again"
    }
}

/// The most faults of an object that an error has.
const MOST_FAULTS: usize = 10;

/// The reason why an export or an import failed.
#[derive(Debug)]
pub enum PackageError {
    /// An operation on the store failed.
    Archive(ArchiveError),
    /// An operation on the destination or the package failed.
    Io {
        /// The action.
        action: Action,
        /// The path.
        path: String,
        /// The system's error.
        errno: Errno,
    },
    /// A file of the item or of the package has a problem.
    File {
        /// The path, below the item or the package.
        path: Vec<u8>,
        /// The problem.
        problem: Problem,
    },
    /// The files of the item are not those that were sealed.
    BrokenSeal(BrokenSeal),
    /// The package exists already.
    Exists {
        /// The path, below the destination.
        path: String,
    },
    /// The destination cannot hold packages of this format.
    Unfit {
        /// The kind of the destination, and the remedy.
        what: Message,
    },
    /// Another export is running there.
    Busy,
    /// No package was found.
    Nothing {
        /// The path at which it was searched for.
        path: PathBuf,
    },
    /// A file that describes the package is not valid.
    Broken {
        /// Its path.
        path: String,
        /// The error in it.
        what: Message,
    },
    /// An OCFL object breaks these rules.
    Object(Vec<Fault>),
    /// A directory is not a package.
    Undeclared,
    /// The package does not name its item.
    Nameless,
}

impl PackageError {
    pub(super) fn broken(path: &str, what: impl Localize) -> PackageError {
        PackageError::Broken {
            path: path.to_owned(),
            what: what.message(),
        }
    }

    pub(super) fn file(path: &[u8], problem: Problem) -> PackageError {
        PackageError::File {
            path: path.to_owned(),
            problem,
        }
    }

    /// For `map_err`.
    pub(super) fn io(action: Action, path: impl AsRef<[u8]>) -> impl FnOnce(Errno) -> PackageError {
        let path = crate::formats::fixity::shown(path.as_ref());
        move |errno| PackageError::Io {
            action,
            path,
            errno,
        }
    }
}

impl Localize for PackageError {
    fn message(&self) -> Message {
        match self {
            PackageError::Archive(error) => error.message(),
            PackageError::Io {
                action,
                path,
                errno,
            } => message!(
                "cannot {action} '{path}': {error}",
                action,
                path,
                error = std::io::Error::from(*errno)
            ),
            PackageError::File { path, problem } => {
                message!(
                    "'{path}' {problem}",
                    path = crate::formats::fixity::shown(path),
                    problem
                )
            }
            PackageError::BrokenSeal(seal) => {
                message!("its files are not those that were sealed: {seal}", seal)
            }
            PackageError::Exists { path } => message!(
                "'{path}' exists already; move it away, or name another directory",
                path
            ),
            PackageError::Unfit { what } => what.clone(),
            PackageError::Busy => {
                message!("another export is running in this directory; wait until it ends")
            }
            PackageError::Nothing { path } => message!(
                "'{path}' holds neither a bag (bagit.txt) nor an OCFL object or storage root; name one, \
                 or make one item of all of it with 'ibifs import --mint'",
                path = path.display()
            ),
            PackageError::Broken { path, what } => message!(
                "'{path}' of the package is not valid: {what}; get the package again",
                path,
                what
            ),
            PackageError::Object(faults) => {
                let faults = faults.iter().take(MOST_FAULTS).map(Localize::message);
                let faults = Message::joined(faults.collect());
                faults.unwrap_or_else(|| PackageError::Undeclared.message())
            }
            PackageError::Undeclared => message!(
                "E003, it has no declaration of an OCFL object, and no 'bagit.txt' of a bag"
            ),
            PackageError::Nameless => message!(
                "the package does not name its item; mint one for it with 'ibifs import --mint'"
            ),
        }
    }
}

display_message!(PackageError);

impl std::error::Error for PackageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PackageError::Archive(error) => Some(error),
            PackageError::Io { errno, .. }
            | PackageError::File {
                problem: Problem::Unreadable(errno),
                ..
            } => Some(errno),
            PackageError::File { .. }
            | PackageError::BrokenSeal(_)
            | PackageError::Exists { .. }
            | PackageError::Unfit { .. }
            | PackageError::Busy
            | PackageError::Nothing { .. }
            | PackageError::Broken { .. }
            | PackageError::Object(_)
            | PackageError::Undeclared
            | PackageError::Nameless => None,
        }
    }
}

impl From<ArchiveError> for PackageError {
    fn from(error: ArchiveError) -> PackageError {
        PackageError::Archive(error)
    }
}

impl From<StoreError> for PackageError {
    fn from(error: StoreError) -> PackageError {
        PackageError::Archive(error.into())
    }
}

impl From<TreeError> for PackageError {
    fn from(error: TreeError) -> PackageError {
        PackageError::Archive(error.into())
    }
}

impl From<LineError> for PackageError {
    fn from(error: LineError) -> PackageError {
        PackageError::broken(MTREE, error)
    }
}

impl From<SidecarError> for PackageError {
    fn from(error: SidecarError) -> PackageError {
        PackageError::broken("data/.ibi", error.with_cause())
    }
}
