//! The items whose content a request changes: the Archive counts them again.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType};

use super::Namespace;
use crate::archive::ContentChange;
use crate::archive::store::ItemId;
use crate::fuse::inode::{Node, NodeKind};

/// The item in which the names in a directory lie, as far as it is known.
pub(super) fn item_in(parent: &Node) -> Option<ItemId> {
    match parent.kind {
        NodeKind::Item(item) => Some(item),
        _ => parent.learnt.item(),
    }
}

impl Namespace {
    /// The item in which a file lies.
    pub fn item_around(&self, node: &Node) -> Option<ItemId> {
        if !node.is_in_item() {
            return None;
        }
        item_in(node).or_else(|| {
            let found = self.archive.item_of_file(node.file().ok()?.as_fd());
            node.learnt.set_item(found);
            found
        })
    }

    /// Notes that the content of the item in which a file lies changes, until the result is dropped.
    pub fn change_content(&self, node: &Node) -> Option<ContentChange> {
        Some(self.archive.change_content(self.item_around(node)?))
    }

    /// After a name was moved from one directory to another: what it leads to may lie in another item.
    pub(super) fn note_moved(&self, from: &Node, (to, name): (&Node, &OsStr)) {
        let items = [self.item_around(from), self.item_around(to)];
        let [before, now] = items;
        if before == now {
            return;
        }
        let found = to.file().ok().and_then(|directory| {
            rustix::fs::statat(&*directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()
        });
        match found {
            Some(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => {
                let known = self.nodes.in_all_views(stat.st_dev, stat.st_ino);
                for node in known.into_iter().filter_map(|id| self.nodes.get(id)) {
                    node.learnt.set_item(now);
                }
            }
            _ => self.nodes.forget_items(items),
        }
    }
}
