//! The search indexes of what the public may read.
//!
//! It is read when the first search arrives. From then on it is brought up to date before each search, and all of it is
//! read again from time to time, since permissions can change without a change of the index.

use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::{Site, act};
use crate::archive::{ArchiveError, SearchIndexes, SearchScope, SearchStop};
use crate::web::server::share::{Share, Shares};

/// How long a search waits until the index is up to date. What has been read by then is kept for the next one.
const TIMEOUT: Duration = Duration::from_secs(5);

/// After this time all items are read again.
const READ_AGAIN: Duration = Duration::from_secs(1800);

/// The number of searches of one client that are made at a time. Its further ones wait, so that those of others need not.
const MOST_OF_CLIENT: usize = 4;

/// The search indexes, once somebody has searched.
#[derive(Debug)]
pub(super) struct Searches {
    of_clients: Shares,
    indexes: OnceLock<Arc<SearchIndexes>>,
    /// When all items were read last. Held while the index is brought up to date.
    read: Mutex<Option<Instant>>,
}

impl Default for Searches {
    fn default() -> Searches {
        Searches {
            of_clients: Shares::new(MOST_OF_CLIENT),
            indexes: OnceLock::new(),
            read: Mutex::default(),
        }
    }
}

impl Searches {
    /// Waits for the turn of a client.
    pub(super) async fn turn(&self, client: IpAddr) -> Share {
        self.of_clients.wait(client).await
    }
}

/// Opens the indexes: in the store, or temporary ones if that cannot be written.
pub(super) fn open(site: &Site) -> Result<&Arc<SearchIndexes>, ArchiveError> {
    if let Some(indexes) = site.searches.indexes.get() {
        return Ok(indexes);
    }
    let opened = Arc::new(site.archive.search_indexes(SearchScope::Public)?);
    Ok(site.searches.indexes.get_or_init(|| opened))
}

/// The indexes. The descriptions are up to date; None if they are not within a time, and then more of them are the
/// next time.
pub(super) fn up_to_date(site: &Site) -> Result<Option<&SearchIndexes>, ArchiveError> {
    let indexes = open(site)?;
    let until = Instant::now() + TIMEOUT;
    let Some(mut read) = site.searches.read.try_lock_until(until) else {
        return Ok(None);
    };
    match *read {
        Some(since) if since.elapsed() < READ_AGAIN => {}
        Some(_) => {
            indexes.descriptions.read_again()?;
            *read = Some(Instant::now());
        }
        None => *read = Some(Instant::now()),
    }
    let is_current = site
        .archive
        .update_search(&indexes.descriptions, &act, &mut |_| SearchStop::at(until))?;
    drop(read);
    if is_current {
        site.archive.read_texts_aside(indexes, act);
    }
    Ok(is_current.then_some(indexes))
}
