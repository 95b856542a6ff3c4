//! RIS, the lines `TY  - JOUR` of citation programs. A line without a tag continues the previous one. Only the first
//! record of a file is read, up to `ER`. Links to files, `L1` to `L4`, are those of a disk and are not read.

use super::date::{GivenDate, date};
use super::decode::decode;
use super::error::beginning;
use super::person::family_first;
use super::{BibliographicRecord, Element, MetadataError, RecordKind, check_size};

/// Reference types, the values of `TY`, and what they mean.
#[rustfmt::skip]
const TYPES: &[(&str, RecordKind)] = &[
    ("JOUR", RecordKind::Article), ("EJOUR", RecordKind::Article), ("MGZN", RecordKind::Article),
    ("NEWS", RecordKind::Article), ("INPR", RecordKind::Article), ("BOOK", RecordKind::Book),
    ("EBOOK", RecordKind::Book), ("PAMP", RecordKind::Book), ("EDBOOK", RecordKind::Proceedings),
    ("CHAP", RecordKind::Chapter), ("ECHAP", RecordKind::Chapter), ("ENCYC", RecordKind::Chapter),
    ("DICT", RecordKind::Chapter), ("CPAPER", RecordKind::Paper), ("CONF", RecordKind::Paper),
    ("THES", RecordKind::Thesis), ("RPRT", RecordKind::Report), ("GOVDOC", RecordKind::Report),
    ("STAND", RecordKind::Manual), ("UNPB", RecordKind::Unpublished), ("MANSCPT", RecordKind::Unpublished),
    ("DATA", RecordKind::Dataset), ("DBASE", RecordKind::Dataset), ("AGGR", RecordKind::Dataset),
    ("COMP", RecordKind::Software), ("FIGURE", RecordKind::Image), ("ART", RecordKind::Image),
    ("CHART", RecordKind::Image), ("MAP", RecordKind::Map), ("SOUND", RecordKind::Sound),
    ("MUSIC", RecordKind::Sound), ("VIDEO", RecordKind::MovingImage), ("MPCT", RecordKind::MovingImage),
    ("ADVS", RecordKind::MovingImage), ("ELEC", RecordKind::WebPage), ("ICOMM", RecordKind::WebPage),
    ("BLOG", RecordKind::WebPage),
];

impl BibliographicRecord {
    /// Parses the first record of an RIS file, in UTF-8 or else Windows-1252.
    pub fn from_ris(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        check_size(bytes)?;
        let text = decode(bytes);
        let fields = first_record(&text);
        if fields.is_empty() {
            return Err(MetadataError::NoRisTag {
                text: beginning(&text),
            });
        }
        Ok(record(&fields))
    }
}

/// The tag of a line and its value: `TI  - value`. Some programs write one space before the hyphen.
pub(super) fn tagged(line: &str) -> Option<(&str, &str)> {
    let (tag, rest) = line.split_at_checked(2)?;
    let mut signs = tag.bytes();
    let is_tag = signs.next().is_some_and(|sign| sign.is_ascii_uppercase())
        && signs.all(|sign| sign.is_ascii_uppercase() || sign.is_ascii_digit());
    let value = rest.trim_start_matches(' ').strip_prefix('-')?;
    let is_whole = rest.starts_with(' ') && (value.is_empty() || value.starts_with([' ', '\r']));
    (is_tag && is_whole).then_some((tag, value.trim()))
}

fn first_record(text: &str) -> Vec<(&str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match tagged(line) {
            Some(("ER", _)) if !fields.is_empty() => break,
            Some(("TY", _)) if fields.iter().any(|(tag, _)| *tag == "TY") => break,
            Some((tag, value)) => fields.push((tag, value.to_owned())),
            None => {
                if let Some((_, value)) = fields.last_mut() {
                    value.push('\n');
                    value.push_str(line);
                }
            }
        }
    }
    fields
}

fn record(fields: &[(&str, String)]) -> BibliographicRecord {
    let field = |wanted: &[&str]| {
        let mut found = wanted.iter().filter_map(|wanted| {
            let mut fields = fields.iter();
            fields.find(|(tag, value)| tag == wanted && !value.trim().is_empty())
        });
        found.next().map_or("", |(_, value)| value.trim())
    };
    let named = field(&["TY"]);
    let kind = TYPES.iter().find(|(word, _)| *word == named);
    let kind = kind.map_or(RecordKind::Other, |(_, kind)| {
        kind.of_degree(field(&["M3"]))
    });
    let mut record = BibliographicRecord::of_kind(Some(kind));
    // Of a book T1 and BT are the title; of a chapter BT is the book.
    let title = field(&["TI", "T1", "CT", "BT", "ST"]);
    record.core.push(Element::Title, title);
    for (tag, value) in fields {
        add(&mut record, tag, value.trim(), kind);
    }
    let container = field(&["T2", "JO", "JF", "JA", "J2", "BT"]);
    if container != title {
        record.push_container(container);
    }
    record
        .core
        .push(Element::Date, date_of(field(&["DA"]), field(&["PY", "Y1"])));
    match field(&["SP"]) {
        all if all.contains(['-', '\u{2013}']) => record.keep("pages", all),
        first => record.keep_pages(first, field(&["EP"])),
    }
    record
}

