//! The query string of a persistent URL and of the services, see ibi-resolution(7): pairs of name and value.
//! A form of the registration protocol is the same, with names that may repeat.

use std::fmt;

use ibi::Quoted;

/// The most pairs of a query.
const MOST_PAIRS: usize = 64;
/// The most pairs of a form.
const MOST_FIELDS: usize = 256;

/// The pairs of a query string, in their order.
///
/// ```text
/// query = [pair *("&" pair)]
/// pair  = name "=" value      ; %hh for what has a meaning or is not ASCII; "+" is a space
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, Vec<u8>)>,
}

/// The reason why a query string is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// There are more pairs than this.
    TooMany(usize),
    /// A name occurs twice, with different values.
    Twice(String),
    /// A `%` is not followed by two hexadecimal digits, or what they encode is not UTF-8. The value of a
    /// [`Query`] need not be UTF-8, as the path of a file.
    Encoding(String),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::TooMany(most) => write!(f, "the query has more than {most} pairs"),
            QueryError::Twice(name) => write!(f, "{} is in the query twice", Quoted(name)),
            QueryError::Encoding(text) => write!(
                f,
                "{} in the query is not percent-encoded UTF-8; write % as %25",
                Quoted(text)
            ),
        }
    }
}

impl std::error::Error for QueryError {}

impl Query {
    /// Parses a query string, without its `?`.
    ///
    /// # Errors
    /// Too many pairs, a name with two values, an invalid percent-encoding.
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        let mut query = Query::default();
        for pair in pairs(text) {
            if query.pairs.len() == MOST_PAIRS {
                return Err(QueryError::TooMany(MOST_PAIRS));
            }
            let (name, value) = pair;
            let (name, value) = (decoded(name)?, decoded_bytes(value)?);
            match query.get_bytes(&name) {
                Some(known) if known != value => return Err(QueryError::Twice(name)),
                Some(_) => {}
                None => query.pairs.push((name, value)),
            }
        }
        Ok(query)
    }

    /// The value of a name, if it is UTF-8.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.get_bytes(name)?).ok()
    }

    /// The bytes of the value of a name.
    #[must_use]
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        let pair = self.pairs.iter().find(|(known, _)| known == name);
        pair.map(|(_, value)| value.as_slice())
    }
}

/// All pairs of a form, in their order. Repetition and order are significant, as for the metadata of a
/// document in a registration. The syntax is that of a [`Query`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormFields {
    pairs: Vec<(String, String)>,
}

impl FormFields {
    /// Parses a query string, without its `?`, or the body of a form.
    ///
    /// # Errors
    /// Too many pairs, an invalid percent-encoding.
    pub fn parse(text: &str) -> Result<FormFields, QueryError> {
        let mut fields = FormFields::default();
        for pair in pairs(text) {
            if fields.pairs.len() == MOST_FIELDS {
                return Err(QueryError::TooMany(MOST_FIELDS));
            }
            let (name, value) = pair;
            fields.pairs.push((decoded(name)?, decoded(value)?));
        }
        Ok(fields)
    }

    /// The pairs, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// A URL with the pairs of the query of a persistent URL that are for the item itself, as a Web service: all but those
/// of the system, `ibiurl.*`.
#[must_use]
pub fn with_pairs(mut url: String, query: &str) -> String {
    let is_passed = |pair: &&str| {
        let name = pair
            .split_once('=')
            .and_then(|(name, _)| decoded(name).ok());
        name.is_some_and(|name| !name.starts_with("ibiurl."))
    };
    for pair in query.trim_start_matches('?').split('&').filter(is_passed) {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(pair);
    }
    url
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn decoded_bytes(text: &str) -> Result<Vec<u8>, QueryError> {
    let spaced = text.replace('+', " ");
    let refuse = || QueryError::Encoding(text.to_owned());
    percent_decoded_bytes(&spaced).ok_or_else(refuse)
}

fn decoded(text: &str) -> Result<String, QueryError> {
    let spaced = text.replace('+', " ");
    let refuse = || QueryError::Encoding(text.to_owned());
    percent_decoded(&spaced).ok_or_else(refuse)
}

/// A text without percent-encoding; None if the encoding is invalid, or the bytes are not UTF-8.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<String> {
    String::from_utf8(percent_decoded_bytes(text)?).ok()
}

/// Like [`percent_decoded`], for a value that need not be UTF-8, such as the path of a file.
#[must_use]
pub fn percent_decoded_bytes(text: &str) -> Option<Vec<u8>> {
    let is_good = text.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    is_good.then(|| percent_encoding::percent_decode_str(text).collect())
}

/// Characters that a value of a persistent URL has unencoded: unreserved ones, and those of identifiers,
/// modifiers and paths.
const PLAIN: percent_encoding::AsciiSet = percent_encoding::NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'(')
    .remove(b')')
    .remove(b'!')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'$')
    .remove(b'\'');

