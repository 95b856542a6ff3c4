//! The content of items: the files below `col/<rep>/`, and persistent URLs of the form `<ibi><mdf>/path`
//! (ibi(7), "Persistent URLs") for items that are held here.
//!
//! - [`reply`]: what requests are answered with, and the paths that they name.
//! - [`mod@digest`]: the digest of a file, and those of its pieces.
//! - [`inventory`]: what is in an item.
//! - [`history`]: what was done to an item.
//! - [`level`]: what is below a level.
//! - [`item`]: an item that is held here.
//! - [`related`]: the item or metadata to which a modifier leads.
//! - [`mod@persistent`]: persistent names.

mod digest;
mod history;
mod inventory;
mod item;
mod level;
mod persistent;
mod related;
mod reply;

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};

use super::{Site, SiteHandle, crawlers, file, pages, pictures, zip};
use crate::formats::item::State;
use crate::http::server::answer::{self, Refusal};
use file::Source;
use ibi::persistent::Reader;
use ibi::{Ibi, Rep};
use item::{at_path, link_out, present};
use persistent::persistent;
use reply::text_of;

pub(super) use item::digest_of;
pub(super) use reply::{ContentReply, Path, PathEnd, failed, no_file, read_path, redirect, refuse};

/// The name of a metadata text, which determines its type.
pub(super) const TEXT_NAME: &[u8] = b"metadata.txt";

/// The scripts of the living system that show the record named by a parameter.
const SCRIPTS: [&[u8]; 2] = [b"mirrorget.cgi", b"mirror.cgi"];
/// The parameter that names the record.
const RECORD: &str = "metadatarepository=";

/// Answers a request for content.
pub(super) async fn answer(handle: SiteHandle, request: Request<Body>) -> Response<Body> {
    let parts = Arc::new(request.into_parts().0);
    let _turn = if is_search(&parts) {
        Some(handle.site.searches.turn(handle.site.client(&parts)).await)
    } else {
        None
    };
    answer_below(&handle, &parts, b"col", |site, version, parts| {
        find(site, version, parts)
    })
    .await
}

/// The function that finds what a request is answered with, in the version of the index, and whether that depends on the
/// languages of the reader.
type Find = fn(&Arc<Site>, Option<i64>, &Parts) -> Result<(ContentReply, bool), Refusal>;

/// Answers a request below a directory such as `col/`.
pub(super) async fn answer_below(
    handle: &SiteHandle,
    parts: &Arc<Parts>,
    above: &[u8],
    find: Find,
) -> Response<Body> {
    let version = handle.index_version().await;
    let cached = version.and_then(|version| open_cached(&handle.site, version, parts, above));
    let found = match cached {
        Some(found) => Ok((found, false)),
        None => {
            let client = handle.site.client(parts);
            let (site, parts) = (Arc::clone(&handle.site), Arc::clone(parts));
            let found = move || find(&site, version, &parts);
            let found = handle.site.aside(client, found).await;
            found.unwrap_or_else(|refusal| Err(Box::new(refusal)))
        }
    };
    send(&handle.site, parts, found).await
}

/// Returns whether words are searched for.
fn is_search(request: &Parts) -> bool {
    let path = request.uri.query().map(|_| read_path(request.uri.path()));
    matches!(path, Some(Ok(path)) if is_path_of_search(&path))
}

fn is_path_of_search(path: &Path) -> bool {
    path.end == PathEnd::Name && matches!(path.components.as_slice(), [name] if name == b"search")
}

