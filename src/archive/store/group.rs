//! Group commit: what several threads want synced at once goes to disk with one sync.
//!
//! Who wants to write queues its record and then takes the connection like anybody else. Whoever gets
//! it first commits all that has queued up until then; the others, when their turn comes, find that
//! theirs is done. So nobody waits for company, and the slower the disk, the larger the groups.

use parking_lot::Mutex;
use std::sync::Arc;

use rusqlite::Connection;

use super::write::{self, Sync};
use super::{ItemId, Maker, Record, Store, StoreError};

/// A record that is to be synced.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) record: Record,
    /// For an item whose directory is not in place and synced yet.
    pub(super) mint: Option<Mint>,
}

/// For whom an item is minted.
#[derive(Debug)]
pub(super) struct Mint {
    pub(super) maker: Option<Maker>,
}

/// A change and what came of it.
#[derive(Debug)]
pub(super) struct Waiting {
    change: Change,
    outcome: Mutex<Option<Result<ItemId, StoreError>>>,
}

impl Store {
    /// Writes a record in a synced transaction, together with those of whoever else is waiting.
    pub(super) fn write_together(&self, change: Change) -> Result<ItemId, StoreError> {
        let ours = Arc::new(Waiting {
            change,
            outcome: Mutex::default(),
        });
        self.waiting.lock().push(Arc::clone(&ours));
        let mut connection = self.lock();
        let group = match ours.outcome.lock().take() {
            Some(outcome) => return outcome,
            None => std::mem::take(&mut *self.waiting.lock()),
        };
        commit(&mut connection, &group);
        let outcome = ours.outcome.lock().take();
        // Ours was queued and not done, so it was in the group.
        outcome.unwrap_or_else(|| {
            Err(StoreError::Broken {
                what: "a queue lost a write".to_owned(),
            })
        })
    }
}

fn commit(connection: &mut Connection, group: &[Arc<Waiting>]) {
    let together = write::transact(connection, Sync::Now, |transaction| {
        group
            .iter()
            .map(|waiting| write::apply(transaction, &waiting.change))
            .collect::<Result<Vec<_>, _>>()
    });
    match (together, group) {
        (Ok(ids), _) => {
            for (waiting, id) in group.iter().zip(ids) {
                *waiting.outcome.lock() = Some(Ok(id));
            }
        }
        (Err(error), [alone]) => *alone.outcome.lock() = Some(Err(error)),
        // One of them cannot be written; each by itself, they learn which and why.
        (Err(_), _) => {
            for waiting in group {
                let alone = write::transact(connection, Sync::Now, |transaction| {
                    write::apply(transaction, &waiting.change)
                });
                *waiting.outcome.lock() = Some(alone);
            }
        }
    }
}
