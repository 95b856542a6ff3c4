//! The files that have been fetched, on disk, within a limit.
//!
//! A file of the cache is written under another name and renamed, and its content is compared with its digest before it
//! is used: a file that a crash has torn, or that was changed, is never delivered, but fetched again. The files
//! not used for the longest time are removed first, except those that are pinned, or that the kernel has open. Room is
//! reserved before a download.
//!
//! - [`place`]: the directory, and whose it is.
//! - [`stamp`]: what tells that a file was not changed since it was verified.
//! - [`state`]: the files in memory: what they take, when they were used, and which of them stay.
//! - [`pieces`]: the content of files, by digest.
//! - [`wholes`]: complete files of several pieces, for the kernel.
//! - [`pins`]: what stays.

#![expect(
    clippy::disallowed_methods,
    reason = "the directory is reached by its descriptor, and others may not write it"
)]

mod pieces;
mod pins;
mod place;
mod stamp;
mod state;
mod wholes;

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use sha2::{Digest as _, Sha256};

use crate::formats::fixity::Digest;
use crate::os::opening::by_descriptor;
use crate::world::error::ForeignError;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use stamp::{FileStamp, Verified};
use state::CacheState;

pub(crate) use pieces::HeldPiece;
pub(crate) use pins::{Keeping, Pin};
pub(crate) use place::open_directory;
pub(crate) use wholes::InUse;

/// The size of a block of the disk, in bytes: a file takes whole ones.
const BLOCK: u64 = 4096;
/// The space that the directories of the cache take, in bytes.
const OVERHEAD: u64 = 4 << 20;
/// The least limit, in bytes.
pub(crate) const LEAST: u64 = 64 << 20;
/// The limit where none is named, in bytes.
const USUAL: u64 = 10 << 30;

/// The reason why a cache cannot be used.
#[derive(Debug)]
pub enum CacheError {
    /// It is not a directory that can be written.
    Directory(PathBuf, std::io::Error),
    /// Another process uses it, and does not answer.
    Used(PathBuf),
    /// Other users may write it, or have put a link in its place.
    Open(PathBuf),
    /// It holds other files, and none of a cache.
    Foreign(PathBuf),
    /// More is pinned in it than the limit, in bytes.
    Pinned(PathBuf, u64),
}

impl Localize for CacheError {
    fn message(&self) -> Message {
        match self {
            CacheError::Directory(path, error) => message!(
                "the cache '{path}': {error}; name another directory with --cache",
                path = path.display(),
                error = error
            ),
            CacheError::Used(path) => message!(
                "the cache '{path}' is used by a process that does not answer; name another directory with --cache",
                path = path.display()
            ),
            CacheError::Open(path) => message!(
                "the cache '{path}' belongs to another user, or others may write it; name another directory with --cache",
                path = path.display()
            ),
            CacheError::Foreign(path) => message!(
                "'{path}' is not empty and not a cache; name another directory with --cache",
                path = path.display()
            ),
            CacheError::Pinned(path, bytes) => message!(
                "{bytes} bytes are pinned in the cache '{path}'; name a higher --cache-size",
                bytes,
                path = path.display()
            ),
        }
    }
}

display_message!(CacheError);

impl std::error::Error for CacheError {}

/// A cache that this process alone uses.
#[derive(Debug)]
pub(crate) struct Cache {
    /// The directory as its user named it, for messages and other processes.
    name: PathBuf,
    /// The same directory by its descriptor: who may rename it, or a directory above it, changes nothing for this process.
    directory: PathBuf,
    _opened: OwnedFd,
    /// Keeps others out while it is open.
    _lock: File,
    state: Mutex<CacheState>,
    temporary: AtomicU64,
    pins: Mutex<pins::Pins>,
    /// Only one pin is made at a time.
    pub(crate) pinning: tokio::sync::Mutex<()>,
}

/// Room for a file that will be fetched. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    cache: Arc<Cache>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.cache.state.lock().taken -= self.bytes;
    }
}

/// The figures of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheUsage {
    /// Bytes, with what is reserved.
    pub(crate) bytes: u64,
    /// The limit in bytes.
    pub(crate) limit: u64,
    /// Files.
    pub(crate) files: usize,
}

/// A kind of file in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachedText {
    /// The inventory of an item.
    Item,
    /// The digests of the pieces of a file.
    Digests,
    /// The digests of the pieces of a whole file, by its name.
    List,
    /// An item that is pinned, and its files.
    Pin,
    /// The names below a level.
    Level,
}

