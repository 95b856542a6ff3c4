//! CSL-JSON, which Zotero, pandoc, Crossref and DataCite write.

use serde_json::{Map, Value};

use super::{each, first, first_of, keep_all, text, texts};
use crate::metadata::fields::push_subjects;
use crate::metadata::person::{family_first, inverted};
use crate::metadata::{BibliographicRecord, Element, RecordKind};

pub(super) fn read(item: &Map<String, Value>) -> BibliographicRecord {
    let genre = first(item, "genre");
    let kind = RecordKind::from_csl(&first(item, "type"));
    let mut record = BibliographicRecord::of_kind(kind.map(|kind| kind.of_degree(&genre)));
    record.core.push(Element::Title, first(item, "title"));
    for author in each(item, "author") {
        let id = author.get("ORCID").map(text).unwrap_or_default();
        record.push_creator(&name(author), Some(&id));
    }
    for role in ["editor", "translator"] {
        for person in each(item, role) {
            record.push_contributor(role, &name(person));
        }
    }
    for role in [
        "collection-editor",
        "container-author",
        "contributor",
        "director",
        "illustrator",
        "interviewer",
    ] {
        for person in each(item, role) {
            record.core.push(Element::Contributor, name(person));
        }
    }
    let dated = ["issued", "published", "original-date", "submitted"];
    let date = dated
        .iter()
        .find_map(|member| item.get(*member).and_then(date));
    record.core.push(Element::Date, date.unwrap_or_default());
    record.push_container(&first(item, "container-title"));
    record.push_publisher(&first(item, "publisher"));
    let kept = [
        ("collection-title", "series"),
        ("publisher-place", "address"),
        ("edition", "edition"),
        ("volume", "volume"),
        ("issue", "number"),
        ("number", "number"),
        ("page", "pages"),
        ("chapter-number", "chapter"),
        ("version", "version"),
    ];
    keep_all(&mut record, item, &kept);
    record.core.push(Element::Type, genre);
    for scheme in ["DOI", "ISBN", "ISSN", "URL"] {
        for value in texts(item, scheme) {
            record.push_identifier(scheme, &value);
        }
    }
    record
        .core
        .push(Element::Description, first(item, "abstract"));
    record.push_note(&first(item, "note"));
    for member in ["keyword", "categories"] {
        for list in texts(item, member) {
            push_subjects(&mut record.core, &list, str::to_owned);
        }
    }
    record.core.push(Element::Language, first(item, "language"));
    for license in each(item, "license") {
        let url = license.get("URL").unwrap_or(license);
        record.core.push(Element::Rights, text(url));
    }
    for funder in each(item, "funder") {
        let award = funder.get("award").map(|awards| match awards {
            Value::Array(awards) => awards.first().map(text).unwrap_or_default(),
            award => text(award),
        });
        record.keep_funding(&text(funder), &award.unwrap_or_default());
    }
    record
}

/// A name: its parts, or a literal one.
fn name(person: &Value) -> String {
    let Some(parts) = person.as_object() else {
        return family_first(&text(person), str::to_owned);
    };
    let part = |name: &str| first(parts, name);
    let family = [part("non-dropping-particle"), part("family")].join(" ");
    let given = [part("given"), part("dropping-particle")].join(" ");
    match family.trim() {
        "" if given.trim().is_empty() => text(person),
        "" => given.trim().to_owned(),
        family => inverted(family, &given, &part("suffix")),
    }
}

/// A date, in parts or as a text.
fn date(date: &Value) -> Option<String> {
    let Some(members) = date.as_object() else {
        return Some(text(date)).filter(|text| !text.is_empty());
    };
    let number = |part: &Value| part.as_i64().or_else(|| text(part).parse().ok());
    let one = |parts: &Value| -> Option<String> {
        let parts: Vec<i64> = parts.as_array()?.iter().map_while(number).collect();
        let year = *parts
            .first()
            .filter(|year| (-9999..=9999).contains(*year))?;
        let mut day = if year < 0 {
            format!("{year:05}")
        } else {
            format!("{year:04}")
        };
        for part in parts
            .iter()
            .skip(1)
            .take(2)
            .take_while(|part| (1..=31).contains(*part))
        {
            day.push_str(&format!("-{part:02}"));
        }
        Some(day)
    };
    let parts = members.get("date-parts").and_then(Value::as_array);
    let mut days = parts.into_iter().flatten().filter_map(one);
    let Some(first) = days.next() else {
        let text = first_of(members, &["raw", "literal", "date-time"]);
        return Some(text).filter(|text| !text.is_empty());
    };
    if let Some(last) = days.next() {
        return Some(format!("{first}/{last}"));
    }
    let season = members
        .get("season")
        .map(text)
        .and_then(|season| season.parse::<u8>().ok());
    let is_circa = match members.get("circa") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(value) => text(value) != "0" && text(value) != "false",
    };
    Some(match season {
        Some(season) if first.len() == 4 && (1..=4).contains(&season) => {
            format!("{first}-{}", season + 20)
        }
        _ if is_circa => format!("{first}~"),
        _ => first,
    })
}