/// Sends what a request is answered with, and whether that depends on the languages of the reader.
async fn send(
    site: &Arc<Site>,
    parts: &Parts,
    found: Result<(ContentReply, bool), Refusal>,
) -> Response<Body> {
    let (reply, depends_on_reader) = match found {
        Ok(found) => found,
        Err(refusal) => return *refusal,
    };
    let response = match reply {
        ContentReply::Answer(response) => response,
        ContentReply::Zip(item, layout) => {
            zip::answer(site, *item, layout, site.client(parts)).await
        }
        ContentReply::List(list) => crawlers::answer_list(site, list).await,
        ContentReply::Text(found) => {
            let (now, source) = (site.clock.seconds(), Source::Open(found));
            let sent = file::answer(&parts.method, &parts.headers, source, TEXT_NAME, now);
            answer::by_accept(sent.await)
        }
        ContentReply::File {
            source: Source::Open(found),
            name,
            ..
        } if pictures::is_wanted(parts, &name) => {
            Box::pin(pictures::answer(site, parts, found, name)).await
        }
        ContentReply::File {
            source,
            name,
            location,
            is_download,
            digest,
        } => {
            let now = site.clock.seconds();
            let source = match (source, digest::pieces_wanted(parts)) {
                (Source::Open(found), Some(range)) => {
                    return Box::pin(digest::pieces(site, found, range, &parts.headers)).await;
                }
                (source, _) => source,
            };
            let mut response =
                file::answer(&parts.method, &parts.headers, source, &name, now).await;
            if let Some(location) = location.and_then(|text| HeaderValue::from_str(&text).ok()) {
                let lines = response.headers_mut();
                lines.insert(header::CONTENT_LOCATION, location);
            }
            if let Some(digest) = digest.and_then(|digest| digest::value(&digest)) {
                let lines = response.headers_mut();
                lines.insert(digest::REPR_DIGEST, digest);
            }
            if is_download && let Some(disposition) = file::attachment(&name) {
                let lines = response.headers_mut();
                lines.insert(header::CONTENT_DISPOSITION, disposition);
            }
            response
        }
    };
    if depends_on_reader {
        answer::by_language(response)
    } else {
        response
    }
}

/// A file of an item by its rep below a directory such as `col/`, if it can be opened without waiting for the index or
/// a disk.
fn open_cached(site: &Site, version: i64, request: &Parts, above: &[u8]) -> Option<ContentReply> {
    if digest::is_wanted(request) || digest::pieces_wanted(request).is_some() {
        return None;
    }
    let path = read_path(request.uri.path()).ok()?;
    let (first, below) = path.components.split_first()?;
    if first != above || path.end == PathEnd::Slash {
        return None;
    }
    let (rep, path) = below.split_at_checked(4)?;
    let item = site.cache.item(version, &text_of(rep)?)?;
    if site.has_damage(&item) {
        return None;
    }
    let path = path.join(&b'/');
    let found = site.public().find_content_cached(&item, &path).ok()?;
    if !found.is_file() {
        return None;
    }
    let open = || site.public().open_found(&found, &path).ok();
    let source = if pictures::is_wanted(request, &path) {
        Source::Open(open()?)
    } else if let Some(small) = site.cache.file(&found) {
        Source::Small(small)
    } else {
        let opened = open()?;
        let small = site.cache.read_file(&opened, site.clock.seconds());
        small.map_or(Source::Open(opened), Source::Small)
    };
    Some(ContentReply::File {
        source,
        name: path,
        location: None,
        is_download: false,
        digest: None,
    })
}

/// Resolves a request. Returns whether the result depends on the languages of the reader.
fn find(
    site: &Site,
    version: Option<i64>,
    request: &Parts,
) -> Result<(ContentReply, bool), Refusal> {
    let path = read_path(request.uri.path())?;
    if let Some(place) = level::place_wanted(request) {
        let answer = level::answer(site, &path, &place, &request.headers)?;
        return Ok((ContentReply::Answer(answer), false));
    }
    if is_path_of_search(&path) {
        return Ok((ContentReply::Answer(pages::search(site, request)), false));
    }
    if let [name] = path.components.as_slice()
        && path.end == PathEnd::Name
        && let Ok(name) = str::from_utf8(name)
    {
        if let Some(answer) = crawlers::answer(site, name) {
            return Ok((ContentReply::Answer(answer), false));
        }
        if let Some(list) = crawlers::list(site, name).map_err(failed)? {
            return Ok((ContentReply::List(list), false));
        }
    }
    if path.components.join(&b'/') == crawlers::RESOURCE_SYNC.as_bytes()
        && let Some(answer) = crawlers::answer(site, crawlers::RESOURCE_SYNC)
    {
        return Ok((ContentReply::Answer(answer), false));
    }
    match path.components.split_first() {
        None => Ok((ContentReply::Answer(pages::home(site, request)), false)),
        Some((first, below)) if first == b"col" && !is_elsewhere(below, request) => {
            let found = in_repository(site, version, below, path.end, request);
            match (found, relative_link(site, request)) {
                (Ok(found), _) => Ok((found, false)),
                (Err(_), Some(link)) => Ok((ContentReply::Answer(redirect(&link)), false)),
                (Err(refusal), None) => Err(refusal),
            }
        }
        _ => match relative_link(site, request) {
            Some(link) => Ok((ContentReply::Answer(redirect(&link)), false)),
            None => persistent(site, &path, request),
        },
    }
}

