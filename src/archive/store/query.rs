//! Queries for items, and ranges of keys.

use rusqlite::{Connection, Params, Row};

use super::{Item, Store, StoreError, rows};

/// The condition that a column of keys is below the key bound as `?1`: it begins with that key and
/// a slash. The range ends at "0", the character after "/" in ASCII, so that an index can be used.
pub(super) fn below(column: &str) -> String {
    format!("{column} > ?1 || '/' AND {column} < ?1 || '0'")
}

/// The first key, in the order of the index, after all keys below a key: see [`below`].
pub(super) fn end_below(key: &str) -> String {
    format!("{key}0")
}

/// A number of rows in SQLite's type.
pub(super) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// The rows of a statement, each read by `read`.
pub(super) fn each<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(params)?;
    let mut values = Vec::new();
    while let Some(row) = found.next()? {
        values.push(read(row)?);
    }
    Ok(values)
}

impl Store {
    /// The single item that meets a condition.
    pub(super) fn find(
        &self,
        condition: &str,
        params: impl Params,
    ) -> Result<Option<Item>, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT {} FROM item WHERE {condition}", rows::ITEM);
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query(params)?;
        found.next()?.map(rows::item).transpose()
    }

    /// The items that meet a condition, which may include their order and number.
    pub(super) fn items(
        &self,
        condition: &str,
        params: impl Params,
    ) -> Result<Vec<Item>, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT {} FROM item WHERE {condition}", rows::ITEM);
        each(&connection, &sql, params, rows::item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_lies_below_a_key() {
        let connection = Connection::open_in_memory().expect("a database");
        let create = "CREATE TABLE t (name TEXT);
            INSERT INTO t VALUES ('a'), ('a/'), ('a/b'), ('a/b/c'), ('a.b'), ('a0'), ('ab/c'), ('b/a')";
        connection.execute_batch(create).expect("rows");
        let sql = format!("SELECT name FROM t WHERE {} ORDER BY name", below("name"));
        let found = each(&connection, &sql, ["a"], |row| Ok(row.get::<_, String>(0)?));
        assert_eq!(found.expect("read"), ["a/b", "a/b/c"]);
        assert!(*"a/z" < *end_below("a") && *end_below("a") <= *"a0");
    }
}
