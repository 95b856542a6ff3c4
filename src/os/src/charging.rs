//! Charging disk blocks to the user who asks for them.
//!
//! A filesystem keeps a reserve for root (`mkfs.ext4 -m`), which it grants by the filesystem user number of
//! the writing thread, and CAP_SYS_RESOURCE overrides quotas, see capabilities(7). Therefore a thread that
//! writes for a user has that user's numbers meanwhile, and not that capability. All other capabilities stay:
//! the permission was checked before, and new files belong to the user at once.
//!
//! The database is never written this way: its files are the Archive's, and it may use the reserve when users
//! are refused.

use std::cell::{Cell, RefCell};

use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::credentials::{self, Taken};

/// A user to whom blocks are charged, and that user's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargedUser {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
}

thread_local! {
    /// The user whom [`charged`] charges in this thread.
    static CHARGED: Cell<Option<ChargedUser>> = const { Cell::new(None) };
    /// The user whose numbers this thread has now.
    static WRITING_AS: RefCell<Option<(ChargedUser, Taken)>> = const { RefCell::new(None) };
    /// Whether this thread has all credentials of a user, who is then charged in any case.
    static ACTING: Cell<bool> = const { Cell::new(false) };
}

/// The user whom [`charged`] charges in this thread; None for the process.
pub fn charged_user() -> Option<ChargedUser> {
    CHARGED.get()
}

/// While this lives, [`charged`] charges a user in this thread.
#[derive(Debug)]
#[must_use]
pub struct ChargeGuard {
    before: Option<ChargedUser>,
}

impl Drop for ChargeGuard {
    fn drop(&mut self) {
        CHARGED.set(self.before);
    }
}

/// Sets the user whom [`charged`] charges in this thread, until the guard is dropped; None for the process.
pub fn charge_to(user: Option<ChargedUser>) -> ChargeGuard {
    ChargeGuard {
        before: CHARGED.replace(user),
    }
}

/// Whether this thread has all credentials of a user, see [`act`].
pub fn is_acting() -> bool {
    ACTING.get()
}

/// Marks this thread as having all credentials of a user, while this lives.
#[derive(Debug)]
#[must_use]
pub struct Acts;

impl Drop for Acts {
    fn drop(&mut self) {
        ACTING.set(false);
    }
}

/// Marks this thread as having all credentials of a user: no other user is charged meanwhile.
pub fn act() -> Acts {
    stop();
    ACTING.set(true);
    Acts
}

/// Runs `write`, charged to the user of [`charge_to`]; again as the process where the filesystem refuses it to the user,
/// for whom the permission was checked before. The caller then gives what it makes to the user.
///
/// # Errors
/// Those of `write`; EPERM, without a call of `write`, where this thread could not become the user.
pub fn charged<T>(mut write: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let user = CHARGED.get();
    match charged_to(user, &mut write) {
        // A server that checks permissions by the user's number, as of GlusterFS or NFS, knows nothing of capabilities.
        Err(Errno::ACCESS) if user.is_some() && !ACTING.get() => charged_to(None, write),
        done => done,
    }
}

/// Restores the thread's own numbers when the write ends, also by a panic.
struct WritingAs;

impl Drop for WritingAs {
    fn drop(&mut self) {
        stop();
    }
}

/// Runs `write`, charged to this user; None for the process.
///
/// # Errors
/// Those of [`charged`].
pub fn charged_to<T>(
    user: Option<ChargedUser>,
    write: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if ACTING.get() {
        return write();
    }
    match user {
        None => {
            stop();
            write()
        }
        Some(user) => {
            let _writing = WritingAs;
            begin(user)?;
            write()
        }
    }
}

/// Like [`charged_to`], but the thread keeps the user's numbers until [`stop`]: the next write of the same
/// user needs no system call for this.
///
/// # Errors
/// Those of [`charged`].
pub fn charged_to_and_keep<T>(
    user: Option<ChargedUser>,
    write: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match user {
        _ if ACTING.get() => {}
        None => stop(),
        Some(user) => begin(user)?,
    }
    write()
}

fn begin(user: ChargedUser) -> Result<(), Errno> {
    let is_same = WRITING_AS.with_borrow(|now| now.as_ref().is_some_and(|(now, _)| *now == user));
    if is_same {
        return Ok(());
    }
    stop();
    let taken = credentials::take((user.uid, user.gid), None, |own| {
        own - CapabilitySet::SYS_RESOURCE
    })?;
    WRITING_AS.set(Some((user, taken)));
    Ok(())
}

/// Makes this thread act as the process again.
pub fn stop() {
    drop(WRITING_AS.take());
}
