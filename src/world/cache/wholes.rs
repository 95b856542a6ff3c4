//! Complete files of several pieces. The kernel reads a file itself if it is one file on the disk; it then has the place of
//! its pieces.

use std::fs::File;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::stamp::FileStamp;
use super::state::piece_name;
use super::{Cache, CachedText, blocks};
use crate::formats::fixity::Digest;
use crate::formats::hex::Hex;
use crate::formats::inventory::CHUNK;

/// A complete file that is verified. It stays in the cache as long as this is not dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    cache: Arc<Cache>,
    name: String,
    /// The file.
    pub(crate) file: Arc<File>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.cache.state.lock().release(&self.name);
    }
}

/// The name of the file that has these pieces.
fn name_of(digests: &[Digest]) -> (String, String) {
    let mut all = Sha256::new();
    digests.iter().for_each(|digest| all.update(digest.0));
    let key = Hex(&all.finalize()).to_string();
    (format!("files/{key}"), key)
}

fn size_of(part: usize, size: u64) -> u64 {
    size.saturating_sub(part as u64 * CHUNK).min(CHUNK)
}

impl Cache {
    /// Reads which pieces the whole files of an earlier run have.
    pub(super) fn read_lists(&self) {
        for list in self.names(CachedText::List.folder()) {
            let key = list.rsplit('/').next().unwrap_or_default();
            let whole = format!("files/{key}");
            let text = self.get(CachedText::List, key).unwrap_or_default();
            let digests: Vec<Digest> = text
                .split(|byte| *byte == b'\n')
                .filter_map(Digest::parse)
                .collect();
            let mut state = self.state.lock();
            let held = state.files.get(&whole).map(|known| known.blocks);
            match held {
                Some(blocks) if name_of(&digests).1 == key => {
                    state.add_whole(&whole, digests.into(), blocks);
                    state.take(&list);
                }
                _ => {
                    drop(state);
                    self.remove(&list);
                }
            }
        }
        for whole in self.names("files") {
            if !self.state.lock().wholes.contains_key(&whole) {
                self.remove(&whole);
            }
        }
    }

    /// A file with these pieces, if it is complete on the disk and verified as it is now.
    pub(crate) fn whole(self: &Arc<Self>, digests: &[Digest], size: u64) -> Option<InUse> {
        let name = match digests {
            [only] => {
                self.piece(only, size)?;
                piece_name(only)
            }
            several => {
                let (name, _) = name_of(several);
                self.part(&name, 0, several.first()?, size_of(0, size))?;
                name
            }
        };
        let mut state = self.state.lock();
        let known = state.files.get(&name)?;
        let file = Arc::clone(known.file.as_ref()?);
        let stamp = FileStamp::of(&file).ok()?;
        if stamp.size != size || !known.verified.has_all(stamp, digests.len()) {
            return None;
        }
        state.take(&name);
        drop(state);
        Some(InUse {
            cache: Arc::clone(self),
            name,
            file,
        })
    }

    /// Makes one file of pieces that are all held, and verifies it. A piece that was copied gives its room back, so that
    /// only one of them is on the disk twice.
    pub(crate) fn assemble(self: &Arc<Self>, digests: &[Digest], size: u64) {
        if digests.len() < 2 {
            return;
        }
        let (name, key) = name_of(digests);
        if let Err(error) = self.copy_pieces(&name, &key, digests, size) {
            log::debug!("{name} is not complete: {error}");
            return;
        }
        // No program may have changed it meanwhile.
        for (part, digest) in digests.iter().enumerate() {
            if self
                .part(&name, part, digest, size_of(part, size))
                .is_none()
            {
                log::debug!("{name} is not complete: piece {part}");
                return;
            }
        }
    }

    fn copy_pieces(
        self: &Arc<Self>,
        name: &str,
        key: &str,
        digests: &[Digest],
        size: u64,
    ) -> std::io::Result<()> {
        let path = self.directory.join(name);
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let is_new = !self.state.lock().wholes.contains_key(name);
        let list: String = digests.iter().map(|digest| format!("{digest}\n")).collect();
        if is_new {
            self.put_text(CachedText::List, key, list.as_bytes())
                .map_err(|_| full())?;
        }
        let mut options = File::options();
        let file = options.write(true).create(is_new).truncate(is_new);
        let file = file.open(&path)?;
        if is_new {
            file.set_len(size)?;
            let mut state = self.state.lock();
            state.take(&format!("{}/{key}", CachedText::List.folder()));
            state.add_whole(name, digests.into(), 0);
        }
        for (part, digest) in digests.iter().enumerate() {
            let length = size_of(part, size);
            let own = piece_name(digest);
            if self.part_is_there(name, part, digest, length) {
                continue;
            }
            self.state.lock().touch(name);
            let reserved = self.reserve(length).map_err(|_| full())?;
            let held = self.piece(digest, length);
            let held = held.ok_or(std::io::ErrorKind::NotFound)?;
            let (mut from, mut to) = (held.start, part as u64 * CHUNK);
            let end = from + length;
            while from < end {
                let left = usize::try_from(end - from).unwrap_or(usize::MAX);
                let copied = rustix::fs::copy_file_range(
                    &held.file,
                    Some(&mut from),
                    &file,
                    Some(&mut to),
                    left,
                )?;
                if copied == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
            }
            let mut state = self.state.lock();
            if !state.wholes.contains_key(name) {
                return Err(full());
            }
            state.grow(name, blocks(length));
            state.place(digest, name, part);
            let is_last = !digests[part + 1..].contains(digest);
            if is_last && !state.is_in_use(&own) {
                state.forget(&own);
                let _ = std::fs::remove_file(self.directory.join(&own));
            }
            drop(state);
            drop(reserved);
        }
        Ok(())
    }

    /// Whether a part of a whole file needs no copy: its piece has no file of its own.
    fn part_is_there(&self, name: &str, part: usize, digest: &Digest, size: u64) -> bool {
        let is_alone = !self.state.lock().files.contains_key(&piece_name(digest));
        is_alone && self.part(name, part, digest, size).is_some()
    }
}
