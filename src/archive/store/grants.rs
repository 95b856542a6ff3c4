//! Dates for hosts that share an index: each is given out in a transaction of its server, which can record the item
//! that gets it, too.
//!
//! Such a transaction has the lock of all writers. It therefore takes two messages to the server and no more: the first
//! begins it and reads the date given out last and the time, the second writes and commits. Threads of this process that
//! ask at the same time share one, as in a group commit.

use std::sync::Arc;
use std::time::Duration;

use super::record::{self, NEXT_CHANGE, NEXT_ITEM};
use super::{Item, ItemId, Record, Store, StoreError};
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::owner::Owner;
use crate::sql::engine::{Postgres, Row, ServerRow, Value, retried};
use ibi::distributor::{Granularity, Reservation, TemporalDistributor, WaitTooLong};
use ibi::{Ibip, Rep, Timestamp, message};

/// The time after the clocks at which a process gives out its first date from a server that it does not know, or that
/// knows less than before: whatever was given out and lost since is earlier.
const FENCE: Duration = Duration::from_secs(1);

/// The server that a process has got dates from, and up to when it gives out none.
#[derive(Debug)]
pub(super) struct Fence {
    /// The number of the connection.
    generation: u64,
    /// The server and database that it leads to; None if the server does not say.
    identity: Option<String>,
    /// The number of transactions that had written at least.
    writes: i64,
    until: Option<Timestamp>,
}

/// The terms on which a date is asked for.
#[derive(Clone, Copy, Debug)]
pub struct GrantTerms<'a> {
    /// The granularity of dates.
    pub granularity: Granularity,
    /// The time of this host.
    pub now: &'a Timestamp,
}

/// A date that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct DateRequest {
    /// The longest wait for it.
    pub limit: Duration,
    /// The item that gets it, if it comes within [`RECORDED_AHEAD`], with the owner of its directory.
    pub item: Option<Option<Owner>>,
}

/// The longest time before its date at which an item is recorded; it is shown when the date has come.
pub const RECORDED_AHEAD: Duration = Duration::from_millis(200);

/// The most dates of one transaction, which other hosts wait for.
const MOST_DATES: usize = 64;

/// Makes the records of items of these dates; they have no relations and no aliases.
pub type MakeRecords<'a> = dyn Fn(&[Timestamp]) -> Result<Vec<Record>, StoreError> + 'a;

/// The requests of a thread, and the answers to them.
#[derive(Debug)]
pub(super) struct PendingGrant {
    requests: Vec<DateRequest>,
    answers: RankedMutex<Option<Vec<Grant>>>,
}

/// The answer to a request for a date.
#[derive(Debug)]
pub enum Grant {
    /// A date, which is durable.
    Given(Reservation),
    /// The item has got one, and is recorded as unsettled. It may be shown after this time.
    Recorded(Item, Duration),
    /// The item has got one that an item has already.
    Taken(Record),
    /// None is given out before this time has passed.
    NotYet(Duration),
    /// The wait would be too long.
    TooLong(WaitTooLong),
}

/// The date given out last, how far dates are reserved, and the time in microseconds since 1970. It is read after the
/// lock was taken that all writers take.
const READ: &str = "SELECT writes, last, reserved,
    CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS micros
    FROM epoch LEFT JOIN ledger ON ledger.one = epoch.one";

/// The identity, which another server, one promoted in its place, and a database that was made again do not share.
const IDENTITY: &str =
    "SELECT system_identifier || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' ||
    (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()";

const NOTE: &str = "INSERT INTO ledger (one, last) VALUES (1, ?1)
    ON CONFLICT (one) DO UPDATE SET last = ?1, reserved = NULL";

/// Records an item and its mark in one statement, which has no row if a name is taken.
fn insert(host: i64) -> String {
    format!(
        "WITH made AS (
            INSERT INTO item (id, {columns}, changed)
            SELECT {NEXT_ITEM}, CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS TEXT),
                CAST(?6 AS TEXT), CAST(?7 AS TEXT), CAST(?8 AS TEXT), CAST(?9 AS TEXT), CAST(?10 AS TEXT),
                CAST(?11 AS TEXT), CAST(?12 AS BYTEA), {NEXT_CHANGE}
            WHERE NOT EXISTS (SELECT 1 FROM item WHERE rep_key = ?2 OR ibip_key = ?4)
            RETURNING id
        )
        INSERT INTO unsettled (item, uid, gid, mode, host)
        SELECT id, CAST(?13 AS BIGINT), CAST(?14 AS BIGINT), CAST(?15 AS BIGINT), {host} FROM made RETURNING item",
        columns = record::COLUMNS
    )
}

