//! The search index that has the texts of files, too.
//!
//! Reading files takes long, so searches do not wait for it: they ask what has been read by then, and another thread
//! goes on. An item that was found by a text is checked when asked for: whether everyone may still read the files.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::super::{Archive, ArchiveError, ReadAs};
use super::entry::{mark_of, start_of};
use super::files::{
    FileChange, LONGEST_FILE_TEXT, LONGEST_ITEM_TEXT, change_of, read_text, readable_files,
};
use super::{SearchIndexes, SearchStop};
use crate::archive::store::{
    FileText, FileVersion, Item, ItemId, SearchEntry, StoreError, TextIndex,
};
use crate::archive::tree::Action;
use crate::formats::search::SearchField;
use crate::os::caller::act_as_process;
use crate::os::processors;
use ibi::Timestamp;

/// After this time the files of all items are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1800);

/// The time that a search waits for texts that are being read since it or an earlier search began.
const WAIT: Duration = Duration::from_secs(1);

/// The most files that are examined for a search.
const MOST_CHECKED: usize = 20_000;

/// The number of items with a file that may have changed that are read at a time.
const MOST_STALE: usize = 10_000;

/// The texts of files.
#[derive(Debug)]
pub struct Texts {
    index: TextIndex,
    reading: Mutex<Reading>,
    has_ended: Condvar,
}

#[derive(Debug, Default)]
struct Reading {
    /// The time since when a thread reads.
    since: Option<Instant>,
    /// The time at which the files of all items were last looked at.
    looked: Option<Instant>,
    /// The next instant at which files are withheld no more, of the items that were met.
    opens: Option<Timestamp>,
}

impl Texts {
    pub(super) fn open(directory: BorrowedFd<'_>, file: &str) -> Result<Texts, StoreError> {
        Ok(Texts::over(TextIndex::open(directory, file)?))
    }

    pub(super) fn temporary() -> Result<Texts, StoreError> {
        Ok(Texts::over(TextIndex::temporary()?))
    }

    fn over(index: TextIndex) -> Texts {
        Texts {
            index,
            reading: Mutex::default(),
            has_ended: Condvar::new(),
        }
    }

    /// The database.
    #[must_use]
    pub fn index(&self) -> &TextIndex {
        &self.index
    }

    /// Has the files of all items looked at again.
    pub fn look_again(&self) -> Result<(), StoreError> {
        self.index.words().read_again()
    }

    pub(super) fn checks(&self) -> TextChecks<'_> {
        TextChecks {
            texts: self,
            left: MOST_CHECKED,
            changed: Vec::new(),
        }
    }
}

/// The examination of the items that a search has found by texts.
pub(super) struct TextChecks<'a> {
    texts: &'a Texts,
    left: usize,
    changed: Vec<ItemId>,
}

impl TextChecks<'_> {
    /// Whether no more is examined.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Has the items read again of which a file has changed.
    pub(super) fn note_changed(self) {
        if let Err(error) = self.texts.index.note_stale(&self.changed) {
            log::debug!("changed files are noticed later: {error}");
        }
    }
}

