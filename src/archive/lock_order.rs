//! Mutexes with a rank. A thread locks them in the order of their ranks.
//!
//! A build with debug assertions checks this at each lock, so that an order that could deadlock
//! fails in the first test that uses it, even if no other thread interferes. A release build checks
//! nothing, and the mutex needs no additional memory.
//!
//! The locks of an Archive, in the order in which they are taken:
//!
//! | rank | lock | protects |
//! |---|---|---|
//! | [`Rank::Changes`] | `Archive::edits` | tree and index: one change of items at a time |
//! | [`Rank::Dates`] | `DateLedger` | the last date given out, and how far dates are reserved |
//! | [`Rank::JointChanges`] | `RecoveryLog` | the entries of joint changes that have ended |
//! | [`Rank::DirtyRegions`] | `RecoveryLog` | the levels in the log, and the number of their users |
//! | [`Rank::Index`] | `Store` | a connection to the index |
//! | [`Rank::IndexBefore`] | `Store`, read only | the connection to an index that is read beside another |
//! | [`Rank::CommitResult`] | group commit | the result of one queued write |
//! | [`Rank::CommitQueue`] | group commit | the writes that wait for the connection |
//! | [`Rank::Leaf`] | all others | a list or a value; no other lock is taken with it |

use std::ops::{Deref, DerefMut};

use parking_lot::{Mutex, MutexGuard};

/// The rank of a lock. A thread that holds a lock may not take another of the same or a lower rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Changes,
    Dates,
    JointChanges,
    DirtyRegions,
    Index,
    IndexBefore,
    CommitResult,
    CommitQueue,
    Leaf,
}

/// A mutex with a rank.
#[derive(Debug)]
pub(crate) struct RankedMutex<T> {
    mutex: Mutex<T>,
    #[cfg(debug_assertions)]
    rank: Rank,
}

impl<T> RankedMutex<T> {
    pub(crate) fn new(rank: Rank, content: T) -> RankedMutex<T> {
        #[cfg(not(debug_assertions))]
        let _ = rank;
        RankedMutex {
            mutex: Mutex::new(content),
            #[cfg(debug_assertions)]
            rank,
        }
    }

    /// Takes the lock. With debug assertions, panics if the thread holds a lock of this or a higher rank.
    pub(crate) fn lock(&self) -> RankedGuard<'_, T> {
        RankedGuard {
            #[cfg(debug_assertions)]
            _taken: taken::Taken::of(self.rank),
            guard: self.mutex.lock(),
        }
    }

    /// Takes the lock if it is free. With debug assertions, panics as [`RankedMutex::lock`] does.
    pub(crate) fn try_lock(&self) -> Option<RankedGuard<'_, T>> {
        Some(RankedGuard {
            #[cfg(debug_assertions)]
            _taken: taken::Taken::of(self.rank),
            guard: self.mutex.try_lock()?,
        })
    }
}

/// A held lock; dropping it releases the lock.
#[derive(Debug)]
#[must_use]
pub(crate) struct RankedGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    #[cfg(debug_assertions)]
    _taken: taken::Taken,
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(debug_assertions)]
mod taken {
    use std::cell::Cell;

    use super::Rank;

    thread_local! {
        /// One bit for each rank of which this thread holds a lock.
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    /// Records that a thread holds a lock of a rank.
    #[derive(Debug)]
    pub(super) struct Taken(Rank);

    impl Taken {
        pub(super) fn of(rank: Rank) -> Taken {
            let held = HELD.get();
            let later = held >> (rank as u32);
            assert!(
                later == 0,
                "a lock of rank {rank:?} is taken with one of rank {} or higher",
                rank as u32 + later.trailing_zeros()
            );
            HELD.set(held | 1 << (rank as u32));
            Taken(rank)
        }
    }

    impl Drop for Taken {
        fn drop(&mut self) {
            HELD.set(HELD.get() & !(1 << (self.0 as u32)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes locks of these ranks one after another, and returns whether this is permitted.
    fn may_take(ranks: &[Rank]) -> bool {
        let locks: Vec<_> = ranks
            .iter()
            .map(|rank| RankedMutex::new(*rank, 0))
            .collect();
        let take = || {
            let guards: Vec<_> = locks.iter().map(RankedMutex::lock).collect();
            guards.len()
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(take)).is_ok()
    }

    #[test]
    fn locks_are_taken_in_the_order_of_their_ranks() {
        assert!(may_take(&[
            Rank::Changes,
            Rank::Dates,
            Rank::Index,
            Rank::Leaf
        ]));
        assert!(may_take(&[Rank::Leaf]));
        if cfg!(debug_assertions) {
            assert!(!may_take(&[Rank::Index, Rank::Changes]));
            assert!(!may_take(&[Rank::Changes, Rank::Leaf, Rank::Dates]));
            assert!(!may_take(&[Rank::Leaf, Rank::Leaf]));
        }
        // A lock released by a panic can be taken again.
        assert!(may_take(&[Rank::Changes, Rank::Leaf]));
    }

    #[test]
    fn a_lock_that_was_let_go_does_not_count() {
        let (first, second) = (
            RankedMutex::new(Rank::Changes, 1),
            RankedMutex::new(Rank::Leaf, 2),
        );
        let guard = second.lock();
        drop(guard);
        let mut guard = first.lock();
        *guard += *second.lock();
        assert_eq!(*guard, 3);
    }
}
