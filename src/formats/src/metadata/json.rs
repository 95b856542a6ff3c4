//! Records in JSON: CSL-JSON, DataCite and schema.org in JSON-LD, told apart by their members.
//!
//! CSL-JSON has no type of a library that takes what programs write: that of `citationberg`, which cites, refuses an
//! item for one member that it does not know. So members are read one by one, and others are passed over.

mod cff;
mod csl;
mod datacite;
mod jsonld;

use serde_json::{Map, Value};

use super::decode::{utf8, without_mark};
use super::error::beginning;
use super::{BibliographicRecord, Element, MetadataError, check_size};

impl BibliographicRecord {
    /// Parses the first record of a JSON document: CSL-JSON, DataCite, or schema.org in JSON-LD.
    pub fn from_json(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        check_size(bytes)?;
        let bytes = without_mark(bytes);
        let text = utf8(bytes)?;
        let value: Value = serde_json::from_str(text).map_err(|error| MetadataError::BadJson {
            line: error.line().max(1),
            text: beginning_of_line(text, error.line()),
        })?;
        first_record(&value).ok_or(MetadataError::NoJsonRecord)
    }

    /// Parses a CITATION.cff file.
    pub fn from_cff(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        check_size(bytes)?;
        cff::read(utf8(without_mark(bytes))?)
    }

    /// Parses the XML of DataCite 4.
    pub fn from_datacite_xml(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        datacite::from_xml(bytes)
    }
}

/// The beginning of a line of a text, counted from 1.
fn beginning_of_line(text: &str, line: usize) -> String {
    beginning(text.lines().nth(line.saturating_sub(1)).unwrap_or_default())
}

/// The most lists and answers of servers in which a record is.
const MOST_WRAPPED: usize = 4;

fn first_record(value: &Value) -> Option<BibliographicRecord> {
    fn unwrap(value: &Value, left: usize) -> Option<BibliographicRecord> {
        if let Value::Array(values) = value {
            let left = left.checked_sub(1)?;
            return values.iter().find_map(|value| unwrap(value, left));
        }
        let members = value.as_object()?;
        let has = |name: &str| members.contains_key(name);
        if has("@type") && (has("name") || has("headline")) {
            return Some(jsonld::read(members));
        }
        if has("titles") || (has("types") && has("creators")) {
            return Some(datacite::read(members));
        }
        let is_csl = has("title") && has("type") || has("issued") || has("DOI");
        if is_csl && !has("data") {
            return Some(csl::read(members));
        }
        // A graph of JSON-LD, an answer of DataCite's service, an export of Zotero.
        let left = left.checked_sub(1)?;
        let inner = ["@graph", "data", "attributes", "items"];
        inner
            .iter()
            .find_map(|name| unwrap(members.get(*name)?, left))
    }
    unwrap(value, MOST_WRAPPED)
}

/// The values of a member that is a list or a single value.
fn each<'a>(members: &'a Map<String, Value>, name: &str) -> Vec<&'a Value> {
    match members.get(name) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().collect(),
        Some(value) => vec![value],
    }
}

/// The text of a value: of a string or a number, or of an object's member with its name.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Object(members) => {
            let names = ["@value", "name", "literal", "title", "@id", "url"];
            let found = names.iter().find_map(|name| match members.get(*name) {
                Some(Value::String(text)) => Some(text.trim().to_owned()),
                _ => None,
            });
            found.unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// The texts of a member.
fn texts(members: &Map<String, Value>, name: &str) -> Vec<String> {
    let texts = each(members, name).into_iter().map(text);
    texts.filter(|text| !text.is_empty()).collect()
}

/// The first text of a member; empty if it has none.
fn first(members: &Map<String, Value>, name: &str) -> String {
    texts(members, name).into_iter().next().unwrap_or_default()
}

/// The first text of the first of these members that has one; empty if there is none.
fn first_of(members: &Map<String, Value>, names: &[&str]) -> String {
    let mut texts = names.iter().map(|name| first(members, name));
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

/// Adds the texts of members as values of elements.
fn push_all(
    record: &mut BibliographicRecord,
    members: &Map<String, Value>,
    names: &[(&str, Element)],
) {
    for (name, element) in names {
        for text in texts(members, name) {
            record.core.push(*element, text);
        }
    }
}

/// Keeps the texts of members under the names of fields.
fn keep_all(
    record: &mut BibliographicRecord,
    members: &Map<String, Value>,
    names: &[(&str, &str)],
) {
    for (name, field) in names {
        record.keep(field, &first(members, name));
    }
}

/// Keeps the affiliations of an agent that is an object.
fn keep_affiliations(record: &mut BibliographicRecord, agent: &Value) {
    let members = agent.as_object();
    for affiliation in members.into_iter().flat_map(|it| texts(it, "affiliation")) {
        record.keep("affiliation", &affiliation);
    }
}

/// A member of an object as a text; empty of another value.
fn part(value: &Value, name: &str) -> String {
    value
        .as_object()
        .map(|members| first(members, name))
        .unwrap_or_default()
}
