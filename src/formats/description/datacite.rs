//! DataCite 4, XML for registration agencies and data catalogues.
//!
//! A mandatory value that the record lacks is `:unav`, unavailable, as the standard says. The identifier is the DOI
//! if the item has one, and else its persistent URL.

use quick_xml::escape::escape;

use super::{DescribedRelation, Description, PersonName};
use crate::formats::metadata::Element;

/// The namespace of DataCite 4.
pub const DATACITE: &str = "http://datacite.org/schema/kernel-4";
/// The URL of its schema.
pub const DATACITE_SCHEMA: &str = "https://schema.datacite.org/meta/kernel-4/metadata.xsd";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The value of what is mandatory and not known.
const UNAVAILABLE: &str = ":unav";

/// An element with its attributes and its text, which are escaped.
fn text(xml: &mut String, indent: usize, name: &str, attributes: &[(&str, &str)], value: &str) {
    xml.push_str(&" ".repeat(indent));
    xml.push_str(&format!("<{name}"));
    for (attribute, value) in attributes {
        xml.push_str(&format!(" {attribute}=\"{}\"", escape(*value)));
    }
    xml.push_str(&format!(">{}</{name}>\n", escape(value)));
}

/// A list of elements, where there are any.
fn list(xml: &mut String, name: &str, inner: &str) {
    if !inner.is_empty() {
        xml.push_str(&format!("  <{name}>\n{inner}  </{name}>\n"));
    }
}

/// The document without its declaration.
pub(super) fn element(description: &Description) -> String {
    let core = &description.record.core;
    let mut xml = format!(
        "<resource xmlns=\"{DATACITE}\"\n    xmlns:xsi=\"{XSI}\"\n    \
         xsi:schemaLocation=\"{DATACITE} {DATACITE_SCHEMA}\">\n"
    );
    match description.doi() {
        Some(doi) => text(&mut xml, 2, "identifier", &[("identifierType", "DOI")], doi),
        None => {
            let url = &description.url;
            text(&mut xml, 2, "identifier", &[("identifierType", "URL")], url);
        }
    }
    let mut creators = String::new();
    for name in description.creators() {
        agent(&mut creators, "creator", &[], name);
    }
    if creators.is_empty() {
        agent(&mut creators, "creator", &[], PersonName::of(UNAVAILABLE));
    }
    list(&mut xml, "creators", &creators);
    let mut titles = String::new();
    text(&mut titles, 4, "title", &[], description.title());
    for title in core.values(Element::Title).skip(1) {
        text(
            &mut titles,
            4,
            "title",
            &[("titleType", "AlternativeTitle")],
            title,
        );
    }
    list(&mut xml, "titles", &titles);
    text(
        &mut xml,
        2,
        "publisher",
        &[],
        description.publisher().unwrap_or(UNAVAILABLE),
    );
    let date = description.date();
    let year = date.as_deref().and_then(|parts| parts.first().copied());
    let year = year
        .filter(|year| *year >= 1000)
        .unwrap_or(description.made_on.0);
    text(&mut xml, 2, "publicationYear", &[], &format!("{year:04}"));
    let kind = description.kind();
    let dcmi = kind.dcmi();
    let mut types = core.values(Element::Type);
    let detail = types.find(|value| *value != dcmi).unwrap_or(kind.bibtex());
    let general = [("resourceTypeGeneral", kind.datacite())];
    text(&mut xml, 2, "resourceType", &general, detail);
    let mut subjects = String::new();
    for subject in core.values(Element::Subject) {
        text(&mut subjects, 4, "subject", &[], subject);
    }
    list(&mut xml, "subjects", &subjects);
    let mut contributors = String::new();
    let editors: Vec<PersonName<'_>> = description.named("editor").collect();
    for name in core.values(Element::Contributor).map(PersonName::of) {
        let is_editor = editors.contains(&name);
        let role = if is_editor { "Editor" } else { "Other" };
        agent(
            &mut contributors,
            "contributor",
            &[("contributorType", role)],
            name,
        );
    }
    list(&mut xml, "contributors", &contributors);
    if let Some(date) = core.first(Element::Date).filter(|_| date.is_some()) {
        let mut dates = String::new();
        text(&mut dates, 4, "date", &[("dateType", "Issued")], date);
        list(&mut xml, "dates", &dates);
    }
    let language = core
        .first(Element::Language)
        .filter(|text| is_language(text));
    if let Some(language) = language {
        text(&mut xml, 2, "language", &[], language);
    }
    let mut alternates = String::new();
    let ibi = [("alternateIdentifierType", "IBI")];
    text(
        &mut alternates,
        4,
        "alternateIdentifier",
        &ibi,
        &description.ibi,
    );
    if description.doi().is_some() {
        let url = [("alternateIdentifierType", "URL")];
        text(
            &mut alternates,
            4,
            "alternateIdentifier",
            &url,
            &description.url,
        );
    }
    list(&mut xml, "alternateIdentifiers", &alternates);
    let mut related = String::new();
    for (relation, url) in &description.related {
        let relation = match relation {
            DescribedRelation::LaterEdition => "IsPreviousVersionOf",
            DescribedRelation::EarlierEdition => "IsNewVersionOf",
            DescribedRelation::Translation => "IsVariantFormOf",
        };
        let attributes = [("relatedIdentifierType", "URL"), ("relationType", relation)];
        text(&mut related, 4, "relatedIdentifier", &attributes, url);
    }
    list(&mut xml, "relatedIdentifiers", &related);
    let mut formats = String::new();
    for format in core.values(Element::Format) {
        text(&mut formats, 4, "format", &[], format);
    }
    list(&mut xml, "formats", &formats);
    let mut rights = String::new();
    for value in core.values(Element::Rights) {
        text(&mut rights, 4, "rights", &[], value);
    }
    list(&mut xml, "rightsList", &rights);
    let mut descriptions = String::new();
    for (index, value) in core.values(Element::Description).enumerate() {
        let kind = if index == 0 { "Abstract" } else { "Other" };
        text(
            &mut descriptions,
            4,
            "description",
            &[("descriptionType", kind)],
            value,
        );
    }
    list(&mut xml, "descriptions", &descriptions);
    xml.push_str("</resource>\n");
    xml
}

/// A creator or a contributor.
fn agent(xml: &mut String, element: &str, attributes: &[(&str, &str)], name: PersonName<'_>) {
    let attributes: String = attributes
        .iter()
        .map(|(attribute, value)| format!(" {attribute}=\"{}\"", escape(*value)))
        .collect();
    xml.push_str(&format!("    <{element}{attributes}>\n"));
    let kind = if name.family.is_some() {
        "Personal"
    } else {
        "Organizational"
    };
    let is_known = name.whole != UNAVAILABLE;
    let kind: &[(&str, &str)] = if is_known { &[("nameType", kind)] } else { &[] };
    text(xml, 6, &format!("{element}Name"), kind, name.whole);
    if let Some(family) = name.family {
        text(xml, 6, "givenName", &[], name.given);
        text(xml, 6, "familyName", &[], family);
    }
    xml.push_str(&format!("    </{element}>\n"));
}

/// Whether a text has the form of a language tag.
pub(super) fn is_language(text: &str) -> bool {
    let is_word = |word: &str, least: usize| {
        (least..=8).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let mut words = text.split('-');
    let first = words.next().unwrap_or_default();
    let is_alphabetic = first.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word(first, 2) && is_alphabetic && words.all(|word| is_word(word, 1))
}
