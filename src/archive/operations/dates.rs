//! The dates of an open Archive in memory: the next one, and those that are ahead of the clock.
//!
//! No date is given out twice, and none up to the instant at which the process opened the store.
//! The state in memory changes only after that on disk.

use std::time::{Duration, Instant};

use super::ArchiveError;
use crate::archive::lock_order::{Rank, RankedGuard, RankedMutex};
use ibi::Timestamp;
use ibi::distributor::{Granularity, Reservation, TemporalDistributor};
use ibi::pairs::{Pairs, Value};

/// The time ahead for which dates are reserved. A start after a crash waits until its end, so it
/// is far below the longest wait. At full speed, minting writes the ledger once in this time.
const AHEAD: Duration = Duration::from_secs(1);

/// The time by which the clock may exceed the elapsed time before it counts as set forward. The two
/// clocks are read one after the other, and this process may be suspended in between.
const STEP: Duration = Duration::from_millis(100);

/// The next date, and how far the ledger on disk reserves dates.
#[derive(Debug)]
pub(super) struct Dates {
    distributor: TemporalDistributor,
    reserved: Option<Timestamp>,
    start: Option<Start>,
}

/// The instant up to which no date is given out, regardless of the disk.
#[derive(Clone, Debug)]
struct Start {
    at: Timestamp,
    /// The last reading of both clocks. The monotonic clock cannot be set.
    read: (Instant, Timestamp),
}

impl Start {
    fn at(now: Timestamp) -> Start {
        Start {
            at: now.clone(),
            read: (Instant::now(), now),
        }
    }

    /// The start after another reading of the clocks.
    fn seen(&self, now: &Timestamp) -> Start {
        let (before, clock) = &self.read;
        let read = Instant::now();
        let passed = read.saturating_duration_since(*before) + STEP;
        let ran = now.as_nanoseconds() - clock.as_nanoseconds();
        let is_set_forward = ran > i128::try_from(passed.as_nanos()).unwrap_or(i128::MAX);
        Start {
            at: if is_set_forward {
                self.at.clone().max(now.clone())
            } else {
                self.at.clone()
            },
            read: (read, now.clone()),
        }
    }
}

/// The dates given out while the clock ran ahead, without the first one. Minting continues from the
/// present, and skips those among them that an item has.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    pub(super) after: Timestamp,
    pub(super) until: Timestamp,
}

impl Ahead {
    /// The range in a ledger.
    pub(super) fn read(ledger: &[u8]) -> Option<Ahead> {
        let pairs = Pairs::parse(ledger).ok()?;
        let date = |name: &str| match pairs.get(name)? {
            Value::Word(word) => Timestamp::parse_rfc3339(word).ok(),
            Value::List(_) => None,
        };
        let (after, until) = date("after").zip(date("until"))?;
        Some(Ahead { after, until })
    }

    fn has(&self, date: &Timestamp) -> bool {
        *date > self.after && *date <= self.until
    }
}

impl Dates {
    /// Continues after the last date given out, with nothing reserved.
    fn after(granularity: Granularity, last: Option<Timestamp>) -> Dates {
        Dates {
            distributor: TemporalDistributor::new(granularity, last),
            reserved: None,
            start: None,
        }
    }

    /// Gives out no date up to this instant.
    pub(super) fn start_at(&mut self, now: Timestamp) {
        self.start = Some(Start::at(now));
    }

    /// Continues after another date, with nothing reserved.
    pub(super) fn go_on_after(&mut self, last: Option<Timestamp>) {
        let granularity = self.distributor.granularity();
        self.distributor = TemporalDistributor::new(granularity, last);
        self.reserved = None;
    }

    /// The last date given out.
    pub(super) fn last(&self) -> Option<&Timestamp> {
        self.distributor.last()
    }
}

/// The dates of an Archive, shared by its threads.
#[derive(Debug)]
pub(super) struct DateLedger {
    dates: RankedMutex<Dates>,
    ahead: RankedMutex<Option<Ahead>>,
}

