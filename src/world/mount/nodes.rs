//! The nodes that the kernel knows. A node keeps its type and, if it is a file, its content: a file that has changed at
//! its Archive gets a new node.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::formats::inventory::{Entry, EntryKind};
use crate::formats::tree_name::LevelPath;
use crate::world::remote::items::{ForeignItem, ItemSlot};
use crate::world::remote::related::RelatedQuestion;

/// The number of the root.
pub(crate) const ROOT: u64 = 1;

/// The form of its identifier by which an item is seen. It decides what its links say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignView {
    /// Four directories.
    Rep,
    /// Two directories.
    Ibip,
}

/// Something in an item.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    /// The item.
    pub(crate) slot: Arc<ItemSlot>,
    /// The form by which it is seen.
    pub(crate) view: ForeignView,
    /// The item as it was when the node was made.
    pub(crate) item: Arc<ForeignItem>,
    /// The entry as it was then, of the first name of its file.
    pub(crate) entry: Arc<Entry>,
    /// The number of its names.
    pub(crate) links: u32,
}

/// A text that a modifier leads to, without the text itself, which may be long.
#[derive(Clone, Debug)]
pub(crate) struct ForeignText {
    /// The question that leads to it.
    pub(crate) wanted: RelatedQuestion,
    /// Its length in bytes.
    pub(crate) length: u64,
    digest: [u8; 32],
}

impl ForeignText {
    /// The text to which this leads.
    pub(crate) fn new(wanted: RelatedQuestion, text: &[u8]) -> ForeignText {
        ForeignText {
            wanted,
            length: text.len() as u64,
            digest: Sha256::digest(text).into(),
        }
    }

    /// Whether it is this text.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.length == text.len() as u64 && self.digest == <[u8; 32]>::from(Sha256::digest(text))
    }
}

/// A kind of node.
#[derive(Clone, Debug)]
pub(crate) enum ForeignNodeKind {
    /// A directory above items.
    Level(LevelPath),
    /// An item's directory, or something in it.
    Inside(Inside),
    /// An item in the listing of a level, by its canonical identifier, before it is looked up.
    Unseen(String, ForeignView),
    /// A symbolic link to another item.
    Link(Vec<u8>),
    /// A text that a modifier leads to.
    Text(ForeignText),
}

/// A node.
#[derive(Debug)]
pub(crate) struct ForeignNode {
    /// Its number.
    pub(crate) id: u64,
    /// Its kind.
    pub(crate) kind: ForeignNodeKind,
}

/// The bytes that are the same for a node whenever it is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NodeKey(Vec<u8>);

impl ForeignView {
    /// The form of the items below a level.
    pub(crate) fn below(level: &LevelPath) -> ForeignView {
        match level {
            LevelPath::Prefix(_) => ForeignView::Ibip,
            _ => ForeignView::Rep,
        }
    }

    fn word(self) -> &'static [u8] {
        match self {
            ForeignView::Rep => b"rep",
            ForeignView::Ibip => b"ibip",
        }
    }
}

impl NodeKey {
    fn number(&self) -> u64 {
        let digest = Sha256::digest(&self.0);
        u64::from_be_bytes(digest.first_chunk().copied().unwrap_or_default())
    }

    fn of_directory(item: &str, view: ForeignView, path: &[u8]) -> NodeKey {
        NodeKey([view.word(), item.as_bytes(), path, b"directory"].join(&0))
    }

    fn of(kind: &ForeignNodeKind) -> NodeKey {
        let mut key = Vec::new();
        let mut add = |parts: &[&[u8]]| {
            for part in parts {
                key.extend_from_slice(part);
                key.push(0);
            }
        };
        match kind {
            ForeignNodeKind::Level(LevelPath::Root) => add(&[b"root"]),
            ForeignNodeKind::Level(LevelPath::Rep(path)) => add(&[b"level", path.as_bytes()]),
            ForeignNodeKind::Level(LevelPath::Prefix(path)) => add(&[b"prefix", path.as_bytes()]),
            // It becomes the item's directory.
            ForeignNodeKind::Unseen(item, view) => return NodeKey::of_directory(item, *view, b""),
            ForeignNodeKind::Link(target) => add(&[b"link", target]),
            ForeignNodeKind::Text(text) => {
                let wanted = format!("{:?}", text.wanted);
                add(&[b"text", wanted.as_bytes(), &text.digest]);
            }
            ForeignNodeKind::Inside(inside) => {
                let (entry, key) = (&inside.entry, inside.slot.key());
                if entry.kind == EntryKind::Directory {
                    return NodeKey::of_directory(key, inside.view, &entry.path);
                }
                add(&[inside.view.word(), key.as_bytes(), &entry.path]);
                match &entry.kind {
                    EntryKind::Directory => {}
                    EntryKind::File(file) => {
                        let version = format!("{} {}", file.version, file.size);
                        add(&[b"file", inside.item.base.as_bytes(), version.as_bytes()]);
                    }
                    EntryKind::Text(text) => add(&[b"text", text]),
                    EntryKind::Link(target) => add(&[b"link", target]),
                    EntryKind::Fifo => add(&[b"fifo"]),
                    EntryKind::Socket => add(&[b"socket"]),
                }
            }
        }
        NodeKey(key)
    }
}

#[derive(Debug, Default)]
struct Table {
    nodes: HashMap<u64, (Arc<ForeignNode>, u64)>,
    numbers: HashMap<NodeKey, u64>,
}

