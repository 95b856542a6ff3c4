//! fuser's trait, request by request: name it, call one function, reply once. No other module knows fuser's replies.

mod reply;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, INodeNo, IoctlFlags, KernelConfig,
    LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek,
    ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::io::Errno;

use super::convert::{caller, errno, new_time};
use super::io::WritePlace;
use super::listing::Line;
use super::{Ibifs, negotiation};
use crate::fuse::attr::Attr;
use crate::fuse::inode::NodeId;
use crate::fuse::inside::{self, AttributeChange, Removal};
use crate::fuse::namespace::{Entry, Invalidate, Stale};
use crate::os::charging;

impl Filesystem for Ibifs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        if let Err(reason) = negotiation::negotiate(config) {
            self.backings.give_up(reason);
        }
        self.namespace.root()?;
        Ok(())
    }

    fn destroy(&mut self) {
        self.namespace.end_staging();
        (self.at_end)();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _worker = self.scheduler.begin(request.pid());
        let found = self.look_up(&caller(request), parent, name);
        reply::entry(reply, self.noting((parent, name), found));
    }

    fn forget(&self, _request: &Request, number: INodeNo, lookups: u64) {
        self.forget_node(NodeId(number.0), lookups);
        self.scheduler.forgot();
    }

    fn getattr(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let attributes = self.attributes(caller(request), number);
        self.answer(attributes, |_, found| reply::attributes(reply, found));
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
        let _worker = self.scheduler.begin(request.pid());
        let change = AttributeChange {
            mode,
            uid,
            gid,
            size,
            accessed: accessed.map(new_time),
            modified: modified.map(new_time),
        };
        let changed = self.set_attributes(caller(request), number, handle, change);
        self.answer(changed, |_, changed| reply::attributes(reply, changed));
    }

    fn readlink(&self, request: &Request, number: INodeNo, reply: ReplyData) {
        let _worker = self.scheduler.begin(request.pid());
        let target = self
            .node(number)
            .and_then(|node| self.namespace.read_link(&node));
        reply::data(reply, target);
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
        let _worker = self.scheduler.begin(request.pid());
        let (name, mode) = ((parent, name), (mode, umask));
        let made = self.make_node(&caller(request), name, device, mode);
        reply::entry(reply, self.noting(name, made));
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
        let _worker = self.scheduler.begin(request.pid());
        let (name, mode) = ((parent, name), (mode, umask));
        let made = self.make_directory(caller(request), name, mode);
        self.answer(made, |_, made| reply::entry(reply, made));
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _worker = self.scheduler.begin(request.pid());
        reply::empty(
            reply,
            self.remove(&caller(request), (parent, name), Removal::Unlink),
        );
        self.invalidator.replied();
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _worker = self.scheduler.begin(request.pid());
        let removed = self.remove_directory(caller(request), (parent, name));
        self.answer(removed, |inner, removed| {
            reply::empty(reply, removed);
            inner.invalidator.replied();
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let (name, target) = ((parent, name), target.as_os_str().as_bytes());
        let made = self.make_link(&caller(request), name, target);
        reply::entry(reply, self.noting(name, made));
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
        let _worker = self.scheduler.begin(request.pid());
        let (from, to) = ((parent, name), (new_parent, new_name));
        let renamed = self.rename_name(&caller(request), from, to, flags.bits());
        reply::empty(reply, renamed);
        self.invalidator.replied();
    }

    fn link(
        &self,
        request: &Request,
        number: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let name = (new_parent, new_name);
        let made = self.make_hard_link(&caller(request), number, name);
        reply::entry(reply, self.noting(name, made));
        self.invalidator.replied();
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let _worker = self.scheduler.begin(request.pid());
        let opened = self.open_file(caller(request), number, flags.0);
        self.answer(opened, |inner, opened| {
            reply::open_file(inner, reply, opened);
        });
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
        let _worker = self.scheduler.begin(request.pid());
        let (name, mode) = ((parent, name), (mode, umask));
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        let created = self.create_file(&caller, name, flags, mode);
        reply::create(self, reply, created);
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
        let _worker = self.scheduler.begin_transfer();
        reply::data(reply, self.read_file(handle, offset, size as usize));
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
        let _worker = self.scheduler.begin_write();
        let place = WritePlace::new(offset, flags, write_flags);
        let written = self.write_file(&caller(request), handle, place, bytes);
        reply::written(reply, written);
    }

    fn flush(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let caller = caller(request);
        let _charged = charging::charge_to(caller.charged_user());
        reply::empty(reply, self.closed(&caller, handle));
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
        let _worker = self.scheduler.begin(request.pid());
        let closed = self.release_file(&caller(request), handle);
        // Closing the descriptor may take time, for which no process waits.
        reply::empty(reply, closed.0);
        drop(closed.1);
    }

    fn fsync(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        content_only: bool,
        reply: ReplyEmpty,
    ) {
        let _worker = self.scheduler.begin_transfer();
        let synced = self.sync(&caller(request), handle, content_only);
        self.answer(Ok(synced), |_, synced| reply::empty(reply, synced));
    }

    fn opendir(&self, request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let _worker = self.scheduler.begin(request.pid());
        let opened = self.open_directory(caller(request), number);
        self.answer(opened, |_, opened| reply::open(reply, opened));
    }

    fn readdir(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let listed = self.list(handle, offset, |_, line| reply::add_line(&mut reply, &line));
        reply::listing(reply, listed);
    }

    fn readdirplus(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let directory = NodeId(number.0);
        let add = |line: &Line<'_>, attr: &Attr, entry: Option<&Entry>| {
            reply::add_line_with_node(&mut reply, line, attr, entry)
        };
        let listed = self.list_with_nodes(&caller(request), directory, handle, offset, add);
        reply::listing_with_nodes(reply, listed);
    }

    fn releasedir(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let handle = self.handles.remove(handle);
        reply.ok();
        drop(handle);
    }

    fn fsyncdir(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        content_only: bool,
        reply: ReplyEmpty,
    ) {
        let _worker = self.scheduler.begin_transfer();
        let synced = self.sync_directory(&caller(request), (number, handle), content_only);
        self.answer(Ok(synced), |_, synced| reply::empty(reply, synced));
    }

    fn statfs(&self, request: &Request, number: INodeNo, reply: ReplyStatfs) {
        let _worker = self.scheduler.begin(request.pid());
        let node = self.node(number);
        let found = node.and_then(|node| self.namespace.statistics(&node));
        reply::statistics(reply, found);
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
        let _worker = self.scheduler.begin(request.pid());
        let name = (number, name);
        reply::empty(reply, self.set_xattr(&caller(request), name, value, flags));
    }

    fn getxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let node = self.node(number);
        let value = node.and_then(|node| self.xattr(&node, name, size as usize));
        reply::xattr(reply, size, value);
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let _worker = self.scheduler.begin(request.pid());
        let names = self.node(number).and_then(|node| {
            let namespace = &self.namespace;
            namespace.xattr_names(&caller(request), &node, size as usize)
        });
        reply::xattr(reply, size, names);
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _worker = self.scheduler.begin(request.pid());
        reply::empty(reply, self.remove_xattr(&caller(request), (number, name)));
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
        let _worker = self.scheduler.begin(request.pid());
        let allocated = self.allocate(caller(request), handle, (offset, length), mode);
        self.answer(Ok(allocated), |_, done| reply::empty(reply, done));
    }

    fn lseek(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        let position = self.with_file(handle, |file| inside::seek(file, offset, whence));
        reply::offset(reply, position);
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
        let _worker = self.scheduler.begin(request.pid());
        // The kernel does not know that the source is read.
        self.invalidator
            .invalidate(vec![Stale::Attributes(NodeId(source.0))]);
        let (from, to) = ((from_handle, from_offset), (to_handle, to_offset));
        let copied = self.copy_range(caller(request), from, to, length);
        self.answer(Ok(copied), |_, count| reply::written(reply, count));
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
        let _worker = self.scheduler.begin(request.pid());
        let done = self.control(caller(request), (number, handle), command, input);
        self.answer(done, |_, done| reply::ioctl(reply, done));
    }

    fn poll(
        &self,
        request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _notifier: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let _worker = self.scheduler.begin(request.pid());
        // The kernel then answers for itself: a regular file is always ready.
        reply.error(errno(Errno::NOSYS));
    }
}
