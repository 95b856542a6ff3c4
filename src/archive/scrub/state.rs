//! A running scrub: its options, its position and what it has found so far.

use super::finding::{ScrubCode, ScrubError, ScrubFinding, ScrubTally};
use super::formats::{FormatTool, Unidentified};
use super::part::ScrubPart;
use super::position::ScrubPosition;
use super::reading::ItemReader;
use crate::archive::finding::Reporter;
use crate::archive::tree::Tree;
use ibi::message::Message;

/// Options of a scrub.
#[derive(Clone, Debug, Default)]
pub struct ScrubOptions {
    /// Accept the current content, whatever was recorded.
    pub accept: bool,
    /// Record nothing.
    pub dry_run: bool,
    /// Begin from the start, wherever the last pass stopped.
    pub restart: bool,
    /// Only this part of the store.
    pub part: Option<ScrubPart>,
    /// The most bytes to read per second.
    pub rate: Option<u64>,
    /// The program that identifies the formats of files.
    pub formats: Option<FormatTool>,
}

/// A running scrub.
pub struct Scrub<'a> {
    pub(super) tree: &'a Tree,
    pub(super) options: ScrubOptions,
    pub(super) report: &'a mut Reporter<'a, ScrubFinding>,
    pub(super) reader: ItemReader<'a>,
    pub(super) position: Option<ScrubPosition>,
    pub(super) tally: ScrubTally,
    pub(super) unsynced: bool,
    /// The number of files that may be marked as unreadable still, where it was counted.
    pub(super) unreadable: Option<usize>,
    /// Files for the program that identifies formats.
    pub(super) unidentified: Vec<Unidentified>,
}

impl std::fmt::Debug for Scrub<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrub")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a> Scrub<'a> {
    /// Prepares a scrub; an error while another one runs on the store. `progress` receives the number of the
    /// current item, from 1, and the number of bytes read.
    pub fn new(
        tree: &'a Tree,
        options: ScrubOptions,
        report: &'a mut Reporter<'a, ScrubFinding>,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> Result<Scrub<'a>, ScrubError> {
        let position = if options.dry_run {
            None
        } else {
            Some(ScrubPosition::take(tree, options.part)?)
        };
        let mut reader = ItemReader::new(tree, options.rate, progress);
        reader.wants_pieces = true;
        Ok(Scrub {
            tree,
            reader,
            options,
            report,
            position,
            tally: ScrubTally::default(),
            unsynced: false,
            unreadable: None,
            unidentified: Vec::new(),
        })
    }

    pub(super) fn found(
        &mut self,
        code: ScrubCode,
        item: &str,
        path: &[u8],
        detail: Option<Message>,
    ) -> Result<(), ScrubError> {
        let finding = ScrubFinding {
            code,
            item: item.to_owned(),
            path: path.to_vec(),
            detail,
            accepted: self.options.accept && code != ScrubCode::Unreadable,
        };
        self.tally.count(&finding);
        (self.report)(&finding).map_err(ScrubError::Report)
    }
}
