//! An item's description in the formats that readers ask for: `<ibi>:(FORMAT)`, see ibi(7).
//!
//! Every format is written from the same record, and every value is escaped for its format: whatever a record has,
//! a document in a format is valid in it. This module knows no item, no clock and no disk.

mod bibtex;
mod cff;
mod csl;
mod datacite;
mod dspace;
mod jsonld;
mod mods;
mod openaire;
mod person;
mod refer;
mod ris;
mod turtle;
mod xml;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::metadata::{
    BibliographicRecord, DublinCore, Element, GivenDate, License, OAI_DC, OAI_DC_SCHEMA, RecordKind,
};
use ibi::relation::FORMATS;

pub use datacite::{DATACITE, DATACITE_SCHEMA};
pub use openaire::{Access, AccessRight, OPENAIRE, OPENAIRE_SCHEMA, OpenFile};
pub use person::PersonName;

/// A format in which every item can be described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DescriptionFormat {
    /// Dublin Core as in OAI-PMH 2.0.
    OaiDc,
    /// BibTeX as the institute writes it.
    BibInpe,
    /// BibTeX.
    Bibtex,
    /// refer.
    Refer,
    /// RIS.
    Ris,
    /// CSL-JSON.
    Csl,
    /// DataCite 4.
    Datacite,
    /// DataCite 4 in JSON.
    DataciteJson,
    /// schema.org in JSON-LD.
    JsonLd,
    /// MODS.
    Mods,
    /// The `dublin_core.xml` of DSpace.
    Dspace,
    /// CITATION.cff.
    Cff,
    /// The events of the item in PREMIS, which no record has; only where the Archive has some.
    Premis,
    /// The list of the others.
    Formats,
}

impl DescriptionFormat {
    /// All formats that describe an item, in the order in which they are listed.
    pub const ALL: [DescriptionFormat; 12] = [
        DescriptionFormat::OaiDc,
        DescriptionFormat::BibInpe,
        DescriptionFormat::Bibtex,
        DescriptionFormat::Refer,
        DescriptionFormat::Ris,
        DescriptionFormat::Csl,
        DescriptionFormat::Datacite,
        DescriptionFormat::DataciteJson,
        DescriptionFormat::JsonLd,
        DescriptionFormat::Mods,
        DescriptionFormat::Dspace,
        DescriptionFormat::Cff,
    ];

    /// Its word in a modifier, see ibi(7).
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            DescriptionFormat::OaiDc => "oai_dc",
            DescriptionFormat::BibInpe => "BibINPE",
            DescriptionFormat::Bibtex => "bibtex",
            DescriptionFormat::Refer => "refer",
            DescriptionFormat::Ris => "ris",
            DescriptionFormat::Csl => "csl",
            DescriptionFormat::Datacite => "datacite",
            DescriptionFormat::DataciteJson => "datacite_json",
            DescriptionFormat::JsonLd => "jsonld",
            DescriptionFormat::Mods => "mods",
            DescriptionFormat::Dspace => "dspace",
            DescriptionFormat::Cff => "cff",
            DescriptionFormat::Premis => "premis",
            DescriptionFormat::Formats => FORMATS,
        }
    }

    /// The format with this word, whose case counts.
    #[must_use]
    pub fn from_word(word: &str) -> Option<DescriptionFormat> {
        let formats = DescriptionFormat::ALL.into_iter();
        formats
            .chain([DescriptionFormat::Premis, DescriptionFormat::Formats])
            .find(|format| format.word() == word)
    }

    /// The media type of its documents, all in UTF-8.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            DescriptionFormat::OaiDc | DescriptionFormat::Dspace | DescriptionFormat::Premis => {
                "application/xml; charset=utf-8"
            }
            DescriptionFormat::BibInpe | DescriptionFormat::Bibtex => {
                "application/x-bibtex; charset=utf-8"
            }
            DescriptionFormat::Refer => "application/x-research-info-refer; charset=utf-8",
            DescriptionFormat::Ris => "application/x-research-info-systems; charset=utf-8",
            DescriptionFormat::Csl => "application/vnd.citationstyles.csl+json",
            DescriptionFormat::Datacite => "application/vnd.datacite.datacite+xml; charset=utf-8",
            DescriptionFormat::DataciteJson => "application/vnd.datacite.datacite+json",
            DescriptionFormat::JsonLd => "application/ld+json",
            DescriptionFormat::Mods => "application/mods+xml; charset=utf-8",
            DescriptionFormat::Cff => "application/yaml",
            DescriptionFormat::Formats => "text/plain; charset=utf-8",
        }
    }

    /// A description of the format in a few words.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            DescriptionFormat::OaiDc => "Dublin Core in XML, as in OAI-PMH 2.0",
            DescriptionFormat::BibInpe => "BibTeX with all fields of the record, and those of INPE",
            DescriptionFormat::Bibtex => "BibTeX",
            DescriptionFormat::Refer => "tagged lines of refer, with fields %@name of URLib",
            DescriptionFormat::Ris => "RIS, for citation programs",
            DescriptionFormat::Csl => "CSL-JSON 1.0.2, for citation programs",
            DescriptionFormat::Datacite => "DataCite 4 in XML",
            DescriptionFormat::DataciteJson => "DataCite 4.5 in JSON",
            DescriptionFormat::JsonLd => "schema.org in JSON-LD",
            DescriptionFormat::Mods => "MODS 3.8, for libraries",
            DescriptionFormat::Dspace => "dublin_core.xml of DSpace",
            DescriptionFormat::Cff => "CITATION.cff 1.2.0, for software",
            DescriptionFormat::Premis => "what was done to it, as events of PREMIS 3.0",
            DescriptionFormat::Formats => "the list of these formats",
        }
    }

    /// Its line in the list of formats.
    #[must_use]
    pub fn listed(self) -> String {
        format!("{}\t{}\n", self.word(), self.about())
    }

    /// The namespace and the schema of an XML format.
    #[must_use]
    pub fn schema(self) -> Option<(&'static str, &'static str)> {
        match self {
            DescriptionFormat::OaiDc => Some((OAI_DC, OAI_DC_SCHEMA)),
            DescriptionFormat::Datacite => Some((DATACITE, DATACITE_SCHEMA)),
            DescriptionFormat::Mods => Some((mods::MODS, mods::MODS_SCHEMA)),
            _ => None,
        }
    }
}

