//! Opening and creating files, and opening directories.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use fuser::{BackingId, FileHandle, FopenFlags, INodeNo};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Inner;
use super::backing::{Backing, Route};
use super::handles::{Directory, Handle};
use super::leases::Blocked;
use super::names::NameIn;
use super::outcome::{Outcome, Wait};
use super::scheduler::JobQueue;
use crate::archive::{ContentChange, WriteIntent};
use crate::fuse::attr::Attr;
use crate::fuse::inode::{CloseNotice, MappableOpen, Mapping, Node, NodeKind};
use crate::fuse::inside::{self, AttributeChange, ErrnoResult};
use crate::fuse::namespace::{Created, Entry, Invalidate, OpenDeposit, Stale};
use crate::os::caller::Caller;

/// A file that has been opened, with its handle.
pub(super) struct OpenFile {
    pub(super) handle: FileHandle,
    pub(super) flags: FopenFlags,
    pub(super) backing: Option<Arc<Backing>>,
}

/// A file that has been opened for a request. [`Inner::register`] gives it a handle, right before the reply, which opens
/// the backing file of the kernel.
pub(super) enum OpenedNode {
    /// A virtual file, which has a handle already.
    Virtual(OpenFile),
    /// A real file.
    Real(OpenedFile),
}

/// A real file that has been opened.
pub(super) struct OpenedFile {
    file: OwnedFd,
    node: Arc<Node>,
    deposit: Option<OpenDeposit>,
    change: Option<WriteIntent>,
    caller: Caller,
    access: OFlags,
    is_made: bool,
    /// Until the handle says that the file is open for writing.
    _content: Option<ContentChange>,
}

/// The way in which an open file is read and written.
struct Routed {
    flags: FopenFlags,
    backing: Option<Arc<Backing>>,
    mapping: Option<MappableOpen>,
}

impl Inner {
    /// Opens a file: later if its text must be generated, or if another program has a lease on it.
    pub(super) fn open_file(
        &self,
        caller: Caller,
        number: INodeNo,
        flags: i32,
    ) -> ErrnoResult<Outcome<OpenedNode>> {
        let node = self.node(number)?;
        if let NodeKind::Generated(_) = node.kind {
            return Ok(Outcome::later(
                Wait::Queue(JobQueue::Processor),
                caller.uid,
                move |inner| inner.try_open(&caller, &node, flags).map_err(Errno::from),
            ));
        }
        match self.try_open(&caller, &node, flags) {
            Err(Blocked::Lease) if flags & libc::O_NONBLOCK == 0 => {}
            opened => return Ok(Outcome::Now(opened?)),
        }
        let met = Arc::clone(&node);
        let attempt = move |inner: &Inner| {
            let opened = inner.open_unleased(&caller, &met, flags);
            opened.map_err(Errno::from)
        };
        let wait = Wait::Lease(Box::new(attempt));
        Ok(Outcome::later(wait, caller.uid, move |inner| {
            inner.try_open(&caller, &node, flags).map_err(Errno::from)
        }))
    }

    /// Returns a node's attributes: later if a text must be generated to know its size.
    pub(super) fn attributes(
        &self,
        caller: Caller,
        number: INodeNo,
    ) -> ErrnoResult<Outcome<(Arc<Node>, Attr)>> {
        let node = self.node(number)?;
        let NodeKind::Generated(generated) = node.kind else {
            let attr = self.namespace.attributes(&node)?;
            return Ok(Outcome::Now((node, attr)));
        };
        Ok(Outcome::later(
            Wait::Queue(JobQueue::Processor),
            caller.uid,
            move |inner| {
                let attr = inner.namespace.generated_attributes(&caller, generated)?;
                Ok((node, attr))
            },
        ))
    }

    /// Opens a directory: later where all names are read at once, and there may be many.
    pub(super) fn open_directory(
        &self,
        caller: Caller,
        number: INodeNo,
    ) -> ErrnoResult<Outcome<OpenFile>> {
        let node = self.node(number)?;
        if node.is_in_item() || self.namespace.is_listed_in_parts(&node) {
            return Ok(Outcome::Now(self.open_listing(&caller, node)?));
        }
        Ok(Outcome::later(
            Wait::Queue(JobQueue::Processor),
            caller.uid,
            move |inner| inner.open_listing(&caller, node),
        ))
    }

