//! The last change of an item: the newest time of anything in it, and its size.
//!
//! An answer about a small one depends on each of its entries, so that it is valid as long as their fingerprints are the
//! same. Of a large one that does not change the index has it. A large one that changes is walked through, not again and
//! again: the result is valid for a time that grows with that of the walk.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::walk::{NextEntries, Walk};
use crate::archive::operations::{Archive, ArchiveError, ReadAs, RunAs};
use crate::archive::store::{ContentStatistics, Item};
use crate::archive::tree::{
    Dependencies, Fingerprint, METADATA_TEXT, OpenItem, Place, SIDECAR, TreeError,
};
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
            let own = time_of_own(&open, self.dependencies).max(self.opened_at(item));
            // A small item is looked through: so a change beside the mount is seen, too.
            let known = self.known_content(item)?;
            let content = match known.filter(|known| known.files > SMALL as u64) {
                Some(known) => known.newest,
                None => self.time_of_content(&open)?,
            };
            Ok(own.max(content))
        })
    }

    /// The end of an embargo that is over: what readers get has changed then.
    fn opened_at(&self, item: &Item) -> Option<Timestamp> {
        let at = item.life.available.as_ref();
        match self.withheld_until(item) {
            // An answer with the time of now does not outlive the embargo.
            Some(_) => {
                self.give_up();
                None
            }
            None => at.cloned(),
        }
    }

    /// What the index knows of the content of an item for this reader; None while it changes.
    pub fn known_content(&self, item: &Item) -> Result<Option<ContentStatistics>, ArchiveError> {
        match self.number {
            Some(number) => Ok(self.store.content(item.id, number)?),
            None => Ok(None),
        }
    }

    /// Walks through an item and counts what is published of it. None if a file has names in other items, too: it can
    /// change without this item.
    fn count_content(&self, item: &Item) -> Result<Option<ContentStatistics>, ArchiveError> {
        self.acting(|| -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            let mut walk = Walk::new(&open, b"", NextEntries::FilesAndDirectories);
            let mut found = ContentStatistics::default();
            let mut names: HashMap<Fingerprint, (u32, u32)> = HashMap::new();
            while let Some(path) = walk.next()? {
                let path = path.strip_suffix(b"/").unwrap_or(&path);
                let Ok(entry) = open.inspect(path) else {
                    continue;
                };
                found.newest = found.newest.max(Some(entry.changed()));
                if !entry.is_file() || entry.led_to().is_some() {
                    continue;
                }
                found.files += 1;
                found.bytes += entry.length();
                if entry.links() > 1 {
                    let (links, count) = names.entry(entry.fingerprint()).or_default();
                    (*links, *count) = (entry.links(), *count + 1);
                }
            }
            let is_whole = names.values().all(|(links, count)| links == count);
            Ok(is_whole.then_some(found))
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
            Ok(time_of_own(&open, self.dependencies).max(self.opened_at(item)))
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

impl Archive {
    /// Counts the content of an item as a user reads it; None if it is not to be recorded.
    pub(in crate::archive::operations) fn counted(
        &self,
        item: &Item,
        act: RunAs<'_>,
    ) -> Option<ContentStatistics> {
        let counted = self.read_as(act).count_content(item);
        counted.unwrap_or_else(|error| {
            log::debug!("{} is not counted: {error}", item.names);
            None
        })
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
