//! The FUSE adapter. A request that needs no answer of a server is answered at once; any other one waits in a task, so that no
//! thread waits for the network.
//!
//! - [`attributes`]: the attributes of a node, and how long the kernel keeps them.
//! - [`listing`]: listing open directories.

mod attributes;
mod listing;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use fuser::{
    AccessFlags, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::runtime::Handle;

use crate::world::error::ForeignError;
use crate::world::mount::backing::{CachedFileBackings, ReadRoute};
use crate::world::mount::namespace::{ForeignEntries, ForeignTree, OpenedContent, STATUS};
use crate::world::mount::nodes::{ForeignNode, ForeignNodeKind};
use crate::world::mount::turns::ReadTurns;
use crate::world::mount::waiting;
use crate::world::remote::content::RemoteFile;
use crate::world::remote::requests::host;
use listing::{ForeignDirectory, ListingReply};

const GENERATION: Generation = Generation(0);
/// The size of a block, in bytes.
const BLOCK: u32 = 4096;
/// The number of reads ahead that the kernel sends before it waits for their answers, those of all users together:
/// `ReadTurns` divide what they take.
const MOST_BACKGROUND: u16 = 4096;
/// The largest read, in bytes.
const LARGEST_READ: u32 = 1 << 20;

/// A file or directory that a process has opened.
#[derive(Clone, Debug)]
enum OpenForeign {
    Text(Arc<[u8]>),
    File(Arc<RemoteFile>, u64),
    Directory(Arc<ForeignDirectory>),
}

/// The mounted filesystem.
pub(crate) struct WorldFs {
    inner: Arc<WorldInner>,
    handle: Handle,
    at_end: AtEnd,
}

/// Called when the kernel has ended the session.
pub(crate) type AtEnd = Box<dyn Fn() + Send + Sync>;

impl std::fmt::Debug for WorldFs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorldFs").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct WorldInner {
    namespace: Arc<ForeignTree>,
    backings: CachedFileBackings,
    turns: ReadTurns,
    open: Mutex<HashMap<u64, OpenForeign>>,
    last: AtomicU64,
    owner: (u32, u32),
    since: SystemTime,
}

fn errno(trouble: &ForeignError) -> fuser::Errno {
    fuser::Errno::from_i32(trouble.errno().raw_os_error())
}

