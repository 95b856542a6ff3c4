//! Metadata: Dublin Core records, and the formats that they are read from and written in.
//!
//! A record is fifteen lists of values. Each value is one line of text that XML can represent, and occurs
//! once in its list. A record is read from every format of [`RecordFormat`]; if content and file name
//! disagree on the format, the content decides. Every input gives a record or an error, in time bounded by
//! its size. What Dublin Core cannot say is kept beside it. This module knows no disk, no database and no identifiers: an identifier is a text like the
//! other values.

mod bibtex;
mod date;
mod decode;
mod error;
mod fields;
mod json;
mod kind;
mod license;
mod local;
mod mods;
mod names;
mod oai_dc;
mod orcid;
mod person;
mod problem;
mod record;
mod refer;
mod ris;
mod sniff;
mod tex;
mod text;
mod xml;

use std::collections::HashSet;

pub use date::{GivenDate, is_undated};
pub(crate) use decode::decode;
pub use error::MetadataError;
pub use kind::RecordKind;
pub use license::{License, SPDX};
pub use oai_dc::{OAI_DC, OAI_DC_SCHEMA};
pub use orcid::orcid;
pub use problem::{MetadataProblem, MetadataProblemKind, check};
pub use record::BibliographicRecord;
pub use sniff::{RecordFormat, read_metadata_text, read_record, says_nothing, sniff, sniff_text};

/// The largest record that is read, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

/// One of the fifteen elements of simple Dublin Core, in the order of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// The name of the resource.
    Title,
    /// Its maker.
    Creator,
    /// Its subject.
    Subject,
    /// A description of it.
    Description,
    /// The publisher.
    Publisher,
    /// A contributor to it.
    Contributor,
    /// A date in its life.
    Date,
    /// Its nature or genre.
    Type,
    /// Its file format or medium.
    Format,
    /// A text that identifies it.
    Identifier,
    /// The work that it is derived from or part of.
    Source,
    /// Its language.
    Language,
    /// A related resource.
    Relation,
    /// The place or time that it is about.
    Coverage,
    /// The rights held in it.
    Rights,
}

impl Element {
    /// All elements, in the order of the schema.
    pub const ALL: [Element; 15] = [
        Element::Title,
        Element::Creator,
        Element::Subject,
        Element::Description,
        Element::Publisher,
        Element::Contributor,
        Element::Date,
        Element::Type,
        Element::Format,
        Element::Identifier,
        Element::Source,
        Element::Language,
        Element::Relation,
        Element::Coverage,
        Element::Rights,
    ];

    /// The name of the element in lower case, as in XML and in lines of text.
    pub fn name(self) -> &'static str {
        match self {
            Element::Title => "title",
            Element::Creator => "creator",
            Element::Subject => "subject",
            Element::Description => "description",
            Element::Publisher => "publisher",
            Element::Contributor => "contributor",
            Element::Date => "date",
            Element::Type => "type",
            Element::Format => "format",
            Element::Identifier => "identifier",
            Element::Source => "source",
            Element::Language => "language",
            Element::Relation => "relation",
            Element::Coverage => "coverage",
            Element::Rights => "rights",
        }
    }

    /// The element with this name, in any case.
    pub fn from_name(name: &str) -> Option<Element> {
        Element::ALL
            .into_iter()
            .find(|element| element.name().eq_ignore_ascii_case(name))
    }
}

/// A Dublin Core record: for each element, its values in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DublinCore {
    elements: [Values; Element::ALL.len()],
}

/// The values of one element. The set finds a repeated value without comparing all pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Values {
    in_order: Vec<String>,
    seen: HashSet<String>,
}

impl DublinCore {
    /// Adds a value as one trimmed line without the characters that XML forbids. An empty or repeated value
    /// is ignored, and what says where a file is on the disk of the record's author.
    pub fn push(&mut self, element: Element, value: impl Into<String>) {
        let value = one_line(&value.into());
        let is_place = matches!(
            element,
            Element::Identifier | Element::Source | Element::Relation | Element::Format
        );
        if is_place && local::is_local_path(&value) {
            return;
        }
        let values = &mut self.elements[element as usize];
        if !value.is_empty() && values.seen.insert(value.clone()) {
            values.in_order.push(value);
        }
    }

