//! A pool of workers that keeps one worker on a stream of requests.
//!
//! fuser's threads all wait in the kernel, which wakes the one that has waited longest. The requests of one
//! process then go round all of them: each has a cold cache and a processor to wake, and a request for which
//! no process waits (a release) wakes one more. One worker that goes from request to request serves such a
//! stream in half the time (row `open-read-1k` of `tests/bench/RESULTS.md`: 14 us a file, 24 to 28 when four
//! take turns), but a slow disk would then block every caller. So after a request a worker parks
//! if enough others wait for requests. Workers are unparked when requests turn out to be slow, when all
//! unparked ones are busy, when no request finishes (the watchdog), or before a request waits for others.

use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::placement::{Asker, PlacedWorker, Placement, PlacementWatch};
use crate::os::caller::check_thread;

// The constants name the rows of `tests/bench/RESULTS.md` that pay for them.

/// A request that takes longer has waited for something other than a processor: a disk, a lock. Rows `unlink` and
/// `rm-rf`: a journal often takes more than the 80 us that this was at first, and then all workers took turns.
const SLOW: Duration = Duration::from_micros(400);
/// For so many requests after a slow one all workers stay unparked. Rows `git-status-cold` and
/// `rsync-nochange-cold`, where several processes or threads find some names in a cache and others on the disk. In
/// a simulation of four processes, of whose requests each tenth waits for 1 ms, 1,600 requests take 57 ms with 16
/// and 77 ms with none.
const AFTER_SLOW: usize = 16;
/// The time that a worker parks after a forget, for which no process waits, and that it does not after that: fuser
/// hands over the nodes of one request one by one, and does not tell them from those of others. Rows `find-cold` and
/// `find-stat-cold`: dropping the caches, which they include, forgets each node.
const PARKED_AFTER_FORGET: Duration = Duration::from_millis(20);
/// The number of requests that a worker takes between two measurements of its idle time, by which more workers wait for
/// requests. Rows `2p-*` with four processors or more; with fewer, as on the machine of `RESULTS.md`,
/// `max_waiting` is 1 and the measurement changes nothing.
const WINDOW: u32 = 128;

// These are not tuned. They bound how long a request waits that no row has.

/// The time that no request may finish until the watchdog unparks another worker: all of them may wait for one disk.
const STUCK: Duration = Duration::from_millis(1);
/// The time that the watchdog sleeps while there are no requests, if the signal of a new one is lost.
const WATCHDOG_SLEEP: Duration = Duration::from_millis(500);
/// The time that a worker parks after a reply, if the signal that unparks it is lost.
const PARKED_AFTER_REPLY: Duration = Duration::from_secs(60);

/// The workers: fuser's threads, as far as they are parked and unparked by us.
#[derive(Debug)]
pub(super) struct WorkerPool {
    size: usize,
    /// The most workers that may wait for requests: half the processors, because each request keeps a caller
    /// waiting on another one.
    max_waiting: usize,
    /// The number of workers that have taken a request since the start.
    seen: AtomicUsize,
    /// The number of workers that are not parked.
    unparked: AtomicUsize,
    /// The number of workers that have a request.
    busy: AtomicUsize,
    finished: AtomicUsize,
    /// The number of workers that should wait for requests.
    wanted: AtomicUsize,
    /// The number of further requests for which all workers should wait.
    all_unparked_for: AtomicUsize,
    is_over: AtomicBool,
    /// The number of parked workers that have been unparked and have not resumed yet.
    permits: Mutex<usize>,
    unpark_signal: Condvar,
    watchdog_sleeps: AtomicBool,
    watchdog_lock: Mutex<()>,
    watchdog_signal: Condvar,
    /// None if no worker is bound.
    placement: Option<Placement>,
}

/// The state of one worker. Its end, which comes with the mount's, unparks all others.
struct Worker {
    pool: Arc<WorkerPool>,
    requests: u32,
    idle: Duration,
    since: Instant,
    finished: Instant,
    parked_after_forget: Option<Instant>,
    place: Option<PlacedWorker>,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _permits = self.pool.permits.lock();
        self.pool.is_over.store(true, Ordering::Relaxed);
        self.pool.unpark_signal.notify_all();
        self.pool.watchdog_signal.notify_all();
    }
}

