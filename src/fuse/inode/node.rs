//! The nodes that the kernel knows, and their kinds.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use parking_lot::Mutex;
use rustix::io::Errno;

use super::{NodeId, View};
use crate::archive::store::ItemId;
use crate::formats::description::DescriptionFormat;
use crate::fuse::descriptors::Pinned;

/// The kind of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// The mount's root: the real directory `col/`.
    Root,
    /// A level of the rep tree above the items, by its path from the root.
    Level(String),
    /// An item's own directory.
    Item(ItemId),
    /// Any file or directory inside an item, or a staged file.
    Inside,
    /// The virtual directory of an IBIp prefix, as recorded.
    Prefix(String),
    /// The virtual directory `.mint`.
    Mint,
    /// The virtual directory `.find`.
    Find,
    /// The virtual directory of what is found by a query: its names below `.find`, joined by slashes.
    Found(String),
    /// The virtual directory `.world`.
    World,
    /// A level above items that are not held here, by its path from the root.
    Outside(String),
    /// A virtual symbolic link with its target.
    Link(Vec<u8>),
    /// A virtual symbolic link as seen by a user who may replace or remove it. This user owns it, because in
    /// a directory with the sticky bit the kernel decides by the owner.
    OwnLink(Vec<u8>, u32),
    /// A virtual file with its content.
    Text(Vec<u8>),
    /// A virtual file whose content is generated when it is opened.
    Generated(Generated),
}

/// A kind of generated text about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generated {
    /// The list of its files.
    FileList(ItemId),
    /// Its record, from the files of a metadata item.
    Record {
        /// The item.
        item: ItemId,
        /// The metadata item that was requested, if it is not the item's own.
        from: Option<ItemId>,
        /// The format of the text.
        format: DescriptionFormat,
    },
}

/// The file of a real node.
#[derive(Debug)]
pub struct Real {
    /// The file itself.
    pub file: Pinned,
    /// Device number on the disk.
    pub device: u64,
    /// Inode number on the disk.
    pub inode: u64,
    /// Whether it is a symbolic link.
    pub is_link: bool,
}

/// One node the kernel knows.
#[derive(Debug)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// The inode number that `stat` reports, the same in all trees.
    pub st_ino: u64,
    /// Its kind.
    pub kind: NodeKind,
    /// The tree in which it appears.
    pub view: View,
    /// Whether other hosts may change what it shows.
    pub is_shared: bool,
    /// Its file, unless it is virtual.
    pub real: Option<Real>,
    /// The findings of operations about the file while the kernel knows the node.
    pub learnt: Learnt,
}

impl Node {
    /// The file, open with O_PATH or as a program has opened it. EPERM for a virtual node.
    pub fn file(&self) -> Result<Arc<OwnedFd>, Errno> {
        match &self.real {
            Some(real) => real.file.open(),
            None => Err(Errno::PERM),
        }
    }

    /// Whether the node is an item's directory or lies in one, where names follow the native filesystem.
    pub fn is_in_item(&self) -> bool {
        matches!(self.kind, NodeKind::Item(_) | NodeKind::Inside)
    }
}

/// The number of an item, if there is one, which threads may read and set.
#[derive(Debug, Default)]
struct ItemCell(AtomicI64);

impl ItemCell {
    fn get(&self) -> Option<ItemId> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            id => Some(ItemId(id)),
        }
    }

    fn set(&self, item: Option<ItemId>) {
        let id = item.map_or(0, |item| item.0);
        self.0.store(id, Ordering::Relaxed);
    }
}

/// The number of items that are remembered of a file with names in several.
const MOST_ITEMS: usize = 64;

/// The findings of operations about a file. The node stores them; the table does not use them.
#[derive(Debug, Default)]
pub struct Learnt {
    item: ItemCell,
    /// Other items in which the file has a name, or had one when it had several.
    other_items: Mutex<Vec<ItemId>>,
    sidecar_of: ItemCell,
    metadata_of: ItemCell,
    describes: ItemCell,
    lacks_capability: AtomicBool,
    was_mappable: AtomicBool,
    mappable_opens: AtomicU32,
    unseen_closes: AtomicU32,
    is_looked_into: AtomicBool,
    confirmed: AtomicU32,
}

/// The ways in which the kernel may write a file through a shared mapping without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// It was never opened so that it could be.
    None,
    /// It was: a mapping may have outlived the descriptor.
    MayRemain,
    /// It is open so that it can be.
    Open(CloseNotice),
}

/// The notice of the kernel that a process closes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseNotice {
    /// With a FLUSH, before close(2) returns.
    Sent,
    /// Not before the last process has closed the file, and after close(2) has returned.
    None,
}

/// A file is open so that it can be mapped for writing, until this value is dropped.
#[derive(Debug)]
pub struct MappableOpen {
    node: Arc<Node>,
    notice: CloseNotice,
}

