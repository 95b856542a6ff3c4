//! RIS, which citation programs read: lines of a tag of two characters, two spaces, a hyphen, a space and a value.

use super::{Description, PersonName};
use crate::metadata::{Element, RecordKind};

/// The reference type, the tag `TY`.
fn reference_type(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Article => "JOUR",
        RecordKind::Book | RecordKind::Proceedings => "BOOK",
        RecordKind::Chapter => "CHAP",
        RecordKind::Paper => "CPAPER",
        RecordKind::Thesis | RecordKind::MastersThesis => "THES",
        RecordKind::Report | RecordKind::Manual => "RPRT",
        RecordKind::Unpublished => "UNPB",
        RecordKind::Dataset => "DATA",
        RecordKind::Software => "COMP",
        RecordKind::Image => "FIGURE",
        RecordKind::Map => "MAP",
        RecordKind::Sound => "SOUND",
        RecordKind::MovingImage => "VIDEO",
        RecordKind::WebPage => "ELEC",
        RecordKind::Collection | RecordKind::Other => "GEN",
    }
}

pub(super) fn write(description: &Description) -> String {
    let mut text = String::new();
    let mut add = |tag: &str, value: &str| {
        // A value is one line.
        let words: Vec<&str> = value.split_whitespace().collect();
        if !words.is_empty() {
            text.push_str(&format!("{tag}  - {}\r\n", words.join(" ")));
        }
    };
    let record = &description.record;
    let core = &record.core;
    add("TY", reference_type(description.kind()));
    for PersonName { whole, .. } in description.creators() {
        add("AU", whole);
    }
    for PersonName { whole, .. } in description.named("editor") {
        add("ED", whole);
    }
    add("TI", description.title());
    let text_of_date = description.first(Element::Date).unwrap_or_default();
    match description.date() {
        Some(date) => {
            let year = format!("{:04}", date.year());
            let two = |index: usize| {
                let part = date.parts().get(index);
                part.map_or(String::new(), |number| format!("{number:02}"))
            };
            // The fourth part of DA has the text of a date that is not exact.
            let is_whole = date.is_exact() && date.end().is_none();
            let other = if is_whole { "" } else { text_of_date };
            add("PY", &year);
            add("DA", &format!("{year}/{}/{}/{other}", two(1), two(2)));
        }
        None if text_of_date.is_empty() => {}
        None => add("DA", &format!("///{text_of_date}")),
    }
    let is_article = description.kind() == RecordKind::Article;
    add(
        if is_article { "JO" } else { "T2" },
        description.container().unwrap_or_default(),
    );
    for (tag, field) in [
        ("T3", "series"),
        ("ET", "edition"),
        ("VL", "volume"),
        ("IS", "number"),
        ("CY", "address"),
    ] {
        add(tag, record.field(field).unwrap_or_default());
    }
    let (first, last) = description.pages();
    add("SP", first.unwrap_or_default());
    add("EP", last.unwrap_or_default());
    add("PB", description.publisher().unwrap_or_default());
    for value in core.values(Element::Subject) {
        add("KW", value);
    }
    add("AB", description.abstract_text().unwrap_or_default());
    for note in description.notes() {
        add("N1", note);
    }
    for value in core.values(Element::Type) {
        if value != description.kind().dcmi() {
            add("M3", value);
        }
    }
    add(
        "C6",
        record
            .field("version")
            .filter(|_| description.kind() == RecordKind::Software)
            .unwrap_or_default(),
    );
    for value in core.values(Element::Language) {
        add("LA", value);
    }
    add("DO", description.doi().unwrap_or_default());
    for (field, scheme) in [("isbn", "urn:isbn:"), ("issn", "urn:issn:")] {
        add("SN", description.number(field, scheme).unwrap_or_default());
    }
    add("ID", &description.ibi);
    add("UR", &description.url);
    text.push_str("ER  - \r\n");
    text
}
