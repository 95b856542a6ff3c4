//! The sidecar `.ibi` of an item, when programs write, rename or remove it.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use super::invalidation::{Context, Stale};
use super::{Entry, Namespace};
use crate::archive::store::ItemId;
use crate::archive::tree::{Place, SIDECAR};
use crate::archive::{Acceptance, WriteIntent};
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult};
use crate::os::caller::Caller;

/// Marks the entry of an item's sidecar. The file under that name is replaced when a relation is declared or
/// a sidecar is rejected, so that the name is not cached. Neither is a temporary name that rsync renames to
/// it (`..ibi.AbCd12`): the kernel would keep the lifetime of that name.
pub(super) fn mark_sidecar(entry: &mut Entry, item: ItemId, name: &OsStr) {
    if name == SIDECAR {
        entry.node.learnt.set_sidecar_of(Some(item));
    }
    if name.to_str().is_some_and(|name| name.contains(SIDECAR)) {
        entry.lasting = false;
    }
}

impl Namespace {
    /// Before a name in an item's own directory gets another file: records that its sidecar is about to
    /// change, if it is the sidecar's name.
    pub(super) fn changing(&self, parent: &Node, name: &OsStr) -> ErrnoResult<Option<WriteIntent>> {
        match parent.kind {
            NodeKind::Item(item) if name == SIDECAR => Ok(Some(self.archive.begin_write(item)?)),
            _ => Ok(None),
        }
    }

    /// The same for a file that is opened for writing.
    pub fn changing_file(&self, node: &Node) -> ErrnoResult<Option<WriteIntent>> {
        match node.learnt.sidecar_of() {
            Some(item) => Ok(Some(self.archive.begin_write(item)?)),
            None => Ok(None),
        }
    }

    /// After a sidecar was closed or renamed into an item: accepts what it says, if it is valid.
    fn sidecar_written(&self, caller: &Caller, item: ItemId) -> ErrnoResult<()> {
        match self.archive.accept_sidecar(caller, item)? {
            Acceptance::Accepted(item) => {
                log::info!("sidecar of {} taken in", item.names);
                self.note_placed(&item.names);
            }
            Acceptance::Unchanged => {}
            Acceptance::Rejected(error) => log::warn!("{error}"),
        }
        Ok(())
    }

    /// After a file that was open for writing is closed: a sidecar is accepted. The process that closes it
    /// last may have inherited it; the user who opened it answers for what it says.
    pub fn file_closed(&self, by: &Context<'_>, node: &Node, opener: &Caller) -> ErrnoResult<()> {
        let Some(item) = node.learnt.sidecar_of() else {
            return Ok(());
        };
        let caller = by.caller;
        let is_opener = (caller.uid, caller.gid) == (opener.uid, opener.gid);
        let writer = if is_opener { caller } else { opener };
        self.settle(by, self.sidecar_written(writer, item))
    }

    /// After a name was removed from or renamed away in an item's own directory: the sidecar is restored.
    pub(super) fn name_gone(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<()> {
        if let NodeKind::Item(item) = parent.kind
            && name == SIDECAR
        {
            let known = self.archive.store().item(item)?;
            let place = known.map(|item| Place::of(&item.names));
            // A file that another request has put there is not masked.
            let had_gone = place.filter(|place| self.sidecar_at(place).is_none());
            self.archive.restore_sidecar(item)?;
            if let Some(place) = had_gone {
                self.mask_sidecar(caller, item, &place);
            }
        }
        Ok(())
    }

    /// After a file got a name in an item's own directory: if the name is `.ibi`, it is the item's sidecar.
    pub(super) fn name_made(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<()> {
        let NodeKind::Item(item) = parent.kind else {
            return Ok(());
        };
        if name != SIDECAR {
            return Ok(());
        }
        let Ok(found) = inside::find(parent.file()?.as_fd(), name) else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(&found)?;
        let id = self.nodes.id_of(stat.st_dev, stat.st_ino, View::Rep);
        if let Some(node) = self.nodes.get(id) {
            node.learnt.set_sidecar_of(Some(item));
        }
        // The kernel has given the sidecar's name the lifetime of the file that was renamed.
        by.cache
            .invalidate_after_reply(vec![Stale::Name(parent.id, name.to_owned())]);
        self.settle(by, self.sidecar_written(by.caller, item))
    }
}
