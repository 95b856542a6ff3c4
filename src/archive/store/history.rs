//! Events: what was done to items and to the store. They are recorded in the transaction of the change that they tell, and
//! wait there for the log of the store, whose files hold them for good. Those that wait are one after the other in one table, so
//! that a change writes one page more; they are found by their items' names once they are in the log.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::{By, Item, ItemId, Record, Store, StoreError, query, random_bytes, rows};
use crate::formats::history::earlier::Earlier;
use crate::formats::history::{Agent, Event, EventKind, SALT, item_in};
use crate::formats::item::{Life, Names, State};
use crate::os::clock::{Clock, SystemClock};
use crate::os::identity;
use crate::sql::engine::{Connection, Row, Sync, params};
use ibi::{Ibip, Rep, Timestamp, message};

/// The most names of users that are remembered.
const MOST_NAMES: usize = 1_000;

/// An event as the log has it, or will have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// The number in the order in which events were told, from 1 on.
    pub number: i64,
    /// The number in the log; None if it is not there yet.
    pub logged: Option<i64>,
    /// The random bytes.
    pub salt: [u8; SALT],
    /// The line.
    pub line: String,
}

/// The most characters of a note: a line of the log is bounded.
const MOST_CHARACTERS: usize = 4_000;

/// The parts of events that are the same for all of a process.
#[derive(Debug)]
pub struct Teller {
    program: String,
    host: String,
    names: Mutex<HashMap<u32, String>>,
    /// Events that could not be recorded, such as on a full disk.
    pub(super) kept: Mutex<Vec<([u8; SALT], String)>>,
}

impl Default for Teller {
    fn default() -> Teller {
        Teller {
            program: format!("ibifs {}", env!("CARGO_PKG_VERSION")),
            host: identity::host_name(),
            names: Mutex::default(),
            kept: Mutex::default(),
        }
    }
}

impl Teller {
    fn agent(&self, by: By) -> Agent {
        let By::User(uid) = by else {
            return Agent::Program;
        };
        let mut names = self.names.lock();
        if names.len() > MOST_NAMES {
            names.clear();
        }
        let name = names.entry(uid).or_insert_with(|| identity::user_name(uid));
        Agent::User {
            uid,
            name: name.clone(),
        }
    }

    /// The line of an event that happens now, perhaps one that tells that of another one.
    pub fn line(
        &self,
        by: By,
        kind: EventKind,
        item: Option<&Names>,
        note: &str,
        earlier: Option<&Earlier>,
    ) -> String {
        let event = Event {
            time: SystemClock.now(),
            kind,
            item,
            agent: self.agent(by),
            program: &self.program,
            host: &self.host,
            note: note.chars().take(MOST_CHARACTERS).collect(),
            earlier,
        };
        event.line()
    }

    /// Records an event.
    fn tell(
        &self,
        connection: &Connection,
        by: By,
        kind: EventKind,
        item: Option<&Names>,
        note: &str,
    ) -> Result<(), StoreError> {
        let salt = random_bytes::<SALT>()?;
        let line = self.line(by, kind, item, note, None);
        insert(connection, &salt, &line)
    }

    /// Records that an item is forgotten that was minted or has arrived: it was never on disk.
    pub(super) fn tell_forgotten(
        &self,
        connection: &Connection,
        item: ItemId,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT {} FROM item WHERE id = ?1", rows::ITEM);
        match connection.first(&sql, params![item.0], rows::item)? {
            Some(item) => {
                let (by, kind) = (By::Program, EventKind::Removed);
                let note = "its directory was not made";
                self.tell(connection, by, kind, Some(&item.names), note)
            }
            None => Ok(()),
        }
    }

