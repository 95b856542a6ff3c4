//! The namespace over an Archive in a temporary directory: no mount, no `/dev/fuse`, no root.

mod beside;
mod deposits;
mod fixture;
mod lookups;
