//! Copies an item of a store to a destination, and transfers an original to it step by step.

use super::destination::Destination;
use super::local::Local;
use super::outcome::{
    ByteProgress, CompareWhen, Moved, RemoteStatus, TransferError, TransferOutcome, skipped,
};
use super::skip::Skip;
use crate::archive::{Handover, Role};
use crate::formats::item::{Names, State};

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
        let moved = destination.receive(source, &item.names, None, CompareWhen::IfNew, progress)?;
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
    let moved = destination.receive(source, names, Some(service), CompareWhen::Always, progress)?;
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
