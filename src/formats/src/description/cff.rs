//! CITATION.cff, the Citation File Format 1.2.0, which is YAML.
//!
//! The file describes software or data. A work of another kind is its preferred citation, in which journal and pages
//! have their place.

use serde_json::{Map, Value, json};

use super::datacite::ORCID;
use super::{Description, PersonName};
use crate::metadata::{Element, License, RecordKind};

/// The author of a work that names none, since a file must have one.
const NOT_NAMED: &str = "unknown";
/// The author that stands for those who are not named.
const OTHERS: &str = "et al.";

pub(super) fn write(description: &Description) -> String {
    block(0, &Value::Object(file(description)))
}

/// A value in block style. A text in quotes, with the escapes of JSON, is the same text in YAML.
fn block(depth: usize, value: &Value) -> String {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let inner = block(depth + 1, value);
                if value.is_object() || value.is_array() {
                    format!("{indent}{name}:\n{inner}")
                } else {
                    format!("{indent}{name}: {}", inner.trim_start())
                }
            };
            members.iter().map(member).collect()
        }
        Value::Array(values) => {
            let inner = values.iter().map(|value| block(depth + 1, value));
            inner
                .map(|inner| format!("{indent}- {}", inner.trim_start()))
                .collect()
        }
        value => format!("{indent}{value}\n"),
    }
}

fn file(description: &Description) -> Map<String, Value> {
    let kind = description.kind();
    let mut file = Map::new();
    let mut add = |name: &str, value: Value| super::add(&mut file, name, value);
    add("cff-version", json!("1.2.0"));
    add(
        "message",
        json!("Please cite this work with these metadata."),
    );
    match kind {
        RecordKind::Software | RecordKind::Dataset => {
            add("type", json!(kind.bibtex()));
            file.append(&mut work(description, "date-released"));
        }
        _ => {
            let mut citation = Map::from_iter([("type".to_owned(), json!(kind.cff()))]);
            citation.append(&mut work(description, "date-published"));
            citation.append(&mut place(description));
            for name in ["title", "authors", "url"] {
                add(name, citation.get(name).cloned().unwrap_or_default());
            }
            add("preferred-citation", Value::Object(citation));
        }
    }
    file
}

/// The members that a file and a citation in it have alike.
fn work(description: &Description, date_name: &str) -> Map<String, Value> {
    let record = &description.record;
    let core = &record.core;
    let mut work = Map::new();
    let mut add = |name: &str, value: Value| super::add(&mut work, name, value);
    let orcids = record.orcids();
    let mut authors: Vec<Value> = description
        .creators()
        .map(|name| person(name, orcids.get(name.whole)))
        .collect();
    if authors.is_empty() {
        authors.push(json!({ "name": NOT_NAMED }));
    } else if description.has_others() {
        authors.push(json!({ "name": OTHERS }));
    }
    add("title", json!(description.title()));
    add("authors", json!(authors));
    let date = description.date().filter(|date| {
        let is_day = date.parts().len() == 3 && (0..=9999).contains(&date.year());
        date.is_exact() && date.end().is_none() && is_day
    });
    add(date_name, json!(date.map(|date| date.iso())));
    add("abstract", json!(description.abstract_text()));
    add(
        "keywords",
        json!(core.values(Element::Subject).collect::<Vec<_>>()),
    );
    add("version", json!(record.field("version")));
    add("doi", json!(description.doi().filter(|doi| is_plain(doi))));
    add("url", json!(description.url));
    let ibi = json!([{ "type": "other", "value": description.ibi, "description": "IBI" }]);
    add("identifiers", ibi);
    let licence = core.values(Element::Rights).find_map(License::read);
    let (spdx, url) = licence.map(|it| (it.spdx, it.url)).unzip();
    let spdx = spdx.flatten();
    add("license-url", json!(url.filter(|_| spdx.is_none())));
    add("license", json!(spdx));
    work
}

/// The members of a citation alone: where and when the work appeared.
fn place(description: &Description) -> Map<String, Value> {
    let record = &description.record;
    let mut place = Map::new();
    let mut add = |name: &str, value: Value| super::add(&mut place, name, value);
    match description.date() {
        Some(date) if date.is_exact() && date.end().is_none() => {
            add("year", json!(date.year()));
            add("month", json!(date.parts().get(1)));
        }
        _ => add("year", json!(description.first(Element::Date))),
    }
    let named = |role| {
        description
            .named(role)
            .map(|name| person(name, None))
            .collect()
    };
    add("editors", named("editor"));
    add("translators", named("translator"));
    let is_article = description.kind() == RecordKind::Article;
    let container = if is_article {
        "journal"
    } else {
        "collection-title"
    };
    add(container, json!(description.container()));
    for name in ["volume", "edition"] {
        add(name, json!(record.field(name)));
    }
    let issue = if is_article { "issue" } else { "number" };
    add(issue, json!(record.field("number")));
    let (first, last) = description.pages();
    add("start", json!(first));
    add("end", json!(last));
    let named = |name: &str| json!({ "name": name });
    add(
        "publisher",
        description.publisher().map_or(Value::Null, named),
    );
    add(
        "location",
        record.field("address").map_or(Value::Null, named),
    );
    for (scheme, sizes) in [("isbn", &[10, 13][..]), ("issn", &[8])] {
        let found = description.number(scheme, &format!("urn:{scheme}:"));
        add(scheme, json!(found.and_then(|text| number(text, sizes))));
    }
    let is_code = |code: &&str| {
        (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let languages = record.core.values(Element::Language).filter(is_code);
    add("languages", json!(languages.collect::<Vec<_>>()));
    add("notes", json!(description.notes().join(". ")));
    place
}

fn person(name: PersonName<'_>, orcid: Option<&String>) -> Value {
    let Some(family) = name.family else {
        return json!({ "name": name.whole });
    };
    let mut person = json!({ "family-names": family, "given-names": name.given });
    if let Some(suffix) = name.suffix {
        person["name-suffix"] = json!(suffix);
    }
    if let Some(orcid) = orcid {
        person["orcid"] = json!(format!("{ORCID}{orcid}"));
    }
    person
}

/// Whether a DOI has no other signs than the format allows.
fn is_plain(doi: &str) -> bool {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "./:_;-()[]\\".contains(sign);
    doi.chars().all(is_plain)
}

/// An ISBN or an ISSN as the format has them, if it is one with as many digits.
fn number(text: &str, sizes: &[usize]) -> Option<String> {
    let number = text.to_ascii_uppercase();
    let digits = number.strip_suffix('X').unwrap_or(&number);
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    let count = number.bytes().filter(|byte| *byte != b'-').count();
    let is_issn = number.len() == 9 && number.find('-') == Some(4);
    let is_isbn = number.len() <= 17 && count >= 10;
    (is_plain && sizes.contains(&count) && (is_issn || is_isbn)).then_some(number)
}
