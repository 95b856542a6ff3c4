//! refer, the tagged lines `%A ...` of Unix bibliographies, with the tags that EndNote added, and the fields
//! `%@name ...` that URLib added.
//!
//! A line without a tag continues the previous one. A blank line before a tag ends the record; only the first
//! record of a file is read. Fields for which Dublin Core has no element are kept beside it.

use super::date::date;
use super::decode::decode;
use super::error::beginning;
use super::fields::push_subjects;
use super::names::{element_named, kept_named, push_named};
use super::person::family_first;
use super::record::is_said_by_core;
use super::{BibliographicRecord, DublinCore, Element, MetadataError, RecordKind, check_size};

impl DublinCore {
    /// Parses the first record of a refer file, in UTF-8 or else Windows-1252.
    pub fn from_refer(bytes: &[u8]) -> Result<DublinCore, MetadataError> {
        BibliographicRecord::from_refer(bytes).map(|record| record.core)
    }
}

impl BibliographicRecord {
    /// Parses the first record of a refer file, in UTF-8 or else Windows-1252.
    pub fn from_refer(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        check_size(bytes)?;
        let text = decode(bytes);
        let fields = first_record(&text);
        if fields.is_empty() {
            return Err(MetadataError::NoTag {
                text: beginning(&text),
            });
        }
        Ok(record(&fields))
    }
}

/// The tag of a line of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag<'a> {
    /// `%A`: a single sign.
    Sign(char),
    /// `%@name`: a field of URLib.
    Name(&'a str),
}

/// The tag of a line and its value.
pub(super) fn tagged(line: &str) -> Option<(Tag<'_>, &str)> {
    let rest = line.strip_prefix('%')?;
    if let Some(named) = rest.strip_prefix('@') {
        let end = named.find(char::is_whitespace).unwrap_or(named.len());
        let (name, value) = named.split_at(end);
        let belongs = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
        if name.starts_with(|sign: char| sign.is_ascii_alphabetic()) && name.chars().all(belongs) {
            return Some((Tag::Name(name), value));
        }
    }
    let mut signs = rest.chars();
    let tag = signs
        .next()
        .filter(|tag| tag.is_ascii_alphanumeric() || "@!#$&()[]<>+=?^~".contains(*tag))?;
    let value = signs.as_str();
    let is_tag = value.is_empty() || value.starts_with(char::is_whitespace);
    is_tag.then_some((Tag::Sign(tag), value))
}

fn first_record(text: &str) -> Vec<(Tag<'_>, String)> {
    let mut fields: Vec<(Tag<'_>, String)> = Vec::new();
    let mut after_blank = false;
    let mut typed = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            after_blank = true;
            continue;
        }
        if let Some((tag, value)) = tagged(line) {
            let is_type = tag == Tag::Sign('0');
            if (after_blank && !fields.is_empty()) || (is_type && typed) {
                break;
            }
            typed |= is_type;
            fields.push((tag, value.to_string()));
        } else if let Some((_, value)) = fields.last_mut() {
            value.push('\n');
            value.push_str(line);
        }
        after_blank = false;
    }
    fields
}

