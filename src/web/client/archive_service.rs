//! The service of an Archive as a resolver uses it. The requests that wait for an Archive are limited, and
//! the timeout is shorter for an Archive that has stopped answering.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use super::{Client, ClientError};
use crate::formats::base_url::BaseUrl;
use crate::formats::item::Names;
use crate::formats::query::encoded;
use crate::web::registry::{ArchiveId, Inclusion};
use ibi::pairs::Pairs;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for an Archive that did not answer its last [`SILENCE`] requests.
const SHORT_TIMEOUT: Duration = Duration::from_millis(250);
/// How many consecutive requests without an answer shorten the timeout.
const SILENCE: u32 = 3;
/// The most requests that wait for one Archive at a time.
const MOST_WAITING: usize = 512;
/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 1 << 20;
/// The timeout of an acknowledgment.
const ACKNOWLEDGMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a confirmation that the Archive is reached.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest confirmation, in bytes.
const LONGEST_CONFIRMATION: usize = 4096;

/// Which addresses the requests to an Archive may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All: an administrator has named the Archive.
    Any,
    /// Those of the public Internet: the Archive is on a list from the network.
    Public,
}

/// The service of an Archive that a resolver asks.
#[derive(Debug)]
pub(crate) struct ArchiveService {
    /// Its row, if it is registered; None for an Archive on a list of federated Archives.
    pub(crate) id: Option<ArchiveId>,
    /// Which addresses the requests may reach.
    pub(crate) reach: Reach,
    /// Its address: `host`, `host:port` or a URL.
    pub(crate) address: String,
    /// The URL of its service.
    pub(crate) url: String,
    /// Consecutive requests that it has not answered.
    failures: AtomicU32,
    /// Requests that wait for its answer.
    waiting: AtomicUsize,
}

/// A request that waits for its answer. It is counted until it is dropped.
#[derive(Debug)]
struct PendingRequest<'a>(&'a ArchiveService);

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ArchiveService {
    /// The service of this identifier, at this URL.
    pub(crate) fn new(
        id: Option<ArchiveId>,
        reach: Reach,
        url: &BaseUrl,
        service: &Names,
    ) -> ArchiveService {
        ArchiveService {
            id,
            reach,
            address: url.short(),
            url: service_url(url, service),
            failures: AtomicU32::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Requests the pairs that answer a query. Does not change [`Self::note`]'s count.
    ///
    /// # Errors No answer in time, too many waiting requests, or an answer that is not a list of pairs.
    pub(crate) async fn ask(&self, client: &Client, query: &str) -> Result<Pairs, ClientError> {
        let url = format!("{}?{query}", self.url);
        let body = match self.begin() {
            Some(_waiting) => client.get(&url, LONGEST_ANSWER, self.timeout()).await,
            None => Err(ClientError::Failed(
                "too many questions wait for it".to_owned(),
            )),
        };
        Pairs::parse(&body?).map_err(|error| ClientError::Failed(error.to_string()))
    }

    /// Reports to the Archive that its answer was chosen.
    ///
    /// # Errors
    /// The Archive does not accept it in time.
    pub(crate) async fn acknowledge(
        &self,
        client: &Client,
        query: &str,
    ) -> Result<(), ClientError> {
        let url = format!("{}?{query}", self.url);
        let answer = client.get(&url, LONGEST_ANSWER, ACKNOWLEDGMENT_TIMEOUT);
        answer.await.map(drop)
    }

    /// Records whether a request was answered.
    pub(crate) fn note(&self, has_answered: bool) {
        if has_answered {
            self.failures.store(0, Ordering::Relaxed);
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn timeout(&self) -> Duration {
        if self.failures.load(Ordering::Relaxed) < SILENCE {
            TIMEOUT
        } else {
            SHORT_TIMEOUT
        }
    }

    /// Counts a request. None if too many are waiting.
    fn begin(&self) -> Option<PendingRequest<'_>> {
        let waiting = PendingRequest(self);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING {
            Some(waiting)
        } else {
            None
        }
    }
}

/// Whether an Archive is reached at the address that it announces.
pub(crate) async fn confirms(client: &Client, inclusion: &Inclusion) -> bool {
    let service = service_url(&inclusion.url, &inclusion.service);
    let url = format!("{service}?servicesubject=inclusionConfirmationRequest");
    let answer = client.get(&url, LONGEST_CONFIRMATION, CONFIRMATION_TIMEOUT);
    let pairs = answer.await.ok().and_then(|body| Pairs::parse(&body).ok());
    pairs.is_some_and(|pairs| {
        let confirmation = pairs.get("confirmation").map(ToString::to_string);
        confirmation.as_deref() == Some("yes")
    })
}

/// The URL of an Archive's service.
pub(crate) fn service_url(url: &BaseUrl, service: &Names) -> String {
    url.at(&encoded(service.preferred().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ibi::Ibi;

    fn service() -> ArchiveService {
        let names = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp"));
        let url = BaseUrl::of_address("a:1905");
        ArchiveService::new(Some(ArchiveId::for_test(1)), Reach::Any, &url, &names)
    }

    #[test]
    fn the_url_has_the_address_and_the_identifier() {
        assert_eq!(service().url, "http://a:1905/8JMKD3MGP8W/34PGRBS");
    }

    #[test]
    fn the_timeout_is_short_after_silence() {
        let service = service();
        for _ in 0..SILENCE {
            assert_eq!(service.timeout(), TIMEOUT);
            service.note(false);
        }
        assert_eq!(service.timeout(), SHORT_TIMEOUT);
        service.note(true);
        assert_eq!(service.timeout(), TIMEOUT);
    }

    #[test]
    fn requests_that_wait_are_bounded() {
        let service = service();
        let waiting: Vec<PendingRequest<'_>> =
            (0..MOST_WAITING).filter_map(|_| service.begin()).collect();
        assert!(waiting.len() == MOST_WAITING && service.begin().is_none());
        drop(waiting);
        assert!(service.begin().is_some());
    }
}
