//! BibTeX: for its users, and as the institute writes it, with the fields `ibi`, `url`, `targetfile` and
//! `urlaccessdate`.
//!
//! Values are text: every sign that TeX interprets is written as the command for it, so that braces always balance.
//! URLs are written as they are, with the signs that would end them percent-encoded.

use unicode_normalization::UnicodeNormalization;

use super::{Description, PersonName, is_field_name};
use crate::metadata::{Element, RecordKind};

/// The dialect of BibTeX to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The fields that both BibTeX and biblatex know.
    Common,
    /// The institute's: all fields of the record, in quotes, with names in a column.
    Inpe,
}

const MONTHS: [&str; 12] = [
    "Jan.", "Feb.", "Mar.", "Apr.", "May", "June", "July", "Aug.", "Sept.", "Oct.", "Nov.", "Dec.",
];

/// Fields that the record keeps and that are written as they are, where they have a value.
const KEPT: &[&str] = &[
    "journal",
    "booktitle",
    "series",
    "edition",
    "chapter",
    "volume",
    "number",
    "pages",
    "address",
    "organization",
];

/// Kept fields that are written in another way, or mean the source of the record and not the item.
const OTHERWISE: &[&str] = &[
    "publisher",
    "school",
    "institution",
    "editor",
    "translator",
    "url",
    "doi",
    "ibi",
    "isbn",
    "issn",
    "note",
    "targetfile",
    "urlaccessdate",
    "howpublished",
    "annote",
    "others",
];

pub(super) fn write(description: &Description, dialect: Dialect) -> String {
    let fields = fields(description, dialect);
    let kind = description.kind().bibtex();
    let key = key(description);
    let mut text = format!("@{kind}{{{key},\n");
    let width = fields.iter().map(|(name, _)| name.len()).max();
    for (name, value) in fields {
        match dialect {
            Dialect::Common => text.push_str(&format!("  {name} = {{{value}}},\n")),
            Dialect::Inpe => {
                let column = width.unwrap_or_default() + 2;
                let value = value.replace('"', "{\"}");
                text.push_str(&format!("{name:>column$} = \"{value}\",\n"));
            }
        }
    }
    text.push_str("}\n");
    text
}

/// The fields with their values in TeX.
fn fields(description: &Description, dialect: Dialect) -> Vec<(String, String)> {
    let record = &description.record;
    let core = &record.core;
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() && !fields.iter().any(|(known, _)| known == name) {
            fields.push((name.to_owned(), value));
        }
    };
    let list = |names: Vec<String>| names.join(" and ");
    let text = |value: Option<&str>| value.map(tex).unwrap_or_default();
    let mut authors: Vec<String> = description.creators().map(person).collect();
    if description.has_others() {
        authors.push("others".to_owned());
    }
    add("author", list(authors));
    if dialect == Dialect::Inpe {
        let affiliations = record.values("affiliation").map(tex);
        add(
            "affiliation",
            list(affiliations.map(|name| format!("{{{name}}}")).collect()),
        );
    }
    let title = tex(description.title());
    // A style must not change the case of the title of another author.
    add(
        "title",
        if dialect == Dialect::Common {
            format!("{{{title}}}")
        } else {
            title
        },
    );
    for name in KEPT {
        add(name, text(record.field(name)));
    }
    add(
        "editor",
        list(description.named("editor").map(person).collect()),
    );
    if dialect == Dialect::Common {
        add(
            "translator",
            list(description.named("translator").map(person).collect()),
        );
    }
    let publisher = match description.kind() {
        RecordKind::Thesis | RecordKind::MastersThesis => "school",
        RecordKind::Report => "institution",
        _ => "publisher",
    };
    add(publisher, text(description.publisher()));
    let date = description.date();
    // A year alone is what BibTeX understands; more of the date is a text.
    match date.filter(|date| date.is_exact() && date.end().is_none()) {
        Some(date) => {
            add(
                "year",
                date.iso()
                    .chars()
                    .take(if date.year() < 0 { 5 } else { 4 })
                    .collect(),
            );
            if let Some(month) = date.parts().get(1) {
                add("month", month.to_string());
            }
        }
        None => add("year", text(description.first(Element::Date))),
    }
    add("abstract", text(description.abstract_text()));
    let notes: Vec<String> = description.notes().into_iter().map(tex).collect();
    add("note", notes.join(". "));
    let subjects: Vec<String> = core.values(Element::Subject).map(keyword).collect();
    add("keywords", subjects.join(", "));
    add("isbn", text(description.number("isbn", "urn:isbn:")));
    add("issn", text(description.number("issn", "urn:issn:")));
    add("doi", description.doi().map(verbatim).unwrap_or_default());
    add("version", text(record.field("version")));
    let funding: Vec<String> = record.values("funding").map(tex).collect();
    add("funding", funding.join("; "));
    let orcids: Vec<String> = record.values("orcid").map(tex).collect();
    add("orcid", orcids.join(" and "));
    add("language", text(core.first(Element::Language)));
    add("copyright", text(core.first(Element::Rights)));
    if dialect == Dialect::Inpe {
        for (name, value) in record.fields() {
            let is_written = KEPT.contains(&name) || OTHERWISE.contains(&name);
            if !is_written && name.len() <= 40 && is_field_name(name) && name != "affiliation" {
                add(name, tex(value));
            }
        }
    }
    add("ibi", verbatim(&description.ibi));
    add("url", verbatim(&description.url));
    if dialect == Dialect::Inpe {
        let file = description.target_file.as_deref();
        let file = file.or_else(|| record.field("targetfile"));
        add("targetfile", file.map(verbatim).unwrap_or_default());
        let (year, month, day) = description.made_on;
        if let Some(month) = MONTHS.get(usize::from(month).wrapping_sub(1)) {
            add("urlaccessdate", format!("{year:04}, {month} {day:02}"));
        }
    }
    fields
}

