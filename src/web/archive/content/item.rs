//! An item that is held here: one of its files, its file list or its page.

use axum::http::StatusCode;
use axum::http::request::Parts;

use super::digest;
use super::history;
use super::inventory;
use super::reply::{ContentReply, PathEnd, failed, no_file, redirect, refuse};
use crate::archive::store::Item;
use crate::archive::tree::Published;
use crate::formats::fixity::Digest;
use crate::formats::item::State;
use crate::formats::query::{encoded, percent_decoded, percent_decoded_bytes, with_pairs};
use crate::http::server::answer::{self, Refusal};
use crate::http::server::negotiation;
use crate::web::archive::file::Source;
use crate::web::archive::zip::Layout;
use crate::web::archive::{Site, damage, file, pages};
use crate::web::service::content_url;

/// A description of an item for readers or programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Its page.
    Page,
    /// Its links to others, as a set (RFC 9264).
    Links,
    /// Its citation in a style.
    Citation(String),
    /// All of it as a BagIt bag.
    Bag,
    /// Its Electronic Resource Citation: who, what, when and where it is, and what is promised of its identifier.
    Info,
    /// What was done to it.
    History,
    /// Its contents, after this path.
    Inventory(Vec<u8>),
}

impl About {
    /// The query that asks for it.
    pub(super) fn of_query(query: &str) -> Option<About> {
        match query {
            "page" => Some(About::Page),
            "linkset" => Some(About::Links),
            "bag" => Some(About::Bag),
            "info" => Some(About::Info),
            "history" => Some(About::History),
            "inventory" => Some(About::Inventory(Vec::new())),
            _ => {
                if let Some(after) = query.strip_prefix("inventory=") {
                    return percent_decoded_bytes(after).map(About::Inventory);
                }
                let style = query.strip_prefix("cite=")?;
                Some(About::Citation(percent_decoded(style)?))
            }
        }
    }
}

/// A request for a part of an item.
pub(super) struct ContentRequest {
    /// The path of a file, relative to the item's `doc/`.
    pub(super) below: Vec<u8>,
    /// The end of this path.
    pub(super) end: PathEnd,
    /// Whether the list of files is wanted.
    pub(super) is_list: bool,
    /// Whether only the original is acceptable.
    pub(super) is_original: bool,
    /// Whether a browser saves the file instead of showing it.
    pub(super) is_download: bool,
    /// Whether the item is wanted as one file.
    pub(super) is_zip: bool,
    /// The page or the set of links that is wanted instead of the item.
    pub(super) about: Option<About>,
    /// The query, whose pairs a redirection passes on.
    pub(super) query: String,
}

impl ContentRequest {
    pub(super) fn refuse_copies(&self, item: &Item) -> Result<(), Refusal> {
        if self.is_original && item.state == State::Copy {
            Err(refuse(
                StatusCode::NOT_FOUND,
                "the original was requested, and this Archive holds a copy",
            ))
        } else {
            Ok(())
        }
    }

    pub(super) fn refuse_paths(&self) -> Result<(), Refusal> {
        if self.below.is_empty() && !self.is_list && !self.is_zip {
            Ok(())
        } else {
            Err(refuse(
                StatusCode::NOT_FOUND,
                "these metadata are a single text and have no files",
            ))
        }
    }
}

/// The item if it is held here and public. Otherwise the page that says why not.
pub(super) fn present(
    site: &Site,
    found: Option<Item>,
    name: &str,
    request: &Parts,
) -> Result<Item, Refusal> {
    let is_public = |item: &Item| site.public().is_public(item);
    match found {
        Some(item) if site.public().is_withdrawn(&item).map_err(failed)? => {
            Err(Box::new(pages::removed(site, &item, request)))
        }
        Some(item) if !is_public(&item).map_err(failed)? => {
            Err(Box::new(pages::unknown(site, name, request)))
        }
        Some(item) if item.state == State::Deleted => {
            Err(Box::new(pages::removed(site, &item, request)))
        }
        Some(item) => Ok(item),
        None => Err(Box::new(pages::unknown(site, name, request))),
    }
}

