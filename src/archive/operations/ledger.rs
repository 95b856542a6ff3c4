//! The ledger on disk, which the next start reads. It has the last date given out, and shows
//! whether the store is still the same one.
//!
//! No date up to the instant at which this process opened the store is given out. So it
//! does not matter what the disk has lost, or whether the store was restored to an earlier state:
//! any date given out before is earlier, if the clock was right. A clock that is set forward while the
//! store is open counts as opening it, and so does a machine that resumes from a memory snapshot.
//!
//! A date is durable on disk before it is given out. One write reserves all dates of the next
//! second. Reserved dates that are not requested in this time are given out later or, at a regular
//! end, released. After any other end all reserved dates count as given out.

use super::dates::Ahead;
use super::{ArchiveError, Depositor, Keeper, WAIT_LIMIT, lock};
use crate::archive::store::{
    DateRequest, Grant, GrantTerms, MakeRecords, RECORDED_AHEAD, StoreError,
};
use crate::archive::tree::Action;
use ibi::Timestamp;
use ibi::distributor::{Reservation, TemporalDistributor};
use ibi::pairs::{Pairs, Value};
use std::time::Duration;

pub(super) const LEDGER: &str = "ledger";

/// In the ledger, while the lock's word is being changed: the previous word of the lock.
const BEFORE: &str = "before";

/// The value if the lock had no word.
const NONE: &str = "-";

/// Whether a ledger and a lock belong to the same store and neither is from a copy.
fn is_same(ledger: &[u8], previous: &lock::PreviousLock) -> bool {
    let noted = lock::word_in(ledger, "store").unwrap_or_default();
    let word = lock::word_in(ledger, "word");
    let is_as_noted = noted == previous.fingerprint;
    match lock::word_in(ledger, BEFORE) {
        None => is_as_noted && word == previous.word,
        // A crash came before the lock was written; in the next case, after that.
        Some(before) if previous.word.as_deref().unwrap_or(NONE) == before => is_as_noted,
        Some(_) => word == previous.word && lock::is_same_file(&noted, &previous.fingerprint),
    }
}

/// The last date given out according to the ledger.
pub(super) fn last_in_ledger(ledger: &[u8]) -> Option<Timestamp> {
    match Pairs::parse(ledger).ok()?.get("last")? {
        Value::Word(word) => Timestamp::parse_rfc3339(word).ok(),
        Value::List(_) => None,
    }
}

impl Keeper<'_> {
    /// The dates that are ahead of the clock according to the ledger.
    pub(super) fn ahead_in_ledger(&self) -> Option<Ahead> {
        let text = self.tree.read_small(LEDGER).ok().flatten();
        text.and_then(|text| Ahead::read(&text))
    }

    /// Reads the ledger and determines from which date minting continues. A store that was copied or
    /// restored lacks the dates given out since, and so does one whose database is lost. Such a store does
    /// not mint dates up to the present. The lock file shows whether a store was copied or restored.
    pub(super) fn read_ledger(&self) -> Result<(), ArchiveError> {
        let text = match self.tree.read_small(LEDGER) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                // Equivalent to a missing ledger, and safe: minting continues from the present.
                log::warn!("{error}; it is set aside, and a new one is written");
                self.tree.set_aside(".", LEDGER, "ledger.broken")?;
                Vec::new()
            }
        };
        let same = self
            .alone()
            .is_some_and(|lock| is_same(&text, lock.previous()));
        let noted = lock::word_in(&text, "last");
        let noted = noted.and_then(|date| Timestamp::parse_rfc3339(&date).ok());
        let last = self.store.last_date()?;
        let reserved = self.store.reserved_date()?;
        let mut mark = last.clone().max(reserved.clone()).max(noted);
        if !same {
            log::warn!("this store was copied or restored; minting continues from the present");
        }
        if !same || last.is_none() {
            mark = mark.max(Some(self.clock.now()));
        }
        if (mark != last || reserved.is_some())
            && let Some(mark) = &mark
        {
            self.store.set_last_date(mark)?;
        }
        // The clock is read last: all dates read from the disk were given out before.
        self.dates.restart(mark, self.clock.now());
        self.dates.set_ahead(Ahead::read(&text));
        self.change_word(same)
    }

    pub(super) fn write_ledger(&self) -> Result<(), ArchiveError> {
        match self.alone() {
            Some(lock) => self.write_ledger_with(lock, lock.word().as_deref(), None),
            None => Ok(()),
        }
    }

    fn write_ledger_with(
        &self,
        lock: &lock::Lock,
        word: Option<&str>,
        before: Option<&str>,
    ) -> Result<(), ArchiveError> {
        let fingerprint = lock.fingerprint().unwrap_or_else(|_| "unknown".to_owned());
        let mut text = format!("store {fingerprint}\n");
        for (name, word) in [("word", word), (BEFORE, before)] {
            if let Some(word) = word {
                text.push_str(&format!("{name} {word}\n"));
            }
        }
        let mut note = |name: &str, date: &Timestamp| {
            text.push_str(&format!("{name} {}\n", date.to_rfc3339()));
        };
        if let Some(last) = self.store.last_date()? {
            note("last", &last);
        }
        if let Some(ahead) = self.dates.ahead() {
            note("after", &ahead.after);
            note("until", &ahead.until);
        }
        Ok(self.tree.write_small(".", LEDGER, text.as_bytes(), None)?)
    }

    /// Writes a new word to the lock and the ledger. Between any two of the three writes the ledger
    /// has both words, so that a crash does not look like a copy. A store that does look like a
    /// copy continues to do so until all three are written.
    pub(super) fn change_word(&self, is_same: bool) -> Result<(), ArchiveError> {
        let Some(lock) = self.alone() else {
            return Ok(());
        };
        let failed = |error: std::io::Error| self.tree.io_error(Action::Write, lock::FILE, &error);
        let word = lock::new_word().map_err(failed)?;
        if is_same {
            let before = lock.word().unwrap_or_else(|| NONE.to_owned());
            self.write_ledger_with(lock, Some(&word), Some(&before))?;
        }
        lock.describe(&self.tree, &word).map_err(failed)?;
        self.write_ledger()
    }

    /// Continues minting from the present although later dates were given out, for a clock that ran
    /// ahead and is right again. No date is given out twice: dates that an item has are skipped
    /// when their time comes. Returns the last of the later dates, if there are any.
    pub fn go_on_from_present(&self) -> Result<Option<Timestamp>, ArchiveError> {
        self.writable()?;
        let now = self.clock.now();
        let mut dates = self.dates.lock();
        let Some(last) = dates.last().filter(|last| **last > now).cloned() else {
            return Ok(None);
        };
        self.dates.widen_ahead(&now, &last);
        // The dates ahead are recorded first, so that they still count after a crash in between.
        self.write_ledger()?;
        self.store.set_last_date(&now)?;
        dates.go_on_after(Some(now.clone()));
        dates.start_at(now);
        self.write_ledger()?;
        Ok(Some(last))
    }

    /// Releases the dates that are reserved and not given out; those of a shared store never are.
    fn give_dates_back(&self) -> Result<(), ArchiveError> {
        if self.is_shared() {
            return Ok(());
        }
        let give_back = |last: &Timestamp| Ok(self.store.set_last_date(last)?);
        self.dates.give_back(give_back)
    }

    /// Writes what [`crate::archive::Archive::close`] writes, of a store that stays open.
    pub(super) fn write_down(&self) {
        self.replay_first();
        if self.lock.is_some()
            && let Err(error) = self
                .settle_now()
                .and_then(|()| self.give_dates_back())
                .and_then(|()| self.change_word(true))
        {
            log::warn!("cannot write the ledger: {error}");
        }
    }
}

