//! Copies an item of a store to a destination, and transfers an original to it step by step.

use super::destination::Destination;
use super::local::Local;
use super::outcome::{
    ByteProgress, CompareWhen, Moved, RemoteStatus, TransferError, TransferOutcome, skipped,
};
use super::skip::Skip;
use crate::archive::{Clock, Event, OwnershipTransfer, Role, SystemClock};
use crate::formats::copies::{CopyKind, KnownCopy, Proof};
use crate::formats::history::EventKind;
use crate::formats::item::{Names, State};
use ibi::Timestamp;

/// Copies the first of some items of a store, at least one, also those that were removed there if they are to come back, and
/// returns the result of each. Only the last can
/// be an error, which concerns more than its item.
pub fn copy_first(
    source: &Local,
    items: &[Names],
    destination: &mut dyn Destination,
    (brings_back, comparison): (bool, CompareWhen),
    progress: &mut ByteProgress<'_>,
) -> Vec<Result<TransferOutcome, TransferError>> {
    if let Err(error) = refuse_same(source, destination) {
        return vec![Err(error)];
    }
    let mut checked = Vec::new();
    for names in items.iter().take(destination.batch()) {
        let may = may_be_copied(source, names, destination, brings_back);
        let is_last = matches!(&may, Err(error) if !matches!(error, TransferError::Skip(_)));
        checked.push(may);
        if is_last {
            break;
        }
    }
    let wanted: Vec<Names> = checked
        .iter()
        .filter_map(|it| it.as_ref().ok().cloned())
        .collect();
    let mut received = match wanted.as_slice() {
        [] => Vec::new(),
        wanted => destination.receive_first(source, wanted, comparison, progress),
    }
    .into_iter();
    let mut outcomes = Vec::new();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for may in checked {
        let moved = match may {
            Err(error) => Err(error),
            Ok(names) => match received.next() {
                Some(moved) => moved.inspect(|moved| {
                    if moved.files > 0 {
                        destination.take_events(source, &names);
                        source.tell_of(EventKind::CopiedOut, &names, destination.service());
                    }
                }),
                None => break,
            },
        };
        match (&moved, items.get(outcomes.len())) {
            (Ok(moved), Some(names)) if moved.is_proved => good.push(names.clone()),
            (Err(TransferError::Skip(Skip::Differs(_))), Some(names)) => bad.push(names.clone()),
            _ => {}
        }
        outcomes.push(skipped(moved.map(|moved| match moved.files {
            0 => TransferOutcome::Unchanged,
            _ => TransferOutcome::Copied(moved),
        })));
    }
    note_copies(source, &good, destination, true);
    note_copies(source, &bad, destination, false);
    outcomes
}

/// Notes on both sides that the other one has copies of some items, which were compared, and whether these are the same.
fn note_copies(source: &Local, items: &[Names], destination: &dyn Destination, is_good: bool) {
    let copy = |service: &Names, place: &[String]| KnownCopy {
        place: place.to_vec(),
        proof: Some(Proof {
            at: Timestamp::from_unix(SystemClock.now().seconds(), 0),
            is_good,
        }),
        ..KnownCopy::new(CopyKind::Archive, service.preferred())
    };
    source.note_copy(items, &copy(destination.service(), destination.place()));
    // What was sent was read here.
    if is_good {
        destination.note_copy(items, &copy(source.service(), source.place()));
    }
}

/// The names of an item, unless it cannot go there.
fn may_be_copied(
    source: &Local,
    names: &Names,
    destination: &mut dyn Destination,
    brings_back: bool,
) -> Result<Names, TransferError> {
    let item = source.item(names)?;
    if item.state == State::Deleted {
        return Err(Skip::RemovedHere.into());
    }
    may_arrive(&destination.status(names)?, brings_back)?;
    Ok(item.names)
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
        let given = noted.filter(OwnershipTransfer::is_pending);
        if let Some(given) = given.as_ref().filter(|it| it.role == Role::TakesBack) {
            return Err(Skip::TakenBack(given.other.clone().into()).into());
        }
        match (item.state, given) {
            (State::Original, _) => {
                let status = destination.status(names)?;
                if status.state == Some(State::Original) {
                    return Err(Skip::TwoOriginals.into());
                }
                may_arrive(&status, brings_back)?;
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
    let (moved, token) = send(source, names, destination, progress)?;
    let handover = OwnershipTransfer {
        role: Role::Gives,
        other: destination.service().clone(),
        token,
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
    destination.take_events(source, names);
    note_copies(source, std::slice::from_ref(names), destination, true);
    Ok(TransferOutcome::HandedOver(moved))
}

/// Continues a transfer after which this side no longer claims the original.
fn go_on(
    source: &Local,
    names: &Names,
    given: &OwnershipTransfer,
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
    let (moved, token) = send(source, names, destination, progress)?;
    let again = OwnershipTransfer {
        token,
        ..given.clone()
    };
    source.archive().note_handover(names, &again)?;
    finish(source, names, &again, destination)?;
    Ok(TransferOutcome::HandedOver(moved))
}

fn finish(
    source: &Local,
    names: &Names,
    handover: &OwnershipTransfer,
    destination: &mut dyn Destination,
) -> Result<(), TransferError> {
    destination.take(names, source.service(), &handover.token)?;
    source.archive().forget_handover(names)?;
    // It may have been declared gone by a cancellation that was interrupted.
    source.archive().forget_gone(names, destination.service())?;
    source.tell(Event::Give(destination.service()), names);
    Ok(())
}

fn refuse_same(source: &Local, destination: &dyn Destination) -> Result<(), TransferError> {
    if source.service().matches(destination.service()) {
        Err(TransferError::SameArchive)
    } else {
        Ok(())
    }
}

/// Refuses an item whose original the destination holds, or that was removed there.
///
/// # Errors
/// The reason why it is not copied.
pub fn may_arrive(status: &RemoteStatus, brings_back: bool) -> Result<(), Skip> {
    match status.state {
        Some(State::Original) => Err(Skip::OriginalThere),
        Some(State::Deleted) if !brings_back => {
            let when = status.removed_at.clone();
            Err(when.map_or(Skip::RemovedThere, |when| Skip::RemovedThereAt(when.into())))
        }
        _ => Ok(()),
    }
}
