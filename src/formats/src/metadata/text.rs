//! Dublin Core as lines of text, `title: ...`, as users write and read them.
//!
//! A line has the name of an element, or an alias of it, and a value. A line that begins with white space continues the previous
//! value. Blank lines and lines that begin with `#` are ignored. Any mistake is an error, never a lost value:
//! the author of the text can correct it.

use std::borrow::Cow;

use super::decode::{utf8, without_mark};
use super::error::beginning;
use super::names::{element_named, kept_named, push_named};
use super::{BibliographicRecord, DublinCore, Element, MetadataError, check_size};

/// A line that cannot be read, and why.
pub(super) type BadLine = (usize, MetadataError);

/// The record of a text in UTF-8, without the lines that cannot be read, and the first of these lines.
pub(super) fn scan(
    bytes: &[u8],
    most_bad: usize,
) -> Result<(BibliographicRecord, Vec<BadLine>), MetadataError> {
    check_size(bytes)?;
    let text = utf8(without_mark(bytes))?;
    let mut record = BibliographicRecord::default();
    let mut bad: Vec<BadLine> = Vec::new();
    let mut pending: Option<(Field<'_>, Cow<'_, str>)> = None;
    // A continuation of a line that cannot be read belongs to that line.
    let mut is_after_bad = false;
    for (line, content) in (1..).zip(text.lines()) {
        if content.starts_with('#') || content.trim().is_empty() {
            continue;
        }
        let error = if content.starts_with(char::is_whitespace) {
            if let Some((_, value)) = &mut pending {
                let value = value.to_mut();
                value.push(' ');
                value.push_str(content);
                continue;
            }
            if is_after_bad {
                continue;
            }
            MetadataError::NothingToContinue {
                line,
                text: beginning(content),
            }
        } else {
            let parsed = parse_line(line, content);
            if let Some((field, value)) = pending.take() {
                field.add_to(&mut record, &value);
            }
            match parsed {
                Ok((field, value)) => {
                    pending = Some((field, Cow::Borrowed(value)));
                    continue;
                }
                Err(error) => error,
            }
        };
        is_after_bad = true;
        if bad.len() < most_bad {
            bad.push((line, error));
        }
    }
    if let Some((field, value)) = pending {
        field.add_to(&mut record, &value);
    }
    Ok((record, bad))
}

impl DublinCore {
    /// Parses lines `name: value` in UTF-8, where a name is that of an element or an alias of it.
    pub fn parse_text(bytes: &[u8]) -> Result<DublinCore, MetadataError> {
        let (record, bad) = scan(bytes, 1)?;
        match bad.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(record.core),
        }
    }

    /// The record as lines `name: value`, which [`DublinCore::parse_text`] parses to the same record.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (element, value) in self.iter() {
            text.push_str(element.name());
            text.push_str(": ");
            text.push_str(value);
            text.push('\n');
        }
        text
    }
}

/// The name of a field as it is written, and what it means.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    name: &'a str,
    meaning: Meaning,
}

#[derive(Clone, Copy)]
enum Meaning {
    Element(Element),
    /// It is kept under this name.
    Kept(&'static str),
}

impl Field<'_> {
    fn add_to(self, record: &mut BibliographicRecord, value: &str) {
        match self.meaning {
            Meaning::Element(element) => push_named(&mut record.core, self.name, element, value),
            // An ORCID is that of the creator before it, unless the line names one.
            Meaning::Kept("orcid") => {
                let (id, named) = value
                    .trim()
                    .split_once(char::is_whitespace)
                    .unwrap_or((value, ""));
                let creator = record.core.values(Element::Creator).last();
                let creator = creator
                    .filter(|_| named.trim().is_empty())
                    .unwrap_or(named)
                    .to_owned();
                record.keep_orcid(&creator, id);
            }
            Meaning::Kept(name) => record.keep(name, value),
        }
    }
}

/// The field and the value of one line.
pub(super) fn parse_line(line: usize, content: &str) -> Result<(Field<'_>, &str), MetadataError> {
    let (name, value) =
        without_prefix(content)
            .split_once(':')
            .ok_or_else(|| MetadataError::NoColon {
                line,
                text: beginning(content),
            })?;
    let name = name.trim();
    let element = element_named(name).map(Meaning::Element);
    let meaning = element.or_else(|| kept_named(name).map(Meaning::Kept));
    let meaning = meaning.ok_or_else(|| MetadataError::UnknownElement {
        line,
        name: beginning(name),
    })?;
    Ok((Field { name, meaning }, value))
}