impl Worker {
    fn note_begin(&mut self, now: Instant, asker: Asker) {
        let waited = now.saturating_duration_since(self.finished);
        if let (Some(placement), Some(place)) = (&self.pool.placement, &mut self.place) {
            placement.note(place, asker, now, waited);
        }
        self.idle += waited;
        self.requests += 1;
        if self.requests < WINDOW {
            return;
        }
        let pool = &self.pool;
        let wanted = pool.wanted.load(Ordering::Relaxed);
        let is_saturated = self.idle * 10 < now.saturating_duration_since(self.since);
        let wanted = if is_saturated {
            (wanted + 1).min(pool.max_waiting)
        } else {
            wanted.saturating_sub(1).max(1)
        };
        pool.wanted.store(wanted, Ordering::Relaxed);
        if is_saturated && wanted > 1 {
            pool.unpark(1);
        }
        (self.requests, self.idle, self.since) = (0, Duration::ZERO, now);
    }

    /// Whether to park after a forget now.
    fn parks_after_forget(&mut self) -> bool {
        let now = Instant::now();
        let rests = |at| now.saturating_duration_since(at) < 2 * PARKED_AFTER_FORGET;
        if self.parked_after_forget.is_some_and(rests) {
            return false;
        }
        self.parked_after_forget = Some(now);
        true
    }
}

/// A request in a worker. When it is dropped the worker may park.
pub(in crate::fuse::fs) struct RequestGuard<'a> {
    pool: &'a WorkerPool,
    began: Instant,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        check_thread();
        self.pool.finish(self.began);
    }
}

