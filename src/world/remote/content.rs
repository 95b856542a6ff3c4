//! The bytes of files, verified.
//!
//! A file is fetched in pieces of 4 MiB, whose digests its Archive tells: those that a scrub has recorded, so that content
//! that was damaged at its Archive is not taken for good either. Where a scrub has recorded the digest of the whole file
//! alone, it is fetched as a whole and compared with it, before its first byte is given. A piece that differs from its
//! digest is fetched once more, and then is an error.
//!
//! - [`arriving`]: the bytes that are fetched, on their way to the cache.

mod arriving;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::formats::fixity::Digest;
use crate::formats::inventory::CHUNK;
use crate::world::cache::{Cache, CachedText, InUse, Reserved};
use crate::world::error::ForeignError;
use crate::world::remote::fetching::{MOST_ATTEMPTS, Stopped, fetch};
use crate::world::remote::file::FilePiece;
use crate::world::remote::pace::Pace;
use crate::world::remote::requests::{RemoteServers, WINDOW, pieces};

pub(crate) use crate::world::remote::file::RemoteFile;
use arriving::ArrivingContent;

/// The number of pieces that stay in memory.
const MOST_RECENT: usize = 8;
/// The number of pieces that are fetched before they are asked for, where a file is read from beginning to end.
const AHEAD: u64 = 3;
/// The time for which a file is not read again for which a read has waited in vain.
const AGAIN: Duration = Duration::from_secs(1);
/// The most files whose digests are kept in memory.
const MOST_FILES: usize = 4096;

type PieceDigests = Arc<Mutex<HashMap<u64, Digest>>>;
type Turns = HashMap<(String, Option<u64>), Arc<tokio::sync::Mutex<()>>>;

/// Reads files.
#[derive(Debug)]
pub(crate) struct RemoteContent {
    remote: Arc<RemoteServers>,
    cache: Arc<Cache>,
    recent: Mutex<VecDeque<(Digest, Bytes)>>,
    digests: Mutex<HashMap<String, PieceDigests>>,
    /// Each piece is fetched once, for all who wait for it.
    turns: Mutex<Turns>,
}

impl RemoteContent {
    /// Reads from these Archives, through this cache.
    pub(crate) fn new(remote: Arc<RemoteServers>, cache: Arc<Cache>) -> RemoteContent {
        RemoteContent {
            remote,
            cache,
            recent: Mutex::default(),
            digests: Mutex::default(),
            turns: Mutex::default(),
        }
    }

    /// The part of a read that lies in the file: offset and length.
    fn part(file: &RemoteFile, offset: u64, length: u32) -> (u64, usize) {
        let left = file.size().saturating_sub(offset);
        let length = left.min(u64::from(length));
        (offset, usize::try_from(length).unwrap_or(0))
    }

    /// Bytes of a file that are in memory or in the cache. None if they must be fetched.
    pub(crate) fn now(&self, file: &RemoteFile, offset: u64, length: u32) -> Option<Vec<u8>> {
        let (offset, length) = RemoteContent::part(file, offset, length);
        if length == 0 {
            return Some(Vec::new());
        }
        let number = offset / CHUNK;
        if (offset + length as u64 - 1) / CHUNK != number {
            return None;
        }
        let piece = self.held(file, number)?;
        let bytes = piece.read(offset - number * CHUNK, length).ok()?;
        file.read_to
            .store(offset + length as u64, Ordering::Relaxed);
        file.read.fetch_add(length as u64, Ordering::Relaxed);
        Some(bytes)
    }

