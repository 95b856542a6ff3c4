//! What a later start must know of this one: the last date, and whether the store is the same.
//!
//! A date must be written down durably before anybody sees it. That need not be done for each: one
//! write reserves all dates of the next second, and those that nobody asks for until then are handed
//! out later or, at a regular end, given back. After any other end all that was reserved counts as
//! handed out.

use std::sync::MutexGuard;
use std::time::Duration;

use super::{Archive, ArchiveError, WAIT_LIMIT, lock};
use crate::distributor::{Granularity, Reservation, TemporalDistributor};
use crate::ibi::Timestamp;
use crate::locks::locked;
use crate::pairs::{Pairs, Value};

const LEDGER: &str = "ledger";

/// How far ahead dates are reserved. A start after a crash waits for the end of it, so it is far
/// below the longest wait; minting at full speed writes the ledger once in this time.
const AHEAD: Duration = Duration::from_secs(1);

/// The dates of an open Archive: which is next, and how far the ledger on disk reserves them.
#[derive(Debug)]
pub(super) struct Dates {
    distributor: TemporalDistributor,
    reserved: Option<Timestamp>,
}

impl Dates {
    /// Goes on after the last date handed out, with nothing reserved.
    pub(super) fn after(granularity: Granularity, last: Option<Timestamp>) -> Dates {
        Dates {
            distributor: TemporalDistributor::new(granularity, last),
            reserved: None,
        }
    }

    /// The last date handed out.
    pub(super) fn last(&self) -> Option<&Timestamp> {
        self.distributor.last()
    }
}

impl Archive {
    pub(super) fn dates(&self) -> MutexGuard<'_, Dates> {
        locked(&self.dates)
    }

    /// Reserves a date. It is written down durably before this returns and is never handed out
    /// again, whatever becomes of it. The caller waits `reservation.wait` and then calls
    /// [`Archive::mint_reserved`]; meanwhile nobody is held up.
    pub fn reserve(&self) -> Result<Reservation, ArchiveError> {
        self.writable()?;
        let mut dates = self.dates();
        let mut distributor = dates.distributor.clone();
        let reservation = distributor.reserve(&self.clock.now(), WAIT_LIMIT)?;
        if Some(&reservation.date) > dates.reserved.as_ref() {
            let ahead = reservation.creation.as_nanoseconds() + AHEAD.as_nanos().cast_signed();
            let ahead = Timestamp::from_nanoseconds(ahead);
            let reserved = ahead.unwrap_or_else(|| reservation.date.clone());
            // What is in memory changes only after what is on disk: an error hands out nothing.
            self.store.reserve_dates(&reservation.date, &reserved)?;
            dates.reserved = Some(reserved);
        }
        dates.distributor = distributor;
        Ok(reservation)
    }

    /// A store that was copied, or that a backup was put back over, has forgotten what was minted
    /// since, and so has one whose database is lost: it mints nothing up to the present. The first
    /// two are known by the lock file.
    pub(super) fn read_ledger(&self) -> Result<(), ArchiveError> {
        let text = self.tree.read_small(LEDGER)?.unwrap_or_default();
        let pairs = Pairs::parse(&text).ok();
        let word = |name: &str| match pairs.as_ref().and_then(|pairs| pairs.get(name)) {
            Some(Value::Word(word)) => Some(word.clone()),
            _ => None,
        };
        let found = self.lock.as_ref().map(lock::Lock::found);
        let same = word("store").as_deref() == found;
        let noted = word("last").and_then(|last| Timestamp::parse_rfc3339(&last).ok());
        let last = self.store.last_date()?;
        let reserved = self.store.reserved_date()?;
        let mut mark = last.clone().max(reserved.clone()).max(noted);
        if !same {
            log::warn!("this store was copied or restored; minting goes on from the present");
        }
        if !same || last.is_none() {
            mark = mark.max(Some(self.clock.now()));
        }
        if (mark != last || reserved.is_some())
            && let Some(mark) = &mark
        {
            self.store.set_last_date(mark)?;
        }
        *self.dates() = Dates::after(self.facts.granularity, mark);
        self.write_ledger()
    }

    pub(super) fn write_ledger(&self) -> Result<(), ArchiveError> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        let fingerprint = lock.fingerprint().unwrap_or_else(|_| "unknown".to_owned());
        let mut text = format!("store {fingerprint}\n");
        if let Some(last) = self.store.last_date()? {
            text.push_str(&format!("last {}\n", last.to_rfc3339()));
        }
        Ok(self.tree.write_small(".", LEDGER, text.as_bytes(), None)?)
    }

    /// Gives back the dates that are reserved and not handed out.
    fn give_dates_back(&self) -> Result<(), ArchiveError> {
        let mut dates = self.dates();
        if dates.reserved.is_some()
            && let Some(last) = dates.last().cloned()
        {
            // Whatever comes of the write, the next date is reserved on disk again.
            dates.reserved = None;
            self.store.set_last_date(&last)?;
        }
        Ok(())
    }

    /// Syncs what was minted and writes down what a later start should know. The Archive works
    /// without; a store whose database is lost afterwards is then safe as well.
    pub fn close(&self) {
        if self.lock.is_some()
            && let Err(error) = self
                .settle_now()
                .and_then(|()| self.give_dates_back())
                .and_then(|()| self.write_ledger())
        {
            log::warn!("cannot write the ledger: {error}");
        }
    }
}
