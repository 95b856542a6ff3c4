//! Results and errors of copying and transferring items.

use super::not_sent::NotSent;
use super::skip::Skip;
use crate::archive::ArchiveError;
use crate::archive::backup::BackupError;
use crate::archive::scrub::ScrubError;
use crate::archive::store::{DiskFault, StoreError};
use crate::archive::tree::TreeError;
use crate::formats::item::{Names, State};
use ibi::Timestamp;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// Receives from time to time how many bytes of the current item have been copied or read again.
pub type ByteProgress<'a> = dyn FnMut(u64) + 'a;

/// The cases in which the content of a copy is compared with that of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareWhen {
    /// If anything was copied.
    IfNew,
    /// In every case.
    Always,
    /// In every case, and what differs is copied again.
    Verify,
}

/// The result for an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The item was copied.
    Copied(Moved),
    /// The copy was already identical.
    Unchanged,
    /// The destination now holds the original.
    HandedOver(Moved),
    /// The local copy is now the original.
    Claimed {
        /// Whether the Archive where it was removed has recorded that.
        is_remembered: bool,
    },
    /// The transfer of the original was cancelled.
    Cancelled {
        /// Whether the other Archive is known not to hold the original.
        is_safe: bool,
    },
    /// It was not copied or transferred.
    Skipped(Skip),
}

/// The amount that was copied for an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files and other entries.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// The files among them that were damaged at the destination.
    pub mended: u64,
    /// The things that were not copied with them.
    pub not_sent: NotSent,
    /// Whether all content was compared with that of the source afterwards.
    pub is_proved: bool,
}

/// The status of an item at an Archive.
#[derive(Clone, Debug, Default)]
pub struct RemoteStatus {
    /// Its state: the original, a copy, or removed; None where the item is unknown there.
    pub state: Option<State>,
    /// The service of the Archive that its sidecar names as the holder of the original.
    pub service: Option<Names>,
    /// The time at which it was removed.
    pub removed_at: Option<Timestamp>,
    /// Whether it is withdrawn there.
    pub is_withdrawn: bool,
}

/// The reason why copying or transferring failed.
#[derive(Debug)]
pub enum TransferError {
    /// An operation on one of the stores failed.
    Archive(ArchiveError),
    /// A system call failed.
    System(Message),
    /// Both sides are the same Archive.
    SameArchive,
    /// Another process transfers items from or to the store.
    Busy(String),
    /// The destination does not answer, or refuses.
    Remote(Message),
    /// The item cannot go to this destination; other items may.
    Skip(Skip),
}

impl TransferError {
    /// The fault of the disk that is the cause, if it is one.
    #[must_use]
    pub fn disk_fault(&self) -> Option<DiskFault> {
        match self {
            TransferError::Archive(error) => error.disk_fault(),
            TransferError::System(_)
            | TransferError::SameArchive
            | TransferError::Busy(_)
            | TransferError::Remote(_)
            | TransferError::Skip(_) => None,
        }
    }
}

impl Localize for TransferError {
    fn message(&self) -> Message {
        match self {
            TransferError::Archive(error) => error.message(),
            TransferError::System(sentence) | TransferError::Remote(sentence) => sentence.clone(),
            TransferError::SameArchive => message!(
                "source and destination are the same Archive; name the store of another one"
            ),
            TransferError::Busy(store) => message!(
                "another process is transferring items of '{store}'; wait until it ends",
                store
            ),
            TransferError::Skip(skip) => skip.message(),
        }
    }
}

display_message!(TransferError);

impl std::error::Error for TransferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TransferError::Archive(error) => Some(error),
            TransferError::System(_)
            | TransferError::SameArchive
            | TransferError::Busy(_)
            | TransferError::Remote(_)
            | TransferError::Skip(_) => None,
        }
    }
}

impl From<ArchiveError> for TransferError {
    fn from(error: ArchiveError) -> TransferError {
        TransferError::Archive(error)
    }
}

impl From<BackupError> for TransferError {
    fn from(error: BackupError) -> TransferError {
        match error {
            BackupError::Archive(error) => TransferError::Archive(error),
            other => TransferError::System(other.message()),
        }
    }
}

impl From<ScrubError> for TransferError {
    fn from(error: ScrubError) -> TransferError {
        match error {
            ScrubError::Tree(error) => TransferError::Archive(error.into()),
            other => TransferError::System(other.message()),
        }
    }
}

impl From<TreeError> for TransferError {
    fn from(error: TreeError) -> TransferError {
        TransferError::Archive(error.into())
    }
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> TransferError {
        TransferError::Archive(error.into())
    }
}

impl From<Skip> for TransferError {
    fn from(skip: Skip) -> TransferError {
        TransferError::Skip(skip)
    }
}

/// The system returned no random numbers, so no token can be made.
pub(super) fn not_drawn(_: rustix::io::Errno) -> TransferError {
    TransferError::System(message!("the system draws no random numbers"))
}

/// Turns an error that concerns one item into a skipped item: the run continues.
pub(super) fn skipped(
    outcome: Result<TransferOutcome, TransferError>,
) -> Result<TransferOutcome, TransferError> {
    match outcome {
        Err(TransferError::Skip(skip)) => Ok(TransferOutcome::Skipped(skip)),
        other => other,
    }
}
