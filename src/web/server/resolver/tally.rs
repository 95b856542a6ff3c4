//! The answers of one round, and what they mean together.

use std::sync::Arc;

use tokio::time::Instant;

use crate::formats::resolution::{ArchiveQuery, Location};
use crate::web::client::archive_service::ArchiveService;

/// Why a reader is not redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Alert {
    /// No Archive knows the item or, if `is_known`, what is requested of it. `silent` Archives did not
    /// answer.
    Unknown { silent: usize, is_known: bool },
    /// The item was removed.
    Deleted,
    /// The original is required, and only copies were found.
    CopiesOnly { silent: usize },
    /// Several Archives claim to hold the original.
    Suspects(Vec<String>),
    /// Editions or relations form a cycle, or lead too far.
    Endless,
    /// The resolution timed out.
    TooLong,
}

/// The result of one round.
pub(super) enum RoundResult {
    Found(Arc<ArchiveService>, Location),
    Onward(ArchiveQuery),
    Alert(Alert),
}

/// The answers received so far.
#[derive(Default)]
pub(super) struct AnswerTally {
    pub(super) originals: Vec<(Arc<ArchiveService>, Location)>,
    pub(super) has_copy: bool,
    pub(super) is_deleted: bool,
    pub(super) is_known: bool,
    pub(super) onward: Option<ArchiveQuery>,
    /// The first result from an Archive that does not hold the original, and how long to wait for one that
    /// does.
    pub(super) hearsay: Option<(Instant, RoundResult)>,
    pub(super) silent: usize,
}

impl AnswerTally {
    /// Whether the answers decide, so that Archives of lists are not asked.
    pub(super) fn is_settled(&self) -> bool {
        self.hearsay.is_some() || self.onward.is_some() || !self.originals.is_empty()
    }

    /// The result of all answers.
    pub(super) fn result(mut self) -> RoundResult {
        if let Some((_, round)) = self.hearsay {
            return round;
        }
        if self.originals.len() > 1 {
            let suspects = self.originals.iter();
            let mut suspects: Vec<String> = suspects
                .map(|(archive, _)| archive.address.clone())
                .collect();
            suspects.sort();
            return RoundResult::Alert(Alert::Suspects(suspects));
        }
        let (silent, is_known) = (self.silent, self.is_known || self.is_deleted);
        match (self.originals.pop(), self.onward) {
            (Some((archive, reached)), _) => RoundResult::Found(archive, reached),
            (None, Some(next)) => RoundResult::Onward(next),
            (None, None) if self.has_copy => RoundResult::Alert(Alert::CopiesOnly { silent }),
            (None, None) if self.is_deleted && silent == 0 => RoundResult::Alert(Alert::Deleted),
            (None, None) => RoundResult::Alert(Alert::Unknown { silent, is_known }),
        }
    }
}
