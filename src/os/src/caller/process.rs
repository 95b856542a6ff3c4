//! The rights of the whole process: whether it may act as other users, and giving up what it does not need.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::credentials;

/// Whether this process may act as other users.
pub(super) static MAY_ACT: LazyLock<bool> = LazyLock::new(|| rustix::process::geteuid().is_root());

/// Whether this process has no supplementary groups, so that a thread acting as a user has none either.
pub(super) static HAS_NO_GROUPS: LazyLock<bool> =
    LazyLock::new(|| rustix::process::getgroups().is_ok_and(|groups| groups.is_empty()));

/// Set when this process has given up root and can act as no other user, see [`become_for_good`].
static HAS_GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Sets `no_new_privs`, see PR_SET_NO_NEW_PRIVS(2const): programs that this process runs get no more rights
/// than it has. Must be called before other threads exist.
pub fn set_no_new_privileges() {
    if let Err(errno) = rustix::thread::set_no_new_privs(true) {
        log::warn!("programs that are run may have more rights than this one: {errno}");
    }
}

/// Gives up the supplementary groups of this process, which makes [`Caller::read`](super::Caller::read)
/// cheaper. Must be called before the first such call.
pub fn give_up_groups() {
    if *MAY_ACT {
        // SAFETY: an empty list, so that no pointer is followed. The C library's function, unlike the raw
        // system call, changes all threads.
        let given_up = unsafe { libc::setgroups(0, std::ptr::null()) };
        log::debug!("the groups are given up: {}", given_up == 0);
    }
}

/// Whether this process may still act as other users.
pub(super) fn acts_as_others() -> bool {
    *MAY_ACT && !HAS_GIVEN_UP.load(Ordering::Relaxed)
}

/// Makes all threads of this process act as a user permanently, without capabilities. Does nothing in a process
/// that does not run as root.
///
/// # Errors
/// The system refuses the change. The process must end then.
pub(super) fn become_for_good(uid: u32, gid: u32) -> std::io::Result<()> {
    if !*MAY_ACT {
        return Ok(());
    }
    // SAFETY: no pointer is followed. The C library's functions change all threads.
    let is_done = unsafe {
        libc::setgroups(0, std::ptr::null()) == 0
            && libc::setresgid(gid, gid, gid) == 0
            && libc::setresuid(uid, uid, uid) == 0
    };
    if !is_done {
        return Err(std::io::Error::last_os_error());
    }
    // Checked, because these calls may behave differently in a container.
    // SAFETY: as above.
    let is_root_again = unsafe { libc::setresuid(u32::MAX, 0, u32::MAX) == 0 };
    let capabilities = rustix::thread::capabilities(None)?;
    if is_root_again || !capabilities.permitted.is_empty() || credentials::acted_as() != (uid, gid)
    {
        return Err(Errno::PERM.into());
    }
    HAS_GIVEN_UP.store(true, Ordering::SeqCst);
    Ok(())
}
