//! What was found out lately, for whoever asks the same while the index is as it was.

use parking_lot::Mutex;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// So many things are kept at the most, and bytes of them.
pub const MOST_KEPT: usize = 16_384;
/// See [`MOST_KEPT`].
pub const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A bounded memory of what was found out while the index was of one version. What has not been asked
/// for since as much again was found out is forgotten first.
#[derive(Debug)]
pub struct Kept<K, V> {
    known: Mutex<Known<K, V>>,
}

#[derive(Debug)]
struct Known<K, V> {
    version: Option<i64>,
    /// Half of what may be kept; when it is full, it is the older half.
    new: HashMap<K, (Arc<V>, usize)>,
    bytes: usize,
    old: HashMap<K, (Arc<V>, usize)>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        Kept {
            known: Mutex::new(Known {
                version: None,
                new: HashMap::new(),
                bytes: 0,
                old: HashMap::new(),
            }),
        }
    }
}

impl<K: Eq + Hash, V> Kept<K, V> {
    /// What is kept under a key, found out while the index was of this version.
    pub fn get<Q>(&self, version: i64, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut known = self.known.lock();
        if known.version != Some(version) {
            return None;
        }
        if let Some((value, _)) = known.new.get(key) {
            return Some(Arc::clone(value));
        }
        let (key, (value, size)) = known.old.remove_entry(key)?;
        known.add(key, Arc::clone(&value), size);
        Some(value)
    }

    /// Keeps what was found out after the index was seen to be of this version; `size` is its size in
    /// bytes, with its key.
    pub fn keep(&self, version: i64, key: K, value: V, size: usize) {
        let mut known = self.known.lock();
        // Versions rise: what was found out before the last change is of no use.
        if known.version.is_some_and(|current| current > version) {
            return;
        }
        if known.version != Some(version) {
            known.version = Some(version);
            known.new.clear();
            known.old.clear();
            known.bytes = 0;
        }
        known.add(key, Arc::new(value), size);
    }
}

impl<K: Eq + Hash, V> Known<K, V> {
    fn add(&mut self, key: K, value: Arc<V>, size: usize) {
        if size > MOST_BYTES / 4 {
            return;
        }
        if self.new.len() >= MOST_KEPT / 2 || self.bytes + size > MOST_BYTES / 2 {
            self.old = std::mem::take(&mut self.new);
            self.bytes = 0;
        }
        self.bytes += size;
        if let Some((_, size)) = self.new.insert(key, (value, size)) {
            self.bytes -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kept: &Kept<usize, usize>) -> usize {
        let known = kept.known.lock();
        known.new.len() + known.old.len()
    }

    #[test]
    fn another_version_forgets_all() {
        let kept = Kept::default();
        kept.keep(1, 7, "seven", 5);
        assert_eq!(kept.get(1, &7).as_deref(), Some(&"seven"));
        assert_eq!(kept.get(2, &7), None);
        kept.keep(2, 8, "eight", 5);
        assert_eq!(kept.get(2, &7), None);
        assert_eq!(kept.get(2, &8).as_deref(), Some(&"eight"));
        // It was found out before the index changed.
        kept.keep(1, 7, "seven", 5);
        assert_eq!(kept.get(1, &7), None);
        assert_eq!(kept.get(2, &8).as_deref(), Some(&"eight"));
    }

    #[test]
    fn what_is_kept_is_bounded_in_number() {
        let kept = Kept::default();
        for number in 0..3 * MOST_KEPT {
            kept.keep(1, number, number, 1);
            assert_eq!(
                kept.get(1, &0).as_deref(),
                Some(&0),
                "asked for all the time"
            );
            assert!(count(&kept) <= MOST_KEPT);
        }
        assert_eq!(kept.get(1, &1), None);
    }

    #[test]
    fn what_is_kept_is_bounded_in_bytes() {
        let kept = Kept::default();
        let size = MOST_BYTES / 8;
        for number in 0..100 {
            kept.keep(1, number, number, size);
            assert!(count(&kept) * size <= MOST_BYTES);
        }
        assert!(kept.get(1, &99).is_some());
        kept.keep(1, 100, 100, MOST_BYTES);
        assert_eq!(kept.get(1, &100), None);
    }
}
