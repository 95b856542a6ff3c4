//! The mounted filesystem.
//!
//! - [`attr`], [`descriptors`]: what `stat` reports, and which files are open.
//! - [`inside`]: inside an item. Each operation on the native filesystem, by descriptor. Knows
//!   neither items nor identifiers.
//! - [`inode`]: the nodes that the kernel knows. A data structure, nothing else.
//! - [`errno`]: the one table from what the Archive refuses to errno.
//! - [`namespace`]: above and beside the items: which node a name means. No FUSE type.
//! - [`fs`]: the FUSE adapter. Translates a request, calls, translates the answer.
//! - [`mount`]: start and stop: options, checks, signals, unmounting.

pub mod attr;
pub mod descriptors;
pub mod errno;
pub mod fs;
pub mod inode;
pub mod inside;
pub mod mount;
pub mod namespace;
