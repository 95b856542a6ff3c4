//! Invalidating names and attributes that the kernel has cached.
//!
//! The kernel caches them for a minute, in each tree by itself. A request that changes a directory that the
//! kernel knows in another tree, too, has it invalidated there before the change is answered.
//!
//! - Attributes and listings take no lock that a request holds: they are invalidated at once.
//! - A name takes the lock of its directory, which another request may hold that waits for us. Names are
//!   sent by threads of their own: several, because one that waits must not delay the others. A request
//!   waits for a thread that is blocked no longer than [`LONGEST_BLOCKED`], so that two changes that wait for
//!   each other in both trees both go on. For one that only waits for a processor it goes on waiting: the
//!   name would be seen in the other tree after the change was answered.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{INodeNo, Notifier};

use super::mount_root::MountRoot;
use super::scheduler::Scheduler;
use crate::fuse::namespace::{Invalidate, Stale};
use crate::os::processors;

/// The time that a request waits for its names while the thread that invalidates them is blocked.
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

/// The sender of invalidations.
#[derive(Clone, Debug)]
pub(super) struct Invalidator {
    queue: Sender<Invalidation>,
    /// The names that are invalidated after the next reply.
    after_reply: Arc<Mutex<Vec<Stale>>>,
    notifier: Arc<OnceLock<Notifier>>,
    scheduler: Scheduler,
    /// The threads; 0 for one that has not run yet.
    threads: Arc<[AtomicU32; THREADS]>,
}

impl Invalidate for Invalidator {
    fn invalidate(&self, stale: Vec<Stale>) {
        let stale = self.invalidate_attributes(stale);
        if stale.is_empty() {
            return;
        }
        let (progress, waiting) = channel();
        if self.queue.send(Invalidation { stale, progress }).is_ok() {
            self.scheduler.about_to_wait();
            self.wait(&waiting);
        }
    }

    /// A thread that waited for the directory before the answer could not be killed, nor could the daemon.
    fn invalidate_after_reply(&self, stale: Vec<Stale>) {
        self.after_reply.lock().extend(stale);
    }
}

impl Invalidator {
    /// Starts the threads; they end with this value. Notifier and root are set once the mount is there.
    pub(super) fn start(
        notifier: Arc<OnceLock<Notifier>>,
        root: &Arc<OnceLock<MountRoot>>,
        scheduler: Scheduler,
    ) -> std::io::Result<Invalidator> {
        let (queue, received) = channel();
        let received = Arc::new(Mutex::new(received));
        let threads: Arc<[AtomicU32; THREADS]> = Arc::default();
        for index in 0..THREADS {
            let (received, notifier) = (Arc::clone(&received), Arc::clone(&notifier));
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
                    serve(own, &received, &notifier, &root);
                })?;
        }
        Ok(Invalidator {
            queue,
            after_reply: Arc::default(),
            notifier,
            scheduler,
            threads,
        })
    }

    /// Invalidates attributes and listings, and returns the names that remain.
    fn invalidate_attributes(&self, mut stale: Vec<Stale>) -> Vec<Stale> {
        if let Some(notifier) = self.notifier.get() {
            stale.retain(|stale| match stale {
                Stale::Name(..) | Stale::Moved(_) => true,
                Stale::Attributes(_) | Stale::Listing(_) => {
                    notify(notifier, stale);
                    false
                }
            });
        }
        stale
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
    notifier: &OnceLock<Notifier>,
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
        for stale in &next.stale {
            match (stale, notifier.get(), root.get()) {
                (Stale::Moved(directory), _, Some(root)) => root.look_up(directory),
                (_, Some(notifier), _) => notify(notifier, stale),
                _ => {}
            }
        }
        let _ = next.progress.send(Progress::Done);
    }
}

fn notify(notifier: &Notifier, stale: &Stale) {
    let sent = match stale {
        Stale::Name(parent, name) => notifier.inval_entry(INodeNo(parent.0), name),
        // A negative offset: the attributes alone, no cached content.
        Stale::Attributes(id) => notifier.inval_inode(INodeNo(id.0), -1, 0),
        Stale::Listing(id) => notifier.inval_inode(INodeNo(id.0), 0, 0),
        Stale::Moved(_) => return,
    };
    if let Err(error) = sent {
        log::debug!("the kernel did not take {stale:?}: {error}");
    }
}
