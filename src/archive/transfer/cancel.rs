//! A transfer that was begun and is cancelled: the original stays where it was.
//!
//! The receiver first discards its one-time token, durably, after which nothing makes it the holder. Only then
//! the giver claims the original again, with a record that a stopped cancellation is continued from. A receiver
//! that has claimed the original refuses, and one that does not answer may have claimed it: then the user must
//! declare it gone for good, which is recorded until it is asked after all. The token is not sent before the
//! giver's sidecar names the receiver; as long as it names the giver, no declaration is needed.

use super::destination::Destination;
use super::local::Local;
use super::outcome::{TransferError, TransferOutcome, skipped};
use super::skip::Skip;
use crate::archive::store::Item;
use crate::archive::{Event, OwnershipTransfer, Role, Stranger};
use crate::formats::item::{Names, State};
use ibi::message;

/// The Archive to which a cancelled transfer went.
pub enum Cancelled<'a> {
    /// It is asked.
    With(&'a mut dyn Destination),
    /// The user declares that the Archive of this service is gone for good.
    Without(&'a Names),
}

impl Cancelled<'_> {
    fn service(&self) -> Names {
        match self {
            Cancelled::With(receiver) => receiver.service().clone(),
            Cancelled::Without(service) => (*service).clone(),
        }
    }

    /// Has the receiver discard its token. Returns false if it cannot be asked.
    fn discard(&mut self, names: &Names, from: &Names) -> Result<bool, TransferError> {
        match self {
            Cancelled::With(receiver) => receiver.cancel(names, from).map(|()| true),
            Cancelled::Without(_) => Ok(false),
        }
    }
}

/// Cancels the transfer of an original, or continues an interrupted cancellation.
pub fn cancel(
    source: &Local,
    names: &Names,
    receiver: &mut Cancelled<'_>,
) -> Result<TransferOutcome, TransferError> {
    let to = receiver.service();
    if source.service().matches(&to) {
        return Err(TransferError::SameArchive);
    }
    let item = source.item(names)?;
    skipped(cancelled(source, &item, &to, receiver))
}

fn cancelled(
    source: &Local,
    item: &Item,
    to: &Names,
    receiver: &mut Cancelled<'_>,
) -> Result<TransferOutcome, TransferError> {
    let (archive, names, ours) = (source.archive(), &item.names, source.service());
    let given = archive
        .handover(names)?
        .filter(OwnershipTransfer::is_pending);
    let Some(given) = given else {
        return settle(source, item, to, receiver);
    };
    if !given.other.matches(to) {
        return Err(Skip::GivenTo(given.other.into()).into());
    }
    let is_discarded = receiver.discard(names, ours)?;
    let claims = claims_original(source, item)?;
    let is_sent = given.role == Role::TakesBack || !claims;
    if is_sent && !is_discarded {
        archive.note_gone(names, to)?;
    }
    if item.state == State::Deleted {
        keep_removed(source, item)?;
    } else if is_sent {
        let back = OwnershipTransfer {
            role: Role::TakesBack,
            ..given
        };
        archive.note_handover(names, &back)?;
        source.name_holder(names, ours)?;
    }
    archive.forget_handover(names)?;
    if is_discarded {
        archive.forget_gone(names, to)?;
    }
    source.tell(Event::Cancel(to), names);
    Ok(TransferOutcome::Cancelled {
        is_safe: is_discarded || !is_sent,
    })
}

/// Whether both the index and the sidecar say that the original is here.
fn claims_original(source: &Local, item: &Item) -> Result<bool, TransferError> {
    if item.state != State::Original {
        return Ok(false);
    }
    let sidecar = source.sidecar_of(item)?;
    let holder = sidecar.archive_service();
    Ok(holder.is_some_and(|holder| holder.matches(source.service())))
}

/// Asks a receiver that was declared gone and is back.
fn settle(
    source: &Local,
    item: &Item,
    to: &Names,
    receiver: &mut Cancelled<'_>,
) -> Result<TransferOutcome, TransferError> {
    let (archive, names) = (source.archive(), &item.names);
    let gone = archive.gone_receivers(names)?;
    if !gone.iter().any(|it| it.matches(to)) {
        return Err(Skip::NotPending.into());
    }
    match receiver.discard(names, source.service()) {
        Err(TransferError::Skip(Skip::OriginalThere)) if claims_original(source, item)? => {
            return Err(Skip::TwoOriginals.into());
        }
        Err(error) => return Err(error),
        Ok(false) => return Err(Skip::NotPending.into()),
        Ok(true) => {}
    }
    archive.forget_gone(names, to)?;
    Ok(TransferOutcome::Cancelled { is_safe: true })
}

/// Makes the tombstone of an item that was removed meanwhile say that the original was removed here.
fn keep_removed(source: &Local, item: &Item) -> Result<(), TransferError> {
    let ours = source.service();
    if item.service.as_ref().is_some_and(|it| it.matches(ours)) {
        return Ok(());
    }
    if !source.is_held() {
        return Err(TransferError::System(message!(
            "{names} was removed during its transfer; unmount the store to cancel that",
            names = item.names
        )));
    }
    Ok(source
        .archive()
        .edit(&Stranger, |it| it.redirect_tombstone(&item.names, ours))?)
}
