//! The events of an item of which the public is told, a line of JSON each.

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode};

use super::reply::{failed, refuse, validated};
use crate::archive::store::Item;
use crate::archive::{ArchiveError, MOST_TOLD};
use crate::formats::description::DescriptionFormat;
use crate::web::archive::Site;

/// Lines of JSON (github.com/ndjson/ndjson-spec).
const MEDIA_TYPE: &str = "application/x-ndjson";

/// Answers with the latest events of an item.
pub(super) fn answer(site: &Site, item: &Item, headers: &HeaderMap) -> Response<Body> {
    match lines(site, item) {
        Ok(Some(lines)) => validated(headers, MEDIA_TYPE, lines),
        Ok(None) => *refuse(StatusCode::NOT_FOUND, "this Archive keeps no history of it"),
        Err(error) => *failed(error),
    }
}

fn lines(site: &Site, item: &Item) -> Result<Option<String>, ArchiveError> {
    let has_history = site.archive.has_format(item, DescriptionFormat::Premis)?;
    if !has_history {
        return Ok(None);
    }
    let events = site.public().events_told(item, MOST_TOLD)?.into_iter();
    Ok(Some(events.map(|it| it.told.line + "\n").collect()))
}
