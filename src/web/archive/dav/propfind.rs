//! PROPFIND: the properties of a resource and of its members, sent while they are found.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use bytes::Bytes;
use hyper::body::Frame;
use tokio::task::JoinHandle;

use super::listing::{Form, Listing};
use super::target::{Target, answered};
use crate::archive::ArchiveError;
use crate::formats::webdav::{FINITE_DEPTH, Wanted};
use crate::http::server::answer::{self, Refusal};
use crate::http::server::{form, languages, threads};
use crate::web::archive::content::{PathEnd, failed, no_file, read_path, refuse};
use crate::web::archive::{Site, SiteHandle};

/// The longest body, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
const XML: &str = "application/xml; charset=utf-8";

/// Answers PROPFIND.
pub(super) async fn answer(handle: SiteHandle, request: Request<Body>) -> Response<Body> {
    match found(handle, request).await {
        Ok(response) => response,
        Err(refusal) => *refusal,
    }
}

async fn found(handle: SiteHandle, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let (parts, body) = request.into_parts();
    let with_members = has_members(&parts.headers)?;
    let wanted =
        Wanted::parse(&form::bytes_of("the body of a PROPFIND", body, LONGEST_BODY).await?);
    let wanted = wanted.map_err(|error| refuse(StatusCode::BAD_REQUEST, error.sentence()))?;
    let site = handle.site;
    let client = site.client(&parts);
    let begun = {
        let site = Arc::clone(&site);
        move || begin(site, &parts, wanted, with_members)
    };
    let begun = site.aside(client, begun).await;
    let (begun, depends_on_reader) = begun.map_err(Box::new)??;
    let response = answer::whole(StatusCode::MULTI_STATUS, XML, body_of(begun));
    let response = answer::fresh(response);
    Ok(if depends_on_reader {
        answer::by_language(response)
    } else {
        response
    })
}

/// The beginning of an answer, and the list that goes on.
type Begun = (String, Option<Box<Listing>>);

fn body_of(begun: Begun) -> Body {
    match begun {
        (xml, None) => Body::from(xml),
        (xml, Some(listing)) => Body::new(ListingBody {
            ready: Some(xml.into()),
            listing: Some(listing),
            running: None,
        }),
    }
}

/// The page of a collection, with links to its members.
pub(super) fn page(
    site: &Arc<Site>,
    target: Target,
    below: &[Vec<u8>],
) -> Result<Response<Body>, Refusal> {
    let begun = Listing::begin(Arc::clone(site), Form::Page, target, below, true);
    let (mut listing, mut text) = begun.map_err(failed)?;
    let has_more = listing.next(&mut text).map_err(failed)?;
    let body = body_of((text, has_more.then(|| Box::new(listing))));
    let mut response = answer::whole(StatusCode::OK, "text/html; charset=utf-8", body);
    let policy = HeaderValue::from_static("default-src 'none'");
    let lines = response.headers_mut();
    lines.insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(answer::fresh(response))
}

fn begin(
    site: Arc<Site>,
    request: &Parts,
    wanted: Wanted,
    with_members: bool,
) -> Result<(Begun, bool), Refusal> {
    let path = read_path(request.uri.path())?;
    let below = path.components.get(1..).unwrap_or_default();
    let preferences = languages::preferred(&request.headers);
    let listed = Arc::clone(&site);
    answered(&site, below, &preferences, |target| {
        let begun = Listing::begin(
            listed,
            Form::Properties(wanted),
            target,
            below,
            with_members,
        )
        .map_err(failed)?;
        let (mut listing, mut xml) = begun;
        if path.end == PathEnd::Slash && listing.is_of_file() {
            return Err(no_file());
        }
        let has_more = listing.next(&mut xml).map_err(failed)?;
        Ok((xml, has_more.then(|| Box::new(listing))))
    })
}

/// Whether the members of a collection are wanted. A list of everything below is refused, which is also what a request
/// without a depth asks for.
fn has_members(headers: &HeaderMap) -> Result<bool, Refusal> {
    let depth = headers.get("depth").map(|depth| depth.as_bytes());
    match depth {
        Some(b"0") => Ok(false),
        Some(b"1") => Ok(true),
        Some(text) if !text.eq_ignore_ascii_case(b"infinity") => Err(refuse(
            StatusCode::BAD_REQUEST,
            "the header Depth is 0, 1 or infinity",
        )),
        _ => Err(Box::new(answer::whole(
            StatusCode::FORBIDDEN,
            XML,
            FINITE_DEPTH,
        ))),
    }
}

/// A step of a list, in a thread that may block.
type Step = JoinHandle<(Box<Listing>, Result<(String, bool), ArchiveError>)>;

/// A list that is sent while it is made. A piece is made when the client has taken the one before.
struct ListingBody {
    ready: Option<Bytes>,
    /// None after the last piece, and during a step.
    listing: Option<Box<Listing>>,
    running: Option<Step>,
}

impl HttpBody for ListingBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        loop {
            if let Some(ready) = this.ready.take()
                && !ready.is_empty()
            {
                return Poll::Ready(Some(Ok(Frame::data(ready))));
            }
            if let Some(mut listing) = this.listing.take() {
                this.running = Some(threads::aside(move || {
                    let mut xml = String::new();
                    let made = listing.next(&mut xml).map(|has_more| (xml, has_more));
                    (listing, made)
                }));
            }
            let Some(running) = &mut this.running else {
                return Poll::Ready(None);
            };
            let ended = ready!(Pin::new(running).poll(context));
            this.running = None;
            match ended {
                Ok((listing, Ok((xml, has_more)))) => {
                    this.listing = has_more.then_some(listing);
                    this.ready = Some(xml.into());
                }
                // The connection ends without the end of the document, so that the client notices.
                Ok((_, Err(error))) => {
                    log::warn!("a directory cannot be listed: {error}");
                    return Poll::Ready(Some(Err(std::io::Error::other(error))));
                }
                Err(error) => return Poll::Ready(Some(Err(std::io::Error::other(error)))),
            }
        }
    }
}
