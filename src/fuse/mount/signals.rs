//! The signals that a mount obeys: left by all threads to the one that waits for them.

use std::sync::atomic::{AtomicBool, Ordering};

/// The signals that end a mount, those that ask for more to be logged and for less.
const OBEYED: [i32; 5] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Whether the kernel has let go of the mount.
static OVER: AtomicBool = AtomicBool::new(false);

fn signal_set() -> libc::sigset_t {
    // SAFETY: an all-zero sigset_t is a valid place to write to, and both functions only write it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in OBEYED {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Called before any thread is started, so that all of them leave these signals to the waiting one.
pub(super) fn block_signals() {
    let set = signal_set();
    // SAFETY: the set is initialised and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
}

/// Waits for the end; true if the kernel has let go of the mount, false if a signal asks for it.
/// Meanwhile SIGUSR1 and SIGUSR2 ask for more to be logged, or for less.
pub(super) fn wait_for_signal(log_more: impl Fn(bool)) -> bool {
    let set = signal_set();
    loop {
        let mut signal = 0;
        // SAFETY: both pointers are to live values of the right types.
        let error = unsafe { libc::sigwait(&set, &mut signal) };
        match signal {
            _ if OVER.load(Ordering::SeqCst) => return true,
            _ if error != 0 => {}
            libc::SIGUSR1 => log_more(true),
            libc::SIGUSR2 => log_more(false),
            _ => return false,
        }
    }
}

/// Tells the waiting thread that the session is over.
pub(super) fn wake() {
    OVER.store(true, Ordering::SeqCst);
    // SAFETY: sends a blocked signal to this very process.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
}
