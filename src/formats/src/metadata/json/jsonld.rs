//! schema.org in JSON-LD, as repositories put it into their pages. The terms alone are read, without a processor of
//! JSON-LD: contexts are not fetched.

use serde_json::{Map, Value};

use super::{each, first, first_of, keep_affiliations, keep_all, part, push_all, text, texts};
use crate::metadata::fields::push_subjects;
use crate::metadata::person::{family_first, inverted};
use crate::metadata::{BibliographicRecord, Element, RecordKind};

pub(super) fn read(thing: &Map<String, Value>) -> BibliographicRecord {
    let kinds = texts(thing, "@type");
    let kind = kinds
        .iter()
        .find_map(|kind| RecordKind::from_schema_org(kind));
    let mut record = BibliographicRecord::of_kind(kind);
    let title = first_of(thing, &["name", "headline"]);
    record.core.push(Element::Title, title);
    for member in ["author", "creator"] {
        for agent in each(thing, member) {
            let id = ["@id", "identifier", "sameAs"].map(|name| part(agent, name));
            let id = id.iter().find(|id| id.contains("orcid.org/"));
            record.push_creator(&name(agent), id.map(String::as_str));
            keep_affiliations(&mut record, agent);
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
    let date = first_of(thing, &["datePublished", "dateCreated"]);
    record.core.push(Element::Date, date);
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
        let code = match part(language, "alternateName") {
            none if none.is_empty() => text(language),
            code => code,
        };
        record.core.push(Element::Language, code);
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
    let said = [
        ("alternateName", Element::Title),
        ("copyrightNotice", Element::Rights),
        ("encodingFormat", Element::Format),
        ("genre", Element::Type),
        ("learningResourceType", Element::Type),
        ("spatialCoverage", Element::Coverage),
    ];
    push_all(&mut record, thing, &said);
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
    let kept = [
        ("volumeNumber", "volume"),
        ("issueNumber", "number"),
        ("pagination", "pages"),
        ("bookEdition", "edition"),
        ("version", "version"),
        ("softwareVersion", "version"),
    ];
    keep_all(&mut record, thing, &kept);
    record.keep_pages(&first(thing, "pageStart"), &first(thing, "pageEnd"));
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
