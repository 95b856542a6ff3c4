//! The Archive over HTTP: its service (ibi-resolution(7)), the content of its items, pages, and OAI-PMH.

mod audit;
mod cache;
pub(crate) mod conditions;
mod content;
mod copies;
mod crawlers;
mod damage;
mod dav;
mod failure;
mod file;
mod levels;
mod measure;
mod oai;
pub(crate) mod pages;
mod pictures;
mod searches;
mod service;
mod signers;
mod tlog;
mod transfer;
mod witness;
mod zip;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, Request, Response};
use rustix::io::Errno;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::archive::answering::AuditService;
use crate::archive::copies::prepare_for_service;
use crate::archive::witness::Witness;
use crate::archive::{Archive, ReadAs};
use crate::formats::base_url::BaseUrl;
use crate::http::server::metrics::Monitored;
use crate::http::server::share::{Proxies, Share, Shares, client_of};
use crate::http::server::{Peer, Responder, SiteClock, Started, answer, languages, prefix};
use crate::os::caller::Caller;
use crate::resolver::registry::MOST_ANNOUNCED;
use crate::web::announcement::Announcement;
use crate::web::service::{AccessCounter, Keys};
use cache::{AnswerCache, SingleFlight};
use ibi::message::Message;

pub use transfer::Receiver;

/// The user as whom content is read if the service runs as root. A file that they may not read is not
/// published.
const NOBODY: Caller = Caller::NOBODY;

/// The most readers that have digests of pieces of files computed at a time.
const MOST_DIGESTS: usize = 16;

/// An Archive that is served.
#[derive(Debug)]
pub struct Site {
    archive: Arc<Archive>,
    clock: SiteClock,
    url: BaseUrl,
    proxies: Proxies,
    keys: Keys,
    accesses: AccessCounter,
    front: pages::Front,
    claims: pages::KeptClaims,
    oai: oai::Oai,
    cache: AnswerCache,
    lists: crawlers::Lists,
    zips: zip::ZipLimit,
    /// The number of readers that may have digests of pieces of files computed at a time.
    digests: Arc<Semaphore>,
    damage: damage::KnownDamage,
    searches: searches::Searches,
    of_clients: Shares,
    pictures: pictures::Pictures,
    log: tlog::Log,
    /// The receiver of transferred items. None if the Archive accepts none.
    receiver: Option<Arc<Receiver>>,
    /// The witness of other logs. None if the Archive is none.
    witness: Option<Arc<Witness>>,
    /// The service for audits by other Archives. None if none is listed.
    audits: Option<Arc<AuditService>>,
    gauges: measure::Gauges,
}

/// An Archive as the public reads it.
fn public(archive: &Archive) -> ReadAs<'_> {
    archive.read_as(&act).numbered(NOBODY.acts_as())
}

