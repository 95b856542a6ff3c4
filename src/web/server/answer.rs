//! Answers that any service gives, and the bounds of every request.

use axum::Router;
use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use tower::Service;

use super::threads;
use ibi::pairs::Pairs;

/// A whole answer of one type.
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

/// A sentence for whoever asked in a way that cannot be answered.
pub fn refusal(status: StatusCode, sentence: &str) -> Response<Body> {
    whole(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

/// A list of pairs (SPEC 8); it changes with every answer.
pub fn pairs(pairs: &Pairs) -> Response<Body> {
    written_pairs(pairs.to_bytes())
}

/// The same, of what is written already.
pub fn written_pairs(bytes: Vec<u8>) -> Response<Body> {
    no_store(whole(StatusCode::OK, "text/plain", bytes))
}

/// The same answer, to be kept by nobody.
pub fn no_store(response: Response<Body>) -> Response<Body> {
    with(
        response,
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-store"),
    )
}

/// The same answer, which may change at any time: whoever keeps it asks whether it has.
pub fn fresh(response: Response<Body>) -> Response<Body> {
    with(
        response,
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache"),
    )
}

/// The same answer, which another reader may be given in another language.
pub fn by_language(mut response: Response<Body>) -> Response<Body> {
    let name = HeaderValue::from_static("Accept-Language");
    response.headers_mut().append(header::VARY, name);
    response
}

/// Refuses for a while; the client may ask again in so many seconds.
pub fn busy(sentence: &str, seconds: u16) -> Response<Body> {
    again_later(refusal(StatusCode::SERVICE_UNAVAILABLE, sentence), seconds)
}

/// The same answer, to be asked for again in so many seconds.
pub fn again_later(response: Response<Body>, seconds: u16) -> Response<Body> {
    with(response, header::RETRY_AFTER, seconds.into())
}

fn with(mut response: Response<Body>, name: HeaderName, value: HeaderValue) -> Response<Body> {
    response.headers_mut().insert(name, value);
    response
}

/// Refuses a method; these are allowed there.
pub fn no_method(method: &Method, allowed: &'static str) -> Response<Body> {
    let sentence = format!("{method} is not a method of this service; use GET");
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, &sentence);
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

/// Runs what may wait for a disk or another process, where it keeps nobody else waiting.
pub async fn aside<T: Send + 'static>(
    find: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Response<Body>> {
    let found = threads::aside(find).await;
    found.map_err(|error| {
        log::error!("an answer was not made: {error}");
        let sentence = "there is a fault in this service";
        refusal(StatusCode::INTERNAL_SERVER_ERROR, sentence)
    })
}

/// What the routes answer to a request that is within bounds: everything here is only read. A POST is
/// for the routes to refuse.
pub async fn bounded<B>(mut routes: Router, request: Request<B>) -> Response<Body>
where
    B: axum::body::HttpBody<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if ![Method::GET, Method::HEAD, Method::POST].contains(request.method()) {
        return careful(no_method(request.method(), "GET, HEAD"));
    }
    let request = request.map(Body::new);
    match routes.call(request).await {
        Ok(response) => careful(response),
        Err(never) => match never {},
    }
}

/// Says who may be told where a reader comes from (no one), and who may have an answer in a page of theirs:
/// pages, lists and refusals only this service. The content of items is for all, and says so itself: a page
/// in an item runs without an origin, so that nothing else would let it show its own pictures. So is what
/// leads there.
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

/// Whose pages may have an answer in them.
pub const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// See [`RESOURCE_POLICY`]: all.
pub const FOR_ALL: HeaderValue = HeaderValue::from_static("cross-origin");