/// A value, or a path, as it is written in a URL: space `%20`, `%` `%25`, `&` `%26`, `+` `%2B`, `=` `%3D`,
/// `?` `%3F`.
#[must_use]
pub fn encoded(bytes: &[u8]) -> String {
    percent_encoding::percent_encode(bytes, &PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn good(text: &str, pairs: &[(&str, &str)]) {
        let query = Query::parse(text).expect(text);
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        assert_eq!(query.pairs, pairs);
    }

    #[track_caller]
    fn bad(text: &str, sentence: &str) {
        let error = Query::parse(text).expect_err(text);
        assert_eq!(error.to_string(), sentence);
    }

    #[test]
    fn queries() {
        good("", &[]);
        good("a=1&&b=", &[("a", "1"), ("b", "")]);
        good("a", &[("a", "")]);
        good(
            "t=1997-07-16T19:20%2B01:00",
            &[("t", "1997-07-16T19:20+01:00")],
        );
        good(
            "ibiurl.verblist=GetLastEdition+GetMetadata(oai_dc)",
            &[("ibiurl.verblist", "GetLastEdition GetMetadata(oai_dc)")],
        );
        good("a=x%20y%3d&a=x+y%3D", &[("a", "x y=")]);
        bad("a=1&a=2", "'a' is in the query twice");
        bad(
            "a=%",
            "'%' in the query is not percent-encoded UTF-8; write % as %25",
        );
        bad(
            "%f3=a",
            "'%f3' in the query is not percent-encoded UTF-8; write % as %25",
        );
        let latin = Query::parse("a=Relat%f3rio+x&b=1").expect("a query");
        assert_eq!(latin.get_bytes("a"), Some(&b"Relat\xf3rio x"[..]));
        assert_eq!((latin.get("a"), latin.get("b")), (None, Some("1")));
        let many: Vec<String> = (0..65).map(|number| format!("{number}=")).collect();
        bad(&many.join("&"), "the query has more than 64 pairs");
    }

    #[test]
    fn a_form_keeps_what_repeats_and_its_order() {
        let fields = FormFields::parse("a=1&b=%C3%A9+x&&a=2&a=1&c").expect("a form");
        let expected = [
            ("a", "1"),
            ("b", "\u{e9} x"),
            ("a", "2"),
            ("a", "1"),
            ("c", ""),
        ];
        assert_eq!(fields.iter().collect::<Vec<_>>(), expected);
        assert_eq!(
            FormFields::parse("a=%").expect_err("no encoding"),
            QueryError::Encoding("%".to_owned())
        );
        assert!(FormFields::parse(&"a=&".repeat(256)).is_ok());
        let error = FormFields::parse(&"a=&".repeat(257)).expect_err("too many");
        assert_eq!(error.to_string(), "the query has more than 256 pairs");
    }

    #[test]
    fn values_are_written_as_spec_7_says() {
        assert_eq!(encoded(b" %&+=?"), "%20%25%26%2B%3D%3F");
        assert_eq!(
            encoded("doc/Relat\u{f3}rio.pdf".as_bytes()),
            "doc/Relat%C3%B3rio.pdf"
        );
        assert_eq!(
            encoded(b"sid.inpe.br/mtc-m18@80/2009/02.16.17.46"),
            "sid.inpe.br/mtc-m18@80/2009/02.16.17.46"
        );
    }
}
