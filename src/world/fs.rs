//! The FUSE adapter. A request that needs nobody's answer is answered at once; any other one waits in a task, so that no
//! thread waits for the network.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    AccessFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::runtime::Handle;

use crate::formats::inventory::EntryKind;
use crate::world::namespace::{Listed, Namespace, Opened, target_of};
use crate::world::nodes::{Inside, Node, NodeKind};
use crate::world::trouble::Trouble;

/// How long the kernel keeps names and attributes. What changes earlier is made stale.
const KEPT: Duration = Duration::from_secs(60);
/// The same for a link or a text that a modifier leads to.
const KEPT_RELATED: Duration = Duration::from_secs(1);
const GENERATION: Generation = Generation(0);
/// The size of a block, in bytes.
const BLOCK: u32 = 4096;
/// The largest read, in bytes.
const LARGEST_READ: u32 = 1 << 20;

/// What a process has opened.
#[derive(Clone, Debug)]
enum Open {
    File(Opened),
    Directory(Arc<Directory>),
}

/// An open directory: its entries do not change while it is read.
#[derive(Debug)]
struct Directory {
    id: u64,
    entries: Vec<Listed>,
}

/// The mounted filesystem.
#[derive(Debug)]
pub(crate) struct WorldFs {
    inner: Arc<Inner>,
    handle: Handle,
    at_end: fn(),
}

#[derive(Debug)]
struct Inner {
    namespace: Arc<Namespace>,
    open: Mutex<HashMap<u64, Open>>,
    last: AtomicU64,
    owner: (u32, u32),
    since: SystemTime,
}

fn errno(trouble: &Trouble) -> fuser::Errno {
    fuser::Errno::from_i32(trouble.errno().raw_os_error())
}

