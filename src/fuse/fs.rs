//! The FUSE adapter: takes a request, calls one function, translates the answer.
//!
//! Inside items requests go to `inside`, above and beside them to `namespace`, which decides what each of
//! them means. The kernel checks permissions (`default_permissions`), does file locks and, where it can,
//! reads and writes files (FUSE passthrough). The names that a change makes stale in its cache go through
//! `invalidator`. `protocol` alone replies; the other modules return an `Outcome`, and are tested
//! without a kernel.

mod background;
mod backing;
mod close;
mod convert;
mod data_path;
mod handles;
mod invalidator;
mod io;
mod kernel_cache;
mod leases;
mod level_changes;
mod lifetimes;
mod listing;
mod mount_root;
mod names;
mod negotiation;
mod open;
mod outcome;
mod protocol;
mod readdirplus;
mod refusals;
mod repeater;
mod scheduler;
mod surplus;

use std::ffi::OsStr;
use std::sync::{Arc, OnceLock};

use fuser::INodeNo;
use parking_lot::Mutex;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::fuse::descriptors;
use crate::fuse::inode::{Node, NodeId, NodeKind};
use crate::fuse::inside::ErrnoResult;
use crate::fuse::namespace::{Context, Entry, Namespace};
use crate::os::access_times::AccessTimes;
use crate::os::caller::Caller;
use backing::Backings;
pub use data_path::{DataPath, Reason};
use handles::Handles;
use invalidator::Invalidator;
pub use kernel_cache::{KernelCache, SessionCache};
use leases::Leases;
pub use level_changes::LevelChanges;
pub use mount_root::MountRoot;
use readdirplus::ReaddirplusHeuristic;
use scheduler::Scheduler;
pub use scheduler::threads;
use surplus::Surplus;

/// The virtual attribute of the mount's root that says how files are read and written.
pub const DATA: &str = "user.ibi.data";

/// The virtual attribute of the mount's root that says how much the daemon holds for the kernel.
pub const HELD: &str = "user.ibi.held";

/// The virtual attribute of the mount's root with the address of the socket by which commands ask the daemon.
pub const SOCKET: &str = "user.ibi.socket";

/// The mounted filesystem.
#[derive(Debug)]
pub struct Ibifs {
    inner: Arc<Inner>,
    leases: Leases,
    at_end: fn(),
}

impl std::ops::Deref for Ibifs {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

/// The state that requests need, also those that continue in a thread of their own.
#[derive(Debug)]
pub struct Inner {
    namespace: Namespace,
    handles: Handles,
    invalidator: Invalidator,
    backings: Backings,
    readdirplus: ReaddirplusHeuristic,
    surplus: Surplus,
    access_times: Arc<AccessTimes>,
    scheduler: Scheduler,
    /// Files that were closed, of which a mapping for writing may remain.
    mapped: Mutex<Vec<Arc<Node>>>,
    /// The address of the daemon's socket.
    socket: OnceLock<String>,
}

impl Ibifs {
    /// The filesystem of a namespace; `passthrough` and `placement` are options of the mount, `cache` and `root` are filled once it is mounted, `at_end` is called
    /// when the kernel has ended the session.
    pub fn new(
        namespace: Namespace,
        passthrough: bool,
        placement: bool,
        access_times: AccessTimes,
        cache: Arc<OnceLock<Box<dyn KernelCache>>>,
        root: &Arc<OnceLock<MountRoot>>,
        at_end: fn(),
    ) -> std::io::Result<Ibifs> {
        let scheduler = Scheduler::start(placement)?;
        let path = if passthrough {
            DataPath::Untried
        } else {
            DataPath::Daemon(Reason::Option)
        };
        let (server, nodes) = (namespace.server(), Arc::clone(&namespace.nodes));
        let inner = Inner {
            namespace,
            // An eighth of the descriptors; root is not limited.
            handles: Handles::new(descriptors::limit() / 8),
            // A quarter, as for nodes that have handles: directories and open files need the others.
            surplus: Surplus::start(server, descriptors::limit() / 4, Arc::clone(&cache))?,
            invalidator: Invalidator::start(cache, nodes, root, scheduler.clone())?,
            backings: Backings::new(path, server),
            access_times: Arc::new(access_times),
            readdirplus: ReaddirplusHeuristic::default(),
            scheduler,
            mapped: Mutex::default(),
            socket: OnceLock::new(),
        };
        Ok(Ibifs {
            inner: Arc::new(inner),
            leases: Leases::start()?,
            at_end,
        })
    }

    /// The tree, for what changes its items beside the mount.
    pub fn level_changes(&self) -> LevelChanges {
        LevelChanges(Arc::clone(&self.inner))
    }
}

impl Inner {
    fn node(&self, number: INodeNo) -> ErrnoResult<Arc<Node>> {
        let node = self.namespace.nodes.get(NodeId(number.0));
        node.ok_or(Errno::STALE)
    }

    fn forget_node(&self, id: NodeId, lookups: u64) {
        if self.namespace.nodes.forget(id, lookups) {
            self.backings.forget(id);
        }
    }

    /// The context of a change for a caller.
    fn context<'a>(&'a self, caller: &'a Caller) -> Context<'a> {
        Context {
            caller,
            cache: &self.invalidator,
        }
    }

    /// Notes the name that is found or made, if one is.
    fn noting(
        &self,
        (parent, name): (INodeNo, &OsStr),
        found: ErrnoResult<Entry>,
    ) -> ErrnoResult<Entry> {
        if let Ok(entry) = &found {
            self.surplus.note(&self.namespace, parent, name, entry);
        }
        found
    }

    /// Looks a name up, and learns from it which processes look at what they list.
    fn look_up(&self, caller: &Caller, parent: INodeNo, name: &OsStr) -> ErrnoResult<Entry> {
        let above = self.node(parent)?;
        let found = self.namespace.lookup(caller, &above, name)?;
        if found.attr.kind != FileType::Directory {
            self.readdirplus.note_lookup(caller.pid, NodeId(parent.0));
        }
        Ok(found)
    }

    /// The value of an extended attribute. Three of the mount's root describe this daemon.
    fn xattr(&self, node: &Node, name: &OsStr, limit: usize) -> ErrnoResult<Vec<u8>> {
        if node.kind == NodeKind::Root && name == DATA {
            Ok(self.backings.data_path().to_words().into_bytes())
        } else if node.kind == NodeKind::Root && name == HELD {
            Ok(self.held().into_bytes())
        } else if node.kind == NodeKind::Root
            && name == SOCKET
            && let Some(address) = self.socket.get()
        {
            Ok(address.clone().into_bytes())
        } else {
            self.namespace.xattr(node, name, limit)
        }
    }

    /// Returns what is held until the kernel releases it, in numbers: to see whether it ever does.
    fn held(&self) -> String {
        format!(
            "nodes {} handles {} backings {}",
            self.namespace.nodes.len(),
            self.handles.len(),
            self.backings.len()
        )
    }
}

#[cfg(test)]
mod tests;
