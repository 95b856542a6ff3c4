//! Symbolic links that leave their item: the same link has another text in each tree.
//!
//! On the disk an item lies four levels below the root, in the IBIp tree two. A relative target that climbs
//! out of the item is stored as the rep tree needs it, and translated when it is read or made elsewhere.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use rustix::io::Errno;

use super::{NameLifetime, Namespace};
use crate::formats::item::Names;
use crate::formats::links::{climbs_out, read_in_ibip_tree, written_in_ibip_tree};
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult};
use ibi::Ibip;

/// The longest target of a symbolic link that the kernel accepts, in bytes.
const LONGEST_LINK: usize = 4095;

/// A place in an item.
struct ItemPosition {
    names: Names,
    /// The number of directories between the item and the file.
    depth: usize,
    /// The directories between the item and the file.
    between: PathBuf,
}

impl Namespace {
    /// The tree to which a symbolic link belongs. A link with the same text in all trees is one node in all
    /// of them, so that a program sees that it is one file. A link with `..` may have another text once it
    /// is moved: its name is not cached.
    pub(super) fn link_as_met(
        &self,
        link: BorrowedFd<'_>,
        view: View,
        lifetime: NameLifetime,
    ) -> (View, NameLifetime) {
        if view.has_disk_depth() {
            return (View::Rep, lifetime);
        }
        let Ok(target) = inside::read_link(link) else {
            return (view, NameLifetime::Uncached);
        };
        if !target.starts_with(b".") {
            return (View::Rep, lifetime);
        }
        match self.position_of(link, 1) {
            Some(position) if climbs_out(&target, position.depth) => (view, lifetime),
            _ => (View::Rep, NameLifetime::Uncached),
        }
    }

    /// The target of a link, as the tree in which it is seen needs it.
    pub fn read_link(&self, node: &Node) -> ErrnoResult<Vec<u8>> {
        match (&node.kind, &node.real) {
            (NodeKind::Link(target) | NodeKind::OwnLink(target, _), _) => Ok(target.clone()),
            (_, Some(real)) => {
                let file = real.file.open()?;
                let target = inside::read_link(file.as_fd())?;
                if node.view.has_disk_depth() || !target.starts_with(b".") {
                    return Ok(target);
                }
                let Some(position) = self.position_of(file.as_fd(), 1) else {
                    return Ok(target);
                };
                let rep = position.names.rep().map(|rep| rep.components());
                let prefix = position.names.ibip().map(Ibip::prefix);
                let read = read_in_ibip_tree(&target, position.depth, rep, prefix);
                // The path by way of the root may be longer than a link can be.
                if read.len() > LONGEST_LINK {
                    return Err(Errno::NAMETOOLONG);
                }
                Ok(read)
            }
            _ => Err(Errno::INVAL),
        }
    }

    /// The target to store for a link that is made in a directory.
    pub(super) fn link_to_keep(&self, parent: &Node, target: &[u8]) -> ErrnoResult<Vec<u8>> {
        if parent.view.has_disk_depth() || !target.starts_with(b".") {
            return Ok(target.to_vec());
        }
        let Some(position) = self.position_of(parent.file()?.as_fd(), 0) else {
            return Ok(target.to_vec());
        };
        let prefix = position.names.ibip().map(Ibip::prefix);
        Ok(written_in_ibip_tree(target, position.depth, prefix))
    }

    /// The path in the mount of a name in a directory of an item, as this tree has it. None if the tree has it below a
    /// label or a modifier, which only their user sees.
    pub(super) fn path_in(&self, view: View, directory: &Node, name: &OsStr) -> Option<PathBuf> {
        let position = self.position_of(directory.file().ok()?.as_fd(), 0)?;
        let item: PathBuf = match view {
            View::Rep => position.names.rep()?.components().iter().collect(),
            View::Ibip => {
                let ibip = position.names.ibip()?;
                [ibip.prefix(), ibip.suffix()].iter().collect()
            }
            View::Mint | View::Declared | View::DeclaredInRep => return None,
        };
        Some(item.join(position.between).join(name))
    }

    /// Returns where in which item a file lies, by its path on the disk; the last `own` components are its own.
    fn position_of(&self, file: BorrowedFd<'_>, own: usize) -> Option<ItemPosition> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let below = path.strip_prefix(self.archive.tree().path()).ok()?;
        let parts: Vec<&OsStr> = below.iter().collect();
        let levels = match parts.first()?.to_str()? {
            "col" => 4,
            "ibip" => 2,
            _ => return None,
        };
        let depth = parts.len().checked_sub(1 + levels + own)?;
        let named: Vec<&str> = parts[1..=levels]
            .iter()
            .map(|part| part.to_str())
            .collect::<Option<_>>()?;
        let item = self.archive.find_named(&named.join("/")).ok()??;
        Some(ItemPosition {
            names: item.names,
            depth,
            between: parts[1 + levels..][..depth].iter().collect(),
        })
    }
}
