//! The recovery log: where the tree and the index may differ after a crash or an error.
//!
//! The tree is written first and the index after it, and what a program copies in and has not synced may
//! reach the disk in any order, or not at all. So before a change, its level (a year of reps, a prefix of
//! IBIps) is logged in the index as a dirty region: durably, and once, however much changes there
//! afterwards. A start that finds dirty regions reads these levels, and no others, from the tree. A
//! regular end syncs and clears them.
//!
//! An error may leave tree and index apart while the Archive runs on. A change that does not end is queued
//! by its place, which is read again before the next change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ArchiveError;
use super::full_disk::with_reserve;
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::store::Store;
use crate::archive::tree::{Place, Tree};

/// With so many dirty regions, those that are idle are synced: a start after a crash should not have to
/// read much more.
pub(super) const MANY: usize = 64;

/// The dirty regions, by the path of their level.
type Regions = Arc<RankedMutex<BTreeMap<String, Region>>>;

/// The places to be read again, each with what is known of its last change.
type Queue = Arc<RankedMutex<Vec<(Place, Durability)>>>;

/// What is known of a dirty region.
#[derive(Debug, Default)]
struct Region {
    /// How many changes are under way there.
    users: usize,
    /// Whether something was changed there that the Archive has not synced.
    is_unsynced: bool,
    /// Whether it is being synced and has not been changed since that began.
    is_settling: bool,
}

/// Whether what changes is on disk when the change is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// It is: the Archive syncs it.
    Synced,
    /// It is when the program that changes it has synced it.
    Unsynced,
    /// It was minted in the index and did not appear in the tree.
    NotPlaced,
}

/// A change in a dirty region; dropped when the change is over.
#[derive(Debug)]
pub(super) struct DirtyRegion {
    regions: Regions,
    level: String,
}

impl Drop for DirtyRegion {
    fn drop(&mut self) {
        if let Some(region) = self.regions.lock().get_mut(&self.level) {
            region.users = region.users.saturating_sub(1);
        }
    }
}

/// A change of an item that is under way. If it is dropped before it is done, the item's place is read
/// again before the next change.
#[derive(Debug)]
pub struct WriteIntent {
    place: Place,
    durability: Durability,
    is_done: bool,
    queue: Queue,
    _region: DirtyRegion,
}

impl WriteIntent {
    /// The index says what the tree says.
    pub fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for WriteIntent {
    fn drop(&mut self) {
        if !self.is_done {
            let place = self.place.clone();
            self.queue.lock().push((place, self.durability));
        }
    }
}

/// The recovery log of an open Archive.
#[derive(Debug)]
pub(super) struct RecoveryLog {
    tree: Arc<Tree>,
    store: Arc<Store>,
    regions: Regions,
    queue: Queue,
    /// The items of joint changes that are over, which are still in the index's log.
    ended: RankedMutex<Vec<String>>,
}

impl RecoveryLog {
    pub(super) fn new(tree: Arc<Tree>, store: Arc<Store>) -> RecoveryLog {
        RecoveryLog {
            tree,
            store,
            regions: Arc::new(RankedMutex::new(Rank::DirtyRegions, BTreeMap::new())),
            queue: Arc::new(RankedMutex::new(Rank::Leaf, Vec::new())),
            ended: RankedMutex::new(Rank::JointChanges, Vec::new()),
        }
    }

    /// Logs the level of a place, before the tree changes there in a way that the index must know. The
    /// result is kept until the change is over.
    pub(super) fn enter(
        &self,
        place: &Place,
        durability: Durability,
    ) -> Result<DirtyRegion, ArchiveError> {
        let level = place.parent().to_owned();
        let note = |region: &mut Region| {
            region.users += 1;
            region.is_unsynced |= durability == Durability::Unsynced;
            region.is_settling = false;
        };
        let is_logged = match self.regions.lock().get_mut(&level) {
            Some(region) => {
                note(region);
                true
            }
            None => false,
        };
        if !is_logged {
            // A removal begins with this, and must not fail for want of room.
            with_reserve(&self.tree, || Ok(self.store.log_dirty(&[&level], &[])?))?;
            let count = {
                let mut regions = self.regions.lock();
                note(regions.entry(level.clone()).or_default());
                regions.len()
            };
            if count.is_multiple_of(MANY) {
                self.settle_idle();
            }
        }
        Ok(DirtyRegion {
            regions: Arc::clone(&self.regions),
            level,
        })
    }

