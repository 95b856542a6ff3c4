//! Closing files.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::Arc;

use fuser::FileHandle;
use rustix::io::Errno;

use super::Inner;
use super::handles::{ContentState, Handle};
use crate::archive::store::ItemId;
use crate::archive::{Bringing, ContentChange};
use crate::fuse::inside::ErrnoResult;
use crate::fuse::namespace::Closing;
use crate::os::caller::Caller;
use crate::os::opening;

impl Inner {
    /// After a process has closed a file. EINVAL or EFBIG: what it has written is refused as a sidecar.
    pub(super) fn closed(&self, caller: &Caller, handle: FileHandle) -> ErrnoResult<()> {
        match self.close(caller, handle, false)? {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    fn close(
        &self,
        caller: &Caller,
        handle: FileHandle,
        is_last: bool,
    ) -> ErrnoResult<Option<Errno>> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File {
                file,
                writable: true,
                opener,
                node,
                deposit,
                closed,
                mappable,
                mapping,
                ..
            }) => {
                if !is_last && mapping.is_some() {
                    // A change by a mapping is in the attributes when close(2) returns.
                    self.invalidate_attributes(node);
                }
                // Every descriptor of the file sends a FLUSH when it is closed, so that the last one has usually
                // left nothing to do here.
                let state = match node.learnt.sidecar_of() {
                    Some(_) if !mappable => ContentState::of(file),
                    _ => None,
                };
                if is_last && state.is_some() && *closed.lock() == state {
                    return Ok(None);
                }
                let bringing = match deposit {
                    Some(_) => Bringing::Deposit,
                    None => Bringing::Other,
                };
                let how = Closing { bringing, is_last };
                let by = self.context(caller);
                let refused = self.namespace.file_closed(&by, node, opener, how)?;
                *closed.lock() = state.filter(|_| refused.is_none());
                Ok(refused)
            }
            _ => Ok(None),
        }
    }

    /// Notes that a file that was open for writing is closed. A mapping of it may remain that the kernel writes without the
    /// daemon.
    fn end_of_writing(&self, handle: FileHandle) -> Option<ContentChange> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File {
                writable: true,
                node,
                mapping,
                ..
            }) => {
                if mapping.is_some() {
                    self.mapped.lock().push(Arc::clone(node));
                }
                self.namespace.note_arriving(node);
                self.namespace.change_content(node)
            }
            _ => None,
        }
    }

    /// The items in which programs have files open for writing, or mapped so, by any of their names.
    pub(super) fn items_being_written(&self) -> HashSet<ItemId> {
        let mut mapped = std::mem::take(&mut *self.mapped.lock());
        mapped.retain(|node| {
            let file = node.file();
            file.is_ok_and(|file| opening::is_open_for_writing(file.as_fd()))
        });
        let written = self.handles.written();
        let nodes = written.iter().chain(&mapped);
        let items = nodes
            .flat_map(|node| self.namespace.items_around(node))
            .collect();
        self.mapped.lock().append(&mut mapped);
        items
    }

    /// After the last process has closed a file: removes its handle, which the caller drops after the reply.
    /// A sidecar may have been written through a mapping after it was closed.
    pub(super) fn release_file(
        &self,
        caller: &Caller,
        handle: FileHandle,
    ) -> (ErrnoResult<()>, Option<Arc<Handle>>) {
        let _content = self.end_of_writing(handle);
        let closed = self.close(caller, handle, true);
        let handle = self.handles.remove(handle);
        if closed.is_ok()
            && let Some(Handle::File { change, .. }) = handle.as_deref()
            && let Some(change) = change.lock().take()
        {
            change.done();
        }
        (closed.map(|_| ()), handle)
    }
}
