//! Other resolvers of the federation, whose Archives are asked like those that are registered here
//! (ibi-resolution(7), "Peers"). They exchange what is registered with each as a signed list.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::IF_NONE_MATCH;
use tokio::task::JoinSet;

use super::Resolver;
use super::sources::PeerArchives;
use crate::registry::RegistryError;
use ibi::message::{Localize, Message};
use ibi::{Timestamp, display_message, message};
use ibifs_formats::base_url::{BaseUrl, BaseUrlError};
use ibifs_formats::federation::{
    LONGEST_LIST, PATH, PublicKey, PublicKeyError, SignedList, SignedListError,
};
use ibifs_http::client::ClientError;
use ibifs_http::client::fetch::Fetch;
use ibifs_http::server::threads;
use ibifs_os::clock::Clock;

/// The interval at which the list of a peer is read.
const INTERVAL: Duration = Duration::from_secs(2);
/// The timeout of a request for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The seconds that a list may be old. A resolver signs its list again much more often.
const MOST_AGE: i64 = 86_400;
/// The seconds that the clocks of two resolvers may differ.
const CLOCKS: i64 = 3600;

/// Another resolver of the federation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerResolver {
    /// The URL at which it is reached.
    pub url: BaseUrl,
    /// The key that verifies its lists.
    pub key: PublicKey,
}

/// The text does not name a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerError {
    /// It has no `=`.
    Form(String),
    /// The text before it is not a URL.
    Url(BaseUrlError),
    /// The text after it is not a key.
    Key(PublicKeyError),
}

impl Localize for PeerError {
    fn message(&self) -> Message {
        match self {
            PeerError::Form(text) => message!(
                "'{text}' is not a peer; write its URL, '=' and its public key",
                text
            ),
            PeerError::Url(error) => error.message(),
            PeerError::Key(error) => error.message(),
        }
    }
}

display_message!(PeerError);

impl std::error::Error for PeerError {}

/// The reason why a list of a peer is not put in force, for the log.
#[derive(Debug)]
enum ListRefused {
    Network(ClientError),
    List(SignedListError),
    /// It was signed before the last one.
    Earlier {
        serial: u64,
        known: u64,
    },
    /// Its time is too far from that of this machine.
    Time(Timestamp),
}

impl fmt::Display for ListRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListRefused::Network(error) => error.fmt(f),
            ListRefused::List(error) => error.fmt(f),
            ListRefused::Earlier { serial, known } => write!(
                f,
                "the list has the serial number {serial}, and {known} was there before"
            ),
            ListRefused::Time(time) => write!(
                f,
                "the list was signed at {}, which is too far from the time of this machine",
                time.to_rfc3339()
            ),
        }
    }
}

impl PeerResolver {
    /// Parses the URL of a resolver, `=` and its public key.
    ///
    /// # Errors The text does not have this form.
    pub fn parse(text: &str) -> Result<PeerResolver, PeerError> {
        let (url, key) = text
            .rsplit_once('=')
            .ok_or_else(|| PeerError::Form(text.to_owned()))?;
        Ok(PeerResolver {
            url: BaseUrl::parse(url).map_err(PeerError::Url)?,
            key: PublicKey::parse(key).map_err(PeerError::Key)?,
        })
    }

    /// Reads its list, whose serial number must not be less than that of the last one. None if it is the last one.
    async fn read(
        &self,
        resolver: &Resolver,
        last: u64,
    ) -> Result<Option<(SignedList, Vec<u8>)>, ListRefused> {
        let url = self.url.at(PATH);
        let fetch = Fetch::get(&url).with(IF_NONE_MATCH, &format!("\"{last}\""));
        let read = async {
            let fetched = resolver.client.fetch(&fetch).await?;
            match fetched.status() {
                304 => Ok(None),
                200 => fetched.whole(LONGEST_LIST, TIMEOUT).await.map(Some),
                status => Err(ClientError::Status(status, String::new())),
            }
        };
        let read = tokio::time::timeout(TIMEOUT, read).await;
        let read = read.unwrap_or(Err(ClientError::IdleTimer(TIMEOUT)));
        let read = read.map_err(ListRefused::Network)?;
        let Some(bytes) = read else {
            return Ok(None);
        };
        let list = SignedList::verified(&bytes, &self.key).map_err(ListRefused::List)?;
        let age = resolver.clock.now().seconds() - list.time.seconds();
        match list.serial {
            serial if serial < last => Err(ListRefused::Earlier {
                serial,
                known: last,
            }),
            _ if !(-CLOCKS..=MOST_AGE).contains(&age) => Err(ListRefused::Time(list.time)),
            _ => Ok(Some((list, bytes))),
        }
    }
}

