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
//! - [`content`]: the content of a file, with its holes.
//! - [`metadata`]: mode, owner, times and extended attributes.
//! - [`directories`]: names in a directory.
//! - [`staging`]: where incomplete files lie.
//! - [`copier`]: a directory and its copy.
//! - [`entry`]: files, links and special files.
//! - [`mod@unit`]: items and the levels above them.
//! - [`item`]: one item, for a transfer.
//! - [`history`]: the log of the store.
//! - [`settling`]: a tree that agrees with its index.

mod content;
mod copier;
mod directories;
mod entry;
mod finding;
mod history;
mod item;
mod metadata;
mod settling;
mod staging;
mod unit;

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::archive::copies::{BACKUPS, note_backup};
use crate::archive::finding::Reporter;
use crate::archive::log_files::LOG_DIRECTORY;
use crate::archive::scrub::MARKS;
use crate::archive::store::{self, Store, StoreError};
use crate::archive::tree::Action;
use crate::archive::tree::{DAMAGED, RESERVE, Tree, TreeError};
use crate::archive::{
    Archive, BACKUP_NOTE, Clock, DATABASE, FACTS, PUBLIC_SEARCH_FILE, PUBLIC_TEXT_FILE,
    SEARCH_FILE, SERVICE_FILES, TEXT_FILE,
};
use crate::formats::copies::BackupNote as CopyNote;
use crate::formats::item::{Names, State};
use crate::os::directory::Directory;
use crate::os::opening::by_descriptor;
use crate::os::opening::read_regular;
pub use content::copy_content;
use copier::Copier;
pub use finding::{BackupError, BackupFinding, BackupTally};
use ibi::Timestamp;
use ibi::pairs::Pairs;
pub use item::{DEPOSIT_MARK, ItemCopier, SeenFiles, UNCOMPARED, write_sidecar};
pub use metadata::{SET_IDS, UserAttributes, attributes_of, file as copy_metadata};
pub use staging::Staging;
use unit::Vanished;

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

/// Whether an entry of the store's own directory is not copied with the rest: the log, damaged files that are kept, files of the process that has the store open,
/// files made for the backup, indices that can be made again, and the record of what harvesters have received,
/// which a restored store must not claim to know.
fn is_left(path: &[u8]) -> bool {
    let own: [&[u8]; 10] = [
        BACKUPS.as_bytes(),
        DATABASE.as_bytes(),
        b"lock",
        b"ledger",
        b"staging",
        LOG_DIRECTORY.as_bytes(),
        RESERVE.as_bytes(),
        b"lost+found",
        // What was mended is copied; the damaged files are for whoever looks into this store.
        DAMAGED.as_bytes(),
        BACKUP_NOTE.as_bytes(),
    ];
    own.contains(&path)
        || path.starts_with(store::FILE.as_bytes())
        || path.starts_with(store::HARVEST_FILE.as_bytes())
        || path.starts_with(store::ACCESSES_FILE.as_bytes())
        || path.starts_with(store::PICTURES_FILE.as_bytes())
        || path.starts_with(SERVICE_FILES.as_bytes())
        || path.starts_with(SEARCH_FILE.as_bytes())
        || path.starts_with(PUBLIC_SEARCH_FILE.as_bytes())
        || path.starts_with(TEXT_FILE.as_bytes())
        || path.starts_with(PUBLIC_TEXT_FILE.as_bytes())
        || is_left_below(path)
        || AREAS.iter().any(|(area, _)| area.as_bytes() == path)
}

/// The same for a store whose facts name the server of its index, see [`without_server`].
fn is_left_or_facts(path: &[u8]) -> bool {
    is_left(path) || path == FACTS.as_bytes()
}

/// Within an area the positions of scrubs are not copied, nor the marks of damaged files: a damaged file is not copied
/// over its good copy, which is not damaged.
fn is_left_below(path: &[u8]) -> bool {
    path.starts_with(b"fixity/progress") || path == MARKS.as_bytes()
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
    let note = BackupNote {
        from,
        to: &to,
        started: clock.now().to_rfc3339(),
    };
    note.write(None)?;
    let facts = from.tree().read_small(FACTS)?.unwrap_or_default();
    to.write_small(".", FACTS, &without_server(&facts), None)?;
    let mut copier = Copier::new(from.tree(), &to, report, progress)?;
    let mut vanished = Vec::new();
    for (area, depth) in AREAS {
        if from.tree().is_directory(area) {
            let of_items = matches!(area, "col" | "ibip");
            let units = if of_items {
                Vanished::Collect
            } else {
                Vanished::Remove
            };
            copier.levels(area.as_bytes(), depth, units, is_left_below, &mut vanished)?;
        }
    }
    // Then everything else in the store's own directory.
    let is_left = match from.facts().index {
        Some(_) => is_left_or_facts,
        None => is_left,
    };
    copier.levels(b"", 1, Vanished::Collect, is_left, &mut Vec::new())?;
    settling::settle(from, &mut copier, &vanished, clock)?;
    if let Err(error) = copy_accesses(from, &to) {
        log::warn!("the backup lacks {}: {error}", store::ACCESSES_FILE);
    }
    let tally = copier.tally;
    to.sync_all()?;
    note.write(Some(clock))?;
    note_in_store(from, &to, &note.started, tally.items);
    Ok(tally)
}

