//! The content of items in numbers, so that no request has to walk through an item.
//!
//! An item has a row only while nothing in it changes. Before the first change in a block of items, the block is marked,
//! durably and once for any number of later changes; a start after a crash removes the rows of marked blocks. So a row
//! that is read is right.

use super::recovery_log::{left, noted};
use super::{Item, ItemId, Store, StoreError, query, random_number, rows};
use crate::sql::engine::{Connection, Sync, Value, params};
use ibi::Timestamp;

/// The number of items that one mark is for.
const BLOCK: i64 = 4096;

/// The block of all items.
const ALL: i64 = -1;

/// The content of an item, as far as a reader may read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentStatistics {
    /// The newest time of its files and directories; None if there are none.
    pub newest: Option<Timestamp>,
    /// The number of its regular files.
    pub files: u64,
    /// Their length in bytes.
    pub bytes: u64,
}

/// The content of all items that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentTotals {
    /// The number of items of which it is known.
    pub items: u64,
    /// The number of their regular files.
    pub files: u64,
    /// Their length in bytes.
    pub bytes: u64,
}

/// What is to be recorded of an item.
#[derive(Clone, Debug)]
pub struct ContentRow {
    /// The item.
    pub item: ItemId,
    /// The stamp of its row when the counting began; None if it had no row.
    pub stamp: Option<i64>,
    /// What was counted.
    pub found: ContentStatistics,
}

