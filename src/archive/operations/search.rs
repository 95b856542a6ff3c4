//! Searches: the words of all descriptions, and the items that a reader may see.
//!
//! A search index is brought up to date from the changes of the index of the store before it is asked. It is made by
//! a reader: what this reader may not read is not in it. An item that was found is checked again for this user.
//!
//! - [`entry`]: what is recorded of an item.
//! - [`files`]: the files of an item that everyone may read, and their texts.
//! - [`cache`]: the indexes that a mount or a service keeps open.
//! - [`texts`]: the second index, which has the texts of files, where the facts of the Archive say so.
//! - [`written`]: files that were written through the mount.

mod cache;
mod entry;
mod files;
mod texts;
mod written;

use std::collections::HashSet;
use std::time::Instant;

use log::Level;

use super::{Archive, ArchiveError, ReadAs};
use crate::archive::store::{
    Found, Item, ItemId, Progress, SearchEntry, SearchIndex, StoreError, cache_file,
};
use crate::formats::item::State;
use crate::formats::search::{SearchQuery, Searched};
pub use cache::SearchCache;
use entry::entry_of;
pub use texts::Texts;
pub use written::WrittenFiles;

/// The search index of all items.
pub const SEARCH_FILE: &str = "search.sqlite3";

/// The search index of what the public may read.
pub const PUBLIC_SEARCH_FILE: &str = "search-public.sqlite3";

/// The indexes with the texts of files that belong to them.
pub const TEXT_FILE: &str = "search-text.sqlite3";
/// See [`TEXT_FILE`].
pub const PUBLIC_TEXT_FILE: &str = "search-public-text.sqlite3";

/// The number of changed items that are read at a time.
const PAGE: usize = 250;

/// The number of found items that are examined for a reader.
const MOST_EXAMINED: usize = 20_000;

/// The number that is read at first.
const FIRST_EXAMINED: usize = 200;

/// The readers for whom items are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchScope {
    /// For the users of the store: it has all items.
    All,
    /// For the public.
    Public,
}

/// The indexes that a search asks: the descriptions, and the texts of files if they are indexed.
#[derive(Debug)]
pub struct SearchIndexes {
    /// The readers for whom they are.
    scope: SearchScope,
    /// The descriptions.
    pub descriptions: SearchIndex,
    /// The texts.
    pub texts: Option<Texts>,
}

/// A page of items that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The items, the best first.
    pub items: Vec<Item>,
    /// Whether there are more.
    pub has_more: bool,
}

/// The answer to whether an update of a search index goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStop {
    /// It continues.
    GoOn,
    /// It stops, and what was read is kept.
    Stop,
}

impl SearchStop {
    /// Returns whether an update goes on that has time until then.
    pub fn at(until: Instant) -> SearchStop {
        if Instant::now() < until {
            SearchStop::GoOn
        } else {
            SearchStop::Stop
        }
    }
}

