//! Who asks: acting with the caller's user, groups and umask, as the kernel would.
//!
//! What is made inside an item must belong to the caller, inherit the group of a set-gid directory
//! and the default ACL exactly as on the native filesystem; so it is made with the caller's
//! credentials, in the calling thread alone.

use std::cell::Cell;

/// The process behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Thread number of the calling process; 0 where the kernel itself asks.
    pub pid: u32,
}

thread_local! {
    static OWN_UMASK: Cell<bool> = const { Cell::new(false) };
}

impl Caller {
    /// Runs `make` with this caller's credentials and umask.
    pub fn make<T>(&self, umask: u32, make: impl FnOnce() -> T) -> T {
        set_umask(umask);
        if rustix::process::geteuid().as_raw() != 0 || (self.uid == 0 && self.gid == 0) {
            return make();
        }
        let groups = self.groups();
        set_groups(&groups);
        // SAFETY: plain system calls without pointers; they change this thread's filesystem
        // credentials only, and are taken back below.
        unsafe {
            libc::syscall(libc::SYS_setfsgid, self.gid);
            libc::syscall(libc::SYS_setfsuid, self.uid);
        }
        let made = make();
        // SAFETY: as above.
        unsafe {
            libc::syscall(libc::SYS_setfsuid, 0);
            libc::syscall(libc::SYS_setfsgid, 0);
        }
        set_groups(&[0]);
        made
    }

    /// The caller's supplementary groups; none where they cannot be read.
    fn groups(&self) -> Vec<u32> {
        let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", self.pid)) else {
            return Vec::new();
        };
        let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
        line.unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    }

    /// Whether a signal that the caller does not block or ignore is waiting for it, or it is gone.
    pub fn is_interrupted(&self) -> bool {
        if self.pid == 0 {
            return false;
        }
        let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", self.pid)) else {
            return true;
        };
        let mask = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
                .unwrap_or(0)
        };
        let pending = mask("SigPnd:") | mask("ShdPnd:");
        let held_back = mask("SigBlk:") | mask("SigIgn:");
        // SIGCHLD, SIGURG, SIGWINCH and SIGCONT do nothing unless they are caught.
        let idle = 1 << (17 - 1) | 1 << (23 - 1) | 1 << (28 - 1) | 1 << (18 - 1);
        pending & !held_back & !(idle & !mask("SigCgt:")) != 0
    }
}

fn set_umask(umask: u32) {
    OWN_UMASK.with(|own| {
        if !own.get() {
            // SAFETY: detaches this thread's umask (and working directory, which we never use)
            // from the other threads'. Where it is refused the umask is set for all of them,
            // which the lock-free fallback accepts: requests then differ in umask only.
            unsafe { libc::unshare(libc::CLONE_FS) };
            own.set(true);
        }
    });
    // SAFETY: umask cannot fail and takes no pointer.
    unsafe { libc::umask(umask) };
}

fn set_groups(groups: &[u32]) {
    // SAFETY: the pointer and length describe a live slice; the raw system call, unlike the C
    // library's function, changes this thread only.
    unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
}
