//! The nodes that the kernel knows, by number and by file.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::node::Learnt;
use super::{Node, NodeId, NodeKind, ROOT, Real, View};
use crate::archive::store::ItemId;

/// The mark of virtual nodes, distinct from those of [`View`].
const VIRTUAL: u64 = 7 << 60;

/// Room for so many nodes is kept.
const LEAST_ROOM: usize = 16_384;

/// A file in a tree: device number, inode number, tree.
type FileKey = (u64, u64, View);

/// The number of a file, unless another node has it.
fn preferred(key: &FileKey) -> NodeId {
    NodeId(key.1 | key.2.mark())
}

/// A hash of node numbers. A filesystem assigns them in order and has no reason to make them collide, so it
/// need not resist an attacker.
#[derive(Clone, Copy, Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
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

/// A node with its lookup count.
#[derive(Debug)]
struct CountedNode {
    node: Arc<Node>,
    lookups: u64,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether other hosts may change what the nodes show.
    is_shared: bool,
    nodes: HashMap<NodeId, CountedNode, BuildHasherDefault<NumberHasher>>,
    /// The files that do not have their preferred number: the root, and files whose number is taken.
    displaced: HashMap<FileKey, NodeId>,
    /// The symbolic links in trees that translate their targets. All of them are checked when a directory is
    /// moved.
    translated_links: HashSet<NodeId>,
    /// Nodes that the kernel considers removed although their files exist.
    retired: HashSet<NodeId>,
}

impl Inner {
    /// The number of a file that the kernel knows.
    fn id(&self, key: &FileKey) -> Option<NodeId> {
        if let Some(id) = self.displaced.get(key) {
            return Some(*id);
        }
        let id = preferred(key);
        let node = &self.nodes.get(&id)?.node;
        let real = node.real.as_ref()?;
        ((real.device, real.inode, node.view) == *key).then_some(id)
    }

    fn insert(
        &mut self,
        (id, st_ino): (NodeId, u64),
        kind: NodeKind,
        view: View,
        real: Option<Real>,
    ) -> Arc<Node> {
        if !view.has_disk_depth() && real.as_ref().is_some_and(|real| real.is_link) {
            self.translated_links.insert(id);
        }
        let node = Arc::new(Node {
            id,
            st_ino,
            kind,
            view,
            is_shared: self.is_shared,
            real,
            learnt: Learnt::default(),
        });
        let counted = CountedNode {
            node: Arc::clone(&node),
            lookups: 1,
        };
        self.nodes.insert(id, counted);
        node
    }

    /// Frees room of which less than a quarter is used. Each time at most half of the nodes that were
    /// forgotten since the last time are moved.
    fn shrink(&mut self) {
        let room = self.nodes.capacity();
        if room > LEAST_ROOM && self.nodes.len() < room / 4 {
            self.nodes.shrink_to(room / 2);
        }
    }

    /// The preferred number, unless it belongs to the root or is taken: by a file of another device, or by a
    /// removed file that the kernel still knows.
    fn free_id(&self, preferred: NodeId) -> NodeId {
        let mut id = preferred;
        while id == ROOT || id.0 == 0 || self.nodes.contains_key(&id) {
            id = NodeId((id.0 & VIRTUAL) | (id.0.wrapping_add(1 << 50) & !VIRTUAL));
        }
        id
    }
}

/// The nodes that the kernel knows. No other lock is taken under its lock.
#[derive(Debug, Default)]
pub struct NodeTable {
    inner: RwLock<Inner>,
    /// Whether any file except the root lacks its preferred number.
    any_displaced: AtomicBool,
    /// The device whose inode numbers `stat` reports.
    main_device: Option<u64>,
    searches: AtomicU64,
}

impl NodeTable {
    /// A table for the files of a device, and of others that may be mounted below it.
    pub fn new(device: u64) -> NodeTable {
        NodeTable {
            main_device: Some(device),
            ..NodeTable::default()
        }
    }

    /// The same table, in a mount of a store that other hosts may change.
    #[must_use]
    pub fn of_shared_store(mut self, is_shared: bool) -> NodeTable {
        self.inner.get_mut().is_shared = is_shared;
        self
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write()
    }

