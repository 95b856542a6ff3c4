//! Node numbers and lookup counts: which nodes the kernel knows, and what each one is.
//!
//! A number must stay the same while the kernel knows the node, be the same in both trees for a
//! regular file (so that its cached pages are shared) and differ for a directory (the kernel allows
//! a directory one parent). So a real node's number is its inode number on the disk, marked with
//! the tree in which it is met when it is a directory or a symbolic link; a virtual node's number
//! comes from its content, so that a link that changes its target becomes another node and no
//! cached target outlives its truth. `stat` is told another number, that of the disk, which is the same
//! in all trees: tools see by it that two names are one file. This room serves nobody: it neither opens nor reads anything.

use parking_lot::RwLock;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rustix::io::Errno;

use crate::archive::store::ItemId;
use crate::fuse::descriptors::Kept;

/// The root's number, fixed by the protocol.
pub const ROOT: u64 = 1;

/// The tree in which a directory or link is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The rep tree; regular files of all trees are numbered here.
    Rep,
    /// The IBIp tree.
    Ibip,
    /// `.mint/NAME`.
    Mint,
    /// `<ibi>+(pt)` and its like in the IBIp tree, as a directory for whoever has just made it.
    Declared,
    /// The same in the rep tree.
    DeclaredInRep,
}

impl View {
    const ALL: [View; 5] = [
        View::Rep,
        View::Ibip,
        View::Mint,
        View::Declared,
        View::DeclaredInRep,
    ];

    /// The view of a directory just made under a modifier's name.
    pub fn declared_in(tree: View) -> View {
        match tree {
            View::Rep => View::DeclaredInRep,
            _ => View::Declared,
        }
    }

    /// Whether an item is met here by a name that its maker has given it, to be filled.
    pub fn is_to_be_filled(self) -> bool {
        matches!(self, View::Mint | View::Declared | View::DeclaredInRep)
    }

    /// Whether items lie four levels below the root here, as links on the disk have it.
    pub fn is_as_on_disk(self) -> bool {
        matches!(self, View::Rep | View::DeclaredInRep)
    }

    fn mark(self) -> u64 {
        (self as u64) << 60
    }
}

const VIRTUAL: u64 = 7 << 60;

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The mount's root: the real directory `col/`.
    Root,
    /// A level of the rep tree above the items, by its path from the root.
    Level(String),
    /// An item's own directory.
    Item(ItemId),
    /// Anything inside an item, or a staged file.
    Inside,
    /// The virtual directory of an IBIp prefix, as recorded.
    Prefix(String),
    /// The virtual directory `.mint`.
    Mint,
    /// A virtual symbolic link with its target.
    Link(Vec<u8>),
    /// The same, as met by a user who may replace or remove it, and owned by that user: the kernel has
    /// nothing else to go by in a directory with the sticky bit.
    OwnLink(Vec<u8>, u32),
    /// A virtual file with its content.
    Text(Vec<u8>),
    /// A virtual file whose content is made when it is asked for.
    Asked(Asked),
}

/// What is made of an item when it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// The list of its files.
    FileList(ItemId),
    /// Its record, from the files of a metadata item.
    Record {
        /// The item.
        item: ItemId,
        /// The metadata item that was asked for, where it is another than the item's own.
        from: Option<ItemId>,
    },
}

/// Where a real node's file lies.
#[derive(Debug)]
pub struct Real {
    /// The file itself.
    pub file: Kept,
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
    pub number: u64,
    /// The number that `stat` tells, the same in all trees.
    pub told: u64,
    /// What it is.
    pub kind: Kind,
    /// The tree it is met in.
    pub view: View,
    /// Its file, unless it is virtual.
    pub real: Option<Real>,
    sidecar_of: AtomicI64,
    lacks_capability: AtomicBool,
    may_be_mapped: AtomicBool,
}

