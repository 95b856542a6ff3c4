//! A file of an Archive, and its pieces.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::formats::hex::Hex;
use crate::formats::inventory::{CHUNK, FileEntry};
use crate::world::cache::HeldPiece;
use crate::world::remote::requests::pieces;

/// A file of an Archive, in one version.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    pub(crate) url: String,
    pub(crate) entry: FileEntry,
    key: String,
    /// The position at which the last read ended.
    pub(crate) read_to: AtomicU64,
    /// The time at which a read has waited in vain.
    pub(crate) failed: Mutex<Option<Instant>>,
    /// The number of bytes that were read.
    pub(crate) read: AtomicU64,
    /// The digests of its pieces are asked for once, for all who wait for them.
    pub(crate) asking: tokio::sync::Mutex<()>,
}

impl RemoteFile {
    /// The file with this URL.
    pub(crate) fn new(url: String, entry: FileEntry) -> RemoteFile {
        let text = format!("{url}\0{}\0{}", entry.version, entry.size);
        RemoteFile {
            key: Hex(&Sha256::digest(text)).to_string(),
            url,
            entry,
            read_to: AtomicU64::new(0),
            failed: Mutex::default(),
            read: AtomicU64::new(0),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns a key that is different for each version of each file.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.entry.size
    }

    /// The numbers of its pieces.
    pub(crate) fn pieces(&self) -> std::ops::Range<u64> {
        0..pieces(self.entry.size)
    }

    /// The size of a piece in bytes.
    pub(crate) fn piece_size(&self, number: u64) -> u64 {
        self.entry.size.saturating_sub(number * CHUNK).min(CHUNK)
    }

    /// Whether so much of it was read that it may be read again.
    pub(crate) fn is_read(&self) -> bool {
        !self.is_short() && self.read.load(Ordering::Relaxed) >= self.entry.size / 2
    }

    /// Whether it is fetched as a whole: its digest is recorded, and those of its pieces are not.
    pub(crate) fn is_whole(&self) -> bool {
        self.entry.digest.is_some() && !self.entry.has_pieces && !self.is_short()
    }

    /// Whether it has one piece at most.
    pub(crate) fn is_short(&self) -> bool {
        self.entry.size <= CHUNK
    }
}

/// A piece of a file, whose digest has been compared.
#[derive(Clone, Debug)]
pub(crate) enum FilePiece {
    /// In memory.
    Memory(Bytes),
    /// In the cache.
    Disk(HeldPiece),
}

impl FilePiece {
    /// Reads a part of it.
    pub(crate) fn read(&self, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
        match self {
            FilePiece::Memory(bytes) => {
                let start = usize::try_from(offset).map_err(std::io::Error::other)?;
                let part = bytes.get(start..start + length);
                part.map(<[u8]>::to_vec)
                    .ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
            }
            FilePiece::Disk(held) => {
                let mut bytes = vec![0; length];
                held.file.read_exact_at(&mut bytes, held.start + offset)?;
                Ok(bytes)
            }
        }
    }
}
