//! Parts of a store, which several hosts scrub at once.

use sha2::{Digest as _, Sha256};

/// The most parts of a store.
pub const MOST_PARTS: u32 = 1_000;

/// One of so many parts, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubPart {
    number: u32,
    count: u32,
}

impl ScrubPart {
    /// None unless the number is one of `count`, and these are not too many.
    #[must_use]
    pub fn new(number: u32, count: u32) -> Option<ScrubPart> {
        let is_one = (1..=count).contains(&number) && count <= MOST_PARTS;
        is_one.then_some(ScrubPart { number, count })
    }

    pub(super) fn number(self) -> u32 {
        self.number
    }

    pub(super) fn count(self) -> u32 {
        self.count
    }

    /// All parts of the same store, with this one.
    pub(super) fn all(self) -> impl Iterator<Item = ScrubPart> {
        (1..=self.count).map(move |number| ScrubPart { number, ..self })
    }

    /// Whether an item is in this part: by a digest of its place, which is the same on every host.
    pub(super) fn has(self, item: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(item).into();
        let [first, second, third, fourth, ..] = digest;
        u32::from_be_bytes([first, second, third, fourth]) % self.count == self.number - 1
    }
}
