//! Open files and directories, by the number the kernel knows them by.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};

use fuser::{BackingId, FileHandle};

use crate::inode::Node;
use crate::locks;
use crate::namespace::Listed;

/// An open file or directory.
#[derive(Debug)]
pub(super) enum Handle {
    /// A real file.
    File {
        file: OwnedFd,
        writable: bool,
        node: Arc<Node>,
        /// Lives as long as any handle of the file: the kernel reads and writes through it.
        backing: Option<Arc<BackingId>>,
    },
    /// A virtual file.
    Text(Arc<Node>),
    /// A real directory inside an item, listed as it stands.
    Directory { directory: OwnedFd, node: Arc<Node> },
    /// A listing above the items, as it stood when it was opened.
    Listing(Vec<Listed>),
}

/// All that is open. Its locks are leaves.
#[derive(Debug, Default)]
pub(super) struct Handles {
    open: RwLock<HashMap<u64, Arc<Handle>>>,
    backings: Mutex<HashMap<u64, Weak<BackingId>>>,
    next: AtomicU64,
}

impl Handles {
    pub(super) fn add(&self, handle: Handle) -> FileHandle {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut open = locks::written(&self.open);
        open.insert(number, Arc::new(handle));
        FileHandle(number)
    }

    pub(super) fn get(&self, number: FileHandle) -> Option<Arc<Handle>> {
        let open = locks::read(&self.open);
        open.get(&number.0).cloned()
    }

    pub(super) fn remove(&self, number: FileHandle) {
        let removed = {
            let mut open = locks::written(&self.open);
            open.remove(&number.0)
        };
        if let Some(Handle::File {
            node,
            backing: Some(_),
            ..
        }) = removed.as_deref()
        {
            let number = node.number;
            drop(removed);
            let mut backings = self.backings();
            if backings
                .get(&number)
                .is_some_and(|known| known.strong_count() == 0)
            {
                backings.remove(&number);
            }
        }
    }

    fn backings(&self) -> MutexGuard<'_, HashMap<u64, Weak<BackingId>>> {
        locks::locked(&self.backings)
    }

    /// The one backing of a node's file, which all its handles share: the kernel allows no other.
    pub(super) fn backing(
        &self,
        node: u64,
        open: impl FnOnce() -> std::io::Result<BackingId>,
    ) -> std::io::Result<Arc<BackingId>> {
        let mut backings = self.backings();
        if let Some(backing) = backings.get(&node).and_then(Weak::upgrade) {
            return Ok(backing);
        }
        let backing = Arc::new(open()?);
        backings.insert(node, Arc::downgrade(&backing));
        Ok(backing)
    }
}