    /// Sets attributes: later if another program has a lease on a file whose size changes.
    pub(super) fn set_attributes(
        &self,
        caller: Caller,
        number: INodeNo,
        handle: Option<FileHandle>,
        change: AttributeChange,
    ) -> ErrnoResult<Outcome<(Arc<Node>, Attr)>> {
        let node = self.node(number)?;
        match self.set_attributes_unleased(&caller, &node, handle, &change) {
            Err(Blocked::Lease) => {}
            changed => return Ok(Outcome::Now((node, changed?))),
        }
        let met = Arc::clone(&node);
        let attempt = move |inner: &Inner| inner.open_content(&caller, &met, libc::O_WRONLY);
        let wait = Wait::Lease(Box::new(attempt));
        Ok(Outcome::later(wait, caller.uid, move |inner| {
            let changed = inner.set_attributes_unleased(&caller, &node, handle, &change);
            Ok((node, changed?))
        }))
    }

    fn set_attributes_unleased(
        &self,
        caller: &Caller,
        node: &Node,
        handle: Option<FileHandle>,
        change: &AttributeChange,
    ) -> Result<Attr, Blocked> {
        let open = handle.and_then(|handle| self.handles.get(handle));
        let open = match open.as_deref() {
            Some(Handle::File { file, writable, .. }) if *writable => Some(file.as_fd()),
            _ => None,
        };
        let is_written = || self.handles.is_written(node.id);
        let by = &self.context(caller);
        let changed = self
            .namespace
            .set_attributes(by, node, open, change, is_written);
        // Of all changes only that of the size waits for the holder of a lease.
        changed.map_err(|errno| match change.size {
            Some(_) => Blocked::of(errno),
            None => Blocked::Errno(errno),
        })
    }

    /// Makes and opens a file.
    pub(super) fn create_file(
        &self,
        caller: &Caller,
        (parent, name): NameIn<'_>,
        flags: i32,
        mode: (u32, u32),
    ) -> ErrnoResult<(Entry, OpenedNode)> {
        let created = self.change(format_args!("create"), caller, (parent, name), || {
            let parent = self.node(parent)?;
            self.make_file(caller, &parent, name, flags, mode)
        })?;
        self.surplus.note(&self.namespace, parent, name, &created.0);
        Ok(created)
    }

    fn make_file(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        flags: i32,
        (mode, umask): (u32, u32),
    ) -> ErrnoResult<(Entry, OpenedNode)> {
        self.handles.check(caller.uid)?;
        let by = &self.context(caller);
        let created = self
            .namespace
            .create(by, parent, name, flags, (mode, umask))?;
        let Created {
            entry,
            file,
            deposit,
        } = created;
        let node = &entry.node;
        let opened = if node.real.is_none() {
            OpenedNode::Virtual(self.open_virtual(caller, node, access_of(flags))?)
        } else {
            let (_, change) = self.begin_change(caller, node, flags, true)?;
            OpenedNode::Real(OpenedFile {
                file,
                node: Arc::clone(node),
                deposit,
                change,
                caller: *caller,
                access: access_of(flags),
                is_made: true,
                _content: self.content_change(caller, node, flags)?,
            })
        };
        Ok((entry, opened))
    }

    /// Opens a file. If a lease blocks it, nothing has changed.
    fn try_open(
        &self,
        caller: &Caller,
        node: &Arc<Node>,
        flags: i32,
    ) -> Result<OpenedNode, Blocked> {
        let access = access_of(flags);
        self.handles.check(caller.uid)?;
        if node.real.is_none() {
            return Ok(OpenedNode::Virtual(
                self.open_virtual(caller, node, access)?,
            ));
        }
        if flags & libc::O_ACCMODE != libc::O_WRONLY {
            self.namespace.check_withheld(caller, node)?;
        }
        let (_unleased, change) = self.begin_change(caller, node, flags, false)?;
        let content = self.content_change(caller, node, flags)?;
        let file = self
            .open_content(caller, node, flags)
            .map_err(Blocked::of)?;
        content.iter().for_each(ContentChange::made);
        Ok(OpenedNode::Real(OpenedFile {
            file,
            node: Arc::clone(node),
            deposit: None,
            change,
            caller: *caller,
            access,
            is_made: false,
            _content: content,
        }))
    }

    fn content_change(
        &self,
        caller: &Caller,
        node: &Node,
        flags: i32,
    ) -> ErrnoResult<Option<ContentChange>> {
        let writes = flags & (libc::O_ACCMODE | libc::O_TRUNC) != libc::O_RDONLY;
        if writes {
            self.namespace.change_unsealed(caller, node, None)
        } else {
            Ok(None)
        }
    }

