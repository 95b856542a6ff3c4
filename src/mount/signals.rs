//! The signals that end a mount: left by all threads to the one that waits for them.

/// The signals that end a mount, and the one that tells that the kernel has let go of it.
const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];

fn signal_set() -> libc::sigset_t {
    // SAFETY: an all-zero sigset_t is a valid place to write to, and both functions only write it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in ENDING {
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

/// Waits; true if the kernel has let go of the mount, false if a signal asks for its end.
pub(super) fn wait_for_signal() -> bool {
    let set = signal_set();
    loop {
        let mut signal = 0;
        // SAFETY: both pointers are to live values of the right types.
        if unsafe { libc::sigwait(&set, &mut signal) } == 0 {
            return signal == libc::SIGUSR1;
        }
    }
}

/// Tells the waiting thread that the session is over.
pub(super) fn wake() {
    // SAFETY: sends a blocked signal to this very process.
    unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
}
