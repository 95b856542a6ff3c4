//! A pass over the whole store, or over some items.

use super::finding::{ScrubCode, ScrubError, ScrubTally};
use super::marks::{change_marks, mark};
use super::records::DIRECTORY;
use super::state::Scrub;
use crate::archive::tree::{Area, Place};
use crate::formats::fixity::Found;
use crate::os::writing::Durability;

impl Scrub<'_> {
    /// The last item of an interrupted pass, after which this one continues.
    pub fn goes_on_after(&self) -> Option<&str> {
        if self.options.restart {
            None
        } else {
            self.position.as_ref()?.last()
        }
    }

    /// Scrubs the whole store, or the rest of an interrupted pass.
    pub fn all(mut self) -> Result<ScrubTally, ScrubError> {
        let after = self.goes_on_after().map(str::to_owned);
        let is_done = |item: &str| {
            let after = after.as_deref();
            after.is_some_and(|after| item.split('/').le(after.split('/')))
        };
        let tree = self.tree;
        tree.each_item::<ScrubError>(|area, path| {
            let item = format!("{}/{path}", area.name());
            self.reader.items += 1;
            if is_done(&item) || !self.is_meant(&item) {
                return Ok(());
            }
            self.item(&item)?;
            self.mark(&item)
        })?;
        for area in [Area::Col, Area::Ibip] {
            let root = format!("{DIRECTORY}/{}", area.name());
            tree.each_directory_at::<ScrubError>(&root, area.depth(), |path| {
                let item = format!("{}/{path}", area.name());
                if self.is_meant(&item) {
                    self.find_lost(&item)
                } else {
                    Ok(())
                }
            })?;
        }
        self.end_formats()?;
        if self.unsynced {
            tree.sync_all()?;
        }
        if let Some(position) = &mut self.position {
            position.finish(tree)?;
        }
        Ok(self.tally)
    }

    /// Scrubs some items, by their places. The position of a whole pass does not change.
    pub fn some(mut self, places: &[Place]) -> Result<ScrubTally, ScrubError> {
        for place in places {
            self.reader.items += 1;
            if self.tree.is_directory(place.as_str()) {
                self.item(place.as_str())?;
            } else {
                self.find_lost(place.as_str())?;
            }
        }
        self.end_formats()?;
        if self.unsynced {
            self.tree.sync_all()?;
        }
        Ok(self.tally)
    }

    /// Whether an item is in the part that is scrubbed.
    fn is_meant(&self, item: &str) -> bool {
        self.options.part.is_none_or(|part| part.has(item))
    }

    fn mark(&mut self, item: &str) -> Result<(), ScrubError> {
        let Some(position) = &mut self.position else {
            return Ok(());
        };
        if position.is_sync_due() {
            // The records on disk must reach at least as far as the synced position.
            if std::mem::take(&mut self.unsynced) {
                self.tree.sync_all()?;
            }
            return position.mark(self.tree, item, Durability::Synced);
        }
        position.mark(self.tree, item, Durability::Unsynced)
    }

    /// Reports a recorded item whose directory is missing. A removed item has a tombstone, and its record is
    /// kept for its return.
    fn find_lost(&mut self, item: &str) -> Result<(), ScrubError> {
        let is_removed = self.tree.read_small(&format!("deleted/{item}"))?.is_some();
        let old = self.recorded(item)?;
        if self.tree.is_directory(item) {
            return Ok(());
        }
        let is_lost = old.exists && !is_removed;
        if is_lost {
            self.found(ScrubCode::Lost, item, b"", None)?;
        }
        if self.options.dry_run {
            return Ok(());
        }
        let is_left = is_lost && !self.options.accept;
        change_marks(self.tree, item, |marks| {
            marks.retain(|_, _| is_left);
            for (path, recorded) in old.manifest.iter().filter(|_| is_left) {
                mark(marks, path, *recorded, Found::Nothing);
            }
        })?;
        if is_lost && self.options.accept {
            self.forget(item)
        } else {
            Ok(())
        }
    }
}
