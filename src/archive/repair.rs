//! Repair: damaged and lost files get the content that was recorded of them, from places that have it.
//!
//! An item is scrubbed first, so that what is mended is known to be damaged now. The content comes to the directory of arriving
//! items, where no other user reaches it, and its digest is compared there. The damaged file is kept in `damaged/` before it is
//! replaced, by one rename, by a file with its owner, mode, times and attributes. So at each step the item has one of the two,
//! and the same command goes on after a crash.
//!
//! An item that is lost as a whole comes back from a backup, or from another store that has it as it was recorded. A generation of a
//! backup shares files with others: nothing is recorded in it, and each that has a damaged file gets the one new file.
//!
//! The directory of an item may be another user's, who exchanges names in it: the file that was found damaged is held open, and a
//! file that has a name outside the item is not taken for one of it.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`finding`]: what became of a file.
//! - [`place`]: places that may have the content.
//! - [`kept`]: the damaged files that are kept.
//! - [`replacing`]: a file in the place of another.
//! - [`mending`]: an item, file by file.

mod finding;
mod kept;
mod mending;
mod place;
mod replacing;

pub use finding::RepairFinding;
pub use mending::Repair;
pub use place::{CopyPlace, FetchOutcome, MissingContent, StorePlace, Template};
