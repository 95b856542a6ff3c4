//! The credentials that a thread takes of a caller, and gives back: filesystem user and group, supplementary groups and
//! effective capabilities, see credentials(7).
//!
//! [`take`] is the only way to take them. Its guard restores what the thread had before, whichever of these
//! have changed and whatever the process may do otherwise, and the thread goes on only as itself.
//!
//! setfsuid(2) and setfsgid(2) return the previous number and never an error. Each change is therefore
//! verified, so that root does not do what a user could not do.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

/// The numbers of a thread that acts as the process.
pub const OURSELVES: (u32, u32) = (0, 0);

/// The capabilities over files of other users.
pub const OVER_FILES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MKNOD);

/// The capabilities that the kernel drops when the filesystem user changes from 0, and raises when it changes to 0, see
/// capabilities(7).
pub const OF_THE_USER: CapabilitySet = OVER_FILES.union(CapabilitySet::MAC_OVERRIDE);

/// The number of times that a thread tries to be itself again, and the time between: the kernel refuses only where
/// it has no memory.
const ATTEMPTS: usize = 200;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

thread_local! {
    /// The credentials of this thread while it acts for no caller.
    static OWN: RefCell<Option<Rc<Own>>> = const { RefCell::new(None) };
    /// Whether this thread has the credentials of a caller now.
    static HAS_TAKEN: Cell<bool> = const { Cell::new(false) };
}

/// The credentials of a thread between requests.
#[derive(Debug, PartialEq, Eq)]
struct Own {
    user: (u32, u32),
    groups: Vec<u32>,
    capabilities: CapabilitySets,
    /// Whether the kernel changes the capabilities over files with the filesystem user.
    follows_user: bool,
}

impl Own {
    /// Reads them from the kernel.
    fn read() -> Result<Own, Errno> {
        let groups = rustix::process::getgroups()?;
        let bits = rustix::thread::capabilities_secure_bits()?;
        Ok(Own {
            user: acted_as(),
            groups: groups
                .into_iter()
                .map(rustix::process::Gid::as_raw)
                .collect(),
            capabilities: rustix::thread::capabilities(None)?,
            follows_user: !bits.contains(CapabilitiesSecureBits::NO_SETUID_FIXUP),
        })
    }

    /// Those of this thread, which is itself at the first call.
    fn of_this_thread() -> Result<Rc<Own>, Errno> {
        if let Some(own) = OWN.with_borrow(Clone::clone) {
            return Ok(own);
        }
        let own = Rc::new(Own::read()?);
        OWN.set(Some(Rc::clone(&own)));
        Ok(own)
    }

    /// The effective capabilities that the kernel leaves when the filesystem user changes.
    fn left(&self, effective: CapabilitySet, from: u32, to: u32) -> CapabilitySet {
        match (from, to) {
            _ if !self.follows_user => effective,
            (0, 1..) => effective - OF_THE_USER,
            (1.., 0) => effective | (self.capabilities.permitted & OF_THE_USER),
            _ => effective,
        }
    }

    fn set_effective(&self, effective: CapabilitySet) -> Result<(), Errno> {
        let sets = CapabilitySets {
            effective,
            ..self.capabilities
        };
        rustix::thread::set_capabilities(None, sets)
    }
}

/// The credentials that this thread has taken of a caller, until this is dropped, also by a panic.
#[derive(Debug)]
#[must_use]
pub struct Taken {
    own: Rc<Own>,
    user: (u32, u32),
    has_groups: bool,
    /// None while not all is taken.
    effective: Option<CapabilitySet>,
}

/// Takes the credentials of a caller; the groups are this thread's own if there are none. `effective` gets
/// this thread's own capabilities and returns those that it has meanwhile.
///
/// # Errors
/// EPERM, and nothing is taken, where the kernel refuses any of them.
pub fn take(
    user: (u32, u32),
    groups: Option<&[u32]>,
    effective: impl FnOnce(CapabilitySet) -> CapabilitySet,
) -> Result<Taken, Errno> {
    debug_assert!(!HAS_TAKEN.get(), "a thread acts for one caller at a time");
    let own = Own::of_this_thread()?;
    let effective = effective(own.capabilities.effective) & own.capabilities.permitted;
    HAS_TAKEN.set(true);
    let mut taken = Taken {
        own: Rc::clone(&own),
        user,
        has_groups: false,
        effective: None,
    };
    if let Some(groups) = groups.filter(|groups| *groups != own.groups) {
        set_groups(groups)?;
        taken.has_groups = true;
    }
    set_user(user)?;
    if own.left(own.capabilities.effective, own.user.0, user.0) != effective {
        own.set_effective(effective).map_err(|_| Errno::PERM)?;
    }
    taken.effective = Some(effective);
    Ok(taken)
}

impl Taken {
    fn restore(&self, effective: Option<CapabilitySet>) -> Result<(), Errno> {
        let own = &*self.own;
        set_user(own.user)?;
        if self.has_groups {
            set_groups(&own.groups)?;
        }
        let left = effective.map(|effective| own.left(effective, self.user.0, own.user.0));
        if left != Some(own.capabilities.effective) {
            own.set_effective(own.capabilities.effective)?;
        }
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut refused = self.restore(self.effective).err();
        for _ in 0..ATTEMPTS {
            let Some(errno) = refused else { break };
            log::error!("this thread is not itself again: {errno}");
            std::thread::sleep(BETWEEN_ATTEMPTS);
            refused = self.restore(None).err();
        }
        if refused.is_some() {
            // All that follows would be done with the rights of another user, or refused to all.
            std::process::abort();
        }
        HAS_TAKEN.set(false);
    }
}

/// Makes this thread act as a user between requests: what it gives back from now on it gives back to that user.
///
/// # Errors
/// EPERM where the kernel refuses it.
pub fn stay(user: (u32, u32)) -> Result<(), Errno> {
    OWN.set(None);
    set_user(user)
}

/// Compares this thread with what it was before it took anything, in debug builds, unless it still has the
/// credentials of a caller.
pub fn check() {
    if !cfg!(debug_assertions) || HAS_TAKEN.get() || std::thread::panicking() {
        return;
    }
    if let Some(own) = OWN.with_borrow(Clone::clone) {
        assert_eq!(Own::read().as_ref(), Ok(&*own), "this thread is not itself");
    }
}

/// Returns whether this thread has the credentials of a caller now.
pub fn has_taken() -> bool {
    HAS_TAKEN.get()
}

/// Sets the filesystem user and group of this thread alone.
fn set_user((uid, gid): (u32, u32)) -> Result<(), Errno> {
    // SAFETY: plain system calls without pointers, on this thread's filesystem credentials only. They
    // return the former numbers.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsuid, uid);
    }
    if acted_as() == (uid, gid) {
        Ok(())
    } else {
        Err(Errno::PERM)
    }
}

/// Sets the supplementary groups of this thread alone.
fn set_groups(groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the pointer and length describe a live slice; the raw system call, unlike the C
    // library's function, changes this thread only.
    let set = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    match set {
        0 => Ok(()),
        _ => Err(Errno::PERM),
    }
}

/// The filesystem user and group of this thread.
#[must_use]
pub fn acted_as() -> (u32, u32) {
    // SAFETY: as in `set_user`; the numbers are not valid, so nothing changes.
    let (uid, gid) = unsafe {
        (
            libc::syscall(libc::SYS_setfsuid, u32::MAX),
            libc::syscall(libc::SYS_setfsgid, u32::MAX),
        )
    };
    let number = |returned| u32::try_from(returned).unwrap_or(u32::MAX);
    (number(uid), number(gid))
}
