//! Inclusion and exclusion of Archives (ibi-resolution(7), "Inclusion"), by GET. HEAD is refused, since it
//! must not change anything.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode};

use super::{Resolver, failure};
use crate::archive_service::confirms;
use crate::registry::{Inclusion, PAIRS_READ, READ_HERE, RegistryError};
use ibi::message::Message;
use ibi::pairs::Pairs;
use ibifs_formats::query::Query;
use ibifs_http::server::{answer, threads};
use ibifs_os::clock::Clock;

/// The answer where the Archive is not reached at the address that it names.
const UNCONFIRMED: &str = "status.archive included status.confirmation unsuccessful";
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
    let done = if is_on {
        include(resolver, inclusion).await
    } else {
        exclude(resolver, inclusion).await
    };
    done.unwrap_or_else(|error| failure::of(&error))
}

fn status(pairs: &str) -> Response<Body> {
    let mut response = answer::pairs(&Pairs::parse(pairs.as_bytes()).unwrap_or_default());
    let lines = response.headers_mut();
    lines.insert(PAIRS_READ, HeaderValue::from_static(READ_HERE));
    response
}

/// Includes an Archive, unless it does not answer at its new address and an Archive that this displaces answers where it is:
/// a client that repeats an earlier request, or names the address of another, changes nothing.
async fn include(
    resolver: &Arc<Resolver>,
    inclusion: Inclusion,
) -> Result<Response<Body>, RegistryError> {
    let (service, url) = (inclusion.service.clone(), inclusion.url.clone());
    let asked = inclusion.clone();
    let displaced = with_key(resolver, move |resolver| {
        resolver.registry.displaced_by(&asked)
    })
    .await?;
    let mut is_reached = None;
    if !displaced.is_empty() {
        is_reached = Some(confirms(&resolver.client, &url, &service).await);
    }
    if is_reached == Some(false) {
        for (present, other) in displaced {
            if !confirms(&resolver.client, &present, &other).await {
                continue;
            }
            log::warn!(
                "{url} does not answer as {service}; {other} stays at {present}, where it answers"
            );
            if other.matches(&service) {
                return Ok(status(UNCONFIRMED));
            }
            let other = other.preferred();
            let sentence = format!("{url} is the address of {other}, which answers there");
            return Ok(answer::refusal(StatusCode::CONFLICT, &sentence));
        }
    }
    with_key(resolver, move |resolver| {
        resolver
            .registry
            .include(&inclusion, &resolver.clock.now())?;
        resolver.refresh()
    })
    .await?;
    resolver.archives.revive(&service);
    let is_reached = match is_reached {
        Some(is_reached) => is_reached,
        None => confirms(&resolver.client, &url, &service).await,
    };
    if is_reached {
        log::info!("{url} is included");
        return Ok(status(
            "status.archive included status.confirmation successful",
        ));
    }
    log::warn!("{url} is included, and does not confirm that it is reached there");
    Ok(status(UNCONFIRMED))
}

async fn exclude(
    resolver: &Arc<Resolver>,
    inclusion: Inclusion,
) -> Result<Response<Body>, RegistryError> {
    let url = inclusion.url.clone();
    with_key(resolver, move |resolver| {
        resolver.registry.exclude(&inclusion)?;
        resolver.refresh()
    })
    .await?;
    log::info!("{url} is excluded");
    Ok(status("status.archive excluded"))
}

/// Does what checks a key, which is slow.
async fn with_key<T: Send + 'static>(
    resolver: &Arc<Resolver>,
    work: impl FnOnce(&Resolver) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    // The semaphore is never closed.
    let _turn = resolver.hashing.acquire().await;
    let asked = Arc::clone(resolver);
    let done = threads::aside(move || work(&asked)).await;
    done.unwrap_or_else(|error| Err(RegistryError::Broken(Message::foreign(error.to_string()))))
}
