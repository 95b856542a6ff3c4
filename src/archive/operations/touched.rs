//! Where the tree and the index may differ after a crash.
//!
//! The tree is written first and the index after it, and what whoever copies has not synced may reach
//! the disk in any order, or not at all. So before anything changes that both tell, its level (a year
//! of reps, a prefix of IBIps) is marked in the index: durably, and once, however much changes there
//! afterwards. A start that finds marks looks at these levels, and no others, and has the index say
//! what the tree says. A regular end syncs and takes the marks away.
//!
//! An error may leave the two apart as well, while all goes on: a change that was not brought to its
//! end is remembered by its place, which is read again before the next change.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::names_at;
use super::sidecars::merged;
use super::{Archive, ArchiveError, Belief};
use crate::archive::store::{Item, ItemId, Record, Store};
use crate::archive::tree::{Area, Author, Place, Tree};
use crate::formats::item::{Names, Sidecar, State};

/// With so many levels marked, those that nobody is changing are synced: a start after a crash should
/// not have to look at much more.
const MANY: usize = 64;

/// The marked levels.
pub(super) type Levels = Arc<Mutex<BTreeMap<String, Mark>>>;

/// What is known of a marked level.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// How many are changing something there.
    users: usize,
    /// Whether something was changed there that nobody has synced.
    is_loose: bool,
    /// Whether it is being synced and has not been touched since that began.
    is_settling: bool,
}

/// Whether what changes is on disk when the change is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// It is: the Archive syncs it.
    Synced,
    /// It is when whoever changes it has synced it.
    Loose,
    /// It was minted in the index and did not appear in the tree.
    Unmade,
}

/// A level is being changed; dropped when the change is over.
#[derive(Debug)]
pub(super) struct Touch {
    levels: Levels,
    level: String,
}

/// The places of changes that were not brought to their end.
pub(super) type Behind = Arc<Mutex<Vec<(Place, Care)>>>;

/// A change of an item that is under way. Dropped before it is done, its place is read again.
#[derive(Debug)]
pub struct Changing {
    place: Place,
    care: Care,
    is_done: bool,
    behind: Behind,
    _touch: Touch,
}

impl Changing {
    /// The index says what the tree says.
    pub fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        if !self.is_done {
            self.behind.lock().push((self.place.clone(), self.care));
        }
    }
}

impl Drop for Touch {
    fn drop(&mut self) {
        if let Some(mark) = self.levels.lock().get_mut(&self.level) {
            mark.users = mark.users.saturating_sub(1);
        }
    }
}

impl Archive {
    /// To be called, and kept, before the tree changes at a place in a way that the index must know.
    pub(super) fn touch(&self, place: &Place, care: Care) -> Result<Touch, ArchiveError> {
        let level = place.parent().to_owned();
        let note = |mark: &mut Mark| {
            mark.users += 1;
            mark.is_loose |= care == Care::Loose;
            mark.is_settling = false;
        };
        let is_marked = match self.levels.lock().get_mut(&level) {
            Some(mark) => {
                note(mark);
                true
            }
            None => false,
        };
        if !is_marked {
            // A removal begins with this, and must not fail for want of room.
            self.even_if_full(|| Ok(self.store.touch(&[&level], &[])?))?;
            let count = {
                let mut levels = self.levels.lock();
                note(levels.entry(level.clone()).or_default());
                levels.len()
            };
            if count.is_multiple_of(MANY) {
                self.settle_idle_levels();
            }
        }
        Ok(Touch {
            levels: Arc::clone(&self.levels),
            level,
        })
    }

    /// Before somebody changes, replaces or removes an item's sidecar through the mount.
    pub fn changing(&self, id: ItemId) -> Result<Changing, ArchiveError> {
        self.changing_at(&Place::of(&self.known(id)?.names), Care::Loose)
    }