/// A link `./ibi:IBI` or `./upn:NAME:IBI` of a page, which a browser asks for behind the path of the page, as
/// a path of its own.
fn relative_link(site: &Site, request: &Parts) -> Option<String> {
    let path = request.uri.path();
    let is_scheme = |text: &str| {
        ["ibi:", "upn:", "ibi%3a", "upn%3a"].iter().any(|scheme| {
            let start = text.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
    };
    let slashes = path.match_indices('/').skip(1).map(|(at, _)| at);
    let links = slashes.filter_map(|at| path.get(at..));
    let link = links.filter(|link| is_scheme(&link[1..])).last()?;
    let text = match request.uri.query() {
        Some(query) => format!("{link}?{query}"),
        None => link.to_owned(),
    };
    let name = site.archive.read_name(Reader::new(), &text);
    name.ok()?.ok().map(|_| text)
}

/// Whether a path below `col/` names something else than a file of its item: another item by `goto-`, a record
/// by a parameter of a script, or the items below a level.
fn is_elsewhere(below: &[Vec<u8>], request: &Parts) -> bool {
    let has = |name: &[u8]| below.iter().any(|it| it == name);
    let names_record = || request.uri.query().unwrap_or_default().contains(RECORD);
    let is_script = || SCRIPTS.iter().any(|name| has(name));
    let is_rep = || text_of(below).is_some_and(|text| Rep::parse(&text).is_ok());
    let is_ibip = || {
        let text = below.get(..2).and_then(text_of);
        text.is_some_and(|text| ibi::Ibip::parse(&text).is_ok())
    };
    let is_level = || matches!(below.len(), 1..=4) && !is_rep() && !is_ibip();
    has(b"goto-") || is_level() || is_script() && names_record()
}

/// The content of an item below `col/`.
fn in_repository(
    site: &Site,
    version: Option<i64>,
    below: &[Vec<u8>],
    end: PathEnd,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    let nothing = || {
        refuse(
            StatusCode::NOT_FOUND,
            "the path of an item is col/ and the four parts of its rep",
        )
    };
    let (parts, path) = below.split_at_checked(4).ok_or_else(nothing)?;
    let text = text_of(parts).ok_or_else(nothing)?;
    let rep = Rep::parse(&text).map_err(|_| nothing())?;
    let found = site.archive.find(&Ibi::Rep(rep)).map_err(failed)?;
    let item = match found {
        Some(item) if item.state != State::Deleted && item.life.withdrawn.is_none() => item,
        other => present(site, other, &text, request)?,
    };
    if let Some(version) = version {
        site.cache.add_item(version, text, item.clone());
    }
    let path = path.join(&b'/');
    let found = match site.public().open_content(&item, &path) {
        Ok(found) => found,
        Err(error) => {
            // An item that is not public gets the same answer as an unknown one.
            let name = text_of(parts).unwrap_or_default();
            let item = present(site, Some(item), &name, request)?;
            if let Some(page) = pages::withheld(site, &item, request) {
                return Err(Box::new(page));
            }
            return link_out(site, &item, &path).ok_or_else(|| failed(error));
        }
    };
    at_path(site, &item, found, path, end, request)
}
