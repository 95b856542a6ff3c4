//! The processors on which threads run: where another thread is, binding a thread to it, and back.
//!
//! Decides nothing; see `fuse/fs/scheduler/placement.rs`.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::credentials;
use crate::system_files;
use crate::umask;

/// The number of times that a wakeup is measured.
const WAKEUPS: usize = 15;
/// The time that the thread sleeps that is woken: long enough for its processor to halt, if it does.
const ASLEEP: Duration = Duration::from_micros(100);

/// The calling thread.
pub fn own_thread() -> Pid {
    rustix::thread::gettid()
}

/// Field `state` and field `processor` of /proc/TID/stat, see proc_pid_stat(5).
fn state_and_processor(stat: &str) -> Option<(char, usize)> {
    // The name of the program, in parentheses, may have spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(35)?.parse().ok()?))
}

fn stat_of(thread: u32) -> Option<(char, usize)> {
    // The file of the thread alone: that of the process sums up all its threads.
    let stat = system_files::read_text(format!("/proc/{thread}/task/{thread}/stat")).ok()?;
    state_and_processor(&stat)
}

/// The processor on which a thread of any process runs or ran last; None if there is no such thread.
pub fn processor_of(thread: u32) -> Option<usize> {
    stat_of(thread).map(|(_, processor)| processor)
}

/// Whether a thread of any process has something to do, on a processor or waiting for one.
pub fn is_runnable(thread: u32) -> bool {
    stat_of(thread).is_some_and(|(state, _)| state == 'R')
}

/// Whether a thread of any process waits for something else than a processor, or has ended. One that is traced waits for
/// nothing else.
pub fn is_blocked(thread: u32) -> bool {
    stat_of(thread).is_none_or(|(state, _)| !matches!(state, 'R' | 't'))
}

/// The time that a thread of this process has run; zero if there is no such thread.
pub fn time_run(thread: Pid) -> Duration {
    // The clock of a thread, as pthread_getcpuclockid(3) makes it of its number.
    let clock = (!thread.as_raw_nonzero().get() << 3) | 6;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec and lives through the call, which checks the clock.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    match (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec)) {
        (Ok(seconds), Ok(nanoseconds)) if read => Duration::new(seconds, nanoseconds),
        _ => Duration::ZERO,
    }
}

/// The processors that this process may use: those of its first thread, which is never bound. They follow
/// taskset(1), cpusets and processors that are switched off.
fn allowed() -> Result<CpuSet, Errno> {
    sched_getaffinity(Some(rustix::process::getpid()))
}

fn set_policy(thread: Pid, policy: i32) -> Result<(), Errno> {
    // The kernel's struct sched_param. That of musl is larger, and its function refuses everything.
    let priority: libc::c_int = 0;
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: `priority` lives through the call, which keeps no pointer.
    let set = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread,
            policy,
            &raw const priority,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
    }
}

/// Binds a thread to one processor, where all others go before it (`SCHED_IDLE`, see sched(7)): the kernel
/// takes a processor that has only such threads as idle, so it wakes a thread there when one of these answers it.
/// EINVAL if the process may not use that processor.
pub fn bind(thread: Pid, processor: usize) -> Result<(), Errno> {
    if processor >= CpuSet::MAX_CPU || !allowed()?.is_set(processor) {
        return Err(Errno::INVAL);
    }
    let mut one = CpuSet::new();
    one.set(processor);
    sched_setaffinity(Some(thread), &one)?;
    set_policy(thread, libc::SCHED_IDLE)
}

/// Makes a thread an ordinary one, on the processor where it is.
pub fn make_ordinary(thread: Pid) -> Result<(), Errno> {
    set_policy(thread, libc::SCHED_OTHER)
}

/// Ends what [`bind`] has done.
pub fn unbind(thread: Pid) -> Result<(), Errno> {
    let ordinary = make_ordinary(thread);
    sched_setaffinity(Some(thread), &allowed()?)?;
    ordinary
}

/// Whether threads of this process can be bound: they have the ordinary policy, and get it back, which requires
/// CAP_SYS_NICE. The test is made in a thread of its own.
pub fn can_bind() -> bool {
    let probe = || {
        // SAFETY: takes no pointer; 0 is the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        let thread = own_thread();
        policy == libc::SCHED_OTHER
            && set_policy(thread, libc::SCHED_IDLE).is_ok()
            && make_ordinary(thread).is_ok()
            && processor_of(thread.as_raw_nonzero().get().unsigned_abs()).is_some()
    };
    let probe = std::thread::Builder::new().spawn(probe);
    probe.is_ok_and(|probe| probe.join().unwrap_or(false))
}

