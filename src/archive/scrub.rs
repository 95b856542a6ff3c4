//! Scrubbing: reads every file again and compares it with its recorded digest.
//!
//! A scrub reads the store's directories, also while the store is mounted, never through a symbolic link, and
//! needs no index. It writes only in `fixity/`, where one scrub runs at a time. `fixity/col/<rep>/` and
//! `fixity/ibip/<ibip>/` hold the manifest of an item; in the item it would travel with the item.
//!
//! Edited, added and removed files are reported once and recorded. Damaged and lost files are reported by
//! every scrub and change no record until a user accepts them. A sidecar is not scrubbed as a file of its
//! item: changes to other items change it, and `fsck` compares it with the index.
//!
//! A finding is reported before it is recorded: a crash may cause a second report, but never loses one. A
//! scrub needs the memory for the names and digests of one item.

mod finding;
mod position;
mod reading;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

pub use finding::{ScrubCode, ScrubError, ScrubFinding, ScrubTally};

use crate::archive::finding::Reporter;
use crate::archive::tree::Action;
use crate::archive::tree::{Area, DeepEntry, Place, SIDECAR, Tree, TreeError, joined};
use crate::formats::fixity::{self, Manifest, Note, Notes, Verdict, Written};
use crate::formats::item::Sidecar;
use ibi::message;
use ibi::message::{Localize, Message};
use position::ScrubPosition;
use reading::{ItemReader, ReadOutcome};

/// The directory of the store that holds the manifests.
pub const DIRECTORY: &str = "fixity";

/// A file written less than this before it was read may be written again without a new time: clocks of
/// filesystems tick, and the kernel notices a write through a mapping only after writeback, up to half a
/// minute later.
const UNSETTLED_SECONDS: i64 = 60;

/// Options of a scrub.
#[derive(Clone, Debug, Default)]
pub struct ScrubOptions {
    /// Accept the current content, whatever was recorded.
    pub accept: bool,
    /// Record nothing.
    pub dry_run: bool,
    /// Begin from the start, wherever the last pass stopped.
    pub restart: bool,
    /// The most bytes to read per second.
    pub rate: Option<u64>,
}

/// A running scrub.
pub struct Scrub<'a> {
    tree: &'a Tree,
    options: ScrubOptions,
    report: &'a mut Reporter<'a, ScrubFinding>,
    reader: ItemReader<'a>,
    position: Option<ScrubPosition>,
    tally: ScrubTally,
    unsynced: bool,
}

impl std::fmt::Debug for Scrub<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrub")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What is recorded of an item.
#[derive(Debug, Default, PartialEq, Eq)]
struct Recorded {
    manifest: Manifest,
    notes: Notes,
    bad_lines: Vec<usize>,
    exists: bool,
    /// When the item was last scrubbed.
    when: Option<(i64, u32)>,
}

impl<'a> Scrub<'a> {
    /// Prepares a scrub; an error while another one runs on the store. `progress` receives the number of the
    /// current item, from 1, and the number of bytes read.
    pub fn new(
        tree: &'a Tree,
        options: ScrubOptions,
        report: &'a mut Reporter<'a, ScrubFinding>,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> Result<Scrub<'a>, ScrubError> {
        let position = if options.dry_run {
            None
        } else {
            Some(ScrubPosition::take(tree)?)
        };
        Ok(Scrub {
            tree,
            reader: ItemReader::new(tree, options.rate, progress),
            options,
            report,
            position,
            tally: ScrubTally::default(),
            unsynced: false,
        })
    }

    /// The last item of an interrupted pass, after which this one continues.
    pub fn goes_on_after(&self) -> Option<&str> {
        if self.options.restart {
            None
        } else {
            self.position.as_ref()?.last()
        }
    }

    /// Scrubs the whole store, or the rest of an interrupted pass.
    pub fn all(mut self) -> Result<ScrubTally, ScrubError> {
        let after = self.goes_on_after().map(str::to_owned);
        let is_done = |item: &str| {
            let after = after.as_deref();
            after.is_some_and(|after| item.split('/').le(after.split('/')))
        };
        let tree = self.tree;
        tree.each_item::<ScrubError>(|area, path| {
            let item = format!("{}/{path}", area.name());
            self.reader.items += 1;
            if is_done(&item) {
                return Ok(());
            }
            self.item(&item)?;
            self.mark(&item)
        })?;
        for area in [Area::Col, Area::Ibip] {
            let root = format!("{DIRECTORY}/{}", area.name());
            tree.each_directory_at::<ScrubError>(&root, area.depth(), |path| {
                self.find_lost(&format!("{}/{path}", area.name()))
            })?;
        }
        if self.unsynced {
            tree.sync_all()?;
        }
        if let Some(position) = &mut self.position {
            position.finish(tree)?;
        }
        Ok(self.tally)
    }

    /// Scrubs some items, by their places. The position of a whole pass does not change.
    pub fn some(mut self, places: &[Place]) -> Result<ScrubTally, ScrubError> {
        for place in places {
            self.reader.items += 1;
            if self.tree.is_directory(place.as_str()) {
                self.item(place.as_str())?;
            } else {
                self.find_lost(place.as_str())?;
            }
        }
        if self.unsynced {
            self.tree.sync_all()?;
        }
        Ok(self.tally)
    }

