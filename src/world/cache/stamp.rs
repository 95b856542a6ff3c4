//! The attributes that tell that a file was not changed since it was verified.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use sha2::{Digest as _, Sha256};

use crate::formats::fixity::Digest;

/// The attributes that change whenever a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    number: u64,
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn of(file: &File) -> std::io::Result<FileStamp> {
        let found = file.metadata()?;
        Ok(FileStamp {
            number: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// The parts of a file that were verified, and its stamp before that.
#[derive(Debug, Default)]
pub(super) struct Verified {
    stamp: Option<FileStamp>,
    parts: Vec<bool>,
}

impl Verified {
    /// All of a file that has one part.
    pub(super) fn whole(stamp: FileStamp) -> Verified {
        Verified {
            stamp: Some(stamp),
            parts: vec![true],
        }
    }

    /// Whether a part is as it was when it was verified.
    pub(super) fn has(&self, stamp: FileStamp, part: usize) -> bool {
        self.stamp == Some(stamp) && self.parts.get(part) == Some(&true)
    }

    /// Whether all parts are.
    pub(super) fn has_all(&self, stamp: FileStamp, count: usize) -> bool {
        self.stamp == Some(stamp) && self.parts.iter().filter(|is_good| **is_good).count() == count
    }

    /// Notes that a part was verified after the stamp was taken.
    pub(super) fn add(&mut self, stamp: FileStamp, part: usize) {
        if self.stamp != Some(stamp) {
            self.stamp = Some(stamp);
            self.parts.clear();
        }
        if self.parts.len() <= part {
            self.parts.resize(part + 1, false);
        }
        self.parts[part] = true;
    }
}

/// The digest of a part of a file.
pub(super) fn digest_of(file: &File, start: u64, size: u64) -> std::io::Result<Digest> {
    let (mut digest, mut buffer, mut done) = (Sha256::new(), vec![0; 256 << 10], 0);
    while done < size {
        let left = usize::try_from(size - done).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let buffer = &mut buffer[..most];
        file.read_exact_at(buffer, start + done)?;
        digest.update(&*buffer);
        done += buffer.len() as u64;
    }
    Ok(Digest(digest.finalize().into()))
}