impl CachedText {
    fn folder(self) -> &'static str {
        match self {
            CachedText::Item => "items",
            CachedText::Digests => "digests",
            CachedText::List => "lists",
            CachedText::Pin => "pins",
            CachedText::Level => "levels",
        }
    }
}

const PIECES: &str = "pieces";
const WHOLES: &str = "files";
const TEMPORARY: &str = "new";

fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).max(1) * BLOCK
}

impl Cache {
    /// The cache in a directory, which is made if it is missing, with a limit in bytes.
    pub(crate) fn open(name: &Path, limit: Option<u64>) -> Result<Arc<Cache>, CacheError> {
        let failed = |error| CacheError::Directory(name.to_owned(), error);
        let opened = open_directory(name)?;
        let directory = PathBuf::from(by_descriptor(opened.as_fd()));
        let mut lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join("lock"))
            .map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(CacheError::Used(name.to_owned()));
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        // For people who look for the process.
        lock.set_len(0).map_err(failed)?;
        writeln!(lock, "{}", std::process::id()).map_err(failed)?;
        // A crash has left it.
        let temporary = directory.join(TEMPORARY);
        match std::fs::remove_dir_all(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        std::fs::create_dir(&temporary).map_err(failed)?;
        let cache = Arc::new(Cache {
            name: name.to_owned(),
            directory,
            _opened: opened,
            _lock: lock,
            state: Mutex::default(),
            temporary: AtomicU64::new(0),
            pins: Mutex::default(),
            pinning: tokio::sync::Mutex::default(),
        });
        cache.read_files().map_err(failed)?;
        cache.read_lists();
        cache.read_pins();
        // The limit may be lower than it was.
        cache.set_limit(limit.unwrap_or(USUAL))?;
        Ok(cache)
    }

    /// Finds the files of an earlier run.
    fn read_files(&self) -> std::io::Result<()> {
        let kinds = [
            CachedText::Item,
            CachedText::Digests,
            CachedText::List,
            CachedText::Pin,
            CachedText::Level,
        ]
        .map(CachedText::folder);
        let mut found = Vec::new();
        for folder in kinds.into_iter().chain([PIECES, WHOLES]) {
            let path = self.directory.join(folder);
            std::fs::create_dir_all(&path)?;
            for entry in std::fs::read_dir(&path)? {
                let entry = entry?;
                let (Ok(about), Ok(name)) = (entry.metadata(), entry.file_name().into_string())
                else {
                    continue;
                };
                let used = about.modified().ok();
                // A file may have holes.
                let size = match folder {
                    WHOLES => about.blocks() * 512,
                    _ => about.len(),
                };
                found.push((used, format!("{folder}/{name}"), size));
            }
        }
        found.sort();
        let mut state = self.state.lock();
        for (_, name, size) in found {
            state.add(&name, blocks(size), Verified::default());
        }
        Ok(())
    }

    /// The directory as its user named it.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// The directory, for this process alone.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sets the limit in bytes, and removes what is over it.
    pub(crate) fn set_limit(self: &Arc<Self>, limit: u64) -> Result<(), CacheError> {
        let limit = limit.max(LEAST) - OVERHEAD;
        {
            let mut state = self.state.lock();
            let pinned = state.pinned();
            if pinned > limit {
                return Err(CacheError::Pinned(self.name.clone(), pinned));
            }
            state.limit = limit;
        }
        drop(self.reserve(0));
        Ok(())
    }

    /// Returns its figures.
    pub(crate) fn usage(&self) -> CacheUsage {
        let state = self.state.lock();
        CacheUsage {
            bytes: state.taken + OVERHEAD,
            limit: state.limit + OVERHEAD,
            files: state.files.len(),
        }
    }

