//! What a reader wants of an item by its persistent name, from the header `Accept` (RFC 9110, section 12.5.1): a
//! description in a format of citation programs and catalogues, or what every reader gets.

use axum::http::HeaderMap;

use crate::formats::description::DescriptionFormat;
use crate::web::server::page::accept::{Accepted, Representation};

/// The formats that are negotiated, each by its media type. Of two formats with one type, the first.
const NEGOTIATED: [DescriptionFormat; 8] = [
    DescriptionFormat::Bibtex,
    DescriptionFormat::Ris,
    DescriptionFormat::Csl,
    DescriptionFormat::JsonLd,
    DescriptionFormat::Datacite,
    DescriptionFormat::DataciteJson,
    DescriptionFormat::Refer,
    DescriptionFormat::OaiDc,
];

/// The media type of a format, without parameters.
pub(super) fn media_type(format: DescriptionFormat) -> &'static str {
    let whole = format.media_type();
    whole.split(';').next().unwrap_or(whole)
}

/// The format that a request names and does not prefer pages to; None if it wants what every reader gets. A
/// wildcard names no format.
pub(crate) fn description(headers: &HeaderMap) -> Option<DescriptionFormat> {
    let accepted = Accepted::by(headers);
    if accepted.names_none() {
        return None;
    }
    let pages = [Representation::Html, Representation::Json];
    let page = pages.map(|form| accepted.weight_of_named(form.media_type()));
    let page = page.into_iter().max().unwrap_or_default();
    let mut best: Option<(DescriptionFormat, u16)> = None;
    for format in NEGOTIATED {
        // Old browsers name XML before HTML, and mean pages.
        if format == DescriptionFormat::OaiDc && page > 0 {
            continue;
        }
        let weight = accepted.weight_of_named(media_type(format));
        if weight > page && weight > best.map_or(0, |(_, known)| known) {
            best = Some((format, weight));
        }
    }
    best.map(|(format, _)| format)
}

/// Whether a request accepts one of these media types.
pub(super) fn accepts(headers: &HeaderMap, media_types: &[&str]) -> bool {
    let accepted = Accepted::by(headers);
    media_types
        .iter()
        .any(|media_type| accepted.weight(media_type) > 0)
}

/// The sentence of a refusal.
pub(super) fn refusal() -> String {
    let types = NEGOTIATED.map(media_type);
    format!(
        "this item is not there in any media type that the request accepts; it is in text/html, application/json, {}",
        types.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::ACCEPT;

    use super::*;

    fn header(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_str(value).expect(value));
        headers
    }

    #[test]
    fn only_what_is_named_is_negotiated() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
        for (value, expected) in [
            ("application/x-bibtex", Some(DescriptionFormat::Bibtex)),
            (
                "Application/X-BibTeX; charset=utf-8",
                Some(DescriptionFormat::Bibtex),
            ),
            (
                "application/x-research-info-systems",
                Some(DescriptionFormat::Ris),
            ),
            (
                "application/vnd.citationstyles.csl+json, */*;q=0.1",
                Some(DescriptionFormat::Csl),
            ),
            (
                "application/ld+json;q=0.5, application/x-bibtex;q=0.6",
                Some(DescriptionFormat::Bibtex),
            ),
            (
                "application/ld+json, text/html;q=0.9",
                Some(DescriptionFormat::JsonLd),
            ),
            ("text/html, application/ld+json", None),
            ("application/ld+json;q=0.5, application/json", None),
            ("application/xml", Some(DescriptionFormat::OaiDc)),
            ("application/x-bibtex;q=0", None),
            (browser, None),
            (
                "application/xml,application/xhtml+xml,text/html;q=0.9,*/*;q=0.5",
                None,
            ),
            ("*/*", None),
            ("application/*", None),
            ("", None),
        ] {
            assert_eq!(description(&header(value)), expected, "{value}");
        }
        assert_eq!(description(&HeaderMap::new()), None);
    }

    #[test]
    fn a_request_without_the_header_accepts_all() {
        assert!(accepts(&HeaderMap::new(), &["text/html"]));
        assert!(accepts(&header("text/*"), &["text/html"]));
        assert!(!accepts(
            &header("image/png"),
            &["text/html", "application/json"]
        ));
        assert!(!accepts(&header("text/html;q=0, */*"), &["text/html"]));
    }
}
