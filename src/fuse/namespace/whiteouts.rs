//! Whiteouts: names that were removed under a label while their files stay in the item.
//!
//! A label is one more path to an item. Removing it with `rm -r .mint/NAME` must not remove content: what a
//! program removes under a label is no longer shown there and stays in the item. A program that has made
//! something under a label itself removes its own files, as rsync, git and tar do.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Errno;

use super::Namespace;
use super::invalidation::Stale;
use crate::archive::store::ItemId;
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult, Removal};
use crate::os::caller::Caller;

/// How many whiteouts a user may have.
const MOST_OF_A_USER: usize = 1_000_000;

/// A file: its inode number, and when it was made, because inode numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    born: (i64, u32),
}

impl FileIdentity {
    fn of(above: BorrowedFd<'_>, name: &OsStr) -> ErrnoResult<FileIdentity> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let stat = rustix::fs::statx(above, name, flags, wanted)?;
        Ok(FileIdentity {
            inode: stat.stx_ino,
            born: (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
        })
    }
}

/// The whiteouts of a directory: the hash of each name, with its file.
#[derive(Debug)]
struct DirectoryWhiteouts {
    item: ItemId,
    uid: u32,
    names: HashMap<u64, FileIdentity>,
}

/// All whiteouts. No other lock is taken under its lock.
#[derive(Debug, Default)]
pub(super) struct Whiteouts {
    /// By device and inode number of the directory.
    directories: Mutex<HashMap<(u64, u64), DirectoryWhiteouts>>,
    hasher: RandomState,
    any: AtomicBool,
}

impl Whiteouts {
    fn hash(&self, name: &OsStr) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }

    /// The file that a name is a whiteout of.
    fn find(&self, above: (u64, u64), name: &OsStr) -> Option<FileIdentity> {
        let directories = self.directories.lock();
        let known = directories.get(&above)?;
        known.names.get(&self.hash(name)).copied()
    }

    fn add(
        &self,
        above: (u64, u64),
        caller: &Caller,
        item: ItemId,
        (name, file): (&OsStr, FileIdentity),
    ) -> ErrnoResult<()> {
        let mut directories = self.directories.lock();
        let of_user = directories.values().filter(|known| known.uid == caller.uid);
        if of_user.map(|known| known.names.len()).sum::<usize>() >= MOST_OF_A_USER {
            return Err(Errno::PERM);
        }
        let known = directories
            .entry(above)
            .or_insert_with(|| DirectoryWhiteouts {
                item,
                uid: caller.uid,
                names: HashMap::new(),
            });
        known.names.insert(self.hash(name), file);
        self.any.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn remove(&self, above: (u64, u64), name: &OsStr) {
        let mut directories = self.directories.lock();
        if let Some(known) = directories.get_mut(&above) {
            known.names.remove(&self.hash(name));
            if known.names.is_empty() {
                directories.remove(&above);
            }
        }
        self.any.store(!directories.is_empty(), Ordering::Relaxed);
    }

    pub(super) fn forget(&self, is_over: impl Fn(&(u64, u64), ItemId) -> bool) {
        let mut directories = self.directories.lock();
        directories.retain(|above, known| !is_over(above, known.item));
        self.any.store(!directories.is_empty(), Ordering::Relaxed);
    }
}

fn identity(node: &Node) -> Option<(u64, u64)> {
    node.real.as_ref().map(|real| (real.device, real.inode))
}

impl Namespace {
    /// Whether removing a name from a directory makes a whiteout for this caller.
    pub(super) fn whites_out(&self, caller: &Caller, parent: &Node) -> bool {
        parent.view == View::Mint && !self.is_depositor(caller)
    }