/// The line without the prefix `dc:` or `dc.`, which some authors write before a name.
fn without_prefix(content: &str) -> &str {
    match content.get(..3) {
        Some(prefix)
            if prefix.eq_ignore_ascii_case("dc:") || prefix.eq_ignore_ascii_case("dc.") =>
        {
            &content[3..]
        }
        _ => content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(bytes: &[u8], expected: &str) {
        let record = DublinCore::parse_text(bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(record.to_text(), expected);
        assert_eq!(
            DublinCore::parse_text(record.to_text().as_bytes()).ok(),
            Some(record)
        );
    }

    #[test]
    fn lines_become_a_record() {
        let cases: [(&[u8], &str); 12] = [
            (b"", ""),
            (
                "Author: b\nT\u{ed}tulo: a\nkeywords: x, y\n z; w\nDOI: 10.1000/1\nisbn: 978-85-17-00044-7\n".as_bytes(),
                "title: a\ncreator: b\nsubject: x\nsubject: y z\nsubject: w\nidentifier: https://doi.org/10.1000/1\n\
                 identifier: urn:isbn:978-85-17-00044-7\n",
            ),
            (b"\n \n# a remark\n", ""),
            (b"title: A title", "title: A title\n"),
            (
                b"Title : A title\nCREATOR:b\ncreator: a\n",
                "title: A title\ncreator: b\ncreator: a\n",
            ),
            (
                b"\xef\xbb\xbftitle: a\r\ncreator: b\r\n",
                "title: a\ncreator: b\n",
            ),
            (
                b"description: one\n  two\n\tthree\n\ndate: 2009\n",
                "description: one two three\ndate: 2009\n",
            ),
            (b"title:\n  on the next line\n", "title: on the next line\n"),
            (b"title: a\n# remark\n\n more\n", "title: a more\n"),
            (
                b"dc:title: a\ndc.creator: b\nDC.Date: 2009\n",
                "title: a\ncreator: b\ndate: 2009\n",
            ),
            (
                b"identifier: http://urlib.net/a:b\n",
                "identifier: http://urlib.net/a:b\n",
            ),
            (
                b"title:\ntitle: a\ntitle: a\ntitle: #b\n",
                "title: a\ntitle: #b\n",
            ),
        ];
        for (bytes, expected) in cases {
            reads(bytes, expected);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let names = "the names are title, creator, subject, description, publisher, contributor, date, type, format, \
                     identifier, source, language, relation, coverage, rights";
        let cases: [(&[u8], String); 8] = [
            (b"\ntitle\n", format!("line 2 of the metadata is not 'name: value': 'title'; {names}")),
            (b"dc:title\n", format!("line 1 of the metadata is not 'name: value': 'dc:title'; {names}")),
            (b"from: x\n", format!("line 1 of the metadata names the unknown element 'from'; {names}")),
            (b": x\n", format!("line 1 of the metadata names the unknown element ''; {names}")),
            (b"t\x00itle: x", format!("line 1 of the metadata names the unknown element 't\\0itle'; {names}")),
            (
                b"# r\n  lost\ntitle: x\n",
                "line 2 of the metadata begins with white space and there is no value before it to continue: 'lost'"
                    .to_string(),
            ),
            (b"title: a\ntitle: S\xe3o\nx", "line 2 of the metadata is not UTF-8: 'title: S\u{fffd}o'".to_string()),
            (b"\xff", "line 1 of the metadata is not UTF-8: '\u{fffd}'".to_string()),
        ];
        for (bytes, expected) in cases {
            let error = DublinCore::parse_text(bytes).expect_err(&expected);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn any_record_reads_back() {
        let mut record = DublinCore::default();
        for element in Element::ALL {
            for value in [
                "a:b",
                "# no remark",
                "two\nlines",
                "<&>\"'",
                "São \u{85}\u{feff} José",
                "dc:title",
            ] {
                record.push(element, value);
            }
        }
        assert_eq!(
            DublinCore::parse_text(record.to_text().as_bytes()).ok(),
            Some(record)
        );
    }
}
