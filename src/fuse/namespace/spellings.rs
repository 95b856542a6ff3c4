//! The spelling of names in a directory, for names that do not exist as requested.
//!
//! Listing a directory of 20,000 subdomains for each missing name would be too slow, so listings are cached.
//! Names that are created through the mount are added. Changes on the disk beneath the mount are noticed
//! after [`LASTING`] at most.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fuse::inside::{self, ErrnoResult};
use ibi::rep::component_key;

/// The time for which a listing is valid regardless of changes beneath the mount.
const LASTING: Duration = Duration::from_secs(1);
/// The most names that are cached in total. A directory with more names is not searched.
const MOST_NAMES: usize = 500_000;
/// The most directories that are cached.
const MOST_DIRECTORIES: usize = 4096;

/// The mtime and ctime of a directory, which change with its names.
type DirectoryTimes = (i64, u64, i64, u64);

#[derive(Debug, Default)]
struct SpellingIndex {
    /// The mark from before the directory was listed, and when that mark was first seen.
    seen: Option<(DirectoryTimes, Instant)>,
    listed: Option<Instant>,
    is_too_long: bool,
    /// By the normalized spelling. The value is the name on the disk if that is different.
    names: HashMap<Box<str>, Option<Box<str>>>,
}

impl SpellingIndex {
    fn is_good(&self, mark: DirectoryTimes) -> bool {
        let Some((listed, (seen, since))) = self.listed.zip(self.seen) else {
            return false;
        };
        // Timestamps are so coarse that a change right after the listing may not show.
        listed.elapsed() < LASTING || (seen == mark && listed > since + LASTING)
    }

    fn add(&mut self, name: &str) {
        let folded = component_key(name);
        let kept = (folded != name).then(|| name.into());
        self.names.insert(folded.into(), kept);
    }

    fn read(&mut self, directory: BorrowedFd<'_>, mark: DirectoryTimes) -> ErrnoResult<()> {
        let now = Instant::now();
        if self.seen.is_none_or(|(seen, _)| seen != mark) {
            self.seen = Some((mark, now));
        }
        self.listed = Some(now);
        self.is_too_long = false;
        self.names = HashMap::new();
        let opened = inside::open_directory(directory)?;
        let read = inside::list(opened.as_fd(), 0, |name, _, _, _| {
            if let Ok(name) = name.to_str() {
                self.add(name);
            }
            self.is_too_long = self.names.len() > MOST_NAMES;
            !self.is_too_long
        });
        if read.is_err() || self.is_too_long {
            self.names = HashMap::new();
        }
        if read.is_err() {
            self.listed = None;
        }
        read
    }
}

#[derive(Debug, Default)]
struct CachedDirectory {
    listing: Arc<Mutex<SpellingIndex>>,
    names: usize,
    used: u64,
}

/// A directory, by device and inode number.
type DirectoryKey = (u64, u64);

#[derive(Debug, Default)]
struct Slots {
    all: HashMap<DirectoryKey, CachedDirectory>,
    /// A counter of requests, for the LRU order.
    asked: u64,
}

/// The cached listings. No other lock is taken under the lock of the map; the lock of a listing is held while
/// the directory is read.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    slots: Mutex<Slots>,
}

impl Spellings {
    /// The spelling of a name in a directory in which the requested spelling does not exist.
    pub(super) fn find(
        &self,
        directory: BorrowedFd<'_>,
        name: &str,
    ) -> ErrnoResult<Option<String>> {
        let stat = rustix::fs::fstat(directory)?;
        let key = (stat.st_dev, stat.st_ino);
        let mark = (
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec,
        );
        let listing = self.listing(key);
        let mut listing = listing.lock();
        if !listing.is_good(mark) {
            let read = listing.read(directory, mark);
            self.count(key, listing.names.len());
            read?;
        }
        let folded = component_key(name);
        let Some(known) = listing.names.get(folded.as_str()) else {
            return Ok(None);
        };
        let known = known.as_deref().unwrap_or(&folded).to_owned();
        // It may have been removed since. The requested spelling itself is known not to exist.
        let is_there = known != name && inside::find(directory, known.as_ref()).is_ok();
        if !is_there {
            listing.names.remove(folded.as_str());
        }
        Ok(is_there.then_some(known))
    }

    /// Adds a name that has just been created in a directory.
    pub(super) fn note(&self, directory: BorrowedFd<'_>, name: &str) {
        let Ok(stat) = rustix::fs::fstat(directory) else {
            return;
        };
        let slots = self.slots.lock();
        let listing = slots.all.get(&(stat.st_dev, stat.st_ino));
        let listing = listing.map(|slot| Arc::clone(&slot.listing));
        drop(slots);
        if let Some(listing) = listing {
            let mut listing = listing.lock();
            if listing.names.len() < MOST_NAMES {
                listing.add(name);
            } else {
                listing.listed = None;
            }
        }
    }

