//! Requests to resolvers and Archives.
//!
//! A lookup waits for two seconds at most until a server answers; then it fails, and the host is left alone for a while.
//! A read fails that gets less than 10 KiB in ten seconds. Hosts that the user has named may have any address, others only those of
//! the public Internet, unless the user allows more.
//!
//! - [`pages`]: texts in pages, as inventories and levels are.

mod pages;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, HeaderName, IF_MATCH, RANGE};
use tokio::sync::Semaphore;

use crate::formats::base_url::BaseUrl;
use crate::formats::fixity::Digest;
use crate::formats::inventory::{CHUNK, FileEntry};
use crate::formats::query::encoded;
use crate::formats::resolution::item_of;
use crate::http::client::Reach;
use crate::http::client::fetch::{Fetch, Fetched};
use crate::http::client::{Client, ClientError, Network};
use crate::world::error::ForeignError;
use crate::world::remote::breaker::Breaker;

/// The time that a lookup waits until a server answers.
pub(crate) const LOOKUP_TIMEOUT: Duration = Duration::from_millis(1900);
/// The time that a read waits until enough has come, see `Pace`.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest text, in bytes.
const LONGEST_TEXT: usize = 1 << 20;
/// The number of large inventories that are read at a time.
const MOST_LARGE: usize = 4;
/// The most lookups that wait for the network at a time.
const MOST_LOOKUPS: usize = 256;
/// The most persistent links that lead from one to the next.
const MOST_HOPS: usize = 8;
/// The number of digests of pieces that are asked for at a time.
pub(crate) const WINDOW: u64 = 16;
/// The longest list of digests, in bytes.
const LONGEST_DIGESTS: usize = 64 << 10;

const WANT_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");
const DIGEST: HeaderName = HeaderName::from_static("repr-digest");

pub(crate) use pages::{ItemAnswer, PageAnswer, Paged, SentPage, next_of};

/// The servers that this process asks.
#[derive(Debug)]
pub(crate) struct RemoteServers {
    /// For hosts that the user has named.
    named: Client,
    /// For hosts that a resolver or an Archive has named.
    found: Client,
    resolvers: Vec<BaseUrl>,
    archives: Vec<BaseUrl>,
    allows_private: bool,
    breaker: Breaker,
    lookups: Semaphore,
    large: Semaphore,
    requests: AtomicU64,
}

/// The place to which an identifier leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// To an item, by its name, at the Archive with this URL.
    Item(String, String),
    /// To a text at this URL.
    Text(String),
}

/// The host of a URL, with its port.
pub(crate) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

fn unreachable(url: &str, why: impl std::fmt::Display) -> ForeignError {
    ForeignError::Unreachable(format!("{}: {why}", host(url)))
}

impl RemoteServers {
    /// Asks these resolvers and Archives. With `allows_private` also hosts whose addresses are not public, if a resolver
    /// or an Archive names them.
    pub(crate) fn new(
        network: &Network,
        resolvers: Vec<BaseUrl>,
        archives: Vec<BaseUrl>,
        allows_private: bool,
    ) -> RemoteServers {
        let reach = if allows_private {
            Reach::Any
        } else {
            Reach::Public
        };
        RemoteServers {
            named: Client::with_strangers(network, Reach::Any, reach),
            found: Client::with_strangers(network, reach, reach),
            resolvers,
            archives,
            allows_private,
            breaker: Breaker::default(),
            lookups: Semaphore::new(MOST_LOOKUPS),
            large: Semaphore::new(MOST_LARGE),
            requests: AtomicU64::new(0),
        }
    }

    /// Returns who is asked, as a text: an answer in one scope counts in no other.
    pub(crate) fn scope(&self) -> String {
        let mut scope = format!("private {}", self.allows_private);
        for (name, all) in [("resolver", &self.resolvers), ("archive", &self.archives)] {
            for url in all {
                scope.push_str(&format!("\n{name} {url}"));
            }
        }
        scope
    }

    /// Returns the number of requests that have been sent.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The hosts that are left alone, since they do not answer.
    pub(crate) fn silent(&self) -> Vec<String> {
        self.breaker.silent(Instant::now())
    }

    /// The Archives that the user has named.
    pub(crate) fn archives(&self) -> &[BaseUrl] {
        &self.archives
    }

    /// Returns the number of sources that are asked: each Archive, and the resolvers as one.
    pub(crate) fn sources(&self) -> usize {
        self.archives.len() + usize::from(!self.resolvers.is_empty())
    }

    fn client(&self, url: &str) -> &Client {
        let named = self.resolvers.iter().chain(&self.archives);
        let is_named = named
            .into_iter()
            .any(|base| host(&base.to_string()) == host(url));
        if is_named { &self.named } else { &self.found }
    }

