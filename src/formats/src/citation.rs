//! The citation of an item in a style of the Citation Style Language, by hayagriva and the styles in it.
//!
//! The library reads the item's CSL-JSON. Its input is bounded, and it runs behind a barrier, so that a record
//! that it cannot cite is an error.

use std::error::Error;
use std::fmt;
use std::sync::LazyLock;

use hayagriva::archive::{ArchivedStyle, locales};
use hayagriva::citationberg::json::Item;
use hayagriva::citationberg::{Locale, LocaleCode, Style};
use hayagriva::{
    BibliographyDriver, BibliographyRequest, BufWriteFormat, CitationItem, CitationRequest,
};
use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use serde_json::{Value, json};

use crate::description::{Description, DescriptionFormat};
use crate::metadata::Element;

/// Short names of styles, and their names in the repository of the Citation Style Language.
const STYLES: &[(&str, &str)] = &[
    ("abnt", ABNT),
    ("apa", "apa"),
    ("chicago", "chicago-author-date"),
    ("harvard", "harvard-cite-them-right"),
    ("ieee", "ieee"),
    ("mla", "modern-language-association"),
    ("vancouver", "vancouver"),
];

/// The style of ABNT NBR 6023.
const ABNT: &str = "associacao-brasileira-de-normas-tecnicas";

/// The types of CSL whose place and publisher that style prints with what is between them.
const WITH_IMPRINT: [&str; 5] = ["book", "chapter", "paper-conference", "report", "thesis"];
/// Those for which it prints the place and a comma alone, even if there is none, and the publisher without what
/// belongs between them.
const WITH_PLACE: [&str; 6] = [
    "dataset",
    "document",
    "graphic",
    "motion_picture",
    "software",
    "song",
];

/// The most characters of a value, and the most values of a list, that are cited.
const LONGEST: usize = 4000;
const MOST: usize = 200;

/// The locales of the languages of citations. The library decodes all of its own at every call.
static LOCALES: LazyLock<Vec<Locale>> = LazyLock::new(|| {
    let is_ours = |locale: &Locale| {
        let code = locale.lang.as_ref().map(|code| code.0.as_str());
        matches!(code, Some(ENGLISH | PORTUGUESE))
    };
    locales().into_iter().filter(is_ours).collect()
});

const ENGLISH: &str = "en-US";
const PORTUGUESE: &str = "pt-BR";

/// The language of the words that a style adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CitationLanguage {
    /// English.
    English,
    /// Portuguese of Brazil.
    Portuguese,
}

/// The reason why an item cannot be cited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CitationError {
    /// No style has the name.
    UnknownStyle {
        /// The name.
        name: String,
    },
    /// The style makes no bibliography.
    NoBibliography {
        /// The name of the style.
        name: String,
    },
    /// The record cannot be cited in the style.
    NotCited {
        /// The name of the style.
        name: String,
    },
}

impl Localize for CitationError {
    fn message(&self) -> Message {
        match self {
            CitationError::UnknownStyle { name }
                if DescriptionFormat::from_word(name).is_some() =>
            {
                message!(
                    "'{name}' is a format of records and not a style of citations; read the file 'ITEM:({name})' of a mount",
                    name
                )
            }
            CitationError::UnknownStyle { name } => {
                let styles: Vec<&str> = STYLES.iter().map(|(short, _)| *short).collect();
                let styles = styles.join(", ");
                message!(
                    "'{name}' is not a style; the styles are {styles}, and those that --list-styles prints",
                    name,
                    styles
                )
            }
            CitationError::NoBibliography { name } => message!(
                "the style '{name}' makes no bibliography, only notes; use another style",
                name
            ),
            CitationError::NotCited { name } => message!(
                "the record cannot be cited in the style '{name}'; use another style",
                name
            ),
        }
    }
}

display_message!(CitationError);

impl Error for CitationError {}

