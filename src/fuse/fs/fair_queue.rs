//! A fair queue for requests that take long to answer, in threads of their own.
//!
//! It limits how many run at a time for each user and in all, and serves users in turn: a user who asks for
//! much waits for it, and other users do not.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustix::io::Errno;

use crate::fuse::inside::ErrnoResult;
use crate::os::processors;

/// How many requests of one user may wait; the next one is refused with EAGAIN.
const MOST_WAITING: usize = 1024;

/// Answers a request, or refuses it.
pub(super) type Job = Box<dyn FnOnce(ErrnoResult<()>) + Send>;

#[derive(Default)]
struct QueuedJobs {
    waiting: BTreeMap<u32, VecDeque<Job>>,
    /// How many threads work for a user.
    served: BTreeMap<u32, usize>,
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

/// The requests that wait for a thread, and the limits.
pub(super) struct FairQueue {
    waiting: Arc<Mutex<QueuedJobs>>,
    most: usize,
    of_one: usize,
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
            waiting: Arc::default(),
            most,
            of_one: 1,
            is_last: true,
        }
    }

    /// For requests that wait for a disk.
    pub(super) fn for_disk() -> FairQueue {
        FairQueue {
            waiting: Arc::default(),
            most: 64,
            of_one: 16,
            is_last: false,
        }
    }

    /// Runs a job when it is its user's turn.
    pub(super) fn run(&self, user: u32, job: Job) {
        let mut queue = self.waiting.lock();
        let jobs = queue.waiting.entry(user).or_default();
        if jobs.len() >= MOST_WAITING {
            drop(queue);
            return job(Err(Errno::AGAIN));
        }
        jobs.push_back(job);
        if queue.served.values().sum::<usize>() >= self.most {
            return;
        }
        let of_one = self.of_one;
        let Some((user, job)) = queue.next(user.wrapping_sub(1), of_one) else {
            return;
        };
        drop(queue);
        let (kept, held) = (Arc::clone(&self.waiting), Arc::new(Mutex::new(Some(job))));
        let (given, is_last) = (Arc::clone(&held), self.is_last);
        let spawned = processors::spawn_unbound("queued", move || {
            if is_last {
                // SAFETY: takes no pointer; 0 is the calling thread.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
            }
            let mut next = given.lock().take().map(|job| (user, job));
            while let Some((user, job)) = next {
                job(Ok(()));
                let mut queue = kept.lock();
                queue.done(user);
                next = queue.next(user, of_one);
            }
        });
        if spawned.is_err() {
            self.waiting.lock().done(user);
            if let Some(job) = held.lock().take() {
                job(Err(Errno::AGAIN));
            }
        }
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
}