    /// Sends a request and waits until then for the head of the answer.
    async fn send(
        &self,
        url: &str,
        fetch: &Fetch<'_>,
        until: Instant,
    ) -> Result<Fetched, ForeignError> {
        let left = until.saturating_duration_since(Instant::now());
        self.requests.fetch_add(1, Ordering::Relaxed);
        match tokio::time::timeout(left, self.client(url).fetch(fetch)).await {
            Ok(Ok(fetched)) => {
                self.breaker.answered(host(url));
                Ok(fetched)
            }
            Ok(Err(error @ (ClientError::NotPublic | ClientError::Redirection(_)))) => {
                Err(unreachable(url, error))
            }
            Ok(Err(error)) => Err(unreachable(url, error)),
            Err(_) => Err(unreachable(url, "no answer in time")),
        }
    }

    /// Sends the request of a lookup, unless the host is left alone.
    async fn look(
        &self,
        url: &str,
        fetch: &Fetch<'_>,
        until: Instant,
    ) -> Result<Fetched, ForeignError> {
        if self.breaker.is_open(host(url), Instant::now()) {
            return Err(unreachable(url, "it did not answer a moment ago"));
        }
        let turn = tokio::time::timeout_at(until.into(), self.lookups.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(unreachable(url, "too many lookups wait"));
        };
        // The host may have failed while this request waited for its turn.
        if self.breaker.is_open(host(url), Instant::now()) {
            return Err(unreachable(url, "it did not answer a moment ago"));
        }
        let sent = self.send(url, fetch, until).await;
        if let Err(error) = &sent {
            log::info!("{error}");
            self.breaker.failed(host(url), Instant::now());
        }
        sent
    }

    /// Asks a resolver where a name leads, an identifier with or without a modifier.
    pub(crate) async fn locate(&self, name: &str, until: Instant) -> Result<Located, ForeignError> {
        let mut trouble = ForeignError::Unreachable("no resolver is named".to_owned());
        for resolver in &self.resolvers {
            let url = resolver.at(&format!("archive.cgi/{}", encoded(name.as_bytes())));
            match self.follow(url, until).await {
                Err(error @ ForeignError::Unreachable(_)) => trouble = error,
                answer => return answer,
            }
        }
        Err(trouble)
    }

    /// Follows persistent links to an item or a text.
    async fn follow(&self, first: String, until: Instant) -> Result<Located, ForeignError> {
        let mut url = first;
        for _ in 0..MOST_HOPS {
            let answer = self.look(&url, &Fetch::place_of(&url), until).await?;
            match answer.status() {
                200 => return Ok(Located::Text(url)),
                404 | 410 => return Err(ForeignError::Missing),
                // The resolver has found a cycle of relations.
                508 => return Err(ForeignError::Loop),
                status => match answer.target() {
                    Ok(Some(target)) => url = target,
                    Ok(None) => return Err(unreachable(&url, format!("status {status}"))),
                    Err(error) => return Err(unreachable(&url, error)),
                },
            }
            // A server in front of a resolver may lead to another URL of the resolver.
            let is_resolver = |base: &str| {
                let bare = |url: &str| url.split_once("://").map(|(_, rest)| rest.to_owned());
                let mut resolvers = self.resolvers.iter();
                resolvers.any(|known| bare(&known.to_string()) == bare(base))
            };
            if let Some((base, name)) = item_of(&url)
                && !is_resolver(&base)
            {
                return Ok(Located::Item(base, name));
            }
        }
        Err(ForeignError::Loop)
    }

    /// A text at a URL to which a resolver has led.
    pub(crate) async fn text(&self, url: &str, until: Instant) -> Result<Vec<u8>, ForeignError> {
        let text = self.text_at(url, until).await?;
        let text = text.whole(LONGEST_TEXT, LOOKUP_TIMEOUT).await;
        text.map_err(|error| unreachable(url, error))
    }

    /// The end of a text at a URL that has come until then: at least so many bytes of one that has as many.
    pub(crate) async fn end_of_text(
        &self,
        url: &str,
        least: usize,
        until: Instant,
    ) -> Result<Vec<u8>, ForeignError> {
        let text = self.text_at(url, until).await?.end(least, until).await;
        text.map_err(|error| unreachable(url, error))
    }

    async fn text_at(&self, url: &str, until: Instant) -> Result<Fetched, ForeignError> {
        let fetch = Fetch::get(url).with(ACCEPT, "text/plain, application/*, text/xml");
        let answer = self.look(url, &fetch, until).await?;
        match answer.status() {
            200 => Ok(answer),
            404 | 410 => Err(ForeignError::Missing),
            status => Err(unreachable(url, format!("status {status}"))),
        }
    }