/// The names of all styles, the short ones first.
pub fn style_names() -> impl Iterator<Item = &'static str> {
    let archived = ArchivedStyle::all().iter().flat_map(|style| style.names());
    let short = STYLES.iter().map(|(short, _)| *short);
    let is_other = |name: &&'static str| STYLES.iter().all(|(short, _)| short != name);
    short.chain(archived.copied().filter(is_other))
}

/// The styles with a short name, each with what it is called on a page: cities and universities are words, the others
/// abbreviations.
pub fn short_styles() -> impl Iterator<Item = (&'static str, String)> {
    STYLES.iter().map(|(short, _)| {
        let called = match *short {
            "chicago" => "Chicago".to_owned(),
            "harvard" => "Harvard".to_owned(),
            "vancouver" => "Vancouver".to_owned(),
            other => other.to_uppercase(),
        };
        (*short, called)
    })
}

/// The citation of an item as one line of text.
/// It is made from the description's CSL-JSON, by the rules of the Citation Style Language 1.0.2.
///
/// # Errors
/// The style is not known, makes no bibliography, or cannot cite the record.
pub fn cite(
    description: &Description,
    style: &str,
    language: CitationLanguage,
) -> Result<String, CitationError> {
    let full = STYLES.iter().find(|(short, _)| *short == style);
    let full = full.map_or(style, |(_, full)| *full);
    let name = style.to_owned();
    let Some(archived) = ArchivedStyle::by_name(full) else {
        return Err(CitationError::UnknownStyle { name });
    };
    let document = description.write(DescriptionFormat::Csl);
    let item = serde_json::from_str::<Value>(&document)
        .ok()
        .and_then(|mut document| document.get_mut(0).map(Value::take))
        .map(|item| accessed(bounded(item), description.made_on))
        .map(|item| with_others(item, description))
        .map(|item| if full == ABNT { imprinted(item) } else { item })
        .and_then(|item| serde_json::from_value::<Item>(item).ok());
    let Some(item) = item else {
        return Err(CitationError::NotCited { name });
    };
    let year = description
        .record
        .core
        .first(Element::Date)
        .unwrap_or_default();
    let line = shielded(|| format(&item, archived, language));
    let line = line.map(|line| line.map(|line| et_al(&line)));
    match line {
        // APA has a comma before the month, which the library writes also where only the year is known.
        Some(line) => line
            .map(|line| match year {
                "" => line,
                year => line.replace(&format!("({year},)"), &format!("({year})")),
            })
            .ok_or(CitationError::NoBibliography { name }),
        None => Err(CitationError::NotCited { name }),
    }
}

/// Returns what the library returns; None if it panics. Records are by others, and it has many rules.
fn shielded<T>(call: impl FnOnce() -> T + std::panic::UnwindSafe) -> Option<T> {
    std::panic::catch_unwind(call).ok()
}