/// An item that is [`present`]: one of its files, its file list, or its target file.
pub(super) fn of_item(
    site: &Site,
    item: Item,
    wanted: &ContentRequest,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    wanted.refuse_copies(&item)?;
    // If the item itself may not be read, nothing in it is published. `present` has tried it, but with the service, which
    // is always present.
    let root = || site.public().open_content(&item, b"").map_err(failed);
    if item.names.matches(&site.archive.facts().service) {
        root()?;
    }
    let is_content = wanted.is_zip || wanted.is_download || wanted.about == Some(About::Bag);
    if (is_content || !wanted.below.is_empty())
        && let Some(page) = pages::withheld(site, &item, request)
    {
        return Err(Box::new(page));
    }
    let is_whole = wanted.is_zip || wanted.about == Some(About::Bag);
    if is_whole && !site.damaged_files(&item).is_empty() {
        return Err(Box::new(damage::refusal()));
    }
    if wanted.about == Some(About::Bag) && wanted.below.is_empty() {
        return Ok(ContentReply::Zip(Box::new(item), Layout::Bag));
    }
    if wanted.is_zip {
        return if wanted.below.is_empty() {
            Ok(ContentReply::Zip(Box::new(item), Layout::Item))
        } else {
            Err(no_file())
        };
    }
    if wanted.is_list {
        return Ok(ContentReply::Answer(pages::file_list(site, &item, request)));
    }
    // A description of an item is not one of each name in it.
    match &wanted.about {
        Some(_) if !wanted.below.is_empty() => return Err(no_file()),
        Some(About::Page) => return Ok(landing(site, &item, request)),
        Some(About::Links) => {
            return Ok(ContentReply::Answer(pages::linkset(site, &item)));
        }
        Some(About::Citation(style)) => {
            let cited = pages::citation(site, &item, style, request);
            return Ok(ContentReply::Answer(cited));
        }
        Some(About::Info) => return Ok(ContentReply::Answer(pages::info(site, &item))),
        Some(About::History) => {
            let answer = history::answer(site, &item, &request.headers);
            return Ok(ContentReply::Answer(answer));
        }
        Some(About::Inventory(after)) => {
            let answer = inventory::answer(site, &item, after, &request.headers);
            return Ok(ContentReply::Answer(answer));
        }
        Some(About::Bag) | None => {}
    }
    if wanted.below.is_empty() && !wanted.is_download {
        if let Some(wanted) = negotiation::description(&request.headers) {
            let document = pages::negotiated(site, &item, wanted, request);
            return Ok(ContentReply::Answer(answer::by_accept(document)));
        }
        if pages::is_for_programs(request) {
            return Ok(landing(site, &item, request));
        }
    }
    let path = (!wanted.below.is_empty()).then_some(wanted.below.as_slice());
    let found = site.public().content_path(&item, path);
    match (found.map_err(failed)?, path) {
        (Some(_), Some(_)) if wanted.end == PathEnd::Slash => Err(no_file()),
        (Some(found), Some(_)) => file_in_doc(site, &item, found, wanted.is_download, request),
        (Some(found), None) if wanted.is_download => file_in_doc(site, &item, found, true, request),
        (Some(found), None) => {
            let forms = [HTML, JSON, file::media_type(&found)];
            if !negotiation::accepts(&request.headers, &forms) {
                return Err(not_acceptable());
            }
            let place = format!("/{}", content_url(&item.names, &found));
            let place = with_pairs(place, &wanted.query);
            let mut response = answer::by_accept(redirect(&place));
            pages::add_signposts(site, &item, &mut response);
            Ok(ContentReply::Answer(response))
        }
        (None, Some(path)) => {
            let in_doc = [b"doc/", path].concat();
            let opened = [in_doc.as_slice(), path]
                .into_iter()
                .find_map(|path| site.public().open_content(&item, path).ok());
            let Some(opened) = opened else {
                return [in_doc.as_slice(), path]
                    .into_iter()
                    .find_map(|path| link_out(site, &item, path))
                    .ok_or_else(no_file);
            };
            at_path(site, &item, opened, path.to_vec(), PathEnd::Slash, request)
        }
        (None, None) => at_path(site, &item, root()?, Vec::new(), PathEnd::Slash, request),
    }
}