fn add(record: &mut BibliographicRecord, tag: &str, value: &str, kind: RecordKind) {
    let person = || family_first(value, str::to_owned);
    match tag {
        "AU" | "A1" => record.push_creator(&person(), None),
        "ED" | "A2" => record.push_contributor("editor", &person()),
        "A4" | "TA" => record.push_contributor("translator", &person()),
        "A3" => record.core.push(Element::Contributor, person()),
        "TT" => record.core.push(Element::Title, value),
        "AB" | "N2" => record.core.push(Element::Description, value),
        "N1" | "RN" => record.push_note(value),
        // One keyword is in one line; some programs put all into one tag.
        "KW" => value
            .lines()
            .for_each(|line| record.core.push(Element::Subject, line)),
        "PB" => record.push_publisher(value),
        "LA" => record.core.push(Element::Language, value),
        "M3" => record.core.push(Element::Type, value),
        "DO" => record.push_identifier("doi", value),
        "SN" => record.push_isbn_or_issn(value),
        "UR" => value
            .split(';')
            .for_each(|url| record.push_identifier("url", url.trim())),
        "ET" if kind == RecordKind::Software => record.keep("version", value),
        "ET" => record.keep("edition", value),
        "T3" => record.keep("series", value),
        "VL" => record.keep("volume", value),
        "IS" => record.keep("number", value),
        "CY" | "PP" => record.keep("address", value),
        "AD" => record.keep("affiliation", value),
        "C6" if kind == RecordKind::Software => record.keep("version", value),
        _ => {}
    }
}

/// The date of `DA`, `2010/03/15/other`, or of the year, which may have the same form.
fn date_of(whole: &str, year: &str) -> String {
    let read = |text: &str| -> Option<String> {
        let is_in_parts = text.matches('/').count() > 2;
        if !text.contains('/') || (!is_in_parts && GivenDate::read(text).is_some()) {
            return Some(text.to_owned()).filter(|text| !text.is_empty());
        }
        let mut parts = text.splitn(4, '/').map(str::trim);
        let mut part = || parts.next().unwrap_or_default();
        let (year, month, day, other) = (part(), part(), part(), part());
        if !other.is_empty()
            && GivenDate::read(other).is_some_and(|date| Ok(date.year()) == year.parse())
        {
            return Some(other.to_owned());
        }
        match (year, month, day) {
            ("", ..) => Some(other.to_owned()).filter(|other| !other.is_empty()),
            (year, "", _) => Some(date(year, other)),
            (year, month, "") => Some(format!("{year}-{month:0>2}")),
            (year, month, day) => Some(format!("{year}-{month:0>2}-{day:0>2}")),
        }
    };
    let given = |text: &&String| GivenDate::read(text).is_some();
    let (whole, year) = (read(whole), read(year));
    // A date that cannot be read is kept, unless there is a year that can.
    let best = [&whole, &year].into_iter().flatten().find(given).cloned();
    best.or(whole).or(year).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_tags() {
        for (line, expected) in [
            ("TY  - JOUR", Some(("TY", "JOUR"))),
            ("ER  - ", Some(("ER", ""))),
            ("ER  -", Some(("ER", ""))),
            ("T1 - A", Some(("T1", "A"))),
            ("TY  -JOUR", None),
            ("Ty  - JOUR", None),
            ("é", None),
            ("TY", None),
        ] {
            assert_eq!(tagged(line), expected, "{line}");
        }
    }

    #[test]
    fn dates_have_parts() {
        for (whole, year, expected) in [
            ("2010/03/15/", "2010", "2010-03-15"),
            ("2010/3//", "2010", "2010-03"),
            ("2010///", "", "2010"),
            ("2010///Spring", "2010", "Spring 2010"),
            ("2010-03-15", "2010", "2010-03-15"),
            ("", "2010/03/15/", "2010-03-15"),
            ("", "15/03/2010", "15/03/2010"),
            ("1920///c1920?", "1920", "c1920?"),
            ("1999///1999/2003", "1999", "1999/2003"),
            ("///long ago", "", "long ago"),
            ("long ago", "1999", "1999"),
            ("", "", ""),
        ] {
            assert_eq!(date_of(whole, year), expected, "{whole} {year}");
        }
    }
}
