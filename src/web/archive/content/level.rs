//! The names below a level, as a text for clients that list the Archive (see [`crate::formats::level`]).

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response, StatusCode};

use super::reply::{Path, failed, refuse, text_of, validated};
use crate::formats::level::{LevelName, LevelPage, ListOrder, MEDIA_TYPE, NameKind};
use crate::formats::query::percent_decoded;
use crate::formats::tree_name::LevelPath;
use crate::http::server::answer::Refusal;
use crate::web::archive::Site;
use crate::web::archive::levels::{Member, Members, visible};

/// A page ends after so many names.
const ENOUGH: usize = 2_000;
/// A page ends after so many items have been looked at, if most of them are not public.
const MOST_LOOKED_AT: usize = 4_000;

/// The place after which a request wants what is below a level. None if it wants something else.
pub(super) fn place_wanted(request: &Parts) -> Option<String> {
    match request.uri.query()? {
        "level" => Some(String::new()),
        query => percent_decoded(query.strip_prefix("level=")?),
    }
}

/// Answers with the page of a level that begins after a place.
pub(super) fn answer(
    site: &Site,
    path: &Path,
    place: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, Refusal> {
    let unknown = || {
        refuse(
            StatusCode::NOT_FOUND,
            "nothing public is below this path; a level is one to three parts of a rep, or the prefix of an IBIp",
        )
    };
    let below = match path.components.split_first() {
        Some((first, below)) if first == b"col" => below,
        _ => path.components.as_slice(),
    };
    let level = text_of(below).and_then(|text| LevelPath::parse(&text));
    let level = level.ok_or_else(unknown)?;
    let (stat, _) = visible(site, &level, false).map_err(failed)?;
    let stat = stat.ok_or_else(unknown)?;
    let mut page = LevelPage {
        path: recorded(site, level)?,
        stat,
        names: Vec::new(),
        next: None,
    };
    let mut members = if place.is_empty() {
        Members::of(site, &page.path).map_err(failed)?
    } else {
        let members = Members::after(site, &page.path, place).map_err(failed)?;
        members.ok_or_else(|| {
            refuse(
                StatusCode::BAD_REQUEST,
                "no page of this level begins there",
            )
        })?
    };
    let (names, level, mut order) = (&mut page.names, &page.path, ListOrder::default());
    while members
        .next(site, |member| {
            let name = name_of(member);
            // A damaged index may have a name in another place.
            if order.add(level, &name) {
                names.push(name);
            }
        })
        .map_err(failed)?
    {
        if names.len() >= ENOUGH || members.looked_at >= MOST_LOOKED_AT {
            page.next = Some(members.place().into_bytes());
            break;
        }
    }
    Ok(validated(headers, MEDIA_TYPE, page.to_string()))
}

fn name_of(member: Member) -> LevelName {
    match member {
        Member::Level(path, stat) => LevelName {
            name: path.name().to_owned(),
            kind: NameKind::Level(stat),
        },
        Member::Item(_, name, _) => LevelName {
            name,
            kind: NameKind::Item,
        },
    }
}

/// A level in the spelling that is recorded.
fn recorded(site: &Site, path: LevelPath) -> Result<LevelPath, Refusal> {
    let store = site.archive.store();
    let spelled = match &path {
        LevelPath::Root => return Ok(path),
        LevelPath::Rep(text) => store.spelling_of_level(text),
        LevelPath::Prefix(text) => store.spelling_of_prefix(text),
    };
    let spelled = spelled.map_err(|error| failed(error.into()))?;
    Ok(spelled
        .and_then(|text| LevelPath::parse(&text))
        .unwrap_or(path))
}
