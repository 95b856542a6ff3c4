//! Files that were found damaged: they are not sent as if they were good, and the page of their item says so.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use parking_lot::Mutex;

use super::Site;
use crate::archive::scrub;
use crate::archive::store::Item;
use crate::archive::tree::{Place, Published, Tree};
use crate::formats::fixity::Written;
use crate::http::server::answer::{self, Refusal};

/// The time for which what is marked is known.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// The damaged files of an item, with size and time when they were recorded.
type DamagedFiles = HashMap<Vec<u8>, Option<Written>>;

/// The items that have damaged files, by their places.
#[derive(Debug, Default)]
pub(super) struct KnownDamage(Mutex<Option<(Instant, HashMap<String, DamagedFiles>)>>);

/// Reads what is marked in a store. It is little, or nothing.
fn marked(tree: &Tree) -> HashMap<String, DamagedFiles> {
    let files = |(item, _): (String, u64)| {
        let marks = scrub::marks_of(tree, &item).unwrap_or_default();
        let of = |path: Vec<u8>| {
            let written = scrub::recorded_writing(tree, &item, &path);
            (path, written)
        };
        let files = marks.into_keys().map(of).collect();
        (item, files)
    };
    scrub::damage(tree).into_iter().map(files).collect()
}

impl Site {
    fn damaged<T>(&self, item: &Item, read: impl FnOnce(&DamagedFiles) -> T) -> Option<T> {
        let mut known = self.damage.0.lock();
        if known
            .as_ref()
            .is_none_or(|(at, _)| at.elapsed() > KNOWN_FOR)
        {
            *known = Some((Instant::now(), marked(self.archive.tree())));
        }
        let (_, items) = known.as_ref()?;
        if items.is_empty() {
            return None;
        }
        items.get(Place::of(&item.names).as_str()).map(read)
    }

    /// Whether files of an item were found damaged or lost.
    pub(super) fn has_damage(&self, item: &Item) -> bool {
        self.damaged(item, |_| ()).is_some()
    }

    /// The files of an item that were found damaged and have not been written since, and those that are lost.
    pub(super) fn damaged_files(&self, item: &Item) -> Vec<Vec<u8>> {
        let known = self.damaged(item, DamagedFiles::clone);
        let is_damaged = |path: &Vec<u8>, written: Option<Written>| {
            let found = self.public().open_content(item, path);
            found.is_ok_and(|found| is_as_recorded(&found, written))
        };
        let known = known.unwrap_or_default().into_iter();
        let damaged = known.filter(|(path, written)| is_damaged(path, *written));
        let mut damaged: Vec<Vec<u8>> = damaged.map(|(path, _)| path).collect();
        damaged.sort();
        damaged
    }

    /// Refuses a file that was found damaged and has not been written since.
    pub(super) fn refuse_damaged(
        &self,
        item: &Item,
        found: &Published,
        path: &[u8],
    ) -> Result<(), Refusal> {
        let path = found.led_to().unwrap_or(path);
        let written = self.damaged(item, |files| files.get(path).copied());
        match written.flatten() {
            Some(written) if is_as_recorded(found, written) => Err(Box::new(refusal())),
            _ => Ok(()),
        }
    }
}

fn is_as_recorded(found: &Published, written: Option<Written>) -> bool {
    let changed = found.changed();
    let nanoseconds = changed.as_nanoseconds().rem_euclid(1_000_000_000);
    written.is_none_or(|written| {
        written.size == found.length()
            && written.seconds == changed.seconds()
            && u128::from(written.nanoseconds) == nanoseconds.unsigned_abs()
    })
}

/// The answer to a request for a damaged file, or for all of an item that has one.
pub(super) fn refusal() -> axum::http::Response<axum::body::Body> {
    let sentence = "this file was found damaged here, and is not sent until it is mended; another Archive may have a copy";
    answer::refusal(StatusCode::SERVICE_UNAVAILABLE, sentence)
}
