//! One reply for each kind of request.

use std::sync::Arc;
use std::time::Duration;

use fuser::{
    FileAttr, Generation, INodeNo, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr,
};
use rustix::fs::StatVfs;
use rustix::io::Errno;

use crate::fuse::attr::Attr;
use crate::fuse::fs::Inner;
use crate::fuse::fs::convert::{errno, file_attr, file_type};
use crate::fuse::fs::lifetimes;
use crate::fuse::fs::listing::Line;
use crate::fuse::fs::open::{OpenFile, OpenedNode};
use crate::fuse::inode::Node;
use crate::fuse::inside::ErrnoResult;
use crate::fuse::namespace::Entry;

/// One generation: a node's number is not given to another file while the kernel knows it.
const GENERATION: Generation = Generation(0);

/// The mark of the number that is given with a name alone. No node has it: the kernel would take the attributes that come
/// along for those of the node, and what is open for another file.
const NO_NODE: u64 = 1 << 63;

pub(super) fn empty(reply: ReplyEmpty, result: ErrnoResult<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn entry(reply: ReplyEntry, result: ErrnoResult<Entry>) {
    match result {
        Ok(entry) => {
            let attr = file_attr(entry.node.id.0, &entry.attr);
            let of_name = lifetimes::of_name(&entry);
            let of_attributes = lifetimes::of_attributes_with_name(&entry);
            reply.entry_with_ttls(&of_attributes, &of_name, &attr, GENERATION);
        }
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn attributes(reply: ReplyAttr, result: ErrnoResult<(Arc<Node>, Attr)>) {
    match result {
        Ok((node, attr)) => {
            let lifetime = lifetimes::of_attributes(&node, &attr);
            reply.attr(&lifetime, &file_attr(node.st_ino, &attr));
        }
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn open(reply: ReplyOpen, result: ErrnoResult<OpenFile>) {
    match result {
        Ok(opened) => match &opened.backing {
            Some(backing) => reply.opened_passthrough(opened.handle, opened.flags, &backing.id),
            None => reply.opened(opened.handle, opened.flags),
        },
        Err(error) => reply.error(errno(error)),
    }
}

/// Registers a file with its reply.
pub(super) fn open_file(inner: &Inner, reply: ReplyOpen, result: ErrnoResult<OpenedNode>) {
    let opened = result.map(|opened| inner.register(opened, |file| reply.open_backing(file)));
    open(reply, opened);
}

/// Registers a file that was made with its reply.
pub(super) fn create(inner: &Inner, reply: ReplyCreate, result: ErrnoResult<(Entry, OpenedNode)>) {
    let (entry, opened) = match result {
        Ok((entry, opened)) => (entry, opened),
        Err(error) => return reply.error(errno(error)),
    };
    let opened = inner.register(opened, |file| reply.open_backing(file));
    let attr = file_attr(entry.node.id.0, &entry.attr);
    let lifetime = lifetimes::of_created(&entry);
    let (handle, flags) = (opened.handle, opened.flags);
    match &opened.backing {
        Some(backing) => {
            reply.created_passthrough(&lifetime, &attr, GENERATION, handle, flags, &backing.id);
        }
        None => reply.created(&lifetime, &attr, GENERATION, handle, flags),
    }
    inner.created(&entry.node);
}

/// Adds a line to a listing; returns true when the reply is full.
pub(super) fn add_line(reply: &mut ReplyDirectory, line: &Line<'_>) -> bool {
    let number = INodeNo(line.st_ino);
    reply.add(number, line.next, file_type(line.kind), line.name)
}

pub(super) fn listing(reply: ReplyDirectory, result: ErrnoResult<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

/// Adds a line with attributes to a listing; returns true when the reply is full.
pub(super) fn add_line_with_node(
    reply: &mut ReplyDirectoryPlus,
    line: &Line<'_>,
    attr: &Attr,
    entry: Option<&Entry>,
) -> bool {
    let attr = match entry {
        Some(entry) => file_attr(entry.node.id.0, attr),
        // The kernel takes the number alone.
        None if line.is_dots() => file_attr(line.st_ino, attr),
        // The kernel takes the type, and asks for all else when the name is used.
        None => FileAttr {
            kind: file_type(line.kind),
            ..file_attr(NO_NODE | line.st_ino, attr)
        },
    };
    let lifetime = entry.map_or(Duration::ZERO, lifetimes::of_both);
    reply.add(attr.ino, line.next, line.name, &lifetime, &attr, GENERATION)
}

pub(super) fn listing_with_nodes(reply: ReplyDirectoryPlus, result: ErrnoResult<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn data(reply: ReplyData, result: ErrnoResult<Vec<u8>>) {
    match result {
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn written(reply: ReplyWrite, result: ErrnoResult<usize>) {
    match result {
        Ok(count) => reply.written(u32::try_from(count).unwrap_or(u32::MAX)),
        Err(error) => reply.error(errno(error)),
    }
}

/// The value or names of extended attributes: their size if `size` is 0, ERANGE if they are longer.
pub(super) fn xattr(reply: ReplyXattr, size: u32, result: ErrnoResult<Vec<u8>>) {
    match result {
        Ok(bytes) if size == 0 => reply.size(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
        Ok(bytes) if bytes.len() > size as usize => reply.error(errno(Errno::RANGE)),
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn offset(reply: ReplyLseek, result: ErrnoResult<i64>) {
    match result {
        Ok(position) => reply.offset(position),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn ioctl(reply: ReplyIoctl, result: ErrnoResult<Vec<u8>>) {
    match result {
        Ok(output) => reply.ioctl(0, &output),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn statistics(reply: ReplyStatfs, result: ErrnoResult<StatVfs>) {
    match result {
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
