//! Registers directories as items, and removes items.

use super::full_disk::with_reserve;
use super::recovery_log::ChangeDurability;
use super::{Acceptance, Archive, ArchiveError, Depositor, Editor, Event, Stranger, log_event};
use crate::archive::store::{By, Item, ItemId, Record};
use crate::archive::tree::{Creator, Place};
use crate::formats::item::{Life, Names, Sidecar, State};
use ibi::{Ibi, Ibip, Rep};

/// The seconds after a mint in which it is taken back although there were files.
const TAKEN_BACK: i64 = 24 * 60 * 60;

impl Depositor<'_> {
    /// Registers a directory created for an item that is being copied in. It is a copy until its sidecar
    /// says otherwise. In this Archive's own name space only dates already given out are accepted.
    pub fn register(&self, names: &Names, creator: Creator) -> Result<Item, ArchiveError> {
        self.writable()?;
        self.refuse_unminted(names)?;
        let known = self.store.find_by_names(names)?;
        let names = match &known {
            Some(item) if item.state != State::Deleted => {
                return Err(ArchiveError::Exists(item.names.clone().into()));
            }
            // A removed item that is restored under one of its names gets all of them.
            Some(item) => {
                self.refuse_elsewhere(names, &item.names)?;
                item.names.clone()
            }
            None => names.clone(),
        };
        let place = Place::of(&names);
        let change = self.recovery.begin(&place, ChangeDurability::Unsynced)?;
        self.tree.make_item(&place, creator)?;
        let recorded = match &known {
            Some(_) => self.store.put(&Record {
                by: By::of(self.actor),
                ..Record::bare(names, State::Copy)
            }),
            None => self.store.put_arriving(&names),
        };
        let id = match recorded {
            Ok(id) => id,
            Err(error) => {
                // The directory is still empty, so removing it reverts the change.
                if self.tree.remove_item(&place).is_ok() {
                    change.done();
                }
                return Err(error.into());
            }
        };
        change.done();
        let item = self.known(id)?;
        if known.is_some() {
            log_event(Event::Restore, &item.names, self.actor);
        }
        Ok(item)
    }
}

impl Archive {
    /// The item in the directory of this rep. If a crash has kept a directory out of the index, it
    /// is registered now.
    pub fn item_at(&self, rep: &Rep) -> Result<Item, ArchiveError> {
        match self.store.find_by_rep(rep)? {
            Some(item) if item.state != State::Deleted => Ok(item),
            _ => self.edit(&Stranger, |it| {
                it.register_in_place(&Names::from(Ibi::Rep(rep.clone())))
            }),
        }
    }
}

impl Editor<'_> {
    /// Registers an item whose directory is in the tree, according to its sidecar.
    pub fn register_in_place(&self, names: &Names) -> Result<Item, ArchiveError> {
        // Another thread may just have removed it; it must not be registered again.
        if !self.is_there(names) {
            return Err(ArchiveError::Unknown {
                name: names.preferred(),
            });
        }
        self.refuse_unminted(names)?;
        // The place gives its name. The owner of its sidecar counts as the user who brings it.
        let (record, _) = self.read_item(names)?;
        let bare = match record.sidecar {
            Some(_) => names.clone(),
            None => record.names,
        };
        let id = self.store.put(&Record::bare(bare.clone(), State::Copy))?;
        let taken = self.with_author(&bare, |author| self.by(author).accept(id));
        if let Acceptance::Rejected(error) = taken? {
            log::warn!("{error}");
        }
        self.known(id)
    }

    /// Removes an item that contains nothing but its sidecar, and writes a tombstone.
    pub fn remove(&self, id: ItemId) -> Result<(), ArchiveError> {
        let item = self.remove_with(id, |_| {})?;
        if item.state == State::Original {
            let holders = self.copies_elsewhere(&item.names);
            match holders.as_slice() {
                [] => log::warn!("original of {} removed", item.names),
                holders => log::warn!(
                    "original of {} removed; its copies in {} have no original now ('ibifs claim')",
                    item.names,
                    holders.join(", ")
                ),
            }
        }
        self.log_too_few(&item.names);
        Ok(())
    }

    /// Takes a mint back: removes the item as [`Editor::remove`] does, but its tombstone is for the Archive alone, which
    /// never gives the name out again. One that has just lost files and is older than [`TAKEN_BACK`] is removed: readers may
    /// know it.
    pub fn unmint(&self, id: ItemId, has_lost_files: bool) -> Result<(), ArchiveError> {
        let names = self.known(id)?.names;
        let rep = names.rep().map(Rep::timestamp);
        let minted = rep.or_else(|| names.ibip().map(Ibip::timestamp));
        let age = minted.map(|minted| self.clock.now().seconds() - minted.seconds());
        if has_lost_files && age.is_some_and(|age| age > TAKEN_BACK) {
            return self.remove(id);
        }
        self.remove_with(id, Sidecar::set_unminted).map(drop)
    }

    fn remove_with(&self, id: ItemId, mark: impl Fn(&mut Sidecar)) -> Result<Item, ArchiveError> {
        let item = self.known(id)?;
        if item.names.matches(&self.facts.service) {
            return Err(ArchiveError::ServiceItem);
        }
        self.refuse_sealed(&item)?;
        let place = Place::of(&item.names);
        if !self.tree.holds_only_sidecar(&place)? {
            return Err(ArchiveError::NotEmpty(item.names.into()));
        }
        with_reserve(&self.tree, || {
            let change = self.recovery.begin(&place, ChangeDurability::Synced)?;
            self.write_tombstone(&item, &place, &mark)?;
            change.done();
            Ok(())
        })?;
        log_event(Event::Remove, &item.names, self.actor);
        Ok(item)
    }

    /// Writes the tombstone of an item, with what `mark` adds to its last sidecar.
    pub(super) fn write_tombstone(
        &self,
        item: &Item,
        place: &Place,
        mark: impl Fn(&mut Sidecar),
    ) -> Result<(), ArchiveError> {
        let mut tombstone = self.tombstone_of(item)?;
        mark(&mut tombstone);
        if tombstone.life().withdrawn.is_none() {
            // An item that says of itself that it was public is not taken at its word.
            let citation = if tombstone.is_unminted() {
                None
            } else {
                self.citation_left(item)
            };
            let life = tombstone.life().clone();
            tombstone.set_life(Life { citation, ..life });
        }
        let bytes = tombstone.to_bytes();
        self.tree.write_tombstone(place, &bytes)?;
        if self.tree.is_directory(place.as_str()) {
            self.tree.remove_item(place)?;
        }
        self.store.put(&Record {
            by: By::of(self.actor),
            ..self.record_of_removed(item.names.clone(), &tombstone, bytes)
        })?;
        Ok(())
    }
}
