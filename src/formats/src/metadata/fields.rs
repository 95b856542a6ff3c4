//! Conversion of bibliographic fields to values of Dublin Core, shared by BibTeX and refer.
//!
//! Standard numbers are written as the URIs registered for them, which makes them self-describing. They are
//! not validated.

use super::person::split_outside_braces;
use super::{DublinCore, Element};

/// Adds each keyword of a list, separated by commas, semicolons or line ends, as a subject.
pub(super) fn push_subjects(record: &mut DublinCore, list: &str, plain: impl Fn(&str) -> String) {
    for keyword in split_outside_braces(list, |character| matches!(character, ',' | ';')) {
        record.push(Element::Subject, plain(keyword));
    }
}

/// A DOI as a URL.
pub(super) fn doi(text: &str) -> String {
    let text = text.trim();
    let bare = without_word(text, "doi:");
    if bare.is_empty() || is_url(text) {
        text.to_string()
    } else {
        format!("https://doi.org/{bare}")
    }
}

/// An ISBN as a URN.
pub(super) fn isbn(text: &str) -> String {
    urn("urn:isbn:", without_word(text, "isbn"))
}

/// An ISSN as a URN.
pub(super) fn issn(text: &str) -> String {
    urn("urn:issn:", without_word(text, "issn"))
}

/// Whether a number that is either an ISSN or an ISBN is the first, which has eight digits.
pub(super) fn is_issn(text: &str) -> bool {
    let is_digit = |sign: &char| sign.is_ascii_digit() || matches!(sign, 'x' | 'X');
    text.chars().filter(is_digit).count() == 8
}

/// Whether a text is an `http` or `https` URL.
pub(super) fn is_url(text: &str) -> bool {
    starts_with_word(text, "http://") || starts_with_word(text, "https://")
}

/// A number as a URN; other text ("to appear", two numbers in a sentence) is returned unchanged.
fn urn(scheme: &str, text: &str) -> String {
    let is_number = !text.is_empty()
        && text
            .chars()
            .all(|sign| sign.is_ascii_digit() || matches!(sign, '-' | 'x' | 'X'));
    if is_number {
        format!("{scheme}{text}")
    } else {
        text.to_string()
    }
}

fn without_word<'a>(text: &'a str, word: &str) -> &'a str {
    let text = text.trim();
    if starts_with_word(text, word) {
        text[word.len()..].trim_start_matches([':', ' '])
    } else {
        text
    }
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|beginning| beginning.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_uris() {
        type Write = fn(&str) -> String;
        let cases: [(Write, &str, &str); 9] = [
            (doi, "10.1000/182", "https://doi.org/10.1000/182"),
            (doi, "DOI: 10.1000/182", "https://doi.org/10.1000/182"),
            (
                doi,
                "https://doi.org/10.1000/182",
                "https://doi.org/10.1000/182",
            ),
            (doi, " ", ""),
            (isbn, "978-85-17-00044-7", "urn:isbn:978-85-17-00044-7"),
            (isbn, "ISBN 85-17-00044-X", "urn:isbn:85-17-00044-X"),
            (isbn, "none", "none"),
            (issn, "0099-1112", "urn:issn:0099-1112"),
            (isbn, "ção", "ção"),
        ];
        for (write, text, expected) in cases {
            assert_eq!(write(text), expected, "{text}");
        }
        assert!(is_issn("0099-111X") && !is_issn("9788517000447") && !is_issn("ção"));
    }
}
