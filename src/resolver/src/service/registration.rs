//! The registration protocol of 2009, by GET and POST, if it is enabled. HEAD is refused, since it must not
//! change anything and a GET does here.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;

use super::lookups::{self, Lookups};
use super::{ASK_AGAIN, Resolver, TURN_TIMEOUT, failure};
use crate::registry::{ReplyStatus, Requester};
use ibifs_formats::query::FormFields;
use ibifs_formats::registration::{LONGEST_REQUEST, RegistrationAnswer};
use ibifs_http::server::share::{Shares, client_of};
use ibifs_http::server::{Peer, answer, form};
use ibifs_os::clock::Clock;

/// The most requests that are executed at a time. They do not wait for the key checks of Archives, although a
/// password check takes as long.
const MOST_AT_ONCE: usize = 2;
/// The most requests of one client that are executed at a time.
const MOST_OF_CLIENT: usize = 1;
/// The most wrong passwords from one client within [`WRONG_FOR`].
const MOST_WRONG: u32 = 20;
/// See [`MOST_WRONG`].
const WRONG_FOR: Duration = Duration::from_secs(10 * 60);
/// The most clients for which wrong passwords are counted.
const MOST_KNOWN: usize = 10_000;

/// The state of the protocol, if it is enabled.
#[derive(Debug)]
pub(super) struct Registrations {
    turns: Semaphore,
    of_clients: Shares,
    pub(super) lookups: Lookups,
    /// The number of wrong passwords by client, and the time of the first.
    wrong: Mutex<HashMap<IpAddr, (u32, Instant)>>,
}

impl Default for Registrations {
    fn default() -> Registrations {
        Registrations {
            turns: Semaphore::new(MOST_AT_ONCE),
            of_clients: Shares::new(MOST_OF_CLIENT),
            lookups: Lookups::default(),
            wrong: Mutex::default(),
        }
    }
}

impl Registrations {
    fn has_guessed(&self, client: IpAddr) -> bool {
        let wrong = self.wrong.lock();
        let known = wrong.get(&client);
        known.is_some_and(|(count, since)| *count >= MOST_WRONG && since.elapsed() < WRONG_FOR)
    }

    fn note_wrong(&self, client: IpAddr) {
        let mut wrong = self.wrong.lock();
        if wrong.len() >= MOST_KNOWN {
            wrong.retain(|_, (_, since)| since.elapsed() < WRONG_FOR);
            if wrong.len() >= MOST_KNOWN {
                wrong.clear();
            }
        }
        let (count, since) = wrong.entry(client).or_insert((0, Instant::now()));
        if since.elapsed() >= WRONG_FOR {
            (*count, *since) = (0, Instant::now());
        }
        *count += 1;
    }
}

/// Executes a request and answers in XML.
pub(super) async fn answer(resolver: &Arc<Resolver>, request: Request<Body>) -> Response<Body> {
    if request.method() == Method::HEAD {
        return answer::no_method(request.method(), "GET, POST");
    }
    let Some(registrations) = &resolver.registrations else {
        let sentence = "this resolver takes no registrations by the protocol of 2009; its administrator \
                        may switch them on (ibifs resolver --registration-2009)";
        return xml(
            StatusCode::FORBIDDEN,
            RegistrationAnswer::Refused(sentence.to_owned()).to_xml(None),
        );
    };
    let (parts, body) = request.into_parts();
    let text = match parts.method {
        Method::POST => match form::in_body(&parts, body, LONGEST_REQUEST).await {
            Ok(text) => text,
            Err(refusal) => return *refusal,
        },
        _ => parts.uri.query().unwrap_or_default().to_owned(),
    };
    let fields = match FormFields::parse(&text) {
        Ok(fields) => fields,
        Err(error) => return answer::refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let Some(Peer(peer)) = parts.extensions.get().copied() else {
        return answer::refusal(
            StatusCode::BAD_REQUEST,
            "the address of the client is not known",
        );
    };
    let address = resolver.proxies.client(peer, &parts.headers);
    let client = client_of(address);
    if registrations.has_guessed(client) {
        let sentence = "too many wrong passwords came from this address; try again later";
        return answer::busy(sentence, u16::try_from(WRONG_FOR.as_secs()).unwrap_or(600));
    }
    let turn = async {
        let share = registrations.of_clients.wait(client).await;
        (share, registrations.turns.acquire().await)
    };
    let turn = tokio::time::timeout(TURN_TIMEOUT, turn).await;
    let Ok((_share, Ok(turn))) = turn else {
        let sentence = "too many registrations are in progress; try again later";
        return answer::busy(sentence, ASK_AGAIN);
    };
    let asked = Arc::clone(resolver);
    let lookups = registrations.lookups.clone();
    let done = answer::aside(move || do_it(&asked, &lookups, &fields, address));
    let done = done.await;
    drop(turn);
    let reply = match done {
        Ok(reply) => reply,
        Err(refusal) => return refusal,
    };
    if reply.is_unproven {
        registrations.note_wrong(client);
    }
    tokio::time::sleep(reply.wait).await;
    let status = match reply.status {
        ReplyStatus::Away => {
            let answer = xml(StatusCode::SERVICE_UNAVAILABLE, reply.xml);
            return answer::again_later(answer, failure::ASK_AGAIN);
        }
        ReplyStatus::Disk(fault) => answer::disk_status(fault),
        ReplyStatus::Done => StatusCode::OK,
        ReplyStatus::Refused => StatusCode::BAD_REQUEST,
        ReplyStatus::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    };
    xml(status, reply.xml)
}

fn do_it(
    resolver: &Resolver,
    lookups: &Lookups,
    fields: &FormFields,
    address: IpAddr,
) -> crate::registry::RegistrationReply {
    let client = client_of(address);
    let until = Instant::now() + lookups::LOOKUP_TIMEOUT;
    let lookup = |host: &str| lookups.find(client, host, until);
    let requester = Requester {
        address,
        client,
        lookup: &lookup,
    };
    resolver
        .registry
        .answer(fields, requester, &resolver.clock.now())
}

fn xml(status: StatusCode, document: String) -> Response<Body> {
    answer::no_store(answer::whole(status, "text/xml; charset=utf-8", document))
}