    /// Records what a record changes about an item, which was `before`, if it was known. `is_minted`: it is a new original
    /// of this Archive.
    pub(super) fn tell_change(
        &self,
        connection: &Connection,
        record: &Record,
        before: Option<&Before>,
        (is_minted, relations): (bool, &str),
    ) -> Result<(), StoreError> {
        let tell = |kind: EventKind, note: String| {
            self.tell(connection, record.by, kind, Some(&record.names), &note)
        };
        let is_there = record.state != State::Deleted;
        let Some(before) = before.filter(|it| it.is_held()) else {
            return match before.map(|it| it.state) {
                _ if is_minted => tell(EventKind::Minted, String::new()),
                Some(State::Deleted) if is_there => tell(EventKind::Restored, String::new()),
                Some(State::Deleted) => Ok(()),
                Some(_) if !is_there => tell(EventKind::Removed, String::new()),
                // A directory without a sidecar is an item that is still to come.
                _ if !is_there || record.sidecar.is_none() => Ok(()),
                _ => tell(EventKind::Arrived, record.state.to_string()),
            };
        };
        if !is_there {
            return tell(EventKind::Removed, String::new());
        }
        let mut is_told = false;
        let service = record.service.as_ref().map(Names::preferred);
        if before.state != record.state || before.service != service {
            tell(EventKind::Transferred, service.unwrap_or_default())?;
            is_told = true;
        }
        for (kind, note) in decisions(&before.life, &record.life) {
            tell(kind, note)?;
            is_told = true;
        }
        if !relations.is_empty() {
            tell(EventKind::Related, relations.to_owned())?;
            is_told = true;
        }
        let is_unsealed = before.life.sealed.is_some() && record.life.sealed.is_none();
        if !is_told && !is_unsealed && before.sidecar != record.sidecar && record.sidecar.is_some()
        {
            tell(EventKind::Described, String::new())?;
        }
        Ok(())
    }
}

/// The differences between the decisions about an item.
fn decisions(before: &Life, after: &Life) -> Vec<(EventKind, String)> {
    let date = |at: &Timestamp| at.to_rfc3339();
    let mut told = Vec::new();
    if before.available != after.available {
        let until = after.available.as_ref().map(date);
        told.push((EventKind::Embargoed, until.unwrap_or_default()));
    }
    // The end of a seal is told with its reason, by who knows it.
    if let Some(seal) = &after.sealed
        && before.sealed != after.sealed
    {
        let digest = seal.digest.map(|it| format!(" {it}"));
        let note = format!("{}{}", date(&seal.at), digest.unwrap_or_default());
        told.push((EventKind::Sealed, note));
    }
    if before.withdrawn != after.withdrawn {
        told.push(match &after.withdrawn {
            None => (EventKind::Restored, String::new()),
            Some(withdrawn) => (EventKind::Withdrawn, withdrawn.to_string()),
        });
    }
    told
}

/// An item before a change.
#[derive(Debug)]
pub(super) struct Before {
    state: State,
    service: Option<String>,
    life: Life,
    sidecar: Option<Vec<u8>>,
}

impl Before {
    /// The row of an item.
    pub(super) fn of(connection: &Connection, item: i64) -> Result<Option<Before>, StoreError> {
        let sql = format!("SELECT {}, sidecar FROM item WHERE id = ?1", rows::ITEM);
        connection.first(&sql, params![item], |row| {
            let item: Item = rows::item(row)?;
            Ok(Before {
                state: item.state,
                service: item.service.as_ref().map(Names::preferred),
                life: item.life,
                sidecar: row.get("sidecar")?,
            })
        })
    }

    /// Whether it is here, with a sidecar.
    fn is_held(&self) -> bool {
        self.state != State::Deleted && self.sidecar.is_some()
    }
}

/// The number of the events that the index knows to be in the log.
pub(super) fn logged_events(connection: &Connection) -> Result<i64, StoreError> {
    connection.value("SELECT size FROM event_log", &[])
}

/// Records an event after all others.
pub(super) fn insert(connection: &Connection, salt: &[u8], line: &str) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO event (number, salt, line)
         VALUES ((SELECT coalesce(max(number), 0) + 1 FROM event), ?1, ?2)",
        params![salt, line],
    )
}

const COLUMNS: &str = "number, salt, line,
    CASE WHEN number <= (SELECT size FROM event_log) THEN number - 1 END AS logged";

impl Store {
    /// Records events from now on.
    pub fn begin_history(&self) {
        let _ = self.teller.set(Teller::default());
    }

