//! Requests that wait until another program releases a lease (fcntl(2), F_SETLEASE).
//!
//! The holder of a lease can delay an open or a truncation for up to `/proc/sys/fs/lease-break-time` seconds.
//! The caller waits, as on the native filesystem, but no thread does: one thread retries all waiting requests
//! without blocking. The number of waiting requests is limited for each user and in total; beyond that the
//! answer is EAGAIN.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::fuse::inside::ErrnoResult;
use crate::os::opening;
use crate::os::system_files;

/// The most waiting requests of one user.
const MOST_OF_ONE: usize = 64;
/// The most waiting requests in total.
const MOST: usize = 512;
/// The first and the longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// The time beyond the kernel's limit that a request waits, since the lease may be taken again.
const GRACE: Duration = Duration::from_secs(5);

/// The reason why a file is not opened at once.
#[derive(Debug)]
pub(super) enum Blocked {
    /// Another program has a lease on the file.
    Lease,
    /// The operation fails.
    Errno(Errno),
}

impl From<Errno> for Blocked {
    fn from(errno: Errno) -> Blocked {
        Blocked::Errno(errno)
    }
}

/// The errno for a caller that does not wait.
impl From<Blocked> for Errno {
    fn from(blocked: Blocked) -> Errno {
        match blocked {
            Blocked::Lease => opening::LEASED,
            Blocked::Errno(errno) => errno,
        }
    }
}

impl Blocked {
    /// The meaning of the errno of an attempt to open a file.
    pub(super) fn of(errno: Errno) -> Blocked {
        match errno {
            opening::LEASED => Blocked::Lease,
            errno => Blocked::Errno(errno),
        }
    }
}

/// Opens the file without blocking. The open file prevents new conflicting leases.
pub(super) type Attempt = Box<dyn Fn() -> ErrnoResult<OwnedFd> + Send>;
/// Continues the request with the file or the error.
pub(super) type Continuation = Box<dyn FnOnce(ErrnoResult<OwnedFd>) + Send>;

struct WaitingOpen {
    attempt: Attempt,
    next: Continuation,
    until: Instant,
    pause: Duration,
    due: Instant,
    _counted: CountedWait,
}

/// The number of waiting requests, by user.
type WaitCounts = Arc<Mutex<HashMap<u32, usize>>>;

/// A request that counts as waiting until this is dropped.
struct CountedWait {
    user: u32,
    counts: WaitCounts,
}

impl Drop for CountedWait {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.user);
            }
        }
    }
}

/// The waiting requests. They are dropped unanswered with this value.
#[derive(Debug)]
pub(super) struct Leases {
    waiting: Sender<WaitingOpen>,
    counts: WaitCounts,
    time_limit: Duration,
}

impl std::fmt::Debug for WaitingOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

impl Leases {
    pub(super) fn start() -> std::io::Result<Leases> {
        let (waiting, received) = channel();
        std::thread::Builder::new()
            .name("leases".to_owned())
            .spawn(move || serve(&received))?;
        Ok(Leases {
            waiting,
            counts: WaitCounts::default(),
            time_limit: break_time() + GRACE,
        })
    }

    /// Makes a request wait until the file can be opened.
    pub(super) fn wait(&self, user: u32, attempt: Attempt, next: Continuation) {
        let Some(counted) = self.count(user) else {
            log::debug!("user {user} waits for too many leases");
            return next(Err(opening::LEASED));
        };
        let now = Instant::now();
        let waiting = WaitingOpen {
            attempt,
            next,
            until: now + self.time_limit,
            pause: PAUSES.0,
            due: now + PAUSES.0,
            _counted: counted,
        };
        if let Err(unsent) = self.waiting.send(waiting) {
            (unsent.0.next)(Err(opening::LEASED));
        }
    }

    fn count(&self, user: u32) -> Option<CountedWait> {
        let mut counts = self.counts.lock();
        let all: usize = counts.values().sum();
        let count = counts.entry(user).or_default();
        if *count >= MOST_OF_ONE || all >= MOST {
            return None;
        }
        *count += 1;
        Some(CountedWait {
            user,
            counts: Arc::clone(&self.counts),
        })
    }
}

/// Returns how long the kernel lets the holder of a lease delay others.
fn break_time() -> Duration {
    let text = system_files::read_text("/proc/sys/fs/lease-break-time");
    let seconds = text.ok().and_then(|text| text.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or(45))
}

fn serve(received: &Receiver<WaitingOpen>) {
    let mut all: Vec<WaitingOpen> = Vec::new();
    loop {
        let first = all.iter().map(|waiting| waiting.due).min();
        let more = match first {
            None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => received.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        match more {
            Ok(waiting) => all.push(waiting),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        let due = all.extract_if(.., |waiting| waiting.due <= now);
        let due: Vec<WaitingOpen> = due.collect();
        all.extend(due.into_iter().filter_map(|waiting| try_one(waiting, now)));
    }
}

/// Retries a request that is due. Returns it if it has to wait longer.
fn try_one(mut waiting: WaitingOpen, now: Instant) -> Option<WaitingOpen> {
    let result = (waiting.attempt)();
    if matches!(result, Err(opening::LEASED)) && now < waiting.until {
        waiting.pause = (waiting.pause * 2).min(PAUSES.1);
        waiting.due = now + waiting.pause;
        return Some(waiting);
    }
    // The rest of the request may wait for a disk, so it must not delay the others. If no thread can be
    // started, the reply is dropped, which answers EIO.
    let WaitingOpen { next, _counted, .. } = waiting;
    let thread = std::thread::Builder::new().name("leased".to_owned());
    let spawned = thread.spawn(move || {
        next(result);
        drop(_counted);
    });
    if let Err(error) = spawned {
        log::error!("cannot continue a request: {error}");
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_user_has_so_many_places_and_gets_them_back() {
        let leases = Leases::start().expect("a thread");
        let is_over = Arc::new(AtomicUsize::new(0));
        let (sender, answers) = channel();
        let wait = |user| {
            let (is_over, sender) = (Arc::clone(&is_over), sender.clone());
            let attempt = move || match is_over.load(Ordering::Relaxed) {
                0 => Err(opening::LEASED),
                _ => Err(Errno::NOENT),
            };
            let next = move |result: ErrnoResult<OwnedFd>| {
                let _ = sender.send((user, result.err()));
            };
            leases.wait(user, Box::new(attempt), Box::new(next));
        };
        for _ in 0..MOST_OF_ONE {
            wait(1);
        }
        wait(1);
        assert_eq!(answers.recv(), Ok((1, Some(opening::LEASED))));
        wait(2);
        is_over.store(1, Ordering::Relaxed);
        for _ in 0..=MOST_OF_ONE {
            let (_, errno) = answers.recv().expect("an answer");
            assert_eq!(errno, Some(Errno::NOENT));
        }
        let end = Instant::now() + Duration::from_secs(10);
        while !leases.counts.lock().is_empty() {
            assert!(Instant::now() < end, "places are kept");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