fn code(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

impl WorldFs {
    /// The filesystem of a namespace. Requests that wait do so in this runtime; `at_end` is called when the kernel has
    /// ended the session.
    pub(crate) fn new(namespace: Arc<Namespace>, handle: Handle, at_end: fn()) -> WorldFs {
        let owner = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        WorldFs {
            inner: Arc::new(Inner {
                namespace,
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

impl Inner {
    fn node(&self, number: INodeNo) -> Result<Arc<Node>, fuser::Errno> {
        let node = self.namespace.nodes.get(number.0);
        node.ok_or_else(|| code(Errno::STALE))
    }

    fn keep(&self, open: Open) -> FileHandle {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.lock().insert(number, open);
        FileHandle(number)
    }

    fn opened(&self, handle: FileHandle) -> Option<Open> {
        self.open.lock().get(&handle.0).cloned()
    }

    fn attributes(&self, id: u64, kind: &NodeKind) -> FileAttr {
        let of = |kind, perm, size: u64, links| FileAttr {
            ino: INodeNo(id),
            size,
            blocks: size.div_ceil(512),
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: links,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        };
        match kind {
            // They have no entries that anybody could list.
            NodeKind::Root | NodeKind::Level(_) | NodeKind::Prefix(_) => {
                of(FileType::Directory, 0o111, 0, 2)
            }
            NodeKind::Link(target) => of(FileType::Symlink, 0o777, target.len() as u64, 1),
            NodeKind::Text(text) => of(FileType::RegularFile, 0o444, text.len() as u64, 1),
            NodeKind::Inside(inside) => {
                let entry = &inside.entry;
                let (kind, size) = match &entry.kind {
                    EntryKind::Directory => (FileType::Directory, 0),
                    EntryKind::File(file) => (FileType::RegularFile, file.size),
                    EntryKind::Text(text) => (FileType::RegularFile, text.len() as u64),
                    EntryKind::Link(_) => {
                        let length = target_of(inside).map_or(0, |target| target.len());
                        (FileType::Symlink, length as u64)
                    }
                    EntryKind::Fifo => (FileType::NamedPipe, 0),
                    EntryKind::Socket => (FileType::Socket, 0),
                };
                let modified = time(entry.modified);
                FileAttr {
                    atime: modified,
                    mtime: modified,
                    ctime: modified,
                    ..of(kind, entry.mode, size, inside.links)
                }
            }
        }
    }

    fn lifetime(kind: &NodeKind) -> Duration {
        match kind {
            NodeKind::Link(_) | NodeKind::Text(_) => KEPT_RELATED,
            _ => KEPT,
        }
    }

    fn reply_entry(&self, reply: ReplyEntry, found: &Result<Arc<Node>, Trouble>) {
        match found {
            Ok(node) => {
                let attr = self.attributes(node.id, &node.kind);
                reply.entry(&Inner::lifetime(&node.kind), &attr, GENERATION);
            }
            Err(trouble) => {
                log::debug!("a lookup: {trouble}");
                reply.error(errno(trouble));
            }
        }
    }

    /// The node as it is now: a directory may have other entries and times than when it was looked up.
    fn current(&self, node: &Arc<Node>) -> Result<NodeKind, Trouble> {
        let NodeKind::Inside(found) = &node.kind else {
            return Ok(node.kind.clone());
        };
        if found.entry.kind != EntryKind::Directory {
            return Ok(node.kind.clone());
        }
        let item = found.slot.item().ok_or(Trouble::Changed)?;
        let position = item.inventory.position(&found.entry.path);
        let position = position.ok_or(Trouble::Changed)?;
        let entry = item.inventory.entry(position).clone();
        if entry.kind != EntryKind::Directory {
            return Err(Trouble::Changed);
        }
        let (_, links) = item.inventory.first_name(position);
        Ok(NodeKind::Inside(Inside {
            entry: Arc::new(entry),
            item,
            links,
            ..found.clone()
        }))
    }
}

fn time((seconds, nanoseconds): (i64, u32)) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds.into());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    at.and_then(|at| at.checked_add(part)).unwrap_or(UNIX_EPOCH)
}

fn type_of(kind: &NodeKind) -> FileType {
    match kind {
        NodeKind::Link(_) => FileType::Symlink,
        NodeKind::Text(_) => FileType::RegularFile,
        NodeKind::Inside(inside) => match inside.entry.kind {
            EntryKind::Directory => FileType::Directory,
            EntryKind::File(_) | EntryKind::Text(_) => FileType::RegularFile,
            EntryKind::Link(_) => FileType::Symlink,
            EntryKind::Fifo => FileType::NamedPipe,
            EntryKind::Socket => FileType::Socket,
        },
        _ => FileType::Directory,
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
        Ok(())
    }

    fn destroy(&mut self) {
        (self.at_end)();
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _context = self.handle.enter();
        let parent = match self.inner.node(parent) {
            Ok(parent) => parent,
            Err(error) => return reply.error(error),
        };
        if let Some(found) = self.inner.namespace.lookup_now(&parent, name) {
            return self.inner.reply_entry(reply, &found);
        }
        let (inner, name) = (Arc::clone(&self.inner), name.to_owned());
        self.handle.spawn(async move {
            let found = inner.namespace.lookup(&parent, &name).await;
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
        match self.inner.node(number) {
            Ok(node) => match self.inner.current(&node) {
                Ok(kind) => reply.attr(&KEPT, &self.inner.attributes(node.id, &kind)),
                Err(trouble) => reply.error(errno(&trouble)),
            },
            Err(error) => reply.error(error),
        }
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

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let flags = OFlags::from_bits_retain(flags.0.cast_unsigned());
        if flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC) {
            return reply.error(code(Errno::ROFS));
        }
        match self.inner.node(number) {
            Ok(node) => match self.inner.namespace.open(&node) {
                // A node has one content, so that what the kernel has read of it stays right.
                Ok(opened) => {
                    let handle = self.inner.keep(Open::File(opened));
                    reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE);
                }
                Err(trouble) => reply.error(errno(&trouble)),
            },
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let file = match self.inner.opened(handle) {
            Some(Open::File(Opened::Text(text))) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(text.len());
                let end = start.saturating_add(size as usize).min(text.len());
                return reply.data(&text[start..end]);
            }
            Some(Open::File(Opened::File(file))) => file,
            _ => return reply.error(code(Errno::BADF)),
        };
        let content = &self.inner.namespace.content;
        if let Some(bytes) = content.now(&file, offset, size) {
            return reply.data(&bytes);
        }
        let content = Arc::clone(content);
        self.handle.spawn(async move {
            match content.read(&file, offset, size).await {
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
        reply.ok();
        drop(closed);
    }

    fn opendir(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let _context = self.handle.enter();
        let node = match self.inner.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        match self.inner.namespace.list(&node) {
            Ok(entries) => {
                let directory = Directory {
                    id: node.id,
                    entries,
                };
                let handle = self.inner.keep(Open::Directory(Arc::new(directory)));
                reply.opened(handle, FopenFlags::empty());
            }
            Err(trouble) => reply.error(errno(&trouble)),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(Open::Directory(directory)) = self.inner.opened(handle) else {
            return reply.error(code(Errno::BADF));
        };
        for (at, name, listed) in rows(&directory, offset) {
            let (number, kind) = match listed {
                Some(listed) => {
                    let known = self.inner.namespace.nodes.number(&listed.kind);
                    // Any number but 0: the entry has none yet.
                    (known.unwrap_or(u64::MAX), type_of(&listed.kind))
                }
                None => (directory.id, FileType::Directory),
            };
            if reply.add(INodeNo(number), at, kind, OsStr::from_bytes(name)) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let Some(Open::Directory(directory)) = self.inner.opened(handle) else {
            return reply.error(code(Errno::BADF));
        };
        let nodes = &self.inner.namespace.nodes;
        for (at, name, listed) in rows(&directory, offset) {
            let name = OsStr::from_bytes(name);
            let is_full = match listed {
                Some(listed) => {
                    let node = nodes.remember(listed.kind.clone());
                    let attr = self.inner.attributes(node.id, &node.kind);
                    let is_full = reply.add(INodeNo(node.id), at, name, &KEPT, &attr, GENERATION);
                    if is_full {
                        nodes.forget(node.id, 1);
                    }
                    is_full
                }
                // The kernel counts no lookup of these.
                None => {
                    let attr = self.inner.attributes(directory.id, &NodeKind::Root);
                    let ino = INodeNo(directory.id);
                    reply.add(ino, at, name, &Duration::ZERO, &attr, GENERATION)
                }
            };
            if is_full {
                break;
            }
        }
        reply.ok();
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
        _request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
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

/// The entries of a directory from an offset on, each with the offset of the next one.
fn rows(directory: &Directory, offset: u64) -> impl Iterator<Item = (u64, &[u8], Option<&Listed>)> {
    let own = [(&b"."[..], None), (b"..", None)].into_iter();
    let entries = directory.entries.iter();
    let entries = entries.map(|listed| (listed.name.as_slice(), Some(listed)));
    let all = own.chain(entries).zip(1..);
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    all.skip(skipped)
        .map(|((name, listed), at)| (at, name, listed))
}
