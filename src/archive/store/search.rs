//! The words of descriptions, for searches; [`texts`] has those of files, too.
//!
//! This is a database of its own: it can be made again from the descriptions, and is missing until a user
//! searches. It knows items by their numbers in the index.

mod texts;

use parking_lot::Mutex;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};

use super::other_databases::{Named, Shared};
use super::{ChangeNumber, ItemId, StoreError, query};
use crate::formats::search::{SearchField, SearchQuery};
use crate::sql::database::OpenFor;
use crate::sql::engine::{Connection, Sync, Value, params};
use ibi::message;

pub use texts::{FileText, FileVersion, TextIndex};

/// As in the relation store: one entry for each version, and no entry is ever changed.
const MIGRATIONS: &[&str] = &["
    -- The words of each item, in the columns of SearchField. The texts themselves are not kept.
    CREATE VIRTUAL TABLE words USING fts5 (
        title, creator, subject, abstract, year, type, language, collection, other,
        content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );

    -- What was recorded of an item: a digest of it.
    CREATE TABLE entry (item INTEGER PRIMARY KEY, mark BLOB NOT NULL) STRICT;

    -- The whole values by which items are listed.
    CREATE TABLE value (
        field TEXT NOT NULL,
        text  TEXT NOT NULL,
        item  INTEGER NOT NULL,
        PRIMARY KEY (field, text, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX value_by_item ON value (item);

    -- Up to which item all are recorded as they were at a change of the index, or later; NULL when all are.
    CREATE TABLE progress (
        one    INTEGER PRIMARY KEY CHECK (one = 1),
        epoch  INTEGER NOT NULL,
        number INTEGER NOT NULL,
        item   INTEGER
    ) STRICT;
"];

/// With more items than this, those found are not ranked.
const MOST_RANKED: usize = 5_000;

/// The weight of a word in each column, in the order of the columns.
const RANK: &str = "bm25(words, 10, 6, 4, 2, 1, 1, 1, 1, 1, 1)";

/// The record of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchEntry {
    /// Its number in the index.
    pub item: i64,
    /// A digest of the following.
    pub mark: Vec<u8>,
    /// Its texts, by [`SearchField`].
    pub texts: Vec<(SearchField, String)>,
    /// The values by which it is listed.
    pub values: Vec<(SearchField, String)>,
}

/// The progress of an index: how far its items are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// They are recorded as they were at this change, or later.
    pub change: ChangeNumber,
    /// Those up to this item; None if all are.
    pub item: Option<ItemId>,
}

/// Items that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The items: the best first; the latest first where there are too many to compare.
    pub items: Vec<ItemId>,
    /// Whether there are more.
    pub has_more: bool,
}

/// The open database.
#[derive(Debug)]
pub struct SearchIndex {
    database: Mutex<Shared>,
    /// The columns of its words.
    fields: &'static [SearchField],
}

impl SearchIndex {
    /// Opens the database of this name in a store's directory, and creates it if necessary.
    pub fn open(directory: BorrowedFd<'_>, file: &str) -> Result<SearchIndex, StoreError> {
        SearchIndex::open_with(directory, file, MIGRATIONS, SearchField::DESCRIBED)
    }

    fn open_with(
        directory: BorrowedFd<'_>,
        file: &str,
        migrations: &[&str],
        fields: &'static [SearchField],
    ) -> Result<SearchIndex, StoreError> {
        // It has words of descriptions that not everybody may read. SQLite gives its log the same permissions.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let _ = rustix::fs::openat(directory, file, flags, Mode::from_raw_mode(0o600));
        let remedy = message!(
            "end the mount and the services of the store and remove it: then the next search makes it again"
        );
        let named = Named::new(file, remedy);
        let opened = Shared::open(directory, None, file, &named, OpenFor::Writing, migrations)?;
        let database = Mutex::new(opened.ok_or_else(|| named.missing())?);
        Ok(SearchIndex { database, fields })
    }

