//! The public part of the Archive as a network drive: WebDAV (RFC 4918), class 1, to read only.
//!
//! - [`target`]: what a path names.
//! - [`listing`]: a collection as a list of resources, step by step.
//! - [`propfind`]: the properties of a resource and of its members, and the page of a collection.
//! - [`reading`]: GET and HEAD.
//!
//! A client cannot write: what is written in a mount is owned by the user who writes it, and decided by the rights of
//! that user; a client of WebDAV would be a stranger, or hold a token, which belongs to no user of this system.

mod listing;
mod propfind;
mod reading;
mod target;

use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};

use super::SiteHandle;
use crate::http::server::answer;

/// The first component of all paths.
const PATH: &str = "dav";
/// The methods that are answered.
const ALLOWED: &str = "OPTIONS, GET, HEAD, PROPFIND";
const CLASS: HeaderName = HeaderName::from_static("dav");
const AUTHOR_VIA: HeaderName = HeaderName::from_static("ms-author-via");

/// Whether a path belongs to the drive.
pub(super) fn is_of(path: &str) -> bool {
    path.split('/').next() == Some(PATH)
}

/// Answers a request.
pub(super) async fn answer(handle: SiteHandle, request: Request<Body>) -> Response<Body> {
    match *request.method() {
        Method::GET | Method::HEAD => reading::answer(handle, request).await,
        Method::OPTIONS => options(),
        ref method if method.as_str() == "PROPFIND" => propfind::answer(handle, request).await,
        ref method => {
            let sentence = format!("{method} is not possible here: this drive is read only");
            let mut response = answer::refusal(StatusCode::METHOD_NOT_ALLOWED, &sentence);
            let allowed = HeaderValue::from_static(ALLOWED);
            response.headers_mut().insert(header::ALLOW, allowed);
            response
        }
    }
}

fn options() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let lines = response.headers_mut();
    for (name, value) in [
        (header::ALLOW, ALLOWED),
        (CLASS, "1"),
        (AUTHOR_VIA, "DAV"),
        (header::CONTENT_LENGTH, "0"),
    ] {
        lines.insert(name, HeaderValue::from_static(value));
    }
    response
}
