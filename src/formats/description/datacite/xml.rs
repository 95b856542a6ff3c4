//! The XML of DataCite 4.

use quick_xml::escape::escape;

use super::{DATACITE, DATACITE_SCHEMA, ORCID, Resource, name_type};
use crate::formats::description::{Description, PersonName};
use crate::formats::metadata::SPDX;

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

type Attributes<'a> = &'a [(&'a str, &'a str)];

/// An element with its attributes and its text, which are escaped.
fn text(xml: &mut String, indent: usize, name: &str, attributes: Attributes<'_>, value: &str) {
    xml.push_str(&" ".repeat(indent));
    xml.push_str(&format!("<{name}"));
    for (attribute, value) in attributes {
        xml.push_str(&format!(" {attribute}=\"{}\"", escape(*value)));
    }
    xml.push_str(&format!(">{}</{name}>\n", escape(value)));
}

/// A list of elements, where there are any.
fn list<T>(xml: &mut String, name: &str, values: &[T], one: impl Fn(&mut String, &T)) {
    if !values.is_empty() {
        xml.push_str(&format!("  <{name}>\n"));
        values.iter().for_each(|value| one(xml, value));
        xml.push_str(&format!("  </{name}>\n"));
    }
}

/// A list of elements that have a text alone.
fn texts(xml: &mut String, names: &str, name: &str, values: &[&str]) {
    list(xml, names, values, |xml, value| {
        text(xml, 4, name, &[], value);
    });
}

/// A list of elements with an attribute.
fn qualified(xml: &mut String, names: &str, name: &str, kind: &str, values: &[(&str, &str)]) {
    list(xml, names, values, |xml, (value, word)| {
        text(xml, 4, name, &[(kind, word)], value);
    });
}

/// The document without its declaration.
pub(in super::super) fn element(description: &Description) -> String {
    let resource = Resource::of(description);
    let mut xml = format!(
        "<resource xmlns=\"{DATACITE}\"\n    xmlns:xsi=\"{XSI}\"\n    \
         xsi:schemaLocation=\"{DATACITE} {DATACITE_SCHEMA}\">\n"
    );
    let (identifier, scheme) = resource.identifier;
    let scheme = [("identifierType", scheme)];
    text(&mut xml, 2, "identifier", &scheme, identifier);
    list(
        &mut xml,
        "creators",
        &resource.creators,
        |xml, (name, id)| {
            agent(xml, "creator", &[], name, id.as_deref());
        },
    );
    list(
        &mut xml,
        "titles",
        &resource.titles,
        |xml, (title, kind)| {
            let kind = kind.map(|kind| ("titleType", kind));
            text(xml, 4, "title", kind.as_slice(), title);
        },
    );
    text(&mut xml, 2, "publisher", &[], resource.publisher);
    let year = format!("{:04}", resource.year);
    text(&mut xml, 2, "publicationYear", &[], &year);
    let (kind, general) = resource.kind;
    let general = [("resourceTypeGeneral", general)];
    text(&mut xml, 2, "resourceType", &general, kind);
    texts(&mut xml, "subjects", "subject", &resource.subjects);
    let contributors = &resource.contributors;
    list(
        &mut xml,
        "contributors",
        contributors,
        |xml, (name, role)| {
            agent(xml, "contributor", &[("contributorType", role)], name, None);
        },
    );
    let issued: Vec<_> = resource
        .date
        .as_deref()
        .map(|date| (date, "Issued"))
        .into_iter()
        .collect();
    qualified(&mut xml, "dates", "date", "dateType", &issued);
    if let Some(language) = resource.language {
        text(&mut xml, 2, "language", &[], language);
    }
    let (names, name) = ("alternateIdentifiers", "alternateIdentifier");
    let kind = "alternateIdentifierType";
    qualified(&mut xml, names, name, kind, &resource.alternates);
    let (names, name) = ("relatedIdentifiers", "relatedIdentifier");
    list(
        &mut xml,
        names,
        &resource.related,
        |xml, (url, relation)| {
            let attributes = [
                ("relatedIdentifierType", "URL"),
                ("relationType", *relation),
            ];
            text(xml, 4, name, &attributes, url);
        },
    );
    texts(&mut xml, "formats", "format", &resource.formats);
    if let Some(version) = resource.version {
        text(&mut xml, 2, "version", &[], version);
    }
    list(
        &mut xml,
        "rightsList",
        &resource.rights,
        |xml, (value, licence)| {
            let mut attributes = Vec::new();
            if let Some(licence) = licence {
                attributes.push(("rightsURI", &*licence.url));
                if let Some(spdx) = &licence.spdx {
                    attributes.push(("rightsIdentifier", &**spdx));
                    attributes.push(("rightsIdentifierScheme", "SPDX"));
                    attributes.push(("schemeURI", SPDX));
                }
            }
            text(xml, 4, "rights", &attributes, value);
        },
    );
    let kind = "descriptionType";
    qualified(
        &mut xml,
        "descriptions",
        "description",
        kind,
        &resource.descriptions,
    );
    list(
        &mut xml,
        "fundingReferences",
        &resource.funding,
        |xml, (funder, award)| {
            xml.push_str("    <fundingReference>\n");
            text(xml, 6, "funderName", &[], funder);
            if let Some(award) = award {
                text(xml, 6, "awardNumber", &[], award);
            }
            xml.push_str("    </fundingReference>\n");
        },
    );
    xml.push_str("</resource>\n");
    xml
}

/// A creator or a contributor.
fn agent(
    xml: &mut String,
    element: &str,
    attributes: Attributes<'_>,
    name: &PersonName<'_>,
    orcid: Option<&str>,
) {
    let attributes: String = attributes
        .iter()
        .map(|(attribute, value)| format!(" {attribute}=\"{}\"", escape(*value)))
        .collect();
    xml.push_str(&format!("    <{element}{attributes}>\n"));
    let kind = name_type(name).map(|kind| ("nameType", kind));
    text(
        xml,
        6,
        &format!("{element}Name"),
        kind.as_slice(),
        name.whole,
    );
    if let Some(family) = name.family {
        text(xml, 6, "givenName", &[], name.given);
        text(xml, 6, "familyName", &[], family);
    }
    if let Some(orcid) = orcid {
        let scheme = [("nameIdentifierScheme", "ORCID"), ("schemeURI", ORCID)];
        text(
            xml,
            6,
            "nameIdentifier",
            &scheme,
            &format!("{ORCID}{orcid}"),
        );
    }
    xml.push_str(&format!("    </{element}>\n"));
}
