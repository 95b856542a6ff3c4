//! Telling the kernel what a change through one tree has made stale in the other.
//!
//! The kernel answers from what it remembers, for a minute, in each tree by itself. So whoever
//! changes a directory that the kernel knows in another tree too has it forgotten there before the
//! change is answered. Forgetting attributes and listings takes no lock that a request holds and is
//! done at once. Forgetting a name
//! takes the lock of its directory, which another request may hold that waits for us; so names are
//! sent from threads of their own, several, for one that waits must not keep the others, and a
//! request waits for its own no longer than [`PATIENCE`]: two changes that meet head on in both
//! trees then both go on.

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{INodeNo, Notifier};

use super::crew::Crew;
use crate::fuse::namespace::Stale;

/// How long a request waits until the other tree has forgotten.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many threads send notifications.
const THREADS: usize = 4;

struct Job {
    stale: Vec<Stale>,
    done: Sender<()>,
}

/// The sender of notifications.
#[derive(Clone, Debug)]
pub(super) struct Mirror {
    jobs: Sender<Job>,
    /// What waits for an answer to be given first.
    later: Arc<Mutex<Vec<Stale>>>,
    notifier: Arc<OnceLock<Notifier>>,
    crew: Arc<Crew>,
}

impl Mirror {
    /// Starts the threads; they end with this value. The notifier is there once the mount is.
    pub(super) fn start(
        notifier: Arc<OnceLock<Notifier>>,
        crew: Arc<Crew>,
    ) -> std::io::Result<Mirror> {
        let (jobs, received) = channel();
        let received = Arc::new(Mutex::new(received));
        for _ in 0..THREADS {
            let (received, notifier) = (Arc::clone(&received), Arc::clone(&notifier));
            std::thread::Builder::new()
                .name("mirror".to_owned())
                .spawn(move || serve(&received, &notifier))?;
        }
        Ok(Mirror {
            jobs,
            later: Arc::default(),
            notifier,
            crew,
        })
    }

    /// Has the kernel forget attributes now, and gives back the names that are left to forget.
    fn forget_attributes(&self, mut stale: Vec<Stale>) -> Vec<Stale> {
        if let Some(notifier) = self.notifier.get() {
            stale.retain(|stale| match stale {
                Stale::Name(..) => true,
                Stale::Attributes(_) | Stale::Listing(_) => {
                    notify(notifier, stale);
                    false
                }
            });
        }
        stale
    }

    /// Has the kernel forget, and waits a little for it.
    pub(super) fn forget(&self, stale: Vec<Stale>) {
        let stale = self.forget_attributes(stale);
        if stale.is_empty() {
            return;
        }
        let (done, waiting) = channel();
        if self.jobs.send(Job { stale, done }).is_ok() {
            self.crew.about_to_wait();
            // An Err means that patience ran out: the kernel forgets a little later.
            let _ = waiting.recv_timeout(PATIENCE);
        }
    }

    /// Has the kernel forget after the answer: names of a directory that it holds until then. A
    /// thread that waited for the directory meanwhile could not be killed, nor the daemon.
    pub(super) fn forget_later(&self, stale: Vec<Stale>) {
        self.later.lock().extend(stale);
    }

    /// Sends what waited for an answer.
    pub(super) fn answered(&self) {
        let stale = std::mem::take(&mut *self.later.lock());
        if stale.is_empty() {
            return;
        }
        let (done, _) = channel();
        // The thread is gone only when the mount is.
        let _ = self.jobs.send(Job { stale, done });
    }
}

fn serve(jobs: &Mutex<Receiver<Job>>, notifier: &OnceLock<Notifier>) {
    loop {
        let job = {
            let jobs = jobs.lock();
            jobs.recv()
        };
        let Ok(job) = job else {
            return;
        };
        if let Some(notifier) = notifier.get() {
            for stale in &job.stale {
                notify(notifier, stale);
            }
        }
        let _ = job.done.send(());
    }
}

fn notify(notifier: &Notifier, stale: &Stale) {
    let sent = match stale {
        Stale::Name(parent, name) => {
            let name: &OsStr = name;
            notifier.inval_entry(INodeNo(parent.0), name)
        }
        // A negative offset: the attributes alone, no cached content.
        Stale::Attributes(number) => notifier.inval_inode(INodeNo(number.0), -1, 0),
        Stale::Listing(number) => notifier.inval_inode(INodeNo(number.0), 0, 0),
    };
    if let Err(error) = sent {
        log::debug!("the kernel did not take {stale:?}: {error}");
    }
}
