//! Nodes: the numbers by which the kernel identifies files, and their lookup counts.
//!
//! - A number stays the same while the kernel knows the node. A regular file has the same number in both
//!   trees, so that cached pages are shared. A directory has different numbers, because the kernel allows a
//!   directory only one parent.
//! - The number of a real node is its inode number on the disk, combined with a mark of the tree for a
//!   directory or a symbolic link. The number of a virtual node is a hash of its content: a link that changes
//!   its target becomes another node, so that a cached target is never stale.
//! - `stat` reports [`Node::st_ino`], the inode number on the disk, which is the same in all trees: tools
//!   recognize two names of one file by it.
//!
//! The table makes no system calls. A node's file is opened through `descriptors` when an operation needs it.

mod node;
mod table;

pub use node::{CloseNotice, Generated, MappableOpen, Mapping, Node, NodeKind, Real};
pub use table::NodeTable;

/// The number by which the kernel knows a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub u64);

/// The root's number, fixed by the protocol.
pub const ROOT: NodeId = NodeId(1);

/// The tree in which a directory or link is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The rep tree. Regular files of all trees have their numbers here.
    Rep,
    /// The IBIp tree.
    Ibip,
    /// `.mint/NAME`.
    Mint,
    /// A directory such as `<ibi>+(pt)` in the IBIp tree, as seen by the program that has just created it.
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

    /// The view of a directory that has just been created under a modifier's name.
    pub fn declared_in(tree: View) -> View {
        match tree {
            View::Rep => View::DeclaredInRep,
            _ => View::Declared,
        }
    }

    /// Whether an item appears here under a name that its depositor gave it.
    pub fn is_deposit(self) -> bool {
        matches!(self, View::Mint | View::Declared | View::DeclaredInRep)
    }

    /// Whether items lie four levels below the root, as symbolic links on the disk expect.
    pub fn has_disk_depth(self) -> bool {
        matches!(self, View::Rep | View::DeclaredInRep)
    }

    fn mark(self) -> u64 {
        (self as u64) << 60
    }
}
