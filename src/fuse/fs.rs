//! The FUSE door: take a request, call one function, translate the answer. Decides nothing that the
//! namespace or the native filesystem could.
//!
//! Inside items requests go to `inside`, above and beside them to `namespace`. The kernel does the
//! permission checks (`default_permissions`), file locks, and, where it can, reading and writing
//! (FUSE passthrough). What a change makes stale in another tree goes through `mirror`.

mod aside;
mod backing;
mod convert;
mod crew;
mod handles;
mod leases;
mod mirror;
mod protocol;
mod readers;

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{FileHandle, FopenFlags, Notifier};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::archive::WriteIntent;
use crate::archive::tree::SIDECAR;
use crate::fuse::attr::Attr;
use crate::fuse::descriptors;
use crate::fuse::inode::{Kind, Node, NodeId, View};
use crate::fuse::inside::{self, CAPABILITY, Change, New, Outcome};
use crate::fuse::namespace::{Entry, Held, Namespace, Stale, is_virtual};
use crate::os::caller::Caller;
use aside::Aside;
use backing::{Backings, Route, Way};
use crew::Crew;
use handles::{Directory, Handle, Handles};
use leases::{Hindrance, Leases};
use mirror::Mirror;
use readers::Readers;

/// The virtual attribute of the mount's root that says how files are read and written.
pub const DATA: &str = "user.ibi.data";

/// The virtual attribute of the mount's root that says how much the daemon holds for the kernel.
pub const HELD: &str = "user.ibi.held";

/// Who else may enter a directory.
const ACL: &str = "system.posix_acl_access";

/// What SELinux calls a file. Where SELinux runs, the kernel answers by itself. Where it does not,
/// `ls -l` asks for it for every file until told that there are no labels here; so whoever asks
/// for one that is not there is told so.
const LABEL: &str = "security.selinux";

/// How long the kernel may answer from memory what only we change; see `mirror`.
const LASTING: Duration = Duration::from_secs(60);

/// The mounted filesystem.
#[derive(Debug)]
pub struct Ibifs {
    inner: Arc<Inner>,
    leases: Leases,
    aside: Aside,
    /// What may wait for a disk for long.
    slow: Aside,
    at_end: fn(),
}

impl std::ops::Deref for Ibifs {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

/// What requests need, also those that go on in a thread of their own.
#[derive(Debug)]
pub struct Inner {
    namespace: Arc<Namespace>,
    handles: Handles,
    mirror: Mirror,
    backings: Backings,
    readers: Readers,
    crew: Arc<Crew>,
}

/// How many threads are to take requests.
pub fn threads() -> usize {
    processors().clamp(2, 8) * 2
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// What a file was opened as.
struct Opened {
    handle: FileHandle,
    flags: FopenFlags,
    backing: Option<Arc<backing::Backing>>,
}

/// A name in a listing.
struct Name<'a> {
    name: &'a OsStr,
    number: u64,
    kind: FileType,
    /// Where the listing goes on after it.
    next: u64,
}

impl Name<'_> {
    fn is_dots(&self) -> bool {
        self.name == "." || self.name == ".."
    }
}

/// Where a listing inside an item goes on after `.`. It begins with `.` and `..`, for which nothing has
/// to be read; ext4 has them anywhere. No filesystem's own offset: ext4's are hashes of 63 bits, the
/// others' count.
const AFTER_DOT: u64 = i64::MAX as u64 - 2;
/// The same after `..`.
const AFTER_DOTS: u64 = i64::MAX as u64 - 1;

impl Ibifs {
    /// The filesystem of a namespace; `notifier` is filled once it is mounted, `at_end` is called
    /// when the kernel has let go of it.
    pub fn new(
        namespace: Namespace,
        passthrough: bool,
        notifier: Arc<OnceLock<Notifier>>,
        at_end: fn(),
    ) -> std::io::Result<Ibifs> {
        let crew = Crew::start(threads(), processors())?;
        let way = if passthrough {
            Way::Kernel { tried: false }
        } else {
            Way::Daemon("asked for with -o passthrough=no".to_owned())
        };
        let inner = Inner {
            namespace: Arc::new(namespace),
            // An eighth of the descriptors, and root is not bound by it.
            handles: Handles::new(descriptors::limit() / 8),
            mirror: Mirror::start(notifier, Arc::clone(&crew))?,
            backings: Backings::new(way),
            readers: Readers::default(),
            crew,
        };
        Ok(Ibifs {
            inner: Arc::new(inner),
            leases: Leases::start()?,
            aside: Aside::of_work(processors().clamp(2, 4)),
            slow: Aside::of_disk(),
            at_end,
        })
    }
}

