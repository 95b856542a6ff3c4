//! Opening, creating and closing files.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use fuser::{BackingId, FileHandle, FopenFlags, ReplyAttr, ReplyCreate, ReplyOpen};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::backing::{Backing, Route};
use super::handles::{ContentState, Directory, Handle};
use super::leases::Blocked;
use super::names::NameIn;
use super::reply::{self, OpenFile};
use super::{Ibifs, Inner};
use crate::archive::{Bringing, WriteIntent};
use crate::fuse::attr::Attr;
use crate::fuse::inode::{CloseNotice, MappableOpen, Mapping, Node, NodeKind};
use crate::fuse::inside::{self, AttributeChange, ErrnoResult};
use crate::fuse::namespace::{Closing, Created, Entry, Invalidate, OpenDeposit, Stale};
use crate::os::caller::Caller;
use crate::os::charging;

/// A file that is open already, because it has just been made.
type OpenedFile = (OwnedFd, Option<OpenDeposit>);

/// The way in which an open file is read and written.
struct Routed {
    flags: FopenFlags,
    backing: Option<Arc<Backing>>,
    mapping: Option<MappableOpen>,
}

impl Ibifs {
    /// Opens a file and replies: in the background if its text must be generated, later if another program
    /// has a lease on it.
    pub(super) fn open_and_reply(
        &self,
        caller: Caller,
        node: Arc<Node>,
        flags: i32,
        reply: ReplyOpen,
    ) {
        let inner = Arc::clone(&self.inner);
        if let NodeKind::Generated(_) = node.kind {
            let job = move |turn: ErrnoResult<()>| {
                let opened = turn.and_then(|()| {
                    let register = |file: BorrowedFd<'_>| reply.open_backing(file);
                    let opened = inner.open_file(&caller, &node, None, flags, register);
                    opened.map_err(|blocked| blocked.errno())
                });
                reply::open(reply, opened);
            };
            return self.generating.run(caller.uid, Box::new(job));
        }
        let register = |file: BorrowedFd<'_>| reply.open_backing(file);
        let opened = self.open_file(&caller, &node, None, flags, register);
        if !matches!(opened, Err(Blocked::Lease)) || flags & libc::O_NONBLOCK != 0 {
            return reply::open(reply, opened.map_err(|blocked| blocked.errno()));
        }
        let (retrying, met) = (Arc::clone(&inner), Arc::clone(&node));
        let attempt = move || {
            let opened = retrying.open_unleased(&caller, &met, flags);
            opened.map_err(|blocked| blocked.errno())
        };
        let next = move |unleased: ErrnoResult<OwnedFd>| {
            let opened = unleased.and_then(|_unleased| {
                let register = |file: BorrowedFd<'_>| reply.open_backing(file);
                let opened = inner.open_file(&caller, &node, None, flags, register);
                opened.map_err(|blocked| blocked.errno())
            });
            reply::open(reply, opened);
        };
        self.leases
            .wait(caller.uid, Box::new(attempt), Box::new(next));
    }

    /// Replies with a node's attributes: in the background if a text must be generated to know its size.
    pub(super) fn attributes_and_reply(&self, caller: Caller, node: Arc<Node>, reply: ReplyAttr) {
        let NodeKind::Generated(generated) = node.kind else {
            let attr = self.namespace.attributes(&node);
            return reply::attributes(reply, attr.map(|attr| (node, attr)));
        };
        let inner = Arc::clone(&self.inner);
        let job = move |turn: ErrnoResult<()>| {
            let attr = turn.and_then(|()| inner.namespace.generated_attributes(&caller, generated));
            reply::attributes(reply, attr.map(|attr| (node, attr)));
        };
        self.generating.run(caller.uid, Box::new(job));
    }

    /// Opens a directory and replies: in the background where all names are read at once, and there may be
    /// many.
    pub(super) fn open_directory_and_reply(
        &self,
        caller: Caller,
        node: Arc<Node>,
        reply: ReplyOpen,
    ) {
        if node.is_in_item() || self.namespace.is_listed_in_parts(&node) {
            return reply::open(reply, self.open_directory(&caller, node));
        }
        let inner = Arc::clone(&self.inner);
        let job = move |turn: ErrnoResult<()>| {
            let opened = turn.and_then(|()| inner.open_directory(&caller, node));
            reply::open(reply, opened);
        };
        self.generating.run(caller.uid, Box::new(job));
    }

