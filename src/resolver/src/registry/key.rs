//! Registration keys (ibi-resolution(7), "Inclusion"): `10*DIGIT ["-" 10*DIGIT]`.

use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use ibifs_os::random;
use std::fmt;

/// The longest key, in characters.
const LONGEST: usize = 128;
/// The fewest digits of a part.
const SHORTEST_PART: usize = 10;

/// The key by which an Archive proves that it is the one that was registered.
#[derive(Clone, PartialEq, Eq)]
pub struct ArchiveKey(String);

/// The text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError;

impl Localize for KeyError {
    fn message(&self) -> Message {
        message!(
            "a registration key is {shortest_part} digits or more, optionally followed by '-' and as many again; at most {longest} characters",
            shortest_part = SHORTEST_PART,
            longest = LONGEST
        )
    }
}

display_message!(KeyError);

impl std::error::Error for KeyError {}

impl ArchiveKey {
    /// Parses a key.
    ///
    /// # Errors The text does not have the form of a key.
    pub fn parse(text: &str) -> Result<ArchiveKey, KeyError> {
        let mut parts = text.splitn(2, '-');
        let is_good = text.len() <= LONGEST
            && parts.all(|part| {
                part.len() >= SHORTEST_PART && part.bytes().all(|byte| byte.is_ascii_digit())
            });
        is_good.then(|| ArchiveKey(text.to_owned())).ok_or(KeyError)
    }

    /// A new random key.
    ///
    /// # Errors The system returns no random numbers.
    pub fn drawn() -> std::io::Result<ArchiveKey> {
        let number = u128::from_ne_bytes(random::draw()?);
        let (first, second) = ((number >> 64) as u64, number as u64);
        Ok(ArchiveKey(format!("{first:020}-{second:020}")))
    }
}

impl fmt::Display for ArchiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Does not print the key, which is a secret.
impl fmt::Debug for ArchiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for good in ["1234567890", "1427244889-5349022633744855"] {
            assert_eq!(ArchiveKey::parse(good).expect(good).to_string(), good);
        }
        let long = "1".repeat(LONGEST + 1);
        for bad in [
            "",
            "123456789",
            "1234567890-",
            "1234567890-1",
            "123456789a",
            "1234567890-1234567890-1234567890",
            &long,
        ] {
            assert_eq!(ArchiveKey::parse(bad), Err(KeyError), "{bad}");
        }
        let drawn = ArchiveKey::drawn().expect("random numbers");
        assert_eq!(ArchiveKey::parse(&drawn.to_string()).as_ref(), Ok(&drawn));
        assert_ne!(ArchiveKey::drawn().expect("random numbers"), drawn);
    }
}