impl ReadAs<'_> {
    /// Whether the files by which an item was found are still there, and everyone may read them.
    pub(super) fn is_text_shown(
        &self,
        checks: &mut TextChecks<'_>,
        item: &Item,
    ) -> Result<bool, ArchiveError> {
        let files = checks.texts.index.files(item.id)?;
        checks.left = checks.left.saturating_sub(files.len());
        let changes = self.acting(|| -> Result<_, ArchiveError> {
            let open = self.open_served(item)?;
            Ok(files.iter().map(|file| change_of(&open, file)).max())
        });
        let change = match changes {
            Ok(change) => change.unwrap_or(FileChange::None),
            Err(error) if error.is_refusal() => FileChange::Hidden,
            Err(error) => return Err(error),
        };
        if change != FileChange::None {
            checks.changed.push(item.id);
        }
        Ok(change != FileChange::Hidden)
    }

    fn read_texts_now(&self, indexes: &SearchIndexes) {
        let Some(texts) = &indexes.texts else {
            return;
        };
        let read = self.update_texts(texts, &mut |_| SearchStop::GoOn);
        if let Err(error) = read {
            log::warn!("the texts of files are not complete: {error}");
        }
        texts.reading.lock().since = None;
        texts.has_ended.notify_all();
    }

    /// Brings the texts up to date. Calls `progress` before each file and after each item with the number of items
    /// examined; it may stop it. Returns whether the texts are up to date.
    pub fn update_texts(
        &self,
        texts: &Texts,
        progress: &mut dyn FnMut(u64) -> SearchStop,
    ) -> Result<bool, ArchiveError> {
        let mut examined = 0;
        // Items that are noted from now on wait for the next search.
        for id in texts.index.stale(MOST_STALE)? {
            texts.index.take_stale(id)?;
            if let Some(item) = self.store.item(id)?
                && !self.update_item_texts(texts, &item, examined, progress)?
            {
                texts.index.note_stale(&[id])?;
                return Ok(false);
            }
            examined += 1;
        }
        loop {
            let words = texts.index.words();
            let from = self.search_progress(words)?;
            let Some((items, until)) = self.next_to_search(from)? else {
                return Ok(true);
            };
            for item in self.concerned(items)? {
                if !self.update_item_texts(texts, &item, examined, progress)? {
                    return Ok(false);
                }
                examined += 1;
            }
            words.record(&[], &[], from, until)?;
        }
    }

    /// Records the texts of an item. Returns false if it was stopped before all were read.
    fn update_item_texts(
        &self,
        texts: &Texts,
        item: &Item,
        examined: u64,
        progress: &mut dyn FnMut(u64) -> SearchStop,
    ) -> Result<bool, ArchiveError> {
        let entry = match self.search_entry(item) {
            Ok(entry) => entry,
            Err(error) => {
                if !error.is_refusal() {
                    log::warn!("{} is not found by its texts: {error}", item.names);
                }
                None
            }
        };
        let Some(mut entry) = entry else {
            texts.index.keep_files(item.id, &[])?;
            texts.index.words().put(item.id, None)?;
            return Ok(true);
        };
        if let Some(until) = self.withheld_until(item) {
            let opens = &mut texts.reading.lock().opens;
            if opens.as_ref().is_none_or(|known| until < known) {
                *opens = Some(until.clone());
            }
        }
        let files = self.acting(|| -> Result<_, ArchiveError> {
            let open = self.open_served(item)?;
            Ok(readable_files(&open)?)
        });
        let files = match files {
            Ok(files) => files,
            // It was removed just now, which is a change that comes later, or only its owner may list it. The items behind
            // it are read in any case.
            Err(error) if error.is_refusal() => Vec::new(),
            Err(error) => return Err(error),
        };
        let versions = files.iter();
        let versions = versions.flat_map(|it| [it.path.as_slice(), it.version.as_bytes()]);
        let mark = mark_of(std::iter::once(entry.mark.as_slice()).chain(versions));
        if texts.index.mark(item.id)?.as_ref() == Some(&mark) {
            return Ok(progress(examined) == SearchStop::GoOn);
        }
        texts.index.keep_files(item.id, &files)?;
        let known = texts.index.files(item.id)?;
        let mut left = LONGEST_ITEM_TEXT;
        for file in &files {
            if left == 0 {
                break;
            }
            if !known.contains(file) {
                if progress(examined) == SearchStop::Stop {
                    return Ok(false);
                }
                self.read_file(texts, item, file)?;
            }
            let longest = left.min(LONGEST_FILE_TEXT);
            let text = texts.index.text(item.id, &file.path, longest)?;
            let text = text.unwrap_or_default();
            left -= start_of(&text, left).len();
            if !text.is_empty() {
                entry.texts.push((SearchField::Text, text));
            }
        }
        let entry = SearchEntry {
            mark,
            values: Vec::new(),
            ..entry
        };
        texts.index.words().put(item.id, Some(&entry))?;
        Ok(progress(examined) == SearchStop::GoOn)
    }

    /// Reads and records the text of a file, unless it changes meanwhile.
    fn read_file(
        &self,
        texts: &Texts,
        item: &Item,
        file: &FileVersion,
    ) -> Result<(), ArchiveError> {
        let read = self.acting(|| -> Result<_, ArchiveError> {
            let open = self.open_served(item)?;
            let text = read_text(&open, file);
            Ok(text.map_err(|errno| open.error(Action::Read, &file.path, errno))?)
        });
        match read {
            Ok(Some(text)) => {
                let file = file.clone();
                Ok(texts.index.put_file(item.id, &FileText { file, text })?)
            }
            Ok(None) => Ok(texts.index.note_stale(&[item.id])?),
            Err(error) if error.is_refusal() => Ok(texts.index.note_stale(&[item.id])?),
            Err(error) => Err(error),
        }
    }
}

