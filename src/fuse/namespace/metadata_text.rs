//! The metadata text of an item, when it is written by its name beside the item (`<ibi>:`).
//!
//! Its author learns at once that a field has an unknown name or that a line cannot be read: close(2) fails, and
//! the log names the lines. The text that was written stays and is read as far as it goes; one of which nothing can be
//! read is kept beside the text before it, which stays in force. A copy of an item writes the
//! file by its name in the item and is not refused, so that a collection with old texts arrives whole;
//! ibifs-fsck(1) reports them.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::{Context, Entry, Namespace};
use crate::archive::Stranger;
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::Place;
use crate::formats::item::Names;
use crate::formats::metadata;
use crate::fuse::errno;
use crate::fuse::inode::Node;
use crate::fuse::inside::ErrnoResult;

/// The most bytes of texts that are kept while others are written in their place.
const MOST_KEPT: usize = 16 << 20;

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

    /// Before the metadata text of an item is opened for writing: notes what it says, if that can be read.
    pub fn before_writing_text(&self, node: &Node) -> ErrnoResult<()> {
        let Some(item) = node.learnt.metadata_of() else {
            return Ok(());
        };
        let item = self.archive.store().item(item).map_err(errno::of_index)?;
        let Some(item) = item else { return Ok(()) };
        let text = self
            .archive
            .tree()
            .read_metadata_text(&Place::of(&item.names));
        // A text that is too large to be read was not in force.
        if let Ok(Some(text)) = text
            && !text.is_empty()
            && !metadata::says_nothing(&text)
        {
            let mut before = self.texts_before.lock();
            let kept: usize = before.values().map(Vec::len).sum();
            if kept + text.len() <= MOST_KEPT {
                before.entry(node.id).or_insert(text);
            }
        }
        Ok(())
    }

    /// After the last process has closed a metadata text that it could write: one of which nothing can be read is kept
    /// under another name, and the text before it is in force again.
    pub(super) fn metadata_text_released(&self, by: &Context<'_>, node: &Node) -> ErrnoResult<()> {
        let Some(item) = node.learnt.metadata_of() else {
            return Ok(());
        };
        let Some(before) = self.texts_before.lock().remove(&node.id) else {
            return Ok(());
        };
        let item = self.archive.store().item(item).map_err(errno::of_index)?;
        let Some(item) = item else { return Ok(()) };
        let place = Place::of(&item.names);
        match self.archive.tree().read_metadata_text(&place) {
            Ok(Some(text)) if metadata::says_nothing(&text) => {}
            _ => return Ok(()),
        }
        let put_back = self
            .archive
            .edit(&Stranger, |it| it.put_text_back(&item, &before))?;
        if let Some(kept_as) = put_back {
            log::warn!(
                "nothing of the metadata that was written for {} can be read: it is kept as {kept_as} in the item, and \
                 the metadata before it stays",
                item.names
            );
            self.changed.lock().push(item.names);
        }
        self.settle(by, Ok(()))
    }

    /// Before a staged file (O_PATH) becomes the metadata text of an item.
    pub(super) fn check_staged_text(&self, item: &Item, staged: &OwnedFd) -> ErrnoResult<()> {
        let text = self.archive.tree().read_candidate(staged.as_fd());
        check(&item.names, &text.map_err(|error| error.errno())?)
    }
}
