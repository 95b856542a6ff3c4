//! refer: tagged lines, with the fields `%@name` of URLib for what has no tag.

use super::{Description, is_field_name};
use crate::metadata::Element;

/// Kept fields and their tags; those of URLib where refer has none.
const TAGS: &[(&str, char)] = &[
    ("journal", 'J'),
    ("booktitle", 'B'),
    ("series", 'S'),
    ("edition", '7'),
    ("volume", 'V'),
    ("number", 'N'),
    ("pages", 'P'),
    ("address", 'C'),
    ("editor", 'E'),
    ("translator", '?'),
    ("label", 'F'),
    ("targetfile", '3'),
    ("repository", '4'),
    ("metadatarepository", '2'),
];

/// Kept fields that are written from the elements.
const OTHERWISE: &[&str] = &[
    "publisher",
    "school",
    "institution",
    "organization",
    "url",
    "doi",
    "ibi",
    "isbn",
    "issn",
    "note",
    "howpublished",
    "annote",
    "urlaccessdate",
];

pub(super) fn write(description: &Description) -> String {
    let mut text = String::new();
    let mut add = |tag: &str, value: &str| {
        let value = value.trim();
        if !value.is_empty() {
            text.push_str(&format!("%{tag} {value}\n"));
        }
    };
    let record = &description.record;
    let core = &record.core;
    add("0", description.kind().refer());
    for name in description.creators() {
        // The tag Q is for names of organizations, which are not turned round.
        let is_person = name.family.is_some() && !name.whole.contains(['{', '}']);
        add(if is_person { "A" } else { "Q" }, name.whole);
    }
    add("T", description.title());
    let date = description.date();
    match date.filter(|date| date.is_exact() && date.end().is_none()) {
        Some(date) => {
            add("D", &format!("{:04}", date.year()));
            if date.parts().len() > 1 {
                add("8", &date.iso());
            }
        }
        None => add("D", description.first(Element::Date).unwrap_or_default()),
    }
    add("I", description.publisher().unwrap_or_default());
    for (name, value) in record.fields() {
        let tag = TAGS.iter().find(|(known, _)| *known == name);
        if let Some((_, tag)) = tag {
            add(&tag.to_string(), value);
        } else if let Some(sign) = name.strip_prefix('%') {
            add(sign, value);
        } else if !OTHERWISE.contains(&name) && is_field_name(name) {
            add(&format!("@{name}"), value);
        }
    }
    for value in core.values(Element::Subject) {
        add("K", value);
    }
    add("X", description.abstract_text().unwrap_or_default());
    for note in description.notes() {
        add("Z", note);
    }
    add("R", description.doi().unwrap_or_default());
    add(
        "@isbn",
        description.number("isbn", "urn:isbn:").unwrap_or_default(),
    );
    add(
        "@issn",
        description.number("issn", "urn:issn:").unwrap_or_default(),
    );
    for value in core.values(Element::Language) {
        add("@language", value);
    }
    for value in core.values(Element::Rights) {
        add("@copyright", value);
    }
    add("@ibi", &description.ibi);
    add("U", &description.url);
    text
}
