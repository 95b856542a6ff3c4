//! The wish of a reader of an item by its persistent name, from the header `Accept` (RFC 9110, section 12.5.1): a
//! description in a format of citation programs and catalogues, or what every reader gets.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::preference::ranges;
use crate::server::page::accept::{Accepted, Representation};
use ibifs_formats::description::DescriptionFormat;

/// The document that is sent in place of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negotiated {
    /// A description, under this media type.
    Format(DescriptionFormat, &'static str),
    /// Dublin Core in RDF.
    Turtle,
    /// A citation, in the style that the range names.
    Citation,
}

/// The media type of Dublin Core in RDF.
pub const TURTLE: &str = "text/turtle";
/// The media type of a citation.
pub const CITATION: &str = "text/x-bibliography";

/// The documents that can be negotiated, each by its media type. Of two formats with one type, the first.
fn negotiated() -> impl Iterator<Item = (&'static str, Negotiated)> {
    let formats = [
        DescriptionFormat::Bibtex,
        DescriptionFormat::Ris,
        DescriptionFormat::Csl,
        DescriptionFormat::JsonLd,
        DescriptionFormat::Datacite,
        DescriptionFormat::DataciteJson,
        DescriptionFormat::Refer,
        DescriptionFormat::OaiDc,
        DescriptionFormat::Mods,
        DescriptionFormat::Cff,
    ];
    let formats = formats.map(|format| (format, media_type(format)));
    let others = [(DescriptionFormat::Bibtex, "application/bibtex")];
    let formats = formats.into_iter().chain(others);
    formats
        .map(|(format, kind)| (kind, Negotiated::Format(format, kind)))
        .chain([
            (TURTLE, Negotiated::Turtle),
            (CITATION, Negotiated::Citation),
        ])
}

/// The media type of a format, without parameters.
pub fn media_type(format: DescriptionFormat) -> &'static str {
    let whole = format.media_type();
    whole.split(';').next().unwrap_or(whole)
}

/// The style of citations that a request names, as `text/x-bibliography; style=abnt`.
pub fn citation_style(headers: &HeaderMap) -> Option<&str> {
    ranges(headers, &ACCEPT).find_map(|range| {
        let mut words = range.split(';').map(str::trim);
        let is_citation = words.next()?.eq_ignore_ascii_case(CITATION);
        let style = words.find_map(|word| word.strip_prefix("style="));
        style.filter(|_| is_citation)
    })
}

/// The document that a request names and does not prefer pages to; None if it wants what every reader gets. A wildcard names nothing.
pub fn description(headers: &HeaderMap) -> Option<Negotiated> {
    let accepted = Accepted::by(headers);
    if accepted.names_none() {
        return None;
    }
    let pages = [Representation::Html, Representation::Json];
    let page = pages.map(|form| accepted.weight_of_named(form.media_type()));
    let page = page.into_iter().max().unwrap_or_default();
    let mut best: Option<(Negotiated, u16)> = None;
    for (kind, format) in negotiated() {
        // Old browsers name XML before HTML, and mean pages.
        if matches!(format, Negotiated::Format(DescriptionFormat::OaiDc, _)) && page > 0 {
            continue;
        }
        let weight = accepted.weight_of_named(kind);
        if weight > page && weight > best.map_or(0, |(_, known)| known) {
            best = Some((format, weight));
        }
    }
    best.map(|(format, _)| format)
}

/// Whether a request accepts one of these media types.
pub fn accepts(headers: &HeaderMap, media_types: &[&str]) -> bool {
    let accepted = Accepted::by(headers);
    media_types
        .iter()
        .any(|media_type| accepted.weight(media_type) > 0)
}

/// The sentence of a refusal.
pub fn refusal() -> String {
    let types: Vec<&str> = negotiated().map(|(kind, _)| kind).collect();
    format!(
        "this item is not there in any media type that the request accepts; it is in text/html, application/json, {}",
        types.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

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
            ("application/mods+xml", Some(DescriptionFormat::Mods)),
            ("application/yaml", Some(DescriptionFormat::Cff)),
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
            let found = description(&header(value)).map(|found| match found {
                Negotiated::Format(format, _) => format,
                other => panic!("{other:?} for {value}"),
            });
            assert_eq!(found, expected, "{value}");
        }
        assert_eq!(description(&HeaderMap::new()), None);
        let other = |value: &str| description(&header(value));
        assert_eq!(other("text/turtle, */*;q=0.1"), Some(Negotiated::Turtle));
        let bibtex = Negotiated::Format(DescriptionFormat::Bibtex, "application/bibtex");
        assert_eq!(other("application/bibtex"), Some(bibtex));
        let cited = header("text/html;q=0.5, text/x-bibliography; style=abnt; locale=pt");
        assert_eq!(description(&cited), Some(Negotiated::Citation));
        assert_eq!(citation_style(&cited), Some("abnt"));
        assert_eq!(
            citation_style(&header("text/x-bibliography, a/b; style=x")),
            None
        );
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