    /// Makes a whiteout of a name under a label; the file stays in the item.
    pub(super) fn white_out(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        removal: Removal,
    ) -> ErrnoResult<Vec<Stale>> {
        let above = parent.file()?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statat(&*above, name, flags)?;
        match (FileType::from_raw_mode(stat.st_mode), removal) {
            (FileType::Directory, Removal::Unlink) => return Err(Errno::ISDIR),
            (FileType::Directory, Removal::Rmdir) => {
                let victim = inside::find(above.as_fd(), name)?;
                self.check_shown_empty((stat.st_dev, stat.st_ino), victim.as_fd())?;
            }
            (_, Removal::Rmdir) => return Err(Errno::NOTDIR),
            (_, Removal::Unlink) => {}
        }
        let item = match parent.kind {
            NodeKind::Item(item) => item,
            _ => self.position_of(above.as_fd(), 0).ok_or(Errno::PERM)?.item,
        };
        let parent = identity(parent).ok_or(Errno::PERM)?;
        let file = FileIdentity::of(above.as_fd(), name)?;
        self.whiteouts.add(parent, caller, item, (name, file))?;
        let met_here = if removal == Removal::Rmdir {
            // Neither the directory nor what is in it can be reached any more.
            let victim = (stat.st_dev, stat.st_ino);
            self.whiteouts.forget(|above, _| *above == victim);
            let number = self.nodes.id_of(stat.st_dev, stat.st_ino, View::Mint);
            self.nodes.retire(number);
            None
        } else {
            // The kernel now counts one link less.
            Some(self.nodes.in_all_views(stat.st_dev, stat.st_ino))
        };
        let numbers = met_here.into_iter().flatten();
        Ok(numbers.map(Stale::Attributes).collect())
    }

    fn check_shown_empty(&self, identity: (u64, u64), victim: BorrowedFd<'_>) -> ErrnoResult<()> {
        let listing = inside::open_directory(victim)?;
        let mut is_empty = true;
        inside::list(listing.as_fd(), 0, |name, inode, _, _| {
            let name = OsStr::from_bytes(name.to_bytes());
            is_empty = name == "."
                || name == ".."
                || self.is_file_whited_out(identity, victim, name, Some(inode));
            is_empty
        })?;
        if is_empty {
            Ok(())
        } else {
            Err(Errno::NOTEMPTY)
        }
    }

    /// Whether a name is a whiteout of the file that it leads to.
    fn is_file_whited_out(
        &self,
        identity: (u64, u64),
        above: BorrowedFd<'_>,
        name: &OsStr,
        inode: Option<u64>,
    ) -> bool {
        let Some(whited_out) = self.whiteouts.find(identity, name) else {
            return false;
        };
        inode.is_none_or(|inode| inode == whited_out.inode)
            && FileIdentity::of(above, name).is_ok_and(|there| there == whited_out)
    }

    /// Whether a name in a directory is whited out; a listing knows the inode number.
    pub fn is_whited_out(&self, parent: &Node, name: &OsStr, inode: Option<u64>) -> bool {
        if parent.view != View::Mint || !self.whiteouts.any.load(Ordering::Relaxed) {
            return false;
        }
        let (Some(identity), Ok(above)) = (identity(parent), parent.file()) else {
            return false;
        };
        self.is_file_whited_out(identity, above.as_fd(), name, inode)
    }

    /// Before a caller makes a name: removes the file that the name is a whiteout of, with the caller's
    /// rights. A directory is shown again instead. Returns whether a file was removed.
    pub(super) fn replace_whited_out(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<bool> {
        if !self.is_whited_out(parent, name, None) {
            return Ok(false);
        }
        let above = parent.file()?;
        let stat = rustix::fs::statat(&*above, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if let Some(identity) = identity(parent) {
            self.whiteouts.remove(identity, name);
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Err(Errno::EXIST),
            _ => match caller.act(|| inside::remove(above.as_fd(), name, Removal::Unlink)) {
                Ok(()) | Err(Errno::NOENT) => Ok(true),
                Err(errno) => Err(errno),
            },
        }
    }
}
