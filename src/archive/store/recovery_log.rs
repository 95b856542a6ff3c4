//! The recovery log in the index: the dirty regions, where tree and index may differ after a crash,
//! and the changes that concern several items.

use super::engine::{Connection, Sync, params};
use super::query::below;
use super::{Item, Store, StoreError};

/// The number of a logged change that concerns several items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointNumber(i64);

/// A logged change that concerns several items.
#[derive(Debug)]
pub struct LoggedJoint {
    /// Its number.
    pub number: JointNumber,
    /// The paths of the items whose sidecars change.
    pub places: Vec<String>,
    /// What the first of them declared before, as a sidecar.
    pub before: Vec<u8>,
}

fn delete_joint(connection: &Connection, numbers: &[JointNumber]) -> Result<(), StoreError> {
    for number in numbers {
        connection.execute("DELETE FROM joint WHERE number = ?1", params![number.0])?;
    }
    Ok(())
}

impl Store {
    /// Logs a level that is about to change. Durable when this returns.
    pub fn log_dirty(&self, level: &str) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| {
            let sql = "INSERT INTO touched (level) VALUES (?1) ON CONFLICT DO NOTHING";
            transaction.execute(sql, params![level])
        })
    }

    /// Logs a change that concerns several items, and clears changes that have ended. Durable when
    /// this returns.
    pub fn log_joint(
        &self,
        places: &[String],
        before: &[u8],
        ended: &[JointNumber],
    ) -> Result<JointNumber, StoreError> {
        self.write(Sync::Now, |transaction| {
            delete_joint(transaction, ended)?;
            let sql = "INSERT INTO joint (number, places, before)
                VALUES ((SELECT coalesce(max(number), 0) + 1 FROM joint), ?1, ?2) RETURNING number";
            let number = transaction.value(sql, params![places.join("\n"), before])?;
            Ok(JointNumber(number))
        })
    }

    /// Clears changes that concern several items. Durable when this returns.
    pub fn clear_joint(&self, numbers: &[JointNumber]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        self.write(Sync::Now, |transaction| delete_joint(transaction, numbers))
    }

    /// The logged changes that concern several items, in their order.
    pub fn joint_changes(&self) -> Result<Vec<LoggedJoint>, StoreError> {
        let sql = "SELECT number, places, before FROM joint ORDER BY number";
        self.lock().each(sql, &[], |row| {
            let places: String = row.get("places")?;
            Ok(LoggedJoint {
                number: JointNumber(row.get("number")?),
                places: places.lines().map(str::to_owned).collect(),
                before: row.get("before")?,
            })
        })
    }

    /// The dirty regions, in the order of their paths.
    pub fn dirty_regions(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT level FROM touched ORDER BY level";
        self.lock().each(sql, &[], |row| row.get(0))
    }

    /// Clears regions whose changes are on disk.
    pub fn clear_dirty<T: AsRef<str>>(&self, paths: &[T]) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            for path in paths {
                let sql = "DELETE FROM touched WHERE level = ?1";
                transaction.execute(sql, params![path.as_ref()])?;
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
        self.items_in(
            "ibip_key",
            &ibi::ibip::prefix_key(prefix),
            "AND rep IS NULL",
        )
    }

    fn items_in(&self, column: &str, key: &str, more: &str) -> Result<Vec<Item>, StoreError> {
        let below = below(column);
        self.items(
            &format!("{below} AND state <> 'Deleted' {more}"),
            params![key],
        )
    }
}
