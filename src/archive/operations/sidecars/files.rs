//! Sidecars and tombstones on disk: written, and restored from the index.

use super::super::full_disk::with_reserve;
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::{Author, Place};
use crate::archive::{Archive, ArchiveError, Editor};
use crate::formats::item::{Names, Sidecar, State};
use ibi::Timestamp;

impl Archive {
    /// The items whose sidecars the Archive has written since the last call. A front end
    /// invalidates its caches of their directories.
    pub fn take_rewritten(&self) -> Vec<Names> {
        self.rewritten.take()
    }

    /// The last accepted sidecar, or a new one that contains only the names.
    pub(in crate::archive::operations) fn accepted_sidecar(
        &self,
        item: &Item,
    ) -> Result<Sidecar, ArchiveError> {
        match self.store.sidecar(item.id)? {
            Some(bytes) => Sidecar::parse(&bytes).map_err(|cause| ArchiveError::Sidecar {
                names: item.names.clone().into(),
                cause: cause.into(),
            }),
            None => Ok(Sidecar::new(&item.names)),
        }
    }

    pub(in crate::archive::operations) fn has_tombstone(
        &self,
        names: &Names,
    ) -> Result<bool, ArchiveError> {
        for place in Place::all_of(names) {
            if self.tree.read_tombstone(&place)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Editor<'_> {
    /// The tombstone of an item: its last sidecar, with the state Deleted and the present time.
    pub(in crate::archive::operations) fn tombstone_of(
        &self,
        item: &Item,
    ) -> Result<Sidecar, ArchiveError> {
        Ok(self.tombstone_after(self.accepted_sidecar(item)?))
    }

    /// A tombstone with the contents of a sidecar, the state Deleted and the present time.
    pub(in crate::archive::operations) fn tombstone_after(&self, last: Sidecar) -> Sidecar {
        let mut tombstone = last;
        tombstone.set_state(State::Deleted);
        tombstone.set_timestamp(&Timestamp::from_unix(self.clock.now().seconds(), 0));
        tombstone
    }

    pub(in crate::archive::operations) fn write_sidecar(
        &self,
        names: &Names,
        bytes: &[u8],
        author: Author,
    ) -> Result<(), ArchiveError> {
        self.tree.write_sidecar(&Place::of(names), bytes, author)?;
        self.rewritten.add(names.clone());
        Ok(())
    }

    /// Restores the last accepted sidecar of an item. Does nothing if a sidecar is there or none
    /// was accepted.
    pub fn restore_sidecar(&self, id: ItemId) -> Result<(), ArchiveError> {
        let item = self.known(id)?;
        if self.tree.read_sidecar(&Place::of(&item.names))?.is_some() {
            return Ok(());
        }
        self.restore(&item)
    }

    pub(in crate::archive::operations) fn restore(&self, item: &Item) -> Result<(), ArchiveError> {
        match self.store.sidecar(item.id)? {
            Some(bytes) => with_reserve(&self.tree, || {
                let author = self.author_of_lost(item)?;
                self.write_sidecar(&item.names, &bytes, author)?;
                self.record_speaker(item)
            }),
            None => Ok(()),
        }
    }

    /// Removes the tombstones of a present item, under all of its names.
    pub(in crate::archive::operations) fn remove_tombstones(
        &self,
        names: &Names,
    ) -> Result<(), ArchiveError> {
        for place in Place::all_of(names) {
            self.tree.remove_tombstone(&place)?;
        }
        Ok(())
    }
}