    fn mark(&mut self, item: &str) -> Result<(), ScrubError> {
        let Some(position) = &mut self.position else {
            return Ok(());
        };
        if position.is_sync_due() {
            // The records on disk must reach at least as far as the synced position.
            if std::mem::take(&mut self.unsynced) {
                self.tree.sync_all()?;
            }
            return position.mark(self.tree, item, true);
        }
        position.mark(self.tree, item, false)
    }

    fn found(
        &mut self,
        code: ScrubCode,
        item: &str,
        path: &[u8],
        detail: Option<Message>,
    ) -> Result<(), ScrubError> {
        let finding = ScrubFinding {
            code,
            item: item.to_owned(),
            path: path.to_vec(),
            detail,
            accepted: self.options.accept && code != ScrubCode::Unreadable,
        };
        self.tally.count(&finding);
        (self.report)(&finding).map_err(ScrubError::Report)
    }

    fn item(&mut self, item: &str) -> Result<(), ScrubError> {
        let started = now();
        if !self.options.dry_run {
            self.take_over(item)?;
        }
        let old = self.recorded(item)?;
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
        for path in &paths {
            if !self.file(item, path, &old, &mut new)? {
                gone.push(path.clone());
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
                continue;
            }
            self.missing(item, path, &old, &mut new)?;
        }
        if !old.exists && !new.manifest.is_empty() {
            self.tally.recorded += 1;
        }
        // A manifest that is not accepted is kept as it is, byte by byte.
        let is_kept = !old.bad_lines.is_empty() && !self.options.accept;
        if self.options.dry_run || is_kept {
            Ok(())
        } else {
            self.record(item, &old, &new, started)
        }
    }

