//! Sidecars: reading, writing, accepting and changing them.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`records`]: the index record of an item from its sidecar.
//! - [`files`]: sidecars and tombstones on disk.
//! - [`accept`]: sidecars that users write.
//! - [`edit`]: changes of sidecars that the Archive makes.

mod accept;
mod edit;
mod files;
mod records;

pub use accept::Acceptance;
pub use edit::Fact;
pub(super) use edit::{Edit, EditOf};
pub(super) use records::merged;

#[cfg(test)]
mod tests;
