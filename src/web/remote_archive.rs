//! A remote Archive over HTTP: as the destination of a transfer, and as a source of item states.

mod sent;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{Request, header};
use rustix::fs::OFlags;
use tokio::runtime::Runtime;

use crate::archive::OwnershipTransfer;
use crate::archive::transfer::{
    ByteProgress, CompareWhen, Destination, Inventory, Local, Moved, NotSent, RemoteStatus,
    Remover, Skip, TransferError, Way,
};
use crate::archive::tree::Action;
use crate::archive::tree::Tree;
use crate::formats::base_url::BaseUrl;
use crate::formats::copies::decoded_words;
use crate::formats::fixity::{Digest, shown};
use crate::formats::item::{Life, Names, State};
use crate::formats::query::{encoded, percent_decoded};
use crate::formats::resolution::service_url;
use crate::http::client::fetch::Fetch;
use crate::http::client::{Client, ClientError, Network, Pool, Reach};
use ibi::message;
use ibi::message::{Localize, Message};
use ibi::pairs::{Pairs, Value};
use ibi::{Ibi, Timestamp};
use sent::Sent;

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a step. In one of them the destination reads the whole item again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3600);
/// The longest answer, in bytes: it has room for the digests of a million files.
const LONGEST_ANSWER: usize = 80 << 20;
/// The longest answer to a public request, in bytes, and its timeout.
const LONGEST_STATUS: usize = 64 << 10;
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a destination is a URL.
#[must_use]
pub fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// A remote Archive to which items are transferred.
#[derive(Debug)]
pub struct Remote {
    link: Link,
    service: Names,
    /// Where it says that it is.
    place: Vec<String>,
}

/// The connection to a remote Archive.
struct Link {
    runtime: Runtime,
    pool: Pool<Sent>,
    network: Network,
    url: String,
    token: String,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret and is left out.
        let url = &self.url;
        f.debug_struct("Link")
            .field("url", url)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// Connects to the Archive at a URL and asks for its service.
    pub fn at(url: &str, token: &str, network: &Network) -> Result<Remote, TransferError> {
        let (base, named) = match service_in(url) {
            Some((base, service)) => (Ok(base), Some(service)),
            None => (BaseUrl::parse(url), None),
        };
        let base = base.map_err(|error| TransferError::Remote(error.message()))?;
        let link = Link {
            pool: Pool::new(network, Reach::Any, CONNECT_TIMEOUT),
            network: network.clone(),
            runtime: runtime()?,
            url: base.to_string(),
            token: token.to_owned(),
        };
        let pairs = link.ask("step=hello", Sent::default())?;
        let service = pairs.get("ibi.archiveservice");
        let service = service.and_then(|value| Names::from_value(value).ok());
        let service =
            service.ok_or_else(|| link.fault(&message!("it does not name its service")))?;
        if let Some(named) = named.filter(|named| !named.matches(&service)) {
            return Err(link.fault(&message!(
                "its service is {service}, not {named}",
                service,
                named
            )));
        }
        let place = pairs.get("place").map(decoded_words).unwrap_or_default();
        Ok(Remote {
            link,
            service,
            place,
        })
    }
}

fn runtime() -> Result<Runtime, TransferError> {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    built.map_err(|error| TransferError::System(error.message()))
}

impl Link {
    fn fault(&self, what: &dyn Localize) -> TransferError {
        let url = &self.url;
        TransferError::Remote(message!("the Archive at {url}: {what}", url, what))
    }