impl Store {
    /// Gives out the next dates by the clock of the server, as one distributor for all hosts, together with those that
    /// other threads of this process are waiting for. Returns an answer for each request.
    ///
    /// `make` makes the records of all threads that are served: they differ by their owners only.
    pub(in crate::archive) fn grant(
        &self,
        terms: &GrantTerms<'_>,
        requests: Vec<DateRequest>,
        make: &MakeRecords<'_>,
    ) -> Result<Vec<Grant>, StoreError> {
        let ours = Arc::new(PendingGrant {
            requests,
            answers: RankedMutex::new(Rank::CommitResult, None),
        });
        self.asking.lock().push(Arc::clone(&ours));
        let connection = self.lock();
        if let Some(answers) = ours.answers.lock().take() {
            return Ok(answers);
        }
        let group = self.take_asking(&ours);
        let Some(server) = connection.server() else {
            return Err(StoreError::NotAFile);
        };
        let requests: Vec<DateRequest> = group
            .iter()
            .flat_map(|pending| pending.requests.iter().copied())
            .collect();
        let granted = retried(|| self.grant_once(server, terms, &requests, make));
        let mut granted = match granted {
            Ok(granted) => granted.into_iter(),
            Err(error) => {
                // Each of the others asks again when it has the connection, and gets an error of its own.
                let others = group.into_iter().filter(|other| !Arc::ptr_eq(other, &ours));
                self.asking.lock().extend(others);
                return Err(error);
            }
        };
        for pending in &group {
            let answers = granted.by_ref().take(pending.requests.len());
            *pending.answers.lock() = Some(answers.collect());
        }
        ours.answers.lock().take().ok_or(StoreError::Conflict)
    }

    /// Takes those out of the queue that are served together, this thread among them.
    fn take_asking(&self, ours: &Arc<PendingGrant>) -> Vec<Arc<PendingGrant>> {
        let mut count = ours.requests.len();
        let mut queue = self.asking.lock();
        let (group, left) = queue.drain(..).partition(|pending| {
            Arc::ptr_eq(pending, ours) || {
                count += pending.requests.len();
                count <= MOST_DATES
            }
        });
        *queue = left;
        group
    }

    fn grant_once(
        &self,
        server: &Postgres,
        terms: &GrantTerms<'_>,
        requests: &[DateRequest],
        make: &MakeRecords<'_>,
    ) -> Result<Vec<Grant>, StoreError> {
        self.look_at_server(server)?;
        let found = server.begin_and_read(Some(READ))?;
        let planned = self
            .plan(server, terms, requests, found)
            .and_then(|granted| {
                let soon = requests.iter().zip(&granted).filter_map(dated_soon);
                let (dates, owners): (Vec<Timestamp>, Vec<Option<Owner>>) = soon.unzip();
                Ok((granted, make(&dates)?, owners))
            });
        let (mut granted, records, owners) = match planned {
            Ok(planned) => planned,
            Err(error) => return server.end_without_change(Err(error)),
        };
        let given = granted.iter().rev().find_map(|grant| match grant {
            Grant::Given(reservation) => Some(reservation.date.to_rfc3339()),
            _ => None,
        });
        let Some(last) = given else {
            return server.end_without_change(Ok(granted));
        };
        let insert = insert(server.host().unwrap_or_default());
        let keys: Vec<_> = records
            .iter()
            .map(|record| {
                let rep = record.names.rep().map(Rep::canonical);
                (rep, record.names.ibip().map(Ibip::canonical))
            })
            .collect();
        let rows = records.iter().zip(&keys).zip(&owners);
        let rows = rows.map(|((record, (rep_key, ibip_key)), owner)| {
            let mut values = record::values(record, rep_key.as_deref(), ibip_key.as_deref());
            for number in [
                owner.map(|owner| owner.uid),
                owner.map(|owner| owner.gid),
                owner.map(|owner| owner.mode),
            ] {
                values.push(Value::from(number));
            }
            (insert.as_str(), values)
        });
        let note = (NOTE, vec![Value::from(last.as_str())]);
        let statements: Vec<_> = std::iter::once(note).chain(rows).collect();
        let made = server.end_with(&statements)?;
        drop(statements);
        self.note_written();
        let mut made = records.into_iter().zip(made.into_iter().skip(1));
        for (request, grant) in requests.iter().zip(&mut granted) {
            if dated_soon((request, grant)).is_some()
                && let Grant::Given(reservation) = grant
                && let Some((record, id)) = made.next()
            {
                *grant = match id {
                    Some(id) => Grant::Recorded(record.item(ItemId(id)), reservation.wait),
                    None => Grant::Taken(record),
                };
            }
        }
        Ok(granted)
    }