/// The block of an item.
pub(in crate::archive) fn block_of(item: ItemId) -> i64 {
    item.0 / BLOCK
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The condition that a column of item numbers is in a block.
fn in_block(block: i64) -> String {
    match block {
        ALL => "1 = 1".to_owned(),
        block => {
            let first = block * BLOCK;
            format!("item >= {first} AND item < {}", first + BLOCK)
        }
    }
}

fn mark(connection: &Connection, block: i64) -> Result<(), StoreError> {
    let sql = match noted(connection) {
        None => "INSERT INTO content_mark (block) VALUES (?1) ON CONFLICT DO NOTHING".to_owned(),
        Some(host) => format!(
            "INSERT INTO content_mark (block, host) VALUES (?1, {host}) ON CONFLICT DO NOTHING"
        ),
    };
    connection.execute(&sql, params![block])
}

fn delete(connection: &Connection, items: &[ItemId]) -> Result<(), StoreError> {
    for item in items {
        connection.execute("DELETE FROM content WHERE item = ?1", params![item.0])?;
    }
    Ok(())
}

impl Store {
    /// What is known of the content of an item for a reader.
    pub fn content(
        &self,
        item: ItemId,
        reader: u32,
    ) -> Result<Option<ContentStatistics>, StoreError> {
        let sql = "SELECT newest, files, bytes FROM content WHERE item = ?1 AND reader = ?2";
        let reader = i64::from(reader);
        let found = self.reading().first(sql, params![item.0, reader], |row| {
            let newest: Option<String> = row.get("newest")?;
            Ok(ContentStatistics {
                newest: newest
                    .map(|text| rows::timestamp("content", "newest", &text))
                    .transpose()?,
                files: row.get::<i64>("files")?.unsigned_abs(),
                bytes: row.get::<i64>("bytes")?.unsigned_abs(),
            })
        })?;
        Ok(found)
    }

    /// The sums over all items whose content is known.
    pub fn content_totals(&self) -> Result<ContentTotals, StoreError> {
        let sql = "SELECT count(*) AS items, CAST(coalesce(sum(files), 0) AS BIGINT) AS files,
            CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM content";
        let found = self.reading().first(sql, &[], |row| {
            let number = |column: &str| -> Result<u64, StoreError> {
                Ok(row.get::<i64>(column)?.unsigned_abs())
            };
            Ok(ContentTotals {
                items: number("items")?,
                files: number("files")?,
                bytes: number("bytes")?,
            })
        })?;
        Ok(found.unwrap_or_default())
    }

    /// The stamp of the row of an item.
    pub(in crate::archive) fn content_stamp(
        &self,
        item: ItemId,
    ) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT stamp FROM content WHERE item = ?1";
        self.reading_rows()
            .first(sql, params![item.0], |row| row.get(0))
    }

    /// Items that are not removed and have no row, after a number.
    pub(in crate::archive) fn uncounted(
        &self,
        after: ItemId,
        most: usize,
    ) -> Result<Vec<Item>, StoreError> {
        self.items(
            "id > ?1 AND state <> 'Deleted' AND NOT EXISTS (SELECT 1 FROM content WHERE content.item = item.id)
             ORDER BY id LIMIT ?2",
            params![after.0, query::limit(most)],
        )
    }

    /// Marks the block of an item, whose content is about to change. Durable when this returns.
    pub(in crate::archive) fn mark_content(&self, block: i64) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| mark(transaction, block))
    }

    /// The same for all items.
    pub(in crate::archive) fn mark_all_content(&self) -> Result<(), StoreError> {
        self.mark_content(ALL)
    }

    /// Removes the rows of items whose content changes, and returns those that had one. Writes nothing if they have none.
    pub(in crate::archive) fn forget_content(
        &self,
        items: &[ItemId],
    ) -> Result<Vec<ItemId>, StoreError> {
        let mut items = items.to_vec();
        items.sort_unstable();
        let mut counted = Vec::new();
        let sql = "SELECT item FROM content WHERE item >= ?1 AND item <= ?2";
        for near in items.chunk_by(|one, other| block_of(*one) == block_of(*other)) {
            let (Some(first), Some(last)) = (near.first(), near.last()) else {
                continue;
            };
            // No row is of an item that arrives.
            self.reading_rows()
                .visit(sql, params![first.0, last.0], |row| {
                    let item = ItemId(row.get(0)?);
                    if near.binary_search(&item).is_ok() {
                        counted.push(item);
                    }
                    Ok::<(), StoreError>(())
                })?;
        }
        if !counted.is_empty() {
            self.write(Sync::Later, |transaction| delete(transaction, &counted))?;
        }
        Ok(counted)
    }

    /// Removes all rows.
    pub(in crate::archive) fn forget_all_content(&self) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            transaction.execute("DELETE FROM content", &[])
        })
    }

    /// Records what was counted for a reader. Returns for each item whether it was recorded: not if its row is another one
    /// than when the counting began, or the item is not there any more.
    pub(in crate::archive) fn record_content(
        &self,
        reader: u32,
        counted: &[ContentRow],
    ) -> Result<Vec<bool>, StoreError> {
        let stamp = random_number()?;
        self.write(Sync::Later, |transaction| {
            let record = |row: &ContentRow| {
                let newest = row.found.newest.as_ref().map(Timestamp::to_rfc3339);
                let mut values: Vec<Value<'_>> = vec![
                    Value::from(row.item.0),
                    Value::from(i64::from(reader)),
                    Value::from(newest),
                    Value::from(signed(row.found.files)),
                    Value::from(signed(row.found.bytes)),
                    Value::from(stamp),
                ];
                let sql = match row.stamp {
                    None => {
                        "INSERT INTO content (item, reader, newest, files, bytes, stamp)
                         SELECT id, ?2, ?3, ?4, ?5, ?6 FROM item WHERE id = ?1 AND state <> 'Deleted'
                         ON CONFLICT DO NOTHING RETURNING item"
                    }
                    Some(before) => {
                        values.push(Value::from(before));
                        "UPDATE content SET reader = ?2, newest = ?3, files = ?4, bytes = ?5, stamp = ?6
                         WHERE item = ?1 AND stamp = ?7 RETURNING item"
                    }
                };
                transaction.exists(sql, &values)
            };
            counted.iter().map(record).collect()
        })
    }

    /// Removes the rows of the blocks that earlier processes have marked, and these marks. Returns whether there were any.
    pub(in crate::archive) fn recover_content(&self) -> Result<bool, StoreError> {
        let left = left(&self.lock());
        let sql = format!("SELECT DISTINCT block FROM content_mark WHERE 1 = 1 {left}");
        let blocks: Vec<i64> = self.lock().each(&sql, &[], |row| row.get(0))?;
        if blocks.is_empty() {
            return Ok(false);
        }
        self.write(Sync::Now, |transaction| {
            for block in &blocks {
                let sql = format!("DELETE FROM content WHERE {}", in_block(*block));
                transaction.execute(&sql, &[])?;
                let sql = format!("DELETE FROM content_mark WHERE block = ?1 {left}");
                transaction.execute(&sql, params![*block])?;
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// Removes the rows of the items whose content may still change, and the marks of this process. Durable when this
    /// returns.
    pub(in crate::archive) fn end_content(&self, changing: &[ItemId]) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| {
            delete(transaction, changing)?;
            let own = match noted(transaction) {
                None => String::new(),
                Some(host) => format!("WHERE host = {host}"),
            };
            transaction.execute(&format!("DELETE FROM content_mark {own}"), &[])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::store::Record;
    use crate::formats::item::{Names, State};
    use ibi::Ibi;

    const READER: u32 = 65534;

    fn put(store: &Store, ibip: &str, state: State) -> ItemId {
        let names = Names::from(ibip.parse::<Ibi>().expect("an identifier"));
        store.put(&Record::bare(names, state)).expect("an item")
    }

    fn row(item: ItemId, stamp: Option<i64>, files: u64) -> ContentRow {
        let newest = Some(Timestamp::from_unix(1_700_000_000, 123_456_789));
        ContentRow {
            item,
            stamp,
            found: ContentStatistics {
                newest,
                files,
                bytes: 10 * files,
            },
        }
    }

    #[test]
    fn a_row_is_written_over_the_one_that_was_seen_alone() {
        let store = Store::temporary().expect("a store");
        let item = put(&store, "8JMKD3MGP8W/34PGRBS", State::Copy);
        let record = |stamp, files| {
            let recorded = store.record_content(READER, &[row(item, stamp, files)]);
            recorded.expect("written")[0]
        };
        let files = || Some(store.content(item, READER).expect("read")?.files);
        assert!(record(None, 1));
        let found = store.content(item, READER).expect("read");
        assert_eq!(found, Some(row(item, None, 1).found));
        assert_eq!(store.content(item, READER + 1).expect("read"), None);
        // Another host has counted meanwhile.
        let first = store.content_stamp(item).expect("read");
        assert!(!record(None, 2));
        assert_eq!(files(), Some(1));
        assert!(record(first, 3));
        assert!(!record(first, 4));
        assert_eq!(files(), Some(3));
        assert_eq!(store.content_totals().expect("read").bytes, 30);
        store.forget_content(&[item]).expect("written");
        assert_eq!(files(), None);
        assert!(!record(first, 5));
    }

    #[test]
    fn a_crash_removes_the_rows_of_marked_blocks() {
        let store = Store::temporary().expect("a store");
        let near = put(&store, "8JMKD3MGP8W/34PGRBS", State::Copy);
        let sql = "UPDATE item SET id = ?1 WHERE id = ?2";
        let far = ItemId(near.0 + BLOCK);
        let moved = store.lock().execute(sql, params![far.0, near.0]);
        moved.expect("moved");
        let near = put(&store, "8JMKD3MGP8W/34PGRBT", State::Copy);
        let near_id = ItemId(1);
        let moved = store.lock().execute(sql, params![near_id.0, near.0]);
        moved.expect("moved");
        let rows = [row(near_id, None, 1), row(far, None, 1)];
        assert_eq!(
            store.record_content(READER, &rows).expect("written"),
            [true, true]
        );
        let is_known = |item| store.content(item, READER).expect("read").is_some();
        assert!(!store.recover_content().expect("nothing to do"));
        store.mark_content(far.0 / BLOCK).expect("marked");
        assert!(store.recover_content().expect("done"));
        assert!(is_known(near_id) && !is_known(far));
        assert!(!store.recover_content().expect("nothing to do"));
        store.mark_content(near_id.0 / BLOCK).expect("marked");
        store.end_content(&[]).expect("ended");
        assert!(!store.recover_content().expect("nothing to do"));
        assert!(is_known(near_id));
        store.mark_all_content().expect("marked");
        assert!(store.recover_content().expect("done"));
        assert!(!is_known(near_id));
    }

    #[test]
    fn a_removed_item_has_no_row() {
        let store = Store::temporary().expect("a store");
        let item = put(&store, "8JMKD3MGP8W/34PGRBS", State::Copy);
        let uncounted = || store.uncounted(ItemId(0), 10).expect("read").len();
        assert_eq!(uncounted(), 1);
        let record = || {
            store
                .record_content(READER, &[row(item, None, 1)])
                .expect("written")[0]
        };
        assert!(record());
        assert_eq!(uncounted(), 0);
        assert_eq!(put(&store, "8JMKD3MGP8W/34PGRBS", State::Deleted), item);
        assert_eq!(store.content(item, READER).expect("read"), None);
        assert!(!record());
        assert_eq!(uncounted(), 0);
    }
}
