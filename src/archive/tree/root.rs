//! The open store directory: its path, its descriptor, and how everything below it is opened.
//!
//! All access goes through directory descriptors and never through a symbolic link below the store (`openat2`
//! with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS).

use std::fs::DirBuilder;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::action::Action;
use super::new_directory::make_level;
use super::place::{Place, TreeError, failed};
use crate::os::directory::Directory;
use crate::os::opening;

/// An open store directory.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    pub(super) root: OwnedFd,
    /// The directories at which access checks for readers begin, see [`Tree::way_to`].
    areas: OnceLock<Areas>,
    /// Directories of the store that stay open, see [`Tree::keep_open`].
    opened: OnceLock<Vec<(&'static str, OwnedFd)>>,
    /// The number of the next name in `staging/`.
    pub(super) next_temporary: AtomicU64,
    /// The number of this process among those that share the store; 0 if it does not.
    pub(super) stager: AtomicI64,
    /// Whether this is the root of a mount, see [`Tree::of_mount`].
    pub(super) is_mount: bool,
}

/// The directories that hold items and tombstones.
#[derive(Debug)]
pub(super) struct Areas {
    pub(super) col: OwnedFd,
    pub(super) ibip: OwnedFd,
    pub(super) deleted: OwnedFd,
}

/// The flags with which a store's directory is opened.
const ROOT: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The directories of a store.
pub const DIRECTORIES: [&str; 4] = ["col", "ibip", "deleted", "staging"];

/// The directories that [`Tree::keep_open`] keeps open.
const KEPT: [&str; 7] = [
    "col",
    "ibip",
    "deleted",
    "fixity/col",
    "fixity/ibip",
    "fixity/damaged",
    "fixity/backups",
];

