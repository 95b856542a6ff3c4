//! The recovery log in the index: the dirty regions, where tree and index may differ after a crash.

use super::query::below;
use super::transaction::Sync;
use super::{Item, Store, StoreError};

impl Store {
    /// Logs levels or items that are about to change, and clears regions whose changes are on disk.
    /// Durable when this returns.
    pub fn log_dirty(&self, paths: &[&str], settled: &[String]) -> Result<(), StoreError> {
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

    /// The dirty regions, in the order of their paths.
    pub fn dirty_regions(&self) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT level FROM touched ORDER BY level")?;
        let levels = statement.query_map([], |row| row.get(0))?;
        Ok(levels.collect::<Result<_, _>>()?)
    }

    /// Clears regions whose changes are on disk.
    pub fn clear_dirty<T: AsRef<str>>(&self, paths: &[T]) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            let mut statement =
                transaction.prepare_cached("DELETE FROM touched WHERE level = ?1")?;
            for path in paths {
                statement.execute([path.as_ref()])?;
            }
            Ok(())
        })
    }

    /// The items below this path of the rep tree, without removed ones.
    pub fn items_below(&self, path: &str) -> Result<Vec<Item>, StoreError> {
        self.items_in("rep_key", &path.to_ascii_lowercase(), "")
    }

    /// The items known only by an IBIp with this prefix, without removed ones.
    pub fn items_of_prefix(&self, prefix: &str) -> Result<Vec<Item>, StoreError> {
        self.items_in("ibip_key", &prefix.to_ascii_uppercase(), "AND rep IS NULL")
    }

    fn items_in(&self, column: &str, key: &str, more: &str) -> Result<Vec<Item>, StoreError> {
        let below = below(column);
        self.items(&format!("{below} AND state <> 'Deleted' {more}"), [key])
    }
}
