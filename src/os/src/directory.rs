//! A directory in which other users may write: opened once, and all in it reached by its descriptor.
//!
//! Another user may exchange what a name leads to between any two system calls. So a name here is one component, never
//! a path; no symbolic link is followed; what is made is new (O_EXCL); nothing is opened that could wait; and owner,
//! mode and times are set by descriptor, after a look at what was opened.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, CWD, Dev, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timestamps, Uid,
};
use rustix::io::Errno;
use rustix::path::Arg;

use super::opening::{self, by_descriptor};
use super::{deep, entries, random, renaming};

pub use super::opening::NOT_REGULAR;

/// The flags with which names are looked up.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl From<OwnedFd> for Directory {
    fn from(directory: OwnedFd) -> Directory {
        Directory(directory)
    }
}

impl From<Directory> for OwnedFd {
    fn from(directory: Directory) -> OwnedFd {
        directory.0
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Directory {
    /// Opens the directory that a user named. Links in the path are followed: all below is reached from here.
    #[expect(clippy::disallowed_methods, reason = "the user named it")]
    pub fn open(path: impl Arg) -> Result<Directory, Errno> {
        rustix::fs::open(path, DIRECTORY, Mode::empty()).map(Directory)
    }

    /// The open descriptor.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Opens a directory that is open already, with an offset of its own.
    pub fn reopened(directory: impl AsFd) -> Result<Directory, Errno> {
        rustix::fs::openat(directory, ".", DIRECTORY, Mode::empty()).map(Directory)
    }

    /// Opens the same directory with an offset of its own.
    pub fn again(&self) -> Result<Directory, Errno> {
        Directory::reopened(&self.0)
    }

    /// Makes a socket with this mode and listens to it. One that is there is replaced: its process has ended. The path by
    /// descriptor is short enough for bind(2), wherever the directory is.
    ///
    /// # Errors
    /// Those of unlinkat(2), bind(2) and chmod(2).
    pub fn bind(&self, name: &str, mode: u32) -> std::io::Result<UnixListener> {
        match self.remove_file(name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let listener = UnixListener::bind(self.path_of(name))?;
        self.entry(name)?.set_mode(mode)?;
        Ok(listener)
    }

    /// Connects to a socket.
    ///
    /// # Errors
    /// Those of connect(2).
    pub fn connect(&self, name: &str) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.path_of(name))
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", by_descriptor(self.as_fd()))
    }

    /// ioctl(2) with a request whose number says that it reads and writes all these bytes.
    ///
    /// # Errors
    /// Those of ioctl(2). EINVAL if the number says another size.
    pub fn control(&self, command: u32, bytes: &mut [u8]) -> Result<(), Errno> {
        if usize::try_from(command >> 16 & 0x3fff) != Ok(bytes.len()) {
            return Err(Errno::INVAL);
        }
        // SAFETY: by its number the request reads and writes as many bytes as there are.
        let done = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                command as libc::Ioctl,
                bytes.as_mut_ptr(),
            )
        };
        match done {
            -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
            _ => Ok(()),
        }
    }

    /// The path of the directory at this moment.
    pub fn path(&self) -> std::io::Result<PathBuf> {
        std::fs::read_link(by_descriptor(self.0.as_fd()))
    }

    /// Returns the attributes of the directory itself.
    pub fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::fstat(&self.0)
    }

    /// Returns all names with their types.
    pub fn entries(&self) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
        let mut found = Vec::new();
        // With an offset of its own, each call begins at the first name.
        entries::each_typed_of(&self.again()?.0, |name, kind| {
            found.push((name.to_vec(), kind));
        })?;
        Ok(found)
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    /// ENOTDIR or ELOOP for anything else.
    pub fn directory(&self, name: impl AsRef<[u8]>) -> Result<Directory, Errno> {
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        opening::beneath(&self.0, one(&name)?, flags, RESOLVE).map(Directory)
    }

    /// Opens a regular file for reading, without waiting.
    ///
    /// # Errors
    /// [`NOT_REGULAR`] for anything else.
    pub fn file(&self, name: impl AsRef<[u8]>) -> Result<File, Errno> {
        self.regular(name, OFlags::RDONLY)
    }

    /// Opens a regular file for reading and writing, without waiting.
    ///
    /// # Errors
    /// [`NOT_REGULAR`] for anything else.
    pub fn file_to_change(&self, name: impl AsRef<[u8]>) -> Result<File, Errno> {
        self.regular(name, OFlags::RDWR)
    }

    fn regular(&self, name: impl AsRef<[u8]>, access: OFlags) -> Result<File, Errno> {
        let flags = access | OFlags::NOFOLLOW;
        let file = match opening::beneath(&self.0, one(&name)?, flags, RESOLVE) {
            // A link, or a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Err(NOT_REGULAR),
            opened => opening::settled(opened?, flags)?,
        };
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(NOT_REGULAR),
        }
    }

    /// Finds something of any type, a link itself.
    pub fn entry(&self, name: impl AsRef<[u8]>) -> Result<Entry, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let found = opening::beneath(&self.0, one(&name)?, flags, RESOLVE)?;
        let stat = rustix::fs::fstat(&found)?;
        Ok(Entry { found, stat })
    }

    /// Makes a new file, open for reading and writing.
    pub fn create(&self, name: impl AsRef<[u8]>, mode: u32) -> Result<File, Errno> {
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        rustix::fs::openat(&self.0, one(&name)?, flags, mode).map(File::from)
    }

    /// Makes a new file with a name that no one can guess.
    pub fn create_random(&self, prefix: &str, mode: u32) -> Result<(String, File), Errno> {
        let name = random_name(prefix)?;
        let file = self.create(&name, mode)?;
        Ok((name, file))
    }

    /// Makes a directory and opens it.
    ///
    /// # Errors
    /// ESTALE if another user has exchanged it meanwhile.
    pub fn make_directory(&self, name: impl AsRef<[u8]>, mode: u32) -> Result<Directory, Errno> {
        rustix::fs::mkdirat(&self.0, one(&name)?, Mode::from_raw_mode(mode))?;
        let made = self.directory(name)?;
        is_own(&made.stat()?).then_some(made).ok_or(Errno::STALE)
    }

    /// Makes a FIFO, socket or device with exactly this mode, whatever the umask is.
    ///
    /// # Errors
    /// ESTALE if another user has exchanged it meanwhile.
    pub fn make_node(
        &self,
        name: impl AsRef<[u8]>,
        kind: FileType,
        mode: u32,
        device: Dev,
    ) -> Result<Entry, Errno> {
        let closed = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(&self.0, one(&name)?, kind, closed, device)?;
        let made = self.entry(name)?;
        if made.kind() != kind || made.stat.st_nlink != 1 || !is_own(&made.stat) {
            return Err(Errno::STALE);
        }
        made.set_mode(mode)?;
        Ok(made)
    }

    /// Removes anything but a directory.
    pub fn remove_file(&self, name: impl AsRef<[u8]>) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.0, one(&name)?, AtFlags::empty())
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, name: impl AsRef<[u8]>) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.0, one(&name)?, AtFlags::REMOVEDIR)
    }

    /// Removes all that is in this directory, on its own filesystem. It goes on where something cannot be removed, and
    /// returns the first reason.
    pub fn clear(&self) -> Result<(), Errno> {
        deep::clear(&self.0)
    }

    /// Moves something to a name that does not exist, perhaps in another directory. EEXIST if it does.
    pub fn rename_new(
        &self,
        name: impl AsRef<[u8]>,
        to: &Directory,
        new: impl AsRef<[u8]>,
    ) -> Result<(), Errno> {
        renaming::rename_new(&self.0, one(&name)?, &to.0, one(&new)?)
    }

    /// Moves something to a name, perhaps in another directory, in place of what is there.
    pub fn rename_over(
        &self,
        name: impl AsRef<[u8]>,
        to: &Directory,
        new: impl AsRef<[u8]>,
    ) -> Result<(), Errno> {
        rustix::fs::renameat(&self.0, one(&name)?, &to.0, one(&new)?)
    }

    /// Waits until the names in this directory are on disk.
    pub fn sync(&self) -> Result<(), Errno> {
        rustix::fs::fsync(&self.0)
    }
}

