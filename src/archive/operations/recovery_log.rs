//! The recovery log: where the tree and the index may differ after a crash or an error.
//!
//! The tree is written before the index, and files that a program copies in without syncing them
//! may reach the disk in any order, or not at all. Therefore the level of a change (a year of reps,
//! a prefix of IBIps) is logged in the index as a dirty region before the change: durably, and only
//! once for any number of later changes. At the next start, the dirty regions, and no other levels,
//! are read from the tree. A regular end syncs and clears them.
//!
//! After an error, tree and index may differ while the Archive continues to run. The place of a
//! change that does not end is queued, and is read again before the next change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ArchiveError;
use super::full_disk::with_reserve;
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::store::{JointNumber, Store};
use crate::archive::tree::{Place, Tree};
use crate::formats::item::{Names, Sidecar};
use crate::os::processors;
use ibi::relation::RelationKind;

/// With this many dirty regions, the idle ones are synced, to limit the work of a start after a crash.
pub(super) const MANY: usize = 64;

/// The dirty regions, by the path of their level.
type Regions = Arc<RankedMutex<BTreeMap<String, Region>>>;

/// The places to be read again.
type Queue = Arc<RankedMutex<Vec<Queued>>>;

/// Relations that an item declares or has declared.
pub(super) type Declared = Vec<(RelationKind, Names)>;

/// A place to be read again.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) place: Place,
    /// The durability of its last change.
    pub(super) durability: ChangeDurability,
    /// The relations that its item declared before, if the last change concerned them: the far ends
    /// may not have been written.
    pub(super) before: Option<Declared>,
}

impl Queued {
    /// After a change that did not concern relations.
    pub(super) fn at(place: Place, durability: ChangeDurability) -> Queued {
        Queued {
            place,
            durability,
            before: None,
        }
    }
}

/// A logged change of the relations of an item that concerns other sidecars, too.
#[derive(Debug)]
pub(super) struct JointChange {
    number: JointNumber,
    places: Vec<String>,
}

/// The state of a dirty region.
#[derive(Debug, Default)]
struct Region {
    /// The number of changes in progress.
    users: usize,
    /// Whether it contains changes that the Archive has not synced.
    is_unsynced: bool,
    /// Whether it is being synced and was not changed since the sync began.
    is_settling: bool,
}

/// The state of a change on disk when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeDurability {
    /// It is: the Archive syncs it.
    Synced,
    /// It is when the program that makes the change has synced it.
    Unsynced,
    /// The item was minted in the index and did not appear in the tree.
    NotPlaced,
}

/// A change in a dirty region; dropped when the change has ended.
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

/// A change of an item in progress. If it is dropped before [`WriteIntent::done`], the item's place
/// is read again before the next change.
#[derive(Debug)]
pub struct WriteIntent {
    queued: Queued,
    is_done: bool,
    queue: Queue,
    _region: DirtyRegion,
}

impl WriteIntent {
    /// Marks the change as complete: the index agrees with the tree.
    pub fn done(mut self) {
        self.is_done = true;
    }

    /// The change concerns the relations of the item, which declared these before.
    pub(super) fn of_relations(mut self, before: Option<Declared>) -> WriteIntent {
        self.queued.before = before;
        self
    }
}

