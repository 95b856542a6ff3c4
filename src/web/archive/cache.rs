//! The cache of what requests find in the Archive: answers of `urlRequest`, items by their rep, and small files.
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
mod small_files;
mod versioned;

use std::sync::Arc;

use crate::archive::store::Item;
use crate::archive::tree::{Published, Tree, Validator};
use crate::http::server::striped::Striped;
use crate::web::archive::file::SmallFile;
use crate::web::service::{UrlAnswer, UrlRequest};
pub(super) use single_flight::SingleFlight;
use small_files::SmallFiles;
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

/// The lookups of one kind since the start.
#[derive(Debug, Default)]
struct Lookups {
    hits: Striped,
    misses: Striped,
}

impl Lookups {
    fn count<T>(&self, found: Option<T>) -> Option<T> {
        let counter = match &found {
            Some(_) => &self.hits,
            None => &self.misses,
        };
        counter.raise();
        found
    }
}

/// The numbers of lookups that found an entry, and that did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LookupCounts {
    pub(super) hits: u64,
    pub(super) misses: u64,
}

/// The cache of a site. All threads share it.
#[derive(Debug)]
pub(super) struct AnswerCache {
    answers: Versioned<UrlRequest, CachedAnswer>,
    items: Versioned<String, Item>,
    files: SmallFiles,
    lookups: [Lookups; 3],
}

impl Default for AnswerCache {
    fn default() -> AnswerCache {
        AnswerCache {
            answers: Versioned::new(MOST_ENTRIES, MOST_BYTES),
            items: Versioned::new(MOST_ENTRIES, MOST_BYTES),
            files: SmallFiles::new(MOST_ENTRIES, MOST_BYTES),
            lookups: Default::default(),
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
        let cached = self.answers.get(version, question);
        let current = cached.filter(|cached| cached.validator.is_current(tree));
        self.lookups[0].count(current)
    }

    /// The lookups since the start: of answers, of items, and of small files.
    pub(super) fn lookups(&self) -> [(&'static str, LookupCounts); 3] {
        let of = |at: usize| LookupCounts {
            hits: self.lookups[at].hits.sum(),
            misses: self.lookups[at].misses.sum(),
        };
        [("answers", of(0)), ("items", of(1)), ("files", of(2))]
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
        self.lookups[1].count(self.items.get(version, rep))
    }

    /// Adds an item. `version` must have been read before the lookup.
    pub(super) fn add_item(&self, version: i64, rep: String, item: Item) {
        let size = rep.len() + item.size();
        self.items.insert(version, rep, item, size);
    }

    /// The content of a file that was found, if it is known. None for a file that is not small.
    pub(super) fn file(&self, found: &Published) -> Option<Arc<SmallFile>> {
        if !SmallFile::is(found) {
            return None;
        }
        self.lookups[2].count(self.files.get(found))
    }

    /// Reads a small file that has been opened, and adds it. None if it is not small, has changed just now, or is not in
    /// the page cache. `now` is in Unix seconds.
    pub(super) fn read_file(&self, opened: &Published, now: i64) -> Option<Arc<SmallFile>> {
        self.files.read(opened, now)
    }
}
