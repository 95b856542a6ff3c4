//! CITATION.cff, the Citation File Format 1.2, which is YAML.
//!
//! The parser of YAML gives events, of which a value is made here: anchors and tags mean nothing, so that a short text
//! makes no large value. It is a library of safe Rust; that of hayagriva's own files is a translation of C.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use super::{beginning_of_line, each, first, inverted, texts};
use crate::formats::metadata::{BibliographicRecord, Element, MetadataError, RecordKind};

/// The deepest nesting of lists and maps.
const MOST_OPEN: usize = 32;

pub(super) fn read(text: &str) -> Result<BibliographicRecord, MetadataError> {
    let bad = |line: usize| MetadataError::BadYaml {
        line: line.max(1),
        text: beginning_of_line(text, line),
    };
    // Texts are by others, and the library has many rules.
    let value = std::panic::catch_unwind(|| value(text)).unwrap_or(Err(1));
    match value.map_err(bad)? {
        Value::Object(file) if file.contains_key("title") || file.contains_key("authors") => {
            Ok(record(&file))
        }
        _ => Err(bad(1)),
    }
}

/// A list or a map that is not complete, and the key whose value is next.
enum Open {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

/// The first document. All scalars are texts. The error is a line.
fn value(text: &str) -> Result<Value, usize> {
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.marker().line())?;
        let line = span.start.line();
        let ended = match event {
            Event::Scalar(text, ..) => Value::from(&*text),
            Event::Alias(_) => Value::Null,
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                if open.len() > MOST_OPEN {
                    return Err(line);
                }
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(Map::new(), None));
                if open.len() > MOST_OPEN {
                    return Err(line);
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(values)) => Value::Array(values),
                Some(Open::Map(members, _)) => Value::Object(members),
                None => return Err(line),
            },
            Event::StreamEnd | Event::DocumentEnd => break,
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(ended),
            Some(Open::List(values)) => values.push(ended),
            Some(Open::Map(members, key)) => match key.take() {
                Some(key) => drop(members.insert(key, ended)),
                // A list as a key has no meaning here.
                None => *key = Some(ended.as_str().unwrap_or_default().to_owned()),
            },
        }
    }
    Err(1)
}

fn record(file: &Map<String, Value>) -> BibliographicRecord {
    let kind = match &*first(file, "type") {
        "dataset" => RecordKind::Dataset,
        _ => RecordKind::Software,
    };
    let mut record = BibliographicRecord::of_kind(Some(kind));
    record.core.push(Element::Title, first(file, "title"));
    for author in each(file, "authors")
        .into_iter()
        .filter_map(Value::as_object)
    {
        let part = |name: &str| first(author, name);
        let family = [part("name-particle"), part("family-names")].join(" ");
        let name = match (family.trim(), &*part("given-names")) {
            ("", "") => [part("name"), part("alias")]
                .into_iter()
                .find(|name| !name.is_empty()),
            (family, given) => Some(inverted(family, given, &part("name-suffix"))),
        };
        record.push_creator(&name.unwrap_or_default(), Some(&part("orcid")));
        record.keep("affiliation", &part("affiliation"));
    }
    let dates = ["date-released", "year"].map(|name| first(file, name));
    let date = dates.into_iter().find(|date| !date.is_empty());
    record.core.push(Element::Date, date.unwrap_or_default());
    record
        .core
        .push(Element::Description, first(file, "abstract"));
    for keyword in texts(file, "keywords") {
        record.core.push(Element::Subject, keyword);
    }
    record.keep("version", &first(file, "version"));
    record.push_identifier("doi", &first(file, "doi"));
    for identifier in each(file, "identifiers")
        .into_iter()
        .filter_map(Value::as_object)
    {
        record.push_identifier(&first(identifier, "type"), &first(identifier, "value"));
    }
    for member in [
        "url",
        "repository-code",
        "repository",
        "repository-artifact",
    ] {
        record.push_identifier("url", &first(file, member));
    }
    for member in ["license", "license-url"] {
        for license in texts(file, member) {
            record.core.push(Element::Rights, license);
        }
    }
    record
}
