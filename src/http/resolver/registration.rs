//! The registration protocol of 2009 (SPEC 9), by GET and by POST. Not by HEAD: a GET changes something
//! here, and a HEAD never may.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};

use super::{ASK_AGAIN, Resolver, TURN_PATIENCE};
use crate::archive::{Clock, SystemClock};
use crate::http::{answer, form};
use crate::query::Fields;
use crate::registration::LONGEST_REQUEST;
use crate::registry::{Outcome, addresses_of};

/// Requests that are done at once. They wait for each other and not for the keys of Archives: a password
/// takes as long as a key, and a name server that does not answer much longer.
pub(super) const MOST_AT_ONCE: usize = 2;

/// Whether a request is one of this protocol: by its method, or because it has a verb.
pub(super) fn is_one(method: &Method, query: &str) -> bool {
    method == Method::POST || query.split('&').any(|pair| pair.starts_with("verb="))
}

/// Does what is asked, and answers in XML.
pub(super) async fn answer(resolver: &Arc<Resolver>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let text = match parts.method {
        Method::HEAD => return answer::no_method(&parts.method, "GET, POST"),
        Method::POST => match form::in_body(&parts, body, LONGEST_REQUEST).await {
            Ok(text) => text,
            Err(refusal) => return *refusal,
        },
        _ => parts.uri.query().unwrap_or_default().to_owned(),
    };
    let fields = match Fields::parse(&text) {
        Ok(fields) => fields,
        Err(error) => return answer::refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let turn = tokio::time::timeout(TURN_PATIENCE, resolver.registrations.acquire()).await;
    let Ok(Ok(turn)) = turn else {
        let sentence = "too many ask for registrations; ask again in a while";
        return answer::busy(sentence, ASK_AGAIN);
    };
    let registry = Arc::clone(&resolver.registry);
    let done = answer::aside(move || registry.answer(&fields, &addresses_of, &SystemClock.now()));
    let done = done.await;
    drop(turn);
    let reply = match done {
        Ok(reply) => reply,
        Err(refusal) => return refusal,
    };
    tokio::time::sleep(reply.wait).await;
    let status = match reply.outcome {
        Outcome::Done => StatusCode::OK,
        Outcome::Refused => StatusCode::BAD_REQUEST,
        Outcome::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    };
    answer::no_store(answer::whole(status, "text/xml; charset=utf-8", reply.xml))
}
