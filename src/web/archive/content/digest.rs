//! The digest of a file, for a reader that asks for it (RFC 9530), and those of its pieces.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::reply::refuse;
use crate::archive::scrub;
use crate::archive::store::Item;
use crate::archive::tree::{Place, Published};
use crate::formats::fixity::{Digest, Written};
use crate::formats::inventory::CHUNK;
use crate::http::server::answer::{self, Refusal};
use crate::web::archive::Site;
use crate::web::archive::conditions::{ConditionResult, FileVersion, evaluate};
use crate::web::archive::file::{PIECE, version_of};

/// The header with the digest of the whole file, also where a part of it is sent.
pub(super) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The header that asks for it.
const WANTED: &str = "want-repr-digest";
/// The algorithm of the digests that a scrub records.
const ALGORITHM: &str = "sha-256";
/// The query that asks for the digests of pieces of a file.
const PIECES: &str = "digests=";
/// The text before the digest of the file whose recorded digests are wanted.
const OF: &str = "&of=";
/// The most pieces whose digests are told in one answer.
const MOST_PIECES: u64 = 16;
/// The seconds after which a refused client may try again.
const ASK_AGAIN: u16 = 1;

/// Whether a request asks for a digest that is recorded: `sha-256=1` to `10`, or without a number.
pub(super) fn is_wanted(request: &Parts) -> bool {
    let lines = request.headers.get_all(WANTED).iter();
    let mut members = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    members.any(|member| {
        let mut parts = member.trim().splitn(2, '=');
        parts.next() == Some(ALGORITHM) && parts.next() != Some("0")
    })
}

/// The digest of a file of an item: that which a scrub recorded, if the file has not been written since; for a short
/// file otherwise that of what is sent now.
pub(super) fn known(site: &Site, item: &Item, found: &Published, path: &[u8]) -> Option<Digest> {
    recorded(site, item, found, path).or_else(|| {
        if found.length() > CHUNK {
            return None;
        }
        piece_of(found, 0).ok()
    })
}

/// The digest of a piece of a file. An error if the file has changed since it was opened.
fn piece_of(found: &Published, number: u64) -> std::io::Result<Digest> {
    use std::os::unix::fs::FileExt;
    let start = number * CHUNK;
    let end = found.length().min(start + CHUNK);
    let (mut digest, mut buffer, mut at) = (Sha256::new(), vec![0; PIECE], start);
    while at < end {
        let length = usize::try_from(end - at).map_or(PIECE, |left| left.min(PIECE));
        let buffer = &mut buffer[..length];
        found.file.read_exact_at(buffer, at)?;
        digest.update(&*buffer);
        at += length as u64;
    }
    if !found.is_unchanged()? {
        return Err(std::io::Error::other("the file is being written"));
    }
    Ok(Digest(digest.finalize().into()))
}

/// The pieces of a file whose digests a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PiecesWanted {
    first: u64,
    last: u64,
    /// The digest of the file: those are wanted that were recorded with it, and none are computed.
    of: Option<Digest>,
}

/// The pieces of a file whose digests a request asks for.
pub(super) fn pieces_wanted(request: &Parts) -> Option<PiecesWanted> {
    let query = request.uri.query()?.strip_prefix(PIECES)?;
    let (range, of) = match query.split_once(OF) {
        Some((range, of)) => (range, Some(Digest::parse(of.as_bytes())?)),
        None => (query, None),
    };
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    Some(PiecesWanted { first, last, of })
}

impl PiecesWanted {
    /// The first, and how many of a file that has so many.
    fn of_count(self, count: u64) -> Option<(u64, u64)> {
        if self.first > self.last || self.first >= count {
            return None;
        }
        let wanted = (self.last - self.first).min(MOST_PIECES - 1) + 1;
        Some((self.first, wanted.min(count - self.first)))
    }
}

/// Answers a request for the digests of pieces that a scrub has recorded. None if it does not ask for them.
pub(super) fn recorded_pieces(
    site: &Site,
    item: &Item,
    found: &Published,
    request: &Parts,
) -> Option<Response<Body>> {
    let wanted = pieces_wanted(request)?;
    let of = wanted.of?;
    let version = version_of(found, site.clock.seconds());
    let range = match fitting(found, &version, &request.headers, wanted) {
        Ok(range) => range,
        Err(refusal) => return Some(*refusal),
    };
    let (tree, place) = (site.archive.tree(), Place::of(&item.names));
    let content = (&of, found.length());
    let digests = scrub::recorded_pieces(tree, place.as_str(), content, range.0, range.1);
    Some(match digests {
        Some(digests) => digest_lines(&digests, &version),
        None => not_recorded(),
    })
}

fn not_recorded() -> Response<Body> {
    let sentence = "no scrub has recorded digests of pieces of this content";
    answer::refusal(StatusCode::NOT_FOUND, sentence)
}

