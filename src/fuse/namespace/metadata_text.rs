//! The metadata text of an item, when it is written by its name beside the item (`<ibi>:`).
//!
//! Its author learns at once that a field has an unknown name or that a line cannot be read: close(2) fails, and
//! the log names the lines. The text that was written stays and is read as far as it goes. A copy of an item writes the
//! file by its name in the item and is not refused, so that a collection with old texts arrives whole;
//! ibifs-fsck(1) reports them.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::{Entry, Namespace};
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::Place;
use crate::formats::item::Names;
use crate::formats::metadata;
use crate::fuse::errno;
use crate::fuse::inside::ErrnoResult;

/// Marks the entry of a metadata text that was found by its name beside the item.
pub(super) fn mark_metadata_text(entry: &Entry, item: &Item) {
    entry.node.learnt.set_metadata_of(item.id);
    entry.node.learnt.set_describes(item.id);
}

/// EINVAL if a text has problems that its author must correct, which are logged.
fn check(names: &Names, text: &[u8]) -> ErrnoResult<()> {
    let problems = metadata::check(text);
    let mut errors = problems
        .iter()
        .filter(|problem| problem.is_error())
        .peekable();
    if errors.peek().is_none() {
        return Ok(());
    }
    for problem in errors {
        log::warn!("metadata of {names}: {problem}");
    }
    Err(Errno::INVAL)
}

impl Namespace {
    /// After a process has closed the metadata text of an item that it has written. EFBIG if the text is too large to
    /// be read.
    pub(super) fn metadata_text_closed(&self, item: ItemId) -> ErrnoResult<()> {
        let Some(item) = self.archive.store().item(item).map_err(errno::of_index)? else {
            return Ok(());
        };
        let place = Place::of(&item.names);
        match self.archive.tree().read_metadata_text(&place) {
            Ok(Some(text)) => check(&item.names, &text),
            Ok(None) => Ok(()),
            Err(error) => Err(error.errno()),
        }
    }

    /// Before a staged file (O_PATH) becomes the metadata text of an item.
    pub(super) fn check_staged_text(&self, item: &Item, staged: &OwnedFd) -> ErrnoResult<()> {
        let text = self.archive.tree().read_candidate(staged.as_fd());
        check(&item.names, &text.map_err(|error| error.errno())?)
    }
}
