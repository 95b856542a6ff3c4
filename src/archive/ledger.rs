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

pub(super) const LEDGER: &str = "ledger";

/// How far ahead dates are reserved. A start after a crash waits for the end of it, so it is far
/// below the longest wait; minting at full speed writes the ledger once in this time.
const AHEAD: Duration = Duration::from_secs(1);

/// The dates of an open Archive: which is next, and how far the ledger on disk reserves them.
#[derive(Debug)]
pub(super) struct Dates {
    distributor: TemporalDistributor,
    reserved: Option<Timestamp>,
}

/// The dates that were handed out while the clock ran ahead, the first one excluded. Minting went
/// back to the present from there, and passes over those among them that an item has.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    after: Timestamp,
    until: Timestamp,
}

impl Dates {
    /// Goes on after the last date handed out, with nothing reserved.
    pub(super) fn after(granularity: Granularity, last: Option<Timestamp>) -> Dates {
        Dates {
            distributor: TemporalDistributor::new(granularity, last),
            reserved: None,
        }
    }

    /// Goes on after another date, with nothing reserved.
    pub(super) fn go_on_after(&mut self, last: Option<Timestamp>) {
        let granularity = self.distributor.granularity();
        self.distributor = TemporalDistributor::new(granularity, last);
        self.reserved = None;
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
        let text = match self.tree.read_small(LEDGER) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                // As good as none, and safe: minting goes on from the present.
                log::warn!("{error}; it is set aside and written anew");
                self.tree.set_aside(".", LEDGER, "ledger.broken")?;
                Vec::new()
            }
        };
        let pairs = Pairs::parse(&text).ok();
        let word = |name: &str| match pairs.as_ref().and_then(|pairs| pairs.get(name)) {
            Some(Value::Word(word)) => Some(word.clone()),
            _ => None,
        };
        let found = self.lock.as_ref().map(lock::Lock::found);
        let same = word("store").as_deref() == found;
        let date = |name: &str| Timestamp::parse_rfc3339(&word(name)?).ok();
        let noted = date("last");
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
        self.dates().go_on_after(mark);
        self.remember_ahead(&text);
        self.write_ledger()
    }

    /// Which dates lie ahead, as the ledger says.
    pub(super) fn remember_ahead(&self, ledger: &[u8]) {
        let pairs = Pairs::parse(ledger).ok();
        let date = |name: &str| match pairs.as_ref()?.get(name)? {
            Value::Word(word) => Timestamp::parse_rfc3339(word).ok(),
            Value::List(_) => None,
        };
        let ahead = date("after").zip(date("until"));
        *locked(&self.ahead) = ahead.map(|(after, until)| Ahead { after, until });
    }

    pub(super) fn write_ledger(&self) -> Result<(), ArchiveError> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        let fingerprint = lock.fingerprint().unwrap_or_else(|_| "unknown".to_owned());
        let mut text = format!("store {fingerprint}\n");
        let mut note = |name: &str, date: &Timestamp| {
            text.push_str(&format!("{name} {}\n", date.to_rfc3339()));
        };
        if let Some(last) = self.store.last_date()? {
            note("last", &last);
        }
        if let Some(ahead) = &*locked(&self.ahead) {
            note("after", &ahead.after);
            note("until", &ahead.until);
        }
        Ok(self.tree.write_small(".", LEDGER, text.as_bytes(), None)?)
    }

    /// Minting goes on from the present although later dates were handed out: the clock had run
    /// ahead and is right again. No date is handed out twice; those that an item has are passed over
    /// when their time comes. Tells the last of them, if there is one.
    pub fn go_on_from_present(&self) -> Result<Option<Timestamp>, ArchiveError> {
        self.writable()?;
        let now = self.clock.now();
        let mut dates = self.dates();
        let Some(last) = dates.last().filter(|last| **last > now).cloned() else {
            return Ok(None);
        };
        {
            let mut ahead = locked(&self.ahead);
            let (after, until) = match ahead.take() {
                Some(known) => (known.after.min(now.clone()), known.until.max(last.clone())),
                None => (now.clone(), last.clone()),
            };
            *ahead = Some(Ahead { after, until });
        }
        // First what is known of the dates ahead: after a crash in between they still count.
        self.write_ledger()?;
        self.store.set_last_date(&now)?;
        dates.go_on_after(Some(now));
        self.write_ledger()?;
        Ok(Some(last))
    }

    /// Whether a date was handed out by a clock that ran ahead: such a one does not tell how far
    /// minting has come.
    pub(super) fn is_ahead(&self, date: &Timestamp) -> bool {
        let is_in = |ahead: &Ahead| *date > ahead.after && *date <= ahead.until;
        locked(&self.ahead).as_ref().is_some_and(is_in)
    }

    /// Refuses what [`Archive::reserve`] would refuse now, and says why.
    pub fn check_wait(&self) -> Result<(), ArchiveError> {
        let last = self.store.last_date()?.max(self.store.reserved_date()?);
        let mut distributor = TemporalDistributor::new(self.facts.granularity, last);
        distributor.reserve(&self.clock.now(), WAIT_LIMIT)?;
        Ok(())
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
        self.catch_up_first();
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