    /// Requests a step and reads the pairs of the answer.
    fn ask(&self, query: &str, sent: Sent) -> Result<Pairs, TransferError> {
        let answer = self.runtime.block_on(async {
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.send(query, sent)).await;
            answer.unwrap_or_else(|_| {
                Err(message!(
                    "no answer in {timeout}",
                    timeout = format!("{ANSWER_TIMEOUT:?}")
                ))
            })
        });
        let (status, body) = answer.map_err(|error| self.fault(&error))?;
        let text = String::from_utf8_lossy(&body);
        let text = text.trim_end();
        match status {
            200 => Pairs::parse(&body).map_err(|error| self.fault(&error)),
            409 => {
                let (word, sentence) = text.split_once(' ').unwrap_or((text, ""));
                let skip = match word {
                    "original-there" => Skip::OriginalThere,
                    _ => Skip::NotTaken(Message::foreign(sentence)),
                };
                Err(skip.into())
            }
            status => Err(self.fault(&message!(
                "status {status}: {text}",
                status,
                text = text.to_owned()
            ))),
        }
    }

    async fn send(&self, query: &str, sent: Sent) -> Result<(u16, Bytes), Message> {
        let request = Request::post(format!("{}/transfer?{query}", self.url))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(sent)
            .map_err(|error| Message::foreign(error.to_string()))?;
        let response = self.pool.send(&self.network, request).await;
        let response = response.map_err(|error| error.message())?;
        // The token is for this server alone, so no redirection is followed.
        let location = response.headers().get(header::LOCATION);
        if let (true, Some(place)) = (response.status().is_redirection(), location) {
            let place = String::from_utf8_lossy(place.as_bytes()).into_owned();
            return Err(ClientError::Redirection(place).message());
        }
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), LONGEST_ANSWER);
        let body = body
            .collect()
            .await
            .map_err(|error| Message::foreign(error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    /// Sends the files that the destination is missing.
    fn send_files(
        &self,
        directory: &Tree,
        inventory: &Inventory,
        item: &str,
        missing: &[Digest],
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let mut moved = Moved::default();
        for digest in missing {
            let file = inventory.files().find(|(_, known, _)| known == digest);
            let no_file =
                || self.fault(&message!("it asks for a file that the item does not hold"));
            let (path, _, size) = file.ok_or_else(no_file)?;
            let opened = directory.open_far(path, OFlags::RDONLY | OFlags::NONBLOCK);
            let opened =
                opened.map_err(|errno| directory.error(Action::Open, &shown(path), errno))?;
            let step = format!("step=file&digest={digest}&length={size}&{item}");
            self.ask(&step, Sent::file(opened.into(), size))?;
            moved.files += 1;
            moved.bytes += size;
            progress(moved.bytes);
        }
        Ok(moved)
    }
}

/// The query parameters that name an item or an Archive.
fn named(names: &Names, before: &str) -> String {
    let rep = names.rep().map(|rep| ("rep", rep.to_string()));
    let ibip = names.ibip().map(|ibip| ("ibip", ibip.to_string()));
    let pairs = rep.into_iter().chain(ibip);
    let pairs = pairs.map(|(form, name)| format!("{before}{form}={}", encoded(name.as_bytes())));
    pairs.collect::<Vec<_>>().join("&")
}

impl Destination for Remote {
    fn service(&self) -> &Names {
        &self.service
    }

    fn place(&self) -> &[String] {
        &self.place
    }

    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError> {
        let query = format!("step=tell&{}", named(names, ""));
        let pairs = self.link.ask(&query, Sent::default())?;
        let word = |name: &str| pairs.get(name).and_then(|value| value.words().first());
        let state = word("state").map(|word| word.parse::<State>()).transpose();
        let service = pairs.get("ibi.archiveservice");
        Ok(RemoteStatus {
            state: state.map_err(|error| self.link.fault(&error))?,
            service: service.and_then(|value| Names::from_value(value).ok()),
            removed_at: word("timestamp").and_then(|word| Timestamp::parse_rfc3339(word).ok()),
            is_withdrawn: false,
        })
    }

    /// Digests are always compared: the protocol names files by their digests.
    fn receive(
        &mut self,
        source: &Local,
        names: &Names,
        original_at: Option<&Names>,
        _comparison: CompareWhen,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let link = &self.link;
        let item = source.item(names)?;
        let manifest = source.sound_manifest(&item, progress)?;
        let directory = source.directory(&item)?;
        let listed = Inventory::with_not_sent(&directory, &manifest);
        let (inventory, not_sent) = listed.map_err(Skip::NotCopied)?;
        let text = inventory.to_string();
        let item_named = named(&item.names, "");
        let plan = format!("step=plan&{item_named}");
        let pairs = link.ask(&plan, Sent::bytes(text.clone().into_bytes()))?;
        let missing = pairs.get("missing").map_or(&[][..], Value::words);
        let missing = missing.iter().map(|word| Digest::parse(word.as_bytes()));
        let missing: Option<Vec<Digest>> = missing.collect();
        let missing = missing
            .ok_or_else(|| link.fault(&message!("it asks for something that is not a file")))?;
        let mut moved = link.send_files(&directory, &inventory, &item_named, &missing, progress)?;
        let sidecar = source
            .sidecar_to_send(&item, original_at)?
            .unwrap_or_default();
        let mut body = format!("{}\n", sidecar.len()).into_bytes();
        body.extend_from_slice(&sidecar);
        body.extend_from_slice(text.as_bytes());
        let from = named(source.service(), "from.");
        let complete = format!("step=complete&{item_named}&{from}");
        let pairs = link.ask(&complete, Sent::bytes(body))?;
        let files = pairs.get("files").and_then(|value| value.words().first());
        let files: Option<u64> = files.and_then(|word| word.parse().ok());
        moved.files = moved.files.max(files.unwrap_or_default());
        // The other Archive has compared what it has with the digests in the inventory.
        moved.is_proved = true;
        moved.not_sent = NotSent {
            way: Way::Sent,
            ..not_sent
        };
        Ok(moved)
    }

    /// An Archive of an older version takes none.
    fn take_events(&self, source: &Local, names: &Names) {
        let events = source.events_to_tell(names, true);
        let (item, from) = (named(names, ""), named(source.service(), "from."));
        let step = format!("step=events&{item}&{from}");
        let sent = Sent::bytes(events.join("\n").into_bytes());
        if !events.is_empty()
            && let Err(error) = self.link.ask(&step, sent)
        {
            log::info!("what was done to {names} is not told: {error}");
        }
    }

    fn expect(&mut self, names: &Names, from: &Names) -> Result<String, TransferError> {
        let query = format!("step=expect&{}&{}", named(names, ""), named(from, "from."));
        let pairs = self.link.ask(&query, Sent::default())?;
        let token = pairs.get("word").and_then(|value| value.words().first());
        token
            .cloned()
            .ok_or_else(|| self.link.fault(&message!("it returns no one-time token")))
    }

    fn take(&mut self, names: &Names, from: &Names, token: &str) -> Result<(), TransferError> {
        let (item, from) = (named(names, ""), named(from, "from."));
        let token = encoded(token.as_bytes());
        let query = format!("step=take&{item}&{from}&word={token}");
        self.link.ask(&query, Sent::default()).map(drop)
    }

    fn cancel(&mut self, names: &Names, from: &Names) -> Result<(), TransferError> {
        let query = format!("step=cancel&{}&{}", named(names, ""), named(from, "from."));
        self.link.ask(&query, Sent::default()).map(drop)
    }
}

/// A remote Archive whose public service is queried for the state of items.
pub struct RemoteArchive {
    runtime: Runtime,
    client: Client,
    url: String,
    service: Names,
}

impl fmt::Debug for RemoteArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.url;
        f.debug_struct("Asked")
            .field("url", url)
            .finish_non_exhaustive()
    }
}

