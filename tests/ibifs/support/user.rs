//! Threads of other users.

/// The user that a thread acts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User number.
    pub uid: u32,
    /// First group.
    pub gid: u32,
    /// The others.
    pub groups: Vec<u32>,
}

#[allow(dead_code)]
impl User {
    /// The administrator.
    pub fn root() -> User {
        User::new(0, 0, &[])
    }

    /// A user with these numbers.
    pub fn new(uid: u32, gid: u32, groups: &[u32]) -> User {
        User {
            uid,
            gid,
            groups: groups.to_vec(),
        }
    }

    /// Makes the calling thread this user's for good, with an umask of its own.
    pub fn become_in_thread(&self) {
        if self.uid == 0 {
            // SAFETY: takes no pointer.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, 0);
            return;
        }
        // SAFETY: the pointer is to a live vector; the raw calls, unlike the C library's functions,
        // change this thread alone.
        unsafe {
            assert_eq!(libc::unshare(libc::CLONE_FS), 0);
            let (count, groups) = (self.groups.len(), self.groups.as_ptr());
            assert_eq!(libc::syscall(libc::SYS_setgroups, count, groups), 0);
            let (uid, gid) = (self.uid, self.gid);
            assert_eq!(libc::syscall(libc::SYS_setresgid, gid, gid, gid), 0);
            assert_eq!(libc::syscall(libc::SYS_setresuid, uid, uid, uid), 0);
        }
    }

    /// Runs something as this user.
    pub fn run<T: Send>(&self, action: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.become_in_thread();
                action()
            });
            thread.join().expect("a user's thread")
        })
    }
}
