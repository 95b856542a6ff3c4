//! Receives items from other Archives, and the transfer of originals, from clients with a token.
//!
//! Each step is a POST to `/transfer`. The query names the step and the item; the body holds the data. A step
//! that is refused because of the item is answered with 409, a keyword and a sentence.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError};

use super::Site;
use crate::archive::scrub;
use crate::archive::transfer::{
    Destination, Giver, Incoming, Inventory, Local, Skip, Tokens, TransferError,
};
use crate::archive::tree::{Place, Tree, TreeError};
use crate::formats::fixity::Digest;
use crate::formats::item::Names;
use crate::formats::query::{Query, encoded};
use crate::http::client::Reach;
use crate::http::client::{Client, Network};
use crate::http::server::answer::{self, Refusal};
use crate::http::server::form;
use ibi::Ibi;
use ibi::message;
use ibi::message::{Localize, Message};
use ibi::pairs::{Pairs, Value, percent_encode};

/// The path of the service.
const PATH: &str = "transfer";
/// The longest inventory, in bytes.
const LONGEST_INVENTORY: usize = 64 << 20;
/// The most pieces of a file that have been received and not yet written.
const MOST_PIECES: usize = 8;
/// The time that a step waits while another transfer uses the store.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that the source Archive may take to confirm that it has given up the item.
const SENDER_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest confirmation, in bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// Opens the store for writing, through its mount if it is mounted.
pub type Opener = Box<dyn Fn() -> Result<Local, TransferError> + Send + Sync>;

/// The receiver of transferred items.
pub struct Receiver {
    tokens: Tokens,
    open: Opener,
    client: Client,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

impl Receiver {
    /// A receiver for clients that have one of these tokens.
    #[must_use]
    pub fn new(tokens: Tokens, open: Opener, network: &Network) -> Receiver {
        Receiver {
            tokens,
            open,
            client: Client::new(network, Reach::Any),
        }
    }

