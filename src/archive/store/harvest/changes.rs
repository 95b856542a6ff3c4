//! The changes of the records, in parts of whole seconds.
//!
//! A record that changes again moves to the end. So a part that is read after its beginning was listed has what it had
//! then, or the record is in a later one.

use super::Harvest;
use crate::archive::store::StoreError;
use crate::archive::store::query;
use crate::sql::engine::{Row, params};

/// The last change that was noticed of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordChange {
    /// It is there for the first time, or again.
    Created,
    /// Its content differs from what was reported before.
    Updated,
    /// It is there no more.
    Deleted,
}

/// A record with what was last noticed of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRecord {
    /// The canonical spelling of the item's name.
    pub name: String,
    /// The time at which it was noticed, in Unix seconds.
    pub datestamp: i64,
    /// The change that was noticed.
    pub change: RecordChange,
}

/// Records of consecutive seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangePart {
    /// The records, in the order in which their changes were noticed.
    pub records: Vec<ChangedRecord>,
    /// The second with which the next part begins.
    pub next: Option<i64>,
}

impl Harvest {
    /// Returns since when the last `most` changes up to a second are known, and the seconds with which their parts
    /// begin, each of about `part` changes. None until all records have been noted.
    pub fn parts_of_changes(
        &self,
        until: i64,
        part: usize,
        most: usize,
    ) -> Result<Option<(i64, Vec<i64>)>, StoreError> {
        let Some(known_since) = self.known_since()? else {
            return Ok(None);
        };
        let first = self.oldest_of(until, most)?;
        let since = match first {
            Some((first, true)) => known_since.max(first),
            _ => known_since,
        };
        let mut begin = first.map(|(first, _)| first);
        let mut parts = Vec::new();
        while let Some(first) = begin {
            parts.push(first);
            begin = self.end_of_part(first, until, part)?;
        }
        Ok(Some((since, parts)))
    }

