//! The store's directories on disk: where an item lies, its sidecar, its tombstone.
//!
//! All access goes through directory descriptors and never through a symbolic link below the store (`openat2`
//! with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS). Nothing outside the store can be reached, even in a race.
//! A change here is on disk when the call returns: a file is written in `staging/`, synced and renamed
//! into place, and the directory is synced. The exception is an item's directory, which the caller syncs: the
//! copying program for a copied item, and the settle queue, after the index has it, for a minted one. This
//! module knows names of items, not their relations; it has no database.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`action`]: the actions that an error names.
//! - [`mod@entry_stat`]: permission bits and times of entries.
//! - [`place`]: where items lie, and the errors of operations on them.
//! - [`new_directory`]: mode and owner of a directory that is made.
//! - [`root`]: the open store directory.
//! - [`names`]: the names in a directory of the store.
//! - [`files`]: the files below a directory of the store one by one.
//! - [`walk`]: all items or all tombstones of an area.
//! - [`levels`]: the directories above the items.
//! - [`small`]: small files, read and replaced as a whole.
//! - [`own_files`]: the files of the store that belong to no item.
//! - [`reserve`]: disk space for the removal of items when the disk is full.
//! - [`staging`]: what is being made and is not visible yet.
//! - [`abilities`]: what the filesystem of the store cannot do.
//! - [`sidecar`]: the sidecar and the metadata text of an item.
//! - [`items`]: the directory of an item: made, moved, removed, synced.
//! - [`reader`]: items opened with the rights of the calling thread.
//! - [`tombstones`]: the last sidecars of removed items.
//! - [`transfer_records`]: the records of items whose original is being transferred.
//! - [`arriving`]: items that arrive, and what is left of them.
//! - [`validator`]: whether what a cached answer depends on has changed.
//! - [`publish`]: files of an item for the public.
//! - [`listing`]: the list of the files of an item.

mod abilities;
mod action;
mod arriving;
mod entry_stat;
mod files;
mod items;
mod levels;
mod listing;
mod names;
mod new_directory;
mod own_files;
mod place;
mod publish;
mod reader;
mod reserve;
mod root;
mod sidecar;
mod small;
mod staging;
mod tombstones;
mod transfer_records;
mod validator;
mod walk;

pub use crate::archive::owner::Owner;
pub use crate::os::deep::{DeepEntry, clear, joined, open_far};
pub use crate::os::entries::each_entry_of;
pub use action::Action;
pub use entry_stat::{entry_stat, times};
pub use levels::shown_to_declare;
pub use listing::Directories;
pub use own_files::DAMAGED;
pub use place::{
    Area, Author, Creator, Filled, METADATA_TEXT, NOT_OWNERS, Place, SIDECAR, STRANGERS, TreeError,
};
pub use publish::{PublicKind, PublicStat, Published};
pub use reader::OpenItem;
pub use reserve::RESERVE;
pub use root::{DIRECTORIES, Tree};
pub use sidecar::{mark_strangers, speaks_for_owner};
pub use small::SMALL_FILE_LIMIT;
pub use staging::StagedItem;
pub use transfer_records::HANDOVER;
pub use validator::{Dependencies, Fingerprint, Validator};
pub use walk::WalkEntry;

#[cfg(test)]
mod tests;
