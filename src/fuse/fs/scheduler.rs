//! The threads that answer requests: how many wait for them, on which processor, and whose turn it is.
//!
//! The adapter says which thread waits for a request, and for which resource the request may wait. Workers are parked by
//! `worker_pool` and bound to processors by `placement`; `fair_queue` serves users in turn.

mod fair_queue;
mod placement;
mod worker_pool;

use std::sync::Arc;

use crate::os::charging;
use crate::os::processors;
use fair_queue::FairQueue;
pub(super) use fair_queue::Job;
use placement::Asker;
use worker_pool::{RequestGuard, WorkerPool};

/// The queue of a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum JobQueue {
    /// It takes a processor for long.
    Processor,
    /// It may wait for a disk for long.
    Disk,
    /// It may wait for a date: it has a thread of its own at once.
    Date,
}

/// The threads that answer requests. A clone has the same threads.
#[derive(Clone, Debug)]
pub(super) struct Scheduler {
    pool: Arc<WorkerPool>,
    for_processors: FairQueue,
    for_disk: FairQueue,
}

/// Returns the number of threads that take requests.
pub fn threads() -> usize {
    processors().clamp(2, 8) * 2
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

impl Scheduler {
    /// Starts the watchdog of the workers. Without `placement` no worker is bound to a processor.
    pub(super) fn start(placement: bool) -> std::io::Result<Scheduler> {
        Ok(Scheduler {
            pool: WorkerPool::start(threads(), processors(), placement)?,
            for_processors: FairQueue::for_processors(processors().clamp(2, 4)),
            for_disk: FairQueue::for_disk(threads() / 2),
        })
    }

    /// A scheduler with one thread for jobs that take a processor.
    #[cfg(test)]
    pub(super) fn with_one_thread() -> std::io::Result<Scheduler> {
        Ok(Scheduler {
            for_processors: FairQueue::for_processors(1),
            ..Scheduler::start(false)?
        })
    }

    /// A request begins, for which this thread waits: the worker charges no user.
    pub(super) fn begin(&self, caller: u32) -> RequestGuard<'_> {
        charging::stop();
        self.pool.begin(Asker::Waits(caller))
    }

    /// A request to read data or to sync begins: a process may go on, or waits for the disk as the worker does.
    pub(super) fn begin_transfer(&self) -> RequestGuard<'_> {
        charging::stop();
        self.pool.begin(Asker::GoesOn)
    }

    /// A request to write data begins: if the one before was of the same user, the worker still charges that user.
    pub(super) fn begin_write(&self) -> RequestGuard<'_> {
        self.pool.begin(Asker::GoesOn)
    }

    /// To be called after a forget.
    pub(super) fn forgot(&self) {
        self.pool.forgot();
    }

    /// To be called before a request waits for others: another worker must take those.
    pub(super) fn about_to_wait(&self) {
        self.pool.about_to_wait();
    }

    /// Runs a job of a user when it is that user's turn, or refuses it. Where no thread can be started for a date, the job
    /// is dropped.
    pub(super) fn run(&self, queue: JobQueue, user: u32, job: Job) {
        match queue {
            JobQueue::Processor => self.for_processors.run(user, job),
            JobQueue::Disk => self.for_disk.run_here_or_queued(user, job),
            JobQueue::Date => {
                if let Err(error) = processors::spawn_unbound("date", move || job(Ok(()))) {
                    log::error!("cannot answer a request: {error}");
                }
            }
        }
    }
}
