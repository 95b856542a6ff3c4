//! Copies of items of other Archives in a store of this machine.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`found`]: an item that an Archive holds, as a store receives it.
//! - [`held`]: the copy of an item that a store has.
//! - [`download`]: a file of an Archive, on disk.
//! - [`copying`]: copies of items in a store.
//! - [`place`]: an Archive from which damaged files are mended.

mod copying;
mod download;
mod found;
mod held;
mod place;

pub(crate) use copying::{CopyDestination, CopySource};
pub(crate) use found::{CopyRequest, Identity, ItemToCopy};
pub(crate) use place::ArchivePlace;
