//! DataCite 4: its JSON, and its XML, which is brought into the same members.

use serde_json::{Map, Value, json};

use super::{each, first, first_of, keep_affiliations, keep_all, part, push_all, text};
use crate::metadata::person::inverted;
use crate::metadata::xml::Element as Xml;
use crate::metadata::{BibliographicRecord, Element, License, MetadataError, RecordKind};

pub(super) fn read(resource: &Map<String, Value>) -> BibliographicRecord {
    let none = Map::new();
    let object = |name: &str| {
        resource
            .get(name)
            .and_then(Value::as_object)
            .unwrap_or(&none)
    };
    let types = object("types");
    let kind_of = RecordKind::from_datacite(&first(types, "resourceTypeGeneral"));
    let specific = first(types, "resourceType");
    // The general type has no word for a master's thesis or a map.
    let kind = RecordKind::from_word(&specific)
        .filter(|kind| *kind != RecordKind::Other)
        .or(kind_of);
    let mut record = BibliographicRecord::of_kind(kind);
    if kind.is_none_or(|kind| ![kind.bibtex(), kind.datacite()].contains(&&*specific)) {
        record.core.push(Element::Type, known(specific));
    }
    for title in each(resource, "titles") {
        record
            .core
            .push(Element::Title, known(part(title, "title")));
    }
    for creator in each(resource, "creators") {
        if part(creator, "name") == ":etal" {
            record.keep("others", "author");
        }
        record.push_creator(&name(creator), orcid(creator).as_deref());
        keep_affiliations(&mut record, creator);
    }
    for contributor in each(resource, "contributors") {
        match &*part(contributor, "contributorType") {
            "Editor" => record.push_contributor("editor", &name(contributor)),
            "Translator" => record.push_contributor("translator", &name(contributor)),
            _ => record.core.push(Element::Contributor, name(contributor)),
        }
    }
    record.push_publisher(&known(first(resource, "publisher")));
    let dates = each(resource, "dates");
    let date_of = |kind: &str| {
        let date = dates.iter().find(|date| part(date, "dateType") == kind)?;
        Some(part(date, "date")).filter(|date| !date.is_empty())
    };
    let date = date_of("Issued").unwrap_or_else(|| first(resource, "publicationYear"));
    record.core.push(Element::Date, date);
    for subject in each(resource, "subjects") {
        let subject = match subject {
            Value::Object(members) => first(members, "subject"),
            other => text(other),
        };
        record.core.push(Element::Subject, subject);
    }
    record
        .core
        .push(Element::Language, first(resource, "language"));
    let doi = first_of(resource, &["doi", "id"]);
    if doi.starts_with("10.") {
        record.push_identifier("doi", &doi);
    }
    record.push_identifier("url", &first(resource, "url"));
    for list in ["identifiers", "alternateIdentifiers"] {
        for identifier in each(resource, list) {
            let scheme = ["identifierType", "alternateIdentifierType"]
                .map(|name| part(identifier, name))
                .concat();
            let value = ["identifier", "alternateIdentifier"]
                .map(|name| part(identifier, name))
                .concat();
            record.push_identifier(&scheme, &known(value));
        }
    }
    for related in each(resource, "relatedIdentifiers") {
        let value = part(related, "relatedIdentifier");
        let is_doi = part(related, "relatedIdentifierType") == "DOI" && value.starts_with("10.");
        let value = if is_doi {
            format!("https://doi.org/{value}")
        } else {
            value
        };
        record.core.push(Element::Relation, value);
    }
    let container = object("container");
    record.push_container(&first(container, "title"));
    let kept = [
        ("volume", "volume"),
        ("issue", "number"),
        ("edition", "edition"),
    ];
    keep_all(&mut record, container, &kept);
    record.keep_pages(
        &first(container, "firstPage"),
        &first(container, "lastPage"),
    );
    let said = [("formats", Element::Format), ("sizes", Element::Format)];
    push_all(&mut record, resource, &said);
    record.keep("version", &first(resource, "version"));
    for rights in each(resource, "rightsList") {
        let (name, url) = (part(rights, "rights"), part(rights, "rightsUri"));
        let id = part(rights, "rightsIdentifier");
        let is_named = License::read(&name).is_some();
        record.core.push(Element::Rights, name);
        if !is_named {
            let id = if url.is_empty() { id } else { url };
            record.core.push(Element::Rights, id);
        }
    }
    let descriptions = each(resource, "descriptions");
    let is_abstract = |it: &&Value| part(it, "descriptionType") == "Abstract";
    for description in descriptions.iter().copied().filter(is_abstract) {
        record.core.push(
            Element::Description,
            known(part(description, "description")),
        );
    }
    for description in descriptions.iter().copied().filter(|it| !is_abstract(it)) {
        record.push_note(&known(part(description, "description")));
    }
    for place in each(resource, "geoLocations") {
        record
            .core
            .push(Element::Coverage, part(place, "geoLocationPlace"));
    }
    for reference in each(resource, "fundingReferences") {
        let award = match &*part(reference, "awardNumber") {
            "" => part(reference, "awardTitle"),
            number => number.to_owned(),
        };
        record.keep_funding(&part(reference, "funderName"), &award);
    }
    record
}

