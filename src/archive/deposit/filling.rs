//! Fills an item with a directory, and removes the directory when the item is on disk.
//!
//! The directories of the item are made: a process that has one of the source open must not reach the store. Files that
//! belong to this user alone become further names of the same files, where the source lies on the filesystem of the
//! store; all others are copied.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::MARK;
use super::mark::errno_of;
use super::source::{Moving, Source, SourceError};
use crate::archive::backup::{BackupError, BackupFinding, ItemCopier, SeenFiles};
use crate::archive::operations::is_draft;
use crate::archive::tree::{Action, SIDECAR, Tree, TreeError};
use crate::os::access_lists;
use crate::os::deep::{DeepEntry, open_far, walk_noting};
use crate::os::directory::Directory;
use crate::os::serving::Server;
use crate::os::writing;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The reason why an item was not filled, or the directory stays.
#[derive(Debug)]
pub enum DepositError {
    /// Copying failed.
    Copy(BackupError),
    /// An entry was not copied.
    Left(Message),
    /// A system call failed at a path.
    Tree(TreeError),
    /// The mark does not count any more.
    Source(SourceError),
    /// The directory was changed while it was copied.
    Changed,
    /// The item has other files, which a copy would remove.
    NotEmpty,
}

impl Localize for DepositError {
    fn message(&self) -> Message {
        match self {
            DepositError::Copy(error) => error.message(),
            DepositError::Left(error) => error.clone(),
            DepositError::Tree(error) => error.message(),
            DepositError::Source(error) => error.message(),
            DepositError::Changed => message!("it was changed while it was copied"),
            DepositError::NotEmpty => message!(
                "the item has files that the directory does not have; move the rest yourself, with mv"
            ),
        }
    }
}

display_message!(DepositError);

impl std::error::Error for DepositError {}

impl From<BackupError> for DepositError {
    fn from(error: BackupError) -> DepositError {
        DepositError::Copy(error)
    }
}

impl From<TreeError> for DepositError {
    fn from(error: TreeError) -> DepositError {
        DepositError::Tree(error)
    }
}

impl From<SourceError> for DepositError {
    fn from(error: SourceError) -> DepositError {
        DepositError::Source(error)
    }
}

fn failed(action: Action, path: &Path) -> impl FnOnce(Errno) -> DepositError {
    let path = path.display().to_string();
    move |errno| DepositError::Tree(TreeError::new(action, &path, errno))
}

/// Fills an item. `native` is its directory in the store, for those who may write there; `shown` is the one
/// through which its metadata are set and, for all others, its files are written.
///
/// # Errors
/// Files that are not in the item then are in the directory, with the mark.
pub fn fill(source: &Source, native: Option<&Path>, shown: &Path) -> Result<(), DepositError> {
    let path = native.unwrap_or(shown);
    let item = Directory::open(path).map_err(failed(Action::Open, path))?;
    let mark = source.mark()?;
    if mark.as_ref().is_some_and(|mark| mark.is_copied) {
        drop(mark);
        return remove(source, &item);
    }
    let time = match &mark {
        Some(mark) => mark.time(),
        None => source.changed(),
    };
    let time = time.map_err(|error| failed(Action::Read, &source.path)(errno_of(&error)))?;
    // An item that was minted with `doc/` has none but that of the directory.
    let _ = item.remove_directory("doc");
    let is_linking = native.is_some() && source.moving == Moving::Moved;
    if source.is_item() {
        close_like(source, shown)?;
    }
    copy(source, &item, path, is_linking)?;
    if !source.is_item() {
        set_metadata(source, shown, time)?;
    }
    sync(&item, path)?;
    let Some(mark) = mark else {
        return Ok(());
    };
    let marked = mark.add_copied();
    marked.map_err(failed(Action::Write, &source.path))?;
    // A file that is open keeps a name in its directory on filesystems without a hard removal, such as bindfs and NFS.
    drop(mark);
    remove(source, &item)
}

