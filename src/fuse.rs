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
//! - [`texts`]: what the parser of names makes of a text, for the fuzz targets.

pub(crate) mod attr;
pub(crate) mod descriptors;
pub(crate) mod errno;
pub(crate) mod fs;
pub(crate) mod inode;
pub(crate) mod inside;
pub mod mount;
pub(crate) mod namespace;
#[doc(hidden)]
pub mod texts;
