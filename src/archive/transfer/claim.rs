//! Claiming: a copy becomes the original after the original was removed.
//!
//! The Archive that the copy's sidecar names must have a record of the removal. Claiming is a transfer of
//! ownership without content from the giver. The claiming Archive draws a one-time token and records it. The
//! other Archive durably records to which Archive the original goes. Only then the sidecar of the copy names
//! its own Archive as the holder. From the second step on, the other Archive does not accept the item as an
//! original again and gives it to no third Archive. At whatever step either side is stopped, at most one
//! claims the original, and the same command continues the claim.

use super::destination::Destination;
use super::local::Local;
use super::outcome::{RemoteStatus, TransferError, TransferOutcome, skipped};
use super::skip::Skip;
use crate::archive::{Event, OwnershipTransfer, Role, Stranger};
use crate::formats::item::{Names, State};

/// An Archive where the original of an item was removed.
pub trait Remover {
    /// The item of the Archive's service, which sidecars name.
    fn service(&self) -> &Names;

    /// The status of an item there.
    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError>;

    /// The record of the transfer of the original, if it has one.
    fn given(&self, names: &Names) -> Result<Option<OwnershipTransfer>, TransferError>;

    /// Records durably, with this token, that the original goes to an Archive. An error where it has the item
    /// again, or the original goes to another Archive.
    fn give_up(&mut self, names: &Names, to: &Names, token: &str) -> Result<(), TransferError>;

    /// Records that the transfer is complete; returns whether this Archive remembers where the original is.
    fn is_taken(&mut self, names: &Names, by: &Names) -> Result<bool, TransferError>;
}

/// Makes a local copy the original, or continues an interrupted claim.
pub fn claim(
    local: &mut Local,
    names: &Names,
    other: &mut dyn Remover,
) -> Result<TransferOutcome, TransferError> {
    if Local::service(local).matches(other.service()) {
        return Err(TransferError::SameArchive);
    }
    let item = local.item(names)?;
    skipped(claimed(local, &item, other))
}

fn claimed(
    local: &mut Local,
    item: &crate::archive::store::Item,
    other: &mut dyn Remover,
) -> Result<TransferOutcome, TransferError> {
    let names = &item.names;
    let ours = Local::service(local).clone();
    let from = other.service().clone();
    let given = other.given(names)?;
    let is_ours = given.as_ref().is_some_and(|it| it.other.matches(&ours));
    match item.state {
        State::Deleted => return Err(Skip::RemovedHere.into()),
        State::Original => {
            // The claim may have been interrupted just before its end.
            let noted = local.archive().handover(names)?;
            let expected = noted.filter(|it| it.role == Role::Expects && it.other.matches(&from));
            let is_open = given.is_some_and(|given| !given.is_taken);
            if expected.is_none() && !(is_ours && is_open) {
                return Err(Skip::OriginalHere.into());
            }
            if let Some(expected) = expected {
                local.become_holder(names, &from, &expected.token)?;
            }
            return finish(names, &ours, other);
        }
        State::Copy => {}
    }
    if names.matches(&from) {
        return Err(Skip::Service.into());
    }
    match &item.service {
        Some(holder) if holder.matches(&from) => {}
        Some(holder) => return Err(Skip::OtherArchive(holder.clone().into()).into()),
        None => return Err(Skip::NoArchive.into()),
    }
    if let Some(given) = given
        && (given.is_taken || !is_ours)
    {
        return Err(Skip::WentOn(given.other.into()).into());
    }
    has_removed(&other.status(names)?, &from)?;
    let noted = local.archive().handover(names)?;
    let expected = noted.filter(|it| it.role == Role::Expects && it.other.matches(&from));
    let token = match expected {
        Some(expected) => expected.token,
        None => local.expect(names, &from)?,
    };
    other.give_up(names, &ours, &token)?;
    local.become_holder(names, &from, &token)?;
    local.tell(Event::Claim(&from), names);
    finish(names, &ours, other)
}

fn finish(
    names: &Names,
    ours: &Names,
    other: &mut dyn Remover,
) -> Result<TransferOutcome, TransferError> {
    let is_remembered = other.is_taken(names, ours)?;
    Ok(TransferOutcome::Claimed { is_remembered })
}

/// Fails unless the Archive that held the original has removed it.
fn has_removed(status: &RemoteStatus, from: &Names) -> Result<(), Skip> {
    match status.state {
        None => Err(Skip::UnknownThere(from.clone().into())),
        Some(State::Original) => Err(Skip::StillOriginal(from.clone().into())),
        Some(State::Copy) => Err(Skip::CopyThere(from.clone().into())),
        Some(State::Deleted) => match &status.service {
            Some(holder) if !holder.matches(from) => Err(Skip::WentOn(holder.clone().into())),
            _ => Ok(()),
        },
    }
}

impl Remover for Local {
    fn service(&self) -> &Names {
        Local::service(self)
    }

    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError> {
        Destination::status(self, names)
    }

    fn given(&self, names: &Names) -> Result<Option<OwnershipTransfer>, TransferError> {
        let noted = self.archive().handover(names)?;
        Ok(noted.filter(|noted| noted.role == Role::Gives))
    }

    fn give_up(&mut self, names: &Names, to: &Names, token: &str) -> Result<(), TransferError> {
        let archive = self.archive();
        if let Some(given) = self.given(names)?
            && !given.other.matches(to)
        {
            return Err(Skip::WentOn(given.other.into()).into());
        }
        let handover = OwnershipTransfer {
            role: Role::Gives,
            other: to.clone(),
            token: token.to_owned(),
            is_taken: false,
        };
        archive.note_handover(names, &handover)?;
        // An item that returns from now on meets the record; one that returned before is known by now.
        let from = Local::service(self).clone();
        if let Err(skip) = has_removed(&Destination::status(self, names)?, &from) {
            self.archive().forget_handover(names)?;
            return Err(skip.into());
        }
        self.tell(Event::Give(to), names);
        Ok(())
    }

    fn is_taken(&mut self, names: &Names, by: &Names) -> Result<bool, TransferError> {
        if let Some(given) = self.given(names)? {
            let taken = OwnershipTransfer {
                is_taken: true,
                ..given
            };
            self.archive().note_handover(names, &taken)?;
        }
        if self.is_held() {
            self.archive()
                .edit(&Stranger, |it| it.redirect_tombstone(names, by))?;
        }
        Ok(true)
    }
}
