//! The last change of an item: the newest time of anything in it.
//!
//! No request walks through a large item again and again. An answer about a small one depends on each of its entries,
//! so that it is valid as long as their fingerprints are the same. The result of a walk through a large one is valid
//! for a time that grows with that of the walk.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::walk::{NextEntries, Walk};
use crate::archive::operations::{ArchiveError, ReadAs};
use crate::archive::store::Item;
use crate::archive::tree::{Dependencies, METADATA_TEXT, OpenItem, Place, SIDECAR, TreeError};
use crate::formats::item::State;
use ibi::Timestamp;

/// The most entries of an item that is looked at for each answer.
const SMALL: usize = 200;
/// The least time for which a walk through a larger one is valid.
const LEAST: Duration = Duration::from_secs(10);
/// The same, in times of what it took to find it.
const TIMES: u32 = 50;
/// The number of larger ones of which that is known at a time.
const MOST_KNOWN: usize = 10_000;

/// The newest times of large items.
#[derive(Debug, Default)]
pub(in crate::archive::operations) struct NewestTimes {
    known: Mutex<HashMap<Place, NewestTime>>,
}

#[derive(Clone, Debug)]
struct NewestTime {
    valid_until: Instant,
    newest: Option<Timestamp>,
}

impl NewestTimes {
    fn get(&self, place: &Place) -> Option<NewestTime> {
        let known = self.known.lock();
        let known = known.get(place);
        known
            .filter(|known| Instant::now() < known.valid_until)
            .cloned()
    }

    /// Keeps what was found. Returns until when it is valid.
    fn keep(&self, place: Place, took: Duration, newest: Option<Timestamp>) -> Instant {
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        let valid_until = Instant::now() + LEAST.max(took * TIMES);
        known.insert(
            place,
            NewestTime {
                valid_until,
                newest,
            },
        );
        valid_until
    }
}

impl ReadAs<'_> {
    /// The last change of an item: the newest time of its files, of the directories in it, its sidecar and its
    /// description. For a removed item, the time of its removal.
    pub fn updated(&self, item: &Item) -> Result<Option<Timestamp>, ArchiveError> {
        if item.state == State::Deleted {
            return Ok(item.removed_at.clone());
        }
        self.acting(|| -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            let own = time_of_own(&open, self.dependencies);
            Ok(own.max(self.time_of_content(&open)?))
        })
    }

    /// The last change of what describes an item: its sidecar, its description, and all of its metadata item, if that
    /// is given.
    pub fn description_updated(
        &self,
        item: &Item,
        metadata: Option<&Item>,
    ) -> Result<Option<Timestamp>, ArchiveError> {
        let own = self.acting(|| -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            Ok(time_of_own(&open, self.dependencies))
        })?;
        Ok(match metadata {
            Some(metadata) => own.max(self.updated(metadata)?),
            None => own,
        })
    }

    /// The newest time of what is published of an item.
    fn time_of_content(&self, open: &OpenItem) -> Result<Option<Timestamp>, TreeError> {
        if let Some(known) = self.newest.get(open.place()) {
            self.dependencies.inspect(|it| it.end_at(known.valid_until));
            return Ok(known.newest);
        }
        let began = Instant::now();
        let mut walk = Walk::new(open, b"", NextEntries::FilesAndDirectories);
        let (mut count, mut newest) = (0, None);
        while let Some(path) = walk.next()? {
            count += 1;
            let path = path.strip_suffix(b"/").unwrap_or(&path);
            let recorded = self.dependencies.filter(|_| count <= SMALL);
            newest = newest.max(time_of(open, path, recorded));
        }
        if count > SMALL {
            let place = open.place().clone();
            let until = self.newest.keep(place, began.elapsed(), newest.clone());
            self.dependencies.inspect(|it| it.end_at(until));
        }
        Ok(newest)
    }
}

/// The newest time of what ibifs keeps in an item.
fn time_of_own(open: &OpenItem, dependencies: Option<&Dependencies>) -> Option<Timestamp> {
    [SIDECAR, METADATA_TEXT]
        .into_iter()
        .filter_map(|name| time_of(open, name.as_bytes(), dependencies))
        .max()
}

fn time_of(open: &OpenItem, path: &[u8], dependencies: Option<&Dependencies>) -> Option<Timestamp> {
    let found = || open.inspect(path).map_err(|error| error.errno());
    let found = Dependencies::at(dependencies, open, path, found);
    found.ok().map(|found| found.changed())
}
