//! The ledger on disk: what the next start must know of this one. It has the last date and shows whether
//! the store is the same one.
//!
//! No date is handed out up to the instant at which this process opened the store. So it does not
//! matter what the disk has forgotten, or by what it was set back to an earlier state: whatever was
//! handed out before carries an earlier date, if the clock was right. A clock that is set forward while
//! the store is open counts as opening it: so does a machine that goes on from a picture of its memory.
//!
//! A date is durable on disk before it is handed out. One write reserves all dates of the next second;
//! those that are not asked for until then are handed out later or, at a regular end, given back. After
//! any other end all reserved dates count as handed out.

use std::time::Duration;

use super::dates::Ahead;
use super::{Archive, ArchiveError, WAIT_LIMIT, lock};
use crate::archive::tree::Action;
use ibi::Timestamp;
use ibi::distributor::{Reservation, TemporalDistributor};
use ibi::pairs::{Pairs, Value};

pub(super) const LEDGER: &str = "ledger";

/// In the ledger, while the lock's word is being changed: the word that the lock had.
const BEFORE: &str = "before";

/// Where the lock had none.
const NONE: &str = "-";

/// Whether a ledger and a lock are of one store, neither of them from a copy.
fn is_same(ledger: &[u8], found: &lock::Found) -> bool {
    let noted = lock::word_in(ledger, "store").unwrap_or_default();
    let word = lock::word_in(ledger, "word");
    let is_as_noted = noted == found.fingerprint;
    match lock::word_in(ledger, BEFORE) {
        None => is_as_noted && word == found.word,
        // A crash came before the lock was written, or after that.
        Some(before) if found.word.as_deref().unwrap_or(NONE) == before => is_as_noted,
        Some(_) => word == found.word && lock::is_same_file(&noted, &found.fingerprint),
    }
}

/// The last date handed out, as the ledger says.
pub(super) fn last_in_ledger(ledger: &[u8]) -> Option<Timestamp> {
    match Pairs::parse(ledger).ok()?.get("last")? {
        Value::Word(word) => Timestamp::parse_rfc3339(word).ok(),
        Value::List(_) => None,
    }
}

impl Archive {
    /// Reserves a date. It is written down durably before this returns and is never handed out
    /// again, whatever becomes of it. The caller waits `reservation.wait` and then calls
    /// [`Archive::mint_reserved`]; meanwhile no other caller waits.
    pub fn reserve(&self) -> Result<Reservation, ArchiveError> {
        self.reserve_within(WAIT_LIMIT)
    }

    /// The same for a caller who waits longer, or not as long.
    pub(super) fn reserve_within(&self, limit: Duration) -> Result<Reservation, ArchiveError> {
        self.writable()?;
        let now = self.clock.now();
        self.dates.reserve(&now, limit, |last, reserved| {
            Ok(self.store.reserve_dates(last, reserved)?)
        })
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
        let same = self
            .lock
            .as_ref()
            .is_some_and(|lock| is_same(&text, lock.found()));
        let noted = lock::word_in(&text, "last");
        let noted = noted.and_then(|date| Timestamp::parse_rfc3339(&date).ok());
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
        // The last look at the clock: what is read of the disk has been handed out before.
        self.dates.restart(mark, self.clock.now());
        self.dates.set_ahead(Ahead::read(&text));
        self.change_word(same)
    }

    pub(super) fn write_ledger(&self) -> Result<(), ArchiveError> {
        match &self.lock {
            Some(lock) => self.write_ledger_saying(lock, lock.word().as_deref(), None),
            None => Ok(()),
        }
    }

    fn write_ledger_saying(
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

    /// Gives lock and ledger a new word. Between any two of its three writes the ledger knows both
    /// words, so that a crash is not taken for a copy; not so in a store that is taken for one, which
    /// stays one until all is written.
    pub(super) fn change_word(&self, is_same: bool) -> Result<(), ArchiveError> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        let failed = |error: std::io::Error| self.tree.io_error(Action::Write, lock::FILE, &error);
        let word = lock::new_word().map_err(failed)?;
        if is_same {
            let before = lock.word().unwrap_or_else(|| NONE.to_owned());
            self.write_ledger_saying(lock, Some(&word), Some(&before))?;
        }
        lock.describe(&self.tree, &word).map_err(failed)?;
        self.write_ledger()
    }

    /// Minting goes on from the present although later dates were handed out: the clock had run
    /// ahead and is right again. No date is handed out twice; those that an item has are passed over
    /// when their time comes. Tells the last of them, if there is one.
    pub fn go_on_from_present(&self) -> Result<Option<Timestamp>, ArchiveError> {
        self.writable()?;
        let now = self.clock.now();
        let mut dates = self.dates.lock();
        let Some(last) = dates.last().filter(|last| **last > now).cloned() else {
            return Ok(None);
        };
        self.dates.widen_ahead(&now, &last);
        // First what is known of the dates ahead: after a crash in between they still count.
        self.write_ledger()?;
        self.store.set_last_date(&now)?;
        dates.go_on_after(Some(now.clone()));
        dates.start_at(now);
        self.write_ledger()?;
        Ok(Some(last))
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
        let give_back = |last: &Timestamp| Ok(self.store.set_last_date(last)?);
        self.dates.give_back(give_back)
    }

    /// Syncs what was minted and writes down what a later start should know. The Archive works
    /// without; a store whose database is lost afterwards is then safe as well.
    pub fn close(&self) {
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

#[cfg(test)]
mod tests;
