//! Who pays for what is written to the disk: the user whose request it is.
//!
//! A filesystem keeps a reserve for root (`mkfs.ext4 -m`), known by the filesystem user number of the
//! thread that writes, and lets CAP_SYS_RESOURCE pass over quotas. So a thread that writes for a user
//! has that user's numbers meanwhile, and not that capability. All other capabilities stay: whether
//! the user may do it has been decided before, and what is made belongs to the user at once.
//!
//! The database is never written so: its files are the Archive's, and it goes on with the reserve when
//! users are refused.

use std::cell::Cell;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::os::credentials;

/// A user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
}

thread_local! {
    /// Who pays for what [`paid`] runs in this thread.
    static PAYER: Cell<Option<Payer>> = const { Cell::new(None) };
    /// Whose numbers this thread has now.
    static PAYING: Cell<Option<Payer>> = const { Cell::new(None) };
    /// Whether this thread acts as a user altogether, who then pays anyhow.
    static ACTING: Cell<bool> = const { Cell::new(false) };
    /// This thread's capabilities while it acts as itself.
    static OWN: Cell<Option<CapabilitySets>> = const { Cell::new(None) };
}

/// This thread's capabilities while it acts as itself; asked for while it does.
pub fn own_capabilities() -> Option<CapabilitySets> {
    if let Some(own) = OWN.get() {
        return Some(own);
    }
    let own = rustix::thread::capabilities(None).ok()?;
    OWN.set(Some(own));
    Some(own)
}

/// Who pays for what [`paid`] runs in this thread.
pub fn charged() -> Option<Payer> {
    PAYER.get()
}

/// Has a payer pay for what [`paid`] runs in this thread, as long as this lives.
#[derive(Debug)]
#[must_use]
pub struct Charged {
    before: Option<Payer>,
}

impl Drop for Charged {
    fn drop(&mut self) {
        PAYER.set(self.before);
    }
}

/// From now on this one pays for what [`paid`] runs in this thread; None: the process itself.
pub fn charge(payer: Option<Payer>) -> Charged {
    Charged {
        before: PAYER.replace(payer),
    }
}

/// Whether this thread acts as a user altogether, see [`act`].
pub fn is_acting() -> bool {
    ACTING.get()
}

/// Marks this thread as one that acts as a user altogether, as long as this lives.
#[derive(Debug)]
#[must_use]
pub struct Acts;

impl Drop for Acts {
    fn drop(&mut self) {
        ACTING.set(false);
    }
}

/// From now on this thread acts as a user altogether: it pays for nobody else meanwhile.
pub fn act() -> Acts {
    stop();
    ACTING.set(true);
    Acts
}

/// Writes something that whoever is charged pays for.
///
/// # Errors
/// What `write` fails with; EPERM, and nothing is written, where this thread could not become the payer.
pub fn paid<T>(write: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    paid_by(PAYER.get(), write)
}

/// Takes a payer's numbers back, however the writing has ended.
struct Paying;

impl Drop for Paying {
    fn drop(&mut self) {
        stop();
    }
}

/// Writes something that this one pays for; None: the process itself.
///
/// # Errors
/// As of [`paid`].
pub fn paid_by<T>(
    payer: Option<Payer>,
    write: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if ACTING.get() {
        return write();
    }
    match payer {
        None => {
            stop();
            write()
        }
        Some(payer) => {
            let _paying = Paying;
            begin(payer)?;
            write()
        }
    }
}

/// The same, with the numbers kept until [`stop`]: the next write of the same user costs no system
/// call for this.
///
/// # Errors
/// As of [`paid`].
pub fn paid_by_and_stay<T>(
    payer: Option<Payer>,
    write: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match payer {
        _ if ACTING.get() => {}
        None => stop(),
        Some(payer) => begin(payer)?,
    }
    write()
}

fn begin(payer: Payer) -> Result<(), Errno> {
    if PAYING.get() == Some(payer) {
        return Ok(());
    }
    stop();
    let own = own_capabilities();
    PAYING.set(Some(payer));
    if let Err(errno) = credentials::become_other(payer.uid, payer.gid) {
        stop();
        return Err(errno);
    }
    // The change of the user has taken those over files, too.
    if let Some(own) = own {
        set_effective(own, own.effective - CapabilitySet::SYS_RESOURCE);
    }
    Ok(())
}

/// Has this thread act as itself again.
pub fn stop() {
    if PAYING.get().is_none() {
        return;
    }
    PAYING.set(None);
    credentials::become_ourselves();
    if let Some(own) = own_capabilities() {
        set_effective(own, own.effective);
    }
}

/// Gives this thread exactly these of its capabilities.
pub fn set_effective(own: CapabilitySets, effective: CapabilitySet) {
    let wanted = CapabilitySets {
        effective: effective & own.permitted,
        ..own
    };
    if let Err(error) = rustix::thread::set_capabilities(None, wanted) {
        log::debug!("cannot act with {effective:?}: {error}");
    }
}
