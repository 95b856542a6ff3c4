//! The digest of a file, for a reader that asks for it (RFC 9530).

use axum::http::header::{HeaderName, HeaderValue};
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::archive::scrub;
use crate::archive::store::Item;
use crate::archive::tree::{Place, Published};
use crate::formats::fixity::{Digest, Written};
use crate::web::server::archive::Site;

/// The header with the digest of the whole file, also where a part of it is sent.
pub(super) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The header that asks for it.
const WANTED: &str = "want-repr-digest";
/// The algorithm of the digests that a scrub records.
const ALGORITHM: &str = "sha-256";

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

/// The digest that a scrub recorded of a file of an item that has not been written since.
pub(super) fn recorded(site: &Site, item: &Item, found: &Published, path: &[u8]) -> Option<Digest> {
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
    fn the_value_is_that_of_the_standard() {
        // That of `{"hello": "world"}`.
        let digest =
            Digest::parse(b"5f8f04f6a3a892aaabbddb6cf273894493773960d4a325b105fee46eef4304f1");
        let value = value(&digest.expect("a digest"));
        assert_eq!(
            value.expect("a value"),
            "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
        );
    }
}
