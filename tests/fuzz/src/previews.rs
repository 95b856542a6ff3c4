//! Texts of items on pages and in searches: Markdown, tables, lines, and the words of files.

use ibi::Ibi;
use ibifs::formats::file_text::{HEAD, TextKind, text_of};
use ibifs::formats::item::Names;
use ibifs::outside::web::texts::previews;

/// The elements that a page may have of a text.
const ELEMENTS: [&str; 26] = [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "div",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
    "small",
    "input",
];

/// A part of a page has the elements that it may have, in pairs, and links to the web and to the item alone.
pub fn check(data: &[u8]) {
    let names = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp"));
    for markup in previews(data, &names, b"doc/README.md") {
        assert!(markup.len() <= 16 * 1024 * 1024, "{} bytes", markup.len());
        paired(&markup);
    }
    let head = data.get(..HEAD).unwrap_or(data);
    if let Some(kind) = TextKind::of_head(head).filter(|kind| *kind != TextKind::Pdf)
        && let Some(text) = text_of(kind, data, 1000)
    {
        assert!(text.len() <= 1000);
    }
}

fn paired(markup: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("the end of an element");
        let inside = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{markup}");
            continue;
        }
        let name = inside.split([' ', '/']).next().expect("a name");
        assert!(ELEMENTS.contains(&name), "{name} in {markup}");
        attributes(inside.strip_prefix(name).expect("its name"), markup);
        if !inside.ends_with('/') && !["br", "hr"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} in {markup}");
}

fn attributes(text: &str, markup: &str) {
    let mut rest = text.trim_end_matches('/').trim();
    while let Some((name, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"').expect("a value");
        assert!(
            ["href", "class", "style", "start", "tabindex", "scope"].contains(&name),
            "{name} in {markup}"
        );
        let is_web = |scheme: &&str| {
            value
                .get(..scheme.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        };
        if name == "href" {
            let is_ours = value.starts_with('/') && !value.starts_with("//");
            assert!(
                is_ours || ["https://", "http://", "mailto:"].iter().any(is_web),
                "{value}"
            );
        }
        rest = after.trim_start();
    }
    assert!(rest.is_empty(), "{rest} in {markup}");
}
