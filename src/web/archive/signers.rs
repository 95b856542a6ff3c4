//! Services that sign for other Archives: each has an address that takes POST alone, and one with its public key.

use axum::body::Body;
use axum::http::{Method, Response, StatusCode};

use super::{Site, audit, witness};
use crate::http::server::answer::{self, no_store, whole};

const TEXT: &str = "text/plain; charset=utf-8";

/// Answers a request that is not by POST. None if the path is of none of these services, or of one that this Archive has not.
pub(super) fn answer(site: &Site, path: &str, method: &Method) -> Option<Response<Body>> {
    let audits = site.audits.as_ref().map(|it| (audit::PATHS, it.key()));
    let witness = site.witness.as_ref().map(|it| (witness::PATHS, it.key()));
    for ((requests, of_key), key) in audits.into_iter().chain(witness) {
        if path == requests {
            return Some(answer::no_method(method, "POST"));
        }
        if path == of_key {
            return Some(no_store(whole(StatusCode::OK, TEXT, format!("{key}\n"))));
        }
    }
    None
}
