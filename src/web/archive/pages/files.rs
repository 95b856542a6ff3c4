//! The list of an item's files: as a page, as JSON, or as text with one path per line.

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{HeaderValue, LINK};
use axum::http::request::Parts;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::words::{ArchiveWords, BOTH};
use super::{heads, time, view};
use crate::archive::store::Item;
use crate::archive::{PublicFile, is_below_hidden};
use crate::formats::item::Names;
use crate::formats::query::{Query, encoded, percent_decoded_bytes};
use crate::http::server::page::Page;
use crate::http::server::page::accept::Representation;
use crate::http::server::page::html::{link, shown};
use crate::web::archive::{Site, failure};
use ibi::Timestamp;

/// The most files in one part of the list. Each part links to the next.
const FILES_IN_A_PART: usize = 10_000;
/// The most files in one part of the text list, which has no visible link to the next.
const FILES_IN_A_TEXT: usize = 100_000;

/// Why a list of files is empty for a reader.
pub(super) enum Closed<'a> {
    /// The files are withheld until then.
    Until(&'a Timestamp),
    /// They may not be read; this address has mail about the Archive.
    Ask(&'a str),
}

impl<'a> Closed<'a> {
    /// Returns why the files of an item are closed, if it has such.
    pub(super) fn of(site: &'a Site, item: &'a Item) -> Option<Closed<'a>> {
        if let Some(until) = site.archive.withheld_until(item) {
            return Some(Closed::Until(until));
        }
        let closed = site.public().closed(item);
        closed.map(|_| Closed::Ask(site.oai.email()))
    }
}

/// A table of files, each with its size and the time of its last change, and of those in hidden directories one that is
/// collapsed. If there are none, `closed` says whether
/// there are others, which the reader may not read.
pub(super) fn table(
    words: &ArchiveWords,
    names: &Names,
    files: &[PublicFile],
    closed: Option<&Closed<'_>>,
) -> Markup {
    if files.is_empty() {
        return match closed {
            Some(Closed::Until(until)) => {
                html! { p { (words.withheld_until) " " (time(until)) "." } }
            }
            Some(Closed::Ask(email)) => html! {
                p { (words.restricted_files) " " (words.ask_for_files) " " (link(&format!("mailto:{email}"), email)) "." }
            },
            None => html! { p { (words.no_files) } },
        };
    }
    let (hidden, files): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| is_below_hidden(&file.path));
    html! {
        @if !files.is_empty() { (rows(words, names, &files)) }
        @if !hidden.is_empty() {
            details {
                summary { (words.hidden_files) " (" (hidden.len()) ")" }
                (rows(words, names, &hidden))
            }
        }
    }
}

fn rows(words: &ArchiveWords, names: &Names, files: &[&PublicFile]) -> Markup {
    html! {
        table class="stacked" {
            (heads(&[words.name, words.size, words.changed]))
            tbody {
                @for file in files {
                    tr {
                        th scope="row" {
                            (link(&view::file_url(names, &file.path), &shown(&file.path)))
                        }
                        td class="quiet" { (words.bytes(file.length)) }
                        td class="quiet" { (time(&file.changed)) }
                    }
                }
            }
        }
    }
}

/// One part of an item's file list, with a link to the next part.
pub(in super::super) fn file_list(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let page = Page::asked(
        &site.url,
        BOTH,
        request,
        &[
            Representation::Html,
            Representation::Json,
            Representation::Text,
        ],
    );
    let most = match page.form {
        Representation::Text => FILES_IN_A_TEXT,
        Representation::Html | Representation::Json => FILES_IN_A_PART,
    };
    let after = after(request).unwrap_or_default();
    let listing = match site.public().listing(item, &after, most) {
        Ok(listing) => listing,
        Err(error) => return failure::of(&error),
    };
    let next = listing.files.last().filter(|_| listing.has_more);
    let next = next.map(|last| {
        let list = view::list_url(&item.names);
        format!("{list}&after={}", encoded(encoded(&last.path).as_bytes()))
    });
    let mut response = match page.form {
        Representation::Json => {
            let mut value = view::json_of_names(&item.names);
            value["files"] = Value::from(view::json_of_files(&item.names, &listing.files));
            value["next_url"] = json!(next);
            page.json(&value)
        }
        Representation::Text => {
            let lines = listing.files.iter().map(|file| line(&file.path));
            page.text(lines.collect())
        }
        Representation::Html => {
            let words = page.words;
            page.html(
                &format!("{}: {}", words.files, item.names.preferred()),
                &html! {
                    p { (link(&view::landing_url(&item.names), words.back)) }
                    (table(words, &item.names, &listing.files, Closed::of(site, item).as_ref()))
                    @if let Some(next) = &next { p { (link(next, words.next_files)) } }
                },
            )
        }
    };
    let link = next.map(|next| format!("<{next}>; rel=\"next\""));
    if let Some(Ok(link)) = link.map(HeaderValue::try_from) {
        response.headers_mut().insert(LINK, link);
    }
    response
}

/// The path after which a part of the list begins, percent-encoded within the value.
fn after(request: &Parts) -> Option<Vec<u8>> {
    let query = Query::parse(request.uri.query()?).ok()?;
    percent_decoded_bytes(query.get("after")?)
}

/// A path as one line of UTF-8. Control characters, `%`, and bytes that are not UTF-8 are written as `%hh`.
fn line(path: &[u8]) -> String {
    let mut line = String::new();
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\0'..='\u{1f}' | '\u{7f}' | '%' => {
                    line.push_str(&format!("%{:02X}", u32::from(character)));
                }
                character => line.push(character),
            }
        }
        for byte in chunk.invalid() {
            line.push_str(&format!("%{byte:02X}"));
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_list() {
        assert_eq!(line("doc/São 100%.txt".as_bytes()), "doc/São 100%25.txt\n");
        assert_eq!(line(b"a\nb\xf3\x7f"), "a%0Ab%F3%7F\n");
    }
}
