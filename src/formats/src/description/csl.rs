//! CSL-JSON, which citation programs read; its schema is csl-data.json of the Citation Style Language 1.0.2.

use serde_json::{Map, Value, json};

use super::{Description, PersonName};
use crate::metadata::Element;

pub(super) fn write(description: &Description) -> String {
    format!("{:#}\n", Value::Array(vec![item(description)]))
}

fn item(description: &Description) -> Value {
    let record = &description.record;
    let core = &record.core;
    let mut item = Map::new();
    let mut add = |name: &str, value: Value| super::add(&mut item, name, value);
    let text = |value: Option<&str>| json!(value);
    let names =
        |names: &mut dyn Iterator<Item = PersonName<'_>>| Value::Array(names.map(person).collect());
    add("id", json!(description.ibi));
    add("type", json!(description.kind().csl()));
    add("title", json!(description.title()));
    add("author", names(&mut description.creators()));
    add("editor", names(&mut description.named("editor")));
    add("translator", names(&mut description.named("translator")));
    add("issued", issued(description));
    add("container-title", text(description.container()));
    add("collection-title", text(record.field("series")));
    add("publisher", text(description.publisher()));
    add("publisher-place", text(record.field("address")));
    add("edition", text(record.field("edition")));
    add("volume", text(record.field("volume")));
    let is_article = description.kind().csl() == "article-journal";
    let number = if is_article { "issue" } else { "number" };
    add(number, text(record.field("number")));
    add("page", text(record.field("pages")));
    add("genre", text(genre(description)));
    add("DOI", text(description.doi()));
    add("ISBN", text(description.number("isbn", "urn:isbn:")));
    add("ISSN", text(description.number("issn", "urn:issn:")));
    add("URL", json!(description.url));
    add("abstract", text(description.abstract_text()));
    add("version", text(record.field("version")));
    let subjects: Vec<&str> = core.values(Element::Subject).collect();
    add("keyword", json!(subjects.join(", ")));
    add("language", text(core.first(Element::Language)));
    add("note", json!(description.notes().join(". ")));
    Value::Object(item)
}

/// The kind of thesis or report, in the words of the record.
fn genre(description: &Description) -> Option<&str> {
    let dcmi = description.kind().dcmi();
    let mut types = description.record.core.values(Element::Type);
    types.find(|value| *value != dcmi && *value != "Text")
}

fn person(name: PersonName<'_>) -> Value {
    match name.family {
        Some(family) => {
            let mut parts = json!({ "family": family, "given": name.given });
            if let Some(suffix) = name.suffix {
                parts["suffix"] = json!(suffix);
            }
            parts
        }
        None => json!({ "literal": name.whole }),
    }
}

fn issued(description: &Description) -> Value {
    let (date, text) = match (description.date(), description.first(Element::Date)) {
        (Some(date), Some(text)) => (date, text),
        (_, Some(text)) => return json!({ "literal": text }),
        (_, None) => return Value::Null,
    };
    let mut parts = vec![json!(date.parts())];
    parts.extend(
        date.end()
            .filter(|end| !end.is_empty())
            .map(|end| json!(end)),
    );
    let mut issued = json!({ "date-parts": parts });
    if let Some(season) = date.season() {
        issued["season"] = json!(season - 20);
    }
    if date.is_approximate() {
        issued["circa"] = json!(true);
    }
    if date.is_ambiguous() {
        issued["raw"] = json!(text);
    }
    issued
}
