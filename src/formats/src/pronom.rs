//! The formats of files, by their identifiers in PRONOM (PUID), as a program has found them: the record of an item, and the
//! arguments and answers of the programs. Nothing here looks into a file.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::Path;

use super::fixity::{Digest, encode, unescaped};
use ibi::pairs::{percent_decode, percent_encode};
use serde_json::Value;

/// File name of the record, beside the manifest.
pub const FORMATS: &str = "formats.txt";

/// The most characters of the name of a program with its signatures.
const LONGEST: usize = 200;

/// The formats of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formats {
    /// The digest of the content that was looked at.
    pub digest: Digest,
    /// The PUIDs, `fmt/18`; none if the program knows none.
    pub puids: Vec<String>,
    /// The day, `2026-11-29`.
    pub day: String,
    /// The program and its signatures, with their versions.
    pub tool: String,
}

/// The record of an item, by path below it.
pub type FormatRecord = BTreeMap<Vec<u8>, Formats>;

/// Parses the record of an item. An invalid line is ignored.
#[must_use]
pub fn parse(bytes: &[u8]) -> FormatRecord {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.filter_map(record_line).collect()
}

fn record_line(line: &[u8]) -> Option<(Vec<u8>, Formats)> {
    // A last line without its end was cut off.
    let line = line.strip_suffix(b"\n")?;
    let at = line.windows(2).position(|pair| pair == b"  ")?;
    let (words, path) = line.split_at(at);
    let mut words = std::str::from_utf8(words).ok()?.split(' ');
    let digest = Digest::parse(words.next()?.as_bytes())?;
    let puids = words.next()?.split(',').filter(|puid| is_puid(puid));
    let formats = Formats {
        digest,
        puids: puids.map(str::to_owned).collect(),
        day: words.next()?.to_owned(),
        tool: String::from_utf8(percent_decode(words.next()?)).ok()?,
    };
    Some((unescaped(path.get(2..)?, true), formats))
}

/// The text of a record: a line for each file with its digest, its PUIDs or `-`, the day, the program, two spaces and the path.
#[must_use]
pub fn text(record: &FormatRecord) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, formats) in record {
        let puids = match formats.puids.as_slice() {
            [] => "-".to_owned(),
            puids => puids.join(","),
        };
        let (digest, day, tool) = (formats.digest, &formats.day, percent_encode(&formats.tool));
        text.extend_from_slice(format!("{digest} {puids} {day} {tool}  ").as_bytes());
        text.extend_from_slice(&encode(path));
        text.push(b'\n');
    }
    text
}

/// Whether a text has the form of a PUID, `fmt/18` or `x-fmt/111`.
#[must_use]
pub fn is_puid(text: &str) -> bool {
    let (kind, number) = text.split_once('/').unwrap_or_default();
    let is_kind = !kind.is_empty() && kind.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
    is_kind && number.len() <= 9 && number.parse::<u32>().is_ok()
}

/// A program that identifies formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatProgram {
    /// FIDO, of the Open Preservation Foundation.
    Fido,
    /// Siegfried.
    Siegfried,
}

impl FormatProgram {
    /// The program with a file name.
    #[must_use]
    pub fn named(path: &Path) -> Option<FormatProgram> {
        match path.file_name()?.to_str()? {
            "fido" => Some(FormatProgram::Fido),
            "sf" | "siegfried" => Some(FormatProgram::Siegfried),
            _ => None,
        }
    }

    /// The arguments by which it uses a signature file.
    #[must_use]
    pub fn signatures(self, file: &Path) -> [OsString; 2] {
        let option = match self {
            FormatProgram::Fido => "-loadformats",
            FormatProgram::Siegfried => "-sig",
        };
        [option.into(), file.into()]
    }