impl RemoteArchive {
    /// The Archive whose service has this URL: that of the Archive, a slash and the identifier of the service.
    pub fn at(url: &str, network: &Network) -> Result<RemoteArchive, TransferError> {
        let bad = || {
            TransferError::Remote(message!(
                "'{url}' is not the URL of an Archive's service, as https://host/ and its identifier",
                url
            ))
        };
        let (base, service) = service_in(url).ok_or_else(bad)?;
        Ok(RemoteArchive {
            runtime: runtime()?,
            client: Client::new(network, Reach::Any),
            url: service_url(&base, &service),
            service,
        })
    }

    /// The names of the Archive's service.
    #[must_use]
    pub fn service(&self) -> &Names {
        &self.service
    }

    /// The state of an item in that Archive. None if the Archive does not know the item.
    pub fn state(&self, names: &Names) -> Result<Option<State>, TransferError> {
        Ok(self.remote_status(names)?.state)
    }

    /// Whether it holds the original of an item, and has withdrawn it.
    pub fn has_withdrawn(&self, names: &Names) -> Result<bool, TransferError> {
        let status = self.remote_status(names)?;
        Ok(status.is_withdrawn && status.state == Some(State::Original))
    }

    /// The status of an item. The answer must come from the expected service, and be about this item.
    fn remote_status(&self, names: &Names) -> Result<RemoteStatus, TransferError> {
        let fault = |what: &dyn Localize| {
            let url = &self.url;
            TransferError::Remote(message!("the Archive at {url}: {what}", url, what))
        };
        let question = format!(
            "{}?servicesubject=urlRequest&parsedibiurl.ibi={}&parsedibiurl.verblist=",
            self.url,
            encoded(names.preferred().as_bytes())
        );
        let asked = self.client.get(&question, LONGEST_STATUS, STATUS_TIMEOUT);
        let answer = self
            .runtime
            .block_on(asked)
            .map_err(|error| fault(&error))?;
        let pairs = Pairs::parse(&answer).map_err(|error| fault(&error))?;
        let withdrawn = pairs.get("withdrawn");
        let state = withdrawn.or_else(|| pairs.get("state"));
        let state = state.and_then(|value| value.words().first());
        let state = state.map(|word| word.parse::<State>()).transpose();
        let state = state.map_err(|error| fault(&error))?;
        let named = |pair: &str| pairs.get(pair).and_then(|it| Names::from_value(it).ok());
        if state.is_some() {
            match named("ibi.archiveservice") {
                Some(service) if service.matches(&self.service) => {}
                Some(service) => {
                    let what = message!(
                        "it is the Archive {service}, not {expected}",
                        service,
                        expected = self.service
                    );
                    return Err(fault(&what));
                }
                None => return Err(fault(&message!("it does not name its service"))),
            }
            if !named("ibi").is_some_and(|given| given.matches(names)) {
                return Err(fault(&message!(
                    "it answers for another item than {names}",
                    names
                )));
            }
        }
        Ok(RemoteStatus {
            state,
            is_withdrawn: withdrawn.is_some(),
            ..RemoteStatus::default()
        })
    }
}

