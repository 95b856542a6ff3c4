//! What only Unix knows, for the Archive and both front ends. Knows nothing of items or identifiers.
//!
//! - [`credentials`]: the user and the group that a thread acts as.
//! - [`payer`]: whose quota pays for what is written to the disk.
//! - [`opening`]: opening files that other users own, without waiting for them.
//! - [`limits`]: how many files this process may have open.
//! - [`caller`]: who makes a request, and acting as that user.

pub(crate) mod caller;
pub(crate) mod credentials;
pub(crate) mod limits;
pub(crate) mod opening;
pub(crate) mod payer;
