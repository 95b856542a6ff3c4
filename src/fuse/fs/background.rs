//! Operations that may wait for a disk. At most half of the workers do so at a time; others wait for their user's
//! turn in a queue, so that one user does not occupy all workers.

use std::time::{Duration, Instant};

use fuser::{FileHandle, INodeNo};
use rustix::io::Errno;

use super::Inner;
use super::names::NameIn;
use super::outcome::{Outcome, Wait};
use super::scheduler::JobQueue;
use crate::fuse::inside::{self, ErrnoResult, Removal};
use crate::os::caller::Caller;
use crate::os::serving::Server;

/// The time that a removal of a directory waits for files in it to be closed: a program may have them open as well.
const LONGEST_CLOSE: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

impl Inner {
    /// fsync(2) and fdatasync(2).
    pub(super) fn sync(
        &self,
        caller: &Caller,
        handle: FileHandle,
        content_only: bool,
    ) -> Outcome<()> {
        Outcome::later(Wait::Queue(JobQueue::Disk), caller.uid, move |inner| {
            inner.with_file(handle, |file| inside::sync(file, content_only))
        })
    }

    /// fsync(2) and fdatasync(2) of a directory.
    pub(super) fn sync_directory(
        &self,
        caller: &Caller,
        (number, handle): (INodeNo, FileHandle),
        content_only: bool,
    ) -> Outcome<()> {
        Outcome::later(Wait::Queue(JobQueue::Disk), caller.uid, move |inner| {
            let node = inner.node(number)?;
            if node.is_in_item() {
                inner.with_file(handle, |file| inside::sync(file, content_only))
            } else {
                inner.namespace.sync_directory(&node, content_only)
            }
        })
    }

    /// fallocate(2), for the bytes from an offset on.
    pub(super) fn allocate(
        &self,
        caller: Caller,
        handle: FileHandle,
        (offset, length): (u64, u64),
        mode: i32,
    ) -> Outcome<()> {
        Outcome::later(Wait::Queue(JobQueue::Disk), caller.uid, move |inner| {
            inner.with_file_to_change(handle, |file| {
                inside::allocate(file, mode, offset, length, &caller)
            })
        })
    }

    /// copy_file_range(2), from an offset of one open file to an offset of another.
    pub(super) fn copy_range(
        &self,
        caller: Caller,
        (from_handle, from_offset): (FileHandle, u64),
        (to_handle, to_offset): (FileHandle, u64),
        length: u64,
    ) -> Outcome<usize> {
        let length = inside::copied_at_once(length);
        Outcome::later(Wait::Queue(JobQueue::Disk), caller.uid, move |inner| {
            inner.with_file(from_handle, |from| {
                inner.with_file_to_change(to_handle, |to| {
                    inside::copy_range(from, from_offset, to, to_offset, length, &caller)
                })
            })
        })
    }

    /// rmdir(2). A server keeps a file that is removed while it is open: where such files alone are left, the directory is
    /// removed as soon as they are closed, since the program that read them may have closed them before it removed them.
    pub(super) fn remove_directory(
        &self,
        caller: Caller,
        (parent, name): NameIn<'_>,
    ) -> ErrnoResult<Outcome<()>> {
        if self.namespace.server() == Server::Kernel {
            let removed = self.remove(&caller, (parent, name), Removal::Rmdir);
            return removed.map(Outcome::Now);
        }
        let name = name.to_owned();
        Ok(Outcome::later(
            Wait::Queue(JobQueue::Disk),
            caller.uid,
            move |inner| inner.remove_once_closed(&caller, (parent, &name)),
        ))
    }

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
