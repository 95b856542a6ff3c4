//! The content of items: the files below `col/<rep>/`, and persistent URLs of the form `<ibi><mdf>/path`
//! (ibi(7), "Persistent URLs") for items that are held here.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};

use super::{Site, SiteHandle, act, failure, file, pages};
use crate::archive::store::Item;
use crate::archive::tree::{Dependencies, Published};
use crate::archive::{ArchiveError, Related, persistent_url};
use crate::formats::item::{Names, State};
use crate::formats::query::{Query, encoded, percent_decoded_bytes};
use crate::web::server::{answer, languages};
use crate::web::service::content_url;
use ibi::persistent::{Identifier, PersistentKind, PersistentName, Reader};
use ibi::relation::{Modifier, Request as Asked, Step};
use ibi::{AliasPair, Ibi, Rep};

/// The scripts of the living system that show the record named by a parameter.
const SCRIPTS: [&[u8]; 2] = [b"mirrorget.cgi", b"mirror.cgi"];
/// That parameter.
const RECORD: &str = "metadatarepository=";

/// The result of a request.
enum ContentReply {
    /// An answer.
    Answer(Response<Body>),
    /// An open file. The name determines its type.
    File {
        found: Published,
        name: Vec<u8>,
        /// The URL of the file itself, if the request used another one.
        location: Option<String>,
        /// Whether a browser saves the file instead of showing it.
        is_download: bool,
    },
}

/// An answer that ends a search early, with the reason.
type Refusal = Box<Response<Body>>;

/// A path: its decoded components, and whether it ends with a slash.
struct Path {
    components: Vec<Vec<u8>>,
    is_directory: bool,
}

