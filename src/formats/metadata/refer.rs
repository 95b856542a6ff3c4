//! refer, the tagged lines `%A ...` of Unix bibliographies, with the tags that EndNote added.
//!
//! A line without a tag continues the previous one. A blank line before a tag ends the record; only the first
//! record of a file is read. Tags that do not describe the item as a whole are ignored.

use super::date::date;
use super::decode::decode;
use super::error::beginning;
use super::fields::{doi, isbn_or_issn, push_subjects};
use super::person::family_first;
use super::{DublinCore, Element, MetadataError, check_size};

impl DublinCore {
    /// Parses the first record of a refer file, in UTF-8 or else Windows-1252.
    pub fn from_refer(bytes: &[u8]) -> Result<DublinCore, MetadataError> {
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

/// The tag of a line and its value.
pub(super) fn tagged(line: &str) -> Option<(char, &str)> {
    let mut rest = line.strip_prefix('%')?.chars();
    let tag = rest
        .next()
        .filter(|tag| tag.is_ascii_alphanumeric() || "@!#$&()[]<>+=?^~".contains(*tag))?;
    let value = rest.as_str();
    (value.is_empty() || value.starts_with(char::is_whitespace)).then_some((tag, value))
}

fn first_record(text: &str) -> Vec<(char, String)> {
    let mut fields: Vec<(char, String)> = Vec::new();
    let mut after_blank = false;
    let mut typed = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            after_blank = true;
            continue;
        }
        if let Some((tag, value)) = tagged(line) {
            if (after_blank && !fields.is_empty()) || (tag == '0' && typed) {
                break;
            }
            typed |= tag == '0';
            fields.push((tag, value.to_string()));
        } else if let Some((_, value)) = fields.last_mut() {
            value.push('\n');
            value.push_str(line);
        }
        after_blank = false;
    }
    fields
}

fn record(fields: &[(char, String)]) -> DublinCore {
    let field = |wanted: char| {
        fields
            .iter()
            .find(|(tag, _)| *tag == wanted)
            .map_or("", |(_, value)| value.trim())
    };
    let mut record = DublinCore::default();
    record.push(Element::Type, dcmi_type(field('0')));
    for (tag, value) in fields {
        let value = value.trim();
        match tag {
            'T' => record.push(Element::Title, value),
            'A' => record.push(Element::Creator, person(value)),
            'Q' => record.push(Element::Creator, value),
            'E' | 'Y' | 'H' | '?' => record.push(Element::Contributor, person(value)),
            'X' | 'Z' | 'O' => record.push(Element::Description, value),
            'K' => push_subjects(&mut record, &value.replace('\n', ";"), str::to_string),
            'I' => record.push(Element::Publisher, value),
            '9' => record.push(Element::Type, value),
            'U' => record.push(Element::Identifier, value),
            // EndNote stores the DOI here, refer a report number.
            'R' if value.starts_with("10.") || value.to_ascii_lowercase().starts_with("doi:") => {
                record.push(Element::Identifier, doi(value));
            }
            'R' => record.push(Element::Identifier, value),
            '@' => record.push(Element::Identifier, isbn_or_issn(value)),
            'J' | 'B' => record.push(Element::Source, value),
            'G' => record.push(Element::Language, value),
            _ => {}
        }
    }
    record.push(Element::Date, date(field('D'), field('8')));
    if record.first(Element::Date).is_none() {
        record.push(Element::Date, date(field('8'), field('8')));
    }
    record
}

fn person(name: &str) -> String {
    family_first(name, str::to_string)
}

/// The term of the DCMI type vocabulary for a type of EndNote.
fn dcmi_type(kind: &str) -> &'static str {
    match kind.to_ascii_lowercase().as_str() {
        "dataset" | "online database" => "Dataset",
        "computer program" => "Software",
        "artwork" | "figure" | "chart or table" | "map" => "Image",
        "music" => "Sound",
        "film or broadcast" | "audiovisual material" => "MovingImage",
        _ => "Text",
    }
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