    /// Runs a change of the store. Waits while another transfer uses it.
    fn with_store<T>(
        &self,
        act: impl FnOnce(&mut Local) -> Result<T, TransferError>,
    ) -> Result<T, TransferError> {
        let started = Instant::now();
        let mut local = loop {
            match (self.open)() {
                Err(TransferError::Busy(_)) if started.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => break other?,
            }
        };
        let done = act(&mut local);
        local.close();
        done
    }
}

/// Whether a path belongs to this service.
pub(super) fn is_of(path: &str) -> bool {
    path == PATH
}

fn refuse(status: StatusCode, sentence: &str) -> Refusal {
    Box::new(answer::refusal(status, sentence))
}

fn bad(sentence: &str) -> Refusal {
    refuse(StatusCode::BAD_REQUEST, sentence)
}

/// Answers a step.
pub(super) async fn answer(site: Arc<Site>, request: Request<Body>) -> Response<Body> {
    match step(site, request).await {
        Ok(response) => response,
        Err(refusal) => *refusal,
    }
}

async fn step(site: Arc<Site>, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let Some(receiver) = site.receiver.clone() else {
        let sentence = "this Archive accepts no transfers; see --transfer-token-file";
        return Err(refuse(StatusCode::NOT_FOUND, sentence));
    };
    let (parts, body) = request.into_parts();
    let giver = authorised(&receiver.tokens, &parts.headers)?;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let query = query.map_err(|error| bad(&error.to_string()))?;
    let step = query.get("step").unwrap_or_default();
    if step == "hello" {
        let facts = site.archive.facts();
        let mut pairs = Pairs::default();
        pairs.set("ibi.archiveservice", facts.service.to_value());
        if !facts.place.is_empty() {
            let place = facts.place.iter().map(percent_encode);
            pairs.set("place", Value::List(place.collect()));
        }
        return Ok(answer::pairs(&pairs));
    }
    let names = names_in(&query, "").ok_or_else(|| bad("the item is not named"))?;
    let from = || {
        let from = names_in(&query, "from.");
        from.ok_or_else(|| bad("the Archive that sends is not named"))
    };
    match step {
        "tell" => blocking(move || status(&receiver, &names)).await,
        "plan" => {
            let inventory = inventory_in(&whole(body).await?)?;
            blocking(move || plan(&site, &names, &inventory)).await
        }
        "file" => {
            let digest = query
                .get("digest")
                .and_then(|it| Digest::parse(it.as_bytes()));
            let length = query.get("length").and_then(|it| it.parse().ok());
            let what = digest.zip(length);
            let what = what.ok_or_else(|| bad("a file has a digest and a length"))?;
            file(site, names, what, body).await
        }
        "complete" => {
            let (from, body) = (from()?, whole(body).await?);
            blocking(move || complete(&receiver, &names, &from, &body)).await
        }
        "events" => {
            let teller = match (giver, from()?) {
                (Giver::Trusted(service), from) if service.matches(&from) => service.preferred(),
                (Giver::Asked(url), _) => url,
                _ => {
                    let sentence = "not-taken the token does not say whose it is";
                    return Err(refuse(StatusCode::CONFLICT, sentence));
                }
            };
            let body = whole(body).await?;
            blocking(move || {
                let text = String::from_utf8_lossy(&body);
                let events: Vec<String> = text.lines().map(str::to_owned).collect();
                receiver.with_store(|local| {
                    local.tell_earlier(&local.item(&names)?.names, &teller, &events);
                    Ok(())
                })?;
                Ok(one("told", Value::Word("yes".to_owned())))
            })
            .await
        }
        "expect" => {
            let from = from()?;
            check_giver(&giver, &from)?;
            blocking(move || {
                let token = receiver.with_store(|local| local.expect(&names, &from))?;
                Ok(one("word", Value::Word(token)))
            })
            .await
        }
        "take" => {
            let from = from()?;
            check_giver(&giver, &from)?;
            let token = query.get("word").unwrap_or_default().to_owned();
            given_up(&receiver.client, &giver, &names, &from).await?;
            blocking(move || {
                receiver.with_store(|local| local.take(&names, &from, &token))?;
                Ok(one("state", Value::Word("Original".to_owned())))
            })
            .await
        }
        "cancel" => {
            let from = from()?;
            check_giver(&giver, &from)?;
            blocking(move || {
                receiver.with_store(|local| local.cancel(&names, &from))?;
                Ok(one("cancelled", Value::Word("yes".to_owned())))
            })
            .await
        }
        other => Err(bad(&format!("'{other}' is not a step of a transfer"))),
    }
}

/// The source that the token of a request authorizes.
fn authorised(tokens: &Tokens, headers: &HeaderMap) -> Result<Giver, Refusal> {
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    shown.and_then(|token| tokens.giver(token)).ok_or_else(|| {
        let sentence = "this Archive does not know the token";
        refuse(StatusCode::UNAUTHORIZED, sentence)
    })
}

fn names_in(query: &Query, before: &str) -> Option<Names> {
    let forms = ["rep", "ibip"].map(|form| query.get(&format!("{before}{form}")));
    let ibis = forms.into_iter().flatten().map(Ibi::parse);
    Names::collect(ibis.collect::<Result<Vec<_>, _>>().ok()?)
}

fn one(name: &str, value: Value) -> Response<Body> {
    let mut pairs = Pairs::default();
    pairs.set(name, value);
    answer::pairs(&pairs)
}

/// Runs a step in a thread that may block, and maps its errors to answers.
async fn blocking(
    act: impl FnOnce() -> Result<Response<Body>, TransferError> + Send + 'static,
) -> Result<Response<Body>, Refusal> {
    let done = answer::aside(act).await.map_err(Box::new)?;
    done.map_err(refused)
}

/// Maps the errors of a step to answers. No catch-all: a new error does not compile until a status is chosen.
fn refused(error: TransferError) -> Refusal {
    match &error {
        TransferError::Skip(skip) => {
            let sentence = format!("{} {}", skip.word(), skip.sentence());
            refuse(StatusCode::CONFLICT, &sentence)
        }
        TransferError::Busy(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        TransferError::Archive(_)
        | TransferError::System(_)
        | TransferError::SameArchive
        | TransferError::Remote(_) => {
            log::warn!("a hand-over: {error}");
            if let Some(fault) = error.disk_fault() {
                return Box::new(answer::disk(fault));
            }
            let sentence = "the store cannot be changed; the log has the reason";
            refuse(StatusCode::INTERNAL_SERVER_ERROR, sentence)
        }
    }
}

/// A body of limited length.
async fn whole(body: Body) -> Result<Vec<u8>, Refusal> {
    match form::limited(body, LONGEST_INVENTORY).await {
        Ok(body) => Ok(body.to_vec()),
        Err(error) if error.is::<LengthLimitError>() => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "an inventory has at most 64 MiB",
        )),
        Err(_) => Err(bad("the body of the request is incomplete")),
    }
}

