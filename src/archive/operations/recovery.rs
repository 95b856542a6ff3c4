//! Recovery: brings the index into agreement with the tree after a crash or an error.
//!
//! The recovery log lists the dirty regions. A change that was begun and did not end counts as not begun.

use super::identifiers::names_at;
use super::leaves::area_of;
use super::recovery_log::{ChangeDurability, Queued};
use super::sidecars::merged;
use super::{Acceptance, Archive, ArchiveError, Editor, WriteIntent};
use crate::archive::store::{Item, ItemId, LoggedJoint, Record, StoreError};
use crate::archive::tree::{Author, Place};
use crate::formats::item::{Names, Sidecar, State};
use ibi::Ibi;

impl Archive {
    /// Must be called before an item's sidecar is changed, replaced or removed through the mount.
    /// The caller keeps the result until the change has ended.
    pub fn begin_write(&self, id: ItemId) -> Result<WriteIntent, ArchiveError> {
        let place = Place::of(&self.known(id)?.names);
        self.recovery.begin(&place, ChangeDurability::Unsynced)
    }

    /// Replays the queue before a change that does not take `edits`.
    pub(super) fn replay_first(&self) {
        if self.recovery.is_queued()
            && let Err(error) = self.edits()
        {
            log::debug!("what was queued is read later: {error}");
        }
    }
}

