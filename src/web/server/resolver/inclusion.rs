//! Inclusion and exclusion of Archives (ibi-resolution(7), "Inclusion"), by GET. HEAD is refused, since it
//! must not change anything.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode};

use super::{Resolver, failure};
use crate::archive::Clock;
use crate::formats::query::Query;
use crate::web::client::archive_service::confirms;
use crate::web::registry::{Inclusion, PAIRS_READ, READ_HERE, RegistryError};
use crate::web::server::{answer, threads};
use ibi::message::Message;
use ibi::pairs::Pairs;

/// The most keys that are checked at a time. Each check uses some milliseconds of CPU and 19 MiB, by design.
pub(super) const MOST_AT_ONCE: usize = 2;
/// Answers a request to the resolver's service.
pub(super) async fn answer(
    resolver: &Arc<Resolver>,
    method: &Method,
    query: &str,
) -> Response<Body> {
    if *method == Method::HEAD {
        return answer::no_method(method, "GET");
    }
    let bad = |sentence: &str| answer::refusal(StatusCode::BAD_REQUEST, sentence);
    let query = match Query::parse(query) {
        Ok(query) => query,
        Err(error) => return bad(&error.to_string()),
    };
    let is_on = match query.get("servicesubject") {
        Some("inclusionRequest") => true,
        Some("exclusionRequest") => false,
        other => {
            return bad(&format!(
                "servicesubject '{}' is neither inclusionRequest nor exclusionRequest",
                other.unwrap_or_default()
            ));
        }
    };
    let inclusion = match Inclusion::of(&query) {
        Ok(inclusion) => inclusion,
        Err(error) => return bad(&error.to_string()),
    };
    if let Err(error) = change(resolver, inclusion.clone(), is_on).await {
        return failure::of(&error);
    }
    if is_on {
        resolver.archives.revive(&inclusion.service);
    }
    let address = inclusion.url.short();
    let status = match is_on {
        false => {
            log::info!("{address} is excluded");
            "status.archive excluded"
        }
        true if confirms(&resolver.client, &inclusion).await => {
            log::info!("{address} is included");
            "status.archive included status.confirmation successful"
        }
        true => {
            log::warn!("{address} is included, and does not confirm that it is reached there");
            "status.archive included status.confirmation unsuccessful"
        }
    };
    let mut response = answer::pairs(&Pairs::parse(status.as_bytes()).unwrap_or_default());
    let lines = response.headers_mut();
    lines.insert(PAIRS_READ, HeaderValue::from_static(READ_HERE));
    response
}

/// Checks the key, which is slow, and records the change.
async fn change(
    resolver: &Arc<Resolver>,
    inclusion: Inclusion,
    is_on: bool,
) -> Result<(), RegistryError> {
    // The semaphore is never closed.
    let _turn = resolver.hashing.acquire().await;
    let asked = Arc::clone(resolver);
    let changed = threads::aside(move || {
        if is_on {
            asked.registry.include(&inclusion, &asked.clock.now())?;
        } else {
            asked.registry.exclude(&inclusion)?;
        }
        asked.refresh()
    });
    let changed = changed.await;
    changed.unwrap_or_else(|error| Err(RegistryError::Broken(Message::foreign(error.to_string()))))
}
