//! The records of an item, in `fixity/`: its manifest, and how each file was written.

use std::collections::HashMap;

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::finding::ScrubError;
use crate::archive::tree::{Tree, joined};
use crate::formats::fixity::{self, Digest, Manifest, Marks, Notes};
use ibi::Timestamp;

/// The directory of the store that holds the manifests.
pub const DIRECTORY: &str = "fixity";

/// The records of an item.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) manifest: Manifest,
    pub(super) notes: Notes,
    /// The marks of damaged and lost files. They are not read with the rest.
    pub(super) marks: Marks,
    /// The digests of the pieces of long files, by those of the files. They are not read with the rest.
    pub(super) pieces: HashMap<Digest, Vec<Digest>>,
    pub(super) bad_lines: Vec<usize>,
    pub(super) exists: bool,
    /// The time at which the item was last scrubbed.
    pub(super) when: Option<(i64, u32)>,
    /// When the backup was finished, of an item in a backup.
    pub(super) finished: Option<Finished>,
}

/// When a backup was finished. Its files and directories have the times of modification of the store, so that one that is later
/// was changed in the backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished(
    /// None where it is not known.
    pub Option<Timestamp>,
);

impl Finished {
    /// Whether a file or directory was changed after that. A time that is later than that of the inode was set by a user.
    pub(super) fn is_before(&self, stat: &Stat) -> bool {
        let (modified, changed) = times(stat);
        self.0.as_ref().is_some_and(|it| *it < modified) && modified <= changed
    }

    /// Whether nothing of a file or directory was changed after that, nor was it copied to another disk.
    fn is_after(&self, stat: &Stat) -> bool {
        let (_, changed) = times(stat);
        self.0.as_ref().is_some_and(|it| changed <= *it)
    }
}

/// The times of modification, and of the last change of the inode.
fn times(stat: &Stat) -> (Timestamp, Timestamp) {
    let time = |seconds, nanoseconds: u64| {
        Timestamp::from_unix(seconds, u32::try_from(nanoseconds).unwrap_or_default())
    };
    (
        time(stat.st_mtime, stat.st_mtime_nsec),
        time(stat.st_ctime, stat.st_ctime_nsec),
    )
}

impl Recorded {
    /// Whether a recorded file is not there, and was not removed.
    pub(super) fn has_lost(&self, tree: &Tree, item: &str, path: &[u8]) -> bool {
        let full = joined(item.as_bytes(), path);
        let found = tree.open_far(&full, OFlags::PATH | OFlags::NOFOLLOW);
        matches!(found, Err(Errno::NOENT | Errno::NOTDIR)) && !self.was_removed(tree, item, path)
    }

    /// Whether a recorded file that is missing was removed. Removing a file changes its directory; if the directory has not
    /// changed since the item was last scrubbed, the file is lost. In a backup all directories are younger than that, and what
    /// was removed in the store was so before the backup was finished.
    pub(super) fn was_removed(&self, tree: &Tree, item: &str, path: &[u8]) -> bool {
        let (Some(above), Some((scrubbed, _))) = (directory_above(tree, item, path), self.when)
        else {
            return false;
        };
        match &self.finished {
            None => above.st_ctime >= scrubbed - 1,
            // Who mirrors a tree sets the time of a directory back, in the store.
            Some(finished) if finished.is_after(&above) => true,
            Some(finished) => above.st_mtime >= scrubbed - 1 && !finished.is_before(&above),
        }
    }
}

/// The nearest existing directory above a path.
pub(super) fn directory_above(tree: &Tree, item: &str, path: &[u8]) -> Option<Stat> {
    let mut above = path;
    while !above.is_empty() {
        let cut = above.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        above = &above[..cut];
        let full = joined(item.as_bytes(), above);
        let directory = tree.open_far(&full, OFlags::PATH | OFlags::DIRECTORY);
        if let Ok(stat) = directory.and_then(rustix::fs::fstat) {
            return Some(stat);
        }
    }
    None
}

/// The record of an item.
pub(super) fn recorded(tree: &Tree, item: &str) -> Result<Recorded, ScrubError> {
    let read = |name: &str| tree.read_whole(&format!("{DIRECTORY}/{item}/{name}"));
    // An empty manifest was cut off by a power cut, or belongs to an item without files.
    let bytes = read(fixity::MANIFEST)?.unwrap_or_default();
    let (manifest, bad_lines) = fixity::parse_manifest(&bytes);
    let notes = fixity::parse_notes(&read(fixity::WRITTEN)?.unwrap_or_default());
    Ok(Recorded {
        manifest,
        notes,
        marks: Marks::new(),
        pieces: HashMap::new(),
        bad_lines,
        exists: !bytes.is_empty(),
        when: scrubbed_at(tree, item),
        finished: None,
    })
}

/// The digest of the manifest that a scrub recorded of an item, by its place.
#[must_use]
pub fn manifest_digest(tree: &Tree, item: &str) -> Option<Digest> {
    let path = format!("{DIRECTORY}/{item}/{}", fixity::MANIFEST);
    let bytes = tree.read_whole(&path).ok()??;
    Some(Digest(Sha256::digest(&bytes).into()))
}

/// The time at which another content of an item was last recorded, in seconds since 1970: it has not changed after that, as far
/// as scrubs know.
#[must_use]
pub fn recorded_change(tree: &Tree, item: &str) -> Option<i64> {
    let path = format!("{DIRECTORY}/{item}/{}", fixity::MANIFEST);
    let file = tree.open_far(path.as_bytes(), OFlags::PATH).ok()?;
    Some(rustix::fs::fstat(file).ok()?.st_mtime)
}

/// The time at which an item was last scrubbed, in seconds and nanoseconds since 1970.
#[must_use]
pub fn scrubbed_at(tree: &Tree, item: &str) -> Option<(i64, u32)> {
    let path = format!("{DIRECTORY}/{item}/{}", fixity::WRITTEN);
    let file = tree.open_far(path.as_bytes(), OFlags::PATH).ok()?;
    let stat = rustix::fs::fstat(file).ok()?;
    Some((stat.st_mtime, u32::try_from(stat.st_mtime_nsec).ok()?))
}
