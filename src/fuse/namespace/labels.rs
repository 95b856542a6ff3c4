//! The labels of `.mint`: names that users give to what they have minted, each user for itself, and
//! what was taken out of sight under them.
//!
//! A label is one more way to an item. To remove it, as `rm -r .mint/NAME` does, touches no content: what
//! a program removes under a label is out of sight there and stays in the item, unless the program has
//! made something under a label itself; then it tidies up after itself, as rsync, git and tar do.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Errno;

use super::names::text;
use super::{Entry, Namespace, Stale};
use crate::archive::store::ItemId;
use crate::fuse::inode::{Kind, Node, View};
use crate::fuse::inside::{self, Outcome};
use crate::os::caller::Caller;

/// How many labels each user has; the oldest gives way.
const LABELS: usize = 10_000;
/// How many names each user may have out of sight.
const WITHDRAWN: usize = 1_000_000;

/// The labels of all users. Its lock is a leaf.
#[derive(Debug, Default)]
pub(super) struct Labels {
    inner: Mutex<(u64, HashMap<u32, OfUser>)>,
}

/// A user's labels, each with its item and its place in the order in which they were made.
type OfUser = BTreeMap<String, (ItemId, u64)>;

impl Labels {
    /// The item of a user's label.
    pub(super) fn find(&self, uid: u32, label: &str) -> Option<ItemId> {
        let inner = self.inner.lock();
        let (item, _) = inner.1.get(&uid)?.get(label)?;
        Some(*item)
    }

    /// Gives an item a label; false where the user has that one already.
    pub(super) fn add(&self, uid: u32, label: &str, item: ItemId) -> bool {
        let mut inner = self.inner.lock();
        let (next, users) = &mut *inner;
        let labels = users.entry(uid).or_default();
        if labels.contains_key(label) {
            return false;
        }
        if labels.len() >= LABELS {
            let oldest = labels.iter().min_by_key(|(_, (_, order))| *order);
            if let Some(oldest) = oldest.map(|(label, _)| label.clone()) {
                labels.remove(&oldest);
            }
        }
        *next += 1;
        labels.insert(label.to_owned(), (item, *next));
        true
    }

    /// Forgets a user's label and says which item it was.
    pub(super) fn forget(&self, uid: u32, label: &str) -> Option<ItemId> {
        let mut inner = self.inner.lock();
        let labels = inner.1.get_mut(&uid)?;
        let (item, _) = labels.remove(label)?;
        if labels.is_empty() {
            inner.1.remove(&uid);
        }
        Some(item)
    }

    /// Forgets the label of an item that was removed.
    pub(super) fn forget_item(&self, item: ItemId) {
        let mut inner = self.inner.lock();
        for labels in inner.1.values_mut() {
            labels.retain(|_, (labelled, _)| *labelled != item);
        }
    }

    /// A user's labels.
    pub(super) fn of(&self, uid: u32) -> Vec<(String, ItemId)> {
        let inner = self.inner.lock();
        let labels = inner.1.get(&uid).into_iter().flatten();
        labels
            .map(|(label, (item, _))| (label.clone(), *item))
            .collect()
    }
}

/// Which file it is: its inode number, and when it was made, for the number is given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    inode: u64,
    born: (i64, u32),
}

impl Identity {
    fn of(above: BorrowedFd<'_>, name: &OsStr) -> Outcome<Identity> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let stat = rustix::fs::statx(above, name, flags, wanted)?;
        Ok(Identity {
            inode: stat.stx_ino,
            born: (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
        })
    }
}

/// The names of a directory that are out of sight, as hashes, each with its file.
#[derive(Debug)]
struct InDirectory {
    item: ItemId,
    uid: u32,
    names: HashMap<u64, Identity>,
}

/// What was taken out of sight under labels. Its lock is a leaf.
#[derive(Debug, Default)]
pub(super) struct Withdrawn {
    /// By device and inode number of the directory.
    directories: Mutex<HashMap<(u64, u64), InDirectory>>,
    hasher: RandomState,
    any: AtomicBool,
}

impl Withdrawn {
    fn hash(&self, name: &OsStr) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }

