//! What a later start must know of this one: the last date, and whether the store is the same.

use super::{Archive, ArchiveError, lock};
use crate::distributor::TemporalDistributor;
use crate::ibi::Timestamp;
use crate::pairs::{Pairs, Value};

const LEDGER: &str = "ledger";

impl Archive {
    /// A store that was copied, or that a backup was put back over, has forgotten what was minted
    /// since: it is known by its lock file, and then mints nothing up to the present.
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
        let last = {
            let distributor = self.distributor();
            distributor.last().cloned()
        };
        let mut mark = last.clone().max(noted);
        if !same {
            log::warn!("this store was copied or restored; minting goes on from the present");
            mark = mark.max(Some(self.clock.now()));
        }
        if mark != last
            && let Some(mark) = mark
        {
            self.store.set_last_date(&mark)?;
            *self.distributor() = TemporalDistributor::new(self.facts.granularity, Some(mark));
        }
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

    /// Writes down what a later start should know. The Archive works without; a store whose
    /// database is lost afterwards is then safe as well.
    pub fn close(&self) {
        if self.lock.is_some()
            && let Err(error) = self.write_ledger()
        {
            log::warn!("cannot write the ledger: {error}");
        }
    }
}
