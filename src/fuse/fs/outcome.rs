//! Answers to requests: at once, or later by a job.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::scheduler::JobQueue;
use super::{Ibifs, Inner};
use crate::fuse::inside::ErrnoResult;

/// Finds the answer of a job.
type Work<T> = Box<dyn FnOnce(&Inner) -> ErrnoResult<T> + Send>;

/// Opens a file without blocking. The open file prevents new conflicting leases.
type UnleasedOpen = Box<dyn Fn(&Inner) -> ErrnoResult<OwnedFd> + Send>;

/// The answer to a request that is not refused.
pub(super) enum Outcome<T> {
    /// The answer.
    Now(T),
    /// The job that finds it.
    Later(Later<T>),
}

/// A job that finds an answer, and the event for which it waits first.
pub(super) struct Later<T> {
    wait: Wait,
    user: u32,
    work: Work<T>,
}

/// The event for which a request waits.
pub(super) enum Wait {
    /// The user's turn.
    Queue(JobQueue),
    /// The end of another program's lease on a file.
    Lease(UnleasedOpen),
}

impl<T> Outcome<T> {
    /// An answer that a user gets when it is this user's turn.
    pub(super) fn later(
        wait: Wait,
        user: u32,
        work: impl FnOnce(&Inner) -> ErrnoResult<T> + Send + 'static,
    ) -> Outcome<T> {
        let work = Box::new(work);
        Outcome::Later(Later { wait, user, work })
    }
}

impl Ibifs {
    /// Passes an answer on, in this thread or in that of its job. Where no thread can be started for the job, `reply` is
    /// dropped, which answers EIO.
    pub(super) fn answer<T: 'static>(
        &self,
        answer: ErrnoResult<Outcome<T>>,
        reply: impl FnOnce(&Inner, ErrnoResult<T>) + Send + 'static,
    ) {
        let Later { wait, user, work } = match answer {
            Ok(Outcome::Now(value)) => return reply(&self.inner, Ok(value)),
            Err(errno) => return reply(&self.inner, Err(errno)),
            Ok(Outcome::Later(later)) => later,
        };
        let inner = Arc::clone(&self.inner);
        let job = move |turn: ErrnoResult<()>| {
            let found = turn.and_then(|()| work(&inner));
            reply(&inner, found);
        };
        match wait {
            Wait::Queue(queue) => self.scheduler.run(queue, user, Box::new(job)),
            Wait::Lease(attempt) => {
                let inner = Arc::clone(&self.inner);
                let attempt = move || attempt(&inner);
                let next = |unleased: ErrnoResult<OwnedFd>| match unleased {
                    Ok(_unleased) => job(Ok(())),
                    Err(errno) => job(Err(errno)),
                };
                self.leases.wait(user, Box::new(attempt), Box::new(next));
            }
        }
    }
}
