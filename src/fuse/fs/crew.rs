//! Which threads take requests.
//!
//! fuser's threads all wait in the kernel, which wakes the one that has waited longest. A stream of
//! requests from one process then goes round all of them, and each has nothing in its cache and a
//! processor to wake; what nobody waits for (a release) wakes one more. One thread that goes from
//! request to request serves it in half the time. But one alone would let everybody wait for a
//! slow disk. So after a request a thread rests as long as another one waits for requests, and
//! those that rest are called back when requests turn out to be slow, when all at hand are kept
//! busy, when none of them gets done, or when one is about to wait for others.

use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::os::charging;

/// A request that takes longer has waited for something other than a processor.
const SLOW: Duration = Duration::from_micros(400);
/// For so many requests after a slow one all threads take part.
const AFTER_SLOW: usize = 16;
/// How long nothing may get done until another thread is called.
const STUCK: Duration = Duration::from_millis(1);
/// How long the watch sleeps when nobody wakes it.
const NAP: Duration = Duration::from_millis(500);
/// How long a thread rests before it sees whether it has missed its call.
const LONG: Duration = Duration::from_secs(60);
/// How long it rests in the middle of something that can wait.
const SHORT: Duration = Duration::from_millis(20);
/// After so many requests a thread sees how busy it was.
const WINDOW: u32 = 128;

/// The threads that take requests.
#[derive(Debug)]
pub(super) struct Crew {
    size: usize,
    /// Each request keeps its caller waiting, so that half the processors can serve the other half.
    most: usize,
    /// Those that have taken a request at all.
    seen: AtomicUsize,
    /// Those that do not rest.
    at_hand: AtomicUsize,
    /// Those of them that are busy with a request.
    busy: AtomicUsize,
    finished: AtomicUsize,
    /// How many should wait for requests.
    wanted: AtomicUsize,
    /// For how many more requests all should.
    all_for: AtomicUsize,
    over: AtomicBool,
    /// How many that rest have been called and have not come yet.
    called: Mutex<usize>,
    call: Condvar,
    watch_sleeps: AtomicBool,
    watch: Mutex<()>,
    watch_wakes: Condvar,
}

/// What a thread knows of itself. Its end, which comes with the mount's, is told to the others.
struct Member {
    crew: Arc<Crew>,
    turns: u32,
    idle: Duration,
    since: Instant,
    finished: Instant,
}

thread_local! {
    static MEMBER: RefCell<Option<Member>> = const { RefCell::new(None) };
}

impl Drop for Member {
    fn drop(&mut self) {
        let _called = self.crew.called.lock();
        self.crew.over.store(true, Ordering::Relaxed);
        self.crew.call.notify_all();
        self.crew.watch_wakes.notify_all();
    }
}

impl Member {
    fn begins(&mut self, now: Instant) {
        self.idle += now.saturating_duration_since(self.finished);
        self.turns += 1;
        if self.turns < WINDOW {
            return;
        }
        let crew = &self.crew;
        let wanted = crew.wanted.load(Ordering::Relaxed);
        let is_overworked = self.idle * 10 < now.saturating_duration_since(self.since);
        let wanted = if is_overworked {
            (wanted + 1).min(crew.most)
        } else {
            wanted.saturating_sub(1).max(1)
        };
        crew.wanted.store(wanted, Ordering::Relaxed);
        if is_overworked && wanted > 1 {
            crew.call(1);
        }
        (self.turns, self.idle, self.since) = (0, Duration::ZERO, now);
    }
}

/// A request's time in a thread; when it ends, the thread may rest.
pub(super) struct Turn<'a> {
    crew: &'a Crew,
    began: Instant,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.crew.finish(self.began);
    }
}

