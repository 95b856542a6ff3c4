//! Requests that take long to answer, in threads of their own.
//!
//! One at a time for each user, a few in all, turn by turn, and after everything else: a user who asks for
//! much waits for it, and another user does not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use crate::inside::Outcome;
use crate::locks::locked;

/// How many requests of one user wait; the next one is refused.
const MOST_WAITING: usize = 64;

/// Answers a request, or refuses it.
pub(super) type Job = Box<dyn FnOnce(Outcome<()>) + Send>;

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<u32, VecDeque<Job>>,
    /// The users for whom a thread is at work.
    served: BTreeSet<u32>,
}

impl Queue {
    /// The next request, of the next user in turn for whom no thread is at work.
    fn next(&mut self, after: u32) -> Option<(u32, Job)> {
        let (before, behind): (Vec<u32>, Vec<u32>) =
            self.waiting.keys().partition(|user| **user <= after);
        let mut turn = behind.into_iter().chain(before);
        let user = turn.find(|user| !self.served.contains(user))?;
        let jobs = self.waiting.get_mut(&user)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&user);
        }
        self.served.insert(user);
        Some((user, job))
    }
}

/// The requests that wait for a thread, and how many threads there may be.
pub(super) struct Aside {
    queue: Arc<Mutex<Queue>>,
    most: usize,
}

impl std::fmt::Debug for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aside").finish_non_exhaustive()
    }
}

impl Aside {
    pub(super) fn new(most: usize) -> Aside {
        Aside {
            queue: Arc::default(),
            most,
        }
    }

    /// Has a request answered when it is its user's turn.
    pub(super) fn run(&self, user: u32, job: Job) {
        let mut queue = locked(&self.queue);
        let jobs = queue.waiting.entry(user).or_default();
        if jobs.len() >= MOST_WAITING {
            drop(queue);
            return job(Err(Errno::AGAIN));
        }
        jobs.push_back(job);
        if queue.served.len() >= self.most {
            return;
        }
        let Some((user, job)) = queue.next(user.wrapping_sub(1)) else {
            return;
        };
        drop(queue);
        let (kept, held) = (Arc::clone(&self.queue), Arc::new(Mutex::new(Some(job))));
        let given = Arc::clone(&held);
        let thread = std::thread::Builder::new().name("aside".to_owned());
        let spawned = thread.spawn(move || {
            // SAFETY: takes no pointer; 0 is the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
            let mut next = locked(&given).take().map(|job| (user, job));
            while let Some((user, job)) = next {
                job(Ok(()));
                let mut queue = locked(&kept);
                queue.served.remove(&user);
                next = queue.next(user);
            }
        });
        if spawned.is_err() {
            locked(&self.queue).served.remove(&user);
            if let Some(job) = locked(&held).take() {
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
        let aside = Aside::new(2);
        let (told, answers) = channel();
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let ask = |user: u32, waits: bool| {
            let (told, gate) = (told.clone(), Arc::clone(&gate));
            aside.run(
                user,
                Box::new(move |turn| {
                    if waits && turn.is_ok() {
                        let _ = locked(&gate).recv();
                    }
                    let _ = told.send((user, turn.is_ok()));
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
