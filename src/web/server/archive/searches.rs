//! The search index of what the public may read.
//!
//! It is read when the first search arrives. From then on it is brought up to date before each search, and all of it is
//! read again from time to time, since permissions can change without a change of the index.

use parking_lot::Mutex;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::{Site, act};
use crate::archive::store::SearchIndex;
use crate::archive::{ArchiveError, PUBLIC_SEARCH_FILE, SearchStop};

/// How long a search waits until the index is up to date. What has been read by then is kept for the next one.
const TIMEOUT: Duration = Duration::from_secs(5);

/// After this time all items are read again.
const READ_AGAIN: Duration = Duration::from_secs(1800);

/// The search index, once somebody has searched.
#[derive(Debug, Default)]
pub(super) struct Searches {
    index: OnceLock<SearchIndex>,
    /// When all items were read last. Held while the index is brought up to date.
    read: Mutex<Option<Instant>>,
}

/// Opens the index: in the store, or a temporary one if that cannot be written.
pub(super) fn open(site: &Site) -> Result<&SearchIndex, ArchiveError> {
    if let Some(index) = site.searches.index.get() {
        return Ok(index);
    }
    let opened = match site.archive.search_index(PUBLIC_SEARCH_FILE) {
        Ok(index) => index,
        Err(error) => {
            log::warn!(
                "the search index cannot be stored, and is made again at each start: {error}"
            );
            SearchIndex::temporary()?
        }
    };
    Ok(site.searches.index.get_or_init(|| opened))
}

/// The index, up to date. None if it is not within a time; then more of it is the next time.
pub(super) fn up_to_date(site: &Site) -> Result<Option<&SearchIndex>, ArchiveError> {
    let index = open(site)?;
    let until = Instant::now() + TIMEOUT;
    let Some(mut read) = site.searches.read.try_lock_until(until) else {
        return Ok(None);
    };
    match *read {
        Some(since) if since.elapsed() < READ_AGAIN => {}
        Some(_) => {
            index.read_again()?;
            *read = Some(Instant::now());
        }
        None => *read = Some(Instant::now()),
    }
    let is_current = site.archive.update_search(index, &act, &mut |_| {
        if Instant::now() < until {
            SearchStop::GoOn
        } else {
            SearchStop::Stop
        }
    })?;
    Ok(is_current.then_some(index))
}
