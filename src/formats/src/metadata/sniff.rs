//! Detects the format of a record: from its content, and only if that is inconclusive from its file name.
//!
//! A file in another format that happens to have a known extension is taken for a record, and reading it then
//! fails with an error. A file with neither the content nor the name of a record is not one.

use super::decode::{windows_1252, without_mark};
use super::refer::tagged;
use super::text::{parse_line, scan};
use super::{BibliographicRecord, DublinCore, MetadataError, ris};

/// The format of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordFormat {
    /// The Dublin Core XML of OAI-PMH.
    OaiDc,
    /// BibTeX or biblatex.
    Bibtex,
    /// Tagged lines of refer and EndNote.
    Refer,
    /// RIS.
    Ris,
    /// CSL-JSON, DataCite or schema.org, in JSON.
    Json,
    /// CITATION.cff.
    Cff,
    /// The XML of DataCite.
    Datacite,
    /// MODS.
    Mods,
    /// The `dublin_core.xml` of DSpace.
    Dspace,
    /// Lines `name: value`.
    Text,
}

/// The number of bytes of a file that are examined.
const HEAD_BYTES: usize = 4096;

/// The format of a file with this name and these first bytes; None if it is not a record.
pub fn sniff(file_name: &str, head: &[u8]) -> Option<RecordFormat> {
    by_content(&head[..head.len().min(HEAD_BYTES)]).or_else(|| by_name(file_name))
}

impl RecordFormat {
    /// Reads a record in this format.
    pub fn read(self, bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        match self {
            RecordFormat::OaiDc => DublinCore::from_oai_dc(bytes).map(BibliographicRecord::from),
            RecordFormat::Bibtex => BibliographicRecord::from_bibtex(bytes),
            RecordFormat::Refer => BibliographicRecord::from_refer(bytes),
            RecordFormat::Ris => BibliographicRecord::from_ris(bytes),
            RecordFormat::Json => BibliographicRecord::from_json(bytes),
            RecordFormat::Cff => BibliographicRecord::from_cff(bytes),
            RecordFormat::Datacite => BibliographicRecord::from_datacite_xml(bytes),
            RecordFormat::Mods => BibliographicRecord::from_mods(bytes),
            RecordFormat::Dspace => BibliographicRecord::from_dspace(bytes),
            RecordFormat::Text => {
                let (record, bad) = scan(bytes, 1)?;
                bad.into_iter()
                    .next()
                    .map_or(Ok(record), |(_, error)| Err(error))
            }
        }
    }
}

impl BibliographicRecord {
    /// Reads a file in its detected format; None if it is not a record.
    pub fn read(file_name: &str, bytes: &[u8]) -> Option<Result<Self, MetadataError>> {
        sniff(file_name, bytes).map(|format| format.read(bytes))
    }
}

/// Reads a file in its detected format; None if it is not a record.
pub fn read_record(file_name: &str, bytes: &[u8]) -> Option<Result<DublinCore, MetadataError>> {
    let read = BibliographicRecord::read(file_name, bytes)?;
    Some(read.map(|record| record.core))
}

/// The format of the metadata text of an item, which is a record in any case: lines `name: value`, unless its first
/// line says otherwise.
pub fn sniff_text(bytes: &[u8]) -> RecordFormat {
    let head = windows_1252(without_mark(&bytes[..bytes.len().min(HEAD_BYTES)]));
    let text = head.trim_start();
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let first = lines.next().unwrap_or_default();
    if is_cff(text) {
        RecordFormat::Cff
    } else if parse_line(1, first).is_ok() {
        RecordFormat::Text
    } else if first.starts_with('<') {
        xml_format(text).unwrap_or(RecordFormat::OaiDc)
    } else if first.starts_with(['{', '[']) {
        RecordFormat::Json
    } else if ris::tagged(first).is_some() {
        RecordFormat::Ris
    } else if text.lines().any(begins_entry) || first.starts_with('@') {
        RecordFormat::Bibtex
    } else if tagged(first).is_some() {
        RecordFormat::Refer
    } else {
        RecordFormat::Text
    }
}

/// Reads the metadata text of an item. Lines `name: value` that cannot be read are left out.
pub fn read_metadata_text(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
    match sniff_text(bytes) {
        RecordFormat::Text => scan(bytes, 0).map(|(record, _)| record),
        format => format.read(bytes),
    }
}

/// Whether a metadata text that is not empty has nothing that can be read.
#[must_use]
pub fn says_nothing(bytes: &[u8]) -> bool {
    let is_empty = |record| record == BibliographicRecord::default();
    !bytes.trim_ascii().is_empty() && read_metadata_text(bytes).map_or(true, is_empty)
}

