//! Listing open directories, with or without attributes.

use std::ffi::{CStr, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use fuser::{FileHandle, INodeNo};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::Inner;
use super::handles::{Directory, Handle};
use crate::archive::tree::SIDECAR;
use crate::fuse::attr::Attr;
use crate::fuse::inode::{Node, NodeId, ROOT};
use crate::fuse::inside::ErrnoResult;
use crate::fuse::namespace::{DirectoryEntry, Entry};
use crate::os::caller::Caller;

/// The offset of a listing inside an item after `.`. It begins with `.` and `..`, for which no directory
/// needs to be read; ext4 lists them anywhere. Other offsets are those of the native filesystem: small where it counts,
/// hashes of 63 bits (ext4), or the largest ones at the end of a directory (ext4, GlusterFS). A hash is this with
/// a probability of 1 in 2^63.
const AFTER_DOT: u64 = 0x5bd1_e995_7f4a_7c15;
/// The same after `..`.
const AFTER_DOTS: u64 = AFTER_DOT + 1;

/// A line of a listing.
pub(super) struct Line<'a> {
    pub(super) name: &'a OsStr,
    pub(super) st_ino: u64,
    pub(super) kind: FileType,
    /// The offset of the listing after it.
    pub(super) next: u64,
}

impl Line<'_> {
    pub(super) fn is_dots(&self) -> bool {
        self.name == "." || self.name == ".."
    }
}

impl Inner {
    /// Lists names from an offset on; `add` returns true when the answer is full.
    pub(super) fn list(
        &self,
        handle: FileHandle,
        offset: u64,
        mut add: impl FnMut(&Node, Line<'_>) -> bool,
    ) -> ErrnoResult<()> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::Listing { listed, node }) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                for (index, listed) in listed.iter().enumerate().skip(start) {
                    let line = Line {
                        name: &listed.name,
                        st_ino: listed.st_ino,
                        kind: listed.kind,
                        next: index as u64 + 1,
                    };
                    if add(node, line) {
                        break;
                    }
                }
                Ok(())
            }
            Some(Handle::Prefix { listing, node }) => {
                let visit = |listed: &DirectoryEntry, next| {
                    let line = Line {
                        name: &listed.name,
                        st_ino: listed.st_ino,
                        kind: listed.kind,
                        next,
                    };
                    add(node, line)
                };
                self.namespace.list_prefix(listing, node, offset, visit)
            }
            Some(Handle::Directory(opened) | Handle::Level(opened)) => {
                self.list_directory(opened, offset, add)
            }
            _ => Err(Errno::BADF),
        }
    }

    fn list_directory(
        &self,
        opened: &Directory,
        offset: u64,
        mut add: impl FnMut(&Node, Line<'_>) -> bool,
    ) -> ErrnoResult<()> {
        let node = &opened.node;
        let device = node.real.as_ref().map_or(0, |real| real.device);
        if matches!(offset, 0 | AFTER_DOT) {
            let names = [(".", AFTER_DOT), ("..", AFTER_DOTS)];
            let dots = names.into_iter().zip(self.dots(node)?);
            for ((name, next), st_ino) in dots.skip(usize::from(offset == AFTER_DOT)) {
                let line = Line {
                    name: OsStr::new(name),
                    st_ino,
                    kind: FileType::Directory,
                    next,
                };
                if add(node, line) {
                    return Ok(());
                }
            }
        }
        let offset = match offset {
            AFTER_DOT | AFTER_DOTS => 0,
            offset => offset,
        };
        let is_wanted = |name: &CStr, kind| {
            let is_left_out = opened.without_sidecar && name.to_bytes() == SIDECAR.as_bytes();
            !is_left_out && self.namespace.shows(node, name, kind)
        };
        opened.list(offset, is_wanted, |directory, name, inode, kind, next| {
            let name = OsStr::from_bytes(name.to_bytes());
            let line = Line {
                name,
                st_ino: self.namespace.nodes.st_ino(device, inode),
                kind: known_type(directory, name, kind),
                next,
            };
            !add(node, line)
        })
    }

    /// The inode numbers of `.` and `..` of a real directory.
    fn dots(&self, node: &Node) -> ErrnoResult<[u64; 2]> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let above = rustix::fs::statat(&*node.file()?, "..", flags)?;
        let root = self.namespace.nodes.get(ROOT);
        if let Some(root) = root
            && let Some(real) = &root.real
            && (real.device, real.inode) == (above.st_dev, above.st_ino)
        {
            return Ok([node.st_ino, root.st_ino]);
        }
        let above = self.namespace.nodes.st_ino(above.st_dev, above.st_ino);
        Ok([node.st_ino, above])
    }

    /// Lists names with their nodes, if the caller looks names up after listing them (see `readdirplus`). Otherwise
    /// the first answer holds `.` and `..` alone, after which the kernel asks for names only.
    pub(super) fn list_with_nodes(
        &self,
        caller: &Caller,
        directory: NodeId,
        handle: FileHandle,
        offset: u64,
        mut add: impl FnMut(&Line<'_>, &Attr, Option<&Entry>) -> bool,
    ) -> ErrnoResult<()> {
        let with_nodes = offset > 0 || self.readdirplus.note_listing(caller.pid, directory);
        let mut added = 0;
        let mut failed = None;
        self.list(handle, offset, |node, line| {
            let added_before = added;
            added += 1;
            let mut add_name = |line: &Line<'_>| match self.namespace.attributes(node) {
                Ok(attr) => add(line, &attr, None),
                Err(_) => false,
            };
            if line.is_dots() {
                return add_name(&line);
            }
            if !with_nodes && added_before > 0 {
                return true;
            }
            if self.surplus.is_behind() {
                return add_name(&line);
            }
            match self.namespace.listed(caller, node, line.name) {
                Ok(entry) => {
                    let parent = INodeNo(directory.0);
                    self.surplus
                        .note(&self.namespace, parent, line.name, &entry);
                    let is_full = add(&line, &entry.attr, Some(&entry));
                    if is_full {
                        self.forget_node(entry.node.id, 1);
                    }
                    is_full
                }
                // It was removed since.
                Err(Errno::NOENT) => {
                    added = added_before;
                    false
                }
                // This caller may see the name only.
                Err(Errno::ACCESS) => add_name(&line),
                Err(error) => {
                    added = added_before;
                    failed = Some(error);
                    true
                }
            }
        })?;
        match failed {
            Some(error) if added == 0 => Err(error),
            _ => Ok(()),
        }
    }
}

/// The type of a name; asked for if the native filesystem does not list it.
fn known_type(directory: BorrowedFd<'_>, name: &OsStr, kind: FileType) -> FileType {
    if kind != FileType::Unknown {
        return kind;
    }
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listing of which the native filesystem gives an offset of `.` or `..` begins again there, for ever: GlusterFS
    /// gives i64::MAX - 1 after the last name, ext4 i64::MAX.
    #[test]
    fn offsets_after_dots_are_not_those_of_the_native_filesystem() {
        for offset in [AFTER_DOT, AFTER_DOTS] {
            assert!(offset > 1 << 48, "counted: {offset}");
            assert!(offset < i64::MAX as u64 - (1 << 48), "an end: {offset}");
        }
    }
}