fn record(fields: &[(Tag<'_>, String)]) -> BibliographicRecord {
    let field = |wanted: char| {
        fields
            .iter()
            .find(|(tag, _)| *tag == Tag::Sign(wanted))
            .map_or("", |(_, value)| value.trim())
    };
    // The tag `%9` has the degree of a thesis.
    let kind = RecordKind::from_word(field('0')).map(|kind| kind.of_degree(field('9')));
    let mut record = BibliographicRecord::of_kind(kind);
    for (tag, value) in fields {
        let value = value.trim();
        match tag {
            Tag::Sign(sign) => add_sign(&mut record, *sign, value),
            Tag::Name(name) => add_named(&mut record, name, value),
        }
    }
    let core = &mut record.core;
    core.push(Element::Date, date(field('D'), field('8')));
    if core.first(Element::Date).is_none() {
        core.push(Element::Date, date(field('8'), field('8')));
    }
    record
}

/// Adds a field `%A value`.
fn add_sign(record: &mut BibliographicRecord, sign: char, value: &str) {
    let core = &mut record.core;
    match sign {
        'T' => core.push(Element::Title, value),
        'A' => core.push(Element::Creator, person(value)),
        'Q' => core.push(Element::Creator, value),
        'E' => record.push_contributor("editor", &person(value)),
        '?' => record.push_contributor("translator", &person(value)),
        'Y' | 'H' => core.push(Element::Contributor, person(value)),
        'X' => core.push(Element::Description, value),
        'Z' | 'O' => record.push_note(value),
        'K' => push_subjects(core, &value.replace('\n', ";"), str::to_string),
        'I' => record.push_publisher(value),
        '9' => core.push(Element::Type, value),
        'U' => record.push_identifier("url", value),
        // EndNote stores the DOI here, refer a report number.
        'R' if is_doi(value) => record.push_identifier("doi", value),
        'R' => core.push(Element::Identifier, value),
        '@' => record.push_isbn_or_issn(value),
        'J' | 'B' => core.push(Element::Source, value),
        'G' => core.push(Element::Language, value),
        _ => {}
    }
    match sign {
        '0' | 'T' | 'A' | 'Q' | 'E' | '?' | 'X' | 'Z' | 'O' | 'K' | 'I' | '9' | 'U' | '@' | 'G'
        | 'D' => {}
        'R' if is_doi(value) => {}
        'R' => record.keep("number", value),
        'J' => record.keep("journal", value),
        'B' => record.keep("booktitle", value),
        'V' => record.keep("volume", value),
        'N' => record.keep("number", value),
        'P' => record.keep("pages", value),
        'C' => record.keep("address", value),
        'S' => record.keep("series", value),
        '7' => record.keep("edition", value),
        '3' => record.keep("targetfile", value),
        '4' => record.keep("repository", value),
        '2' => record.keep("metadatarepository", value),
        'F' => record.keep("label", value),
        other => record.keep(&format!("%{other}"), value),
    }
}

/// Adds a field `%@name value`.
fn add_named(record: &mut BibliographicRecord, name: &str, value: &str) {
    if name.eq_ignore_ascii_case("orcid") {
        let (id, creator) = value.split_once(' ').unwrap_or((value, ""));
        record.keep_orcid(creator, id);
        return;
    }
    let Some(element) = element_named(name) else {
        record.keep(kept_named(name).unwrap_or(name), value);
        return;
    };
    match element {
        Element::Creator | Element::Contributor => record.core.push(element, person(value)),
        _ => push_named(&mut record.core, name, element, value),
    }
    if !is_said_by_core(element) {
        record.keep(name, value);
    }
}

fn is_doi(value: &str) -> bool {
    value.starts_with("10.") || value.to_ascii_lowercase().starts_with("doi:")
}

fn person(name: &str) -> String {
    family_first(name, str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_elements() {
        let cases: [(&[u8], &str); 8] = [
            (
                b"%0 Conference Proceedings\r\n%A Banon, Gerald Jean Francis\r\n%A Maria da Silva\r\n%E Ribeiro, M.\r\n\
                  %T Uma preven\xe7\xe3o\r\n  daquela s\xedndrome\r\n%D 2009\r\n%8 16-20 fev.\r\n%K IBI, Archive\r\nURLib\r\n\
                  %I INPE\r\n%U http://urlib.net/LK47B6W/362SFKH\r\n%R 10.1000/1\r\n%@ 0099-1112\r\n%B Anais\r\n%G pt\r\n\
                  %9 Artigo\r\n%X One.\r\n\r\nTwo.\r\n%P 1-9\r\n",
                "title: Uma prevenção daquela síndrome\ncreator: Banon, Gerald Jean Francis\n\
                 creator: da Silva, Maria\nsubject: IBI\nsubject: Archive\nsubject: URLib\ndescription: One. Two.\n\
                 publisher: INPE\ncontributor: Ribeiro, M.\ndate: 2009-02\ntype: Text\ntype: Artigo\n\
                 identifier: http://urlib.net/LK47B6W/362SFKH\nidentifier: https://doi.org/10.1000/1\n\
                 identifier: urn:issn:0099-1112\nsource: Anais\nlanguage: pt\n",
            ),
            (b"%T one\n\n%T two\n", "title: one\ntype: Text\n"),
            (b"%0 Map\n%T one\n%0 Book\n%T two\n", "title: one\ntype: Image\n"),
            (b"\n\nlost\n%T one\n", "title: one\ntype: Text\n"),
            (b"%Q INPE, Brasil\n%A INPE,\n", "creator: INPE, Brasil\ncreator: INPE\ntype: Text\n"),
            (b"%8 2009-02-16\n%R INPE-1234", "date: 2009-02-16\ntype: Text\nidentifier: INPE-1234\n"),
            (b"%T\n%T ", "type: Text\n"),
            (b"\xef\xbb\xbf%T S\xc3\xa3o", "title: São\ntype: Text\n"),
        ];
        for (bytes, expected) in cases {
            let record = DublinCore::from_refer(bytes).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(record.to_text(), expected);
        }
    }

    #[test]
    fn fields_of_urlib_are_fields_of_their_own() {
        let record = BibliographicRecord::from_refer(
            b"%0 Thesis\r\n%4 sid.inpe.br/mtc-m17@80/2008/04.15.13.39\r\n%T Avalia\xe7\xe3o da metodologia\r\n\
              %@electronicmailaddress a@b.br\r\n%A Fran\xe7a, V. D. J.,\r\n%@affiliation Instituto Nacional\r\n  de Pesquisas\r\n\
              %@affiliation Outro\r\n%9 Disserta\xe7\xe3o (Mestrado)\r\n%@language pt\r\n%@doi 10.1000/1\r\n\
              %@supervisor Banon, Gerald,\r\n%P 172\r\n%3 a.pdf\r\n%@ 978-85-17-00044-7\r\n%@Group MET\r\n%z x\r\n%D 2008\r\n\
              %@rightsholder INPE\r\n%@x",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(record.kind, Some(RecordKind::MastersThesis));
        assert_eq!(
            record.core.to_text(),
            "title: Avaliação da metodologia\ncreator: França, V. D. J.\ncontributor: Banon, Gerald\ndate: 2008\ntype: Text\n\
             type: Dissertação (Mestrado)\nidentifier: https://doi.org/10.1000/1\nidentifier: urn:isbn:978-85-17-00044-7\n\
             language: pt\nrights: INPE\n"
        );
        let fields: Vec<String> = record
            .fields()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            fields,
            [
                "repository=sid.inpe.br/mtc-m17@80/2008/04.15.13.39",
                "electronicmailaddress=a@b.br",
                "affiliation=Instituto Nacional de Pesquisas",
                "affiliation=Outro",
                "doi=10.1000/1",
                "supervisor=Banon, Gerald,",
                "pages=172",
                "targetfile=a.pdf",
                "isbn=978-85-17-00044-7",
                "group=MET",
                "%z=x",
            ]
        );
    }

    #[test]
    fn a_tag_is_a_sign_or_a_name() {
        for (line, expected) in [
            ("%T x", Some((Tag::Sign('T'), " x"))),
            ("%@ 1", Some((Tag::Sign('@'), " 1"))),
            ("%@", Some((Tag::Sign('@'), ""))),
            ("%@a-b\tx", Some((Tag::Name("a-b"), "\tx"))),
            ("%@name", Some((Tag::Name("name"), ""))),
            ("%@1 x", None),
            ("%@a,b x", None),
            ("%TT x", None),
            (" %T x", None),
            ("%", None),
        ] {
            assert_eq!(tagged(line), expected, "{line}");
        }
    }

    #[test]
    fn files_without_tags_are_refused() {
        for (bytes, quoted) in [
            ("", "''"),
            ("\nhello\n", "'hello'"),
            ("%PDF-1.4", "'%PDF-1.4'"),
            ("% x", "'% x'"),
        ] {
            let error = DublinCore::from_refer(bytes.as_bytes()).expect_err(bytes);
            let expected =
                format!("the refer record has no line that begins with '%' and a tag: {quoted}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