/// A file that a shorter URL names than its own.
fn file_in_doc(
    site: &Site,
    item: &Item,
    path: Vec<u8>,
    is_download: bool,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    let opened = site.public().open_content(item, &path);
    let found = opened.map_err(failed)?;
    let location = Some(format!("/{}", content_url(&item.names, &path)));
    Ok(file_reply(
        site,
        item,
        found,
        path,
        location,
        is_download,
        request,
    ))
}

/// The result for an open file of an item, or for a request for what a scrub has recorded of its pieces.
fn file_reply(
    site: &Site,
    item: &Item,
    found: Published,
    path: Vec<u8>,
    location: Option<String>,
    is_download: bool,
    request: &Parts,
) -> ContentReply {
    if let Some(answer) = digest::recorded_pieces(site, item, &found, request) {
        return ContentReply::Answer(answer);
    }
    if let Err(refusal) = site.refuse_damaged(item, &found, &path) {
        return ContentReply::Answer(*refusal);
    }
    ContentReply::File {
        digest: digest_of(site, item, &found, &path, request),
        source: Source::Open(found),
        name: path,
        location,
        is_download,
    }
}

/// The digest of a file, if the request asks for it.
pub(in super::super) fn digest_of(
    site: &Site,
    item: &Item,
    found: &Published,
    path: &[u8],
    request: &Parts,
) -> Option<Digest> {
    if digest::is_wanted(request) {
        digest::known(site, item, found, path)
    } else {
        None
    }
}

const HTML: &str = "text/html";
const JSON: &str = "application/json";

fn landing(site: &Site, item: &Item, request: &Parts) -> ContentReply {
    ContentReply::Answer(pages::landing(site, item, request))
}

/// Rather than a page that the program cannot read.
fn not_acceptable() -> Refusal {
    let refusal = refuse(StatusCode::NOT_ACCEPTABLE, &negotiation::refusal());
    Box::new(answer::by_accept(*refusal))
}

/// A redirection to the public item to which a symbolic link on a path leads, as it does in the mount.
pub(super) fn link_out(site: &Site, item: &Item, path: &[u8]) -> Option<ContentReply> {
    let (other, path) = site.public().link_out(item, path).ok()??;
    let is_public = site.public().is_public(&other);
    if !is_public.ok()? {
        return None;
    }
    let place = if path.is_empty() {
        encoded(other.names.preferred().as_bytes())
    } else {
        content_url(&other.names, &path)
    };
    Some(ContentReply::Answer(redirect(&format!("/{place}"))))
}

/// The result for a file or directory of an item.
pub(super) fn at_path(
    site: &Site,
    item: &Item,
    found: Published,
    path: Vec<u8>,
    end: PathEnd,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    match (found.is_file(), path.is_empty()) {
        (true, _) if end == PathEnd::Slash => Err(no_file()),
        (true, _) => Ok(file_reply(site, item, found, path, None, false, request)),
        (false, true) if !negotiation::accepts(&request.headers, &[HTML, JSON]) => {
            Err(not_acceptable())
        }
        (false, true) => Ok(landing(site, item, request)),
        (false, false) => {
            let ibi = encoded(item.names.preferred().as_bytes());
            let list = format!("/{ibi}?ibiurl.verblist=GetFileList");
            Ok(ContentReply::Answer(redirect(&list)))
        }
    }
}
