//! The items whose content a request changes: the Archive counts them again.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::{Entry, Namespace};
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::METADATA_TEXT;
use crate::archive::{ContentChange, is_beside};
use crate::formats::history::EventKind;
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::ErrnoResult;
use crate::os::caller::Caller;

/// The item in which the names in a directory lie, as far as it is known.
pub(super) fn item_in(parent: &Node) -> Option<ItemId> {
    match parent.kind {
        NodeKind::Item(item) => Some(item),
        _ => parent.learnt.item(),
    }
}

/// Notes that a name of a file was found or made in an item.
pub(super) fn met_in(entry: &Entry, item: Option<ItemId>) {
    let attr = &entry.attr;
    let has_other_names = attr.kind != FileType::Directory && attr.links > 1;
    entry.node.learnt.meet_in(item, has_other_names);
}

impl Namespace {
    /// The item in which a file lies.
    pub fn item_around(&self, node: &Node) -> Option<ItemId> {
        if !node.is_in_item() {
            return None;
        }
        self.look_for_last_name(node);
        item_in(node).or_else(|| {
            let found = self.archive.item_of_file(node.file().ok()?.as_fd());
            node.learnt.set_item(found);
            found
        })
    }

    /// The items in which a file lies, or may lie: it has, or had, names in several of them.
    pub fn items_around(&self, node: &Node) -> Vec<ItemId> {
        let Some(item) = self.item_around(node) else {
            return Vec::new();
        };
        let mut items = node.learnt.other_items();
        items.push(item);
        items
    }

    /// Forgets the items of other names of a file, if the one by which it is open is the last one.
    fn look_for_last_name(&self, node: &Node) {
        if node.learnt.other_items().is_empty() {
            return;
        }
        let Ok(file) = node.file() else { return };
        let is_last = rustix::fs::fstat(&*file).is_ok_and(|stat| stat.st_nlink == 1);
        if is_last && let Some(item) = self.archive.item_of_named_file(file.as_fd()) {
            node.learnt.set_item(Some(item));
        }
    }

    /// Notes that the content of the item in which a file lies changes, until the result is dropped. So may that of the
    /// other items in which it has names.
    pub fn change_content(&self, node: &Node) -> Option<ContentChange> {
        let mut change = self.archive.change_content(self.item_around(node)?);
        for item in node.learnt.other_items() {
            change.take_along(self.archive.change_content(item));
        }
        Some(change)
    }

    /// The same before a request changes it: a file, or a name in a directory. EPERM if the item is sealed, for every user;
    /// its own directory, the sidecar and what else lies beside its files may change. What did not fail the caller notes
    /// with [`ContentChange::made`].
    pub fn change_unsealed(
        &self,
        caller: &Caller,
        node: &Node,
        name: Option<&OsStr>,
    ) -> ErrnoResult<Option<ContentChange>> {
        let Some(mut change) = self.change_content(node) else {
            return Ok(None);
        };
        let is_beside = match (&node.kind, name) {
            (NodeKind::Item(_), Some(name)) => is_beside(name.as_bytes()),
            (NodeKind::Item(_), None) => true,
            _ => node.learnt.sidecar_of().is_some(),
        };
        if self.archive.store().has_history() {
            let is_text = match (&node.kind, name) {
                (NodeKind::Item(_), Some(name)) => name == METADATA_TEXT,
                // It may have been renamed to one of the files.
                _ => node.learnt.describes().is_some() && self.lies_beside(node)?,
            };
            if is_text {
                change.meant_by(caller.uid, EventKind::Described);
            } else if !is_beside {
                change.meant_by(caller.uid, EventKind::Changed);
            }
        }
        // Once the change is noted, a seal that begins waits for its end.
        let is_refused = self.archive.store().is_sealed(change.item())
            && !is_beside
            && (matches!(node.kind, NodeKind::Item(_)) || !self.lies_beside(node)?);
        if is_refused {
            Err(Errno::PERM)
        } else {
            Ok(Some(change))
        }
    }

    /// Notes that the metadata text of an item was changed by its name beside the item.
    pub(super) fn text_changed(&self, caller: &Caller, item: &Item) {
        if self.archive.store().has_history() {
            let mut change = self.archive.change_content(item.id);
            change.meant_by(caller.uid, EventKind::Described);
            change.made();
        }
        self.note_changed(&item.names);
    }

    /// EPERM if a file lies in a sealed item, as [`Namespace::change_unsealed`] says, for a change that is not one of content.
    pub fn check_unsealed(&self, node: &Node) -> ErrnoResult<()> {
        if !self.archive.store().has_sealed() {
            return Ok(());
        }
        let item = node.learnt.item().or_else(|| self.item_around(node));
        if let Some(item) = item
            && self.archive.store().is_sealed(item)
            && !matches!(node.kind, NodeKind::Item(_))
            && !self.lies_beside(node)?
        {
            return Err(Errno::PERM);
        }
        Ok(())
    }

    /// EACCES for a caller who may not read a file now, since its item withholds its files until a date: one who is neither
    /// root nor the owner of the item nor in its group.
    pub fn check_withheld(&self, caller: &Caller, node: &Node) -> ErrnoResult<()> {
        if !self.archive.store().has_withheld() || caller.owns_all() {
            return Ok(());
        }
        let Some(item) = node.learnt.item().or_else(|| self.item_around(node)) else {
            return Ok(());
        };
        let belongs_to = |group| caller.belongs_to(group);
        let is_withheld = self.archive.is_withheld_from(item, caller.uid, belongs_to);
        if is_withheld? && !self.lies_beside(node)? {
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// Whether a file is none of an item's own: by its path, or because it has no name any more.
    fn lies_beside(&self, node: &Node) -> ErrnoResult<bool> {
        let file = node.file()?;
        if rustix::fs::fstat(&*file)?.st_nlink == 0 {
            return Ok(true);
        }
        Ok(self.archive.lies_beside(file.as_fd()))
    }

    /// After a file was closed that was open for writing: a copy that arrives with its seal is still arriving.
    pub fn note_arriving(&self, node: &Node) {
        if self.archive.store().has_sealed()
            && let Some(item) = self.item_around(node)
        {
            self.archive.store().note_arriving(item);
        }
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
                    node.learnt.meet_in(now, stat.st_nlink > 1);
                }
            }
            _ => self.nodes.forget_items(items),
        }
    }
}