impl Editor<'_> {
    /// Reads the queued places again. A place that cannot be read stays in the queue.
    pub(super) fn replay(&self) {
        for queued in self.recovery.take_queue() {
            if let Err(error) = self.read_again(&queued) {
                log::warn!(
                    "{} may not be known as it is: {error}",
                    queued.place.as_str()
                );
                self.recovery.queue(queued);
            }
        }
    }

    /// Reads a queued place again, on behalf of a user, and returns its error.
    pub(super) fn replay_at(&self, place: &Place) -> Result<(), ArchiveError> {
        match self.recovery.queued(place) {
            Some(queued) => self.read_again(&queued),
            None => Ok(()),
        }
    }

    /// The same, while items are changed.
    pub(super) fn recover_marked(&self) -> Result<(), ArchiveError> {
        let is_item = |path: &String| {
            area_of(path).is_some_and(|(area, path)| names_at(area, path).is_some())
        };
        let joint = self.store.joint_changes()?;
        self.complete_joint(&joint)?;
        // Until version 6 of the index, the items of joint changes were logged as regions.
        let (items, levels): (Vec<_>, Vec<_>) =
            self.store.dirty_regions()?.into_iter().partition(is_item);
        self.read_all(&items)?;
        self.store.clear_left_dirty(&items)?;
        for level in levels {
            log::info!("{level} is read again after a crash");
            self.store.inherit_dirty(&level)?;
            self.recovery.inherit(&level);
            self.recover_level(&level)?;
        }
        Ok(())
    }

    /// Completes joint changes that were interrupted: if the first item was written, so are the
    /// others that the user had permission to write. Other declarations of the same items are not
    /// part of the change, and stay.
    fn complete_joint(&self, changes: &[LoggedJoint]) -> Result<(), ArchiveError> {
        for change in changes {
            self.read_all(&change.places)?;
            if let Ok(before) = Sidecar::parse(&change.before)
                && let Some(near) = self.held(before.names())?
            {
                let is_logged = |far: &Names| {
                    let place = Place::of(far);
                    change.places.iter().any(|path| path == place.as_str())
                };
                self.with_author(&near.names, |author| {
                    self.by(author)
                        .update_far_ends(&near, &before.relations(), is_logged)
                })?;
            }
        }
        Ok(self.store.clear_left_joint(changes)?)
    }

    /// Reads the items at these paths again.
    fn read_all(&self, paths: &[String]) -> Result<(), ArchiveError> {
        let places = paths.iter().filter_map(|path| area_of(path));
        for names in places.filter_map(|(area, path)| names_at(area, path)) {
            self.read_again(&Queued::at(Place::of(&names), ChangeDurability::Unsynced))?;
        }
        Ok(())
    }

    fn recover_level(&self, level: &str) -> Result<(), ArchiveError> {
        for path in self.keeper().leaf_paths(level)? {
            let leaf = self.keeper().leaf(&path)?;
            for item in leaf.absent.into_values() {
                self.read_absent(item, ChangeDurability::Unsynced)?;
            }
            for present in leaf.present {
                let queued = Queued::at(Place::of(&present.names), ChangeDurability::Unsynced);
                self.read_present(&present.names, present.item, &queued)?;
            }
        }
        Ok(())
    }

    /// Updates the index from the tree at one place.
    pub(super) fn read_again(&self, queued: &Queued) -> Result<(), ArchiveError> {
        let place = &queued.place;
        let Some(names) = area_of(place.as_str()).and_then(|(area, path)| names_at(area, path))
        else {
            return Ok(());
        };
        let known = self.held(&names)?;
        if self.tree.is_directory(place.as_str()) {
            return self.read_present(&names, known, queued).map(drop);
        }
        match known {
            // An item that was moved is found at its new place, which is read on its own.
            Some(item) if Place::of(&item.names) == *place => {
                self.read_absent(item, queued.durability)
            }
            _ => Ok(()),
        }
    }

    /// An item that is in the tree. A change that did not end counts as not begun: a missing
    /// sidecar is restored, and a tombstone is removed.
    /// Returns the reason if it is refused, or its sidecar has no effect.
    pub(super) fn read_present(
        &self,
        names: &Names,
        known: Option<Item>,
        queued: &Queued,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let place = Place::of(names);
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(bytes) => bytes,
            // Something else was created at the path; it stays, and fsck reports it.
            Err(error) => return Ok(Some(error.into())),
        };
        let mut refusal = None;
        let item = match known {
            Some(item) => item,
            None => {
                if let Err(error) = self.refuse_unminted(names) {
                    log::warn!("{error}");
                    return Ok(Some(error));
                }
                log::info!("{names} is registered as it is in the tree");
                // An item that is being restored, or whose removal did not finish, has the names in
                // its tombstone until its sidecar is accepted.
                let record = self.read_item(names)?.0;
                self.forget_moved(&record.names, &place, queued.durability)?;
                let names = match record {
                    record if record.sidecar.is_none() => record.names,
                    _ => names.clone(),
                };
                let id = self.store.put(&Record::bare(names, State::Copy))?;
                self.known(id)?
            }
        };
        let accepted = self.store.sidecar(item.id)?;
        // After a crash, a file that was not synced is empty, or has its length and contains only zeros.
        let is_zero = |bytes: &Vec<u8>| bytes.iter().all(|byte| *byte == 0);
        let is_lost = bytes.as_ref().is_none_or(is_zero);
        if is_lost && accepted.is_some() {
            // Its new contents were not synced, or a removal was in progress.
            self.restore(&item)?;
        } else if bytes != accepted || accepted.is_none() {
            if is_lost && bytes.is_some() {
                // Its contents are lost.
                self.tree.remove_sidecar(&place)?;
            }
            let acceptance = self.with_author(&item.names, |author| {
                self.by(author).accept_now(author, item.id)
            })?;
            match acceptance {
                Acceptance::Accepted(_) => {}
                Acceptance::Unchanged if accepted.is_none() => {
                    self.accept_place(names, &item, bytes.as_deref())?;
                }
                Acceptance::Unchanged => {}
                Acceptance::Rejected(error) => {
                    log::warn!("{error}");
                    refusal = Some(error);
                    // The sidecar that was accepted last remains valid.
                    if accepted.is_none() {
                        self.accept_place(names, &item, bytes.as_deref())?;
                    }
                }
            }
        } else {
            self.record_speaker(&item)?;
        }
        if let Some(before) = &queued.before {
            // The change may have been written at one end only.
            let item = self.known(item.id)?;
            self.with_author(&item.names, |author| {
                self.by(author).update_far_ends(&item, before, |_| true)
            })?;
        }
        if accepted.is_some() {
            // It was written for a removal that did not finish. The tombstone of an item that is
            // being restored keeps its names until there is a sidecar.
            self.remove_tombstones(&self.known(item.id)?.names)?;
        }
        Ok(refusal)
    }

    /// Forgets the item in the directory of the IBIp, if the item with these names has left it: it
    /// was moved to `place`, and the index was not written.
    fn forget_moved(
        &self,
        names: &Names,
        place: &Place,
        durability: ChangeDurability,
    ) -> Result<(), ArchiveError> {
        let Some(ibip) = names.ibip() else {
            return Ok(());
        };
        let Some(moved) = self.held(&Names::from(Ibi::Ibip(ibip.clone())))? else {
            return Ok(());
        };
        let left = Place::of(&moved.names);
        if moved.names.rep().is_some() || left == *place || self.tree.is_directory(left.as_str()) {
            return Ok(());
        }
        self.read_absent(moved, durability)
    }

    /// An item for which no sidecar was ever accepted is known by its place alone. A name that only
    /// the index has is written to a sidecar.
    fn accept_place(
        &self,
        names: &Names,
        item: &Item,
        sidecar: Option<&[u8]>,
    ) -> Result<(), ArchiveError> {
        let record = self.read_admitted(names, item)?;
        if record.names == item.names || sidecar.is_some_and(|bytes| !bytes.is_empty()) {
            return match self.store.put(&record) {
                // Another item has a name that only the sidecar gives it.
                Err(StoreError::Taken { .. }) => {
                    let bare = Record::bare(names.clone(), State::Copy);
                    Ok(self.store.put(&bare).map(drop)?)
                }
                other => Ok(other.map(drop)?),
            };
        }
        let sidecar = Sidecar::new(&item.names);
        let bytes = sidecar.to_bytes();
        self.write_sidecar(&item.names, &bytes, Author::Unknown)?;
        let record = self.record_of(item.names.clone(), &sidecar, bytes);
        self.store.put(&record)?;
        Ok(())
    }

    /// An item of the index that is not in the tree.
    fn read_absent(&self, item: Item, durability: ChangeDurability) -> Result<(), ArchiveError> {
        if let Some(bytes) = self.tree.read_tombstone(&Place::of(&item.names))? {
            if let Ok(tombstone) = Sidecar::parse(&bytes) {
                // The index may have known one of its names only.
                let names = merged(&item.names, tombstone.names());
                let record = self.record_of_removed(names, &tombstone, bytes);
                self.store.put(&record)?;
            }
            return Ok(());
        }
        // Another host may have got the name meanwhile.
        let is_not_placed = durability == ChangeDurability::NotPlaced
            && (!self.is_shared() || self.store.has_own_mark(item.id)?);
        if item.state == State::Copy || is_not_placed {
            // It was being copied in and had not been synced, or it was never placed.
            log::info!("{} is not in the tree and is forgotten", item.names);
            self.store.forget(item.id)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
