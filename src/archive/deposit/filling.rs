//! Fills an item with a directory: renames or copies, and removes the directory when the item is on disk.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::MARK;
use super::source::{Moving, Source, errno_of};
use crate::archive::backup::{BackupError, BackupFinding, ItemCopier, SeenFiles};
use crate::archive::tree::{Action, SIDECAR, Tree, TreeError, clear, each_entry_of};
use crate::os::renaming;
use crate::os::serving::Server;
use crate::os::writing;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// Why an item was not filled, or the directory stays.
#[derive(Debug)]
pub enum DepositError {
    /// Copying failed.
    Copy(BackupError),
    /// An entry was not copied.
    Left(Message),
    /// A system call failed at a path.
    Tree(TreeError),
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

fn failed(action: Action, path: &Path) -> impl FnOnce(Errno) -> DepositError {
    let path = path.display().to_string();
    move |errno| DepositError::Tree(TreeError::new(action, &path, errno))
}

fn opened(path: &Path) -> Result<OwnedFd, DepositError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(failed(Action::Open, path))
}

/// Fills an item. `native` is its directory in the store, for those who may write there; `shown` is the one
/// through which its metadata are set and, for all others, its files are written.
///
/// # Errors
/// What is not in the item then is in the directory, with the mark.
pub fn fill(source: &Source, native: Option<&Path>, shown: &Path) -> Result<(), DepositError> {
    let to = native.unwrap_or(shown);
    if source.moving == Moving::Moved && source.is_copied() {
        return remove(source);
    }
    // An item that was minted with `doc/` has none but that of the directory.
    let _ = std::fs::remove_dir(to.join("doc"));
    let is_renamed = match native {
        Some(native) if source.moving == Moving::Moved && source.is_beside(native) => {
            rename_all(source, native)?
        }
        _ => false,
    };
    if !is_renamed {
        copy(source, to)?;
    }
    set_metadata(source, shown)?;
    sync(to, is_renamed)?;
    if source.moving == Moving::Copied {
        return Ok(());
    }
    if is_renamed {
        return remove_mark(source);
    }
    let marked = source.mark_copied();
    marked.map_err(|error| io(&source.path, &error))?;
    remove(source)
}

fn io(path: &Path, error: &std::io::Error) -> DepositError {
    failed(Action::Remove, path)(errno_of(error))
}

/// Names in a directory, each with whether it is a directory.
fn names_in(path: &Path) -> Result<Vec<(Vec<u8>, bool)>, DepositError> {
    let mut names = Vec::new();
    each_entry_of(&opened(path)?, |name, is_directory| {
        names.push((name.to_vec(), is_directory));
    })
    .map_err(failed(Action::List, path))?;
    Ok(names)
}

/// Whether a name is the mark's, complete or not.
fn is_mark(name: &[u8]) -> bool {
    name.strip_prefix(MARK.as_bytes())
        .is_some_and(|rest| matches!(rest, b"" | b"-"))
}

/// Whether a name in an item is one of ours: the sidecar, a file of a copy that did not end.
fn is_own(name: &[u8]) -> bool {
    name == SIDECAR.as_bytes() || name.starts_with(ItemCopier::TEMPORARY.as_bytes())
}