/// Removes what is left of items that no sender has continued for long enough.
pub(super) fn remove_abandoned(tree: &Tree) -> Result<(), TreeError> {
    let now = SystemTime::now();
    for key in tree.abandoned_arrivals(now)? {
        if tree.remove_abandoned(&key, now)? {
            let path = Tree::arriving_path(&key);
            log::info!("{path} is removed: no sender has continued it for 7 days");
        }
    }
    Ok(())
}

fn inventory_in(bytes: &[u8]) -> Result<Inventory, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad("the inventory is not UTF-8"))?;
    Inventory::parse(text).map_err(|error| bad(&error.to_string()))
}

fn status(receiver: &Receiver, names: &Names) -> Result<Response<Body>, TransferError> {
    let status = receiver.with_store(|local| local.status(names))?;
    let mut pairs = Pairs::default();
    if let Some(state) = status.state {
        pairs.set("state", Value::Word(state.to_string()));
    }
    if let Some(service) = &status.service {
        pairs.set("ibi.archiveservice", service.to_value());
    }
    if let Some(removed_at) = &status.removed_at {
        pairs.set("timestamp", Value::Word(removed_at.to_rfc3339()));
    }
    Ok(answer::pairs(&pairs))
}

/// The files that the source must send.
fn plan(
    site: &Site,
    names: &Names,
    inventory: &Inventory,
) -> Result<Response<Body>, TransferError> {
    let mut held = BTreeSet::new();
    let tree = site.archive.tree();
    if let Some(item) = site.archive.held(names)? {
        let place = Place::of(&item.names);
        // A file that the held copy has at the same path is not sent.
        let found = scrub::item_digests(tree, place.as_str(), &mut |_, _| ())?;
        scrub::remember_if_possible(tree, place.as_str(), &found);
        let manifest = found.manifest;
        let files = inventory.files();
        let those = files.filter(|(path, digest, _)| manifest.get(*path) == Some(digest));
        held.extend(those.map(|(_, digest, _)| digest.0));
    }
    let missing = Incoming::of(tree, names)?.missing(inventory, &held)?;
    let words = missing.iter().map(Digest::to_string);
    Ok(one("missing", Value::List(words.collect())))
}

