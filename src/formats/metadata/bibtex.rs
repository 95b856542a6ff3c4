//! BibTeX as a source of Dublin Core: the mapping from fields to elements.
//!
//! The first entry of a file is the record. Fields of BibTeX and biblatex are known, and the field `ibi`,
//! which Archives write into citations. Fields that do not describe the item as a whole are ignored.

mod parse;

use super::date::date;
use super::decode::decode;
use super::fields::{doi, is_url, isbn, issn, push_subjects};
use super::person::{family_first, split_outside_braces};
use super::tex::{plain, verbatim};
use super::{DublinCore, Element, MetadataError, check_size};
use parse::{Entry, first_entry};

impl DublinCore {
    /// Parses the first entry of a BibTeX file, in UTF-8 or else Windows-1252.
    pub fn from_bibtex(bytes: &[u8]) -> Result<DublinCore, MetadataError> {
        check_size(bytes)?;
        Ok(record(&first_entry(&decode(bytes))?))
    }
}

fn record(entry: &Entry) -> DublinCore {
    let field = |wanted: &str| {
        let found = entry.fields.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value.as_str())
    };
    let mut record = DublinCore::default();
    record.push(Element::Type, dcmi_type(&entry.kind));
    let (title, subtitle) = (plain(field("title")), plain(field("subtitle")));
    record.push(
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
    record.push(Element::Language, plain(language));
    for (name, value) in &entry.fields {
        match name.as_str() {
            "author" => push_persons(&mut record, Element::Creator, value),
            "editor" | "translator" => push_persons(&mut record, Element::Contributor, value),
            "abstract" | "note" | "annote" => record.push(Element::Description, plain(value)),
            "keywords" | "keyword" => push_subjects(&mut record, value, plain),
            "publisher" | "school" | "institution" | "organization" => {
                record.push(Element::Publisher, plain(value));
            }
            "url" | "ibi" => record.push(Element::Identifier, verbatim(value)),
            "howpublished" if is_url(&verbatim(value)) => {
                record.push(Element::Identifier, verbatim(value));
            }
            "doi" => record.push(Element::Identifier, doi(&verbatim(value))),
            "isbn" => record.push(Element::Identifier, isbn(&plain(value))),
            "issn" => record.push(Element::Identifier, issn(&plain(value))),
            "journal" | "journaltitle" | "booktitle" => record.push(Element::Source, plain(value)),
            "type" => record.push(Element::Type, plain(value)),
            "copyright" | "license" | "rights" => record.push(Element::Rights, plain(value)),
            _ => {}
        }
    }
    // A date of biblatex may be a range; the record gets its beginning.
    let day = field("date").split('/').next().unwrap_or_default();
    let year = if day.is_empty() { field("year") } else { day };
    record.push(Element::Date, date(&plain(year), &plain(field("month"))));
    record
}

/// Adds each name of a list with the separator "and".
fn push_persons(record: &mut DublinCore, element: Element, list: &str) {
    let words = split_outside_braces(list, char::is_whitespace);
    for name in words.split(|word| word.eq_ignore_ascii_case("and")) {
        let name = name.join(" ");
        if name.trim() != "others" {
            record.push(element, family_first(&name, plain));
        }
    }
}

/// The term of the DCMI type vocabulary for a type of entry.
fn dcmi_type(kind: &str) -> &'static str {
    match kind {
        "dataset" => "Dataset",
        "software" => "Software",
        "artwork" | "image" => "Image",
        "audio" | "music" => "Sound",
        "movie" | "video" => "MovingImage",
        _ => "Text",
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
                "title: São\ndate: 2009-02-16\ntype: Dataset\n",
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
