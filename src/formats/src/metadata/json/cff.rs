//! CITATION.cff, the Citation File Format 1.2, which is YAML.
//!
//! The parser of YAML gives events, of which a value is made here: anchors and tags mean nothing, so that a short text
//! makes no large value. It is a library of safe Rust; that of hayagriva's own files is a translation of C.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use super::{beginning_of_line, each, first, first_of, keep_all, part, push_all, texts};
use crate::metadata::date::date;
use crate::metadata::person::inverted;
use crate::metadata::{BibliographicRecord, Element, MetadataError, RecordKind};

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
    // A citation of the same work says more of it than software has; another one is of an article about the software.
    let citation = file.get("preferred-citation").and_then(Value::as_object);
    let citation = citation.filter(|citation| {
        let same = |name: &str| first(citation, name) == first(file, name);
        same("title") && same("url") && file.contains_key("url")
    });
    let kind = match citation {
        Some(citation) => RecordKind::from_cff(&first(citation, "type")),
        None if first(file, "type") == "dataset" => Some(RecordKind::Dataset),
        None => Some(RecordKind::Software),
    };
    let work = citation.unwrap_or(file);
    let mut record = BibliographicRecord::of_kind(kind);
    record.core.push(Element::Title, first(work, "title"));
    for author in each(work, "authors") {
        match &*name(author) {
            "unknown" => {}
            "et al." => record.keep("others", "author"),
            name => record.push_creator(name, Some(&part(author, "orcid"))),
        }
        record.keep("affiliation", &part(author, "affiliation"));
    }
    for (member, role) in [("editors", "editor"), ("translators", "translator")] {
        for person in each(work, member) {
            record.push_contributor(role, &name(person));
        }
    }
    let date = match first_of(work, &["date-released", "date-published"]) {
        none if none.is_empty() => date(&first(work, "year"), &first(work, "month")),
        day => day,
    };
    record.core.push(Element::Date, date);
    let said = [
        ("abstract", Element::Description),
        ("keywords", Element::Subject),
        ("languages", Element::Language),
    ];
    push_all(&mut record, work, &said);
    record.push_note(&first(work, "notes"));
    for member in ["journal", "collection-title"] {
        record.push_container(&first(work, member));
    }
    record.push_publisher(&first(work, "publisher"));
    let kept = [
        ("version", "version"),
        ("volume", "volume"),
        ("edition", "edition"),
        ("issue", "number"),
        ("number", "number"),
        ("location", "address"),
    ];
    keep_all(&mut record, work, &kept);
    record.keep_pages(&first(work, "start"), &first(work, "end"));
    for scheme in ["doi", "isbn", "issn"] {
        record.push_identifier(scheme, &first(work, scheme));
    }
    for identifier in each(work, "identifiers") {
        record.push_identifier(&part(identifier, "type"), &part(identifier, "value"));
    }
    for member in [
        "url",
        "repository-code",
        "repository",
        "repository-artifact",
    ] {
        record.push_identifier("url", &first(work, member));
    }
    for member in ["license", "license-url"] {
        for license in texts(work, member) {
            record.push_rights(&license);
        }
    }
    record
}

/// The name of a person or of an organization.
fn name(agent: &Value) -> String {
    let family = [part(agent, "name-particle"), part(agent, "family-names")].join(" ");
    let whole = inverted(
        &family,
        &part(agent, "given-names"),
        &part(agent, "name-suffix"),
    );
    let names = [whole, part(agent, "name"), part(agent, "alias")];
    names
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}
