//! Counts: items by state, and items minted in a period.

use super::{Store, StoreError};
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
}

impl Store {
    /// Counts the items. Reads every row.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        let connection = self.lock();
        let sql = "SELECT count(*) FILTER (WHERE state = 'Original'),
                          count(*) FILTER (WHERE state = 'Copy'),
                          count(*) FILTER (WHERE state = 'Deleted') FROM item";
        let (originals, copies, removed): (i64, i64, i64) =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(Counts {
            originals: originals.unsigned_abs(),
            copies: copies.unsigned_abs(),
            removed: removed.unsigned_abs(),
        })
    }

    /// The number of reps with this prefix, including those of removed items, whose date is after
    /// `after` and not after `until`.
    pub fn dated_between(
        &self,
        prefix: &RepPrefix,
        after: &Timestamp,
        until: &Timestamp,
    ) -> Result<u64, StoreError> {
        let connection = self.lock();
        // The suffixes of a prefix sort in the order of their dates.
        let keys =
            [after, until].map(|date| format!("{}/{}", prefix.canonical(), date.rep_suffix()));
        let sql = "SELECT count(*) FROM item WHERE rep_key > ?1 AND rep_key <= ?2";
        let found: i64 = connection.query_row(sql, keys, |row| row.get(0))?;
        Ok(found.unsigned_abs())
    }
}
