//! The digests of an item's files, for a copy or a reader. Records nothing.

use std::collections::BTreeSet;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::finding::ScrubError;
use super::reading::{BytesBefore, ItemReader, ReadOutcome, is_damage, written};
use super::records::{DIRECTORY, Finished, Recorded, directory_above, recorded};
use crate::archive::tree::{DeepEntry, SIDECAR, Tree, joined};
use crate::formats::fixity::{self, Digest, Manifest, Verdict, Written};
use ibi::message;
use ibi::message::{Localize, Message};

/// The longest record that is read for one digest, in bytes: that of some 10,000 files.
const LONGEST_RECORD: i64 = 1024 * 1024;

/// The content of all files of an item in a store.
#[derive(Debug, Default)]
pub struct ItemDigests {
    /// Their digests, by path.
    pub manifest: Manifest,
    /// Those of other bytes and the content of each, where there are such bytes.
    pub answers: Manifest,
    /// The number of files that were compared with a record.
    pub recorded: u64,
    /// The paths that are damaged according to the record of a scrub, or were written in a backup after that was finished.
    pub damaged: Vec<Vec<u8>>,
    /// The paths whose recorded digests were altered, and not the files.
    pub altered: Vec<Vec<u8>>,
    /// The recorded paths that are lost: there is no file any more, and none was removed.
    pub absent: Vec<Vec<u8>>,
    /// Those damaged and lost paths of a backup that are so because it was changed after it was finished.
    pub changed_in_backup: BTreeSet<Vec<u8>>,
    /// The paths that cannot be read, or changed during each attempt, with the reason.
    pub unread: Vec<(Vec<u8>, Message)>,
    /// Those of them that have a recorded digest, and that the disk cannot read.
    pub unreadable: Vec<Vec<u8>>,
}

/// The digest that a scrub recorded of a file of an item, if the file has not been written since. None where the
/// record is longer than [`LONGEST_RECORD`], so that it is read at once.
pub fn recorded_digest(
    tree: &Tree,
    item: &str,
    path: &[u8],
    written: &Written,
) -> Result<Option<Digest>, ScrubError> {
    let known = RecordedDigests::of(tree, item, LONGEST_RECORD)?;
    Ok(known.get(path, written))
}

/// The manifest that a scrub recorded of an item, by its place.
pub fn recorded_digests(tree: &Tree, item: &str) -> Result<Manifest, ScrubError> {
    Ok(recorded(tree, item)?.manifest)
}

/// The paths of the files of an item that a scrub recorded with a digest. None of them if the record cannot be read.
pub fn recorded_paths(tree: &Tree, item: &str, digest: &Digest) -> Vec<Vec<u8>> {
    let known = recorded(tree, item)
        .unwrap_or_default()
        .manifest
        .into_iter();
    let same = known.filter(|(_, known)| known == digest);
    same.map(|(path, _)| path).collect()
}

/// Size and time of a file of an item when its recorded digest was taken.
pub fn recorded_writing(tree: &Tree, item: &str, path: &[u8]) -> Option<Written> {
    recorded(tree, item).ok()?.notes.get(path)?.written
}

/// The first file of an item elsewhere, by its tree and its place there, that is not recorded here, or with another size. Nothing
/// of it is read.
pub fn other_size(
    (tree, item): (&Tree, &str),
    (there, at): (&Tree, &str),
) -> Result<Option<Vec<u8>>, ScrubError> {
    let known = recorded(tree, item)?;
    let is_other = |path: &Vec<u8>| {
        let stat = there.stat_far(&joined(at.as_bytes(), path));
        let stat = stat.ok().filter(|stat| {
            let kind = FileType::from_raw_mode(stat.st_mode);
            kind == FileType::RegularFile && path != SIDECAR.as_bytes()
        });
        stat.is_some_and(|stat| {
            let wrote = known.notes.get(path).and_then(|note| note.written);
            !known.manifest.contains_key(path)
                || wrote.is_some_and(|it| it.size != written(&stat).size)
        })
    };
    let mut first = None;
    there.each_deep_entry(at, |entry| {
        if let (None, DeepEntry::Entry(path)) = (&first, entry) {
            first = Some(path).filter(is_other);
        }
    })?;
    Ok(first)
}

/// The digests that a scrub recorded of the files of an item.
#[derive(Debug, Default)]
pub struct RecordedDigests(Recorded);

impl RecordedDigests {
    /// The record of an item, by its place. Empty where it is longer than so many bytes.
    pub fn of(tree: &Tree, item: &str, longest: i64) -> Result<RecordedDigests, ScrubError> {
        let name = format!("{DIRECTORY}/{item}/{}", fixity::WRITTEN);
        let file = tree.open_far(name.as_bytes(), OFlags::PATH);
        let length = file.and_then(rustix::fs::fstat).map(|stat| stat.st_size);
        if length.is_ok_and(|length| length > longest) {
            return Ok(RecordedDigests::default());
        }
        recorded(tree, item).map(RecordedDigests)
    }

    /// The digest of a file, if the file has not been written since.
    #[must_use]
    pub fn get(&self, path: &[u8], written: &Written) -> Option<Digest> {
        let note = self.0.notes.get(path);
        let note = note.filter(|note| self.0.manifest.get(path) == Some(&note.digest));
        let note = note.filter(|note| note.written.as_ref() == Some(written));
        note.map(|note| note.digest)
    }

