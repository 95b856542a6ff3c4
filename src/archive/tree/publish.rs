//! Files and directories of an item for the public, opened with the rights of the calling thread.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::Action;
use super::entries::{each_entry_of, next_entries_of};
use super::place::failed;
use super::{OpenItem, Place, Tree, TreeError};
use crate::os::opening;
use crate::os::serving;
use ibi::Timestamp;

/// A file or a directory of an item, open for reading.
#[derive(Debug)]
pub struct Published {
    /// The open file or directory.
    pub file: File,
    stat: Stat,
    led_to: Option<Vec<u8>>,
}

impl Published {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// When its content was last changed.
    pub fn changed(&self) -> Timestamp {
        let nanoseconds = u32::try_from(self.stat.st_mtime_nsec).unwrap_or(0);
        Timestamp::from_unix(self.stat.st_mtime, nanoseconds)
    }

    /// A value that differs as soon as the content may differ. It has the inode number, the length, and the
    /// times of the last change of content and inode: the time of the content alone can be set back.
    pub fn fingerprint(&self) -> String {
        Published::fingerprint_of(&self.stat)
    }

    fn fingerprint_of(stat: &Stat) -> String {
        format!(
            "{:x}-{:x}-{:x}-{:x}-{:x}-{:x}",
            stat.st_ino,
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec
        )
    }

    /// A value that no other file has, with the fingerprint.
    pub fn identity(&self) -> String {
        format!("{:x}-{}", self.stat.st_dev, self.fingerprint())
    }

    /// Its permissions, as `chmod` has them.
    pub fn permissions(&self) -> u32 {
        self.stat.st_mode & 0o777
    }

    /// Whether it has an access control list, or that cannot be found out.
    pub fn has_access_list(&self) -> bool {
        let found = rustix::fs::fgetxattr(&self.file, "system.posix_acl_access", &mut [0; 0][..]);
        !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP))
    }

    /// Whether neither content nor permissions have changed since it was opened.
    pub fn is_unchanged(&self) -> Result<bool, Errno> {
        let stat = serving::stat(&self.file)?;
        let now = Published::fingerprint_of(&stat);
        Ok(now == self.fingerprint())
    }

    /// The path in the item to which symbolic links led, if the path had one.
    pub fn led_to(&self) -> Option<&[u8]> {
        self.led_to.as_deref()
    }

    /// Calls `visit` with the next names in a directory, some hundreds, and whether each is a directory. Returns false
    /// after the last name.
    pub fn next_names(&self, visit: impl FnMut(&[u8], bool)) -> Result<bool, Errno> {
        next_entries_of(self.file.as_fd(), visit)
    }

    /// Calls `visit` with every name in a directory and whether the name is a directory.
    pub fn each_name(&self, visit: impl FnMut(&[u8], bool)) -> Result<(), Errno> {
        let directory = OwnedFd::from(self.file.try_clone().map_err(|_| Errno::MFILE)?);
        each_entry_of(&directory, visit)
    }
}

/// The purpose of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Reading its content.
    Content,
    /// Reporting its validator to a user who may read it.
    Validator,
}

/// Reopens what has been found, if it is a regular file or a directory.
fn open_found(found: OwnedFd, led_to: Option<Vec<u8>>, what: For) -> Result<Published, Errno> {
    // A device or a pipe must not even be opened.
    let stat = serving::stat(&found)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => {}
        _ => return Err(Errno::NOENT),
    }
    let file = match opening::again(&found, OFlags::RDONLY) {
        // The right to read was checked before the lease that prevents opening.
        Err(opening::LEASED) if what == For::Validator => found,
        opened => opened?,
    };
    Ok(Published {
        file: file.into(),
        stat,
        led_to,
    })
}

impl Tree {
    /// Opens a regular file or a directory of an item in one call, for a thread that must not wait for a
    /// disk. The levels above the item must let the calling thread through, too. EAGAIN where it would have
    /// to wait, ELOOP where there is a link, EXDEV where another filesystem is mounted on the way or the path
    /// has `..`, which may lead out of the item.
    pub fn publish_cached(&self, place: &Place, path: &[u8]) -> Result<Published, TreeError> {
        if path.split(|byte| *byte == b'/').any(|part| part == b"..") {
            return Err(failed(Action::Open, place.as_str())(Errno::XDEV));
        }
        let (area, below) = self
            .way_to(place)
            .map_err(failed(Action::Open, place.as_str()))?;
        let path = [below.as_bytes(), b"/", path].concat();
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_XDEV
            | ResolveFlags::CACHED;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat2(area, path.as_slice(), flags, Mode::empty(), resolve);
        let opened = found.and_then(|found| open_found(found, None, For::Content));
        opened.map_err(|errno| failed(Action::Open, &String::from_utf8_lossy(&path))(errno))
    }
}

