//! An entry of an item, and the line that it is in a text: inventories, levels and transfers have these lines, each
//! with a beginning, kinds and an order of its own. The metadata of a package ([`crate::mtree`]) has lines of another
//! program; it shares the checks.
//!
//! A line is ASCII, with words separated by spaces: the kind, the permission bits in octal, the time of the last change
//! in seconds and nanoseconds, the path, and what the kind requires. Bytes are percent-encoded. The item's own directory
//! is `.` or nothing. The lines are not trusted.

use std::fmt;

use ibi::message::{Localize, Message};
use ibi::pairs::{percent_decode, percent_encode};
use ibi::{display_message, message};

/// The longest accepted path, in bytes.
const LONGEST_PATH: usize = 65_536;
/// The longest accepted name, in bytes.
pub const LONGEST_NAME: usize = 255;
/// The longest target of a symbolic link on Linux, in bytes.
const LONGEST_TARGET: usize = 4_095;

/// The name of an extended attribute, and its value.
pub type Attribute = (Vec<u8>, Vec<u8>);

/// One entry of an item, with a kind of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<K> {
    /// Its path in the item, without a slash at its end; empty for the item's own directory.
    pub path: Vec<u8>,
    /// Its kind.
    pub kind: K,
    /// Its permission bits and time.
    pub stat: EntryStat,
    /// Extended attributes, if the text has them.
    pub attributes: Vec<Attribute>,
}

/// The attributes of a file or directory that all texts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryStat {
    /// Permission bits, as `chmod` has them.
    pub mode: u16,
    /// Time of the last change: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
}

/// A line of an entry, whose kind is not parsed yet.
#[derive(Debug, PartialEq, Eq)]
pub struct EntryLine<'a> {
    /// The name of the kind.
    pub kind: &'a str,
    /// The permission bits and the time.
    pub stat: EntryStat,
    /// The path, empty for the item's own directory.
    pub path: Vec<u8>,
    /// The words after the path.
    pub more: Vec<&'a str>,
}

/// A kind of text with lines of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryText {
    /// An inventory, published or sent.
    Inventory,
    /// A level of an Archive.
    Level,
    /// The metadata of a package.
    Mtree,
}

/// An error in a text, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The kind of the text.
    pub text: EntryText,
    /// The number of the line, from 1; 0 for the whole text.
    pub line: usize,
    /// The cause.
    pub what: Message,
}

impl Localize for LineError {
    fn message(&self) -> Message {
        let (line, what) = (self.line, &self.what);
        match self.text {
            EntryText::Inventory => message!("line {line} of the inventory: {what}", line, what),
            EntryText::Level => message!("line {line} of the level: {what}", line, what),
            EntryText::Mtree => message!("line {line}: {what}", line, what),
        }
    }
}

display_message!(LineError);

impl std::error::Error for LineError {}

impl EntryStat {
    /// Parses permission bits and a time.
    #[must_use]
    pub fn parse(mode: &str, time: &str) -> Option<EntryStat> {
        let (mode, modified) = (parse_mode(mode)?, parse_time(time)?);
        time.contains('.').then_some(EntryStat { mode, modified })
    }

    /// The same without set-user-ID and set-group-ID: who copies the entry would give these rights of their own.
    #[must_use]
    pub fn without_set_ids(self) -> EntryStat {
        let mode = self.mode & 0o1777;
        EntryStat { mode, ..self }
    }
}

impl fmt::Display for EntryStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = self.modified;
        write!(f, "{:o} {seconds}.{nanoseconds:09}", self.mode)
    }
}

impl<'a> EntryLine<'a> {
    /// Parses a line.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<EntryLine<'a>> {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let stat = EntryStat::parse(words.next()?, words.next()?)?;
        let path = match words.next()? {
            "." => Vec::new(),
            path => percent_decode(path),
        };
        let more = words.collect();
        Some(EntryLine {
            kind,
            stat,
            path,
            more,
        })
    }
}

/// Parses permission bits in octal digits.
pub(crate) fn parse_mode(text: &str) -> Option<u16> {
    let mode = u16::from_str_radix(text, 8).ok();
    mode.filter(|mode| *mode <= 0o7777)
}

