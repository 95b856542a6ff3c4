//! The resolver over HTTP: persistent URLs (ibi(7)), its own service (ibi-resolution(7)), and pages for
//! people.

#[cfg(feature = "registration-2009")]
mod alive;
mod archives;
mod asking;
mod failure;
mod federation;
mod inclusion;
#[cfg(feature = "registration-2009")]
mod lookups;
mod measure;
mod memory;
mod pages;
mod peers;
mod publication;
#[cfg(feature = "registration-2009")]
mod registration;
mod sources;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::archive_service::ArchiveService;
use crate::registry::{RESOLVER_SERVICE, Registry, RegistryError};
use archives::Archives;
use asking::Resolution;
pub use federation::ListSource;
use ibi::persistent::PersistentKind;
use ibi::relation::Step;
use ibifs_formats::base_url::BaseUrl;
use ibifs_formats::federation::{FederatedArchive, PATH};
use ibifs_formats::name_spaces::NameSpaces;
use ibifs_formats::query::with_pairs;
use ibifs_formats::resolution::{ArchiveQuery, Persistent};
use ibifs_http::client::Reach;
use ibifs_http::client::{Client, Network};
use ibifs_http::server::metrics::RequestKinds;
use ibifs_http::server::share::Proxies;
use ibifs_http::server::{
    Peer, Responder, SiteClock, answer, languages, negotiation, page, prefix, threads,
};
use ibifs_os::clock::Clock;
pub use peers::PeerResolver;

/// The most identifiers that are resolved at a time. Further requests wait.
pub const MOST_RESOLUTIONS: usize = 256;
/// The time that such a request waits before it is refused.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// The seconds after which a refused client may try again.
const ASK_AGAIN: u16 = 10;
/// The interval at which the database is written with what is remembered of Archives.
const WRITE_EVERY: Duration = Duration::from_secs(30);
/// The interval at which the database is checked for changes by other processes.
const REFRESH: Duration = Duration::from_secs(1);
/// The most addresses of a reader and proxies that are passed on.
const MOST_ADDRESSES: usize = 16;

/// A running resolver.
#[derive(Debug)]
pub struct Resolver {
    registry: Arc<Registry>,
    clock: SiteClock,
    url: BaseUrl,
    client: Client,
    /// For Archives on lists from the network.
    public_client: Client,
    /// The lists of federated Archives.
    lists: Vec<ListSource>,
    /// The peers, each with the serial number of the last list that was kept of it.
    peers: Vec<(PeerResolver, u64)>,
    /// Whether lists from the network may lead to addresses that are not public.
    allows_private: bool,
    archives: Archives,
    publication: publication::Publication,
    /// The table that completes `upn:` names.
    name_spaces: NameSpaces,
    turns: Semaphore,
    /// Room for requests to Archives, see [`asking::MOST_PENDING`].
    room: Arc<Semaphore>,
    hashing: Semaphore,
    /// The state of the protocol of 2009. None if it is disabled.
    #[cfg(feature = "registration-2009")]
    registrations: Option<registration::Registrations>,
    proxies: Proxies,
}

impl Resolver {
    /// The resolver with this database, reached at this URL, which asks Archives on this network.
    ///
    /// # Errors The database cannot be read.
    pub fn new(
        registry: Registry,
        url: BaseUrl,
        network: &Network,
        clock: SiteClock,
    ) -> Result<Resolver, RegistryError> {
        registry.answer_soon();
        let resolver = Resolver {
            registry: Arc::new(registry),
            clock,
            url,
            client: Client::new(network, Reach::Any),
            public_client: Client::new(network, Reach::Public),
            lists: Vec::new(),
            peers: Vec::new(),
            allows_private: false,
            archives: Archives::default(),
            publication: publication::Publication::default(),
            name_spaces: NameSpaces::default(),
            turns: Semaphore::new(MOST_RESOLUTIONS),
            room: Arc::new(Semaphore::new(asking::MOST_PENDING)),
            hashing: Semaphore::new(inclusion::MOST_AT_ONCE),
            #[cfg(feature = "registration-2009")]
            registrations: None,
            proxies: Proxies::new(&[]),
        };
        resolver.refresh()?;
        let remembered = resolver.registry.remembered()?;
        resolver.archives.memory().restore(remembered);
        Ok(resolver)
    }

