//! A set of items that takes a few bytes for each, so that a check of a large store fits in memory. Two items
//! may collide, with a probability of one in 2^64 for a pair.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::formats::item::Names;
use ibi::Ibip;

/// A set of items, in a few bytes each.
#[derive(Default)]
pub(super) struct ItemSet {
    hasher: RandomState,
    known: HashSet<u64>,
}

impl ItemSet {
    fn number(&self, names: &Names) -> u64 {
        let rep = names.rep().map(ibi::Rep::canonical);
        let key = rep.or_else(|| names.ibip().map(Ibip::canonical));
        self.hasher.hash_one(key.unwrap_or_default())
    }

    pub(super) fn add(&mut self, names: &Names) {
        self.known.insert(self.number(names));
    }

    pub(super) fn has(&self, names: &Names) -> bool {
        !self.known.is_empty() && self.known.contains(&self.number(names))
    }
}
