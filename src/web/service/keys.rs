//! The keys of answers (SPEC 8, `urlkey`): each is new, and authorises counting one access.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// So many answers are remembered; an acknowledgment of an older one counts nothing.
const MOST_KEYS: usize = 65_536;

/// The keys handed out and not acknowledged yet.
#[derive(Debug, Default)]
pub struct Keys {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    items: HashMap<String, String>,
    oldest: VecDeque<String>,
}

impl Keys {
    /// A key for an answer about an item: the second, and digits that nobody can guess.
    pub fn hand_out(&self, item: &str, second: i64, random: u64) -> String {
        let key = format!("{second:010}-{random:020}");
        let mut known = self.known.lock();
        if known.oldest.len() == MOST_KEYS
            && let Some(oldest) = known.oldest.pop_front()
        {
            known.items.remove(&oldest);
        }
        known.items.insert(key.clone(), item.to_owned());
        known.oldest.push_back(key.clone());
        key
    }

    /// The item that the key was handed out for, which was reached once; None where it was not, or was
    /// acknowledged before.
    pub fn acknowledge(&self, key: &str) -> Option<String> {
        self.known.lock().items.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_counts_once() {
        let keys = Keys::default();
        let key = keys.hand_out("a/b/2009/02.16", 1_427_244_889, 5_349_022_633_744_855);
        assert_eq!(key, "1427244889-00005349022633744855");
        assert_eq!(keys.acknowledge("1427244889-1"), None);
        assert_eq!(keys.acknowledge(&key).as_deref(), Some("a/b/2009/02.16"));
        assert_eq!(keys.acknowledge(&key), None);
    }

    #[test]
    fn old_keys_are_forgotten() {
        let keys = Keys::default();
        let first = keys.hand_out("item", 0, 0);
        for number in 1..=MOST_KEYS as u64 {
            keys.hand_out("item", 0, number);
        }
        assert_eq!(keys.acknowledge(&first), None);
        assert_eq!(keys.known.lock().items.len(), MOST_KEYS);
    }
}
