//! Open files and directories, by the kernel's handle number.

use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fuser::FileHandle;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::backing::Backing;
use crate::archive::WriteIntent;
use crate::fuse::inode::{MappableOpen, Node, NodeId};
use crate::fuse::inside::{self, ErrnoResult, ListedPart};
use crate::fuse::namespace::{
    DirectoryEntry, GeneratedText, OpenDeposit, PREFIX_PAGE, PrefixListing,
};
use crate::os::access_times::AccessTimes;
use crate::os::caller::Caller;

/// An open file or directory.
#[derive(Debug)]
pub(super) enum Handle {
    /// A real file.
    File {
        file: Arc<OwnedFd>,
        writable: bool,
        /// Whether a program can map it for writing.
        mappable: bool,
        /// The user who opened it. This user is charged for pages that are written through a mapping, and is
        /// responsible for the content of a sidecar.
        opener: Caller,
        node: Arc<Node>,
        /// The write intent of a sidecar that may be written: its content is applied when it is closed.
        change: Mutex<Option<WriteIntent>>,
        /// The state in which a close has found the file, if that close succeeded and no mapping can change it.
        closed: Mutex<Option<Box<ContentState>>>,
        /// For a file that a depositor has created: the deposit lasts until the handle is closed.
        #[allow(dead_code, reason = "kept for as long as the handle")]
        deposit: Option<OpenDeposit>,
        /// Lives as long as any handle of the file, since the kernel reads and writes through it.
        #[allow(dead_code, reason = "kept for as long as the handle")]
        backing: Option<Arc<Backing>>,
        mapping: Option<MappableOpen>,
    },
    /// A virtual file.
    Text(Arc<Node>),
    /// A virtual file whose text was generated when it was opened.
    Generated(Arc<GeneratedText>),
    /// A real directory inside an item, listed directly.
    Directory(Directory),
    /// A level above the items whose listing is that of its real directory, in part.
    Level(Directory),
    /// An IBIp prefix, listed from the index.
    Prefix {
        listing: PrefixListing,
        node: Arc<Node>,
    },
    /// Another listing above the items, as of when it was opened.
    Listing {
        listed: Vec<DirectoryEntry>,
        node: Arc<Node>,
    },
}

/// The attributes that show that the content of a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentState {
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl ContentState {
    /// The state of an open file; None if it is not known.
    #[allow(clippy::unnecessary_cast, reason = "the types depend on the platform")]
    pub(super) fn of(file: &OwnedFd) -> Option<Box<ContentState>> {
        let stat = rustix::fs::fstat(file).ok()?;
        Some(Box::new(ContentState {
            size: stat.st_size,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }))
    }
}

/// A real directory. It is opened when it is first read, since the kernel usually lists it from its cache.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) node: Arc<Node>,
    /// Whether the sidecar is left out, because it is masked for who opened the directory.
    pub(super) without_sidecar: bool,
    access_times: Arc<AccessTimes>,
    opened: Mutex<Option<Arc<OwnedFd>>>,
    /// The current position in the directory, if known.
    position: Mutex<Option<u64>>,
}

impl Directory {
    pub(super) fn new(
        node: Arc<Node>,
        without_sidecar: bool,
        access_times: Arc<AccessTimes>,
    ) -> Directory {
        Directory {
            node,
            without_sidecar,
            access_times,
            opened: Mutex::default(),
            position: Mutex::default(),
        }
    }

    pub(super) fn open(&self) -> ErrnoResult<Arc<OwnedFd>> {
        let mut opened = self.opened.lock();
        if let Some(directory) = &*opened {
            return Ok(Arc::clone(directory));
        }
        let directory = inside::open_directory(self.node.file()?.as_fd())?;
        self.access_times.apply_to(&directory);
        let directory = Arc::new(directory);
        *opened = Some(Arc::clone(&directory));
        *self.position.lock() = Some(0);
        Ok(directory)
    }

