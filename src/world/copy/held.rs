//! The copy of an item that a store has already.

use std::fs::File;

use rustix::fs::{FileType, OFlags, Stat};

use crate::archive::scrub::{RecordedDigests, item_digests, remember_if_possible};
use crate::archive::store::Item;
use crate::archive::transfer::{Local, Part, TransferError};
use crate::archive::tree::{DeepEntry, Place, SIDECAR, Tree, entry_stat};
use crate::formats::fixity::{Digest, Manifest, Written};
use crate::formats::inventory::{CHUNK, Entry, EntryKind};
use crate::formats::item::Names;
use crate::world::copy::found::ItemToCopy;

/// The longest record of digests that is read, in bytes.
const LONGEST_RECORD: i64 = 32 << 20;

/// The copy that a store has already.
pub(crate) struct HeldCopy {
    directory: Option<Tree>,
    manifest: Manifest,
}

impl HeldCopy {
    /// The copy in a store, if there is one, with the digests of its files.
    pub(crate) fn of(store: &Local, names: &Names) -> Result<HeldCopy, TransferError> {
        let held = store.archive().held(names)?;
        let tree = store.archive().tree();
        let is_there = |item: &Item| tree.is_directory(Place::of(&item.names).as_str());
        let Some(item) = held.filter(|item| tree.is_mount() || is_there(item)) else {
            return Ok(HeldCopy {
                directory: None,
                manifest: Manifest::default(),
            });
        };
        let place = Place::of(&item.names);
        let found = item_digests(tree, place.as_str(), &mut |_, _| ())?;
        remember_if_possible(tree, place.as_str(), &found);
        Ok(HeldCopy {
            directory: Some(store.directory(&item)?),
            manifest: found.manifest,
        })
    }

    /// Whether the store has the item.
    pub(crate) fn is_there(&self) -> bool {
        self.directory.is_some()
    }

    /// Whether it has this file at this path.
    pub(crate) fn has(&self, path: &[u8], digest: &Digest) -> bool {
        self.manifest.get(path) == Some(digest)
    }

    /// A file whose pieces may be those of the one to be fetched, of which nothing is there yet.
    pub(crate) fn like(&self, entry: &Entry, part: &Part) -> Option<File> {
        let EntryKind::File(file) = &entry.kind else {
            return None;
        };
        if part.length() > 0 || file.digest.is_some() {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let opened = self.directory.as_ref()?.open_far(&entry.path, flags).ok()?;
        let found = rustix::fs::fstat(&opened).ok()?;
        let is_file = is(&found, FileType::RegularFile);
        let is_alike =
            size(&found) == file.size && entry_stat(&found).modified == entry.stat.modified;
        (is_file && (is_alike || file.size > CHUNK)).then(|| opened.into())
    }
}

/// Whether a store has an item as its Archive has it, by the sidecar, the metadata of all entries, and the digests that
/// both have recorded.
pub(crate) fn is_same(found: &ItemToCopy, store: &Local) -> Result<bool, TransferError> {
    let Some(item) = store.archive().held(found.names())? else {
        return Ok(false);
    };
    let (tree, place) = (store.archive().tree(), Place::of(&item.names));
    if !store.has_accepted(&item, found.text())? {
        return Ok(false);
    }
    let directory = store.directory(&item)?;
    let mut count = 0;
    directory.each_deep_entry("", |entry| match entry {
        DeepEntry::Entry(_) | DeepEntry::Unreadable(..) => count += 1,
    })?;
    let recorded = RecordedDigests::of(tree, place.as_str(), LONGEST_RECORD).unwrap_or_default();
    for (entry, first) in found.entries() {
        let Some(stat) = stat(&directory, &entry.path) else {
            return Ok(false);
        };
        if entry.kind != EntryKind::Directory {
            count -= 1;
        }
        let is_sidecar = entry.path == SIDECAR.as_bytes();
        // The mode and the time of the sidecar are those of its writing here.
        if is_sidecar {
            continue;
        }
        let is_alike = match &entry.kind {
            EntryKind::Directory => is(&stat, FileType::Directory),
            EntryKind::Link(target) => {
                is(&stat, FileType::Symlink)
                    && target_of(&directory, &entry.path).as_ref() == Some(target)
            }
            EntryKind::Text(text) => {
                is(&stat, FileType::RegularFile) && size(&stat) == text.len() as u64
            }
            EntryKind::File(file) => {
                let written = Written {
                    size: size(&stat),
                    seconds: stat.st_mtime,
                    nanoseconds: entry_stat(&stat).modified.1,
                };
                let digests = file.digest.zip(recorded.get(&entry.path, &written));
                is(&stat, FileType::RegularFile)
                    && size(&stat) == file.size
                    && digests.is_none_or(|(theirs, ours)| theirs == ours)
                    && first.is_none_or(|first| {
                        let first = self::stat(&directory, &first.path);
                        first.is_some_and(|first| first.st_ino == stat.st_ino)
                    })
            }
            EntryKind::Fifo | EntryKind::Socket => false,
        };
        let is_link = matches!(entry.kind, EntryKind::Link(_));
        let mode = u32::from(entry.stat.mode) & 0o1777;
        if !is_alike
            || entry_stat(&stat).modified != entry.stat.modified
            || !is_link && stat.st_mode & 0o7777 != mode
        {
            return Ok(false);
        }
    }
    Ok(count == 0)
}

fn stat(directory: &Tree, path: &[u8]) -> Option<Stat> {
    let opened = directory.open_far(path, OFlags::PATH | OFlags::NOFOLLOW);
    rustix::fs::fstat(opened.ok()?).ok()
}

fn target_of(directory: &Tree, path: &[u8]) -> Option<Vec<u8>> {
    let link = directory.open_far(path, OFlags::PATH | OFlags::NOFOLLOW);
    let target = rustix::fs::readlinkat(link.ok()?, "", Vec::new());
    Some(target.ok()?.into_bytes())
}

fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}
