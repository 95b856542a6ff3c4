//! A file that arrives in parts, in one run or several, and whose digest may be known only at its end.
//!
//! It has the name of a key until all of it is there. The part that an earlier run has left is read again, so that it
//! counts only with the right digest.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::archive::piece_hasher::PieceHasher;
use crate::formats::fixity::Digest;
use crate::formats::inventory::CHUNK;

/// A run of this many zero bytes becomes a hole.
const HOLE: usize = 64 << 10;
/// The number of bytes that are read at once.
const BLOCK: usize = 256 << 10;
/// The end of the name of an incomplete file.
const INCOMPLETE: &str = "part";

/// A file that arrives in parts.
#[derive(Debug)]
pub struct Part {
    directory: OwnedFd,
    file: File,
    key: String,
    size: u64,
    length: u64,
    taken: u64,
    whole: Sha256,
    pieces: PieceHasher,
}

/// Returns the digest of a file that arrived earlier, by its key.
pub(super) fn arrived(directory: &OwnedFd, key: &str) -> Option<Digest> {
    let text = rustix::fs::readlinkat(directory, key, Vec::new()).ok()?;
    let digest = Digest::parse(text.as_bytes())?;
    let is_there = rustix::fs::statat(directory, digest.to_string(), AtFlags::SYMLINK_NOFOLLOW);
    is_there.is_ok().then_some(digest)
}

impl Part {
    /// The file with this key, of which an earlier run may have left a part, and its size in bytes.
    pub(super) fn open(directory: OwnedFd, key: &str, size: u64) -> Result<Part, Error> {
        let name = format!("{key}.{INCOMPLETE}");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, &name, flags, Mode::from_raw_mode(0o600))?;
        let mut part = Part {
            directory,
            file: file.into(),
            key: key.to_owned(),
            size,
            length: 0,
            taken: 0,
            whole: Sha256::new(),
            pieces: PieceHasher::default(),
        };
        let left = part.file.metadata()?.len();
        part.read_again(if left <= size { left } else { 0 })?;
        Ok(part)
    }

    /// Returns how many bytes are there.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns how many bytes have arrived in this run.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The digests of the pieces of [`CHUNK`] bytes that are there.
    #[must_use]
    pub fn pieces(&self) -> &[Digest] {
        self.pieces.complete()
    }

    /// The digest of what is behind them.
    #[must_use]
    pub fn last_piece(&self) -> Digest {
        self.pieces.rest()
    }

    /// The digest of all that is there.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(self.whole.clone().finalize().into())
    }

    /// Returns how many bytes fit in before the next piece begins, or the file ends.
    #[must_use]
    pub fn room(&self) -> u64 {
        (CHUNK - self.length % CHUNK).min(self.size - self.length)
    }

    /// Appends bytes, at most [`Part::room`].
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() as u64 > self.room() {
            return Err(ErrorKind::InvalidInput.into());
        }
        for part in bytes.chunks(HOLE) {
            if part.len() == HOLE && part.iter().all(|byte| *byte == 0) {
                self.file.seek_relative(HOLE as i64)?;
            } else {
                self.file.write_all(part)?;
            }
        }
        self.taken += bytes.len() as u64;
        self.count(bytes);
        Ok(())
    }

    /// Begins with the content of a file that may be the same.
    pub fn begin_with(&mut self, mut other: File) -> Result<(), Error> {
        self.read_again(0)?;
        let mut buffer = vec![0; BLOCK];
        while self.length < self.size {
            let most = usize::try_from(self.room()).map_or(BLOCK, |room| room.min(BLOCK));
            let count = other.read(&mut buffer[..most])?;
            if count == 0 {
                break;
            }
            self.take(&buffer[..count])?;
        }
        self.taken = 0;
        Ok(())
    }

    /// Keeps the first bytes alone, and reads them again.
    pub fn read_again(&mut self, length: u64) -> Result<(), Error> {
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.length = 0;
        (self.whole, self.pieces) = (Sha256::new(), PieceHasher::default());
        let mut buffer = vec![0; BLOCK];
        while self.length < length {
            let left = length - self.length;
            let most = usize::try_from(left.min(self.room())).map_or(BLOCK, |most| most.min(BLOCK));
            self.file.read_exact(&mut buffer[..most])?;
            self.count(&buffer[..most]);
        }
        Ok(())
    }

    fn count(&mut self, bytes: &[u8]) {
        self.whole.update(bytes);
        self.pieces.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// Completes the file: it is on disk under its digest, and is found by its key.
    pub fn finish(self) -> Result<Digest, Error> {
        if self.length != self.size {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (digest, directory) = (self.digest(), &self.directory);
        // It may end with a hole.
        self.file.set_len(self.size)?;
        self.file.sync_data()?;
        let name = digest.to_string();
        let part = format!("{}.{INCOMPLETE}", self.key);
        rustix::fs::renameat(directory, &part, directory, &name)?;
        match rustix::fs::unlinkat(directory, &self.key, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        rustix::fs::symlinkat(&name, directory, &self.key)?;
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path, size: u64) -> Part {
        let directory = File::open(path).expect("a directory");
        Part::open(directory.into(), "key", size).expect("a part")
    }

    fn put(part: &mut Part, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = usize::try_from(part.room()).expect("a length");
            let (now, later) = rest.split_at(room.min(rest.len()));
            part.take(now).expect("taken");
            rest = later;
        }
    }

    #[test]
    fn a_file_goes_on_where_it_was_left() {
        let directory = std::env::temp_dir().join(format!("ibifs-part-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let mut bytes: Vec<u8> = (0..2 * CHUNK + 1000).map(|n| (n % 251) as u8).collect();
        bytes[100_000..400_000].fill(0);
        let size = bytes.len() as u64;
        let mut part = open(&directory, size);
        put(&mut part, &bytes[..5_000_000]);
        assert!(part.take(&vec![1; 8 << 20]).is_err());
        drop(part);
        let mut part = open(&directory, size);
        assert_eq!((part.length(), part.taken()), (5_000_000, 0));
        assert_eq!(part.pieces().len(), 1);
        part.read_again(4_500_000).expect("read again");
        put(&mut part, &bytes[4_500_000..]);
        assert_eq!((part.room(), part.taken()), (0, size - 4_500_000));
        let expected = Digest(Sha256::digest(&bytes).into());
        assert_eq!(part.digest(), expected);
        assert_eq!(part.finish().expect("finished"), expected);
        let opened: OwnedFd = File::open(&directory).expect("a directory").into();
        assert_eq!(arrived(&opened, "key"), Some(expected));
        let found = std::fs::read(directory.join(expected.to_string()));
        assert_eq!(found.expect("its content"), bytes);
        // A file of this key that is longer than it can be is not used.
        std::fs::write(directory.join("key.part"), vec![0; 2000]).expect("written");
        assert_eq!(open(&directory, 1000).length(), 0);
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
