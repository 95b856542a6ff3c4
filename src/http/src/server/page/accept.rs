//! The reader's preferences, from the headers `Accept` and `Accept-Language`.
//!
//! Parsing is lenient: malformed ranges are skipped, and a request that accepts none of the available forms
//! or languages gets the first one.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, ACCEPT_LANGUAGE, HeaderName};

use super::Words;
use crate::server::preference::{BEST, quality, ranges, thousandths};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// A page.
    Html,
    /// A JSON object.
    Json,
    /// Plain text.
    Text,
}

impl Representation {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Representation::Html => "text/html",
            Representation::Json => "application/json",
            Representation::Text => "text/plain",
        }
    }
}

/// The preferred form of those available, the first among equals.
pub fn form(headers: &HeaderMap, there_are: &[Representation]) -> Representation {
    let ranges = weighted(headers, &ACCEPT);
    best(there_are, |form| weight_of(&ranges, form.media_type())).unwrap_or(Representation::Html)
}

/// Whether a form is named explicitly, not through a wildcard.
pub fn names(headers: &HeaderMap, form: Representation) -> bool {
    let ranges = weighted(headers, &ACCEPT);
    ranges
        .iter()
        .any(|(range, weight)| range == form.media_type() && *weight > 0)
}

/// The media types that a request accepts, read once for several questions.
pub struct Accepted(Vec<(String, u16)>);

impl Accepted {
    /// The media types in the headers of a request.
    pub fn by(headers: &HeaderMap) -> Accepted {
        Accepted(weighted(headers, &ACCEPT))
    }

    /// Whether no type is named in full.
    pub fn names_none(&self) -> bool {
        self.0.iter().all(|(range, _)| range.ends_with('*'))
    }

    /// The weight of a media type that is named in full, in thousandths; 0 if only a wildcard matches it.
    pub fn weight_of_named(&self, media_type: &str) -> u16 {
        let named = self.0.iter().filter(|(range, _)| range == media_type);
        named.map(|(_, weight)| *weight).max().unwrap_or_default()
    }

    /// The weight of a media type, in thousandths. A request without the header accepts every type.
    pub fn weight(&self, media_type: &str) -> u16 {
        if self.0.is_empty() {
            BEST
        } else {
            weight_of(&self.0, media_type)
        }
    }
}

/// The texts in the preferred language, the first among equals.
pub fn words<W: Words>(headers: &HeaderMap, there_are: [&'static W; 2]) -> &'static W {
    let ranges = weighted(headers, &ACCEPT_LANGUAGE);
    let [first, _] = there_are;
    best(&there_are, |words| {
        let is_it = |range: &str| range == "*" || range.split('-').next() == Some(words.tag());
        let found = ranges.iter().filter(|(range, _)| is_it(range));
        // A named language has precedence over the wildcard.
        found
            .max_by_key(|(range, weight)| (range != "*", *weight))
            .map_or(0, |(_, weight)| *weight)
    })
    .unwrap_or(first)
}

fn best<T: Copy>(of: &[T], weight: impl Fn(&T) -> u16) -> Option<T> {
    let mut found: Option<(T, u16)> = None;
    for one in of {
        let weight = weight(one);
        if weight > found.map_or(0, |(_, known)| known) {
            found = Some((*one, weight));
        }
    }
    found.map(|(one, _)| one)
}

/// The weight of a media type, from the most specific range that matches.
fn weight_of(ranges: &[(String, u16)], media_type: &str) -> u16 {
    let whole = media_type.split('/').next().unwrap_or_default();
    let closeness = |range: &str| match range.strip_suffix("/*") {
        Some("*") => Some(0),
        Some(kind) => (kind == whole).then_some(1),
        // Some old libraries write the wildcard so.
        None if range == "*" => Some(0),
        None => (range == media_type).then_some(2),
    };
    let fitting = ranges
        .iter()
        .filter_map(|(range, weight)| closeness(range).map(|close| (close, *weight)));
    fitting.max().map_or(0, |(_, weight)| weight)
}

/// The ranges of a header, in lower case, each with its weight in thousandths.
fn weighted(headers: &HeaderMap, name: &HeaderName) -> Vec<(String, u16)> {
    let ranges = ranges(headers, name).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let range = parts.next()?.to_ascii_lowercase();
        let weight = parts.find_map(quality).and_then(thousandths);
        (!range.is_empty()).then(|| (range, weight.unwrap_or(BEST)))
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn header(name: HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).expect(value));
        headers
    }

    #[test]
    fn forms_by_weight_and_closeness() {
        const ALL: [Representation; 3] = [
            Representation::Html,
            Representation::Json,
            Representation::Text,
        ];
        let cases = [
            ("*/*", Representation::Html),
            ("*", Representation::Html),
            ("", Representation::Html),
            ("image/png", Representation::Html),
            ("application/json", Representation::Json),
            ("APPLICATION/JSON;charset=utf-8", Representation::Json),
            ("text/html;q=0.5, application/json", Representation::Json),
            ("text/html, application/json;q=0.9", Representation::Html),
            ("application/json;q=0, */*", Representation::Html),
            ("text/html;q=0, */*;q=0.1", Representation::Json),
            ("text/*", Representation::Html),
            ("text/*;q=0.2, text/plain", Representation::Text),
            (
                "text/plain ; Q = 0.7 , text/html;q=0.3",
                Representation::Text,
            ),
            ("application/json;q=much", Representation::Json),
            ("application/json;q=NaN", Representation::Json),
            (",;,;;q=1,text/plain", Representation::Text),
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                Representation::Html,
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(form(&header(ACCEPT, value), &ALL), expected, "{value}");
        }
        assert_eq!(form(&HeaderMap::new(), &ALL), Representation::Html);
        let two = [Representation::Html, Representation::Json];
        assert_eq!(
            form(&header(ACCEPT, "text/plain"), &two),
            Representation::Html
        );
    }

    struct Tag(&'static str);

    impl Words for Tag {
        fn tag(&self) -> &'static str {
            self.0
        }
    }

    static BOTH: [&Tag; 2] = [&Tag("en"), &Tag("pt")];

    #[test]
    fn languages_by_weight() {
        let cases = [
            ("pt", "pt"),
            ("pt-BR,pt;q=0.9,en;q=0.8", "pt"),
            ("PT-br", "pt"),
            ("en-GB,pt", "en"),
            ("en;q=0.3,pt;q=0.4", "pt"),
            ("fr, pt;q=0.2", "pt"),
            ("fr", "en"),
            ("*", "en"),
            ("pt;q=0.1,*", "en"),
            ("en;q=0,*", "pt"),
            ("pt;q=0", "en"),
            ("ptx", "en"),
        ];
        for (value, expected) in cases {
            let found = words(&header(ACCEPT_LANGUAGE, value), BOTH);
            assert_eq!(found.0, expected, "{value}");
        }
        assert_eq!(words(&HeaderMap::new(), BOTH).0, "en");
    }
}
