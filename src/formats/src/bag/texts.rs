//! The texts of bags that others have made, of the versions 0.93 to 1.0: tolerant of what their tools write, and of nothing
//! that leads out of the bag.

use std::collections::BTreeMap;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, WINDOWS_1252};

use crate::fixity::unescaped;
use ibi::message::Message;
use ibi::{Quoted, message};

/// The versions of bags, and what they have in common with 1.0.
const VERSIONS: [&str; 6] = ["0.93", "0.94", "0.95", "0.96", "0.97", "1.0"];

/// The content of `bagit.txt`.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Whether the rules of RFC 8493 apply, which are stricter than those of earlier versions.
    pub is_final: bool,
    encoding: &'static Encoding,
}

impl Declaration {
    /// Reads `bagit.txt`, which is in UTF-8.
    ///
    /// # Errors
    /// The fault.
    pub fn parse(bytes: &[u8]) -> Result<Declaration, Message> {
        if bytes.starts_with(b"\xef\xbb\xbf") {
            return Err(message!("it begins with a byte order mark"));
        }
        let tags = tags(bytes)
            .map_err(|line| message!("line {line} is not a name, ':' and a value", line))?;
        let one = |wanted: &str| {
            let mut values = tags
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            match (values.next(), values.next()) {
                (Some((_, value)), None) => Ok(value.as_str()),
                _ => Err(message!("it has not one line '{name}:'", name = wanted)),
            }
        };
        let version = one("BagIt-Version")?;
        let label = one("Tag-File-Character-Encoding")?;
        if !VERSIONS.contains(&version) {
            return Err(message!(
                "its version {version} is none of {versions}",
                version = Quoted(version),
                versions = VERSIONS.join(", ")
            ));
        }
        let is_final = version == "1.0";
        let begins = tags
            .first()
            .is_some_and(|(name, _)| name.eq_ignore_ascii_case("BagIt-Version"));
        if is_final && (!begins || tags.len() != 2) {
            return Err(message!(
                "of version 1.0 it has two lines, of its version and of the encoding"
            ));
        }
        let encoding = match Encoding::for_label(label.as_bytes()) {
            // Without a mark UTF-16 is big-endian (RFC 2781, section 4.3); the standard of browsers says otherwise.
            Some(_) if label.eq_ignore_ascii_case("UTF-16") => UTF_16BE,
            Some(encoding) => encoding,
            None => {
                return Err(message!(
                    "its encoding {encoding} is none that ibifs reads; convert the bag to UTF-8",
                    encoding = Quoted(label)
                ));
            }
        };
        Ok(Declaration { is_final, encoding })
    }

    /// A tag file in UTF-8, without a byte order mark. Bytes that are declared UTF-8 and are not stay as they are:
    /// names of files may have any bytes.
    pub fn decode(&self, bytes: &[u8]) -> Vec<u8> {
        match Encoding::for_bom(bytes) {
            Some((encoding, length)) => decoded(encoding, &bytes[length..]),
            None => decoded(self.encoding, bytes),
        }
    }

    /// A path in a manifest: the one that the version means, and the others that tools have meant.
    fn paths(self, path: &[u8]) -> Vec<Vec<u8>> {
        let line_ends = unescaped(path, false);
        let all = unescaped(path, true);
        let text = String::from_utf8_lossy(&line_ends);
        let as_declared = self.encoding.encode(&text).0.into_owned();
        // Only version 1.0 has '%' escaped, and some tools that write it have none.
        if self.is_final {
            vec![all, line_ends, path.to_vec(), as_declared]
        } else {
            vec![line_ends, path.to_vec(), all, as_declared]
        }
    }

    /// Reads a manifest whose digests have so many hexadecimal digits.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn manifest(self, bytes: &[u8], digits: usize) -> Result<Vec<ManifestEntry>, Message> {
        let text = self.decode(bytes);
        let mut read: BTreeMap<Vec<u8>, ManifestEntry> = BTreeMap::new();
        for (number, line) in lines(&text) {
            let entry = || {
                let (digest, rest) = line.split_at_checked(digits)?;
                let path = rest.trim_ascii_start();
                let is_apart = path.len() < rest.len() && digest.iter().all(u8::is_ascii_hexdigit);
                // The mark of binary files that md5sum(1) writes.
                let path = path.strip_prefix(b"*").unwrap_or(path);
                let digest = String::from_utf8(digest.to_ascii_lowercase()).ok()?;
                (is_apart && !path.is_empty()).then_some((digest, path))
            };
            let Some((digest, path)) = entry() else {
                return Err(message!(
                    "line {line} is not a digest and a path",
                    line = number
                ));
            };
            let Some(path) = inside(path) else {
                return Err(leads_out(number));
            };
            let entry = ManifestEntry {
                digest,
                paths: self.paths(&path),
            };
            if let Some(other) = read.get(&path)
                && other.digest != entry.digest
            {
                return Err(message!(
                    "line {line} has another digest of a file that it has already",
                    line = number
                ));
            }
            read.insert(path, entry);
        }
        Ok(read.into_values().collect())
    }

    /// The paths that `fetch.txt` has.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn fetched(self, bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, Message> {
        let text = self.decode(bytes);
        let paths = lines(&text).map(|(number, line)| {
            let path = || {
                let cut = |text: &[u8]| text.iter().position(u8::is_ascii_whitespace);
                let rest = line[cut(line)?..].trim_ascii_start();
                let (length, path) = rest.split_at(cut(rest)?);
                let is_length = length == b"-" || length.iter().all(u8::is_ascii_digit);
                let path = path.trim_ascii_start();
                (is_length && !path.is_empty()).then_some(path)
            };
            let path = path().ok_or_else(|| {
                message!(
                    "line {line} is not a URL, a length and a path",
                    line = number
                )
            })?;
            let path = inside(path).filter(|path| path.starts_with(b"data/"));
            path.map(|path| self.paths(&path))
                .ok_or_else(|| leads_out(number))
        });
        paths.collect()
    }
}

