//! Group commit: what several threads write at the same time goes to disk with one sync.
//!
//! A thread that writes queues its record and then takes the connection. The first thread to get the
//! connection commits all records queued so far; the others find that their write is done when they get it.
//! No thread waits for others to arrive, and the slower the disk, the larger the groups.

use std::sync::Arc;

use super::record::{RecordWrite, apply};
use super::{ItemId, Store, StoreError};
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::sql::engine::{Connection, Sync};
use ibi::message;

/// A queued write and its result.
#[derive(Debug)]
pub(super) struct PendingWrite {
    write: RecordWrite,
    result: RankedMutex<Option<Result<ItemId, StoreError>>>,
}

impl Store {
    /// Writes a record in a synced transaction, together with those of other waiting threads.
    pub(super) fn write_in_group(&self, write: RecordWrite) -> Result<ItemId, StoreError> {
        let ours = Arc::new(PendingWrite {
            write,
            result: RankedMutex::new(Rank::CommitResult, None),
        });
        self.waiting.lock().push(Arc::clone(&ours));
        let mut connection = self.lock();
        let group = match ours.result.lock().take() {
            Some(result) => return result,
            None => std::mem::take(&mut *self.waiting.lock()),
        };
        commit(&mut connection, &group);
        let result = ours.result.lock().take();
        // The write was queued and not done, so it was in the group.
        result.unwrap_or_else(|| {
            Err(StoreError::Broken {
                what: message!("a queue lost a write"),
            })
        })
    }
}

fn commit(connection: &mut Connection, group: &[Arc<PendingWrite>]) {
    let together = connection.transact(Sync::Now, |transaction| {
        group
            .iter()
            .map(|waiting| apply(transaction, &waiting.write))
            .collect::<Result<Vec<_>, _>>()
    });
    match (together, group) {
        (Ok(ids), _) => {
            for (waiting, id) in group.iter().zip(ids) {
                *waiting.result.lock() = Some(Ok(id));
            }
        }
        (Err(error), [alone]) => *alone.result.lock() = Some(Err(error)),
        // One record cannot be written. Each is written alone, so that only that one gets the error.
        (Err(_), _) => {
            for waiting in group {
                let alone = connection
                    .transact(Sync::Now, |transaction| apply(transaction, &waiting.write));
                *waiting.result.lock() = Some(alone);
            }
        }
    }
}