    /// Opens a database that ends with this process.
    pub fn temporary() -> Result<SearchIndex, StoreError> {
        SearchIndex::temporary_with(MIGRATIONS, SearchField::DESCRIBED)
    }

    fn temporary_with(
        migrations: &[&str],
        fields: &'static [SearchField],
    ) -> Result<SearchIndex, StoreError> {
        let database = Mutex::new(Shared::temporary(migrations)?);
        Ok(SearchIndex { database, fields })
    }

    /// Runs an action on the database. Its errors name the file.
    fn run<T>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.database.lock().run(act)
    }

    /// Runs a change in one transaction.
    fn transact<T>(
        &self,
        change: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.run(|connection| connection.transact(Sync::Later, change))
    }

    /// Returns how far the items are recorded; None if none ever was.
    pub fn progress(&self) -> Result<Option<Progress>, StoreError> {
        self.run(progress)
    }

    /// Removes all, and begins with the items as they are at a change.
    pub fn start_over(&self, change: ChangeNumber) -> Result<Progress, StoreError> {
        let now = Progress {
            change,
            item: Some(ItemId(0)),
        };
        // Another process may have done so meanwhile.
        let is_of_epoch = |found: &Progress| found.change.epoch == change.epoch;
        self.transact(|transaction| {
            if let Some(found) = progress(transaction)?.filter(is_of_epoch) {
                return Ok(found);
            }
            for sql in [
                "DELETE FROM entry",
                "DELETE FROM value",
                "INSERT INTO words (words) VALUES ('delete-all')",
            ] {
                transaction.execute(sql, &[])?;
            }
            set_progress(transaction, now)?;
            Ok(now)
        })
    }

    /// Has all items of the epoch read again; until then they are found as before.
    pub fn read_again(&self) -> Result<(), StoreError> {
        self.transact(|transaction| transaction.execute("UPDATE progress SET item = 0", &[]))
    }

    /// Records items and removes others, after which the items are recorded up to `until`. Does nothing, and returns
    /// false, if another process has recorded items since `from`.
    pub fn record(
        &self,
        entries: &[SearchEntry],
        gone: &[ItemId],
        from: Progress,
        until: Progress,
    ) -> Result<bool, StoreError> {
        self.transact(|transaction| {
            if progress(transaction)? != Some(from) {
                return Ok(false);
            }
            for item in gone {
                remove(transaction, item.0)?;
            }
            for entry in entries {
                let known = mark(transaction, entry.item)?;
                if known.as_ref() == Some(&entry.mark) {
                    continue;
                }
                if known.is_some() {
                    remove(transaction, entry.item)?;
                }
                put(transaction, entry, self.fields)?;
            }
            set_progress(transaction, until)?;
            Ok(true)
        })
    }

    /// Records one item, or removes it.
    pub fn put(&self, item: ItemId, entry: Option<&SearchEntry>) -> Result<(), StoreError> {
        self.transact(|transaction| {
            remove(transaction, item.0)?;
            entry.map_or(Ok(()), |entry| put(transaction, entry, self.fields))
        })
    }

    /// At most `most` items found, after the first `skipped` of them.
    pub fn find(
        &self,
        wanted: &SearchQuery,
        skipped: usize,
        most: usize,
    ) -> Result<Found, StoreError> {
        let expression = wanted.expression();
        let mut items = self.run(|connection| {
            let count: i64 = connection.value(
                "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)",
                params![&expression, query::limit(MOST_RANKED + 1)],
            )?;
            let order = if count > query::limit(MOST_RANKED) {
                "rowid DESC".to_owned()
            } else {
                format!("{RANK}, rowid DESC")
            };
            let sql = format!(
                "SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY {order} LIMIT ?2 OFFSET ?3"
            );
            let limits = params![
                &expression,
                query::limit(most.saturating_add(1)),
                query::limit(skipped)
            ];
            connection.each(&sql, limits, |row| Ok(ItemId(row.get(0)?)))
        })?;
        let has_more = items.len() > most;
        items.truncate(most);
        Ok(Found { items, has_more })
    }

    /// Whether an item is among those found.
    pub fn is_found(&self, wanted: &SearchQuery, item: ItemId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM words WHERE words MATCH ?1 AND rowid = ?2";
        self.run(|connection| connection.exists(sql, params![wanted.expression(), item.0]))
    }

    /// At most `most` values of a field after one, in the order of their bytes, each with the number of items
    /// that have it.
    pub fn values(
        &self,
        field: SearchField,
        after: &str,
        most: usize,
    ) -> Result<Vec<(String, u64)>, StoreError> {
        let sql = "SELECT text, count(*) FROM value WHERE field = ?1 AND text > ?2
             GROUP BY text ORDER BY text LIMIT ?3";
        let limits = params![field.name(), after, query::limit(most)];
        self.run(|connection| {
            connection.each(sql, limits, |row| {
                Ok((row.get(0)?, row.get::<i64>(1)?.unsigned_abs()))
            })
        })
    }

    /// The number of items that are recorded.
    #[cfg(test)]
    pub fn count(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM entry";
        let count: i64 = self.run(|connection| connection.value(sql, &[]))?;
        Ok(count.unsigned_abs())
    }
}