/// Measures how long a thread that sleeps for a moment needs to run again after another processor has woken it. Of some
/// attempts the fastest third counts: where its processor is busy, the thread waits for another one. None if there
/// are not two processors. Takes some milliseconds.
pub fn wakeup_time() -> Option<Duration> {
    let allowed = allowed().ok()?;
    let mut processors = (0..CpuSet::MAX_CPU).filter(|at| allowed.is_set(*at));
    let (first, second) = (processors.next()?, processors.next()?);
    let stay_on = |processor| {
        let mut one = CpuSet::new();
        one.set(processor);
        sched_setaffinity(None, &one).is_ok()
    };
    let (send, woken) = channel();
    let sleeping = move || {
        if stay_on(second) {
            for _ in 0..WAKEUPS {
                std::thread::park();
                let sent = send.send(Instant::now());
                if sent.is_err() {
                    return;
                }
            }
        }
    };
    let measuring = move || {
        let sleeper = std::thread::Builder::new().spawn(sleeping).ok()?;
        if !stay_on(first) {
            return None;
        }
        let mut times = Vec::new();
        for _ in 0..WAKEUPS {
            std::thread::sleep(ASLEEP);
            let at = Instant::now();
            sleeper.thread().unpark();
            times.push(woken.recv().ok()?.saturating_duration_since(at));
        }
        times.sort();
        times.get(times.len() / 3).copied()
    };
    let measuring = std::thread::Builder::new().spawn(measuring).ok()?;
    measuring.join().ok()?
}

/// Spawns a thread that continues what a request began. The new thread would inherit the binding of the
/// calling one, and share its umask; it is an ordinary thread of the process instead. It takes no signals of the process: one that it did
/// not block would end the process, however well its main thread waits for it.
pub fn spawn_unbound(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    debug_assert!(!credentials::has_taken(), "it would act as the caller, too");
    // SAFETY: takes no pointer; 0 is the calling thread.
    let is_bound = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_IDLE;
    let thread = std::thread::Builder::new().name(name.to_owned());
    let run = move || {
        if is_bound && let Err(error) = unbind(own_thread()) {
            log::debug!("a thread stays on one processor: {error}");
        }
        umask::detach();
        run();
    };
    let mask = block_all_signals();
    let spawned = thread.spawn(run).map(drop);
    // SAFETY: the mask was written by the system.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) };
    spawned
}

/// Blocks all signals for the calling thread, and those that it starts. Returns which were blocked before.
fn block_all_signals() -> libc::sigset_t {
    // SAFETY: all-zero sets are valid places to write to, and the functions write them or read what was written.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

/// Lets other threads run before this one, and what it starts.
pub fn give_way() {
    const LEVEL: libc::c_int = 10;
    // SAFETY: takes no pointer; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEVEL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_confuse_the_fields() {
        let mut stat = "7 (a) R (b c) S".to_owned();
        for field in 4..=45 {
            stat += &format!(" {field}");
        }
        assert_eq!(state_and_processor(&stat), Some(('S', 39)));
        assert_eq!(state_and_processor("7 (a) S 1"), None);
        assert_eq!(processor_of(u32::MAX), None);
    }

    #[test]
    fn a_thread_is_bound_and_unbound_and_its_threads_are_not_bound() {
        if !can_bind() {
            return;
        }
        let bound = || {
            let thread = own_thread();
            let allowed = allowed().expect("a mask");
            let mask = || sched_getaffinity(None).expect("a mask");
            let last = (0..CpuSet::MAX_CPU).rfind(|at| allowed.is_set(*at));
            let last = last.expect("a processor");
            bind(thread, last).expect("it is allowed");
            assert_eq!((mask().count(), mask().is_set(last)), (1, true));
            let number = thread.as_raw_nonzero().get().unsigned_abs();
            assert_eq!(processor_of(number), Some(last));
            let (send, receive) = std::sync::mpsc::channel();
            let look = move || {
                // SAFETY: takes no pointer; 0 is the calling thread.
                let policy = unsafe { libc::sched_getscheduler(0) };
                send.send((sched_getaffinity(None), policy)).expect("heard");
            };
            spawn_unbound("child", look).expect("a thread");
            let (of_child, policy) = receive.recv().expect("a child");
            assert_eq!(of_child, Ok(allowed));
            assert_eq!(policy, libc::SCHED_OTHER);
            unbind(thread).expect("it is allowed");
            assert_eq!(mask(), allowed);
            // SAFETY: takes no pointer; 0 is the calling thread.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
            assert_eq!(bind(thread, CpuSet::MAX_CPU), Err(Errno::INVAL));
        };
        std::thread::spawn(bound).join().expect("no panic");
    }

    #[test]
    fn a_wakeup_takes_time() {
        let processors = allowed().expect("a mask").count();
        match wakeup_time() {
            Some(time) => assert!(processors > 1 && time > Duration::ZERO, "{time:?}"),
            None => assert_eq!(processors, 1),
        }
    }

    #[test]
    fn the_time_of_a_thread_grows() {
        let thread = own_thread();
        let before = time_run(thread);
        assert!(is_runnable(thread.as_raw_nonzero().get().unsigned_abs()));
        while time_run(thread) == before {}
    }
}
