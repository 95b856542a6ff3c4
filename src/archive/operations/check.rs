//! Compares tree and index: adopting a tree, reindexing, the check that reports every inconsistency, and
//! its repair.
//!
//! A check only reads the store. It builds an index of its own from the tree, in a temporary file, and
//! compares the two side by side, so that its memory use does not grow with the store. It may run beside a
//! daemon: what it finds then is checked again, since a change may have been in progress.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`finding`]: codes, findings and the report of a check.
//! - [`metadata`]: what is wrong with metadata texts.
//! - [`item_set`]: a set of items.
//! - [`context`]: what a scan is compared with, and what it adds up to.
//! - [`scan`]: reads the whole tree, with several threads.
//! - [`admit`]: which record an item gets.
//! - [`record`]: puts items into an index.
//! - [`reindex`]: an index from the tree.
//! - [`store_files`]: the index, `archive.ibi` and the other files of the store.
//! - [`history`]: the log of the store, and the events in the index.
//! - [`compare`]: differences between the tree and the index.
//! - [`consistency`]: editions, relations and the service's item.
//! - [`pass`]: a check of a whole store.
//! - [`repair`]: corrects what a check has found.

mod admit;
mod compare;
mod consistency;
mod context;
mod finding;
mod history;
mod item_set;
mod metadata;
mod pass;
mod record;
mod reindex;
mod repair;
mod scan;
mod store_files;

pub use crate::archive::finding::Severity;
pub use finding::{CheckCode, CheckFinding, CheckReport, ItemProgress};
pub use metadata::metadata_problems;

#[cfg(test)]
mod tests;
