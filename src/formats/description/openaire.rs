//! The application profile of the OpenAIRE Guidelines for Literature Repositories 4.0, XML for the European and other
//! national aggregators: elements of DataCite and Dublin Core with some of its own.
//!
//! Mandatory are title, creator, date, type, identifier and access rights. A record without the first two has no such
//! form; the others are known of every item.

use quick_xml::escape::escape;

use super::datacite::is_language;
use super::{DescribedRelation, Description, PersonName, uri_in};
use crate::formats::metadata::{Element, RecordKind};

/// The namespace of its own elements.
pub const OPENAIRE: &str = "http://namespace.openaire.eu/schema/oaire/";
/// The URL of its schema.
pub const OPENAIRE_SCHEMA: &str = "https://www.openaire.eu/schema/repo-lit/4.0/openaire.xsd";
const NAMESPACES: &str = "xmlns:oaire=\"http://namespace.openaire.eu/schema/oaire/\"\n    \
     xmlns:datacite=\"http://datacite.org/schema/kernel-4\"\n    \
     xmlns:dc=\"http://purl.org/dc/elements/1.1/\"\n    \
     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";

/// What the public may read of an item, by the COAR Access Right Vocabulary 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRight {
    /// The document.
    Open,
    /// The description alone, though there are files.
    Restricted,
    /// The description alone; there are no files.
    MetadataOnly,
}