/// What the public may know of an entry of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicStat {
    /// What it is.
    pub kind: PublicKind,
    /// Its permissions, as `chmod` has them.
    pub mode: u16,
    /// When its content was last changed, in seconds since 1970 and nanoseconds.
    pub modified: (i64, u32),
    /// The same for all names of a file. None for one with a single name.
    pub identity: Option<u64>,
}

/// The type of an entry of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, with its target.
    Link(Vec<u8>),
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

impl OpenItem {
    /// What is at a path of the item, which has no link before its last component.
    pub fn public_stat(&self, path: &[u8]) -> Result<PublicStat, Errno> {
        let path = if path.is_empty() { b"." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let found = opening::beneath(&self.directory, path, flags, resolve)?;
        let stat = serving::stat(&found)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => PublicKind::Directory,
            FileType::RegularFile => PublicKind::File,
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
                PublicKind::Link(target.into_bytes())
            }
            FileType::Fifo => PublicKind::Fifo,
            FileType::Socket => PublicKind::Socket,
            _ => PublicKind::Device,
        };
        let has_names = kind == PublicKind::File && stat.st_nlink > 1;
        Ok(PublicStat {
            kind,
            mode: (stat.st_mode & 0o7777) as u16,
            modified: (
                stat.st_mtime,
                u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
            ),
            identity: has_names.then_some(stat.st_ino),
        })
    }

    /// Opens a regular file or a directory of the item by its path, also through symbolic links that stay in
    /// the item. ENOENT for any other file type.
    pub fn publish(&self, path: &[u8]) -> Result<Published, TreeError> {
        let shown = self.shown(&String::from_utf8_lossy(path));
        self.open_public(path, For::Content)
            .map_err(failed(Action::Open, &shown))
    }

    /// The target of a symbolic link of the item, whose path has no link before it; None for anything else.
    pub fn link_target(&self, path: &[u8]) -> Option<Vec<u8>> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let found = opening::beneath(&self.directory, path, flags, resolve).ok()?;
        let target = rustix::fs::readlinkat(found, "", Vec::new()).ok()?;
        Some(target.into_bytes())
    }

    /// Like [`OpenItem::publish`], for a caller that reads no content: it also succeeds for a file with a
    /// lease of another program.
    pub fn inspect(&self, path: &[u8]) -> Result<Published, TreeError> {
        let shown = self.shown(&String::from_utf8_lossy(path));
        self.open_public(path, For::Validator)
            .map_err(failed(Action::Open, &shown))
    }

    fn open_public(&self, path: &[u8], what: For) -> Result<Published, Errno> {
        let path = match path {
            [] => b".",
            path => path,
        };
        let mut resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        if self.is_cached_only {
            resolve |= ResolveFlags::CACHED;
        }
        let find = |resolve| {
            if self.is_cached_only {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                rustix::fs::openat2(&self.directory, path, flags, Mode::empty(), resolve)
            } else {
                opening::beneath(&self.directory, path, OFlags::PATH, resolve)
            }
        };
        let (found, led_to) = match find(resolve | ResolveFlags::NO_SYMLINKS) {
            Err(Errno::LOOP) => {
                let found = find(resolve)?;
                let led_to = self.path_of(&found)?;
                (found, Some(led_to))
            }
            found => (found?, None),
        };
        open_found(found, led_to, what)
    }

    /// The path in the item of an opened file. ENOENT where the file has been moved out meanwhile.
    fn path_of(&self, found: &OwnedFd) -> Result<Vec<u8>, Errno> {
        let name = |descriptor: &OwnedFd| {
            rustix::fs::readlink(opening::by_descriptor(descriptor.as_fd()), Vec::new())
                .map(std::ffi::CString::into_bytes)
        };
        let (item, found) = (name(&self.directory)?, name(found)?);
        match found.strip_prefix(item.as_slice()) {
            Some([]) => Ok(Vec::new()),
            Some([b'/', path @ ..]) => Ok(path.to_vec()),
            _ => Err(Errno::NOENT),
        }
    }
}
