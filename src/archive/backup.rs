//! Backups: another store with the state of this one at one instant, while this one stays in use.
//!
//! The trees are copied first, which takes time; then the index, at one instant, through SQLite's backup
//! interface. The index also records which items exist, what their sidecars contain and which items are
//! removed. The copied tree is made to agree with the copied index, see [`settling`], and both are checked as
//! `fsck` does. The log of the store is copied after the index, so that no event is missing there that the index knows to be
//! in it. The content of a file is that of some moment of the backup, each file as a whole.
//!
//! No copying tool is run as a child process. Such tools walk by names, so a user with write permission in an
//! item could swap a directory for a link during the copy, and they do not know which files belong together.
//!
//! `backup.ibi` in a backup names the Archive that it is of, and whether it is finished. A backup is a store;
//! an unfinished one cannot be opened by mistake. Its lock is held while it is made.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`finding`]: findings, counts and errors.
//! - [`note`]: the file `backup.ibi`.
//! - [`keep`]: which generations are kept.
//! - [`destination`]: the directory of a backup.
//! - [`content`]: the content of a file, with its holes.
//! - [`metadata`]: mode, owner, times and extended attributes.
//! - [`directories`]: names in a directory.
//! - [`staging`]: where incomplete files lie.
//! - [`earlier`]: the generation before a new one.
//! - [`copier`]: a directory and its copy.
//! - [`sharing`]: files that a generation shares with the one before.
//! - [`entry`]: files, links and special files.
//! - [`mod@unit`]: items and the levels above them.
//! - [`item`]: one item, for a transfer.
//! - [`history`]: the log of the store.
//! - [`settling`]: a tree that agrees with its index.
//! - [`filling`]: all of it, in a directory that is ready.
//! - [`generations`]: backups of several dates in one directory.

mod content;
mod copier;
mod destination;
mod directories;
mod earlier;
mod entry;
mod filling;
mod finding;
mod generations;
mod history;
mod item;
mod keep;
mod metadata;
mod note;
mod settling;
mod sharing;
mod staging;
mod unit;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::archive::finding::Reporter;
use crate::archive::store::Store;
use crate::archive::tree::{Place, Tree, TreeError};
use crate::archive::{Archive, Clock};
use crate::formats::item::State;
use crate::os::directory::Directory;
use crate::os::opening::by_descriptor;
pub use content::copy_content;
use destination::{Closed, closed_directory};
use filling::{AREAS, fill, fill_some, note_in_store};
pub use finding::{BackupError, BackupFinding, BackupTally};
use generations::GENERATIONS;
pub use generations::{
    Generation, GenerationChanges, find, generations_at, list, make_generation, other_generations,
    own_size,
};
pub use item::{DEPOSIT_MARK, ItemCopier, SeenFiles, UNCOMPARED, write_sidecar};
pub use keep::Keep;
pub use metadata::{SET_IDS, UserAttributes, attributes_of, file as copy_metadata};
pub use metadata::{owner as owner_of, times as times_of};
use note::BackupNote;
pub use staging::Staging;

/// An estimate of the number of directories to copy; None where they cannot be counted.
pub fn count(from: &Tree) -> Option<u64> {
    let mut count = 0;
    for (area, depth) in AREAS {
        let counted = from.each_directory_at::<TreeError>(area, depth, |_| {
            count += 1;
            Ok(())
        });
        counted.ok()?;
    }
    Some(count)
}

/// Makes a backup, or updates an earlier one. `progress` receives the number of directories begun so far, see
/// [`count`].
pub fn make(
    from: &Archive,
    destination: &Path,
    clock: &dyn Clock,
    report: &mut Reporter<'_, BackupFinding>,
    progress: &mut dyn FnMut(u64),
) -> Result<BackupTally, BackupError> {
    let started = clock.now();
    let tally = make_unnoted(from, destination, clock, report, progress)?;
    note_in_store(from, destination, started, tally.items);
    Ok(tally)
}

