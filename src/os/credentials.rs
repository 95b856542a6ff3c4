//! The user and the group by which the system judges what a thread does with files.
//!
//! The system calls that set them tell what they were before, and never that they have failed: so each
//! change is looked at afterwards, and what could not be done as a user is not done as root instead.

use rustix::io::Errno;

/// Whom a thread acts as that acts as no other.
pub const OURSELVES: (u32, u32) = (0, 0);

/// Has this thread act as a user and a group. Both are numbers of this thread alone.
///
/// # Errors
/// EPERM where it does not act as them afterwards.
pub fn become_other(uid: u32, gid: u32) -> Result<(), Errno> {
    // SAFETY: plain system calls without pointers, on this thread's filesystem credentials only. What
    // they give is whom the thread acted as before.
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

/// Has this thread act as itself.
pub fn become_ourselves() {
    // The user first: what was raised for another user is lost with that.
    // SAFETY: as in `become_other`.
    unsafe {
        libc::syscall(libc::SYS_setfsuid, OURSELVES.0);
        libc::syscall(libc::SYS_setfsgid, OURSELVES.1);
    }
    // What this thread does as itself fails then: that is safe, and worth knowing.
    let is = acted_as();
    if is != OURSELVES {
        log::error!("this thread acts as user {} and group {} still", is.0, is.1);
    }
}

/// The user and the group that this thread acts as.
#[must_use]
pub fn acted_as() -> (u32, u32) {
    // SAFETY: as above; there is no such user or group, so that nothing is changed.
    let (uid, gid) = unsafe {
        (
            libc::syscall(libc::SYS_setfsuid, u32::MAX),
            libc::syscall(libc::SYS_setfsgid, u32::MAX),
        )
    };
    let number = |told| u32::try_from(told).unwrap_or(u32::MAX);
    (number(uid), number(gid))
}