    /// Lists names from an offset on, as many as one system call returns. `visit` gets the directory, the
    /// name, its inode, its type and the offset of the next name, and returns whether it wants more. Names
    /// that `is_wanted` rejects are skipped: if all are, the next ones are read, since an empty answer would
    /// be the end.
    pub(super) fn list(
        &self,
        offset: u64,
        is_wanted: impl Fn(&CStr, FileType) -> bool,
        mut visit: impl FnMut(BorrowedFd<'_>, &CStr, u64, FileType, u64) -> bool,
    ) -> ErrnoResult<()> {
        let directory = self.open()?;
        let directory = directory.as_fd();
        // Held to the end: it describes the position of the shared descriptor.
        let mut position = self.position.lock();
        if *position != Some(offset) {
            *position = None;
            rustix::fs::seek(directory, rustix::fs::SeekFrom::Start(offset))?;
        }
        let mut any = false;
        loop {
            let mut last = offset;
            let part = inside::list_part(directory, &mut |name, inode, kind, next| {
                last = next;
                if !is_wanted(name, kind) {
                    return true;
                }
                any = true;
                visit(directory, name, inode, kind, next)
            });
            *position = match part {
                Ok(Some(ListedPart { is_all: true })) => Some(last),
                _ => None,
            };
            // An empty answer would mean the end of the directory.
            if any || part?.is_none() {
                return Ok(());
            }
        }
    }
}

/// The number of names of a listing above the items that count as much as an open file.
const NAMES: usize = 32;

/// An open file or directory, with its user.
#[derive(Debug)]
struct Opened {
    handle: Arc<Handle>,
    user: u32,
    weight: usize,
}

#[derive(Debug, Default)]
struct Open {
    handles: HashMap<u64, Opened>,
    /// The weight of each user's open handles.
    of_users: HashMap<u32, usize>,
}

/// All open handles, with a limit for each user except root and the daemon's own. The descriptors belong to
/// the daemon, and one user could exhaust them. No other lock is taken under its lock.
#[derive(Debug)]
pub(super) struct Handles {
    open: RwLock<Open>,
    next: AtomicU64,
    share: usize,
    exempt: u32,
}

impl Handles {
    pub(super) fn new(share: usize) -> Handles {
        Handles {
            open: RwLock::default(),
            next: AtomicU64::default(),
            share: share.max(1),
            exempt: rustix::process::geteuid().as_raw(),
        }
    }

    /// Refuses a user who has reached the limit, before anything is opened or created.
    pub(super) fn check(&self, user: u32) -> ErrnoResult<()> {
        if [0, self.exempt].contains(&user) {
            return Ok(());
        }
        let open = self.open.read();
        match open.of_users.get(&user) {
            Some(count) if *count >= self.share => Err(Errno::NFILE),
            _ => Ok(()),
        }
    }

    pub(super) fn add(&self, user: u32, handle: Handle) -> FileHandle {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let weight = match &handle {
            // A single listing counts at most as a quarter of the limit, so that every user can open some.
            Handle::Listing { listed, .. } => 1 + listed.len() / NAMES,
            Handle::Prefix { .. } => 1 + PREFIX_PAGE / NAMES,
            _ => 1,
        };
        let weight = weight.min(1 + self.share / 4);
        let handle = Arc::new(handle);
        let mut open = self.open.write();
        *open.of_users.entry(user).or_default() += weight;
        let opened = Opened {
            handle,
            user,
            weight,
        };
        open.handles.insert(number, opened);
        FileHandle(number)
    }

    pub(super) fn get(&self, number: FileHandle) -> Option<Arc<Handle>> {
        let open = self.open.read();
        let opened = open.handles.get(&number.0)?;
        Some(Arc::clone(&opened.handle))
    }

    /// Removes a handle. It closes when the return value is dropped.
    pub(super) fn remove(&self, number: FileHandle) -> Option<Arc<Handle>> {
        let mut open = self.open.write();
        let opened = open.handles.remove(&number.0)?;
        if let Some(count) = open.of_users.get_mut(&opened.user) {
            *count = count.saturating_sub(opened.weight);
            if *count == 0 {
                open.of_users.remove(&opened.user);
            }
        }
        Some(opened.handle)
    }

    /// Whether any process has a file open for writing. This scans all handles, so it is used only for files
    /// with set-id bits.
    pub(super) fn is_written(&self, id: NodeId) -> bool {
        let open = self.open.read();
        open.handles.values().any(|handle| match &*handle.handle {
            Handle::File { writable, node, .. } => *writable && node.id == id,
            _ => false,
        })
    }

    /// The files that are open for writing.
    pub(super) fn written(&self) -> Vec<Arc<Node>> {
        let open = self.open.read();
        let written = open.handles.values().filter_map(|it| match &*it.handle {
            Handle::File {
                writable: true,
                node,
                ..
            } => Some(Arc::clone(node)),
            _ => None,
        });
        written.collect()
    }

    /// The number of open handles.
    pub(super) fn len(&self) -> usize {
        self.open.read().handles.len()
    }
}