    fn known_since(&self) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT coalesce(since, 0) FROM whole";
        self.run(|connection| connection.first(sql, &[], |row| row.get(0)))
    }

    /// The second of the oldest of the last so many changes, and whether there are others before.
    fn oldest_of(&self, until: i64, most: usize) -> Result<Option<(i64, bool)>, StoreError> {
        let sql = "SELECT datestamp FROM record WHERE datestamp <= ?1 ORDER BY datestamp DESC, name DESC LIMIT 1 OFFSET ?2";
        let skipped = query::limit(most.saturating_sub(1));
        self.run(|connection| {
            if let Some(found) = connection.first(sql, params![until, skipped], |row| row.get(0))? {
                return Ok(Some((found, true)));
            }
            let first: Option<i64> = connection.value("SELECT min(datestamp) FROM record", &[])?;
            Ok(first
                .filter(|first| *first <= until)
                .map(|first| (first, false)))
        })
    }

    /// The second with which the part after that of `first` begins.
    fn end_of_part(&self, first: i64, until: i64, part: usize) -> Result<Option<i64>, StoreError> {
        self.run(|connection| {
            let after = |from: i64, skipped: i64| {
                let sql = "SELECT datestamp FROM record WHERE datestamp >= ?1 AND datestamp <= ?2
                    ORDER BY datestamp, name LIMIT 1 OFFSET ?3";
                connection.first(sql, params![from, until, skipped], |row| row.get(0))
            };
            match after(first, query::limit(part))? {
                // More than a part have the same second, and it is not divided.
                Some(at) if at == first => after(first.saturating_add(1), 0),
                at => Ok(at),
            }
        })
    }

    /// The part that begins with a second, with the changes up to another.
    pub fn part_of_changes(
        &self,
        first: i64,
        until: i64,
        part: usize,
    ) -> Result<ChangePart, StoreError> {
        let next = self.end_of_part(first, until, part)?;
        let sql = "SELECT name, datestamp, mark IS NULL AS is_deleted, coalesce(since = datestamp, FALSE) AS is_new
             FROM record
             WHERE datestamp >= ?1 AND datestamp <= ?2 ORDER BY datestamp, name";
        let last = next.map_or(until, |next| next - 1);
        let read = |row: &Row<'_>| {
            let change = match (row.get("is_deleted")?, row.get("is_new")?) {
                (true, _) => RecordChange::Deleted,
                (false, true) => RecordChange::Created,
                (false, false) => RecordChange::Updated,
            };
            Ok(ChangedRecord {
                name: row.get("name")?,
                datestamp: row.get("datestamp")?,
                change,
            })
        };
        let records = self.run(|connection| connection.each(sql, params![first, last], read))?;
        Ok(ChangePart { records, next })
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecordState;
    use super::*;

    fn present(text: &str) -> RecordState {
        RecordState::Present {
            digest: text.as_bytes().to_vec(),
            has_form: false,
        }
    }

    fn note(harvest: &Harvest, name: &str, state: RecordState, now: i64) {
        let noted = harvest.note(&[(name.to_owned(), state)], &|| now);
        noted.expect("noted");
    }

    #[test]
    fn the_last_change_of_each_record() {
        let harvest = Harvest::temporary().expect("a database");
        for (name, state, now) in [
            ("a", present("x"), 1),
            ("b", present("x"), 1),
            ("c", present("x"), 2),
            ("b", present("y"), 3),
            ("c", RecordState::Withdrawn, 4),
            ("d", RecordState::Removed, 4),
        ] {
            note(&harvest, name, state, now);
        }
        let read = |first: i64, until: i64| {
            let part = harvest.part_of_changes(first, until, 9).expect("read");
            let records = part.records.into_iter();
            let records = records.map(|record| (record.name, record.datestamp, record.change));
            records.collect::<Vec<_>>()
        };
        let of = |name: &str, at: i64, change: RecordChange| (name.to_owned(), at, change);
        let (a, b) = (
            of("a", 1, RecordChange::Created),
            of("b", 3, RecordChange::Updated),
        );
        let (c, d) = (
            of("c", 4, RecordChange::Deleted),
            of("d", 4, RecordChange::Deleted),
        );
        assert_eq!(read(0, 9), [a.clone(), b.clone(), c, d]);
        assert_eq!(read(1, 3), [a, b]);
        note(&harvest, "c", present("x"), 5);
        assert_eq!(read(5, 9), [of("c", 5, RecordChange::Created)]);
    }

    /// Every change is in one part, whatever the seconds hold.
    #[test]
    fn parts_are_of_whole_seconds() {
        let harvest = Harvest::temporary().expect("a database");
        assert_eq!(harvest.parts_of_changes(9, 3, 99).expect("read"), None);
        harvest.set_whole(&|| 0).expect("recorded");
        for (second, count) in [(1, 2), (2, 2), (3, 7), (5, 1), (9, 1)] {
            for index in 0..count {
                note(&harvest, &format!("{second}{index}"), present("x"), second);
            }
        }
        let parts = |until: i64, most: usize| {
            let parts = harvest.parts_of_changes(until, 3, most);
            parts.expect("read").expect("all noted")
        };
        let counts = |until: i64, most: usize| -> Vec<(i64, usize)> {
            let firsts = parts(until, most).1.into_iter();
            let count = |first: i64| {
                let part = harvest.part_of_changes(first, until, 3).expect("read");
                (first, part.records.len())
            };
            firsts.map(count).collect()
        };
        assert_eq!(counts(9, 99), [(1, 2), (2, 2), (3, 7), (5, 2)]);
        assert_eq!(counts(8, 99), [(1, 2), (2, 2), (3, 7), (5, 1)]);
        assert_eq!((parts(9, 99).0, parts(9, 4).0), (0, 3));
        // Those of the oldest second all, even if that is more.
        assert_eq!(counts(9, 4), [(3, 7), (5, 2)]);
        assert_eq!(counts(0, 4), []);
    }
}
