//! schema.org in JSON-LD, as repositories put it into their pages. The terms alone are read, without a processor of
//! JSON-LD: contexts are not fetched.

use serde_json::{Map, Value};

use super::{each, first, inverted, part, text, texts};
use crate::formats::metadata::fields::push_subjects;
use crate::formats::metadata::person::family_first;
use crate::formats::metadata::{BibliographicRecord, Element, RecordKind};

pub(super) fn read(thing: &Map<String, Value>) -> BibliographicRecord {
    let kinds = texts(thing, "@type");
    let kind = kinds
        .iter()
        .find_map(|kind| RecordKind::from_schema_org(kind));
    let mut record = BibliographicRecord::of_kind(kind);
    let title = ["name", "headline"].map(|name| first(thing, name));
    record.core.push(
        Element::Title,
        title
            .into_iter()
            .find(|title| !title.is_empty())
            .unwrap_or_default(),
    );
    for title in texts(thing, "alternateName") {
        record.core.push(Element::Title, title);
    }
    for member in ["author", "creator"] {
        for agent in each(thing, member) {
            let id = ["@id", "identifier", "sameAs"].map(|name| part(agent, name));
            let id = id.iter().find(|id| id.contains("orcid.org/"));
            record.push_creator(&name(agent), id.map(String::as_str));
            let affiliations = agent.as_object().map(|it| texts(it, "affiliation"));
            for affiliation in affiliations.unwrap_or_default() {
                record.keep("affiliation", &affiliation);
            }
        }
    }
    for role in ["editor", "translator"] {
        for agent in each(thing, role) {
            record.push_contributor(role, &name(agent));
        }
    }
    for agent in each(thing, "contributor") {
        record.core.push(Element::Contributor, name(agent));
    }
    let dates = ["datePublished", "dateCreated"].map(|name| first(thing, name));
    let date = dates.into_iter().find(|date| !date.is_empty());
    record.core.push(Element::Date, date.unwrap_or_default());
    record.push_publisher(&first(thing, "publisher"));
    for (index, description) in texts(thing, "description").into_iter().enumerate() {
        if index == 0 {
            record.core.push(Element::Description, description);
        } else {
            record.push_note(&description);
        }
    }
    match thing.get("keywords") {
        Some(Value::String(list)) => push_subjects(&mut record.core, list, str::to_owned),
        _ => {
            for keyword in texts(thing, "keywords") {
                record.core.push(Element::Subject, keyword);
            }
        }
    }
    for language in each(thing, "inLanguage") {
        let code = part(language, "alternateName");
        record.core.push(
            Element::Language,
            if code.is_empty() {
                text(language)
            } else {
                code
            },
        );
    }
    for identifier in each(thing, "identifier")
        .into_iter()
        .chain(each(thing, "sameAs"))
    {
        let value = match &*part(identifier, "value") {
            "" => text(identifier),
            value => value.to_owned(),
        };
        let scheme = part(identifier, "propertyID").to_ascii_lowercase();
        let doi = value.split_once("doi.org/").map(|(_, doi)| doi.to_owned());
        match (doi, scheme.rsplit(['/', ':']).next()) {
            (Some(doi), _) => record.push_identifier("doi", &doi),
            (None, Some(scheme)) => record.push_identifier(scheme, &value),
            (None, None) => {}
        }
    }
    for member in ["isbn", "issn", "url"] {
        record.push_identifier(member, &first(thing, member));
    }
    for license in each(thing, "license") {
        let url = ["url", "@id"].map(|name| part(license, name));
        let url = url.into_iter().find(|url| !url.is_empty());
        record
            .core
            .push(Element::Rights, url.unwrap_or_else(|| text(license)));
    }
    for notice in texts(thing, "copyrightNotice") {
        record.core.push(Element::Rights, notice);
    }
    for format in texts(thing, "encodingFormat") {
        record.core.push(Element::Format, format);
    }
    for genre in texts(thing, "genre")
        .into_iter()
        .chain(texts(thing, "learningResourceType"))
    {
        record.core.push(Element::Type, genre);
    }
    for place in texts(thing, "spatialCoverage") {
        record.core.push(Element::Coverage, place);
    }
    // An issue is part of a volume, and that of a journal.
    let mut whole = each(thing, "isPartOf").into_iter().next();
    let mut container = String::new();
    for _ in 0..3 {
        let Some(part_of) = whole else {
            break;
        };
        record.keep("volume", &part(part_of, "volumeNumber"));
        record.keep("number", &part(part_of, "issueNumber"));
        record.push_identifier("issn", &part(part_of, "issn"));
        container = text(part_of);
        whole = part_of.get("isPartOf");
    }
    record.push_container(&container);
    for (member, field) in [
        ("volumeNumber", "volume"),
        ("issueNumber", "number"),
        ("pagination", "pages"),
        ("bookEdition", "edition"),
        ("version", "version"),
        ("softwareVersion", "version"),
    ] {
        record.keep(field, &first(thing, member));
    }
    let pages = [first(thing, "pageStart"), first(thing, "pageEnd")];
    record.keep("pages", pages.join("-").trim_matches('-'));
    for funder in texts(thing, "funder") {
        record.keep_funding(&funder, "");
    }
    for grant in each(thing, "funding") {
        let award = part(grant, "identifier");
        match grant.get("funder") {
            Some(funder) => record.keep_funding(&text(funder), &award),
            None => record.keep_funding(&text(grant), &award),
        }
    }
    record
}

fn name(agent: &Value) -> String {
    let (family, given) = (part(agent, "familyName"), part(agent, "givenName"));
    let name = text(agent);
    if !family.is_empty() && !name.contains(',') {
        inverted(&family, &given, "")
    } else if part(agent, "@type") == "Person" {
        family_first(&name, str::to_owned)
    } else {
        name
    }
}
