//! Backups: another store with the state of this one at one instant, while this one stays in use.
//!
//! The trees are copied first, which takes time; then the index, at one instant, through SQLite's backup
//! interface. The index also records which items exist, what their sidecars contain and which items are
//! removed. The copied tree is made to agree with the copied index, see [`settling`], and both are checked as
//! `fsck` does. The content of a file is that of some moment of the backup, each file as a whole.
//!
//! No copying tool is run as a child process. Such tools walk by names, so a user with write permission in an
//! item could swap a directory for a link during the copy, and they do not know which files belong together.
//!
//! `backup.ibi` in a backup names the Archive that it is of, and whether it is finished. A backup is a store;
//! an unfinished one cannot be opened by mistake. Its lock is held while it is made.

mod content;
mod copying;
mod item;
mod metadata;
mod settling;

use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::archive::finding::{Reporter, findings, with_detail};
use crate::archive::store::{self, Item, ItemId, Store, StoreError};
use crate::archive::tree::Action;
use crate::archive::tree::{RESERVE, Tree, TreeError};
use crate::archive::{Archive, ArchiveError, BACKUP_NOTE, Clock};
use crate::formats::item::{Names, State};
use copying::Copier;
use ibi::message::{Localize, Message};
use ibi::pairs::Pairs;
use ibi::{display_message, message};
pub use item::{ItemCopier, UNCOMPARED};
pub use metadata::{Attributes, attributes_of};

findings! {
    /// What is reported of a path that is not, or may not be, in the backup as it is in the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BackupCode {
        // It changed during each attempt to copy it.
        Unsteady "unsteady" Warning
            "changed each time that it was copied; run the backup again when it is no longer written"
        // It cannot be read or created.
        NotCopied "not-copied" Error
            "is not in the backup as it is now"
        // The store has lost it; the backup still has it.
        Kept "kept" Warning
            "is missing from the store, though it was not removed; the backup still has it"
        // The store itself has an error there, and so has the backup.
        Unsound "unsound" Error
            "the store itself has errors, and so has the backup; run 'ibifs fsck' on both"
    }
}

/// One finding of a backup.
#[derive(Clone, Debug)]
pub struct BackupFinding {
    /// The kind of finding.
    pub code: BackupCode,
    /// The path, relative to the store.
    pub path: Vec<u8>,
    /// More about this case, if there is more to say.
    pub detail: Option<Message>,
}

impl BackupFinding {
    /// A sentence: what is wrong, and what can be done.
    pub fn sentence(&self) -> Message {
        with_detail(self.code, self.detail.as_ref())
    }
}

/// Counts of what a backup has done.
#[derive(Clone, Debug, Default)]
pub struct BackupTally {
    /// Items in the backup.
    pub items: u64,
    /// Files and other entries that were copied.
    pub copied: u64,
    /// Bytes copied for them.
    pub bytes: u64,
    /// Entries that were already there.
    pub unchanged: u64,
    /// Entries that were removed from an earlier backup.
    pub removed: u64,
    /// Number of findings.
    pub found: u64,
    /// Directories begun, for the progress report.
    units: u64,
}

/// Why a backup failed or is not finished.
#[derive(Debug)]
pub enum BackupError {
    /// An operation on the store or the backup failed.
    Archive(ArchiveError),
    /// The backup would lie in the store, or the store in the backup.
    Nested,
    /// The destination holds something other than a backup.
    NotABackup {
        /// The destination.
        path: PathBuf,
    },
    /// The destination is a backup of another Archive.
    OtherArchive {
        /// The names of that Archive.
        service: Box<Names>,
    },
    /// The earlier backup has since been used as a store.
    Used {
        /// An item that the source store does not know.
        names: Box<Names>,
    },
    /// A finding could not be reported.
    Report(std::io::Error),
}

