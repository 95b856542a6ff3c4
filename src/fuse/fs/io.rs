//! Operations on open files.

use std::os::fd::{AsFd, BorrowedFd};

use fuser::{FileHandle, INodeNo, OpenFlags, WriteFlags};
use rustix::io::Errno;

use super::Inner;
use super::handles::Handle;
use super::outcome::{Outcome, Wait};
use super::scheduler::JobQueue;
use crate::formats::mint_request;
use crate::fuse::inode::{NodeId, NodeKind};
use crate::fuse::inside::{self, ErrnoResult, Where};
use crate::fuse::namespace::{Invalidate, Stale};
use crate::os::caller::Caller;
use crate::os::charging;

/// The place of the bytes of a WRITE.
#[derive(Clone, Copy)]
pub(super) struct WritePlace {
    place: Where,
    /// Whether the bytes are a page of a mapping, which the kernel writes without a caller.
    is_page: bool,
    keeps_set_id: bool,
}

impl WritePlace {
    /// Pages of a mapping have their place, even if the file was opened to append.
    pub(super) fn new(offset: u64, flags: OpenFlags, write_flags: WriteFlags) -> WritePlace {
        let is_page = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let is_end = flags.0 & libc::O_APPEND != 0 && !is_page;
        WritePlace {
            place: if is_end {
                Where::End
            } else {
                Where::At(offset)
            },
            is_page,
            keeps_set_id: !write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
        }
    }
}

impl Inner {
    /// ioctl(2). The kernel does not see what file flags change; virtual files have none (ENOTTY).
    /// A request to mint is answered later.
    pub(super) fn control(
        &self,
        caller: Caller,
        (number, handle): (INodeNo, FileHandle),
        command: u32,
        input: &[u8],
    ) -> ErrnoResult<Outcome<Vec<u8>>> {
        if command == mint_request::COMMAND {
            let first = self.node(number)?;
            let question = input.to_vec();
            let queue = Wait::Queue(JobQueue::Date);
            return Ok(Outcome::later(queue, caller.uid, move |inner| {
                let _charged = charging::charge_to(caller.charged_user());
                let by = inner.context(&caller);
                let minted = inner.namespace.mint_beside(&by, &first, &question)?;
                Ok(mint_request::answer(&minted))
            }));
        }
        let done = self.with_file_to_change(handle, |file| {
            inside::control(file, command, input, &caller)
        });
        if done.is_ok() {
            let stale = Stale::Attributes(NodeId(number.0));
            self.invalidator.invalidate(vec![stale]);
        }
        match done {
            Err(Errno::BADF) => Err(Errno::NOTTY),
            done => done.map(Outcome::Now),
        }
    }

    /// Runs an operation on an open file or directory; EBADF for a virtual one.
    pub(super) fn with_file<T>(
        &self,
        handle: FileHandle,
        use_file: impl FnOnce(BorrowedFd<'_>) -> ErrnoResult<T>,
    ) -> ErrnoResult<T> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File { file, .. }) => use_file(file.as_fd()),
            Some(Handle::Directory(directory)) => use_file(directory.open()?.as_fd()),
            _ => Err(Errno::BADF),
        }
    }

    /// The same, unless it lies in a sealed item.
    pub(super) fn with_file_to_change<T>(
        &self,
        handle: FileHandle,
        change: impl FnOnce(BorrowedFd<'_>) -> ErrnoResult<T>,
    ) -> ErrnoResult<T> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File { node, .. }) => self.namespace.check_unsealed(node)?,
            Some(Handle::Directory(directory)) => self.namespace.check_unsealed(&directory.node)?,
            _ => {}
        }
        self.with_file(handle, change)
    }

    pub(super) fn read_file(
        &self,
        handle: FileHandle,
        offset: u64,
        size: usize,
    ) -> ErrnoResult<Vec<u8>> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File { file, .. }) => inside::read(file.as_fd(), offset, size),
            Some(Handle::Text(node)) => match &node.kind {
                NodeKind::Text(text) => Ok(part_of(text, offset, size)),
                _ => Err(Errno::BADF),
            },
            Some(Handle::Generated(text)) => Ok(part_of(text.bytes(), offset, size)),
            _ => Err(Errno::BADF),
        }
    }

    /// Writes bytes. The user who opened the file is charged for pages of a mapping.
    pub(super) fn write_file(
        &self,
        caller: &Caller,
        handle: FileHandle,
        at: WritePlace,
        bytes: &[u8],
    ) -> ErrnoResult<usize> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File {
                file, opener, node, ..
            }) => {
                // Another host may have sealed the item since.
                self.namespace.check_unsealed(node)?;
                let writer = if at.is_page { opener } else { caller };
                inside::write_as(file.as_fd(), at.place, bytes, at.keeps_set_id, writer)
            }
            _ => Err(Errno::BADF),
        }
    }
}

/// Up to `size` bytes of a text from an offset on.
fn part_of(text: &[u8], offset: u64, size: usize) -> Vec<u8> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let start = start.min(text.len());
    let end = start.saturating_add(size).min(text.len());
    text[start..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::part_of;

    #[test]
    fn a_part_ends_with_the_text() {
        for (offset, size, part) in [
            (0, 4, "text"),
            (0, 2, "te"),
            (2, 9, "xt"),
            (4, 1, ""),
            (9, 1, ""),
            (u64::MAX, usize::MAX, ""),
            (1, usize::MAX, "ext"),
        ] {
            assert_eq!(part_of(b"text", offset, size), part.as_bytes());
        }
    }
}