/// Something that was found in a directory. Attributes are set of this, also when its name leads elsewhere by now.
#[derive(Debug)]
pub struct Entry {
    found: OwnedFd,
    stat: Stat,
}

impl Entry {
    /// The attributes as they were when it was found.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// The file type.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Sets the permission bits; an error for a link, which has none.
    pub fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        opening::set_mode(self.as_fd(), Mode::from_raw_mode(mode & 0o7777))
    }

    /// Sets owner and group.
    pub fn set_owner(&self, uid: Option<Uid>, gid: Option<Gid>) -> Result<(), Errno> {
        rustix::fs::chownat(&self.found, "", uid, gid, AtFlags::EMPTY_PATH)
    }

    /// Sets the times of access and of the last change of content.
    pub fn set_times(&self, times: &Timestamps) -> Result<(), Errno> {
        let path = by_descriptor(self.found.as_fd());
        // The path leads to the entry itself, also to a link.
        rustix::fs::utimensat(CWD, path, times, AtFlags::empty())
    }
}

impl AsFd for Entry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.found.as_fd()
    }
}

/// Returns whether two looks were at one file.
pub fn is_same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Returns whether something belongs to the user as whom this thread makes files.
pub fn is_own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Returns a name that begins with a prefix, and that no one can guess.
pub fn random_name(prefix: &str) -> Result<String, Errno> {
    let number = u128::from_ne_bytes(random::draw()?);
    Ok(format!("{prefix}{number:032x}"))
}

