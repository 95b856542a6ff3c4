//! Operations that may wait for a disk. At most half of the workers do so at a time; others wait for their user's
//! turn in a queue, so that one user does not occupy all workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{FileHandle, INodeNo, ReplyEmpty, ReplyWrite};
use rustix::io::Errno;

use super::names::NameIn;
use super::{Ibifs, Inner, reply};
use crate::fuse::inside::{self, ErrnoResult, Removal};
use crate::os::caller::Caller;
use crate::os::serving::Server;

/// The time that a removal of a directory waits for files in it to be closed: a program may have them open as well.
const LONGEST_CLOSE: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

impl Ibifs {
    /// fsync(2) and fdatasync(2).
    pub(super) fn sync_and_reply(
        &self,
        caller: &Caller,
        handle: FileHandle,
        content_only: bool,
        reply: ReplyEmpty,
    ) {
        let sync =
            move |inner: &Inner| inner.with_file(handle, |file| inside::sync(file, content_only));
        self.in_background(caller.uid, sync, |result| reply::empty(reply, result));
    }

    /// fsync(2) and fdatasync(2) of a directory.
    pub(super) fn sync_directory_and_reply(
        &self,
        caller: &Caller,
        (number, handle): (INodeNo, FileHandle),
        content_only: bool,
        reply: ReplyEmpty,
    ) {
        let sync =
            move |inner: &Inner| inner.sync_directory(&*inner.node(number)?, handle, content_only);
        self.in_background(caller.uid, sync, |result| reply::empty(reply, result));
    }

    /// fallocate(2), for the bytes from an offset on.
    pub(super) fn allocate_and_reply(
        &self,
        caller: Caller,
        handle: FileHandle,
        (offset, length): (u64, u64),
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocate = move |inner: &Inner| {
            inner.with_file(handle, |file| {
                inside::allocate(file, mode, offset, length, &caller)
            })
        };
        self.in_background(caller.uid, allocate, |result| reply::empty(reply, result));
    }

    /// copy_file_range(2), from an offset of one open file to an offset of another.
    pub(super) fn copy_range_and_reply(
        &self,
        caller: Caller,
        (from_handle, from_offset): (FileHandle, u64),
        (to_handle, to_offset): (FileHandle, u64),
        length: u64,
        reply: ReplyWrite,
    ) {
        let length = inside::copied_at_once(length);
        let copy = move |inner: &Inner| {
            inner.with_file(from_handle, |from| {
                inner.with_file(to_handle, |to| {
                    inside::copy_range(from, from_offset, to, to_offset, length, &caller)
                })
            })
        };
        self.in_background(caller.uid, copy, |count| reply::written(reply, count));
    }

    /// rmdir(2). A server keeps a file that is removed while it is open: where such files alone are left, the directory is
    /// removed as soon as they are closed, since the program that read them may have closed them before it removed them.
    pub(super) fn remove_directory_and_reply(
        &self,
        caller: Caller,
        (parent, name): NameIn<'_>,
        reply: ReplyEmpty,
    ) {
        if self.namespace.server() == Server::Kernel {
            let removed = self.remove(&caller, (parent, name), Removal::Rmdir);
            reply::empty(reply, removed);
            return self.invalidator.replied();
        }
        let (name, inner) = (name.to_owned(), Arc::clone(&self.inner));
        let remove = move |inner: &Inner| inner.remove_once_closed(&caller, (parent, &name));
        self.in_background(caller.uid, remove, move |removed| {
            reply::empty(reply, removed);
            inner.invalidator.replied();
        });
    }

    /// Runs an operation when it is the user's turn, and passes its result on.
    fn in_background<T>(
        &self,
        user: u32,
        operation: impl FnOnce(&Inner) -> ErrnoResult<T> + Send + 'static,
        done: impl FnOnce(ErrnoResult<T>) + Send + 'static,
    ) {
        let inner = Arc::clone(&self.inner);
        let job = move |turn: ErrnoResult<()>| done(turn.and_then(|()| operation(&inner)));
        self.syncing.run_here_or_queued(user, Box::new(job));
    }
}

impl Inner {
    /// Removes a directory; again while it holds only files that are being closed.
    fn remove_once_closed(&self, caller: &Caller, (parent, name): NameIn<'_>) -> ErrnoResult<()> {
        let until = Instant::now() + LONGEST_CLOSE;
        let mut is_last = false;
        loop {
            let removed = self.remove(caller, (parent, name), Removal::Rmdir);
            if is_last || removed != Err(Errno::NOTEMPTY) {
                return removed;
            }
            // The last of them may have been closed before this look.
            let above = self.node(parent)?;
            is_last = !self.namespace.holds_only_kept_open(caller, &above, name)
                || Instant::now() > until;
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
}
