//! The levels in which the tree and the index may differ after a crash.

use super::write::Sync;
use super::{Item, Store, StoreError, rows};

impl Store {
    /// Notes that something in these levels, or these items and what is related to them, is about to
    /// change, and that all that has changed in others is on disk; durable when this returns.
    pub fn touch(&self, paths: &[&str], settled: &[String]) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| {
            for path in settled {
                transaction
                    .prepare_cached("DELETE FROM touched WHERE level = ?1")?
                    .execute([path])?;
            }
            for path in paths {
                transaction
                    .prepare_cached("INSERT OR IGNORE INTO touched VALUES (?1)")?
                    .execute([path])?;
            }
            Ok(())
        })
    }

    /// What was touched and not settled since.
    pub fn touched(&self) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT level FROM touched ORDER BY level")?;
        let levels = statement.query_map([], |row| row.get(0))?;
        Ok(levels.collect::<Result<_, _>>()?)
    }

    /// Notes that all that has changed there is on disk.
    pub fn untouch<T: AsRef<str>>(&self, paths: &[T]) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            let mut statement =
                transaction.prepare_cached("DELETE FROM touched WHERE level = ?1")?;
            for path in paths {
                statement.execute([path.as_ref()])?;
            }
            Ok(())
        })
    }

    /// The items, removed ones left out, whose reps lie below this path.
    pub fn items_below(&self, path: &str) -> Result<Vec<Item>, StoreError> {
        self.items_in("rep_key", &path.to_ascii_lowercase(), "")
    }

    /// The items, removed ones left out, that are known by an IBIp with this prefix alone.
    pub fn items_of_prefix(&self, prefix: &str) -> Result<Vec<Item>, StoreError> {
        self.items_in("ibip_key", &prefix.to_ascii_uppercase(), "AND rep IS NULL")
    }

    fn items_in(&self, column: &str, key: &str, more: &str) -> Result<Vec<Item>, StoreError> {
        let connection = self.lock();
        // '0' follows '/' in ASCII: the range holds exactly what lies below the key.
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {} FROM item WHERE {column} > ?1 || '/' AND {column} < ?1 || '0'
             AND state <> 'Deleted' {more}",
            rows::ITEM
        ))?;
        let mut found = statement.query([key])?;
        let mut items = Vec::new();
        while let Some(row) = found.next()? {
            items.push(rows::item(row)?);
        }
        Ok(items)
    }
}
