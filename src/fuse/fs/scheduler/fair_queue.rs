//! A fair queue for requests that take long to answer, in threads of their own.
//!
//! It limits how many run at a time for each user and in all, and serves users in turn: a user who asks for
//! much waits for it, and other users do not. To start a thread, or to wake one, takes as long as a sync of a
//! fast disk: a few requests are answered by the worker that has them, and a thread that has finished stays for
//! a while.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::fuse::inside::ErrnoResult;
use crate::os::caller::check_thread;
use crate::os::processors;

/// The number of requests of one user that may wait; the next one is refused with EAGAIN.
const MOST_WAITING: usize = 1024;

/// The time that a thread waits for another request before it ends. Rows `pgbench-tpcb` and `sqlite-delete`: these
/// programs sync every few milliseconds.
const STAYS: Duration = Duration::from_secs(1);

/// Answers a request, or refuses it.
pub(in crate::fuse::fs) type Job = Box<dyn FnOnce(ErrnoResult<()>) + Send>;

#[derive(Default)]
struct QueuedJobs {
    waiting: BTreeMap<u32, VecDeque<Job>>,
    /// The number of threads that work for a user.
    served: BTreeMap<u32, usize>,
    /// The number of threads that wait for requests, and of those of them that have been woken.
    idle: usize,
    woken: usize,
    /// The number of requests that are answered by workers.
    in_workers: usize,
}

impl QueuedJobs {
    /// The next request: of the next user in turn for whom not too many threads work.
    fn next(&mut self, after: u32, of_one: usize) -> Option<(u32, Job)> {
        let (before, behind): (Vec<u32>, Vec<u32>) =
            self.waiting.keys().partition(|user| **user <= after);
        let mut turn = behind.into_iter().chain(before);
        let served = |user: &u32| self.served.get(user).copied().unwrap_or(0);
        let user = turn.find(|user| served(user) < of_one)?;
        let jobs = self.waiting.get_mut(&user)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&user);
        }
        *self.served.entry(user).or_default() += 1;
        Some((user, job))
    }

    fn done(&mut self, user: u32) {
        if let Some(count) = self.served.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.served.remove(&user);
            }
        }
    }
}

/// The requests that wait for a thread, and the signal that there is one.
#[derive(Default)]
struct Shared {
    queue: Mutex<QueuedJobs>,
    signal: Condvar,
}

/// The queue, and its limits.
#[derive(Clone)]
pub(super) struct FairQueue {
    shared: Arc<Shared>,
    most: usize,
    of_one: usize,
    in_workers: usize,
    is_last: bool,
}

impl std::fmt::Debug for FairQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FairQueue").finish_non_exhaustive()
    }
}

impl FairQueue {
    /// For requests that take a processor: one at a time for a user, `most` in all, at low priority.
    pub(super) fn for_processors(most: usize) -> FairQueue {
        FairQueue {
            shared: Arc::default(),
            most,
            of_one: 1,
            in_workers: 0,
            is_last: true,
        }
    }

    /// For requests that wait for a disk, `in_workers` of them in the workers that have them.
    pub(super) fn for_disk(in_workers: usize) -> FairQueue {
        FairQueue {
            shared: Arc::default(),
            most: 64,
            of_one: 16,
            in_workers,
            is_last: false,
        }
    }

    /// Runs a job at once in this thread, if few workers do so and no other job waits, or else when it is its
    /// user's turn.
    pub(super) fn run_here_or_queued(&self, user: u32, job: Job) {
        let mut queue = self.shared.queue.lock();
        let served = queue.served.get(&user).copied().unwrap_or(0);
        let is_free = queue.in_workers < self.in_workers && served < self.of_one;
        if !is_free || !queue.waiting.is_empty() {
            drop(queue);
            return self.run(user, job);
        }
        queue.in_workers += 1;
        *queue.served.entry(user).or_default() += 1;
        drop(queue);
        job(Ok(()));
        let mut queue = self.shared.queue.lock();
        queue.in_workers -= 1;
        queue.done(user);
        if !queue.waiting.is_empty() {
            self.serve(queue, user);
        }
    }

    /// Runs a job when it is its user's turn.
    pub(super) fn run(&self, user: u32, job: Job) {
        let mut queue = self.shared.queue.lock();
        let jobs = queue.waiting.entry(user).or_default();
        if jobs.len() >= MOST_WAITING {
            drop(queue);
            return job(Err(Errno::AGAIN));
        }
        jobs.push_back(job);
        self.serve(queue, user.wrapping_sub(1));
    }

