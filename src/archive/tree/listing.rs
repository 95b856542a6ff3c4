//! The list of the files of an item, and whether it is still current.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::place::failed;
use super::validator::Fingerprint;
use super::{Action, OpenItem, Tree, TreeError};
use crate::os::deep::{DeepEntry, open_far, walk_noting};

/// An item with more directories than this has no record of their state.
const MOST_DIRECTORIES: usize = 1024;

/// The paths of an item's files, and the directories in which they were found.
#[derive(Debug)]
pub struct Files {
    /// The paths of all entries that are not directories, sorted, relative to the item.
    pub paths: Vec<Vec<u8>>,
    /// Their state when they were listed; None where there are too many.
    pub directories: Option<Directories>,
}

/// The state of an item's directories at one time.
#[derive(Debug)]
pub struct Directories(Vec<(Vec<u8>, Fingerprint)>);

impl Directories {
    /// Whether a change after `now`, in nanoseconds, would be visible in all of them.
    pub fn are_settled(&self, now: i128) -> bool {
        self.0.iter().all(|(_, mark)| mark.is_settled(now))
    }

    /// The approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        let each =
            |(path, _): &(Vec<u8>, Fingerprint)| path.len() + size_of::<(Vec<u8>, Fingerprint)>();
        self.0.iter().map(each).sum()
    }
}

/// The most bytes of all paths of an item's files together: a million paths of 250 bytes.
const LONGEST_LIST: usize = 250_000_000;

impl Tree {
    /// The paths of all entries below an item that are not directories, sorted, relative to the item. EFBIG
    /// where the paths together are too long to be held in memory.
    pub fn files_in(&self, item: &OpenItem) -> Result<Files, TreeError> {
        let mut files = Vec::new();
        let mut directories = Some(Vec::new());
        let (mut bytes, mut unreadable) = (0, None);
        let visit = |entry| match entry {
            DeepEntry::Entry(path) => {
                bytes += path.len();
                if bytes <= LONGEST_LIST {
                    files.push(path);
                }
            }
            DeepEntry::Unreadable(path, errno) => unreadable = Some((path, errno)),
        };
        let note = |directory: &OwnedFd, path: &[u8]| {
            let mark = rustix::fs::fstat(directory).map(|stat| Fingerprint::of(&stat));
            match (&mut directories, mark) {
                (Some(noted), Ok(mark)) if noted.len() < MOST_DIRECTORIES => {
                    noted.push((path.to_vec(), mark));
                }
                _ => directories = None,
            }
        };
        walk_noting(&item.directory, b".", visit, note)
            .map_err(failed(Action::Open, item.place.as_str()))?;
        if let Some((path, errno)) = unreadable {
            let shown = item.shown(&String::from_utf8_lossy(&path));
            return Err(failed(Action::Open, &shown)(errno));
        }
        if bytes > LONGEST_LIST {
            return Err(failed(Action::List, item.place.as_str())(Errno::FBIG));
        }
        files.sort();
        Ok(Files {
            paths: files,
            directories: directories.map(Directories),
        })
    }

    /// Whether the listed directories are unchanged, and the calling user may read them.
    pub fn are_so_still(&self, item: &OpenItem, directories: &Directories) -> bool {
        directories.0.iter().all(|(path, mark)| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = open_far(&item.directory, path, flags);
            let stat = opened.and_then(rustix::fs::fstat);
            stat.is_ok_and(|stat| Fingerprint::of(&stat) == *mark)
        })
    }
}
