//! BibTeX as a source of records: the mapping from fields to elements of Dublin Core.
//!
//! The first entry of a file is the record. Fields of BibTeX and biblatex are known, and the field `ibi`,
//! which Archives write into citations. Fields for which Dublin Core has no element are kept beside it.

mod parse;

use super::date::date;
use super::decode::decode;
use super::fields::{doi, is_url, isbn, issn, push_subjects};
use super::names::kept_named;
use super::person::{family_first, split_outside_braces};
use super::tex::{self, plain, verbatim};
use super::{
    BibliographicRecord, DublinCore, Element, MetadataError, RecordKind, check_size, orcid,
};
use parse::{Entry, first_entry};

impl DublinCore {
    /// Parses the first entry of a BibTeX file, in UTF-8 or else Windows-1252.
    pub fn from_bibtex(bytes: &[u8]) -> Result<DublinCore, MetadataError> {
        BibliographicRecord::from_bibtex(bytes).map(|record| record.core)
    }
}

impl BibliographicRecord {
    /// Parses the first entry of a BibTeX file, in UTF-8 or else Windows-1252.
    pub fn from_bibtex(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        check_size(bytes)?;
        Ok(record(&first_entry(&decode(bytes))?))
    }
}

/// The commands of TeX in the fields of the first entry that are not known, each once; of a text that can be read.
pub(super) fn unknown_commands(bytes: &[u8]) -> Vec<String> {
    let entry = first_entry(&decode(bytes)).ok();
    let mut found: Vec<String> = Vec::new();
    for (_, value) in entry.into_iter().flat_map(|entry| entry.fields) {
        for command in tex::unknown_commands(&value) {
            if !found.contains(&command) && found.len() < MOST_UNKNOWN {
                found.push(command);
            }
        }
    }
    found
}

/// The most unknown commands that are returned.
const MOST_UNKNOWN: usize = 20;

fn record(entry: &Entry) -> BibliographicRecord {
    let field = |wanted: &str| {
        let found = entry.fields.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value.as_str())
    };
    let kind = RecordKind::from_word(&entry.kind);
    let mut record = BibliographicRecord {
        kind,
        ..BibliographicRecord::default()
    };
    let core = &mut record.core;
    core.push(Element::Type, kind.map_or("Text", RecordKind::dcmi));
    let (title, subtitle) = (plain(field("title")), plain(field("subtitle")));
    core.push(
        Element::Title,
        if subtitle.is_empty() {
            title
        } else {
            format!("{title}: {subtitle}")
        },
    );
    let language = if field("language").is_empty() {
        field("langid")
    } else {
        field("language")
    };
    core.push(Element::Language, plain(language));
    for (name, value) in &entry.fields {
        add(&mut record, name, value);
    }
    // The field of biblatex is a whole date, perhaps an interval.
    let date = match field("date") {
        "" => {
            let month = [field("day"), field("month")].join(" ");
            date(&plain(field("year")), &plain(&month))
        }
        whole => plain(whole),
    };
    record.core.push(Element::Date, date);
    if has_others(field("author")) {
        record.keep("others", "author");
    }
    add_orcids(&mut record, &plain(field("orcid")));
    record
}

/// Adds ORCID iDs, each with its name, or those of the authors in their order.
fn add_orcids(record: &mut BibliographicRecord, list: &str) {
    let creators: Vec<String> = record
        .core
        .values(Element::Creator)
        .map(str::to_owned)
        .collect();
    for (index, value) in list
        .split(" and ")
        .flat_map(|list| list.split(';'))
        .enumerate()
    {
        let (id, name) = value.trim().split_once(' ').unwrap_or((value, ""));
        let is_named = orcid(id).is_some() && !name.is_empty();
        let author = creators.get(index).map_or("", String::as_str);
        record.keep_orcid(if is_named { name } else { author }, id);
    }
}

/// Adds a field, in TeX, to the elements, and keeps it if they cannot say it all.
fn add(record: &mut BibliographicRecord, name: &str, value: &str) {
    let core = &mut record.core;
    match name {
        "author" => push_persons(core, Element::Creator, value),
        "editor" | "translator" => push_persons(core, Element::Contributor, value),
        "abstract" | "note" | "annote" => core.push(Element::Description, plain(value)),
        "keywords" | "keyword" | "tags" => push_subjects(core, value, plain),
        "publisher" | "school" | "institution" | "organization" => {
            core.push(Element::Publisher, plain(value));
        }
        "url" | "ibi" => core.push(Element::Identifier, verbatim(value)),
        "howpublished" if is_url(&verbatim(value)) => {
            core.push(Element::Identifier, verbatim(value));
        }
        "doi" => core.push(Element::Identifier, doi(&verbatim(value))),
        "isbn" => core.push(Element::Identifier, isbn(&plain(value))),
        "issn" => core.push(Element::Identifier, issn(&plain(value))),
        "journal" | "journaltitle" | "booktitle" => core.push(Element::Source, plain(value)),
        "type" => core.push(Element::Type, plain(value)),
        "copyright" | "license" | "rights" => core.push(Element::Rights, plain(value)),
        _ => {}
    }
    match name {
        "title" | "subtitle" | "author" | "abstract" | "keywords" | "keyword" | "tags"
        | "language" | "langid" | "date" | "year" | "month" | "day" | "type" | "copyright"
        | "license" | "rights" | "orcid" | "crossref" => {}
        "editor" | "translator" => {
            for person in persons(value) {
                record.keep(name, &person);
            }
        }
        "journaltitle" => record.keep("journal", &plain(value)),
        "location" => record.keep("address", &plain(value)),
        "url" | "doi" | "ibi" | "targetfile" => record.keep(name, &verbatim(value)),
        "funding" | "funder" | "grant" => {
            for funding in split_outside_braces(value, |sign| sign == ';') {
                record.keep("funding", &plain(funding));
            }
        }
        _ => record.keep(kept_named(name).unwrap_or(name), &plain(value)),
    }
}

