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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64, has_digest: bool, has_pieces: bool, version: &str) -> RemoteFile {
        let entry = FileEntry {
            size,
            version: version.to_owned(),
            digest: has_digest.then_some(crate::formats::fixity::Digest([0; 32])),
            has_pieces,
            identity: None,
        };
        RemoteFile::new("http://a.org/x".to_owned(), entry)
    }

    #[test]
    fn a_file_has_pieces_of_four_mebibytes_and_a_rest() {
        for (size, pieces, last) in [
            (0, 0..0, 0),
            (1, 0..1, 1),
            (CHUNK, 0..1, CHUNK),
            (CHUNK + 1, 0..2, 1),
            (3 * CHUNK, 0..3, CHUNK),
        ] {
            let file = file(size, false, false, "1");
            assert_eq!(file.pieces(), pieces, "{size}");
            let end = file.pieces().end.saturating_sub(1);
            assert_eq!(file.piece_size(end), last, "{size}");
            assert_eq!(file.piece_size(9), 0);
        }
    }

    #[test]
    fn a_long_file_without_digests_of_pieces_is_fetched_as_a_whole() {
        for (size, has_digest, has_pieces, is_whole) in [
            (CHUNK, true, false, false),
            (CHUNK + 1, true, false, true),
            (CHUNK + 1, true, true, false),
            (CHUNK + 1, false, false, false),
        ] {
            let file = file(size, has_digest, has_pieces, "1");
            assert_eq!(
                file.is_whole(),
                is_whole,
                "{size} {has_digest} {has_pieces}"
            );
        }
        let keys = [
            file(1, false, false, "1"),
            file(1, false, false, "2"),
            file(2, false, false, "1"),
        ];
        assert_ne!(keys[0].key(), keys[1].key(), "another version");
        assert_ne!(keys[0].key(), keys[2].key(), "another size");
    }

    #[test]
    fn a_part_beyond_the_end_of_a_piece_is_not_read() {
        let piece = FilePiece::Memory(Bytes::from_static(b"abc"));
        assert_eq!(piece.read(1, 2).expect("bytes"), b"bc");
        for (offset, length) in [(1, 3), (4, 0), (9, 1)] {
            assert!(piece.read(offset, length).is_err(), "{offset} {length}");
        }
    }
}
