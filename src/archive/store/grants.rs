//! Dates for hosts that share an index: each is given out in a transaction of its server, which can record the item
//! that gets it, too.
//!
//! Such a transaction has the lock of all writers. It therefore takes two messages to the server and no more: the first
//! begins it and reads the date given out last and the time, the second writes and commits.

use std::time::Duration;

use super::engine::{Postgres, Row, Value};
use super::record::{self, NEXT_CHANGE, NEXT_ITEM};
use super::{Item, ItemId, Record, Store, StoreError};
use crate::archive::owner::Owner;
use ibi::distributor::{Granularity, Reservation, TemporalDistributor, WaitTooLong};
use ibi::{Ibip, Rep, Timestamp, message};

/// How much later than the clocks a process gives out its first date after it has connected to a server: whatever was
/// given out by a server that has lost it since is earlier.
const FENCE: Duration = Duration::from_secs(1);

/// How often a transaction is run that the server refuses because of another one.
const TRIES: usize = 8;

/// Up to when a process gives out no date, since it has connected to its server.
#[derive(Debug)]
pub(super) struct Fence {
    /// Which connection it is.
    generation: u64,
    until: Timestamp,
}

/// What a date is asked for by.
#[derive(Clone, Copy, Debug)]
pub struct GrantTerms<'a> {
    /// The granularity of dates.
    pub granularity: Granularity,
    /// The longest wait for a date.
    pub limit: Duration,
    /// The time of this host.
    pub now: &'a Timestamp,
}

/// The item that gets a date, if there is nothing to wait for.
pub struct GrantedItem<'a> {
    /// Makes its record; it has no relations and no aliases.
    pub record: &'a dyn Fn(&Timestamp) -> Option<Record>,
    /// The owner of its directory.
    pub owner: Option<Owner>,
}

impl std::fmt::Debug for GrantedItem<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("GrantedItem")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// The answer to a request for a date.
#[derive(Debug)]
pub enum Grant {
    /// A date, which is durable.
    Given(Reservation),
    /// The item has got one, and is recorded as unsettled.
    Recorded(Item),
    /// The item has got one that an item has already.
    Taken(Record),
    /// None is given out before this time has passed.
    NotYet(Duration),
    /// The wait would be too long.
    TooLong(WaitTooLong),
}

/// The date given out last, how far dates are reserved, and the time in microseconds since 1970. It is read after the
/// lock was taken that all writers take.
const READ: &str =
    "SELECT last, reserved, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS micros
    FROM (VALUES (1)) AS one (one) LEFT JOIN ledger ON ledger.one = one.one";

const NOTE: &str = "INSERT INTO ledger (one, last) VALUES (1, ?1)
    ON CONFLICT (one) DO UPDATE SET last = ?1, reserved = NULL";

/// Records an item and its mark in one statement, which has no row if a name is taken.
fn insert(host: i64) -> String {
    format!(
        "WITH made AS (
            INSERT INTO item (id, {columns}, changed)
            SELECT {NEXT_ITEM}, CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS TEXT),
                CAST(?6 AS TEXT), CAST(?7 AS TEXT), CAST(?8 AS TEXT), CAST(?9 AS TEXT), CAST(?10 AS TEXT),
                CAST(?11 AS BYTEA), {NEXT_CHANGE}
            WHERE NOT EXISTS (SELECT 1 FROM item WHERE rep_key = ?2 OR ibip_key = ?4)
            RETURNING id
        )
        INSERT INTO unsettled (item, uid, gid, mode, host)
        SELECT id, CAST(?12 AS BIGINT), CAST(?13 AS BIGINT), CAST(?14 AS BIGINT), {host} FROM made RETURNING item",
        columns = record::COLUMNS
    )
}

