//! The store's directories on disk: where an item lies, its sidecar, its tombstone.
//!
//! All access goes through directory descriptors and never through a symbolic link below the store (`openat2`
//! with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS). Nothing outside the store can be reached, even in a race.
//! What is written here is on disk when the call returns: a file is written in `staging/`, synced and renamed
//! into place, and the directory is synced. The exception is an item's directory, which the caller syncs: the
//! copying program for a copied item, and the settle queue, after the index has it, for a minted one. This
//! module knows names of items, not their relations; it has no database.

mod action;
mod files;
mod handover;
mod place;
mod publish;
mod reserve;
mod validator;
mod walk;

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

pub use crate::archive::owner::Owner;
pub use action::Action;
pub use files::{Met, joined, open_far};
pub use handover::HANDOVER;
pub use place::{Area, Author, Filled, Maker, Place, STRANGERS, TreeError};
pub use publish::Published;
pub use reserve::RESERVE;
pub use validator::{Dependencies, Validator};
pub use walk::{Directories, Seen, Visit, each_entry_of};

use crate::os::charging;
use crate::os::writing;
use place::failed;

use crate::os::opening::{self, by_descriptor};

/// File name of an item's sidecar.
pub const SIDECAR: &str = ".ibi";
/// File name of the metadata text of an item whose metadata are not an item themselves.
pub const METADATA_TEXT: &str = ".ibi.metadata";
/// A sidecar or metadata text larger than this many bytes is refused.
pub const SMALL_FILE_LIMIT: u64 = 1 << 20;
/// A tombstone is a sidecar with a state and a time, which may add this many bytes.
const TOMBSTONE_ADDS: u64 = 128;

/// An open store directory.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    root: OwnedFd,
    /// Where access checks for readers begin, see [`Tree::way_to`].
    areas: OnceLock<Areas>,
    /// Directories of the store that stay open, see [`Tree::keep_open`].
    kept: OnceLock<Vec<(&'static str, OwnedFd)>>,
    next_temporary: AtomicU64,
}

/// The directories that hold items and tombstones.
#[derive(Debug)]
struct Areas {
    col: OwnedFd,
    ibip: OwnedFd,
    deleted: OwnedFd,
}

/// An item's directory, opened for reading. The permissions of the caller at the time of each read apply
/// below it; the levels above it are not checked again.
#[derive(Debug)]
pub struct OpenItem {
    directory: OwnedFd,
    place: Place,
    /// Whether files are opened only from the kernel's caches, so that no thread waits for a disk.
    is_cached_only: bool,
}

impl OpenItem {
    fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.place.as_str())
    }

    /// Reads a small file of the item, as [`Tree::read_small`] does.
    pub fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        read_small_in(&self.directory, path, &self.shown(path), SMALL_FILE_LIMIT)
    }
}

/// An item that has been made and is not visible yet.
#[derive(Debug)]
pub struct Staged {
    staging: OwnedFd,
    name: String,
}

/// How many names in `staging/` are tried before giving up.
const TRIES: usize = 10_000;

const DIRECTORIES: [&str; 4] = ["col", "ibip", "deleted", "staging"];