impl Drop for WriteIntent {
    fn drop(&mut self) {
        if !self.is_done {
            self.queue.lock().push(self.queued.clone());
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
    /// The joint changes that have ended and are still in the index's log.
    ended: RankedMutex<Vec<JointChange>>,
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

    /// Logs the level of a place before a change of the tree that affects the index. The caller
    /// keeps the result until the change has ended.
    pub(super) fn enter(
        &self,
        place: &Place,
        durability: ChangeDurability,
    ) -> Result<DirtyRegion, ArchiveError> {
        self.enter_level(place.parent(), durability)
    }

    /// Logs a level of the tree before a change below it. The caller keeps the result until the change has ended.
    pub(super) fn enter_level(
        &self,
        level: &str,
        durability: ChangeDurability,
    ) -> Result<DirtyRegion, ArchiveError> {
        let level = level.to_owned();
        let note = |region: &mut Region| {
            region.users += 1;
            region.is_unsynced |= durability == ChangeDurability::Unsynced;
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
            // A removal begins with this write, and must not fail because the disk is full.
            with_reserve(&self.tree, || Ok(self.store.log_dirty(&level)?))?;
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
        durability: ChangeDurability,
    ) -> Result<WriteIntent, ArchiveError> {
        Ok(WriteIntent {
            _region: self.enter(place, durability)?,
            queued: Queued::at(place.clone(), durability),
            is_done: false,
            queue: Arc::clone(&self.queue),
        })
    }

    /// Adds a level that an earlier process has left dirty. It remains unsynced: after a process
    /// was killed, its changes need not be on disk.
    pub(super) fn inherit(&self, level: &str) {
        let region = Region {
            is_unsynced: true,
            ..Region::default()
        };
        self.regions.lock().insert(level.to_owned(), region);
    }

    /// Logs all dirty regions again, for a host whose marks others have taken over. Joint changes that have ended are no
    /// concern of this one any more.
    pub(super) fn log_again(&self) -> Result<(), ArchiveError> {
        self.ended.lock().clear();
        let levels: Vec<String> = self.regions.lock().keys().cloned().collect();
        for level in levels {
            self.store.log_dirty(&level)?;
        }
        Ok(())
    }

    /// Queues a place to be read again before the next change.
    pub(super) fn queue(&self, queued: Queued) {
        self.queue.lock().push(queued);
    }

    /// Whether the queue has any places.
    pub(super) fn is_queued(&self) -> bool {
        !self.queue.lock().is_empty()
    }

    /// Takes the places in the queue.
    pub(super) fn take_queue(&self) -> Vec<Queued> {
        std::mem::take(&mut *self.queue.lock())
    }

    /// A place as it is in the queue, if it is there.
    pub(super) fn queued(&self, place: &Place) -> Option<Queued> {
        let queue = self.queue.lock();
        queue.iter().find(|queued| queued.place == *place).cloned()
    }

    /// Durably logs that the relations of an item are about to change, and with them the sidecars at
    /// other places. `before` is what the item declares until then. If a start after a crash finds
    /// the item changed, it completes the change at the others.
    pub(super) fn begin_joint(
        &self,
        item: &Names,
        before: &[(RelationKind, Names)],
        others: &[Place],
    ) -> Result<JointChange, ArchiveError> {
        let mut declared = Sidecar::new(item);
        for (kind, names) in before {
            declared.set_relation(kind, names);
        }
        let item = Place::of(item);
        let places = std::iter::once(&item).chain(others);
        let places: Vec<String> = places.map(|place| place.as_str().to_owned()).collect();
        let mut ended = self.ended.lock();
        let cleared: Vec<JointNumber> = ended.iter().map(|change| change.number).collect();
        let number = self
            .store
            .log_joint(&places, &declared.to_bytes(), &cleared)?;
        ended.clear();
        Ok(JointChange { number, places })
    }

    /// Ends a joint change: all sidecars were written, or none. A start after a crash finds nothing
    /// to do for it. The log entry is cleared with the next joint change or at a regular end.
    pub(super) fn end_joint(&self, change: JointChange) {
        self.ended.lock().push(change);
    }

    /// Durably clears the log entries of an item's ended joint changes before it is changed alone.
    /// Otherwise a start after a crash would complete the joint change again.
    pub(super) fn clear_joint(&self, place: &Place) -> Result<(), ArchiveError> {
        let mut ended = self.ended.lock();
        let concerns = |change: &JointChange| change.places.iter().any(|it| it == place.as_str());
        if ended.iter().any(concerns) {
            self.clear(&mut ended)?;
        }
        Ok(())
    }

    fn clear(&self, ended: &mut Vec<JointChange>) -> Result<(), ArchiveError> {
        let numbers: Vec<JointNumber> = ended.iter().map(|change| change.number).collect();
        self.store.clear_joint(&numbers)?;
        ended.clear();
        Ok(())
    }

    /// Syncs the idle regions in a separate thread.
    fn settle_idle(&self) {
        let (tree, store) = (Arc::clone(&self.tree), Arc::clone(&self.store));
        let regions = Arc::clone(&self.regions);
        let settling = move || {
            if let Err(error) = settle(&tree, &store, &regions) {
                log::warn!("cannot sync what was changed: {error}");
            }
        };
        if let Err(error) = processors::spawn_unbound("settle", settling) {
            // The regions stay in the log, and the next start reads them.
            log::warn!("cannot sync what was changed: {error}");
        }
    }

    /// Syncs and clears the idle regions. Does nothing while places are queued: the next start
    /// reads those regions.
    pub(super) fn settle_now(&self) -> Result<(), ArchiveError> {
        if self.is_queued() {
            return Ok(());
        }
        self.clear(&mut self.ended.lock())?;
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
