//! The application profile of the OpenAIRE Guidelines for Literature Repositories 4.0, XML for the European and other
//! national aggregators: elements of DataCite and Dublin Core with some of its own.
//!
//! Mandatory are title, creator, date, type, identifier and access rights. A record without the first two has no such
//! form; the others are known of every item.

use super::datacite::{ORCID, is_language, word};
use super::xml::Xml;
use super::{Description, PersonName, licence_url};
use crate::metadata::{Element, RecordKind};

/// The namespace of its own elements.
pub const OPENAIRE: &str = "http://namespace.openaire.eu/schema/oaire/";
/// The URL of its schema.
pub const OPENAIRE_SCHEMA: &str = "https://www.openaire.eu/schema/repo-lit/4.0/openaire.xsd";
const NAMESPACES: &str = "xmlns:oaire=\"http://namespace.openaire.eu/schema/oaire/\"\n    \
     xmlns:datacite=\"http://datacite.org/schema/kernel-4\"\n    \
     xmlns:dc=\"http://purl.org/dc/elements/1.1/\"\n    \
     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";

/// The part of an item that the public may read, by the COAR Access Right Vocabulary 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRight {
    /// The document.
    Open,
    /// The description alone, though there are files, which will be open.
    Embargoed,
    /// The description alone, though there are files.
    Restricted,
    /// The description alone; there are no files.
    MetadataOnly,
}

impl AccessRight {
    /// Its term in the vocabulary of info:eu-repo, as the OpenAIRE Guidelines 3.0 have it. None for a description alone,
    /// which that has no term for.
    #[must_use]
    pub fn term(self) -> Option<&'static str> {
        match self {
            AccessRight::Open => Some("info:eu-repo/semantics/openAccess"),
            AccessRight::Embargoed => Some("info:eu-repo/semantics/embargoedAccess"),
            AccessRight::Restricted => Some("info:eu-repo/semantics/restrictedAccess"),
            AccessRight::MetadataOnly => None,
        }
    }

    /// Its label in English.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.uri_and_label().1
    }

    fn uri_and_label(self) -> (&'static str, &'static str) {
        match self {
            AccessRight::Open => ("http://purl.org/coar/access_right/c_abf2", "open access"),
            AccessRight::Embargoed => (
                "http://purl.org/coar/access_right/c_f1cf",
                "embargoed access",
            ),
            AccessRight::Restricted => (
                "http://purl.org/coar/access_right/c_16ec",
                "restricted access",
            ),
            AccessRight::MetadataOnly => (
                "http://purl.org/coar/access_right/c_14cb",
                "metadata only access",
            ),
        }
    }
}

/// A file that the public may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Its URL.
    pub url: String,
    /// Its media type.
    pub media_type: String,
    /// Whether it is the document.
    pub is_main: bool,
}

/// The parts of an item that the public may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Of the whole.
    pub right: AccessRight,
    /// Its files, or the first of them.
    pub files: Vec<OpenFile>,
}

/// The general type, the concept of the COAR Resource Type Vocabulary 1.1, and its label.
fn resource_type(kind: RecordKind) -> (&'static str, &'static str, &'static str) {
    let literature = "literature";
    let product = "other research product";
    match kind {
        RecordKind::Article => (literature, "c_6501", "journal article"),
        RecordKind::Book => (literature, "c_2f33", "book"),
        RecordKind::Chapter => (literature, "c_3248", "book part"),
        RecordKind::Paper => (literature, "c_5794", "conference paper"),
        RecordKind::Proceedings => (literature, "c_f744", "conference proceedings"),
        RecordKind::Thesis => (literature, "c_db06", "doctoral thesis"),
        RecordKind::MastersThesis => (literature, "c_bdcc", "master thesis"),
        RecordKind::Report => (literature, "c_93fc", "report"),
        RecordKind::Manual => (literature, "c_71bd", "technical documentation"),
        RecordKind::Unpublished => (literature, "c_18cf", "text"),
        RecordKind::Dataset => ("dataset", "c_ddb1", "dataset"),
        RecordKind::Software => ("software", "c_5ce6", "software"),
        RecordKind::Image => (product, "c_c513", "image"),
        RecordKind::Map => (product, "c_12cd", "map"),
        RecordKind::Sound => (product, "c_18cc", "sound"),
        RecordKind::MovingImage => (product, "c_8a7e", "moving image"),
        RecordKind::WebPage => (product, "c_7ad9", "website"),
        RecordKind::Collection | RecordKind::Other => (product, "c_1843", "other"),
    }
}

