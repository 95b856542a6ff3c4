//! Events in the log, as the index knows them.

use std::collections::HashSet;

use super::history::insert;
use super::{Store, StoreError};
use crate::formats::history::SALT;
use crate::sql::engine::{Connection, Sync, params};

/// An event as it is in the log, or was left for it.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The random bytes.
    pub salt: [u8; SALT],
    /// The line.
    pub line: String,
    /// The key of the item.
    pub item: Option<String>,
}

impl Logged {
    fn insert(&self, connection: &Connection) -> Result<(), StoreError> {
        insert(connection, self.item.clone(), &self.salt, &self.line)
    }
}

impl Store {
    /// The number of the events that the index knows to be in the log.
    pub fn logged_events(&self) -> Result<i64, StoreError> {
        logged_events(&self.reading())
    }

    /// Notes that as many of the events that wait are in the log.
    pub fn note_logged(&self, count: usize) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| note_logged(transaction, count))
    }

    /// Records events that follow in the log. They may be among those that wait, which are numbered after them.
    pub fn put_logged(&self, events: &[Logged]) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            let known = logged_events(transaction)?;
            let sql = "SELECT name, salt, line FROM event LEFT JOIN event_item ON first = item
                       WHERE number > ?1 ORDER BY number";
            let waiting = transaction.each(sql, params![known], |row| {
                let cells: (Option<String>, Vec<u8>, String) =
                    (row.get("name")?, row.get("salt")?, row.get("line")?);
                Ok(cells)
            })?;
            transaction.execute("DELETE FROM event WHERE number > ?1", params![known])?;
            if !waiting.is_empty() {
                transaction.execute("DELETE FROM event_item WHERE first > ?1", params![known])?;
            }
            for event in events {
                event.insert(transaction)?;
            }
            note_logged(transaction, events.len())?;
            let salts: HashSet<&[u8]> = events.iter().map(|it| &it.salt[..]).collect();
            for (item, salt, line) in waiting {
                if !salts.contains(&salt[..]) {
                    insert(transaction, item, &salt, &line)?;
                }
            }
            Ok(())
        })
    }

    /// Records events that were left for the log, but those that wait already. They are on disk when this returns.
    pub fn put_left(&self, events: &[Logged]) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| {
            let sql = "SELECT salt FROM event WHERE number > ?1";
            let known = params![logged_events(transaction)?];
            let waiting = transaction.each(sql, known, |row| row.get("salt"))?;
            let waiting: HashSet<Vec<u8>> = waiting.into_iter().collect();
            let mut new = events.iter().filter(|it| !waiting.contains(&it.salt[..]));
            new.try_for_each(|event| event.insert(transaction))
        })
    }
}

fn logged_events(connection: &Connection) -> Result<i64, StoreError> {
    connection.value("SELECT size FROM event_log", &[])
}

fn note_logged(connection: &Connection, count: usize) -> Result<(), StoreError> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    connection.execute("UPDATE event_log SET size = size + ?1", params![count])
}