    /// Gives the next job to a thread, if one more may run.
    fn serve(&self, mut queue: MutexGuard<'_, QueuedJobs>, after: u32) {
        if queue.served.values().sum::<usize>() >= self.most {
            return;
        }
        if queue.idle > queue.woken {
            queue.woken += 1;
            self.shared.signal.notify_one();
            return;
        }
        let of_one = self.of_one;
        let Some((user, job)) = queue.next(after, of_one) else {
            return;
        };
        drop(queue);
        let (shared, held) = (Arc::clone(&self.shared), Arc::new(Mutex::new(Some(job))));
        let (given, is_last) = (Arc::clone(&held), self.is_last);
        let spawned = processors::spawn_unbound("queued", move || {
            if is_last {
                processors::give_way();
            }
            let mut next = given.lock().take().map(|job| (user, job));
            while let Some((user, job)) = next {
                job(Ok(()));
                check_thread();
                next = shared.next(user, of_one);
            }
        });
        if spawned.is_err() {
            self.shared.queue.lock().done(user);
            if let Some(job) = held.lock().take() {
                job(Err(Errno::AGAIN));
            }
        }
    }
}

impl Shared {
    /// Ends a thread's job of a user, and waits for the next one. None when the thread should end.
    fn next(&self, user: u32, of_one: usize) -> Option<(u32, Job)> {
        let mut queue = self.queue.lock();
        queue.done(user);
        if let Some(next) = queue.next(user, of_one) {
            return Some(next);
        }
        queue.idle += 1;
        self.signal.wait_for(&mut queue, STAYS);
        queue.idle -= 1;
        queue.woken = queue.woken.saturating_sub(1);
        queue.next(user, of_one)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn users_take_turns_and_one_has_one_thread() {
        let queue = FairQueue::for_processors(2);
        let (answered, answers) = channel();
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let ask = |user: u32, waits: bool| {
            let (answered, gate) = (answered.clone(), Arc::clone(&gate));
            queue.run(
                user,
                Box::new(move |turn| {
                    if waits && turn.is_ok() {
                        let _ = gate.lock().recv();
                    }
                    let _ = answered.send((user, turn.is_ok()));
                }),
            );
        };
        for _ in 0..=MOST_WAITING {
            ask(1, true);
        }
        ask(1, true);
        assert_eq!(answers.recv(), Ok((1, false)), "too many of one user");
        ask(2, false);
        assert_eq!(answers.recv(), Ok((2, true)), "another user does not wait");
        for _ in 0..=MOST_WAITING {
            open.send(()).expect("they wait");
            assert_eq!(answers.recv(), Ok((1, true)));
        }
    }

    /// The thread in which a job of a user runs.
    fn thread_of(queue: &FairQueue, user: u32) -> std::thread::ThreadId {
        let (ran, runs) = channel();
        let job = move |_| {
            let _ = ran.send(std::thread::current().id());
        };
        queue.run_here_or_queued(user, Box::new(job));
        runs.recv().expect("it ran")
    }

    #[test]
    fn a_few_jobs_run_in_the_thread_that_has_them_and_others_in_one_that_stays() {
        let queue = FairQueue::for_disk(1);
        let here = std::thread::current().id();
        assert_eq!(thread_of(&queue, 1), here);
        let (begun, begins) = channel();
        let (open, gate) = channel::<()>();
        let waits = move |_| {
            let _ = begun.send(());
            let _ = gate.recv();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| queue.run_here_or_queued(1, Box::new(waits)));
            begins.recv().expect("it runs");
            let other = thread_of(&queue, 1);
            assert_ne!(other, here, "one worker waits for the disk already");
            for _ in 0..3 {
                while queue.shared.queue.lock().idle == 0 {
                    std::thread::yield_now();
                }
                assert_eq!(thread_of(&queue, 2), other, "the thread has stayed");
            }
            open.send(()).expect("it waits");
        });
        assert_eq!(thread_of(&queue, 1), here);
    }

    #[test]
    fn what_waits_is_served_when_a_worker_has_finished() {
        let queue = FairQueue {
            most: 1,
            ..FairQueue::for_disk(1)
        };
        let (begun, begins) = channel();
        let (open, gate) = channel::<()>();
        let waits = move |_| {
            let _ = begun.send(());
            let _ = gate.recv();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| queue.run_here_or_queued(1, Box::new(waits)));
            begins.recv().expect("it runs");
            let (ran, runs) = channel();
            queue.run_here_or_queued(1, Box::new(move |turn| ran.send(turn).expect("heard")));
            assert!(runs.try_recv().is_err(), "no more than one runs");
            open.send(()).expect("it waits");
            assert_eq!(runs.recv(), Ok(Ok(())));
        });
    }
}
