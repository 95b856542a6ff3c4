//! Answers that both services use, and the rules for every request.

use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};

use super::{Responder, compression, threads, vary};
use ibi::pairs::Pairs;
use ibifs_sql::error::DiskFault;

/// An answer that ends a request early, with the reason. Boxed, since it is rare and large.
pub type Refusal = Box<Response<Body>>;

/// A complete answer of one type.
pub fn whole(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// An error answer: one sentence as plain text.
pub fn refusal(status: StatusCode, sentence: &str) -> Response<Body> {
    whole(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

/// A list of pairs (ibi-resolution(7), "List of pairs"). It is not cached, since it changes with every
/// answer.
pub fn pairs(pairs: &Pairs) -> Response<Body> {
    written_pairs(pairs.to_http_bytes())
}

/// The same for pairs that are already formatted.
pub fn written_pairs(mut bytes: Vec<u8>) -> Response<Body> {
    // A space stands between pairs, and not after the last one.
    if bytes.ends_with(b"\r\n") {
        bytes.truncate(bytes.len() - 2);
    }
    no_store(whole(StatusCode::OK, "text/plain", bytes))
}

/// The answer with another media type, in UTF-8.
pub fn of_type(response: Response<Body>, media_type: &str) -> Response<Body> {
    match HeaderValue::from_str(&format!("{media_type}; charset=utf-8")) {
        Ok(kind) => with(response, header::CONTENT_TYPE, kind),
        Err(_) => response,
    }
}

/// Forbids caches to store the answer.
pub fn no_store(response: Response<Body>) -> Response<Body> {
    with(
        response,
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-store"),
    )
}

/// Requires caches to validate the answer before each use, since it may change at any time.
pub fn fresh(response: Response<Body>) -> Response<Body> {
    with(
        response,
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache"),
    )
}

/// Marks an answer as dependent on the media types that the reader accepts.
pub fn by_accept(response: Response<Body>) -> Response<Body> {
    vary::by(response, "Accept")
}

/// Marks an answer as dependent on the language of the reader.
pub fn by_language(response: Response<Body>) -> Response<Body> {
    vary::by(response, "Accept-Language")
}

/// Refuses what the disk does not take. The log has the error itself.
pub fn disk(fault: DiskFault) -> Response<Body> {
    refusal(disk_status(fault), disk_sentence(fault))
}

/// The status of a fault of the disk.
pub fn disk_status(fault: DiskFault) -> StatusCode {
    match fault {
        DiskFault::Full => StatusCode::INSUFFICIENT_STORAGE,
        DiskFault::Broken => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Returns what a client is told of it.
pub fn disk_sentence(fault: DiskFault) -> &'static str {
    match fault {
        DiskFault::Full => {
            "there is no space left on the disk of this service; try again when its administrator has made room"
        }
        DiskFault::Broken => {
            "the disk of this service fails; try again when its administrator has seen to it"
        }
    }
}

/// Refuses temporarily. The client may try again after so many seconds.
pub fn busy(sentence: &str, seconds: u16) -> Response<Body> {
    again_later(refusal(StatusCode::SERVICE_UNAVAILABLE, sentence), seconds)
}

/// Adds the number of seconds after which the client may try again.
pub fn again_later(response: Response<Body>, seconds: u16) -> Response<Body> {
    with(response, header::RETRY_AFTER, seconds.into())
}

fn with(mut response: Response<Body>, name: HeaderName, value: HeaderValue) -> Response<Body> {
    response.headers_mut().insert(name, value);
    response
}

/// Refuses a method, and lists those that are allowed.
pub fn no_method(method: &Method, allowed: &'static str) -> Response<Body> {
    let other = if allowed == "POST" { "POST" } else { "GET" };
    let sentence = format!("{method} is not a method of this service; use {other}");
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, &sentence);
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

/// Runs work that may wait for a disk or another process in a thread that may block.
pub async fn aside<T: Send + 'static>(
    find: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Response<Body>> {
    let found = threads::aside(find).await;
    found.map_err(|error| {
        log::error!("an answer cannot be made: {error}");
        let sentence = "the service has an internal error";
        refusal(StatusCode::INTERNAL_SERVER_ERROR, sentence)
    })
}

/// Refuses a method other than GET, HEAD and POST. Which of these is allowed where, the service decides.
pub fn refused_method(method: &Method) -> Option<Response<Body>> {
    let is_usual = [Method::GET, Method::HEAD, Method::POST].contains(method);
    (!is_usual).then(|| no_method(method, "GET, HEAD"))
}

/// Has a request answered, and protects the readers of the answer, which is compressed if it is a text and the client accepts
/// that.
pub async fn routed<B>(responder: &Responder, request: Request<B>) -> Response<Body>
where
    B: axum::body::HttpBody<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let accepted = compression::accepted(request.headers());
    let response = responder(request.map(Body::new)).await;
    careful(compression::encoded(accepted, response).await)
}

/// Sets the headers that protect readers. No page to which a link leads learns where the reader comes from.
/// Pages, lists and refusals may be embedded only by pages of this service. The content of items sets its own
/// header and may be embedded by all: a page in an item runs without an origin, and could not show its own
/// images otherwise. Redirects lead there, so they may be embedded as well.
fn careful(mut response: Response<Body>) -> Response<Body> {
    let policy = if response.status().is_redirection() {
        FOR_ALL
    } else {
        HeaderValue::from_static("same-origin")
    };
    let lines = response.headers_mut();
    lines.entry(RESOURCE_POLICY).or_insert(policy);
    lines.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    response
}

/// The header that restricts which pages may embed an answer.
pub const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// The value of [`RESOURCE_POLICY`] for all pages.
pub const FOR_ALL: HeaderValue = HeaderValue::from_static("cross-origin");