/// An entry of a manifest.
#[derive(Clone, Debug)]
pub struct ManifestEntry {
    /// In lower case.
    pub digest: String,
    /// The likeliest path first.
    pub paths: Vec<Vec<u8>>,
}

/// The names and values of a tag file in UTF-8, or else in Windows-1252. A value that goes on in the next lines is joined
/// by blanks.
///
/// # Errors
/// The number of the first line that is neither.
pub fn tags(text: &[u8]) -> Result<Vec<(String, String)>, usize> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text.into(),
        Err(_) => WINDOWS_1252.decode(text).0,
    };
    let mut tags: Vec<(String, String)> = Vec::new();
    for (number, line) in lines(text.as_bytes()) {
        // Cut at ASCII characters, so that it is valid.
        let line = String::from_utf8_lossy(line);
        match (tags.last_mut(), line.split_once(':')) {
            (Some((_, value)), _) if line.starts_with([' ', '\t']) => {
                value.push(' ');
                value.push_str(line.trim());
            }
            (_, Some((name, value))) if !name.trim().is_empty() => {
                tags.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            _ => return Err(number),
        }
    }
    Ok(tags)
}

fn leads_out(line: usize) -> Message {
    message!(
        "line {line} has a path that does not stay in the bag, or in its data",
        line
    )
}

fn decoded(encoding: &'static Encoding, bytes: &[u8]) -> Vec<u8> {
    if encoding == UTF_8 {
        bytes.to_vec()
    } else {
        let (text, _) = encoding.decode_without_bom_handling(bytes);
        text.into_owned().into_bytes()
    }
}

/// The lines that are not blank, which end in LF, CR or both, with their numbers.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = text.split(|byte| *byte == b'\n').flat_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.split(|byte| *byte == b'\r')
    });
    let numbered = lines.enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// A path without names that change nothing; None if it leads out.