    /// The inode number that `stat` and directory listings report for a file.
    pub fn st_ino(&self, device: u64, inode: u64) -> u64 {
        if self.main_device == Some(device) {
            inode
        } else {
            self.id_of(device, inode, View::Rep).0
        }
    }

    /// The node with this number.
    pub fn get(&self, id: NodeId) -> Option<Arc<Node>> {
        let inner = self.read();
        inner.nodes.get(&id).map(|known| Arc::clone(&known.node))
    }

    /// The number that a file has or would get in a tree.
    pub fn id_of(&self, device: u64, inode: u64, view: View) -> NodeId {
        let key = (device, inode, view);
        if self.any_displaced.load(Ordering::Relaxed) {
            self.read().id(&key).unwrap_or_else(|| preferred(&key))
        } else {
            preferred(&key)
        }
    }

    /// The number of a virtual node.
    pub fn id_of_virtual(&self, kind: &NodeKind) -> NodeId {
        let mut hasher = DefaultHasher::new();
        kind.hash(&mut hasher);
        NodeId(VIRTUAL | (hasher.finish() >> 4))
    }

    /// Counts a lookup of a real file. Creates its node if the kernel does not know it yet.
    pub fn remember(&self, real: Real, view: View, kind: NodeKind) -> Arc<Node> {
        let key = (real.device, real.inode, view);
        let mut inner = self.write();
        if let Some(id) = inner.id(&key)
            && !inner.retired.contains(&id)
            && let Some(CountedNode { node, lookups }) = inner.nodes.get_mut(&id)
            // A directory may become an item's after it was looked up as something else, and an inode number
            // may be reused for another file while the kernel still knows the old one.
            && node.kind == kind
            && node.real.as_ref().is_some_and(|known| known.file.is_same_file(&real.file))
        {
            *lookups += 1;
            return Arc::clone(node);
        }
        let id = match kind {
            NodeKind::Root => ROOT,
            _ => inner.free_id(preferred(&key)),
        };
        if id == preferred(&key) {
            // A removed file with this inode number, which the kernel knows by another number, must not be
            // mistaken for this one.
            inner.displaced.remove(&key);
        } else {
            inner.displaced.insert(key, id);
            if id != ROOT {
                self.any_displaced.store(true, Ordering::Relaxed);
            }
        }
        let st_ino = if id == ROOT {
            ROOT.0
        } else if self.main_device == Some(key.0) {
            key.1
        } else {
            let key = (key.0, key.1, View::Rep);
            inner.id(&key).unwrap_or_else(|| preferred(&key)).0
        };
        inner.insert((id, st_ino), kind, view, Some(real))
    }

    /// Counts a lookup of a virtual node.
    pub fn remember_virtual(&self, view: View, kind: NodeKind) -> Arc<Node> {
        let mut id = self.id_of_virtual(&kind);
        let mut inner = self.write();
        loop {
            match inner.nodes.get_mut(&id) {
                Some(CountedNode { node, lookups }) if node.kind == kind => {
                    *lookups += 1;
                    return Arc::clone(node);
                }
                Some(_) => id = NodeId(VIRTUAL | (id.0.wrapping_add(1) & !VIRTUAL)),
                None => return inner.insert((id, id.0), kind, view, None),
            }
        }
    }

    /// Subtracts lookups. Returns true if no lookups remain, and removes the node then.
    pub fn forget(&self, id: NodeId, lookups: u64) -> bool {
        if id == ROOT {
            return false;
        }
        let mut inner = self.write();
        let Some(known) = inner.nodes.get_mut(&id) else {
            return false;
        };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups > 0 {
            return false;
        }
        if let Some(real) = &known.node.real {
            let key = (real.device, real.inode, known.node.view);
            if id != preferred(&key) && inner.displaced.get(&key) == Some(&id) {
                inner.displaced.remove(&key);
            }
        }
        let gone = inner.nodes.remove(&id);
        inner.shrink();
        inner.translated_links.remove(&id);
        inner.retired.remove(&id);
        // Closing the descriptor may take time, so it happens without the lock.
        drop(inner);
        drop(gone);
        true
    }

