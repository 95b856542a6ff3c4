//! What has been fetched, on disk, within a limit.
//!
//! A file of the cache is written under another name and renamed, and its content is compared with its digest before it
//! is used: a file that a crash has torn, or that was changed, is never delivered, but fetched again. What was not used
//! for the longest time is removed first. Room is reserved before a download.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use sha2::{Digest as _, Sha256};

use crate::formats::fixity::Digest;
use crate::world::trouble::Trouble;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The size of a block of the disk, in bytes: a file takes whole ones.
const BLOCK: u64 = 4096;
/// What the directories of the cache take, in bytes.
const OVERHEAD: u64 = 4 << 20;
/// The least limit, in bytes.
pub(crate) const LEAST: u64 = 64 << 20;

/// Why a cache cannot be used.
#[derive(Debug)]
pub enum CacheError {
    /// It is not a directory that can be written.
    Directory(PathBuf, std::io::Error),
    /// Another process uses it.
    Used(PathBuf),
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
                "the cache '{path}' is used by another 'ibifs world'; name another directory with --cache",
                path = path.display()
            ),
        }
    }
}

display_message!(CacheError);

impl std::error::Error for CacheError {}

/// What tells whether a file of the cache was changed since it was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    number: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> std::io::Result<Stamp> {
        let found = file.metadata()?;
        Ok(Stamp {
            number: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

#[derive(Debug)]
struct Known {
    blocks: u64,
    used_at: u64,
    verified: Option<Stamp>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that files take, and those that are reserved.
    taken: u64,
    files: HashMap<String, Known>,
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

impl State {
    fn touch(&mut self, name: &str) {
        if let Some(known) = self.files.get_mut(name) {
            self.by_use.remove(&known.used_at);
            self.uses += 1;
            known.used_at = self.uses;
            self.by_use.insert(self.uses, name.to_owned());
        }
    }

    fn add(&mut self, name: &str, blocks: u64, verified: Option<Stamp>) {
        self.forget(name);
        self.uses += 1;
        self.by_use.insert(self.uses, name.to_owned());
        let used_at = self.uses;
        self.taken += blocks;
        let known = Known {
            blocks,
            used_at,
            verified,
        };
        self.files.insert(name.to_owned(), known);
    }

    fn forget(&mut self, name: &str) {
        if let Some(known) = self.files.remove(name) {
            self.by_use.remove(&known.used_at);
            self.taken -= known.blocks;
        }
    }
}

/// A cache that this process alone uses.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    /// Keeps others out while it is open.
    _lock: File,
    limit: u64,
    state: Mutex<State>,
    temporary: AtomicU64,
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

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes, with what is reserved.
    pub(crate) bytes: u64,
    /// The limit in bytes.
    pub(crate) limit: u64,
    /// Files.
    pub(crate) files: usize,
}

/// What is kept in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The inventory of an item.
    Item,
    /// The digests of the pieces of a file.
    Digests,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Kind::Item => "items",
            Kind::Digests => "digests",
        }
    }
}

const PIECES: &str = "pieces";
const TEMPORARY: &str = "new";

fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).max(1) * BLOCK
}

