//! What only Unix knows, for the Archive and both front ends. Knows nothing of items or identifiers.
//!
//! - [`credentials`]: the user and the group that a thread acts as.
//! - [`random`]: random numbers of the system.
//! - [`mounts`]: the table of mounts.
//! - [`payer`]: whose quota pays for what is written to the disk.
//! - [`opening`]: opening files that other users own, without waiting for them.
//! - [`writing`]: whole files, made under a temporary name and renamed into place.
//! - [`limits`]: how many files this process may have open.
//! - [`caller`]: who makes a request, and acting as that user.

pub(crate) mod caller;
pub(crate) mod credentials;
pub(crate) mod limits;
pub(crate) mod mounts;
pub(crate) mod opening;
pub(crate) mod payer;
pub(crate) mod random;
pub(crate) mod writing;
