//! The Archives that have answered for a prefix. They are asked first, see `asking`.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use ibi::Ibi;
use ibi::ibip::prefix_key;
use quick_cache::sync::Cache;

/// The most prefixes for which answers are remembered. Those that are not asked for are forgotten first.
pub(super) const MOST_PREFIXES: usize = 100_000;
/// The most Archives that are remembered for a prefix.
const MOST_OF_PREFIX: usize = 3;

/// The services of Archives that have answered for a prefix, the last one first.
pub(super) type Answered = Arc<[Arc<str>]>;

/// The memory of a resolver.
#[derive(Debug)]
pub(super) struct Memory {
    answered: Cache<String, Answered>,
    /// The changes since it was last written.
    changed: Mutex<HashMap<String, Answered>>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            answered: Cache::new(MOST_PREFIXES),
            changed: Mutex::default(),
        }
    }
}

impl Memory {
    /// The services that have answered for identifiers with this prefix.
    pub(super) fn of(&self, prefix: &str) -> Option<Answered> {
        self.answered.get(prefix)
    }

    /// Remembers that a service has answered. One that holds the original comes first, one with a copy last.
    pub(super) fn note(&self, prefix: &str, service: &str, is_original: bool) {
        let known = self.answered.get(prefix);
        let known = known.as_deref().unwrap_or_default();
        let is_there = match known.first() {
            Some(first) if **first == *service => true,
            _ => !is_original && known.iter().any(|it| **it == *service),
        };
        if is_there {
            return;
        }
        let mut services: Vec<Arc<str>> = known.to_vec();
        services.retain(|it| **it != *service);
        services.truncate(MOST_OF_PREFIX - 1);
        let at = if is_original { 0 } else { services.len() };
        services.insert(at, service.into());
        self.put(prefix, services.into());
    }

    fn put(&self, prefix: &str, services: Answered) {
        self.answered
            .insert(prefix.to_owned(), Arc::clone(&services));
        let mut changed = self.changed.lock();
        if changed.len() < MOST_PREFIXES {
            changed.insert(prefix.to_owned(), services);
        }
    }

    /// Takes what has changed since this was called last.
    pub(super) fn take_changes(&self) -> Vec<(String, String)> {
        let changed = std::mem::take(&mut *self.changed.lock());
        let changed = changed.into_iter();
        changed
            .map(|(prefix, services)| (prefix, services.join(" ")))
            .collect()
    }

    /// Remembers what was written.
    pub(super) fn restore(&self, written: Vec<(String, String)>) {
        for (prefix, services) in written {
            let services = services.split(' ').take(MOST_OF_PREFIX).map(Arc::from);
            self.answered.insert(prefix, services.collect());
        }
    }
}

/// The common part of one maker's identifiers: the first two components of a rep, the first of an IBIp. All
/// spellings of an identifier have the same.
pub(super) fn prefix(ibi: &str) -> String {
    match Ibi::parse(ibi) {
        Ok(Ibi::Rep(rep)) => {
            let canonical = rep.canonical();
            let end = canonical.match_indices('/').nth(1);
            canonical[..end.map_or(canonical.len(), |(at, _)| at)].to_owned()
        }
        Ok(Ibi::Ibip(ibip)) => prefix_key(ibip.prefix()),
        // An alias: all that is before its last component.
        Err(_) => ibi
            .rsplit_once('/')
            .map_or(ibi, |(before, _)| before)
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        for same in [
            "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
            "SID.inpe.br/MTC-m18@80/2010/02.16.17.46",
        ] {
            assert_eq!(prefix(same), "sid.inpe.br/mtc-m18@80");
        }
        assert_eq!(prefix("8JMKD3MGP8W/34PGRBS"), "8JMKD3MGP8W");
        assert_eq!(prefix("8jmkd3mgp8w/34PGRBS"), "8JMKD3MGP8W");
        assert_eq!(prefix("x"), "x");
    }

    #[test]
    fn the_original_comes_first() {
        let memory = Memory::default();
        let known = |memory: &Memory| memory.of("p").map(|it| it.join(" ")).unwrap_or_default();
        memory.note("p", "copy", false);
        memory.note("p", "a", true);
        memory.note("p", "copy", false);
        assert_eq!(known(&memory), "a copy");
        memory.note("p", "b", true);
        memory.note("p", "other", false);
        assert_eq!(known(&memory), "b a other");
        memory.note("p", "a", true);
        assert_eq!(known(&memory), "a b other");
        let again = Memory::default();
        again.restore(memory.take_changes());
        assert_eq!(known(&again), "a b other");
        assert!(memory.take_changes().is_empty() && again.take_changes().is_empty());
    }

    #[test]
    fn it_is_bounded() {
        let memory = Memory::default();
        for number in 0..2 * MOST_PREFIXES {
            memory.note(&format!("p{number}"), "a", true);
        }
        assert!(memory.answered.len() <= MOST_PREFIXES);
        assert_eq!(memory.take_changes().len(), MOST_PREFIXES);
    }
}
