//! The part of an item that the public may read, for those who index it.

use super::{ArchiveError, Listing, ReadAs};
use crate::archive::store::Item;
use crate::formats::description::AccessRight;

/// The part of an item that a reader may read.
#[derive(Debug)]
pub struct ReadableContent {
    /// Of the whole.
    pub right: AccessRight,
    /// The files that the reader may read, at most as many as were asked for.
    pub listing: Listing,
    /// The path of the target file or of the only file, if the reader may read it.
    pub main: Option<Vec<u8>>,
}

impl ReadAs<'_> {
    /// Returns what a reader may read of an item: open is one whose target file the reader may read; one without a
    /// target, if that is so of any file.
    pub fn readable_content(
        &self,
        item: &Item,
        most: usize,
    ) -> Result<ReadableContent, ArchiveError> {
        let listing = self.listing(item, b"", most)?;
        let main = self.content_path(item, None)?;
        let is_open = match item.target {
            Some(_) => main.is_some(),
            None => !listing.files.is_empty(),
        };
        let right = if self.withheld_until(item).is_some() {
            AccessRight::Embargoed
        } else if is_open {
            AccessRight::Open
        } else if listing.files.is_empty() && item.target.is_none() && self.is_empty(item) {
            AccessRight::MetadataOnly
        } else {
            AccessRight::Restricted
        };
        Ok(ReadableContent {
            right,
            listing,
            main,
        })
    }

    /// What a reader may read of an item, unless that is all: embargoed, or restricted if none of the files that it has.
    pub fn closed(&self, item: &Item) -> Option<AccessRight> {
        let content = self.readable_content(item, 1).ok()?;
        let is_closed = match content.right {
            AccessRight::Embargoed => true,
            AccessRight::Restricted => content.listing.files.is_empty(),
            AccessRight::Open | AccessRight::MetadataOnly => false,
        };
        is_closed.then_some(content.right)
    }

    /// Whether an item has no files, as far as the reader may look. A directory that they may not read is not empty.
    fn is_empty(&self, item: &Item) -> bool {
        self.file_list(item).is_ok_and(|list| list.text.is_empty())
    }
}