/// Takes from an item's directory, through the mount, which then knows of the change, the permissions that another item does not
/// give: what was closed to others is not open to them in its next edition.
fn close_like(source: &Source, shown: &Path) -> Result<(), DepositError> {
    let given = source.directory.stat().and_then(|before| {
        let list = access_lists::list_of(source.directory.descriptor())?;
        let mode = before.st_mode;
        Ok(list.map_or(mode, |list| access_lists::mode_without(&list, mode)))
    });
    let given = given.map_err(failed(Action::Read, &source.path))?;
    let changed = Directory::open(shown).and_then(|item| {
        let mode = item.stat()?.st_mode & 0o7777;
        let closed = mode & (given | !0o777);
        if closed == mode {
            return Ok(());
        }
        rustix::fs::fchmod(item, Mode::from_raw_mode(closed))
    });
    changed.map_err(failed(Action::ChangeMode, shown))
}

/// Names in a directory.
fn names_in(directory: &Directory, path: &Path) -> Result<HashSet<Vec<u8>>, DepositError> {
    let entries = directory.entries().map_err(failed(Action::List, path))?;
    Ok(entries.into_iter().map(|(name, _)| name).collect())
}

/// Whether a name in an item is one of ours: the sidecar, a file of a copy that did not end.
fn is_own(name: &[u8]) -> bool {
    name == SIDECAR.as_bytes() || name.starts_with(ItemCopier::TEMPORARY.as_bytes())
}

/// An open directory as a tree.
fn tree_of(directory: &Directory, path: &Path) -> Result<Tree, DepositError> {
    let opened = directory.again().map_err(failed(Action::Open, path))?;
    Ok(Tree::over(path.to_owned(), opened.into()))
}

fn source_tree(source: &Source) -> Result<Tree, DepositError> {
    source.tree().map_err(failed(Action::Open, &source.path))
}

/// Fills the item. Entries that only the item has are removed, so that it must have nothing of its own.
fn copy(
    source: &Source,
    item: &Directory,
    path: &Path,
    is_linking: bool,
) -> Result<(), DepositError> {
    let (from, to) = (source_tree(source)?, tree_of(item, path)?);
    let here = names_in(&source.directory, &source.path)?;
    let mut there = names_in(item, path)?;
    there.retain(|name| !is_own(name) && !here.contains(name));
    if !there.is_empty() {
        return Err(DepositError::NotEmpty);
    }
    let seen = SeenFiles::of(&from)?;
    let mut first = None;
    let mut report = |finding: &BackupFinding| {
        if first.is_none() {
            first = Some(message!(
                "'{path}' {finding}",
                path = crate::formats::fixity::shown(&finding.path),
                finding = finding.sentence()
            ));
        }
        Ok(())
    };
    let mut progress = |_| ();
    let staging = item.again().map_err(failed(Action::Open, path))?;
    let copier = ItemCopier::new(
        &from,
        &to,
        OwnedFd::from(staging),
        &mut report,
        &mut progress,
    );
    // An item keeps the owner who minted it.
    let copier = copier.keeping_top();
    let copier = if source.is_item() {
        copier.without_description()
    } else {
        copier
    };
    let mut copier = if is_linking { copier.linking() } else { copier };
    copier.content()?;
    drop(copier);
    match first {
        Some(first) => Err(DepositError::Left(first)),
        None if seen.have_changed(&from)? => Err(DepositError::Changed),
        None => Ok(()),
    }
}

