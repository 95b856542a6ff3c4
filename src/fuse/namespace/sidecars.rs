//! The sidecar `.ibi` of an item, when programs write, rename or remove it.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::invalidation::{Context, Stale};
use super::{Entry, NameLifetime, Namespace, authors};
use crate::archive::store::ItemId;
use crate::archive::tree::{METADATA_TEXT, Place, SIDECAR};
use crate::archive::{Acceptance, ArchiveError, Bringing, RefusedSidecar, Stranger, WriteIntent};
use crate::fuse::errno;
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult};
use crate::os::caller::Caller;

/// Marks the entry of an item's sidecar. The file under that name is replaced when a relation is declared or
/// a sidecar is rejected, and the metadata text by its name beside the item, so that neither name is cached. A
/// temporary name that rsync renames to one of them (`..ibi.AbCd12`) is: the kernel keeps its lifetime
/// until the new name is invalidated ([`Namespace::name_made`], `note_changed`).
pub(super) fn mark_sidecar(entry: &mut Entry, item: ItemId, name: &OsStr) {
    if name == SIDECAR {
        entry.node.learnt.set_sidecar_of(Some(item));
    }
    if name == METADATA_TEXT {
        entry.node.learnt.set_describes(item);
    }
    if name == SIDECAR || name == METADATA_TEXT {
        entry.lifetime = NameLifetime::Uncached;
    }
}

/// The close of a file that was open for writing.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// The program that has created the file: one that fills a new item, or another.
    pub bringing: Bringing,
    /// Whether no process has it open any more.
    pub is_last: bool,
}

/// Returns who brings a sidecar into an item by a name in a directory of this tree.
fn bringing_by(view: View) -> Bringing {
    if view.is_deposit() {
        Bringing::Deposit
    } else {
        Bringing::Other
    }
}

