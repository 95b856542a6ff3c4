//! A limit to the reads of one user that wait for servers at a time, so that a server that sends slowly keeps no other
//! user, and no read from another Archive, waiting.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of reads of one user that wait at a time.
const MOST_OF_USER: usize = 16;
/// The number of these that wait for one host.
const MOST_OF_HOST: usize = 8;

/// A user and, for the reads from one host, that host.
type Key = (u32, Option<String>);

/// The turns of all users.
#[derive(Debug, Default)]
pub(crate) struct ReadTurns(Mutex<HashMap<Key, Arc<Semaphore>>>);

/// The turn of a read, which ends on drop.
pub(crate) type ReadTurn = [Option<OwnedSemaphorePermit>; 2];

impl ReadTurns {
    /// Waits until a user may read from a host.
    pub(crate) async fn take(&self, user: u32, host: &str) -> ReadTurn {
        // A read that waits for its host takes no turn of the user's other reads.
        let of_host = self.of((user, Some(host.to_owned())), MOST_OF_HOST);
        let of_host = of_host.acquire_owned().await.ok();
        let of_user = self.of((user, None), MOST_OF_USER);
        [of_host, of_user.acquire_owned().await.ok()]
    }

    fn of(&self, key: Key, most: usize) -> Arc<Semaphore> {
        let mut turns = self.0.lock();
        // A read that waits or runs has a reference.
        turns.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = turns.entry(key);
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(most))))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_slow_host_takes_no_turn_of_others() {
        let turns = ReadTurns::default();
        let soon = async |user, host| {
            let turn = turns.take(user, host);
            tokio::time::timeout(Duration::from_millis(20), turn)
                .await
                .ok()
        };
        let mut taken = Vec::new();
        for _ in 0..MOST_OF_HOST {
            taken.push(soon(1001, "slow.example.org").await.expect("a turn"));
        }
        assert!(soon(1001, "slow.example.org").await.is_none());
        assert!(soon(1001, "other.example.org").await.is_some());
        assert!(soon(0, "slow.example.org").await.is_some());
        taken.pop();
        assert!(soon(1001, "slow.example.org").await.is_some());
        taken.clear();
        assert!(soon(1001, "other.example.org").await.is_some());
        assert!(turns.0.lock().len() <= 2);
    }
}