    /// Bytes of a file.
    pub(crate) async fn read(
        self: &Arc<Self>,
        file: &Arc<RemoteFile>,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, ForeignError> {
        let (mut at, length) = RemoteContent::part(file, offset, length);
        let end = at + length as u64;
        let is_onward = file.read_to.swap(end, Ordering::Relaxed) == offset;
        file.read.fetch_add(length as u64, Ordering::Relaxed);
        let mut bytes = Vec::with_capacity(length);
        while at < end {
            let number = at / CHUNK;
            if is_onward {
                self.fetch_ahead(file, number);
            }
            let piece = self.piece(file, number).await?;
            let start = at - number * CHUNK;
            let count = (end - at).min(CHUNK - start);
            let part = piece.read(start, usize::try_from(count).unwrap_or(0));
            let part = part.map_err(|error| ForeignError::Broken(format!("the cache: {error}")))?;
            at += count;
            bytes.extend(part);
        }
        Ok(bytes)
    }

    fn fetch_ahead(self: &Arc<Self>, file: &Arc<RemoteFile>, number: u64) {
        // A file that is fetched as a whole needs no help.
        if file.is_whole() {
            return;
        }
        let last = pieces(file.size());
        // The Archive may have to compute the next digests.
        let next = number - number % WINDOW + WINDOW;
        if number % WINDOW >= WINDOW / 2 && next < last && self.digest(file, next).is_none() {
            let (content, file) = (Arc::clone(self), Arc::clone(file));
            tokio::spawn(async move {
                let mut pace = Pace::begin();
                let asked = content.ask_digests(&file, next, &mut pace);
                if let Err(trouble) = asked.await {
                    log::debug!("{}: {trouble}", file.url);
                }
            });
        }
        for ahead in (number + 1..last).take(AHEAD as usize) {
            let key = (file.key().to_owned(), Some(ahead));
            if self.turns.lock().contains_key(&key) || self.held(file, ahead).is_some() {
                continue;
            }
            let (content, file) = (Arc::clone(self), Arc::clone(file));
            tokio::spawn(async move {
                if let Err(trouble) = content.piece(&file, ahead).await {
                    log::debug!("{}: {trouble}", file.url);
                }
            });
        }
    }

    /// A piece that is in memory or in the cache.
    fn held(&self, file: &RemoteFile, number: u64) -> Option<FilePiece> {
        let digest = self.digest(file, number)?;
        let recent = self.recent.lock();
        if let Some((_, bytes)) = recent.iter().find(|(known, _)| *known == digest) {
            return Some(FilePiece::Memory(bytes.clone()));
        }
        drop(recent);
        let held = self.cache.piece(&digest, file.piece_size(number))?;
        Some(FilePiece::Disk(held))
    }

    /// The digests of all pieces of a file, if they are known.
    fn all_digests(&self, file: &RemoteFile) -> Option<Vec<Digest>> {
        if file.is_short() && file.entry.digest.is_some() {
            return file.entry.digest.map(|digest| vec![digest]);
        }
        let known = self.digests_of(file);
        let known = known.lock();
        let count = pieces(file.size());
        // Most files that are opened are not there.
        if known.len() as u64 != count {
            return None;
        }
        (0..count)
            .map(|number| known.get(&number).copied())
            .collect()
    }

    /// The file of the cache that has the digests of the pieces of a file.
    pub(crate) fn digests_file(&self, file: &RemoteFile) -> String {
        Cache::file_of(CachedText::Digests, file.key())
    }

    /// The files of the cache that have what is known of a file.
    pub(crate) fn held_files(&self, file: &RemoteFile) -> Vec<String> {
        let pieces = file.pieces().filter_map(|number| self.digest(file, number));
        let pieces = pieces.map(|digest| Cache::piece_file(&digest));
        pieces.chain([self.digests_file(file)]).collect()
    }

    /// Whether all of a file is in the cache.
    pub(crate) fn is_held(&self, file: &RemoteFile) -> bool {
        let mut digests = file.pieces().map(|number| self.digest(file, number));
        digests.all(|digest| digest.is_some_and(|digest| self.cache.has_piece(&digest)))
    }

    /// Returns the space that a file takes in the cache, in bytes. `counted` has the pieces that are counted already;
    /// with `is_pinned`, a file that is pinned takes no more.
    pub(crate) fn takes(
        &self,
        file: &RemoteFile,
        is_pinned: bool,
        counted: &mut HashSet<Digest>,
    ) -> u64 {
        let mut bytes = 0;
        for number in file.pieces() {
            let digest = self.digest(file, number);
            let is_there = digest.is_some_and(|digest| {
                let is_kept = is_pinned && self.cache.is_pinned(&Cache::piece_file(&digest));
                is_kept || !counted.insert(digest)
            });
            if !is_there {
                bytes += Cache::taken_by(file.piece_size(number));
            }
        }
        bytes
    }

    /// Fetches a piece into the cache, if it is not there. `keep` is called with the name of its file as soon as that is
    /// known.
    pub(crate) async fn load(
        self: &Arc<Self>,
        file: &Arc<RemoteFile>,
        number: u64,
        keep: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), ForeignError> {
        self.fetch_ahead(file, number);
        for _ in 0..MOST_ATTEMPTS {
            let piece = self.piece(file, number).await?;
            let digest = self.digest(file, number).ok_or(ForeignError::Full)?;
            keep(Cache::piece_file(&digest));
            let (cache, size) = (Arc::clone(&self.cache), file.piece_size(number));
            let put = tokio::task::spawn_blocking(move || {
                // It may have been removed before it was kept.
                if cache.piece(&digest, size).is_none()
                    && let FilePiece::Memory(bytes) = piece
                    && let Ok(reserved) = cache.reserve(size)
                {
                    cache.put_piece(reserved, &digest, &bytes);
                }
                cache.piece(&digest, size).is_some()
            });
            if put.await.unwrap_or(false) {
                return Ok(());
            }
        }
        Err(ForeignError::Full)
    }

    /// Forgets what is known of the pieces of a file.
    pub(crate) fn forget(&self, file: &RemoteFile) {
        self.digests.lock().remove(file.key());
    }

    /// The file as a complete one on the disk, if there is one, which is verified.
    pub(crate) fn whole(&self, file: &RemoteFile) -> Option<InUse> {
        let digests = self.all_digests(file)?;
        self.cache.whole(&digests, file.size())
    }

    /// Makes a complete file of the pieces of one that is all in the cache, so that the kernel can read it.
    pub(crate) fn assemble(&self, file: &RemoteFile) {
        if let Some(digests) = self.all_digests(file) {
            self.cache.assemble(&digests, file.size());
        }
    }

    /// The digest of a piece, if it is known.
    fn digest(&self, file: &RemoteFile, number: u64) -> Option<Digest> {
        if file.is_short() && file.entry.digest.is_some() {
            return file.entry.digest;
        }
        self.digests_of(file).lock().get(&number).copied()
    }

    /// The digests of a file that are known, also from an earlier run.
    fn digests_of(&self, file: &RemoteFile) -> PieceDigests {
        if let Some(known) = self.digests.lock().get(file.key()) {
            return Arc::clone(known);
        }
        let text = self
            .cache
            .get(CachedText::Digests, file.key())
            .unwrap_or_default();
        let text = String::from_utf8(text).unwrap_or_default();
        let parsed = text.lines().filter_map(|line| {
            let (number, digest) = line.split_once(' ')?;
            Some((number.parse().ok()?, Digest::parse(digest.as_bytes())?))
        });
        let digests = Arc::new(Mutex::new(parsed.collect()));
        let mut all = self.digests.lock();
        if all.len() >= MOST_FILES {
            all.clear();
        }
        Arc::clone(all.entry(file.key().to_owned()).or_insert(digests))
    }

    /// Remembers digests of pieces, from the one with this number on.
    fn learn(&self, file: &RemoteFile, first: u64, digests: &[Digest]) {
        let known = self.digests_of(file);
        let text: String = {
            let mut known = known.lock();
            known.extend((first..).zip(digests.iter().copied()));
            let mut lines: Vec<_> = known.iter().collect();
            lines.sort_by_key(|(number, _)| **number);
            let lines = lines.into_iter();
            lines
                .map(|(number, digest)| format!("{number} {digest}\n"))
                .collect()
        };
        self.cache
            .put(CachedText::Digests, file.key(), text.as_bytes());
    }

    /// Forgets the digests of the pieces of a file.
    fn unlearn(&self, file: &RemoteFile) {
        self.digests.lock().remove(file.key());
        self.cache.drop_text(CachedText::Digests, file.key());
    }

    /// A piece, which is fetched if it is not held.
    async fn piece(&self, file: &RemoteFile, number: u64) -> Result<FilePiece, ForeignError> {
        let is_whole = file.is_whole();
        let is_verified = || self.digest(file, number).is_some();
        // Until the whole file has been compared, no piece of it is read.
        let turn_of = if is_whole && !is_verified() {
            None
        } else {
            Some(number)
        };
        let key = (file.key().to_owned(), turn_of);
        let turn = Arc::clone(self.turns.lock().entry(key.clone()).or_default());
        let found = {
            let _turn = turn.lock().await;
            match self.held(file, number) {
                Some(piece) => Ok(piece),
                None => self.fetch(file, number, is_whole && !is_verified()).await,
            }
        };
        let mut turns = self.turns.lock();
        if Arc::strong_count(&turn) <= 2 {
            turns.remove(&key);
        }
        found
    }

    /// Fetches a piece, again and again while no server answers, until no byte has come for too long.
    async fn fetch(
        &self,
        file: &RemoteFile,
        number: u64,
        is_whole: bool,
    ) -> Result<FilePiece, ForeignError> {
        // The kernel asks again for each page of a part that was not delivered.
        if file.failed.lock().is_some_and(|at| at.elapsed() < AGAIN) {
            return Err(ForeignError::Broken(
                "it did not answer a moment ago".to_owned(),
            ));
        }
        let mut arriving = ArrivingContent::new(self, file, (!is_whole).then_some(number));
        match fetch(&file.url, &mut arriving).await {
            Ok(Some(piece)) => Ok(piece),
            Ok(None) => Box::pin(self.fetch(file, number, false)).await,
            Err(Stopped::ForeignError(ForeignError::Unreachable(what))) => {
                log::warn!("{}: {what}", file.url);
                *file.failed.lock() = Some(Instant::now());
                // Not EHOSTUNREACH: programs know EIO as the error of a read.
                Err(ForeignError::Broken(what))
            }
            Err(Stopped::ForeignError(trouble)) => Err(trouble),
            Err(Stopped::Disk(error)) => Err(ForeignError::Broken(format!("the cache: {error}"))),
        }
    }

    /// Asks for the digests of a piece and of its neighbours, if they are not known.
    async fn ask_digests(
        &self,
        file: &RemoteFile,
        number: u64,
        pace: &mut Pace,
    ) -> Result<(), ForeignError> {
        let _turn = file.asking.lock().await;
        if self.digest(file, number).is_some() {
            return Ok(());
        }
        let (first, until) = (number - number % WINDOW, pace.until());
        let digests = self.remote.digests(&file.url, &file.entry, first, until);
        self.learn(file, first, &digests.await?);
        *pace = Pace::begin();
        Ok(())
    }

    /// Keeps the bytes of a piece, if they have its digest or else the one that their Archive announces.
    async fn accept(
        &self,
        file: &RemoteFile,
        number: u64,
        (bytes, found): (Bytes, Digest),
        announced: Option<Digest>,
        reserved: Option<Reserved>,
    ) -> Result<FilePiece, ForeignError> {
        let known = self.digest(file, number);
        if known.or(announced) != Some(found) {
            // The digests may have been damaged on the way as well.
            self.unlearn(file);
            let what = "the bytes differ from their digest";
            return Err(ForeignError::Broken(what.to_owned()));
        }
        if known.is_none() {
            self.learn(file, number, &[found]);
        }
        self.keep_recent(found, bytes.clone());
        if let Some(reserved) = reserved {
            let (cache, bytes) = (Arc::clone(&self.cache), bytes.clone());
            let put =
                tokio::task::spawn_blocking(move || cache.put_piece(reserved, &found, &bytes));
            let _ = put.await;
        }
        Ok(FilePiece::Memory(bytes))
    }

    fn keep_recent(&self, digest: Digest, bytes: Bytes) {
        let mut recent = self.recent.lock();
        if recent.len() >= MOST_RECENT {
            recent.pop_front();
        }
        recent.push_back((digest, bytes));
    }

    async fn put(&self, piece: &mut Vec<u8>) -> Digest {
        let bytes = Bytes::from(std::mem::take(piece));
        let cache = Arc::clone(&self.cache);
        let put = tokio::task::spawn_blocking(move || {
            let digest = Digest(Sha256::digest(&bytes).into());
            if let Ok(reserved) = cache.reserve(bytes.len() as u64) {
                cache.put_piece(reserved, &digest, &bytes);
            }
            digest
        });
        put.await.unwrap_or(Digest([0; 32]))
    }
}

#[cfg(test)]
mod tests;
