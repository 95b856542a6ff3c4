//! Fixity: the digests of an item's files, as texts, and the meaning of a digest that differs.
//!
//! An item has two texts. The manifest is that of BagIt (RFC 8493): a line `<digest>  <path>` for each file,
//! sorted, which `sha256sum -c` reads in the item's directory. The second text has the size and modification
//! time of each file when its digest was taken; without these, damage could not be distinguished from an
//! edit. The manifest is authoritative: a line of the second text counts only with the same digest. No input
//! or output: files are read elsewhere.

mod judge;
mod marks;

use super::hex::{Hex, digit};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

pub use judge::{Verdict, judge};
pub use marks::{Found, Mark, Marks, marks_text, parse_marks};

/// File name of the manifest.
pub const MANIFEST: &str = "manifest-sha256.txt";
/// File name of the second text.
pub const WRITTEN: &str = "written.txt";

/// A SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Parses 64 hexadecimal digits in either case.
    pub fn parse(text: &[u8]) -> Option<Digest> {
        let mut digest = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, digits) in digest.iter_mut().zip(text.chunks_exact(2)) {
            *byte = match digits {
                [high, low] => digit(*high)? << 4 | digit(*low)?,
                _ => return None,
            };
        }
        Some(Digest(digest))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

ibi::text_arguments!(Digest);

/// Size and modification time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Size in bytes.
    pub size: u64,
    /// Modification time: seconds since 1970.
    pub seconds: i64,
    /// Modification time: nanoseconds.
    pub nanoseconds: u32,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{:09}", self.size, self.seconds, self.nanoseconds)
    }
}

/// The record of a file in the second text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The digest that this belongs to.
    pub digest: Digest,
    /// Size and time when the digest was taken; None where the file was written so shortly before that a
    /// later write might not have changed its time.
    pub written: Option<Written>,
}

/// The digests of an item's files, by path below the item.
pub type Manifest = BTreeMap<Vec<u8>, Digest>;
/// The records of the second text, by path below the item.
pub type Notes = BTreeMap<Vec<u8>, Note>;

/// Parses a manifest; returns the valid lines, and the numbers of the others. Lines of other programs are
/// accepted as RFC 8493 and `sha256sum` write them.
pub fn parse_manifest(bytes: &[u8]) -> (Manifest, Vec<usize>) {
    let mut manifest = Manifest::new();
    let mut bad = Vec::new();
    for (number, line) in lines(bytes) {
        match manifest_line(line) {
            Some((path, digest)) if !manifest.contains_key(&path) => {
                manifest.insert(path, digest);
            }
            _ => bad.push(number),
        }
    }
    // A last line that was cut off may look valid.
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bad.push(lines(bytes).count());
        bad.dedup();
    }
    (manifest, bad)
}

fn manifest_line(line: &[u8]) -> Option<(Vec<u8>, Digest)> {
    let (digest, rest) = line.split_at_checked(64)?;
    let path = [&b"  "[..], b" *", b" ", b"\t"]
        .iter()
        .find_map(|between| rest.strip_prefix(*between))?;
    match path {
        [] => None,
        path => Some((decode(path), Digest::parse(digest)?)),
    }
}

/// The text of a manifest.
pub fn manifest_text(manifest: &Manifest) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, digest) in manifest {
        text.extend_from_slice(format!("{digest}  ").as_bytes());
        text.extend_from_slice(&encode(path));
        text.push(b'\n');
    }
    text
}

/// Parses the second text. An invalid line is ignored.
pub fn parse_notes(bytes: &[u8]) -> Notes {
    lines(bytes)
        .filter_map(|(_, line)| note_line(line))
        .collect()
}

fn note_line(line: &[u8]) -> Option<(Vec<u8>, Note)> {
    let (digest, rest) = line.split_at_checked(64)?;
    let digest = Digest::parse(digest)?;
    let rest = rest.strip_prefix(b" ")?;
    let at = rest.windows(2).position(|pair| pair == b"  ")?;
    let path = decode(&rest[at + 2..]);
    let written = match std::str::from_utf8(&rest[..at]).ok()? {
        "- -" => None,
        text => Some(parse_written(text)?),
    };
    Some((path, Note { digest, written }))
}

fn parse_written(text: &str) -> Option<Written> {
    let (size, time) = text.split_once(' ')?;
    let (seconds, nanoseconds) = time.split_once('.')?;
    Some(Written {
        size: size.parse().ok()?,
        seconds: seconds.parse().ok()?,
        nanoseconds: nanoseconds.parse().ok()?,
    })
}

/// The second text.
pub fn notes_text(notes: &Notes) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, note) in notes {
        let written = match &note.written {
            Some(written) => written.to_string(),
            None => "- -".to_owned(),
        };
        text.extend_from_slice(format!("{} {written}  ", note.digest).as_bytes());
        text.extend_from_slice(&encode(path));
        text.push(b'\n');
    }
    text
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.enumerate().map(|(at, line)| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        (at + 1, line)
    })
}

