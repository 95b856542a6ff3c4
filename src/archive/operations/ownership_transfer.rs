//! Transfer of ownership of an original: the transfer record, and the change of the sidecar that
//! carries it out.
//!
//! The state of an item follows from the Archive service that its sidecar names, so a transfer
//! consists of two writes of one pair: the giver stops claiming the original, then the receiver
//! claims it. Between the two neither Archive claims it, and both hold the content. After a crash
//! the records in `handover/` show each Archive how far it was. They also ensure that the second
//! change is made only once: the receiver draws a one-time token when it expects an item, the giver
//! sends it after it has given the item up, and the receiver discards it with the change.
//!
//! A transfer is cancelled in the same way, backwards: once the receiver has discarded its token, or the
//! user has declared that it is gone for good, the giver may claim the original again. An Archive that was
//! declared gone is remembered, because it may have claimed the original before.

use std::fs::File;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::recovery_log::ChangeDurability;
use super::{Acceptance, Archive, ArchiveError, Depositor, Editor};
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::Action;
use crate::archive::tree::{Author, Creator, HANDOVER, Place, Tree};
use crate::formats::item::{Names, Sidecar, State};
use ibi::Ibi;
use ibi::pairs::{Pairs, Value};

/// The role of an Archive in a transfer of ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It gives the original.
    Gives,
    /// It expects the original.
    Expects,
    /// It was giving the original, and claims it again.
    TakesBack,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Role::Gives => "to",
            Role::Expects => "from",
            Role::TakesBack => "back",
        }
    }
}

/// The record of an item whose ownership is being transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnershipTransfer {
    /// The part of this Archive: it gives or expects the item.
    pub role: Role,
    /// The service of the Archive at the other end.
    pub other: Names,
    /// The receiver's one-time token for this transfer.
    pub token: String,
    /// Whether the other Archive is known to have claimed the original. The record that remains
    /// then prevents an item that was removed here from becoming an original again.
    pub is_taken: bool,
}

impl OwnershipTransfer {
    /// Whether the item is given to another Archive that may not have claimed it yet, or is being taken
    /// back from it.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        match self.role {
            Role::Gives => !self.is_taken,
            Role::TakesBack => true,
            Role::Expects => false,
        }
    }
}

/// All that is recorded of an item's transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferRecord {
    /// The transfer under way.
    current: Option<OwnershipTransfer>,
    /// The Archives that were declared gone while they may have held the original.
    gone: Vec<Names>,
}

/// The name of the pair with the Archives that were declared gone.
const GONE: &str = "gone";

impl TransferRecord {
    /// The record as a list of pairs.
    #[must_use]
    pub fn to_bytes(&self, names: &Names) -> Vec<u8> {
        let mut pairs = Pairs::default();
        pairs.set("ibi", names.to_value());
        if let Some(current) = &self.current {
            pairs.set(current.role.word(), current.other.to_value());
            pairs.set("word", Value::Word(current.token.clone()));
            if current.is_taken {
                pairs.set("taken", Value::Word("yes".to_owned()));
            }
        }
        if !self.gone.is_empty() {
            let gone = self.gone.iter().map(Names::preferred);
            pairs.set(GONE, Value::List(gone.collect()));
        }
        pairs.to_bytes()
    }

    /// Parses a record; None if it has another form.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<TransferRecord> {
        let pairs = Pairs::parse(bytes).ok()?;
        let gone = pairs.get(GONE).map_or(&[][..], Value::words).iter();
        let gone = gone.map(|word| Some(Names::from(Ibi::parse(word).ok()?)));
        let gone: Vec<Names> = gone.collect::<Option<_>>()?;
        let other = |role: Role| {
            let names = Names::from_value(pairs.get(role.word())?).ok()?;
            Some((role, names))
        };
        let roles = [Role::Gives, Role::Expects, Role::TakesBack];
        let Some((role, other)) = roles.into_iter().find_map(other) else {
            return (!gone.is_empty()).then_some(TransferRecord {
                current: None,
                gone,
            });
        };
        let Some(Value::Word(token)) = pairs.get("word") else {
            return None;
        };
        let current = OwnershipTransfer {
            role,
            other,
            token: token.clone(),
            is_taken: pairs.get("taken") == Some(&Value::Word("yes".to_owned())),
        };
        Some(TransferRecord {
            current: Some(current),
            gone,
        })
    }
}