fn inside(path: &[u8]) -> Option<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/');
    let names: Vec<&[u8]> = names.filter(|name| !matches!(*name, b"" | b".")).collect();
    let stays = !path.starts_with(b"/") && !names.contains(&&b".."[..]) && !path.contains(&0);
    stays.then(|| names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(version: &str, encoding: &str) -> Declaration {
        let text = format!("BagIt-Version: {version}\nTag-File-Character-Encoding: {encoding}\n");
        Declaration::parse(text.as_bytes()).expect("a declaration")
    }

    /// The likeliest paths of a manifest with these lines after the digests.
    fn paths(declared: Declaration, text: &[u8]) -> Vec<String> {
        let entries = declared.manifest(text, 4).expect("a manifest");
        let paths = entries
            .iter()
            .map(|entry| entry.paths[0].escape_ascii().to_string());
        paths.collect()
    }

    #[test]
    fn declarations() {
        for version in VERSIONS {
            for end in ["\n", "\r\n", "\r"] {
                let text =
                    format!("BagIt-Version: {version}{end}Tag-File-Character-Encoding: utf-8");
                let declared = Declaration::parse(text.as_bytes()).expect("a declaration");
                assert_eq!(declared.is_final, version == "1.0");
            }
        }
        let encoding = "Tag-File-Character-Encoding: UTF-8\n";
        for (text, sentence) in [
            (String::new(), "it has not one line 'BagIt-Version:'"),
            (
                format!("\u{feff}BagIt-Version: 1.0\n{encoding}"),
                "it begins with a byte order mark",
            ),
            (
                format!("BagIt-Version: .97\n{encoding}"),
                "its version '.97' is none of 0.93, 0.94, 0.95, 0.96, 0.97, 1.0",
            ),
            (
                "BagIt-Version: 0.97\n".to_owned(),
                "it has not one line 'Tag-File-Character-Encoding:'",
            ),
            (
                format!("BagIt-Version: 0.97\n{encoding}{encoding}"),
                "it has not one line 'Tag-File-Character-Encoding:'",
            ),
            (
                format!("BagIt-Version: 0.97\nx\n{encoding}"),
                "line 2 is not a name, ':' and a value",
            ),
            (
                format!("{encoding}BagIt-Version: 1.0\n"),
                "of version 1.0 it has two lines, of its version and of the encoding",
            ),
            (
                "BagIt-Version: 1.0\nTag-File-Character-Encoding: x-no".to_owned(),
                "its encoding 'x-no' is none that ibifs reads; convert the bag to UTF-8",
            ),
        ] {
            let refused = Declaration::parse(text.as_bytes()).expect_err(sentence);
            assert_eq!(refused.to_string(), sentence);
        }
    }

    #[test]
    fn lines_of_manifests() {
        let declared = declaration("0.97", "UTF-8");
        for end in ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"] {
            let lines = [
                "00aa  data/a",
                "00AA *data/b",
                "00aa\tdata/c d ",
                "00aa ./data//./e",
                "00aa  data/a",
            ];
            let text = format!("\u{feff}{}", lines.join(end));
            assert_eq!(
                paths(declared, text.as_bytes()),
                ["data/a", "data/b", "data/c d ", "data/e"],
                "{end:?}"
            );
        }
        for (text, sentence) in [
            (
                "00aa data/a\r\n00bb  data/a",
                "line 2 has another digest of a file that it has already",
            ),
            ("\n00aadata/a", "line 2 is not a digest and a path"),
            ("00a  data/a", "line 1 is not a digest and a path"),
            ("00ax data/a", "line 1 is not a digest and a path"),
            ("00aa  ", "line 1 is not a digest and a path"),
            (
                "00aa /data/a",
                "line 1 has a path that does not stay in the bag, or in its data",
            ),
            (
                "00aa data/../a",
                "line 1 has a path that does not stay in the bag, or in its data",
            ),
        ] {
            let refused = declared.manifest(text.as_bytes(), 4).expect_err(text);
            assert_eq!(refused.to_string(), sentence);
        }
    }

    #[test]
    fn escapes_are_those_of_the_version() {
        let text = b"00aa data/100%25%0A%0d%7E";
        assert_eq!(
            paths(declaration("0.97", "UTF-8"), text),
            ["data/100%25\\n\\r%7E"]
        );
        assert_eq!(
            paths(declaration("1.0", "UTF-8"), text),
            ["data/100%\\n\\r%7E"]
        );
    }

    #[test]
    fn encodings() {
        let latin = b"00aa data/caf\xe9";
        assert_eq!(
            declaration("1.0", "ISO-8859-1").decode(latin),
            "00aa data/café".as_bytes()
        );
        assert_eq!(declaration("1.0", "UTF-8").decode(latin), latin);
        let bytes = |units: &[u8]| {
            "é a"
                .encode_utf16()
                .flat_map(|unit| {
                    if units[0] == 0 {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect::<Vec<u8>>()
        };
        let marked = [&b"\xff\xfe"[..], &bytes(&[1])].concat();
        for (encoding, bytes) in [
            ("UTF-16", &marked),
            ("UTF-16", &bytes(&[0])),
            ("UTF-16LE", &bytes(&[1])),
            ("UTF-16BE", &bytes(&[0])),
        ] {
            assert_eq!(
                declaration("1.0", encoding).decode(bytes),
                "é a".as_bytes(),
                "{encoding}"
            );
        }
        assert_eq!(
            declaration("1.0", "Shift_JIS").decode(b"\x83e"),
            "テ".as_bytes()
        );
    }

    #[test]
    fn values_go_on_in_the_next_line() {
        let text = b"A: one\r\n  two\r\n\tthree: x\r\n\r\nB : caf\xe9\nA:\n";
        let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let wanted = [tag("A", "one two three: x"), tag("B", "café"), tag("A", "")];
        assert_eq!(tags(text).expect("tags"), wanted);
        assert_eq!(tags(b"A: b\n\nno tag\n"), Err(3));
        assert_eq!(tags(b" A\n"), Err(1));
    }

    #[test]
    fn what_is_fetched() {
        let declared = declaration("0.97", "UTF-8");
        let read = declared
            .fetched(b"http://a/b - data/x y\r\nhttp://a/c\t12  ./data/z\n")
            .expect("read");
        assert_eq!(
            read.iter()
                .map(|paths| paths[0].as_slice())
                .collect::<Vec<_>>(),
            [&b"data/x y"[..], b"data/z"]
        );
        for path in ["../x", "/tmp/x", "~/x", "x", r"C:\x", "data/../x"] {
            let text = format!("http://a/b - {path}");
            let refused = declared.fetched(text.as_bytes()).expect_err(path);
            assert_eq!(
                refused.to_string(),
                "line 1 has a path that does not stay in the bag, or in its data"
            );
        }
        assert!(declared.fetched(b"http://a/b data/x").is_err());
    }
}