impl Depositor<'_> {
    /// Fails with the error with which [`Depositor::reserve`] would fail now.
    pub fn check_wait(&self) -> Result<(), ArchiveError> {
        let last = self.store.last_date()?.max(self.store.reserved_date()?);
        let mut distributor = TemporalDistributor::new(self.facts.granularity, last);
        distributor.reserve(&self.clock.now(), WAIT_LIMIT)?;
        Ok(())
    }

    /// Reserves a date. The date is durable on disk before this returns and is never given out
    /// again, even if it is not used. The caller waits for `reservation.wait` and then calls
    /// [`Depositor::mint_reserved`]; other callers are not blocked meanwhile.
    ///
    /// # Errors
    /// The wait would exceed ten seconds and one step of the granularity.
    pub fn reserve(&self) -> Result<Reservation, ArchiveError> {
        self.reserve_some(1)?
            .pop()
            .ok_or(StoreError::Conflict.into())
    }

    /// Reserves as many dates as are asked for, like [`Depositor::reserve`]: one, and those after it that come soon.
    pub(super) fn reserve_some(&self, count: usize) -> Result<Vec<Reservation>, ArchiveError> {
        self.writable()?;
        let limits = self.limits(count);
        if self.is_shared() {
            let request = |limit| DateRequest { limit, item: None };
            let requests = limits.into_iter().map(request).collect();
            // Items of other threads that are served in the same transaction get their records in another one.
            let granted = self.grant(requests, &|_| Ok(Vec::new()))?;
            let given = granted.into_iter().map(|grant| match grant {
                Grant::Given(reservation) => Ok(reservation),
                _ => Err(StoreError::Conflict.into()),
            });
            return given.collect();
        }
        let now = self.clock.now();
        self.dates.reserve(&now, &limits, |last, reserved| {
            Ok(self.store.reserve_dates(last, reserved)?)
        })
    }

    /// Reserves dates among all hosts that share the store. Fewer than asked for if the wait for one would exceed its
    /// limit; an error if there is none.
    pub(super) fn grant(
        &self,
        requests: Vec<DateRequest>,
        make: &MakeRecords<'_>,
    ) -> Result<Vec<Grant>, ArchiveError> {
        loop {
            let terms = GrantTerms {
                granularity: self.facts.granularity,
                now: &self.clock.now(),
            };
            let mut granted = self.store.grant(&terms, requests.clone(), make)?;
            if let Some(Grant::NotYet(wait)) = granted.first() {
                std::thread::sleep(*wait);
                continue;
            }
            if let Some(Grant::TooLong(too_long)) = granted.first() {
                return Err(too_long.clone().into());
            }
            granted.retain(|grant| !matches!(grant, Grant::TooLong(_)));
            return Ok(granted);
        }
    }

    /// The longest waits for dates that are asked for together.
    pub(super) fn limits(&self, count: usize) -> Vec<Duration> {
        let first = WAIT_LIMIT.max(self.facts.granularity.step());
        let later = std::iter::repeat_n(RECORDED_AHEAD, count.saturating_sub(1));
        std::iter::once(first).chain(later).collect()
    }
}

#[cfg(test)]
mod tests;
