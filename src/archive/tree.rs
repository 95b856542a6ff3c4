//! The store's directories on disk: where an item lies, its sidecar, its tombstone.
//!
//! Everything goes by directory descriptor and never through a symbolic link below the store
//! (`openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS), so nothing outside it can be reached,
//! whatever is raced. What is written here is on disk when the call returns: files are written in
//! `staging/`, synced, renamed into place, and the directory is synced. Only the directories of items
//! are synced by whoever has them made: those that are copied in by whoever copies, minted ones some
//! time after the index has them. This module knows names of items, not their relations; it has no
//! database.

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
/// File name of the metadata text of an item whose metadata are no item themselves.
pub const METADATA_TEXT: &str = ".ibi.metadata";
/// A sidecar or metadata text larger than this many bytes is refused.
pub const SMALL_FILE_LIMIT: u64 = 1 << 20;
/// A tombstone is a sidecar with a state and a time: so much more it may have.
const TOMBSTONE_ADDS: u64 = 128;

/// An open store directory.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    root: OwnedFd,
    /// Where what is read for others begins, see [`Tree::way_to`].
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

/// An item's directory, opened to read in it: as whoever does so then, whatever the way to it.
#[derive(Debug)]
pub struct OpenItem {
    directory: OwnedFd,
    place: Place,
    /// Whether what is opened in it must be known to the kernel, so that nobody waits for a disk.
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

/// An item that has been made and does not appear yet.
#[derive(Debug)]
pub struct Staged {
    staging: OwnedFd,
    name: String,
}

/// How many names in `staging/` are tried where they are taken.
const TRIES: usize = 10_000;

const DIRECTORIES: [&str; 4] = ["col", "ibip", "deleted", "staging"];

impl Tree {
    /// Makes the directories of a new store, which only its owner may enter; what is there already stays.
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

    /// Opens an existing store; an error where its directories are not all there.
    pub fn open(path: &Path) -> Result<Tree, TreeError> {
        let tree = Tree::open_root(path)?;
        for name in DIRECTORIES {
            // Without its empty directories a store is still whole: a copying tool may drop them.
            match make_level(&tree.root, name) {
                Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS | Errno::PERM) => {}
                Err(errno) => return Err(failed(Action::Make, name)(errno)),
            }
            if name == "staging" && tree.open_directory(name).is_err() {
                // It holds nothing that lasts: whatever else has its name gives way.
                let _ = rustix::fs::unlinkat(&tree.root, name, AtFlags::empty());
                let _ = rustix::fs::mkdirat(&tree.root, name, Mode::from_raw_mode(0o755));
            }
        }
        // By this process: who reads may not get so far.
        let _ = tree.areas();
        Ok(tree)
    }

    /// Opens an existing store as it is, and makes nothing in it.
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

    /// The way to an item for who reads: the levels above it, and `col`, which is the root of a mount, must
    /// let a reader through; the store's own directory lets in who keeps it, and does not count.
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
            // By a short path from within it could be opened, but neither mounted nor found again.
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

    /// An error of this room for what was done with a descriptor of it elsewhere.
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