/// The relation of a related item to the described one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescribedRelation {
    /// It is a later edition.
    LaterEdition,
    /// It is an earlier edition.
    EarlierEdition,
    /// It is a translation, or what this one was translated from.
    Translation,
}

/// The facts about an item that its description is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Its record; the identifiers of the item are among the record's.
    pub record: BibliographicRecord,
    /// Its identifier, the IBIp if it has one.
    pub ibi: String,
    /// Its persistent URL.
    pub url: String,
    /// Its default file.
    pub target_file: Option<String>,
    /// Related items, by their persistent URLs.
    pub related: Vec<(DescribedRelation, String)>,
    /// The date on which the description is made: year, month and day.
    pub made_on: (u16, u8, u8),
    /// The part of it that the public may read, where that is said.
    pub access: Option<AccessRight>,
    /// The day on which its files become open, or became open.
    pub available: Option<String>,
}

impl Description {
    /// The document in a format, in UTF-8.
    #[must_use]
    pub fn write(&self, format: DescriptionFormat) -> String {
        match format {
            DescriptionFormat::OaiDc => self.normal_core().to_oai_dc(),
            DescriptionFormat::BibInpe => bibtex::write(self, bibtex::Dialect::Inpe),
            DescriptionFormat::Bibtex => bibtex::write(self, bibtex::Dialect::Common),
            DescriptionFormat::Refer => refer::write(self),
            DescriptionFormat::Ris => ris::write(self),
            DescriptionFormat::Csl => csl::write(self),
            DescriptionFormat::Datacite => document(&datacite::element(self)),
            DescriptionFormat::DataciteJson => datacite::json(self),
            DescriptionFormat::JsonLd => jsonld::write(self),
            DescriptionFormat::Mods => document(&mods::element(self)),
            DescriptionFormat::Dspace => document(&dspace::element(self)),
            DescriptionFormat::Cff => cff::write(self),
            // Made of events, not of a description.
            DescriptionFormat::Premis => String::new(),
            DescriptionFormat::Formats => {
                let formats = DescriptionFormat::ALL.into_iter();
                formats.map(DescriptionFormat::listed).collect()
            }
        }
    }

    /// Its Dublin Core in Turtle (RDF 1.1).
    #[must_use]
    pub fn to_turtle(&self) -> String {
        turtle::write(self)
    }

    /// The root element of an XML format, for use in another document; None for other formats.
    #[must_use]
    pub fn xml_element(&self, format: DescriptionFormat) -> Option<String> {
        match format {
            DescriptionFormat::OaiDc => Some(self.normal_core().to_oai_dc_element()),
            DescriptionFormat::Datacite => Some(datacite::element(self)),
            DescriptionFormat::Mods => Some(mods::element(self)),
            _ => None,
        }
    }

    /// The element of OpenAIRE's profile. None if the record lacks what that requires.
    #[must_use]
    pub fn openaire_element(&self, access: &Access) -> Option<String> {
        openaire::element(self, access)
    }

    fn kind(&self) -> RecordKind {
        self.record.kind()
    }

    fn first(&self, element: Element) -> Option<&str> {
        self.record.core.first(element)
    }

    /// The title, or the identifier of an item whose record has none.
    fn title(&self) -> &str {
        self.first(Element::Title).unwrap_or(&self.ibi)
    }

