//! Scrubbing: reads every file again and compares it with its recorded digest.
//!
//! A scrub reads the store's directories, also while the store is mounted, never through a symbolic link, and
//! needs no index. It writes only in `fixity/`, where one scrub runs at a time, or one of each part. `fixity/col/<rep>/` and
//! `fixity/ibip/<ibip>/` hold the manifest of an item; in the item it would travel with the item.
//!
//! Edited, added and removed files are reported once and recorded. Damaged and lost files are reported by
//! every scrub, are marked, and change no record until a user accepts them. A sidecar is not scrubbed as a file of its
//! item: changes to other items change it, and `fsck` compares it with the index.
//!
//! A finding is reported before it is recorded: a crash may cause a second report, but never loses one. A
//! scrub needs the memory for the names and digests of one item.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`finding`]: findings, counts and errors.
//! - [`records`]: what is recorded of an item.
//! - [`pieces`]: the recorded digests of the pieces of long files.
//! - [`part`]: a part of a store.
//! - [`position`]: where a pass has come to.
//! - [`reading`]: reads files at a limited rate.
//! - [`formats`]: a program that identifies formats.
//! - [`digests`]: the digests of an item, for a copy.
//! - [`marks`]: damaged and lost files, as they are remembered.
//! - [`state`]: a running scrub.
//! - [`recording`]: writes the records.
//! - [`identify`]: the formats of files, asked and recorded.
//! - [`item`]: one item.
//! - [`pass`]: the whole store, or some items.

mod digests;
mod finding;
mod formats;
mod identify;
mod item;
mod marks;
mod part;
mod pass;
mod pieces;
mod position;
mod reading;
mod recording;
mod records;
mod state;

pub use digests::{
    ItemDigests, RecordedDigests, answered_digests, digests_in_backup, item_digests, other_size,
    recorded_digest, recorded_digests, recorded_paths, recorded_writing,
};
pub use finding::{ScrubError, ScrubFinding, ScrubTally};
pub use formats::{FormatTool, recorded_formats};
pub use marks::{
    MARKS, change_marks, damage, damage_found, mark_found, marked_items, marks_of,
    remember_if_possible, remove_marks,
};
pub use part::{MOST_PARTS, ScrubPart};
pub use pieces::{contents_with_pieces, recorded_pieces};
pub use position::{LastScrub, prepare};
pub use reading::BytesBefore;
pub use recording::take_over;
pub use records::{DIRECTORY, Finished, manifest_digest, recorded_change, scrubbed_at};
pub use state::{Scrub, ScrubOptions};

#[cfg(test)]
mod tests;