impl DateLedger {
    /// Continues after the last date given out, with nothing reserved.
    pub(super) fn after(granularity: Granularity, last: Option<Timestamp>) -> DateLedger {
        DateLedger {
            dates: RankedMutex::new(Rank::Dates, Dates::after(granularity, last)),
            ahead: RankedMutex::new(Rank::Leaf, None),
        }
    }

    /// Prevents dates from being given out until the result is dropped.
    pub(super) fn lock(&self) -> RankedGuard<'_, Dates> {
        self.dates.lock()
    }

    /// The last date given out.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.lock().last().cloned()
    }

    /// Continues after another date, and gives out none up to `start`.
    pub(super) fn restart(&self, last: Option<Timestamp>, start: Timestamp) {
        let mut dates = self.lock();
        dates.go_on_after(last);
        dates.start_at(start);
    }

    /// Reserves the next dates, at most as many as there are limits of the wait. `write` makes a new range durable: the
    /// last date, and the date up to which others may be given out. If it fails, no date is given out. Fewer dates
    /// than asked for if the wait for one would exceed its limit; an error if there is none.
    pub(super) fn reserve(
        &self,
        now: &Timestamp,
        limits: &[Duration],
        write: impl FnOnce(&Timestamp, &Timestamp) -> Result<(), ArchiveError>,
    ) -> Result<Vec<Reservation>, ArchiveError> {
        let mut dates = self.lock();
        let mut distributor = dates.distributor.clone();
        let start = dates.start.as_ref().map(|start| start.seen(now));
        if let Some(start) = &start {
            distributor.pass_over(&start.at);
        }
        dates.start = start;
        let mut reservations: Vec<Reservation> = Vec::new();
        for limit in limits {
            match distributor.reserve(now, *limit) {
                Ok(reservation) => reservations.push(reservation),
                Err(too_long) if reservations.is_empty() => return Err(too_long.into()),
                Err(_) => break,
            }
        }
        if let Some(last) = reservations.last()
            && Some(&last.date) > dates.reserved.as_ref()
        {
            let ahead = last.creation.as_nanoseconds() + AHEAD.as_nanos().cast_signed();
            let ahead = Timestamp::from_nanoseconds(ahead);
            let reserved = ahead.unwrap_or_else(|| last.date.clone());
            write(&last.date, &reserved)?;
            dates.reserved = Some(reserved);
        }
        dates.distributor = distributor;
        Ok(reservations)
    }

    /// Releases the dates that are reserved and not given out. `write` makes the last one durable.
    pub(super) fn give_back(
        &self,
        write: impl FnOnce(&Timestamp) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut dates = self.lock();
        if dates.reserved.is_some()
            && let Some(last) = dates.last().cloned()
        {
            // Whether or not the write succeeds, the next date is reserved on disk again.
            dates.reserved = None;
            write(&last)?;
        }
        Ok(())
    }

    /// The dates that are ahead.
    pub(super) fn ahead(&self) -> Option<Ahead> {
        self.ahead.lock().clone()
    }

    /// Sets the dates that are ahead.
    pub(super) fn set_ahead(&self, ahead: Option<Ahead>) {
        *self.ahead.lock() = ahead;
    }

    /// Adds the dates after the present and up to `last`.
    pub(super) fn widen_ahead(&self, now: &Timestamp, last: &Timestamp) {
        let mut ahead = self.ahead.lock();
        let (after, until) = match ahead.take() {
            Some(known) => (known.after.min(now.clone()), known.until.max(last.clone())),
            None => (now.clone(), last.clone()),
        };
        *ahead = Some(Ahead { after, until });
    }

    /// Whether a date was given out by a clock that ran ahead. Such a date does not show how far
    /// minting has come.
    pub(super) fn is_ahead(&self, date: &Timestamp) -> bool {
        self.ahead
            .lock()
            .as_ref()
            .is_some_and(|ahead| ahead.has(date))
    }
}