impl AccessRight {
    fn uri_and_label(self) -> (&'static str, &'static str) {
        match self {
            AccessRight::Open => ("http://purl.org/coar/access_right/c_abf2", "open access"),
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

/// What the public may read of an item.
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

/// An element with its attributes and its text, which are escaped.
fn text(xml: &mut String, name: &str, attributes: &[(&str, &str)], value: &str) {
    xml.push_str(&format!("<{name}"));
    for (attribute, value) in attributes {
        xml.push_str(&format!(" {attribute}=\"{}\"", escape(*value)));
    }
    xml.push_str(&format!(">{}</{name}>\n", escape(value)));
}

/// A list of elements, where there are any.
fn list(xml: &mut String, name: &str, inner: &str) {
    if !inner.is_empty() {
        xml.push_str(&format!("<{name}>\n{inner}</{name}>\n"));
    }
}

/// The names of an element of Dublin Core in a list.
fn agents(name: &str, attributes: &str, agents: &[PersonName<'_>]) -> String {
    let mut xml = String::new();
    for agent in agents {
        let kind = if agent.family.is_some() {
            "Personal"
        } else {
            "Organizational"
        };
        xml.push_str(&format!("<datacite:{name}{attributes}>\n"));
        let whole = format!("datacite:{name}Name");
        text(&mut xml, &whole, &[("nameType", kind)], agent.whole);
        if let Some(family) = agent.family {
            text(&mut xml, "datacite:givenName", &[], agent.given);
            text(&mut xml, "datacite:familyName", &[], family);
        }
        xml.push_str(&format!("</datacite:{name}>\n"));
    }
    xml
}

/// The element; None if the record lacks what is mandatory. The elements are in the order of the guidelines; the
/// schema has none.
pub(super) fn element(description: &Description, access: &Access) -> Option<String> {
    let core = &description.record.core;
    let is_given = |value: &&str| !value.trim().is_empty();
    let mut titles = core.values(Element::Title).filter(is_given);
    let title = titles.next()?;
    let creators: Vec<PersonName<'_>> = description
        .creators()
        .filter(|name| is_given(&name.whole))
        .collect();
    let date = description.iso_date()?;
    if creators.is_empty() {
        return None;
    }
    let mut xml = format!(
        "<oaire:resource {NAMESPACES}\n    xsi:schemaLocation=\"{OPENAIRE} {OPENAIRE_SCHEMA}\">\n"
    );
    let mut inner = String::new();
    text(&mut inner, "datacite:title", &[], title);
    for title in titles {
        let other = [("titleType", "AlternativeTitle")];
        text(&mut inner, "datacite:title", &other, title);
    }
    list(&mut xml, "datacite:titles", &inner);
    list(
        &mut xml,
        "datacite:creators",
        &agents("creator", "", &creators),
    );
    let contributors = core.values(Element::Contributor).filter(is_given);
    let contributors: Vec<PersonName<'_>> = contributors.map(PersonName::of).collect();
    let role = " contributorType=\"Other\"";
    let contributors = agents("contributor", role, &contributors);
    list(&mut xml, "datacite:contributors", &contributors);
    identifiers(&mut xml, description);
    let language = core
        .values(Element::Language)
        .find(|text| is_language(text));
    if let Some(language) = language {
        text(&mut xml, "dc:language", &[], language);
    }
    if let Some(publisher) = description.publisher() {
        text(&mut xml, "dc:publisher", &[], publisher);
    }
    let day = date.split('T').next().unwrap_or(&date);
    let mut dates = String::new();
    text(&mut dates, "datacite:date", &[("dateType", "Issued")], day);
    list(&mut xml, "datacite:dates", &dates);
    let (general, concept, label) = resource_type(description.kind());
    let uri = format!("http://purl.org/coar/resource_type/{concept}");
    let attributes = [("resourceTypeGeneral", general), ("uri", &uri)];
    text(&mut xml, "oaire:resourceType", &attributes, label);
    for value in core.values(Element::Description).filter(is_given) {
        text(&mut xml, "dc:description", &[], value);
    }
    for value in core.values(Element::Format).filter(is_given) {
        text(&mut xml, "dc:format", &[], value);
    }
    let (uri, label) = access.right.uri_and_label();
    text(&mut xml, "datacite:rights", &[("rightsURI", uri)], label);
    let mut subjects = String::new();
    for subject in core.values(Element::Subject).filter(is_given) {
        text(&mut subjects, "datacite:subject", &[], subject);
    }
    list(&mut xml, "datacite:subjects", &subjects);
    let rights: Vec<&str> = core.values(Element::Rights).filter(is_given).collect();
    let with_uri = |value: &&str| Some(((*value).to_owned(), uri_in(value)?));
    if let Some((value, uri)) = rights.iter().find_map(with_uri) {
        text(&mut xml, "oaire:licenseCondition", &[("uri", &uri)], &value);
    } else if let Some(value) = rights.first() {
        text(&mut xml, "oaire:licenseCondition", &[], value);
    }
    for value in core.values(Element::Coverage).filter(is_given) {
        text(&mut xml, "dc:coverage", &[], value);
    }
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
        text(&mut xml, "oaire:file", &attributes, &file.url);
    }
    if let Some(journal) = description.container() {
        text(&mut xml, "oaire:citationTitle", &[], journal);
    }
    xml.push_str("</oaire:resource>\n");
    Some(xml)
}

/// The identifier, alternatives to it, and those of related items.
fn identifiers(xml: &mut String, description: &Description) {
    let alternate = |xml: &mut String, kind: &str, value: &str| {
        let attributes = [("alternateIdentifierType", kind)];
        text(xml, "datacite:alternateIdentifier", &attributes, value);
    };
    let mut alternates = String::new();
    alternate(&mut alternates, "IBI", &description.ibi);
    let (kind, identifier) = match description.doi() {
        Some(doi) => {
            alternate(&mut alternates, "URL", &description.url);
            ("DOI", doi)
        }
        None => ("URL", description.url.as_str()),
    };
    list(xml, "datacite:alternateIdentifiers", &alternates);
    let mut related = String::new();
    for (relation, url) in &description.related {
        let relation = match relation {
            DescribedRelation::LaterEdition => "IsPreviousVersionOf",
            DescribedRelation::EarlierEdition => "IsNewVersionOf",
            DescribedRelation::Translation => "IsVariantFormOf",
        };
        let attributes = [("relatedIdentifierType", "URL"), ("relationType", relation)];
        text(&mut related, "datacite:relatedIdentifier", &attributes, url);
    }
    list(xml, "datacite:relatedIdentifiers", &related);
    let attributes = [("identifierType", kind)];
    text(xml, "datacite:identifier", &attributes, identifier);
}
