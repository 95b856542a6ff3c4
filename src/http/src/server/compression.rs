//! Compressed answers (RFC 9110, section 8.4): pages, lists, records and whatever else we write as text. The files of
//! items are sent as they are: a part of a file is a part of its own bytes.

use std::convert::Infallible;

use axum::body::{Body, HttpBody};
use axum::http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue,
};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use tower::{Service, service_fn};
use tower_http::compression::{Compression, Predicate};

use super::vary;

/// The shortest answer that is compressed, in bytes: a shorter one is one packet in any case.
const SHORTEST: u64 = 1024;

/// An answer in the encoding that the client prefers of gzip, zstd and none.
pub async fn encoded(accepted: Option<HeaderValue>, answer: Response<Body>) -> Response<Body> {
    if !is_text(&answer) {
        return answer;
    }
    let answer = vary::by(answer, "Accept-Encoding");
    let Some(accepted) = accepted else {
        return answer;
    };
    let mut answer = Some(answer);
    let give = service_fn(move |_: Request<Body>| {
        let answer = answer.take().unwrap_or_default();
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut asking = Request::new(Body::empty());
    asking.headers_mut().insert(ACCEPT_ENCODING, accepted);
    let mut compression = Compression::new(give).compress_when(Always);
    match compression.call(asking).await {
        Ok(answer) => answer.map(Body::new),
        Err(never) => match never {},
    }
}

/// The caller has decided already.
#[derive(Clone, Copy)]
struct Always;

impl Predicate for Always {
    fn should_compress<B: HttpBody>(&self, _: &Response<B>) -> bool {
        true
    }
}

/// The header by which the encoding is chosen; none if only one is acceptable.
pub fn accepted(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(ACCEPT_ENCODING).cloned()
}

/// Whether an answer is a text of ours that is long enough. An answer that may be asked for in parts is a file.
fn is_text(answer: &Response<Body>) -> bool {
    let headers = answer.headers();
    let media_type = headers.get(CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    let media_type = media_type.unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default();
    let is_textual = essence.starts_with("text/")
        || ["json", "xml", "bibtex", "systems", "refer"]
            .iter()
            .any(|end| essence.ends_with(end));
    is_textual
        && [StatusCode::OK, StatusCode::MULTI_STATUS].contains(&answer.status())
        && !headers.contains_key(ACCEPT_RANGES)
        && !headers.contains_key(CONTENT_ENCODING)
        && length(answer).is_none_or(|length| length >= SHORTEST)
}

/// The length of the whole answer, also where only its headers are sent. None if it is not known yet.
fn length(answer: &Response<Body>) -> Option<u64> {
    let header = answer.headers().get(CONTENT_LENGTH);
    let header = header.and_then(|value| value.to_str().ok()?.parse().ok());
    header.or_else(|| answer.body().size_hint().exact())
}