    /// The values of one element, in the order in which they were added.
    pub fn values(&self, element: Element) -> impl Iterator<Item = &str> {
        self.elements[element as usize]
            .in_order
            .iter()
            .map(String::as_str)
    }

    /// The first value of one element.
    pub fn first(&self, element: Element) -> Option<&str> {
        self.values(element).next()
    }

    /// Whether the record has no value.
    pub fn is_empty(&self) -> bool {
        self.elements
            .iter()
            .all(|values| values.in_order.is_empty())
    }

    /// All values, in the order of the schema, and within an element in the order in which they
    /// were added.
    pub fn iter(&self) -> impl Iterator<Item = (Element, &str)> {
        Element::ALL
            .into_iter()
            .flat_map(|element| self.values(element).map(move |value| (element, value)))
    }

    /// Adds the values of another record that this one lacks.
    pub fn extend(&mut self, other: &DublinCore) {
        for (element, value) in other.iter() {
            self.push(element, value);
        }
    }
}

/// Makes a value one line: white space with line breaks becomes a single space, and characters that XML 1.0
/// forbids, or that control a terminal, are removed.
fn one_line(value: &str) -> String {
    let mut line = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                if !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            '\u{fffe}' | '\u{ffff}' => {}
            _ if character.is_control() => {}
            _ => line.push(character),
        }
    }
    line.trim().to_string()
}

/// Rejects a record that is too large to read.
fn check_size(bytes: &[u8]) -> Result<(), MetadataError> {
    if bytes.len() > MAX_BYTES {
        Err(MetadataError::TooLarge { bytes: bytes.len() })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod foreign;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_name() {
        for (position, element) in Element::ALL.into_iter().enumerate() {
            assert_eq!(element as usize, position);
            assert_eq!(Element::from_name(element.name()), Some(element));
            assert_eq!(
                Element::from_name(&element.name().to_uppercase()),
                Some(element)
            );
        }
        for name in ["", "titl", "titles", "dc:title", " title", "título"] {
            assert_eq!(Element::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn values_are_single_clean_lines() {
        let cases = [
            ("  a title ", Some("a title")),
            ("one\r\n  two\tthree", Some("one two three")),
            ("a\u{0}b\u{7}c\u{fffe}d\u{ffff}", Some("abcd")),
            (" \u{0} x \u{1} ", Some("x")),
            ("a\u{2028}b\u{85}c", Some("a b c")),
            // Also those that control a terminal, and that XML 1.0 allows.
            ("a\u{7f}b\u{9b}31mc\u{80}", Some("ab31mc")),
            ("  \u{0}\n", None),
            ("", None),
            ("São José — 日本 😀", Some("São José — 日本 😀")),
        ];
        for (value, expected) in cases {
            let mut record = DublinCore::default();
            record.push(Element::Title, value);
            assert_eq!(record.first(Element::Title), expected, "{value:?}");
            assert_eq!(record.is_empty(), expected.is_none(), "{value:?}");
        }
    }

    #[test]
    fn records_keep_the_order_of_the_schema() {
        let mut record = DublinCore::default();
        for (element, value) in [
            (Element::Rights, "r"),
            (Element::Creator, "b"),
            (Element::Title, "t"),
            (Element::Creator, "a"),
            (Element::Creator, " b "),
        ] {
            record.push(element, value);
        }
        let mut other = DublinCore::default();
        other.push(Element::Creator, "a");
        other.push(Element::Creator, "c");
        record.extend(&other);
        let listed: Vec<_> = record
            .iter()
            .map(|(element, value)| format!("{}={value}", element.name()))
            .collect();
        assert_eq!(
            listed,
            ["title=t", "creator=b", "creator=a", "creator=c", "rights=r"]
        );
        assert_eq!(
            record.values(Element::Creator).collect::<Vec<_>>(),
            ["b", "a", "c"]
        );
        assert_eq!(record.first(Element::Date), None);
    }

    #[test]
    fn many_values_take_no_quadratic_time() {
        let mut record = DublinCore::default();
        for number in 0..200_000 {
            record.push(Element::Subject, number.to_string());
        }
        assert_eq!(record.values(Element::Subject).count(), 200_000);
    }
}
