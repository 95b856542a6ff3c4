//! Tombstones: `deleted/` keeps the last sidecar of a removed item, with its state and time.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::action::Action;
use super::place::{Place, TreeError, failed};
use super::root::{Tree, open_beneath};
use super::small::{SMALL_FILE_LIMIT, read_small_in};
use crate::formats::item::Sidecar;

/// A tombstone is a sidecar with a state, a time and a citation, which may add this many bytes.
const TOMBSTONE_ADDS: u64 = 1 << 15;

impl Tree {
    /// Writes the tombstone of a removed item: its last sidecar, with state and time. Other users may read
    /// the tombstone if they could read the item, and its mint was not taken back.
    pub(in crate::archive) fn write_tombstone(
        &self,
        place: &Place,
        bytes: &[u8],
    ) -> Result<(), TreeError> {
        let parent = format!("deleted/{}", place.parent());
        self.make_levels(&parent)?;
        let tombstone = Sidecar::parse(bytes);
        let (is_unminted, was_public) = tombstone.map_or((false, false), |tombstone| {
            let was_public = tombstone.life().citation.is_some();
            (tombstone.is_unminted(), was_public)
        });
        let is_for_all = !is_unminted && (was_public || self.is_for_all(place));
        let mode = if is_for_all { 0o644 } else { 0o600 };
        self.write_small_as(&parent, place.name(), bytes, None, mode)
    }

    /// Whether the modes of an item and of the levels above it let all users read in it. A missing level
    /// excludes no user.
    pub(in crate::archive) fn is_for_all(&self, place: &Place) -> bool {
        self.is_open(place, 0o005)
    }

    /// Whether the modes of the levels above an item's place let all users pass, and that of its tombstone lets them read it, if
    /// the item was removed.
    pub(in crate::archive) fn is_known_to_all(&self, place: &Place, is_removed: bool) -> bool {
        let path = format!("deleted/{}", place.as_str());
        let is_read = || {
            let tombstone = self.stat_far(path.as_bytes());
            tombstone.is_ok_and(|found| found.st_mode & 0o004 != 0)
        };
        self.is_open(place, 0) && (!is_removed || is_read())
    }

    fn is_open(&self, place: &Place, mut wanted: u32) -> bool {
        let mut path = place.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            if let Ok(directory) = self.open_directory(path)
                && let Ok(stat) = rustix::fs::fstat(&directory)
                && stat.st_mode & wanted != wanted
            {
                return false;
            }
            (path, wanted) = (above, 0o001);
        }
        let root = self
            .open_directory("col")
            .and_then(|root| rustix::fs::fstat(&root).map_err(failed(Action::Open, "col")));
        root.is_ok_and(|stat| stat.st_mode & 0o001 != 0)
    }

    /// Whether the calling thread may read the tombstone of a removed item: its mode, and the remaining
    /// levels above the item's place, must let the caller through.
    pub fn may_read_tombstone(&self, place: &Place) -> Result<bool, TreeError> {
        if self.is_mount {
            return Ok(true);
        }
        if !self.may_come_near(place)? {
            return Ok(false);
        }
        let failed = |errno| failed(Action::Open, place.as_str())(errno);
        let deleted = &self.areas().map_err(failed)?.deleted;
        match open_beneath(deleted, place.as_str(), OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(_) => Ok(true),
            Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Whether the calling thread may pass through the levels above an item's place that are there.
    pub fn may_come_near(&self, place: &Place) -> Result<bool, TreeError> {
        let failed = |errno| failed(Action::Open, place.as_str())(errno);
        let (area, path) = match self.way_to(place) {
            Err(Errno::ACCESS) => return Ok(false),
            way => way.map_err(failed)?,
        };
        let above = path.rsplit_once('/').map_or(path, |(above, _)| above);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        match open_beneath(area, above, flags) {
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(true),
            Err(Errno::ACCESS) => Ok(false),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// The bytes of an item's tombstone, or None.
    pub fn read_tombstone(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        let path = format!("deleted/{}", place.as_str());
        let (directory, below) = self.kept_above(&path);
        read_small_in(directory, below, &path, SMALL_FILE_LIMIT + TOMBSTONE_ADDS)
    }

    /// Removes the tombstone of an item that exists again.
    pub(in crate::archive) fn remove_tombstone(&self, place: &Place) -> Result<(), TreeError> {
        let shown = format!("deleted/{}", place.as_str());
        let parent = format!("deleted/{}", place.parent());
        self.remove_small(&parent, place.name(), failed(Action::Remove, &shown))
    }
}