/// While this lives, no other process transfers items from or to the store.
#[derive(Debug)]
#[must_use]
pub struct TransferLock(#[allow(dead_code, reason = "held, not read")] File);

impl Depositor<'_> {
    /// Registers an item that is to be copied in, and creates its directory if it is not here.
    /// Returns the item.
    pub fn expected(&self, names: &Names, creator: Creator) -> Result<Item, ArchiveError> {
        if let Some(item) = self.held(names)? {
            return Ok(item);
        }
        let names = match names.rep() {
            Some(rep) => {
                let rep = self.as_spelled_here(rep)?;
                Names::new(Some(rep), names.ibip().cloned()).unwrap_or_else(|| names.clone())
            }
            None => names.clone(),
        };
        self.register(&names, creator)
    }
}

impl Archive {
    /// Locks the store against transfers by other processes, beside a mount as well. Returns None
    /// if another process holds the lock.
    pub fn lock_handovers(tree: &Tree) -> Result<Option<TransferLock>, ArchiveError> {
        let file = tree.open_handover_lock()?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(TransferLock(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(tree.error(Action::Lock, HANDOVER, errno).into()),
        }
    }

    /// The transfer of an item that is under way, recorded under any of its names.
    pub fn handover(&self, names: &Names) -> Result<Option<OwnershipTransfer>, ArchiveError> {
        Ok(self.handover_record(names)?.current)
    }

    /// The Archives that were declared gone while the original of an item was transferred to them. Each may
    /// have claimed it before.
    pub fn gone_receivers(&self, names: &Names) -> Result<Vec<Names>, ArchiveError> {
        Ok(self.handover_record(names)?.gone)
    }

    fn handover_record(&self, names: &Names) -> Result<TransferRecord, ArchiveError> {
        for place in Place::all_of(names) {
            if let Some(bytes) = self.tree.read_handover(&place)? {
                let broken = || ArchiveError::TransferRecord {
                    path: self.tree.path().join(HANDOVER).join(place.as_str()),
                };
                return TransferRecord::parse(&bytes).ok_or_else(broken);
            }
        }
        Ok(TransferRecord::default())
    }

    fn write_handover_record(
        &self,
        names: &Names,
        record: &TransferRecord,
    ) -> Result<(), ArchiveError> {
        if *record == TransferRecord::default() {
            for place in Place::all_of(names) {
                self.tree.remove_handover(&place)?;
            }
            return Ok(());
        }
        let bytes = record.to_bytes(names);
        Ok(self.tree.write_handover(&Place::of(names), &bytes)?)
    }

    /// Records a transfer durably. The caller holds the transfer lock.
    pub fn note_handover(
        &self,
        names: &Names,
        handover: &OwnershipTransfer,
    ) -> Result<(), ArchiveError> {
        let mut record = self.handover_record(names)?;
        record.current = Some(handover.clone());
        self.write_handover_record(names, &record)
    }

    /// Removes what is recorded of the transfer under way, durably.
    pub fn forget_handover(&self, names: &Names) -> Result<(), ArchiveError> {
        let mut record = self.handover_record(names)?;
        record.current = None;
        self.write_handover_record(names, &record)
    }

    /// Records durably that the receiver of the transfer under way was declared gone.
    pub fn note_gone(&self, names: &Names, receiver: &Names) -> Result<(), ArchiveError> {
        let mut record = self.handover_record(names)?;
        if !record.gone.iter().any(|it| it.matches(receiver)) {
            record.gone.push(receiver.clone());
        }
        self.write_handover_record(names, &record)
    }

    /// Removes, durably, that an Archive was declared gone: it is back, and does not claim the original.
    pub fn forget_gone(&self, names: &Names, receiver: &Names) -> Result<(), ArchiveError> {
        let mut record = self.handover_record(names)?;
        let count = record.gone.len();
        record.gone.retain(|it| !it.matches(receiver));
        if record.gone.len() == count {
            return Ok(());
        }
        self.write_handover_record(names, &record)
    }

    /// The items with a transfer under way, and the transfer.
    pub fn handovers(&self) -> Result<Vec<(Names, OwnershipTransfer)>, ArchiveError> {
        let mut found = Vec::new();
        self.tree.each_handover::<ArchiveError>(|area, path| {
            if let Some(names) = super::identifiers::names_at(area, path)
                && let Some(handover) = self.handover(&names)?
            {
                found.push((names, handover));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The record of an item that was given to another Archive. That Archive may not have claimed it
    /// yet, or has claimed it after its removal here. Such an item cannot become an original here.
    pub(super) fn given(&self, names: &Names) -> Result<Option<OwnershipTransfer>, ArchiveError> {
        let handover = self.handover(names)?;
        Ok(handover.filter(|handover| handover.role == Role::Gives))
    }
}

impl Editor<'_> {
    /// Writes the Archive that has claimed the original since into the tombstone of a removed item.
    /// The change is durable when this returns.
    pub fn redirect_tombstone(&self, names: &Names, holder: &Names) -> Result<(), ArchiveError> {
        let found = self.store.find_by_names(names)?;
        let Some(item) = found.filter(|item| item.state == State::Deleted) else {
            return Ok(());
        };
        if item.service.as_ref().is_some_and(|it| it.matches(holder)) {
            return Ok(());
        }
        let mut tombstone = self.accepted_sidecar(&item)?;
        tombstone.set_archive_service(holder);
        let place = Place::of(&item.names);
        let changing = self.recovery.begin(&place, ChangeDurability::Synced)?;
        let bytes = tombstone.to_bytes();
        self.tree.write_tombstone(&place, &bytes)?;
        self.store
            .put(&self.record_of_removed(item.names.clone(), &tombstone, bytes))?;
        changing.done();
        Ok(())
    }

    /// Updates the tombstones of all items that were claimed beside the mount. Only the mount may
    /// change its tombstones.
    pub(super) fn redirect_tombstones(&self) -> Result<(), ArchiveError> {
        for (names, handover) in self.handovers()? {
            if handover.role == Role::Gives && handover.is_taken {
                self.redirect_tombstone(&names, &handover.other)?;
            }
        }
        Ok(())
    }

    /// Changes the sidecar of an item in any state and accepts it. The change is durable when this returns.
    pub fn change_sidecar(
        &self,
        id: ItemId,
        change: impl FnOnce(&mut Sidecar),
    ) -> Result<(), ArchiveError> {
        let item = self.known(id)?;
        let place = Place::of(&item.names);
        let bytes = self.tree.read_sidecar(&place)?;
        let mut sidecar = match &bytes {
            Some(bytes) => self.parse_for(&item.names, bytes)?,
            None => self.accepted_sidecar(&item)?,
        };
        change(&mut sidecar);
        let changing = self.recovery.begin(&place, ChangeDurability::Synced)?;
        self.write_sidecar(&item.names, &sidecar.to_bytes(), Author::Same)?;
        match self.with_writer(&item.names, |writer| self.by(writer).accept(id))? {
            Acceptance::Accepted(_) | Acceptance::Unchanged => changing.done(),
            Acceptance::Rejected(error) => return Err(error),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Process;
    use super::super::testing::{TestArchive, elsewhere, transfer};
    use super::*;

    #[test]
    fn what_is_noted_reads_back() {
        let names = |text: &str| Names::from(text.parse::<ibi::Ibi>().expect(text));
        let item = names("8JMKD3MGP8W/35MMLL8");
        let other = names("sid.inpe.br/mtc-m18@80/2008/03.17.15.17");
        for role in [Role::Gives, Role::Expects, Role::TakesBack] {
            for gone in [Vec::new(), vec![other.clone(), elsewhere()]] {
                let handover = OwnershipTransfer {
                    role,
                    other: other.clone(),
                    token: "0123abcd".to_owned(),
                    is_taken: role == Role::Gives,
                };
                let current = Some(handover);
                let record = TransferRecord { current, gone };
                assert_eq!(TransferRecord::parse(&record.to_bytes(&item)), Some(record));
            }
        }
        for bad in ["word x", "", "gone x", "gone {}"] {
            assert_eq!(TransferRecord::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn who_was_declared_gone_is_remembered_until_it_answers() {
        let archive = TestArchive::new();
        let item = archive.new_item().names;
        let handover = transfer(Role::Gives, false);
        archive.note_handover(&item, &handover).expect("noted");
        for _ in 0..2 {
            archive.note_gone(&item, &elsewhere()).expect("noted");
        }
        archive.forget_handover(&item).expect("forgotten");
        assert_eq!(archive.handover(&item).expect("read"), None);
        archive.note_handover(&item, &handover).expect("noted");
        assert_eq!(archive.handover(&item).expect("read"), Some(handover));
        archive.forget_handover(&item).expect("forgotten");
        let gone = || archive.gone_receivers(&item).expect("read");
        assert_eq!(gone(), [elsewhere()]);
        archive.forget_gone(&item, &item).expect("forgotten");
        assert_eq!(gone(), [elsewhere()]);
        archive.forget_gone(&item, &elsewhere()).expect("forgotten");
        assert_eq!(gone(), []);
        let place = Place::of(&item);
        assert_eq!(archive.tree().read_handover(&place).expect("read"), None);
    }

    #[test]
    fn an_item_that_was_given_is_not_an_original_again() {
        for (role, is_original) in [
            (Role::Gives, false),
            (Role::Expects, true),
            (Role::TakesBack, true),
        ] {
            let archive = TestArchive::new();
            let item = archive.new_item();
            let accept = |service: &Names| {
                archive.edit_raw(&item, |sidecar| sidecar.set_archive_service(service));
                let accepted = archive.edit(&Process, |it| it.accept_sidecar(item.id));
                accepted.expect("asked")
            };
            assert!(matches!(accept(&elsewhere()), Acceptance::Accepted(_)));
            let handover = transfer(role, false);
            archive
                .note_handover(&item.names, &handover)
                .expect("noted");
            let found = archive.handover(&item.names).expect("read");
            assert_eq!(found, Some(handover));
            let accepted = accept(&archive.facts().service);
            assert_eq!(
                matches!(accepted, Acceptance::Accepted(_)),
                is_original,
                "{accepted:?}"
            );
            let holder = archive.sidecar(&item).archive_service().cloned();
            assert_eq!(holder == Some(elsewhere()), !is_original);
            archive.forget_handover(&item.names).expect("forgotten");
            assert_eq!(archive.handover(&item.names).expect("read"), None);
        }
    }

    #[test]
    fn a_transfer_is_pending_until_the_other_archive_has_the_item() {
        for (role, is_taken, is_pending) in [
            (Role::Gives, false, true),
            (Role::Gives, true, false),
            (Role::Expects, false, false),
            (Role::Expects, true, false),
            (Role::TakesBack, false, true),
        ] {
            let handover = transfer(role, is_taken);
            assert_eq!(handover.is_pending(), is_pending, "{role:?} {is_taken}");
        }
    }

    #[test]
    fn one_process_transfers_items_of_a_store() {
        let archive = TestArchive::new();
        let lock = || Archive::lock_handovers(archive.tree()).expect("a lock");
        let first = lock();
        assert!(first.is_some() && lock().is_none());
        drop(first);
        assert!(lock().is_some());
    }

    #[test]
    fn the_record_of_a_removed_item_names_the_archive_that_has_it_now() {
        for (role, is_taken, is_redirected) in [
            (Role::Gives, true, true),
            (Role::Gives, false, false),
            (Role::Expects, true, false),
        ] {
            let archive = TestArchive::new();
            let [item, present] = [archive.new_item(), archive.new_item()];
            archive.remove_whole(&item);
            for item in [&item, &present] {
                let handover = transfer(role, is_taken);
                let noted = archive.note_handover(&item.names, &handover);
                noted.expect("noted");
            }
            archive
                .edit(&Process, |it| it.redirect_tombstones())
                .expect("redirected");
            let own = archive.facts().service.clone();
            let holder = if is_redirected {
                elsewhere()
            } else {
                own.clone()
            };
            assert_eq!(archive.again(&item).service.as_ref(), Some(&holder));
            let place = Place::of(&item.names);
            let bytes = archive.tree().read_tombstone(&place).expect("read");
            let tombstone = Sidecar::parse(&bytes.expect("a tombstone")).expect("valid");
            assert_eq!(tombstone.archive_service(), Some(&holder));
            let kept = archive.sidecar(&present).archive_service().cloned();
            assert_eq!(kept, Some(own), "an item that is there");
        }
    }

    #[test]
    fn a_sidecar_that_is_changed_here_counts_at_once() {
        let archive = TestArchive::new();
        let item = archive.new_item();
        for (service, state) in [
            (elsewhere(), State::Copy),
            (archive.facts().service.clone(), State::Original),
        ] {
            let changed = archive.edit(&Process, |it| {
                it.change_sidecar(item.id, |sidecar| {
                    sidecar.set_archive_service(&service);
                })
            });
            changed.expect("changed");
            assert_eq!(archive.again(&item).state, state);
            let holder = archive.sidecar(&item).archive_service().cloned();
            assert_eq!(holder, Some(service));
        }
    }
}
