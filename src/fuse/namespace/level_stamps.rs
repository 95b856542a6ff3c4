//! The changes of levels since the kernel last dropped their attributes.
//!
//! An item that is added changes the year in which it lies, and a level above only if the level below that
//! is new. The kernel walks through the attributes of all levels for every name below them, so each of them
//! that is invalidated without need costs a GETATTR.

use std::collections::HashMap;

use parking_lot::Mutex;
use rustix::fs::Stat;

use crate::fuse::inode::NodeId;

/// The number of levels that are remembered. Without a stamp a level is invalidated once more than necessary.
const MOST: usize = 4096;

/// The attributes that show that a directory has changed. The change time alone has the granularity of the clock; two
/// changes within it differ in the link count or the size, or else all attributes are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    changed: (i64, i64),
    links: u64,
    size: i64,
}

impl Stamp {
    /// The stamp of a directory.
    pub(super) fn of(stat: &Stat) -> Stamp {
        #[allow(
            clippy::unnecessary_cast,
            reason = "their types depend on the platform"
        )]
        Stamp {
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            links: stat.st_nlink as u64,
            size: stat.st_size as i64,
        }
    }
}

/// The stamps that levels had when their attributes were last invalidated.
#[derive(Debug, Default)]
pub(super) struct LevelStamps(Mutex<HashMap<NodeId, Stamp>>);

impl LevelStamps {
    /// Whether a level has another stamp than when it was last invalidated.
    pub(super) fn is_changed(&self, level: NodeId, stamp: Stamp) -> bool {
        self.0.lock().get(&level) != Some(&stamp)
    }

    /// Records that levels were invalidated. To be called after that, not before: a request that finds the
    /// stamp recorded must be able to rely on it.
    pub(super) fn record(&self, invalidated: impl IntoIterator<Item = (NodeId, Stamp)>) {
        let mut stamps = self.0.lock();
        if stamps.len() >= MOST {
            stamps.clear();
        }
        stamps.extend(invalidated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;

    #[test]
    fn a_level_is_changed_until_its_stamp_is_recorded() {
        let directory = TemporaryDirectory::new();
        let stamp = || Stamp::of(&rustix::fs::stat(directory.path()).expect("a directory"));
        let (stamps, level) = (LevelStamps::default(), NodeId(7));
        let before = stamp();
        assert!(stamps.is_changed(level, before));
        stamps.record([(level, before)]);
        assert!(!stamps.is_changed(level, before));
        assert!(stamps.is_changed(NodeId(8), before));
        std::fs::create_dir(directory.path().join("below")).expect("a directory below");
        assert!(stamps.is_changed(level, stamp()));
    }

    #[test]
    fn only_so_many_levels_are_remembered() {
        let directory = TemporaryDirectory::new();
        let stamp = Stamp::of(&rustix::fs::stat(directory.path()).expect("a directory"));
        let stamps = LevelStamps::default();
        for number in 0..=MOST as u64 {
            stamps.record([(NodeId(number), stamp)]);
        }
        assert!(stamps.is_changed(NodeId(0), stamp));
        assert!(!stamps.is_changed(NodeId(MOST as u64), stamp));
        assert!(stamps.0.lock().len() <= MOST);
    }
}
