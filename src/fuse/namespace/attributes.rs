//! The attributes of nodes: as they are shown, and setting them.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::invalidation::Context;
use super::{Namespace, authors};
use crate::archive::store::ItemId;
use crate::archive::tree::shown_to_declare;
use crate::archive::{ContentChange, Process, is_draft};
use crate::formats::tree_name::is_year;
use crate::fuse::attr::Attr;
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::{self, AttributeChange, ErrnoResult};

/// The item that a file or directory describes: its directory, or its metadata text.
fn described(node: &Node) -> Option<ItemId> {
    match node.kind {
        NodeKind::Item(item) => Some(item),
        _ => node.learnt.describes(),
    }
}

impl Namespace {
    /// A node's attributes.
    pub fn attributes(&self, node: &Node) -> ErrnoResult<Attr> {
        match &node.real {
            Some(real) => Ok(self.as_met(node, inside::attributes(real.file.open()?)?)),
            None => self.virtual_attr(&node.kind),
        }
    }

    /// Attributes as the tree shows them in which a node is seen: a link is as long as its target, and the
    /// directories in which items lie are open to the owners of items.
    pub(super) fn as_met(&self, node: &Node, mut attr: Attr) -> Attr {
        if attr.kind == FileType::Symlink
            && !node.view.has_disk_depth()
            && let Ok(target) = self.read_link(node)
        {
            attr.size = target.len() as u64;
        }
        if let NodeKind::Level(path) = &node.kind
            && is_year(path)
        {
            attr.permissions = shown_to_declare(attr.permissions);
        }
        attr
    }

    /// The attributes of a virtual node: the times and the owner of the collection itself.
    pub(super) fn virtual_attr(&self, kind: &NodeKind) -> ErrnoResult<Attr> {
        let like = inside::attributes(&self.collection)?;
        Ok(match kind {
            NodeKind::Link(target) => {
                Attr::virtual_like(&like, FileType::Symlink, 0o777, target.len() as u64)
            }
            NodeKind::OwnLink(target, uid) => Attr {
                uid: *uid,
                ..Attr::virtual_like(&like, FileType::Symlink, 0o777, target.len() as u64)
            },
            NodeKind::Text(text) => {
                Attr::virtual_like(&like, FileType::RegularFile, 0o444, text.len() as u64)
            }
            // The size is not known before it is made, and asked for again.
            NodeKind::Generated(asked) => self.attributes_of_text(self.last_length(*asked))?,
            NodeKind::Prefix(_) => {
                let shown = shown_to_declare(like.permissions);
                Attr::virtual_like(&like, FileType::Directory, shown, like.size)
            }
            // It is not known what there is in them.
            NodeKind::World | NodeKind::Outside(_) => {
                Attr::virtual_like(&like, FileType::Directory, 0o111, like.size)
            }
            _ => Attr::virtual_like(&like, FileType::Directory, like.permissions, like.size),
        })
    }

    /// Sets attributes, through the file that the caller has open for writing, if any. EAGAIN if another
    /// program has a lease on a file whose size is to change.
    pub fn set_attributes(
        &self,
        by: &Context<'_>,
        node: &Node,
        open: Option<BorrowedFd<'_>>,
        change: &AttributeChange,
        is_written: impl Fn() -> bool,
    ) -> ErrnoResult<Attr> {
        if node.real.is_none() {
            return match node.kind {
                // A tool that copies a prefix directory or a modifier's link sets its times and its owner
                // at the end.
                NodeKind::Prefix(_)
                | NodeKind::Mint
                | NodeKind::Link(_)
                | NodeKind::OwnLink(..) => self.attributes(node),
                _ => Err(Errno::PERM),
            };
        }
        let change = AttributeChange {
            mode: change.mode.and_then(|mode| self.mode_to_keep(node, mode)),
            ..*change
        };
        let file = node.file()?;
        let content = self.change_unsealed(by.caller, node, None)?;
        let change = match node.learnt.sidecar_of() {
            Some(_) => authors::before_changing(by.caller, file.as_fd(), change)?,
            None => change,
        };
        let has_owner = change.uid.is_some() || change.gid.is_some();
        let is_about_rights = change.mode.is_some() || has_owner;
        let rights = || rustix::fs::fstat(&*file).map(|it| (it.st_mode, it.st_uid, it.st_gid));
        let described = described(node).filter(|_| is_about_rights);
        let before = described.map(|_| rights()).transpose()?;
        let intent = if is_about_rights {
            self.changing_file(node)?
        } else {
            None
        };
        self.check_again(by, node, || {
            inside::change(file.as_fd(), open, &change, by.caller, is_written)
        })?;
        content.iter().for_each(ContentChange::made);
        if let Some(intent) = intent {
            self.note_speaker(node)?;
            intent.done();
        }
        if let (NodeKind::Item(item), true) = (&node.kind, has_owner) {
            // The group of the sidecar counts only if it is that of the item. The owner is changed already.
            if let Err(error) = self.archive.note_speaker(*item) {
                log::warn!("who speaks in a sidecar is not recorded: {error}");
            }
        }
        by.cache.invalidate(self.stale_attributes(node));
        if is_about_rights {
            by.cache.invalidate(self.stale_search(node));
        }
        if let (NodeKind::Item(_), Some((mode, ..))) = (&node.kind, before) {
            self.note_published(node, mode);
        }
        // `cp -a` gives an item the owner that it has.
        if let Some(before) = before
            && let Ok(after) = rights()
            && after != before
        {
            self.note_readers(node);
            if let NodeKind::Item(item) = node.kind {
                self.archive.tell_rights(by.caller, item, before, after);
            }
        }
        self.attributes(node)
    }

    /// Announces the seal of what is published, after the mode of an item's directory has changed from this one.
    pub(super) fn note_published(&self, node: &Node, before: u32) {
        let (NodeKind::Item(item), Some(_)) = (&node.kind, self.archive.facts().sealed_after)
        else {
            return;
        };
        let mode = || Ok::<u32, Errno>(rustix::fs::fstat(&*node.file()?)?.st_mode);
        if !is_draft(before) || mode().is_ok_and(is_draft) {
            return;
        }
        let announced = self
            .archive
            .edit(&Process, |it| it.announce_published(*item));
        if let Err(error) = announced {
            log::warn!("the seal of what was published is not announced: {error}");
        }
    }

    /// Notes that other users may read what an item is described by than before.
    pub(super) fn note_readers(&self, node: &Node) {
        if let Some(item) = described(node)
            && let Err(error) = self.archive.note_readers(item)
        {
            log::warn!("searches notice later who may read an item: {error}");
        }
    }

    /// Changes a node. The kernel has checked permissions by what it has cached in this tree; another tree
    /// may have changed the owner, and the mode of a level is not the one shown. The native filesystem
    /// checks again where that can be.
    pub(super) fn check_again<T>(
        &self,
        by: &Context<'_>,
        node: &Node,
        change: impl FnOnce() -> ErrnoResult<T>,
    ) -> ErrnoResult<T> {
        if self.is_known_elsewhere(node) || matches!(node.kind, NodeKind::Level(_)) {
            by.caller.act(change)
        } else {
            change()
        }
    }

    /// Returns how full the filesystem is on which a node lies.
    pub fn statistics(&self, node: &Node) -> ErrnoResult<rustix::fs::StatVfs> {
        match &node.real {
            Some(real) => inside::statistics(real.file.open()?.as_fd()),
            None => inside::statistics(self.archive.tree().root()),
        }
    }
}
