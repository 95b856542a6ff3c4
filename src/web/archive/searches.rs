//! The search indexes of what the public may read.
//!
//! It is read when the first search arrives. From then on it is brought up to date before each search, and all of it is
//! read again from time to time, since permissions can change without a change of the index.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Site, act};
use crate::archive::{ArchiveError, SearchCache, SearchIndexes, SearchScope};
use crate::http::server::share::{Share, Shares};

/// The time that a search waits until the index is up to date. Items read by then stay for the next one.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The search indexes, once a reader has searched.
#[derive(Debug)]
pub(super) struct Searches {
    /// The searches of a client that are made at a time. Its further ones wait, so that those of others need not.
    of_clients: Shares,
    kept: SearchCache,
}

impl Default for Searches {
    fn default() -> Searches {
        Searches {
            of_clients: Shares::of_processors(),
            kept: SearchCache::of(SearchScope::Public),
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
    site.searches.kept.open(&site.archive)
}

/// The indexes. The descriptions are up to date; None if they are not within a time, and then more of them are the
/// next time.
pub(super) fn up_to_date(site: &Site) -> Result<Option<&SearchIndexes>, ArchiveError> {
    let kept = &site.searches.kept;
    let indexes = kept.up_to_date(&site.archive, &act, TIMEOUT)?;
    if let Some(indexes) = indexes {
        site.archive.read_texts_aside(indexes, act);
    }
    Ok(indexes.map(|indexes| &**indexes))
}
