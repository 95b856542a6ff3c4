//! The contents of an item, as a text for clients that show all of it (see [`crate::formats::inventory`]).

use axum::body::Body;
use axum::http::{HeaderMap, Response};

use super::reply::{failed, validated};
use crate::archive::scrub::{RecordedDigests, contents_with_pieces};
use crate::archive::store::Item;
use crate::archive::tree::Place;
use crate::formats::fixity::Written;
use crate::formats::inventory::{EntryKind, MEDIA_TYPE, MOST_ENTRIES, Page};
use crate::web::archive::Site;

/// The longest record of digests that is read for a page, in bytes: that of some 200,000 files.
const LONGEST_RECORD: i64 = 32 << 20;

/// Answers with the page of an item's inventory that begins after a path.
pub(super) fn answer(
    site: &Site,
    item: &Item,
    after: &[u8],
    headers: &HeaderMap,
) -> Response<Body> {
    let mut page = match site.public().inventory(item, after, MOST_ENTRIES) {
        Ok(page) => page,
        Err(error) => return *failed(error),
    };
    add_digests(site, item, &mut page);
    validated(headers, MEDIA_TYPE, page.to_string())
}

/// Adds the digests that a scrub recorded of files that have not been written since.
fn add_digests(site: &Site, item: &Item, page: &mut Page) {
    let place = Place::of(&item.names);
    let recorded = RecordedDigests::of(site.archive.tree(), place.as_str(), LONGEST_RECORD);
    let recorded = recorded.unwrap_or_else(|error| {
        log::debug!("{}: {error}", item.names);
        RecordedDigests::default()
    });
    let with_pieces = contents_with_pieces(site.archive.tree(), place.as_str());
    for entry in &mut page.entries {
        if let EntryKind::File(file) = &mut entry.kind {
            let written = Written {
                size: file.size,
                seconds: entry.stat.modified.0,
                nanoseconds: entry.stat.modified.1,
            };
            file.digest = recorded.get(&entry.path, &written);
            file.has_pieces = file
                .digest
                .is_some_and(|digest| with_pieces.contains(&digest));
        }
    }
}
