//! Small files that are asked for again and again.
//!
//! The content is found by the fingerprint of the file: each request looks up its path, so that the rights on the way
//! to the file are checked, and a file that was written, or whose own rights were changed, has another fingerprint. A
//! file whose last change is too recent for that is not kept.
//!
//! Content is kept for a second: a file that is written through a mapping has a new time at some point between the
//! write and the next msync(2), see mmap(2).

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::archive::tree::{Fingerprint, Published};
use crate::web::archive::file::SmallFile;

/// The time that content is kept.
const KEPT: Duration = Duration::from_secs(1);

/// A file, and when it was read.
type ReadFile = (Arc<SmallFile>, Instant);

/// Weighs files by their length, but at least by `least` bytes, which limits their number.
#[derive(Clone, Debug)]
struct Weight {
    least: u64,
}

impl Weighter<Fingerprint, ReadFile> for Weight {
    fn weight(&self, _: &Fingerprint, (file, _): &ReadFile) -> u64 {
        self.least.max(file.length() as u64)
    }
}

/// Small files by their fingerprints.
#[derive(Debug)]
pub(super) struct SmallFiles(Cache<Fingerprint, ReadFile, Weight>);

impl SmallFiles {
    /// At most so many files and bytes.
    pub(super) fn new(files: usize, bytes: usize) -> SmallFiles {
        let weight = Weight {
            least: bytes.div_ceil(files) as u64,
        };
        SmallFiles(Cache::with_weighter(files, bytes as u64, weight))
    }

    /// The content of a file that was found.
    pub(super) fn get(&self, found: &Published) -> Option<Arc<SmallFile>> {
        let (file, read_at) = self.0.get(&found.fingerprint())?;
        (read_at.elapsed() < KEPT).then_some(file)
    }

    /// Reads a file that is open, and keeps its content.
    pub(super) fn read(&self, opened: &Published, now: i64) -> Option<Arc<SmallFile>> {
        let fingerprint = opened.fingerprint();
        let is_settled = fingerprint.is_settled(i128::from(now) * 1_000_000_000);
        if !SmallFile::is(opened) || !is_settled {
            return None;
        }
        let read_at = Instant::now();
        let file = Arc::new(SmallFile::read(opened, now)?);
        self.0.insert(fingerprint, (Arc::clone(&file), read_at));
        Some(file)
    }
}
