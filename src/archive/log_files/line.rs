//! A line of the log, its entry, and its form in a file.

use sha2::{Digest as _, Sha256};

use crate::formats::hex::{Hex, digit};
use crate::formats::tlog::merkle::Hash;

/// The longest line of a file, with its newline, in bytes.
pub(super) const LONGEST_LINE: usize = 64 << 10;

/// A line of the log: an event, and random bytes without which nobody can guess it from its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The random bytes.
    pub salt: [u8; 16],
    /// The event, without a newline.
    pub text: String,
}

impl LogLine {
    /// The entry of the log: SHA-256 over salt and text.
    pub fn entry(&self) -> Hash {
        let digest = Sha256::new().chain_update(self.salt);
        digest.chain_update(&self.text).finalize().into()
    }

    /// The line of a file. None if it has a newline of its own, or is too long.
    pub(super) fn numbered(&self, number: u64) -> Option<String> {
        let line = format!("{number} {} {}\n", Hex(&self.salt), self.text);
        (!self.text.contains('\n') && line.len() <= LONGEST_LINE).then_some(line)
    }

    /// Parses a line of a file, in the one form in which it is written.
    pub(super) fn parse(bytes: &[u8]) -> Option<(u64, LogLine)> {
        let number = number_of(bytes)?;
        let mut parts = std::str::from_utf8(bytes).ok()?.splitn(3, ' ').skip(1);
        let salt = bytes_of(parts.next()?)?;
        let text = parts.next()?.trim_end_matches('\n').to_owned();
        let line = LogLine { salt, text };
        let is_written_so = line.numbered(number)?.as_bytes() == bytes;
        is_written_so.then_some((number, line))
    }
}

/// The number with which a line of a file begins. None if the line does not end in a newline.
pub(super) fn number_of(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| *byte == b' ')?;
    let digits = std::str::from_utf8(line.get(..end)?).ok()?;
    digits.parse().ok().filter(|_| line.ends_with(b"\n"))
}

/// The bytes that lower-case hexadecimal digits are.
pub(super) fn bytes_of<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes = pairs.map(byte).collect::<Option<Vec<u8>>>()?;
    let bytes: [u8; N] = bytes.try_into().ok()?;
    (Hex(&bytes).to_string() == digits).then_some(bytes)
}
