//! FUSE passthrough: files that the kernel reads and writes itself, and the reasons why it does not.
//!
//! The kernel reads, writes and maps a registered file without requests to the daemon, with the credentials
//! of the thread that registered it. The daemon therefore registers the file as the caller, and without
//! CAP_SYS_RESOURCE: the space that a full disk reserves for root stays reserved, and quotas apply. All
//! handles of a file share one registration.
//!
//! - Passthrough does not clear set-id bits, which a file may get while it is open. For a caller that may not
//!   keep them, the kernel sends a request that clears them before the write.
//! - Blocks count towards the file's owner, not the writer. Only a registration by root exceeds limits, and
//!   the kernel accepts no second registration while the first is in use. The daemon therefore registers as
//!   root only files that no other user may write, and other files as their owner: there the owner's limits
//!   apply to root.
//! - Passthrough and FUSE's write-back cache exclude each other on a file. Passthrough is the better choice:
//!   it has the native filesystem's own cache, including write-back. Without passthrough writes go straight
//!   to the daemon, so that no acknowledged data waits in a second cache.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

use fuser::BackingId;
use rustix::fs::OFlags;

use super::data_path::{DataPath, Reason};
use crate::fuse::inode::NodeId;
use crate::os::caller::Caller;
use crate::os::serving::Server;
use ibi::message::Localize;

/// A file registered with the kernel.
#[derive(Debug)]
pub(super) struct Backing {
    pub(super) id: BackingId,
    owner: (u32, u32),
    node: NodeId,
    registered: Arc<Mutex<RegisteredFiles>>,
}

impl Drop for Backing {
    fn drop(&mut self) {
        let mut registered = self.registered.lock();
        // Another registration may have replaced it since the last handle was closed.
        if let Some(known) = registered.by_node.get(&self.node)
            && known.strong_count() == 0
        {
            registered.by_node.remove(&self.node);
        }
    }
}

/// The number of files that stay registered after their last handle was closed, for the next open. When the kernel
/// forgets the node of a removed file, its registration ends.
const KEPT: usize = 16_384;

#[derive(Debug)]
struct RegisteredFiles {
    by_node: HashMap<NodeId, Weak<Backing>>,
    kept: HashMap<NodeId, Arc<Backing>>,
    /// In the order in which they were kept. Some may have been removed since.
    oldest: VecDeque<NodeId>,
    path: DataPath,
    server: Server,
}

impl RegisteredFiles {
    /// Keeps one more registration. Returns those that are no longer kept, to be dropped without the lock.
    fn keep(&mut self, backing: Arc<Backing>) -> Vec<Arc<Backing>> {
        let mut gone = Vec::new();
        self.oldest.push_back(backing.node);
        gone.extend(self.kept.insert(backing.node, backing));
        while self.oldest.len() > KEPT
            && let Some(oldest) = self.oldest.pop_front()
        {
            gone.extend(self.kept.remove(&oldest));
        }
        gone
    }
}

/// The way in which one open file is read and written.
#[derive(Debug)]
pub(super) enum Route {
    /// By the kernel.
    Kernel(Arc<Backing>),
    /// By the daemon, through the kernel's cache.
    Cached,
    /// By the daemon, bypassing the cache: other handles of the file bypass it too.
    Direct,
}

/// The files registered with the kernel. No other lock is taken under its lock.
#[derive(Debug)]
pub(super) struct Backings {
    registered: Arc<Mutex<RegisteredFiles>>,
}

impl Backings {
    pub(super) fn new(path: DataPath, server: Server) -> Backings {
        Backings {
            registered: Arc::new(Mutex::new(RegisteredFiles {
                by_node: HashMap::new(),
                kept: HashMap::new(),
                oldest: VecDeque::new(),
                path,
                server,
            })),
        }
    }

    /// Returns how files are read and written.
    pub(super) fn data_path(&self) -> DataPath {
        self.registered.lock().path
    }

    /// Returns the number of files that are registered with the kernel.
    pub(super) fn len(&self) -> usize {
        self.registered.lock().by_node.len()
    }

    /// Stops passthrough: from now on the daemon reads and writes files.
    pub(super) fn give_up(&self, reason: Reason) {
        let mut registered = self.registered.lock();
        if registered.path.reason().is_none() {
            log::info!(
                "files are read and written through the daemon: {}",
                reason.message()
            );
            registered.path = DataPath::Daemon(reason);
        }
    }

    /// Ends the kept registration of a node that the kernel has forgotten.
    pub(super) fn forget(&self, node: NodeId) {
        let gone = self.registered.lock().kept.remove(&node);
        drop(gone);
    }

    /// Decides how a file that has just been opened for a caller is read and written.
    pub(super) fn route(
        &self,
        node: NodeId,
        file: BorrowedFd<'_>,
        access: OFlags,
        caller: &Caller,
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<BackingId>,
    ) -> Route {
        let is_read = access == OFlags::RDONLY;
        let registrar = registrar(file, caller);
        let owner = (registrar.uid, registrar.gid);
        // Hold the lock until the file is registered: two concurrent opens must not register it twice.
        let mut registered = self.registered.lock();
        if let DataPath::Daemon(_) = registered.path {
            return Route::Cached;
        }
        if let Some(known) = registered.by_node.get(&node).and_then(Weak::upgrade) {
            let is_kept = registered.kept.contains_key(&node);
            // A kept registration does not count as a handle.
            let is_free = Arc::strong_count(&known) == 1 + usize::from(is_kept);
            let is_fit = known.owner == owner || (is_read && !caller.is_other());
            if is_fit || !is_free {
                drop(registered);
                return Route::Kernel(known);
            }
            registered.by_node.remove(&node);
            let kept = registered.kept.remove(&node);
            drop(registered);
            drop((known, kept));
            return self.route(node, file, access, caller, register);
        }
        match registrar.act_for_others(|| register(file)) {
            Ok(id) => {
                registered.path = DataPath::Kernel;
                let backing = Arc::new(Backing {
                    id,
                    owner,
                    node,
                    registered: Arc::clone(&self.registered),
                });
                registered.by_node.insert(node, Arc::downgrade(&backing));
                // A file registered for writing could not be executed meanwhile. A server would keep a removed file
                // under another name, and its directory could not be removed.
                let gone = if is_read && registered.server == Server::Kernel {
                    registered.keep(Arc::clone(&backing))
                } else {
                    Vec::new()
                };
                drop(registered);
                drop(gone);
                Route::Kernel(backing)
            }
            Err(error) if registered.path == DataPath::Untried => {
                drop(registered);
                self.give_up(Reason::of(&error));
                Route::Cached
            }
            Err(error) => {
                log::warn!("a file is read and written through the daemon: {error}");
                Route::Direct
            }
        }
    }
}

/// The user as whom a file is registered for a caller: the caller itself or, for root, a user to whom limits
/// apply, because other users share the registration.
fn registrar(file: BorrowedFd<'_>, caller: &Caller) -> Caller {
    if caller.is_other() {
        return *caller;
    }
    let as_user = |uid, gid| Caller { uid, gid, pid: 0 };
    match rustix::fs::fstat(file) {
        Ok(stat) if stat.st_uid != 0 => as_user(stat.st_uid, stat.st_gid),
        // With an ACL, the group bits hold its mask.
        Ok(stat) if stat.st_mode & 0o022 != 0 => as_user(NO_USER, NO_USER),
        _ => *caller,
    }
}

/// The user and group `nobody`, who own no files.
const NO_USER: u32 = 65_534;
