//! The user for whom something is made in a store.

/// The owner of what is made for a caller, and its permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Permission bits of a directory made for this owner.
    pub mode: u32,
}