    /// Reads a file and compares it. False where it is not, or no longer, a regular file.
    fn file(
        &mut self,
        item: &str,
        path: &[u8],
        old: &Recorded,
        new: &mut Recorded,
    ) -> Result<bool, ScrubError> {
        let full = joined(item.as_bytes(), path);
        let (found, written) = match self.reader.digest(&full) {
            ReadOutcome::Digest(digest, written) => (digest, written),
            ReadOutcome::NoFile => return Ok(false),
            ReadOutcome::Unsteady => {
                self.keep(path, old, new);
                self.found(ScrubCode::Unsteady, item, path, None)?;
                return Ok(true);
            }
            ReadOutcome::Unreadable(errno) => {
                self.keep(path, old, new);
                let why = std::io::Error::from(errno).message();
                self.found(ScrubCode::Unreadable, item, path, Some(why))?;
                return Ok(true);
            }
        };
        self.tally.files += 1;
        self.tally.bytes += written.size;
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
            }
            _ => {
                let is_settled = (now().0 - written.seconds).abs() > UNSETTLED_SECONDS;
                let note = Note {
                    digest: found,
                    written: is_settled.then_some(written),
                };
                new.manifest.insert(path.to_vec(), found);
                new.notes.insert(path.to_vec(), note);
            }
        }
        Ok(true)
    }

    fn keep(&self, path: &[u8], old: &Recorded, new: &mut Recorded) {
        if let Some(note) = old.notes.get(path) {
            new.notes.insert(path.to_vec(), *note);
        }
    }

    /// A recorded file that is missing. Removing a file changes its directory; if the directory has not
    /// changed since the item was last scrubbed, the file is lost.
    fn missing(
        &mut self,
        item: &str,
        path: &[u8],
        old: &Recorded,
        new: &mut Recorded,
    ) -> Result<(), ScrubError> {
        let since = self.directory_changed(item, path);
        let was_removed = match (since, old.when) {
            (Some((changed, _)), Some((scrubbed, _))) => changed >= scrubbed - 1,
            _ => false,
        };
        if was_removed || self.options.accept {
            new.manifest.remove(path);
        } else {
            self.keep(path, old, new);
        }
        let code = if was_removed {
            ScrubCode::Missing
        } else {
            ScrubCode::Lost
        };
        self.found(code, item, path, None)
    }

    /// The last change of the nearest existing directory above a path.
    fn directory_changed(&self, item: &str, path: &[u8]) -> Option<(i64, u32)> {
        let mut above = path;
        while !above.is_empty() {
            let cut = above.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            above = &above[..cut];
            let full = joined(item.as_bytes(), above);
            let directory = self.tree.open_far(&full, OFlags::PATH | OFlags::DIRECTORY);
            if let Ok(stat) = directory.and_then(rustix::fs::fstat) {
                return Some((stat.st_ctime, u32::try_from(stat.st_ctime_nsec).ok()?));
            }
        }
        None
    }

    /// Reports a recorded item whose directory is missing. A removed item has a tombstone, and its record is
    /// kept for its return.
    fn find_lost(&mut self, item: &str) -> Result<(), ScrubError> {
        let is_removed = self.tree.read_small(&format!("deleted/{item}"))?.is_some();
        let old = self.recorded(item)?;
        if self.tree.is_directory(item) || is_removed || !old.exists {
            return Ok(());
        }
        self.found(ScrubCode::Lost, item, b"", None)?;
        if self.options.accept && !self.options.dry_run {
            self.forget(item)
        } else {
            Ok(())
        }
    }

    fn recorded(&self, item: &str) -> Result<Recorded, ScrubError> {
        recorded(self.tree, item)
    }

    fn record(
        &mut self,
        item: &str,
        old: &Recorded,
        new: &Recorded,
        started: (i64, u32),
    ) -> Result<(), ScrubError> {
        if !old.exists && new.manifest.is_empty() {
            return Ok(());
        }
        let directory = format!("{DIRECTORY}/{item}");
        if !old.exists {
            self.tree.make_directories(&directory)?;
            self.unsynced = true;
        }
        let write = |name: &str, bytes: &[u8]| {
            // A new one need not be synced: if it is lost, the item is recorded again.
            self.tree.write_beside(&directory, name, bytes, old.exists)
        };
        if !old.bad_lines.is_empty() || new.manifest != old.manifest {
            write(fixity::MANIFEST, &fixity::manifest_text(&new.manifest))?;
        }
        if new.notes != old.notes {
            write(fixity::WRITTEN, &fixity::notes_text(&new.notes))?;
        }
        // The modification time of the file is the time of the item's last scrub.
        let opened = self.tree.open_directory(&directory)?;
        let time = rustix::fs::Timespec {
            tv_sec: started.0,
            tv_nsec: started.1.into(),
        };
        let times = rustix::fs::Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(&opened, fixity::WRITTEN, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.tree.error(Action::SetTime, &directory, errno).into())
    }

    fn forget(&self, item: &str) -> Result<(), ScrubError> {
        let directory = format!("{DIRECTORY}/{item}");
        let opened = self.tree.open_directory(&directory)?;
        for name in [fixity::MANIFEST, fixity::WRITTEN] {
            match rustix::fs::unlinkat(&opened, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => {
                    return Err(self.tree.error(Action::Remove, &directory, errno).into());
                }
            }
        }
        Ok(())
    }

    /// An item that moved from its IBIp to its rep takes its manifest along.
    fn take_over(&self, item: &str) -> Result<(), ScrubError> {
        let Some(rep) = item.strip_prefix("col/") else {
            return Ok(());
        };
        if self.tree.is_directory(&format!("{DIRECTORY}/{item}")) {
            return Ok(());
        }
        let Ok(rep) = ibi::Rep::parse(rep) else {
            return Ok(());
        };
        let sidecar = self.tree.read_sidecar(&Place::of_rep(&rep)).ok().flatten();
        let Some(sidecar) = sidecar.and_then(|bytes| Sidecar::parse(&bytes).ok()) else {
            return Ok(());
        };
        let Some(before) = sidecar.names().ibip().map(Place::of_ibip) else {
            return Ok(());
        };
        let from = format!("{DIRECTORY}/{}", before.as_str());
        if self.tree.is_directory(before.as_str()) || !self.tree.is_directory(&from) {
            return Ok(());
        }
        let to = format!("{DIRECTORY}/{item}");
        let parent = Path::new(&to).parent().and_then(Path::to_str);
        self.tree.make_directories(parent.unwrap_or(DIRECTORY))?;
        rustix::fs::renameat(self.tree.root(), &from, self.tree.root(), &to)
            .map_err(|errno| self.tree.error(Action::Move, &from, errno).into())
    }
}

/// The record of an item.
fn recorded(tree: &Tree, item: &str) -> Result<Recorded, ScrubError> {
    let read = |name: &str| tree.read_whole(&format!("{DIRECTORY}/{item}/{name}"));
    // An empty manifest was cut off by a power cut, or belongs to an item without files.
    let bytes = read(fixity::MANIFEST)?.unwrap_or_default();
    let (manifest, bad_lines) = fixity::parse_manifest(&bytes);
    let notes = fixity::parse_notes(&read(fixity::WRITTEN)?.unwrap_or_default());
    let path = format!("{DIRECTORY}/{item}/{}", fixity::WRITTEN);
    let file = tree.open_far(path.as_bytes(), OFlags::PATH);
    let when = file.and_then(rustix::fs::fstat).ok().and_then(|stat| {
        let nanoseconds = u32::try_from(stat.st_mtime_nsec).ok()?;
        Some((stat.st_mtime, nanoseconds))
    });
    Ok(Recorded {
        manifest,
        notes,
        bad_lines,
        exists: !bytes.is_empty(),
        when,
    })
}

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

fn now() -> (i64, u32) {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs().cast_signed(), since.subsec_nanos()),
        Err(_) => (0, 0),
    }
}

impl From<TreeError> for ScrubError {
    fn from(error: TreeError) -> ScrubError {
        ScrubError::Tree(error)
    }
}

/// Size and modification time as the system reports them.
fn written(stat: &rustix::fs::Stat) -> Written {
    Written {
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        seconds: stat.st_mtime,
        nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
