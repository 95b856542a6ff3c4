//! Files and directories of an item for the public, opened with the rights of the calling thread.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Action;
use super::place::failed;
use super::validator::Fingerprint;
use super::{OpenItem, Place, Tree, TreeError};
use crate::formats::entry::EntryStat;
use crate::os::access_lists;
use crate::os::entries::{each_entry_of, next_entries_of};
use crate::os::opening;
use crate::os::serving;
use ibi::Timestamp;

/// A file or a directory of an item.
#[derive(Debug)]
pub struct Published {
    /// The file or directory, open for reading unless it was only found.
    pub file: File,
    mode: u16,
    fingerprint: Fingerprint,
    links: u32,
    led_to: Option<Vec<u8>>,
}

impl Published {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode.into())
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.fingerprint.length()
    }

    /// Returns when its content was last changed.
    pub fn changed(&self) -> Timestamp {
        self.fingerprint.modified()
    }

    /// A value that differs as soon as the content may differ. It has the inode number, the length, and the
    /// times of the last change of content and inode: the time of the content alone can be set back.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The number of names that it has, in any item.
    pub fn links(&self) -> u32 {
        self.links
    }

    /// Its permissions, as `chmod` has them.
    pub fn permissions(&self) -> u32 {
        u32::from(self.mode) & 0o777
    }

    /// The same without its access control list, for a copy that has none.
    pub fn permissions_without_list(&self) -> Result<u32, Errno> {
        mode_without_list(&self.file, self.permissions())
    }

    /// Whether it has an access control list, or that cannot be found out.
    pub fn has_access_list(&self) -> bool {
        let found = rustix::fs::fgetxattr(&self.file, access_lists::ATTRIBUTE, &mut [0; 0][..]);
        !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP))
    }

    /// Whether neither content nor permissions have changed since it was opened.
    pub fn is_unchanged(&self) -> Result<bool, Errno> {
        let now = serving::attributes(&self.file)?;
        Ok(Fingerprint::of_attributes(&now) == self.fingerprint)
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

impl Published {
    /// Returns what has been found with O_PATH, if it is a regular file or a directory.
    fn found(found: OwnedFd, led_to: Option<Vec<u8>>) -> Result<Published, Errno> {
        let attributes = serving::attributes(&found)?;
        match FileType::from_raw_mode(attributes.stx_mode.into()) {
            FileType::RegularFile | FileType::Directory => {}
            // A device or a pipe must not even be opened.
            _ => return Err(Errno::NOENT),
        }
        Ok(Published {
            file: found.into(),
            mode: attributes.stx_mode,
            fingerprint: Fingerprint::of_attributes(&attributes),
            links: attributes.stx_nlink,
            led_to,
        })
    }

    /// Opens what has been found, with the rights of the calling thread.
    pub fn opened(&self) -> Result<Published, Errno> {
        Ok(Published {
            file: opening::again(&self.file, OFlags::RDONLY)?.into(),
            mode: self.mode,
            fingerprint: self.fingerprint,
            links: self.links,
            led_to: self.led_to.clone(),
        })
    }
}

/// Opens what has been found, if it is a regular file or a directory.
fn open_found(found: OwnedFd, led_to: Option<Vec<u8>>, what: For) -> Result<Published, Errno> {
    let mut found = Published::found(found, led_to)?;
    match opening::again(&found.file, OFlags::RDONLY) {
        // The right to read was checked before the lease that prevents opening.
        Err(opening::LEASED) if what == For::Validator => {}
        opened => found.file = opened?.into(),
    }
    Ok(found)
}

impl Tree {
    /// Finds a regular file or a directory of an item in one call, for a thread that must not wait for a
    /// disk; [`Published::opened`] opens it. The levels above the item must let the calling thread through, too. EAGAIN where it would have
    /// to wait, ELOOP where there is a link, EXDEV where another filesystem is mounted on the way or the path
    /// has `..`, which may lead out of the item.
    pub fn find_cached(&self, place: &Place, path: &[u8]) -> Result<Published, TreeError> {
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
        let found = found.and_then(|found| Published::found(found, None));
        found.map_err(|errno| failed(Action::Open, &String::from_utf8_lossy(&path))(errno))
    }
}

/// The mode of a file or directory without its access control list.
fn mode_without_list(file: impl AsFd, mode: u32) -> Result<u32, Errno> {
    let list = access_lists::list_of(file)?;
    Ok(list.map_or(mode, |list| access_lists::mode_without(&list, mode)))
}

/// The attributes of an entry of an item that the public may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicStat {
    /// Its kind.
    pub kind: PublicKind,
    /// Its permissions, without its access control list, and the time of the last change of its content.
    pub stat: EntryStat,
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
    /// Returns what is at a path of the item, which has no link before its last component.
    pub fn public_stat(&self, path: &[u8]) -> Result<PublicStat, Errno> {
        let path = if path.is_empty() { b"." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let found = opening::beneath(&self.directory, path, flags, resolve)?;
        let attributes = serving::attributes(&found)?;
        let kind = match FileType::from_raw_mode(attributes.stx_mode.into()) {
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
        let has_names = kind == PublicKind::File && attributes.stx_nlink > 1;
        let modified = attributes.stx_mtime;
        let mode = u32::from(attributes.stx_mode & 0o7777);
        // Links have no list, and what is asked of one would be asked of its target.
        let mode = match kind {
            PublicKind::Link(_) => mode,
            _ => mode_without_list(&found, mode)?,
        };
        Ok(PublicStat {
            kind,
            stat: EntryStat {
                mode: u16::try_from(mode).unwrap_or(0),
                modified: (modified.tv_sec, modified.tv_nsec),
            },
            identity: has_names.then_some(attributes.stx_ino),
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
