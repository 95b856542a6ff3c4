//! The Archive over HTTP: its service (ibi-resolution(7)), the content of its items, pages, and OAI-PMH.

mod cache;
mod conditions;
mod content;
mod failure;
mod file;
mod oai;
mod pages;
mod service;
mod transfer;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, Response};
use rustix::io::Errno;

use crate::archive::Archive;
use crate::archive::store::ACCESSES_FILE;
use crate::os::caller::Caller;
use crate::web::client::announcement::Announcement;
use crate::web::server::{SiteClock, Started, answer};
use crate::web::service::{Accesses, Keys};
use cache::{Cache, SingleFlight};

pub use transfer::Receiver;

/// For whom the content is, where the service runs as root: what this user may not read is not published.
const NOBODY: Caller = Caller::NOBODY;

/// An Archive that is served.
#[derive(Debug)]
pub struct Site {
    archive: Archive,
    clock: SiteClock,
    address: String,
    keys: Keys,
    accesses: Accesses,
    front: pages::Front,
    oai: oai::Oai,
    cache: Cache,
    /// None where nobody may hand items over to it.
    receiver: Option<Arc<Receiver>>,
}

impl Site {
    /// The site of an Archive that others reach at this `host` or `host:port`, and whose administrator has
    /// this e-mail address.
    #[must_use]
    pub fn new(archive: Archive, address: String, email: String, clock: SiteClock) -> Site {
        archive.tree().keep_open();
        if let Err(error) = archive.store().watch() {
            log::warn!(
                "nothing is remembered, since changes of the index would not be seen: {error}"
            );
        }
        Site {
            archive,
            clock,
            oai: oai::Oai::new(&address, email),
            address,
            keys: Keys::default(),
            accesses: Accesses::default(),
            front: pages::Front::default(),
            cache: Cache::default(),
            receiver: None,
        }
    }

    /// Gives up for good what root may, where this process is root's. Whatever has to be opened with that
    /// is open then.
    ///
    /// # Errors
    /// The system refuses that, and nothing must be served.
    pub fn give_up_root(&self) -> std::io::Result<()> {
        if let Err(error) = oai::open(self) {
            log::warn!("records cannot be harvested: {}", error.cause());
        }
        self.accesses.open(&self.archive);
        NOBODY.become_for_good()
    }

    /// The same, to which others may hand items over.
    #[must_use]
    pub fn receiving(self, receiver: Option<Receiver>) -> Site {
        Site {
            receiver: receiver.map(Arc::new),
            ..self
        }
    }

    /// The version of the index, for which entries of the cache hold. None where it cannot be read at once:
    /// then the cache is not used.
    fn index_version(&self) -> Option<i64> {
        self.archive.store().version().unwrap_or_else(|error| {
            log::debug!("whether the index has changed is not known: {error}");
            None
        })
    }

    /// Where others reach it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// What a thread that answers does first: it stays whoever the content is for.
pub fn begin() {
    NOBODY.act_by_default();
}

/// Runs what it is given as whoever the content is for.
fn act(read: &mut dyn FnMut()) {
    let ran = NOBODY.read(|| {
        read();
        Ok::<(), Errno>(())
    });
    // What is not read counts as not to be read.
    if let Err(errno) = ran {
        log::error!("content cannot be read as those for whom it is: {errno}");
    }
}

/// How long an access may not be written down; a crash loses those of no longer a time.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// What is served, with what goes on beside it: accesses are written down, and a resolver is told when the
/// site is there and when no longer. `tell` is told what comes of that.
#[must_use]
pub fn started(
    site: Arc<Site>,
    announcement: Option<Announcement>,
    tell: impl Fn(&str) + Send + 'static,
) -> Started {
    let (beside, ending, leaving) = (Arc::clone(&site), Arc::clone(&site), announcement.clone());
    Started {
        routes: Some(Box::new(move || routes(Arc::clone(&site)))),
        begin,
        beside: Some(Box::pin(async move {
            let include = async {
                if let Some(announcement) = announcement {
                    announcement.include(tell).await;
                }
            };
            tokio::join!(include, go_on_writing_accesses(beside));
        })),
        afterwards: Some(Box::pin(async move {
            let exclude = async {
                if let Some(announcement) = leaving {
                    announcement.exclude().await;
                }
            };
            tokio::join!(exclude, write_accesses(&ending));
        })),
    }
}

async fn go_on_writing_accesses(site: Arc<Site>) {
    loop {
        tokio::time::sleep(WRITE_EVERY).await;
        write_accesses(&site).await;
    }
}

async fn write_accesses(site: &Arc<Site>) {
    let site = Arc::clone(site);
    let written = answer::aside(move || site.accesses.write(&site.archive)).await;
    if let Ok(Err(error)) = written {
        log::warn!(
            "accesses are counted but cannot be written down: {}; see what {ACCESSES_FILE} is, or \
             remove it",
            error.cause()
        );
    }
}

/// What is answered under which path, by one thread.
pub fn routes(site: Arc<Site>) -> Router {
    let handle = SiteHandle {
        site,
        version: Arc::default(),
    };
    Router::new().fallback(dispatch).with_state(handle)
}

/// A site, for the requests of one thread.
#[derive(Clone, Debug)]
struct SiteHandle {
    site: Arc<Site>,
    version: Arc<SingleFlight<Option<i64>>>,
}

impl SiteHandle {
    /// See [`Site::index_version`]; it is read after this is called.
    async fn index_version(&self) -> Option<i64> {
        self.version.get(|| self.site.index_version()).await
    }
}

/// Identifiers are paths of two or four components, so that the path is read by hand.
async fn dispatch(State(handle): State<SiteHandle>, request: Request<Body>) -> Response<Body> {
    let uri = request.uri();
    let path = uri.path().trim_start_matches('/');
    if oai::is_of(path) {
        return oai::answer(handle.site, request).await;
    }
    if request.method() == Method::POST {
        if transfer::is_of(path) {
            return transfer::answer(handle.site, request).await;
        }
        return answer::no_method(request.method(), "GET, HEAD");
    }
    let query = uri.query().unwrap_or("");
    if service::is_of(&handle.site, path) && query.contains("servicesubject=") {
        return service::answer(&handle, request.method(), query).await;
    }
    content::answer(handle, request).await
}