/// Notes in the store that it has a backup. What cannot be noted does not make the backup fail.
fn note_in_store(from: &Archive, to: &Tree, started: &str, items: u64) {
    let Ok(made) = Timestamp::parse_rfc3339(started) else {
        return;
    };
    let made = CopyNote {
        directory: to.path().to_string_lossy().into_owned(),
        made,
        items,
        proof: None,
    };
    if let Err(error) = note_backup(from.tree(), made) {
        log::info!("the store does not note its backup: {error}");
    }
}

/// `archive.ibi` of a backup, which has its index in a file: a server would give it that of the store.
fn without_server(facts: &[u8]) -> Vec<u8> {
    match Pairs::parse(facts) {
        Ok(mut pairs) if pairs.get("index").is_some() => {
            pairs.remove("index");
            pairs.to_bytes()
        }
        _ => facts.to_vec(),
    }
}

/// Copies the access counts of items. Nothing else in a backup depends on them.
fn copy_accesses(from: &Archive, to: &Tree) -> Result<(), StoreError> {
    match store::Accesses::open_if_there(from.tree().root(), from.facts().index.as_ref())? {
        Some(accesses) => accesses.copy_to(to.root(), None),
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
    let opened = held(&path).map_err(|errno| failed(errno.into()))?;
    let is_closed = close_to_others(from, &opened).map_err(|errno| failed(errno.into()))?;
    // Another user may exchange names above it from now on, and none below it.
    let there = PathBuf::from(by_descriptor(opened.as_fd()));
    let entries = opened.entries().map_err(|errno| failed(errno.into()))?;
    let is_empty = entries.is_empty();
    match is_closed {
        Closed::Before => {}
        Closed::Now if is_empty => {}
        Closed::Now | Closed::Never => return Err(BackupError::OfOthers { path }),
    }
    if !is_empty {
        whose(from, &there).map_err(|error| match error {
            BackupError::NotABackup { .. } => BackupError::NotABackup { path: path.clone() },
            other => other,
        })?;
    }
    Ok(Tree::create_over(path, &opened)?)
}

/// Opens the destination, and makes it where it is missing.
fn held(path: &Path) -> Result<Directory, Errno> {
    let Some(name) = path.file_name() else {
        return Directory::open(path);
    };
    let above = Directory::open(path.parent().unwrap_or(path))?;
    match rustix::fs::mkdirat(&above, name.as_bytes(), Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => above.directory(name.as_bytes()),
        Err(errno) => Err(errno),
    }
}

/// The right of other users to write in a directory.
enum Closed {
    /// They could not before.
    Before,
    /// They could until now.
    Now,
    /// They can: it is another user's.
    Never,
}

/// Keeps other users from writing in a directory, but for those who may write in the store: its owner and its mode are
/// those of an earlier backup.
fn close_to_others(from: &Archive, directory: &Directory) -> Result<Closed, Errno> {
    let (stat, store) = (directory.stat()?, rustix::fs::fstat(from.tree().root())?);
    if stat.st_uid != store.st_uid && stat.st_uid != owner_of_new(directory)? {
        return Ok(Closed::Never);
    }
    if stat.st_mode & !store.st_mode & 0o022 == 0 {
        return Ok(Closed::Before);
    }
    rustix::fs::fchmod(directory, Mode::RWXU)?;
    Ok(Closed::Now)
}

/// The user to whom belongs what this process makes in a directory: a filesystem of a network may have another number.
fn owner_of_new(directory: &Directory) -> Result<u32, Errno> {
    let (name, made) = directory.create_random(".ibifs-backup-", 0o600)?;
    let stat = rustix::fs::fstat(&made);
    directory.remove_file(&name)?;
    Ok(stat?.st_uid)
}

/// Rejects a directory that is not an earlier backup of this store.
fn whose(from: &Archive, path: &Path) -> Result<(), BackupError> {
    let not = || BackupError::NotABackup {
        path: path.to_owned(),
    };
    let bytes = match read_regular(path.join(BACKUP_NOTE), OFlags::NOFOLLOW) {
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

/// The content of `backup.ibi`.
struct BackupNote<'a> {
    from: &'a Archive,
    to: &'a Tree,
    started: String,
}

impl BackupNote<'_> {
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
