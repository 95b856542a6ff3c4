//! The preview of an item's content on a page: its main file, or the first one that a browser or we can show.
//!
//! Sound, video, drawings and PDF are shown by the browser, which gets them as any file; of images and of the first page
//! of a PDF it gets a small picture. Of a text its beginning is part of the page: as lines, as a table (CSV) or formatted (Markdown).

pub(crate) mod markdown;
pub(crate) mod table;

use std::cmp::Reverse;
use std::os::unix::fs::FileExt;

use maud::{Markup, PreEscaped, html};

use super::view::{ItemView, file_url};
use super::words::ArchiveWords;
use crate::archive::PublicFile;
use crate::archive::store::Item;
use crate::archive::tree::Published;
use crate::formats::picture::Drawn;
use crate::http::server::page::html::{escaped, shown};
use crate::web::archive::pictures::QUERY;
use crate::web::archive::{Site, file};

/// The longest picture or PDF that every reader of a page gets with it, in bytes.
const LONGEST_PICTURE: u64 = 8 * 1024 * 1024;
const LONGEST_PDF: u64 = 64 * 1024 * 1024;
/// The bytes of a text that are examined, and the number of its lines that are shown.
const TEXT_LENGTH: u64 = 64 * 1024;
const MOST_LINES: usize = 60;
/// The longest line that is shown, in characters.
const LONGEST_LINE: usize = 1000;

/// The way in which a file is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// By a small picture of it.
    Image,
    /// By the browser.
    Picture,
    Sound,
    Video,
    Pdf,
    Markdown,
    /// Values with a separator; none if it has to be found.
    Table(Option<u8>),
    Text,
}

impl Kind {
    /// Returns how a file with this name is shown, if it can be.
    fn of(path: &[u8]) -> Option<Kind> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let media_type = file::media_type(name);
        match media_type {
            _ if Drawn::of_media_type(media_type) == Some(Drawn::Image) => Some(Kind::Image),
            "image/avif" | "image/svg+xml" => Some(Kind::Picture),
            "application/pdf" => Some(Kind::Pdf),
            "text/markdown" => Some(Kind::Markdown),
            "text/csv" => Some(Kind::Table(None)),
            "text/tab-separated-values" => Some(Kind::Table(Some(b'\t'))),
            // They are pages and programs of their own.
            "text/html" | "text/javascript" | "text/css" => None,
            "application/json" | "application/xml" | "application/x-tex" | "application/yaml" => {
                Some(Kind::Text)
            }
            _ if media_type.starts_with("audio/") => Some(Kind::Sound),
            _ if media_type.starts_with("video/") => Some(Kind::Video),
            _ if media_type.starts_with("text/") => Some(Kind::Text),
            _ if name.starts_with(b"README") && !name.contains(&b'.') => Some(Kind::Text),
            _ => None,
        }
    }
}

/// The section of a page that shows the content. None if nothing can be shown.
pub(super) fn section(
    site: &Site,
    item: &Item,
    view: &ItemView,
    words: &ArchiveWords,
) -> Option<Markup> {
    let main = view.main_path.as_deref();
    let path = main.or_else(|| most_suitable(&view.listing.files))?;
    let kind = Kind::of(path)?;
    let content = content(site, item, path, kind, words)?;
    Some(super::section(words.preview, &content))
}

/// The file that introduces an item without a main file: a README, else what a browser shows, else a text.
fn most_suitable(files: &[PublicFile]) -> Option<&[u8]> {
    let rank = |path: &[u8]| {
        let is_readme = path.starts_with(b"README") || path.starts_with(b"doc/README");
        match Kind::of(path)? {
            _ if is_readme => Some(2),
            Kind::Image | Kind::Picture | Kind::Sound | Kind::Video | Kind::Pdf => Some(1),
            Kind::Markdown | Kind::Table(_) | Kind::Text => Some(0),
        }
    };
    let ranked = files.iter().filter_map(|file| {
        let path = file.path.as_slice();
        Some((Reverse(rank(path)?), path))
    });
    // The first of several is kept.
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, path)| path)
}

