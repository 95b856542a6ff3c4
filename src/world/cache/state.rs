//! The files of a cache in memory: what they take, when they were used, and which of them stay.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::sync::Arc;

use super::stamp::Verified;
use crate::formats::fixity::Digest;

/// The most files that are kept open.
const MOST_OPEN: usize = 64;

/// A file of a cache.
#[derive(Debug, Default)]
pub(super) struct CachedFile {
    /// The space that it takes on the disk, in bytes.
    pub(super) blocks: u64,
    pub(super) verified: Verified,
    pub(super) file: Option<Arc<File>>,
    used_at: u64,
    /// The number of times that it is open for the kernel, and of things that keep it.
    users: u32,
    pins: u32,
}

/// All files of a cache.
#[derive(Debug, Default)]
pub(super) struct CacheState {
    /// The limit, in bytes.
    pub(super) limit: u64,
    /// Bytes that files take, and those that are reserved.
    pub(super) taken: u64,
    pub(super) files: HashMap<String, CachedFile>,
    /// The files that may be removed, by their last use.
    by_use: BTreeMap<u64, String>,
    uses: u64,
    /// The number of pins that name a file, which need not be there yet.
    pins: HashMap<String, u32>,
    open: VecDeque<String>,
    /// Whole files, with the digests of their pieces.
    pub(super) wholes: HashMap<String, Arc<[Digest]>>,
    /// The whole file that has a piece, and the number of the piece in it.
    pub(super) places: HashMap<Digest, (String, usize)>,
}

/// The name of the file of a piece.
pub(super) fn piece_name(digest: &Digest) -> String {
    format!("pieces/{digest}")
}

impl CacheState {
    fn settle(&mut self, name: &str) {
        if let Some(known) = self.files.get(name) {
            if known.users == 0 && known.pins == 0 {
                self.by_use.insert(known.used_at, name.to_owned());
            } else {
                self.by_use.remove(&known.used_at);
            }
        }
    }

    /// Notes that a file is used.
    pub(super) fn touch(&mut self, name: &str) {
        if let Some(known) = self.files.get_mut(name) {
            self.by_use.remove(&known.used_at);
            self.uses += 1;
            known.used_at = self.uses;
            self.settle(name);
        }
    }

    /// Adds a file, in place of another one with this name.
    pub(super) fn add(&mut self, name: &str, blocks: u64, verified: Verified) {
        self.forget(name);
        self.uses += 1;
        self.taken += blocks;
        let known = CachedFile {
            blocks,
            verified,
            used_at: self.uses,
            pins: u32::from(self.is_pinned(name)),
            ..CachedFile::default()
        };
        self.files.insert(name.to_owned(), known);
        self.settle(name);
    }

    /// More of a file is on the disk.
    pub(super) fn grow(&mut self, name: &str, blocks: u64) {
        if let Some(known) = self.files.get_mut(name) {
            known.blocks += blocks;
            self.taken += blocks;
        }
    }

