//! Searches: the words of all descriptions, and the items that a reader may see.
//!
//! A search index is brought up to date from the changes of the index of the store before it is asked. It is made by
//! a reader: what this reader may not read is not in it. What was found is checked again for whoever asks.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use super::{Archive, ArchiveError, RunAs};
use crate::archive::store::{Item, ItemId, Progress, SearchEntry, SearchIndex};
use crate::archive::tree::Dependencies;
use crate::formats::description::Description;
use crate::formats::item::{Names, State};
use crate::formats::metadata::{DublinCore, Element};
use crate::formats::search::{SearchField, SearchQuery};

/// The search index of all items.
pub const SEARCH_FILE: &str = "search.sqlite3";

/// The search index of what the public may read.
pub const PUBLIC_SEARCH_FILE: &str = "search-public.sqlite3";

/// How many changed items are read at a time.
const PAGE: usize = 250;

/// How much text of an item is indexed in one field, in bytes.
const LONGEST_TEXT: usize = 64 << 10;

/// The longest value by which items are listed, in bytes, and how many an item has in a field.
const LONGEST_VALUE: usize = 300;
const MOST_VALUES: usize = 100;

/// How many items that were found are examined for a reader.
const MOST_EXAMINED: usize = 20_000;

/// How many are read at first.
const FIRST_EXAMINED: usize = 200;

/// A page of items that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The items, the best first.
    pub items: Vec<Item>,
    /// Whether there are more.
    pub has_more: bool,
}

/// Whether an update of a search index goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStop {
    /// It continues.
    GoOn,
    /// It stops, and what was read is kept.
    Stop,
}

impl Archive {
    /// Opens a search index of this store, and creates it if necessary.
    pub fn search_index(&self, file: &str) -> Result<SearchIndex, ArchiveError> {
        Ok(SearchIndex::open(self.tree.root(), file)?)
    }

