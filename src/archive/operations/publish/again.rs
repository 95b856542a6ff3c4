//! The files of an item, read again for another Archive that wants to know whether they are here.

use std::io::Read;

use rustix::fs::Advice;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::archive::operations::{ArchiveError, ReadAs};
use crate::archive::scrub::RecordedDigests;
use crate::archive::store::Item;
use crate::archive::tree::{Action, Place, Published, SIDECAR};
use crate::formats::audit::{MOST_FILES, SentFiles};
use crate::formats::fixity::{Digest, Found, Written};
use crate::formats::inventory::{EntryKind, MOST_ENTRIES};

/// The bytes of a file that are read at a time.
const PART: usize = 1 << 18;
/// The longest record that is read of an item, in bytes: that of some 100,000 files.
const LONGEST_RECORD: i64 = 16 << 20;

/// The reading of items again.
#[allow(missing_debug_implementations, reason = "it holds closures")]
pub struct ReadAgain<'a> {
    /// Returns the bytes before the content of a file, by its path and size.
    pub before: &'a dyn Fn(&[u8], u64) -> Vec<u8>,
    /// Returns whether it goes on. It is asked after each part of a file.
    pub goes_on: &'a mut dyn FnMut() -> bool,
    /// Receives the paths of files that are not what was recorded of them.
    pub damaged: &'a mut dyn FnMut(&[u8], Found),
}

impl ReadAs<'_> {
    /// The digests of all files of an item that the reader may read, which are read from the disk. None if it does not go on.
    ///
    /// # Errors
    /// A file cannot be read, or is being written; or there are too many.
    pub fn read_again(
        &self,
        item: &Item,
        reading: &mut ReadAgain<'_>,
    ) -> Result<Option<SentFiles>, ArchiveError> {
        let (mut files, mut after) = (SentFiles::new(), Vec::new());
        let mut buffer = vec![0; PART];
        let place = Place::of(&item.names);
        let recorded = RecordedDigests::of(&self.tree, place.as_str(), LONGEST_RECORD);
        let recorded = recorded.unwrap_or_else(|error| {
            log::debug!("{}: {error}", item.names);
            RecordedDigests::default()
        });
        loop {
            let page = self.inventory(item, &after, MOST_ENTRIES)?;
            for entry in page.entries {
                let path = entry.path;
                let failed = |errno| {
                    let shown = String::from_utf8_lossy(&path).into_owned();
                    self.tree.error(Action::Read, &shown, errno)
                };
                if files.len() >= MOST_FILES {
                    return Err(failed(Errno::TOOBIG).into());
                }
                let digest = match entry.kind {
                    EntryKind::Text(_) if path == SIDECAR.as_bytes() => continue,
                    EntryKind::Text(text) => {
                        let hasher =
                            Sha256::new_with_prefix((reading.before)(&path, text.len() as u64));
                        Some(Digest(hasher.chain_update(&text).finalize().into()))
                    }
                    EntryKind::File(_) => {
                        let found = self.open_content(item, &path)?;
                        let known = recorded_of(&found, &path, &recorded);
                        content(&found, (&path, known), reading, &mut buffer).map_err(failed)?
                    }
                    _ => continue,
                };
                let Some(digest) = digest else {
                    return Ok(None);
                };
                files.insert(path, digest);
            }
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        for path in recorded.lost(&self.tree, place.as_str(), |it| files.contains_key(it)) {
            (reading.damaged)(path, Found::Nothing);
        }
        Ok(Some(files))
    }
}

/// The digest that was recorded of a file, if it has not been written since and is no other one to which a link leads.
fn recorded_of(found: &Published, path: &[u8], recorded: &RecordedDigests) -> Option<Digest> {
    let nanoseconds = found.changed().as_nanoseconds().rem_euclid(1_000_000_000);
    let written = Written {
        size: found.length(),
        seconds: found.changed().seconds(),
        nanoseconds: u32::try_from(nanoseconds).ok()?,
    };
    let is_itself = found.led_to().is_none_or(|led_to| led_to == path);
    recorded.get(path, &written).filter(|_| is_itself)
}

/// The digest of a file; None if it does not go on. One that was recorded of it is compared with that of the content alone.
fn content(
    found: &Published,
    (path, known): (&[u8], Option<Digest>),
    reading: &mut ReadAgain<'_>,
    buffer: &mut [u8],
) -> Result<Option<Digest>, Errno> {
    // The page cache may differ from the disk, and what is read here is of no use to others.
    let forget = || {
        let _ = rustix::fs::fadvise(&found.file, 0, None, Advice::DontNeed);
    };
    forget();
    let mut hasher = Sha256::new_with_prefix((reading.before)(path, found.length()));
    let mut alone = known.map(|_| Sha256::new());
    let goes_on = loop {
        match (&found.file).read(buffer) {
            Ok(0) => break true,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                if let Some(alone) = &mut alone {
                    alone.update(&buffer[..count]);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
        if !(reading.goes_on)() {
            break false;
        }
    };
    forget();
    match found.is_unchanged()? {
        _ if !goes_on => Ok(None),
        true => {
            let alone = alone.map(|alone| Digest(alone.finalize().into()));
            if let Some(alone) = alone.filter(|alone| known != Some(*alone)) {
                (reading.damaged)(path, Found::Content(alone));
            }
            Ok(Some(Digest(hasher.finalize().into())))
        }
        false => Err(Errno::AGAIN),
    }
}