/// Receives a file piece by piece. The task that reads the connection passes the pieces to a thread that
/// writes.
async fn file(
    site: Arc<Site>,
    names: Names,
    (digest, length): (Digest, u64),
    mut body: Body,
) -> Result<Response<Body>, Refusal> {
    let (pieces, mut arriving) = tokio::sync::mpsc::channel::<bytes::Bytes>(MOST_PIECES);
    let writing = answer::aside(move || {
        let incoming = Incoming::of(site.archive.tree(), &names)?;
        let mut receiving = incoming.receive(digest, length)?;
        while let Some(piece) = arriving.blocking_recv() {
            receiving.take(&piece)?;
        }
        receiving.finish()
    });
    let reading = async move {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return false;
            };
            // The writer may have ended with an error, which is reported instead.
            if let Ok(piece) = frame.into_data()
                && pieces.send(piece).await.is_err()
            {
                break;
            }
        }
        true
    };
    let (written, is_read) = tokio::join!(writing, reading);
    let written = written.map_err(Box::new)?;
    if is_read {
        written.map_err(refused)?;
    } else {
        return Err(bad("the body of the request is incomplete"));
    }
    Ok(one("digest", Value::Word(digest.to_string())))
}

/// Assembles the received item. The body is the length of the sidecar, the sidecar, and the inventory.
fn complete(
    receiver: &Receiver,
    names: &Names,
    from: &Names,
    body: &[u8],
) -> Result<Response<Body>, TransferError> {
    let not_good = |what: Message| TransferError::from(Skip::NotTaken(what));
    let (sidecar, text) =
        sidecar_and_rest(body).ok_or_else(|| not_good(message!("the request has no sidecar")))?;
    let text =
        std::str::from_utf8(text).map_err(|_| not_good(message!("the inventory is not UTF-8")))?;
    let inventory = Inventory::parse(text).map_err(|error| not_good(error.message()))?;
    let moved = receiver.with_store(|local| {
        let incoming = Incoming::of(local.archive().tree(), names)?;
        incoming.complete(local, names, from, &inventory, sidecar, &mut |_| ())
    })?;
    Ok(one("files", Value::Word(moved.files.to_string())))
}

fn sidecar_and_rest(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let cut = body.iter().position(|byte| *byte == b'\n')?;
    let length: usize = std::str::from_utf8(&body[..cut]).ok()?.parse().ok()?;
    body[cut + 1..].split_at_checked(length)
}

/// Refuses originals from an Archive to which the token does not belong.
fn check_giver(giver: &Giver, from: &Names) -> Result<(), Refusal> {
    if giver.may_give_for(from) {
        return Ok(());
    }
    let sentence = format!(
        "not-taken the token is not that of the Archive {}: with it copies are sent; for originals the \
         administrator here writes behind it the URL of the Archive that has it, or the identifier of its \
         service",
        from.preferred()
    );
    Err(refuse(StatusCode::CONFLICT, &sentence))
}

/// Asks the source Archive whether it has given up the item, if the token contains its URL.
async fn given_up(
    client: &Client,
    giver: &Giver,
    names: &Names,
    from: &Names,
) -> Result<(), Refusal> {
    let Giver::Asked(url) = giver else {
        return Ok(());
    };
    let not_so = |why: &str| {
        let sentence =
            format!("not-taken the Archive at {url} does not say that it has given it up: {why}");
        refuse(StatusCode::CONFLICT, &sentence)
    };
    let question = format!(
        "{url}/{}?servicesubject=urlRequest&parsedibiurl.ibi={}&parsedibiurl.verblist=",
        from.preferred(),
        encoded(names.preferred().as_bytes())
    );
    let asked = client.get(&question, LONGEST_ANSWER, SENDER_TIMEOUT);
    let answer = asked.await.map_err(|error| not_so(&error.to_string()))?;
    let pairs = Pairs::parse(&answer).map_err(|error| not_so(&error.to_string()))?;
    let who = pairs.get("ibi.archiveservice");
    let who = who.and_then(|value| Names::from_value(value).ok());
    if !who.is_some_and(|who| who.matches(from)) {
        return Err(not_so("it is another Archive, or does not know the item"));
    }
    let state = pairs.get("state").and_then(|value| value.words().first());
    match state.map(String::as_str) {
        Some("Copy" | "Deleted") => Ok(()),
        _ => Err(not_so("it claims the original itself")),
    }
}