    /// Sets attributes and replies: later if another program has a lease on a file whose size changes.
    pub(super) fn set_attributes_and_reply(
        &self,
        caller: Caller,
        node: Arc<Node>,
        handle: Option<FileHandle>,
        change: AttributeChange,
        reply: ReplyAttr,
    ) {
        let changed = self.set_attributes(&caller, &node, handle, &change);
        if !matches!(changed, Err(Blocked::Lease)) {
            let changed = changed.map_err(|blocked| blocked.errno());
            return reply::attributes(reply, changed.map(|attr| (node, attr)));
        }
        let (inner, met) = (Arc::clone(&self.inner), Arc::clone(&node));
        let attempt = move || inner.open_content(&caller, &met, libc::O_WRONLY);
        let inner = Arc::clone(&self.inner);
        let next = move |unleased: ErrnoResult<OwnedFd>| {
            let changed = unleased.and_then(|_unleased| {
                let changed = inner.set_attributes(&caller, &node, handle, &change);
                changed.map_err(|blocked| blocked.errno())
            });
            reply::attributes(reply, changed.map(|attr| (node, attr)));
        };
        self.leases
            .wait(caller.uid, Box::new(attempt), Box::new(next));
    }
}

impl Inner {
    fn set_attributes(
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

    /// Makes and opens a file, and replies.
    pub(super) fn create_and_reply(
        &self,
        caller: &Caller,
        (parent, name): NameIn<'_>,
        flags: i32,
        mode: (u32, u32),
        reply: ReplyCreate,
    ) {
        let _charged = charging::charge_to(caller.charged_user());
        let created = self.change(format_args!("create"), caller, (parent, name), || {
            let register = |file: BorrowedFd<'_>| reply.open_backing(file);
            let parent = self.node(parent)?;
            self.create_file(caller, &parent, name, flags, mode, register)
        });
        if let Ok((entry, _)) = &created {
            self.surplus.note(&self.namespace, parent, name, entry);
        }
        let node = created.as_ref().ok().map(|(entry, _)| entry.node.clone());
        reply::create(reply, created);
        if let Some(node) = node {
            self.created(&node);
        }
    }

    /// Makes and opens a file; `register` registers it for passthrough.
    fn create_file(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        flags: i32,
        (mode, umask): (u32, u32),
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<BackingId>,
    ) -> ErrnoResult<(Entry, OpenFile)> {
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
        let made = Some((file, deposit));
        let opened = self.open_file(caller, &entry.node, made, flags, register);
        Ok((entry, opened.map_err(|blocked| blocked.errno())?))
    }

    /// Opens a file, or takes one that has just been made. If a lease blocks it, nothing has changed.
    fn open_file(
        &self,
        caller: &Caller,
        node: &Arc<Node>,
        made: Option<OpenedFile>,
        flags: i32,
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<BackingId>,
    ) -> Result<OpenFile, Blocked> {
        let access = OFlags::from_bits_retain(flags as u32) & OFlags::RWMODE;
        let is_made = made.is_some();
        if !is_made {
            self.handles.check(caller.uid)?;
        }
        let Some(real) = &node.real else {
            return Ok(self.open_virtual(caller, node, access)?);
        };
        let (_unleased, change) = self.begin_change(caller, node, flags, is_made)?;
        let (file, deposit) = match made {
            Some(made) => made,
            None => {
                let opened = self.open_content(caller, node, flags);
                (opened.map_err(Blocked::of)?, None)
            }
        };
        self.access_times.apply_to(&file);
        let routed = self.route(caller, node, &file, access, is_made, register);
        let file = Arc::new(file);
        real.file.note_opened(&file);
        let handle = Handle::File {
            file,
            writable: access != OFlags::RDONLY,
            mappable: access == OFlags::RDWR,
            // The thread may have ended by then, and its number may be another's.
            opener: Caller { pid: 0, ..*caller },
            node: Arc::clone(node),
            deposit,
            change: parking_lot::Mutex::new(change),
            closed: parking_lot::Mutex::new(None),
            backing: routed.backing.clone(),
            mapping: routed.mapping,
        };
        Ok(OpenFile {
            handle: self.handles.add(caller.uid, handle),
            flags: routed.flags,
            backing: routed.backing,
        })
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
        if node.learnt.sidecar_of().is_none() || flags & libc::O_ACCMODE == libc::O_RDONLY {
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
        caller: &Caller,
        node: &Arc<Node>,
        file: &OwnedFd,
        access: OFlags,
        is_made: bool,
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<BackingId>,
    ) -> Routed {
        // Found as the daemon: the caller may not pass through the store to it.
        let without = self.access_times.without(file.as_fd());
        let register = |file: BorrowedFd<'_>| register(without.as_ref().map_or(file, AsFd::as_fd));
        let file = file.as_fd();
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
            self.invalidate_attributes(node);
        }
    }

    fn invalidate_attributes(&self, node: &Node) {
        self.invalidator
            .invalidate(vec![Stale::Attributes(node.id)]);
    }

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

    /// After the last process has closed a file: removes its handle, which the caller drops after the reply.
    /// A sidecar may have been written through a mapping after it was closed.
    pub(super) fn release_file(
        &self,
        caller: &Caller,
        handle: FileHandle,
    ) -> (ErrnoResult<()>, Option<Arc<Handle>>) {
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

    /// Opens a directory. The kernel may cache the listing of one inside an item: it drops the listing when
    /// it changes the directory itself, and when `invalidator` says so.
    fn open_directory(&self, caller: &Caller, node: Arc<Node>) -> ErrnoResult<OpenFile> {
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