    /// Opens a directory below the store for looking things up in it (O_PATH).
    pub fn open_directory(&self, path: &str) -> Result<OwnedFd, TreeError> {
        self.open_beneath(path, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))
    }

    /// Opens an item's directory (O_PATH).
    pub fn open_item(&self, place: &Place) -> Result<OwnedFd, TreeError> {
        self.open_directory(place.as_str())
    }

    /// Opens an item to read in it, as who does so is let through to it.
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

    /// The same for whoever cannot wait for a disk: EAGAIN where somebody would have to. EINVAL on a
    /// kernel that cannot tell (before 5.12).
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

    /// Whether there is a directory of this name below the store.
    pub fn is_directory(&self, path: &str) -> bool {
        self.open_directory(path).is_ok()
    }

    /// Opens a file of the store's own to be written, making it where it is missing; ELOOP for what
    /// is no regular file, EMLINK for one that has another name, which may be anybody's.
    pub fn open_own(&self, name: &str) -> Result<std::fs::File, TreeError> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        loop {
            let opened = match self.open_beneath(name, OFlags::PATH | OFlags::NOFOLLOW) {
                Ok(found) => only_name(&found).and_then(|()| {
                    // Found first: to open a FIFO or a device may do something already.
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

    /// Opens a file of the store's own to be read; None where there is none.
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

    /// Clears `staging/` away, which only the one writer of a store may do.
    pub fn clear_staging(&self) {
        if let Ok(staging) = self.open_beneath("staging", OFlags::RDONLY | OFlags::DIRECTORY) {
            clear(&staging);
        }
    }

    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (directory, path) = self.kept_above(path);
        open_beneath(directory, path, flags)
    }

    /// Keeps the directories that items lie in open: what is in them is then reached by whoever may not
    /// enter the store's own directory. One that is replaced by another goes unnoticed from then on.
    pub fn keep_open(&self) {
        let open = |name| self.open_directory(name).ok().map(|open| (name, open));
        let kept = ["col", "ibip", "deleted"].into_iter().filter_map(open);
        let _ = self.kept.set(kept.collect());
    }

    /// The directory from which a path below the store is walked, and what of the path is left.
    fn kept_above<'a>(&self, path: &'a str) -> (&OwnedFd, &'a str) {
        let (directory, below) = self.kept_above_bytes(path.as_bytes());
        // What is cut off ends with a slash.
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

    /// Makes the directory of an item that is copied in, and its levels where they are missing. As
    /// with any mkdir, a default ACL and the set-group-ID bit of the level above it count, and syncing
    /// is up to whoever copies. EEXIST if one is there.
    pub fn make_item(&self, place: &Place, maker: Maker) -> Result<(), TreeError> {
        self.make_levels(place.parent())?;
        let parent = self.open_directory(place.parent())?;
        let failed = |errno| failed(Action::Make, place.as_str())(errno);
        let inherits = has_default_acl(&parent);
        // Where there is one, the kernel passes over the umask, which is the last caller's here.
        let mode = Mode::from_raw_mode(if inherits {
            maker.mode
        } else {
            maker.mode & !maker.umask
        });
        charging::charged(|| rustix::fs::mkdirat(&parent, place.name(), mode)).map_err(failed)?;
        let given = (|| {
            let item = open_below(&parent, place.name())?;
            // The kernel has given it this bit, and the group, where the level above has the bit.
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

    /// Makes an item with its sidecar and, where that is wanted, `doc/`, out of sight; [`Tree::place_item`] lets it appear, whole. Nothing is synced but the
    /// levels above it, where they are new.
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

    /// Makes an empty directory out of sight, to be filled and placed like [`Tree::stage_item`]'s, and
    /// opens it.
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

    /// Takes away a staged directory with whatever is in it.
    pub fn discard_all(&self, staged: &Staged) {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let (staging, name) = (&staged.staging, &staged.name);
        if let Ok(directory) = rustix::fs::openat2(staging, name, flags, Mode::empty(), resolve) {
            clear(&directory);
        }
        let _ = rustix::fs::unlinkat(staging, name, AtFlags::REMOVEDIR);
    }

    /// Lets a staged item appear at its place. EEXIST if one is there.
    pub fn place_item(&self, staged: &Staged, place: &Place) -> Result<(), TreeError> {
        let parent = self.open_directory(place.parent())?;
        let flags = RenameFlags::NOREPLACE;
        let (from, name) = (&staged.staging, &staged.name);
        charging::charged(|| rustix::fs::renameat_with(from, name, &parent, place.name(), flags))
            .map_err(failed(Action::Make, place.as_str()))
    }

    /// Takes away a staged item that will not appear, as far as it was made.
    pub fn discard(&self, staged: &Staged) {
        // Whatever stays is out of sight, and the next mount clears it away.
        if let Ok(item) = open_below(&staged.staging, &staged.name) {
            let _ = rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty());
            let _ = rustix::fs::unlinkat(&item, "doc", AtFlags::REMOVEDIR);
        }
        let _ = rustix::fs::unlinkat(&staged.staging, &staged.name, AtFlags::REMOVEDIR);
    }

    /// Takes back an item that has just been placed: out of sight, then away.
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
            // What is no small file is no sidecar, and may be long on its way to the disk.
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

    /// What lies in `staging/`: where nobody writes the store, it is left over from a crash.
    pub fn left_in_staging(&self) -> Vec<String> {
        let mut names = Vec::new();
        let _ = self.each_name("staging", |name, _| {
            names.push(String::from_utf8_lossy(name).into_owned());
        });
        names.sort();
        names
    }

    /// The permission bits of something in the store's own directory, by its name there; `.` is
    /// that directory itself.
    pub fn mode_of(&self, name: &str) -> Option<u32> {
        let stat = rustix::fs::statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // A link's own mode means nothing.
        (FileType::from_raw_mode(stat.st_mode) != FileType::Symlink)
            .then_some(stat.st_mode & 0o7777)
    }

    /// Takes others' permission to write from something in the store's own directory.
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

    /// Makes something in `staging/` under a new name, which is returned with it. A name may be taken by
    /// what another process of our number has left, or by another user: then the next one is tried.
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

    /// Makes the levels of a path that are missing, for a user and a group; for this process without.
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

    /// Makes an empty IBIp prefix. The mount shows it with the root's owner and mode, and whoever may
    /// write there may make one: who owns its folder here is nothing to anybody.
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

    /// Moves an item that lay under its IBIp to the place its rep gives it; descriptors stay good.
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
            // The caller is told that it has not moved.
            let _ = rustix::fs::renameat_with(&target, to.name(), &source, from.name(), no_replace);
        }
        synced
    }

    /// Removes an item's directory, which may hold nothing but its sidecar (else ENOTEMPTY).
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

    /// An item's sidecar, opened to be looked at (O_PATH), whatever it is; None where it has none.
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

    /// Reads a whole regular file below the store; None where there is none, EFBIG beyond
    /// [`SMALL_FILE_LIMIT`].
    pub fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        let (directory, below) = self.kept_above(path);
        read_small_in(directory, below, path, SMALL_FILE_LIMIT)
    }

    /// Puts an item's sidecar in place, whole and synced. EFBIG where it could not be read back.
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

    /// Renames a file that cannot be believed: the first free of `<aside>-1`, `<aside>-2` and so
    /// on. None where it is not there.
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

    /// Keeps bytes in a new file of an item: the first free of `<name>-1`, `<name>-2` and so on.
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

    /// Renames a small file below the store over another; the directory is synced.
    pub fn rename_small(&self, directory: &str, from: &str, to: &str) -> Result<(), TreeError> {
        let parent = self.open_directory(directory)?;
        rustix::fs::renameat(&parent, from, &parent, to).map_err(failed(Action::Rename, from))?;
        self.sync_directory(directory)
    }

    /// Writes a small file below the store: beside, synced, renamed into place, directory synced. Whoever
    /// is charged pays for one that has an owner; the others are the Archive's own.
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

    /// Writes the tombstone of a removed item: its last sidecar, with state and time. It is for those to read
    /// for whom the item was.
    pub fn write_tombstone(&self, place: &Place, bytes: &[u8]) -> Result<(), TreeError> {
        let parent = format!("deleted/{}", place.parent());
        self.make_levels(&parent)?;
        let mode = if self.is_for_all(place) { 0o644 } else { 0o600 };
        self.write_small_as(&parent, place.name(), bytes, None, mode)
    }

    /// Whether the modes of an item and of the levels above it let everybody read in it. What is not there
    /// keeps nobody out.
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

    /// Whether who asks may read the tombstone of a removed item, and is let through by the levels that are
    /// left above its place.
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

    /// Removes the tombstone of an item that has come back.
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

/// Opens a directory in another (O_PATH), following no link.
fn open_below(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Whether a file may be a sidecar.
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

/// Removes all that is in a directory, on its own filesystem and following no link.
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
    // With room for all of it, it is read at once.
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

/// Makes a directory above the items, for all to read whatever our umask is: it may be the last
/// caller's. A default ACL of the directory above it counts as with any mkdir.
fn make_level(directory: &OwnedFd, name: &str) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o755);
    charging::charged(|| rustix::fs::mkdirat(directory, name, mode))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    if !is_ours(&made)? {
        return Ok(());
    }
    if let Some(payer) = charging::charged_user() {
        // Whoever paid for it does not own it.
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

/// Whether we have made a directory, and nobody has put another in its place.
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

/// Gives a new level to a user and, unless it has inherited another group, to the user's.
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
        // An ordinary user's daemon can only make what is its own.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests;
