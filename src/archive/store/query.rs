//! Queries for items, and ranges of keys.

use super::{Item, Store, StoreError, rows};
use crate::sql::engine::Value;

/// The condition that a column of keys is below the key bound as `?1`: it begins with that key and
/// a slash. The range ends at "0", the character after "/" in ASCII, so that an index can be used.
pub(super) fn below(column: &str) -> String {
    format!("{column} > ?1 || '/' AND {column} < ?1 || '0'")
}

/// The first key, in the order of the index, after all keys below a key: see [`below`].
pub(super) fn end_below(key: &str) -> String {
    format!("{key}0")
}

/// A number of rows in the type of the engines.
pub(super) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

impl Store {
    /// The single item that meets a condition, but for those whose rows are held back.
    pub(super) fn find(
        &self,
        condition: &str,
        params: &[Value<'_>],
    ) -> Result<Option<Item>, StoreError> {
        let connection = self.reading_rows();
        let sql = format!("SELECT {} FROM item WHERE {condition}", rows::ITEM);
        connection.first(&sql, params, rows::item)
    }

    /// The items that meet a condition, which may include their order and number.
    pub(super) fn items(
        &self,
        condition: &str,
        params: &[Value<'_>],
    ) -> Result<Vec<Item>, StoreError> {
        let connection = self.reading();
        let sql = format!("SELECT {} FROM item WHERE {condition}", rows::ITEM);
        connection.each(&sql, params, rows::item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::engine::params;

    #[test]
    fn a_range_holds_what_lies_below_a_key() {
        let store = Store::temporary().expect("a store");
        let connection = store.lock();
        for name in ["a", "a/", "a/b", "a/b/c", "a.b", "a0", "ab/c", "b/a"] {
            let sql = "INSERT INTO item (rep, rep_key, state) VALUES (?1, ?1, 'Copy')";
            connection.execute(sql, params![name]).expect("a row");
        }
        let sql = format!(
            "SELECT rep_key FROM item WHERE {} ORDER BY rep_key",
            below("rep_key")
        );
        let found = connection.each(&sql, params!["a"], |row| row.get::<String>(0));
        assert_eq!(found.expect("read"), ["a/b", "a/b/c"]);
        assert!(*"a/z" < *end_below("a") && *end_below("a") <= *"a0");
    }
}