/// Gives the item's directory the metadata of the source, through the mount, which then knows of the change. Of another
/// user's directory it gets the time alone: the item is that of its minter. So does a draft, which its mode would open.
fn set_metadata(source: &Source, shown: &Path, time: SystemTime) -> Result<(), DepositError> {
    let item = Directory::open(shown).map_err(failed(Action::Open, shown))?;
    let stat = rustix::fs::fstat(item.descriptor()).map_err(failed(Action::Read, shown))?;
    let is_own = source.is_own();
    if !is_draft(stat.st_mode) && is_own.map_err(failed(Action::Read, &source.path))? {
        let (from, to) = (source_tree(source)?, tree_of(&item, shown)?);
        let (mut report, mut progress) = (|_: &BackupFinding| Ok(()), |_| ());
        let staging = item.again().map_err(failed(Action::Open, shown))?;
        ItemCopier::new(
            &from,
            &to,
            OwnedFd::from(staging),
            &mut report,
            &mut progress,
        )
        .finish()?;
    }
    writing::set_modified(&File::from(OwnedFd::from(item)), time)
        .map_err(|error| failed(Action::SetTime, shown)(errno_of(&error)))
}

/// Syncs what was made in an item.
fn sync(item: &Directory, path: &Path) -> Result<(), DepositError> {
    let failed = |errno| failed(Action::Sync, path)(errno);
    // FUSE does not pass syncfs(2) on: there each file is synced.
    if Server::of(item) != Server::Process {
        return rustix::fs::syncfs(item).map_err(failed);
    }
    let (mut files, mut synced) = (Vec::new(), Ok(()));
    let walked = walk_noting(
        item.descriptor(),
        b"",
        |entry| match entry {
            DeepEntry::Entry(path) | DeepEntry::Unreadable(path, _) => files.push(path),
        },
        |directory, _| synced = synced.and_then(|()| rustix::fs::fsync(directory)),
    );
    walked.and(synced).map_err(failed)?;
    for file in files {
        let found = open_far(item.descriptor(), &file, OFlags::PATH | OFlags::NOFOLLOW);
        let stat = found.and_then(rustix::fs::fstat).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            let file = open_far(item.descriptor(), &file, OFlags::RDONLY | OFlags::NOFOLLOW);
            file.and_then(rustix::fs::fsync).map_err(failed)?;
        }
    }
    Ok(())
}

/// Removes a directory that is in the item; the mark goes last, and then the directory itself. Entries that the item
/// lacks stay, and with them the mark.
fn remove(source: &Source, item: &Directory) -> Result<(), DepositError> {
    let failed = |errno| failed(Action::Remove, &source.path)(errno);
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    walk_noting(
        source.directory.descriptor(),
        b"",
        |entry| match entry {
            DeepEntry::Entry(path) | DeepEntry::Unreadable(path, _) => files.push(path),
        },
        |_, path| directories.push(path.to_vec()),
    )
    .map_err(failed)?;
    for path in files.iter().filter(|path| *path != MARK.as_bytes()) {
        let [here, there] = [&source.directory, item].map(|directory| above(directory, path));
        let (above, name) = here.map_err(failed)?;
        let stat = |above: &Directory| above.entry(name).map(|found| *found.stat());
        let original = stat(&above).map_err(failed)?;
        let is_there = there.and_then(|(above, _)| stat(&above));
        if !is_there.is_ok_and(|copy| ItemCopier::is_copy(&original, &copy)) {
            return Err(DepositError::Changed);
        }
        above.remove_file(name).map_err(failed)?;
    }
    // The deepest first; the directory itself, which was met first, goes after the mark.
    for path in directories.iter().skip(1).rev() {
        let (above, name) = above(&source.directory, path).map_err(failed)?;
        match above.remove_directory(name) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(DepositError::Changed),
            removed => removed.map_err(failed)?,
        }
    }
    source.directory.remove_file(MARK).map_err(failed)?;
    source.remove().map_err(failed)
}

/// The directory of a path below another one, and the last component.
fn above<'a>(below: &Directory, path: &'a [u8]) -> Result<(Directory, &'a [u8]), Errno> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (&b""[..], path),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let parent = open_far(below.descriptor(), parent, flags)?;
    Ok((parent.into(), name))
}