    /// Enables registrations by the protocol of 2009.
    #[cfg(feature = "registration-2009")]
    #[must_use]
    pub fn registering(self) -> Resolver {
        self.registry.prepare();
        Resolver {
            registrations: Some(registration::Registrations::default()),
            ..self
        }
    }

    /// Sets the table that completes `upn:` names.
    #[must_use]
    pub fn completing(self, name_spaces: NameSpaces) -> Resolver {
        Resolver {
            name_spaces,
            ..self
        }
    }

    /// Adds the lists of federated Archives, in order of precedence, each with what has been read of it.
    #[must_use]
    pub fn federated(
        mut self,
        lists: Vec<(ListSource, Option<Vec<FederatedArchive>>)>,
    ) -> Resolver {
        for (at, (source, archives)) in lists.into_iter().enumerate() {
            let reach = match source.reach() {
                Reach::Any => Reach::Any,
                Reach::Public => self.reach_of_lists(),
            };
            self.archives.add_list(reach);
            self.archives.federate(at, archives.unwrap_or_default());
            self.lists.push(source);
        }
        self
    }

    /// Lets lists and peers on the network lead to addresses that are not public, before any is added.
    #[must_use]
    pub fn allowing_private(self, allows_private: bool) -> Resolver {
        Resolver {
            allows_private,
            ..self
        }
    }

    /// Returns which addresses the Archives of a list from the network may have.
    fn reach_of_lists(&self) -> Reach {
        if self.allows_private {
            Reach::Any
        } else {
            Reach::Public
        }
    }

    /// The client that asks an Archive.
    fn client_of(&self, archive: &ArchiveService) -> &Client {
        match archive.reach {
            Reach::Any => &self.client,
            Reach::Public => &self.public_client,
        }
    }

    /// Sets the proxies that forward requests.
    #[must_use]
    pub fn behind(self, proxies: Proxies) -> Resolver {
        Resolver { proxies, ..self }
    }

    /// The URL at which it is reached.
    #[must_use]
    pub fn url(&self) -> &BaseUrl {
        &self.url
    }

    /// Reads the registered Archives, and publishes and signs their list.
    fn refresh(&self) -> Result<(), RegistryError> {
        let mut publication = self.publication.lock();
        let registered = match self.registry.to_publish(&self.clock.now()) {
            Ok((registered, signature)) => {
                publication.publish(&registered, signature);
                registered
            }
            // The registered Archives count even if their list cannot be signed; the last list stays.
            Err(error) => {
                let registered = self.registry.archives()?;
                log::warn!("the list of Archives is not signed again: {error}");
                registered
            }
        };
        self.archives.replace(&registered);
        Ok(())
    }
}

/// The kinds of requests to a resolver.
#[must_use]
pub fn kinds(resolver: &Resolver) -> RequestKinds {
    measure::kinds(resolver)
}

/// Returns what answers for the resolver.
pub fn responder(resolver: Arc<Resolver>) -> Responder {
    Arc::new(move |request| Box::pin(dispatch(Arc::clone(&resolver), request)))
}

/// The background tasks of the resolver.
pub async fn go_on(resolver: Arc<Resolver>) {
    let trying = async {
        #[cfg(feature = "registration-2009")]
        if let Some(registrations) = &resolver.registrations {
            alive::go_on(Arc::clone(&resolver), registrations.lookups.clone()).await;
        }
    };
    let mut lists = JoinSet::new();
    federation::start(&resolver, &mut lists);
    peers::start(&resolver, &mut lists);
    let reading = async {
        while let Some(ended) = lists.join_next().await {
            if let Err(error) = ended {
                log::error!("{error}");
            }
        }
    };
    let remembering = async {
        loop {
            tokio::time::sleep(WRITE_EVERY).await;
            write_memory(&resolver).await;
        }
    };
    tokio::join!(keep_up(Arc::clone(&resolver)), trying, reading, remembering);
}

