//! The namespace over an Archive in a temporary directory: no mount, no `/dev/fuse`, no root.

mod attributes;
mod beside;
mod changes;
mod deposits;
mod fixture;
mod lookups;
mod native;
mod outside;
mod stale;
