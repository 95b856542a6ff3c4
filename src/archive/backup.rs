//! A backup: another store that is the same as this one at one instant, whatever goes on meanwhile.
//!
//! First the trees are copied, which takes its time, then the index, which is that of one instant
//! (SQLite's own interface for it). Which items there are, what their sidecars say and which are
//! removed is in the index as well: the copy's tree is made to agree with the copied index, see
//! [`settling`], and the two are checked as `fsck` does. What the items' files hold is that of some
//! moment of the backup, each file whole.
//!
//! Own code and no child process of a copying tool: those walk by names, and whoever may write in an
//! item may swap a directory for a link under them; and none of them knows what belongs together.
//!
//! A backup says of itself, in `backup.ibi`, which Archive it is of and whether it is finished. It
//! is a store; one that is not finished cannot be opened by mistake. Its lock is held meanwhile.

mod content;
mod copying;
mod item;
mod metadata;
mod settling;

use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::archive::finding::{findings, with_detail};
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
    /// What is reported of a path that is not, or not certainly, in the backup as it is in the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Code {
        // It changed while it was copied, each time.
        Unsteady "unsteady" Warning
            "changed each time that it was copied; make the backup again when it rests"
        // It cannot be read, or cannot be made.
        NotCopied "not-copied" Error
            "is not in the backup as it is now"
        // The store has lost it, the backup keeps it.
        Kept "kept" Warning
            "is gone from the store, though nobody has removed it; the backup still has it"
        // The store itself is not sound there; the backup is the same.
        Unsound "unsound" Error
            "the store itself is not sound, and the backup is the same; run 'ibifs fsck' on both"
    }
}

/// One thing that is reported.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub code: Code,
    /// Where, below the store.
    pub path: Vec<u8>,
    /// More, where there is more to say.
    pub detail: Option<Message>,
}

impl Finding {
    /// What is wrong, and what can be done.
    pub fn sentence(&self) -> Message {
        with_detail(self.code, self.detail.as_ref())
    }
}

/// Told each thing that is found, as it is found.
pub type Tell<'a> = dyn FnMut(&Finding) -> std::io::Result<()> + 'a;

/// What a backup has done.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Items in the backup.
    pub items: u64,
    /// Files and other entries that were copied.
    pub copied: u64,
    /// Bytes that were moved for them.
    pub bytes: u64,
    /// Entries that were there already.
    pub unchanged: u64,
    /// Entries that were removed from an earlier backup.
    pub removed: u64,
    /// How much was told.
    pub found: u64,
    /// Directories looked at as a whole, for showing how far it is.
    units: u64,
}

/// Why there is no backup, or no finished one.
#[derive(Debug)]
pub enum BackupError {
    /// The store or the backup failed.
    Archive(ArchiveError),
    /// The backup would lie in the store, or the store in it.
    Nested,
    /// There is something else.
    NotABackup {
        /// Where.
        path: PathBuf,
    },
    /// It is the backup of another Archive.
    OtherArchive {
        /// Whose it is.
        service: Box<Names>,
    },
    /// It has been written as a store since.
    Used {
        /// An item that the store does not know.
        names: Box<Names>,
    },
    /// What was found could not be told.
    Report(std::io::Error),
}

impl Localize for BackupError {
    fn message(&self) -> Message {
        match self {
            BackupError::Archive(error) => error.message(),
            BackupError::Nested => message!(
                "the backup would lie in the store or the store in it; name a directory elsewhere"
            ),
            BackupError::NotABackup { path } => message!(
                "'{path}' is not empty and no backup; name a new directory",
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

/// What is copied first, as the index is then made to agree with it: with the number of levels above
/// its units.
const AREAS: [(&str, usize); 4] = [("col", 4), ("ibip", 2), ("deleted", 3), ("fixity", 5)];

/// How many directories a backup will look at as a whole, about; None where they cannot be counted.
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

/// What of the store's own directory is not taken along: what belongs to whoever has it open, what is
/// made for the backup, and what harvesters were told: a store that is restored knows less than they do.
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

/// Of an area nothing is left but how far a scrub has come.
fn is_left_below(path: &[u8]) -> bool {
    path == b"fixity/progress"
}

/// Copies what a file holds into an empty one, holes as holes.
pub fn copy_content(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(from)?;
    content::copy(from, to, &stat)
        .map(drop)
        .map_err(|error| match error {
            content::ContentError::From(errno) | content::ContentError::To(errno) => errno,
        })
}

/// Makes a backup, or brings an earlier one up to date. `progress` is told how many directories have
/// been looked at, see [`count`].
pub fn make(
    from: &Archive,
    destination: &Path,
    clock: &dyn Clock,
    tell: &mut Tell<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Tally, BackupError> {
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
    let mut copier = Copier::new(from.tree(), &to, tell, progress)?;
    let mut vanished = Vec::new();
    for (area, depth) in AREAS {
        if from.tree().is_directory(area) {
            let prune = !matches!(area, "col" | "ibip");
            copier.levels(area.as_bytes(), depth, prune, is_left_below, &mut vanished)?;
        }
    }
    // Whatever else lies beside them.
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

/// Takes along how often items were reached. Nothing else in a backup depends on it.
fn copy_accesses(from: &Archive, to: &Tree) -> Result<(), StoreError> {
    match store::Accesses::open_if_there(from.tree().root())? {
        Some(accesses) => accesses.copy_to(to.root()),
        None => Ok(()),
    }
}

/// Refuses what is no place for a backup of this store, and makes the directory.
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

/// Refuses a directory that is not an earlier backup of this store.
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
    // Whoever mints in a backup has made a store of it; it is not thrown away for an older one.
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

/// Visits every item of an index, whose lock is free meanwhile: `visit` may ask another index.
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

/// Whether a directory holds no more than is made before a backup says what it is.
fn is_hardly_begun(path: &Path) -> bool {
    let names = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.map(|entry| entry.file_name()).unwrap_or_default())
    };
    names(path).all(|name| match name.to_str() {
        Some("lock") => true,
        // What is being written there is ours; whatever else is called so is somebody else's.
        Some("staging") => names(&path.join(name))
            .all(|name| name.to_str().is_some_and(|name| name.starts_with("write-"))),
        Some("col" | "ibip" | "deleted") => names(&path.join(name)).next().is_none(),
        _ => false,
    })
}

/// What a backup says of itself.
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
