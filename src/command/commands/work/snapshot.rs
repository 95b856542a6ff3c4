//! The contents of an item's directory at one instant, to find what a command changes.

use std::collections::BTreeMap;

use rustix::fs::{FileType, OFlags};

use crate::archive::tree::{joined, open_far};
use crate::os::directory::Directory;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The attributes that a change of a file changes: its number, its size and the time of its last change.
#[derive(Debug, PartialEq, Eq)]
struct State {
    number: (u64, u64),
    size: i64,
    changed: (i64, i64),
}

/// The entries below a directory, by path.
#[derive(Debug, Default)]
pub(super) struct Snapshot(BTreeMap<Vec<u8>, State>);

impl Snapshot {
    /// The entries that this user may list.
    pub(super) fn of(root: &Directory) -> Snapshot {
        let mut entries = BTreeMap::new();
        let mut waiting = vec![Vec::new()];
        while let Some(above) = waiting.pop() {
            let listed = open_far(root.descriptor(), &above, DIRECTORY).and_then(|directory| {
                let directory = Directory::from(directory);
                Ok((directory.entries()?, directory))
            });
            let Ok((names, directory)) = listed else {
                continue;
            };
            for (name, _) in names {
                let Ok(found) = directory.entry(&name) else {
                    continue;
                };
                let path = joined(&above, &name);
                if found.kind() == FileType::Directory {
                    waiting.push(path.clone());
                }
                let stat = found.stat();
                let state = State {
                    number: (stat.st_dev, stat.st_ino),
                    size: stat.st_size,
                    changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
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
