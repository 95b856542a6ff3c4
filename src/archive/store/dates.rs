//! The records of the index about the Archive itself: the dates given out, and `archive.ibi`.

use super::{Store, StoreError};
use ibi::Timestamp;
use ibi::message;

impl Store {
    /// The last date given out, as last recorded. Later dates may have been given out since, up to
    /// [`Store::reserved_date`].
    pub fn last_date(&self) -> Result<Option<Timestamp>, StoreError> {
        self.ledger("last")
    }

    /// The date up to which dates may have been given out since the last one was recorded; None if
    /// the last one is exact.
    pub fn reserved_date(&self) -> Result<Option<Timestamp>, StoreError> {
        self.ledger("reserved")
    }

    fn ledger(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        let sql = format!("SELECT {column} FROM ledger");
        let date: Option<Option<String>> = self.lock().first(&sql, &[], |row| row.get(0))?;
        date.flatten()
            .map(|text| {
                Timestamp::parse_rfc3339(&text).map_err(|_| StoreError::Broken {
                    what: message!("ledger.{column} is '{text}'", column, text),
                })
            })
            .transpose()
    }

    /// `archive.ibi` as it was when the store was last used, byte for byte.
    pub fn facts(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT text FROM facts";
        self.lock().first(sql, &[], |row| row.get(0))
    }
}
