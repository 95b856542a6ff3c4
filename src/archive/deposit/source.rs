//! The directory that is to be deposited: what is refused before anything is minted.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Access, AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::MARK;
use super::mark::{Found, Mark, errno_of};
use crate::archive::tree::{SIDECAR, Tree};
use crate::formats::item::Names;
use crate::os::deep::{self, DeepEntry};
use crate::os::directory::{Directory, is_own, is_same_file};
use crate::os::mounts::mounts;
use crate::os::opening;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The fate of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moving {
    /// It is gone afterwards.
    Moved,
    /// It stays as it is.
    Copied,
}

/// The reason why a directory cannot be deposited.
#[derive(Debug)]
pub enum SourceError {
    /// The system refuses.
    Io(PathBuf, Errno),
    /// It is a symbolic link.
    Link(PathBuf),
    /// It is not a directory.
    NoDirectory(PathBuf),
    /// Another filesystem is mounted there or below.
    MountPoint(PathBuf),
    /// It is the root directory, or has a store in it.
    HasStore(PathBuf),
    /// It lies in a store.
    InStore(PathBuf),
    /// An item has this sidecar.
    HasItem(PathBuf),
    /// The user may not move it.
    Unmovable(PathBuf, Errno),
    /// It is not a mark of this user for this directory.
    BadMark(PathBuf),
}

impl Localize for SourceError {
    fn message(&self) -> Message {
        let error = |errno: &Errno| std::io::Error::from(*errno);
        match self {
            SourceError::Io(path, errno) => {
                message!(
                    "{path}: {error}",
                    path = path.display(),
                    error = error(errno)
                )
            }
            SourceError::Link(path) => message!(
                "'{path}' is a symbolic link; name the directory that it leads to",
                path = path.display()
            ),
            SourceError::NoDirectory(path) => {
                message!("'{path}' is not a directory", path = path.display())
            }
            SourceError::MountPoint(path) => message!(
                "a filesystem is mounted at '{path}'; unmount it, or deposit a directory in it",
                path = path.display()
            ),
            SourceError::HasStore(path) => message!(
                "'{path}' has a store in it; deposit another directory",
                path = path.display()
            ),
            SourceError::InStore(path) => message!(
                "'{path}' lies in a store; deposit a copy of it that lies elsewhere, or mint with --edition-of and --with-files",
                path = path.display()
            ),
            SourceError::HasItem(path) => message!(
                "'{path}' is the sidecar of an item; bring items with 'ibifs copy' or 'ibifs import', or remove that file",
                path = path.display()
            ),
            SourceError::Unmovable(path, errno) => message!(
                "'{path}' cannot be moved: {error}; --keep copies it",
                path = path.display(),
                error = error(errno)
            ),
            SourceError::BadMark(path) => message!(
                "'{path}' is not a mark that you have made by depositing this directory; remove it",
                path = path.display()
            ),
        }
    }
}

display_message!(SourceError);

impl std::error::Error for SourceError {}

/// A directory that may be deposited. It is held open: its path may lead elsewhere later.
#[derive(Debug)]
pub struct Source {
    /// For messages.
    pub(super) path: PathBuf,
    pub(super) moving: Moving,
    pub(super) directory: Directory,
    /// The directory in which it lies, and its name there; None for an item.
    place: Option<(Directory, Vec<u8>)>,
}