impl Node {
    /// The open file, with O_PATH; EPERM for a virtual node.
    pub fn file(&self) -> Result<Arc<OwnedFd>, Errno> {
        match &self.real {
            Some(real) => real.file.open(),
            None => Err(Errno::PERM),
        }
    }

    /// The item whose sidecar this file is.
    pub fn sidecar_of(&self) -> Option<ItemId> {
        match self.sidecar_of.load(Ordering::Relaxed) {
            0 => None,
            id => Some(ItemId(id)),
        }
    }

    /// Whether this file is known to have no `security.capability`.
    pub fn lacks_capability(&self) -> bool {
        self.lacks_capability.load(Ordering::Relaxed)
    }

    /// Notes whether this file is known to have no `security.capability`.
    pub fn set_lacks_capability(&self, lacks: bool) {
        self.lacks_capability.store(lacks, Ordering::Relaxed);
    }

    /// Whether this file may be written through a mapping without anybody being told.
    pub fn may_be_mapped(&self) -> bool {
        self.may_be_mapped.load(Ordering::Relaxed)
    }

    /// Notes that this file may be; it says whether that is new.
    pub fn note_mapped(&self) -> bool {
        !self.may_be_mapped.swap(true, Ordering::Relaxed)
    }

    /// Notes that this file is, or no longer is, an item's sidecar.
    pub fn set_sidecar_of(&self, item: Option<ItemId>) {
        self.sidecar_of
            .store(item.map_or(0, |item| item.0), Ordering::Relaxed);
    }
}

type Key = (u64, u64, View);

/// The number that a file has unless another one has it.
fn wanted(key: &Key) -> u64 {
    key.1 | key.2.mark()
}

/// Spreads node numbers, which are dealt out in order. They come from a filesystem, which has no
/// reason to choose them so that they meet.
#[derive(Clone, Copy, Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug, Default)]
struct Inner {
    nodes: HashMap<u64, (Arc<Node>, u64), BuildHasherDefault<Spread>>,
    /// The files that do not have the number they want: the root, and those whose number is taken.
    displaced: HashMap<Key, u64>,
    /// The symbolic links in trees that do not read them as they are on disk: with every directory
    /// that is moved they are gone through.
    links_read_otherwise: HashSet<u64>,
    /// Nodes that the kernel takes for removed, although their files are there.
    retired: HashSet<u64>,
}

impl Inner {
    /// The number of a file that the kernel knows.
    fn number(&self, key: &Key) -> Option<u64> {
        if let Some(number) = self.displaced.get(key) {
            return Some(*number);
        }
        let number = wanted(key);
        let (node, _) = self.nodes.get(&number)?;
        let real = node.real.as_ref()?;
        ((real.device, real.inode, node.view) == *key).then_some(number)
    }
}

/// The nodes that the kernel knows. Its lock is a leaf.
#[derive(Debug, Default)]
pub struct Table {
    inner: RwLock<Inner>,
    /// Whether any file but the root has another number than it wants.
    any_displaced: AtomicBool,
    /// The device whose inode numbers `stat` is told.
    home: Option<u64>,
}

impl Table {
    /// A table for the files of a device, and of others that may be mounted in it.
    pub fn new(device: u64) -> Table {
        Table {
            home: Some(device),
            ..Table::default()
        }
    }

    /// The number that `stat` tells of a file; a directory listing tells it too.
    pub fn told(&self, device: u64, inode: u64) -> u64 {
        if self.home == Some(device) {
            inode
        } else {
            self.number_of(device, inode, View::Rep)
        }
    }

    /// Notes that the kernel takes a node for removed: its file gets another number when it is next met.
    pub fn retire(&self, number: u64) {
        let mut inner = self.write();
        if number != ROOT && inner.nodes.contains_key(&number) {
            inner.retired.insert(number);
        }
    }

