//! The signals that a mount handles. All threads block them; one thread waits for them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::LogChange;

/// The signals that end a mount, and those that request more or less logging.
const OBEYED: [i32; 5] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Set when the session has ended.
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

/// Blocks the signals. Called before any thread of the mount is started, so that all of them inherit the mask.
pub(crate) fn block_signals() {
    let set = signal_set();
    // SAFETY: the set is initialised, and a null pointer is allowed for the old mask.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
}

/// Waits for the end of the mount. Returns true if the session has ended, false if a signal requests an
/// unmount. Meanwhile SIGUSR1 and SIGUSR2 request more or less logging.
pub(crate) fn wait_for_signal(change_log: impl Fn(LogChange)) -> bool {
    let set = signal_set();
    loop {
        let mut signal = 0;
        // SAFETY: both pointers are to live values of the right types.
        let error = unsafe { libc::sigwait(&set, &mut signal) };
        match signal {
            _ if OVER.load(Ordering::SeqCst) => return true,
            _ if error != 0 => {}
            libc::SIGUSR1 => change_log(LogChange::More),
            libc::SIGUSR2 => change_log(LogChange::Less),
            _ => return false,
        }
    }
}

/// Notifies the waiting thread that the session has ended.
pub(crate) fn wake() {
    OVER.store(true, Ordering::SeqCst);
    // SAFETY: sends a blocked signal to this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
}
