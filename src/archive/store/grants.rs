//! Dates for hosts that share an index: each is given out in a transaction of its server.

use std::time::Duration;

use super::engine::{Sync, params};
use super::{Store, StoreError};
use ibi::distributor::{Granularity, Reservation, TemporalDistributor, WaitTooLong};
use ibi::{Timestamp, message};

/// How much later than the clocks a process gives out its first date after it has connected to a server: whatever was
/// given out by a server that has lost it since is earlier.
const FENCE: Duration = Duration::from_secs(1);

/// Up to when a process gives out no date, since it has connected to its server.
#[derive(Debug)]
pub(super) struct Fence {
    /// Which connection it is.
    generation: u64,
    until: Timestamp,
}

/// The answer to a request for a date.
#[derive(Debug)]
pub enum Grant {
    /// A date, which is durable.
    Given(Reservation),
    /// None is given out before this time has passed.
    NotYet(Duration),
    /// The wait would be too long.
    TooLong(WaitTooLong),
}

impl Store {
    /// Gives out the next date by the clock of the server, as one distributor for all hosts. `now` is the time of this
    /// host.
    pub fn grant(
        &self,
        granularity: Granularity,
        limit: Duration,
        now: &Timestamp,
    ) -> Result<Grant, StoreError> {
        let connection = self.lock();
        let generation = || connection.server().map_or(0, |server| server.generation());
        connection.transact(Sync::Now, |transaction| {
            // The time is read after the lock was taken that all writers take.
            let sql = "SELECT last, reserved,
                CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS micros
                FROM (VALUES (1)) AS one (one) LEFT JOIN ledger ON ledger.one = one.one";
            let read = transaction.first(sql, &[], |row| {
                let dates: [Option<String>; 2] = [row.get("last")?, row.get("reserved")?];
                Ok((dates, row.get::<i64>("micros")?))
            })?;
            let (dates, micros) = read.ok_or(StoreError::Conflict)?;
            let mut last = None;
            for text in dates.into_iter().flatten() {
                let date = Timestamp::parse_rfc3339(&text).map_err(|_| StoreError::Broken {
                    what: message!("ledger.last is '{text}'", text),
                })?;
                last = last.max(Some(date));
            }
            let out_of_range = || StoreError::Broken {
                what: message!("the clock of its server is wrong"),
            };
            let server_now =
                Timestamp::from_nanoseconds(i128::from(micros) * 1000).ok_or_else(out_of_range)?;
            let until = {
                let mut fence = self.fence.lock();
                match &*fence {
                    Some(known) if known.generation == generation() => known.until.clone(),
                    _ => {
                        let latest = server_now.clone().max(now.clone()).as_nanoseconds();
                        let until = latest + FENCE.as_nanos().cast_signed();
                        let until = Timestamp::from_nanoseconds(until).ok_or_else(out_of_range)?;
                        *fence = Some(Fence {
                            generation: generation(),
                            until: until.clone(),
                        });
                        until
                    }
                }
            };
            let early = until.as_nanoseconds() - server_now.as_nanoseconds();
            if let Ok(early @ 1..) = u64::try_from(early) {
                return Ok(Grant::NotYet(Duration::from_nanos(early)));
            }
            let mut distributor = TemporalDistributor::new(granularity, last);
            let reservation = match distributor.reserve(&server_now, limit) {
                Ok(reservation) => reservation,
                Err(too_long) => return Ok(Grant::TooLong(too_long)),
            };
            let sql = "INSERT INTO ledger (one, last) VALUES (1, ?1)
                ON CONFLICT (one) DO UPDATE SET last = ?1, reserved = NULL";
            transaction.execute(sql, params![reservation.date.to_rfc3339()])?;
            Ok(Grant::Given(reservation))
        })
    }
}
