//! An LRU cache, based on quick_cache, whose entries are valid for one version of the index.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};

/// The number of shards. An entry that is larger than one shard is not cached.
const SHARDS: usize = 4;

/// Entries by key, each valid for one version of the index.
#[derive(Debug)]
pub(super) struct Versioned<K, V> {
    entries: Cache<K, VersionedValue<V>, Size>,
    /// The newest version that has entries. Versions only increase.
    newest: AtomicI64,
}

#[derive(Debug)]
struct VersionedValue<V> {
    version: i64,
    value: Arc<V>,
    /// The size of key and value, in bytes.
    size: usize,
}

impl<V> Clone for VersionedValue<V> {
    fn clone(&self) -> VersionedValue<V> {
        VersionedValue {
            value: Arc::clone(&self.value),
            ..*self
        }
    }
}

/// Weighs entries by size, but at least by `least` bytes, which limits their number.
#[derive(Clone, Debug)]
struct Size {
    least: usize,
}

impl<K, V> Weighter<K, VersionedValue<V>> for Size {
    fn weight(&self, _: &K, entry: &VersionedValue<V>) -> u64 {
        entry.size.max(self.least) as u64
    }
}

impl<K: Eq + Hash, V> Versioned<K, V> {
    /// A cache of at most so many entries and bytes.
    pub(super) fn new(entries: usize, bytes: usize) -> Versioned<K, V> {
        let size = Size {
            least: bytes.div_ceil(entries),
        };
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(entries)
            .weight_capacity(bytes as u64)
            .build();
        let cache = match options {
            Ok(options) => {
                Cache::with_options(options, size, Default::default(), Default::default())
            }
            // Only a missing capacity is an error.
            Err(_) => Cache::with_weighter(entries, bytes as u64, size),
        };
        Versioned {
            entries: cache,
            newest: AtomicI64::new(i64::MIN),
        }
    }

    /// The value for a key and this version.
    pub(super) fn get<Q>(&self, version: i64, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let entry = self.entries.get(key)?;
        (entry.version == version).then_some(entry.value)
    }

    /// Inserts a value. `version` must have been read before the value was found. `size` is that of key and
    /// value, in bytes.
    pub(super) fn insert(&self, version: i64, key: K, value: V, size: usize) {
        let newest = self.newest.fetch_max(version, Ordering::SeqCst);
        if newest > version {
            return;
        }
        if newest < version {
            self.entries.clear();
        }
        let value = Arc::new(value);
        let entry = VersionedValue {
            version,
            value,
            size,
        };
        self.entries.insert(key, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: usize = 16_384;
    const BYTES: usize = 16 * 1024 * 1024;

    fn cache() -> Versioned<usize, usize> {
        Versioned::new(ENTRIES, BYTES)
    }

    #[test]
    fn entries_hold_for_one_version() {
        let cache = cache();
        cache.insert(1, 7, 70, 5);
        assert_eq!(cache.get(1, &7).as_deref(), Some(&70));
        assert_eq!(cache.get(2, &7), None);
        cache.insert(2, 8, 80, 5);
        assert_eq!(cache.get(2, &7), None);
        assert_eq!(cache.get(2, &8).as_deref(), Some(&80));
        // Found before the index changed.
        cache.insert(1, 7, 70, 5);
        assert_eq!(cache.get(1, &7), None);
        assert_eq!(cache.get(2, &8).as_deref(), Some(&80));
    }

    #[test]
    fn another_version_frees_the_entries_of_the_last() {
        let cache = cache();
        for number in 0..100 {
            cache.insert(1, number, number, 5);
        }
        assert_eq!(cache.entries.len(), 100);
        cache.insert(2, 7, 7, 5);
        assert_eq!(cache.entries.len(), 1);
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let cache = cache();
        for number in 0..3 * ENTRIES {
            cache.insert(1, number, number, 1);
            if number % 10 == 0 {
                assert!(cache.get(1, &0).is_some(), "it is used all the time");
            }
            assert!(cache.entries.len() <= ENTRIES);
        }
    }

    #[test]
    fn the_bytes_of_entries_are_bounded() {
        let cache = cache();
        let size = BYTES / 8;
        for number in 0..100 {
            cache.insert(1, number, number, size);
            assert!(cache.entries.weight() <= BYTES as u64);
        }
        assert!(!cache.entries.is_empty());
        cache.insert(1, 100, 100, BYTES / 2);
        assert_eq!(cache.get(1, &100), None, "it is too large");
    }
}