/// The names of an element of Dublin Core in a list.
fn agents(
    xml: &mut Xml,
    name: &str,
    role: &str,
    agents: &[PersonName<'_>],
    description: &Description,
) {
    let orcids = description.record.orcids();
    xml.group(&format!("datacite:{name}s"), |xml| {
        for agent in agents {
            xml.group(&format!("datacite:{name}{role}"), |xml| {
                let kind = match agent.family {
                    Some(_) => "Personal",
                    None => "Organizational",
                };
                let whole = format!("datacite:{name}Name");
                xml.text(&whole, &[("nameType", kind)], agent.whole);
                if let Some(family) = agent.family {
                    xml.text("datacite:givenName", &[], agent.given);
                    xml.text("datacite:familyName", &[], family);
                }
                if let Some(id) = orcids.get(agent.whole) {
                    let scheme = [("nameIdentifierScheme", "ORCID"), ("schemeURI", ORCID)];
                    let id = format!("{ORCID}{id}");
                    xml.text("datacite:nameIdentifier", &scheme, &id);
                }
            });
        }
    });
}

/// The element; None if the record lacks what is mandatory. The elements are in the order of the guidelines; the
/// schema has none.
pub(super) fn element(description: &Description, access: &Access) -> Option<String> {
    let core = &description.record.core;
    let title = core.first(Element::Title)?;
    let creators: Vec<PersonName<'_>> = description.creators().collect();
    let date = description.iso_date()?;
    if creators.is_empty() {
        return None;
    }
    let tag = format!(
        "oaire:resource {NAMESPACES}\n    xsi:schemaLocation=\"{OPENAIRE} {OPENAIRE_SCHEMA}\""
    );
    Some(Xml::element(&tag, |xml| {
        xml.group("datacite:titles", |xml| {
            xml.text("datacite:title", &[], title);
            for title in core.values(Element::Title).skip(1) {
                let other = [("titleType", "AlternativeTitle")];
                xml.text("datacite:title", &other, title);
            }
        });
        agents(xml, "creator", "", &creators, description);
        let contributors = core.values(Element::Contributor).map(PersonName::of);
        let contributors: Vec<PersonName<'_>> = contributors.collect();
        let role = " contributorType=\"Other\"";
        agents(xml, "contributor", role, &contributors, description);
        identifiers(xml, description);
        let mut languages = core.values(Element::Language);
        xml.texts("dc:language", languages.find(|text| is_language(text)));
        xml.texts("dc:publisher", description.publisher());
        let day = date.split('T').next().unwrap_or(&date);
        xml.group("datacite:dates", |xml| {
            xml.text("datacite:date", &[("dateType", "Issued")], day);
            if let Some(day) = &description.available {
                xml.text("datacite:date", &[("dateType", "Available")], day);
            }
        });
        let (general, concept, label) = resource_type(description.kind());
        let uri = format!("http://purl.org/coar/resource_type/{concept}");
        let attributes = [("resourceTypeGeneral", general), ("uri", &uri)];
        xml.text("oaire:resourceType", &attributes, label);
        xml.texts("dc:description", core.values(Element::Description));
        xml.texts("dc:format", core.values(Element::Format));
        let (uri, label) = access.right.uri_and_label();
        xml.text("datacite:rights", &[("rightsURI", uri)], label);
        xml.group("datacite:subjects", |xml| {
            xml.texts("datacite:subject", core.values(Element::Subject));
        });
        licence(xml, description);
        xml.texts("dc:coverage", core.values(Element::Coverage));
        files(xml, general, access);
        xml.texts("oaire:citationTitle", description.container());
    }))
}

/// The first licence that is known or linked, or else the first of what the record says of rights.
fn licence(xml: &mut Xml, description: &Description) {
    let name = "oaire:licenseCondition";
    let rights = || description.record.core.values(Element::Rights);
    match rights().find_map(|value| Some((value, licence_url(value)?))) {
        Some((value, uri)) => xml.text(name, &[("uri", &uri)], value),
        None => xml.texts(name, rights().next()),
    }
}

fn files(xml: &mut Xml, general: &str, access: &Access) {
    let (open, _) = AccessRight::Open.uri_and_label();
    for file in &access.files {
        let object = match general {
            "literature" if file.is_main => "fulltext",
            "dataset" | "software" => general,
            _ => "other",
        };
        let attributes = [
            ("accessRightsURI", open),
            ("mimeType", &file.media_type),
            ("objectType", object),
        ];
        xml.text("oaire:file", &attributes, &file.url);
    }
}

/// The identifier, alternatives to it, and those of related items.
fn identifiers(xml: &mut Xml, description: &Description) {
    let url = description.url.as_str();
    let doi = description.doi();
    xml.group("datacite:alternateIdentifiers", |xml| {
        let mut alternate = |kind: &str, value: &str| {
            let attributes = [("alternateIdentifierType", kind)];
            xml.text("datacite:alternateIdentifier", &attributes, value);
        };
        alternate("IBI", &description.ibi);
        if doi.is_some() {
            alternate("URL", url);
        }
    });
    xml.group("datacite:relatedIdentifiers", |xml| {
        for (relation, url) in &description.related {
            let relation = word(*relation);
            let attributes = [("relatedIdentifierType", "URL"), ("relationType", relation)];
            xml.text("datacite:relatedIdentifier", &attributes, url);
        }
    });
    let (kind, identifier) = doi.map_or(("URL", url), |doi| ("DOI", doi));
    xml.text(
        "datacite:identifier",
        &[("identifierType", kind)],
        identifier,
    );
}
