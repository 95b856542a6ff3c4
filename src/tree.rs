//! The store's directories on disk: where an item lies, its sidecar, its tombstone.
//!
//! Everything goes by directory descriptor and never through a symbolic link below the store
//! (`openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS), so nothing outside it can be reached,
//! whatever is raced. What is written here is on disk when the call returns: files are written in
//! `staging/`, synced, renamed into place, and the directory is synced. This room knows names of
//! items, not their relations; it has no database.

use std::fmt;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::ibi::{Ibip, Rep};
use crate::item::Names;

/// File name of an item's sidecar.
pub const SIDECAR: &str = ".ibi";
/// File name of the metadata text of an item whose metadata are no item themselves.
pub const METADATA_TEXT: &str = ".ibi.metadata";
/// A sidecar or metadata text larger than this many bytes is refused.
pub const SMALL_FILE_LIMIT: u64 = 1 << 20;

/// A failed operation on the store's directories: what was tried, on what, and the system's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeError {
    action: &'static str,
    path: String,
    errno: Errno,
}

impl TreeError {
    /// The system's error number.
    pub fn errno(&self) -> Errno {
        self.errno
    }
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} '{}': ", self.action, self.path)?;
        fmt::Display::fmt(&std::io::Error::from(self.errno), f)
    }
}

impl std::error::Error for TreeError {}

fn failed<'a>(action: &'static str, path: &'a str) -> impl FnOnce(Errno) -> TreeError + 'a {
    move |errno| TreeError {
        action,
        path: path.to_owned(),
        errno,
    }
}

/// Where an item lies below the store: `col/<rep>` when it has a rep, else `ibip/<ibip>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place(String);

impl Place {
    /// The place of the item with these names.
    pub fn of(names: &Names) -> Place {
        match (names.rep(), names.ibip()) {
            (Some(rep), _) => Place::of_rep(rep),
            (None, Some(ibip)) => Place::of_ibip(ibip),
            (None, None) => Place(String::new()),
        }
    }

    /// The place of an item known by its rep.
    pub fn of_rep(rep: &Rep) -> Place {
        Place(format!("col/{}", rep.as_str()))
    }

    /// The place of an item known by an IBIp alone.
    pub fn of_ibip(ibip: &Ibip) -> Place {
        Place(format!("ibip/{}", ibip.as_str()))
    }

    /// The path relative to the store.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parent(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(parent, _)| parent)
    }

    fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(_, name)| name)
    }
}

/// Who owns what is made for a caller, and with which permission bits.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Permission bits of a directory made for this owner.
    pub mode: u32,
}

/// An open store directory.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    root: OwnedFd,
    next_temporary: AtomicU64,
}

const DIRECTORIES: [&str; 4] = ["col", "ibip", "deleted", "staging"];

impl Tree {
    /// Makes the directories of a new store; what is there already stays.
    pub fn create(path: &Path) -> Result<Tree, TreeError> {
        let shown = path.display().to_string();
        std::fs::create_dir_all(path).map_err(|error| TreeError {
            action: "make the store",
            path: shown.clone(),
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        let tree = Tree::open_root(path)?;
        for name in DIRECTORIES {
            match rustix::fs::mkdirat(&tree.root, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("make", name)(errno)),
            }
        }
        rustix::fs::fsync(&tree.root).map_err(failed("sync", &shown))?;
        Ok(tree)
    }

    /// Opens an existing store; an error where its directories are not all there.
    pub fn open(path: &Path) -> Result<Tree, TreeError> {
        let tree = Tree::open_root(path)?;
        for name in DIRECTORIES {
            // Without its empty directories a store is still whole: a copying tool may drop them.
            match rustix::fs::mkdirat(&tree.root, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS | Errno::PERM) => {}
                Err(errno) => return Err(failed("make", name)(errno)),
            }
        }
        Ok(tree)
    }

    fn open_root(path: &Path) -> Result<Tree, TreeError> {
        let shown = path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .map_err(failed("open the store", &shown))?;
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Ok(Tree {
            path,
            root,
            next_temporary: AtomicU64::new(0),
        })
    }

    /// An error of this room for what was done with a descriptor of it elsewhere.
    pub fn error(&self, action: &'static str, path: &str, errno: Errno) -> TreeError {
        failed(action, path)(errno)
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
            .map_err(failed("open", path))
    }

    /// Opens an item's directory (O_PATH).
    pub fn open_item(&self, place: &Place) -> Result<OwnedFd, TreeError> {
        self.open_directory(place.as_str())
    }