impl MappableOpen {
    /// Notes that a file is opened.
    pub fn new(node: &Arc<Node>, notice: CloseNotice) -> MappableOpen {
        let learnt = &node.learnt;
        if notice == CloseNotice::None {
            learnt.unseen_closes.fetch_add(1, Ordering::Relaxed);
        }
        learnt.mappable_opens.fetch_add(1, Ordering::Relaxed);
        learnt.was_mappable.store(true, Ordering::Relaxed);
        let node = Arc::clone(node);
        MappableOpen { node, notice }
    }

    /// Returns whether the kernel says when a process closes the file.
    pub fn notice(&self) -> CloseNotice {
        self.notice
    }
}

impl Drop for MappableOpen {
    fn drop(&mut self) {
        let learnt = &self.node.learnt;
        learnt.mappable_opens.fetch_sub(1, Ordering::Relaxed);
        if self.notice == CloseNotice::None {
            learnt.unseen_closes.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Learnt {
    /// The item in which this file lies, as far as it is known.
    pub fn item(&self) -> Option<ItemId> {
        self.item.get()
    }

    /// Records in which item this file lies, if that is known.
    pub fn set_item(&self, item: Option<ItemId>) {
        self.item.set(item);
        self.other_items.lock().clear();
    }

    /// Records in which item a name of this file lies. The kernel may know the file by its other names, and does not say by
    /// which one it is changed: as long as it has several, the items in which these were met are remembered.
    pub fn meet_in(&self, item: Option<ItemId>, has_other_names: bool) {
        if !has_other_names {
            self.set_item(item);
            return;
        }
        let before = self.item.get().filter(|before| Some(*before) != item);
        self.item.set(item);
        if let Some(before) = before {
            let mut others = self.other_items.lock();
            others.retain(|other| *other != before);
            if others.len() == MOST_ITEMS {
                others.remove(0);
            }
            others.push(before);
        }
    }

    /// The other items in which this file may lie.
    pub fn other_items(&self) -> Vec<ItemId> {
        self.other_items.lock().clone()
    }

    /// The item whose sidecar this file is.
    pub fn sidecar_of(&self) -> Option<ItemId> {
        self.sidecar_of.get()
    }

    /// Records which item's sidecar this file is, if any.
    pub fn set_sidecar_of(&self, item: Option<ItemId>) {
        self.sidecar_of.set(item);
    }

    /// The item whose metadata text this file is, if it was found by its name beside the item.
    pub fn metadata_of(&self) -> Option<ItemId> {
        self.metadata_of.get()
    }

    /// Records which item's metadata text this file is.
    pub fn set_metadata_of(&self, item: ItemId) {
        self.metadata_of.set(Some(item));
    }

    /// The item whose metadata text this file is, by whatever name it was found.
    pub fn describes(&self) -> Option<ItemId> {
        self.describes.get()
    }

    /// Records which item's metadata text this file is, by whatever name it was found.
    pub fn set_describes(&self, item: ItemId) {
        self.describes.set(Some(item));
    }

    /// Whether this file is known to have no `security.capability`.
    pub fn lacks_capability(&self) -> bool {
        self.lacks_capability.load(Ordering::Relaxed)
    }

    /// Records whether this file is known to have no `security.capability`.
    pub fn set_lacks_capability(&self, lacks: bool) {
        self.lacks_capability.store(lacks, Ordering::Relaxed);
    }

    /// Whether the kernel has looked for a name in this directory. It does so before it makes, removes or
    /// renames one, or gets the names and attributes of all.
    pub fn is_looked_into(&self) -> bool {
        self.is_looked_into.load(Ordering::SeqCst)
    }

    /// Records that the kernel looks for a name in this directory; to be called before the name is looked for.
    pub fn set_looked_into(&self) {
        // Most directories are looked into again and again.
        if !self.is_looked_into.load(Ordering::Relaxed) {
            self.is_looked_into.store(true, Ordering::SeqCst);
        }
    }

    /// Returns when the index last said that this directory is that of its item, in seconds since the mount began; 0 if
    /// it did not.
    pub fn confirmed(&self) -> u32 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Records that the index says so now.
    pub fn set_confirmed(&self, seconds: u32) {
        self.confirmed.store(seconds, Ordering::Relaxed);
    }

    /// Returns whether the kernel may write this file through a mapping without a request.
    pub fn mapping(&self) -> Mapping {
        if !self.was_mappable.load(Ordering::Relaxed) {
            Mapping::None
        } else if self.mappable_opens.load(Ordering::Relaxed) == 0 {
            Mapping::MayRemain
        } else if self.unseen_closes.load(Ordering::Relaxed) == 0 {
            Mapping::Open(CloseNotice::Sent)
        } else {
            Mapping::Open(CloseNotice::None)
        }
    }
}