    /// The arguments by which it prints its version and that of its signatures.
    #[must_use]
    pub fn version_arguments(self) -> &'static [&'static str] {
        match self {
            FormatProgram::Fido => &["-v"],
            FormatProgram::Siegfried => &["-version"],
        }
    }

    /// The version in what it prints.
    #[must_use]
    pub fn version(self, printed: &str) -> Option<String> {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = printed.lines().map(words);
        let first = lines.next().filter(|line| !line.is_empty())?;
        let more = match self {
            FormatProgram::Fido => None,
            FormatProgram::Siegfried => lines.find(|line| line.contains("pronom:")),
        };
        let all = more.map_or(first.clone(), |more| format!("{first} {more}"));
        Some(all.chars().take(LONGEST).collect())
    }

    /// The arguments before the names of the files to identify.
    #[must_use]
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            FormatProgram::Fido => &[
                "-q",
                "-matchprintf",
                "%(info.puid)s\t%(info.filename)s\n",
                "-nomatchprintf",
                "none\t%(info.filename)s\n",
            ],
            FormatProgram::Siegfried => &["-json"],
        }
    }

    /// The PUIDs of each file that it answers for, by the names that it was given.
    #[must_use]
    pub fn answers(self, printed: &[u8]) -> HashMap<String, Vec<String>> {
        let mut answers: HashMap<String, Vec<String>> = HashMap::new();
        let mut add = |name: &str, puid: &str| {
            let puids = answers.entry(name.to_owned()).or_default();
            if is_puid(puid) && !puids.iter().any(|it| it == puid) {
                puids.push(puid.to_owned());
            }
        };
        match self {
            FormatProgram::Fido => {
                let lines = String::from_utf8_lossy(printed);
                let lines = lines.lines().filter_map(|line| line.split_once('\t'));
                lines.for_each(|(puid, name)| add(name, puid));
            }
            FormatProgram::Siegfried => {
                let value: Value = serde_json::from_slice(printed).unwrap_or_default();
                let empty = Vec::new();
                for file in value["files"].as_array().unwrap_or(&empty) {
                    let Some(name) = file["filename"].as_str() else {
                        continue;
                    };
                    let matches = file["matches"].as_array().unwrap_or(&empty);
                    for found in matches.iter().filter(|it| it["ns"] == "pronom") {
                        add(name, found["id"].as_str().unwrap_or_default());
                    }
                }
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let formats = |puids: &[&str]| Formats {
            digest: Digest([7; 32]),
            puids: puids.iter().map(|it| (*it).to_owned()).collect(),
            day: "2026-11-29".to_owned(),
            tool: "FIDO v1.6.1 (formats-v109.xml, 100%)".to_owned(),
        };
        let record = FormatRecord::from([
            (b"a  b\n%".to_vec(), formats(&["fmt/18", "x-fmt/111"])),
            (b"\xff".to_vec(), formats(&[])),
        ]);
        let text = text(&record);
        assert_eq!(parse(&text), record);
        for cut in 0..text.len() {
            assert!(parse(&text[..cut]).len() < 2, "{cut}");
        }
    }

    #[test]
    fn only_puids_are_taken() {
        for good in ["fmt/18", "x-fmt/111", "fido-fmt/1"] {
            assert!(is_puid(good), "{good}");
        }
        for bad in [
            "",
            "fmt",
            "fmt/",
            "/1",
            "UNKNOWN",
            "fmt/1,2",
            "fmt/1 2",
            "FMT/1",
            "fmt/1234567890",
        ] {
            assert!(!is_puid(bad), "{bad}");
        }
    }

    #[test]
    fn the_answers_of_each_program_are_read() {
        let fido = b"fmt/18\t/t/1.pdf\nx-fmt/111\t/t/2\nfmt/1085\t/t/2\nnone\t/t/3\nnonsense\n";
        let siegfried = br#"{"siegfried":"1.9.1","files":[
            {"filename":"/t/1.pdf","errors":"","matches":[{"ns":"pronom","id":"fmt/18"},{"ns":"loc","id":"fdd1"}]},
            {"filename":"/t/2","matches":[{"ns":"pronom","id":"x-fmt/111"},{"ns":"pronom","id":"fmt/1085"}]},
            {"filename":"/t/3","matches":[{"ns":"pronom","id":"UNKNOWN","warning":"no match"}]}, {"filename":7}]}"#;
        for (program, printed) in [
            (FormatProgram::Fido, &fido[..]),
            (FormatProgram::Siegfried, &siegfried[..]),
        ] {
            let answers = program.answers(printed);
            assert_eq!(answers.len(), 3, "{answers:?}");
            assert_eq!(answers["/t/1.pdf"], ["fmt/18"]);
            assert_eq!(answers["/t/2"], ["x-fmt/111", "fmt/1085"]);
            assert!(answers["/t/3"].is_empty());
            assert!(program.answers(b"\xff{").is_empty());
        }
    }

    #[test]
    fn the_version_has_that_of_the_signatures() {
        let fido = "FIDO v1.6.1 (formats-v109.xml, container-signature-20200121.xml, format_extensions.xml)\n";
        assert_eq!(
            FormatProgram::Fido.version(fido).as_deref(),
            Some(fido.trim_end())
        );
        let siegfried = "siegfried 1.11.1\n/s/default.sig (2024-06-28T13:10:55+10:00)\nidentifiers: \n  \
                         - pronom: DROID_SignatureFile_V118.xml; container-signature-20240501.xml\n";
        assert_eq!(
            FormatProgram::Siegfried.version(siegfried).as_deref(),
            Some(
                "siegfried 1.11.1 - pronom: DROID_SignatureFile_V118.xml; container-signature-20240501.xml"
            )
        );
        assert_eq!(FormatProgram::Fido.version("\n"), None);
    }
}