/// Reads the page of the Archive at a URL about an item that it has withdrawn; None of any other item, and where there is
/// no such page.
#[must_use]
pub fn withdrawal_at(base: &BaseUrl, names: &Names, network: &Network) -> Option<Life> {
    let url = base.at(&encoded(names.preferred().as_bytes()));
    let client = Client::new(network, Reach::Any);
    let asked = async {
        let page = Fetch::get(&url).with(header::ACCEPT, "application/json");
        let page = client.fetch(&page).await.ok()?;
        let is_gone = page.status() == 410;
        let text = page.whole(LONGEST_STATUS, STATUS_TIMEOUT).await.ok();
        text.filter(|_| is_gone)
    };
    let runtime = runtime().ok()?;
    let text = runtime.block_on(async { tokio::time::timeout(STATUS_TIMEOUT, asked).await });
    let page: serde_json::Value = serde_json::from_slice(&text.ok()??).ok()?;
    // One that was removed after it was withdrawn has its state.
    if page["state"].is_string() {
        return None;
    }
    let at = Timestamp::parse_rfc3339(page["withdrawn_at"].as_str()?).ok()?;
    let reason = page["reason"].as_str().unwrap_or_default();
    Some(Life::withdrawn(at, reason, page["citation"].as_str()))
}

/// A public service proves the removal but does not take part: it records nothing.
impl Remover for RemoteArchive {
    fn service(&self) -> &Names {
        &self.service
    }

    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError> {
        self.remote_status(names)
    }

    fn given(&self, _: &Names) -> Result<Option<OwnershipTransfer>, TransferError> {
        Ok(None)
    }

    fn give_up(&mut self, _: &Names, _: &Names, _: &str) -> Result<(), TransferError> {
        Ok(())
    }

    fn is_taken(&mut self, _: &Names, _: &Names) -> Result<bool, TransferError> {
        Ok(false)
    }
}

/// The parts of a URL: that of an Archive, and the identifier of its service.
fn service_in(url: &str) -> Option<(BaseUrl, Names)> {
    let url = url.trim_end_matches('/');
    // A rep has four components, an IBIp two.
    let slashes: Vec<usize> = url.rmatch_indices('/').map(|(at, _)| at).collect();
    let ends = [slashes.get(3), slashes.get(1)].into_iter().flatten();
    ends.filter_map(|at| url.split_at_checked(*at))
        .find_map(|(base, service)| {
            let service = percent_decoded(service.strip_prefix('/')?)?;
            let service = Names::from(Ibi::parse(&service).ok()?);
            Some((BaseUrl::parse(base).ok()?, service))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_services() {
        for (url, base, service) in [
            (
                "http://a:1905/8JMKD3MGP8W/34PGRBS",
                "http://a:1905",
                "8JMKD3MGP8W/34PGRBS",
            ),
            (
                "https://a.org/x/8JMKD3MGP8W/34PGRBS/",
                "https://a.org/x",
                "8JMKD3MGP8W/34PGRBS",
            ),
            (
                "https://a.org/x/sid.inpe.br/mtc-m18%4080/2008/03.17.15.17",
                "https://a.org/x",
                "sid.inpe.br/mtc-m18@80/2008/03.17.15.17",
            ),
        ] {
            let (found, names) = service_in(url).expect(url);
            assert_eq!(
                (found.to_string().as_str(), names.preferred().as_str()),
                (base, service)
            );
        }
        for bad in [
            "https://a.org",
            "https://a.org/x/y",
            "ftp://a/8JMKD3MGP8W/34PGRBS",
            "a/8JMKD3MGP8W/34PGRBS",
            "https://a.org/8JMKD3MGP8W/34PGRBS?x",
        ] {
            assert!(service_in(bad).is_none(), "{bad}");
        }
    }
}