impl Source {
    /// Checks a directory and all that is in it.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn check(path: &Path, moving: Moving) -> Result<Source, SourceError> {
        let io =
            |path: &Path, error: std::io::Error| SourceError::Io(path.to_owned(), errno_of(&error));
        // With a slash behind it, the system would follow a link.
        let path: &Path = &path.components().collect::<PathBuf>();
        let found = path.symlink_metadata().map_err(|error| io(path, error))?;
        if found.is_symlink() {
            return Err(SourceError::Link(path.to_owned()));
        }
        if !found.is_dir() {
            return Err(SourceError::NoDirectory(path.to_owned()));
        }
        let real = std::fs::canonicalize(path).map_err(|error| io(path, error))?;
        if let Some(inner) = mounts()
            .into_iter()
            .find(|mount| mount.mount_point.starts_with(&real))
        {
            return Err(SourceError::MountPoint(inner.mount_point));
        }
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(SourceError::HasStore(real));
        };
        if real.ancestors().skip(1).any(is_store) {
            return Err(SourceError::InStore(real));
        }
        // A user who may write to a directory may lack the right to read it.
        let above = opening::found(parent, OFlags::DIRECTORY);
        let above = above.map_err(|errno| SourceError::Io(parent.to_owned(), errno))?;
        let source = Source::in_directory(above.into(), name, moving)?;
        let stat = source.directory.stat();
        match stat.map_err(|errno| SourceError::Io(real.clone(), errno))? {
            stat if (stat.st_dev, stat.st_ino) == (found.dev(), found.ino()) => {}
            // Exchanged between the looks.
            _ => return Err(SourceError::Io(real, Errno::STALE)),
        }
        Ok(Source {
            path: real,
            ..source
        })
    }

    /// Checks a directory that lies in an open one, and all that is in it.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn in_directory(
        above: Directory,
        name: &OsStr,
        moving: Moving,
    ) -> Result<Source, SourceError> {
        let path = above.path().unwrap_or_default().join(name);
        if moving == Moving::Moved {
            may(&above, ".", Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|errno| SourceError::Unmovable(path.clone(), errno))?;
        }
        let directory = above.directory(name.as_bytes());
        let source = Source {
            directory: directory.map_err(|errno| SourceError::Io(path.clone(), errno))?,
            path,
            moving,
            place: Some((above, name.as_bytes().to_vec())),
        };
        source.check_below()?;
        Ok(source)
    }

    /// Checks the open directory of an item, whose files another item is to have as well, and all that is in it.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn of_item(directory: Directory, path: PathBuf) -> Result<Source, SourceError> {
        let source = Source {
            path,
            moving: Moving::Copied,
            directory,
            place: None,
        };
        source.check_below()?;
        Ok(source)
    }

    /// Whether it is the directory of an item.
    pub(super) fn is_item(&self) -> bool {
        self.place.is_none()
    }

    fn check_below(&self) -> Result<(), SourceError> {
        let mut first = Ok(());
        let mut unreadable = None;
        let checked = deep::walk_noting(
            self.directory.descriptor(),
            b"",
            |entry| {
                if let DeepEntry::Unreadable(path, errno) = entry {
                    unreadable.get_or_insert((path, errno));
                }
            },
            |directory, path| {
                if first.is_ok() {
                    first = self.check_directory(directory, path);
                }
            },
        );
        first?;
        checked.map_err(|errno| SourceError::Io(self.path.clone(), errno))?;
        match unreadable {
            Some((path, errno)) => Err(SourceError::Io(self.below(&path), errno)),
            None => Ok(()),
        }
    }

    /// Checks a directory and what is in it itself.
    fn check_directory(&self, directory: impl AsFd, path: &[u8]) -> Result<(), SourceError> {
        let shown = self.below(path);
        let io = |errno| SourceError::Io(shown.clone(), errno);
        let directory = Directory::reopened(directory).map_err(io)?;
        let kind_of = |name| directory.entry(name).map(|found| found.kind());
        if kind_of("archive.ibi") == Ok(FileType::RegularFile)
            && kind_of("col") == Ok(FileType::Directory)
        {
            return Err(SourceError::HasStore(shown));
        }
        if self.moving == Moving::Moved {
            may(&directory, ".", Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|errno| SourceError::Unmovable(shown.clone(), errno))?;
        }
        may(&directory, ".", Access::READ_OK | Access::EXEC_OK).map_err(io)?;
        for (name, kind) in directory.entries().map_err(io)? {
            let path = shown.join(OsStr::from_bytes(&name));
            let is_own = self.is_item() && shown == self.path;
            if name == SIDECAR.as_bytes() && kind != FileType::Directory && !is_own {
                return Err(SourceError::HasItem(path));
            }
            if kind == FileType::RegularFile {
                may(&directory, &name[..], Access::READ_OK)
                    .map_err(|errno| SourceError::Io(path, errno))?;
            }
        }
        Ok(())
    }

    /// A path in the directory, for messages.
    fn below(&self, path: &[u8]) -> PathBuf {
        match path {
            // Joined to nothing, it would end in a slash.
            [] => self.path.clone(),
            path => self.path.join(OsStr::from_bytes(path)),
        }
    }

    /// Returns whether something of this name is in the directory.
    pub fn has(&self, name: &str) -> bool {
        self.directory.entry(name).is_ok()
    }

    /// Returns whether the directory itself belongs to this user.
    pub(super) fn is_own(&self) -> Result<bool, Errno> {
        self.directory.stat().map(|stat| is_own(&stat))
    }

    /// The directory as a tree, for copying.
    pub(super) fn tree(&self) -> Result<Tree, Errno> {
        let directory = self.directory.again()?;
        Ok(Tree::over(self.path.clone(), directory.into()))
    }

    /// The item of an earlier run that did not end.
    ///
    /// # Errors
    /// The mark cannot be read, or is not this user's for this directory.
    pub fn begun(&self) -> Result<Option<Names>, SourceError> {
        Ok(self.mark()?.map(|mark| mark.names))
    }

    pub(super) fn mark(&self) -> Result<Option<Mark>, SourceError> {
        if self.moving == Moving::Copied {
            return Ok(None);
        }
        let found = Mark::find(&self.directory);
        match found.map_err(|errno| SourceError::Io(self.mark_path(), errno))? {
            Found::Nothing => Ok(None),
            Found::Mark(mark) => Ok(Some(mark)),
            Found::Other => Err(SourceError::BadMark(self.mark_path())),
        }
    }

    /// Writes the mark, durably, before the first change. Its time is that of the directory.
    ///
    /// # Errors
    /// It cannot be written; nothing has changed then.
    pub fn set_mark(&self, names: &Names) -> Result<(), SourceError> {
        if self.moving == Moving::Copied {
            return Ok(());
        }
        let time = self.changed();
        time.map_err(|error| errno_of(&error))
            .and_then(|time| Mark::write(&self.directory, names, time))
            .map_err(|errno| SourceError::Io(self.mark_path(), errno))
    }

    /// The time of the directory itself.
    pub(super) fn changed(&self) -> std::io::Result<SystemTime> {
        std::fs::File::from(self.directory.as_fd().try_clone_to_owned()?)
            .metadata()?
            .modified()
    }

    /// Returns why something in the place of the mark does not count.
    pub fn bad_mark(&self) -> SourceError {
        SourceError::BadMark(self.mark_path())
    }

    fn mark_path(&self) -> PathBuf {
        self.path.join(MARK)
    }

    /// Removes the directory, which is empty. One that another user has moved away stays, empty as it is.
    pub(super) fn remove(&self) -> Result<(), Errno> {
        let Some((above, name)) = &self.place else {
            return Ok(());
        };
        let own = self.directory.stat()?;
        match above.entry(name) {
            Ok(there) if is_same_file(there.stat(), &own) => above.remove_directory(name)?,
            Ok(_) | Err(Errno::NOENT) => log::warn!("{} was moved away", self.path.display()),
            Err(errno) => return Err(errno),
        }
        match above.again() {
            Ok(above) => above.sync(),
            Err(_) => Ok(()),
        }
    }
}

fn is_store(path: &Path) -> bool {
    path.join("archive.ibi").is_file() && path.join("col").is_dir()
}

/// Checks that this process may, by its effective user.
fn may(directory: &Directory, name: impl rustix::path::Arg, access: Access) -> Result<(), Errno> {
    rustix::fs::accessat(directory, name, access, AtFlags::EACCESS)
}