    pub(super) fn changing_at(&self, place: &Place, care: Care) -> Result<Changing, ArchiveError> {
        Ok(Changing {
            _touch: self.touch(place, care)?,
            place: place.clone(),
            care,
            is_done: false,
            behind: Arc::clone(&self.behind),
        })
    }

    /// Has an item that could not be placed be forgotten before the next change.
    pub(super) fn read_later(&self, place: Place) {
        self.behind.lock().push((place, Care::Unmade));
    }

    /// Marks items that are about to say something of each other, durably: a start after a crash that
    /// finds one of them saying it has the others say it as well.
    pub(super) fn mark_ends(&self, places: &[Place]) -> Result<(), ArchiveError> {
        if places.is_empty() {
            return Ok(());
        }
        let paths: Vec<&str> = places.iter().map(Place::as_str).collect();
        let mut ends = self.ends.lock();
        self.store.touch(&paths, &ends)?;
        ends.clear();
        Ok(())
    }

    /// All of them say it, or none: the mark goes with the next one, or at a regular end.
    pub(super) fn unmark_ends(&self, places: &[Place]) {
        let paths = places.iter().map(|place| place.as_str().to_owned());
        self.ends.lock().extend(paths);
    }

    /// Before an item comes to say something by itself: an earlier mark, of what is over, would have a
    /// start after a crash write that again.
    pub(super) fn leave_ends(&self, place: &Place) -> Result<(), ArchiveError> {
        let mut ends = self.ends.lock();
        if ends.iter().any(|end| end == place.as_str()) {
            self.store.touch(&[], &ends)?;
            ends.clear();
        }
        Ok(())
    }

    /// For a change that takes no `edits`.
    pub(super) fn catch_up_first(&self) {
        if !self.behind.lock().is_empty() {
            drop(self.edits());
        }
    }

    /// Reads again what an error has left behind; the caller holds `edits`. What cannot be read stays.
    pub(super) fn catch_up(&self) {
        let behind = std::mem::take(&mut *self.behind.lock());
        for (place, care) in behind {
            if let Err(error) = self.read_again(&place, care) {
                log::warn!("{} may not be known as it is: {error}", place.as_str());
                self.behind.lock().push((place, care));
            }
        }
    }

    /// What an error has left behind of one place, and could not be read until now, fails for whoever
    /// asks; the caller holds `edits`.
    pub(super) fn still_behind(&self, place: &Place) -> Result<(), ArchiveError> {
        let behind = self.behind.lock();
        let care = behind
            .iter()
            .find(|(of, _)| of == place)
            .map(|(_, care)| *care);
        drop(behind);
        care.map_or(Ok(()), |care| self.read_again(place, care))
    }