impl Localize for BackupError {
    fn message(&self) -> Message {
        match self {
            BackupError::Archive(error) => error.message(),
            BackupError::Nested => message!(
                "the backup would be inside the store, or the store inside it; name another directory"
            ),
            BackupError::NotABackup { path } => message!(
                "'{path}' is not empty and not a backup; name a new directory",
                path = path.display()
            ),
            BackupError::OtherArchive { service } => message!(
                "it is the backup of another Archive, whose service is {service}; name a new directory",
                service
            ),
            BackupError::Used { names } => message!(
                "it has been used as a store and holds {names}, which the store does not know; \
                 name a new directory",
                names
            ),
            BackupError::Report(error) => message!("standard output: {error}", error),
        }
    }
}

display_message!(BackupError);

impl std::error::Error for BackupError {}

impl From<ArchiveError> for BackupError {
    fn from(error: ArchiveError) -> BackupError {
        BackupError::Archive(error)
    }
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> BackupError {
        BackupError::Archive(error.into())
    }
}

/// The areas that are copied before the index, each with the number of levels above its units.
const AREAS: [(&str, usize); 4] = [("col", 4), ("ibip", 2), ("deleted", 3), ("fixity", 5)];

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

/// Whether an entry of the store's own directory is not copied: files of the process that has the store open,
/// files made for the backup, and the record of what harvesters have received, which a restored store must
/// not claim to know.
fn is_left(path: &[u8]) -> bool {
    let own: [&[u8]; 7] = [
        b"lock",
        b"ledger",
        b"staging",
        RESERVE.as_bytes(),
        b"lost+found",
        BACKUP_NOTE.as_bytes(),
        b"fixity/progress",
    ];
    own.contains(&path)
        || path.starts_with(store::FILE.as_bytes())
        || path.starts_with(store::HARVEST_FILE.as_bytes())
        || path.starts_with(store::ACCESSES_FILE.as_bytes())
        || AREAS.iter().any(|(area, _)| area.as_bytes() == path)
}

/// Within an area only the position of a scrub is not copied.
fn is_left_below(path: &[u8]) -> bool {
    path == b"fixity/progress"
}

/// Copies the content of a file into an empty one, preserving holes.
pub fn copy_content(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(from)?;
    content::copy(from, to, &stat)
        .map(drop)
        .map_err(|error| match error {
            content::ContentError::From(errno) | content::ContentError::To(errno) => errno,
        })
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
    let to = prepare(from, destination)?;
    let _lock = Archive::hold(&to)?;
    let note = Note {
        from,
        to: &to,
        started: clock.now().to_rfc3339(),
    };
    note.write(None)?;
    let facts = from.tree().read_small("archive.ibi")?.unwrap_or_default();
    to.write_small(".", "archive.ibi", &facts, None)?;
    let mut copier = Copier::new(from.tree(), &to, report, progress)?;
    let mut vanished = Vec::new();
    for (area, depth) in AREAS {
        if from.tree().is_directory(area) {
            let prune = !matches!(area, "col" | "ibip");
            copier.levels(area.as_bytes(), depth, prune, is_left_below, &mut vanished)?;
        }
    }
    // Then everything else in the store's own directory.
    copier.levels(b"", 1, false, is_left, &mut Vec::new())?;
    settling::settle(from, destination, &mut copier, &vanished, clock)?;
    if let Err(error) = copy_accesses(from, &to) {
        log::warn!(
            "the backup lacks {}: {}",
            store::ACCESSES_FILE,
            error.cause()
        );
    }
    let tally = copier.tally;
    to.sync_all()?;
    note.write(Some(clock))?;
    Ok(tally)
}

/// Copies the access counts of items. Nothing else in a backup depends on them.
fn copy_accesses(from: &Archive, to: &Tree) -> Result<(), StoreError> {
    match store::Accesses::open_if_there(from.tree().root())? {
        Some(accesses) => accesses.copy_to(to.root()),
        None => Ok(()),
    }
}