/// Does what is done when the resolver ends.
pub async fn end(resolver: Arc<Resolver>) {
    write_memory(&resolver).await;
}

/// Writes which Archives have answered. If that fails, they are learned again.
async fn write_memory(resolver: &Arc<Resolver>) {
    let writing = Arc::clone(resolver);
    let written = threads::aside(move || {
        let changes = writing.archives.memory().take_changes();
        if changes.is_empty() {
            return Ok(());
        }
        writing.registry.remember(&changes, &writing.clock.now())
    });
    match written.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => log::warn!("which Archives have answered is not written: {error}"),
        Err(error) => log::error!("{error}"),
    }
}

/// Reloads the included Archives whenever another process has changed the database. While it cannot be read, what was
/// read last is in force, which is logged once.
async fn keep_up(resolver: Arc<Resolver>) {
    let mut known = None;
    let mut logged = None;
    loop {
        let asked = Arc::clone(&resolver);
        let refreshed = threads::aside(move || {
            let version = asked.registry.version()?;
            if known != Some(version) || asked.publication.is_due(&asked.clock.now()) {
                asked.refresh()?;
            }
            Ok::<_, RegistryError>(version)
        });
        match refreshed.await {
            Ok(Ok(version)) => {
                if logged.take().is_some() {
                    log::info!("the resolver's database is read again");
                }
                known = Some(version);
            }
            Ok(Err(error)) => failed(&error, &mut logged),
            Err(error) => log::error!("{error}"),
        }
        tokio::time::sleep(REFRESH).await;
    }
}

/// Logs an error, but not again what a server that is away has led to already.
fn failed(error: &RegistryError, logged: &mut Option<String>) {
    let sentence = error.to_string();
    let is_logged = match logged {
        Some(last) => *last == sentence || error.is_temporary(),
        None => false,
    };
    if is_logged {
        log::debug!("{sentence}");
    } else {
        log::warn!("{sentence}");
        *logged = Some(sentence);
    }
}

async fn dispatch(resolver: Arc<Resolver>, request: Request<Body>) -> Response<Body> {
    let within = Arc::clone(&resolver);
    prefix::answered(&resolver.url, request, |request| answered(within, request)).await
}

/// Whether a request belongs to the registration protocol of 2009: it is a POST, or has a verb.
fn is_registration(method: &Method, query: &str) -> bool {
    method == Method::POST || query.split('&').any(|pair| pair.starts_with("verb="))
}

/// Answers a request whose path has no prefix.
async fn answered(resolver: Arc<Resolver>, mut request: Request<Body>) -> Response<Body> {
    languages::take_chosen(&mut request);
    if let Some(refusal) = answer::refused_method(request.method()) {
        return refusal;
    }
    #[cfg(feature = "registration-2009")]
    if ["", RESOLVER_SERVICE].contains(&request.uri().path().trim_matches('/'))
        && is_registration(request.method(), request.uri().query().unwrap_or_default())
    {
        return registration::answer(&resolver, request).await;
    }
    if request.method() == Method::POST {
        return answer::no_method(request.method(), "GET, HEAD");
    }
    let (parts, _) = request.into_parts();
    let path = parts.uri.path().trim_start_matches('/');
    let query = parts.uri.query().unwrap_or_default();
    if path.is_empty() {
        return pages::home(&resolver, &parts);
    }
    if let Some(icon) = page::icon(path) {
        return icon;
    }
    if path == PATH {
        return resolver.publication.answer(&parts.headers);
    }
    if path.trim_end_matches('/') == RESOLVER_SERVICE && query.contains("servicesubject=") {
        return inclusion::answer(&resolver, &parts.method, query).await;
    }
    if query
        .split('&')
        .any(|pair| pair.starts_with("servicesubject="))
    {
        // Two resolvers that list each other as Archives must not ask each other without end.
        let sentence = "a resolver does not answer requests to the service of an Archive";
        return answer::refusal(StatusCode::BAD_REQUEST, sentence);
    }
    match Persistent::parse_all(path, query, &resolver.name_spaces) {
        Ok(all) => resolved(&resolver, &all, &parts).await,
        Err(error) => failure::of_link(&error),
    }
}

