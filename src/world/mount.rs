//! The items of other Archives as a read-only filesystem, in a process of its own for each cache.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`settings`]: what is mounted, and how.
//! - [`messages`]: what the process of a cache is asked, and what it answers.
//! - [`mounts`]: the mounts of this process.
//! - [`nodes`]: the nodes that the kernel knows.
//! - [`meaning`]: the meaning of a name in a directory, and of a link.
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
//! - [`mod@serve`]: start and stop.

mod asking;
mod backing;
mod control;
mod fs;
mod keeping;
mod listed;
mod meaning;
pub(super) mod messages;
mod mounts;
mod namespace;
mod nodes;
mod process;
mod serve;
mod settings;
mod turns;
mod waiting;

pub use asking::{AskError, KeepReport, keep, status};
pub use messages::{KeepAction, KeepError};
pub use serve::{WorldError, serve};
pub use settings::WorldSettings;

pub use crate::world::cache::CacheError;
