//! Open files and directories, by the number the kernel knows them by.

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
use crate::fuse::inode::{Node, NodeId};
use crate::fuse::inside::{self, Outcome, Part};
use crate::fuse::namespace::{GeneratedText, Listed, OpenDeposit};
use crate::os::caller::Caller;

/// An open file or directory.
#[derive(Debug)]
pub(super) enum Handle {
    /// A real file.
    File {
        file: OwnedFd,
        writable: bool,
        /// The user who opened it, who is charged for pages that are written through a mapping, and answers
        /// for what a sidecar then says.
        opener: Caller,
        node: Arc<Node>,
        /// A sidecar that may be written: what it says is taken in when it is closed.
        change: Mutex<Option<WriteIntent>>,
        /// Where a depositor has made it: the deposit goes on until it is closed.
        #[allow(dead_code, reason = "kept for as long as the handle")]
        deposit: Option<OpenDeposit>,
        /// Lives as long as any handle of the file: the kernel reads and writes through it.
        #[allow(dead_code, reason = "kept for as long as the handle")]
        backing: Option<Arc<Backing>>,
    },
    /// A virtual file.
    Text(Arc<Node>),
    /// A virtual file whose text was generated when it was opened.
    Generated(Arc<GeneratedText>),
    /// A real directory inside an item, listed as it stands.
    Directory(Directory),
    /// A listing above the items, as it stood when it was opened.
    Listing {
        listed: Vec<Listed>,
        node: Arc<Node>,
    },
}

/// A real directory, opened when it is first read: mostly the kernel lists it from memory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) node: Arc<Node>,
    opened: Mutex<Option<Arc<OwnedFd>>>,
    /// Where its listing stands, if that is known.
    position: Mutex<Option<u64>>,
}

impl Directory {
    pub(super) fn new(node: Arc<Node>) -> Directory {
        Directory {
            node,
            opened: Mutex::default(),
            position: Mutex::default(),
        }
    }

    pub(super) fn open(&self) -> Outcome<Arc<OwnedFd>> {
        let mut opened = self.opened.lock();
        if let Some(directory) = &*opened {
            return Ok(Arc::clone(directory));
        }
        let directory = inside::open_directory(self.node.file()?.as_fd())?;
        let directory = Arc::new(directory);
        *opened = Some(Arc::clone(&directory));
        *self.position.lock() = Some(0);
        Ok(directory)
    }

    /// Lists names from an offset on, as many as come at a time; `visit` gets the directory, the
    /// name, its inode, its type and where the listing goes on, and says whether it wants more.
    /// What it passes over does not count as an answer: `is_wanted` says what does.
    pub(super) fn list(
        &self,
        offset: u64,
        is_wanted: impl Fn(&CStr, u64) -> bool,
        mut visit: impl FnMut(BorrowedFd<'_>, &CStr, u64, FileType, u64) -> bool,
    ) -> Outcome<()> {
        let directory = self.open()?;
        let directory = directory.as_fd();
        // OpenDeposit to the end: it says where the descriptor stands.
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
                if !is_wanted(name, inode) {
                    return true;
                }
                any = true;
                visit(directory, name, inode, kind, next)
            });
            *position = match part {
                Ok(Some(Part { is_all: true })) => Some(last),
                _ => None,
            };
            // An empty answer would be the end.
            if any || part?.is_none() {
                return Ok(());
            }
        }
    }
}

/// How many names of a listing above the items take as much as an open file.
const NAMES: usize = 32;

/// An open file or directory, and whose it is.
#[derive(Debug)]
struct Opened {
    handle: Arc<Handle>,
    user: u32,
    weight: usize,
}

#[derive(Debug, Default)]
struct Open {
    handles: HashMap<u64, Opened>,
    /// How much each user has open.
    of_users: HashMap<u32, usize>,
}

/// All that is open, with a share for each user but root and the daemon's own: descriptors are the
/// daemon's, and a user who took them all would leave others none. Its lock is a leaf.
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

    /// Refuses a user who has their share open, before anything is opened or made.
    pub(super) fn check(&self, user: u32) -> Outcome<()> {
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
            // Of the longest a user may have four.
            Handle::Listing { listed, .. } => (1 + listed.len() / NAMES).min(1 + self.share / 4),
            _ => 1,
        };
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

    /// Takes a handle out; what it holds is closed when the answer is dropped.
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

    /// Whether some process has a file open for writing. It goes through all that is open: asked for
    /// files with set-id bits alone.
    pub(super) fn is_written(&self, id: NodeId) -> bool {
        let open = self.open.read();
        open.handles.values().any(|handle| match &*handle.handle {
            Handle::File { writable, node, .. } => *writable && node.id == id,
            _ => false,
        })
    }

    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.open.read().handles.len()
    }
}