impl ReadAs<'_> {
    /// Brings a search index up to date. Calls `progress` now and then with the number of items read, which
    /// may stop it. Returns whether the index is up to date.
    pub fn update_search(
        &self,
        index: &SearchIndex,
        progress: &mut dyn FnMut(u64) -> SearchStop,
    ) -> Result<bool, ArchiveError> {
        let mut read = 0;
        // A change from now on is for the next search: a user who changes items all the time keeps no search waiting.
        let last = self.store.last_change()?;
        loop {
            let from = self.search_progress(index)?;
            let Some((items, until)) = self.next_to_search(from)? else {
                return Ok(true);
            };
            let (mut entries, mut gone) = (Vec::new(), Vec::new());
            for item in self.concerned(items)? {
                match self.search_entry(&item) {
                    Ok(Some(entry)) => entries.push(entry),
                    Ok(None) => gone.push(item.id),
                    Err(error) if error.is_refusal() => gone.push(item.id),
                    Err(error) => {
                        log::warn!("{} is not found by its description: {error}", item.names);
                        gone.push(item.id);
                    }
                }
                read += 1;
            }
            // If another process was faster, its progress is read again.
            index.record(&entries, &gone, from, until)?;
            let is_current = until.item.is_none() && until.change.number >= last.number;
            if progress(read) == SearchStop::Stop || is_current {
                return Ok(is_current);
            }
        }
    }

    /// Returns what is recorded of an item; None if it is not found.
    fn search_entry(&self, item: &Item) -> Result<Option<SearchEntry>, ArchiveError> {
        let is_service = item.names.matches(&self.facts.service);
        if is_service || item.state == State::Deleted || self.is_metadata_here(item)? {
            return Ok(None);
        }
        if !self.is_public(item)? {
            return Ok(None);
        }
        let description = self.description(item, None)?;
        Ok(Some(entry_of(item, &description)))
    }

    /// The items that meet a query and that the reader may see, after the first `skipped` of them: first those of which
    /// the descriptions meet it, then those of which the texts of files are needed.
    pub fn search(
        &self,
        indexes: &SearchIndexes,
        wanted: &SearchQuery,
        skipped: usize,
        most: usize,
    ) -> Result<SearchPage, ArchiveError> {
        let mut page = SearchPage::default();
        let mut left = skipped;
        let mut take = |item: Item| {
            if left > 0 {
                left -= 1;
            } else if page.items.len() == most {
                page.has_more = true;
            } else {
                page.items.push(item);
            }
            page.has_more
        };
        let mut described = HashSet::new();
        if !wanted.is_of_texts() {
            let descriptions = &indexes.descriptions;
            let find = |begin, count| descriptions.find(wanted, begin, count);
            let is_full = self.examine(indexes.scope, find, |item| {
                described.insert(item.id);
                Ok(take(item))
            })?;
            if is_full {
                return Ok(page);
            }
        }
        if let Some(texts) = &indexes.texts {
            let mut checks = texts.checks();
            let find = |begin, count| texts.index().words().find(wanted, begin, count);
            self.examine(indexes.scope, find, |item| {
                if described.contains(&item.id) || !self.is_text_shown(&mut checks, &item)? {
                    return Ok(checks.is_over());
                }
                Ok(take(item))
            })?;
            page.has_more |= checks.is_over();
            checks.note_changed();
        }
        Ok(page)
    }

    /// Calls `visit` with the items found that the reader may see, until it returns true. Returns whether it did.
    fn examine(
        &self,
        scope: SearchScope,
        find: impl Fn(usize, usize) -> Result<Found, StoreError>,
        mut visit: impl FnMut(Item) -> Result<bool, ArchiveError>,
    ) -> Result<bool, ArchiveError> {
        let mut begin = 0;
        for count in [FIRST_EXAMINED, MOST_EXAMINED - FIRST_EXAMINED] {
            let found = find(begin, count)?;
            begin += found.items.len();
            for id in found.items {
                let Some(item) = self.store.item(id)? else {
                    continue;
                };
                let is_shown = item.state != State::Deleted
                    && self.is_public(&item)?
                    && self.may_read_description(scope, &item);
                if is_shown && visit(item)? {
                    return Ok(true);
                }
            }
            if !found.has_more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a reader may read what describes an item. It may have been made private since its words were read. An
    /// index of all items is asked by those alone who may read everything.
    fn may_read_description(&self, scope: SearchScope, item: &Item) -> bool {
        scope == SearchScope::All
            || match self.read_description(item) {
                Ok(()) => true,
                Err(error) => {
                    log::debug!("{} is not found: {error}", item.names);
                    false
                }
            }
    }

    /// Whether an item meets a query and the reader may read its description. Whether the reader may see the item is
    /// not examined.
    pub fn is_found(
        &self,
        indexes: &SearchIndexes,
        wanted: &SearchQuery,
        item: &Item,
    ) -> Result<bool, ArchiveError> {
        if !self.may_read_description(indexes.scope, item) {
            return Ok(false);
        }
        if !wanted.is_of_texts() && indexes.descriptions.is_found(wanted, item.id)? {
            return Ok(true);
        }
        let Some(texts) = &indexes.texts else {
            return Ok(false);
        };
        if !texts.index().words().is_found(wanted, item.id)? {
            return Ok(false);
        }
        let mut checks = texts.checks();
        let is_shown = self.is_text_shown(&mut checks, item)?;
        checks.note_changed();
        Ok(is_shown)
    }

    /// Returns how far an index is; one of another epoch starts over.
    fn search_progress(&self, index: &SearchIndex) -> Result<Progress, ArchiveError> {
        let last = self.store.last_change()?;
        match index.progress()? {
            Some(from) if from.change.epoch == last.epoch && from.change.number <= last.number => {
                Ok(from)
            }
            _ => Ok(index.start_over(last)?),
        }
    }

    /// The next items to be recorded, and how far the items are recorded then: first all by their numbers, then those
    /// that have changed since. None if there are none.
    fn next_to_search(
        &self,
        from: Progress,
    ) -> Result<Option<(Vec<Item>, Progress)>, ArchiveError> {
        if let Some(item) = from.item {
            let items = self.store.items_after(item, PAGE)?;
            let item = items.last().map(|item| item.id);
            return Ok(Some((items, Progress { item, ..from })));
        }
        let changed = self.store.changed_after(from.change.number, PAGE)?;
        let Some((number, _)) = changed.last() else {
            return Ok(None);
        };
        let mut until = from;
        until.change.number = *number;
        let items = changed.into_iter().map(|(_, item)| item);
        Ok(Some((items.collect(), until)))
    }

    /// The items that have changed, and those that a changed one describes.
    fn concerned(&self, changed: Vec<Item>) -> Result<Vec<Item>, ArchiveError> {
        let mut known: HashSet<ItemId> = changed.iter().map(|item| item.id).collect();
        let mut all = Vec::with_capacity(changed.len());
        for item in changed {
            let described = match self.metadata_of(&item)? {
                Some(names) => self.store.find_by_names(&names)?,
                None => None,
            };
            all.push(item);
            all.extend(described.filter(|described| known.insert(described.id)));
        }
        Ok(all)
    }
}

impl Archive {
    /// Opens the search indexes of this store, and creates them if necessary. One that cannot be written ends with
    /// this process.
    pub fn search_indexes(&self, scope: SearchScope) -> Result<SearchIndexes, ArchiveError> {
        let (file, texts) = match scope {
            SearchScope::All => (SEARCH_FILE, TEXT_FILE),
            SearchScope::Public => (PUBLIC_SEARCH_FILE, PUBLIC_TEXT_FILE),
        };
        let index = self.facts.index.as_ref();
        let (file, texts) = (&*cache_file(file, index), &*cache_file(texts, index));
        let is_temporary = |error: &StoreError| {
            let level = match error {
                StoreError::Beside(error) if error.is_damage() => Level::Warn,
                // A user who may not write the store searches so.
                _ => Level::Info,
            };
            log::log!(level, "all is read for this process alone: {error}");
        };
        let descriptions = SearchIndex::open(self.tree.root(), file).or_else(|error| {
            is_temporary(&error);
            SearchIndex::temporary()
        })?;
        let texts = match self.facts.searched {
            Searched::Descriptions => None,
            Searched::Texts => Some(Texts::open(self.tree.root(), texts).or_else(|error| {
                is_temporary(&error);
                Texts::temporary()
            })?),
        };
        Ok(SearchIndexes {
            scope,
            descriptions,
            texts,
        })
    }

    /// Records that other users may read an item, and what it is described by, than before. Other processes notice it a
    /// moment later.
    pub fn note_readers(&self, item: ItemId) -> Result<(), ArchiveError> {
        match self.lock {
            Some(_) => Ok(self.store.note_readers(item)?),
            None => Ok(()),
        }
    }

    /// Records that the description of an item has changed.
    pub fn note_described(&self, item: ItemId) -> Result<(), ArchiveError> {
        match self.lock {
            Some(_) => Ok(self.store.note_change(item)?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::operations::testing::TestArchive;

    /// An item that changes all the time keeps no search waiting.
    #[test]
    fn an_update_ends_beside_changes() {
        let archive = TestArchive::new();
        let item = archive.new_item();
        let index = SearchIndex::temporary().expect("an index");
        for _ in 0..2 {
            archive.note_described(item.id).expect("noted");
            let mut pages = 0;
            let is_current = archive
                .read_as(&|read| read())
                .update_search(&index, &mut |_| {
                    pages += 1;
                    assert!(pages < 10, "it does not end");
                    archive.note_described(item.id).expect("noted");
                    SearchStop::GoOn
                });
            assert!(is_current.expect("updated"));
        }
    }
}
