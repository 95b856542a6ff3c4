//! The process behind a request, and acting with its user, groups and umask.
//!
//! A new file in an item belongs to the caller and inherits the group of a set-group-ID directory and the
//! default ACL, exactly as on the native filesystem. To get this, the file is made with the caller's
//! credentials, see credentials(7), which are set for the calling thread only.
//!
//! - [`status`]: what `/proc` says of a process.
//! - [`powers`]: groups and capabilities, and which of them a thread takes.
//! - [`process`]: the rights of the whole process.
//! - [`peer`]: the process at the other end of a socket.

mod peer;
mod powers;
mod process;
mod status;

use std::cell::Cell;

use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::charging::{self, ChargedUser};
use crate::credentials::{self, OF_THE_USER, OVER_FILES};
use crate::umask;
pub use peer::Peer;
use powers::{LOST, Powers};
use process::{HAS_NO_GROUPS, MAY_ACT};
pub use process::{give_up_groups, set_no_new_privileges};
pub use status::ThreadGroup;

/// The process behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Thread number of the calling process; 0 for a request of the kernel itself.
    pub pid: u32,
}

thread_local! {
    /// The user as whom this thread acts between requests, see [`Caller::act_by_default`].
    static DEFAULT: Cell<Option<Caller>> = const { Cell::new(None) };
}

/// Makes this thread act as the process, if the thread that started it acts as another user by default.
pub fn act_as_process() {
    if process::acts_as_others() {
        DEFAULT.set(None);
        if let Err(errno) = credentials::stay(credentials::OURSELVES) {
            // Later operations for the process then fail, which is safe.
            log::error!("this thread acts as another user still: {errno}");
        }
    }
}

/// Compares this thread, at the end of a request, with what it was before it acted as a caller, in debug builds.
pub fn check_thread() {
    credentials::check();
    umask::check();
}

/// Whether this process can act as the users who send requests. The test runs in a separate thread.
pub fn can_act_as_others() -> bool {
    if !*MAY_ACT {
        return true;
    }
    let tried = std::thread::spawn(|| {
        let other = Caller::NOBODY;
        let is_other = || Ok::<_, Errno>(credentials::acted_as() == (other.uid, other.gid));
        let groups = [other.gid];
        let powers = Powers {
            groups: groups.to_vec(),
            capabilities: CapabilitySet::empty(),
        };
        other.act_with(&powers, is_other) == Ok(true)
            && credentials::acted_as() == credentials::OURSELVES
    });
    tried.join().unwrap_or(false)
}

impl Caller {
    /// The user `nobody`, who owns no files and has the permissions of others.
    pub const NOBODY: Caller = Caller {
        uid: 65534,
        gid: 65534,
        pid: 0,
    };

    /// Runs `make` with this caller's credentials and umask.
    ///
    /// # Errors
    /// Those of `make`; EPERM, without a call of `make`, where this thread could not become the caller.
    pub fn make<T, E: From<Errno>>(
        &self,
        umask: u32,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let _umask = umask::take(umask);
        self.act(make)
    }

