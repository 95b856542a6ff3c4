//! An Archive to which items are copied and transferred: the interface, and a store on this machine behind it.

use super::arrival::of_the_item;
use super::batch::{BATCH, SentItem};
use super::local::Local;
use super::outcome::{ByteProgress, CompareWhen, Moved, RemoteStatus, TransferError, not_drawn};
use super::skip::Skip;
use crate::archive::copies::CopyLedger;
use crate::archive::tree::Place;
use crate::archive::{Event, OwnershipTransfer, Role};
use crate::formats::copies::KnownCopy;
use crate::formats::hex::Hex;
use crate::formats::item::{Names, State};
use crate::os::random;
use ibi::message;
use ibi::message::Message;

/// The length of a one-time token, in bytes.
const TOKEN_BYTES: usize = 16;

/// An Archive to which items are copied and transferred.
pub trait Destination {
    /// The item of the Archive's service, which sidecars name.
    fn service(&self) -> &Names;

    /// Where it says that it is; empty if it does not.
    fn place(&self) -> &[String] {
        &[]
    }

    /// Notes that another Archive has a copy of some items, if it keeps a ledger of copies that this process may write.
    fn note_copy(&self, _items: &[Names], _copy: &KnownCopy) {}

    /// The status of an item there.
    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError>;

    /// Receives a copy of an item. When this returns, all of it is on disk, and compared if anything is new
    /// or the comparison is demanded. The sidecar is that of the source, except that it names `original_at`, if
    /// given, as the Archive of the original.
    fn receive(
        &mut self,
        source: &Local,
        names: &Names,
        original_at: Option<&Names>,
        comparison: CompareWhen,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError>;

    /// The most items that [`Destination::receive_first`] receives at once.
    fn batch(&self) -> usize {
        1
    }

    /// Receives copies of the first of some items, at least of one, as [`Destination::receive`] does, and
    /// returns the result of each. Only the last can be an error that concerns more than its item.
    fn receive_first(
        &mut self,
        source: &Local,
        items: &[Names],
        comparison: CompareWhen,
        progress: &mut ByteProgress<'_>,
    ) -> Vec<Result<Moved, TransferError>> {
        let mut receive = |names| self.receive(source, names, None, comparison, progress);
        items.first().map(&mut receive).into_iter().collect()
    }

    /// Takes what the source tells of an item that has arrived. Where this user may not enter the store, nothing is taken.
    fn take_events(&self, _source: &Local, _names: &Names) {}

    /// Draws and records a one-time token for the transfer of an item of which it has a copy.
    fn expect(&mut self, names: &Names, from: &Names) -> Result<String, TransferError>;

    /// Becomes the holder of the original. Succeeds if it is the holder already.
    fn take(&mut self, names: &Names, from: &Names, token: &str) -> Result<(), TransferError>;

    /// Discards, durably, the one-time token for the transfer of an item. An error if it has become the holder
    /// of the original.
    fn cancel(&mut self, names: &Names, from: &Names) -> Result<(), TransferError>;
}

impl Destination for Local {
    fn service(&self) -> &Names {
        Local::service(self)
    }

    fn place(&self) -> &[String] {
        &self.archive.facts().place
    }

    fn note_copy(&self, items: &[Names], copy: &KnownCopy) {
        Local::note_copy(self, items, copy);
    }

    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError> {
        self.state_of(names)
    }