/// The first of the wanted pieces that the file has, and how many; or what is wrong with the request.
fn fitting(
    found: &Published,
    version: &FileVersion,
    headers: &HeaderMap,
    wanted: PiecesWanted,
) -> Result<(u64, u64), Refusal> {
    if evaluate(headers, version) != ConditionResult::Send {
        let sentence = "the file has changed: the request requires another version";
        return Err(refuse(StatusCode::PRECONDITION_FAILED, sentence));
    }
    let count = found.length().div_ceil(CHUNK);
    wanted.of_count(count).ok_or_else(|| {
        let sentence = format!("the file has {count} pieces of 4 MiB");
        refuse(StatusCode::RANGE_NOT_SATISFIABLE, &sentence)
    })
}

fn digest_lines(digests: &[Digest], version: &FileVersion) -> Response<Body> {
    let text: String = digests.iter().map(|digest| format!("{digest}\n")).collect();
    let mut response = answer::whole(StatusCode::OK, "text/plain", text);
    let lines = response.headers_mut();
    lines.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&version.tag) {
        lines.insert(header::ETAG, tag);
    }
    response
}

/// Answers with the SHA-256 digests of pieces of a file of 4 MiB each, the last one shorter: a line for each, in
/// hexadecimal digits. At most 16 are told; fewer where the file ends.
pub(super) async fn pieces(
    site: &Arc<Site>,
    found: Published,
    wanted: PiecesWanted,
    headers: &HeaderMap,
) -> Response<Body> {
    // Those of a file of an item have been answered. A digest computed here is not the one that was recorded.
    if wanted.of.is_some() {
        return not_recorded();
    }
    let version = version_of(&found, site.clock.seconds());
    let (first, count) = match fitting(&found, &version, headers, wanted) {
        Ok(range) => range,
        Err(refusal) => return *refusal,
    };
    let Ok(turn) = Arc::clone(&site.digests).try_acquire_owned() else {
        let sentence = "too many digests are being computed; ask again in a while";
        return answer::busy(sentence, ASK_AGAIN);
    };
    let digests = answer::aside(move || {
        let _turn = turn;
        let pieces = (first..first + count).map(|number| piece_of(&found, number));
        pieces.collect::<std::io::Result<Vec<Digest>>>()
    });
    match digests.await {
        Ok(Ok(digests)) => digest_lines(&digests, &version),
        Ok(Err(error)) => {
            log::debug!("no digests of a file: {error}");
            let sentence = "the file cannot be read at the moment; try again later";
            answer::busy(sentence, ASK_AGAIN)
        }
        Err(refusal) => refusal,
    }
}

/// The digest that a scrub recorded of a file of an item that has not been written since.
fn recorded(site: &Site, item: &Item, found: &Published, path: &[u8]) -> Option<Digest> {
    let changed = found.changed();
    let nanoseconds = changed.as_nanoseconds().rem_euclid(1_000_000_000);
    let nanoseconds = u32::try_from(nanoseconds).ok()?;
    let written = Written {
        size: found.length(),
        seconds: changed.seconds(),
        nanoseconds,
    };
    let path = found.led_to().unwrap_or(path);
    let place = Place::of(&item.names);
    let digest = scrub::recorded_digest(site.archive.tree(), place.as_str(), path, &written);
    digest.unwrap_or_else(|error| {
        log::debug!("{}: {error}", item.names);
        None
    })
}

/// The value of the header.
pub(super) fn value(digest: &Digest) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("{ALGORITHM}=:{}:", STANDARD.encode(digest.0))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    #[test]
    fn a_digest_is_asked_for() {
        for (text, expected) in [
            ("sha-256", true),
            ("sha-256=5", true),
            ("sha-512=3, sha-256=10", true),
            ("sha-256=0", false),
            ("sha-512=3", false),
        ] {
            let request = Request::builder().header(WANTED, text).body(());
            let parts = request.expect("a request").into_parts().0;
            assert_eq!(is_wanted(&parts), expected, "{text}");
        }
    }

    #[test]
    fn pieces_are_asked_for_by_their_numbers() {
        let of_recorded = format!("digests=2-9&of={}", "ab".repeat(32));
        for (query, expected) in [
            ("digests=0-3", Some((0, 3, false))),
            (
                "digests=18446744073709551615-18446744073709551615",
                Some((u64::MAX, u64::MAX, false)),
            ),
            (&*of_recorded, Some((2, 9, true))),
            ("digests=2-9&of=ab", None),
            ("digests=1", None),
            ("digests=a-b", None),
            ("digests=-1-2", None),
            ("page", None),
        ] {
            let request = Request::builder().uri(format!("/col/x?{query}")).body(());
            let parts = request.expect("a request").into_parts().0;
            let found = pieces_wanted(&parts);
            let found = found.map(|wanted| (wanted.first, wanted.last, wanted.of.is_some()));
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn the_value_is_that_of_the_standard() {
        // The digest of `{"hello": "world"}`.
        let digest =
            Digest::parse(b"5f8f04f6a3a892aaabbddb6cf273894493773960d4a325b105fee46eef4304f1");
        let value = value(&digest.expect("a digest"));
        assert_eq!(
            value.expect("a value"),
            "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
        );
    }
}
