//! Events in the log, as the index knows them.

use std::collections::HashMap;
use std::ops::Range;

use super::history::{COLUMNS, insert, row};
use super::{EventRow, Store, StoreError};
use crate::formats::history::SALT;
use crate::sql::engine::{Sync, params};

/// An event as it is in the log, or was left for it.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Its number there; None if it is not there yet.
    pub number: Option<i64>,
    /// The random bytes.
    pub salt: [u8; SALT],
    /// The line.
    pub line: String,
    /// The key of the item.
    pub item: Option<String>,
}

impl Store {
    /// The numbers of the events that wait for the log, by their salts.
    pub fn waiting_salts(&self) -> Result<HashMap<Vec<u8>, i64>, StoreError> {
        let sql = "SELECT salt, number FROM event WHERE logged IS NULL";
        let waiting = self
            .reading()
            .each(sql, &[], |row| Ok((row.get("salt")?, row.get("number")?)));
        waiting.map(|waiting: Vec<_>| waiting.into_iter().collect())
    }

    /// Records events that are in the log or were left for it: those that wait get their numbers, and others are new to the
    /// index.
    pub fn put_logged(
        &self,
        events: &[Logged],
        waiting: &HashMap<Vec<u8>, i64>,
        sync: Sync,
    ) -> Result<(), StoreError> {
        self.write(sync, |transaction| {
            for event in events {
                let Logged {
                    number, salt, line, ..
                } = event;
                if let Some(known) = waiting.get(&salt[..]) {
                    let sql = "UPDATE event SET logged = ?2 WHERE number = ?1";
                    transaction.execute(sql, params![*known, *number])?;
                } else {
                    insert(transaction, event.item.clone(), salt, line, *number)?;
                }
            }
            Ok(())
        })
    }

    /// The events with these numbers in the log, in their order there.
    pub fn logged_in(&self, numbers: Range<u64>) -> Result<Vec<EventRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM event WHERE logged >= ?1 AND logged < ?2 ORDER BY logged"
        );
        let Range { start, end } = numbers;
        let numbers = params![start.cast_signed(), end.cast_signed()];
        self.reading().each(&sql, numbers, row)
    }
}
