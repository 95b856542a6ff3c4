//! A record with more than Dublin Core can say: its kind, and the fields that have no element.

use super::{DublinCore, Element, RecordKind, one_line};

/// A record as bibliographic formats have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BibliographicRecord {
    /// What Dublin Core says.
    pub core: DublinCore,
    /// What is described, if the record says so.
    pub kind: Option<RecordKind>,
    /// Fields for which Dublin Core has no element or a less specific one, in their order: names as in BibTeX, in
    /// lower case, and values of one line. A tag of refer without a name is kept as `%` and its sign.
    pub(super) fields: Vec<(String, String)>,
}

impl From<DublinCore> for BibliographicRecord {
    fn from(core: DublinCore) -> BibliographicRecord {
        BibliographicRecord {
            core,
            ..BibliographicRecord::default()
        }
    }
}

impl BibliographicRecord {
    /// Adds a field with its value as one line. An empty value is ignored, and a value that the field has already.
    pub fn keep(&mut self, name: &str, value: &str) {
        let value = one_line(value);
        let name = if name.starts_with('%') {
            name.to_owned()
        } else {
            name.to_lowercase()
        };
        let is_last = |(known, other): &(String, String)| *known == name && *other == value;
        if !value.is_empty() && !self.fields.last().is_some_and(is_last) {
            self.fields.push((name, value));
        }
    }

    /// The kept fields.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The values of a kept field.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields()
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// The first value of a kept field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// The kind of the record, or what its types say.
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        self.kind
            .or_else(|| RecordKind::of_types(&self.core))
            .unwrap_or(RecordKind::Other)
    }
}

/// Whether Dublin Core has an element that says as much as a field of this element.
pub(super) fn is_said_by_core(element: Element) -> bool {
    match element {
        Element::Title
        | Element::Creator
        | Element::Subject
        | Element::Description
        | Element::Date
        | Element::Type
        | Element::Format
        | Element::Language
        | Element::Coverage
        | Element::Rights => true,
        Element::Publisher
        | Element::Contributor
        | Element::Identifier
        | Element::Source
        | Element::Relation => false,
    }
}