impl Tree {
    /// Opens the directory of a new store. One that does not exist is made, and only its owner may enter it.
    pub fn create(path: &Path) -> Result<Tree, TreeError> {
        let shown = path.display().to_string();
        let make = |path: &Path, mode| {
            #[expect(clippy::disallowed_methods, reason = "the user named it")]
            let made = DirBuilder::new().recursive(true).mode(mode).create(path);
            made.map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                failed(Action::MakeStore, &shown)(errno)
            })
        };
        if let Some(parent) = path.parent() {
            make(parent, 0o777)?;
        }
        make(path, 0o700)?;
        // Links are followed here and not again.
        let real = resolved(path)?;
        let root = rustix::fs::openat2(CWD, &real, ROOT, Mode::empty(), ResolveFlags::NO_SYMLINKS)
            .map_err(failed(Action::OpenStore, &shown))?;
        Ok(Tree::over(real, root))
    }

    /// Makes the directories of a new store in one that is open, of which errors name this path, and closes it to other
    /// users.
    pub fn create_over(path: PathBuf, root: &Directory) -> Result<Tree, TreeError> {
        let shown = path.display().to_string();
        let root = root.descriptor().try_clone();
        let root = root.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            failed(Action::OpenStore, &shown)(errno)
        })?;
        let tree = Tree::over(path, root);
        if let Err(errno) = rustix::fs::fchmod(&tree.root, Mode::RWXU) {
            log::warn!("other users may enter {shown}: {errno}");
        }
        tree.make_own_directories()?;
        Ok(tree)
    }

    /// Makes the directories of a new store. Existing ones stay.
    pub(in crate::archive) fn make_own_directories(&self) -> Result<(), TreeError> {
        for name in DIRECTORIES {
            match make_level(&self.root, name) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(Action::Make, name)(errno)),
            }
        }
        let shown = self.path.display().to_string();
        rustix::fs::fsync(&self.root).map_err(failed(Action::Sync, &shown))
    }

    /// Whether users other than the owner may enter the store.
    pub fn is_open_to_others(&self) -> Result<bool, TreeError> {
        let shown = self.path.display().to_string();
        let stat = rustix::fs::fstat(&self.root).map_err(failed(Action::OpenStore, &shown))?;
        let others = Mode::XGRP.union(Mode::XOTH);
        Ok(Mode::from_raw_mode(stat.st_mode).intersects(others))
    }

    /// Opens an existing store, and makes those of its directories that are missing.
    pub fn open(path: &Path) -> Result<Tree, TreeError> {
        let tree = Tree::open_root(path)?;
        for name in DIRECTORIES {
            // A store is complete without its empty directories: a copying tool may omit them.
            match make_level(&tree.root, name) {
                Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS | Errno::PERM) => {}
                Err(errno) => return Err(failed(Action::Make, name)(errno)),
            }
            if name == "staging" && tree.open_directory(name).is_err() {
                // `staging` holds nothing that lasts: another file of this name is removed.
                let _ = rustix::fs::unlinkat(&tree.root, name, AtFlags::empty());
                let _ = rustix::fs::mkdirat(&tree.root, name, Mode::from_raw_mode(0o755));
            }
        }
        // Opened with the rights of this process: a reader may not get so far.
        let _ = tree.areas();
        Ok(tree)
    }

    /// Opens an existing store as it is, and creates nothing in it.
    pub fn open_as_it_is(path: &Path) -> Result<Tree, TreeError> {
        let tree = Tree::open_root(path)?;
        let _ = tree.areas();
        Ok(tree)
    }

    /// Opens the directory of an item as a tree of its own.
    pub fn open_item_alone(&self, place: &Place) -> Result<Tree, TreeError> {
        let root = self
            .open_beneath(place.as_str(), OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, place.as_str()))?;
        Ok(Tree::over(self.path.join(place.as_str()), root))
    }

    pub(super) fn areas(&self) -> Result<&Areas, Errno> {
        if let Some(areas) = self.areas.get() {
            return Ok(areas);
        }
        let open = |name| self.open_beneath(name, OFlags::PATH | OFlags::DIRECTORY);
        let areas = Areas {
            col: open("col")?,
            ibip: open("ibip")?,
            deleted: open("deleted")?,
        };
        Ok(self.areas.get_or_init(|| areas))
    }

    fn open_root(path: &Path) -> Result<Tree, TreeError> {
        let root = Directory::open(path)
            .map_err(failed(Action::OpenStore, &path.display().to_string()))?;
        Ok(Tree::over(resolved(path)?, root.into()))
    }

    /// An open directory as a tree; errors name the path.
    pub fn over(path: PathBuf, root: OwnedFd) -> Tree {
        Tree {
            path,
            root,
            areas: OnceLock::new(),
            opened: OnceLock::new(),
            next_temporary: AtomicU64::new(0),
            stager: AtomicI64::new(0),
            is_mount: false,
        }
    }

    /// The root of a mount, in which the items are for a user who may not enter the store. It has no other files of the
    /// store, and the daemon has judged which removed items are shown.
    pub fn of_mount(path: &Path) -> Result<Tree, TreeError> {
        let tree = Tree {
            is_mount: true,
            ..Tree::open_root(path)?
        };
        let open = || open_beneath(&tree.root, ".", OFlags::PATH | OFlags::DIRECTORY);
        let shown = path.display().to_string();
        let failed = failed(Action::OpenStore, &shown);
        let opened = (|| {
            let areas = Areas {
                col: open()?,
                ibip: open()?,
                deleted: open()?,
            };
            Ok((areas, vec![("col", open()?), ("ibip", open()?)]))
        })();
        let (areas, opened) = opened.map_err(failed)?;
        let _ = (tree.areas.set(areas), tree.opened.set(opened));
        Ok(tree)
    }

    /// Whether this is the root of a mount, and not of a store.
    pub fn is_mount(&self) -> bool {
        self.is_mount
    }

    /// The error of an operation that another module did on a descriptor of this tree.
    pub fn error(&self, action: Action, path: &str, errno: Errno) -> TreeError {
        failed(action, path)(errno)
    }

    /// Like [`Tree::error`], from an error of the standard library.
    pub fn io_error(&self, action: Action, path: &str, error: &std::io::Error) -> TreeError {
        failed(action, path)(Errno::from_io_error(error).unwrap_or(Errno::IO))
    }

    /// The store's absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor of the store's directory.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a directory below the store for lookups (O_PATH).
    pub fn open_directory(&self, path: &str) -> Result<OwnedFd, TreeError> {
        self.open_beneath(path, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))
    }

    /// Opens an item's directory (O_PATH).
    pub fn open_item(&self, place: &Place) -> Result<OwnedFd, TreeError> {
        self.open_directory(place.as_str())
    }

    /// Whether a directory of this name exists below the store.
    pub fn is_directory(&self, path: &str) -> bool {
        self.open_directory(path).is_ok()
    }

    pub(super) fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (directory, path) = match path {
            "col" | "ibip" if self.is_mount => (&self.root, "."),
            path => self.kept_above(path),
        };
        open_beneath(directory, path, flags)
    }

    /// Keeps the directories of items and of the digests of their files open, so that a user who may not enter the store's own directory
    /// reaches what is in them. If one of them is replaced by another directory, this goes unnoticed from
    /// then on.
    pub fn keep_open(&self) {
        let open = |name| self.open_directory(name).ok().map(|open| (name, open));
        let opened = KEPT.into_iter().filter_map(open);
        let _ = self.opened.set(opened.collect());
    }

    /// The directory from which a path below the store is walked, and the rest of the path.
    pub(super) fn kept_above<'a>(&self, path: &'a str) -> (&OwnedFd, &'a str) {
        let (directory, below) = self.kept_above_bytes(path.as_bytes());
        // The part that is cut off ends with a slash.
        let cut = path.len() - below.len();
        (directory, path.get(cut..).unwrap_or(path))
    }

    pub(super) fn kept_above_bytes<'a>(&self, path: &'a [u8]) -> (&OwnedFd, &'a [u8]) {
        let opened = self.opened.get().map(Vec::as_slice).unwrap_or_default();
        let found = opened.iter().find_map(|(name, open)| {
            let below = path.strip_prefix(name.as_bytes())?.strip_prefix(b"/")?;
            (!below.is_empty()).then_some((open, below))
        });
        found.unwrap_or((&self.root, path))
    }

    /// Waits until all that has been written on the store's filesystem is on disk.
    pub fn sync_all(&self) -> Result<(), TreeError> {
        rustix::fs::syncfs(&self.root).map_err(failed(Action::Sync, "."))
    }

    pub(super) fn sync_directory(&self, path: &str) -> Result<(), TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))?;
        rustix::fs::fsync(&directory).map_err(failed(Action::Sync, path))
    }
}

/// The path of a store without links.
fn resolved(path: &Path) -> Result<PathBuf, TreeError> {
    match std::fs::canonicalize(path) {
        // A short relative path would open it, but it could be neither mounted nor found again.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NAMETOOLONG) => {
            let shown = path.display().to_string();
            Err(failed(Action::UseLongPath, &shown)(Errno::NAMETOOLONG))
        }
        resolved => Ok(resolved.unwrap_or_else(|_| path.to_owned())),
    }
}

pub(super) fn open_beneath(
    directory: impl AsFd,
    path: &str,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    opening::beneath(directory, path, flags, resolve)
}
