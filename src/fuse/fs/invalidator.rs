//! Invalidating names and attributes that the kernel has cached.
//!
//! The kernel caches them for a minute, in each tree by itself. A request that changes a directory that the
//! kernel knows in another tree, too, has it invalidated there before the change is answered.
//!
//! - Attributes and listings take no lock that a request holds: they are invalidated at once. Where a reply that makes
//!   the node known to the kernel is on its way, the request waits until that has arrived, no longer than for a name.
//! - A name takes the lock of its directory, which another request may hold that waits for us. Names are
//!   sent by threads of their own: several, because one that waits must not delay the others. A request
//!   waits for a thread that is blocked no longer than [`LONGEST_BLOCKED`], so that two changes that wait for
//!   each other in both trees both go on. For one that only waits for a processor it goes on waiting: the
//!   name would be seen in the other tree after the change was answered.

use parking_lot::Mutex;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::Errno;

use super::kernel_cache::KernelCache;
use super::mount_root::MountRoot;
use super::repeater::Repeater;
use super::scheduler::Scheduler;
use crate::fuse::inode::{NodeId, NodeTable};
use crate::fuse::namespace::{Invalidate, Stale};
use crate::os::processors;

/// The time that a request waits for its names while the thread that invalidates them is blocked, and for attributes
/// that the kernel has not taken.
const LONGEST_BLOCKED: Duration = Duration::from_millis(200);
/// The number of threads that invalidate names.
const THREADS: usize = 4;

struct Invalidation {
    stale: Vec<Stale>,
    progress: Sender<Progress>,
}

/// The progress of an invalidation.
enum Progress {
    /// A thread has begun it.
    Begun(u32),
    Done,
}

/// The kernel's cache, which is there once the mount is, and the nodes that the kernel knows or is about to know.
#[derive(Clone, Debug)]
struct Kernel {
    cache: Arc<OnceLock<Box<dyn KernelCache>>>,
    nodes: Arc<NodeTable>,
}

impl Kernel {
    /// Invalidates; false if that must be done again, since the kernel is about to know the node.
    fn has_taken(&self, stale: &Stale) -> bool {
        let Some(cache) = self.cache.get() else {
            return true;
        };
        let (node, offset) = match stale {
            Stale::Name(parent, name) => {
                if let Err(error) = cache.drop_name(*parent, name) {
                    log::debug!("the kernel did not take {stale:?}: {error}");
                }
                return true;
            }
            Stale::Moved(..) => return true,
            // The attributes alone, no cached content.
            Stale::Attributes(node) => (*node, -1),
            Stale::Listing(node) => (*node, 0),
        };
        match cache.drop_node(node, offset) {
            Err(Errno::NOENT) => self.nodes.get(node).is_none(),
            Err(errno) => {
                log::debug!("the kernel did not take {stale:?}: {errno}");
                true
            }
            Ok(()) => true,
        }
    }
}

/// The sender of invalidations.
#[derive(Clone, Debug)]
pub(super) struct Invalidator {
    queue: Sender<Invalidation>,
    /// The names that are invalidated after the next reply.
    after_reply: Arc<Mutex<Vec<Stale>>>,
    kernel: Kernel,
    repeater: Repeater,
    scheduler: Scheduler,
    /// The threads; 0 for one that has not run yet.
    threads: Arc<[AtomicU32; THREADS]>,
}

impl Invalidate for Invalidator {
    fn invalidate(&self, stale: Vec<Stale>) {
        let (untaken, names) = self.invalidate_attributes(stale);
        if !names.is_empty() {
            let (progress, waiting) = channel();
            let stale = names;
            if self.queue.send(Invalidation { stale, progress }).is_ok() {
                self.scheduler.about_to_wait();
                self.wait(&waiting);
            }
        }
        if let Some(untaken) = untaken {
            self.scheduler.about_to_wait();
            let _ = untaken.recv_timeout(LONGEST_BLOCKED);
        }
    }

    /// A thread that waited for the directory before the answer could not be killed, nor could the daemon.
    fn invalidate_after_reply(&self, stale: Vec<Stale>) {
        self.after_reply.lock().extend(stale);
    }
}