impl Archive {
    /// Brings the texts up to date in another thread, unless one does so already, and waits for it some time.
    pub fn read_texts_aside(
        self: &Arc<Archive>,
        indexes: &Arc<SearchIndexes>,
        act: fn(&mut dyn FnMut()),
    ) {
        let Some(texts) = &indexes.texts else {
            return;
        };
        let mut reading = texts.reading.lock();
        let since = match reading.since {
            Some(since) => since,
            None => {
                let opens = reading.opens.as_ref();
                let is_due = reading.looked.is_none_or(|at| at.elapsed() >= LOOK_AGAIN)
                    || opens.is_some_and(|at| *at <= self.clock.now());
                if is_due {
                    reading.opens = None;
                    // Those of before this start were not noticed.
                    reading.looked = Some(Instant::now());
                    if let Err(error) = texts.look_again() {
                        log::warn!("the texts of files cannot be read: {error}");
                        return;
                    }
                } else if self.are_texts_current(texts).unwrap_or(false) {
                    return;
                }
                let now = Instant::now();
                reading.since = Some(now);
                let (archive, all) = (Arc::clone(self), Arc::clone(indexes));
                let started = processors::spawn_unbound("texts", move || {
                    act_as_process();
                    processors::give_way();
                    archive.read_as(&act).read_texts_now(&all);
                });
                if let Err(error) = started {
                    reading.since = None;
                    log::warn!("the texts of files cannot be read: {error}");
                    return;
                }
                now
            }
        };
        let until = since + WAIT;
        let is_reading = |reading: &mut Reading| reading.since.is_some();
        texts
            .has_ended
            .wait_while_until(&mut reading, is_reading, until);
    }

    /// Whether nothing is to be read, as far as it is known.
    fn are_texts_current(&self, texts: &Texts) -> Result<bool, ArchiveError> {
        let last = self.store.last_change()?;
        let progress = texts.index.words().progress()?;
        let is_current = progress.is_some_and(|it| it.item.is_none() && it.change == last);
        Ok(is_current && texts.index.stale(1)?.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::archive::operations::testing::TestArchive;
    use crate::formats::search::SearchQuery;

    /// An item is removed while its texts are read, at each step of it: the next one is read all the same.
    #[test]
    fn an_item_that_goes_away_keeps_no_other_waiting() {
        for step in 0..12 {
            let archive = TestArchive::new();
            let items = [archive.new_item(), archive.new_item()];
            for item in &items {
                std::fs::create_dir_all(archive.file(item, "doc")).expect("a directory");
                std::fs::write(archive.file(item, "doc/text.txt"), "monsoon").expect("a file");
            }
            let texts = Texts::temporary().expect("an index");
            let (steps, gone) = (Cell::new(0), archive.file(&items[0], ""));
            let act = |read: &mut dyn FnMut()| {
                if steps.replace(steps.get() + 1) == step {
                    std::fs::remove_dir_all(&gone).expect("removed");
                }
                read();
            };
            let read = archive
                .read_as(&act)
                .update_texts(&texts, &mut |_| SearchStop::GoOn);
            assert!(read.expect("read"), "step {step}");
            let monsoon = SearchQuery::parse("monsoon").expect("a query");
            let is_found = texts.index().words().is_found(&monsoon, items[1].id);
            assert!(is_found.expect("asked"), "step {step}");
        }
    }
}
