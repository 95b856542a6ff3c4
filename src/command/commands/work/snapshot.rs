//! What is in an item's directory at one instant, to find what a command changes.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::archive::tree::joined;

/// What a change of a file changes: its number, its size and the time of its last change.
#[derive(Debug, PartialEq, Eq)]
struct State {
    number: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

/// The entries below a directory, by path.
#[derive(Debug, Default)]
pub(super) struct Snapshot(BTreeMap<Vec<u8>, State>);

impl Snapshot {
    /// The entries that this user may list.
    pub(super) fn of(root: &Path) -> Snapshot {
        let mut entries = BTreeMap::new();
        let mut waiting: Vec<(PathBuf, Vec<u8>)> = vec![(root.to_owned(), Vec::new())];
        while let Some((directory, path)) = waiting.pop() {
            for entry in std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten()
            {
                let Ok(found) = entry.metadata() else {
                    continue;
                };
                let path = joined(&path, entry.file_name().as_bytes());
                if found.is_dir() {
                    waiting.push((entry.path(), path.clone()));
                }
                let state = State {
                    number: (found.dev(), found.ino()),
                    size: found.size(),
                    changed: (found.ctime(), found.ctime_nsec()),
                };
                entries.insert(path, state);
            }
        }
        Snapshot(entries)
    }

    /// The number of the file at a path.
    pub(super) fn number_of(&self, path: &[u8]) -> Option<(u64, u64)> {
        self.0.get(path).map(|state| state.number)
    }

    /// The paths that are not as they were, without those in a directory that came or went as a whole. In front of
    /// each is `-` where the name has another file or none, `=` where the same file has changed.
    pub(super) fn changed_since(&self, before: &Snapshot) -> Vec<Vec<u8>> {
        let is_other = |path: &[u8]| self.number_of(path) != before.number_of(path);
        let is_below_other = |path: &[u8]| {
            let cuts = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            cuts.into_iter().any(|(cut, _)| is_other(&path[..cut]))
        };
        let is_new = |path: &&Vec<u8>| !before.0.contains_key(*path);
        let all = before.0.keys().chain(self.0.keys().filter(is_new));
        all.filter(|path| self.0.get(*path) != before.0.get(*path))
            .filter(|path| !is_below_other(path))
            .map(|path| [if is_other(path) { b"-" } else { b"=" }, &path[..]].concat())
            .collect()
    }
}