fn code(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

impl WorldFs {
    /// The filesystem of a namespace. Requests that wait do so in this runtime; `at_end` is called when the kernel has
    /// ended the session.
    pub(crate) fn new(namespace: Arc<ForeignTree>, handle: Handle, at_end: AtEnd) -> WorldFs {
        let owner = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        WorldFs {
            inner: Arc::new(WorldInner {
                namespace,
                backings: CachedFileBackings::new(),
                turns: ReadTurns::default(),
                open: Mutex::default(),
                last: AtomicU64::new(0),
                owner,
                since: SystemTime::now(),
            }),
            handle,
            at_end,
        }
    }
}

impl WorldInner {
    fn node(&self, number: INodeNo) -> Result<Arc<ForeignNode>, fuser::Errno> {
        let node = self.namespace.nodes.get(number.0);
        node.ok_or_else(|| code(Errno::STALE))
    }

    fn note_backings(&self) {
        let count = self.backings.is_on().then(|| self.backings.count());
        self.namespace.read_by_kernel(count);
    }

    fn keep(&self, open: OpenForeign) -> FileHandle {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.lock().insert(number, open);
        FileHandle(number)
    }

    fn opened(&self, handle: FileHandle) -> Option<OpenForeign> {
        self.open.lock().get(&handle.0).cloned()
    }

    fn reply_entry(&self, reply: ReplyEntry, found: &Result<Arc<ForeignNode>, ForeignError>) {
        match found {
            Ok(node) => {
                let attr = self.attributes(node.id, &node.kind);
                reply.entry(&self.lifetime(&node.kind), &attr, GENERATION);
            }
            Err(trouble) => {
                log::debug!("a lookup: {trouble}");
                reply.error(errno(trouble));
            }
        }
    }

    fn reply_open(
        &self,
        reply: ReplyOpen,
        node: &ForeignNode,
        opened: Result<OpenedContent, ForeignError>,
    ) {
        // A node has one content, so that what the kernel has read of it stays right.
        let cached = FopenFlags::FOPEN_KEEP_CACHE;
        let file = match opened {
            Ok(OpenedContent::File(file)) => file,
            Ok(OpenedContent::Text(text)) => {
                return reply.opened(self.keep(OpenForeign::Text(text)), cached);
            }
            Err(trouble) => return reply.error(errno(&trouble)),
        };
        let content = &self.namespace.content;
        let route = self.backings.open(
            node.id,
            || content.whole(&file),
            |file| reply.open_backing(file),
        );
        self.note_backings();
        if matches!(route, ReadRoute::Refused) {
            return reply.error(code(Errno::IO));
        }
        let handle = self.keep(OpenForeign::File(file, node.id));
        match route {
            ReadRoute::Kernel(backing) => {
                reply.opened_passthrough(handle, FopenFlags::empty(), &backing.id);
            }
            ReadRoute::Cached | ReadRoute::Refused => reply.opened(handle, cached),
        }
    }

    fn reply_opened(
        &self,
        reply: ReplyOpen,
        id: u64,
        entries: Result<ForeignEntries, ForeignError>,
    ) {
        match entries {
            Ok(entries) => {
                let directory = Arc::new(ForeignDirectory::new(id, entries));
                let handle = self.keep(OpenForeign::Directory(directory));
                reply.opened(handle, FopenFlags::empty());
            }
            Err(trouble) => {
                log::debug!("a listing: {trouble}");
                reply.error(errno(&trouble));
            }
        }
    }

    fn reply_attributes(&self, reply: ReplyAttr, node: &ForeignNode, kind: &ForeignNodeKind) {
        match WorldInner::current(kind) {
            Ok(kind) => {
                let kept = self.lifetime(&kind);
                reply.attr(&kept, &self.attributes(node.id, &kind));
            }
            Err(trouble) => reply.error(errno(&trouble)),
        }
    }
}

impl WorldFs {
    fn list_directory(&self, handle: FileHandle, offset: u64, reply: ListingReply) {
        let Some(OpenForeign::Directory(directory)) = self.inner.opened(handle) else {
            return reply.error(code(Errno::BADF));
        };
        let Some(reply) = self.inner.list_now(&directory, offset, reply) else {
            return;
        };
        let inner = Arc::clone(&self.inner);
        self.handle.spawn(async move {
            inner.list_more(&directory, offset, reply).await;
        });
    }
}

impl Filesystem for WorldFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let wanted = InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_ASYNC_READ;
        if let Err(missing) = config.add_capabilities(wanted) {
            let _ = config.add_capabilities(wanted & !missing);
        }
        let _ = config.set_max_write(LARGEST_READ);
        let _ = config.set_max_readahead(LARGEST_READ);
        let _ = config.set_max_background(MOST_BACKGROUND);
        let _ = config.set_congestion_threshold(MOST_BACKGROUND);
        let is_offered = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(1).is_ok();
        let backings = &self.inner.backings;
        if !is_offered {
            backings.give_up("this kernel has no FUSE passthrough (Linux 6.9)");
        }
        self.inner.note_backings();
        Ok(())
    }

    fn destroy(&mut self) {
        (self.at_end)();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _context = self.handle.enter();
        let parent = match self.inner.node(parent) {
            Ok(parent) => parent,
            Err(error) => return reply.error(error),
        };
        if let Some(found) = self.inner.namespace.lookup_now(&parent, name) {
            return self.inner.reply_entry(reply, &found);
        }
        let (inner, name) = (Arc::clone(&self.inner), name.to_owned());
        let thread = request.pid();
        self.handle.spawn(async move {
            let found = inner.namespace.lookup(&parent, &name);
            let found = waiting::for_thread(thread, found).await;
            inner.reply_entry(reply, &found);
        });
    }

    fn forget(&self, _request: &Request, number: INodeNo, lookups: u64) {
        self.inner.namespace.nodes.forget(number.0, lookups);
    }

    fn getattr(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        let node = match self.inner.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        if !self.inner.namespace.is_unknown(&node.kind) {
            return self.inner.reply_attributes(reply, &node, &node.kind);
        }
        let inner = Arc::clone(&self.inner);
        self.handle.spawn(async move {
            match inner.namespace.learn(node.kind.clone()).await {
                Ok(kind) => inner.reply_attributes(reply, &node, &kind),
                Err(trouble) => reply.error(errno(&trouble)),
            }
        });
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        match self.inner.node(number) {
            Ok(node) => match self.inner.namespace.target(&node) {
                Ok(target) => reply.data(&target),
                Err(trouble) => reply.error(errno(&trouble)),
            },
            Err(error) => reply.error(error),
        }
    }

    fn access(&self, _request: &Request, _number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        // The kernel checks the permissions.
        if mask.contains(AccessFlags::W_OK) {
            reply.error(code(Errno::ROFS));
        } else {
            reply.ok();
        }
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let flags = OFlags::from_bits_retain(flags.0.cast_unsigned());
        if flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC) {
            return reply.error(code(Errno::ROFS));
        }
        let node = match self.inner.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        let _context = self.handle.enter();
        if let Some(opened) = self.inner.namespace.open_now(&node) {
            return self.inner.reply_open(reply, &node, opened);
        }
        let (inner, thread) = (Arc::clone(&self.inner), request.pid());
        self.handle.spawn(async move {
            let ForeignNodeKind::Text(text) = &node.kind else {
                return reply.error(code(Errno::INVAL));
            };
            let opened = waiting::for_thread(thread, inner.namespace.text(text)).await;
            inner.reply_open(reply, &node, opened);
        });
    }

    fn read(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let file = match self.inner.opened(handle) {
            Some(OpenForeign::Text(text)) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(text.len());
                let end = start.saturating_add(size as usize).min(text.len());
                return reply.data(&text[start..end]);
            }
            Some(OpenForeign::File(file, _)) => file,
            _ => return reply.error(code(Errno::BADF)),
        };
        let content = &self.inner.namespace.content;
        if let Some(bytes) = content.now(&file, offset, size) {
            return reply.data(&bytes);
        }
        let (content, thread) = (Arc::clone(content), request.pid());
        let (inner, user) = (Arc::clone(&self.inner), request.uid());
        self.handle.spawn(async move {
            let bytes = async {
                let _turn = inner.turns.take(user, host(&file.url)).await;
                content.read(&file, offset, size).await
            };
            match waiting::for_thread(thread, bytes).await {
                Ok(bytes) => reply.data(&bytes),
                Err(trouble) => reply.error(errno(&trouble)),
            }
        });
    }

    fn release(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let closed = self.inner.open.lock().remove(&handle.0);
        if let Some(OpenForeign::File(file, node)) = closed {
            self.inner.backings.close(node);
            self.inner.note_backings();
            let namespace = &self.inner.namespace;
            // The next open may find it complete.
            if namespace.is_read_by_kernel() && file.is_read() {
                let content = Arc::clone(&namespace.content);
                self.handle.spawn_blocking(move || content.assemble(&file));
            }
        }
        reply.ok();
    }

    fn opendir(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let _context = self.handle.enter();
        let node = match self.inner.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        if let Some(entries) = self.inner.namespace.list_now(&node) {
            return self.inner.reply_opened(reply, node.id, entries);
        }
        let inner = Arc::clone(&self.inner);
        self.handle.spawn(async move {
            let entries = inner.namespace.list(&node).await;
            inner.reply_opened(reply, node.id, entries);
        });
    }

    fn readdir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        self.list_directory(handle, offset, ListingReply::Names(reply));
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.list_directory(handle, offset, ListingReply::Attributes(reply));
    }

    fn releasedir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let closed = self.inner.open.lock().remove(&handle.0);
        reply.ok();
        drop(closed);
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        let usage = self.inner.namespace.cache.usage();
        let block = u64::from(BLOCK);
        let (all, free) = (
            usage.limit / block,
            usage.limit.saturating_sub(usage.bytes) / block,
        );
        reply.statfs(all, free, free, usage.files as u64, 0, BLOCK, 255, BLOCK);
    }

    fn getxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        // Where others may access the mount, they need not know what its user does.
        let is_user = [0, self.inner.owner.0].contains(&request.uid());
        if name.as_bytes() == STATUS.as_bytes() && !is_user {
            return reply.error(code(Errno::ACCESS));
        }
        let value = match self.inner.node(number) {
            Ok(node) => self.inner.namespace.attribute(&node, name),
            Err(error) => return reply.error(error),
        };
        match value {
            None => reply.error(code(Errno::NODATA)),
            Some(value) if size == 0 => {
                reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX));
            }
            Some(value) if value.len() > size as usize => reply.error(code(Errno::RANGE)),
            Some(value) => reply.data(&value),
        }
    }

    fn listxattr(&self, _request: &Request, _number: INodeNo, size: u32, reply: ReplyXattr) {
        if size == 0 {
            reply.size(0);
        } else {
            reply.data(&[]);
        }
    }
}
