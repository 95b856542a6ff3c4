//! The filesystem user and group of a thread, by which the kernel checks its access to files.
//!
//! setfsuid(2) and setfsgid(2) return the previous number and never an error. Each change is therefore
//! verified, so that root does not do what a user could not do.

use rustix::io::Errno;

/// The numbers of a thread that acts as the process.
pub const OURSELVES: (u32, u32) = (0, 0);

/// Sets the filesystem user and group of this thread alone.
///
/// # Errors
/// EPERM where they are not set afterwards.
pub fn become_other(uid: u32, gid: u32) -> Result<(), Errno> {
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

/// Sets the filesystem user and group of this thread back to those of the process.
pub fn become_ourselves() {
    // The user first: the capabilities that were raised for another user are lost with it.
    // SAFETY: as in `become_other`.
    unsafe {
        libc::syscall(libc::SYS_setfsuid, OURSELVES.0);
        libc::syscall(libc::SYS_setfsgid, OURSELVES.1);
    }
    // Later operations for the process then fail, which is safe, and is logged.
    let is = acted_as();
    if is != OURSELVES {
        log::error!("this thread acts as user {} and group {} still", is.0, is.1);
    }
}

/// The filesystem user and group of this thread.
#[must_use]
pub fn acted_as() -> (u32, u32) {
    // SAFETY: as above; the numbers are not valid, so nothing changes.
    let (uid, gid) = unsafe {
        (
            libc::syscall(libc::SYS_setfsuid, u32::MAX),
            libc::syscall(libc::SYS_setfsgid, u32::MAX),
        )
    };
    let number = |returned| u32::try_from(returned).unwrap_or(u32::MAX);
    (number(uid), number(gid))
}
