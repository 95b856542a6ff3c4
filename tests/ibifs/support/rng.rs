//! Numbers that look random and are the same for the same seed.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::switch;

/// A generator (xorshift). Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The same numbers for the same seed.
    pub fn from_seed(seed: u64) -> Rng {
        // Neighbouring seeds are spread out, and none is 0, which xorshift never leaves.
        let state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Rng { state }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below the limit; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() >> 11) as usize % limit.max(1)
    }

    /// Whether it happens, `percent` times in a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        match all.len() {
            0 => None,
            count => all.get(self.below(count)),
        }
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_be_bytes()[0]
    }
}

/// The seed that `IBIFS_TEST_SEED` names, else a new one: given again it makes the same numbers. It is printed at once and
/// not captured, so that it is also known of a test that is killed.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let new = || now.expect("after 1970").as_nanos() as u64;
    let seed = switch("IBIFS_TEST_SEED").unwrap_or_else(new);
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test}: IBIFS_TEST_SEED={seed}");
    seed
}
