//! Copies one item to another directory, as a backup does: with all its metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::copier::Copier;
use super::finding::{BackupError, BackupFinding, BackupTally};
use super::metadata;
use super::staging::{PREFIX, Staging};
use crate::archive::finding::Reporter;
use crate::archive::tree::{DeepEntry, METADATA_TEXT, SIDECAR, STRANGERS, Tree};
use crate::os::directory::{Directory, is_same_file};
use crate::os::serving;
use crate::os::writing::{self, Durability};

/// The file in an item that marks a copy that was begun and not compared since.
pub const UNCOMPARED: &str = ".ibifs-copy-uncompared";
/// The file in a directory that is being deposited, with the names of the item.
pub const DEPOSIT_MARK: &str = ".ibifs-deposit";

/// The number of the next copier of this process: several may share a directory for incomplete files.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Whether a path is not copied with the rest.
fn is_left(path: &[u8]) -> bool {
    [SIDECAR, UNCOMPARED, DEPOSIT_MARK]
        .iter()
        .any(|name| path == name.as_bytes())
}

/// All entries that are not directories, except those that are not copied with the rest.
fn files_of(tree: &Tree) -> Result<BTreeMap<Vec<u8>, Stat>, BackupError> {
    let mut paths = Vec::new();
    tree.each_deep_entry("", |entry| match entry {
        DeepEntry::Entry(path) | DeepEntry::Unreadable(path, _) => paths.push(path),
    })?;
    paths.retain(|path| !is_left(path));
    let stat = |path: Vec<u8>| {
        let opened = tree.open_far(&path, OFlags::PATH | OFlags::NOFOLLOW);
        let stat = opened.and_then(serving::stat).ok()?;
        Some((path, stat))
    };
    Ok(paths.into_iter().filter_map(stat).collect())
}

/// The files of a directory as they were at a time.
#[derive(Debug)]
pub struct SeenFiles(BTreeMap<Vec<u8>, Stat>);

impl SeenFiles {
    /// As they are now.
    pub fn of(tree: &Tree) -> Result<SeenFiles, BackupError> {
        files_of(tree).map(SeenFiles)
    }

    /// Whether one of them has changed since, or there is another one. The times of a copy are those of its filesystem, and
    /// of its clock; these are not.
    pub fn have_changed(&self, tree: &Tree) -> Result<bool, BackupError> {
        let now = files_of(tree)?;
        let is_same = |(path, before): (&Vec<u8>, &Stat)| {
            let after = now.get(path);
            after.is_some_and(|after| {
                (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
                    && (metadata::is_same(before, after)
                        || metadata::has_other_names(before, after))
            })
        };
        Ok(now.len() != self.0.len() || !self.0.iter().all(is_same))
    }
}

/// Writes the sidecar of an item by way of a directory that no other user reaches; it is on disk before it has its name.
pub fn write_sidecar(
    staging: &Directory,
    to: impl AsFd,
    bytes: &[u8],
    is_strangers: bool,
) -> Result<(), Errno> {
    let (name, file) = staging.create_random("sidecar-", 0o600)?;
    let file = OwnedFd::from(file);
    // The mark is set before the rename, because the sidecar may be accepted at once under its name.
    let mode = 0o644 | if is_strangers { STRANGERS } else { 0 };
    let written = writing::write_all(&file, bytes)
        .and_then(|()| rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)));
    if let Err(errno) = written {
        let _ = staging.remove_file(&name);
        return Err(errno);
    }
    writing::rename_into_place(&file, (staging, &name), (to, SIDECAR), Durability::Synced)
}

/// Makes an item's directory identical to another one.
#[allow(missing_debug_implementations, reason = "it holds closures")]
pub struct ItemCopier<'a>(Copier<'a>);

impl<'a> ItemCopier<'a> {
    /// Copies from one item's directory to another's. Incomplete files lie in `staging`, which is on the
    /// filesystem of the copy.
    pub fn new(
        from: &'a Tree,
        to: &'a Tree,
        staging: impl Into<Staging>,
        report: &'a mut Reporter<'a, BackupFinding>,
        progress: &'a mut dyn FnMut(u64),
    ) -> ItemCopier<'a> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporaries = format!("{PREFIX}{}-{number}-", std::process::id());
        let copier = Copier::over(from, to, staging.into(), temporaries, report, progress);
        ItemCopier(copier.leaving(is_left))
    }

    /// Makes files that belong to this user alone further names of the originals, where they can be.
    pub fn linking(mut self) -> ItemCopier<'a> {
        self.0.is_linking = true;
        self
    }

    /// Copies these files again, whatever size and time their copies have.
    pub fn afresh(mut self, files: BTreeSet<Vec<u8>>) -> ItemCopier<'a> {
        self.0.afresh = files;
        self
    }

    /// Leaves out the metadata text of the item, neither copied nor removed.
    pub fn without_description(self) -> ItemCopier<'a> {
        ItemCopier(
            self.0
                .leaving(|path| is_left(path) || path == METADATA_TEXT.as_bytes()),
        )
    }

    /// Leaves the item's directory its own owner, mode and attributes.
    pub fn keeping_top(mut self) -> ItemCopier<'a> {
        self.0.is_top_kept = true;
        self
    }

    /// Returns whether something that is not a directory has a copy of the same type, size and time, or is the copy.
    pub fn is_copy(original: &Stat, copy: &Stat) -> bool {
        is_same_file(original, copy) || metadata::is_like(original, copy)
    }

    /// The name prefix of directories for incomplete files in an item.
    pub const TEMPORARY: &'static str = PREFIX;

    /// Whether a file exists on one side only, or differs according to its metadata.
    pub fn is_due(from: &Tree, to: &Tree) -> Result<bool, BackupError> {
        let [here, there] = [files_of(from)?, files_of(to)?];
        Ok(here.len() != there.len()
            || here.iter().any(|(path, original)| {
                let copy = there.get(path);
                !copy.is_some_and(|copy| metadata::is_copied(original, copy))
            }))
    }

    /// Copies everything but the sidecar, and removes what only the copy has. False where the item does not
    /// exist.
    pub fn content(&mut self) -> Result<bool, BackupError> {
        let is_there = self.0.unit(b"")?;
        self.0.remove_staging()?;
        Ok(is_there)
    }

    /// Copies the sidecar. False where the item has none.
    pub fn sidecar(&mut self) -> Result<bool, BackupError> {
        self.0.one(SIDECAR.as_bytes())
    }

    /// Writes this sidecar, marked as that of a stranger or not; it is on disk before it has its name.
    pub fn write_sidecar(&mut self, bytes: &[u8], is_strangers: bool) -> Result<(), Errno> {
        let to = self.0.to.root();
        write_sidecar(self.0.staging.directory()?, to, bytes, is_strangers)
    }

    /// Sets the time of the copy's directory to that of the original again, after a file was made in it.
    pub fn finish(&mut self) -> Result<(), BackupError> {
        self.0.remove_staging()?;
        self.0.set_metadata(b"", None).map(drop)
    }

    /// The counts so far.
    #[must_use]
    pub fn tally(&self) -> &BackupTally {
        &self.0.tally
    }
}