    /// Syncs the levels that nobody is changing, in a thread that nobody waits for.
    fn settle_idle_levels(&self) {
        let (tree, store) = (Arc::clone(&self.tree), Arc::clone(&self.store));
        let levels = Arc::clone(&self.levels);
        let settling = move || {
            if let Err(error) = settle_levels(&tree, &store, &levels) {
                log::warn!("cannot sync what was changed: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("settle".to_owned());
        if let Err(error) = thread.spawn(settling) {
            // They stay marked, and the next start looks at them.
            log::warn!("cannot sync what was changed: {error}");
        }
    }

    /// Syncs the levels that nobody is changing, if all is known.
    pub(super) fn settle_levels_now(&self) -> Result<(), ArchiveError> {
        if !self.behind.lock().is_empty() {
            // The next start reads again what could not be read.
            return Ok(());
        }
        let ends = std::mem::take(&mut *self.ends.lock());
        self.store.untouch(&ends)?;
        settle_levels(&self.tree, &self.store, &self.levels)
    }

    /// After a crash: has the index say what the tree says where they may differ. The levels stay
    /// marked, since what was found there need not be on disk after a mere kill.
    pub(super) fn mend_levels(&self) -> Result<(), ArchiveError> {
        let _edits = self.edits();
        let is_item = |path: &String| {
            area_of(path).is_some_and(|(area, path)| names_at(area, path).is_some())
        };
        let (items, levels): (Vec<_>, Vec<_>) =
            self.store.touched()?.into_iter().partition(is_item);
        let ends: Vec<Names> = items
            .iter()
            .filter_map(|item| area_of(item).and_then(|(area, path)| names_at(area, path)))
            .collect();
        for names in &ends {
            self.read_again(&Place::of(names), Care::Loose)?;
        }
        self.tell_each_other(&ends)?;
        self.store.untouch(&items)?;
        for level in levels {
            log::info!("{level} is looked at after a crash");
            let mark = Mark {
                is_loose: true,
                ..Mark::default()
            };
            self.levels.lock().insert(level.clone(), mark);
            self.mend_level(&level)?;
        }
        Ok(())
    }

    /// What some of these items say of others of them, the others say as well.
    fn tell_each_other(&self, ends: &[Names]) -> Result<(), ArchiveError> {
        let is_meant = |far: &Names| ends.iter().any(|end| end.matches(far));
        for names in ends {
            if let Some(near) = self.held(names)? {
                self.with_author(&near.names, |author| {
                    self.tell_again(author, &near, is_meant)
                })?;
            }
        }
        Ok(())
    }

    fn mend_level(&self, level: &str) -> Result<(), ArchiveError> {
        if let Some((area, path)) = area_of(level) {
            let known = match area {
                Area::Col => self.store.items_below(path)?,
                Area::Ibip => self.store.items_of_prefix(path)?,
            };
            let known = known.into_iter();
            let mut known: BTreeMap<Place, Item> =
                known.map(|item| (Place::of(&item.names), item)).collect();
            let names = if self.tree.is_directory(level) {
                self.tree.directories_in(level)?
            } else {
                Vec::new()
            };
            for name in names {
                if let Some(names) = names_at(area, &format!("{path}/{name}")) {
                    let item = known.remove(&Place::of(&names));
                    self.read_present(&names, item, Care::Loose)?;
                }
            }
            for item in known.into_values() {
                self.read_absent(item, Care::Loose)?;
            }
        }
        Ok(())
    }

    /// Has the index say of a place what the tree says; the caller holds `edits`.
    fn read_again(&self, place: &Place, care: Care) -> Result<(), ArchiveError> {
        let Some(names) = area_of(place.as_str()).and_then(|(area, path)| names_at(area, path))
        else {
            return Ok(());
        };
        let known = self.held(&names)?;
        if self.tree.is_directory(place.as_str()) {
            return self.read_present(&names, known, care);
        }
        match known {
            Some(item) => self.read_absent(item, care),
            None => Ok(()),
        }
    }

    /// An item that is in the tree. What was begun and did not come to its end counts as not begun: a
    /// sidecar that is gone comes back, a tombstone goes.
    fn read_present(
        &self,
        names: &Names,
        known: Option<Item>,
        care: Care,
    ) -> Result<(), ArchiveError> {
        let place = Place::of(names);
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(bytes) => bytes,
            // Somebody has put something else there; it stays for fsck to name.
            Err(_) => return Ok(()),
        };
        let item = match known {
            Some(item) => item,
            None => {
                log::info!("{names} is registered after a crash");
                // An item that is coming back, or was not removed for good, has the names that its
                // tombstone tells until its sidecar is believed.
                let names = match self.read_item(names)?.0 {
                    record if record.sidecar.is_none() => record.names,
                    _ => names.clone(),
                };
                let id = self.store.put(&Record::bare(names, State::Copy))?;
                self.known(id)?
            }
        };
        let believed = self.store.sidecar(item.id)?;
        // A file that was not synced comes back empty, or with its length and nothing but zeros.
        let is_zero = |bytes: &Vec<u8>| bytes.iter().all(|byte| *byte == 0);
        let says_nothing = bytes.as_ref().is_none_or(is_zero);
        if says_nothing && believed.is_some() {
            // What it said was not synced, or somebody was removing it.
            self.restore(&item)?;
        } else if bytes != believed || believed.is_none() {
            if says_nothing && bytes.is_some() {
                // Nobody knows what it was to say.
                self.tree.remove_sidecar(&place)?;
            }
            let believed_now =
                self.with_author(&item.names, |author| self.accept(author, item.id))?;
            match believed_now {
                Belief::Believed(_) => {}
                Belief::Unchanged | Belief::NotBelieved(_) if believed.is_none() => {
                    self.believe_place(names, &item, bytes.as_deref())?;
                }
                // What was believed last counts, as it did before.
                Belief::NotBelieved(error) => log::warn!("{error}"),
                Belief::Unchanged => {}
            }
        }
        if care != Care::Loose {
            // A relation may have been written at one end.
            let item = self.known(item.id)?;
            self.with_author(&item.names, |author| {
                self.tell_again(author, &item, |_| true)
            })?;
        }
        if believed.is_some() {
            // It was written for a removal that did not come. One of an item that is coming back
            // tells its names until there is a sidecar.
            self.remove_tombstones(&self.known(item.id)?.names)?;
        }
        Ok(())
    }

    /// An item of which no sidecar was ever believed is what its place says. A name that the index
    /// alone has kept is written down.
    fn believe_place(
        &self,
        names: &Names,
        item: &Item,
        sidecar: Option<&[u8]>,
    ) -> Result<(), ArchiveError> {
        let record = self.read_admitted(names, item)?;
        if record.names == item.names || sidecar.is_some_and(|bytes| !bytes.is_empty()) {
            self.store.put(&record)?;
            return Ok(());
        }
        let sidecar = Sidecar::new(&item.names);
        let bytes = sidecar.to_bytes();
        self.write_sidecar(&item.names, &bytes, Author::Unknown)?;
        let record = self.record_of(item.names.clone(), &sidecar, bytes);
        self.store.put(&record)?;
        Ok(())
    }

    /// An item of the index that is not in the tree.
    fn read_absent(&self, item: Item, care: Care) -> Result<(), ArchiveError> {
        if let Some(bytes) = self.tree.read_tombstone(&Place::of(&item.names))? {
            if let Ok(tombstone) = Sidecar::parse(&bytes) {
                // The index may have known one of its names only.
                let names = merged(&item.names, tombstone.names());
                let record = self.record_of_removed(names, &tombstone, bytes);
                self.store.put(&record)?;
            }
            return Ok(());
        }
        if item.state == State::Copy || care == Care::Unmade {
            // It was being copied in, and whoever did so had not synced it; or it was never placed.
            log::info!("{} is not in the tree and is forgotten", item.names);
            self.store.forget(item.id)?;
        }
        Ok(())
    }
}

/// The area of a path below the store, and the rest of it.
fn area_of(path: &str) -> Option<(Area, &str)> {
    [Area::Col, Area::Ibip].into_iter().find_map(|area| {
        let below = path.strip_prefix(area.name())?.strip_prefix('/')?;
        Some((area, below))
    })
}

fn settle_levels(tree: &Tree, store: &Store, levels: &Levels) -> Result<(), ArchiveError> {
    let mut is_loose = false;
    for mark in levels.lock().values_mut().filter(|mark| mark.users == 0) {
        mark.is_settling = true;
        is_loose |= mark.is_loose;
    }
    if is_loose {
        tree.sync_all()?;
    }
    let mut levels = levels.lock();
    let settled: Vec<String> = levels
        .iter()
        .filter(|(_, mark)| mark.is_settling)
        .map(|(level, _)| level.clone())
        .collect();
    if settled.is_empty() {
        return Ok(());
    }
    store.untouch(&settled)?;
    levels.retain(|_, mark| !mark.is_settling);
    Ok(())
}

#[cfg(test)]
mod tests;
