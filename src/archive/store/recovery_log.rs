//! The recovery log in the index: the dirty regions, where tree and index may differ after a crash,
//! and the changes that concern several items.
//!
//! These entries, and unsettled items, are recovery marks. In a server each has the number of the host that has left
//! it. A host reads the marks of another only after it has taken them over (`presence`), and they stay apart from its
//! own, which are of changes in progress.

use super::query::below;
use super::{Item, ItemId, Store, StoreError};
use crate::sql::engine::{Connection, Sync, params};

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
    /// The relations that the first of them declared before, as a sidecar.
    pub before: Vec<u8>,
}

/// The number that is noted with a mark of this process; None where marks have none.
pub(super) fn noted(connection: &Connection) -> Option<i64> {
    connection.server()?;
    Some(connection.host().unwrap_or_default())
}

/// The condition for marks of this process.
fn own(connection: &Connection) -> String {
    noted(connection).map_or_else(String::new, |host| format!("AND host = {host}"))
}

/// The condition for marks that earlier processes have left: those taken over, in a server. A process that only reads
/// has taken none, and sees all.
pub(super) fn left(connection: &Connection) -> String {
    match connection.host() {
        Some(host) => format!("AND host = -{host}"),
        None => String::new(),
    }
}

/// Deletes marks of joint changes that meet a condition.
fn delete_joint(
    connection: &Connection,
    numbers: impl IntoIterator<Item = JointNumber>,
    whose: &str,
) -> Result<(), StoreError> {
    let sql = format!("DELETE FROM joint WHERE number = ?1 {whose}");
    for number in numbers {
        connection.execute(&sql, params![number.0])?;
    }
    Ok(())
}

/// Deletes marks of dirty regions that meet a condition.
fn delete_dirty<T: AsRef<str>>(
    connection: &Connection,
    levels: &[T],
    whose: &str,
) -> Result<(), StoreError> {
    let sql = format!("DELETE FROM touched WHERE level = ?1 {whose}");
    for level in levels {
        connection.execute(&sql, params![level.as_ref()])?;
    }
    Ok(())
}

fn insert_dirty(connection: &Connection, level: &str) -> Result<(), StoreError> {
    let sql = match noted(connection) {
        None => "INSERT INTO touched (level) VALUES (?1) ON CONFLICT DO NOTHING".to_owned(),
        Some(host) => {
            format!("INSERT INTO touched (level, host) VALUES (?1, {host}) ON CONFLICT DO NOTHING")
        }
    };
    connection.execute(&sql, params![level])
}

impl Store {
    /// Logs a level that is about to change. Durable when this returns.
    pub fn log_dirty(&self, level: &str) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| insert_dirty(transaction, level))
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
            delete_joint(transaction, ended.iter().copied(), &own(transaction))?;
            let (column, value) = match noted(transaction) {
                None => ("", String::new()),
                Some(host) => (", host", format!(", {host}")),
            };
            let sql = format!(
                "INSERT INTO joint (number, places, before{column})
                 VALUES ((SELECT coalesce(max(number), 0) + 1 FROM joint), ?1, ?2{value}) RETURNING number"
            );
            let number = transaction.value(&sql, params![places.join("\n"), before])?;
            Ok(JointNumber(number))
        })
    }

    /// Clears changes that concern several items. Durable when this returns.
    pub fn clear_joint(&self, numbers: &[JointNumber]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        self.write(Sync::Now, |transaction| {
            delete_joint(transaction, numbers.iter().copied(), &own(transaction))
        })
    }

    /// The joint changes that earlier processes have logged and not ended, in their order.
    pub fn joint_changes(&self) -> Result<Vec<LoggedJoint>, StoreError> {
        let connection = self.lock();
        let left = left(&connection);
        let sql =
            format!("SELECT number, places, before FROM joint WHERE 1 = 1 {left} ORDER BY number");
        connection.each(&sql, &[], |row| {
            let places: String = row.get("places")?;
            Ok(LoggedJoint {
                number: JointNumber(row.get("number")?),
                places: places.lines().map(str::to_owned).collect(),
                before: row.get("before")?,
            })
        })
    }

    /// Clears changes that earlier processes have logged. Durable when this returns.
    pub fn clear_left_joint(&self, changes: &[LoggedJoint]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.write(Sync::Now, |transaction| {
            let numbers = changes.iter().map(|change| change.number);
            delete_joint(transaction, numbers, &left(transaction))
        })
    }

    /// The regions that earlier processes have left dirty, in the order of their paths.
    pub fn dirty_regions(&self) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        let left = left(&connection);
        let sql = format!("SELECT DISTINCT level FROM touched WHERE 1 = 1 {left} ORDER BY level");
        connection.each(&sql, &[], |row| row.get(0))
    }

    /// Whether an item is unsettled, and by this process.
    pub fn has_own_mark(&self, item: ItemId) -> Result<bool, StoreError> {
        let connection = self.lock();
        let own = own(&connection);
        let sql = format!("SELECT 1 FROM unsettled WHERE item = ?1 {own}");
        connection.exists(&sql, params![item.0])
    }

    /// Whether earlier processes have left marks.
    pub fn has_left_marks(&self) -> Result<bool, StoreError> {
        let connection = self.lock();
        let left = left(&connection);
        let sql = format!(
            "SELECT 1 FROM unsettled WHERE 1 = 1 {left} UNION ALL SELECT 1 FROM touched WHERE 1 = 1 {left}
             UNION ALL SELECT 1 FROM joint WHERE 1 = 1 {left} LIMIT 1"
        );
        connection.exists(&sql, &[])
    }

    /// Makes a region that an earlier process has left dirty one of this process.
    pub fn inherit_dirty(&self, level: &str) -> Result<(), StoreError> {
        if self.url.is_none() {
            return Ok(());
        }
        self.write(Sync::Now, |transaction| {
            insert_dirty(transaction, level)?;
            delete_dirty(transaction, &[level], &left(transaction))
        })
    }

    /// Clears regions of earlier processes.
    pub fn clear_left_dirty(&self, paths: &[String]) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        self.write(Sync::Later, |transaction| {
            delete_dirty(transaction, paths, &left(transaction))
        })
    }

    /// Clears regions whose changes are on disk.
    pub fn clear_dirty<T: AsRef<str>>(&self, paths: &[T]) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            delete_dirty(transaction, paths, &own(transaction))
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