/// A text in TeX.
fn tex(text: &str) -> String {
    let mut tex = String::with_capacity(text.len());
    let mut before = '\0';
    for sign in text.chars() {
        match sign {
            '\\' => tex.push_str("\\textbackslash{}"),
            '{' => tex.push_str("\\textbraceleft{}"),
            '}' => tex.push_str("\\textbraceright{}"),
            '~' => tex.push_str("\\textasciitilde{}"),
            '^' => tex.push_str("\\textasciicircum{}"),
            '%' | '&' | '#' | '$' | '_' => {
                tex.push('\\');
                tex.push(sign);
            }
            // Two of these would be a dash or a quotation mark.
            '-' | '`' | '\'' if sign == before => {
                tex.push_str("{}");
                tex.push(sign);
            }
            sign => tex.push(sign),
        }
        before = sign;
    }
    tex
}

/// A text of a list that commas separate.
fn keyword(text: &str) -> String {
    let plain = tex(text);
    if text.contains([',', ';']) {
        format!("{{{plain}}}")
    } else {
        plain
    }
}

/// A URL, path or identifier, without signs that would end the value.
fn verbatim(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '{' | '}' | '\\' | '"' | '~' | '^' | ' ' | '`' => {
                plain.push_str(&format!("%{:02X}", u32::from(sign)));
            }
            sign => plain.push(sign),
        }
    }
    plain
}

/// A name in a list of names. What is not plainly a name of its parts stands in braces.
fn person(name: PersonName<'_>) -> String {
    let part = |text: &str| {
        let is_plain = text
            .chars()
            .all(|sign| sign.is_alphanumeric() || " .'-’".contains(sign))
            && !text
                .split(' ')
                .any(|word| word.eq_ignore_ascii_case("and") || word == "others");
        if is_plain {
            tex(text)
        } else {
            format!("{{{}}}", tex(text))
        }
    };
    match (name.family, name.suffix) {
        (Some(family), None) => format!("{}, {}", part(family), part(name.given)),
        (Some(family), Some(suffix)) => {
            format!("{}, {}, {}", part(family), part(suffix), part(name.given))
        }
        (None, _) => format!("{{{}}}", tex(name.whole)),
    }
}

/// The key of the entry, as the institute makes them: the family names of up to three authors, the year, and two
/// letters of each of up to three words of the title.
fn key(description: &Description) -> String {
    let letters = |text: &str, most: usize| -> String {
        let plain = text.nfd().filter(char::is_ascii_alphabetic);
        plain.take(most).collect()
    };
    let names: Vec<PersonName<'_>> = description.creators().take(3).collect();
    let mut authors = String::new();
    for (index, name) in names.iter().enumerate() {
        let family = name.family.unwrap_or(name.whole);
        let most = if index == 0 { 12 } else { 4 };
        authors.push_str(&letters(family, most));
    }
    let year = description.date().map(|date| date.year());
    let year = year.map(|year| format!("{year:04}")).unwrap_or_default();
    let mut words = String::new();
    let title = description.title();
    let long = title.split(|sign: char| !sign.is_alphanumeric());
    for word in long.filter(|word| word.chars().count() > 3).take(3) {
        let two = letters(word, 2);
        let mut two = two.chars();
        words.extend(two.next().map(|first| first.to_ascii_uppercase()));
        words.extend(two.map(|second| second.to_ascii_lowercase()));
    }
    let parts = [authors, year, words];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        "item".to_owned()
    } else {
        parts.join(":")
    }
}
