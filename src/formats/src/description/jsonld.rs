//! JSON-LD with the vocabulary of schema.org, which search engines and data catalogues read.
//!
//! `<`, `>` and `&` are written as escapes of JSON, so that a document can stand in a web page.

use serde_json::{Map, Value, json};

use super::{AccessRight, DescribedRelation, Description, PersonName, licence_url};
use crate::metadata::{Element, License, RecordKind};

pub(super) fn write(description: &Description) -> String {
    let text = format!("{:#}\n", thing(description));
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(sign)));
            }
            sign => escaped.push(sign),
        }
    }
    escaped
}

fn thing(description: &Description) -> Value {
    let record = &description.record;
    let core = &record.core;
    let mut thing = Map::new();
    let mut add = |name: &str, values: Vec<Value>| match values.len() {
        0 => {}
        1 => {
            thing.extend(values.into_iter().map(|value| (name.to_owned(), value)));
        }
        _ => {
            thing.insert(name.to_owned(), Value::Array(values));
        }
    };
    let texts = |element: Element| {
        core.values(element)
            .map(Value::from)
            .collect::<Vec<Value>>()
    };
    let one = |value: Option<&str>| value.map(Value::from).into_iter().collect::<Vec<Value>>();
    add("@context", vec![json!("https://schema.org")]);
    add("@type", vec![json!(description.kind().schema_org())]);
    add("@id", vec![json!(description.url)]);
    add("name", vec![json!(description.title())]);
    let others = core.values(Element::Title).skip(1);
    add("alternateName", others.map(Value::from).collect());
    let orcids = record.orcids();
    let creator = |name: PersonName<'_>| {
        let mut agent = agent(name);
        if let Some(id) = orcids.get(name.whole) {
            agent["@id"] = json!(format!("https://orcid.org/{id}"));
        }
        agent
    };
    add("author", description.creators().map(creator).collect());
    add("editor", description.named("editor").map(agent).collect());
    add(
        "translator",
        description.named("translator").map(agent).collect(),
    );
    add("datePublished", one(description.iso_date().as_deref()));
    let publisher = description.publisher();
    let organization = |name| json!({ "@type": "Organization", "name": name });
    add(
        "publisher",
        publisher.map(organization).into_iter().collect(),
    );
    add("description", texts(Element::Description));
    add("keywords", texts(Element::Subject));
    add("inLanguage", texts(Element::Language));
    add("identifier", identifiers(description));
    add("url", vec![json!(description.url)]);
    let doi = description
        .doi()
        .map(|doi| json!(format!("https://doi.org/{doi}")));
    add("sameAs", doi.into_iter().collect());
    let (licences, notices): (Vec<&str>, Vec<&str>) = core
        .values(Element::Rights)
        .partition(|text| licence(text).is_some());
    let licences = licences.into_iter().filter_map(licence);
    add("license", licences.map(Value::from).collect());
    add(
        "copyrightNotice",
        notices.into_iter().map(Value::from).collect(),
    );
    let access = description
        .access
        .map(|right| match &description.available {
            Some(day) if right == AccessRight::Embargoed => format!("embargoed access until {day}"),
            _ => right.label().to_owned(),
        });
    add("conditionsOfAccess", one(access.as_deref()));
    add("version", one(record.field("version")));
    add(
        "funding",
        record
            .funding()
            .map(|(funder, award)| grant(funder, award))
            .collect(),
    );
    for (name, field) in [("volumeNumber", "volume"), ("issueNumber", "number")] {
        add(name, one(record.field(field)));
    }
    add("encodingFormat", texts(Element::Format));
    add("pagination", one(record.field("pages")));
    add(
        "bookEdition",
        one(record
            .field("edition")
            .filter(|_| description.kind() == RecordKind::Book)),
    );
    let container = |name: &str| json!({ "@type": "CreativeWork", "name": name });
    add(
        "isPartOf",
        description.container().map(container).into_iter().collect(),
    );
    let related = |wanted: DescribedRelation| {
        let found = description
            .related
            .iter()
            .filter(move |(relation, _)| *relation == wanted);
        found
            .map(|(_, url)| json!({ "@id": url }))
            .collect::<Vec<Value>>()
    };
    add("workTranslation", related(DescribedRelation::Translation));
    add("isBasedOn", related(DescribedRelation::EarlierEdition));
    Value::Object(thing)
}

/// The URL of a licence, or what a text links as one.
fn licence(text: &str) -> Option<String> {
    let is_said = |url: &String| url == text || License::read(text).is_some();
    licence_url(text).filter(is_said)
}

fn grant(funder: &str, award: Option<&str>) -> Value {
    let mut grant =
        json!({ "@type": "Grant", "funder": { "@type": "Organization", "name": funder } });
    if let Some(award) = award {
        grant["identifier"] = json!(award);
    }
    grant
}

fn identifiers(description: &Description) -> Vec<Value> {
    let of = |scheme: &str, value: &str| json!({ "@type": "PropertyValue", "propertyID": scheme, "value": value });
    let mut identifiers = vec![of("IBI", &description.ibi)];
    identifiers.extend(description.doi().map(|doi| of("DOI", doi)));
    for (field, scheme, name) in [("isbn", "urn:isbn:", "ISBN"), ("issn", "urn:issn:", "ISSN")] {
        identifiers.extend(
            description
                .number(field, scheme)
                .map(|value| of(name, value)),
        );
    }
    identifiers
}

fn agent(name: PersonName<'_>) -> Value {
    match name.family {
        Some(family) => json!({
            "@type": "Person",
            "name": name.whole,
            "familyName": family,
            "givenName": name.given,
        }),
        None => json!({ "@type": "Organization", "name": name.whole }),
    }
}