    /// Whether there is a directory of this name below the store.
    pub fn is_directory(&self, path: &str) -> bool {
        self.open_directory(path).is_ok()
    }

    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        loop {
            // EAGAIN: a rename raced the walk and the kernel cannot vouch for it; walk again.
            match rustix::fs::openat2(
                &self.root,
                path,
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            ) {
                Err(Errno::AGAIN | Errno::INTR) => continue,
                other => return other,
            }
        }
    }

    /// Makes the directory of an item that is copied in, and its levels where they are missing.
    /// As with any mkdir, syncing is up to whoever copies. EEXIST if one is there.
    pub fn make_item(&self, place: &Place, owner: Option<Owner>) -> Result<OwnedFd, TreeError> {
        self.make_levels(place.parent())?;
        let parent = self.open_directory(place.parent())?;
        let mode = Mode::from_raw_mode(owner.map_or(0o755, |owner| owner.mode) & 0o7777);
        rustix::fs::mkdirat(&parent, place.name(), mode).map_err(failed("make", place.as_str()))?;
        let item = self.open_item(place)?;
        if let Some(owner) = owner {
            give_to(&item, owner).map_err(failed("give away", place.as_str()))?;
        }
        Ok(item)
    }

    /// Makes an item with `doc/` (where an item's own files are by convention, SPEC 5) and its
    /// sidecar, all synced, and only then lets it appear at its place. EEXIST if one is there.
    pub fn make_whole_item(
        &self,
        place: &Place,
        sidecar: &[u8],
        owner: Option<Owner>,
    ) -> Result<(), TreeError> {
        let failed = |errno| failed("make", place.as_str())(errno);
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("mint-{}-{number}", std::process::id());
        let below = format!("staging/{temporary}");
        let staging = self.open_directory("staging")?;
        let mode = Mode::from_raw_mode(owner.map_or(0o755, |owner| owner.mode) & 0o7777);
        rustix::fs::mkdirat(&staging, &temporary, mode).map_err(failed)?;
        let item = self.open_directory(&below)?;
        rustix::fs::mkdirat(&item, "doc", mode).map_err(failed)?;
        let file_owner = owner.map(|owner| Owner {
            mode: 0o644,
            ..owner
        });
        self.write_small(&below, SIDECAR, sidecar, file_owner)?;
        if let Some(owner) = owner {
            let doc = self.open_directory(&format!("{below}/doc"))?;
            give_to(&doc, owner).map_err(failed)?;
            give_to(&item, owner).map_err(failed)?;
        }
        self.make_levels(place.parent())?;
        let parent = self.open_directory(place.parent())?;
        let flags = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&staging, &temporary, &parent, place.name(), flags)
            .map_err(failed)?;
        self.sync_directory(place.parent())
    }

    fn make_levels(&self, path: &str) -> Result<(), TreeError> {
        let mut made = String::new();
        for name in path.split('/') {
            let parent = made.clone();
            if !made.is_empty() {
                made.push('/');
            }
            made.push_str(name);
            let directory = self.open_directory(if parent.is_empty() { "." } else { &parent })?;
            match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => self.sync_directory(if parent.is_empty() { "." } else { &parent })?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("make", &made)(errno)),
            }
        }
        Ok(())
    }

    fn sync_directory(&self, path: &str) -> Result<(), TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed("open", path))?;
        rustix::fs::fsync(&directory).map_err(failed("sync", path))
    }

    /// Moves an item that lay under its IBIp to the place its rep gives it; descriptors stay good.
    pub fn move_item(&self, from: &Place, to: &Place) -> Result<(), TreeError> {
        self.make_levels(to.parent())?;
        rustix::fs::renameat_with(
            self.open_directory(from.parent())?,
            from.name(),
            self.open_directory(to.parent())?,
            to.name(),
            RenameFlags::NOREPLACE,
        )
        .map_err(failed("move", from.as_str()))?;
        self.sync_directory(to.parent())?;
        self.sync_directory(from.parent())
    }

    /// Removes an item's directory, which may hold nothing but its sidecar (else ENOTEMPTY).
    pub fn remove_item(&self, place: &Place) -> Result<(), TreeError> {
        let failed = |errno| failed("remove", place.as_str())(errno);
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

    /// Calls `visit` with every name in a directory and whether it is itself a directory.
    pub fn each_name(&self, path: &str, visit: impl FnMut(&[u8], bool)) -> Result<(), TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed("open", path))?;
        each_name_of(&directory, path, visit)
    }

    /// How a name is spelled in a directory, if it is there in any case of its letters.
    pub fn spelling_in(&self, path: &str, name: &str) -> Result<Option<String>, TreeError> {
        if self.is_directory(&format!("{path}/{name}")) {
            return Ok(Some(name.to_owned()));
        }
        if !self.is_directory(path) {
            return Ok(None);
        }
        let names = self.directories_in(path)?;
        Ok(names
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The paths of all that is no directory below an item, sorted, relative to the item.
    pub fn files_in(&self, place: &Place) -> Result<Vec<Vec<u8>>, TreeError> {
        let mut files = Vec::new();
        let mut waiting = vec![Vec::new()];
        while let Some(directory) = waiting.pop() {
            let mut path = place.as_str().as_bytes().to_vec();
            if !directory.is_empty() {
                path.push(b'/');
                path.extend_from_slice(&directory);
            }
            let shown = String::from_utf8_lossy(&path).into_owned();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let opened = rustix::fs::openat2(
                &self.root,
                &path[..],
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            )
            .map_err(failed("open", &shown))?;
            each_name_of(&opened, &shown, |name, is_directory| {
                let mut below = directory.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(name);
                match is_directory {
                    true => waiting.push(below),
                    false => files.push(below),
                }
            })?;
        }
        files.sort();
        Ok(files)
    }

    /// The directory names in a directory, sorted. Names that are not UTF-8 are passed over: no
    /// identifier is spelled so.
    pub fn directories_in(&self, path: &str) -> Result<Vec<String>, TreeError> {
        let mut names = Vec::new();
        self.each_name(path, |name, is_directory| {
            if let (true, Ok(name)) = (is_directory, std::str::from_utf8(name)) {
                names.push(name.to_owned());
            }
        })?;
        names.sort();
        Ok(names)
    }

    /// The bytes of an item's sidecar, or None where it has none.
    pub fn read_sidecar(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{SIDECAR}", place.as_str()))
    }

    /// The bytes of an item's metadata text, or None where it has none.
    pub fn read_metadata_text(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{METADATA_TEXT}", place.as_str()))
    }

    /// Reads a whole regular file below the store; None where there is none, EFBIG beyond
    /// [`SMALL_FILE_LIMIT`].
    pub fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        // O_NONBLOCK: a FIFO in the place of a file must not hold us up.
        let file = match self.open_beneath(path, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(file) => std::fs::File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(failed("open", path)(errno)),
        };
        let io = |error: std::io::Error| {
            failed("read", path)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        };
        if !file.metadata().map_err(io)?.is_file() {
            return Err(failed("read", path)(Errno::INVAL));
        }
        let mut bytes = Vec::new();
        let read = (&file)
            .take(SMALL_FILE_LIMIT + 1)
            .read_to_end(&mut bytes)
            .map_err(io)?;
        if read as u64 > SMALL_FILE_LIMIT {
            return Err(failed("read", path)(Errno::FBIG));
        }
        Ok(Some(bytes))
    }

    /// Puts an item's sidecar in place, whole and synced. It belongs to whoever owns the item.
    pub fn write_sidecar(&self, place: &Place, bytes: &[u8]) -> Result<(), TreeError> {
        let item = self.open_item(place)?;
        let stat = rustix::fs::fstat(&item).map_err(failed("read", place.as_str()))?;
        let owner = Owner {
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: 0o644,
        };
        self.write_small(place.as_str(), SIDECAR, bytes, Some(owner))
    }

    /// Renames a file of an item, for setting aside a sidecar that cannot be believed.
    pub fn set_aside(&self, place: &Place, name: &str, aside: &str) -> Result<(), TreeError> {
        let item = self.open_item(place)?;
        rustix::fs::renameat_with(&item, name, &item, aside, RenameFlags::NOREPLACE)
            .map_err(failed("rename", place.as_str()))?;
        self.sync_directory(place.as_str())
    }

    /// Writes a small file below the store: beside, synced, renamed into place, directory synced.
    pub fn write_small(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        owner: Option<Owner>,
    ) -> Result<(), TreeError> {
        let shown = format!("{directory}/{name}");
        let failed = |errno| failed("write", &shown)(errno);
        let staging = self.open_directory("staging")?;
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("write-{}-{number}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(owner.map_or(0o644, |owner| owner.mode));
        let file = rustix::fs::openat(&staging, &temporary, flags | OFlags::CLOEXEC, mode)
            .map_err(failed)?;
        let written = (|| {
            let mut rest = bytes;
            while !rest.is_empty() {
                let count = rustix::io::write(&file, rest)?;
                rest = &rest[count..];
            }
            if let Some(owner) = owner {
                rustix::fs::fchmod(&file, mode)?;
                match rustix::fs::fchown(
                    &file,
                    Some(rustix::fs::Uid::from_raw(owner.uid)),
                    Some(rustix::fs::Gid::from_raw(owner.gid)),
                ) {
                    // An ordinary user's daemon can only make files of its own.
                    Ok(()) | Err(Errno::PERM) => {}
                    Err(errno) => return Err(errno),
                }
            }
            rustix::fs::fsync(&file)?;
            let target = self.open_beneath(directory, OFlags::PATH | OFlags::DIRECTORY)?;
            rustix::fs::renameat(&staging, &temporary, &target, name)
        })();
        if let Err(errno) = written {
            let _ = rustix::fs::unlinkat(&staging, &temporary, AtFlags::empty());
            return Err(failed(errno));
        }
        self.sync_directory(directory)
    }

    /// Writes the tombstone of a removed item: its last sidecar, with state and time.
    pub fn write_tombstone(&self, place: &Place, bytes: &[u8]) -> Result<(), TreeError> {
        let parent = format!("deleted/{}", place.parent());
        self.make_levels(&parent)?;
        self.write_small(&parent, place.name(), bytes, None)
    }

    /// The bytes of an item's tombstone, or None.
    pub fn read_tombstone(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("deleted/{}", place.as_str()))
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
            Err(errno) => Err(failed("remove", &shown)(errno)),
        }
    }

    /// Visits every item directory: four levels below `col/`, two below `ibip/`. `visit` gets
    /// the path below that area; names that are no identifiers are the visitor's to judge.
    pub fn each_item<E: From<TreeError>>(
        &self,
        mut visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for area in [Area::Col, Area::Ibip] {
            self.descend(area.name(), "", area.depth(), &mut |path, _| {
                visit(area, path)
            })?;
        }
        Ok(())
    }

    /// Visits every tombstone with its place, like [`Tree::each_item`].
    pub fn each_tombstone<E: From<TreeError>>(
        &self,
        mut visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for area in [Area::Col, Area::Ibip] {
            let root = format!("deleted/{}", area.name());
            if !self.is_directory(&root) {
                continue;
            }
            self.descend(&root, "", area.depth() - 1, &mut |path, root| {
                let mut names = Vec::new();
                self.each_name(&format!("{root}/{path}"), |name, is_directory| {
                    if !is_directory {
                        names.push(String::from_utf8_lossy(name).into_owned());
                    }
                })?;
                names.sort();
                names
                    .iter()
                    .try_for_each(|name| visit(area, &format!("{path}/{name}")))
            })?;
        }
        Ok(())
    }

    fn descend<E: From<TreeError>>(
        &self,
        root: &str,
        path: &str,
        depth: usize,
        visit: &mut dyn FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if depth == 0 {
            return visit(path, root);
        }
        let here = if path.is_empty() {
            root.to_owned()
        } else {
            format!("{root}/{path}")
        };
        for name in self.directories_in(&here)? {
            let below = if path.is_empty() {
                name
            } else {
                format!("{path}/{name}")
            };
            self.descend(root, &below, depth - 1, visit)?;
        }
        Ok(())
    }
}

