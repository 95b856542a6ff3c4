//! The files that the kernel is asked to forget, where the daemon cannot find a file again by itself.
//!
//! In a filesystem of a process (FUSE) a file has no handle that lasts, so that a node has a descriptor as long as the
//! kernel knows it, and the kernel may know more files than a process may have descriptors. The kernel is asked to drop
//! the names that it was given first. It looks them up again when they are used. Directories are not dropped, since a
//! process may work in them, nor are files that a process has open.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::INodeNo;
use rustix::fs::FileType;

use super::kernel_cache::KernelCache;
use crate::fuse::inode::{NodeId, NodeKind};
use crate::fuse::namespace::{Entry, Namespace};
use crate::os::serving::Server;

/// A name in a directory.
type Name = (INodeNo, OsString);

/// The number of names that are looked at for one that is new.
const LOOKED_AT: usize = 4;

/// The longest time for which a request waits where the kernel has not dropped as many names as it was asked to. It has
/// the lock of the directory, which the thread needs, and which is handed to a thread that has waited for 4 ms.
const WAIT: Duration = Duration::from_millis(10);

/// The names of files that the kernel was given, as far as they must be limited.
#[derive(Debug)]
pub(super) struct Surplus {
    limit: usize,
    /// From the oldest on.
    given: Mutex<VecDeque<(NodeId, Name)>>,
    /// The names that the kernel is asked to drop, by a thread of its own: it waits for the lock of the directory. None
    /// where files have handles.
    queue: Option<Sender<Name>>,
    asked: Arc<Asked>,
}

/// The number of names that the kernel was asked to drop, and has not dropped yet.
#[derive(Debug, Default)]
struct Asked {
    count: Mutex<usize>,
    is_fewer: Condvar,
}

impl Surplus {
    /// Starts the thread where it is needed; it ends with this value. The kernel knows as many files as `limit`, and those
    /// that are open.
    pub(super) fn start(
        server: Server,
        limit: usize,
        cache: Arc<OnceLock<Box<dyn KernelCache>>>,
    ) -> std::io::Result<Surplus> {
        let mut surplus = Surplus {
            limit,
            given: Mutex::default(),
            queue: None,
            asked: Arc::default(),
        };
        if server == Server::Process {
            let (queue, received) = channel::<Name>();
            let asked = Arc::clone(&surplus.asked);
            std::thread::Builder::new()
                .name("surplus".to_owned())
                .spawn(move || {
                    for (parent, name) in received {
                        if let Some(cache) = cache.get()
                            && let Err(error) = cache.drop_name(NodeId(parent.0), &name)
                        {
                            log::debug!("the kernel did not drop {}: {error}", name.display());
                        }
                        *asked.count.lock() -= 1;
                        asked.is_fewer.notify_one();
                    }
                })?;
            surplus.queue = Some(queue);
        }
        Ok(surplus)
    }

    /// Whether the kernel has dropped fewer names than it was asked to, so that it should be given no more at once: it
    /// drops no name of a directory while it lists it.
    pub(super) fn is_behind(&self) -> bool {
        self.queue.is_some() && *self.asked.count.lock() > self.limit
    }

    /// Notes a name that the kernel is given, and has the oldest ones dropped where there are too many.
    pub(super) fn note(&self, namespace: &Namespace, parent: INodeNo, name: &OsStr, entry: &Entry) {
        let Some(queue) = &self.queue else {
            return;
        };
        if entry.node.kind != NodeKind::Inside || entry.attr.kind == FileType::Directory {
            return;
        }
        let oldest: Vec<_> = {
            let mut given = self.given.lock();
            given.push_back((entry.node.id, (parent, name.to_owned())));
            let surplus = given.len().saturating_sub(self.limit);
            given.drain(..surplus.min(LOOKED_AT)).collect()
        };
        for (id, name) in oldest {
            let Some(node) = namespace.nodes.get(id) else {
                continue;
            };
            if node.real.as_ref().is_some_and(|real| real.file.is_opened()) {
                self.given.lock().push_back((id, name));
            } else {
                *self.asked.count.lock() += 1;
                // The thread ends with the mount only.
                let _ = queue.send(name);
            }
        }
        let mut asked = self.asked.count.lock();
        if *asked > self.limit {
            self.asked.is_fewer.wait_for(&mut asked, WAIT);
        }
    }
}
