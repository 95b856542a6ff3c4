//! The XML of DataCite 4.

use super::{DATACITE, DATACITE_SCHEMA, ORCID, Resource, name_type};
use crate::description::xml::{XSI, Xml};
use crate::description::{Description, PersonName};
use crate::metadata::SPDX;

/// A list of elements that have a text alone.
fn texts(xml: &mut Xml, names: &str, name: &str, values: &[&str]) {
    xml.group(names, |xml| xml.texts(name, values.iter().copied()));
}

/// A list of elements with an attribute.
fn qualified(xml: &mut Xml, names: &str, name: &str, kind: &str, values: &[(&str, &str)]) {
    xml.group(names, |xml| {
        for (value, word) in values {
            xml.text(name, &[(kind, word)], value);
        }
    });
}

/// The document without its declaration.
pub(in super::super) fn element(description: &Description) -> String {
    let resource = Resource::of(description);
    let tag = format!(
        "resource xmlns=\"{DATACITE}\"\n    xmlns:xsi=\"{XSI}\"\n    \
         xsi:schemaLocation=\"{DATACITE} {DATACITE_SCHEMA}\""
    );
    Xml::element(&tag, |xml| properties(xml, &resource))
}

fn properties(xml: &mut Xml, resource: &Resource<'_>) {
    let (identifier, scheme) = resource.identifier;
    xml.text("identifier", &[("identifierType", scheme)], identifier);
    xml.group("creators", |xml| {
        for (name, id) in &resource.creators {
            agent(xml, "creator", "", name, id.as_deref());
        }
    });
    xml.group("titles", |xml| {
        for (title, kind) in &resource.titles {
            let kind = kind.map(|kind| ("titleType", kind));
            xml.text("title", kind.as_slice(), title);
        }
    });
    xml.text("publisher", &[], resource.publisher);
    xml.text("publicationYear", &[], &format!("{:04}", resource.year));
    let (kind, general) = resource.kind;
    xml.text("resourceType", &[("resourceTypeGeneral", general)], kind);
    texts(xml, "subjects", "subject", &resource.subjects);
    xml.group("contributors", |xml| {
        for (name, role) in &resource.contributors {
            let role = format!(" contributorType=\"{role}\"");
            agent(xml, "contributor", &role, name, None);
        }
    });
    let dates = resource.dates.iter();
    let dates: Vec<_> = dates.map(|(date, kind)| (&**date, *kind)).collect();
    qualified(xml, "dates", "date", "dateType", &dates);
    xml.texts("language", resource.language);
    let (names, name) = ("alternateIdentifiers", "alternateIdentifier");
    let kind = "alternateIdentifierType";
    qualified(xml, names, name, kind, &resource.alternates);
    xml.group("relatedIdentifiers", |xml| {
        for (url, relation) in &resource.related {
            let attributes = [("relatedIdentifierType", "URL"), ("relationType", relation)];
            xml.text("relatedIdentifier", &attributes, url);
        }
    });
    texts(xml, "formats", "format", &resource.formats);
    xml.texts("version", resource.version);
    xml.group("rightsList", |xml| {
        for (value, licence) in &resource.rights {
            let mut attributes = Vec::new();
            if let Some(licence) = licence {
                attributes.push(("rightsURI", &*licence.url));
                if let Some(spdx) = &licence.spdx {
                    attributes.push(("rightsIdentifier", &**spdx));
                    attributes.push(("rightsIdentifierScheme", "SPDX"));
                    attributes.push(("schemeURI", SPDX));
                }
            }
            xml.text("rights", &attributes, value);
        }
    });
    let (names, kind) = ("descriptions", "descriptionType");
    qualified(xml, names, "description", kind, &resource.descriptions);
    xml.group("fundingReferences", |xml| {
        for (funder, award) in &resource.funding {
            xml.group("fundingReference", |xml| {
                xml.text("funderName", &[], funder);
                xml.texts("awardNumber", *award);
            });
        }
    });
}

/// A creator or a contributor, with an attribute that needs no escape.
fn agent(xml: &mut Xml, element: &str, role: &str, name: &PersonName<'_>, orcid: Option<&str>) {
    xml.group(&format!("{element}{role}"), |xml| {
        let kind = name_type(name).map(|kind| ("nameType", kind));
        xml.text(&format!("{element}Name"), kind.as_slice(), name.whole);
        if let Some(family) = name.family {
            xml.text("givenName", &[], name.given);
            xml.text("familyName", &[], family);
        }
        if let Some(orcid) = orcid {
            let scheme = [("nameIdentifierScheme", "ORCID"), ("schemeURI", ORCID)];
            xml.text("nameIdentifier", &scheme, &format!("{ORCID}{orcid}"));
        }
    });
}