/// The digest of what is recorded of an item.
fn mark(connection: &Connection, item: i64) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT mark FROM entry WHERE item = ?1";
    connection.first(sql, params![item], |row| row.get(0))
}

fn progress(connection: &Connection) -> Result<Option<Progress>, StoreError> {
    connection.first("SELECT epoch, number, item FROM progress", &[], |row| {
        let item: Option<i64> = row.get(2)?;
        Ok(Progress {
            change: ChangeNumber {
                epoch: row.get(0)?,
                number: row.get(1)?,
            },
            item: item.map(ItemId),
        })
    })
}

fn set_progress(connection: &Connection, progress: Progress) -> Result<(), StoreError> {
    connection.execute(
        "INSERT OR REPLACE INTO progress VALUES (1, ?1, ?2, ?3)",
        params![
            progress.change.epoch,
            progress.change.number,
            progress.item.map(|item| item.0)
        ],
    )
}

fn remove(connection: &Connection, item: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM entry WHERE item = ?1 RETURNING item";
    if connection.exists(sql, params![item])? {
        for sql in [
            "DELETE FROM words WHERE rowid = ?1",
            "DELETE FROM value WHERE item = ?1",
        ] {
            connection.execute(sql, params![item])?;
        }
    }
    Ok(())
}

fn put(
    connection: &Connection,
    entry: &SearchEntry,
    fields: &[SearchField],
) -> Result<(), StoreError> {
    let text = |field: SearchField| {
        let mut all = String::new();
        for (_, text) in entry.texts.iter().filter(|(known, _)| *known == field) {
            if !all.is_empty() {
                // A phrase does not go from one value to the next.
                all.push_str(" \u{1} ");
            }
            all.push_str(text);
        }
        all
    };
    let columns: Vec<String> = fields.iter().map(|field| text(*field)).collect();
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    let places = ", ?".repeat(fields.len());
    let sql = format!(
        "INSERT INTO words (rowid, {}) VALUES (?{places})",
        names.join(", ")
    );
    let mut values = vec![Value::from(entry.item)];
    values.extend(columns.iter().map(Value::from));
    connection.execute(&sql, &values)?;
    for (field, text) in &entry.values {
        let sql = "INSERT OR IGNORE INTO value VALUES (?1, ?2, ?3)";
        connection.execute(sql, params![field.name(), text, entry.item])?;
    }
    let sql = "INSERT INTO entry VALUES (?1, ?2)";
    connection.execute(sql, params![entry.item, &*entry.mark])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: i64, number: i64) -> ChangeNumber {
        ChangeNumber { epoch, number }
    }

    fn progress_at(epoch: i64, number: i64) -> Progress {
        Progress {
            change: at(epoch, number),
            item: None,
        }
    }

    fn entry(item: i64, title: &str, creator: &str, year: &str) -> SearchEntry {
        let texts = vec![
            (SearchField::Title, title.to_owned()),
            (SearchField::Creator, creator.to_owned()),
            (SearchField::Year, year.to_owned()),
        ];
        SearchEntry {
            item,
            mark: format!("{title}{creator}{year}").into_bytes(),
            values: vec![(SearchField::Year, year.to_owned())],
            texts,
        }
    }

    fn found(index: &SearchIndex, text: &str) -> Vec<i64> {
        let query = SearchQuery::parse(text).expect(text);
        let found = index.find(&query, 0, 10).expect(text);
        found.items.iter().map(|item| item.0).collect()
    }

    #[test]
    fn items_are_found_by_their_words() {
        let index = SearchIndex::temporary().expect("a database");
        let start = index.start_over(at(5, 1)).expect("started");
        let until = progress_at(5, 9);
        let entries = [
            entry(1, "Precipitação na Amazônia", "Banon, Gerald", "2009"),
            entry(2, "Rainfall maps", "Souza, Ana", "2009"),
            entry(3, "Maps of Banon", "Lima, J", "2011"),
        ];
        assert!(index.record(&entries, &[], start, until).expect("recorded"));
        // Another process was faster.
        assert!(
            !index
                .record(&entries, &[], start, until)
                .expect("not recorded")
        );
        for (text, expected) in [
            ("amazonia", vec![1]),
            ("PRECIPITACAO", vec![1]),
            ("banon", vec![3, 1]),
            ("creator:banon", vec![1]),
            ("year:2009 -rainfall", vec![1]),
            ("year:2010-2012", vec![3]),
            ("rain*", vec![2]),
            ("\"maps of\"", vec![3]),
            ("\"of maps\"", vec![]),
            ("gerald\"", vec![1]),
        ] {
            assert_eq!(found(&index, text), expected, "{text}");
        }
        let years = index.values(SearchField::Year, "", 10).expect("years");
        assert_eq!(years, [("2009".to_owned(), 2), ("2011".to_owned(), 1)]);
        let later = progress_at(5, 10);
        let changed = [entry(2, "Drought", "Souza, Ana", "2010")];
        assert!(
            index
                .record(&changed, &[ItemId(1)], until, later)
                .expect("recorded")
        );
        assert_eq!(found(&index, "rainfall"), Vec::<i64>::new());
        assert_eq!(found(&index, "drought"), [2]);
        assert_eq!(
            index
                .values(SearchField::Year, "2009", 10)
                .expect("years")
                .len(),
            2
        );
        assert_eq!(index.count().expect("a number"), 2);
        index.start_over(at(6, 1)).expect("started");
        assert_eq!(index.count().expect("a number"), 0);
        assert_eq!(found(&index, "drought"), Vec::<i64>::new());
    }

    #[test]
    fn a_full_disk_is_named_with_the_file() {
        use crate::archive::store::DiskFault;
        use crate::os::testing::TemporaryDirectory;
        use std::os::fd::AsFd;

        let place = TemporaryDirectory::new();
        let directory = place.opened();
        let index = SearchIndex::open(directory.as_fd(), "search.sqlite3").expect("a database");
        let limited = index.run(|connection| connection.exists("PRAGMA max_page_count = 20", &[]));
        limited.expect("a limit");
        let entries: Vec<SearchEntry> = (0..1_000)
            .map(|item| entry(item, &format!("title{item}"), "Lima, J", "2011"))
            .collect();
        let start = index.start_over(at(5, 1)).expect("started");
        let error = index.record(&entries, &[], start, progress_at(5, 9));
        let error = error.expect_err("full");
        assert_eq!(
            error.to_string(),
            "search.sqlite3: database or disk is full"
        );
        assert_eq!(error.disk_fault(), Some(DiskFault::Full));
    }
}