impl Site {
    /// The Archive as the public reads it.
    fn public(&self) -> ReadAs<'_> {
        public(&self.archive)
    }

    /// The site of an Archive that is reached at this URL, with its administrator's e-mail address.
    #[must_use]
    pub fn new(archive: Archive, url: BaseUrl, email: String, clock: SiteClock) -> Site {
        // The records of a later scrub are found from what is opened now.
        if rustix::process::geteuid().is_root()
            && let Err(error) = prepare_for_service(archive.tree())
        {
            log::debug!("what scrubs record is found after the next start: {error}");
        }
        archive.tree().keep_open();
        archive.store().answer_soon();
        if let Err(error) = archive.store().watch() {
            log::warn!(
                "nothing is cached, since changes of the index would not be noticed: {error}"
            );
        }
        Site {
            archive: Arc::new(archive.served_at(url.clone())),
            clock,
            oai: oai::Oai::new(&url, email),
            url,
            proxies: Proxies::new(&[]),
            keys: Keys::default(),
            accesses: AccessCounter::default(),
            front: pages::Front::default(),
            claims: pages::KeptClaims::default(),
            cache: AnswerCache::default(),
            lists: crawlers::Lists::default(),
            zips: zip::ZipLimit::default(),
            digests: Arc::new(Semaphore::new(MOST_DIGESTS)),
            damage: damage::KnownDamage::default(),
            searches: searches::Searches::default(),
            of_clients: Shares::of_processors(),
            pictures: pictures::Pictures::default(),
            log: tlog::Log::default(),
            receiver: None,
            witness: None,
            audits: None,
            gauges: measure::Gauges::default(),
        }
    }

    /// Drops root privileges permanently if the process has them. Opens first what needs them.
    ///
    /// # Errors The system refuses, and nothing may be served.
    pub fn give_up_root(&self) -> std::io::Result<()> {
        if let Err(error) = oai::open(self) {
            log::warn!("records cannot be harvested: {error}");
        }
        if let Err(error) = searches::open(self) {
            log::warn!("nothing is found by its words: {error}");
        }
        self.accesses.open(&self.archive);
        self.pictures.open(&self.archive);
        self.log.open(&self.archive);
        self.gauges.open(&self.archive);
        if let Err(error) = self.archive.keep_name_spaces() {
            log::warn!("names of name spaces are not completed: {error}");
        }
        NOBODY.become_for_good()
    }

    /// Sets the proxies that forward requests.
    #[must_use]
    pub fn behind(self, proxies: Proxies) -> Site {
        Site { proxies, ..self }
    }

    /// The client whose share a request takes.
    fn client(&self, request: &Parts) -> IpAddr {
        let peer = request.extensions.get();
        let Peer(peer) = peer.copied().unwrap_or(Peer(Ipv4Addr::UNSPECIFIED.into()));
        client_of(self.proxies.client(peer, &request.headers))
    }

    /// Waits for the turn of a client to have an answer found. None for a proxy, whose requests are those of many.
    async fn turn(&self, client: IpAddr) -> Option<Share> {
        if self.proxies.has(client) {
            return None;
        }
        Some(self.of_clients.wait(client).await)
    }

    /// Runs what an answer to a client needs in a thread that may block, in the client's turn.
    async fn aside<T: Send + 'static>(
        &self,
        client: IpAddr,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Response<Body>> {
        let turn = self.turn(client).await;
        // The work goes on when the client has gone, and has the turn until its end.
        answer::aside(move || {
            let _turn = turn;
            work()
        })
        .await
    }

    /// Adds a receiver of transferred items.
    #[must_use]
    pub fn receiving(self, receiver: Option<Receiver>) -> Site {
        Site {
            receiver: receiver.map(Arc::new),
            ..self
        }
    }

    /// Adds a witness of other logs.
    #[must_use]
    pub fn witnessing(self, witness: Option<Witness>) -> Site {
        Site {
            witness: witness.map(Arc::new),
            ..self
        }
    }

    /// Adds the service for audits by other Archives.
    #[must_use]
    pub fn audited(self, audits: Option<AuditService>) -> Site {
        Site {
            audits: audits.map(Arc::new),
            ..self
        }
    }

    /// The version of the index for which cache entries are valid. None if it cannot be read without waiting;
    /// the cache is not used then.
    fn index_version(&self) -> Option<i64> {
        self.archive.store().version().unwrap_or_else(|error| {
            log::debug!("whether the index has changed is not known: {error}");
            None
        })
    }

    /// The URL at which it is reached.
    #[must_use]
    pub fn url(&self) -> &BaseUrl {
        &self.url
    }
}

/// Initializes a thread that answers: it acts as the public.
pub fn begin() {
    NOBODY.act_by_default();
}

/// Runs a read as the public.
fn act(read: &mut dyn FnMut()) {
    let ran = NOBODY.read(|| {
        read();
        Ok::<(), Errno>(())
    });
    // The read has not run, so its content counts as unreadable.
    if let Err(errno) = ran {
        log::error!("content cannot be read as the user nobody: {errno}");
    }
}

/// The interval between two writes of the access counts. A crash loses at most the counts of one interval.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// The interval between two looks for what is left of items that arrived in part.
const REMOVE_EVERY: Duration = Duration::from_secs(3600);

/// The service of a site with its background tasks: access counts are written, and the site is included with
/// and excluded from resolvers. `report` receives the results of the inclusions.
#[must_use]
pub fn started(
    site: Arc<Site>,
    announcements: Vec<Announcement>,
    report: impl Fn(&Message) + Clone + Send + Sync + 'static,
) -> Started {
    let (beside, ending, leaving) = (Arc::clone(&site), Arc::clone(&site), announcements.clone());
    Started {
        monitored: Some(Arc::clone(&site) as Arc<dyn Monitored>),
        kinds: Some(measure::kinds(&site)),
        responders: Some(Box::new(move || responder(Arc::clone(&site)))),
        begin,
        beside: Some(Box::pin(async move {
            let included = include(&beside, announcements, report);
            tokio::join!(
                included,
                go_on_writing_accesses(Arc::clone(&beside)),
                go_on_removing_abandoned(Arc::clone(&beside))
            );
        })),
        afterwards: Some(Box::pin(async move {
            let mut excluded = JoinSet::new();
            for announcement in leaving {
                excluded.spawn(announcement.exclude());
            }
            tokio::join!(excluded.join_all(), write_accesses(&ending));
        })),
    }
}

