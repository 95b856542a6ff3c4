//! The answers of one round, and what they mean together.

use std::sync::Arc;

use tokio::time::Instant;

use crate::archive_service::ArchiveService;
use ibifs_formats::resolution::{ArchiveQuery, Location};

/// The reason why a reader is not redirected.
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
    pub(super) onward: Vec<(Arc<ArchiveService>, ArchiveQuery)>,
    /// The first result from an Archive that does not hold the original, and how long to wait for one that
    /// does.
    pub(super) hearsay: Option<(Instant, RoundResult)>,
    pub(super) silent: usize,
    /// The services of the registered Archives to which the prefix of the identifier belongs, and whether each has
    /// answered.
    pub(super) makers: Vec<(String, bool)>,
    /// The services of the Archives that have answered for the prefix, or announced it.
    pub(super) concerned: Vec<String>,
    /// The Archives that have answered.
    pub(super) answered: Vec<Arc<ArchiveService>>,
}

impl AnswerTally {
    /// Notes that an Archive has answered.
    pub(super) fn note_answer(&mut self, archive: &Arc<ArchiveService>) {
        self.answered.push(Arc::clone(archive));
        let mut makers = self.makers.iter_mut();
        if let Some((_, has_answered)) = makers.find(|(maker, _)| *maker == archive.service) {
            *has_answered = true;
        }
    }

    /// Whether what an Archive claims to be the original is taken for it: it is of its own prefix, or the Archives of
    /// that prefix have answered and do not claim it, or the prefix is that of no registered Archive. Anything else is
    /// worth a copy: who has the original is silent.
    pub(super) fn accepts(&self, archive: &ArchiveService) -> bool {
        let mut makers = self.makers.iter();
        makers.clone().all(|(_, has_answered)| *has_answered)
            || makers.any(|(maker, _)| *maker == archive.service)
    }

    /// Whether the registered Archive to which the prefix belongs has answered, and each that is known to have had items
    /// of it. No other one is waited for to learn that an item is not there.
    fn is_answered_by_makers(&self) -> bool {
        let has_answered = |service: &String| self.answered.iter().any(|it| it.service == *service);
        !self.makers.is_empty()
            && self.makers.iter().all(|(_, has_answered)| *has_answered)
            && self.concerned.iter().all(has_answered)
    }

    /// Whether an Archive is known for originals of the prefix by this answer: it is of its own prefix, or no Archive of that
    /// prefix claims the original as well.
    pub(super) fn is_known_by(&self, archive: &ArchiveService) -> bool {
        let is_maker =
            |it: &ArchiveService| self.makers.iter().any(|(maker, _)| *maker == it.service);
        let is_claimed = self.originals.iter().any(|(other, _)| is_maker(other));
        self.accepts(archive) && (is_maker(archive) || !is_claimed)
    }

    /// Whether the answers decide, so that Archives of lists are not asked.
    pub(super) fn is_settled(&self) -> bool {
        self.hearsay.is_some() || !self.onward.is_empty() || !self.originals.is_empty()
    }

    /// The result of all answers.
    pub(super) fn result(mut self) -> RoundResult {
        if let Some((_, round)) = self.hearsay {
            return round;
        }
        let mut originals = std::mem::take(&mut self.originals);
        let mut onward = std::mem::take(&mut self.onward);
        let claims = originals.len() + onward.len();
        originals.retain(|(archive, _)| self.accepts(archive));
        onward.retain(|(archive, _)| self.accepts(archive));
        self.has_copy |= originals.len() + onward.len() < claims;
        if originals.len() > 1 {
            let suspects = originals.iter();
            let mut suspects: Vec<String> = suspects
                .map(|(archive, _)| archive.address.clone())
                .collect();
            suspects.sort();
            return RoundResult::Alert(Alert::Suspects(suspects));
        }
        let (silent, is_known) = (self.silent, self.is_known || self.is_deleted);
        match (originals.pop(), onward.into_iter().next()) {
            (Some((archive, reached)), _) => RoundResult::Found(archive, reached),
            (None, Some((_, next))) => RoundResult::Onward(next),
            (None, None) if self.has_copy => RoundResult::Alert(Alert::CopiesOnly { silent }),
            (None, None) => {
                let is_answered = self.is_answered_by_makers();
                let silent = if is_answered { 0 } else { silent };
                RoundResult::Alert(if self.is_deleted && silent == 0 {
                    Alert::Deleted
                } else {
                    Alert::Unknown { silent, is_known }
                })
            }
        }
    }
}