    /// Forgets a file.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(known) = self.files.remove(name) {
            self.by_use.remove(&known.used_at);
            self.taken -= known.blocks;
        }
    }

    /// The file that was not used for the longest time, of those that may be removed.
    pub(super) fn oldest(&self) -> Option<String> {
        self.by_use.first_key_value().map(|(_, name)| name.clone())
    }

    /// Keeps a file open, and closes another one if there are too many.
    pub(super) fn keep_open(&mut self, name: &str, file: &Arc<File>) {
        let Some(known) = self.files.get_mut(name) else {
            return;
        };
        known.file = Some(Arc::clone(file));
        self.open.push_back(name.to_owned());
        while self.open.len() > MOST_OPEN
            && let Some(oldest) = self.open.pop_front()
        {
            if let Some(known) = self.files.get_mut(&oldest) {
                known.file = None;
            }
        }
    }

    /// Counts one who has a file open for the kernel. It is not removed meanwhile.
    pub(super) fn take(&mut self, name: &str) {
        if let Some(known) = self.files.get_mut(name) {
            known.users += 1;
            self.settle(name);
        }
    }

    /// The other way round.
    pub(super) fn release(&mut self, name: &str) {
        if let Some(known) = self.files.get_mut(name) {
            known.users = known.users.saturating_sub(1);
            self.settle(name);
        }
    }

    /// Whether the kernel has a file open.
    pub(super) fn is_in_use(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|known| known.users > 0)
    }

    /// Adds a whole file. Its parts are not on the disk yet, or may be.
    pub(super) fn add_whole(&mut self, name: &str, digests: Arc<[Digest]>, blocks: u64) {
        self.add(name, blocks, Verified::default());
        self.wholes.insert(name.to_owned(), Arc::clone(&digests));
        if blocks > 0 {
            for (part, digest) in digests.iter().enumerate() {
                self.place(digest, name, part);
            }
        }
    }

    /// A piece is in a whole file.
    pub(super) fn place(&mut self, digest: &Digest, name: &str, part: usize) {
        if self.places.contains_key(digest) {
            return;
        }
        self.places.insert(*digest, (name.to_owned(), part));
        if self.is_pinned(&piece_name(digest)) {
            self.change_pins(name, |pins| pins + 1);
        }
    }

    /// It is not there, or no longer.
    pub(super) fn displace(&mut self, digest: &Digest, name: &str) {
        if self.places.get(digest).is_some_and(|(at, _)| at == name) {
            self.places.remove(digest);
            if self.is_pinned(&piece_name(digest)) {
                self.change_pins(name, |pins| pins.saturating_sub(1));
            }
        }
    }

    /// Forgets which pieces a whole file has.
    pub(super) fn forget_whole(&mut self, name: &str) {
        let digests = self.wholes.remove(name);
        for digest in digests.iter().flat_map(|digests| digests.iter()) {
            self.displace(digest, name);
        }
    }

    /// A file stays as long as something pins it, once for each call.
    pub(super) fn pin(&mut self, name: &str) {
        let count = self.pins.entry(name.to_owned()).or_insert(0);
        *count += 1;
        if *count == 1 {
            self.change_all_pins(name, |pins| pins + 1);
        }
    }

    /// The other way round.
    pub(super) fn unpin(&mut self, name: &str) {
        let Some(count) = self.pins.get_mut(name) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.pins.remove(name);
            self.change_all_pins(name, |pins| pins.saturating_sub(1));
        }
    }

    /// Of a pinned piece both its own file and the whole one that has it stay.
    fn change_all_pins(&mut self, name: &str, change: impl Fn(u32) -> u32) {
        if let Some((whole, _)) = self.whole_of(name) {
            self.change_pins(&whole, &change);
        }
        self.change_pins(name, change);
    }

    fn change_pins(&mut self, name: &str, change: impl Fn(u32) -> u32) {
        if let Some(known) = self.files.get_mut(name) {
            known.pins = change(known.pins);
            self.settle(name);
        }
    }

    /// The whole file that has the piece with this name, and the number of the piece in it.
    pub(super) fn whole_of(&self, name: &str) -> Option<(String, usize)> {
        let digest = Digest::parse(name.strip_prefix("pieces/")?.as_bytes())?;
        self.places.get(&digest).cloned()
    }

    /// Whether nothing keeps a file.
    pub(super) fn is_removable(&self, name: &str) -> bool {
        let known = self.files.get(name);
        known.is_some_and(|known| known.users == 0 && known.pins == 0)
    }

    /// Whether something pins a file.
    pub(super) fn is_pinned(&self, name: &str) -> bool {
        self.pins.contains_key(name)
    }

    /// Returns the space of files that stay because of a pin, in bytes.
    pub(super) fn pinned(&self) -> u64 {
        let known = self.files.values().filter(|known| known.pins > 0);
        known.map(|known| known.blocks).sum()
    }
}
