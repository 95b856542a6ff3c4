//! Finished lists, so that readers who ask for one again and again cost no more than one reader.
//!
//! A list is valid for a version of the index, and for a short time only, since permissions and files change without it.
//! One request makes it, and those that wait meanwhile get the same; only so many lists are made at a time.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The number of lists that are made at a time. A request for a further one is refused.
const AT_ONCE: usize = 4;
/// The number of different lists that requests may wait for without waiting for each other.
const FLIGHTS: usize = 64;
/// The number of bytes of lists that are kept, in all.
const MOST: usize = 32 << 20;

/// Lists by what they are of.
#[derive(Debug)]
pub(in super::super) struct Kept<K> {
    lists: Mutex<HashMap<K, List>>,
    hasher: RandomState,
    /// Held while a list is made; two lists may share one.
    flights: Vec<tokio::sync::Mutex<()>>,
    places: Semaphore,
}

#[derive(Clone, Debug)]
struct List {
    bytes: Bytes,
    version: Option<i64>,
    begun: Instant,
}

impl<K> Default for Kept<K> {
    fn default() -> Kept<K> {
        Kept {
            lists: Mutex::default(),
            hasher: RandomState::new(),
            flights: (0..FLIGHTS)
                .map(|_| tokio::sync::Mutex::default())
                .collect(),
            places: Semaphore::new(AT_ONCE),
        }
    }
}

impl<K: Clone + Eq + Hash> Kept<K> {
    /// The list of this version of the index that was made in the last `lifetime`, or since this is called; otherwise
    /// what `make` makes. None if too many are being made.
    pub(super) async fn get<E>(
        &self,
        key: &K,
        version: Option<i64>,
        lifetime: Duration,
        make: impl Future<Output = Result<Bytes, E>>,
    ) -> Option<Result<Bytes, E>> {
        let arrived = Instant::now();
        let known = || {
            let found = self.lists.lock().get(key).cloned()?;
            let is_of_version = version.is_some() && version <= found.version;
            let is_valid = is_of_version && found.begun.elapsed() < lifetime;
            (is_valid || found.begun >= arrived).then_some(found.bytes)
        };
        if let Some(bytes) = known() {
            return Some(Ok(bytes));
        }
        let flight = self.hasher.hash_one(key) % FLIGHTS as u64;
        let _flight = match self
            .flights
            .get(usize::try_from(flight).unwrap_or_default())
        {
            Some(flight) => flight.lock().await,
            None => return None,
        };
        if let Some(bytes) = known() {
            return Some(Ok(bytes));
        }
        let _place = self.places.try_acquire().ok()?;
        let begun = Instant::now();
        let made = make.await;
        if let Ok(bytes) = &made {
            self.keep(
                key.clone(),
                List {
                    bytes: bytes.clone(),
                    version,
                    begun,
                },
            );
        }
        Some(made)
    }

    /// Keeps a list, and drops the oldest where there are too many bytes.
    fn keep(&self, key: K, list: List) {
        let mut lists = self.lists.lock();
        lists.insert(key, list);
        while lists.values().map(|list| list.bytes.len()).sum::<usize>() > MOST {
            let oldest = lists.iter().min_by_key(|(_, list)| list.begun);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            lists.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(future)
    }

    /// The number of times that a list was made, as its text.
    async fn made(count: &Cell<usize>) -> Result<Bytes, Infallible> {
        count.set(count.get() + 1);
        tokio::task::yield_now().await;
        Ok(Bytes::from(count.get().to_string()))
    }

    #[test]
    fn a_list_is_made_once_for_a_version() {
        let (kept, count) = (Kept::default(), Cell::new(0));
        run(async {
            let get = |version, lifetime| kept.get(&"a", version, lifetime, made(&count));
            let three = tokio::join!(get(None, LONG), get(Some(1), LONG), get(Some(1), LONG));
            assert_eq!(three.0, Some(Ok(Bytes::from("1"))));
            // The first one was begun before the others arrived, of an unknown version.
            assert_eq!(three.1, Some(Ok(Bytes::from("2"))));
            assert_eq!(three.1, three.2, "it waits for the one before");
            assert_eq!(get(Some(1), LONG).await, Some(Ok(Bytes::from("2"))));
            assert_eq!(get(Some(1), LONG).await, Some(Ok(Bytes::from("2"))));
            for (version, lifetime) in [(Some(2), LONG), (None, LONG), (Some(2), Duration::ZERO)] {
                let before = count.get();
                get(version, lifetime).await;
                assert_eq!(count.get(), before + 1, "{version:?} {lifetime:?}");
            }
        });
    }

    #[test]
    fn too_many_are_refused_and_what_is_kept_is_bounded() {
        let kept = Kept::default();
        run(async {
            let _places = kept.places.acquire_many(AT_ONCE as u32).await;
            let none = kept.get(&1, Some(1), LONG, async {
                Ok::<_, Infallible>(Bytes::new())
            });
            assert_eq!(none.await, None);
        });
        let begun = Instant::now();
        for key in 0..10 {
            let list = List {
                bytes: Bytes::from(vec![0; MOST / 4]),
                version: Some(1),
                begun: begun + Duration::from_secs(key),
            };
            kept.keep(key, list);
        }
        let mut keys: Vec<u64> = kept.lists.lock().keys().copied().collect();
        keys.sort_unstable();
        assert_eq!(keys, [6, 7, 8, 9]);
    }
}
