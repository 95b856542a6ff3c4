//! Counts the accesses to items (ibi-resolution(7), "acknowledgment"): in memory at once, on disk when
//! [`AccessCounter::write`] is called.

use parking_lot::Mutex;
use std::collections::HashMap;

use crate::archive::Archive;
use crate::archive::store::{self, StoreError};

/// The accesses to an Archive's items. If the file cannot be opened, only those since the start.
#[derive(Debug, Default)]
pub struct AccessCounter {
    /// Accesses that are not on disk yet, by item.
    new: Mutex<HashMap<String, u64>>,
    /// Accesses on disk. Locked before `new`, and held while counts move from there, so that a reader counts
    /// each access once.
    written: Mutex<Option<store::Accesses>>,
}

impl AccessCounter {
    /// Counts one access to an item.
    pub fn count(&self, item: String) {
        *self.new.lock().entry(item).or_default() += 1;
    }

    /// Opens the file before the process drops its privileges, without which it may not be opened later.
    pub fn open(&self, archive: &Archive) {
        match store::Accesses::open(archive.tree().root(), archive.facts().index.as_ref()) {
            Ok(open) => *self.written.lock() = Some(open),
            Err(error) => log::warn!("accesses are counted in memory alone: {error}"),
        }
    }

    /// The number of accesses to an item. Counts on disk are included if they can be read.
    pub fn of(&self, archive: &Archive, item: &str) -> u64 {
        let mut written = self.written.lock();
        let earlier = (|| {
            if written.is_none() {
                *written = store::Accesses::open_if_there(
                    archive.tree().root(),
                    archive.facts().index.as_ref(),
                )?;
            }
            written.as_ref().map_or(Ok(0), |written| written.of(item))
        })();
        let earlier = earlier.unwrap_or_else(|error: StoreError| {
            log::warn!("how often items were reached before is not known: {error}");
            0
        });
        earlier + self.new.lock().get(item).copied().unwrap_or(0)
    }

    /// Writes the accesses that are not on disk yet. If that fails, they are kept for the next attempt.
    ///
    /// # Errors The file cannot be opened or written.
    pub fn write(&self, archive: &Archive) -> Result<(), StoreError> {
        let mut written = self.written.lock();
        let new = std::mem::take(&mut *self.new.lock());
        if new.is_empty() {
            return Ok(());
        }
        let done = (|| {
            let mut open = match written.take() {
                Some(open) => open,
                None => {
                    store::Accesses::open(archive.tree().root(), archive.facts().index.as_ref())?
                }
            };
            let done = open.add(&new);
            *written = Some(open);
            done
        })();
        if done.is_err() {
            let mut kept = self.new.lock();
            for (item, count) in new {
                *kept.entry(item).or_default() += count;
            }
        }
        done
    }
}