fn content(
    site: &Site,
    item: &Item,
    path: &[u8],
    kind: Kind,
    words: &ArchiveWords,
) -> Option<Markup> {
    let found = site.public().open_content(item, path).ok()?;
    if !found.is_file() || found.length() == 0 {
        return None;
    }
    let (url, name) = (file_url(&item.names, path), shown(path));
    let length = found.length();
    let is_too_long = match kind {
        Kind::Picture => length > LONGEST_PICTURE,
        Kind::Pdf => length > LONGEST_PDF,
        _ => false,
    };
    if is_too_long {
        return None;
    }
    let shown = match kind {
        Kind::Image => drawn(site, &found, path, &url, &name)?,
        Kind::Picture => {
            let (url, name) = (escaped(&url), escaped(&name));
            PreEscaped(format!(
                "<img src=\"{url}\" alt=\"{name}\" loading=\"lazy\" />"
            ))
        }
        Kind::Sound => html! {
            audio controls="controls" preload="metadata" src=(url) aria-label=(name) {}
        },
        Kind::Video => html! {
            video controls="controls" preload="metadata" src=(url) aria-label=(name) {}
        },
        // It is loaded when the reader asks for it.
        Kind::Pdf => html! {
            @if let Some(first) = drawn(site, &found, path, &url, &format!("{} {name}", words.first_page)) {
                p { (first) }
            }
            details {
                summary { (words.show_here) }
                iframe src=(url) title=(name) loading="lazy" {}
            }
        },
        Kind::Markdown | Kind::Table(_) | Kind::Text => {
            let mut bytes = vec![0; usize::try_from(length.min(TEXT_LENGTH)).ok()?];
            found.file.read_exact_at(&mut bytes, 0).ok()?;
            let text = text_of(&bytes)?;
            let is_whole = length <= TEXT_LENGTH;
            let (text, is_whole) = match kind {
                Kind::Markdown => (markdown::formatted(&text, &item.names, path), is_whole),
                Kind::Table(separator) => {
                    let (table, is_all) = table::table(&text, separator, is_whole)?;
                    (table, is_all && is_whole)
                }
                _ => {
                    let (lines, is_all) = lines(&text);
                    (lines, is_all && is_whole)
                }
            };
            html! {
                (text)
                @if !is_whole { p { small { (words.only_beginning) } } }
            }
        }
    };
    Some(html! {
        figure {
            (shown)
            figcaption { (super::link(&url, &name)) }
        }
    })
}

/// A small picture of a file, which leads to the file. None if there is none: a page shows no broken picture.
fn drawn(site: &Site, found: &Published, path: &[u8], url: &str, alt: &str) -> Option<Markup> {
    let picture = site.pictures.of(found, path)?;
    let (width, height) = (picture.width, picture.height);
    let (source, alt) = (escaped(url), escaped(alt));
    let image = PreEscaped(format!(
        "<img src=\"{source}?{QUERY}\" width=\"{width}\" height=\"{height}\" alt=\"{alt}\" loading=\"lazy\" />"
    ));
    Some(html! { a href=(url) { (image) } })
}

/// The beginning of a text: UTF-8 but for a character that is cut off at its end, else ISO 8859-1. None if it is
/// no text.
pub(crate) fn text_of(bytes: &[u8]) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(error) if error.error_len().is_none() => {
            let (valid, _) = bytes.split_at(error.valid_up_to());
            String::from_utf8_lossy(valid).into_owned()
        }
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // Other control characters are shown by their numbers.
    Some(text.replace("\r\n", "\n").replace('\t', "    "))
}

/// A text as lines, and whether all are shown. Each line is a paragraph: pages show a line feed by its number.
pub(crate) fn lines(text: &str) -> (Markup, bool) {
    let mut is_whole = true;
    let mut lines = text.lines();
    let shown: Vec<&str> = lines.by_ref().take(MOST_LINES).collect();
    is_whole &= lines.next().is_none();
    let shown = shown.into_iter().map(|line| {
        let clipped = clipped(line, LONGEST_LINE);
        is_whole &= clipped.len() == line.len();
        clipped
    });
    let shown: Vec<&str> = shown.collect();
    let markup = html! {
        div class="lines" tabindex="0" { @for line in shown { p { (line) } } }
    };
    (markup, is_whole)
}

/// The first characters of a text.
fn clipped(text: &str, most: usize) -> &str {
    let end = text
        .char_indices()
        .nth(most)
        .map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ibi::Timestamp;

    #[test]
    fn what_is_shown_of_an_item_without_a_main_file() {
        let file = |path: &str| PublicFile {
            path: path.as_bytes().to_vec(),
            permissions: 0o644,
            length: 1,
            changed: Timestamp::from_unix(0, 0),
        };
        for (paths, expected) in [
            (&["a.txt", "b.png", "c.png"][..], Some("b.png")),
            (&["a.png", "doc/README.md", "z.txt"], Some("doc/README.md")),
            (&["a.html", "b.zip"], None),
            (&["README"], Some("README")),
        ] {
            let files: Vec<PublicFile> = paths.iter().map(|path| file(path)).collect();
            let found = most_suitable(&files).map(shown);
            assert_eq!(found.as_deref(), expected, "{paths:?}");
        }
    }

    #[test]
    fn a_text_is_decoded() {
        assert_eq!(text_of("São\r\n".as_bytes()).as_deref(), Some("São\n"));
        assert_eq!(text_of(b"S\xe3o\t1").as_deref(), Some("São    1"));
        assert_eq!(text_of(&"São".as_bytes()[..2]).as_deref(), Some("S"));
        assert_eq!(text_of(b"a\0b"), None);
    }

    #[test]
    fn long_texts_are_cut() {
        let is_all = |text: &str| lines(text).1;
        assert!(is_all(&"line\n".repeat(MOST_LINES)));
        assert!(!is_all(&"line\n".repeat(MOST_LINES + 1)));
        assert!(!is_all(&"ã".repeat(LONGEST_LINE + 1)));
    }
}