/// Whether a name in two directories is one file.
fn is_linked(from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> bool {
    let found = |directory| {
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        (!is_directory).then_some((found.st_dev, found.st_ino))
    };
    found(from).is_some_and(|file| found(to) == Some(file))
}

/// Renames each entry into the item. False where nothing can be renamed, because the directories are of two
/// mounts or subvolumes.
fn rename_all(source: &Source, item: &Path) -> Result<bool, DepositError> {
    let (from, to) = (opened(&source.path)?, opened(item)?);
    let names = names_in(&source.path)?;
    for (name, _) in names.iter().filter(|(name, _)| !is_mark(name)) {
        let renamed = match renaming::rename_new(&from, &name[..], &to, &name[..]) {
            // Without RENAME_NOREPLACE a file is linked first, and the command may have been killed then.
            Err(Errno::EXIST) if is_linked(&from, &to, name) => {
                rustix::fs::unlinkat(&from, &name[..], AtFlags::empty())
            }
            other => other,
        };
        match renamed {
            Ok(()) => {}
            Err(Errno::XDEV) => return Ok(false),
            Err(errno) => {
                let path = source.path.join(String::from_utf8_lossy(name).as_ref());
                return Err(failed(Action::Move, &path)(errno));
            }
        }
    }
    Ok(true)
}

/// Copies into the item. What only the item has is removed from it, so that it must have nothing of its own.
fn copy(source: &Source, item: &Path) -> Result<(), DepositError> {
    let (from, to) = (
        Tree::open_as_it_is(&source.path)?,
        Tree::open_as_it_is(item)?,
    );
    let mut there = names_in(item)?;
    there.retain(|(name, _)| !is_own(name));
    let here = names_in(&source.path)?;
    if there
        .iter()
        .any(|(name, _)| here.iter().all(|(known, _)| known != name))
    {
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
    let staging = opened(item)?;
    ItemCopier::new(&from, &to, staging, &mut report, &mut progress).content()?;
    match first {
        Some(first) => Err(DepositError::Left(first)),
        None if seen.have_changed(&from)? => Err(DepositError::Changed),
        None => Ok(()),
    }
}

/// Gives the item's directory the metadata of the source, through the mount, which then knows of the change.
fn set_metadata(source: &Source, shown: &Path) -> Result<(), DepositError> {
    let (from, to) = (
        Tree::open_as_it_is(&source.path)?,
        Tree::open_as_it_is(shown)?,
    );
    let (mut report, mut progress) = (|_: &BackupFinding| Ok(()), |_| ());
    let staging = opened(shown)?;
    ItemCopier::new(&from, &to, staging, &mut report, &mut progress).finish()?;
    let time = source.time();
    time.and_then(|time| {
        let shown = opened(shown).map_err(std::io::Error::other)?;
        writing::set_modified(&shown.into(), time)
    })
    .map_err(|error| failed(Action::SetTime, shown)(errno_of(&error)))
}

/// Syncs what was made in an item: all its files where they were copied.
fn sync(item: &Path, is_renamed: bool) -> Result<(), DepositError> {
    let directory = opened(item)?;
    if is_renamed {
        return rustix::fs::fsync(directory).map_err(failed(Action::Sync, item));
    }
    // FUSE does not pass syncfs(2) on: there each file is synced.
    if Server::of(&directory) != Server::Process {
        return rustix::fs::syncfs(directory).map_err(failed(Action::Sync, item));
    }
    let mut waiting = vec![item.to_owned()];
    while let Some(path) = waiting.pop() {
        let listed = std::fs::read_dir(&path).map_err(|error| io(&path, &error))?;
        for entry in listed {
            let entry = entry.map_err(|error| io(&path, &error))?;
            let kind = entry.file_type().map_err(|error| io(&path, &error))?;
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = rustix::fs::open(entry.path(), flags, Mode::empty());
                file.and_then(|file| rustix::fs::fsync(file.as_fd()))
                    .map_err(failed(Action::Sync, &entry.path()))?;
            }
        }
        let directory = opened(&path)?;
        rustix::fs::fsync(directory).map_err(failed(Action::Sync, &path))?;
    }
    Ok(())
}

/// Removes a directory that is in the item; the mark goes last.
fn remove(source: &Source) -> Result<(), DepositError> {
    for (name, is_directory) in names_in(&source.path)? {
        if name == MARK.as_bytes() {
            continue;
        }
        let path = source.path.join(OsStr::from_bytes(&name));
        if is_directory {
            clear(&opened(&path)?).map_err(failed(Action::Remove, &path))?;
            std::fs::remove_dir(&path).map_err(|error| io(&path, &error))?;
        } else {
            std::fs::remove_file(&path).map_err(|error| io(&path, &error))?;
        }
    }
    remove_mark(source)
}

/// Removes the mark and the directory, which must have nothing else.
fn remove_mark(source: &Source) -> Result<(), DepositError> {
    std::fs::remove_file(source.mark_path())
        .and_then(|()| std::fs::remove_dir(&source.path))
        .map_err(|error| io(&source.path, &error))?;
    // A user who may write to a directory may lack the right to read it.
    if let Some(parent) = source.path.parent()
        && let Ok(parent) = opened(parent)
    {
        rustix::fs::fsync(parent).map_err(failed(Action::Sync, &source.path))?;
    }
    Ok(())
}
