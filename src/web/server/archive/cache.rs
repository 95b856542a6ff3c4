//! The cache of what requests find in the Archive: answers of `urlRequest`, and items by their rep.
//!
//! An answer is never older than a change that was made before its request. Each request
//!
//! 1. reads the version of the index ([`SingleFlight`] reads it once for all requests that have arrived at a
//!    thread by then),
//! 2. looks up an entry of this version,
//! 3. and, for an answer, compares the files and directories on which it depends with their state when it was
//!    made (its [`Validator`]). The comparison never waits for a disk: what the kernel does not have in
//!    memory counts as changed.
//!
//! An answer that depends on a file that changed within the last seconds has no validator, because times on
//! disk are that coarse. It is not cached.
//!
//! Requests that miss are not coalesced. A request that joined an earlier search could get an answer older
//! than itself, and one search that cannot be cached would delay all others. [`versioned`] is an LRU cache
//! with a limit in bytes.

mod single_flight;
mod versioned;

use std::sync::Arc;

use crate::archive::store::Item;
use crate::archive::tree::{Tree, Validator};
use crate::web::service::{UrlAnswer, UrlRequest};
pub(super) use single_flight::SingleFlight;
use versioned::Versioned;

/// The most entries of each kind.
const MOST_ENTRIES: usize = 16_384;
/// The approximate limit on the entries of each kind, in bytes.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// An answer, with the validator of what it depends on besides the index.
#[derive(Debug)]
pub(super) struct CachedAnswer {
    pub(super) answer: UrlAnswer,
    validator: Validator,
}

/// The cache of a site. All threads share it.
#[derive(Debug)]
pub(super) struct AnswerCache {
    answers: Versioned<UrlRequest, CachedAnswer>,
    items: Versioned<String, Item>,
}

impl Default for AnswerCache {
    fn default() -> AnswerCache {
        AnswerCache {
            answers: Versioned::new(MOST_ENTRIES, MOST_BYTES),
            items: Versioned::new(MOST_ENTRIES, MOST_BYTES),
        }
    }
}

impl AnswerCache {
    /// The answer to a question for this version of the index, if its validator is still current.
    pub(super) fn answer(
        &self,
        version: i64,
        question: &UrlRequest,
        tree: &Tree,
    ) -> Option<Arc<CachedAnswer>> {
        let cached = self.answers.get(version, question)?;
        cached.validator.is_current(tree).then_some(cached)
    }

    /// Adds an answer. `version` must have been read before the search began.
    pub(super) fn add_answer(
        &self,
        version: i64,
        question: UrlRequest,
        answer: UrlAnswer,
        validator: Validator,
    ) {
        let size = question.size() + answer.size() + validator.size();
        let cached = CachedAnswer { answer, validator };
        self.answers.insert(version, question, cached, size);
    }

    /// The item with this rep for this version of the index.
    pub(super) fn item(&self, version: i64, rep: &str) -> Option<Arc<Item>> {
        self.items.get(version, rep)
    }

    /// Adds an item. `version` must have been read before the lookup.
    pub(super) fn add_item(&self, version: i64, rep: String, item: Item) {
        let size = rep.len() + item.size();
        self.items.insert(version, rep, item, size);
    }
}