/// Answers a request for content.
pub(super) async fn answer(handle: SiteHandle, request: Request<Body>) -> Response<Body> {
    let parts = Arc::new(request.into_parts().0);
    let version = handle.index_version().await;
    let found = match version.and_then(|version| open_cached(&handle.site, version, &parts)) {
        Some(found) => Ok((found, false)),
        None => {
            let (site, parts) = (Arc::clone(&handle.site), Arc::clone(&parts));
            let found = answer::aside(move || find(&site, version, &parts)).await;
            found.unwrap_or_else(|refusal| Err(Box::new(refusal)))
        }
    };
    let (outcome, depends_on_reader) = match found {
        Ok(found) => found,
        Err(refusal) => return *refusal,
    };
    let response = match outcome {
        ContentReply::Answer(response) => response,
        ContentReply::File {
            found,
            name,
            location,
            is_download,
        } => {
            let now = handle.site.clock.seconds();
            let mut response = file::answer(&parts.method, &parts.headers, found, &name, now).await;
            if let Some(location) = location.and_then(|text| HeaderValue::from_str(&text).ok()) {
                let lines = response.headers_mut();
                lines.insert(header::CONTENT_LOCATION, location);
            }
            if is_download && let Some(disposition) = attachment(&name) {
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

/// The header for a file that is saved (RFC 6266, section 4.3).
fn attachment(path: &[u8]) -> Option<HeaderValue> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let text = format!("attachment; filename*=UTF-8''{}", encoded(name));
    HeaderValue::from_str(&text).ok()
}

/// A file below `col/`, if it can be opened without waiting for the index or a disk.
fn open_cached(site: &Site, version: i64, request: &Parts) -> Option<ContentReply> {
    let path = read_path(request.uri.path()).ok()?;
    let (first, below) = path.components.split_first()?;
    if first != b"col" || path.is_directory {
        return None;
    }
    let (rep, path) = below.split_at_checked(4)?;
    let item = site.cache.item(version, &text_of(rep)?)?;
    let path = path.join(&b'/');
    let found = site.archive.open_content_cached(&item, &path, &act).ok()?;
    found.is_file().then_some(ContentReply::File {
        found,
        name: path,
        location: None,
        is_download: false,
    })
}

/// Resolves a request. Returns whether the result depends on the languages of the reader.
fn find(
    site: &Site,
    version: Option<i64>,
    request: &Parts,
) -> Result<(ContentReply, bool), Refusal> {
    let path = read_path(request.uri.path())?;
    match path.components.split_first() {
        None => Ok((ContentReply::Answer(pages::home(site, request)), false)),
        Some((first, below)) if first == b"col" && !is_elsewhere(below, request) => {
            let found = in_repository(site, version, below, path.is_directory, request)?;
            Ok((found, false))
        }
        _ => persistent(site, &path, request),
    }
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

/// Splits a path before it is decoded. A name cannot contain an encoded slash, so such a path is not found.
fn read_path(text: &str) -> Result<Path, Refusal> {
    let mut components = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty()) {
        let Some(component) = percent_decoded_bytes(part) else {
            let sentence = "the path is not percent-encoded well; write % as %25";
            return Err(refuse(StatusCode::BAD_REQUEST, sentence));
        };
        let is_climbing = component == b"." || component == b"..";
        if is_climbing || component.iter().any(|byte| [0, b'/'].contains(byte)) {
            return Err(refuse(StatusCode::NOT_FOUND, "no name here is written so"));
        }
        components.push(component);
    }
    Ok(Path {
        components,
        is_directory: text.ends_with('/'),
    })
}

/// The content of an item below `col/`.
fn in_repository(
    site: &Site,
    version: Option<i64>,
    below: &[Vec<u8>],
    is_directory: bool,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    let nothing = || {
        refuse(
            StatusCode::NOT_FOUND,
            "an item is at col/ and the four parts of its rep",
        )
    };
    let (rep, path) = below.split_at_checked(4).ok_or_else(nothing)?;
    let text = text_of(rep).ok_or_else(nothing)?;
    let rep = Rep::parse(&text).map_err(|_| nothing())?;
    let found = site.archive.find(&Ibi::Rep(rep)).map_err(failed)?;
    let item = match found {
        Some(item) if item.state != State::Deleted => item,
        other => present(site, other, &text, request)?,
    };
    if let Some(version) = version {
        site.cache.add_item(version, text, item.clone());
    }
    let path = path.join(&b'/');
    let found = match site.archive.open_content(&item, &path, &act) {
        Ok(found) => found,
        Err(error) => {
            // An item that is not public gets the same answer as an unknown one.
            let name = text_of(rep_of(below)).unwrap_or_default();
            present(site, Some(item), &name, request)?;
            return Err(failed(error));
        }
    };
    at_path(site, &item, found, path, is_directory, request)
}

fn rep_of(below: &[Vec<u8>]) -> &[Vec<u8>] {
    below.get(..4).unwrap_or(below)
}

/// The result for a file or directory of an item.
fn at_path(
    site: &Site,
    item: &Item,
    found: Published,
    path: Vec<u8>,
    is_directory: bool,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    match (found.is_file(), path.is_empty()) {
        (true, _) if is_directory => Err(no_file()),
        (true, _) => Ok(ContentReply::File {
            found,
            name: path,
            location: None,
            is_download: false,
        }),
        (false, true) => Ok(ContentReply::Answer(pages::landing(site, item, request))),
        (false, false) => {
            let ibi = encoded(item.names.preferred().as_bytes());
            let list = format!("/{ibi}?ibiurl.verblist=GetFileList");
            Ok(ContentReply::Answer(redirect(&list)))
        }
    }
}

/// Resolves a link in any form that ibi(7) lists, with its modifier, path and query.
fn persistent(site: &Site, path: &Path, request: &Parts) -> Result<(ContentReply, bool), Refusal> {
    let query = request.uri.query().unwrap_or_default();
    // A second question mark belongs to the identifier: `<ibi>??`.
    Query::parse(query.trim_start_matches('?'))
        .map_err(|error| refuse(StatusCode::BAD_REQUEST, &error.to_string()))?;
    let mut name = read_name(site, path, request)?;
    let identifier = name.identifier.to_string();
    let found = match &name.identifier {
        Identifier::Level(level) => {
            return Ok((
                ContentReply::Answer(pages::level(site, level, request)),
                false,
            ));
        }
        Identifier::Ibi(ibi) => site.archive.find(ibi).map_err(failed)?,
        Identifier::Alias(_) => site.archive.find_named(&identifier).map_err(failed)?,
    };
    let found = match found {
        Some(item) => Some(item),
        None => of_alias(site, path, &mut name)?,
    };
    let item = present(site, found, &identifier, request)?;
    let (modifier, is_list) = match name.request {
        None => (None, name.kind == PersistentKind::FileList),
        Some(Asked::Modifier(modifier)) => (Some(modifier), name.kind == PersistentKind::FileList),
        Some(Asked::FileList(modifier)) => (modifier, true),
    };
    let depends_on_reader = modifier
        .as_ref()
        .is_some_and(|modifier| modifier.steps().contains(&Step::Translation(None)));
    let wanted = ContentRequest {
        below: name.path,
        is_directory: path.is_directory,
        is_list,
        is_original: name.is_original_required,
        is_download: name.kind == PersistentKind::Download,
    };
    let outcome = match modifier {
        None => of_item(site, item, &wanted, request),
        Some(modifier) => {
            let preferences = languages::preferred(&request.headers);
            let modified = Modified {
                item,
                modifier,
                preferences,
            };
            of_related(site, &modified, &wanted, request)
        }
    };
    match outcome {
        Ok(outcome) => Ok((outcome, depends_on_reader)),
        Err(refusal) if depends_on_reader => Err(Box::new(answer::by_language(*refusal))),
        Err(refusal) => Err(refusal),
    }
}

/// Reads the name that a request asks for.
fn read_name(site: &Site, path: &Path, request: &Parts) -> Result<PersistentName, Refusal> {
    let text = match request.uri.query() {
        Some(query) => format!("{}?{query}", request.uri.path()),
        None => request.uri.path().to_owned(),
    };
    let unknown = || {
        let text = path.components.join(&b'/');
        let text = String::from_utf8_lossy(&text);
        Box::new(pages::unknown(site, &text, request))
    };
    match Reader::new().with_aliases().parse(&text) {
        // An item as one file is not made here.
        Ok(name) if name.kind == PersistentKind::Package => Err(unknown()),
        Ok(name) => Ok(name),
        Err(error) if error.holds_no_identifier() => Err(unknown()),
        Err(error) => Err(refuse(StatusCode::BAD_REQUEST, &error.to_string())),
    }
}

/// The item of an alias whose path has the shape of a rep, where no item has that rep.
fn of_alias(site: &Site, path: &Path, name: &mut PersistentName) -> Result<Option<Item>, Refusal> {
    let Some((first, below)) = path.components.split_at_checked(2) else {
        return Ok(None);
    };
    let Some(Ok(alias)) = text_of(first).map(|text| AliasPair::parse(&text)) else {
        return Ok(None);
    };
    let found = site.archive.store().find_by_alias(&alias);
    let found = found.map_err(|error| failed(error.into()))?;
    if found.is_some() && matches!(name.identifier, Identifier::Ibi(Ibi::Rep(_))) {
        name.path = below.join(&b'/');
    }
    Ok(found)
}

/// What a request wants of an item.
struct ContentRequest {
    /// The path of a file, relative to the item's `doc/`.
    below: Vec<u8>,
    /// Whether it ends with a slash.
    is_directory: bool,
    /// Whether the list of files is wanted.
    is_list: bool,
    /// Whether only the original is acceptable.
    is_original: bool,
    /// Whether a browser saves the file instead of showing it.
    is_download: bool,
}

impl ContentRequest {
    fn refuse_copies(&self, item: &Item) -> Result<(), Refusal> {
        if self.is_original && item.state == State::Copy {
            Err(refuse(
                StatusCode::NOT_FOUND,
                "the original is asked for, and a copy is held here",
            ))
        } else {
            Ok(())
        }
    }

    fn refuse_paths(&self) -> Result<(), Refusal> {
        if self.below.is_empty() && !self.is_list {
            Ok(())
        } else {
            Err(refuse(
                StatusCode::NOT_FOUND,
                "these metadata are one text, without files",
            ))
        }
    }
}

/// An item, and the modifier that leads to a related one.
struct Modified {
    item: Item,
    modifier: Modifier,
    preferences: Vec<ibi::relation::Language>,
}

/// The item if it is held here and public. Otherwise the page that says why not.
fn present(site: &Site, found: Option<Item>, name: &str, request: &Parts) -> Result<Item, Refusal> {
    let is_public = |item: &Item| site.archive.is_public(item, &act, &Dependencies::default());
    match found {
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

/// The item itself: one of its files, its file list, or its target file.
fn of_item(
    site: &Site,
    item: Item,
    wanted: &ContentRequest,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    wanted.refuse_copies(&item)?;
    // If the item itself may not be read, nothing in it is published.
    let root = site.archive.open_content(&item, b"", &act);
    let root = root.map_err(failed)?;
    if wanted.is_list {
        return Ok(ContentReply::Answer(pages::file_list(site, &item, request)));
    }
    if wanted.below.is_empty() && pages::is_for_programs(request) {
        return Ok(ContentReply::Answer(pages::landing(site, &item, request)));
    }
    let path = (!wanted.below.is_empty()).then_some(wanted.below.as_slice());
    let found = site
        .archive
        .content_path(&item, path, &act, &Dependencies::default());
    match (found.map_err(failed)?, path) {
        (Some(_), Some(_)) if wanted.is_directory => Err(no_file()),
        (Some(found), Some(_)) => {
            let opened = site.archive.open_content(&item, &found, &act);
            Ok(ContentReply::File {
                found: opened.map_err(failed)?,
                location: Some(format!("/{}", content_url(&item.names, &found))),
                name: found,
                is_download: wanted.is_download,
            })
        }
        (Some(found), None) if wanted.is_download => {
            let opened = site.archive.open_content(&item, &found, &act);
            Ok(ContentReply::File {
                found: opened.map_err(failed)?,
                location: Some(format!("/{}", content_url(&item.names, &found))),
                name: found,
                is_download: true,
            })
        }
        (Some(found), None) => {
            let place = format!("/{}", content_url(&item.names, &found));
            Ok(ContentReply::Answer(redirect(&place)))
        }
        (None, Some(path)) => {
            let in_doc = [b"doc/", path].concat();
            let opened = [in_doc.as_slice(), path]
                .into_iter()
                .find_map(|path| site.archive.open_content(&item, path, &act).ok());
            let opened = opened.ok_or_else(no_file)?;
            at_path(site, &item, opened, path.to_vec(), true, request)
        }
        (None, None) => at_path(site, &item, root, Vec::new(), true, request),
    }
}

/// The item or metadata to which a modifier leads.
fn of_related(
    site: &Site,
    modified: &Modified,
    wanted: &ContentRequest,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    let Modified {
        item,
        modifier,
        preferences,
    } = modified;
    let related = site
        .archive
        .resolve_shown(&item.names, modifier, preferences, &act)
        .map_err(failed)?;
    match related {
        Some(Related::Item(names)) => match site.archive.store().find_by_names(&names) {
            Ok(Some(item)) => of_item(
                site,
                present(site, Some(item), &names.preferred(), request)?,
                wanted,
                request,
            ),
            Ok(None) => elsewhere(site, modified, wanted),
            Err(error) => Err(failed(error.into())),
        },
        Some(Related::Text(item)) => {
            wanted.refuse_paths()?;
            wanted.refuse_copies(&item)?;
            if pages::is_for_people(request) || pages::is_for_programs(request) {
                return Ok(ContentReply::Answer(pages::metadata(site, &item, request)));
            }
            let found = site.archive.open_metadata_text(&item, &act);
            Ok(ContentReply::File {
                found: found.map_err(failed)?,
                name: b"metadata.txt".to_vec(),
                location: None,
                is_download: false,
            })
        }
        Some(Related::DublinCore { item, from }) => {
            wanted.refuse_paths()?;
            wanted.refuse_copies(&item)?;
            let root = site.archive.open_content(&item, b"", &act);
            root.map_err(failed)?;
            Ok(ContentReply::Answer(dublin_core(
                site,
                &item,
                from.as_ref(),
            )))
        }
        None => elsewhere(site, modified, wanted),
    }
}

/// Redirects to the persistent URL of the first item on the way that is not held here.
fn elsewhere(
    site: &Site,
    modified: &Modified,
    wanted: &ContentRequest,
) -> Result<ContentReply, Refusal> {
    let steps = modified.modifier.steps();
    for count in 1..=steps.len() {
        let (taken, left) = steps.split_at(count);
        let Some(way) = Modifier::from_steps(taken.to_vec()) else {
            continue;
        };
        let met =
            site.archive
                .resolve_shown(&modified.item.names, &way, &modified.preferences, &act);
        let Some(Related::Item(names)) = met.map_err(failed)? else {
            continue;
        };
        if site.archive.held(&names).map_err(failed)?.is_some() {
            continue;
        }
        // This Archive does not know whether that edition has a successor.
        let mut rest = left.to_vec();
        if taken.last() == Some(&Step::LastEdition) {
            rest.insert(0, Step::LastEdition);
        }
        let signs = Modifier::from_steps(rest).map(|rest| rest.to_string());
        return Ok(ContentReply::Answer(redirect(&onward(
            &names,
            &signs.unwrap_or_default(),
            wanted,
        ))));
    }
    let sentence = format!(
        "{} has no {} that is known here",
        modified.item.names.preferred(),
        modified.modifier
    );
    Err(refuse(StatusCode::NOT_FOUND, &sentence))
}

/// The persistent URL of what is wanted of an item that is held elsewhere.
fn onward(names: &Names, signs: &str, wanted: &ContentRequest) -> String {
    let mut url = format!("{}{signs}", persistent_url(names));
    if !wanted.below.is_empty() {
        url.push_str(&format!("/{}", encoded(&wanted.below)));
    }
    let pairs = [
        (wanted.is_list, "ibiurl.verblist=GetFileList"),
        (wanted.is_original, "ibiurl.requireditemstatus=Original"),
    ];
    let pairs: Vec<&str> = pairs
        .into_iter()
        .filter_map(|(is_wanted, pair)| is_wanted.then_some(pair))
        .collect();
    if pairs.is_empty() {
        url
    } else {
        format!("{url}?{}", pairs.join("&"))
    }
}

fn dublin_core(site: &Site, item: &Item, from: Option<&Names>) -> Response<Body> {
    match site.archive.dublin_core(item, from, &act) {
        Ok(document) => {
            let kind = "application/xml; charset=utf-8";
            answer::fresh(answer::whole(StatusCode::OK, kind, document))
        }
        Err(error) => failure::of(&error),
    }
}

fn redirect(place: &str) -> Response<Body> {
    let mut response = answer::fresh(answer::refusal(StatusCode::FOUND, &format!("see {place}")));
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

fn text_of(components: &[Vec<u8>]) -> Option<String> {
    String::from_utf8(components.join(&b'/')).ok()
}

fn refuse(status: StatusCode, sentence: &str) -> Refusal {
    Box::new(answer::refusal(status, sentence))
}

fn no_file() -> Refusal {
    refuse(StatusCode::NOT_FOUND, "this item has no such file")
}

fn failed(error: ArchiveError) -> Refusal {
    Box::new(failure::of(&error))
}
