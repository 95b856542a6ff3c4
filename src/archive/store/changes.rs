//! The items that have changed since an instant: each change has a number.

use super::record::NEXT_CHANGE;
use super::{Item, ItemId, Store, StoreError, query};
use crate::sql::engine::{Connection, Sync, params};
use ibi::message;

/// The number of a change, with which it can be said what came after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeNumber {
    /// Numbers of another epoch cannot be compared: all items were recorded again.
    pub epoch: i64,
    /// Greater than those of all changes before.
    pub number: i64,
}

/// Numbers of items to which something has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// They are new.
    pub added: u64,
    /// They were known before.
    pub changed: u64,
    /// They are removed.
    pub removed: u64,
}

impl Store {
    /// The number of the last change.
    pub fn last_change(&self) -> Result<ChangeNumber, StoreError> {
        let sql = "SELECT number, (SELECT coalesce(max(changed), 0) FROM item WHERE changed > 0)
            FROM epoch";
        let found = self.reading().first(sql, &[], |row| {
            Ok(ChangeNumber {
                epoch: row.get(0)?,
                number: row.get(1)?,
            })
        })?;
        found.ok_or_else(|| StoreError::Broken {
            what: message!("table epoch is empty"),
        })
    }

    /// At most `most` items whose last change is after one, in the order of their changes, each with the
    /// number of its last change. Removed items are among them.
    pub fn changed_after(&self, number: i64, most: usize) -> Result<Vec<(i64, Item)>, StoreError> {
        let connection = self.reading();
        let sql = format!(
            "SELECT {}, changed FROM item WHERE changed > ?1 AND changed > 0 ORDER BY changed LIMIT ?2",
            super::rows::ITEM
        );
        connection.each(&sql, params![number, query::limit(most)], |row| {
            Ok((row.get("changed")?, super::rows::item(row)?))
        })
    }

    /// The number of items that were added, changed and removed after a change, of which the newest item had the
    /// number `item`. An item counts once, for what it is now.
    pub fn count_after(&self, number: i64, item: ItemId) -> Result<ChangeCounts, StoreError> {
        let sql = "SELECT count(*) FILTER (WHERE id > ?2 AND state <> 'Deleted') AS added,
                    count(*) FILTER (WHERE id <= ?2 AND state <> 'Deleted') AS changed,
                    count(*) FILTER (WHERE state = 'Deleted') AS removed
             FROM item WHERE changed > ?1 AND changed > 0";
        let counts = self.reading().first(sql, params![number, item.0], |row| {
            let count = |column: &str| -> Result<u64, StoreError> {
                Ok(row.get::<i64>(column)?.unsigned_abs())
            };
            Ok(ChangeCounts {
                added: count("added")?,
                changed: count("changed")?,
                removed: count("removed")?,
            })
        })?;
        Ok(counts.unwrap_or_default())
    }

    /// Records that something about an item has changed that the index does not contain, such as its
    /// description.
    pub(in crate::archive) fn note_change(&self, item: ItemId) -> Result<(), StoreError> {
        if self.arrivals.item(item).is_some() {
            // Its row has the number of a later change.
            return Ok(());
        }
        self.write(Sync::Later, |transaction| note(transaction, item))
    }
}

/// Gives an item the number of a new change.
pub(super) fn note(connection: &Connection, item: ItemId) -> Result<(), StoreError> {
    let sql = format!("UPDATE item SET changed = {NEXT_CHANGE} WHERE id = ?1");
    connection.execute(&sql, params![item.0])
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;
    use crate::formats::item::{Names, State};
    use ibi::Ibi;

    /// The query of a report does not read all items.
    #[test]
    fn changes_are_counted_by_the_index() {
        let store = Store::temporary().expect("a store");
        let put = |text: &str, state: State| {
            let names = Names::from(Ibi::parse(text).expect("an identifier"));
            store.put(&Record::bare(names, state)).expect("recorded")
        };
        let first = put("8JMKD3MGP8W/34PGRBS", State::Copy);
        let number = store.last_change().expect("a number").number;
        put("8JMKD3MGP8W/34PGRBK", State::Copy);
        put("8JMKD3MGP8W/34PGRBS", State::Deleted);
        let counts = store.count_after(number, first).expect("counts");
        assert_eq!((counts.added, counts.changed, counts.removed), (1, 0, 1));
        let plan: String = store
            .lock()
            .first(
                "EXPLAIN QUERY PLAN SELECT count(*) FILTER (WHERE id > 7 AND state <> 'Deleted')
                 FROM item WHERE changed > ?1 AND changed > 0",
                params![number],
                |row| row.get("detail"),
            )
            .expect("a plan")
            .expect("a line");
        assert!(plan.contains("USING INDEX item_by_change"), "{plan}");
    }
}
