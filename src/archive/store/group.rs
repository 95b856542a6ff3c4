//! Group commit: what several threads write at the same time goes to disk with one sync.
//!
//! A thread that writes queues its records and then takes the connection. The first thread to get the
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
    /// Writes records in a synced transaction, together with those of other waiting threads. Returns a result for each.
    pub(super) fn write_in_group(
        &self,
        writes: Vec<RecordWrite>,
    ) -> Vec<Result<ItemId, StoreError>> {
        let pending = |write| {
            Arc::new(PendingWrite {
                write,
                result: RankedMutex::new(Rank::CommitResult, None),
            })
        };
        let ours: Vec<_> = writes.into_iter().map(pending).collect();
        self.waiting.lock().extend(ours.iter().cloned());
        let mut connection = self.lock();
        // All of a thread are queued at once, so that they are in one group.
        if ours.first().is_some_and(|one| one.result.lock().is_none()) {
            let group = std::mem::take(&mut *self.waiting.lock());
            self.commit(&mut connection, &group);
        }
        let lost = || StoreError::Broken {
            what: message!("a queue lost a write"),
        };
        let result = |one: &Arc<PendingWrite>| one.result.lock().take();
        ours.iter()
            .map(|one| result(one).unwrap_or_else(|| Err(lost())))
            .collect()
    }

    fn commit(&self, connection: &mut Connection, group: &[Arc<PendingWrite>]) {
        let together = connection.transact(Sync::Now, |transaction| {
            group
                .iter()
                .map(|waiting| apply(transaction, &waiting.write, self.teller.get()))
                .collect::<Result<Vec<_>, _>>()
        });
        match (together, group) {
            (Ok(items), _) => {
                for (waiting, item) in group.iter().zip(items) {
                    *waiting.result.lock() = Some(self.note_recorded(Ok(item)));
                }
            }
            (Err(error), [alone]) => {
                *alone.result.lock() = Some(self.note_recorded(Err(error)));
            }
            // The wait for the server is not repeated for each; and what it has recorded would be taken for another's.
            (Err(StoreError::Away { place, what }), _) => {
                for waiting in group {
                    let (place, what) = (place.clone(), what.clone());
                    *waiting.result.lock() = Some(Err(StoreError::Away { place, what }));
                }
            }
            // One record cannot be written. Each is written alone, so that only that one gets the error.
            (Err(_), _) => {
                for waiting in group {
                    let alone = connection.transact(Sync::Now, |transaction| {
                        apply(transaction, &waiting.write, self.teller.get())
                    });
                    *waiting.result.lock() = Some(self.note_recorded(alone));
                }
            }
        }
    }
}
