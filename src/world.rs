//! Items of other Archives as files: a read-only filesystem of its own process, see ibifs-world(1).
//!
//! - [`trouble`]: why something cannot be shown, and the errno for it.
//! - [`breaker`]: hosts that do not answer are left alone for a while.
//! - [`cache`]: what has been fetched, on disk, within a limit.
//! - [`inventory`]: what is in an item, in memory.
//! - [`remote`]: requests to resolvers and Archives.
//! - [`items`]: the items that are known, and how old that knowledge is.
//! - [`content`]: the bytes of files, verified.
//! - [`nodes`]: the nodes that the kernel knows.
//! - [`namespace`]: which node a name means.
//! - [`fs`]: the FUSE adapter.
//! - [`mount`]: start and stop.

pub(crate) mod breaker;
pub(crate) mod cache;
pub(crate) mod content;
pub(crate) mod fs;
pub(crate) mod inventory;
pub(crate) mod items;
pub mod mount;
pub(crate) mod namespace;
pub(crate) mod nodes;
pub(crate) mod remote;
pub(crate) mod trouble;