/// The text of the bibliography; None of a style that has none.
fn format(item: &Item, style: ArchivedStyle, language: CitationLanguage) -> Option<String> {
    let Style::Independent(style) = style.get() else {
        return None;
    };
    let code = match language {
        CitationLanguage::English => ENGLISH,
        CitationLanguage::Portuguese => PORTUGUESE,
    };
    let locale = Some(LocaleCode(code.to_owned()));
    let locales: &[Locale] = &LOCALES;
    let mut driver = BibliographyDriver::new();
    let items = vec![CitationItem::with_entry(item)];
    let request = CitationRequest::new(items, &style, locale.clone(), locales, None);
    driver.citation(request);
    let rendered = driver.finish(BibliographyRequest::new(&style, locale, locales));
    let entry = rendered.bibliography?.items.into_iter().next()?;
    let mut text = String::new();
    entry
        .content
        .write_buf(&mut text, BufWriteFormat::Plain)
        .ok()?;
    let words: Vec<&str> = text
        .split(|sign: char| sign.is_whitespace() || sign.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    Some(words.join(" "))
}

/// The name of an author who stands for those that the record does not name: a sign of no text.
const OTHERS: char = '\u{e000}';

/// An item whose last author stands for others, if the record says that there are more.
fn with_others(mut item: Value, description: &Description) -> Value {
    let is_more = description
        .record
        .values("others")
        .any(|role| role == "author");
    if is_more && let Some(authors) = item.get_mut("author").and_then(Value::as_array_mut) {
        authors.push(json!({ "literal": OTHERS.to_string() }));
    }
    item
}

/// A citation with "et al." in place of the author who stands for others, and of the word before.
fn et_al(line: &str) -> String {
    let Some((before, after)) = line.split_once(OTHERS) else {
        return line.to_owned();
    };
    let before = before.trim_end_matches([' ', ',', ';', '&']);
    let words = [" and", " e", " y", " et"];
    let before = words
        .iter()
        .find_map(|word| before.strip_suffix(word))
        .unwrap_or(before);
    let before = before.trim_end_matches([' ', ',', ';']);
    let after = after.strip_prefix('.').unwrap_or(after);
    format!("{before} et al.{after}")
}

/// An item with the date on which its page on the Web was seen: that of the description.
fn accessed(mut item: Value, (year, month, day): (u16, u8, u8)) -> Value {
    if let Some(fields) = item.as_object_mut().filter(|_| year > 0) {
        let date = json!({ "date-parts": [[year, month, day]] });
        fields.insert("accessed".to_owned(), date);
    }
    item
}

/// An item with place and publisher as ABNT NBR 6023 has them, also where they are not known: "[S. l.]", sine loco, and
/// "[s. n.]", sine nomine. Without a publisher the style leaves out the date, or has an empty place.
fn imprinted(mut item: Value) -> Value {
    let Some(fields) = item.as_object_mut() else {
        return item;
    };
    let text = |fields: &serde_json::Map<String, Value>, name: &str| {
        let value = fields.get(name).and_then(Value::as_str);
        value
            .filter(|value| !value.trim().is_empty())
            .map(str::to_owned)
    };
    let (place, publisher) = (text(fields, "publisher-place"), text(fields, "publisher"));
    let (place, publisher) = match (place, publisher) {
        (None, None) => ("[S. l.".to_owned(), "s. n.]".to_owned()),
        (place, publisher) => (
            place.unwrap_or_else(|| "[S. l.]".to_owned()),
            publisher.unwrap_or_else(|| "[s. n.]".to_owned()),
        ),
    };
    let kind = text(fields, "type").unwrap_or_default();
    if WITH_IMPRINT.contains(&kind.as_str()) {
        fields.insert("publisher-place".to_owned(), json!(place));
        fields.insert("publisher".to_owned(), json!(publisher));
    } else if WITH_PLACE.contains(&kind.as_str()) {
        let both = format!("{place}: {publisher}");
        fields.insert("publisher-place".to_owned(), json!(both));
        fields.remove("publisher");
    }
    item
}

/// A value with bounded texts and lists.
fn bounded(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.chars().take(LONGEST).collect()),
        Value::Array(values) => values.into_iter().take(MOST).map(bounded).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, value)| is_cited(name, value))
            .map(|(name, value)| (name, bounded(value)))
            .collect(),
        value => value,
    }
}

/// Whether a field is cited: not the long ones, and a date only if it is one.
fn is_cited(name: &str, value: &Value) -> bool {
    match name {
        "abstract" | "note" | "keyword" => false,
        "issued" => value.get("date-parts").is_some(),
        _ => true,
    }
}