impl Crew {
    /// For so many threads on so many processors.
    pub(super) fn start(size: usize, processors: usize) -> std::io::Result<Arc<Crew>> {
        let crew = Arc::new(Crew {
            size,
            most: (processors / 2).clamp(1, size),
            seen: AtomicUsize::new(0),
            at_hand: AtomicUsize::new(size),
            busy: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            wanted: AtomicUsize::new(1),
            all_for: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            called: Mutex::default(),
            call: Condvar::new(),
            watch_sleeps: AtomicBool::new(false),
            watch: Mutex::default(),
            watch_wakes: Condvar::new(),
        });
        let watched = Arc::clone(&crew);
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watched.watch())?;
        Ok(crew)
    }

    /// A request begins: this thread acts as itself.
    pub(super) fn turn(self: &Arc<Self>) -> Turn<'_> {
        charging::stop();
        self.turn_to_write()
    }

    /// The same for a write: where the one before was of the same user, this thread pays for that
    /// user still.
    pub(super) fn turn_to_write(self: &Arc<Self>) -> Turn<'_> {
        let began = Instant::now();
        self.busy.fetch_add(1, Ordering::Relaxed);
        MEMBER.with_borrow_mut(|member| match member {
            Some(member) => member.begins(began),
            None => {
                *member = Some(Member {
                    crew: Arc::clone(self),
                    turns: 0,
                    idle: Duration::ZERO,
                    since: began,
                    finished: began,
                });
                self.seen.fetch_add(1, Ordering::Relaxed);
            }
        });
        if self.watch_sleeps.load(Ordering::Relaxed) {
            self.watch_wakes.notify_one();
        }
        Turn { crew: self, began }
    }

    fn finish(&self, began: Instant) {
        let now = Instant::now();
        self.busy.fetch_sub(1, Ordering::Relaxed);
        self.finished.fetch_add(1, Ordering::Relaxed);
        let left = self.all_for.load(Ordering::Relaxed);
        if now.saturating_duration_since(began) > SLOW {
            self.all_for.store(AFTER_SLOW, Ordering::Relaxed);
            self.call(self.size);
        } else if left > 0 {
            self.all_for.store(left - 1, Ordering::Relaxed);
        } else if self.is_surplus() {
            self.rest(LONG);
        }
        MEMBER.with_borrow_mut(|member| {
            if let Some(member) = member {
                member.finished = Instant::now();
            }
        });
    }

    /// Whether enough others wait for requests. The end is told by threads that have been seen.
    fn is_surplus(&self) -> bool {
        let others = self.at_hand.load(Ordering::Relaxed).saturating_sub(1);
        let waiting = others.saturating_sub(self.busy.load(Ordering::Relaxed));
        waiting >= self.wanted.load(Ordering::Relaxed)
            && self.seen.load(Ordering::Relaxed) >= self.size
    }

    /// Something has been done that nobody waits for, and that comes by the thousand.
    pub(super) fn has_done_little(&self) {
        if self.is_surplus() {
            self.rest(SHORT);
        }
    }

    fn rest(&self, most: Duration) {
        let mut called = self.called.lock();
        // Seen again under the lock, so that two do not leave for each other's sake.
        if !self.is_surplus() {
            return;
        }
        self.at_hand.fetch_sub(1, Ordering::Relaxed);
        let until = Instant::now() + most;
        while *called == 0 && !self.over.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.call.wait_for(&mut called, left);
        }
        *called = called.saturating_sub(1);
        self.at_hand.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls back up to so many threads that rest.
    fn call(&self, many: usize) {
        if self.at_hand.load(Ordering::Relaxed) >= self.size {
            return;
        }
        let mut called = self.called.lock();
        let resting = self.size - self.at_hand.load(Ordering::Relaxed).min(self.size);
        let more = many.min(resting.saturating_sub(*called));
        *called += more;
        for _ in 0..more {
            self.call.notify_one();
        }
    }

    /// To be called before a request waits for others: somebody has to take those.
    pub(super) fn about_to_wait(&self) {
        self.call(1);
    }

    /// Calls a thread when all at hand are busy and none gets done.
    fn watch(&self) {
        let mut before = 0;
        let mut quiet = Duration::ZERO;
        while !self.over.load(Ordering::Relaxed) {
            std::thread::sleep(STUCK);
            let finished = self.finished.load(Ordering::Relaxed);
            let busy = self.busy.load(Ordering::Relaxed);
            if finished != before {
                quiet = Duration::ZERO;
            } else if busy > 0 && busy >= self.at_hand.load(Ordering::Relaxed) {
                self.call(1);
            }
            before = finished;
            quiet += STUCK;
            if busy == 0 && quiet > 100 * STUCK {
                self.watch_sleeps.store(true, Ordering::Relaxed);
                self.watch_wakes.wait_for(&mut self.watch.lock(), NAP);
                self.watch_sleeps.store(false, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that take requests from a queue, as fuser's do from the kernel.
    fn serve(size: usize, requests: std::sync::mpsc::Receiver<Duration>) -> (Arc<Crew>, Duration) {
        let crew = Crew::start(size, 2).expect("a thread");
        let requests = Arc::new(Mutex::new(requests));
        let began = Instant::now();
        let threads: Vec<_> = (0..size)
            .map(|_| {
                let (crew, requests) = (Arc::clone(&crew), Arc::clone(&requests));
                std::thread::spawn(move || {
                    loop {
                        let request = requests.lock().recv();
                        let Ok(time) = request else { return };
                        let _turn = crew.turn();
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
        (crew, began.elapsed())
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
        let (crew, _) = serve(4, requests);
        sender.join().expect("no panic");
        assert_eq!(crew.finished.load(Ordering::Relaxed), 2000);
        assert!(crew.over.load(Ordering::Relaxed));
    }

    #[test]
    fn slow_requests_are_served_side_by_side() {
        let (send, requests) = std::sync::mpsc::channel();
        for _ in 0..400 {
            send.send(Duration::ZERO).expect("nobody has left");
        }
        for _ in 0..40 {
            send.send(Duration::from_millis(20))
                .expect("nobody has left");
        }
        drop(send);
        let (_, took) = serve(4, requests);
        assert!(
            took < Duration::from_millis(500),
            "one alone takes 800 ms: {took:?}"
        );
    }
}