impl Invalidator {
    /// Starts the threads; they end with this value. Cache and root are set once the mount is there.
    pub(super) fn start(
        cache: Arc<OnceLock<Box<dyn KernelCache>>>,
        nodes: Arc<NodeTable>,
        root: &Arc<OnceLock<MountRoot>>,
        scheduler: Scheduler,
    ) -> std::io::Result<Invalidator> {
        let kernel = Kernel { cache, nodes };
        let repeater = {
            let kernel = kernel.clone();
            Repeater::start(move |stale| kernel.has_taken(stale))?
        };
        let (queue, received) = channel();
        let received = Arc::new(Mutex::new(received));
        let threads: Arc<[AtomicU32; THREADS]> = Arc::default();
        for index in 0..THREADS {
            let (received, kernel) = (Arc::clone(&received), kernel.clone());
            let repeater = repeater.clone();
            let (root, threads) = (Arc::clone(root), Arc::clone(&threads));
            std::thread::Builder::new()
                .name("invalidator".to_owned())
                .spawn(move || {
                    let own = processors::own_thread()
                        .as_raw_nonzero()
                        .get()
                        .unsigned_abs();
                    if let Some(id) = threads.get(index) {
                        id.store(own, Ordering::Relaxed);
                    }
                    serve(own, &received, (&kernel, &repeater), &root);
                })?;
        }
        Ok(Invalidator {
            queue,
            after_reply: Arc::default(),
            kernel,
            repeater,
            scheduler,
            threads,
        })
    }

    /// Invalidates attributes and listings. Returns what ends when the kernel has taken those that it did not take, and
    /// the names that remain.
    fn invalidate_attributes(
        &self,
        stale: Vec<Stale>,
    ) -> (Option<Receiver<Infallible>>, Vec<Stale>) {
        let is_name = |stale: &Stale| matches!(stale, Stale::Name(..) | Stale::Moved(..));
        let (names, mut untaken): (Vec<_>, Vec<_>) = stale.into_iter().partition(is_name);
        untaken.retain(|stale| !self.kernel.has_taken(stale));
        let waiting = (!untaken.is_empty()).then(|| self.repeater.repeat(untaken));
        (waiting, names)
    }

    /// Waits until an invalidation is done, or blocked: then it is done a little later.
    fn wait(&self, waiting: &Receiver<Progress>) {
        let mut server = None;
        loop {
            match waiting.recv_timeout(LONGEST_BLOCKED) {
                Ok(Progress::Begun(thread)) => server = Some(thread),
                Ok(Progress::Done) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let may_run = |thread: u32| thread == 0 || !processors::is_blocked(thread);
                    let is_slow = match server {
                        Some(server) => may_run(server),
                        None => self
                            .threads
                            .iter()
                            .any(|id| may_run(id.load(Ordering::Relaxed))),
                    };
                    if !is_slow {
                        return;
                    }
                }
            }
        }
    }

    /// After a reply: invalidates attributes that it had, for which no request waits.
    pub(super) fn invalidate_attributes_after_reply(&self, node: NodeId) {
        drop(self.invalidate_attributes(vec![Stale::Attributes(node)]));
    }

    /// After a reply: invalidates what had to wait for it.
    pub(super) fn replied(&self) {
        let stale = std::mem::take(&mut *self.after_reply.lock());
        if stale.is_empty() {
            return;
        }
        let (progress, _) = channel();
        // The threads end with the mount only.
        let _ = self.queue.send(Invalidation { stale, progress });
    }
}

fn serve(
    own: u32,
    queue: &Mutex<Receiver<Invalidation>>,
    (kernel, repeater): (&Kernel, &Repeater),
    root: &OnceLock<MountRoot>,
) {
    loop {
        let next = {
            let queue = queue.lock();
            queue.recv()
        };
        let Ok(next) = next else {
            return;
        };
        let _ = next.progress.send(Progress::Begun(own));
        for stale in next.stale {
            match (&stale, root.get()) {
                (Stale::Moved(node, directory), Some(root)) => {
                    // The kernel has forgotten one that no process uses with its old name. A lookup would use it, so
                    // that the next rename of it in this tree finds two names.
                    if kernel.nodes.get(*node).is_some() {
                        root.look_up(directory);
                    }
                }
                _ if kernel.has_taken(&stale) => {}
                _ => drop(repeater.repeat(vec![stale])),
            }
        }
        let _ = next.progress.send(Progress::Done);
    }
}