    fn read(&self) -> parking_lot::RwLockReadGuard<'_, Inner> {
        self.inner.read()
    }

    fn write(&self) -> parking_lot::RwLockWriteGuard<'_, Inner> {
        self.inner.write()
    }

    /// The node with this number.
    pub fn get(&self, number: u64) -> Option<Arc<Node>> {
        self.read().nodes.get(&number).map(|(node, _)| node.clone())
    }

    /// The number that a file has, or would have, in a view.
    pub fn number_of(&self, device: u64, inode: u64, view: View) -> u64 {
        let key = (device, inode, view);
        if self.any_displaced.load(Ordering::Relaxed) {
            self.read().number(&key).unwrap_or_else(|| wanted(&key))
        } else {
            wanted(&key)
        }
    }

    /// The items whose directories the kernel knows in a view.
    pub fn items_met(&self, view: View) -> Vec<ItemId> {
        let inner = self.read();
        let nodes = inner.nodes.values();
        let items = nodes.filter_map(|(node, _)| match node.kind {
            Kind::Item(item) if node.view == view => Some(item),
            _ => None,
        });
        items.collect()
    }

    /// The number of a virtual node.
    pub fn number_of_virtual(&self, kind: &Kind) -> u64 {
        let mut hasher = DefaultHasher::new();
        kind.hash(&mut hasher);
        VIRTUAL | (hasher.finish() >> 4)
    }

    /// Counts a lookup of a real file, making its node where the kernel does not know it yet.
    pub fn remember(&self, real: Real, view: View, kind: Kind) -> Arc<Node> {
        let key = (real.device, real.inode, view);
        let mut inner = self.write();
        if let Some(number) = inner.number(&key)
            && !inner.retired.contains(&number)
            && let Some((node, count)) = inner.nodes.get_mut(&number)
            // A directory may become an item's after it was looked up as something else, and an
            // inode number another file's while the kernel still knows the old one.
            && node.kind == kind
            && node.real.as_ref().is_some_and(|known| known.file.is_same_file(&real.file))
        {
            *count += 1;
            return node.clone();
        }
        let number = match kind {
            Kind::Root => ROOT,
            _ => free_number(&inner, wanted(&key)),
        };
        if number == wanted(&key) {
            // A file that is gone, had this inode number and is still known by another of ours must
            // not be taken for this one.
            inner.displaced.remove(&key);
        } else {
            inner.displaced.insert(key, number);
            if number != ROOT {
                self.any_displaced.store(true, Ordering::Relaxed);
            }
        }
        let told = match (number, self.home == Some(key.0)) {
            (ROOT, _) => ROOT,
            (_, true) => key.1,
            (_, false) => {
                let key = (key.0, key.1, View::Rep);
                inner.number(&key).unwrap_or_else(|| wanted(&key))
            }
        };
        insert(&mut inner, (number, told), kind, view, Some(real))
    }

    /// Counts a lookup of a virtual node.
    pub fn remember_virtual(&self, view: View, kind: Kind) -> Arc<Node> {
        let mut number = self.number_of_virtual(&kind);
        let mut inner = self.write();
        loop {
            match inner.nodes.get_mut(&number) {
                Some((node, count)) if node.kind == kind => {
                    *count += 1;
                    return node.clone();
                }
                Some(_) => number = VIRTUAL | (number.wrapping_add(1) & !VIRTUAL),
                None => return insert(&mut inner, (number, number), kind, view, None),
            }
        }
    }

    /// A file of the disk as the kernel knows it, in whichever trees.
    pub fn in_all_views(&self, device: u64, inode: u64) -> Vec<u64> {
        let inner = self.read();
        View::ALL
            .iter()
            .filter_map(|view| inner.number(&(device, inode, *view)))
            .collect()
    }

    /// The virtual directories that the kernel knows.
    pub fn virtual_directories(&self) -> Vec<u64> {
        let inner = self.read();
        let all = inner.nodes.values().map(|(node, _)| node);
        let directories = all.filter(|node| matches!(node.kind, Kind::Mint | Kind::Prefix(_)));
        directories.map(|node| node.number).collect()
    }

    /// The symbolic links that the kernel knows in trees that do not read them as they are on disk.
    pub fn links_read_otherwise(&self) -> Vec<u64> {
        self.read().links_read_otherwise.iter().copied().collect()
    }

    /// The same directory or link as the kernel knows it in other trees.
    pub fn in_other_views(&self, node: &Node) -> Vec<u64> {
        let Some(real) = &node.real else {
            return Vec::new();
        };
        let mut numbers = self.in_all_views(real.device, real.inode);
        numbers.retain(|number| *number != node.number);
        numbers
    }

    /// Takes lookups back; the node goes with the last one, and true is the answer.
    pub fn forget(&self, number: u64, lookups: u64) -> bool {
        if number == ROOT {
            return false;
        }
        let mut inner = self.write();
        let Some((node, count)) = inner.nodes.get_mut(&number) else {
            return false;
        };
        *count = count.saturating_sub(lookups);
        if *count > 0 {
            return false;
        }
        if let Some(real) = &node.real {
            let key = (real.device, real.inode, node.view);
            if number != wanted(&key) && inner.displaced.get(&key) == Some(&number) {
                inner.displaced.remove(&key);
            }
        }
        let gone = inner.nodes.remove(&number);
        inner.links_read_otherwise.remove(&number);
        inner.retired.remove(&number);
        // Closing the descriptor may take time; nobody needs to wait for it.
        drop(inner);
        drop(gone);
        true
    }

    /// How many nodes the kernel knows.
    pub fn len(&self) -> usize {
        self.read().nodes.len()
    }
}

