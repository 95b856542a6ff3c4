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
    /// Those of `doc/` in an item made for this owner.
    pub doc_mode: u32,
}

impl Owner {
    /// The same for a draft, which other users may not enter. What is in it is open to them once it is published.
    #[must_use]
    pub fn of_draft(self) -> Owner {
        Owner {
            mode: self.mode & !0o007,
            ..self
        }
    }
}
