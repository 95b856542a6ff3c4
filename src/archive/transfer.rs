//! Items copied to another Archive, and originals handed over to it.
//!
//! A copy is the item's directory as it is, with its sidecar last: as long as that is not there, or
//! says something else, the copy may be half of one, and the next time goes on with it. Before the
//! sidecar is placed, all files are read again on both sides and their digests compared.
//!
//! An original is handed over in steps, each on disk before the next begins. The receiver has the
//! content, and a word for this hand-over; the giver notes to whom it gives, and says in the sidecar
//! that the other Archive holds the original; told the word, the receiver says so, too. Whichever side
//! is stopped at whichever step: at most one claims the original, both hold the content, and the same
//! command again goes on where it was.

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

/// RemoteStatus now and then how many bytes were moved or read again, of the item under way.
pub type Progress<'a> = dyn FnMut(u64) + 'a;

/// What came of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is there now, with so much moved.
    Copied(Moved),
    /// It was there already, as it is here.
    Unchanged,
    /// The destination holds the original now.
    HandedOver(Moved),
    /// The copy that is held here is the original now.
    Claimed {
        /// Whether the Archive where it was removed has noted that.
        is_remembered: bool,
    },
    /// It was not copied or handed over.
    Skipped(Skip),
}

/// What was moved for an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files and other entries.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// Why copying or handing over ended.
#[derive(Debug)]
pub enum TransferError {
    /// One of the stores failed.
    Archive(ArchiveError),
    /// The system failed on the way.
    System(Message),
    /// Both sides are the same Archive.
    SameArchive,
    /// Somebody else hands items over from or to the store.
    Busy(String),
    /// The destination cannot be asked, or refuses.
    Remote(Message),
    /// The item is not for this destination; the others may be.
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
                "somebody hands over items of '{store}' already; wait until that has ended",
                store
            ),
            TransferError::Skip(skip) => skip.message(),
        }
    }
}

display_message!(TransferError);

impl std::error::Error for TransferError {}

/// The error of a system that gives no random numbers: no token can be made.
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

/// What an Archive says of an item.
#[derive(Clone, Debug, Default)]
pub struct RemoteStatus {
    /// What it holds of it; None where it has never heard of it.
    pub state: Option<State>,
    /// The service that its sidecar names as that of the original's Archive.
    pub service: Option<Names>,
    /// When it was removed.
    pub removed_at: Option<Timestamp>,
}

/// An Archive that items are copied and handed over to.
pub trait Destination {
    /// The item of its service, by which sidecars name it.
    fn service(&self) -> &Names;

    /// What it says of an item.
    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError>;

    /// Takes a copy of an item; all of it is on disk, and compared where anything is new or
    /// `is_compared`, when this returns. The sidecar is that of the source, but that it names
    /// `original_at` as the original's Archive, where that is given.
    fn receive(
        &mut self,
        source: &Local,
        names: &Names,
        original_at: Option<&Names>,
        is_compared: bool,
        progress: &mut Progress<'_>,
    ) -> Result<Moved, TransferError>;

    /// Draws a word for the hand-over of an item that it holds a copy of, and keeps it.
    fn expect(&mut self, names: &Names, from: &Names) -> Result<String, TransferError>;

    /// Becomes the one that holds the original. An Archive that does so already says yes.
    fn take(&mut self, names: &Names, from: &Names, word: &str) -> Result<(), TransferError>;
}

/// Copies an item that a store holds.
pub fn copy(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    brings_back: bool,
    progress: &mut Progress<'_>,
) -> Result<Outcome, TransferError> {
    refuse_same(source, destination)?;
    let item = source.item(names)?;
    skipped((|| {
        if item.state == State::Deleted {
            return Err(Skip::RemovedHere.into());
        }
        may_arrive(&destination.status(names)?, brings_back)?;
        let moved = destination.receive(source, &item.names, None, false, progress)?;
        Ok(match moved.files {
            0 => Outcome::Unchanged,
            _ => Outcome::Copied(moved),
        })
    })())
}

/// Hands an original over, or goes on with that where it was stopped.
pub fn hand_over(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    brings_back: bool,
    progress: &mut Progress<'_>,
) -> Result<Outcome, TransferError> {
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

/// Sends all that the other side needs, and gives the word that it has drawn for taking the original.
fn send(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    progress: &mut Progress<'_>,
) -> Result<(Moved, String), TransferError> {
    let service = source.service();
    let moved = destination.receive(source, names, Some(service), true, progress)?;
    Ok((moved, destination.expect(names, service)?))
}

/// Hands over what this side claims.
fn give(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    progress: &mut Progress<'_>,
) -> Result<Outcome, TransferError> {
    let before = source.looks(names)?;
    let (moved, word) = send(source, names, destination, progress)?;
    let handover = Handover {
        role: Role::Gives,
        other: destination.service().clone(),
        word,
        is_taken: false,
    };
    source.archive().note_handover(names, &handover)?;
    if source.looks(names)? != before {
        // What was written since is not there.
        source.archive().forget_handover(names)?;
        return Err(Skip::Changed.into());
    }
    source.name_holder(names, destination.service())?;
    finish(source, names, &handover, destination)?;
    Ok(Outcome::HandedOver(moved))
}

/// Goes on with what this side claims no more.
fn go_on(
    source: &Local,
    names: &Names,
    given: &Handover,
    destination: &mut dyn Destination,
    progress: &mut Progress<'_>,
) -> Result<Outcome, TransferError> {
    let told = destination.status(names)?;
    let service = source.service().clone();
    let is_third =
        |holder: &Names| !holder.matches(&service) && !holder.matches(destination.service());
    if told.service.as_ref().is_some_and(is_third) {
        // It took the original before, and has handed it on.
        source.archive().forget_handover(names)?;
        return Ok(Outcome::HandedOver(Moved::default()));
    }
    match finish(source, names, given, destination) {
        Err(TransferError::Skip(Skip::NotTaken(_))) => {}
        other => return other.map(|()| Outcome::HandedOver(Moved::default())),
    }
    // It has lost the copy, or the word.
    let (moved, word) = send(source, names, destination, progress)?;
    let again = Handover {
        word,
        ..given.clone()
    };
    source.archive().note_handover(names, &again)?;
    finish(source, names, &again, destination)?;
    Ok(Outcome::HandedOver(moved))
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

fn may_arrive(told: &RemoteStatus, brings_back: bool) -> Result<(), Skip> {
    match told.state {
        Some(State::Original) => Err(Skip::OriginalThere),
        Some(State::Deleted) if !brings_back => {
            let when = told.removed_at.clone();
            Err(when.map_or(Skip::RemovedThere, |when| Skip::RemovedThereAt(when.into())))
        }
        _ => Ok(()),
    }
}

/// What concerns one item alone ends nothing.
fn skipped(outcome: Result<Outcome, TransferError>) -> Result<Outcome, TransferError> {
    match outcome {
        Err(TransferError::Skip(skip)) => Ok(Outcome::Skipped(skip)),
        other => other,
    }
}