    /// Begins a change of the item at a place.
    pub(super) fn begin(
        &self,
        place: &Place,
        durability: Durability,
    ) -> Result<WriteIntent, ArchiveError> {
        Ok(WriteIntent {
            _region: self.enter(place, durability)?,
            place: place.clone(),
            durability,
            is_done: false,
            queue: Arc::clone(&self.queue),
        })
    }

    /// A level that an earlier process has left dirty; it stays so, since what is found there need not
    /// be on disk after a mere kill.
    pub(super) fn inherit(&self, level: &str) {
        let region = Region {
            is_unsynced: true,
            ..Region::default()
        };
        self.regions.lock().insert(level.to_owned(), region);
    }

    /// Has a place read again before the next change.
    pub(super) fn queue(&self, place: Place, durability: Durability) {
        self.queue.lock().push((place, durability));
    }

    /// Whether any place is to be read again.
    pub(super) fn is_queued(&self) -> bool {
        !self.queue.lock().is_empty()
    }

    /// The places to be read again, which are then queued no longer.
    pub(super) fn take_queue(&self) -> Vec<(Place, Durability)> {
        std::mem::take(&mut *self.queue.lock())
    }

    /// What is known of the last change of a place, if that is to be read again.
    pub(super) fn queued(&self, place: &Place) -> Option<Durability> {
        let queue = self.queue.lock();
        let mut found = queue.iter().filter(|(of, _)| of == place);
        found.next().map(|(_, durability)| *durability)
    }

    /// Logs items that are about to say something of each other, durably: a start after a crash that
    /// finds one of them saying it has the others say it as well.
    pub(super) fn begin_joint(&self, places: &[Place]) -> Result<(), ArchiveError> {
        if places.is_empty() {
            return Ok(());
        }
        let paths: Vec<&str> = places.iter().map(Place::as_str).collect();
        let mut ended = self.ended.lock();
        self.store.log_dirty(&paths, &ended)?;
        ended.clear();
        Ok(())
    }

    /// All of the items say it, or none: they are cleared with the next joint change, or at a regular end.
    pub(super) fn end_joint(&self, places: &[Place]) {
        let paths = places.iter().map(|place| place.as_str().to_owned());
        self.ended.lock().extend(paths);
    }

    /// Clears the joint changes of an item that are over, before it comes to say something by itself:
    /// otherwise a start after a crash would write what they said again.
    pub(super) fn clear_joint(&self, place: &Place) -> Result<(), ArchiveError> {
        let mut ended = self.ended.lock();
        if ended.iter().any(|end| end == place.as_str()) {
            self.store.log_dirty(&[], &ended)?;
            ended.clear();
        }
        Ok(())
    }

    /// Syncs the regions that are idle, in a thread that no caller waits for.
    fn settle_idle(&self) {
        let (tree, store) = (Arc::clone(&self.tree), Arc::clone(&self.store));
        let regions = Arc::clone(&self.regions);
        let settling = move || {
            if let Err(error) = settle(&tree, &store, &regions) {
                log::warn!("cannot sync what was changed: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("settle".to_owned());
        if let Err(error) = thread.spawn(settling) {
            // They stay in the log, and the next start reads them.
            log::warn!("cannot sync what was changed: {error}");
        }
    }

    /// Syncs the regions that are idle and clears them, unless a place is still to be read again: then
    /// the next start does that.
    pub(super) fn settle_now(&self) -> Result<(), ArchiveError> {
        if self.is_queued() {
            return Ok(());
        }
        let ended = std::mem::take(&mut *self.ended.lock());
        self.store.clear_dirty(&ended)?;
        settle(&self.tree, &self.store, &self.regions)
    }
}

fn settle(tree: &Tree, store: &Store, regions: &Regions) -> Result<(), ArchiveError> {
    let mut is_unsynced = false;
    for region in regions.lock().values_mut() {
        if region.users == 0 {
            region.is_settling = true;
            is_unsynced |= region.is_unsynced;
        }
    }
    if is_unsynced {
        tree.sync_all()?;
    }
    let mut regions = regions.lock();
    let settled: Vec<String> = regions
        .iter()
        .filter(|(_, region)| region.is_settling)
        .map(|(level, _)| level.clone())
        .collect();
    if settled.is_empty() {
        return Ok(());
    }
    store.clear_dirty(&settled)?;
    regions.retain(|_, region| !region.is_settling);
    Ok(())
}