/// Whether a list of names ends with "and others".
fn has_others(list: &str) -> bool {
    let words = split_outside_braces(list, char::is_whitespace);
    let mut last = words.into_iter().rev().filter(|word| !word.is_empty());
    last.next() == Some("others")
        && last
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("and"))
}

/// The names of a list with the separator "and".
fn persons(list: &str) -> Vec<String> {
    let words = split_outside_braces(list, char::is_whitespace);
    words
        .split(|word| word.eq_ignore_ascii_case("and"))
        .map(|name| name.join(" "))
        .filter(|name| name.trim() != "others")
        .map(|name| family_first(&name, plain))
        .collect()
}

/// Adds each name of a list with the separator "and".
fn push_persons(core: &mut DublinCore, element: Element, list: &str) {
    for person in persons(list) {
        core.push(element, person);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(bytes: &[u8], expected: &str) {
        let record = DublinCore::from_bibtex(bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(record.to_text(), expected);
    }

    #[test]
    fn fields_without_an_element_are_kept() {
        let record = BibliographicRecord::from_bibtex(
            br#"@InProceedings{BanonBarr:2004:DiMaBa,
                author = "Banon, Gerald Jean Francis and Barrera, Junior",
                affiliation = "{Instituto Nacional de Pesquisas Espaciais (INPE)} and USP",
                title = "Discrete mathematical morphology", booktitle = "Proceedings...", year = "2004",
                editor = {Ana Silva and Faria, Luiz}, Pages = {1--9}, conference-location = "Curitiba, PR",
                url = "http://urlib.net/ibi/6qtX3pFwXQZ3r59YD6/GGJ5w", ibi = "6qtX3pFwXQZ3r59YD6/GGJ5w",
                targetfile = "banon\_mathematical.pdf", urlaccessdate = "2026, Mar. 03"}"#,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let fields: Vec<String> = record
            .fields()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(record.kind, Some(RecordKind::Paper));
        assert_eq!(
            fields,
            [
                "affiliation=Instituto Nacional de Pesquisas Espaciais (INPE) and USP",
                "booktitle=Proceedings...",
                "editor=Silva, Ana",
                "editor=Faria, Luiz",
                "pages=1–9",
                "conference-location=Curitiba, PR",
                "url=http://urlib.net/ibi/6qtX3pFwXQZ3r59YD6/GGJ5w",
                "ibi=6qtX3pFwXQZ3r59YD6/GGJ5w",
                "targetfile=banon_mathematical.pdf",
                "urlaccessdate=2026, Mar. 03",
            ]
        );
    }

    #[test]
    fn fields_become_elements() {
        let report = br#"% reference.bib
@TechReport{Banon:2009:IdIt,
  author = {Gerald Jean Francis Banon and Maria da Silva and {Instituto Nacional de Pesquisas Espaciais} and others},
  editor = "Ribeiro, Marciana Leite",
  title = {Identifica{\c c}{\~a}o de {\'\i}tens -- um {IBI}},
  institution = {INPE},
  type = {Relat\'orio},
  year = 2009, month = feb,
  keywords = {IBI, Archive; {a, b}},
  abstract = {One
              two.},
  language = {pt}, pages = {1--10},
  url = {http://urlib.net/LK47B6W/362SFKH}, ibi = {LK47B6W/362SFKH},
  doi = {10.1000/a\_b}, isbn = {978-85-17-00044-7}, ISSN = {0099-1112},
}"#;
        reads(
            report,
            "title: Identificação de ítens – um IBI\n\
             creator: Banon, Gerald Jean Francis\n\
             creator: da Silva, Maria\n\
             creator: Instituto Nacional de Pesquisas Espaciais\n\
             subject: IBI\n\
             subject: Archive\n\
             subject: a, b\n\
             description: One two.\n\
             publisher: INPE\n\
             contributor: Ribeiro, Marciana Leite\n\
             date: 2009-02\n\
             type: Text\n\
             type: Relatório\n\
             identifier: http://urlib.net/LK47B6W/362SFKH\n\
             identifier: LK47B6W/362SFKH\n\
             identifier: https://doi.org/10.1000/a_b\n\
             identifier: urn:isbn:978-85-17-00044-7\n\
             identifier: urn:issn:0099-1112\n\
             language: pt\n",
        );
        let cases: [(&[u8], &str); 5] = [
            (b"@misc{k}", "type: Text\n"),
            (
                b"@dataset{k, title={S\xe3o}, date={2009-02-16/2010}}",
                "title: São\ndate: 2009-02-16/2010\ntype: Dataset\n",
            ),
            (
                b"@article{k, title={A}, subtitle={B}, journal={J}, year={in press}}",
                "title: A: B\ndate: in press\ntype: Text\nsource: J\n",
            ),
            (
                b"@misc{k, author={A B AND C\nand\nD}}",
                "creator: B, A\ncreator: C\ncreator: D\ntype: Text\n",
            ),
            (
                b"@misc{k, howpublished={\\url{http://a.b/~c}}, author={and and}}",
                "type: Text\nidentifier: http://a.b/~c\n",
            ),
        ];
        for (bytes, expected) in cases {
            reads(bytes, expected);
        }
    }
}
