//! Answers to requests: at once, or later by a job.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Ibifs, Inner};
use crate::fuse::inside::ErrnoResult;
use crate::os::processors;

/// The answer to a request that is not refused.
pub(super) enum Answer<T> {
    /// The answer.
    Now(T),
    /// The job that finds it.
    Later(Later<T>),
}

/// A job that finds an answer, and what it waits for first.
pub(super) struct Later<T> {
    wait: Wait,
    user: u32,
    work: Box<dyn FnOnce(&Inner) -> ErrnoResult<T> + Send>,
}

/// The reason why a request is not answered at once.
pub(super) enum Wait {
    /// It takes a processor for long.
    Processor,
    /// It may wait for a disk for long.
    Disk,
    /// It may wait for a date, in a thread of its own.
    Date,
    /// Another program has a lease on a file. The function opens the file without blocking; the open file prevents new
    /// conflicting leases.
    Lease(Box<dyn Fn(&Inner) -> ErrnoResult<OwnedFd> + Send>),
}

impl<T> Answer<T> {
    /// An answer that a user gets when it is this user's turn.
    pub(super) fn later(
        wait: Wait,
        user: u32,
        work: impl FnOnce(&Inner) -> ErrnoResult<T> + Send + 'static,
    ) -> Answer<T> {
        let work = Box::new(work);
        Answer::Later(Later { wait, user, work })
    }
}

impl Ibifs {
    /// Passes an answer on, in this thread or in that of its job. Where no thread can be started for the job, `reply` is
    /// dropped, which answers EIO.
    pub(super) fn answer<T: 'static>(
        &self,
        answer: ErrnoResult<Answer<T>>,
        reply: impl FnOnce(&Inner, ErrnoResult<T>) + Send + 'static,
    ) {
        let Later { wait, user, work } = match answer {
            Ok(Answer::Now(value)) => return reply(&self.inner, Ok(value)),
            Err(errno) => return reply(&self.inner, Err(errno)),
            Ok(Answer::Later(later)) => later,
        };
        let inner = Arc::clone(&self.inner);
        let job = move |turn: ErrnoResult<()>| {
            let found = turn.and_then(|()| work(&inner));
            reply(&inner, found);
        };
        match wait {
            Wait::Processor => self.generating.run(user, Box::new(job)),
            Wait::Disk => self.syncing.run_here_or_queued(user, Box::new(job)),
            Wait::Date => {
                if let Err(error) = processors::spawn_unbound("mint", move || job(Ok(()))) {
                    log::error!("cannot mint: {error}");
                }
            }
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
