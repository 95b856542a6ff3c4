//! Marks of damaged and lost files, as a text: a line for each, `<recorded digest> <digest found> <time>  <path>`. The
//! digest that was found is `-` where the file is lost, and `!` where it cannot be read.

use std::collections::BTreeMap;

use super::{Digest, decode, encode, lines};
use ibi::Timestamp;

/// A file that is not what was recorded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It has other content.
    Content(Digest),
    /// It is on a disk that cannot read it.
    Unreadable,
    /// It is lost.
    Nothing,
}

impl Found {
    /// Parses the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Found> {
        Some(match word {
            "-" => Found::Nothing,
            "!" => Found::Unreadable,
            digest => Found::Content(Digest::parse(digest.as_bytes())?),
        })
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Found::Content(digest) => digest.fmt(f),
            Found::Unreadable => f.write_str("!"),
            Found::Nothing => f.write_str("-"),
        }
    }
}

/// A file that is damaged or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The digest that is recorded of it.
    pub recorded: Digest,
    /// The finding in its place.
    pub found: Found,
    /// The time at which that was found.
    pub since: Timestamp,
}

/// The marks of an item, by path below the item.
pub type Marks = BTreeMap<Vec<u8>, Mark>;

/// Parses the text. An invalid line is ignored: the next scrub writes it again.
pub fn parse_marks(bytes: &[u8]) -> Marks {
    lines(bytes)
        .filter_map(|(_, line)| mark_line(line))
        .collect()
}

fn mark_line(line: &[u8]) -> Option<(Vec<u8>, Mark)> {
    let (digest, rest) = line.split_at_checked(64)?;
    let rest = rest.strip_prefix(b" ")?;
    let at = rest.windows(2).position(|pair| pair == b"  ")?;
    let (found, since) = std::str::from_utf8(&rest[..at]).ok()?.split_once(' ')?;
    let mark = Mark {
        recorded: Digest::parse(digest)?,
        found: Found::parse(found)?,
        since: Timestamp::parse_rfc3339(since).ok()?,
    };
    Some((decode(&rest[at + 2..]), mark))
}

/// The text of marks.
pub fn marks_text(marks: &Marks) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, mark) in marks {
        let since = mark.since.to_rfc3339();
        let line = format!("{} {} {since}  ", mark.recorded, mark.found);
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(&encode(path));
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_written() {
        let mark = |found| Mark {
            recorded: Digest([1; 32]),
            found,
            since: Timestamp::from_unix(1_700_000_000, 0),
        };
        let marks = Marks::from([
            (b"doc/a  b".to_vec(), mark(Found::Content(Digest([2; 32])))),
            (b"lost\n%".to_vec(), mark(Found::Nothing)),
            (b"sick".to_vec(), mark(Found::Unreadable)),
        ]);
        let mut text = marks_text(&marks);
        assert_eq!(parse_marks(&text), marks);
        text.extend_from_slice(b"half a li");
        assert_eq!(parse_marks(&text), marks);
    }
}
