//! The digests of an item's files, for a copy. Records nothing.

use rustix::io::Errno;

use super::finding::ScrubError;
use super::reading::{ItemReader, ReadOutcome};
use super::records::{Recorded, recorded};
use crate::archive::tree::{DeepEntry, SIDECAR, Tree, joined};
use crate::formats::fixity::{self, Manifest, Verdict};
use ibi::message;
use ibi::message::{Localize, Message};

/// The content of all files of an item in a store.
#[derive(Debug, Default)]
pub struct ItemDigests {
    /// Their digests, by path.
    pub manifest: Manifest,
    /// The paths that are damaged according to the record of a scrub.
    pub damaged: Vec<Vec<u8>>,
    /// The paths that cannot be read, or changed during each attempt, with the reason.
    pub unread: Vec<(Vec<u8>, Message)>,
}

/// Reads all files of an item, by its place, except its sidecar; records nothing.
pub fn item_digests(
    tree: &Tree,
    item: &str,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ItemDigests, ScrubError> {
    // A user who may read an item may lack the right to read the records.
    let old = match recorded(tree, item) {
        Err(ScrubError::Tree(error)) if error.errno() == Errno::ACCESS => Recorded::default(),
        other => other?,
    };
    let mut reader = ItemReader::new(tree, None, progress);
    let mut digests = ItemDigests::default();
    let mut paths = Vec::new();
    tree.each_deep_entry(item, |entry| match entry {
        DeepEntry::Entry(path) if path == SIDECAR.as_bytes() => {}
        DeepEntry::Entry(path) => paths.push(path),
        DeepEntry::Unreadable(path, errno) => {
            let why = std::io::Error::from(errno).message();
            digests.unread.push((path, why));
        }
    })?;
    for path in paths {
        let why = match reader.digest(&joined(item.as_bytes(), &path)) {
            ReadOutcome::Digest(digest, written) => {
                let (known, note) = (old.manifest.get(&path), old.notes.get(&path));
                if fixity::judge(known, note, &digest, &written) == Verdict::Damaged {
                    digests.damaged.push(path.clone());
                }
                digests.manifest.insert(path, digest);
                continue;
            }
            ReadOutcome::NoFile => continue,
            ReadOutcome::Unsteady => message!("it was written each time that it was read"),
            ReadOutcome::Unreadable(errno) => std::io::Error::from(errno).message(),
        };
        digests.unread.push((path, why));
    }
    Ok(digests)
}