    /// Whether events are recorded.
    pub fn has_history(&self) -> bool {
        self.teller.get().is_some()
    }

    /// Records an event that changes no row of an item. Does nothing if events are not recorded.
    pub fn tell(
        &self,
        by: By,
        kind: EventKind,
        item: Option<&Names>,
        note: &str,
    ) -> Result<(), StoreError> {
        let Some(teller) = self.teller.get() else {
            return Ok(());
        };
        self.write(Sync::Later, |transaction| {
            teller.tell(transaction, by, kind, item, note)
        })
    }

    /// Records events of an item that others tell. Does nothing if events are not recorded.
    pub fn tell_earlier(
        &self,
        by: By,
        item: &Names,
        note: &str,
        events: &[Earlier],
    ) -> Result<(), StoreError> {
        let Some(teller) = self.teller.get() else {
            return Ok(());
        };
        self.write(Sync::Later, |transaction| {
            events.iter().try_for_each(|event| {
                let line = teller.line(by, EventKind::Told, Some(item), note, Some(event));
                let salt = random_bytes::<SALT>()?;
                insert(transaction, &salt, &line)
            })
        })
    }

    /// At most `most` events that are not in the log, in their order.
    pub fn waiting_events(&self, most: usize) -> Result<Vec<EventRow>, StoreError> {
        self.events_after(self.logged_events()?, most)
    }

    /// At most `most` events of an item after a number, in their order.
    pub fn events_of(
        &self,
        names: &Names,
        after: i64,
        most: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let mut events = self.events_by_name(names, "number > ?2 ORDER BY number", after, most)?;
        events.truncate(most);
        Ok(events)
    }

    /// The latest events of an item, at most `most`, in their order.
    pub fn latest_events_of(
        &self,
        names: &Names,
        most: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let order = "number > ?2 ORDER BY number DESC";
        let mut events = self.events_by_name(names, order, 0, most)?;
        let before = events.len().saturating_sub(most);
        Ok(events.split_off(before))
    }

    /// Those of an item that has got another name are below both, and each that waits is read. At most `most` of each of these.
    fn events_by_name(
        &self,
        names: &Names,
        order: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let connection = self.reading();
        // Once: others may be logged meanwhile.
        let known = logged_events(&connection)?;
        let waiting = format!("SELECT {COLUMNS} FROM event WHERE number > ?1 AND {order}");
        let sql = format!(
            "SELECT {COLUMNS} FROM event
             WHERE item = (SELECT first FROM event_item WHERE name = ?3) AND number <= ?1 AND {order} LIMIT ?4"
        );
        let forms = [
            names.rep().map(Rep::canonical),
            names.ibip().map(Ibip::canonical),
        ];
        let mut events = Vec::new();
        for form in forms.into_iter().flatten() {
            let params = params![known, after, form, query::limit(most)];
            events.extend(connection.each(&sql, params, row)?);
        }
        let most = events.len() + most;
        let mut statement = connection.prepare(&waiting)?;
        let mut rows = statement.rows(params![known, after])?;
        while events.len() < most
            && let Some(found) = rows.next_row()?
        {
            let event = row(&found)?;
            if item_in(&event.line).is_some_and(|item| item.matches(names)) {
                events.push(event);
            }
        }
        events.sort_by_key(|event| event.number);
        Ok(events)
    }

    /// At most `most` events after a number, those of all items and of the store, in their order.
    pub fn events_after(&self, number: i64, most: usize) -> Result<Vec<EventRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM event WHERE number > ?1 ORDER BY number LIMIT ?2");
        let connection = self.reading();
        connection.each(&sql, params![number, query::limit(most)], row)
    }
}

fn row(row: &Row<'_>) -> Result<EventRow, StoreError> {
    let salt: Vec<u8> = row.get("salt")?;
    Ok(EventRow {
        number: row.get("number")?,
        logged: row.get("logged")?,
        salt: salt.try_into().map_err(|_| StoreError::Broken {
            what: message!("event.salt has another length"),
        })?,
        line: row.get("line")?,
    })
}
