//! Persistent names: a path and query in any form that ibi(7) lists.

use axum::http::StatusCode;
use axum::http::request::Parts;

use super::item::{About, ContentRequest, of_item, present};
use super::related::{Modified, of_related};
use super::reply::{ContentReply, Path, failed, refuse, text_of};
use crate::archive::store::Item;
use crate::formats::query::Query;
use crate::http::server::answer::{self, Refusal};
use crate::http::server::languages;
use crate::web::archive::{Site, pages};
use ibi::persistent::{Identifier, PersistentKind, PersistentName, Reader};
use ibi::relation::{Request, Step};
use ibi::{AliasPair, Ibi};

/// Resolves a link in any form that ibi(7) lists, with its modifier, path and query.
pub(super) fn persistent(
    site: &Site,
    path: &Path,
    request: &Parts,
) -> Result<(ContentReply, bool), Refusal> {
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
        Some(Request::Modifier(modifier)) => {
            (Some(modifier), name.kind == PersistentKind::FileList)
        }
        Some(Request::FileList(modifier)) => (modifier, true),
    };
    let depends_on_reader = modifier
        .as_ref()
        .is_some_and(|modifier| modifier.steps().contains(&Step::Translation(None)));
    let wanted = ContentRequest {
        below: name.path,
        end: path.end,
        is_list,
        is_original: name.is_original_required,
        is_download: name.kind == PersistentKind::Download,
        is_zip: name.kind == PersistentKind::Package,
        about: About::of_query(query),
        // The query of a record is for the script that shows it.
        query: match name.kind {
            PersistentKind::Record => String::new(),
            _ => query.to_owned(),
        },
    };
    let reply = match modifier {
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
    match reply {
        Ok(reply) => Ok((reply, depends_on_reader)),
        Err(refusal) if depends_on_reader => Err(Box::new(answer::by_language(*refusal))),
        Err(refusal) => Err(refusal),
    }
}

/// Reads the name that a request asks for.
fn read_name(site: &Site, path: &Path, request: &Parts) -> Result<PersistentName, Refusal> {
    let text = match request.uri.query() {
        Some(query) if About::of_query(query).is_some() => request.uri.path().to_owned(),
        Some(query) => format!("{}?{query}", request.uri.path()),
        None => request.uri.path().to_owned(),
    };
    let unknown = || {
        let text = path.components.join(&b'/');
        let text = String::from_utf8_lossy(&text);
        Box::new(pages::unknown(site, &text, request))
    };
    let reader = Reader::new().with_aliases();
    match site.archive.read_name(reader, &text).map_err(failed)? {
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