/// Logs a refused sidecar. Returns the errno: EFBIG for one that is too large, or else EINVAL.
fn report(refused: &RefusedSidecar) -> Errno {
    match &refused.kept_as {
        Some(name) => log::warn!("{}; it is kept as '{name}'", refused.error),
        None => log::warn!("{}", refused.error),
    }
    match errno::of(&refused.error) {
        errno @ (Errno::FBIG | Errno::PERM)
            if matches!(refused.error, ArchiveError::Sealed { .. }) || errno == Errno::FBIG =>
        {
            errno
        }
        _ => Errno::INVAL,
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

    /// Before a file is opened for writing or gets another name: a sidecar is marked if this user is not its owner.
    pub fn before_writing(&self, caller: &Caller, node: &Node) -> ErrnoResult<()> {
        match node.learnt.sidecar_of() {
            Some(_) => authors::before_writing(caller, node.file()?.as_fd()),
            None => Ok(()),
        }
    }

    /// After the owner, the mode or the names of a file have changed: records who speaks in it, if it is a sidecar.
    pub(super) fn note_speaker(&self, node: &Node) -> ErrnoResult<()> {
        match node.learnt.sidecar_of() {
            Some(item) => Ok(self.archive.note_speaker(item)?),
            None => Ok(()),
        }
    }

    /// Whether this file was a sidecar that another one has replaced, so that it has no name any more.
    pub fn is_replaced_sidecar(&self, node: &Node) -> ErrnoResult<bool> {
        if node.learnt.sidecar_of().is_none() {
            return Ok(false);
        }
        Ok(rustix::fs::fstat(&*node.file()?)?.st_nlink == 0)
    }

    /// After a sidecar was closed or renamed into an item: accepts what it says, if it is valid.
    fn sidecar_written(&self, caller: &Caller, item: ItemId) -> ErrnoResult<()> {
        match self.archive.edit(caller, |it| it.accept_sidecar(item))? {
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
    /// last may have inherited it; the user who opened it answers for what it says. Returns the errno of a
    /// text that is refused.
    pub fn file_closed(
        &self,
        by: &Context<'_>,
        node: &Node,
        opener: &Caller,
        how: Closing,
    ) -> ErrnoResult<Option<Errno>> {
        let (Some(item), Some(real)) = (node.learnt.sidecar_of(), &node.real) else {
            // A search that begins after close(2) finds it, also if another process has the file open as well.
            if let Some(item) = node.learnt.describes() {
                self.archive.note_described(item)?;
            }
            if how.is_last {
                self.note_written(node);
                self.metadata_text_released(by, node)?;
            }
            return match node.learnt.metadata_of() {
                Some(item) if !how.is_last => Ok(self.metadata_text_closed(item).err()),
                _ => Ok(None),
            };
        };
        let caller = by.caller;
        let is_opener = (caller.uid, caller.gid) == (opener.uid, opener.gid);
        let writer = if is_opener { caller } else { opener };
        // It may have become a sidecar while it was open.
        authors::before_writing(opener, real.file.open()?.as_fd())?;
        let written = (real.device, real.inode);
        let kept = if how.is_last {
            self.refused.lock().remove(&node.id)
        } else {
            self.refused.lock().get(&node.id).cloned()
        };
        if let Some(kept_as) = kept {
            // One of several processes that write the file had closed it before it was complete.
            if self.archive.edit(&Stranger, |it| {
                it.take_back_refused(item, written, &kept_as)
            })? {
                self.refused.lock().remove(&node.id);
            }
        }
        if let Some(refused) = self.archive.edit(&Stranger, |it| {
            it.refuse_written(item, written, how.bringing)
        })? {
            let errno = report(&refused);
            if let (Some(kept_as), false) = (refused.kept_as, how.is_last) {
                self.refused.lock().insert(node.id, kept_as);
            }
            self.settle(by, Ok(()))?;
            return Ok(Some(errno));
        }
        self.settle(by, self.sidecar_written(writer, item))?;
        Ok(None)
    }

    /// Before a rename: refuses a file that would become the sidecar of an item and be a bad one. Neither
    /// name changes then.
    pub(super) fn check_candidates(
        &self,
        by: &Context<'_>,
        (parent, name): (&Node, &OsStr),
        (new_parent, new_name): (&Node, &OsStr),
        flags: u32,
    ) -> ErrnoResult<()> {
        self.check_candidate(by, (parent, name), (new_parent, new_name))?;
        if flags & RenameFlags::EXCHANGE.bits() != 0 {
            self.check_candidate(by, (new_parent, new_name), (parent, name))?;
        }
        Ok(())
    }

    fn check_candidate(
        &self,
        by: &Context<'_>,
        (parent, name): (&Node, &OsStr),
        (new_parent, new_name): (&Node, &OsStr),
    ) -> ErrnoResult<()> {
        let NodeKind::Item(item) = new_parent.kind else {
            return Ok(());
        };
        if new_name != SIDECAR {
            return Ok(());
        }
        let Ok(file) = inside::find(parent.file()?.as_fd(), name) else {
            return Ok(());
        };
        let bringing = bringing_by(new_parent.view);
        let refused = self.archive.edit(&Stranger, |it| {
            it.refuse_candidate(item, file.as_fd(), bringing)
        })?;
        let Some(refused) = refused else {
            return authors::before_naming(by.caller, file.as_fd(), new_parent.file()?.as_fd());
        };
        let stat = rustix::fs::fstat(&file)?;
        let known = self.nodes.in_all_views(stat.st_dev, stat.st_ino);
        let mut stale: Vec<Stale> = known.into_iter().map(Stale::Attributes).collect();
        let directory = rustix::fs::fstat(&*new_parent.file()?)?;
        let views = self.nodes.in_all_views(directory.st_dev, directory.st_ino);
        stale.extend(views.into_iter().map(Stale::Listing));
        by.cache.invalidate_after_reply(stale);
        Err(report(&refused))
    }

    /// After a name was removed from or renamed away in an item's own directory: the sidecar is restored.
    pub(super) fn name_gone(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<()> {
        if let NodeKind::Item(item) = parent.kind
            && name == METADATA_TEXT
        {
            self.archive.note_described(item)?;
        }
        if let NodeKind::Item(item) = parent.kind
            && name == SIDECAR
        {
            let known = self.archive.store().item(item).map_err(errno::of_index)?;
            let place = known.map(|item| Place::of(&item.names));
            // A file that another request has put there is not masked.
            let had_gone = place.filter(|place| self.sidecar_at(place).is_none());
            self.archive
                .edit(&Stranger, |it| it.restore_sidecar(item))?;
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
        if name == METADATA_TEXT {
            self.archive.note_described(item)?;
        }
        if name != SIDECAR {
            return Ok(());
        }
        let Ok(found) = inside::find(parent.file()?.as_fd(), name) else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(&found)?;
        let written = (stat.st_dev, stat.st_ino);
        let bringing = bringing_by(parent.view);
        // An empty file was just made, and is about to be written.
        if let Some(refused) = self
            .archive
            .edit(&Stranger, |it| it.refuse_written(item, written, bringing))?
            && refused.kept_as.is_some()
        {
            by.cache
                .invalidate_after_reply(vec![Stale::Name(parent.id, name.to_owned())]);
            return self.settle(by, Err(report(&refused)));
        }
        let id = self.nodes.id_of(stat.st_dev, stat.st_ino, View::Rep);
        if let Some(node) = self.nodes.get(id) {
            node.learnt.set_sidecar_of(Some(item));
        }
        // Another request may have put this file there since it was looked at.
        authors::before_writing(by.caller, found.as_fd())?;
        // The kernel has given the sidecar's name the lifetime of the file that was renamed.
        by.cache
            .invalidate_after_reply(vec![Stale::Name(parent.id, name.to_owned())]);
        self.settle(by, self.sidecar_written(by.caller, item))
    }
}