/// Encodes line feed, carriage return and `%`, and nothing else, as RFC 8493 (2.1.3) requires.
pub fn encode(path: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b'\n' => encoded.extend_from_slice(b"%0A"),
            b'\r' => encoded.extend_from_slice(b"%0D"),
            b'%' => encoded.extend_from_slice(b"%25"),
            byte => encoded.push(*byte),
        }
    }
    encoded
}

fn decode(text: &[u8]) -> Vec<u8> {
    unescaped(text, true)
}

/// Decodes what stands for line feed and carriage return, and for `%` if that is wanted.
pub(super) fn unescaped(text: &[u8], with_percent: bool) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (byte, left) = match rest {
            [b'%', b'0', b'a' | b'A', left @ ..] => (b'\n', left),
            [b'%', b'0', b'd' | b'D', left @ ..] => (b'\r', left),
            [b'%', b'2', b'5', left @ ..] if with_percent => (b'%', left),
            _ => (*first, after),
        };
        decoded.push(byte);
        rest = left;
    }
    decoded
}

/// A path for one line on a terminal: `%`, control characters and bytes that are not UTF-8 as `%hh`.
pub fn shown(path: &[u8]) -> String {
    let mut text = String::new();
    let percent = |text: &mut String, byte: u8| {
        let _ = write!(text, "%{byte:02X}"); // writing to a String does not fail
    };
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                letter if letter == '%' || letter.is_control() => {
                    let mut buffer = [0; 4];
                    for byte in letter.encode_utf8(&mut buffer).bytes() {
                        percent(&mut text, byte);
                    }
                }
                letter => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            percent(&mut text, *byte);
        }
    }
    text
}

/// The beginning of a text, for an error message.
pub fn abridged(text: &[u8]) -> String {
    const MOST: usize = 80;
    let all = shown(text.get(..4 * MOST).unwrap_or(text));
    match all.char_indices().nth(MOST) {
        Some((cut, _)) => format!("{}...", &all[..cut]),
        None => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(byte: u8) -> Digest {
        Digest([byte; 32])
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let names: [&[u8]; 9] = [
            b"doc/a",
            b" leading",
            b"*star",
            b"two  blanks",
            b"new\nline\r",
            b"100%",
            b"%0A as it stands",
            b"\xff\xfe",
            b"back\\slash",
        ];
        let manifest: Manifest = names
            .iter()
            .map(|name| (name.to_vec(), digest(7)))
            .collect();
        let text = manifest_text(&manifest);
        assert_eq!(
            text.iter().filter(|byte| **byte == b'\n').count(),
            names.len()
        );
        assert_eq!(parse_manifest(&text), (manifest.clone(), vec![]));
        let notes: Notes = manifest
            .keys()
            .zip(0..)
            .map(|(path, number)| {
                let written = (number % 2 == 0).then_some(Written {
                    size: number,
                    seconds: -1,
                    nanoseconds: 5,
                });
                let digest = digest(7);
                (path.clone(), Note { digest, written })
            })
            .collect();
        assert_eq!(parse_notes(&notes_text(&notes)), notes);
    }

    #[test]
    fn lines_of_other_programs_are_read() {
        let hex = "AB".repeat(32);
        for between in ["  ", " *", " ", "\t"] {
            let text = format!("{hex}{between}doc/a\n");
            let (manifest, bad) = parse_manifest(text.as_bytes());
            assert_eq!(manifest.get(&b"doc/a"[..]), Some(&digest(0xab)), "{text}");
            assert_eq!(bad, [0; 0]);
        }
    }

    #[test]
    fn each_bad_line_has_its_number() {
        let hex = "ab".repeat(32);
        let text = format!("{hex}  a\n{hex}  a\n\nab  c\n{hex}\n{hex}  \n{hex}  b\n{hex}  cut");
        let (manifest, bad) = parse_manifest(text.as_bytes());
        assert_eq!(bad, [2, 3, 4, 5, 6, 8]);
        assert_eq!(manifest.len(), 3);
        for cut in 0..text.len() {
            parse_manifest(&text.as_bytes()[..cut]);
            parse_notes(&text.as_bytes()[..cut]);
        }
    }

    #[test]
    fn what_is_abridged_is_short() {
        assert_eq!(abridged(b"a\n"), "a%0A");
        assert_eq!(
            abridged(&[0xff; 1000]),
            format!("{}%F...", "%FF".repeat(26))
        );
    }

    #[test]
    fn what_is_shown_is_one_line_of_text() {
        assert_eq!(
            shown(b"a\nb\x1b[1m %\xff \xc3\xa9"),
            "a%0Ab%1B[1m %25%FF \u{e9}"
        );
    }
}
