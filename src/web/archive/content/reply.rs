//! The answers to requests for content, and the paths that they name.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest as _, Sha256};

use crate::archive::ArchiveError;
use crate::archive::store::Item;
use crate::archive::tree::Published;
use crate::formats::fixity::Digest;
use crate::formats::hex::Hex;
use crate::formats::query::percent_decoded_bytes;
use crate::http::server::answer::{self, Refusal};
use crate::web::archive::conditions::{ConditionResult, FileVersion, evaluate};
use crate::web::archive::crawlers::Listed;
use crate::web::archive::failure;
use crate::web::archive::file::Source;
use crate::web::archive::zip::Layout;

/// The result of a request.
pub(in super::super) enum ContentReply {
    /// An answer.
    Answer(Response<Body>),
    /// A file. The name determines its type.
    File {
        source: Source,
        name: Vec<u8>,
        /// The URL of the file itself, if the request used another one.
        location: Option<String>,
        /// Whether a browser saves the file instead of showing it.
        is_download: bool,
        /// The recorded digest, if it is wanted and known.
        digest: Option<Digest>,
    },
    /// A list for crawlers.
    List(Listed),
    /// The metadata text of an item, which a reader of pages gets as a page.
    Text(Published),
    /// An item as one file.
    Zip(Box<Item>, Layout),
}

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum PathEnd {
    /// With a slash, as that of a directory.
    Slash,
    /// With a name.
    Name,
}

/// A path: its decoded components, and how it ends.
pub(in super::super) struct Path {
    pub(in super::super) components: Vec<Vec<u8>>,
    pub(in super::super) end: PathEnd,
}

/// Splits a path. An encoded slash separates components as well, since no name has one.
pub(in super::super) fn read_path(text: &str) -> Result<Path, Refusal> {
    let mut components = Vec::new();
    let mut end = PathEnd::Slash;
    for part in text.split('/').filter(|part| !part.is_empty()) {
        let Some(component) = percent_decoded_bytes(part) else {
            let sentence = "the percent-encoding of the path is not valid; write % as %25";
            return Err(refuse(StatusCode::BAD_REQUEST, sentence));
        };
        for component in component.split(|byte| *byte == b'/') {
            let is_climbing = component == b"." || component == b"..";
            if is_climbing || component.contains(&0) {
                return Err(refuse(
                    StatusCode::NOT_FOUND,
                    "no path here contains '.', '..' or a NUL byte",
                ));
            }
            if !component.is_empty() {
                components.push(component.to_vec());
            }
            end = if component.is_empty() {
                PathEnd::Slash
            } else {
                PathEnd::Name
            };
        }
    }
    if text.ends_with('/') {
        end = PathEnd::Slash;
    }
    Ok(Path { components, end })
}

pub(in super::super) fn redirect(place: &str) -> Response<Body> {
    let mut response = answer::fresh(answer::refusal(StatusCode::FOUND, &format!("see {place}")));
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

pub(super) fn text_of(components: &[Vec<u8>]) -> Option<String> {
    String::from_utf8(components.join(&b'/')).ok()
}

pub(in super::super) fn refuse(status: StatusCode, sentence: &str) -> Refusal {
    Box::new(answer::refusal(status, sentence))
}

pub(in super::super) fn no_file() -> Refusal {
    refuse(StatusCode::NOT_FOUND, "this item has no such file")
}

pub(in super::super) fn failed(error: ArchiveError) -> Refusal {
    Box::new(failure::of(&error))
}

/// A text with an entity tag, or the answer that it has not changed.
pub(super) fn validated(
    headers: &HeaderMap,
    media_type: &'static str,
    text: String,
) -> Response<Body> {
    let tag = Hex(&Sha256::digest(&text)).to_string();
    let version = FileVersion {
        tag: format!("\"{}\"", tag.get(..32).unwrap_or(&tag)),
        changed: None,
        is_settled: true,
    };
    let mut response = match evaluate(headers, &version) {
        ConditionResult::Send => answer::whole(StatusCode::OK, media_type, text),
        ConditionResult::NotModified => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        ConditionResult::Failed => answer::refusal(
            StatusCode::PRECONDITION_FAILED,
            "it has changed: the request requires another version",
        ),
    };
    let lines = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&version.tag) {
        lines.insert(header::ETAG, tag);
    }
    lines.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