impl fmt::Display for CitationLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CitationLanguage::English => "en",
            CitationLanguage::Portuguese => "pt-BR",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{BibliographicRecord, RecordKind};

    fn description(record: BibliographicRecord) -> Description {
        Description {
            record,
            ibi: "8JMKD3MGP8W/34PGRBS".to_owned(),
            url: "http://urlib.net/8JMKD3MGP8W/34PGRBS".to_owned(),
            made_on: (2026, 3, 3),
            ..Description::default()
        }
    }

    fn article() -> Description {
        let record = BibliographicRecord::from_bibtex(
            b"@article{k, author = {Gerald Banon and Ana Maria Silva}, title = {Rain in Brazil}, journal = {Weather}, \
              volume = 3, number = 2, pages = {1--9}, year = 2009}",
        );
        description(record.unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        assert_eq!(shielded(|| Some("a citation")), Some(Some("a citation")));
        let panics = || -> Option<String> { panic!("a rule of the library") };
        assert_eq!(shielded(panics), None);
    }

    #[test]
    fn an_article_is_cited() {
        let cited = |style, language| {
            cite(&article(), style, language).unwrap_or_else(|error| panic!("{error}"))
        };
        let apa = cited("apa", CitationLanguage::English);
        assert!(
            apa.starts_with("Banon, G., & Silva, A. M. (2009). Rain in Brazil."),
            "{apa}"
        );
        let abnt = cited("abnt", CitationLanguage::Portuguese);
        let expected =
            "BANON, Gerald; SILVA, Ana Maria. Rain in Brazil. Weather, v. 3, n. 2, p. 1–9, 2009.";
        assert_eq!(abnt, expected);
    }

    #[test]
    fn the_words_of_a_style_are_in_the_language() {
        for date in ["", "date = {long ago}, "] {
            let text = format!("@misc{{k, {date}author = {{Ana Silva}}, title = {{Rain}}}}");
            let record = BibliographicRecord::from_bibtex(text.as_bytes());
            let undated = description(record.unwrap_or_else(|error| panic!("{error}")));
            let cited = |style, language| cite(&undated, style, language).unwrap_or_default();
            let url = "http://urlib.net/8JMKD3MGP8W/34PGRBS";
            assert_eq!(
                cited("apa", CitationLanguage::English),
                format!("Silva, A. (n.d.). Rain. Retrieved March 3, 2026, from {url}")
            );
            assert_eq!(
                cited("apa", CitationLanguage::Portuguese),
                format!("Silva, A. (s.d.). Rain. Recuperado 3 de março de 2026, de {url}")
            );
            let abnt = cited("abnt", CitationLanguage::Portuguese);
            let end = format!("Disponível em: <{url}>. Acesso em: 3 mar. 2026");
            assert!(
                abnt.starts_with("SILVA, Ana. Rain.") && abnt.ends_with(&end),
                "{abnt}"
            );
        }
    }

    /// An item that is described by title, creator and year alone.
    #[test]
    fn a_set_of_files_of_a_year_is_cited() {
        let mut record = BibliographicRecord::default();
        record.core.push(Element::Title, "Rain");
        record.core.push(Element::Creator, "Silva, Ana");
        record.core.push(Element::Date, "2026");
        for kind in ["Collection", "Text"] {
            let mut record = record.clone();
            record.core.push(Element::Type, kind);
            let cited = cite(&description(record), "apa", CitationLanguage::English);
            let expected = "Silva, A. (2026). Rain. http://urlib.net/8JMKD3MGP8W/34PGRBS";
            assert_eq!(cited.as_deref(), Ok(expected), "{kind}");
        }
    }

    #[test]
    fn others_are_cited_as_such() {
        let record = BibliographicRecord::from_bibtex(
            b"@misc{k, author = {Ana Silva and Gerald Banon and others}, title = {Rain}, year = 2010}",
        );
        let described = description(record.unwrap_or_else(|error| panic!("{error}")));
        for (style, start) in [
            ("abnt", "SILVA, Ana; BANON, Gerald et al. Rain"),
            ("apa", "Silva, A., Banon, G. et al. (2010). Rain"),
        ] {
            let cited = cite(&described, style, CitationLanguage::English).unwrap_or_default();
            assert!(cited.starts_with(start), "{cited}");
        }
    }

    #[test]
    fn a_title_is_cited_as_it_is() {
        let mut record = BibliographicRecord::default();
        record.core.push(Element::Title, "The pair (,) in lists");
        record.core.push(Element::Creator, "Silva, Ana");
        let cited = cite(&description(record), "apa", CitationLanguage::English);
        let cited = cited.unwrap_or_else(|error| panic!("{error}"));
        assert!(cited.contains("(n.d.). The pair (,) in lists."), "{cited}");
    }

    /// ABNT NBR 6023 has words for a place and a publisher that are not known.
    #[test]
    fn an_unknown_publisher_is_said_to_be_unknown() {
        let cited = |kind: RecordKind, style: &str, publisher: &str, place: &str| {
            let mut record = BibliographicRecord::default();
            record.kind = Some(kind);
            record.core.push(Element::Title, "Rainfall");
            record.core.push(Element::Creator, "Silva, Ana");
            record.core.push(Element::Date, "2026");
            for (name, value) in [("publisher", publisher), ("address", place)] {
                if !value.is_empty() && name == "publisher" {
                    record.core.push(Element::Publisher, value);
                } else if !value.is_empty() {
                    record.keep(name, value);
                }
            }
            let line = cite(&description(record), style, CitationLanguage::Portuguese);
            let line = line.unwrap_or_else(|error| panic!("{error}"));
            let begin = line.split(" Disponível").next().unwrap_or_default();
            begin.trim_start_matches("SILVA, Ana. ").to_owned()
        };
        for kind in [
            RecordKind::Dataset,
            RecordKind::Software,
            RecordKind::Image,
            RecordKind::Sound,
            RecordKind::MovingImage,
            RecordKind::Collection,
            RecordKind::Other,
            RecordKind::Book,
            RecordKind::Thesis,
            RecordKind::Report,
        ] {
            for (publisher, place, expected) in [
                ("", "", "Rainfall. [S. l.: s. n.], 2026."),
                ("INPE", "", "Rainfall. [S. l.]: INPE, 2026."),
                ("", "São Paulo", "Rainfall. São Paulo: [s. n.], 2026."),
                ("INPE", "São Paulo", "Rainfall. São Paulo: INPE, 2026."),
            ] {
                assert_eq!(cited(kind, "abnt", publisher, place), expected, "{kind:?}");
            }
        }
        // A kind that has none in the style gets none, and neither does another style.
        assert_eq!(
            cited(RecordKind::Article, "abnt", "", ""),
            "Rainfall. 2026."
        );
        assert_eq!(
            cited(RecordKind::Unpublished, "abnt", "", ""),
            "Rainfall. 2026."
        );
        assert!(!cited(RecordKind::Dataset, "apa", "", "").contains("s. n."));
    }

    #[test]
    fn unknown_styles_are_refused() {
        let error = cite(&article(), "x", CitationLanguage::English);
        assert!(matches!(error, Err(CitationError::UnknownStyle { .. })));
        for (short, full) in STYLES {
            assert!(ArchivedStyle::by_name(full).is_some(), "{short}");
        }
    }

    #[test]
    fn hostile_records_are_cited_or_refused_in_every_style() {
        let long = "x ".repeat(100_000);
        let values = [
            "",
            " ",
            ",",
            "} { \\ % \"",
            "<i>a</i>",
            "9999999999999999999999",
            "-1",
            "0",
            "1--",
            "--",
            "a, b, c, d",
            "\u{202e}\u{2028}\u{0}",
            "é日本😀",
            "1-2,3 & 4",
            "12th",
            "*_`$#",
            &long,
        ];
        for value in values {
            let mut record = BibliographicRecord::default();
            for element in Element::ALL {
                record.core.push(element, value);
            }
            for name in [
                "journal", "volume", "number", "pages", "edition", "series", "address", "editor",
            ] {
                record.keep(name, value);
            }
            for kind in [RecordKind::Article, RecordKind::Thesis, RecordKind::Other] {
                record.kind = Some(kind);
                let described = description(record.clone());
                for (style, _) in STYLES {
                    let cited = cite(&described, style, CitationLanguage::English);
                    assert!(cited.is_ok(), "{value:.40} {style}: {cited:?}");
                }
            }
        }
        let empty = description(BibliographicRecord::default());
        for style in style_names() {
            match cite(&empty, style, CitationLanguage::Portuguese) {
                Ok(line) => assert!(!line.contains('\n')),
                Err(error) => assert!(
                    matches!(error, CitationError::NoBibliography { .. }),
                    "{style}"
                ),
            }
        }
    }
}
