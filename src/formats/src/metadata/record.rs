//! A record with more than Dublin Core can say: its kind, and the fields that have no element.

use std::collections::{HashMap, HashSet};

use super::fields::{doi, is_issn, isbn, issn};
use super::local::{is_local_field, is_local_path};
use super::{DublinCore, Element, License, RecordKind, one_line, orcid};

/// A record as bibliographic formats have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BibliographicRecord {
    /// The elements of Dublin Core.
    pub core: DublinCore,
    /// The kind of thing that is described, if the record says so.
    pub kind: Option<RecordKind>,
    /// Fields for which Dublin Core has no element or a less specific one, in their order: names as in BibTeX, in
    /// lower case, and values of one line. A tag of refer without a name is kept as `%` and its sign. `orcid` is an
    /// iD and the name of its creator, `funding` a funder, and after a colon the number of the award.
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
    /// A record of a kind, which its types say too.
    pub(super) fn of_kind(kind: Option<RecordKind>) -> BibliographicRecord {
        let mut record = BibliographicRecord {
            kind,
            ..BibliographicRecord::default()
        };
        let dcmi = kind.map_or("Text", RecordKind::dcmi);
        record.core.push(Element::Type, dcmi);
        record
    }

    /// Adds a field with its value as one line. An empty value is ignored, one that the field has already, and what
    /// says where a file is on the disk of the record's author.
    pub fn keep(&mut self, name: &str, value: &str) {
        let value = one_line(value);
        let name = if name.starts_with('%') {
            name.to_owned()
        } else {
            name.to_lowercase()
        };
        if is_local_field(&name) || is_local_path(&value) {
            return;
        }
        let is_last = |(known, other): &(String, String)| *known == name && *other == value;
        if !value.is_empty() && !self.fields.last().is_some_and(is_last) {
            self.fields.push((name, value));
        }
    }

    /// Adds a creator, "Family, Given", with an ORCID iD if there is one.
    pub(super) fn push_creator(&mut self, name: &str, orcid: Option<&str>) {
        self.core.push(Element::Creator, name);
        self.keep_orcid(name, orcid.unwrap_or_default());
    }

    /// Keeps the ORCID iD of a creator. A wrong one is kept as it stands.
    pub(super) fn keep_orcid(&mut self, name: &str, id: &str) {
        let id = orcid(id).unwrap_or_else(|| id.trim().to_owned());
        if !id.is_empty() && !name.trim().is_empty() {
            self.keep("orcid", &format!("{id} {name}"));
        }
    }

    /// The ORCID iDs that are right, by the names of their creators.
    #[must_use]
    pub fn orcids(&self) -> HashMap<&str, String> {
        let ids = self.values("orcid").filter_map(|value| {
            let (id, name) = value.split_once(' ')?;
            Some((name, orcid(id)?))
        });
        ids.collect()
    }

    /// Adds a contributor with a role that has a field: `editor`, `translator`.
    pub(super) fn push_contributor(&mut self, role: &str, name: &str) {
        self.core.push(Element::Contributor, name);
        self.keep(role, name);
    }

    /// Adds a description that is no abstract.
    pub(super) fn push_note(&mut self, text: &str) {
        self.core.push(Element::Description, text);
        self.keep("note", text);
    }

    pub(super) fn push_publisher(&mut self, name: &str) {
        self.core.push(Element::Publisher, name);
        self.keep("publisher", name);
    }

    /// Adds the journal or the book in which it appeared.
    pub(super) fn push_container(&mut self, name: &str) {
        self.core.push(Element::Source, name);
        let is_article = self.kind == Some(RecordKind::Article);
        self.keep(if is_article { "journal" } else { "booktitle" }, name);
    }

    /// Adds an identifier of a scheme, whose name is in any case: `doi`, `isbn`, `issn`, `url`.
    pub(super) fn push_identifier(&mut self, scheme: &str, value: &str) {
        let scheme = scheme.to_ascii_lowercase();
        let written = match &*scheme {
            "doi" => doi(value),
            "isbn" => isbn(value),
            "issn" => issn(value),
            _ => value.to_owned(),
        };
        self.core.push(Element::Identifier, written);
        if ["doi", "isbn", "issn", "url"].contains(&&*scheme) {
            self.keep(&scheme, value);
        }
    }

    /// Adds a number that is either an ISSN or an ISBN.
    pub(super) fn push_isbn_or_issn(&mut self, value: &str) {
        let scheme = if is_issn(value) { "issn" } else { "isbn" };
        self.push_identifier(scheme, value);
    }

    /// Adds what is said of rights, unless it is another name of the licence before it.
    pub(super) fn push_rights(&mut self, text: &str) {
        let last = self.core.elements[Element::Rights as usize].in_order.last();
        let last = last.and_then(|last| License::read(last));
        if last.is_none() || License::read(text) != last {
            self.core.push(Element::Rights, text);
        }
    }

    /// Keeps the first and the last page, of which one may be empty.
    pub(super) fn keep_pages(&mut self, first: &str, last: &str) {
        let ends = [first.trim(), last.trim()];
        let ends: Vec<&str> = ends.into_iter().filter(|end| !end.is_empty()).collect();
        self.keep("pages", &ends.join("\u{2013}"));
    }

    pub(super) fn keep_funding(&mut self, funder: &str, award: &str) {
        match (funder.trim(), award.trim()) {
            (funder, "") => self.keep("funding", funder),
            ("", award) => self.keep("funding", award),
            (funder, award) => self.keep("funding", &format!("{funder}: {award}")),
        }
    }

    /// The funders, each with the number of the award.
    pub fn funding(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.values("funding")
            .map(|value| match value.split_once(": ") {
                Some((funder, award)) => (funder, Some(award)),
                None => (value, None),
            })
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

    /// The descriptions that are no notes, and those that are.
    #[must_use]
    pub fn descriptions(&self) -> (Vec<&str>, Vec<&str>) {
        let notes: HashSet<&str> = self.values("note").chain(self.values("annote")).collect();
        let is_note = |text: &&str| notes.contains(text);
        let (notes, abstracts) = self.core.values(Element::Description).partition(is_note);
        (abstracts, notes)
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