    /// Counts a transaction that has written.
    fn note_written(&self) {
        if let Some(fence) = &mut *self.fence.lock() {
            fence.writes += 1;
        }
    }

    /// Asks a server which it is, once for each connection.
    fn look_at_server(&self, server: &Postgres) -> Result<(), StoreError> {
        let mut fence = self.fence.lock();
        let is_known = |fence: &Fence| fence.generation == server.generation();
        if fence.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let identity = match server.text(IDENTITY) {
            Ok(identity) => Some(identity),
            // Another server that speaks the protocol may not have these functions.
            Err(StoreError::Server { .. }) => None,
            Err(error) => return Err(error),
        };
        let same = fence
            .take()
            .filter(|known| known.identity.is_some() && known.identity == identity);
        *fence = Some(Fence {
            generation: server.generation(),
            identity,
            writes: same.as_ref().map_or(0, |known| known.writes),
            until: same.and_then(|known| known.until),
        });
        Ok(())
    }

    /// Plans what is given out, by what was read.
    fn plan(
        &self,
        server: &Postgres,
        terms: &GrantTerms<'_>,
        requests: &[DateRequest],
        found: Option<ServerRow>,
    ) -> Result<Vec<Grant>, StoreError> {
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
        // Without this transaction, which may be rolled back.
        let writes = found.get::<i64>("writes")? - 1;
        let mut fence = self.fence.lock();
        // A connection that was made again since it was looked at is looked at first.
        let known = fence
            .as_mut()
            .filter(|known| known.generation == server.generation());
        let fence = known.ok_or(StoreError::Conflict)?;
        if fence.until.is_none() || writes < fence.writes {
            let until = now.clone().max(terms.now.clone()).as_nanoseconds();
            let until = Timestamp::from_nanoseconds(until + FENCE.as_nanos().cast_signed());
            fence.until = Some(until.ok_or_else(wrong)?);
        }
        fence.writes = writes;
        let until = fence.until.as_ref().map(Timestamp::as_nanoseconds);
        let early = until.unwrap_or_default() - now.as_nanoseconds();
        if let Ok(early @ 1..) = u64::try_from(early) {
            let wait = Duration::from_nanos(early);
            return Ok(requests.iter().map(|_| Grant::NotYet(wait)).collect());
        }
        let mut distributor = TemporalDistributor::new(terms.granularity, latest);
        // A date is shortened, and may be earlier than the instant at which it is given out.
        if let Some(until) = &fence.until {
            distributor.pass_over(until);
        }
        let reserved =
            requests
                .iter()
                .map(|request| match distributor.reserve(&now, request.limit) {
                    Ok(reservation) => Grant::Given(reservation),
                    Err(too_long) => Grant::TooLong(too_long),
                });
        Ok(reserved.collect())
    }
}

/// The date and owner of an item that is recorded together with its date.
fn dated_soon((request, grant): (&DateRequest, &Grant)) -> Option<(Timestamp, Option<Owner>)> {
    match (request.item, grant) {
        (Some(owner), Grant::Given(reservation)) if reservation.wait <= RECORDED_AHEAD => {
            Some((reservation.date.clone(), owner))
        }
        _ => None,
    }
}
