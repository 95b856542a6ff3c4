//! fuser's trait, request by request: name it, call one function, answer once.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier,
    RenameFlags, ReplyAttr, ReplyBmap, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;

use super::convert::{caller, errno, file_attr, file_type, new_time};
use super::handles::Handle;
use super::leases::Hindrance;
use super::{Ibifs, LASTING, Name, Opened};
use crate::fuse::attr::Attr;
use crate::fuse::inode::{Kind, Node, NodeId};
use crate::fuse::inside::{self, Change, New, Outcome, Where};
use crate::fuse::namespace::{Entry, Made, Stale};
use crate::os::charging;

/// One generation: a node's number is not given to another file while the kernel knows it.
const GENERATION: Generation = Generation(0);

fn answer(reply: ReplyEmpty, outcome: Outcome<()>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn answer_entry(reply: ReplyEntry, outcome: Outcome<Entry>) {
    match outcome {
        Ok(entry) => {
            let attr = file_attr(entry.node.id.0, &entry.attr);
            let lifetime = met_lifetime(&entry);
            reply.entry_with_ttls(&lifetime, &name_lifetime(&entry), &attr, GENERATION);
        }
        Err(error) => reply.error(errno(error)),
    }
}

fn name_lifetime(entry: &Entry) -> Duration {
    if entry.lasting {
        LASTING
    } else {
        Duration::ZERO
    }
}

/// The attributes that come with a name live no time at all where `stat` is told another number than the
/// node's: the kernel then asks for them, once, and the number is in that answer.
fn met_lifetime(entry: &Entry) -> Duration {
    if entry.node.id.0 == entry.node.st_ino {
        attribute_lifetime(&entry.node, &entry.attr)
    } else {
        Duration::ZERO
    }
}

/// The kernel must not remember what changes without its noticing: a write takes set-id bits away,
/// and one through a mapping changes times and blocks.
fn attribute_lifetime(node: &Node, attr: &Attr) -> Duration {
    let set_id = attr.kind == FileType::RegularFile && attr.permissions & 0o6000 != 0;
    // Its size is known when it is made.
    let is_made = matches!(node.kind, Kind::Generated(_));
    if set_id || is_made || node.learnt.may_be_mapped() {
        Duration::ZERO
    } else {
        LASTING
    }
}

/// Where one lifetime goes for both.
fn lifetime(entry: &Entry) -> Duration {
    name_lifetime(entry).min(met_lifetime(entry))
}

fn answer_attr(reply: ReplyAttr, outcome: Outcome<(Arc<Node>, Attr)>) {
    match outcome {
        Ok((node, attr)) => {
            let lifetime = attribute_lifetime(&node, &attr);
            reply.attr(&lifetime, &file_attr(node.st_ino, &attr));
        }
        Err(error) => reply.error(errno(error)),
    }
}

fn answer_open(reply: ReplyOpen, outcome: Outcome<Opened>) {
    match outcome {
        Ok(opened) => match &opened.backing {
            Some(backing) => reply.opened_passthrough(opened.handle, opened.flags, &backing.id),
            None => reply.opened(opened.handle, opened.flags),
        },
        Err(error) => reply.error(errno(error)),
    }
}

fn answer_bytes(reply: ReplyXattr, size: u32, outcome: Outcome<Vec<u8>>) {
    match outcome {
        Ok(bytes) if size == 0 => reply.size(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
        Ok(bytes) if bytes.len() > size as usize => reply.error(errno(Errno::RANGE)),
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(errno(error)),
    }
}

impl Filesystem for Ibifs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let wanted = InitFlags::FUSE_POSIX_ACL
            | InitFlags::FUSE_DONT_MASK
            | InitFlags::FUSE_ATOMIC_O_TRUNC
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_HAS_IOCTL_DIR
            // With nodes only for those who look at them, see `readers`.
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            // A cached listing that was told while it changed is known by the directory's time.
            | InitFlags::FUSE_AUTO_INVAL_DATA
            // Else the kernel asks before each write whether there is a capability to take away.
            // What it leaves to us instead is done in `inside`, and by `backing` for passthrough.
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        if let Err(missing) = config.add_capabilities(wanted) {
            log::info!("this kernel's FUSE lacks {missing:?}");
            let _ = config.add_capabilities(wanted & !missing);
        }
        // A larger request carries no more per copy and costs each thread's buffer.
        let _ = config.set_max_write(1 << 20);
        let _ = config.set_max_readahead(1 << 20);
        let offered = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(1).is_ok();
        if !offered {
            self.backings
                .give_up("this kernel has no FUSE passthrough (Linux 6.9)");
        }
        self.namespace.root()?;
        Ok(())
    }

    fn destroy(&mut self) {
        (self.at_end)();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _turn = self.crew.turn();
        let found = self
            .node(parent)
            .and_then(|parent| self.namespace.lookup(&caller(request), &parent, name));
        if found
            .as_ref()
            .is_ok_and(|found| found.attr.kind != FileType::Directory)
        {
            self.readers.looks(request.pid(), NodeId(parent.0));
        }
        answer_entry(reply, found);
    }

    fn forget(&self, _request: &Request, number: INodeNo, lookups: u64) {
        self.forget_node(number, lookups);
        self.crew.has_done_little();
    }

    fn getattr(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        let _turn = self.crew.turn();
        let node = match self.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        if let Kind::Generated(asked) = node.kind {
            let (inner, caller) = (Arc::clone(&self.inner), caller(request));
            let job = move |turn: Outcome<()>| {
                let told = turn.and_then(|()| inner.namespace.tell(&caller, asked));
                let attr = told.and_then(|told| inner.namespace.told_attributes(&told));
                answer_attr(reply, attr.map(|attr| (node, attr)));
            };
            return self.aside.run(caller.uid, Box::new(job));
        }
        let attr = self.namespace.attributes(&node);
        answer_attr(reply, attr.map(|attr| (node, attr)));
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _change_time: Option<SystemTime>,
        _backup_time: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let _turn = self.crew.turn();
        let change = Change {
            mode,
            uid,
            gid,
            size,
            accessed: accessed.map(new_time),
            modified: modified.map(new_time),
        };
        let caller = caller(request);
        let node = match self.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        let changed = match self.set_attributes(&caller, &node, handle, &change) {
            Err(Hindrance::Lease) => {
                let (inner, met) = (Arc::clone(&self.inner), Arc::clone(&node));
                let attempt = move || inner.open_content(&caller, &met, libc::O_WRONLY);
                let inner = Arc::clone(&self.inner);
                let next = move |unleased: Outcome<OwnedFd>| {
                    let changed = unleased.and_then(|_unleased| {
                        inner
                            .set_attributes(&caller, &node, handle, &change)
                            .map_err(|hindrance| hindrance.errno())
                    });
                    answer_attr(reply, changed.map(|attr| (node, attr)));
                };
                return self
                    .leases
                    .wait(caller.uid, Box::new(attempt), Box::new(next));
            }
            changed => changed.map_err(|hindrance| hindrance.errno()),
        };
        answer_attr(reply, changed.map(|attr| (node, attr)));
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        let _turn = self.crew.turn();
        match self
            .node(number)
            .and_then(|node| self.namespace.read_link(&node))
        {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let made = self.node(parent).and_then(|parent| {
            if parent.is_in_item() {
                self.make_inside(&caller, &parent, name, New::Node(device), mode, umask)
            } else {
                Err(Errno::PERM)
            }
        });
        answer_entry(reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        let made = self.node(parent).and_then(|parent| {
            if parent.is_in_item() {
                self.make_inside(&caller, &parent, name, New::Directory, mode, umask)
                    .map(Made::Done)
            } else {
                self.namespace
                    .make_directory(&caller, &parent, name, mode, umask)
            }
        });
        match made {
            Ok(Made::Done(entry)) => answer_entry(reply, self.settle(Ok(entry))),
            Err(error) => answer_entry(reply, Err(error)),
            Ok(Made::Minting(minting)) => {
                let (namespace, mirror) = (Arc::clone(&self.namespace), self.mirror.clone());
                // Where no thread is to be had the reply is dropped, which answers EIO.
                let spawned =
                    std::thread::Builder::new()
                        .name("mint".to_owned())
                        .spawn(move || {
                            let _charged = charging::charge_to(caller.charged_user());
                            let minted = namespace.mint(&caller, &minting);
                            mirror.forget(namespace.stale_items());
                            answer_entry(reply, minted);
                        });
                if let Err(error) = spawned {
                    log::error!("cannot mint: {error}");
                }
            }
        }
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _turn = self.crew.turn();
        let removed = self
            .node(parent)
            .and_then(|parent| self.remove(&caller(request), &parent, name, false));
        answer(reply, removed);
        self.mirror.answered();
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _turn = self.crew.turn();
        let removed = self
            .node(parent)
            .and_then(|parent| self.remove(&caller(request), &parent, name, true));
        answer(reply, removed);
        self.mirror.answered();
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        let target = target.as_os_str().as_bytes();
        let made = self.node(parent).and_then(|parent| {
            if parent.is_in_item() {
                self.make_inside(&caller, &parent, name, New::Link(target), 0o777, 0)
            } else {
                self.settle(self.namespace.link_beside(&caller, &parent, name, target))
            }
        });
        answer_entry(reply, made);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        let renamed = self.node(parent).and_then(|parent| {
            let new_parent = self.node(new_parent)?;
            self.rename_name(&caller, &parent, name, &new_parent, new_name, flags.bits())
        });
        answer(reply, renamed);
        self.mirror.answered();
    }

    fn link(
        &self,
        request: &Request,
        number: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        let _turn = self.crew.turn();
        let made = self.node(number).and_then(|node| {
            let parent = self.node(new_parent)?;
            self.make_hard_link(&caller(request), &node, &parent, new_name)
        });
        answer_entry(reply, made);
        self.mirror.answered();
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let _turn = self.crew.turn();
        let (caller, flags) = (caller(request), flags.0);
        let node = match self.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        if let Kind::Generated(_) = node.kind {
            let inner = Arc::clone(&self.inner);
            let job = move |turn: Outcome<()>| {
                let opened = turn.and_then(|()| {
                    let register = |file: BorrowedFd<'_>| reply.open_backing(file);
                    inner
                        .open_file(&caller, &node, None, flags, register)
                        .map_err(|hindrance| hindrance.errno())
                });
                answer_open(reply, opened);
            };
            return self.aside.run(caller.uid, Box::new(job));
        }
        let register = |file: BorrowedFd<'_>| reply.open_backing(file);
        let opened = match self.open_file(&caller, &node, None, flags, register) {
            Err(Hindrance::Lease) if flags & libc::O_NONBLOCK == 0 => {
                let (inner, met) = (Arc::clone(&self.inner), Arc::clone(&node));
                let attempt = move || {
                    inner
                        .open_unleased(&caller, &met, flags)
                        .map_err(|hindrance| hindrance.errno())
                };
                let inner = Arc::clone(&self.inner);
                let next = move |unleased: Outcome<OwnedFd>| {
                    let opened = unleased.and_then(|_unleased| {
                        let register = |file: BorrowedFd<'_>| reply.open_backing(file);
                        inner
                            .open_file(&caller, &node, None, flags, register)
                            .map_err(|hindrance| hindrance.errno())
                    });
                    answer_open(reply, opened);
                };
                return self
                    .leases
                    .wait(caller.uid, Box::new(attempt), Box::new(next));
            }
            opened => opened.map_err(|hindrance| hindrance.errno()),
        };
        answer_open(reply, opened);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        let made = self.node(parent).and_then(|parent| {
            let (entry, file, held) =
                self.create_file(&caller, &parent, name, flags, mode, umask)?;
            let register = |file: BorrowedFd<'_>| reply.open_backing(file);
            let opened = self
                .open_file(&caller, &entry.node, Some((file, held)), flags, register)
                .map_err(|hindrance| hindrance.errno())?;
            Ok((entry, opened))
        });
        match made {
            Ok((entry, opened)) => {
                let attr = file_attr(entry.node.id.0, &entry.attr);
                let lifetime = lifetime(&entry);
                let (handle, flags) = (opened.handle, opened.flags);
                match &opened.backing {
                    Some(backing) => {
                        let id = &backing.id;
                        reply.created_passthrough(&lifetime, &attr, GENERATION, handle, flags, id);
                    }
                    None => reply.created(&lifetime, &attr, GENERATION, handle, flags),
                }
            }
            Err(error) => reply.error(errno(error)),
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
        let _turn = self.crew.turn();
        match self.read_file(handle, offset, size as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn write(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let _turn = self.crew.turn_to_write();
        // Pages of a mapping lie where they lie, whatever the descriptor was opened for.
        let is_page = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let place = if flags.0 & libc::O_APPEND != 0 && !is_page {
            Where::End
        } else {
            Where::At(offset)
        };
        let keeps_set_id = !write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let written = self.with_file_and_opener(handle, |file, opener| {
            // The kernel brings pages out in the name of nobody: whoever opened the file pays.
            let writer = if is_page { opener } else { caller(request) };
            inside::write_as(file, place, bytes, keeps_set_id, &writer)
        });
        match written {
            Ok(count) => reply.written(u32::try_from(count).unwrap_or(u32::MAX)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn flush(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        answer(reply, self.closed(&caller, handle));
    }

    fn release(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        // A sidecar may have been written through a mapping after it was closed.
        let closed = self.closed(&caller(request), handle);
        let handle = self.handles.remove(handle);
        if closed.is_ok()
            && let Some(Handle::File { change, .. }) = handle.as_deref()
            && let Some(change) = change.lock().take()
        {
            change.done();
        }
        // Nobody should wait for what is closed now.
        answer(reply, closed);
        drop(handle);
    }

    fn fsync(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        content_only: bool,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        let inner = Arc::clone(&self.inner);
        let job = move |turn: Outcome<()>| {
            let sync = |file: BorrowedFd<'_>| inside::sync(file, content_only);
            answer(reply, turn.and_then(|()| inner.with_file(handle, sync)));
        };
        self.slow.run(request.uid(), Box::new(job));
    }

    fn opendir(&self, request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let answer = |reply: ReplyOpen, opened: Outcome<(FileHandle, FopenFlags)>| match opened {
            Ok((handle, flags)) => reply.opened(handle, flags),
            Err(error) => reply.error(errno(error)),
        };
        let node = match self.node(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        if node.is_in_item() {
            return answer(reply, self.open_directory(&caller, node));
        }
        // Above the items all names are read at once, and there may be many.
        let inner = Arc::clone(&self.inner);
        let job = move |turn: Outcome<()>| {
            let opened = turn.and_then(|()| inner.open_directory(&caller, node));
            answer(reply, opened);
        };
        self.aside.run(caller.uid, Box::new(job));
    }

    fn readdir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let _turn = self.crew.turn();
        let listed = self.list(handle, offset, |_, name| {
            let number = INodeNo(name.number);
            reply.add(number, name.next, file_type(name.kind), name.name)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdirplus(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let add = |name: &Name<'_>, attr: &Attr, entry: Option<&Entry>| {
            // Of `.` and `..` the kernel takes the number alone.
            let number = entry.map_or(name.number, |entry| entry.node.id.0);
            let attr = file_attr(number, attr);
            let lifetime = entry.map_or(Duration::ZERO, lifetime);
            reply.add(attr.ino, name.next, name.name, &lifetime, &attr, GENERATION)
        };
        match self.list_with_nodes(&caller, NodeId(number.0), handle, offset, add) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn releasedir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        let handle = self.handles.remove(handle);
        reply.ok();
        drop(handle);
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        content_only: bool,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        let synced = match self.node(number) {
            Ok(node) if node.is_in_item() => {
                self.with_file(handle, |file| inside::sync(file, content_only))
            }
            Ok(node) if node.real.is_some() => node.file().and_then(|directory| {
                inside::sync(
                    inside::open_directory(directory.as_fd())?.as_fd(),
                    content_only,
                )
            }),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        answer(reply, synced);
    }

    fn statfs(&self, _request: &Request, number: INodeNo, reply: ReplyStatfs) {
        let _turn = self.crew.turn();
        let found = self.node(number).and_then(|node| match &node.real {
            Some(real) => inside::statistics(real.file.open()?.as_fd()),
            None => inside::statistics(self.namespace.archive().tree().root()),
        });
        match found {
            Ok(stat) => reply.statfs(
                stat.f_blocks,
                stat.f_bfree,
                stat.f_bavail,
                stat.f_files,
                stat.f_ffree,
                u32::try_from(stat.f_bsize).unwrap_or(4096),
                u32::try_from(stat.f_namemax).unwrap_or(255),
                u32::try_from(stat.f_frsize).unwrap_or(4096),
            ),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        let set = self
            .node(number)
            .and_then(|node| self.set_attribute(&caller, &node, name, value, flags));
        // Of EAGAIN the kernel makes EOPNOTSUPP here, after which a tool does without.
        let set = set.map_err(|error| match error {
            Errno::AGAIN => Errno::BUSY,
            error => error,
        });
        answer(reply, set);
    }

    fn getxattr(
        &self,
        _request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let _turn = self.crew.turn();
        let value = self
            .node(number)
            .and_then(|node| self.get_attribute(&node, name, size as usize));
        answer_bytes(reply, size, value);
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let _turn = self.crew.turn();
        let list = self.node(number).and_then(|node| match &node.real {
            Some(real) => {
                let file = real.file.open()?;
                inside::list_attributes(file.as_fd(), size as usize, &caller(request))
            }
            None => Ok(Vec::new()),
        });
        answer_bytes(reply, size, list);
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _turn = self.crew.turn();
        let removed = self
            .node(number)
            .and_then(|node| self.remove_attribute(&caller(request), &node, name));
        answer(reply, removed);
    }

    fn fallocate(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let _turn = self.crew.turn();
        let (inner, caller) = (Arc::clone(&self.inner), caller(request));
        let job = move |turn: Outcome<()>| {
            let allocate =
                |file: BorrowedFd<'_>| inside::allocate(file, mode, offset, length, &caller);
            answer(reply, turn.and_then(|()| inner.with_file(handle, allocate)));
        };
        self.slow.run(caller.uid, Box::new(job));
    }

    fn lseek(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let _turn = self.crew.turn();
        match self.with_file(handle, |file| inside::seek(file, offset, whence)) {
            Ok(position) => reply.offset(position),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        source: INodeNo,
        from_handle: FileHandle,
        from_offset: u64,
        _to: INodeNo,
        to_handle: FileHandle,
        to_offset: u64,
        length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let _turn = self.crew.turn();
        // The answer's count has 32 bits; whoever asks for more asks again.
        let length = usize::try_from(length.min(1 << 30)).unwrap_or(1 << 30);
        // The kernel does not know that the source is read.
        self.mirror
            .forget(vec![Stale::Attributes(NodeId(source.0))]);
        let (inner, caller) = (Arc::clone(&self.inner), caller(request));
        let job = move |turn: Outcome<()>| {
            let copied = turn.and_then(|()| {
                inner.with_file(from_handle, |from| {
                    inner.with_file(to_handle, |to| {
                        inside::copy_range(from, from_offset, to, to_offset, length, &caller)
                    })
                })
            });
            match copied {
                Ok(count) => reply.written(u32::try_from(count).unwrap_or(u32::MAX)),
                Err(error) => reply.error(errno(error)),
            }
        };
        self.slow.run(caller.uid, Box::new(job));
    }

    fn ioctl(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        _flags: IoctlFlags,
        command: u32,
        input: &[u8],
        _output_size: u32,
        reply: ReplyIoctl,
    ) {
        let _turn = self.crew.turn();
        let done = self.with_file(handle, |file| {
            inside::control(file, command, input, &caller(request))
        });
        match done {
            Ok(output) => {
                // What flags change the kernel does not see.
                self.mirror
                    .forget(vec![Stale::Attributes(NodeId(number.0))]);
                reply.ioctl(0, &output);
            }
            // What is no file of an item has none of these.
            Err(Errno::BADF) => reply.error(errno(Errno::NOTTY)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn poll(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _notifier: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let _turn = self.crew.turn();
        // The kernel then answers for itself: a regular file is always ready.
        reply.error(errno(Errno::NOSYS));
    }

    fn bmap(
        &self,
        _request: &Request,
        _number: INodeNo,
        _block_size: u32,
        _index: u64,
        reply: ReplyBmap,
    ) {
        let _turn = self.crew.turn();
        reply.error(errno(Errno::NOSYS));
    }
}
