//! The keys of answers (ibi-resolution(7), `urlkey`). Each key is unique and authorizes counting one access.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// The most keys that are stored. The acknowledgment of an older key counts nothing.
const MOST_KEYS: usize = 65_536;

/// The keys that have been issued and not yet acknowledged.
#[derive(Debug, Default)]
pub struct Keys {
    issued: Mutex<Issued>,
}

#[derive(Debug, Default)]
struct Issued {
    items: HashMap<String, String>,
    oldest: VecDeque<String>,
}

impl Keys {
    /// Issues a key for an answer about an item: the time in seconds, and random digits.
    pub fn issue(&self, item: &str, second: i64, random: u64) -> String {
        let key = format!("{second:010}-{random:020}");
        let mut issued = self.issued.lock();
        if issued.oldest.len() == MOST_KEYS
            && let Some(oldest) = issued.oldest.pop_front()
        {
            issued.items.remove(&oldest);
        }
        issued.items.insert(key.clone(), item.to_owned());
        issued.oldest.push_back(key.clone());
        key
    }

    /// The item for which the key was issued. None for an unknown key, or one that was acknowledged before.
    pub fn acknowledge(&self, key: &str) -> Option<String> {
        self.issued.lock().items.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_counts_once() {
        let keys = Keys::default();
        let key = keys.issue("a/b/2009/02.16", 1_427_244_889, 5_349_022_633_744_855);
        assert_eq!(key, "1427244889-00005349022633744855");
        assert_eq!(keys.acknowledge("1427244889-1"), None);
        assert_eq!(keys.acknowledge(&key).as_deref(), Some("a/b/2009/02.16"));
        assert_eq!(keys.acknowledge(&key), None);
    }

    #[test]
    fn old_keys_are_forgotten() {
        let keys = Keys::default();
        let first = keys.issue("item", 0, 0);
        for number in 1..=MOST_KEYS as u64 {
            keys.issue("item", 0, number);
        }
        assert_eq!(keys.acknowledge(&first), None);
        assert_eq!(keys.issued.lock().items.len(), MOST_KEYS);
    }
}