    /// Records that the kernel considers a node removed. Its file gets another number at its next lookup.
    pub fn retire(&self, id: NodeId) {
        let mut inner = self.write();
        if id != ROOT && inner.nodes.contains_key(&id) {
            inner.retired.insert(id);
        }
    }

    /// The items whose directories the kernel knows in a tree.
    pub fn items_in(&self, view: View) -> Vec<ItemId> {
        let inner = self.read();
        let nodes = inner.nodes.values();
        let items = nodes.filter_map(|known| match known.node.kind {
            NodeKind::Item(item) if known.node.view == view => Some(item),
            _ => None,
        });
        items.collect()
    }

    /// Forgets which files lie in these items, after a directory was moved from one to the other.
    pub fn forget_items(&self, items: [Option<ItemId>; 2]) {
        let inner = self.read();
        for known in inner.nodes.values() {
            if items.contains(&known.node.learnt.item()) {
                known.node.learnt.set_item(None);
            }
        }
    }

    /// The number of times that the nodes of a file were searched for. A change does that after it: what was read of a
    /// file before may be older than the change, and the node that is then remembered was not found.
    pub fn searches(&self) -> u64 {
        self.searches.load(Ordering::SeqCst)
    }

    /// The numbers by which the kernel knows a file of the disk, in all trees.
    pub fn in_all_views(&self, device: u64, inode: u64) -> Vec<NodeId> {
        self.searches.fetch_add(1, Ordering::SeqCst);
        let inner = self.read();
        View::ALL
            .iter()
            .filter_map(|view| inner.id(&(device, inode, *view)))
            .collect()
    }

    /// The numbers by which the kernel knows the same directory or link in other trees.
    pub fn in_other_views(&self, node: &Node) -> Vec<NodeId> {
        let Some(real) = &node.real else {
            return Vec::new();
        };
        let mut ids = self.in_all_views(real.device, real.inode);
        ids.retain(|id| *id != node.id);
        ids
    }

    /// The virtual directories that the kernel knows.
    pub fn virtual_directories(&self) -> Vec<NodeId> {
        let inner = self.read();
        let nodes = inner.nodes.values().map(|known| &known.node);
        let directories = nodes.filter(|node| {
            matches!(
                node.kind,
                NodeKind::Mint | NodeKind::Find | NodeKind::Found(_) | NodeKind::Prefix(_)
            )
        });
        directories.map(|node| node.id).collect()
    }

    /// The symbolic links that the kernel knows in trees that translate their targets.
    pub fn translated_links(&self) -> Vec<NodeId> {
        self.read().translated_links.iter().copied().collect()
    }