fn by_name(file_name: &str) -> Option<RecordFormat> {
    let (_, extension) = file_name.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "xml" => Some(RecordFormat::OaiDc),
        "ris" => Some(RecordFormat::Ris),
        "cff" => Some(RecordFormat::Cff),
        "bib" | "bibtex" => Some(RecordFormat::Bibtex),
        "refer" | "enw" | "ref" => Some(RecordFormat::Refer),
        "txt" => Some(RecordFormat::Text),
        _ => None,
    }
}

fn by_content(head: &[u8]) -> Option<RecordFormat> {
    // All characters that distinguish the formats are ASCII, so the head may end inside a character.
    let head = windows_1252(without_mark(head));
    let text = head.trim_start();
    if text.contains('\0') {
        None
    } else if text.starts_with('<') {
        let is_known = || is_oai_dc(text).then_some(RecordFormat::OaiDc);
        xml_format(text).or_else(is_known)
    } else if text.starts_with(['{', '[']) {
        is_json_record(text).then_some(RecordFormat::Json)
    } else if text
        .lines()
        .next()
        .is_some_and(|line| line.starts_with("TY  - "))
    {
        Some(RecordFormat::Ris)
    } else if is_cff(text) {
        Some(RecordFormat::Cff)
    } else if text.lines().any(begins_entry) {
        Some(RecordFormat::Bibtex)
    } else if is_refer(text) {
        Some(RecordFormat::Refer)
    } else if is_text(&head) {
        Some(RecordFormat::Text)
    } else {
        None
    }
}

/// The format of an XML document, by the first element that one of the formats has. None of Dublin Core.
fn xml_format(text: &str) -> Option<RecordFormat> {
    let is_datacite = text.contains("datacite.org/schema/kernel");
    element_names(text).find_map(|name| match name {
        "resource" if is_datacite => Some(RecordFormat::Datacite),
        "mods" | "modsCollection" => Some(RecordFormat::Mods),
        "dublin_core" => Some(RecordFormat::Dspace),
        _ => None,
    })
}

/// Programs have many files in JSON; that of a record says what it is.
fn is_json_record(text: &str) -> bool {
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    (text.contains("schema.org") && has("@type"))
        || (has("titles") && has("creators"))
        || (has("title") && has("type") && (has("issued") || has("author") || has("DOI")))
}

/// Whether a line names the version of the format, which every CITATION.cff has.
fn is_cff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("cff-version:"))
}

/// The local names of the elements of an XML document, in their order.
fn element_names(text: &str) -> impl Iterator<Item = &str> {
    text.split('<').skip(1).filter_map(|tag| {
        let name = tag.split(|sign: char| sign.is_whitespace() || matches!(sign, '>' | '/'));
        let name = name.into_iter().next()?;
        Some(name.rsplit(':').next().unwrap_or(name))
    })
}

/// Web pages, drawings and e-books also contain Dublin Core; a record has an element `dc`.
fn is_oai_dc(text: &str) -> bool {
    text.contains("oai_dc")
        || (text.contains("purl.org/dc/elements/1.1")
            && element_names(text).any(|name| name == "dc"))
}

