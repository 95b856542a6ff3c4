//! Copies items to another Archive, and transfers originals to it.
//!
//! A copy is the item's directory as it is, with the sidecar last. While the sidecar is missing or differs,
//! the copy may be incomplete, and the next run continues it. Before the sidecar is placed, all files are
//! read again on both sides and their digests are compared.
//!
//! An original is transferred in steps, each on disk before the next begins. First the receiver has the
//! content and draws a one-time token for this transfer. Then the giver records the receiver and the token,
//! and its sidecar names the other Archive as the holder of the original. Finally the receiver gets the token
//! and names itself as the holder. At whatever step either side is stopped, at most one claims the original,
//! both have the content, and the same command continues the transfer.

mod claim;
mod incoming;
mod inventory;
mod local;
mod skip;
mod token;

pub use claim::{Remover, claim};
pub use incoming::Incoming;
pub use inventory::Inventory;
pub use local::Local;
pub use skip::Skip;
pub use token::{Giver, Tokens};

use crate::archive::backup::BackupError;
use crate::archive::scrub::ScrubError;
use crate::archive::store::StoreError;
use crate::archive::tree::TreeError;
use crate::archive::{ArchiveError, Handover, Role};
use crate::formats::item::{Names, State};
use ibi::Timestamp;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// Receives from time to time how many bytes of the current item have been copied or read again.
pub type ByteProgress<'a> = dyn FnMut(u64) + 'a;

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
    /// It was not copied or transferred.
    Skipped(Skip),
}

/// What was copied for an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files and other entries.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// Why copying or transferring failed.
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

impl std::error::Error for TransferError {}

