//! Items of other Archives as files: a read-only filesystem of its own process, see ibifs-world(1), and copies of them,
//! see ibifs-copy(1).
//!
//! - [`trouble`]: why something cannot be shown, and the errno for it.
//! - [`breaker`]: hosts that do not answer are left alone for a while.
//! - [`settings`]: what is mounted, and how.
//! - [`mounts`]: the mounts of this process.
//! - [`messages`]: what the process of a cache is asked, and what it answers.
//! - [`cache`]: what has been fetched, on disk, within a limit.
//! - [`inventory`]: what is in an item, in memory.
//! - [`remote`]: requests to resolvers and Archives.
//! - [`sources`]: whom to ask, in which order.
//! - [`items`]: the items that are known, and how old that knowledge is.
//! - [`related`]: what modifiers lead to.
//! - [`levels`]: what an Archive lists above its items.
//! - [`remote_file`]: a file of an Archive, and its pieces.
//! - [`pace`]: whether what is read arrives.
//! - [`content`]: the bytes of files, verified.
//! - [`found`]: an item that an Archive holds, as a store receives it.
//! - [`held`]: the copy of an item that a store has.
//! - [`download`]: a file of an Archive, on disk.
//! - [`copying`]: copies of items in a store.
//! - [`nodes`]: the nodes that the kernel knows.
//! - [`listed`]: the directories above items, as an Archive lists them.
//! - [`namespace`]: which node a name means.
//! - [`turns`]: how many reads of a user wait.
//! - [`waiting`]: waiting that a signal interrupts.
//! - [`keeping`]: whole items in the cache: fetched, pinned and dropped.
//! - [`backing`]: files of the cache that the kernel reads itself.
//! - [`fs`]: the FUSE adapter.
//! - [`process`]: the process that uses a cache, and its mounts.
//! - [`control`]: the socket by which that process is asked.
//! - [`asking`]: asking that process.
//! - [`mount`]: start and stop.
//! - [`texts`]: what parsers make of texts that others sent, for the fuzz targets.

pub mod asking;
pub(crate) mod backing;
pub(crate) mod breaker;
pub(crate) mod cache;
pub(crate) mod content;
pub(crate) mod control;
pub(crate) mod copying;
mod download;
mod found;
pub(crate) mod fs;
mod held;
pub(crate) mod inventory;
pub(crate) mod items;
pub(crate) mod keeping;
pub(crate) mod levels;
pub(crate) mod listed;
pub mod messages;
pub mod mount;
pub(crate) mod mounts;
pub(crate) mod namespace;
pub(crate) mod nodes;
mod pace;
pub(crate) mod process;
pub(crate) mod related;
pub(crate) mod remote;
pub(crate) mod remote_file;
pub mod settings;
pub(crate) mod sources;
pub mod texts;
pub(crate) mod trouble;
mod turns;
pub(crate) mod waiting;