/// Whether a line begins an entry of a known type; style sheets and programs also have lines with `@`.
fn begins_entry(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix('@') else {
        return false;
    };
    let rest = rest.trim_start();
    let end = rest
        .find(|character: char| !character.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    let (kind, rest) = rest.split_at(end);
    rest.trim_start().starts_with(['{', '('])
        && ENTRY_TYPES.contains(&kind.to_ascii_lowercase().as_str())
}

/// One tag may be accidental, as in a TeX comment; a record has two.
fn is_refer(text: &str) -> bool {
    text.lines()
        .next()
        .is_some_and(|line| tagged(line).is_some())
        && text
            .lines()
            .filter(|line| tagged(line).is_some())
            .nth(1)
            .is_some()
}

/// Whether all lines of the head are lines of a text record; a letter with "Subject:" among other headings is
/// not a record.
fn is_text(head: &str) -> bool {
    let mut lines: Vec<&str> = head.lines().collect();
    if lines.len() > 1 && !head.ends_with('\n') {
        lines.pop();
    }
    let mut named = lines
        .iter()
        .filter(|line| {
            !line.trim().is_empty()
                && !line.starts_with('#')
                && !line.starts_with(char::is_whitespace)
        })
        .map(|line| parse_line(1, line).is_ok())
        .peekable();
    named.peek().is_some() && named.all(|is_named| is_named)
}

const ENTRY_TYPES: &[&str] = &[
    "article",
    "artwork",
    "audio",
    "book",
    "booklet",
    "collection",
    "comment",
    "conference",
    "dataset",
    "electronic",
    "image",
    "inbook",
    "incollection",
    "inproceedings",
    "manual",
    "mastersthesis",
    "misc",
    "movie",
    "music",
    "online",
    "patent",
    "periodical",
    "phdthesis",
    "preamble",
    "proceedings",
    "report",
    "software",
    "string",
    "techreport",
    "thesis",
    "unpublished",
    "video",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized() {
        use RecordFormat::{Bibtex, OaiDc, Refer, Text};
        let cases: [(&str, &[u8], Option<RecordFormat>); 25] = [
            ("a", b"<?xml version='1.0'?>\n<oai_dc:dc", Some(OaiDc)),
            (
                "a",
                b"\xef\xbb\xbf \n<dc xmlns='http://purl.org/dc/elements/1.1/'",
                Some(OaiDc),
            ),
            ("a", b"<svg/>", None),
            (
                "a.svg",
                b"<svg xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title/></svg>",
                None,
            ),
            ("a.XML", b"<svg/>", Some(OaiDc)),
            (
                "index.html",
                b"<!DOCTYPE html><link href='http://purl.org/dc/elements/1.1/'>",
                None,
            ),
            ("a", b"% remark\n @Article {k,", Some(Bibtex)),
            ("a.txt", b"\n@misc(k,", Some(Bibtex)),
            ("a", b"@STRING{a = {b}}", Some(Bibtex)),
            ("a.css", b"@media (print) {}", None),
            ("@reference.bib", b"nothing yet", Some(Bibtex)),
            ("a", b"%0 Book\n%T A\n", Some(Refer)),
            ("a.xml", b"%0 Book\r\n%T A\r\n", Some(Refer)),
            ("a.enw", b"%T A\n", Some(Refer)),
            ("a", b"%T A\n", None),
            ("a.pdf", b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", None),
            ("a.tex", b"% A remark\n% B remark\n", None),
            (
                "a",
                b"# remark\ntitle: A\n more\n\ndc:creator: b\n",
                Some(Text),
            ),
            ("a", b"title: A\ncrea", Some(Text)),
            ("a", b"title: S\xe3o", Some(Text)),
            ("a", b"Subject: x\nFrom: y\n", None),
            ("a", b"title: A\0", None),
            ("a", b"", None),
            ("a.txt", b"", Some(Text)),
            (".", b"\xff\xfe", None),
        ];
        for (name, head, expected) in cases {
            assert_eq!(
                sniff(name, head),
                expected,
                "{name} {:?}",
                String::from_utf8_lossy(head)
            );
        }
    }

    #[test]
    fn a_metadata_text_is_always_in_some_format() {
        use RecordFormat::{Bibtex, OaiDc, Refer, Text};
        let cases: [(&[u8], RecordFormat); 12] = [
            (b"", Text),
            (b"anything", Text),
            (b"titel: A\n", Text),
            (b"# remark\nTitle: A\n @misc{k, a = 1}\n", Text),
            (b"\n@Article{k, title = {A}}", Bibtex),
            (b"% remark\n@Article{k, title = {A}}", Bibtex),
            (b"@poem{k, title = {A}}", Bibtex),
            (b"%T A\n", Refer),
            (b"%@affiliation A\n%T B", Refer),
            (b"\xef\xbb\xbf<?xml version='1.0'?><dc/>", OaiDc),
            (b"<rdf:RDF>", OaiDc),
            (b"title: <dc>", Text),
        ];
        for (bytes, expected) in cases {
            assert_eq!(
                sniff_text(bytes),
                expected,
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
        let read = read_metadata_text(b"titel: A\n more\ncreator: B\nno colon\ndate: 2009\n");
        let text = read.map(|record| record.core.to_text());
        assert_eq!(text.ok().as_deref(), Some("creator: B\ndate: 2009\n"));
    }

    #[test]
    fn records_are_read_in_their_format() {
        let cases: [(&str, &[u8], &str); 4] = [
            (
                "a",
                b"<dc xmlns='http://purl.org/dc/elements/1.1/'><title>A</title></dc>",
                "title: A\n",
            ),
            ("a.txt", b"@misc{k, title={A}}", "title: A\ntype: Text\n"),
            (
                "a",
                b"%T A\n%D 2009\n",
                "title: A\ndate: 2009\ntype: Text\n",
            ),
            ("a.bib", b"title: A", "title: A\n"),
        ];
        for (name, bytes, expected) in cases {
            let text = read_record(name, bytes)
                .and_then(Result::ok)
                .map(|record| record.to_text());
            assert_eq!(text.as_deref(), Some(expected), "{name}");
        }
        assert!(read_record("a.pdf", b"%PDF-1.4").is_none());
        assert!(read_record("readme.txt", b"hello").is_some_and(|read| read.is_err()));
    }
}