    /// Gives a file that has been opened its handle; `register` registers it for passthrough.
    pub(super) fn register(
        &self,
        opened: OpenedNode,
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<BackingId>,
    ) -> OpenFile {
        let opened = match opened {
            OpenedNode::Virtual(opened) => return opened,
            OpenedNode::Real(opened) => opened,
        };
        self.access_times.apply_to(&opened.file);
        let routed = self.route(&opened, register);
        let OpenedFile {
            node,
            access,
            caller,
            ..
        } = opened;
        let file = Arc::new(opened.file);
        if let Some(real) = &node.real {
            real.file.note_opened(&file);
        }
        let handle = Handle::File {
            file,
            writable: access != OFlags::RDONLY,
            mappable: access == OFlags::RDWR,
            // The thread may have ended by then, and its number may be another's.
            opener: Caller { pid: 0, ..caller },
            node,
            deposit: opened.deposit,
            change: parking_lot::Mutex::new(opened.change),
            closed: parking_lot::Mutex::new(None),
            backing: routed.backing.clone(),
            mapping: routed.mapping,
        };
        OpenFile {
            handle: self.handles.add(caller.uid, handle),
            flags: routed.flags,
            backing: routed.backing,
        }
    }

    /// Prepares an open of the sidecar of an item for writing: as long as the file lives, no program can take a lease on it,
    /// and a start after a crash reads the item again. Of other files nothing is prepared.
    fn begin_change(
        &self,
        caller: &Caller,
        node: &Arc<Node>,
        flags: i32,
        is_made: bool,
    ) -> Result<(Option<OwnedFd>, Option<WriteIntent>), Blocked> {
        if !is_made && self.namespace.is_replaced_sidecar(node)? {
            // The text that a program renamed to `.ibi` was written again with the item's relations, and the kernel
            // has not dropped the name yet (`invalidate_after_reply`). It looks the name up again after this error.
            return Err(Errno::STALE.into());
        }
        if flags & libc::O_ACCMODE == libc::O_RDONLY {
            return Ok((None, None));
        }
        if node.learnt.sidecar_of().is_none() {
            self.namespace.before_writing_text(node)?;
            return Ok((None, None));
        }
        let mut unleased = None;
        if !is_made {
            unleased = Some(self.open_unleased(caller, node, flags)?);
            self.namespace.before_writing(caller, node)?;
            self.invalidate_attributes(node);
        }
        Ok((unleased, self.namespace.changing_file(node)?))
    }