    /// The file that is out of sight under a name.
    fn find(&self, above: (u64, u64), name: &OsStr) -> Option<Identity> {
        let directories = self.directories.lock();
        let known = directories.get(&above)?;
        known.names.get(&self.hash(name)).copied()
    }

    fn add(
        &self,
        above: (u64, u64),
        caller: &Caller,
        item: ItemId,
        (name, file): (&OsStr, Identity),
    ) -> Outcome<()> {
        let mut directories = self.directories.lock();
        let of_user = directories.values().filter(|known| known.uid == caller.uid);
        if of_user.map(|known| known.names.len()).sum::<usize>() >= WITHDRAWN {
            return Err(Errno::PERM);
        }
        let known = directories.entry(above).or_insert_with(|| InDirectory {
            item,
            uid: caller.uid,
            names: HashMap::new(),
        });
        known.names.insert(self.hash(name), file);
        self.any.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn bring_back(&self, above: (u64, u64), name: &OsStr) {
        let mut directories = self.directories.lock();
        if let Some(known) = directories.get_mut(&above) {
            known.names.remove(&self.hash(name));
            if known.names.is_empty() {
                directories.remove(&above);
            }
        }
        self.any.store(!directories.is_empty(), Ordering::Relaxed);
    }

    fn forget(&self, is_over: impl Fn(&(u64, u64), ItemId) -> bool) {
        let mut directories = self.directories.lock();
        directories.retain(|above, known| !is_over(above, known.item));
        self.any.store(!directories.is_empty(), Ordering::Relaxed);
    }
}

fn identity(node: &Node) -> Option<(u64, u64)> {
    node.real.as_ref().map(|real| (real.device, real.inode))
}

impl Namespace {
    /// `.mint/NAME` and `.mint/.NAME` of the user who asks: another user's are not there.
    pub(super) fn lookup_label(&self, caller: &Caller, name: &OsStr) -> Outcome<Entry> {
        let name = text(name)?;
        let (label, is_link) = match name.strip_prefix('.') {
            Some(label) => (label, true),
            None => (name, false),
        };
        let id = self.labels.find(caller.uid, label).ok_or(Errno::NOENT)?;
        let item = self.archive.store().item(id)?;
        let item = item.ok_or(Errno::NOENT)?;
        if is_link {
            let target = format!("../{}", item.names.preferred());
            self.virtual_entry(View::Mint, Kind::Link(target.into_bytes()))
        } else {
            self.item_entry_beside(caller, &item, View::Mint)
        }
    }

    /// `rmdir .mint/NAME` forgets the label, whatever the item holds.
    pub(super) fn forget_label(&self, caller: &Caller, label: &str) -> Outcome<()> {
        let item = self.labels.forget(caller.uid, label).ok_or(Errno::NOENT)?;
        self.withdrawn.forget(|_, known| known == item);
        Ok(())
    }

    /// After an item was removed: no label leads to it.
    pub(super) fn forget_labels_of(&self, item: ItemId) {
        self.labels.forget_item(item);
        self.withdrawn.forget(|_, known| known == item);
    }

    /// Whether what a caller removes from a directory stays, out of sight under the label.
    pub fn withdraws(&self, caller: &Caller, parent: &Node) -> bool {
        parent.view == View::Mint && !self.has_filled(caller)
    }