impl WorkerPool {
    /// A pool of `size` workers on so many processors, and its watchdog.
    pub(super) fn start(
        size: usize,
        processors: usize,
        placement: bool,
    ) -> std::io::Result<Arc<WorkerPool>> {
        let pool = Arc::new(WorkerPool {
            size,
            max_waiting: (processors / 2).clamp(1, size),
            seen: AtomicUsize::new(0),
            unparked: AtomicUsize::new(size),
            busy: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            wanted: AtomicUsize::new(1),
            all_unparked_for: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            permits: Mutex::default(),
            unpark_signal: Condvar::new(),
            watchdog_sleeps: AtomicBool::new(false),
            watchdog_lock: Mutex::default(),
            watchdog_signal: Condvar::new(),
            placement: Placement::new(placement),
        });
        let watched = Arc::clone(&pool);
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watched.watchdog())?;
        Ok(pool)
    }

    /// A request begins.
    pub(super) fn begin(self: &Arc<Self>, asker: Asker) -> RequestGuard<'_> {
        let began = Instant::now();
        self.busy.fetch_add(1, Ordering::Relaxed);
        WORKER.with_borrow_mut(|worker| match worker {
            Some(worker) => worker.note_begin(began, asker),
            None => {
                *worker = Some(Worker {
                    pool: Arc::clone(self),
                    requests: 0,
                    idle: Duration::ZERO,
                    since: began,
                    finished: began,
                    parked_after_forget: None,
                    place: self.placement.as_ref().map(|it| it.join(began)),
                });
                self.seen.fetch_add(1, Ordering::Relaxed);
            }
        });
        if self.watchdog_sleeps.load(Ordering::Relaxed) {
            self.watchdog_signal.notify_one();
        }
        RequestGuard { pool: self, began }
    }

    fn finish(&self, began: Instant) {
        let now = Instant::now();
        self.busy.fetch_sub(1, Ordering::Relaxed);
        self.finished.fetch_add(1, Ordering::Relaxed);
        let left = self.all_unparked_for.load(Ordering::Relaxed);
        if now.saturating_duration_since(began) > SLOW {
            self.all_unparked_for.store(AFTER_SLOW, Ordering::Relaxed);
            self.unpark(self.size);
        } else if left > 0 {
            self.all_unparked_for.store(left - 1, Ordering::Relaxed);
        } else if self.is_surplus() {
            self.park(PARKED_AFTER_REPLY);
        }
        WORKER.with_borrow_mut(|worker| {
            if let Some(worker) = worker {
                worker.finished = Instant::now();
            }
        });
    }

    /// Whether enough other workers wait for requests. Workers that have taken one learn of the end.
    fn is_surplus(&self) -> bool {
        let others = self.unparked.load(Ordering::Relaxed).saturating_sub(1);
        let waiting = others.saturating_sub(self.busy.load(Ordering::Relaxed));
        waiting >= self.wanted.load(Ordering::Relaxed)
            && self.seen.load(Ordering::Relaxed) >= self.size
    }

    /// After a forget: the kernel sends them by the thousand, and no process waits for them.
    pub(super) fn forgot(&self) {
        if self.is_surplus()
            && WORKER
                .with_borrow_mut(|worker| worker.as_mut().is_some_and(Worker::parks_after_forget))
        {
            self.park(PARKED_AFTER_FORGET);
        }
    }

    fn park(&self, most: Duration) {
        // The one that stays is the one on the processor of the process that asks.
        let is_bound = |worker: &Worker| worker.place.as_ref().is_some_and(PlacedWorker::is_bound);
        if WORKER.with_borrow(|worker| worker.as_ref().is_some_and(is_bound)) {
            return;
        }
        let mut permits = self.permits.lock();
        // Checked again under the lock, so that two workers do not both park.
        if !self.is_surplus() {
            return;
        }
        self.unparked.fetch_sub(1, Ordering::Relaxed);
        let until = Instant::now() + most;
        while *permits == 0 && !self.is_over.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.unpark_signal.wait_for(&mut permits, left);
        }
        *permits = permits.saturating_sub(1);
        self.unparked.fetch_add(1, Ordering::Relaxed);
    }

    /// Unparks up to so many workers.
    fn unpark(&self, many: usize) {
        if self.unparked.load(Ordering::Relaxed) >= self.size {
            return;
        }
        let mut permits = self.permits.lock();
        let parked = self.size - self.unparked.load(Ordering::Relaxed).min(self.size);
        let more = many.min(parked.saturating_sub(*permits));
        *permits += more;
        for _ in 0..more {
            self.unpark_signal.notify_one();
        }
    }

    /// Before a request waits for others.
    pub(super) fn about_to_wait(&self) {
        self.unpark(1);
    }

    /// Unparks a worker when all unparked ones are busy and no request finishes, and unbinds those that are idle.
    fn watchdog(&self) {
        let mut before = 0;
        let mut quiet = Duration::ZERO;
        let mut placement = PlacementWatch::default();
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(STUCK);
            if let Some(placed) = &self.placement {
                placement.look(placed, STUCK);
            }
            let finished = self.finished.load(Ordering::Relaxed);
            let busy = self.busy.load(Ordering::Relaxed);
            if finished != before {
                quiet = Duration::ZERO;
            } else if busy > 0 && busy >= self.unparked.load(Ordering::Relaxed) {
                self.unpark(1);
            }
            before = finished;
            quiet += STUCK;
            if busy == 0 && quiet > 100 * STUCK {
                self.watchdog_sleeps.store(true, Ordering::Relaxed);
                self.watchdog_signal
                    .wait_for(&mut self.watchdog_lock.lock(), WATCHDOG_SLEEP);
                self.watchdog_sleeps.store(false, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that take requests from a queue, as fuser's do from the kernel.
    fn serve(
        size: usize,
        requests: std::sync::mpsc::Receiver<Duration>,
    ) -> (Arc<WorkerPool>, Duration) {
        let pool = WorkerPool::start(size, 2, true).expect("a thread");
        let requests = Arc::new(Mutex::new(requests));
        let began = Instant::now();
        let threads: Vec<_> = (0..size)
            .map(|_| {
                let (pool, requests) = (Arc::clone(&pool), Arc::clone(&requests));
                std::thread::spawn(move || {
                    loop {
                        let request = requests.lock().recv();
                        let Ok(time) = request else { return };
                        let _worker = pool.begin(Asker::Waits(1));
                        if !time.is_zero() {
                            std::thread::sleep(time);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        (pool, began.elapsed())
    }

    #[test]
    fn a_stream_of_quick_requests_is_served_by_one_and_all_end_with_it() {
        let (send, requests) = std::sync::mpsc::channel();
        let sender = std::thread::spawn(move || {
            for _ in 0..2000 {
                send.send(Duration::ZERO).expect("they go on");
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        let (pool, _) = serve(4, requests);
        sender.join().expect("no panic");
        assert_eq!(pool.finished.load(Ordering::Relaxed), 2000);
        assert!(pool.is_over.load(Ordering::Relaxed));
    }

    #[test]
    fn slow_requests_are_served_side_by_side() {
        let (send, requests) = std::sync::mpsc::channel();
        for _ in 0..400 {
            send.send(Duration::ZERO)
                .expect("all workers take requests");
        }
        for _ in 0..40 {
            send.send(Duration::from_millis(20))
                .expect("all workers take requests");
        }
        drop(send);
        let (_, took) = serve(4, requests);
        assert!(
            took < Duration::from_millis(500),
            "one alone takes 800 ms: {took:?}"
        );
    }
}