    /// Brings a search index up to date. Calls `progress` now and then with the number of items read, which
    /// may stop it. Returns whether the index is up to date.
    pub fn update_search(
        &self,
        index: &SearchIndex,
        act: RunAs<'_>,
        progress: &mut dyn FnMut(u64) -> SearchStop,
    ) -> Result<bool, ArchiveError> {
        let mut read = 0;
        loop {
            let last = self.store.last_change()?;
            let from = match index.progress()? {
                Some(from)
                    if from.change.epoch == last.epoch && from.change.number <= last.number =>
                {
                    from
                }
                _ => index.start_over(last)?,
            };
            let Some((items, until)) = self.next_to_search(from)? else {
                return Ok(true);
            };
            let (mut entries, mut gone) = (Vec::new(), Vec::new());
            for item in self.concerned(items)? {
                match self.search_entry(&item, act) {
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
            if progress(read) == SearchStop::Stop {
                return Ok(until.item.is_none() && until.change.number >= last.number);
            }
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

    /// What is recorded of an item; None if it is not found.
    fn search_entry(
        &self,
        item: &Item,
        act: RunAs<'_>,
    ) -> Result<Option<SearchEntry>, ArchiveError> {
        let is_service = item.names.matches(&self.facts.service);
        if is_service || item.state == State::Deleted || self.is_metadata_here(item)? {
            return Ok(None);
        }
        if !self.is_public(item, act, &Dependencies::default())? {
            return Ok(None);
        }
        let description = self.description(item, None, act)?;
        Ok(Some(entry_of(item, &description)))
    }

    /// The items that meet a query and that the reader may see, after the first `skipped` of them.
    pub fn search(
        &self,
        index: &SearchIndex,
        wanted: &SearchQuery,
        act: RunAs<'_>,
        skipped: usize,
        most: usize,
    ) -> Result<SearchPage, ArchiveError> {
        let mut page = SearchPage::default();
        let mut left = skipped;
        let mut begin = 0;
        for count in [FIRST_EXAMINED, MOST_EXAMINED - FIRST_EXAMINED] {
            let found = index.find(wanted, begin, count)?;
            begin += found.items.len();
            for id in found.items {
                let Some(item) = self.store.item(id)? else {
                    continue;
                };
                let is_held = item.state != State::Deleted;
                if !is_held || !self.is_public(&item, act, &Dependencies::default())? {
                    continue;
                }
                if left > 0 {
                    left -= 1;
                } else if page.items.len() == most {
                    page.has_more = true;
                    return Ok(page);
                } else {
                    page.items.push(item);
                }
            }
            if !found.has_more {
                break;
            }
        }
        Ok(page)
    }

    /// Records that the description of an item has changed.
    pub fn note_described(&self, item: ItemId) -> Result<(), ArchiveError> {
        match self.lock {
            Some(_) => Ok(self.store.note_change(item)?),
            None => Ok(()),
        }
    }
}

/// The level at which items are listed together.
fn collection_of(names: &Names) -> String {
    match (names.rep(), names.ibip()) {
        (Some(rep), _) => {
            let components: Vec<&str> = rep.as_str().split('/').take(2).collect();
            components.join("/")
        }
        (None, Some(ibip)) => ibip.prefix().to_owned(),
        (None, None) => String::new(),
    }
}

/// The years in a date or a range of dates.
fn years_in(date: &str) -> impl Iterator<Item = &str> {
    let numbers = date.split(|sign: char| !sign.is_ascii_digit());
    numbers.filter(|number| number.len() == 4).take(2)
}

fn entry_of(item: &Item, description: &Description) -> SearchEntry {
    let core = &description.record.core;
    let mut entry = SearchEntry {
        item: item.id.0,
        ..SearchEntry::default()
    };
    for field in SearchField::ALL {
        let values = values_of(field, core, item);
        let is_listed = !matches!(
            field,
            SearchField::Title | SearchField::Abstract | SearchField::Other
        );
        let mut left = LONGEST_TEXT;
        for (number, value) in values.iter().enumerate() {
            if is_listed && number < MOST_VALUES && value.len() <= LONGEST_VALUE {
                entry.values.push((field, value.clone()));
            }
            let text = start_of(value, left);
            left -= text.len();
            if !text.is_empty() {
                entry.texts.push((field, text.to_owned()));
            }
        }
    }
    let mut digest = Sha256::new();
    for (field, text) in entry.texts.iter().chain(&entry.values) {
        digest.update(field.name());
        digest.update([0]);
        digest.update(text);
        digest.update([0]);
    }
    let mut mark = digest.finalize().to_vec();
    mark.truncate(16);
    entry.mark = mark;
    entry
}

fn values_of(field: SearchField, core: &DublinCore, item: &Item) -> Vec<String> {
    let elements: &[Element] = match field {
        SearchField::Title => &[Element::Title],
        SearchField::Creator => &[Element::Creator, Element::Contributor],
        SearchField::Subject => &[Element::Subject],
        SearchField::Abstract => &[Element::Description],
        SearchField::Type => &[Element::Type],
        SearchField::Language => &[Element::Language],
        SearchField::Other => &[
            Element::Publisher,
            Element::Identifier,
            Element::Source,
            Element::Coverage,
            Element::Rights,
        ],
        SearchField::Collection => return vec![collection_of(&item.names)],
        SearchField::Year => {
            let dates = core.values(Element::Date);
            let mut years: Vec<String> = dates.flat_map(years_in).map(str::to_owned).collect();
            years.dedup();
            return years;
        }
    };
    let values = elements.iter().flat_map(|element| core.values(*element));
    values.map(str::to_owned).collect()
}

/// The start of a text, of at most so many bytes.
fn start_of(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_of_dates() {
        for (date, expected) in [
            ("2009-02-16", vec!["2009"]),
            ("1995/1998", vec!["1995", "1998"]),
            ("Feb. 16, 2009", vec!["2009"]),
            ("16.02.09", vec![]),
            ("20090216", vec![]),
        ] {
            assert_eq!(years_in(date).collect::<Vec<_>>(), expected, "{date}");
        }
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(start_of("maré", 4), "mar");
        assert_eq!(start_of("maré", 5), "maré");
    }
}
