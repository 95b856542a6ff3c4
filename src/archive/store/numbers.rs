//! Counts: items by state, and items minted in a period.

use super::{Store, StoreError};
use crate::sql::engine::params;
use ibi::{RepPrefix, Timestamp};

/// The number of items in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Originals of this Archive.
    pub originals: u64,
    /// Copies of other Archives' originals.
    pub copies: u64,
    /// Removed items that have a tombstone.
    pub removed: u64,
    /// Originals and copies that are withdrawn.
    pub withdrawn: u64,
}

impl Store {
    /// Counts the items. Reads every row.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        let sql = "SELECT count(*) FILTER (WHERE state = 'Original'),
                          count(*) FILTER (WHERE state = 'Copy'),
                          count(*) FILTER (WHERE state = 'Deleted'),
                          count(*) FILTER (WHERE state <> 'Deleted' AND life LIKE '%withdrawn %') FROM item";
        let counts = self.reading().first(sql, &[], |row| {
            Ok(Counts {
                originals: row.get::<i64>(0)?.unsigned_abs(),
                copies: row.get::<i64>(1)?.unsigned_abs(),
                removed: row.get::<i64>(2)?.unsigned_abs(),
                withdrawn: row.get::<i64>(3)?.unsigned_abs(),
            })
        })?;
        Ok(counts.unwrap_or_default())
    }

    /// The number of reps with this prefix, including those of removed items, whose date is after
    /// `after` and not after `until`.
    pub fn dated_between(
        &self,
        prefix: &RepPrefix,
        after: &Timestamp,
        until: &Timestamp,
    ) -> Result<u64, StoreError> {
        // The suffixes of a prefix sort in the order of their dates.
        let key = |date: &Timestamp| format!("{}/{}", prefix.canonical(), date.rep_suffix());
        let sql = "SELECT count(*) FROM item WHERE rep_key > ?1 AND rep_key <= ?2";
        let found: i64 = self.reading().value(sql, params![key(after), key(until)])?;
        Ok(found.unsigned_abs())
    }
}