    /// Makes room for a file of this size.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reserved, ForeignError> {
        let bytes = if bytes == 0 { 0 } else { blocks(bytes) };
        let mut state = self.state.lock();
        if bytes > state.limit {
            return Err(ForeignError::Full);
        }
        while state.taken + bytes > state.limit {
            // Removed while the lock is held, so that the limit holds on the disk, too.
            let Some(name) = state.oldest() else {
                return Err(ForeignError::Full);
            };
            self.discard(&mut state, &name);
        }
        state.taken += bytes;
        drop(state);
        Ok(Reserved {
            cache: Arc::clone(self),
            bytes,
        })
    }

    /// Removes files until at least so many bytes of the disk are free again.
    fn make_room(&self, bytes: u64) -> bool {
        let mut state = self.state.lock();
        let until = state.taken.saturating_sub(bytes);
        while state.taken > until {
            let Some(name) = state.oldest() else {
                return false;
            };
            self.discard(&mut state, &name);
        }
        true
    }

    /// Removes a file.
    fn discard(&self, state: &mut CacheState, name: &str) {
        state.forget(name);
        if let Err(error) = std::fs::remove_file(self.directory.join(name)) {
            log::debug!("{name}: {error}");
        }
        if let Some(whole) = name.strip_prefix("files/") {
            state.forget_whole(name);
            let list = format!("{}/{whole}", CachedText::List.folder());
            state.forget(&list);
            let _ = std::fs::remove_file(self.directory.join(list));
        }
    }

    /// Writes a file for which room was reserved. If the disk is full, others are removed.
    fn write(
        &self,
        reserved: Reserved,
        name: &str,
        parts: &[&[u8]],
        is_verified: bool,
    ) -> std::io::Result<()> {
        let size: u64 = parts.iter().map(|part| part.len() as u64).sum();
        match self.write_now(name, parts, size, is_verified) {
            Err(error)
                if error.kind() == std::io::ErrorKind::StorageFull
                    && self.make_room(2 * blocks(size)) =>
            {
                self.write_now(name, parts, size, is_verified)?;
            }
            done => done?,
        }
        drop(reserved);
        Ok(())
    }

    fn write_now(
        &self,
        name: &str,
        parts: &[&[u8]],
        size: u64,
        is_verified: bool,
    ) -> std::io::Result<()> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(TEMPORARY).join(number.to_string());
        let write = || {
            let mut file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&temporary)?;
            for part in parts {
                file.write_all(part)?;
            }
            Ok(file)
        };
        let written: std::io::Result<File> = write();
        let mut state = self.state.lock();
        let named = written.and_then(|file| {
            std::fs::rename(&temporary, self.directory.join(name))?;
            // The renaming changes the time of the inode.
            FileStamp::of(&file)
        });
        match named {
            Ok(stamp) => {
                let verified = is_verified.then(|| Verified::whole(stamp));
                state.add(name, blocks(size), verified.unwrap_or_default());
                Ok(())
            }
            Err(error) => {
                drop(state);
                let _ = std::fs::remove_file(&temporary);
                Err(error)
            }
        }
    }

    fn remove(&self, name: &str) {
        self.discard(&mut self.state.lock(), name);
    }

    /// Keeps a text about an item or a file.
    pub(crate) fn put(self: &Arc<Self>, kind: CachedText, name: &str, text: &[u8]) {
        if let Err(trouble) = self.put_text(kind, name, text) {
            log::warn!("{}/{name} is not cached: {trouble}", kind.folder());
        }
    }

    fn put_text(
        self: &Arc<Self>,
        kind: CachedText,
        name: &str,
        text: &[u8],
    ) -> Result<(), ForeignError> {
        let path = format!("{}/{name}", kind.folder());
        let digest = Digest(Sha256::digest(text).into());
        let head = format!("{digest}\n");
        let reserved = self.reserve((head.len() + text.len()) as u64)?;
        let written = self.write(reserved, &path, &[head.as_bytes(), text], false);
        written.map_err(|error| ForeignError::Broken(error.to_string()))
    }

    /// A text about an item or a file. None if it is not held, or is not what it was.
    pub(crate) fn get(&self, kind: CachedText, name: &str) -> Option<Vec<u8>> {
        let path = format!("{}/{name}", kind.folder());
        {
            let mut state = self.state.lock();
            state.files.get(&path)?;
            state.touch(&path);
        }
        let mut text = std::fs::read(self.directory.join(&path)).ok()?;
        if let Some(cut) = text.iter().position(|byte| *byte == b'\n') {
            let known = Digest::parse(&text[..cut]);
            text.drain(..=cut);
            if known == Some(Digest(Sha256::digest(&text).into())) {
                return Some(text);
            }
        }
        self.remove(&path);
        None
    }

    /// Removes a text about an item or a file.
    pub(crate) fn drop_text(&self, kind: CachedText, name: &str) {
        self.remove(&format!("{}/{name}", kind.folder()));
    }

    /// The file of a text about an item or a file.
    pub(crate) fn file_of(kind: CachedText, name: &str) -> String {
        format!("{}/{name}", kind.folder())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let state = self.state.lock();
        let names = state.files.keys();
        names
            .filter(|name| name.split('/').next() == Some(folder))
            .cloned()
            .collect()
    }
}

impl fmt::Display for CacheUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "bytes {} limit {} files {}",
            self.bytes, self.limit, self.files
        )
    }
}

#[cfg(test)]
mod tests;