impl Tree {
    /// Makes the directories of a new store, which only its owner may enter. Existing directories stay.
    pub fn create(path: &Path) -> Result<Tree, TreeError> {
        let shown = path.display().to_string();
        std::fs::create_dir_all(path).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            failed(Action::MakeStore, &shown)(errno)
        })?;
        let tree = Tree::open_root(path)?;
        if let Err(errno) = rustix::fs::fchmod(&tree.root, Mode::RWXU) {
            log::warn!("other users may enter {shown}: {errno}");
        }
        for name in DIRECTORIES {
            match make_level(&tree.root, name) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(Action::Make, name)(errno)),
            }
        }
        rustix::fs::fsync(&tree.root).map_err(failed(Action::Sync, &shown))?;
        Ok(tree)
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

    fn areas(&self) -> Result<&Areas, Errno> {
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

    /// The path to an item as a reader takes it. The levels above the item, and `col`, which is the root of a
    /// mount, must let the reader through. The store's own directory does not count: it admits only the owner
    /// of the store.
    fn way_to<'a>(&self, place: &'a Place) -> Result<(BorrowedFd<'_>, &'a str), Errno> {
        let areas = self.areas()?;
        match place.as_str().split_once('/') {
            Some(("col", path)) => Ok((areas.col.as_fd(), path)),
            Some(("ibip", path)) => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                rustix::fs::openat(&areas.col, ".", flags, Mode::empty())?;
                Ok((areas.ibip.as_fd(), path))
            }
            _ => Err(Errno::NOENT),
        }
    }

    fn open_root(path: &Path) -> Result<Tree, TreeError> {
        let shown = path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .map_err(failed(Action::OpenStore, &shown))?;
        let path = match std::fs::canonicalize(path) {
            // A short relative path would open it, but it could be neither mounted nor found again.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NAMETOOLONG) => {
                let action = Action::UseLongPath;
                return Err(failed(action, &shown)(Errno::NAMETOOLONG));
            }
            resolved => resolved.unwrap_or_else(|_| path.to_owned()),
        };
        Ok(Tree {
            path,
            root,
            areas: OnceLock::new(),
            kept: OnceLock::new(),
            next_temporary: AtomicU64::new(0),
        })
    }

    /// The error of an operation that another module did on a descriptor of this tree.
    pub fn error(&self, action: Action, path: &str, errno: Errno) -> TreeError {
        failed(action, path)(errno)
    }

    /// The same for an error of the standard library.
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

    /// Opens an item for reading, with the rights of the calling thread. EACCES where a level above the item
    /// does not let it through.
    pub fn open_for_reader(&self, place: &Place) -> Result<OpenItem, TreeError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = self
            .way_to(place)
            .and_then(|(area, path)| open_beneath(area, path, flags));
        Ok(OpenItem {
            directory: opened.map_err(failed(Action::Open, place.as_str()))?,
            place: place.clone(),
            is_cached_only: false,
        })
    }

    /// Like [`Tree::open_for_reader`], for a thread that must not wait for a disk. EAGAIN where it would have
    /// to wait; EINVAL on a kernel without RESOLVE_CACHED (before 5.12).
    pub fn open_cached(&self, place: &Place) -> Result<OpenItem, TreeError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
        let opened = self.way_to(place).and_then(|(area, path)| {
            rustix::fs::openat2(area, path, flags, Mode::empty(), resolve)
        });
        Ok(OpenItem {
            directory: opened.map_err(failed(Action::Open, place.as_str()))?,
            place: place.clone(),
            is_cached_only: true,
        })
    }

    /// Whether a directory of this name exists below the store.
    pub fn is_directory(&self, path: &str) -> bool {
        self.open_directory(path).is_ok()
    }

    /// Opens one of the store's own files for writing, and creates it where it is missing. ELOOP for anything
    /// but a regular file; EMLINK for a file with a second name, which may belong to any user.
    pub fn open_own(&self, name: &str) -> Result<std::fs::File, TreeError> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        loop {
            let opened = match self.open_beneath(name, OFlags::PATH | OFlags::NOFOLLOW) {
                Ok(found) => only_name(&found).and_then(|()| {
                    // Found first with O_PATH: opening a FIFO or a device may already have an effect.
                    opening::settled(opening::again(&found, flags)?, flags)
                }),
                Err(Errno::NOENT) => {
                    let flags = flags | OFlags::CREATE | OFlags::EXCL;
                    let mode = Mode::from_raw_mode(0o644);
                    match rustix::fs::openat(&self.root, name, flags, mode) {
                        Err(Errno::EXIST) => continue,
                        made => made,
                    }
                }
                Err(errno) => Err(errno),
            };
            return opened
                .map(std::fs::File::from)
                .map_err(failed(Action::Open, name));
        }
    }

    /// Opens one of the store's own files for reading; None where it does not exist.
    pub fn read_own(&self, name: &str) -> Result<Option<std::fs::File>, TreeError> {
        let found = match self.open_beneath(name, OFlags::PATH | OFlags::NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            found => found.map_err(failed(Action::Open, name))?,
        };
        let stat = rustix::fs::fstat(&found).map_err(failed(Action::Open, name))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(failed(Action::Open, name)(Errno::LOOP));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        opening::again(&found, flags)
            .map(|file| Some(file.into()))
            .map_err(failed(Action::Open, name))
    }

    /// Empties `staging/`. Only the one writer of a store may do so.
    pub fn clear_staging(&self) {
        if let Ok(staging) = self.open_beneath("staging", OFlags::RDONLY | OFlags::DIRECTORY) {
            clear(&staging);
        }
    }

    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (directory, path) = self.kept_above(path);
        open_beneath(directory, path, flags)
    }

    /// Keeps the directories of items open, so that a user who may not enter the store's own directory
    /// reaches what is in them. If one of them is replaced by another directory, this goes unnoticed from
    /// then on.
    pub fn keep_open(&self) {
        let open = |name| self.open_directory(name).ok().map(|open| (name, open));
        let kept = ["col", "ibip", "deleted"].into_iter().filter_map(open);
        let _ = self.kept.set(kept.collect());
    }

    /// The directory from which a path below the store is walked, and the rest of the path.
    fn kept_above<'a>(&self, path: &'a str) -> (&OwnedFd, &'a str) {
        let (directory, below) = self.kept_above_bytes(path.as_bytes());
        // The part that is cut off ends with a slash.
        let cut = path.len() - below.len();
        (directory, path.get(cut..).unwrap_or(path))
    }

    fn kept_above_bytes<'a>(&self, path: &'a [u8]) -> (&OwnedFd, &'a [u8]) {
        let kept = self.kept.get().map(Vec::as_slice).unwrap_or_default();
        let found = kept.iter().find_map(|(name, open)| {
            let below = path.strip_prefix(name.as_bytes())?.strip_prefix(b"/")?;
            (!below.is_empty()).then_some((open, below))
        });
        found.unwrap_or((&self.root, path))
    }

    /// Makes the directory of an item that is copied in, and the missing levels above it. As with any mkdir,
    /// a default ACL and the set-group-ID bit of the level above apply, and the copying program syncs. EEXIST
    /// if the directory exists.
    pub fn make_item(&self, place: &Place, maker: Maker) -> Result<(), TreeError> {
        self.make_levels(place.parent())?;
        let parent = self.open_directory(place.parent())?;
        let failed = |errno| failed(Action::Make, place.as_str())(errno);
        let inherits = has_default_acl(&parent);
        // With a default ACL the kernel ignores the umask, which is the last caller's here.
        let mode = Mode::from_raw_mode(if inherits {
            maker.mode
        } else {
            maker.mode & !maker.umask
        });
        charging::charged(|| rustix::fs::mkdirat(&parent, place.name(), mode)).map_err(failed)?;
        let given = (|| {
            let item = open_below(&parent, place.name())?;
            // Where the level above has the bit, the kernel has set it here, and given its group.
            let set_gid = Mode::from_raw_mode(rustix::fs::fstat(&item)?.st_mode) & Mode::SGID;
            let gid = set_gid.is_empty().then_some(maker.gid);
            give_away(&item, maker.uid, gid)?;
            if inherits {
                Ok(())
            } else {
                rustix::fs::chmod(by_descriptor(item.as_fd()), mode | set_gid)
            }
        })();
        given.map_err(|errno| {
            let _ = rustix::fs::unlinkat(&parent, place.name(), AtFlags::REMOVEDIR);
            failed(errno)
        })
    }

    /// Makes an item in `staging/`, with its sidecar and, on request, `doc/`. [`Tree::place_item`] makes it
    /// visible as a whole. Only new levels above it are synced.
    pub fn stage_item(
        &self,
        place: &Place,
        sidecar: &[u8],
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Staged, TreeError> {
        let failed = |errno| failed(Action::Make, place.as_str())(errno);
        self.make_levels(place.parent())?;
        let mode = Mode::from_raw_mode(owner.map_or(0o755, |owner| owner.mode) & 0o7777);
        let staging = self.open_directory("staging")?;
        let made = self.with_new_name("mint", |name| {
            charging::charged(|| rustix::fs::mkdirat(&staging, name, mode))
        });
        let (name, ()) = made.map_err(failed)?;
        let staged = Staged { name, staging };
        let filled = charging::charged(|| {
            let item = open_below(&staged.staging, &staged.name)?;
            if filled == Filled::WithDoc {
                rustix::fs::mkdirat(&item, "doc", mode)?;
            }
            let ids = owner.map(Owner::ids);
            drop(writing::create(&item, SIDECAR, sidecar, 0o644, ids)?);
            if let Some(owner) = owner {
                if filled == Filled::WithDoc {
                    give_to(&open_below(&item, "doc")?, owner)?;
                }
                give_to(&item, owner)?;
            }
            Ok(())
        });
        match filled {
            Ok(()) => Ok(staged),
            Err(errno) => {
                self.discard(&staged);
                Err(failed(errno))
            }
        }
    }

    /// Makes an empty directory in `staging/` and opens it. The caller fills it; [`Tree::place_item`] makes
    /// it visible.
    pub fn stage_directory(&self, place: &Place) -> Result<(Staged, OwnedFd), TreeError> {
        let failed = |errno| failed(Action::Make, place.as_str())(errno);
        self.make_levels(place.parent())?;
        let staging = self.open_directory("staging")?;
        let made = self.with_new_name("import", |name| {
            rustix::fs::mkdirat(&staging, name, Mode::from_raw_mode(0o755))?;
            open_below(&staging, name)
        });
        let (name, directory) = made.map_err(failed)?;
        Ok((Staged { staging, name }, directory))
    }

    /// Removes a staged directory and everything in it.
    pub fn discard_all(&self, staged: &Staged) {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let (staging, name) = (&staged.staging, &staged.name);
        if let Ok(directory) = rustix::fs::openat2(staging, name, flags, Mode::empty(), resolve) {
            clear(&directory);
        }
        let _ = rustix::fs::unlinkat(staging, name, AtFlags::REMOVEDIR);
    }

    /// Moves a staged item to its place. EEXIST if the place is taken.
    pub fn place_item(&self, staged: &Staged, place: &Place) -> Result<(), TreeError> {
        let parent = self.open_directory(place.parent())?;
        let flags = RenameFlags::NOREPLACE;
        let (from, name) = (&staged.staging, &staged.name);
        charging::charged(|| rustix::fs::renameat_with(from, name, &parent, place.name(), flags))
            .map_err(failed(Action::Make, place.as_str()))
    }

    /// Removes what has been made of a staged item that will not be placed.
    pub fn discard(&self, staged: &Staged) {
        // What cannot be removed stays invisible, and the next mount removes it.
        if let Ok(item) = open_below(&staged.staging, &staged.name) {
            let _ = rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty());
            let _ = rustix::fs::unlinkat(&item, "doc", AtFlags::REMOVEDIR);
        }
        let _ = rustix::fs::unlinkat(&staged.staging, &staged.name, AtFlags::REMOVEDIR);
    }

    /// Removes an item that has just been placed: moves it to `staging/` first, then deletes it.
    pub fn take_back(&self, place: &Place) -> Result<(), TreeError> {
        let staged = Staged {
            staging: self.open_directory("staging")?,
            name: self.temporary("mint"),
        };
        let parent = self.open_directory(place.parent())?;
        rustix::fs::renameat(&parent, place.name(), &staged.staging, &staged.name)
            .map_err(failed(Action::TakeBack, place.as_str()))?;
        self.discard(&staged);
        Ok(())
    }

    /// Waits until an item's directory, its sidecar and its name are on disk.
    pub fn sync_item(&self, place: &Place) -> Result<(), TreeError> {
        let sidecar = format!("{}/{SIDECAR}", place.as_str());
        match self.open_beneath(&sidecar, OFlags::RDONLY) {
            // A file that is too large for a sidecar is not one, and may take long to sync.
            Ok(file) if is_small(&file) => {
                rustix::fs::fsync(file).map_err(failed(Action::Sync, &sidecar))?;
            }
            Ok(_) => {}
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(Action::Open, &sidecar)(errno)),
        }
        self.sync_directory(place.as_str())?;
        self.sync_directory(place.parent())
    }

    /// Waits until all that has been written on the store's filesystem is on disk.
    pub fn sync_all(&self) -> Result<(), TreeError> {
        rustix::fs::syncfs(&self.root).map_err(failed(Action::Sync, "."))
    }

    /// The names in `staging/`. While no process writes the store, they are left over from a crash.
    pub fn left_in_staging(&self) -> Vec<String> {
        let mut names = Vec::new();
        let _ = self.each_name("staging", |name, _| {
            names.push(String::from_utf8_lossy(name).into_owned());
        });
        names.sort();
        names
    }

    /// The permission bits of an entry of the store's own directory, by its name; `.` is that directory
    /// itself.
    pub fn mode_of(&self, name: &str) -> Option<u32> {
        let stat = rustix::fs::statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // The mode of a symbolic link means nothing.
        (FileType::from_raw_mode(stat.st_mode) != FileType::Symlink)
            .then_some(stat.st_mode & 0o7777)
    }

    /// Removes the write permission of other users from an entry of the store's own directory.
    pub fn tighten(&self, name: &str) -> Result<(), TreeError> {
        let file = self
            .open_beneath(name, OFlags::RDONLY)
            .map_err(failed(Action::Open, name))?;
        let stat = rustix::fs::fstat(&file).map_err(failed(Action::Read, name))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            only_name(&file).map_err(failed(Action::ChangeMode, name))?;
        }
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7775);
        rustix::fs::fchmod(&file, mode).map_err(failed(Action::ChangeMode, name))
    }

    /// Makes something in `staging/` under a new name, and returns the name with it. If another user, or an
    /// earlier process with the same process number, has taken a name, the next one is tried.
    fn with_new_name<T>(
        &self,
        what: &str,
        mut make: impl FnMut(&str) -> Result<T, Errno>,
    ) -> Result<(String, T), Errno> {
        for _ in 0..TRIES {
            let name = self.temporary(what);
            match make(&name) {
                Err(Errno::EXIST) => {}
                made => return made.map(|made| (name, made)),
            }
        }
        Err(Errno::EXIST)
    }

    fn temporary(&self, what: &str) -> String {
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        format!("{what}-{}-{number}", std::process::id())
    }

    fn make_levels(&self, path: &str) -> Result<(), TreeError> {
        self.make_levels_for(path, None)
    }

    /// Makes the missing levels of a path, owned by a user and a group, or else by this process.
    pub fn make_levels_for(&self, path: &str, owner: Option<(u32, u32)>) -> Result<(), TreeError> {
        if self.is_directory(path) {
            return Ok(());
        }
        let mut made = String::new();
        for name in path.split('/') {
            let parent = made.clone();
            if !made.is_empty() {
                made.push('/');
            }
            made.push_str(name);
            let directory = self.open_directory(if parent.is_empty() { "." } else { &parent })?;
            let level = make_level(&directory, name).and_then(|()| match owner {
                Some(owner) => give_level(&directory, name, owner),
                None => Ok(()),
            });
            match level {
                Ok(()) => self.sync_directory(if parent.is_empty() { "." } else { &parent })?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(Action::Make, &made)(errno)),
            }
        }
        Ok(())
    }

    /// Makes an empty IBIp prefix. The mount shows a prefix with the owner and mode of the root, and every
    /// user who may write there may make one, so the owner of its directory here has no meaning.
    pub fn make_prefix(&self, name: &str) -> Result<(), TreeError> {
        let failed = failed(Action::Make, name);
        make_level(&self.open_directory("ibip")?, name).map_err(failed)?;
        self.sync_directory("ibip")
    }

    fn sync_directory(&self, path: &str) -> Result<(), TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))?;
        rustix::fs::fsync(&directory).map_err(failed(Action::Sync, path))
    }

    /// Moves an item from its IBIp to the place that its rep gives it. Open descriptors stay valid.
    pub fn move_item(&self, from: &Place, to: &Place) -> Result<(), TreeError> {
        self.make_levels(to.parent())?;
        let source = self.open_directory(from.parent())?;
        let target = self.open_directory(to.parent())?;
        let no_replace = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&source, from.name(), &target, to.name(), no_replace)
            .map_err(failed(Action::Move, from.as_str()))?;
        let synced = self
            .sync_directory(to.parent())
            .and_then(|()| self.sync_directory(from.parent()));
        if synced.is_err() {
            // The caller gets an error, which must mean that the item has not moved.
            let _ = rustix::fs::renameat_with(&target, to.name(), &source, from.name(), no_replace);
        }
        synced
    }

    /// Removes an item's directory. ENOTEMPTY if it holds anything but its sidecar.
    pub fn remove_item(&self, place: &Place) -> Result<(), TreeError> {
        let failed = |errno| failed(Action::Remove, place.as_str())(errno);
        if !self.holds_only_sidecar(place)? {
            return Err(failed(Errno::NOTEMPTY));
        }
        let item = self.open_item(place)?;
        match rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let parent = self.open_directory(place.parent())?;
        rustix::fs::unlinkat(&parent, place.name(), AtFlags::REMOVEDIR).map_err(failed)?;
        self.sync_directory(place.parent())
    }

    /// Whether an item's directory holds nothing but, at most, its sidecar.
    pub fn holds_only_sidecar(&self, place: &Place) -> Result<bool, TreeError> {
        let mut only = true;
        self.each_name(place.as_str(), |name, _| only &= name == SIDECAR.as_bytes())?;
        Ok(only)
    }

    /// The bytes of an item's sidecar, or None where it has none.
    pub fn read_sidecar(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{SIDECAR}", place.as_str()))
    }

    /// Opens an item's sidecar (O_PATH), of whatever file type; None where the item has none.
    pub fn open_sidecar(&self, place: &Place) -> Result<Option<OwnedFd>, TreeError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(self.open_item(place)?, SIDECAR, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(
                Action::Open,
                &format!("{}/{SIDECAR}", place.as_str()),
            )(errno)),
        }
    }

    /// The bytes of an item's metadata text, or None where it has none.
    pub fn read_metadata_text(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{METADATA_TEXT}", place.as_str()))
    }

    /// Removes an item's sidecar, if it has one.
    pub fn remove_sidecar(&self, place: &Place) -> Result<(), TreeError> {
        let item = self.open_item(place)?;
        match rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(Action::RemoveSidecar, place.as_str())(errno)),
        }
    }

    /// Reads a whole regular file below the store. None where it does not exist, EFBIG beyond
    /// [`SMALL_FILE_LIMIT`].
    pub fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        let (directory, below) = self.kept_above(path);
        read_small_in(directory, below, path, SMALL_FILE_LIMIT)
    }

    /// Replaces an item's sidecar as a whole, synced. EFBIG if it is too large to be read back.
    pub fn write_sidecar(
        &self,
        place: &Place,
        bytes: &[u8],
        author: Author,
    ) -> Result<(), TreeError> {
        if bytes.len() as u64 > SMALL_FILE_LIMIT {
            return Err(failed(
                Action::Write,
                &format!("{}/{SIDECAR}", place.as_str()),
            )(Errno::FBIG));
        }
        let owner = self.owner_of_sidecar(place, author)?;
        self.write_small(place.as_str(), SIDECAR, bytes, Some(owner))
    }

    fn owner_of_sidecar(&self, place: &Place, author: Author) -> Result<Owner, TreeError> {
        let failed = failed(Action::Read, place.as_str());
        let stat = rustix::fs::fstat(self.open_item(place)?).map_err(failed)?;
        let owned = |uid, gid, marked: bool| Owner {
            uid,
            gid,
            mode: 0o644 | if marked { STRANGERS } else { 0 },
        };
        let before = match author {
            Author::User { uid, gid } => return Ok(owned(uid, gid, false)),
            Author::Unknown => {
                let is_shared = stat.st_mode & 0o022 != 0;
                return Ok(owned(stat.st_uid, stat.st_gid, is_shared));
            }
            Author::Same => self.open_sidecar(place)?,
        };
        let before = before.and_then(|file| rustix::fs::fstat(file).ok());
        let before =
            before.filter(|file| FileType::from_raw_mode(file.st_mode) == FileType::RegularFile);
        Ok(match before {
            Some(file) => owned(file.st_uid, file.st_gid, file.st_mode & STRANGERS != 0),
            None => owned(stat.st_uid, stat.st_gid, false),
        })
    }

    fn write_in_item(&self, place: &Place, name: &str, bytes: &[u8]) -> Result<(), TreeError> {
        let item = self.open_item(place)?;
        let stat = rustix::fs::fstat(&item).map_err(failed(Action::Read, place.as_str()))?;
        let owner = Owner {
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: 0o644,
        };
        self.write_small(place.as_str(), name, bytes, Some(owner))
    }

    /// Renames a file that is not accepted to the first free name of `<aside>-1`, `<aside>-2` and so on. None
    /// where it does not exist.
    pub fn set_aside(
        &self,
        directory: &str,
        name: &str,
        aside: &str,
    ) -> Result<Option<String>, TreeError> {
        let opened = self.open_directory(directory)?;
        for number in 1u32.. {
            let aside = format!("{aside}-{number}");
            match rustix::fs::renameat_with(&opened, name, &opened, &aside, RenameFlags::NOREPLACE)
            {
                Ok(()) => {
                    self.sync_directory(directory)?;
                    return Ok(Some(aside));
                }
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(failed(Action::Rename, name)(errno)),
            }
        }
        Ok(None)
    }

    /// Saves bytes in a new file of an item: the first free of `<name>-1`, `<name>-2` and so on.
    pub fn keep(&self, place: &Place, name: &str, bytes: &[u8]) -> Result<(), TreeError> {
        for number in 1u32.. {
            let name = format!("{name}-{number}");
            if self
                .read_small(&format!("{}/{name}", place.as_str()))?
                .is_none()
            {
                return self.write_in_item(place, &name, bytes);
            }
        }
        Ok(())
    }

    /// Renames a small file below the store over another and syncs the directory.
    pub fn rename_small(&self, directory: &str, from: &str, to: &str) -> Result<(), TreeError> {
        let parent = self.open_directory(directory)?;
        rustix::fs::renameat(&parent, from, &parent, to).map_err(failed(Action::Rename, from))?;
        self.sync_directory(directory)
    }

    /// Writes a small file below the store: in `staging/`, synced, renamed into place, with the directory
    /// synced. With an `owner` the space is charged to the charged user; otherwise the file is the Archive's
    /// own.
    pub fn write_small(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        owner: Option<Owner>,
    ) -> Result<(), TreeError> {
        let mode = owner.map_or(0o644, |owner| owner.mode);
        self.write_small_as(directory, name, bytes, owner, mode)
    }

    fn write_small_as(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        owner: Option<Owner>,
        mode: u32,
    ) -> Result<(), TreeError> {
        let shown = format!("{directory}/{name}");
        let failed = |errno| failed(Action::Write, &shown)(errno);
        let staging = self.open_directory("staging")?;
        let _own = owner.is_none().then(|| charging::charge_to(None));
        let ids = owner.map(Owner::ids);
        let made = self.with_new_name("write", |name| {
            writing::create(&staging, name, bytes, mode, ids)
        });
        let (temporary, file) = made.map_err(failed)?;
        let target = self.open_beneath(directory, OFlags::PATH | OFlags::DIRECTORY);
        let written = match target {
            Ok(target) => {
                writing::rename_into_place(&file, (&staging, &temporary), (&target, name), true)
            }
            Err(errno) => {
                let _ = rustix::fs::unlinkat(&staging, &temporary, AtFlags::empty());
                Err(errno)
            }
        };
        written.map_err(failed)?;
        self.sync_directory(directory)
    }

    /// Writes the tombstone of a removed item: its last sidecar, with state and time. Other users may read
    /// the tombstone if they could read the item.
    pub fn write_tombstone(&self, place: &Place, bytes: &[u8]) -> Result<(), TreeError> {
        let parent = format!("deleted/{}", place.parent());
        self.make_levels(&parent)?;
        let mode = if self.is_for_all(place) { 0o644 } else { 0o600 };
        self.write_small_as(&parent, place.name(), bytes, None, mode)
    }

    /// Whether the modes of an item and of the levels above it let all users read in it. A missing level
    /// excludes no user.
    fn is_for_all(&self, place: &Place) -> bool {
        let mut path = place.as_str();
        let mut wanted = 0o005;
        while let Some((above, _)) = path.rsplit_once('/') {
            if let Ok(directory) = self.open_directory(path)
                && let Ok(stat) = rustix::fs::fstat(&directory)
                && stat.st_mode & wanted != wanted
            {
                return false;
            }
            (path, wanted) = (above, 0o001);
        }
        let root = self
            .open_directory("col")
            .and_then(|root| rustix::fs::fstat(&root).map_err(failed(Action::Open, "col")));
        root.is_ok_and(|stat| stat.st_mode & 0o001 != 0)
    }

    /// Whether the calling thread may read the tombstone of a removed item: its mode, and the remaining
    /// levels above the item's place, must let the caller through.
    pub fn may_read_tombstone(&self, place: &Place) -> Result<bool, TreeError> {
        let failed = |errno| failed(Action::Open, place.as_str())(errno);
        let (area, path) = match self.way_to(place) {
            Err(Errno::ACCESS) => return Ok(false),
            way => way.map_err(failed)?,
        };
        let above = path.rsplit_once('/').map_or(path, |(above, _)| above);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        match open_beneath(area, above, flags) {
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(Errno::ACCESS) => return Ok(false),
            Err(errno) => return Err(failed(errno)),
        }
        let deleted = &self.areas().map_err(failed)?.deleted;
        match open_beneath(deleted, place.as_str(), OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(_) => Ok(true),
            Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// The bytes of an item's tombstone, or None.
    pub fn read_tombstone(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        let path = format!("deleted/{}", place.as_str());
        let (directory, below) = self.kept_above(&path);
        read_small_in(directory, below, &path, SMALL_FILE_LIMIT + TOMBSTONE_ADDS)
    }

    /// Removes the tombstone of an item that exists again.
    pub fn remove_tombstone(&self, place: &Place) -> Result<(), TreeError> {
        let shown = format!("deleted/{}", place.as_str());
        let parent = format!("deleted/{}", place.parent());
        let directory = match self.open_directory(&parent) {
            Err(error) if error.errno() == Errno::NOENT => return Ok(()),
            other => other?,
        };
        match rustix::fs::unlinkat(&directory, place.name(), AtFlags::empty()) {
            Ok(()) => self.sync_directory(&parent),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(Action::Remove, &shown)(errno)),
        }
    }
}

