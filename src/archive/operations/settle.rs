//! Minted items whose directories are not known to be on disk yet.
//!
//! The index is synced at each mint and lists them; a start after a crash makes again what the crash
//! took. They are struck off the list in groups, after a sync that nobody waits for.

use std::sync::Arc;

use super::{Archive, ArchiveError};
use crate::archive::store::{ItemId, Store, Unsettled};
use crate::archive::tree::{Author, Filled, Owner, Place, Tree};

/// How many minted items are synced at once: as many as a start after a crash looks at in an instant.
const GROUP: usize = 1024;

/// So few are cheaper synced one by one than with all that others have written.
const FEW: usize = 16;

/// A minted item whose directory is in place.
pub(super) type Placed = (ItemId, Place);

impl Archive {
    /// Remembers a directory that is in place and must be synced some time.
    pub(super) fn settle_later(&self, id: ItemId, place: Place) {
        let group = {
            let mut placed = self.placed.lock();
            placed.push((id, place));
            match placed.len() {
                GROUP.. => std::mem::take(&mut *placed),
                _ => return,
            }
        };
        let (tree, store) = (Arc::clone(&self.tree), Arc::clone(&self.store));
        let settling = move || {
            if let Err(error) = settle(&tree, &store, &group) {
                log::warn!("cannot sync what was minted: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("settle".to_owned());
        if let Err(error) = thread.spawn(settling) {
            // They stay on the list, and the next start looks at them.
            log::warn!("cannot sync what was minted: {error}");
        }
    }

    /// Syncs all that was minted and is in place.
    pub(super) fn settle_now(&self) -> Result<(), ArchiveError> {
        let group = std::mem::take(&mut *self.placed.lock());
        settle(&self.tree, &self.store, &group)?;
        self.settle_levels_now()
    }

    /// After a crash: makes the directories of minted items again that have not reached the disk.
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
            // The sidecar is in its directory before that has a name, but what it says may reach
            // the disk later.
            return match self.tree.read_sidecar(&place) {
                Ok(Some(bytes)) if !bytes.is_empty() => Ok(()),
                Ok(_) => Ok(self
                    .tree
                    .write_sidecar(&place, &lost.sidecar, Author::Same)?),
                // Somebody has put something else there.
                Err(_) => Ok(()),
            };
        }
        if self.tree.read_tombstone(&place)?.is_some() {
            // It was being removed; the check finishes that.
            return Ok(());
        }
        log::info!("{} is made again after a crash", lost.item.names);
        let owner = lost.maker.map(|(uid, gid, mode)| Owner { uid, gid, mode });
        // What was minted for a user was empty, and is filled by that user.
        let filled = match owner {
            Some(_) => Filled::Empty,
            None => Filled::WithDoc,
        };
        let staged = self.tree.stage_item(&place, &lost.sidecar, owner, filled)?;
        Ok(self.tree.place_item(&staged, &place)?)
    }
}

fn settle(tree: &Tree, store: &Store, group: &[Placed]) -> Result<(), ArchiveError> {
    match group.len() {
        0 => return Ok(()),
        1..=FEW => {
            for (_, place) in group {
                match tree.sync_item(place) {
                    // Removed since, which is synced.
                    Err(error) if error.errno() == rustix::io::Errno::NOENT => {}
                    other => other?,
                }
            }
        }
        _ => tree.sync_all()?,
    }
    let ids: Vec<ItemId> = group.iter().map(|(id, _)| *id).collect();
    Ok(store.settle(&ids)?)
}