impl Table {
    /// A number that no node has. It is the same whenever the kernel looks a node up again, also after another mount,
    /// unless two nodes have the same digest.
    fn free_number(&self, key: &NodeKey) -> u64 {
        let mut number = key.number();
        while number <= ROOT || number == u64::MAX || self.nodes.contains_key(&number) {
            number = number.wrapping_add(1);
        }
        number
    }
}

/// The nodes that the kernel knows.
#[derive(Debug)]
pub(crate) struct Nodes(Mutex<Table>);

impl Default for Nodes {
    fn default() -> Nodes {
        let root = ForeignNode {
            id: ROOT,
            kind: ForeignNodeKind::Level(LevelPath::Root),
        };
        let mut table = Table::default();
        table.numbers.insert(NodeKey::of(&root.kind), ROOT);
        table.nodes.insert(ROOT, (Arc::new(root), 1));
        Nodes(Mutex::new(table))
    }
}

impl Nodes {
    /// A node by its number.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<ForeignNode>> {
        let table = self.0.lock();
        table.nodes.get(&id).map(|(node, _)| Arc::clone(node))
    }

    /// The node of this kind, which the kernel looks up once more. A directory that is known gets what is new of it.
    pub(crate) fn remember(&self, kind: ForeignNodeKind) -> Arc<ForeignNode> {
        let key = NodeKey::of(&kind);
        let mut table = self.0.lock();
        let id = match table.numbers.get(&key) {
            Some(id) => *id,
            None => {
                let id = table.free_number(&key);
                table.numbers.insert(key, id);
                id
            }
        };
        let lookups = table.nodes.get(&id).map_or(0, |(_, lookups)| *lookups);
        let node = Arc::new(ForeignNode { id, kind });
        table.nodes.insert(id, (Arc::clone(&node), lookups + 1));
        node
    }

    /// The kernel forgets that it has looked a node up so many times.
    pub(crate) fn forget(&self, id: u64, lookups: u64) {
        let mut table = self.0.lock();
        let Some((node, known)) = table.nodes.get_mut(&id) else {
            return;
        };
        *known = known.saturating_sub(lookups);
        if *known == 0 && id != ROOT {
            let key = NodeKey::of(&node.kind);
            table.nodes.remove(&id);
            table.numbers.remove(&key);
        }
    }

    /// The number that the node of this kind has, or will have.
    pub(crate) fn number_of(&self, kind: &ForeignNodeKind) -> u64 {
        let key = NodeKey::of(kind);
        let known = self.0.lock().numbers.get(&key).copied();
        known.unwrap_or_else(|| key.number())
    }

    /// The number of the node of this kind, if the kernel knows it.
    pub(crate) fn number(&self, kind: &ForeignNodeKind) -> Option<u64> {
        self.0.lock().numbers.get(&NodeKey::of(kind)).copied()
    }

    /// The number of a directory in an item, if the kernel knows it.
    pub(crate) fn directory(&self, item: &str, view: ForeignView, path: &[u8]) -> Option<u64> {
        let key = NodeKey::of_directory(item, view, path);
        self.0.lock().numbers.get(&key).copied()
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_one_number_until_it_is_forgotten() {
        let nodes = Nodes::default();
        let level = || ForeignNodeKind::Level(LevelPath::Rep("a.b".to_owned()));
        let prefix = ForeignNodeKind::Level(LevelPath::Prefix("a.b".to_owned()));
        let first = nodes.remember(level()).id;
        assert_eq!(nodes.remember(level()).id, first);
        assert_ne!(nodes.remember(prefix).id, first);
        nodes.forget(first, 1);
        assert!(nodes.get(first).is_some());
        nodes.forget(first, 1);
        assert!(nodes.get(first).is_none() && nodes.number(&level()).is_none());
        assert_eq!(nodes.remember(level()).id, first);
        nodes.forget(ROOT, 100);
        assert!(nodes.get(ROOT).is_some());
    }

    #[test]
    fn a_text_is_known_by_its_bytes() {
        let wanted = RelatedQuestion::Modifier("8JMKD3MGP8W/34PGRBS:".to_owned());
        let text = ForeignText::new(wanted.clone(), b"abc");
        assert!(text.is(b"abc") && !text.is(b"abd") && !text.is(b"abcd"));
        let nodes = Nodes::default();
        let of = |bytes| ForeignNodeKind::Text(ForeignText::new(wanted.clone(), bytes));
        let first = nodes.remember(of(b"abc")).id;
        assert_eq!(nodes.remember(of(b"abc")).id, first);
        assert_ne!(
            nodes.remember(of(b"abd")).id,
            first,
            "another text is another node"
        );
    }

    #[test]
    fn an_item_has_a_directory_in_each_tree() {
        let nodes = Nodes::default();
        let unseen = |view| ForeignNodeKind::Unseen("8JMKD3MGP8W/34PGRBS".to_owned(), view);
        let ids = [ForeignView::Rep, ForeignView::Ibip].map(|view| nodes.remember(unseen(view)).id);
        assert_ne!(ids[0], ids[1]);
        let item = "8JMKD3MGP8W/34PGRBS";
        assert_eq!(nodes.directory(item, ForeignView::Rep, b""), Some(ids[0]));
        assert_eq!(nodes.directory(item, ForeignView::Rep, b"doc"), None);
        assert_eq!(nodes.number_of(&unseen(ForeignView::Ibip)), ids[1]);
    }
}