/// Has the site included with each resolver, with the prefixes of the items whose originals it holds.
async fn include(
    site: &Arc<Site>,
    announcements: Vec<Announcement>,
    report: impl Fn(&Message) + Clone + Send + Sync + 'static,
) {
    if announcements.is_empty() {
        return;
    }
    let reading = Arc::clone(site);
    let prefixes = answer::aside(move || reading.archive.announced_prefixes(MOST_ANNOUNCED)).await;
    let prefixes = match prefixes {
        Ok(Ok(prefixes)) => prefixes,
        Ok(Err(error)) => {
            log::warn!("no prefixes are announced: {error}");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let mut included = JoinSet::new();
    for announcement in announcements {
        let announcement = announcement.with_prefixes(prefixes.clone());
        included.spawn(announcement.include(report.clone()));
    }
    included.join_all().await;
}

async fn go_on_writing_accesses(site: Arc<Site>) {
    loop {
        tokio::time::sleep(WRITE_EVERY).await;
        write_accesses(&site).await;
    }
}

/// Removes now and then what is left of items that other Archives no longer send.
async fn go_on_removing_abandoned(site: Arc<Site>) {
    while site.receiver.is_some() {
        let site = Arc::clone(&site);
        let removed = answer::aside(move || transfer::remove_abandoned(site.archive.tree())).await;
        if let Ok(Err(error)) = removed {
            log::warn!("what is left of arriving items is not removed: {error}");
        }
        tokio::time::sleep(REMOVE_EVERY).await;
    }
}

async fn write_accesses(site: &Arc<Site>) {
    let site = Arc::clone(site);
    let written = answer::aside(move || site.accesses.write(&site.archive)).await;
    if let Ok(Err(error)) = written {
        log::warn!("accesses are counted but cannot be written down: {error}");
    }
}

/// Returns what answers in one thread.
pub fn responder(site: Arc<Site>) -> Responder {
    let handle = SiteHandle {
        site,
        version: Arc::default(),
    };
    Arc::new(move |request| Box::pin(dispatch(handle.clone(), request)))
}

/// A site, for the requests of one thread.
#[derive(Clone, Debug)]
struct SiteHandle {
    site: Arc<Site>,
    version: Arc<SingleFlight<Option<i64>>>,
}

impl SiteHandle {
    /// See [`Site::index_version`]. The version is read after this is called.
    async fn index_version(&self) -> Option<i64> {
        self.version.get(|| self.site.index_version()).await
    }
}

/// Routes by hand, since an identifier is a path of two or four components.
async fn dispatch(handle: SiteHandle, request: Request<Body>) -> Response<Body> {
    let site = Arc::clone(&handle.site);
    prefix::answered(&site.url, request, |request| within(handle, request)).await
}

/// Answers a request whose path has no prefix.
async fn within(handle: SiteHandle, mut request: Request<Body>) -> Response<Body> {
    languages::take_chosen(&mut request);
    if let Some(uri) = languages::without_chosen(request.uri()) {
        *request.uri_mut() = uri;
    }
    let uri = request.uri();
    let path = uri.path().trim_start_matches('/');
    if dav::is_of(path) {
        return Box::pin(dav::answer(handle, request)).await;
    }
    if let Some(refusal) = answer::refused_method(request.method()) {
        return refusal;
    }
    if oai::is_of(path) {
        return Box::pin(oai::answer(handle.site, request)).await;
    }
    if request.method() == Method::POST {
        if transfer::is_of(path) {
            return Box::pin(transfer::answer(handle.site, request)).await;
        }
        if path == witness::PATHS.0 {
            return Box::pin(witness::answer(handle.site, request)).await;
        }
        if path == audit::PATHS.0 {
            return Box::pin(audit::answer(handle.site, request)).await;
        }
        return answer::no_method(request.method(), "GET, HEAD");
    }
    if let Some(response) = signers::answer(&handle.site, path, request.method()) {
        return response;
    }
    let query = uri.query().unwrap_or("");
    if service::is_of(&handle.site, path) && query.contains("servicesubject=") {
        return service::answer(&handle, &request.into_parts().0).await;
    }
    if let Some(file) = tlog::file_at(path) {
        let (parts, body) = request.into_parts();
        if let Some(response) = tlog::answer(&handle.site, file, &parts).await {
            return response;
        }
        return content::answer(handle, Request::from_parts(parts, body)).await;
    }
    if crawlers::are_changes(path) {
        oai::update(&handle.site).await;
        // A change that was noticed in a second is listed in the next.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    content::answer(handle, request).await
}