    /// Runs `act` with this caller's credentials. What depends on the caller, such as whether set-id bits
    /// survive a write, is then as on the native filesystem.
    ///
    /// # Errors
    /// Those of `act`; EPERM, without a call of `act`, where this thread could not become the caller.
    pub fn act<T, E: From<Errno>>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.is_other() {
            self.act_with(&Powers::of(self.pid), act)
        } else {
            act()
        }
    }

    /// Like [`Caller::act`], for a result that outlives this request and then serves other callers: without
    /// the groups, which take as long to read as ten files to open, and without clearing set-id bits.
    ///
    /// # Errors
    /// Those of [`Caller::act`].
    pub fn act_for_others<T, E: From<Errno>>(
        &self,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let powers = Powers {
            groups: Vec::new(),
            capabilities: CapabilitySet::FSETID,
        };
        if self.is_other() {
            self.act_with(&powers, act)
        } else {
            act()
        }
    }

    /// Like [`Caller::act_for_others`], for reads. In a process that has given up its groups, it needs half
    /// as many system calls.
    ///
    /// # Errors
    /// Those of [`Caller::act`].
    pub fn read<T, E: From<Errno>>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        charging::stop();
        if !self.is_other() || !*HAS_NO_GROUPS {
            return self.act_for_others(read);
        }
        if DEFAULT.get() == Some(*self) || charging::is_acting() {
            return read();
        }
        let _acts = charging::act();
        let _taken = credentials::take((self.uid, self.gid), None, |own| own - OF_THE_USER)?;
        read()
    }

    /// The number of the user as whom [`Caller::read`] reads: that of the process, if it cannot act as others.
    pub fn acts_as(&self) -> u32 {
        if self.is_other() {
            self.uid
        } else {
            rustix::process::geteuid().as_raw()
        }
    }

    /// Makes this thread act as this caller by default, that is between requests of other callers. A
    /// [`Caller::read`] as this caller then needs no further system call. A thread that it starts calls
    /// [`act_as_process`]. This works only in a process that has given up its groups; otherwise, or if the
    /// system refuses, reads cost as much as before.
    pub fn act_by_default(&self) {
        if !self.is_other() || !*HAS_NO_GROUPS {
            return;
        }
        match credentials::stay((self.uid, self.gid)) {
            Ok(()) => DEFAULT.set(Some(*self)),
            Err(_) => act_as_process(),
        }
    }

    /// Makes all threads of this process become this caller permanently, without capabilities. Does nothing
    /// in a process that does not run as root.
    ///
    /// # Errors
    /// The system refuses the change. The process must end then.
    pub fn become_for_good(&self) -> std::io::Result<()> {
        process::become_for_good(self.uid, self.gid)
    }

    fn act_with<T, E: From<Errno>>(
        &self,
        powers: &Powers,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if charging::is_acting() {
            // Already as this caller: within a request a thread acts for one caller only.
            return act();
        }
        let _acts = charging::act();
        let _taken = credentials::take((self.uid, self.gid), Some(&powers.groups), |own| {
            (own - LOST) | powers.capabilities
        })?;
        act()
    }

    /// The user to whom writes for this caller are charged; None for root, and in a process that acts as one
    /// user only.
    pub fn charged_user(&self) -> Option<ChargedUser> {
        self.is_other().then_some(ChargedUser {
            uid: self.uid,
            gid: self.gid,
        })
    }

    /// Runs `write` for this caller, within the disk reserve and the quotas of its user. The permission must
    /// have been checked before.
    pub fn charged<T>(&self, mut write: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        match charging::charged_to(self.charged_user(), &mut write) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => self.with_own_reserve(errno, write),
            result => result,
        }
    }

    /// Like [`Caller::charged`], for one of many writes of the same caller: later ones need no further system
    /// calls. The thread keeps the user's numbers until [`charging::stop`].
    pub fn charged_and_keep<T>(
        &self,
        mut write: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match charging::charged_to_and_keep(self.charged_user(), &mut write) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => self.with_own_reserve(errno, write),
            result => result,
        }
    }

    /// Repeats a write that found no space for the user. The filesystem's reserve may belong to a group of
    /// the caller (`resgid=`, see ext4(5)), or the caller may have CAP_SYS_RESOURCE.
    fn with_own_reserve<T>(
        &self,
        errno: Errno,
        write: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if !self.is_other() || charging::is_acting() {
            return Err(errno);
        }
        let powers = Powers::of(self.pid);
        let more = powers.capabilities & CapabilitySet::SYS_RESOURCE;
        if powers.groups.is_empty() && more.is_empty() {
            return Err(errno);
        }
        let powers = Powers {
            capabilities: OVER_FILES | more,
            ..powers
        };
        self.act_with(&powers, write)
    }

    /// Whether acting as this caller differs from acting as the process.
    pub fn is_other(&self) -> bool {
        process::acts_as_others() && (self.uid != 0 || self.gid != 0)
    }

    /// Whether the caller is in a group.
    pub fn belongs_to(&self, group: u32) -> bool {
        self.gid == group || Powers::of(self.pid).groups.contains(&group)
    }

    /// Whether the caller has the rights of an owner over every file (CAP_FOWNER).
    pub fn owns_all(&self) -> bool {
        !self.is_other()
            || Powers::of(self.pid)
                .capabilities
                .contains(CapabilitySet::FOWNER)
    }

    /// Whether set-id bits survive a write by the caller (CAP_FSETID).
    pub fn keeps_set_id(&self) -> bool {
        !self.is_other()
            || Powers::of(self.pid)
                .capabilities
                .contains(CapabilitySet::FSETID)
    }

    /// Whether the caller may see `trusted.` attributes (CAP_SYS_ADMIN), see xattr(7).
    pub fn administers(&self) -> bool {
        if self.uid == 0 {
            return true;
        }
        status::read(self.pid).is_some_and(|status| {
            status::capabilities(self.pid, &status).contains(CapabilitySet::SYS_ADMIN)
        })
    }

    /// Whether a signal is pending that the caller neither blocks nor ignores, or the caller has ended.
    pub fn is_interrupted(&self) -> bool {
        is_interrupted(self.pid)
    }

    /// The thread group of the calling thread, as `/proc` shows it; None where it does not, as for a
    /// process of another PID namespace.
    pub fn thread_group(&self) -> Option<ThreadGroup> {
        status::thread_group(self.pid)
    }
}

/// Whether a signal is pending for a thread that it neither blocks nor ignores, or the thread has ended. False for
/// number 0, a thread that is not visible here.
pub fn is_interrupted(thread: u32) -> bool {
    status::is_interrupted(thread)
}

#[cfg(test)]
mod tests;