/// A value, unless it is one of the words for a value that is not known: `:unav`, `(:tba)`.
fn known(value: String) -> String {
    let word = value.trim_matches(['(', ')']);
    let unknown = [
        ":unac", ":unal", ":unap", ":unas", ":unav", ":unkn", ":none", ":null", ":tba", ":etal",
    ];
    if unknown.contains(&word) {
        String::new()
    } else {
        value
    }
}

fn name(agent: &Value) -> String {
    let (name, family, given) = (
        part(agent, "name"),
        part(agent, "familyName"),
        part(agent, "givenName"),
    );
    if name.contains(',') || family.is_empty() {
        known(name)
    } else {
        inverted(&family, &given, "")
    }
}

fn orcid(agent: &Value) -> Option<String> {
    let identifiers = each(agent.as_object()?, "nameIdentifiers");
    let is_orcid = |it: &&&Value| part(it, "nameIdentifierScheme").eq_ignore_ascii_case("orcid");
    let found = identifiers.iter().find(is_orcid);
    found.map(|it| part(it, "nameIdentifier"))
}

pub(super) fn from_xml(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
    let document = Xml::document(bytes)?;
    let resource = document
        .find("resource")
        .ok_or(MetadataError::NoXmlRecord)?;
    let json = in_json(resource);
    json.as_object().map(read).ok_or(MetadataError::NoXmlRecord)
}

/// The members of a resource in JSON.
fn in_json(resource: &Xml) -> Value {
    let agents = |list: &str, name: &str| -> Vec<Value> {
        let agents = resource.members(list);
        agents
            .map(|agent| {
                let ids = agent.all("nameIdentifier").map(|id| {
                    json!({ "nameIdentifier": id.text(), "nameIdentifierScheme": id.attribute("nameIdentifierScheme") })
                });
                let affiliations = agent.all("affiliation").map(Xml::text);
                json!({
                    "name": agent.text_of(name),
                    "familyName": agent.text_of("familyName"),
                    "givenName": agent.text_of("givenName"),
                    "contributorType": agent.attribute("contributorType"),
                    "nameIdentifiers": ids.collect::<Vec<_>>(),
                    "affiliation": affiliations.collect::<Vec<_>>(),
                })
            })
            .collect()
    };
    // A list of elements with a text, and attributes that have the names of members.
    let list = |list: &str, name: &str, attributes: &[(&str, &str)]| -> Vec<Value> {
        let members = resource.members(list).map(|element| {
            let mut members = Map::new();
            members.insert(name.to_owned(), Value::from(element.text()));
            for (attribute, member) in attributes {
                members.insert(
                    (*member).to_owned(),
                    Value::from(element.attribute(attribute)),
                );
            }
            Value::Object(members)
        });
        members.collect()
    };
    let plain = |list: &str| -> Vec<Value> {
        resource
            .members(list)
            .map(|element| Value::from(element.text()))
            .collect()
    };
    let kind = resource.all("resourceType").next();
    let general = kind.map_or("", |kind| kind.attribute("resourceTypeGeneral"));
    let identifier = resource.all("identifier").next();
    let scheme = identifier.map_or("", |it| it.attribute("identifierType"));
    let places = resource
        .members("geoLocations")
        .map(|place| json!({ "geoLocationPlace": place.text_of("geoLocationPlace") }));
    let funding = resource.members("fundingReferences").map(|reference| {
        json!({
            "funderName": reference.text_of("funderName"),
            "awardNumber": reference.text_of("awardNumber"),
            "awardTitle": reference.text_of("awardTitle"),
        })
    });
    json!({
        "types": { "resourceType": resource.text_of("resourceType"), "resourceTypeGeneral": general },
        "identifiers": [{ "identifier": resource.text_of("identifier"), "identifierType": scheme }],
        "titles": list("titles", "title", &[]),
        "creators": agents("creators", "creatorName"),
        "contributors": agents("contributors", "contributorName"),
        "publisher": resource.text_of("publisher"),
        "publicationYear": resource.text_of("publicationYear"),
        "dates": list("dates", "date", &[("dateType", "dateType")]),
        "subjects": plain("subjects"),
        "language": resource.text_of("language"),
        "alternateIdentifiers": list("alternateIdentifiers", "alternateIdentifier",
            &[("alternateIdentifierType", "alternateIdentifierType")]),
        "relatedIdentifiers": list("relatedIdentifiers", "relatedIdentifier",
            &[("relatedIdentifierType", "relatedIdentifierType")]),
        "formats": plain("formats"),
        "sizes": plain("sizes"),
        "version": resource.text_of("version"),
        "rightsList": list("rightsList", "rights",
            &[("rightsURI", "rightsUri"), ("rightsIdentifier", "rightsIdentifier")]),
        "descriptions": list("descriptions", "description", &[("descriptionType", "descriptionType")]),
        "geoLocations": places.collect::<Vec<_>>(),
        "fundingReferences": funding.collect::<Vec<_>>(),
    })
}