    fn listing(&self, key: DirectoryKey) -> Arc<Mutex<SpellingIndex>> {
        let mut slots = self.slots.lock();
        let slots = &mut *slots;
        slots.asked += 1;
        if slots.all.len() >= MOST_DIRECTORIES && !slots.all.contains_key(&key) {
            forget_oldest(&mut slots.all, key);
        }
        let slot = slots.all.entry(key).or_default();
        slot.used = slots.asked;
        Arc::clone(&slot.listing)
    }

    fn count(&self, key: DirectoryKey, names: usize) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.all.get_mut(&key) {
            slot.names = names;
        }
        let all = &mut slots.all;
        while all.values().map(|slot| slot.names).sum::<usize>() > MOST_NAMES
            && forget_oldest(all, key)
        {}
    }
}

/// Removes the least recently used directory other than this one. Returns whether there was one.
fn forget_oldest(slots: &mut HashMap<DirectoryKey, CachedDirectory>, but: DirectoryKey) -> bool {
    let others = slots.iter().filter(|(key, _)| **key != but);
    let oldest = others
        .min_by_key(|(_, slot)| slot.used)
        .map(|(key, _)| *key);
    oldest.is_some_and(|oldest| slots.remove(&oldest).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;

    /// The resolution of a directory's times may hide a change right after it was listed.
    #[test]
    fn a_listing_lasts_while_its_directory_is_the_same() {
        let (mark, other) = ((1, 0, 1, 0), (2, 0, 1, 0));
        let ago = |time: Duration| Instant::now().checked_sub(time).expect("an instant");
        let half = LASTING / 2;
        for (seen, listed, now, is_good) in [
            (half, half, mark, true),
            (half, half, other, true),
            (3 * LASTING, 3 * LASTING, mark, false),
            (4 * LASTING + half, 4 * LASTING, mark, false),
            (6 * LASTING, 4 * LASTING, mark, true),
            (6 * LASTING, 4 * LASTING, other, false),
        ] {
            let listing = SpellingIndex {
                seen: Some((mark, ago(seen))),
                listed: Some(ago(listed)),
                ..SpellingIndex::default()
            };
            assert_eq!(listing.is_good(now), is_good, "{seen:?} {listed:?} {now:?}");
        }
        assert!(!SpellingIndex::default().is_good(mark));
    }

    #[test]
    fn the_directory_that_was_searched_longest_ago_gives_way() {
        let spellings = Spellings::default();
        let key = |number: usize| (1, number as u64);
        for number in 0..MOST_DIRECTORIES {
            spellings.listing(key(number));
        }
        // Searched again, and so no longer the first.
        spellings.listing(key(0));
        let known = |number| spellings.slots.lock().all.contains_key(&key(number));
        assert!(known(0) && known(1));
        spellings.listing(key(MOST_DIRECTORIES));
        assert!(known(0) && !known(1) && known(2) && known(MOST_DIRECTORIES));
        // Nor do all together hold too many names; the last one searched is kept.
        spellings.count(key(5), MOST_NAMES / 2);
        spellings.count(key(4), MOST_NAMES / 2);
        assert!(known(2) && known(4) && known(5));
        spellings.count(key(6), 1);
        assert!(!known(2) && !known(4), "the oldest first");
        assert!(known(5) && known(6));
        spellings.count(key(6), MOST_NAMES + 1);
        assert_eq!(spellings.slots.lock().all.len(), 1);
        assert!(known(6));
    }

    #[test]
    fn names_are_found_in_any_spelling_as_they_come_and_go() {
        let root = TemporaryDirectory::new();
        std::fs::create_dir(root.join("Sid.Inpe.br")).expect("a directory");
        let directory = root.opened();
        let spellings = Spellings::default();
        let find = |name: &str| spellings.find(directory.as_fd(), name).expect("listed");
        assert_eq!(find("sid.INPE.br").as_deref(), Some("Sid.Inpe.br"));
        assert_eq!(find("example.org"), None);
        std::fs::create_dir(root.join("Example.org")).expect("a directory");
        spellings.note(directory.as_fd(), "Example.org");
        assert_eq!(find("example.org").as_deref(), Some("Example.org"));
        std::fs::remove_dir(root.join("Example.org")).expect("removed");
        assert_eq!(find("example.org"), None);
        std::fs::create_dir(root.join("beneath.org")).expect("a directory");
        let end = Instant::now() + 20 * LASTING;
        while find("BENEATH.org").is_none() {
            assert!(Instant::now() < end, "what is made beneath is not seen");
            std::thread::sleep(LASTING / 20);
        }
    }
}