/// Opens a directory in another one (O_PATH) without following a link.
fn open_below(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Whether a file is a regular one, small enough for a sidecar.
fn is_small(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && u64::try_from(stat.st_size).is_ok_and(|size| size <= SMALL_FILE_LIMIT)
    })
}

/// Whether a file is regular and has one name.
fn only_name(file: &OwnedFd) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink <= 1 => Ok(()),
        FileType::RegularFile => Err(Errno::MLINK),
        _ => Err(Errno::LOOP),
    }
}

/// Removes everything in a directory, on its own filesystem and without following a link.
fn clear(directory: &OwnedFd) {
    let mut names = Vec::new();
    let _ = walk::each_name_of(directory, "staging", |name, is_directory| {
        names.push((name.to_owned(), is_directory));
    });
    for (name, is_directory) in names {
        if is_directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            let below = rustix::fs::openat2(directory, &name[..], flags, Mode::empty(), resolve);
            if let Ok(below) = below {
                clear(&below);
            }
        }
        let flags = if is_directory {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        let _ = rustix::fs::unlinkat(directory, &name[..], flags);
    }
}

fn open_beneath(directory: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    opening::beneath(directory, path, flags, resolve)
}

fn read_small_in(
    directory: &OwnedFd,
    path: &str,
    shown: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, TreeError> {
    let file = match open_beneath(directory, path, OFlags::RDONLY) {
        Ok(file) => std::fs::File::from(file),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(failed(Action::Open, shown)(errno)),
    };
    let io = |error: std::io::Error| {
        failed(Action::Read, shown)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(failed(Action::Read, shown)(Errno::INVAL));
    }
    // With room for the whole file, one call reads it.
    let room = metadata.len().min(limit) + 1;
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    let read = (&file)
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if read as u64 > limit {
        return Err(failed(Action::Read, shown)(Errno::FBIG));
    }
    Ok(Some(bytes))
}

/// Makes a directory above the items that all users may read. The process's umask is not used: it may be the
/// last caller's. A default ACL of the directory above applies as with any mkdir.
fn make_level(directory: &OwnedFd, name: &str) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o755);
    charging::charged(|| rustix::fs::mkdirat(directory, name, mode))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    if !is_ours(&made)? {
        return Ok(());
    }
    if let Some(payer) = charging::charged_user() {
        // The charged user does not become the owner.
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let stat = rustix::fs::fstat(&made)?;
        let inherits = Mode::from_raw_mode(stat.st_mode).contains(Mode::SGID);
        let has_gid = stat.st_gid == payer.gid && !inherits;
        rustix::fs::fchown(&made, Some(uid), has_gid.then_some(gid))?;
    }
    if has_default_acl(&made) {
        Ok(())
    } else {
        rustix::fs::fchmod(&made, mode)
    }
}