    /// The size that a file had when this digest of it was taken.
    #[must_use]
    pub fn size(&self, path: &[u8], digest: &Digest) -> Option<u64> {
        let note = self.0.notes.get(path);
        Some(note.filter(|note| note.digest == *digest)?.written?.size)
    }

    /// Whether a file of the item, by its place, has a digest that was recorded of it, and was not written since.
    #[must_use]
    pub fn is_as_recorded(&self, tree: &Tree, item: &str, path: &[u8], digest: &Digest) -> bool {
        let stat = tree.stat_far(&joined(item.as_bytes(), path));
        stat.is_ok_and(|stat| self.get(path, &written(&stat)).as_ref() == Some(digest))
    }

    /// The recorded paths of lost files, without those that were met.
    pub fn lost<'a>(
        &'a self,
        tree: &'a Tree,
        item: &'a str,
        is_met: impl Fn(&Vec<u8>) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Vec<u8>> {
        let left = self.0.manifest.keys().filter(move |path| !is_met(path));
        left.filter(|path| self.0.has_lost(tree, item, path))
    }
}

impl ItemDigests {
    /// Those of an item whose directory is missing: all files that were recorded are lost.
    pub fn of_lost(tree: &Tree, item: &str) -> Result<ItemDigests, ScrubError> {
        Ok(ItemDigests {
            absent: recorded(tree, item)?.manifest.into_keys().collect(),
            ..ItemDigests::default()
        })
    }

    /// The digests by which it is compared with the same item elsewhere.
    #[must_use]
    pub fn compared(&self) -> &Manifest {
        if self.answers.is_empty() {
            &self.manifest
        } else {
            &self.answers
        }
    }
}

/// Reads all files of an item, by its place, except its sidecar; records nothing.
pub fn item_digests(
    tree: &Tree,
    item: &str,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ItemDigests, ScrubError> {
    answered_digests(tree, item, None, progress)
}

/// The same of an item in a backup: what was removed from it, or written in it, after that was finished is lost or damaged.
pub fn digests_in_backup(
    tree: &Tree,
    item: &str,
    finished: Finished,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ItemDigests, ScrubError> {
    let old = Recorded {
        finished: Some(finished),
        ..readable_record(tree, item)?
    };
    digests_by(tree, item, &old, None, progress)
}

/// The same, with the digests of other bytes and each file.
pub fn answered_digests(
    tree: &Tree,
    item: &str,
    before: Option<&BytesBefore<'_>>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ItemDigests, ScrubError> {
    digests_by(tree, item, &readable_record(tree, item)?, before, progress)
}

/// The record of an item. A user who may read the item may lack the right to read that.
fn readable_record(tree: &Tree, item: &str) -> Result<Recorded, ScrubError> {
    match recorded(tree, item) {
        Err(ScrubError::Tree(error)) if error.errno() == Errno::ACCESS => Ok(Recorded::default()),
        other => other,
    }
}

fn digests_by(
    tree: &Tree,
    item: &str,
    old: &Recorded,
    before: Option<&BytesBefore<'_>>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ItemDigests, ScrubError> {
    let was_written = |path: &[u8]| {
        old.finished.as_ref().is_some_and(|finished| {
            let file = tree.stat_far(&joined(item.as_bytes(), path));
            // Another file that is put in its place has its own time.
            let above = directory_above(tree, item, path);
            let mut both = file.into_iter().chain(above);
            both.any(|stat| finished.is_before(&stat))
        })
    };
    let in_item = |path: &[u8]| path.get(item.len() + 1..).unwrap_or(path).to_vec();
    let below = before.map(|before| move |path: &[u8], size| before(&in_item(path), size));
    let mut reader = ItemReader::new(tree, None, progress);
    reader.before = below.as_ref().map(|it| it as &BytesBefore<'_>);
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
            ReadOutcome::Digest(found, written) => {
                let digest = found.whole;
                let (known, note) = (old.manifest.get(&path), old.notes.get(&path));
                let verdict = fixity::judge(known, note, &digest, &written);
                // What was written since says nothing of what was recorded.
                digests.recorded += u64::from(!matches!(verdict, Verdict::New | Verdict::Changed));
                match verdict {
                    Verdict::Damaged => digests.damaged.push(path.clone()),
                    Verdict::WrongManifest => digests.altered.push(path.clone()),
                    Verdict::New | Verdict::Changed if was_written(&path) => {
                        digests.damaged.push(path.clone());
                        digests.changed_in_backup.insert(path.clone());
                    }
                    Verdict::Same | Verdict::New | Verdict::Changed => {}
                }
                if let Some(answer) = found.answer {
                    digests.answers.insert(path.clone(), answer);
                }
                digests.manifest.insert(path, digest);
                continue;
            }
            ReadOutcome::NoFile => continue,
            ReadOutcome::Unsteady => message!("it was written each time that it was read"),
            ReadOutcome::Unreadable(errno) => {
                if old.manifest.contains_key(&path) && is_damage(tree, item, errno) {
                    digests.unreadable.push(path.clone());
                }
                std::io::Error::from(errno).message()
            }
        };
        digests.unread.push((path, why));
    }
    let is_read = |path: &Vec<u8>| digests.manifest.contains_key(path);
    let is_lost = |path: &&Vec<u8>| {
        !is_read(path) && digests.unread.is_empty() && !old.was_removed(tree, item, path)
    };
    let lost = old.manifest.keys().filter(is_lost).cloned();
    digests.absent = lost.collect();
    if old.finished.is_some() {
        let lost = digests.absent.iter().cloned();
        digests.changed_in_backup.extend(lost);
    }
    Ok(digests)
}