    fn receive(
        &mut self,
        source: &Local,
        names: &Names,
        original_at: Option<&Names>,
        comparison: CompareWhen,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let arrival = SentItem::of(source, names, original_at)?;
        self.may_receive(names, source.service())?;
        arrival
            .with(|arrival| self.copy_in(arrival, comparison, progress))
            .map_err(of_the_item)
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn receive_first(
        &mut self,
        source: &Local,
        items: &[Names],
        comparison: CompareWhen,
        _progress: &mut ByteProgress<'_>,
    ) -> Vec<Result<Moved, TransferError>> {
        self.receive_batch(source, items, comparison)
    }

    fn take_events(&self, source: &Local, names: &Names) {
        let events = source.events_to_tell(names, false);
        self.tell_earlier(names, &source.service().preferred(), &events);
    }

    fn expect(&mut self, names: &Names, from: &Names) -> Result<String, TransferError> {
        let drawn = random::draw::<TOKEN_BYTES>().map_err(not_drawn)?;
        let token = Hex(&drawn).to_string();
        let handover = OwnershipTransfer {
            role: Role::Expects,
            other: from.clone(),
            token: token.clone(),
            is_taken: false,
        };
        self.may_receive(names, from)?;
        self.archive.note_handover(names, &handover)?;
        Ok(token)
    }

    fn take(&mut self, names: &Names, from: &Names, token: &str) -> Result<(), TransferError> {
        if self.become_holder(names, from, token)? {
            self.tell(Event::Take(from), names);
        }
        Ok(())
    }

    fn cancel(&mut self, names: &Names, from: &Names) -> Result<(), TransferError> {
        let status = self.state_of(names)?;
        let is_ours = |holder: &Names| holder.matches(Local::service(self));
        match (status.state, status.service) {
            (Some(State::Original), _) => return Err(Skip::OriginalThere.into()),
            (Some(_), Some(holder)) if is_ours(&holder) => {
                let why = message!("it accepted the original and removed it; see 'ibifs claim'");
                return Err(Skip::NotTaken(why).into());
            }
            (Some(_), Some(holder)) if !holder.matches(from) => {
                return Err(Skip::WentOn(holder.into()).into());
            }
            _ => {}
        }
        // Another giver may have begun a transfer of its own since.
        let noted = self.archive.handover(names)?;
        if noted.is_some_and(|it| it.role == Role::Expects && it.other.matches(from)) {
            self.archive.forget_handover(names)?;
        }
        Ok(())
    }
}

impl Local {
    /// Notes a copy of some items. A ledger that cannot be written lacks it, and the copy is to be proved again. Returns whether
    /// it could be written.
    pub fn note_copy(&self, items: &[Names], copy: &KnownCopy) -> bool {
        // A user of a mount who may not enter the store keeps no ledger for its owner.
        if items.is_empty() || self.archive.tree().is_mount() {
            return true;
        }
        let note = || -> Result<(), TransferError> {
            let ledger = CopyLedger::of(self.archive.tree())?;
            for names in items {
                // The place is that of the names that are known here.
                let names = self.item(names)?.names;
                ledger.note(&Place::of(&names), copy.clone())?;
            }
            Ok(())
        };
        let noted = note();
        if let Err(error) = &noted {
            // A user who may not write in a store notes nothing in it.
            let level = match error.disk_fault() {
                Some(_) => log::Level::Warn,
                None => log::Level::Info,
            };
            log::log!(
                level,
                "the copies of {} are not noted: {error}",
                copy.holder
            );
        }
        noted.is_ok()
    }

    /// The status of an item here.
    pub fn state_of(&self, names: &Names) -> Result<RemoteStatus, TransferError> {
        let item = self.archive.store().find_by_names(names)?;
        Ok(
            item.map_or_else(RemoteStatus::default, |item| RemoteStatus {
                state: Some(item.state),
                service: item.service,
                removed_at: item.removed_at,
                is_withdrawn: item.life.withdrawn.is_some(),
            }),
        )
    }

    /// Becomes the holder of the original. Returns false if it is the holder already.
    pub(super) fn become_holder(
        &mut self,
        names: &Names,
        from: &Names,
        token: &str,
    ) -> Result<bool, TransferError> {
        let not_taken = |why: Message| TransferError::from(Skip::NotTaken(why));
        let Some(item) = self.archive.held(names)? else {
            return Err(not_taken(message!("it has no copy of it")));
        };
        let noted = self.archive.handover(names)?;
        let expected = noted.filter(|noted| noted.role == Role::Expects);
        if item.state == State::Original {
            if expected.is_some() {
                self.archive.forget_handover(names)?;
            }
            return Ok(false);
        }
        if !expected.is_some_and(|it| it.token == token && it.other.matches(from)) {
            return Err(not_taken(message!(
                "it expects no such transfer, or one with another one-time token"
            )));
        }
        if !item.service.as_ref().is_some_and(|it| it.matches(from)) {
            return Err(not_taken(message!(
                "its copy names another Archive as the original's"
            )));
        }
        let service = self.service().clone();
        self.name_holder(names, &service)?;
        self.archive.forget_handover(names)?;
        Ok(true)
    }
}