    /// Asks for bytes of a file, up to `end`. Fails unless the file has this version.
    pub(crate) async fn bytes(
        &self,
        url: &str,
        entry: &FileEntry,
        (start, end): (u64, u64),
        until: Instant,
    ) -> Result<(Fetched, Option<Digest>), ForeignError> {
        let mut fetch = Fetch::get(url)
            .with(IF_MATCH, &format!("\"{}\"", entry.version))
            .with(RANGE, &format!("bytes={start}-{}", end.saturating_sub(1)));
        // The Archive would look for it in what is recorded of the whole item.
        if entry.digest.is_none() && entry.size <= CHUNK {
            fetch = fetch.with(WANT_DIGEST, "sha-256=10");
        }
        let answer = self.send(url, &fetch, until).await?;
        match answer.status() {
            200 if start == 0 => {}
            206 => {}
            status => return Err(of_status(url, status)),
        }
        let digest = answer.header(DIGEST).and_then(digest_in);
        Ok((answer, digest))
    }

    /// The digests of pieces of a file, from the one with this number on.
    pub(crate) async fn digests(
        &self,
        url: &str,
        entry: &FileEntry,
        first: u64,
        until: Instant,
    ) -> Result<Vec<Digest>, ForeignError> {
        let last = first.saturating_add(WINDOW - 1);
        let mut asked = format!("{url}?digests={first}-{last}");
        if let (Some(digest), true) = (entry.digest, entry.has_pieces) {
            asked.push_str(&format!("&of={digest}"));
        }
        let fetch = Fetch::get(&asked).with(IF_MATCH, &format!("\"{}\"", entry.version));
        let answer = self.send(url, &fetch, until).await?;
        if answer.status() != 200 {
            return Err(of_status(url, answer.status()));
        }
        let text = answer.whole(LONGEST_DIGESTS, READ_TIMEOUT).await;
        let text = text.map_err(|error| unreachable(url, error))?;
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let digests: Option<Vec<Digest>> = lines.map(Digest::parse).collect();
        digests
            .filter(|digests| !digests.is_empty())
            .ok_or_else(|| ForeignError::Broken(format!("{}: it tells no digests", host(url))))
    }
}

/// Returns what the status of an answer means for an open file.
fn of_status(url: &str, status: u16) -> ForeignError {
    match status {
        404 | 410 | 412 | 416 => ForeignError::Changed,
        status => unreachable(url, format!("status {status}")),
    }
}

/// The digest in a header (RFC 9530, section 2): `sha-256=:BASE64:`.
pub(crate) fn digest_in(value: &str) -> Option<Digest> {
    use base64::Engine;
    let members = value.split(',').map(str::trim);
    let text = members
        .filter_map(|member| member.strip_prefix("sha-256=:"))
        .next()?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.strip_suffix(':')?);
    Some(Digest(bytes.ok()?.try_into().ok()?))
}