impl From<SignedList> for PeerArchives {
    fn from(list: SignedList) -> PeerArchives {
        PeerArchives {
            included: list.archives,
            absent: list.absent,
        }
    }
}

impl Resolver {
    /// Adds peers, each with the last list that was kept of it.
    ///
    /// # Errors The database cannot be read.
    pub fn with_peers(mut self, peers: Vec<PeerResolver>) -> Result<Resolver, RegistryError> {
        for (at, peer) in peers.into_iter().enumerate() {
            self.archives.add_peer(self.reach_of_lists());
            let kept = self.registry.list_of_peer(&peer.key)?;
            let kept = kept.and_then(|kept| SignedList::verified(&kept, &peer.key).ok());
            let serial = kept.as_ref().map_or(0, |kept| kept.serial);
            if let Some(kept) = kept {
                self.archives.exchange(at, kept.into());
            }
            self.peers.push((peer, serial));
        }
        Ok(self)
    }
}

/// Starts reading the list of each peer again and again.
pub(super) fn start(resolver: &Arc<Resolver>, tasks: &mut JoinSet<()>) {
    for (at, (peer, serial)) in resolver.peers.iter().cloned().enumerate() {
        tasks.spawn(follow(Arc::clone(resolver), at, peer, serial));
    }
}

/// Reads the list of one peer. The last one stays in force while none can be read, which is logged once.
async fn follow(resolver: Arc<Resolver>, at: usize, peer: PeerResolver, mut last: u64) {
    let mut logged = None;
    loop {
        match peer.read(&resolver, last).await {
            Ok(None) => logged = None,
            Ok(Some((list, bytes))) => {
                let (serial, count) = (list.serial, list.archives.len());
                if resolver.archives.exchange(at, list.into()) {
                    log::info!("{} has {count} Archives", peer.url);
                    keep(&resolver, peer.key, serial, bytes);
                } else if logged.is_some() {
                    log::info!("the list of {} is read again", peer.url);
                }
                (last, logged) = (serial, None);
            }
            Err(error) => {
                let sentence = error.to_string();
                if logged.as_ref() == Some(&sentence) {
                    log::debug!("{}: {sentence}", peer.url);
                } else {
                    log::warn!("{}: {sentence}; the last list stays in force", peer.url);
                    logged = Some(sentence);
                }
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Keeps a list for the next start. One that says the same under another number need not be kept: a list between
/// both says the same, too.
fn keep(resolver: &Arc<Resolver>, key: PublicKey, serial: u64, list: Vec<u8>) {
    let registry = Arc::clone(&resolver.registry);
    threads::aside(move || {
        if let Err(error) = registry.keep_list_of_peer(&key, serial, &list) {
            log::warn!("{error}");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers() {
        let key = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let peer = PeerResolver::parse(&format!("https://r.example.org/x={key}")).expect("a peer");
        assert_eq!(peer.url.to_string(), "https://r.example.org/x");
        assert_eq!(peer.key.to_string(), key);
        for (bad, sentence) in [
            ("https://r.example.org", "is not a peer"),
            ("r.example.org=x", "is not the URL of a service"),
            (
                "https://r.example.org=x",
                "is not the public key of a resolver",
            ),
        ] {
            let error = PeerResolver::parse(bad).expect_err(bad).to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }
}
