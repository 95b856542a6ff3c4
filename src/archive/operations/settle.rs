//! Minted items after a crash: directories that have not reached the disk are created again.

use super::{ArchiveError, Editor, Keeper};
use crate::archive::store::{ItemId, Unsettled};
use crate::archive::tree::{Author, Filled, Place};

impl Keeper<'_> {
    /// Records items that arrive together with their sidecars from now on, where no other host has the store open: for a
    /// front end by which programs fill them.
    pub fn hold_arrivals(&self) -> Result<(), ArchiveError> {
        Ok(self.store.hold_arrivals()?)
    }

    /// Syncs all minted items and all idle dirty regions.
    pub(super) fn settle_now(&self) -> Result<(), ArchiveError> {
        self.minted.settle_now()?;
        self.recovery.settle_now()
    }
}

impl Editor<'_> {
    /// After a crash: creates the directories of minted items that have not reached the disk.
    pub(super) fn make_again(&self) -> Result<(), ArchiveError> {
        let unsettled = self.store.unsettled()?;
        if unsettled.is_empty() {
            return Ok(());
        }
        for lost in &unsettled {
            self.make_one_again(lost)?;
        }
        self.tree.sync_all()?;
        let ids: Vec<ItemId> = unsettled.iter().map(|lost| lost.item.id).collect();
        Ok(self.store.settle(&ids)?)
    }

    fn make_one_again(&self, lost: &Unsettled) -> Result<(), ArchiveError> {
        let place = Place::of(&lost.item.names);
        if self.tree.is_directory(place.as_str()) {
            // The sidecar is created before its directory gets its name, but its contents may reach
            // the disk later.
            return match self.tree.read_sidecar(&place) {
                Ok(Some(bytes)) if !bytes.is_empty() => Ok(()),
                Ok(_) => Ok(self
                    .tree
                    .write_sidecar(&place, &lost.sidecar, Author::Same)?),
                // Something else was created at the path.
                Err(_) => Ok(()),
            };
        }
        if self.tree.read_tombstone(&place)?.is_some() {
            // A removal was in progress; the check completes it.
            return Ok(());
        }
        log::info!("{} is made again after a crash", lost.item.names);
        // An item minted for a user was empty, and the user fills it.
        let filled = match lost.owner {
            Some(_) => Filled::Empty,
            None => Filled::WithDoc,
        };
        let staged = self
            .tree
            .stage_item(&place, &lost.sidecar, lost.owner, filled)?;
        Ok(self.tree.place_item(&staged, &place)?)
    }
}