    /// Takes a name under a label out of sight; the file stays in the item.
    pub fn withdraw(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        is_directory: bool,
    ) -> Outcome<Vec<Stale>> {
        let above = parent.file()?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statat(&*above, name, flags)?;
        match (FileType::from_raw_mode(stat.st_mode), is_directory) {
            (FileType::Directory, false) => return Err(Errno::ISDIR),
            (FileType::Directory, true) => {
                let victim = inside::find(above.as_fd(), name)?;
                self.check_is_empty_in_sight((stat.st_dev, stat.st_ino), victim.as_fd())?;
            }
            (_, true) => return Err(Errno::NOTDIR),
            (_, false) => {}
        }
        let item = match parent.kind {
            Kind::Item(item) => item,
            _ => self.position(above.as_fd(), 0).ok_or(Errno::PERM)?.item,
        };
        let parent = identity(parent).ok_or(Errno::PERM)?;
        let file = Identity::of(above.as_fd(), name)?;
        self.withdrawn.add(parent, caller, item, (name, file))?;
        let met_here = if is_directory {
            // It is reached no more, nor what is in it.
            let victim = (stat.st_dev, stat.st_ino);
            self.withdrawn.forget(|above, _| *above == victim);
            let number = self.nodes.id_of(stat.st_dev, stat.st_ino, View::Mint);
            self.nodes.retire(number);
            None
        } else {
            // The kernel counts one link less now.
            Some(self.nodes.in_all_views(stat.st_dev, stat.st_ino))
        };
        let numbers = met_here.into_iter().flatten();
        Ok(numbers.map(Stale::Attributes).collect())
    }

    fn check_is_empty_in_sight(&self, identity: (u64, u64), victim: BorrowedFd<'_>) -> Outcome<()> {
        let listing = inside::open_directory(victim)?;
        let mut is_empty = true;
        inside::list(listing.as_fd(), 0, |name, inode, _, _| {
            let name = OsStr::from_bytes(name.to_bytes());
            is_empty =
                name == "." || name == ".." || self.is_gone(identity, victim, name, Some(inode));
            is_empty
        })?;
        if is_empty {
            Ok(())
        } else {
            Err(Errno::NOTEMPTY)
        }
    }

    /// Whether the file that a name of a directory means is out of sight there.
    fn is_gone(
        &self,
        identity: (u64, u64),
        above: BorrowedFd<'_>,
        name: &OsStr,
        inode: Option<u64>,
    ) -> bool {
        let Some(gone) = self.withdrawn.find(identity, name) else {
            return false;
        };
        inode.is_none_or(|inode| inode == gone.inode)
            && Identity::of(above, name).is_ok_and(|there| there == gone)
    }

    /// Whether a name in a directory is out of sight there; a listing knows the inode number.
    pub fn is_out_of_sight(&self, parent: &Node, name: &OsStr, inode: Option<u64>) -> bool {
        if parent.view != View::Mint || !self.withdrawn.any.load(Ordering::Relaxed) {
            return false;
        }
        let (Some(identity), Ok(above)) = (identity(parent), parent.file()) else {
            return false;
        };
        self.is_gone(identity, above.as_fd(), name, inode)
    }

    /// Before a caller makes a name: what is out of sight under it is replaced, as far as the caller may
    /// remove it itself. A directory comes back instead. Says whether something was replaced.
    pub(super) fn replace_withdrawn(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> Outcome<bool> {
        if !self.is_out_of_sight(parent, name, None) {
            return Ok(false);
        }
        let above = parent.file()?;
        let stat = rustix::fs::statat(&*above, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if let Some(identity) = identity(parent) {
            self.withdrawn.bring_back(identity, name);
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Err(Errno::EXIST),
            _ => match caller.act(|| inside::remove(above.as_fd(), name, false)) {
                Ok(()) | Err(Errno::NOENT) => Ok(true),
                Err(errno) => Err(errno),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_each_users_own_and_the_oldest_gives_way() {
        let labels = Labels::default();
        assert!(labels.add(1, "a", ItemId(1)));
        assert!(!labels.add(1, "a", ItemId(2)));
        assert!(labels.add(2, "a", ItemId(2)));
        assert_eq!(labels.find(1, "a"), Some(ItemId(1)));
        assert_eq!(labels.find(2, "a"), Some(ItemId(2)));
        assert_eq!(labels.find(0, "a"), None);
        for number in 0..LABELS {
            assert!(labels.add(1, &format!("b{number}"), ItemId(3)));
        }
        assert_eq!(labels.find(1, "a"), None);
        assert_eq!(labels.of(1).len(), LABELS);
        assert_eq!(labels.find(2, "a"), Some(ItemId(2)));
        assert_eq!(labels.forget(2, "a"), Some(ItemId(2)));
        assert_eq!(labels.forget(2, "a"), None);
    }
}
