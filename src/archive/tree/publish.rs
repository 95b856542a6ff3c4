//! What is given to anybody: files and directories of an item, as whoever asks may open them.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::Action;
use super::place::failed;
use super::walk::each_entry_of;
use super::{OpenItem, Place, Tree, TreeError};
use crate::os::opening;
use ibi::Timestamp;

/// Something in an item, open for reading.
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

    /// When its content changed last.
    pub fn changed(&self) -> Timestamp {
        let nanoseconds = u32::try_from(self.stat.st_mtime_nsec).unwrap_or(0);
        Timestamp::from_unix(self.stat.st_mtime, nanoseconds)
    }

    /// What differs as soon as the content may: node, length, and when content or node changed; the
    /// time of the content alone can be set back.
    pub fn fingerprint(&self) -> String {
        let stat = &self.stat;
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

    /// The path in the item to which links have led, where there was one on the way.
    pub fn led_to(&self) -> Option<&[u8]> {
        self.led_to.as_deref()
    }

    /// Calls `visit` with every name in a directory and whether it is itself a directory.
    pub fn each_name(&self, visit: impl FnMut(&[u8], bool)) -> Result<(), Errno> {
        let directory = OwnedFd::from(self.file.try_clone().map_err(|_| Errno::MFILE)?);
        each_entry_of(&directory, visit)
    }
}

/// What something is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// To be read.
    Content,
    /// To be told of, by whoever may read it.
    Validator,
}

/// Opens what has been found, if it is a regular file or a directory.
fn open_found(found: OwnedFd, led_to: Option<Vec<u8>>, what: For) -> Result<Published, Errno> {
    // A device or a pipe must not even be opened.
    let stat = rustix::fs::fstat(&found)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => {}
        _ => return Err(Errno::NOENT),
    }
    let file = match opening::again(&found, OFlags::RDONLY) {
        // The right to read it was looked at before the lease that is in the way.
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
    /// Opens a regular file or a directory in an item for whoever cannot wait for a disk, in one go: with
    /// the way to the item, which must be open to whoever does so, too. EAGAIN where somebody would have
    /// to wait, ELOOP where there is a link, EXDEV where another filesystem is mounted on the way or the
    /// path climbs, which may lead out of the item.
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

impl OpenItem {
    /// Opens a regular file or a directory of the item by its path, also through symbolic links that
    /// stay in the item. ENOENT for what is something else.
    pub fn publish(&self, path: &[u8]) -> Result<Published, TreeError> {
        let shown = self.shown(&String::from_utf8_lossy(path));
        self.open_public(path, For::Content)
            .map_err(failed(Action::Open, &shown))
    }

    /// The same for who reads no content: a file that another program has a lease on is told of, too.
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

    /// Where in the item something lies that has been found in it. ENOENT where it has been moved out
    /// meanwhile.
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