/// The system returned no random numbers, so no token can be made.
fn not_drawn(_: rustix::io::Errno) -> TransferError {
    TransferError::System(message!("the system draws no random numbers"))
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

/// The status of an item at an Archive.
#[derive(Clone, Debug, Default)]
pub struct RemoteStatus {
    /// Whether it has the original or a copy, or removed it; None where the item is unknown there.
    pub state: Option<State>,
    /// The service of the Archive that its sidecar names as the holder of the original.
    pub service: Option<Names>,
    /// When it was removed.
    pub removed_at: Option<Timestamp>,
}

/// An Archive to which items are copied and transferred.
pub trait Destination {
    /// The item of the Archive's service, which sidecars name.
    fn service(&self) -> &Names;

    /// The status of an item there.
    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError>;

    /// Receives a copy of an item. When this returns, all of it is on disk, and compared if anything is new
    /// or `is_compared` is set. The sidecar is that of the source, except that it names `original_at`, if
    /// given, as the Archive of the original.
    fn receive(
        &mut self,
        source: &Local,
        names: &Names,
        original_at: Option<&Names>,
        is_compared: bool,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError>;

    /// Draws and records a one-time token for the transfer of an item of which it has a copy.
    fn expect(&mut self, names: &Names, from: &Names) -> Result<String, TransferError>;

    /// Becomes the holder of the original. Succeeds if it is the holder already.
    fn take(&mut self, names: &Names, from: &Names, word: &str) -> Result<(), TransferError>;
}

/// Copies an item of a store.
pub fn copy(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    brings_back: bool,
    progress: &mut ByteProgress<'_>,
) -> Result<TransferOutcome, TransferError> {
    refuse_same(source, destination)?;
    let item = source.item(names)?;
    skipped((|| {
        if item.state == State::Deleted {
            return Err(Skip::RemovedHere.into());
        }
        may_arrive(&destination.status(names)?, brings_back)?;
        let moved = destination.receive(source, &item.names, None, false, progress)?;
        Ok(match moved.files {
            0 => TransferOutcome::Unchanged,
            _ => TransferOutcome::Copied(moved),
        })
    })())
}

/// Transfers an original, or continues an interrupted transfer.
pub fn hand_over(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    brings_back: bool,
    progress: &mut ByteProgress<'_>,
) -> Result<TransferOutcome, TransferError> {
    refuse_same(source, destination)?;
    let item = source.item(names)?;
    let names = &item.names;
    skipped((|| {
        if names.matches(source.service()) {
            return Err(Skip::Service.into());
        }
        let noted = source.archive().handover(names)?;
        let given = noted.filter(Handover::is_pending);
        match (item.state, given) {
            (State::Original, _) => {
                may_arrive(&destination.status(names)?, brings_back)?;
                give(source, names, destination, progress)
            }
            (_, Some(given)) if given.other.matches(destination.service()) => {
                go_on(source, names, &given, destination, progress)
            }
            (_, Some(given)) => Err(Skip::GivenTo(given.other.into()).into()),
            (State::Copy, None) => {
                let holder = item.service.clone();
                Err(holder
                    .map_or(Skip::NotOriginal, |it| Skip::NotOriginalOf(it.into()))
                    .into())
            }
            (State::Deleted, None) => Err(Skip::RemovedHere.into()),
        }
    })())
}

/// Sends the content of an item, and returns the token that the other side has drawn for it.
fn send(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    progress: &mut ByteProgress<'_>,
) -> Result<(Moved, String), TransferError> {
    let service = source.service();
    let moved = destination.receive(source, names, Some(service), true, progress)?;
    Ok((moved, destination.expect(names, service)?))
}

/// Transfers an original that this side claims.
fn give(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    progress: &mut ByteProgress<'_>,
) -> Result<TransferOutcome, TransferError> {
    let before = source.file_states(names)?;
    let (moved, word) = send(source, names, destination, progress)?;
    let handover = Handover {
        role: Role::Gives,
        other: destination.service().clone(),
        word,
        is_taken: false,
    };
    source.archive().note_handover(names, &handover)?;
    if source.file_states(names)? != before {
        // The other side lacks what was written since.
        source.archive().forget_handover(names)?;
        return Err(Skip::Changed.into());
    }
    source.name_holder(names, destination.service())?;
    finish(source, names, &handover, destination)?;
    Ok(TransferOutcome::HandedOver(moved))
}

/// Continues a transfer after which this side no longer claims the original.
fn go_on(
    source: &Local,
    names: &Names,
    given: &Handover,
    destination: &mut dyn Destination,
    progress: &mut ByteProgress<'_>,
) -> Result<TransferOutcome, TransferError> {
    let status = destination.status(names)?;
    let service = source.service().clone();
    let is_third =
        |holder: &Names| !holder.matches(&service) && !holder.matches(destination.service());
    if status.service.as_ref().is_some_and(is_third) {
        // It received the original earlier, and has transferred it to a third Archive.
        source.archive().forget_handover(names)?;
        return Ok(TransferOutcome::HandedOver(Moved::default()));
    }
    match finish(source, names, given, destination) {
        Err(TransferError::Skip(Skip::NotTaken(_))) => {}
        other => return other.map(|()| TransferOutcome::HandedOver(Moved::default())),
    }
    // It has lost the copy or the token.
    let (moved, word) = send(source, names, destination, progress)?;
    let again = Handover {
        word,
        ..given.clone()
    };
    source.archive().note_handover(names, &again)?;
    finish(source, names, &again, destination)?;
    Ok(TransferOutcome::HandedOver(moved))
}

fn finish(
    source: &Local,
    names: &Names,
    handover: &Handover,
    destination: &mut dyn Destination,
) -> Result<(), TransferError> {
    destination.take(names, source.service(), &handover.word)?;
    Ok(source.archive().forget_handover(names)?)
}

fn refuse_same(source: &Local, destination: &dyn Destination) -> Result<(), TransferError> {
    if source.service().matches(destination.service()) {
        Err(TransferError::SameArchive)
    } else {
        Ok(())
    }
}

fn may_arrive(status: &RemoteStatus, brings_back: bool) -> Result<(), Skip> {
    match status.state {
        Some(State::Original) => Err(Skip::OriginalThere),
        Some(State::Deleted) if !brings_back => {
            let when = status.removed_at.clone();
            Err(when.map_or(Skip::RemovedThere, |when| Skip::RemovedThereAt(when.into())))
        }
        _ => Ok(()),
    }
}

/// Turns an error that concerns one item into a skipped item: the run continues.
fn skipped(
    outcome: Result<TransferOutcome, TransferError>,
) -> Result<TransferOutcome, TransferError> {
    match outcome {
        Err(TransferError::Skip(skip)) => Ok(TransferOutcome::Skipped(skip)),
        other => other,
    }
}