impl Cache {
    /// The cache in a directory, which is made if it is missing, with a limit in bytes.
    pub(crate) fn open(directory: &Path, limit: u64) -> Result<Arc<Cache>, CacheError> {
        let failed = |error| CacheError::Directory(directory.to_owned(), error);
        let folders = [PIECES, Kind::Item.folder(), Kind::Digests.folder()];
        std::fs::create_dir_all(directory).map_err(failed)?;
        let mut lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join("lock"))
            .map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(CacheError::Used(directory.to_owned()));
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        // For people who look for the process.
        lock.set_len(0).map_err(failed)?;
        writeln!(lock, "{}", std::process::id()).map_err(failed)?;
        // What a crash has left.
        let temporary = directory.join(TEMPORARY);
        match std::fs::remove_dir_all(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        std::fs::create_dir(&temporary).map_err(failed)?;
        let mut found = Vec::new();
        for folder in folders {
            let path = directory.join(folder);
            std::fs::create_dir_all(&path).map_err(failed)?;
            for entry in std::fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let (Ok(about), Ok(name)) = (entry.metadata(), entry.file_name().into_string())
                else {
                    continue;
                };
                let used = about.modified().ok();
                found.push((used, format!("{folder}/{name}"), about.len()));
            }
        }
        found.sort();
        let mut state = State::default();
        for (_, name, size) in found {
            state.add(&name, blocks(size), None);
        }
        let cache = Arc::new(Cache {
            directory: directory.to_owned(),
            _lock: lock,
            limit: limit.max(LEAST) - OVERHEAD,
            state: Mutex::new(state),
            temporary: AtomicU64::new(0),
        });
        // The limit may be lower than it was.
        drop(cache.reserve(0));
        Ok(cache)
    }

    /// What it holds.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.state.lock();
        Usage {
            bytes: state.taken + OVERHEAD,
            limit: self.limit + OVERHEAD,
            files: state.files.len(),
        }
    }

    /// Makes room for a file of this size.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reserved, Trouble> {
        let bytes = if bytes == 0 { 0 } else { blocks(bytes) };
        let mut removed = Vec::new();
        let mut state = self.state.lock();
        while state.taken + bytes > self.limit {
            let Some((_, name)) = state.by_use.first_key_value() else {
                break;
            };
            let name = name.clone();
            state.forget(&name);
            removed.push(name);
        }
        // Removed while the lock is held, so that the limit holds on the disk, too.
        for name in removed {
            if let Err(error) = std::fs::remove_file(self.directory.join(&name)) {
                log::debug!("{name}: {error}");
            }
        }
        if state.taken + bytes > self.limit {
            return Err(Trouble::Full);
        }
        state.taken += bytes;
        drop(state);
        Ok(Reserved {
            cache: Arc::clone(self),
            bytes,
        })
    }

    /// Writes a file for which room was reserved.
    fn write(
        &self,
        reserved: Reserved,
        name: &str,
        parts: &[&[u8]],
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
        let size: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let written: std::io::Result<File> = write();
        let mut state = self.state.lock();
        let named = written.and_then(|file| {
            std::fs::rename(&temporary, self.directory.join(name))?;
            // The renaming changes the time of the inode.
            Stamp::of(&file)
        });
        match named {
            Ok(stamp) => state.add(name, blocks(size), is_verified.then_some(stamp)),
            Err(error) => {
                drop(state);
                let _ = std::fs::remove_file(&temporary);
                return Err(error);
            }
        }
        drop(state);
        drop(reserved);
        Ok(())
    }

    fn open_file(&self, name: &str) -> Option<File> {
        let opened = File::open(self.directory.join(name));
        opened.ok()
    }

    fn remove(&self, name: &str) {
        let mut state = self.state.lock();
        state.forget(name);
        let _ = std::fs::remove_file(self.directory.join(name));
    }

    /// Keeps a piece of a file that has this digest.
    pub(crate) fn put_piece(&self, reserved: Reserved, digest: &Digest, bytes: &[u8]) {
        let name = format!("{PIECES}/{digest}");
        if let Err(error) = self.write(reserved, &name, &[bytes], true) {
            log::warn!("{name} is not cached: {error}");
        }
    }

    /// A piece of a file, by its digest, of this size. None if it is not held, or is not what it was; then it is
    /// removed.
    pub(crate) fn piece(&self, digest: &Digest, size: u64) -> Option<File> {
        let name = format!("{PIECES}/{digest}");
        let verified = {
            let mut state = self.state.lock();
            let verified = state.files.get(&name)?.verified;
            state.touch(&name);
            verified
        };
        let file = self.open_file(&name)?;
        let stamp = Stamp::of(&file).ok()?;
        if verified == Some(stamp) && stamp.size == size {
            return Some(file);
        }
        if stamp.size == size && digest_of(&file, size).is_ok_and(|found| found == *digest) {
            if let Some(known) = self.state.lock().files.get_mut(&name) {
                known.verified = Some(stamp);
            }
            return Some(file);
        }
        log::warn!("the cached piece {digest} is damaged; it is fetched again");
        self.remove(&name);
        None
    }

    /// Whether a file of a piece is still what was verified.
    pub(crate) fn is_intact(&self, digest: &Digest, file: &File) -> bool {
        let name = format!("{PIECES}/{digest}");
        let verified = self
            .state
            .lock()
            .files
            .get(&name)
            .and_then(|it| it.verified);
        match (Stamp::of(file), verified) {
            (Ok(stamp), Some(verified)) => stamp == verified,
            // It was removed to make room, and is read to its end: only its link count has changed.
            _ => false,
        }
    }

    /// Keeps a text about an item or a file.
    pub(crate) fn put(self: &Arc<Self>, kind: Kind, name: &str, text: &[u8]) {
        let path = format!("{}/{name}", kind.folder());
        let digest = Digest(Sha256::digest(text).into());
        let head = format!("{digest}\n");
        let Ok(reserved) = self.reserve((head.len() + text.len()) as u64) else {
            return;
        };
        if let Err(error) = self.write(reserved, &path, &[head.as_bytes(), text], false) {
            log::warn!("{path} is not cached: {error}");
        }
    }

    /// A text about an item or a file. None if it is not held, or is not what it was.
    pub(crate) fn get(&self, kind: Kind, name: &str) -> Option<Vec<u8>> {
        let path = format!("{}/{name}", kind.folder());
        {
            let mut state = self.state.lock();
            state.files.get(&path)?;
            state.touch(&path);
        }
        let mut text = std::fs::read(self.directory.join(&path)).ok()?;
        let cut = text.iter().position(|byte| *byte == b'\n')?;
        let known = Digest::parse(&text[..cut]);
        text.drain(..=cut);
        if known == Some(Digest(Sha256::digest(&text).into())) {
            return Some(text);
        }
        self.remove(&path);
        None
    }

    /// Removes a text about an item or a file.
    pub(crate) fn drop_text(&self, kind: Kind, name: &str) {
        self.remove(&format!("{}/{name}", kind.folder()));
    }
}

/// The digest of a file of this size.
fn digest_of(file: &File, size: u64) -> std::io::Result<Digest> {
    let (mut digest, mut buffer, mut at) = (Sha256::new(), vec![0; 256 << 10], 0);
    while at < size {
        let most = usize::try_from(size - at).map_or(buffer.len(), |left| left.min(buffer.len()));
        let buffer = &mut buffer[..most];
        file.read_exact_at(buffer, at)?;
        digest.update(&*buffer);
        at += buffer.len() as u64;
    }
    Ok(Digest(digest.finalize().into()))
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "bytes {} limit {} files {}",
            self.bytes, self.limit, self.files
        )
    }
}
