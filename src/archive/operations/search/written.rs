//! Files that were written through the mount, for the searches of all processes.
//!
//! A file can change without its item, so the indexes of texts are told of the item. That happens at most once in a
//! second, in another thread, which also finds out which items they are: writing a file costs no query.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::super::Archive;
use super::super::identifiers::names_at;
use super::{PUBLIC_TEXT_FILE, TEXT_FILE};
use crate::archive::manifest::is_beside;
use crate::archive::store::{ItemId, TextIndex, cache_file};
use crate::archive::tree::Area;
use crate::formats::search::Searched;
use crate::os::caller::act_as_process;
use crate::os::opening;
use crate::os::processors;

/// The time for which they are collected.
const COLLECTED: Duration = Duration::from_secs(1);

/// The number that is collected. The files in others are noticed when all are looked at.
const MOST: usize = 20_000;

/// The files, and directories with new names, by their paths at that moment.
#[derive(Debug, Default)]
pub struct WrittenFiles {
    paths: Mutex<HashSet<Vec<u8>>>,
}

impl WrittenFiles {
    /// Notes that a file was written, or that a directory has another name in it.
    pub fn note(self: &Arc<WrittenFiles>, archive: &Arc<Archive>, written: BorrowedFd<'_>) {
        if archive.facts.searched != Searched::Texts {
            return;
        }
        let Ok(path) = rustix::fs::readlink(opening::by_descriptor(written), Vec::new()) else {
            return;
        };
        let is_first = {
            let mut paths = self.paths.lock();
            let is_first = paths.is_empty();
            if paths.len() < MOST {
                paths.insert(path.into_bytes());
            }
            is_first
        };
        if is_first {
            let (places, archive) = (Arc::clone(self), Arc::clone(archive));
            let started = processors::spawn_unbound("texts", move || {
                act_as_process();
                std::thread::sleep(COLLECTED);
                places.pass_on(&archive);
            });
            if let Err(error) = started {
                log::debug!("written files are noticed later: {error}");
            }
        }
    }

    /// Records the items of what was noted until now in the indexes that exist.
    pub fn pass_on(&self, archive: &Archive) {
        let paths = std::mem::take(&mut *self.paths.lock());
        if paths.is_empty() {
            return;
        }
        let items: HashSet<ItemId> = paths
            .iter()
            .filter_map(|it| archive.item_above(it))
            .map(|(item, _)| item)
            .collect();
        let items: Vec<ItemId> = items.into_iter().collect();
        for file in [TEXT_FILE, PUBLIC_TEXT_FILE] {
            let file = cache_file(file, archive.facts.index.as_ref());
            let noted = TextIndex::open_existing(archive.tree.root(), &file)
                .and_then(|index| index.map_or(Ok(()), |index| index.note_stale(&items)));
            if let Err(error) = noted {
                log::debug!("written files are noticed later: {error}");
            }
        }
    }
}

impl Archive {
    /// The item in which an open file lies.
    pub fn item_of_file(&self, file: BorrowedFd<'_>) -> Option<ItemId> {
        let path = rustix::fs::readlink(opening::by_descriptor(file), Vec::new());
        Some(self.item_above(path.ok()?.as_bytes())?.0)
    }

    /// The same if the name by which it was opened is still there, as far as its path shows that.
    pub fn item_of_named_file(&self, file: BorrowedFd<'_>) -> Option<ItemId> {
        let path = rustix::fs::readlink(opening::by_descriptor(file), Vec::new()).ok()?;
        if path.as_bytes().ends_with(b" (deleted)") {
            return None;
        }
        Some(self.item_above(path.as_bytes())?.0)
    }

    /// Whether a file that is open is none of its item's own, by its path: one that ibifs keeps beside these.
    pub fn lies_beside(&self, file: BorrowedFd<'_>) -> bool {
        let path = rustix::fs::readlink(opening::by_descriptor(file), Vec::new());
        let found = path.ok().and_then(|path| self.item_above(path.as_bytes()));
        found.is_some_and(|(_, path)| is_beside(&path))
    }

    /// The item at an absolute path, or above it, and the path in the item.
    fn item_above(&self, path: &[u8]) -> Option<(ItemId, Vec<u8>)> {
        let root =
            rustix::fs::readlink(opening::by_descriptor(self.tree.root().as_fd()), Vec::new());
        let below = path
            .strip_prefix(root.ok()?.as_bytes())?
            .strip_prefix(b"/")?;
        let in_area = below.iter().position(|byte| *byte == b'/')? + 1;
        // The names of items are ASCII; those of files need not be UTF-8.
        let text = match std::str::from_utf8(below) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&below[..error.valid_up_to()]).ok()?,
        };
        let (area, path) = text.split_once('/')?;
        let area = [Area::Col, Area::Ibip]
            .into_iter()
            .find(|it| it.name() == area)?;
        let ends = path.match_indices('/').map(|(at, _)| at);
        ends.chain([path.len()]).find_map(|end| {
            let names = names_at(area, &path[..end])?;
            let id = self.store.find_by_names(&names).ok()??.id;
            let rest = below.get(in_area + end + 1..).unwrap_or_default();
            Some((id, rest.to_vec()))
        })
    }
}
