//! The processor on which a worker runs.
//!
//! A process that waits for its reply leaves its processor to the worker. If the worker is on another one, each
//! request wakes two processors, and on a virtual machine whose idle processors halt that takes longer than the
//! request. The kernel moves neither: while the worker runs, its processor is taken, so that the kernel wakes
//! the process on another. Therefore a worker that serves one process alone is bound to the processor of that
//! process, as a thread before which all others go. Then the kernel wakes the process there, too
//! (`os/src/processors.rs::bind`).
//!
//! Such a worker must not wait for its processor while another process is busy on it. The watchdog of the pool
//! unbinds it when it has taken no request for one or two milliseconds, whatever the reason. If it was not given
//! the processor meanwhile although the process waits, no worker is bound for a while.
//!
//! [`Following`] decides, [`Placement`] acts.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::os::processors;

// The constants name the rows of `tests/bench/RESULTS.md` that pay for them.

/// After so many requests of one thread in succession the worker is bound to its processor. Rows `2p-create-1k`
/// and `2p-cp-a-in`: two processes that ask in turn are served where the kernel sees fit.
const RUN: u32 = 8;
/// If a worker waits for so long on average before each request of a run, processors halt between them. Rows
/// `create-1k` and `cp-a-in`: on processors that are kept awake they lost 7 % with a worker that was bound nevertheless,
/// because nothing is then done beside the process. The limit is not measured but estimated from the times of these rows
/// for each request: some 7 us of waiting on processors that are kept awake, 22 us and more on those that halt.
const HALTED: Duration = Duration::from_micros(12);
/// If a wakeup takes so long, processors halt: 17 us where they do, 2.5 where they are kept awake. A worker waits for a process that computes or sleeps, too, so that its
/// waits alone do not tell. Row `sqlite-delete`, which waits for the disk: 0.43 of native on processors that are kept
/// awake, 0.35 if the worker is bound there.
const WAKEUP: Duration = Duration::from_micros(8);
/// A longer wait counts as so long: the process has done something else. Row `cp-a-in`, which also reads.
const LONGEST: Duration = Duration::from_micros(40);
/// After so many requests a bound worker looks where the process is, if it waits again: the kernel has woken the process
/// elsewhere. Row `unlink`; where nothing is to be gained, looking takes as long as a request.
const LATE_RUN: u32 = 3;

// These are not tuned. They bound what a busy machine loses.

/// A run that took longer than this for each request is not a stream: the watchdog would unbind the worker.
const STREAM: Duration = Duration::from_millis(1);
/// The time that no worker is bound after one was not given its processor; twice as long each time, up to the second.
const HOLD_OFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(30));
/// The time that a measured wakeup counts.
const MEASURED: Duration = Duration::from_secs(5);
/// A worker that was bound for so many requests shows that the processors are free again.
const PROVEN: usize = 4096;

/// The thread that waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// The thread of this number; 0 if there is none in this namespace of processes, or no thread waits.
    Waits(u32),
    /// A process that may go on, since data are read ahead and written behind beside it; or one that waits for the
    /// disk, as the worker does.
    GoesOn,
}

/// The step of a worker before a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Stay,
    /// Be on the processor of this thread.
    Follow(u32),
    Leave,
}

/// The requests that one worker has taken in succession.
#[derive(Debug)]
struct Following {
    caller: u32,
    run: u32,
    since: Instant,
    waited: Duration,
}

impl Following {
    fn new(now: Instant) -> Following {
        Following {
            caller: 0,
            run: 0,
            since: now,
            waited: Duration::ZERO,
        }
    }

    /// Returns what to do before a request for which the worker has waited so long.
    fn next(&mut self, asker: Asker, now: Instant, waited: Duration, is_bound: bool) -> Step {
        let caller = match asker {
            Asker::Waits(0) => {
                // A release has woken the worker for the request after it, too.
                self.waited += waited.min(LONGEST);
                return Step::Stay;
            }
            Asker::Waits(caller) => caller,
            Asker::GoesOn => 0,
        };
        if caller != self.caller || caller == 0 {
            (self.caller, self.run, self.since) = (caller, 1, now);
            self.waited = Duration::ZERO;
            return if is_bound { Step::Leave } else { Step::Stay };
        }
        self.run += 1;
        self.waited += waited.min(LONGEST);
        if self.run < if is_bound { LATE_RUN } else { RUN } {
            return Step::Stay;
        }
        let is_stream = now.saturating_duration_since(self.since) < STREAM * self.run;
        let is_halted = self.waited >= HALTED * self.run;
        (self.run, self.since, self.waited) = (0, now, Duration::ZERO);
        if is_halted && is_stream {
            Step::Follow(caller)
        } else {
            Step::Stay
        }
    }
}

