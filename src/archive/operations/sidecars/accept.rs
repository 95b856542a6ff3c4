//! Accepts a sidecar that a user has written into an item. A sidecar that is rejected stays on disk and has
//! no effect.

use rustix::io::Errno;

use super::super::Actor;
use super::super::recovery_log::ChangeDurability;
use super::records::merged;
use crate::archive::store::{By, Item, ItemId, Record, StoreError};
use crate::archive::tree::{Author, Place};
use crate::archive::{ArchiveError, Editor};
use crate::formats::item::{Names, Sidecar, State};
use ibi::relation::RelationKind;

/// The outcome of a sidecar that was written into an item.
#[derive(Debug)]
pub enum Acceptance {
    /// It was accepted and is in the index.
    Accepted(Box<Item>),
    /// It is equal to the accepted sidecar, byte for byte.
    Unchanged,
    /// It stays on disk and has no effect; fsck reports it.
    Rejected(ArchiveError),
}

impl Editor<'_> {
    /// Accepts the sidecar in an item's directory, with its names, state and relations. An item in
    /// the directory of its IBIp is moved to that of its rep.
    pub fn accept_sidecar(&self, id: ItemId) -> Result<Acceptance, ArchiveError> {
        self.accept_brought(self.actor, id)
    }

    /// Like [`Editor::accept_sidecar`], if this user brings the item and its names, and another is
    /// the author of the sidecar.
    pub fn accept_brought(
        &self,
        writer: &dyn Actor,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        let item = self.known(id)?;
        self.depositor(writer).with_writer(&item.names, |author| {
            let accepted = self.accept_now(author, id)?;
            self.replayed(accepted, id)
        })
    }

    /// Even if a sidecar is unchanged, the index may still differ from the tree after an earlier error.
    fn replayed(&self, accepted: Acceptance, id: ItemId) -> Result<Acceptance, ArchiveError> {
        if matches!(accepted, Acceptance::Unchanged) {
            self.replay_at(&Place::of(&self.known(id)?.names))?;
        }
        Ok(accepted)
    }

    /// Accepts a sidecar that this user has written.
    pub(in crate::archive::operations) fn accept(
        &self,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        let accepted = self.accept_now(self.actor, id)?;
        self.replayed(accepted, id)
    }

    /// Like [`Editor::accept_brought`], for a caller that clears the recovery queue itself.
    pub(in crate::archive::operations) fn accept_now(
        &self,
        author: &dyn Actor,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        let item = self.known(id)?;
        let place = Place::of(&item.names);
        let _region = self.recovery.enter(&place, ChangeDurability::Unsynced)?;
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Acceptance::Unchanged),
            // Something other than a small file was created at the path. It stays there and is not accepted.
            Err(error) if is_no_small_file(error.errno()) => {
                return Ok(Acceptance::Rejected(error.into()));
            }
            Err(error) => return Err(error.into()),
        };
        if self.store.sidecar(id)?.as_deref() == Some(&bytes) {
            // Another user may have written the same.
            self.record_speaker(&item)?;
            return Ok(Acceptance::Unchanged);
        }
        let (mut sidecar, mut bytes) = match self.parse_for(&item.names, &bytes) {
            Ok(sidecar) => (sidecar, bytes),
            Err(error) => {
                if let (ArchiveError::OtherItem { .. }, State::Original) = (&error, item.state) {
                    // Another item's content was copied into an original, which keeps its identity.
                    self.restore(&item)?;
                }
                return Ok(Acceptance::Rejected(error));
            }
        };
        if let Some(error) = self.contradiction(&item, &sidecar)? {
            // A user may have kept an earlier sidecar.
            self.restore(&item)?;
            return Ok(Acceptance::Rejected(error));
        }
        if item.state != State::Original
            && self.facts.claims_original(&sidecar)
            && let Some(given) = self.given(&item.names)?
        {
            // The item was removed, is restored now, and another Archive has claimed it in between.
            sidecar.set_archive_service(&given.other);
            bytes = sidecar.to_bytes();
            self.write_sidecar(&item.names, &bytes, Author::Same)?;
        }
        let mut names = merged(&item.names, sidecar.names());
        if let (None, Some(rep)) = (item.names.rep(), names.rep()) {
            let rep = self.as_spelled_here(rep)?;
            names = Names::new(Some(rep), names.ibip().cloned()).unwrap_or(names);
        }
        if let Some(refusal) = self.refusal(&item, &names, &sidecar)? {
            return Ok(Acceptance::Rejected(refusal));
        }
        self.log_refused_aliases(&item, &sidecar);
        let new_place = Place::of(&names);
        if new_place == place {
            return self.apply_accepted(author, &item, &place, names, &sidecar, bytes);
        }
        let missing = self.tree.missing_levels(new_place.parent());
        let accepted = self
            .make_levels(&new_place)
            .and_then(|()| self.apply_accepted(author, &item, &place, names, &sidecar, bytes));
        if !matches!(accepted, Ok(Acceptance::Accepted(_)))
            && let Err(error) = self.tree.remove_levels(&missing)
        {
            // The caller learns why the item was not placed, not that an empty level stays.
            log::warn!("{error}");
        }
        accepted
    }

    /// Records a sidecar in the index, moves the item to the place of its names, and updates
    /// related items.
    fn apply_accepted(
        &self,
        author: &dyn Actor,
        item: &Item,
        place: &Place,
        names: Names,
        sidecar: &Sidecar,
        bytes: Vec<u8>,
    ) -> Result<Acceptance, ArchiveError> {
        let new_place = Place::of(&names);
        let mut moving = None;
        if new_place != *place {
            moving = Some(
                self.recovery
                    .begin(&new_place, ChangeDurability::Unsynced)?,
            );
            self.tree.move_item(place, &new_place)?;
        }
        let mut before = match item.state {
            State::Original => self.store.relations_of(item.id)?,
            _ => Vec::new(),
        };
        if sidecar.language() != item.language.as_ref() {
            // The language of this translation is known only now.
            before.retain(|(kind, _)| *kind != RelationKind::TranslationOf);
        }
        let record = Record {
            by: By::of(author),
            ..self.record_of(names, sidecar, bytes)
        };
        if item.state == State::Original
            || record.state == State::Original
            || self.has_tombstone(&record.names)?
        {
            // The Archive that holds the original must not lose its sidecar, even if the author did
            // not sync it; nor must it lose the names in a tombstone.
            self.tree.sync_item(&new_place)?;
        }
        let ends = match record.state {
            State::Original => self.by(author).ends_of(&before, &record.relations)?,
            _ => Vec::new(),
        };
        let joint = if ends.is_empty() {
            self.recovery.clear_joint(&new_place)?;
            None
        } else {
            Some(self.recovery.begin_joint(&record.names, &before, &ends)?)
        };
        match self.store.put(&record) {
            Ok(id) => {
                if let Some(moving) = moving {
                    moving.done();
                }
                // From here on the next close finds the sidecar accepted, although the far ends are
                // not written yet.
                let change = self.recovery.begin(&new_place, ChangeDurability::Synced)?;
                let change = change.of_relations(Some(before.clone()));
                let item = self.known(id)?;
                self.remove_tombstones(&item.names)?;
                self.by(author).update_far_ends(&item, &before, |_| true)?;
                if let Some(joint) = joint {
                    self.recovery.end_joint(joint);
                }
                change.done();
                Ok(Acceptance::Accepted(item.into()))
            }
            Err(error @ StoreError::Taken { .. }) => {
                if let Some(joint) = joint {
                    self.recovery.end_joint(joint);
                }
                if let Some(moving) = moving {
                    self.tree.move_item(&new_place, place)?;
                    moving.done();
                }
                Ok(Acceptance::Rejected(error.into()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn is_no_small_file(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INVAL | Errno::LOOP | Errno::FBIG | Errno::NXIO
    )
}
