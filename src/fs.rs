//! The FUSE door: take a request, call one function, translate the answer. Decides nothing that the
//! namespace or the native filesystem could.
//!
//! Inside items requests go to `inside`, above and beside them to `namespace`. The kernel does the
//! permission checks (`default_permissions`), file locks, and, where it can, reading and writing
//! (FUSE passthrough). What a change makes stale in another tree goes through `mirror`.

mod convert;
mod handles;
mod mirror;
mod protocol;

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{FileHandle, Notifier};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::attr::Attr;
use crate::caller::Caller;
use crate::inode::{Kind, Node, View};
use crate::inside::{self, Change, New, Outcome};
use crate::namespace::{Entry, Namespace, Stale, is_virtual};
use crate::tree::SIDECAR;
use handles::{Handle, Handles};
use mirror::Mirror;

/// How long the kernel may answer from memory what only we change; see `mirror`.
const LASTING: Duration = Duration::from_secs(60);

/// The mounted filesystem.
#[derive(Debug)]
pub struct Ibifs {
    namespace: Arc<Namespace>,
    handles: Handles,
    mirror: Mirror,
    passthrough: AtomicBool,
    at_end: fn(),
}

/// Where a name lies: inside an item, or at the levels of identifiers.
fn is_inside(node: &Node) -> bool {
    matches!(node.kind, Kind::Item(_) | Kind::Inside)
}

fn real(node: &Node) -> Outcome<Arc<OwnedFd>> {
    node.file()
}

impl Ibifs {
    /// The filesystem of a namespace; `notifier` is filled once it is mounted, `at_end` is called
    /// when the kernel has let go of it.
    pub fn new(
        namespace: Namespace,
        passthrough: bool,
        notifier: Arc<OnceLock<Notifier>>,
        at_end: fn(),
    ) -> std::io::Result<Ibifs> {
        Ok(Ibifs {
            namespace: Arc::new(namespace),
            handles: Handles::default(),
            mirror: Mirror::start(notifier)?,
            passthrough: AtomicBool::new(passthrough),
            at_end,
        })
    }

    fn node(&self, number: fuser::INodeNo) -> Outcome<Arc<Node>> {
        self.namespace.nodes.get(number.0).ok_or(Errno::STALE)
    }

    /// Has other trees forget a name of this directory, and its attributes.
    fn changed(&self, parent: &Node, name: Option<&OsStr>) {
        self.mirror
            .forget(self.namespace.stale_elsewhere(parent, name));
    }