impl Store {
    /// Gives out the next date by the clock of the server, as one distributor for all hosts.
    pub fn grant(
        &self,
        terms: &GrantTerms<'_>,
        item: Option<&GrantedItem<'_>>,
    ) -> Result<Grant, StoreError> {
        let connection = self.lock();
        let Some(server) = connection.server() else {
            return Err(StoreError::NotAFile);
        };
        let mut left = TRIES;
        loop {
            left -= 1;
            match self.grant_once(server, terms, item) {
                Err(StoreError::Conflict) if left > 0 => {}
                granted => return granted,
            }
        }
    }

    fn grant_once(
        &self,
        server: &Postgres,
        terms: &GrantTerms<'_>,
        item: Option<&GrantedItem<'_>>,
    ) -> Result<Grant, StoreError> {
        let found = server.begin_and_read(Some(READ))?;
        let planned = self.plan(server, terms, found);
        let reservation = match planned {
            Ok(Grant::Given(reservation)) => reservation,
            other => return server.end_without_change(other),
        };
        let date = reservation.date.to_rfc3339();
        let note = (NOTE, vec![Value::from(date.as_str())]);
        let record = item.filter(|_| reservation.wait.is_zero());
        let record = record.and_then(|item| Some(((item.record)(&reservation.date)?, item.owner)));
        let Some((record, owner)) = record else {
            server.end_with(&[note])?;
            return Ok(Grant::Given(reservation));
        };
        let rep_key = record.names.rep().map(Rep::canonical);
        let ibip_key = record.names.ibip().map(Ibip::canonical);
        let mut values = record::values(&record, rep_key.as_deref(), ibip_key.as_deref());
        for number in [
            owner.map(|owner| owner.uid),
            owner.map(|owner| owner.gid),
            owner.map(|owner| owner.mode),
        ] {
            values.push(Value::from(number));
        }
        let host = server.host().unwrap_or_default();
        let made = server.end_with(&[note, (&insert(host), values)])?;
        Ok(match made {
            Some(id) => Grant::Recorded(Item {
                id: ItemId(id),
                names: record.names,
                state: record.state,
                service: record.service,
                language: record.language,
                target: record.target,
                removed_at: record.removed_at,
            }),
            None => Grant::Taken(record),
        })
    }

    /// What is given out, by what was read.
    fn plan(
        &self,
        server: &Postgres,
        terms: &GrantTerms<'_>,
        found: Option<tokio_postgres::Row>,
    ) -> Result<Grant, StoreError> {
        let wrong = || StoreError::Broken {
            what: message!("the clock of its server is wrong"),
        };
        let found = found.ok_or_else(wrong)?;
        let found = Row::Postgres(&found);
        let mut latest = None;
        for column in ["last", "reserved"] {
            let Some(text) = found.get::<Option<String>>(column)? else {
                continue;
            };
            let date = Timestamp::parse_rfc3339(&text).map_err(|_| StoreError::Broken {
                what: message!("ledger.last is '{text}'", text),
            })?;
            latest = latest.max(Some(date));
        }
        let micros: i64 = found.get("micros")?;
        let now = Timestamp::from_nanoseconds(i128::from(micros) * 1000).ok_or_else(wrong)?;
        let mut fence = self.fence.lock();
        if fence
            .as_ref()
            .is_none_or(|known| known.generation != server.generation())
        {
            let until = now.clone().max(terms.now.clone()).as_nanoseconds();
            let until = Timestamp::from_nanoseconds(until + FENCE.as_nanos().cast_signed());
            *fence = Some(Fence {
                generation: server.generation(),
                until: until.ok_or_else(wrong)?,
            });
        }
        let until = fence.as_ref().map(|fence| fence.until.as_nanoseconds());
        let early = until.unwrap_or_default() - now.as_nanoseconds();
        if let Ok(early @ 1..) = u64::try_from(early) {
            return Ok(Grant::NotYet(Duration::from_nanos(early)));
        }
        let mut distributor = TemporalDistributor::new(terms.granularity, latest);
        Ok(match distributor.reserve(&now, terms.limit) {
            Ok(reservation) => Grant::Given(reservation),
            Err(too_long) => Grant::TooLong(too_long),
        })
    }
}