/// Refuses a path that is not a name: EINVAL.
fn one(name: &impl AsRef<[u8]>) -> Result<&[u8], Errno> {
    match name.as_ref() {
        b"" | b"." | b".." => Err(Errno::INVAL),
        name if name.contains(&b'/') => Err(Errno::INVAL),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::{MetadataExt, symlink};

    use rustix::fs::Timespec;

    use super::*;
    use crate::testing::TemporaryDirectory;

    fn opened(root: &TemporaryDirectory) -> Directory {
        Directory::open(root.path()).expect("a directory")
    }

    #[test]
    fn a_name_is_no_path() {
        let root = TemporaryDirectory::new();
        let directory = opened(&root);
        directory.make_directory("below", 0o700).expect("made");
        for name in ["", ".", "..", "/", "/etc", "below/x", "../x"] {
            assert_eq!(directory.directory(name).err(), Some(Errno::INVAL));
            assert_eq!(directory.file(name).err(), Some(Errno::INVAL));
            assert_eq!(directory.create(name, 0o600).err(), Some(Errno::INVAL));
            assert_eq!(directory.remove_file(name), Err(Errno::INVAL));
            let renamed = directory.rename_new("below", &directory, name);
            assert_eq!(renamed, Err(Errno::INVAL), "{name}");
        }
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_waits() {
        let root = TemporaryDirectory::new();
        let directory = opened(&root);
        std::fs::write(root.join("file"), "text").expect("written");
        symlink("file", root.join("link")).expect("made");
        directory
            .make_node("fifo", FileType::Fifo, 0o600, 0)
            .expect("made");
        directory.make_directory("below", 0o700).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).expect("made");
        for name in ["link", "fifo", "below", "socket"] {
            assert_eq!(directory.file(name).err(), Some(NOT_REGULAR), "{name}");
        }
        let mut text = String::new();
        let mut file = directory.file("file").expect("opened");
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, "text");
        let flags = rustix::fs::fcntl_getfl(&file).expect("flags");
        assert!(!flags.contains(OFlags::NONBLOCK));
        assert_eq!(directory.file("none").err(), Some(Errno::NOENT));
        assert!(directory.directory("link").is_err());
        assert!(directory.directory("fifo").is_err());
    }

    #[test]
    fn what_is_made_is_new() {
        let root = TemporaryDirectory::new();
        let directory = opened(&root);
        std::fs::write(root.join("other"), "another's").expect("written");
        symlink("other", root.join("link")).expect("made");
        for name in ["other", "link"] {
            let made = directory.create(name, 0o600).map(drop);
            assert_eq!(made, Err(Errno::EXIST));
            let made = directory.make_directory(name, 0o700).map(drop);
            assert_eq!(made, Err(Errno::EXIST));
            let made = directory.make_node(name, FileType::Fifo, 0o600, 0);
            assert_eq!(made.map(drop), Err(Errno::EXIST));
        }
        let (one, mut file) = directory.create_random(".x-", 0o600).expect("made");
        let (two, _) = directory.create_random(".x-", 0o600).expect("made");
        assert!(one != two && one.len() == 35 && one.starts_with(".x-"));
        file.write_all(b"new").expect("written");
        assert_eq!(
            directory.rename_new(&one, &directory, "other"),
            Err(Errno::EXIST)
        );
        directory
            .rename_over(&one, &directory, "other")
            .expect("moved");
        let text = std::fs::read_to_string(root.join("other"));
        assert_eq!(text.expect("read"), "new");
        let mut names: Vec<_> = directory.entries().expect("listed");
        names.sort_by(|one, other| one.0.cmp(&other.0));
        let names: Vec<_> = names.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, [two.as_bytes(), b"link", b"other"]);
        assert_eq!(directory.entries().expect("listed again").len(), 3);
    }

    /// The mode is exact, although the tests have a umask.
    #[test]
    fn attributes_are_those_of_what_was_found() {
        let root = TemporaryDirectory::new();
        let directory = opened(&root);
        let fifo = directory
            .make_node("fifo", FileType::Fifo, 0o666, 0)
            .expect("made");
        let found = root.join("fifo").metadata().expect("there");
        assert_eq!(found.mode() & 0o7777, 0o666);
        // The name leads elsewhere now.
        std::fs::write(root.join("secret"), "").expect("written");
        let before = root.join("secret").metadata().expect("there");
        directory
            .rename_new("fifo", &directory, "moved")
            .expect("moved");
        symlink("secret", root.join("fifo")).expect("made");
        let time = Timespec {
            tv_sec: 1,
            tv_nsec: 2,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        fifo.set_mode(0o600).expect("set");
        fifo.set_times(&times).expect("set");
        fifo.set_owner(None, None).expect("set");
        let found = root.join("moved").metadata().expect("there");
        assert_eq!((found.mode() & 0o7777, found.mtime()), (0o600, 1));
        let link = directory.entry("fifo").expect("found");
        assert_eq!(link.kind(), FileType::Symlink);
        assert!(link.set_mode(0o777).is_err());
        link.set_times(&times).expect("set");
        let found = root.join("fifo").symlink_metadata().expect("there");
        assert_eq!(found.mtime(), 1);
        let after = root.join("secret").metadata().expect("there");
        assert_eq!(
            (before.mode(), before.mtime()),
            (after.mode(), after.mtime())
        );
        assert!(!is_same_file(fifo.stat(), link.stat()));
    }
}
