//! Scrubs one item: reads its files and compares them with what is recorded.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use super::finding::{ScrubCode, ScrubError};
use super::marks::{change_marks, mark, marks_of, room_for_unreadable};
use super::reading::{ReadOutcome, is_damage};
use super::recording::take_over;
use super::records::Recorded;
use super::state::Scrub;
use crate::archive::manifest::{read_digest, sealed_files};
use crate::archive::tree::{DeepEntry, SIDECAR, joined};
use crate::formats::fixity::{self, Digest, Found, Marks, Note, Verdict};
use crate::formats::item::Sidecar;
use ibi::message;
use ibi::message::Localize;

/// A file written less than this before it was read may be written again without a new time: clocks of
/// filesystems tick, and the kernel notices a write through a mapping only after writeback, up to half a
/// minute later.
const UNSETTLED_SECONDS: i64 = 60;

/// The outcome of a file.
enum FileOutcome {
    /// It has this digest, which is recorded.
    Right(Digest),
    /// It is another one than recorded, or could not be read.
    Doubtful,
    /// It is not, or no longer, a regular file.
    Gone,
}

impl Scrub<'_> {
    pub(super) fn item(&mut self, item: &str) -> Result<(), ScrubError> {
        let started = now();
        if !self.options.dry_run {
            take_over(self.tree, item)?;
        }
        let mut old = self.recorded(item)?;
        old.marks = marks_of(self.tree, item)?;
        let mut new = Recorded {
            manifest: old.manifest.clone(),
            ..Recorded::default()
        };
        if !old.bad_lines.is_empty() {
            let numbers: Vec<String> = old.bad_lines.iter().map(usize::to_string).collect();
            let detail = message!(
                "line {numbers} is not a line of a manifest",
                numbers = numbers.join(", ")
            );
            self.found(ScrubCode::BrokenManifest, item, b"", Some(detail))?;
        }
        let (mut paths, mut unreadable) = (Vec::new(), Vec::new());
        let listed = self.tree.each_deep_entry(item, |entry| match entry {
            DeepEntry::Entry(path) if path == SIDECAR.as_bytes() => {}
            DeepEntry::Entry(path) => paths.push(path),
            DeepEntry::Unreadable(path, errno) => unreadable.push((path, errno)),
        });
        match listed {
            Ok(()) => {}
            // Removed meanwhile: a tombstone records it, or the search for lost items finds it.
            Err(error) if error.errno() == Errno::NOENT => return Ok(()),
            Err(error) => unreadable.push((Vec::new(), error.errno())),
        }
        self.tally.items += 1;
        paths.sort();
        for (path, errno) in &unreadable {
            let detail = std::io::Error::from(*errno).message();
            self.found(ScrubCode::Unreadable, item, path, Some(detail))?;
        }
        let mut gone: Vec<Vec<u8>> = Vec::new();
        let mut right: Vec<(Vec<u8>, Digest)> = Vec::new();
        for path in &paths {
            match self.file(item, path, &old, &mut new)? {
                FileOutcome::Right(digest) => right.push((path.clone(), digest)),
                FileOutcome::Doubtful => {}
                FileOutcome::Gone => gone.push(path.clone()),
            }
        }
        // Both are sorted.
        let is_met =
            |path: &Vec<u8>| paths.binary_search(path).is_ok() && gone.binary_search(path).is_err();
        for path in old.manifest.keys().filter(|path| !is_met(path)) {
            let below = |directory: &[u8]| {
                directory.is_empty()
                    || path
                        .strip_prefix(directory)
                        .is_some_and(|rest| rest.starts_with(b"/"))
            };
            if unreadable.iter().any(|(directory, _)| below(directory)) {
                self.keep(path, &old, &mut new);
                continue;
            }
            self.missing(item, path, &old, &mut new)?;
        }
        if !old.exists && !new.manifest.is_empty() {
            self.tally.recorded += 1;
        }
        self.seal(item)?;
        if !self.options.dry_run {
            change_marks(self.tree, item, |marks| marks.clone_from(&new.marks))?;
        }
        // A manifest that is not accepted is kept as it is, byte by byte.
        let is_kept = !old.bad_lines.is_empty() && !self.options.accept;
        if self.options.dry_run || is_kept {
            Ok(())
        } else {
            self.record(item, &old, &new, started)?;
            self.formats(item, right)
        }
    }

    /// Compares a sealed item with the digest in its sidecar. Its files are read for that again.
    fn seal(&mut self, item: &str) -> Result<(), ScrubError> {
        let bytes = self
            .tree
            .read_small(&format!("{item}/{SIDECAR}"))
            .ok()
            .flatten();
        let sidecar = bytes.and_then(|bytes| Sidecar::parse(&bytes).ok());
        let Some(seal) = sidecar.and_then(|it| it.life().sealed.clone()) else {
            return Ok(());
        };
        if seal.digest.is_none() {
            // It is announced, or the daemon has not computed its digest yet.
            return Ok(());
        }
        let directory = self.tree.open_directory(item)?;
        match sealed_files(&directory, |_, file, _| read_digest(file)) {
            Ok(files) if files.check(Some(&seal)).is_ok() => Ok(()),
            Ok(_) => self.found(ScrubCode::BrokenSeal, item, b"", None),
            Err((path, why)) => self.found(ScrubCode::BrokenSeal, item, &path, Some(why)),
        }
    }

    /// Reads a file and compares it.
    fn file(
        &mut self,
        item: &str,
        path: &[u8],
        old: &Recorded,
        new: &mut Recorded,
    ) -> Result<FileOutcome, ScrubError> {
        let full = joined(item.as_bytes(), path);
        let (digests, written) = match self.reader.digest(&full) {
            ReadOutcome::Digest(digests, written) => (digests, written),
            ReadOutcome::NoFile => return Ok(FileOutcome::Gone),
            ReadOutcome::Unsteady => {
                self.keep(path, old, new);
                self.found(ScrubCode::Unsteady, item, path, None)?;
                return Ok(FileOutcome::Doubtful);
            }
            ReadOutcome::Unreadable(errno) => {
                self.keep(path, old, new);
                let mut why = std::io::Error::from(errno).message();
                if let Some(known) = old.manifest.get(path)
                    && is_damage(self.tree, item, errno)
                    && !self.mark_unreadable(&mut new.marks, path, *known)
                {
                    why = message!(
                        "{why}; it is not marked as damaged, as too many files cannot be read",
                        why
                    );
                }
                self.found(ScrubCode::Unreadable, item, path, Some(why))?;
                return Ok(FileOutcome::Doubtful);
            }
        };
        self.tally.files += 1;
        self.tally.bytes += written.size;
        let found = digests.whole;
        let known = old.manifest.get(path);
        let verdict = fixity::judge(known, old.notes.get(path), &found, &written);
        let code = match verdict {
            Verdict::Same => None,
            // The files of an item seen for the first time are counted, not reported one by one.
            Verdict::New if !old.exists => None,
            Verdict::New => Some(ScrubCode::New),
            Verdict::Changed => Some(ScrubCode::Changed),
            Verdict::Damaged => Some(ScrubCode::Damaged),
            Verdict::WrongManifest => Some(ScrubCode::BrokenManifest),
        };
        let detail = match verdict {
            Verdict::WrongManifest => Some(message!("its digest has been altered, not the file")),
            _ => None,
        };
        if let Some(code) = code {
            self.found(code, item, path, detail)?;
        }
        match verdict {
            Verdict::Damaged | Verdict::WrongManifest if !self.options.accept => {
                self.keep(path, old, new);
                match known {
                    Some(known) if verdict == Verdict::Damaged => {
                        mark(&mut new.marks, path, *known, Found::Content(found));
                    }
                    _ => drop(new.marks.remove(path)),
                }
                return Ok(FileOutcome::Doubtful);
            }
            _ => {
                let is_settled = (now().0 - written.seconds).abs() > UNSETTLED_SECONDS;
                let note = Note {
                    digest: found,
                    written: is_settled.then_some(written),
                };
                new.manifest.insert(path.to_vec(), found);
                if !digests.pieces.is_empty() {
                    new.pieces.insert(found, digests.pieces);
                }
                new.notes.insert(path.to_vec(), note);
            }
        }
        Ok(FileOutcome::Right(found))
    }

    /// Marks a file that the disk cannot read. False where there are too many of them.
    fn mark_unreadable(&mut self, marks: &mut Marks, path: &[u8], known: Digest) -> bool {
        if !marks.contains_key(path) {
            let tree = self.tree;
            let room = self
                .unreadable
                .get_or_insert_with(|| room_for_unreadable(tree));
            let Some(left) = room.checked_sub(1) else {
                return false;
            };
            *room = left;
        }
        mark(marks, path, known, Found::Unreadable);
        true
    }

    fn keep(&self, path: &[u8], old: &Recorded, new: &mut Recorded) {
        if let Some(note) = old.notes.get(path) {
            new.notes.insert(path.to_vec(), *note);
        }
        if let Some(mark) = old.marks.get(path) {
            new.marks.insert(path.to_vec(), mark.clone());
        }
    }

    /// A recorded file that is missing.
    fn missing(
        &mut self,
        item: &str,
        path: &[u8],
        old: &Recorded,
        new: &mut Recorded,
    ) -> Result<(), ScrubError> {
        let was_removed = old.was_removed(self.tree, item, path);
        if was_removed || self.options.accept {
            new.manifest.remove(path);
        } else {
            self.keep(path, old, new);
            if let Some(known) = old.manifest.get(path) {
                mark(&mut new.marks, path, *known, Found::Nothing);
            }
        }
        let code = if was_removed {
            ScrubCode::Missing
        } else {
            ScrubCode::Lost
        };
        self.found(code, item, path, None)
    }
}

fn now() -> (i64, u32) {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs().cast_signed(), since.subsec_nanos()),
        Err(_) => (0, 0),
    }
}