/// The two areas of the store that hold items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// `col/`, items with a rep, four levels deep.
    Col,
    /// `ibip/`, items known by an IBIp alone, two levels deep.
    Ibip,
}

impl Area {
    /// The directory's name in the store.
    pub fn name(self) -> &'static str {
        match self {
            Area::Col => "col",
            Area::Ibip => "ibip",
        }
    }

    fn depth(self) -> usize {
        match self {
            Area::Col => 4,
            Area::Ibip => 2,
        }
    }
}

fn give_to(directory: &OwnedFd, owner: Owner) -> Result<(), Errno> {
    let path = format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(directory)
    );
    match rustix::fs::chown(
        path.as_str(),
        Some(rustix::fs::Uid::from_raw(owner.uid)),
        Some(rustix::fs::Gid::from_raw(owner.gid)),
    ) {
        Ok(()) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::chmod(path.as_str(), Mode::from_raw_mode(owner.mode & 0o7777))
}

fn each_name_of(
    directory: &OwnedFd,
    path: &str,
    mut visit: impl FnMut(&[u8], bool),
) -> Result<(), TreeError> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(failed("list", path))?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            rustix::fs::FileType::Directory => true,
            rustix::fs::FileType::Unknown => {
                rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| {
                        rustix::fs::FileType::from_raw_mode(stat.st_mode)
                            == rustix::fs::FileType::Directory
                    })
            }
            _ => false,
        };
        visit(name, is_directory);
    }
    Ok(())
}