impl Inner {
    fn node(&self, number: fuser::INodeNo) -> Outcome<Arc<Node>> {
        self.namespace
            .nodes
            .get(NodeId(number.0))
            .ok_or(Errno::STALE)
    }

    fn forget_node(&self, number: fuser::INodeNo, lookups: u64) {
        if self.namespace.nodes.forget(NodeId(number.0), lookups) {
            self.backings.forget(NodeId(number.0));
        }
    }

    /// Has other trees forget the listing of this directory, and a name that was in it.
    fn names_changed(&self, parent: &Node, name: Option<&OsStr>) {
        self.mirror.forget(self.namespace.stale_names(parent, name));
    }

    /// Has other trees forget the attributes of this node.
    fn attributes_changed(&self, node: &Node) {
        self.mirror.forget(self.namespace.stale_attributes(node));
    }

    /// Has the kernel forget what we have changed of items ourselves.
    fn settle<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        self.mirror.forget(self.namespace.stale_items());
        outcome
    }

    /// Changes a node. The kernel has checked by what it knew of the owner in this tree, which another
    /// tree may have changed: where that can be, the native filesystem checks again.
    fn checked_again<T>(
        &self,
        caller: &Caller,
        node: &Node,
        change: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        // Nor does it know the mode of a level on the disk.
        if self.namespace.is_met_elsewhere(node) || matches!(node.kind, Kind::Level(_)) {
            caller.act(change)
        } else {
            change()
        }
    }

    fn set_attributes(
        &self,
        caller: &Caller,
        node: &Node,
        handle: Option<FileHandle>,
        change: &Change,
    ) -> Result<Attr, Hindrance> {
        if node.real.is_none() {
            return match node.kind {
                // A tool that copies a prefix directory or a modifier's link sets its times and
                // owner at the end.
                Kind::Prefix(_) | Kind::Mint | Kind::Link(_) | Kind::OwnLink(..) => {
                    Ok(self.namespace.attributes(node)?)
                }
                _ => Err(Errno::PERM.into()),
            };
        }
        let change = match change.mode {
            Some(mode) => &Change {
                mode: self.namespace.mode_to_keep(node, mode),
                ..*change
            },
            None => change,
        };
        let open = handle.and_then(|handle| self.handles.get(handle));
        let open = match open.as_deref() {
            Some(Handle::File { file, writable, .. }) if *writable => Some(file.as_fd()),
            _ => None,
        };
        let file = node.file()?;
        // Of all changes only that of the size waits for the holder of a lease.
        let changed = self.checked_again(caller, node, || {
            inside::change(file.as_fd(), open, change, caller, || {
                self.handles.is_written(node.id)
            })
        });
        match change.size {
            Some(_) => changed.map_err(Hindrance::of)?,
            None => changed?,
        }
        self.attributes_changed(node);
        if change.mode.is_some() || change.uid.is_some() || change.gid.is_some() {
            self.mirror.forget(self.namespace.stale_search(node));
        }
        Ok(self.namespace.attributes(node)?)
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
        let replaced = self.namespace.make_way(caller, parent, name)?;
        let kept;
        let new = match new {
            New::Link(target) => {
                kept = self.namespace.link_to_keep(parent, target)?;
                New::Link(&kept)
            }
            other => other,
        };
        let made = inside::make(parent.file()?.as_fd(), name, new, mode, umask, caller)?;
        self.namespace.note_filling(caller, parent);
        self.names_changed(parent, replaced);
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
    ) -> Outcome<(Entry, OwnedFd, Option<Held>)> {
        self.handles.check(caller.uid)?;
        if !parent.is_in_item() {
            let namespace = &self.namespace;
            let made = namespace.create_beside(caller, parent, name, flags, mode, umask);
            let (entry, opened) = self.settle(made)?;
            return Ok((entry, opened, None));
        }
        let change = self.namespace.changing(parent, name)?;
        let replaced = self.namespace.make_way(caller, parent, name)?;
        let opened = inside::create(parent.file()?.as_fd(), name, flags, mode, umask, caller)?;
        self.names_changed(parent, replaced);
        let entry = self.namespace.made_open(parent, name, opened.as_fd())?;
        entry
            .node
            .learnt
            .set_lacks_capability(flags & libc::O_EXCL != 0);
        // It is marked again as one that is open for writing.
        change.into_iter().for_each(WriteIntent::done);
        let held = self.namespace.note_held(caller, parent);
        Ok((entry, opened, held))
    }

    fn remove(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        is_directory: bool,
    ) -> Outcome<()> {
        if parent.is_in_item() {
            if self.namespace.withdraws(caller, parent) {
                let stale = self
                    .namespace
                    .withdraw(caller, parent, name, is_directory)?;
                // The kernel counts after the answer.
                self.mirror.forget_later(stale);
                return Ok(());
            }
            let change = self.namespace.changing(parent, name)?;
            let directory = parent.file()?;
            let victim = self.namespace.stale_victim(parent, name);
            if is_directory {
                self.namespace.hold(parent, name);
            }
            inside::remove(directory.as_fd(), name, is_directory)?;
            self.mirror.forget(victim);
            self.settle(self.namespace.name_gone(caller, parent, name))?;
            self.names_changed(parent, Some(name));
            change.into_iter().for_each(WriteIntent::done);
            return Ok(());
        }
        if is_directory {
            return match self.namespace.remove_directory(caller, parent, name) {
                Ok(stale) => {
                    self.mirror.forget(stale);
                    Ok(())
                }
                Err(errno) => {
                    // A sync may have failed after the directory had gone.
                    let stale = Stale::Name(parent.id, name.to_owned());
                    self.mirror.forget_later(vec![stale]);
                    Err(errno)
                }
            };
        }
        self.settle(self.namespace.remove_beside(caller, parent, name))
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
        match (parent.is_in_item(), new_parent.is_in_item()) {
            (true, true) => {}
            (false, false) => {
                let namespace = &self.namespace;
                let renamed =
                    namespace.rename_beside(caller, parent, name, new_parent, new_name, flags);
                return self.settle(renamed);
            }
            // An item or a level stays where its name says; a file of an item may be copied out.
            (false, true) => return Err(Errno::PERM),
            (true, false) => return Err(Errno::XDEV),
        }
        let (from, to) = (parent.file()?, new_parent.file()?);
        if parent.view != new_parent.view
            && self
                .namespace
                .is_same((parent, name), (new_parent, new_name))
        {
            // Two names of one file: there is nothing to do. The kernel, to which they are two, moves
            // the one into the place of the other.
            if flags & libc::RENAME_EXCHANGE == 0 {
                self.namespace.renamed_to_itself(new_parent, new_name);
            }
            self.mirror.forget_later(vec![
                Stale::Name(new_parent.id, new_name.to_owned()),
                Stale::Name(parent.id, name.to_owned()),
            ]);
            return Ok(());
        }
        if parent.view != new_parent.view {
            // A directory or link is another node in each tree; and while the kernel renames it
            // holds both directories, so that neither could be told of its stale name before the
            // answer. Tools then copy.
            return Err(Errno::XDEV);
        }
        let changes = [
            self.namespace.changing(parent, name)?,
            self.namespace.changing(new_parent, new_name)?,
        ];
        if flags & libc::RENAME_NOREPLACE != 0 {
            self.namespace.make_way(caller, new_parent, new_name)?;
        }
        let mut stale = self.namespace.stale_victim(new_parent, new_name);
        self.namespace.hold(new_parent, new_name);
        inside::rename_for(from.as_fd(), name, to.as_fd(), new_name, flags, caller)?;
        self.namespace.note_filling(caller, new_parent);
        stale.extend(self.namespace.stale_names(parent, Some(name)));
        stale.extend(self.namespace.stale_names(new_parent, Some(new_name)));
        if parent.id != new_parent.id {
            stale.extend(self.namespace.stale_links(new_parent, new_name));
            if flags & libc::RENAME_EXCHANGE != 0 {
                stale.extend(self.namespace.stale_links(parent, name));
            }
        }
        self.mirror.forget(stale);
        for (directory, name) in [(parent, name), (new_parent, new_name)] {
            self.note_sidecar(caller, directory, name)?;
        }
        self.settle(self.namespace.name_gone(caller, parent, name))?;
        changes.into_iter().flatten().for_each(WriteIntent::done);
        Ok(())
    }

    /// After a rename: what is now called `.ibi` in an item is its sidecar.
    fn note_sidecar(&self, caller: &Caller, parent: &Node, name: &OsStr) -> Outcome<()> {
        let Kind::Item(item) = parent.kind else {
            return Ok(());
        };
        if name != SIDECAR {
            return Ok(());
        }
        let Ok(found) = inside::find(parent.file()?.as_fd(), name) else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(&found)?;
        let number = self
            .namespace
            .nodes
            .id_of(stat.st_dev, stat.st_ino, View::Rep);
        if let Some(node) = self.namespace.nodes.get(number) {
            node.learnt.set_sidecar_of(Some(item));
        }
        // The kernel has given the sidecar's name the lifetime of the file that was renamed.
        self.mirror
            .forget_later(vec![Stale::Name(parent.id, name.to_owned())]);
        self.settle(self.namespace.sidecar_written(caller, item))
    }

    fn make_hard_link(
        &self,
        caller: &Caller,
        node: &Node,
        parent: &Node,
        name: &OsStr,
    ) -> Outcome<Entry> {
        if !parent.is_in_item() {
            return Err(Errno::PERM);
        }
        let change = self.namespace.changing(parent, name)?;
        let replaced = self.namespace.make_way(caller, parent, name)?;
        let made = inside::link(node.file()?.as_fd(), parent.file()?.as_fd(), name, caller)?;
        self.namespace.note_filling(caller, parent);
        self.attributes_changed(node);
        self.names_changed(parent, replaced);
        let entry = self.namespace.made_inside(parent, name, made)?;
        if entry.node.id != node.id {
            // A symbolic link of one tree with a new name in the other, where it is another node: the
            // kernel counts the name there.
            self.mirror.forget(vec![Stale::Attributes(node.id)]);
        }
        self.note_sidecar(caller, parent, name)?;
        change.into_iter().for_each(WriteIntent::done);
        Ok(entry)
    }

    /// Opens a file, or takes one that has just been made. Nothing has changed where a lease is in the
    /// way.
    fn open_file(
        &self,
        caller: &Caller,
        node: &Arc<Node>,
        file: Option<(OwnedFd, Option<Held>)>,
        flags: i32,
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<fuser::BackingId>,
    ) -> Result<Opened, Hindrance> {
        let access = OFlags::from_bits_retain(flags as u32) & OFlags::RWMODE;
        if file.is_none() {
            self.handles.check(caller.uid)?;
        }
        if let Kind::Text(_) = node.kind {
            // Its permissions do not keep root out; there is nothing behind it to write to.
            if access != OFlags::RDONLY {
                return Err(Errno::PERM.into());
            }
            return Ok(Opened {
                handle: self.handles.add(caller.uid, Handle::Text(node.clone())),
                flags: FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
                backing: None,
            });
        }
        if let Kind::Generated(asked) = node.kind {
            if access != OFlags::RDONLY {
                return Err(Errno::PERM.into());
            }
            let told = self.namespace.tell(caller, asked)?;
            return Ok(Opened {
                handle: self.handles.add(caller.uid, Handle::Told(told)),
                // What another open of it says may differ.
                flags: FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH,
                backing: None,
            });
        }
        let _unleased;
        let change = match node.learnt.sidecar_of() {
            Some(item) if access != OFlags::RDONLY => {
                if file.is_none() {
                    _unleased = self.open_unleased(caller, node, flags)?;
                }
                let change = self.namespace.archive().begin_write(item);
                Some(change.map_err(Errno::from)?)
            }
            _ => None,
        };
        let (file, held) = match file {
            Some(made) => made,
            None => {
                let opened = self.open_content(caller, node, flags);
                (opened.map_err(Hindrance::of)?, None)
            }
        };
        let route = self
            .backings
            .route(node.id, file.as_fd(), access, caller, register);
        let (mut flags, backing) = match route {
            Route::Kernel(backing) => {
                if access == OFlags::RDWR && node.learnt.note_mapped() {
                    self.mirror.forget(vec![Stale::Attributes(node.id)]);
                }
                (FopenFlags::empty(), Some(backing))
            }
            Route::Cached => (FopenFlags::FOPEN_KEEP_CACHE, None),
            Route::Direct => (FopenFlags::FOPEN_DIRECT_IO, None),
        };
        if node.learnt.sidecar_of().is_none() {
            // Nothing is kept back that a close would have to bring out.
            flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        let handle = Handle::File {
            file,
            writable: access != OFlags::RDONLY,
            // Its thread may be gone by then, and its number another's.
            opener: Caller { pid: 0, ..*caller },
            node: node.clone(),
            held,
            change: parking_lot::Mutex::new(change),
            backing: backing.clone(),
        };
        Ok(Opened {
            handle: self.handles.add(caller.uid, handle),
            flags,
            backing,
        })
    }

    /// Opens a file as it is, so that no lease can be taken on it that the same open with more flags
    /// would have to wait for.
    fn open_unleased(
        &self,
        caller: &Caller,
        node: &Node,
        flags: i32,
    ) -> Result<OwnedFd, Hindrance> {
        let flags = flags & (libc::O_ACCMODE | libc::O_APPEND);
        let opened = self.open_content(caller, node, flags);
        opened.map_err(Hindrance::of)
    }

    fn open_content(&self, caller: &Caller, node: &Node, flags: i32) -> Outcome<OwnedFd> {
        // To cut a file short may take its set-id bits, which depends on the caller.
        if flags & libc::O_TRUNC == 0
            && let Some(real) = &node.real
            && let Some(opened) =
                inside::open_or_append(flags, inside::content_flags(flags), |flags| {
                    real.file.open_content(flags)
                })?
        {
            return Ok(opened);
        }
        inside::open(node.file()?.as_fd(), flags, caller)
    }

    /// What happens to a sidecar when whoever wrote it closes it.
    fn closed(&self, caller: &Caller, handle: FileHandle) -> Outcome<()> {
        if let Some(open) = self.handles.get(handle)
            && let Handle::File {
                writable: true,
                opener,
                node,
                ..
            } = &*open
            && let Some(item) = node.learnt.sidecar_of()
        {
            // Whoever closes it last may have been handed it; it is opened by the user who answers for
            // what is written.
            let is_opener = (caller.uid, caller.gid) == (opener.uid, opener.gid);
            let writer = if is_opener { *caller } else { *opener };
            return self.settle(self.namespace.sidecar_written(&writer, item));
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
            Some(Handle::Directory(directory)) => use_file(directory.open()?.as_fd()),
            _ => Err(Errno::BADF),
        }
    }

    /// The same for a file, with who opened it.
    fn with_file_and_opener<T>(
        &self,
        handle: FileHandle,
        use_file: impl FnOnce(BorrowedFd<'_>, Caller) -> Outcome<T>,
    ) -> Outcome<T> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::File { file, opener, .. }) => use_file(file.as_fd(), *opener),
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
                Ok(part_of(text, offset, size))
            }
            Some(Handle::Told(told)) => Ok(part_of(told.bytes(), offset, size)),
            _ => Err(Errno::BADF),
        }
    }

    /// Opens a directory. The kernel may list one inside an item from memory: it forgets a listing
    /// when it changes the directory itself, and when `mirror` tells it to.
    fn open_directory(
        &self,
        caller: &Caller,
        node: Arc<Node>,
    ) -> Outcome<(FileHandle, FopenFlags)> {
        self.handles.check(caller.uid)?;
        if !node.is_in_item() {
            let listed = self.namespace.list(caller, &node)?;
            let handle = self
                .handles
                .add(caller.uid, Handle::Listing { listed, node });
            return Ok((handle, FopenFlags::empty()));
        }
        let handle = Handle::Directory(Directory::new(node));
        let handle = self.handles.add(caller.uid, handle);
        let flags = FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE;
        Ok((handle, flags))
    }

    /// Lists names from an offset on; `add` says whether the answer is full.
    fn list(
        &self,
        handle: FileHandle,
        offset: u64,
        mut add: impl FnMut(&Node, Name<'_>) -> bool,
    ) -> Outcome<()> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::Listing { listed, node }) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(listed.len());
                for (index, line) in listed.iter().enumerate().skip(start) {
                    let name = Name {
                        name: &line.name,
                        number: line.st_ino,
                        kind: line.kind,
                        next: index as u64 + 1,
                    };
                    if add(node, name) {
                        break;
                    }
                }
                Ok(())
            }
            Some(Handle::Directory(opened)) => {
                let node = &opened.node;
                let device = node.real.as_ref().map_or(0, |real| real.device);
                if matches!(offset, 0 | AFTER_DOT) {
                    let told = [(".", AFTER_DOT), ("..", AFTER_DOTS)];
                    let dots = told.into_iter().zip(self.dots(node)?);
                    for ((name, next), number) in dots.skip(usize::from(offset == AFTER_DOT)) {
                        let name = Name {
                            name: OsStr::new(name),
                            number,
                            kind: FileType::Directory,
                            next,
                        };
                        if add(node, name) {
                            return Ok(());
                        }
                    }
                }
                let offset = match offset {
                    AFTER_DOT | AFTER_DOTS => 0,
                    offset => offset,
                };
                let is_wanted = |name: &CStr, inode: u64| {
                    let name = name.to_bytes();
                    !matches!(name, b"." | b"..")
                        && !self.namespace.is_out_of_sight(
                            node,
                            OsStr::from_bytes(name),
                            Some(inode),
                        )
                };
                opened.list(offset, is_wanted, |directory, name, inode, kind, next| {
                    let name = OsStr::from_bytes(name.to_bytes());
                    let kind = known_type(directory, name, kind);
                    let number = self.namespace.nodes.st_ino(device, inode);
                    let name = Name {
                        name,
                        number,
                        kind,
                        next,
                    };
                    !add(node, name)
                })
            }
            _ => Err(Errno::BADF),
        }
    }

    /// The numbers of `.` and `..` of a directory inside an item.
    fn dots(&self, node: &Node) -> Outcome<[u64; 2]> {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let above = rustix::fs::statat(node.file()?.as_fd(), "..", flags)?;
        let above = self.namespace.nodes.st_ino(above.st_dev, above.st_ino);
        Ok([node.st_ino, above])
    }

    /// Lists names with their nodes, where the caller looks at names (see `readers`); where not, the
    /// answer to the first request is `.` and `..` alone, after which the kernel asks for names only.
    fn list_with_nodes(
        &self,
        caller: &Caller,
        directory: NodeId,
        handle: FileHandle,
        offset: u64,
        mut add: impl FnMut(&Name<'_>, &Attr, Option<&Entry>) -> bool,
    ) -> Outcome<()> {
        let is_asked = offset > 0 || self.readers.lists(caller.pid, directory);
        let mut added = 0;
        let mut failed = None;
        self.list(handle, offset, |node, name| {
            let added_so_far = added;
            added += 1;
            if name.is_dots() {
                return match self.namespace.attributes(node) {
                    Ok(attr) => add(&name, &attr, None),
                    Err(_) => false,
                };
            }
            if !is_asked && added_so_far > 0 {
                return true;
            }
            match self.namespace.listed(caller, node, name.name) {
                Ok(entry) => {
                    let is_full = add(&name, &entry.attr, Some(&entry));
                    if is_full {
                        self.forget_node(fuser::INodeNo(entry.node.id.0), 1);
                    }
                    is_full
                }
                // It was removed since.
                Err(Errno::NOENT) => {
                    added = added_so_far;
                    false
                }
                // By its name alone: what it is, is not for this caller.
                Err(Errno::ACCESS) => match self.namespace.attributes(node) {
                    Ok(attr) => add(&name, &attr, None),
                    Err(_) => false,
                },
                Err(error) => {
                    added = added_so_far;
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

    /// What is held until the kernel lets go of it: in numbers, to see whether it ever does.
    fn held(&self) -> String {
        format!(
            "nodes {} handles {} backings {}",
            self.namespace.nodes.len(),
            self.handles.len(),
            self.backings.len()
        )
    }

    fn get_attribute(&self, node: &Node, name: &OsStr, limit: usize) -> Outcome<Vec<u8>> {
        match (&node.kind, &node.real) {
            (Kind::Item(item), _) if is_virtual(name) => self.namespace.get_attribute(*item, name),
            (Kind::Root, _) if name == DATA => Ok(self.backings.describe().into_bytes()),
            (Kind::Root, _) if name == HELD => Ok(self.held().into_bytes()),
            // The kernel asks before the first write to a file whether there is one to take away.
            (..) if limit == 0 && name == CAPABILITY && node.learnt.lacks_capability() => {
                Err(Errno::NODATA)
            }
            (_, Some(real)) => {
                let value = inside::get_attribute(real.file.open()?.as_fd(), name, limit);
                match value {
                    Err(Errno::NODATA) if name == LABEL => Err(Errno::OPNOTSUPP),
                    Err(Errno::NODATA) if name == CAPABILITY => {
                        node.learnt.set_lacks_capability(true);
                        value
                    }
                    value => value,
                }
            }
            (Kind::Mint | Kind::Prefix(_), None) if name == ACL => {
                self.namespace.virtual_acl(name, limit)
            }
            _ => Err(Errno::NODATA),
        }
    }

    fn set_attribute(
        &self,
        caller: &Caller,
        node: &Node,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Outcome<()> {
        let item = match node.kind {
            Kind::Item(item) if is_virtual(name) => item,
            // What a tool that copies a prefix directory can do without.
            _ if node.real.is_none() => return Err(Errno::OPNOTSUPP),
            _ => {
                let file = node.file()?;
                let kept = self.namespace.list_to_keep(node, name, value);
                self.checked_again(caller, node, || {
                    inside::set_attribute(file.as_fd(), name, &kept, flags, caller)
                })?;
                if name == CAPABILITY {
                    node.learnt.set_lacks_capability(false);
                }
                self.attributes_changed(node);
                if name == ACL {
                    self.mirror.forget(self.namespace.stale_search(node));
                }
                return Ok(());
            }
        };
        let there = self.namespace.get_attribute(item, name).is_ok();
        match (there, flags) {
            (true, libc::XATTR_CREATE) => Err(Errno::EXIST),
            (false, libc::XATTR_REPLACE) => Err(Errno::NODATA),
            _ => self.settle(self.namespace.set_attribute(caller, item, name, value)),
        }
    }

    fn remove_attribute(&self, caller: &Caller, node: &Node, name: &OsStr) -> Outcome<()> {
        match node.kind {
            Kind::Item(item) if is_virtual(name) => {
                self.settle(self.namespace.remove_attribute(caller, item, name))
            }
            _ if node.real.is_none() => Err(Errno::OPNOTSUPP),
            _ => {
                let file = node.file()?;
                if name == CAPABILITY {
                    inside::check_loss(file.as_fd(), caller, || self.handles.is_written(node.id))?;
                }
                self.checked_again(caller, node, || {
                    inside::remove_attribute(file.as_fd(), name)
                })?;
                self.attributes_changed(node);
                if name == ACL {
                    self.mirror.forget(self.namespace.stale_search(node));
                }
                Ok(())
            }
        }
    }
}

/// So many bytes of a text from an offset on, as far as there are any.
fn part_of(text: &[u8], offset: u64, size: usize) -> Vec<u8> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let start = start.min(text.len());
    let end = start.saturating_add(size).min(text.len());
    text[start..end].to_vec()
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