/// Parses seconds, and nanoseconds if there are any.
pub(crate) fn parse_time(text: &str) -> Option<(i64, u32)> {
    let (seconds, nanoseconds) = text.split_once('.').unwrap_or((text, "0"));
    let time: (i64, u32) = (seconds.parse().ok()?, nanoseconds.parse().ok()?);
    (time.1 < 1_000_000_000).then_some(time)
}

/// Parses the size of a file in bytes.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let size = text.parse().ok();
    size.filter(|size| i64::try_from(*size).is_ok())
}

/// Whether a path, if it can be one, stays below the directory that it starts from.
#[must_use]
pub fn stays_below(path: &[u8]) -> bool {
    let mut names = path.split(|byte| *byte == b'/');
    names.all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0))
}

/// Rejects a path that cannot be that of an entry below an item.
///
/// # Errors
/// The reason.
pub fn check_path(path: &[u8]) -> Result<(), Message> {
    let mut names = path.split(|byte| *byte == b'/');
    if path.len() > LONGEST_PATH || path.contains(&0) {
        Err(message!("it is not a path"))
    } else if !stays_below(path) || names.any(|name| name.len() > LONGEST_NAME) {
        Err(message!("the path leaves the item"))
    } else {
        Ok(())
    }
}

/// Rejects a target that no symbolic link can have.
///
/// # Errors
/// The reason.
pub fn check_target(target: &[u8]) -> Result<(), Message> {
    if target.is_empty() || target.contains(&0) || target.len() > LONGEST_TARGET {
        Err(message!("the link leads nowhere"))
    } else {
        Ok(())
    }
}

/// A page of a text that is published in pages, while it is read: a line with its version, one that names it, and those
/// of entries; then `end`, or `more` and the place at which the next page begins. A page without it was cut off.
pub(crate) trait PageReader: Sized {
    /// The kind of the text.
    const TEXT: EntryText;
    /// The first line: the name of the format, and its version.
    const FIRST: &str;

    /// Begins with the line that names it.
    fn begin(line: &str) -> Option<Self>;

    /// Adds the line of an entry.
    fn add(&mut self, line: &str) -> Result<(), Message>;

    /// Whether the next page can begin at a place.
    fn can_go_on(&self, place: &[u8]) -> bool;

    /// Reads a page; also returns the beginning of the next one.
    fn read(text: &[u8]) -> Result<(Self, Option<Vec<u8>>), LineError> {
        let fault = |line, what| LineError {
            text: Self::TEXT,
            line,
            what,
        };
        let text = str::from_utf8(text).map_err(|_| fault(1, message!("it is not text")))?;
        let mut lines = text.lines().zip(1..);
        if lines.next().map(|(line, _)| line) != Some(Self::FIRST) {
            return Err(fault(1, message!("its version is not known")));
        }
        let page = lines.next().and_then(|(line, _)| Self::begin(line));
        let mut page = page.ok_or_else(|| fault(2, message!("it is not named")))?;
        for (line, number) in lines {
            match line.split_once(' ') {
                None if line == "end" => return Ok((page, None)),
                Some(("more", place)) => {
                    let place = percent_decode(place);
                    if page.can_go_on(&place) {
                        return Ok((page, Some(place)));
                    }
                    return Err(fault(number, message!("the next page begins elsewhere")));
                }
                _ => page.add(line).map_err(|what| fault(number, what))?,
            }
        }
        Err(fault(0, message!("the end is missing")))
    }
}

