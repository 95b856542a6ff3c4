//! The umask of a thread, which is that of the process but while it makes a name for a caller.

use std::cell::Cell;
use std::sync::LazyLock;

use parking_lot::{Mutex, MutexGuard};

use crate::system_files;

/// The umask of the process, as of its first thread, which never changes it.
static OWN: LazyLock<u32> = LazyLock::new(|| {
    let status = system_files::read_text("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = line.and_then(|line| u32::from_str_radix(line.trim(), 8).ok());
    umask.unwrap_or(0o077)
});

/// Held while the umask is a caller's, where threads cannot have one of their own.
static OF_ALL_THREADS: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread has a umask of its own.
    static IS_DETACHED: Cell<bool> = const { Cell::new(false) };
}

/// Restores the umask of the process when it is dropped, also by a panic.
#[derive(Debug)]
#[must_use]
pub struct Umask {
    is_changed: bool,
    #[allow(dead_code, reason = "held, not read")]
    shared: Option<MutexGuard<'static, ()>>,
}

impl Drop for Umask {
    fn drop(&mut self) {
        if self.is_changed {
            set(*OWN);
        }
    }
}

/// Sets the umask of this thread until the guard is dropped.
pub fn take(umask: u32) -> Umask {
    let shared = (!detach()).then(|| OF_ALL_THREADS.lock());
    let is_changed = umask != *OWN;
    if is_changed {
        set(umask);
    }
    Umask { is_changed, shared }
}

/// Gives this thread a umask of its own, which is that of the process. False where the system refuses it. A
/// thread that was started by one that has a umask of its own shares it otherwise.
pub fn detach() -> bool {
    if IS_DETACHED.get() {
        return true;
    }
    let own = *OWN;
    // SAFETY: takes no pointer. It detaches this thread's umask, and the working directory, which a thread that
    // acts for callers never uses, from those of the other threads.
    let is_detached = unsafe { libc::unshare(libc::CLONE_FS) } == 0;
    if is_detached {
        set(own);
        IS_DETACHED.set(true);
    }
    is_detached
}

/// Compares the umask of this thread with that of the process, in debug builds.
pub fn check() {
    if cfg!(debug_assertions) && IS_DETACHED.get() && !std::thread::panicking() {
        assert_eq!(set(*OWN), *OWN, "the umask of this thread is not its own");
    }
}

/// Sets the umask, and returns what it was.
fn set(umask: u32) -> u32 {
    // SAFETY: takes no pointer and cannot fail.
    unsafe { libc::umask(umask) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_umask_of_a_caller_only_meanwhile() {
        let thread = || {
            for umask in [0o077, 0o000, 0o022, 0o027, *OWN] {
                let taken = take(umask);
                assert_eq!(set(umask), umask);
                drop(taken);
                check();
                assert_eq!(set(*OWN), *OWN, "after {umask:o}");
            }
            let unwound = std::panic::catch_unwind(|| {
                let _taken = take(0o707);
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(unwound.is_err());
            check();
            // A thread that this one starts meanwhile has that of the process.
            let _taken = take(0o505);
            let child = std::thread::spawn(|| (detach(), set(*OWN)));
            let (is_detached, was) = child.join().expect("no panic");
            assert!(!is_detached || was == *OWN);
        };
        std::thread::spawn(thread).join().expect("no panic");
    }
}