/// One worker, as the watchdog sees it.
#[derive(Debug)]
struct Place {
    thread: Pid,
    /// The thread whose processor that is.
    caller: AtomicU32,
    /// The processor to which the worker is bound.
    processor: Mutex<Option<usize>>,
    is_bound: AtomicBool,
    requests: AtomicUsize,
    /// The value of `requests` when the worker was bound.
    bound_at: AtomicUsize,
}

impl Place {
    fn is_bound(&self) -> bool {
        self.is_bound.load(Ordering::Relaxed)
    }
}

/// A worker that may be bound.
#[derive(Debug)]
pub(super) struct PlacedWorker {
    place: Arc<Place>,
    following: Following,
}

impl PlacedWorker {
    /// Whether the worker serves one process alone, on the processor of that.
    pub(super) fn is_bound(&self) -> bool {
        self.place.is_bound()
    }
}

/// The time for which no worker is bound.
#[derive(Debug, Default)]
struct HoldOff {
    until: Option<Instant>,
    last: Duration,
}

impl HoldOff {
    fn starved(&mut self, now: Instant) {
        self.last = (self.last * 2).clamp(HOLD_OFF.0, HOLD_OFF.1);
        self.until = Some(now + self.last);
    }

    fn is_over(&mut self, now: Instant) -> bool {
        if self.until.is_some_and(|until| now >= until) {
            self.until = None;
        }
        self.until.is_none()
    }
}

/// The last measurement of whether processors halt.
#[derive(Debug, Default)]
struct Halting {
    halts: AtomicBool,
    measured_at: Mutex<Option<Instant>>,
    is_asked: AtomicBool,
}

impl Halting {
    /// Whether they halt. A measurement that is too old, or missing, is asked for.
    fn is_so(&self, now: Instant) -> bool {
        let measured_at = *self.measured_at.lock();
        if measured_at.is_none_or(|at| now.saturating_duration_since(at) > MEASURED) {
            self.is_asked.store(true, Ordering::Relaxed);
        }
        self.halts.load(Ordering::Relaxed)
    }

    /// Measures, in a thread of its own, if that was asked for.
    fn measure(halting: &Arc<Halting>) {
        if !halting.is_asked.swap(false, Ordering::Relaxed) {
            return;
        }
        // Not asked for again meanwhile.
        *halting.measured_at.lock() = Some(Instant::now());
        let halting = Arc::clone(halting);
        let measuring = move || {
            let time = processors::wakeup_time();
            let halts = time.is_some_and(|time| time >= WAKEUP);
            halting.halts.store(halts, Ordering::Relaxed);
        };
        if let Err(error) = processors::spawn_unbound("measuring", measuring) {
            log::debug!("it is not known whether processors halt: {error}");
        }
    }
}

/// The places of all workers.
#[derive(Debug)]
pub(super) struct Placement {
    places: Mutex<Vec<Arc<Place>>>,
    hold_off: Mutex<HoldOff>,
    halting: Arc<Halting>,
}

