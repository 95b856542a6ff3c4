//! The content of files, by digest.

use std::fs::File;
use std::sync::Arc;

use super::stamp::{FileStamp, digest_of};
use super::state::piece_name;
use super::{Cache, Reserved};
use crate::formats::fixity::Digest;
use crate::formats::inventory::CHUNK;

/// A verified piece of a file: where it is.
#[derive(Clone, Debug)]
pub(crate) struct HeldPiece {
    /// The file of the cache that has it.
    pub(crate) file: Arc<File>,
    /// Its beginning there, in bytes.
    pub(crate) start: u64,
}

impl Cache {
    /// The file of the piece with this digest.
    pub(crate) fn piece_file(digest: &Digest) -> String {
        piece_name(digest)
    }

    /// Whether a piece is held. It may be damaged.
    pub(crate) fn has_piece(&self, digest: &Digest) -> bool {
        let state = self.state.lock();
        state.places.contains_key(digest) || state.files.contains_key(&piece_name(digest))
    }

    /// Keeps a piece of a file that has this digest.
    pub(crate) fn put_piece(&self, reserved: Reserved, digest: &Digest, bytes: &[u8]) {
        let name = piece_name(digest);
        if let Err(error) = self.write(reserved, &name, &[bytes], true) {
            log::warn!("{name} is not cached: {error}");
        }
    }

    /// A piece of a file, by its digest, of this size. None if it is not held, or is not what it was; then it is
    /// removed.
    pub(crate) fn piece(&self, digest: &Digest, size: u64) -> Option<HeldPiece> {
        let own = piece_name(digest);
        if let Some(held) = self.part(&own, 0, digest, size) {
            return Some(held);
        }
        let (whole, part) = self.state.lock().places.get(digest).cloned()?;
        self.part(&whole, part, digest, size)
    }

    /// The same in a file, of which it is the part with this number.
    pub(super) fn part(
        &self,
        name: &str,
        part: usize,
        digest: &Digest,
        size: u64,
    ) -> Option<HeldPiece> {
        let known = {
            let mut state = self.state.lock();
            state.touch(name);
            state.files.get(name)?.file.clone()
        };
        let file = match known {
            Some(file) => file,
            None => {
                let file = Arc::new(File::open(self.directory.join(name)).ok()?);
                self.state.lock().keep_open(name, &file);
                file
            }
        };
        let stamp = FileStamp::of(&file).ok()?;
        let start = part as u64 * CHUNK;
        let held = HeldPiece { file, start };
        let is_there = stamp.size >= start + size;
        let is_known = |known: &super::state::CachedFile| known.verified.has(stamp, part);
        if is_there && self.state.lock().files.get(name).is_some_and(is_known) {
            return Some(held);
        }
        if is_there && digest_of(&held.file, start, size).is_ok_and(|found| found == *digest) {
            if let Some(known) = self.state.lock().files.get_mut(name) {
                known.verified.add(stamp, part);
            }
            return Some(held);
        }
        // A whole file that is not complete yet has holes.
        {
            let mut state = self.state.lock();
            if state.wholes.contains_key(name) {
                state.displace(digest, name);
                return None;
            }
        }
        log::warn!("the cached piece {digest} is damaged; it is fetched again");
        self.remove(name);
        None
    }
}