/// Rejects a destination that cannot hold a backup of this store, and makes the directory.
fn prepare(from: &Archive, destination: &Path) -> Result<Tree, BackupError> {
    let failed = |error: std::io::Error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let shown = destination.display().to_string();
        BackupError::Archive(from.tree().error(Action::Make, &shown, errno).into())
    };
    let path = std::fs::canonicalize(destination).or_else(|_| {
        let absolute = std::path::absolute(destination)?;
        let parent = std::fs::canonicalize(absolute.parent().unwrap_or(&absolute))?;
        Ok(parent.join(absolute.file_name().unwrap_or_default()))
    });
    let path = path.map_err(failed)?;
    let store = from.tree().path();
    if path.starts_with(store) || store.starts_with(&path) {
        return Err(BackupError::Nested);
    }
    match std::fs::DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if std::fs::read_dir(&path).map_err(failed)?.next().is_some() {
                whose(from, &path)?;
            }
        }
        Err(error) => return Err(failed(error)),
    }
    Ok(Tree::create(&path)?)
}

/// Rejects a directory that is not an earlier backup of this store.
fn whose(from: &Archive, path: &Path) -> Result<(), BackupError> {
    let not = || BackupError::NotABackup {
        path: path.to_owned(),
    };
    let bytes = match std::fs::read(path.join(BACKUP_NOTE)) {
        Ok(bytes) => bytes,
        Err(_) if is_hardly_begun(path) => return Ok(()),
        Err(_) => return Err(not()),
    };
    let pairs = Pairs::parse(&bytes).map_err(|_| not())?;
    let service = pairs.get("ibi.archiveservice");
    let service = service.and_then(|value| Names::from_value(value).ok());
    let service = service.ok_or_else(not)?;
    if !service.matches(&from.facts().service) {
        return Err(BackupError::OtherArchive {
            service: service.into(),
        });
    }
    // A backup in which identifiers were minted is a store: it is not overwritten by an older state.
    let Ok(tree) = Tree::open_as_it_is(path) else {
        return Ok(());
    };
    let Ok(index) = Store::open_read_only(tree.root()) else {
        return Ok(());
    };
    each_item_of(&index, |item| {
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

/// How many items are read from an index at once.
const PAGE: usize = 1000;

/// Visits every item of an index. The index is not locked during `visit`, which may query another index.
fn each_item_of(
    index: &Store,
    mut visit: impl FnMut(&Item) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut after = ItemId(0);
    loop {
        let items = index.items_after(after, PAGE)?;
        let Some(last) = items.last() else {
            return Ok(());
        };
        after = last.id;
        items.iter().try_for_each(&mut visit)?;
    }
}

/// Whether a directory holds at most what is made before `backup.ibi` is written.
fn is_hardly_begun(path: &Path) -> bool {
    let names = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.map(|entry| entry.file_name()).unwrap_or_default())
    };
    names(path).all(|name| match name.to_str() {
        Some("lock") => true,
        // A half-written file is ours; anything else in a directory of this name is not.
        Some("staging") => names(&path.join(name))
            .all(|name| name.to_str().is_some_and(|name| name.starts_with("write-"))),
        Some("col" | "ibip" | "deleted") => names(&path.join(name)).next().is_none(),
        _ => false,
    })
}

/// The content of `backup.ibi`.
struct Note<'a> {
    from: &'a Archive,
    to: &'a Tree,
    started: String,
}

impl Note<'_> {
    fn write(&self, finished: Option<&dyn Clock>) -> Result<(), BackupError> {
        let mut text = format!(
            "ibi.archiveservice {}\nstarted {}\n",
            self.from.facts().service,
            self.started
        );
        if let Some(clock) = finished {
            text.push_str(&format!("finished {}\n", clock.now().to_rfc3339()));
        }
        Ok(self
            .to
            .write_small(".", BACKUP_NOTE, text.as_bytes(), None)?)
    }
}

#[cfg(test)]
mod tests;
