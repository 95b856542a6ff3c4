//! The latest events of an item, of which there may be very many.

use super::{EventRow, Store, StoreError, query};
use crate::formats::history::SALT;
use crate::formats::item::Names;
use crate::sql::engine::{Row, params};
use ibi::{Ibip, Rep, message};

impl Store {
    /// The latest events of an item, at most `most`, in their order.
    pub fn latest_events_of(
        &self,
        names: &Names,
        most: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let connection = self.reading();
        let sql = "SELECT number, logged, salt, line FROM event WHERE item = ?1
             ORDER BY number DESC LIMIT ?2";
        let keys = [
            names.rep().map(Rep::canonical),
            names.ibip().map(Ibip::canonical),
        ];
        let mut events = Vec::new();
        // Those of an item that has got another name are below both.
        for key in keys.into_iter().flatten() {
            events.extend(connection.each(sql, params![key, query::limit(most)], row)?);
        }
        events.sort_by_key(|event| event.number);
        let before = events.len().saturating_sub(most);
        Ok(events.split_off(before))
    }
}

fn row(row: &Row<'_>) -> Result<EventRow, StoreError> {
    let salt: Vec<u8> = row.get("salt")?;
    let salt: Result<[u8; SALT], _> = salt.try_into();
    Ok(EventRow {
        number: row.get("number")?,
        logged: row.get("logged")?,
        salt: salt.map_err(|_| StoreError::Broken {
            what: message!("event.salt has another length"),
        })?,
        line: row.get("line")?,
    })
}
