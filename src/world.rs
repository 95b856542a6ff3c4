//! Items of other Archives as files: a read-only filesystem of its own process, see ibifs-world(1), and copies of them,
//! see ibifs-copy(1).
//!
//! - [`error`]: the reasons why something cannot be shown, and their errno.
//! - [`cache`]: what has been fetched, on disk, within a limit.
//! - [`remote`]: answers of Archives and resolvers, and how long they count.
//! - [`copy`]: copies of items in a store.
//! - [`mount`]: the filesystem and the process that serves it.
//! - [`texts`]: what parsers make of texts that others sent, for the fuzz targets.

pub(crate) mod cache;
pub(crate) mod copy;
pub(crate) mod error;
pub mod mount;
pub(crate) mod remote;
pub mod texts;