    /// The number of nodes that the kernel knows.
    pub fn len(&self) -> usize {
        self.read().nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use super::*;
    use crate::fuse::descriptors::{Descriptors, Pinning};
    use crate::fuse::inode::{CloseNotice, MappableOpen, Mapping};

    fn real(inode: u64) -> Real {
        let root = OwnedFd::from(std::fs::File::open("/").expect("the root opens"));
        let keeper = Arc::new(Descriptors::new(root.as_fd(), 16).expect("a keeper"));
        let mut stat = rustix::fs::fstat(&root).expect("the root is there");
        // No device has this number, so the descriptor stays open and no handle is compared.
        stat.st_dev = u64::MAX;
        Real {
            file: keeper.keep(root, &stat, Pinning::ByHandle),
            device: 5,
            inode,
            is_link: false,
        }
    }

    #[test]
    fn one_file_has_one_number_and_counts_its_lookups() {
        let table = NodeTable::default();
        let first = table.remember(real(7), View::Rep, NodeKind::Inside);
        let second = table.remember(real(7), View::Rep, NodeKind::Inside);
        assert_eq!((first.id, second.id), (NodeId(7), NodeId(7)));
        table.forget(NodeId(7), 1);
        assert!(table.get(NodeId(7)).is_some());
        table.forget(NodeId(7), 1);
        assert!(table.get(NodeId(7)).is_none());
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_directory_has_a_number_in_each_tree() {
        let table = NodeTable::default();
        let rep = table.remember(real(7), View::Rep, NodeKind::Inside);
        let ibip = table.remember(real(7), View::Ibip, NodeKind::Inside);
        assert_ne!(rep.id, ibip.id);
        assert_eq!(table.in_other_views(&rep), vec![ibip.id]);
        assert_eq!(table.id_of(5, 7, View::Ibip), ibip.id);
    }

    #[test]
    fn translated_links_are_listed_while_the_kernel_knows_them() {
        let table = NodeTable::default();
        let link = |inode| Real {
            is_link: true,
            ..real(inode)
        };
        table.remember(real(6), View::Ibip, NodeKind::Inside);
        table.remember(link(7), View::Rep, NodeKind::Inside);
        assert!(table.translated_links().is_empty());
        let node = table.remember(link(7), View::Ibip, NodeKind::Inside);
        table.remember(link(7), View::Ibip, NodeKind::Inside);
        assert_eq!(table.translated_links(), vec![node.id]);
        table.forget(node.id, 1);
        assert_eq!(table.translated_links(), vec![node.id]);
        table.forget(node.id, 1);
        assert!(table.translated_links().is_empty());
    }

    #[test]
    fn a_file_keeps_its_number_while_removed_files_with_its_inode_number_are_known() {
        let table = NodeTable::default();
        let gone = table.remember(real(7), View::Rep, NodeKind::Item(ItemId(1)));
        let displaced = table.remember(real(7), View::Rep, NodeKind::Item(ItemId(2)));
        table.forget(gone.id, 1);
        let file = table.remember(real(7), View::Rep, NodeKind::Inside);
        assert_ne!(file.id, displaced.id);
        assert_eq!(table.in_all_views(5, 7), vec![file.id]);
        let again = table.remember(real(7), View::Rep, NodeKind::Inside);
        assert_eq!(again.id, file.id);
        table.forget(displaced.id, 1);
        assert_eq!(table.in_all_views(5, 7), vec![file.id]);
    }

    #[test]
    fn stat_reports_one_inode_number_in_all_trees_and_for_displaced_nodes() {
        let table = NodeTable::new(5);
        let rep = table.remember(real(7), View::Rep, NodeKind::Inside);
        let ibip = table.remember(real(7), View::Ibip, NodeKind::Inside);
        let displaced = table.remember(real(7), View::Rep, NodeKind::Item(ItemId(2)));
        assert_ne!(rep.id, displaced.id);
        for node in [&rep, &ibip, &displaced] {
            assert_eq!(node.st_ino, 7);
        }
        assert_eq!(table.st_ino(5, 7), 7);
    }

    #[test]
    fn a_retired_node_is_not_given_out_again() {
        let table = NodeTable::new(5);
        let dead = table.remember(real(7), View::Rep, NodeKind::Inside);
        table.retire(dead.id);
        let next = table.remember(real(7), View::Rep, NodeKind::Inside);
        assert_ne!(dead.id, next.id);
        assert_eq!(
            table.remember(real(7), View::Rep, NodeKind::Inside).id,
            next.id
        );
        table.forget(dead.id, 1);
        assert_eq!(table.in_all_views(5, 7), vec![next.id]);
    }

    #[test]
    fn the_root_number_is_never_given_to_another_file() {
        let table = NodeTable::default();
        let node = table.remember(real(1), View::Rep, NodeKind::Inside);
        assert_ne!(node.id, ROOT);
        let root = table.remember(real(2), View::Rep, NodeKind::Root);
        assert_eq!(root.id, ROOT);
        table.forget(ROOT, 1);
        assert!(table.get(ROOT).is_some());
    }

    #[test]
    fn a_link_that_changes_its_target_is_another_node() {
        let table = NodeTable::default();
        let before = table.remember_virtual(View::Rep, NodeKind::Link(b"../a".to_vec()));
        let same = table.remember_virtual(View::Rep, NodeKind::Link(b"../a".to_vec()));
        let after = table.remember_virtual(View::Rep, NodeKind::Link(b"../b".to_vec()));
        assert_eq!(before.id, same.id);
        assert_ne!(before.id, after.id);
    }

    #[test]
    fn items_and_virtual_directories_are_listed_by_what_they_are() {
        let table = NodeTable::default();
        let item = |id| NodeKind::Item(ItemId(id));
        table.remember(real(7), View::Rep, item(1));
        table.remember(real(7), View::Ibip, item(1));
        table.remember(real(8), View::Rep, item(2));
        table.remember(real(9), View::Rep, NodeKind::Inside);
        assert_eq!(table.items_in(View::Ibip), vec![ItemId(1)]);
        let mut items = table.items_in(View::Rep);
        items.sort_by_key(|item| item.0);
        assert_eq!(items, vec![ItemId(1), ItemId(2)]);
        table.remember_virtual(View::Rep, NodeKind::Text(b"text".to_vec()));
        assert!(table.virtual_directories().is_empty());
        let mint = table.remember_virtual(View::Mint, NodeKind::Mint);
        assert_eq!(table.virtual_directories(), vec![mint.id]);
        assert_eq!(table.id_of_virtual(&NodeKind::Mint), mint.id);
    }

    /// The memory of a listing of many items is freed when the kernel has forgotten them.
    #[test]
    fn room_is_freed_when_nodes_are_forgotten() {
        let table = NodeTable::default();
        let link = |number: u32| NodeKind::Link(number.to_le_bytes().to_vec());
        let nodes: Vec<NodeId> = (0..10 * LEAST_ROOM as u32)
            .map(|number| table.remember_virtual(View::Rep, link(number)).id)
            .collect();
        let room = || table.read().nodes.capacity();
        assert!(room() >= nodes.len());
        for (forgotten, id) in nodes.iter().enumerate() {
            assert!(table.forget(*id, 1));
            let left = nodes.len() - forgotten - 1;
            assert!(
                room() <= 2 * LEAST_ROOM || room() <= 5 * left,
                "{} for {left}",
                room()
            );
        }
    }

    #[test]
    fn forgetting_reports_the_last_lookup_only() {
        let table = NodeTable::default();
        let node = table.remember_virtual(View::Rep, NodeKind::Mint);
        table.remember_virtual(View::Rep, NodeKind::Mint);
        assert!(!table.forget(node.id, 1));
        assert!(table.forget(node.id, 1));
        assert!(!table.forget(node.id, 1), "the node is not known any more");
        assert!(!table.forget(ROOT, 1));
    }

    #[test]
    fn a_file_of_another_device_is_reported_with_its_number_in_the_rep_tree() {
        let table = NodeTable::new(6);
        let rep = table.remember(real(7), View::Rep, NodeKind::Item(ItemId(1)));
        let ibip = table.remember(real(7), View::Ibip, NodeKind::Item(ItemId(1)));
        assert_eq!((rep.st_ino, ibip.st_ino), (rep.id.0, rep.id.0));
        assert_eq!(table.st_ino(6, 7), 7);
        assert_eq!(table.st_ino(5, 7), rep.id.0);
    }

    #[test]
    fn what_was_learnt_of_a_file_stays_with_its_node() {
        let table = NodeTable::default();
        let node = table.remember(real(7), View::Rep, NodeKind::Inside);
        assert_eq!(node.learnt.sidecar_of(), None);
        node.learnt.set_sidecar_of(Some(ItemId(3)));
        node.learnt.set_lacks_capability(true);
        assert_eq!(node.learnt.mapping(), Mapping::None);
        drop(MappableOpen::new(&node, CloseNotice::Sent));
        let again = table.remember(real(7), View::Rep, NodeKind::Inside);
        assert_eq!(again.learnt.sidecar_of(), Some(ItemId(3)));
        assert!(again.learnt.lacks_capability());
        assert_eq!(again.learnt.mapping(), Mapping::MayRemain);
        again.learnt.set_sidecar_of(None);
        assert_eq!(node.learnt.sidecar_of(), None);
    }
}