    fn creators(&self) -> impl Iterator<Item = PersonName<'_>> {
        self.record
            .core
            .values(Element::Creator)
            .map(PersonName::of)
    }

    /// The names of a kept field, such as `editor`.
    fn named(&self, field: &'static str) -> impl Iterator<Item = PersonName<'_>> {
        self.record.values(field).map(PersonName::of)
    }

    /// The publisher, or the school or institution that issued the item.
    fn publisher(&self) -> Option<&str> {
        self.first(Element::Publisher)
    }

    /// The date, if it is understood.
    fn date(&self) -> Option<GivenDate> {
        GivenDate::read(self.first(Element::Date)?)
    }

    /// The date, or the interval of dates, in ISO 8601.
    fn iso_date(&self) -> Option<Cow<'_, str>> {
        let text = self.first(Element::Date)?;
        Some(self.date()?.iso_of(text))
    }

    /// The record with dates in ISO 8601, where that says all of them, and with who may read the files, if that is said.
    fn normal_core(&self) -> Cow<'_, DublinCore> {
        let core = &self.record.core;
        let iso = |text: &str| {
            let date = GivenDate::read(text).filter(GivenDate::is_exact)?;
            Some(date.iso_of(text).into_owned())
        };
        if self.access.is_none()
            && core
                .values(Element::Date)
                .all(|text| iso(text).is_none_or(|iso| iso == text))
        {
            return Cow::Borrowed(core);
        }
        let mut normal = DublinCore::default();
        for (element, value) in core.iter() {
            let date = Some(value)
                .filter(|_| element == Element::Date)
                .and_then(iso);
            normal.push(element, date.unwrap_or_else(|| value.to_owned()));
        }
        if let Some(term) = self.access.and_then(AccessRight::term) {
            normal.push(Element::Rights, term);
        }
        if let Some(day) = &self.available {
            normal.push(Element::Date, format!("info:eu-repo/date/embargoEnd/{day}"));
        }
        Cow::Owned(normal)
    }

    /// Whether more people made it than are named.
    fn has_others(&self) -> bool {
        self.record.values("others").any(|role| role == "author")
    }

    /// The abstract.
    fn abstract_text(&self) -> Option<&str> {
        self.record.descriptions().0.first().copied()
    }

    /// The descriptions that are not the abstract.
    fn notes(&self) -> Vec<&str> {
        let (abstracts, notes) = self.record.descriptions();
        abstracts.into_iter().skip(1).chain(notes).collect()
    }

    /// A kept field that is a standard number, or the identifier of that scheme: `https://doi.org/`, `urn:isbn:`.
    fn number(&self, field: &str, scheme: &str) -> Option<&str> {
        let mut identifiers = self.record.core.values(Element::Identifier);
        identifiers
            .find_map(|value| value.strip_prefix(scheme))
            .or_else(|| self.record.field(field))
    }

    fn doi(&self) -> Option<&str> {
        self.number("doi", "https://doi.org/")
            .filter(|doi| is_doi(doi))
    }

    /// Returns words for it, one of which means its kind, beside the term of the DCMI type vocabulary.
    fn genres(&self) -> Vec<&str> {
        let kind = self.kind();
        let types = self.record.core.values(Element::Type);
        let mut genres: Vec<&str> = types.filter(|value| *value != kind.dcmi()).collect();
        let said = genres.iter().find_map(|genre| RecordKind::from_word(genre));
        if said != Some(kind) && !matches!(kind, RecordKind::Collection | RecordKind::Other) {
            genres.insert(0, kind.genre());
        }
        genres
    }

    /// The first and the last page.
    fn pages(&self) -> (Option<&str>, Option<&str>) {
        let pages = self.record.field("pages").unwrap_or_default();
        let pages = pages.split(['-', '\u{2013}']).map(str::trim);
        let mut pages = pages.filter(|page| !page.is_empty());
        (pages.next(), pages.next())
    }

    /// The journal or book in which it appeared.
    fn container(&self) -> Option<&str> {
        let named = self.record.field("journal");
        let named = named.or_else(|| self.record.field("booktitle"));
        named.or_else(|| self.first(Element::Source))
    }
}

/// A document in XML with this root element.
fn document(element: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{element}")
}

/// Adds a member to an object of JSON, unless it is empty.
fn add(members: &mut Map<String, Value>, name: &str, value: Value) {
    let is_empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        _ => false,
    };
    if !is_empty {
        members.insert(name.to_owned(), value);
    }
}

/// The URL of a licence that a text names or links.
#[must_use]
pub fn licence_url(text: &str) -> Option<String> {
    let known = License::read(text).map(|licence| licence.url);
    known.or_else(|| uri_in(text))
}

/// A URI that a text contains, if it can stand in a link.
#[must_use]
pub fn uri_in(text: &str) -> Option<String> {
    let at = text.find("https://").or_else(|| text.find("http://"))?;
    let uri: String = text[at..]
        .chars()
        .take_while(|sign| sign.is_ascii_graphic() && !"<>\"\\^`{|}".contains(*sign))
        .collect();
    let uri = uri.trim_end_matches(['.', ',', ';', ')', ']']);
    (uri.len() > "https://".len()).then(|| uri.to_owned())
}

/// Whether a name can be that of a field of BibTeX or refer.
fn is_field_name(name: &str) -> bool {
    name.starts_with(|sign: char| sign.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Whether a text has the form of a DOI: `10.1000/182`.
fn is_doi(text: &str) -> bool {
    let parts = text
        .strip_prefix("10.")
        .and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(registrant, rest)| {
        (4..=9).contains(&registrant.len())
            && registrant.bytes().all(|byte| byte.is_ascii_digit())
            && !rest.is_empty()
            && !rest.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests;
