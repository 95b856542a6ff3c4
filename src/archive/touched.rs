//! Where the tree and the index may differ after a crash.
//!
//! The tree is written first and the index after it, and what whoever copies has not synced may reach
//! the disk in any order, or not at all. So before anything changes that both tell, its level (a year
//! of reps, a prefix of IBIps) is marked in the index: durably, and once, however much changes there
//! afterwards. A start that finds marks looks at these levels, and no others, and has the index say
//! what the tree says. A regular end syncs and takes the marks away.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::check::names_at;
use super::{Archive, ArchiveError, Belief};
use crate::item::{Names, State};
use crate::locks::locked;
use crate::store::{Item, ItemId, Record, Store};
use crate::tree::{Area, Place, Tree};

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
}

/// A level is being changed; dropped when the change is over.
#[derive(Debug)]
pub(super) struct Touch {
    levels: Levels,
    level: String,
}

impl Drop for Touch {
    fn drop(&mut self) {
        if let Some(mark) = locked(&self.levels).get_mut(&self.level) {
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
        let is_marked = match locked(&self.levels).get_mut(&level) {
            Some(mark) => {
                note(mark);
                true
            }
            None => false,
        };
        if !is_marked {
            self.store.touch(&level)?;
            let count = {
                let mut levels = locked(&self.levels);
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
    pub fn sidecar_changes(&self, id: ItemId) -> Result<(), ArchiveError> {
        if let Some(item) = self.store.item(id)? {
            drop(self.touch(&Place::of(&item.names), Care::Loose)?);
        }
        Ok(())
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

    /// Syncs the levels that nobody is changing.
    pub(super) fn settle_levels_now(&self) -> Result<(), ArchiveError> {
        settle_levels(&self.tree, &self.store, &self.levels)
    }

    /// After a crash: has the index say what the tree says where they may differ. The levels stay
    /// marked, since what was found there need not be on disk after a mere kill.
    pub(super) fn mend_levels(&self) -> Result<(), ArchiveError> {
        for level in self.store.touched()? {
            log::info!("{level} is looked at after a crash");
            let mark = Mark {
                is_loose: true,
                ..Mark::default()
            };
            locked(&self.levels).insert(level.clone(), mark);
            self.mend_level(&level)?;
        }
        Ok(())
    }

    fn mend_level(&self, level: &str) -> Result<(), ArchiveError> {
        let areas = [Area::Col, Area::Ibip].into_iter();
        let found = areas.filter_map(|area| {
            let path = level.strip_prefix(area.name())?.strip_prefix('/')?;
            Some((area, path))
        });
        for (area, path) in found {
            let known = match area {
                Area::Col => self.store.items_below(path)?,
                Area::Ibip => self.store.items_of_prefix(path)?,
            };
            let known = known.into_iter();
            let mut known: BTreeMap<Place, Item> =
                known.map(|item| (Place::of(&item.names), item)).collect();
            let names = match self.tree.is_directory(level) {
                true => self.tree.directories_in(level)?,
                false => Vec::new(),
            };
            for name in names {
                if let Some(names) = names_at(area, &format!("{path}/{name}")) {
                    let item = known.remove(&Place::of(&names));
                    self.mend_item(&names, item)?;
                }
            }
            for item in known.into_values() {
                self.mend_absent(item)?;
            }
        }
        Ok(())
    }

    /// An item that is in the tree.
    fn mend_item(&self, names: &Names, known: Option<Item>) -> Result<(), ArchiveError> {
        let place = Place::of(names);
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(bytes) => bytes.unwrap_or_default(),
            // Somebody has put something else there; it stays for fsck to name.
            Err(_) => return Ok(()),
        };
        let believed = match &known {
            Some(item) => self.store.sidecar(item.id)?,
            None => None,
        };
        if believed.as_ref() == Some(&bytes) {
            // Nothing has changed, unless it was being removed.
            return Ok(self.tree.remove_tombstone(&place)?);
        }
        if bytes.is_empty() {
            match (&known, believed) {
                // What it said was not synced, or somebody was removing it.
                (Some(item), Some(_)) => return self.restore(item),
                // An empty file says nothing, and nobody knows what it was to say.
                _ => self.tree.remove_sidecar(&place)?,
            }
        }
        let id = match known {
            Some(item) => item.id,
            None => {
                log::info!("{names} is registered after a crash");
                self.store.put(&Record::bare(names.clone(), State::Copy))?
            }
        };
        match self.accept_sidecar(id)? {
            Belief::Believed(_) => {}
            Belief::Unchanged | Belief::NotBelieved(_) => {
                let (record, _) = self.read_item(names)?;
                self.store.put(&record)?;
            }
        }
        Ok(())
    }

    /// An item of the index that is not in the tree.
    fn mend_absent(&self, item: Item) -> Result<(), ArchiveError> {
        let place = Place::of(&item.names);
        if let Some(bytes) = self.tree.read_tombstone(&place)? {
            if let Ok(tombstone) = crate::item::Sidecar::parse(&bytes) {
                let record = self.record_of_removed(item.names, &tombstone, bytes);
                self.store.put(&record)?;
            }
            return Ok(());
        }
        if item.state == State::Copy {
            // It was being copied in, and whoever did so had not synced it.
            log::info!("{} has not reached the disk and is forgotten", item.names);
            self.store.forget(item.id)?;
        }
        Ok(())
    }
}

fn settle_levels(tree: &Tree, store: &Store, levels: &Levels) -> Result<(), ArchiveError> {
    let mut is_loose = false;
    for mark in locked(levels).values_mut().filter(|mark| mark.users == 0) {
        mark.is_settling = true;
        is_loose |= mark.is_loose;
    }
    if is_loose {
        tree.sync_all()?;
    }
    let mut levels = locked(levels);
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
