//! The directory that is to be deposited: what is refused before anything is minted.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use super::MARK;
use crate::archive::tree::SIDECAR;
use crate::formats::item::Names;
use crate::os::mounts::mounts;
use crate::os::writing;
use ibi::message::{Localize, Message};
use ibi::{Ibi, display_message, message};

/// What becomes of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moving {
    /// It is gone afterwards.
    Moved,
    /// It stays as it is.
    Copied,
}

/// Why a directory cannot be deposited.
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
    /// The names in the mark are not valid.
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
                "'{path}' lies in a store; deposit a copy of it that lies elsewhere",
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
                "'{path}' does not have the names of an item; remove that file",
                path = path.display()
            ),
        }
    }
}

display_message!(SourceError);

impl std::error::Error for SourceError {}

/// The line of the mark after which the directory is removed.
const COPIED: &str = "copied";

pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// A directory that may be deposited.
#[derive(Debug)]
pub struct Source {
    pub(super) path: PathBuf,
    pub(super) moving: Moving,
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
        let Some(parent) = real.parent() else {
            return Err(SourceError::HasStore(real));
        };
        if real.ancestors().skip(1).any(is_store) {
            return Err(SourceError::InStore(real));
        }
        if moving == Moving::Moved {
            may(parent, Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|errno| SourceError::Unmovable(real.clone(), errno))?;
        }
        let source = Source { path: real, moving };
        source.check_below()?;
        Ok(source)
    }

    fn check_below(&self) -> Result<(), SourceError> {
        let mut waiting = vec![self.path.clone()];
        while let Some(directory) = waiting.pop() {
            let io = |errno| SourceError::Io(directory.clone(), errno);
            if is_store(&directory) {
                return Err(SourceError::HasStore(directory));
            }
            if self.moving == Moving::Moved {
                may(&directory, Access::WRITE_OK | Access::EXEC_OK)
                    .map_err(|errno| SourceError::Unmovable(directory.clone(), errno))?;
            }
            may(&directory, Access::READ_OK | Access::EXEC_OK).map_err(io)?;
            let listed = std::fs::read_dir(&directory);
            for entry in listed.map_err(|error| io(errno_of(&error)))? {
                let entry = entry.map_err(|error| io(errno_of(&error)))?;
                let kind = entry.file_type().map_err(|error| io(errno_of(&error)))?;
                let path = entry.path();
                if entry.file_name() == SIDECAR && !kind.is_dir() {
                    return Err(SourceError::HasItem(path));
                }
                if kind.is_dir() {
                    waiting.push(path);
                } else if kind.is_file() {
                    may(&path, Access::READ_OK).map_err(|errno| SourceError::Io(path, errno))?;
                }
            }
        }
        Ok(())
    }

    /// The item of an earlier run that did not end.
    ///
    /// # Errors
    /// The mark cannot be read.
    pub fn begun(&self) -> Result<Option<Names>, SourceError> {
        if self.moving == Moving::Copied {
            return Ok(None);
        }
        let path = self.mark_path();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SourceError::Io(path, errno_of(&error))),
        };
        let names = Names::collect(text.lines().map_while(|line| Ibi::parse(line).ok()));
        names.map(Some).ok_or(SourceError::BadMark(path))
    }

    /// Writes the mark, durably, before the first change. Its time is that of the directory.
    ///
    /// # Errors
    /// It cannot be written; nothing has changed then.
    pub fn mark(&self, names: &Names) -> Result<(), SourceError> {
        if self.moving == Moving::Copied {
            return Ok(());
        }
        let time = self.path.metadata().and_then(|found| found.modified());
        let names = [
            names.rep().map(ToString::to_string),
            names.ibip().map(ToString::to_string),
        ];
        let lines = names.into_iter().flatten();
        let text = lines.fold(String::new(), |text, name| text + &name + "\n");
        time.and_then(|time| self.write_mark(&text, time))
            .map_err(|error| SourceError::Io(self.mark_path(), errno_of(&error)))
    }

    /// Writes into the mark, durably, that all is in the item: from now on the directory is removed.
    pub(super) fn mark_copied(&self) -> std::io::Result<()> {
        let text = std::fs::read_to_string(self.mark_path())? + COPIED + "\n";
        self.write_mark(&text, self.time()?)
    }

    /// Whether all is in the item.
    pub(super) fn is_copied(&self) -> bool {
        let text = std::fs::read_to_string(self.mark_path());
        text.is_ok_and(|text| text.lines().any(|line| line == COPIED))
    }

    /// The time of the directory before the mark was made in it.
    pub(super) fn time(&self) -> std::io::Result<SystemTime> {
        let marked = match self.moving {
            Moving::Moved => self.mark_path(),
            Moving::Copied => self.path.clone(),
        };
        marked.metadata()?.modified()
    }

    fn write_mark(&self, text: &str, time: SystemTime) -> std::io::Result<()> {
        let temporary = self.path.join(format!("{MARK}-"));
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        writing::set_modified(&file, time)?;
        file.sync_all()?;
        std::fs::rename(&temporary, self.mark_path())?;
        std::fs::File::open(&self.path)?.sync_all()
    }

    pub(super) fn mark_path(&self) -> PathBuf {
        self.path.join(MARK)
    }

    /// Whether the directory lies on the filesystem of another one.
    pub(super) fn is_beside(&self, item: &Path) -> bool {
        let device = |path: &Path| path.metadata().map(|found| found.dev()).ok();
        device(&self.path).is_some_and(|here| device(item) == Some(here))
    }
}

fn is_store(path: &Path) -> bool {
    path.join("archive.ibi").is_file() && path.join("col").is_dir()
}

/// Whether this process may, by its effective user.
fn may(path: &Path, access: Access) -> Result<(), Errno> {
    rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS)
}