/// Redirects a reader to the target of the first of these persistent URLs that has one, or explains why not.
async fn resolved(resolver: &Arc<Resolver>, all: &[Persistent], request: &Parts) -> Response<Body> {
    let turn = tokio::time::timeout(TURN_TIMEOUT, resolver.turns.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        let sentence = "too many identifiers are being resolved; try again later";
        return answer::busy(sentence, ASK_AGAIN);
    };
    let reader = addresses(resolver, request);
    let preferred = languages::preferred(&request.headers);
    let mut found = None;
    for persistent in all {
        let resolution = asking::resolve(resolver, persistent, &preferred, &reader).await;
        let is_alert = matches!(resolution, Resolution::Alert(..) | Resolution::Failed(_));
        if !is_alert || found.is_none() {
            found = Some((persistent, resolution));
        }
        if !is_alert {
            break;
        }
    }
    let Some((persistent, resolution)) = found else {
        return answer::refusal(StatusCode::NOT_FOUND, "the path holds no identifier");
    };
    let query = match persistent.kind {
        // The query of a record is for the script that shows it.
        PersistentKind::Record => "",
        _ => request.uri.query().unwrap_or_default(),
    };
    let response = match resolution {
        Resolution::Found(archive, reached) => {
            if request.method == Method::GET {
                asking::acknowledge(
                    resolver,
                    &archive,
                    reached.acknowledgment(&reader, &url_of(resolver, request)),
                );
            }
            let described = negotiation::description(&request.headers)
                .and_then(|_| persistent.described(&reached.url));
            let url = described.unwrap_or_else(|| persistent.delivered(&reached.url));
            redirect(&with_pairs(url, query))
        }
        Resolution::Registered(url) => redirect(&with_pairs(url, query)),
        Resolution::Alert(alert, ibi) => pages::alert(resolver, &alert, &ibi, request),
        Resolution::Failed(error) => failure::of(&error),
    };
    let response = answer::by_accept(response);
    if depends_on_reader(&persistent.question) {
        answer::by_language(response)
    } else {
        response
    }
}

fn depends_on_reader(question: &ArchiveQuery) -> bool {
    let steps = question.request.as_ref().map(|request| request.steps());
    steps.is_some_and(|steps| steps.contains(&Step::Translation(None)))
}

fn redirect(url: &str) -> Response<Body> {
    let mut response = answer::refusal(StatusCode::FOUND, url);
    match HeaderValue::from_str(url) {
        Ok(location) => {
            response.headers_mut().insert(header::LOCATION, location);
            response
        }
        // Cannot happen for printable ASCII, which all accepted URLs are.
        Err(_) => answer::refusal(
            StatusCode::BAD_GATEWAY,
            "an Archive has returned a value that is not a URL",
        ),
    }
}

/// The persistent URL as the reader wrote it, with the port as the protocol's examples have it.
fn url_of(resolver: &Resolver, request: &Parts) -> String {
    let path = request
        .uri
        .path_and_query()
        .map_or("", |path| path.as_str());
    let url = &resolver.url;
    let port = match url.address().rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => String::new(),
        _ => format!(":{}", url.scheme().default_port()),
    };
    let (scheme, address, prefix) = (url.scheme().name(), url.address(), url.prefix());
    format!("{scheme}://{address}{port}{prefix}{path}")
}

/// The addresses of the reader and of the proxies on the way (ibi-resolution(7)), the reader's first.
fn addresses(resolver: &Resolver, request: &Parts) -> String {
    let peer = request.extensions.get().map(|Peer(address)| *address);
    let way = peer.map_or_else(Vec::new, |peer| {
        resolver.proxies.way(peer, &request.headers)
    });
    let nearest = way.len().saturating_sub(MOST_ADDRESSES);
    let texts: Vec<String> = way[nearest..].iter().map(ToString::to_string).collect();
    texts.join(" ")
}