fn has_default_acl(directory: &OwnedFd) -> bool {
    let path = by_descriptor(directory.as_fd());
    rustix::fs::getxattr(path, "system.posix_acl_default", &mut [0; 0][..]).is_ok()
}

/// Whether this process made the directory, and it has not been replaced by another user's.
fn is_ours(directory: &OwnedFd) -> Result<bool, Errno> {
    let payer = charging::charged_user().map(|payer| payer.uid);
    let maker = payer.unwrap_or(rustix::process::geteuid().as_raw());
    Ok(rustix::fs::fstat(directory)?.st_uid == maker)
}

fn give_to(directory: &OwnedFd, owner: Owner) -> Result<(), Errno> {
    give_away(directory, owner.uid, Some(owner.gid))?;
    let mode = Mode::from_raw_mode(owner.mode & 0o7777);
    rustix::fs::chmod(by_descriptor(directory.as_fd()), mode)
}

/// Gives a new level to a user, and to the user's group unless it has inherited another one.
fn give_level(directory: &OwnedFd, name: &str, (uid, gid): (u32, u32)) -> Result<(), Errno> {
    let level = open_below(directory, name)?;
    let stat = rustix::fs::fstat(&level)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        // Another directory has taken its place.
        return Err(Errno::STALE);
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    chown_for(&level, uid, (!mode.contains(Mode::SGID)).then_some(gid))
}

fn give_away(directory: &OwnedFd, uid: u32, gid: Option<u32>) -> Result<(), Errno> {
    if !is_ours(directory)? {
        return Err(Errno::STALE);
    }
    chown_for(directory, uid, gid)
}

fn chown_for(directory: &OwnedFd, uid: u32, gid: Option<u32>) -> Result<(), Errno> {
    match rustix::fs::chown(
        by_descriptor(directory.as_fd()),
        Some(rustix::fs::Uid::from_raw(uid)),
        gid.map(rustix::fs::Gid::from_raw),
    ) {
        // A service that runs as an ordinary user cannot change owners.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests;
