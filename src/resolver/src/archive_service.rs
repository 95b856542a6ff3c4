//! The service of an Archive as a resolver uses it. The requests that wait for an Archive are limited, and an
//! Archive that has stopped answering is left alone for a while.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::registry::ArchiveId;
use ibi::pairs::Pairs;
use ibifs_formats::base_url::BaseUrl;
use ibifs_formats::item::Names;
use ibifs_formats::resolution::service_url;
use ibifs_http::client::{Client, ClientError, Reach};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for an Archive that did not answer its last [`SILENCE`] requests.
const SHORT_TIMEOUT: Duration = Duration::from_millis(250);
/// The number of consecutive requests without an answer after which an Archive is left alone.
const SILENCE: u32 = 3;
/// The time for which it is left alone at first, and at most. Each time is twice the one before.
const RESTS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// The least and the most time that others wait for an Archive that is asked first.
const HEAD_STARTS: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(1));
/// The time for which others wait, in usual answer times of the Archive.
const USUAL_TIMES: u32 = 3;
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

/// The service of an Archive that a resolver asks.
#[derive(Debug)]
pub(crate) struct ArchiveService {
    /// Its row, if it is registered; None for an Archive on a list of federated Archives.
    pub(crate) id: Option<ArchiveId>,
    /// The addresses that the requests may reach.
    pub(crate) reach: Reach,
    /// The identifier of its service, in one spelling.
    pub(crate) service: String,
    /// The names of its service.
    names: Names,
    /// Its address: `host`, `host:port` or a URL.
    pub(crate) address: String,
    /// The URL of its service.
    pub(crate) url: String,
    /// Consecutive requests that it has not answered.
    failures: AtomicU32,
    /// Since it was silent: until when it is left alone.
    rest: Mutex<Option<Rest>>,
    /// The time that its answers take, in microseconds: a moving mean. 0 before the first.
    usual: AtomicU32,
    /// Requests that wait for its answer.
    waiting: AtomicUsize,
}