/// Makes a backup of which the store is told nothing.
pub fn make_unnoted(
    from: &Archive,
    destination: &Path,
    clock: &dyn Clock,
    report: &mut Reporter<'_, BackupFinding>,
    progress: &mut dyn FnMut(u64),
) -> Result<BackupTally, BackupError> {
    let to = prepare(from, destination)?;
    let _lock = Archive::hold(&to)?;
    let started = clock.now().to_rfc3339();
    let note = BackupNote::begin(from, &to, started, false)?;
    let (tally, _) = fill(from, &to, None, clock, report, progress)?;
    note.finish(&clock.now().to_rfc3339(), tally.items, None)?;
    Ok(tally)
}

/// Copies some items of a store to a new directory, with its index, to read them there.
pub fn make_of_some(
    from: &Archive,
    destination: &Path,
    places: &[Place],
    report: &mut Reporter<'_, BackupFinding>,
) -> Result<BackupTally, BackupError> {
    let to = prepare(from, destination)?;
    let _lock = Archive::hold(&to)?;
    fill_some(from, &to, places, report)
}

/// Rejects a destination that cannot hold a backup of one generation, and makes the directory.
fn prepare(from: &Archive, destination: &Path) -> Result<Tree, BackupError> {
    let (path, opened, is_closed) = closed_directory(from, destination)?;
    // Another user may exchange names above it from now on, and none below it.
    let there = PathBuf::from(by_descriptor(opened.as_fd()));
    let is_empty = opened.entries().is_ok_and(|entries| entries.is_empty());
    match is_closed {
        Closed::Before => {}
        Closed::Now if is_empty => {}
        Closed::Now | Closed::Never => return Err(BackupError::OfOthers { path }),
    }
    if opened.entry(GENERATIONS).is_ok() {
        return Err(BackupError::Generations { path });
    }
    if !is_empty {
        whose(from, &there).map_err(|error| match error {
            BackupError::NotABackup { .. } => BackupError::NotABackup { path: path.clone() },
            BackupError::Generation { .. } => BackupError::Generation { path: path.clone() },
            other => other,
        })?;
    }
    Ok(Tree::create_over(path, &opened)?)
}

/// Rejects a directory that is not an earlier backup of this store.
fn whose(from: &Archive, path: &Path) -> Result<(), BackupError> {
    let not = || BackupError::NotABackup {
        path: path.to_owned(),
    };
    let service = match note::read(path) {
        Some(note) if note.is_generation => {
            return Err(BackupError::Generation {
                path: path.to_owned(),
            });
        }
        Some(note) => note.service,
        None if is_hardly_begun(path) => return Ok(()),
        None => return Err(not()),
    };
    if !service.matches(&from.facts().service) {
        return Err(BackupError::OtherArchive {
            service: service.into(),
        });
    }
    // A backup in which identifiers were minted is a store: it is not overwritten by an older state.
    let Ok(tree) = Tree::open_as_it_is(path) else {
        return Ok(());
    };
    let Ok(index) = Store::open_read_only(tree.root(), None) else {
        return Ok(());
    };
    settling::each_item_of(&index, |item| {
        let is_known =
            item.state == State::Deleted || from.store().find_by_names(&item.names)?.is_some();
        if is_known {
            Ok(())
        } else {
            Err(BackupError::Used {
                names: Box::new(item.names.clone()),
            })
        }
    })
}

/// Whether a directory holds at most what is made before `backup.ibi` is written.
fn is_hardly_begun(path: &Path) -> bool {
    let names = |directory: Result<Directory, Errno>| {
        let entries = directory.and_then(|directory| directory.entries());
        let entries = entries.unwrap_or_default().into_iter();
        entries.map(|(name, _)| name)
    };
    let Ok(root) = Directory::open(path) else {
        return false;
    };
    names(root.again()).all(|name| match &name[..] {
        b"lock" => true,
        // A half-written file is ours; anything else in a directory of this name is not.
        b"staging" => names(root.directory(name)).all(|name| name.starts_with(b"write-")),
        b"col" | b"ibip" | b"deleted" => names(root.directory(name)).next().is_none(),
        _ => false,
    })
}

#[cfg(test)]
mod tests;