    /// Decides how a file that has been opened is read and written: by the kernel, through its cache, or without.
    fn route(
        &self,
        opened: &OpenedFile,
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<BackingId>,
    ) -> Routed {
        let (node, access, is_made) = (&opened.node, opened.access, opened.is_made);
        // Found as the daemon: the caller may not pass through the store to it.
        let without = self.access_times.without(opened.file.as_fd());
        let register = |file: BorrowedFd<'_>| register(without.as_ref().map_or(file, AsFd::as_fd));
        let (file, caller) = (opened.file.as_fd(), &opened.caller);
        let route = self.backings.route(node.id, file, access, caller, register);
        let mut routed = Routed {
            flags: FopenFlags::empty(),
            backing: None,
            mapping: None,
        };
        match route {
            Route::Kernel(backing) => {
                routed.backing = Some(backing);
                if access == OFlags::RDWR {
                    routed.mapping = Some(self.mappable(node, is_made));
                }
            }
            // Another host may have written it since.
            Route::Cached if node.is_shared => {}
            Route::Cached => routed.flags |= FopenFlags::FOPEN_KEEP_CACHE,
            Route::Direct => routed.flags |= FopenFlags::FOPEN_DIRECT_IO,
        }
        if node.is_shared && !is_made {
            self.invalidate_attributes(node);
        }
        let is_awaited = |mapping: &MappableOpen| mapping.notice() == CloseNotice::Sent;
        if node.learnt.sidecar_of().is_none()
            && node.learnt.describes().is_none()
            && !routed.mapping.as_ref().is_some_and(is_awaited)
        {
            // A close writes nothing back: the kernel need not send a flush.
            routed.flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        routed
    }

    /// Notes that a program may map a file for writing, which the kernel then writes without the daemon.
    fn mappable(&self, node: &Arc<Node>, is_made: bool) -> MappableOpen {
        // Most files are made, written and closed once; a FLUSH for each would be for nothing.
        let notice = if is_made {
            CloseNotice::None
        } else {
            CloseNotice::Sent
        };
        let was = node.learnt.mapping();
        let mapping = MappableOpen::new(node, notice);
        if !matches!(was, Mapping::Open(_)) && !is_made {
            self.invalidate_attributes(node);
        }
        mapping
    }

    fn directory(&self, caller: &Caller, node: Arc<Node>) -> Directory {
        let without_sidecar = self.namespace.is_sidecar_masked(caller, &node);
        Directory::new(node, without_sidecar, Arc::clone(&self.access_times))
    }

    fn open_virtual(
        &self,
        caller: &Caller,
        node: &Arc<Node>,
        access: OFlags,
    ) -> ErrnoResult<OpenFile> {
        // Permissions do not keep root from opening a virtual file for writing.
        if access != OFlags::RDONLY {
            return Err(Errno::PERM);
        }
        let (handle, flags) = match node.kind {
            NodeKind::Text(_) => (Handle::Text(Arc::clone(node)), FopenFlags::FOPEN_KEEP_CACHE),
            NodeKind::Generated(generated) => (
                Handle::Generated(self.namespace.generate(caller, generated)?),
                // The text of another open file may differ.
                FopenFlags::FOPEN_DIRECT_IO,
            ),
            _ => return Err(Errno::PERM),
        };
        Ok(OpenFile {
            handle: self.handles.add(caller.uid, handle),
            flags: flags | FopenFlags::FOPEN_NOFLUSH,
            backing: None,
        })
    }

    /// Opens a file without further flags. While it is open, no program can take a lease on it for which
    /// opening it with all flags would have to wait.
    fn open_unleased(&self, caller: &Caller, node: &Node, flags: i32) -> Result<OwnedFd, Blocked> {
        let flags = flags & (libc::O_ACCMODE | libc::O_APPEND);
        let opened = self.open_content(caller, node, flags);
        opened.map_err(Blocked::of)
    }

    fn open_content(&self, caller: &Caller, node: &Node, flags: i32) -> ErrnoResult<OwnedFd> {
        // Truncating a file may clear its set-id bits, which depends on the caller.
        if flags & libc::O_TRUNC == 0
            && let Some(real) = &node.real
            && let Some(opened) =
                inside::open_or_append(flags, inside::content_flags(flags), |flags| {
                    real.file.open_content(flags)
                })?
        {
            return Ok(opened);
        }
        inside::open(node.file()?.as_fd(), flags, caller)
    }

    /// After the reply to a request that made and opened a file.
    pub(super) fn created(&self, node: &Node) {
        if matches!(node.learnt.mapping(), Mapping::Open(_)) {
            self.invalidator.invalidate_attributes_after_reply(node.id);
        }
    }

    pub(super) fn invalidate_attributes(&self, node: &Node) {
        self.invalidator
            .invalidate(vec![Stale::Attributes(node.id)]);
    }

    /// Opens a directory. The kernel may cache the listing of one inside an item: it drops the listing when
    /// it changes the directory itself, and when `invalidator` says so.
    fn open_listing(&self, caller: &Caller, node: Arc<Node>) -> ErrnoResult<OpenFile> {
        self.handles.check(caller.uid)?;
        let (handle, flags) = if node.is_in_item() {
            let is_shared = node.is_shared;
            let directory = self.directory(caller, node);
            let flags = if is_shared || directory.without_sidecar {
                FopenFlags::empty()
            } else {
                FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE
            };
            (Handle::Directory(directory), flags)
        } else {
            let handle = match &node.kind {
                NodeKind::Prefix(prefix) => {
                    let listing = self.namespace.open_prefix(prefix)?;
                    Handle::Prefix { listing, node }
                }
                _ if self.namespace.is_listed_directly(&node) => {
                    Handle::Level(self.directory(caller, node))
                }
                _ => {
                    let listed = self.namespace.list(caller, &node)?;
                    Handle::Listing { listed, node }
                }
            };
            (handle, FopenFlags::empty())
        };
        Ok(OpenFile {
            handle: self.handles.add(caller.uid, handle),
            flags,
            backing: None,
        })
    }
}

fn access_of(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags as u32) & OFlags::RWMODE
}