/// The time for which a silent Archive is left alone.
#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    /// The length of the next time, if the request that tries it is not answered.
    next: Duration,
    is_tried: bool,
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
            service: service_key(service),
            names: service.clone(),
            address: url.short(),
            url: service_url(url, service),
            failures: AtomicU32::new(0),
            rest: Mutex::new(None),
            usual: AtomicU32::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Requests the pairs that answer a query, and records whether they came.
    ///
    /// # Errors No answer in time, too many waiting requests, or an answer that is not a list of pairs or comes from another
    /// Archive, which has the address by now.
    pub(crate) async fn ask(&self, client: &Client, query: &str) -> Result<Pairs, ClientError> {
        let url = format!("{}?{query}", self.url);
        let Some(_waiting) = self.begin() else {
            let error = "too many questions wait for it".to_owned();
            return Err(ClientError::Failed(error));
        };
        let started = Instant::now();
        let body = client.get(&url, LONGEST_ANSWER, self.timeout()).await;
        let pairs = body.and_then(|body| {
            let pairs = Pairs::parse(&body);
            let pairs = pairs.map_err(|error| ClientError::Failed(error.to_string()))?;
            let service = pairs.get("ibi.archiveservice");
            match service.and_then(|service| Names::from_value(service).ok()) {
                Some(other) if other.contradicts(&self.names) => {
                    Err(ClientError::Failed(format!("it is the Archive {other}")))
                }
                _ => Ok(pairs),
            }
        });
        self.note(pairs.is_ok().then(|| started.elapsed()));
        pairs
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

    /// Records that a request was answered after this time, or not at all.
    fn note(&self, answered: Option<Duration>) {
        let Some(took) = answered else {
            let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
            if failures >= SILENCE {
                self.rest();
            }
            return;
        };
        self.revive();
        let took = u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1);
        let usual = match self.usual.load(Ordering::Relaxed) {
            0 => took,
            before => before - before / 8 + took / 8,
        };
        self.usual.store(usual, Ordering::Relaxed);
    }

    fn rest(&self) {
        let mut rest = self.rest.lock();
        let (shortest, longest) = RESTS;
        let length = match *rest {
            None => shortest,
            Some(Rest {
                is_tried: true,
                next,
                ..
            }) => next,
            // One of many requests that began before.
            Some(_) => return,
        };
        *rest = Some(Rest {
            until: Instant::now() + length,
            next: (length * 2).min(longest),
            is_tried: false,
        });
    }

    /// Ends that it is left alone: it has answered, or announced that it is up.
    pub(crate) fn revive(&self) {
        // Others read the counter only, so that Archives that answer share no lock.
        if self.failures.swap(0, Ordering::Relaxed) >= SILENCE {
            *self.rest.lock() = None;
        }
    }

    /// Whether it has stopped answering and is left alone. When the time is over, one request may try it.
    pub(crate) fn is_left_alone(&self) -> bool {
        if self.failures.load(Ordering::Relaxed) < SILENCE {
            return false;
        }
        let now = Instant::now();
        match self.rest.lock().as_mut() {
            Some(rest) if rest.until <= now => {
                rest.is_tried = true;
                rest.until = now + TIMEOUT;
                false
            }
            rest => rest.is_some(),
        }
    }

    /// Whether its last requests were answered.
    pub(crate) fn is_answering(&self) -> bool {
        self.failures.load(Ordering::Relaxed) < SILENCE
    }

    /// Returns how long others wait for its answer, before they are asked, too.
    pub(crate) fn head_start(&self) -> Duration {
        let usual = self.usual.load(Ordering::Relaxed);
        let (least, most) = HEAD_STARTS;
        Duration::from_micros(u64::from(usual.saturating_mul(USUAL_TIMES))).clamp(least, most)
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

/// Whether an Archive is reached at a URL.
pub(crate) async fn confirms(client: &Client, url: &BaseUrl, service: &Names) -> bool {
    let service = service_url(url, service);
    let url = format!("{service}?servicesubject=inclusionConfirmationRequest");
    let answer = client.get(&url, LONGEST_CONFIRMATION, CONFIRMATION_TIMEOUT);
    let pairs = answer.await.ok().and_then(|body| Pairs::parse(&body).ok());
    pairs.is_some_and(|pairs| {
        let confirmation = pairs.get("confirmation").map(ToString::to_string);
        confirmation.as_deref() == Some("yes")
    })
}

/// The identifier of a service in one spelling, by which it is remembered.
pub(crate) fn service_key(service: &Names) -> String {
    let rep = service.rep().map(ibi::Rep::canonical);
    rep.or(service.ibip().map(ibi::Ibip::canonical))
        .unwrap_or_default()
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
    fn one_that_is_silent_is_left_alone() {
        let service = service();
        for _ in 0..SILENCE {
            assert!(service.timeout() == TIMEOUT && !service.is_left_alone());
            service.note(None);
        }
        assert!(service.timeout() == SHORT_TIMEOUT && service.is_left_alone());
        // After that time one request tries it, and the others do not.
        let lasts = |service: &ArchiveService| {
            let mut rest = service.rest.lock();
            let rest = rest.as_mut().expect("a rest");
            let lasts = rest.until.saturating_duration_since(Instant::now());
            rest.until = Instant::now();
            lasts.as_secs_f32().round()
        };
        for expected in [5.0, 10.0, 20.0, 40.0, 60.0, 60.0] {
            // Requests that began before count as one.
            for _ in 0..10 {
                service.note(None);
            }
            assert_eq!(lasts(&service), expected);
            assert!(!service.is_left_alone() && service.is_left_alone());
            service.note(None);
        }
        service.note(Some(Duration::from_millis(1)));
        assert!(service.timeout() == TIMEOUT && !service.is_left_alone());
    }

    #[test]
    fn others_wait_by_its_usual_time() {
        let service = service();
        assert_eq!(service.head_start(), HEAD_STARTS.0);
        service.note(Some(Duration::from_millis(200)));
        assert_eq!(service.head_start(), Duration::from_millis(600));
        for _ in 0..50 {
            service.note(Some(Duration::from_secs(2)));
        }
        assert_eq!(service.head_start(), HEAD_STARTS.1);
        for _ in 0..100 {
            service.note(Some(Duration::ZERO));
        }
        assert_eq!(service.head_start(), HEAD_STARTS.0);
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