    /// Has the kernel forget what we have changed of items ourselves.
    fn settle<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        self.mirror.forget(self.namespace.stale_items());
        outcome
    }

    fn set_attributes(
        &self,
        node: &Node,
        handle: Option<FileHandle>,
        change: &Change,
    ) -> Outcome<Attr> {
        if node.real.is_none() {
            return match node.kind {
                // A tool that copies a prefix directory sets its times and owner at the end.
                Kind::Prefix(_) | Kind::Mint => self.namespace.attributes(node),
                _ => Err(Errno::PERM),
            };
        }
        let open = handle.and_then(|handle| self.handles.get(handle));
        let open = match open.as_deref() {
            Some(Handle::File { file, writable, .. }) if *writable => Some(file.as_fd()),
            _ => None,
        };
        inside::change(real(node)?.as_fd(), open, change)?;
        self.changed(node, None);
        self.namespace.attributes(node)
    }

    /// Makes a directory, link or other node inside an item.
    fn make_inside(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        new: New<'_>,
        mode: u32,
        umask: u32,
    ) -> Outcome<Entry> {
        if let (Kind::Item(item), New::Directory) = (&parent.kind, new)
            && self.namespace.reveal(caller, *item, name)
        {
            return self.namespace.revealed(parent, name);
        }
        let kept;
        let new = match new {
            New::Link(target) => {
                kept = self.namespace.link_to_keep(parent, target)?;
                New::Link(&kept)
            }
            other => other,
        };
        let made = inside::make(real(parent)?.as_fd(), name, new, mode, umask, caller)?;
        self.changed(parent, None);
        self.namespace.made_inside(parent, name, made)
    }

    fn create_file(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        flags: i32,
        mode: u32,
        umask: u32,
    ) -> Outcome<(Entry, OwnedFd)> {
        if !is_inside(parent) {
            return self
                .namespace
                .create_file(caller, parent, name, flags, mode, umask);
        }
        if let Kind::Item(item) = parent.kind
            && self.namespace.reveal(caller, item, name)
        {
            let found = inside::find(real(parent)?.as_fd(), name)?;
            let opened = inside::open(found.as_fd(), flags | libc::O_TRUNC)?;
            return Ok((self.namespace.made_inside(parent, name, found)?, opened));
        }
        let opened = inside::create(real(parent)?.as_fd(), name, flags, mode, umask, caller)?;
        let found = inside::find(real(parent)?.as_fd(), name)?;
        self.changed(parent, None);
        Ok((self.namespace.made_inside(parent, name, found)?, opened))
    }

    fn remove(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        is_directory: bool,
    ) -> Outcome<()> {
        if is_inside(parent) {
            inside::remove(real(parent)?.as_fd(), name, is_directory)?;
            self.settle(self.namespace.name_gone(caller, parent, name))?;
            self.changed(parent, Some(name));
            return Ok(());
        }
        if is_directory {
            let stale = self.namespace.remove_directory(parent, name)?;
            self.mirror.forget(stale);
            return Ok(());
        }
        self.settle(self.namespace.remove_name(parent, name))
    }

    fn rename_name(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        new_parent: &Node,
        new_name: &OsStr,
        flags: u32,
    ) -> Outcome<()> {
        match (is_inside(parent), is_inside(new_parent)) {
            (true, true) => {}
            (false, false) => {
                let namespace = &self.namespace;
                return self.settle(namespace.rename(parent, name, new_parent, new_name, flags));
            }
            // An item or a level stays where its name says; a file of an item may be copied out.
            (false, true) => return Err(Errno::PERM),
            (true, false) => return Err(Errno::XDEV),
        }
        let (from, to) = (real(parent)?, real(new_parent)?);
        if parent.view != new_parent.view {
            // A directory or link is another node in each tree; and while the kernel renames it
            // holds both directories, so that neither could be told of its stale name before the
            // answer. Tools then copy.
            return Err(Errno::XDEV);
        }
        inside::rename(from.as_fd(), name, to.as_fd(), new_name, flags)?;
        if let Kind::Item(item) = new_parent.kind {
            self.namespace.reveal(caller, item, new_name);
        }
        let mut stale = self.namespace.stale_elsewhere(parent, Some(name));
        stale.extend(self.namespace.stale_elsewhere(new_parent, Some(new_name)));
        self.mirror.forget(stale);
        for (directory, name) in [(parent, name), (new_parent, new_name)] {
            self.note_sidecar(directory, name)?;
        }
        self.settle(self.namespace.name_gone(caller, parent, name))
    }

    /// After a rename: what is now called `.ibi` in an item is its sidecar.
    fn note_sidecar(&self, parent: &Node, name: &OsStr) -> Outcome<()> {
        let Kind::Item(item) = parent.kind else {
            return Ok(());
        };
        if name != SIDECAR {
            return Ok(());
        }
        let Ok(found) = inside::find(real(parent)?.as_fd(), name) else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(&found)?;
        let number = self
            .namespace
            .nodes
            .number_of(stat.st_dev, stat.st_ino, View::Rep);
        if let Some(node) = self.namespace.nodes.get(number) {
            node.set_sidecar_of(Some(item));
        }
        // The kernel has given the sidecar's name the lifetime of the file that was renamed.
        self.mirror
            .forget_later(vec![Stale::Name(parent.number, name.to_owned())]);
        self.settle(self.namespace.sidecar_written(item))
    }

    fn make_hard_link(&self, node: &Node, parent: &Node, name: &OsStr) -> Outcome<Entry> {
        if !is_inside(parent) {
            return Err(Errno::PERM);
        }
        let made = inside::link(real(node)?.as_fd(), real(parent)?.as_fd(), name)?;
        self.changed(parent, None);
        let entry = self.namespace.made_inside(parent, name, made)?;
        self.note_sidecar(parent, name)?;
        Ok(entry)
    }

    /// Opens a file; the answer is its handle and the kernel's way round us, if there is one.
    fn open_file(
        &self,
        node: &Arc<Node>,
        file: Option<OwnedFd>,
        flags: i32,
        open_backing: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<fuser::BackingId>,
    ) -> Outcome<(FileHandle, Option<Arc<fuser::BackingId>>)> {
        let access = OFlags::from_bits_retain(flags as u32) & OFlags::RWMODE;
        if let Kind::Text(_) = node.kind {
            // Its permissions do not keep root out; there is nothing behind it to write to.
            if access != OFlags::RDONLY {
                return Err(Errno::PERM);
            }
            return Ok((self.handles.add(Handle::Text(node.clone())), None));
        }
        let file = match file {
            Some(file) => file,
            None => inside::open(real(node)?.as_fd(), flags)?,
        };
        let backing = self.backing(node, file.as_fd(), open_backing);
        let handle = self.handles.add(Handle::File {
            file,
            writable: access != OFlags::RDONLY,
            node: node.clone(),
            backing: backing.clone(),
        });
        Ok((handle, backing))
    }

    /// The kernel's way to a file round us, where it has one.
    fn backing(
        &self,
        node: &Node,
        file: BorrowedFd<'_>,
        open_backing: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<fuser::BackingId>,
    ) -> Option<Arc<fuser::BackingId>> {
        if !self.passthrough.load(Ordering::Relaxed) {
            return None;
        }
        match self.handles.backing(node.number, || open_backing(file)) {
            Ok(backing) => Some(backing),
            Err(error) => {
                log::info!("files are read and written through the daemon: {error}");
                self.passthrough.store(false, Ordering::Relaxed);
                None
            }
        }
    }

    /// What happens to a sidecar when whoever wrote it closes it.
    fn closed(&self, handle: FileHandle) -> Outcome<()> {
        if let Some(open) = self.handles.get(handle)
            && let Handle::File {
                writable: true,
                node,
                ..
            } = &*open
            && let Some(item) = node.sidecar_of()
        {
            return self.settle(self.namespace.sidecar_written(item));
        }
        Ok(())
    }

    fn with_file<T>(
        &self,
        handle: FileHandle,
        use_file: impl FnOnce(BorrowedFd<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File { file, .. }) => use_file(file.as_fd()),
            Some(Handle::Directory { directory, .. }) => use_file(directory.as_fd()),
            _ => Err(Errno::BADF),
        }
    }

    fn read_file(&self, handle: FileHandle, offset: u64, size: usize) -> Outcome<Vec<u8>> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File { file, .. }) => inside::read(file.as_fd(), offset, size),
            Some(Handle::Text(node)) => {
                let Kind::Text(text) = &node.kind else {
                    return Err(Errno::BADF);
                };
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(text.len());
                let end = start.saturating_add(size).min(text.len());
                Ok(text[start..end].to_vec())
            }
            _ => Err(Errno::BADF),
        }
    }

    fn open_directory(&self, node: Arc<Node>) -> Outcome<FileHandle> {
        let handle = match is_inside(&node) {
            true => Handle::Directory {
                directory: inside::open_directory(real(&node)?.as_fd())?,
                node,
            },
            false => Handle::Listing(self.namespace.list(&node)?),
        };
        Ok(self.handles.add(handle))
    }

    /// Lists names from an offset on; `add` says whether the answer is full.
    fn list(
        &self,
        handle: FileHandle,
        offset: u64,
        mut add: impl FnMut(u64, u64, FileType, &OsStr) -> bool,
    ) -> Outcome<()> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::Listing(listed)) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(listed.len());
                for (index, line) in listed.iter().enumerate().skip(start) {
                    if add(line.number, index as u64 + 1, line.kind, &line.name) {
                        break;
                    }
                }
                Ok(())
            }
            Some(Handle::Directory { directory, node }) => {
                let device = node.real.as_ref().map_or(0, |real| real.device);
                inside::list(directory.as_fd(), offset, |name, inode, kind, next| {
                    use std::os::unix::ffi::OsStrExt;
                    let name = OsStr::from_bytes(name.to_bytes());
                    let kind = known_type(directory.as_fd(), name, kind);
                    let view = match kind {
                        FileType::Directory | FileType::Symlink => node.view,
                        _ => View::Rep,
                    };
                    let number = self.namespace.nodes.number_of(device, inode, view);
                    !add(number, next, kind, name)
                })
            }
            _ => Err(Errno::BADF),
        }
    }

    fn get_attribute(&self, node: &Node, name: &OsStr, limit: usize) -> Outcome<Vec<u8>> {
        match (&node.kind, &node.real) {
            (Kind::Item(item), _) if is_virtual(name) => self.namespace.get_attribute(*item, name),
            (_, Some(real)) => inside::get_attribute(real.file.open()?.as_fd(), name, limit),
            _ => Err(Errno::NODATA),
        }
    }

    fn set_attribute(&self, node: &Node, name: &OsStr, value: &[u8], flags: i32) -> Outcome<()> {
        let item = match node.kind {
            Kind::Item(item) if is_virtual(name) => item,
            // What a tool that copies a prefix directory can do without.
            _ if node.real.is_none() => return Err(Errno::OPNOTSUPP),
            _ => {
                inside::set_attribute(real(node)?.as_fd(), name, value, flags)?;
                self.changed(node, None);
                return Ok(());
            }
        };
        let there = self.namespace.get_attribute(item, name).is_ok();
        match (there, flags) {
            (true, libc::XATTR_CREATE) => Err(Errno::EXIST),
            (false, libc::XATTR_REPLACE) => Err(Errno::NODATA),
            _ => self.settle(self.namespace.set_attribute(item, name, value)),
        }
    }

    fn remove_attribute(&self, node: &Node, name: &OsStr) -> Outcome<()> {
        match node.kind {
            Kind::Item(item) if is_virtual(name) => {
                self.settle(self.namespace.remove_attribute(item, name))
            }
            _ if node.real.is_none() => Err(Errno::OPNOTSUPP),
            _ => {
                inside::remove_attribute(real(node)?.as_fd(), name)?;
                self.changed(node, None);
                Ok(())
            }
        }
    }
}

/// The type of a name, asked for where the native filesystem does not list it.
fn known_type(directory: BorrowedFd<'_>, name: &OsStr, kind: FileType) -> FileType {
    if kind != FileType::Unknown {
        return kind;
    }
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::statat(directory, name, flags).map_or(FileType::Unknown, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    })
}