fn insert(
    inner: &mut Inner,
    (number, told): (u64, u64),
    kind: Kind,
    view: View,
    real: Option<Real>,
) -> Arc<Node> {
    if !view.is_as_on_disk() && real.as_ref().is_some_and(|real| real.is_link) {
        inner.links_read_otherwise.insert(number);
    }
    let node = Arc::new(Node {
        number,
        told,
        kind,
        view,
        real,
        sidecar_of: AtomicI64::new(0),
        lacks_capability: AtomicBool::new(false),
        may_be_mapped: AtomicBool::new(false),
    });
    inner.nodes.insert(number, (node.clone(), 1));
    node
}

/// The wanted number, unless it is the root's or taken: by a file of another device, or by one that is
/// gone and that the kernel still knows.
fn free_number(inner: &Inner, wanted: u64) -> u64 {
    let mut number = wanted;
    while number == ROOT || number == 0 || inner.nodes.contains_key(&number) {
        number = (number & (7 << 60)) | (number.wrapping_add(1 << 50) & !(7 << 60));
    }
    number
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::fuse::descriptors::Descriptors;

    fn real(inode: u64) -> Real {
        let root = OwnedFd::from(std::fs::File::open("/").expect("the root opens"));
        let keeper = Arc::new(Descriptors::new(root.as_fd(), 16).expect("a keeper"));
        let mut stat = rustix::fs::fstat(&root).expect("the root is there");
        // No device of this number: the descriptor stays open and no handle is compared.
        stat.st_dev = u64::MAX;
        Real {
            file: keeper.keep(root, &stat, true),
            device: 5,
            inode,
            is_link: false,
        }
    }

    #[test]
    fn one_file_has_one_number_and_counts_its_lookups() {
        let table = Table::default();
        let first = table.remember(real(7), View::Rep, Kind::Inside);
        let second = table.remember(real(7), View::Rep, Kind::Inside);
        assert_eq!((first.number, second.number), (7, 7));
        table.forget(7, 1);
        assert!(table.get(7).is_some());
        table.forget(7, 1);
        assert!(table.get(7).is_none());
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_directory_has_a_number_in_each_tree() {
        let table = Table::default();
        let rep = table.remember(real(7), View::Rep, Kind::Inside);
        let ibip = table.remember(real(7), View::Ibip, Kind::Inside);
        assert_ne!(rep.number, ibip.number);
        assert_eq!(table.in_other_views(&rep), vec![ibip.number]);
        assert_eq!(table.number_of(5, 7, View::Ibip), ibip.number);
    }

    #[test]
    fn links_that_a_tree_reads_otherwise_are_known_for_as_long_as_the_kernel_knows_them() {
        let table = Table::default();
        let link = |inode| Real {
            is_link: true,
            ..real(inode)
        };
        table.remember(real(6), View::Ibip, Kind::Inside);
        table.remember(link(7), View::Rep, Kind::Inside);
        assert!(table.links_read_otherwise().is_empty());
        let node = table.remember(link(7), View::Ibip, Kind::Inside);
        table.remember(link(7), View::Ibip, Kind::Inside);
        assert_eq!(table.links_read_otherwise(), vec![node.number]);
        table.forget(node.number, 1);
        assert_eq!(table.links_read_otherwise(), vec![node.number]);
        table.forget(node.number, 1);
        assert!(table.links_read_otherwise().is_empty());
    }

    #[test]
    fn a_file_is_found_by_its_own_number_while_gone_ones_with_its_inode_are_known() {
        let table = Table::default();
        let gone = table.remember(real(7), View::Rep, Kind::Item(ItemId(1)));
        let displaced = table.remember(real(7), View::Rep, Kind::Item(ItemId(2)));
        table.forget(gone.number, 1);
        let file = table.remember(real(7), View::Rep, Kind::Inside);
        assert_ne!(file.number, displaced.number);
        assert_eq!(table.in_all_views(5, 7), vec![file.number]);
        let again = table.remember(real(7), View::Rep, Kind::Inside);
        assert_eq!(again.number, file.number);
        table.forget(displaced.number, 1);
        assert_eq!(table.in_all_views(5, 7), vec![file.number]);
    }

    #[test]
    fn stat_is_told_one_number_in_all_trees_and_of_what_is_displaced() {
        let table = Table::new(5);
        let rep = table.remember(real(7), View::Rep, Kind::Inside);
        let ibip = table.remember(real(7), View::Ibip, Kind::Inside);
        let displaced = table.remember(real(7), View::Rep, Kind::Item(ItemId(2)));
        assert_ne!(rep.number, displaced.number);
        for node in [&rep, &ibip, &displaced] {
            assert_eq!(node.told, 7);
        }
        assert_eq!(table.told(5, 7), 7);
    }

    #[test]
    fn a_node_that_the_kernel_takes_for_removed_is_not_met_again() {
        let table = Table::new(5);
        let dead = table.remember(real(7), View::Rep, Kind::Inside);
        table.retire(dead.number);
        let next = table.remember(real(7), View::Rep, Kind::Inside);
        assert_ne!(dead.number, next.number);
        assert_eq!(
            table.remember(real(7), View::Rep, Kind::Inside).number,
            next.number
        );
        table.forget(dead.number, 1);
        assert_eq!(table.in_all_views(5, 7), vec![next.number]);
    }

    #[test]
    fn the_root_number_is_never_given_to_another_file() {
        let table = Table::default();
        let node = table.remember(real(1), View::Rep, Kind::Inside);
        assert_ne!(node.number, ROOT);
        let root = table.remember(real(2), View::Rep, Kind::Root);
        assert_eq!(root.number, ROOT);
        table.forget(ROOT, 1);
        assert!(table.get(ROOT).is_some());
    }

    #[test]
    fn a_link_that_changes_its_target_is_another_node() {
        let table = Table::default();
        let before = table.remember_virtual(View::Rep, Kind::Link(b"../a".to_vec()));
        let same = table.remember_virtual(View::Rep, Kind::Link(b"../a".to_vec()));
        let after = table.remember_virtual(View::Rep, Kind::Link(b"../b".to_vec()));
        assert_eq!(before.number, same.number);
        assert_ne!(before.number, after.number);
    }
}