/// Writes the last line of a page.
pub(crate) fn write_end(f: &mut fmt::Formatter<'_>, next: Option<&[u8]>) -> fmt::Result {
    match next {
        Some(place) => writeln!(f, "more {}", percent_encode(place)),
        None => writeln!(f, "end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back() {
        // A xorshift generator.
        let mut seed: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..2_000 {
            let length = next() % 40 + 1;
            let path: Vec<u8> = (0..length).map(|_| next().to_le_bytes()[3]).collect();
            let stat = EntryStat {
                mode: u16::try_from(next() & 0o7777).expect("few bits"),
                modified: (
                    next().cast_signed(),
                    u32::try_from(next() % 1_000_000_000).expect("nanoseconds"),
                ),
            };
            let line = format!("file {stat} {} 1 -", percent_encode(&path));
            let shown = if path == b"." { Vec::new() } else { path };
            let read = EntryLine::parse(&line).expect("a line");
            assert!(line.is_ascii() && !line.contains('\n'), "{line}");
            assert_eq!((read.kind, read.stat, read.path), ("file", stat, shown));
            assert_eq!(read.more, ["1", "-"]);
        }
    }

    #[test]
    fn lines_that_are_read_and_lines_that_are_not() {
        let stat = |mode, seconds, nanoseconds| EntryStat {
            mode,
            modified: (seconds, nanoseconds),
        };
        for (line, path, expected) in [
            ("d 755 1.0 a", &b"a"[..], stat(0o755, 1, 0)),
            ("d 7777 -1.999999999 .", b"", stat(0o7777, -1, 999_999_999)),
            ("d 0 0.000000001 ", b"", stat(0, 0, 1)),
            (
                "d 1 -9223372036854775808.0 %2e%2E",
                b"..",
                stat(1, i64::MIN, 0),
            ),
            ("d 1 1.0 %00%ff%20%0A", b"\0\xff \n", stat(1, 1, 0)),
            ("d 1 1.0 a%2Fb/c%", b"a/b/c%", stat(1, 1, 0)),
        ] {
            let read = EntryLine::parse(line).map(|line| (line.path, line.stat));
            assert_eq!(read, Some((path.to_vec(), expected)), "{line}");
        }
        for line in [
            "",
            "d",
            "d 755",
            "d 755 1.0",
            "d 10000 1.0 a",
            "d 8 1.0 a",
            "d -1 1.0 a",
            "d 777777777777777777777777 1.0 a",
            "d  1.0 a",
            "d 755 1 a",
            "d 755 1.1000000000 a",
            "d 755 1.-1 a",
            "d 755 .5 a",
            "d 755 9223372036854775808.0 a",
            "d 755 1.0.0 a",
        ] {
            assert_eq!(EntryLine::parse(line), None, "{line}");
        }
        for (size, expected) in [
            ("0", Some(0)),
            ("9223372036854775807", Some(i64::MAX.unsigned_abs())),
            ("9223372036854775808", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(parse_size(size), expected, "{size}");
        }
        assert_eq!(stat(0o7755, 1, 0).without_set_ids(), stat(0o1755, 1, 0));
        assert_eq!(stat(0o755, -1, 5).to_string(), "755 -1.000000005");
    }

    #[test]
    fn paths_and_targets() {
        let long = "n".repeat(LONGEST_NAME);
        let deep = "a/".repeat(LONGEST_PATH / 2);
        for path in [
            "a",
            "a/b",
            "...",
            ".a",
            "a./..b",
            "a b\n\u{e9}",
            long.as_str(),
        ] {
            assert_eq!(check_path(path.as_bytes()), Ok(()), "{path}");
        }
        let bad = |path: &str, what: &str| {
            let error = check_path(path.as_bytes()).expect_err(path);
            assert_eq!(error.to_string(), what, "{path}");
        };
        for path in [
            "", ".", "..", "/", "/a", "a/", "a//b", "a/./b", "a/../b", "../a", "a/..",
        ] {
            bad(path, "the path leaves the item");
            assert!(!stays_below(path.as_bytes()), "{path}");
        }
        bad(&format!("a/{long}n"), "the path leaves the item");
        bad(&format!("{deep}a"), "it is not a path");
        bad("a\0b", "it is not a path");
        assert!(!stays_below(b"a\0b"));
        for (target, is_good) in [
            (&b"../../etc/passwd"[..], true),
            (b"\xff", true),
            (&[b'a'; LONGEST_TARGET], true),
            (&[b'a'; LONGEST_TARGET + 1], false),
            (b"", false),
            (b"a\0", false),
        ] {
            assert_eq!(check_target(target).is_ok(), is_good);
        }
    }
}