/// Returns the number of pieces of a file of this size.
pub(crate) fn pieces(size: u64) -> u64 {
    size.div_ceil(CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_standard() {
        let value = "unixsum=30637, sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
        assert_eq!(
            digest_in(value).expect("a digest").to_string(),
            "5f8f04f6a3a892aaabbddb6cf273894493773960d4a325b105fee46eef4304f1"
        );
        for bad in ["", "sha-256=X48E", "sha-256=:X48E:", "sha-512=:X48E:"] {
            assert!(digest_in(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn hosts() {
        for (url, expected) in [
            ("http://a.org/x", "a.org"),
            ("https://a.org:8080?x", "a.org:8080"),
            ("http://[::1]:80/", "[::1]:80"),
        ] {
            assert_eq!(host(url), expected);
        }
    }

    use tokio::io::AsyncWriteExt;

    use crate::world::remote::testing::{ITEM, Peer, announcing, answer};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    fn entry(size: u64) -> FileEntry {
        FileEntry {
            size,
            version: "v".to_owned(),
            digest: None,
            has_pieces: false,
            identity: None,
        }
    }

    #[tokio::test]
    async fn a_resolver_leads_to_an_item_a_text_or_nothing() {
        let item = "location: http://archive.example.org/8JMKD3MGP8W/34PGRBS\r\n";
        let again = "location: /again\r\n";
        let located = Located::Item("http://archive.example.org".to_owned(), ITEM.to_owned());
        for (status, headers, expected) in [
            (302, item, Ok(located)),
            (404, "", Err(ForeignError::Missing)),
            (410, "", Err(ForeignError::Missing)),
            (508, "", Err(ForeignError::Loop)),
            (302, again, Err(ForeignError::Loop)),
        ] {
            let peer = Peer::answering(move |_| answer(status, headers, b"")).await;
            let found = peer.resolver().locate(ITEM, soon()).await;
            assert_eq!(found, expected, "{status} {headers}");
            let hops = if headers == again { MOST_HOPS } else { 1 };
            assert_eq!(peer.asked(), hops, "{status} {headers}");
        }
        let peer = Peer::answering(|_| answer(200, "", b"")).await;
        let found = peer.resolver().locate(ITEM, soon()).await;
        assert!(matches!(found, Ok(Located::Text(_))), "{found:?}");
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_is_asked_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        drop(listener);
        let base = BaseUrl::parse(&url).expect("a URL");
        let network = Network::new(None).expect("a network");
        let remote = RemoteServers::new(&network, Vec::new(), vec![base], true);
        for _ in 0..3 {
            let found = remote.text(&format!("{url}/x"), soon()).await;
            assert!(
                matches!(found, Err(ForeignError::Unreachable(_))),
                "{found:?}"
            );
        }
        assert_eq!((remote.requests(), remote.silent().len()), (1, 1));
    }

    #[tokio::test]
    async fn a_status_tells_whether_an_open_file_has_changed() {
        for (status, start, expected) in [
            (206, 1, "ok"),
            (200, 0, "ok"),
            (200, 1, "Unreachable"),
            (404, 0, "Changed"),
            (412, 0, "Changed"),
            (416, 0, "Changed"),
            (503, 0, "Unreachable"),
        ] {
            let peer = Peer::answering(move |_| answer(status, "", b"abc")).await;
            let (remote, file) = (peer.archive(), entry(3));
            let asked = remote.bytes(&peer.url, &file, (start, 3), soon()).await;
            let found = asked.map_or_else(|it| format!("{it:?}"), |_| "ok".to_owned());
            assert!(found.starts_with(expected), "{status} {start}: {found}");
            let asked = peer.last().to_lowercase();
            assert!(asked.contains("if-match: \"v\"\r\n"), "{asked}");
            assert!(
                asked.contains(&format!("range: bytes={start}-2\r\n")),
                "{asked}"
            );
        }
    }

    #[tokio::test]
    async fn digests_that_are_none_are_refused() {
        let digest = "5f8f04f6a3a892aaabbddb6cf273894493773960d4a325b105fee46eef4304f1";
        for (body, expected) in [
            (format!("{digest}\n{digest}\n"), Some(2)),
            (String::new(), None),
            ("\n\n".to_owned(), None),
            (format!("{digest}\nx\n"), None),
            ("0".repeat(LONGEST_DIGESTS + 1), None),
        ] {
            let peer = Peer::answering(move |_| answer(200, "", body.as_bytes())).await;
            let found = peer
                .archive()
                .digests(&peer.url, &entry(CHUNK * 2), 0, soon())
                .await;
            assert_eq!(found.ok().map(|it| it.len()), expected);
        }
    }

    #[tokio::test]
    async fn a_text_that_was_cut_off_is_no_text() {
        for (length, is_whole) in [(3, true), (4, false)] {
            let peer = Peer::answering(move |_| announcing(200, "", b"abc", length)).await;
            let found = peer.archive().text(&peer.url, soon()).await;
            assert_eq!(found.is_ok(), is_whole, "{length}");
        }
    }

    #[tokio::test]
    async fn the_end_of_a_text_is_read() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        for (least, read) in [
            (1 << 10, 1 << 10..=2 << 10),
            (1 << 20, text.len()..=text.len()),
        ] {
            let body = text.clone();
            let peer = Peer::answering(move |_| answer(200, "", &body)).await;
            let end = peer.archive().end_of_text(&peer.url, least, soon()).await;
            let end = end.expect("a text");
            assert!(
                text.ends_with(&end) && *read.start() <= end.len(),
                "{}",
                end.len()
            );
        }
    }

    /// A server that sends a byte now and then holds a reader no longer than one that sends none.
    #[tokio::test]
    async fn a_text_that_drips_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut bytes = announcing(200, "", b"", 1 << 20);
                    while stream.write_all(&bytes).await.is_ok() {
                        bytes = b"x".to_vec();
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                });
            }
        });
        let peer = Peer::answering(|_| Vec::new()).await;
        let archive = peer.archive();
        let until = Instant::now() + Duration::from_secs(1);
        let read = async {
            let end = archive.end_of_text(&url, 1, until).await;
            (end, archive.text(&url, soon()).await)
        };
        let read = tokio::time::timeout(Duration::from_secs(30), read).await;
        assert!(matches!(read, Ok((Err(_), Err(_)))), "{read:?}");
    }
}