impl Placement {
    /// None if it is not wanted, or not possible.
    pub(super) fn new(is_wanted: bool) -> Option<Placement> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_possible = is_wanted && processors > 1 && processors::can_bind();
        is_possible.then(|| Placement {
            places: Mutex::default(),
            hold_off: Mutex::default(),
            halting: Arc::default(),
        })
    }

    /// The calling thread as a worker.
    pub(super) fn join(&self, now: Instant) -> PlacedWorker {
        let place = Arc::new(Place {
            thread: processors::own_thread(),
            caller: AtomicU32::new(0),
            processor: Mutex::default(),
            is_bound: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            bound_at: AtomicUsize::new(0),
        });
        self.places.lock().push(Arc::clone(&place));
        PlacedWorker {
            place,
            following: Following::new(now),
        }
    }

    /// A worker, the calling thread, has taken a request.
    pub(super) fn note(
        &self,
        worker: &mut PlacedWorker,
        asker: Asker,
        now: Instant,
        waited: Duration,
    ) {
        let place = &worker.place;
        place.requests.fetch_add(1, Ordering::Relaxed);
        match worker.following.next(asker, now, waited, place.is_bound()) {
            Step::Stay => {}
            Step::Leave => self.leave(place),
            Step::Follow(caller) => self.follow(place, caller, now),
        }
    }

    fn follow(&self, place: &Place, caller: u32, now: Instant) {
        // To look where the process is takes longer than most requests.
        if !(self.hold_off.lock().is_over(now) && self.halting.is_so(now)) {
            return self.leave(place);
        }
        let there = processors::processor_of(caller);
        place.caller.store(caller, Ordering::Relaxed);
        let mut processor = place.processor.lock();
        if there.is_some() && *processor == there {
            return;
        }
        match there {
            Some(there) if processors::bind(place.thread, there).is_ok() => {
                if processor.is_none() {
                    place
                        .bound_at
                        .store(place.requests.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                *processor = Some(there);
                place.is_bound.store(true, Ordering::Relaxed);
            }
            _ => {
                drop(processor);
                self.leave(place);
            }
        }
    }

    /// Unbinds a worker.
    fn leave(&self, place: &Place) {
        let mut processor = place.processor.lock();
        if processor.take().is_none() {
            return;
        }
        place.is_bound.store(false, Ordering::Relaxed);
        if let Err(error) = processors::unbind(place.thread) {
            log::debug!("a worker stays on one processor: {error}");
        }
        let requests = place.requests.load(Ordering::Relaxed);
        if requests.wrapping_sub(place.bound_at.load(Ordering::Relaxed)) > PROVEN {
            self.hold_off.lock().last = Duration::ZERO;
        }
    }
}

/// The state of a worker when the watchdog looked last.
#[derive(Clone, Copy, Default)]
struct Seen {
    requests: usize,
    time_run: Duration,
}

/// The watchdog's part: it unbinds workers that take no requests.
#[derive(Default)]
pub(super) struct PlacementWatch {
    seen: Vec<Seen>,
}

impl PlacementWatch {
    /// To be called every `interval`.
    pub(super) fn look(&mut self, placement: &Placement, interval: Duration) {
        Halting::measure(&placement.halting);
        let places = placement.places.lock().clone();
        self.seen.resize(places.len(), Seen::default());
        for (place, seen) in places.iter().zip(&mut self.seen) {
            if !place.is_bound() {
                continue;
            }
            let before = *seen;
            *seen = Seen {
                requests: place.requests.load(Ordering::Relaxed),
                time_run: processors::time_run(place.thread),
            };
            if seen.requests != before.requests {
                continue;
            }
            let ran = seen.time_run.saturating_sub(before.time_run);
            // A process that goes on after its reply takes the processor rightly: the worker is not waited for.
            let is_waited_for = || !processors::is_runnable(place.caller.load(Ordering::Relaxed));
            let number = place.thread.as_raw_nonzero().get().unsigned_abs();
            if ran < interval / 2 && processors::is_runnable(number) && is_waited_for() {
                placement.hold_off.lock().starved(Instant::now());
            }
            // Before the lock that `leave` takes: the worker may hold it.
            if let Err(error) = processors::make_ordinary(place.thread) {
                log::debug!("a worker stays on one processor: {error}");
            }
            placement.leave(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(50);

    fn steps(following: &mut Following, askers: &[Asker], each: Duration) -> Vec<Step> {
        steps_after(following, askers, each, LONGEST)
    }

    fn steps_after(
        following: &mut Following,
        askers: &[Asker],
        each: Duration,
        waited: Duration,
    ) -> Vec<Step> {
        let mut is_bound = false;
        let mut now = following.since;
        let mut steps = Vec::new();
        for asker in askers {
            now += each;
            let step = following.next(*asker, now, waited, is_bound);
            is_bound = match step {
                Step::Stay => is_bound,
                Step::Follow(_) => true,
                Step::Leave => false,
            };
            steps.push(step);
        }
        steps
    }

    fn count(steps: &[Step], wanted: Step) -> usize {
        steps.iter().filter(|step| **step == wanted).count()
    }

    #[test]
    fn a_stream_of_one_thread_is_followed_where_processors_halt() {
        let mut following = Following::new(Instant::now());
        let mut follow = |requests, waited| {
            let askers = vec![Asker::Waits(7); requests];
            let steps = steps_after(&mut following, &askers, QUICK, waited);
            assert_eq!(count(&steps, Step::Leave), 0);
            let followed = (0..steps.len()).filter(|at| steps[*at] == Step::Follow(7));
            followed.collect::<Vec<_>>()
        };
        let awake = follow(80, HALTED / 2);
        assert!(awake.is_empty(), "processors that do not halt: {awake:?}");
        assert_eq!(follow(14, HALTED * 2), [7, 10, 13]);
    }

    #[test]
    fn a_wait_for_a_release_counts_for_the_request_after_it() {
        let mut following = Following::new(Instant::now());
        let mut now = following.since;
        let mut steps = Vec::new();
        for _ in 0..8 {
            now += QUICK;
            let released = following.next(Asker::Waits(0), now, LONGEST, false);
            assert_eq!(released, Step::Stay);
            steps.push(following.next(Asker::Waits(7), now, Duration::ZERO, false));
        }
        assert_eq!(steps.last(), Some(&Step::Follow(7)));
    }

    #[test]
    fn threads_that_ask_in_turn_are_not_followed() {
        let mut following = Following::new(Instant::now());
        let askers: Vec<_> = (0..400).map(|at| Asker::Waits(1 + at / 7 % 2)).collect();
        let steps = steps(&mut following, &askers, QUICK);
        assert_eq!(count(&steps, Step::Stay), 400);
    }

    #[test]
    fn another_thread_ends_it_and_releases_do_not() {
        let mut following = Following::new(Instant::now());
        let mut askers = vec![Asker::Waits(7); 20];
        askers.extend([Asker::Waits(0), Asker::Waits(7), Asker::Waits(8)]);
        let seen = steps(&mut following, &askers, QUICK);
        assert_eq!(seen[20..], [Step::Stay, Step::Stay, Step::Leave]);
    }

    #[test]
    fn slow_requests_and_data_are_not_followed() {
        let mut following = Following::new(Instant::now());
        let slow = steps(&mut following, &[Asker::Waits(7); 100], STREAM * 2);
        assert_eq!(count(&slow, Step::Stay), 100);
        let mut askers = vec![Asker::Waits(7); 8];
        askers.extend([Asker::GoesOn; 100]);
        let data = steps(&mut following, &askers, QUICK);
        assert_eq!(data[8], Step::Leave);
        assert_eq!(count(&data[9..], Step::Stay), 99);
    }

    #[test]
    fn starving_holds_off_for_longer_each_time() {
        let (mut hold_off, now) = (HoldOff::default(), Instant::now());
        assert!(hold_off.is_over(now));
        hold_off.starved(now);
        assert!(!hold_off.is_over(now + HOLD_OFF.0 / 2));
        assert!(hold_off.is_over(now + HOLD_OFF.0));
        hold_off.starved(now);
        assert!(!hold_off.is_over(now + HOLD_OFF.0));
        for _ in 0..20 {
            hold_off.starved(now);
        }
        assert!(hold_off.is_over(now + HOLD_OFF.1));
    }

    #[test]
    fn what_was_measured_counts_for_a_while() {
        let halting = Arc::new(Halting::default());
        let is_asked = || halting.is_asked.load(Ordering::Relaxed);
        Halting::measure(&halting);
        assert_eq!(*halting.measured_at.lock(), None, "it was not asked for");
        let now = Instant::now();
        assert!(!halting.is_so(now) && is_asked());
        Halting::measure(&halting);
        assert!(!is_asked());
        halting.is_so(now);
        assert!(!is_asked());
        halting.is_so(now + 2 * MEASURED);
        assert!(is_asked());
    }

    #[test]
    fn a_bound_worker_without_requests_is_unbound() {
        let Some(placement) = Placement::new(true) else {
            return;
        };
        let place = placement.join(Instant::now()).place;
        let own = place.thread.as_raw_nonzero().get().unsigned_abs();
        placement.follow(&place, own, Instant::now());
        assert!(!place.is_bound(), "before it is known that processors halt");
        placement.halting.halts.store(true, Ordering::Relaxed);
        placement.follow(&place, own, Instant::now());
        assert!(place.is_bound());
        let mut watch = PlacementWatch::default();
        place.requests.fetch_add(1, Ordering::Relaxed);
        watch.look(&placement, STREAM);
        assert!(place.is_bound());
        watch.look(&placement, STREAM);
        assert!(!place.is_bound());
        assert_eq!(*place.processor.lock(), None);
    }

    #[test]
    fn a_mount_may_bind_no_thread() {
        assert!(Placement::new(false).is_none());
    }
}
