//! What stands after `?` in a URL: verbs, percent-encoded.

use ibi::pairs::{percent_decode, percent_encode};
use ibi::relation::Request;

use super::modifiers::both;
use super::{sentence, text};

/// Any bytes survive the encoding; a text is decoded and read as verbs.
pub fn check(data: &[u8]) {
    let encoded = percent_encode(data);
    assert!(encoded.len() <= 3 * data.len());
    assert!(
        encoded
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"{}".contains(&byte))
    );
    assert_eq!(percent_decode(&encoded), data);
    let Some(text) = text(data) else {
        return;
    };
    let decoded = percent_decode(text);
    assert!(decoded.len() <= text.len());
    assert_eq!(percent_decode(&percent_encode(&decoded)), decoded);
    for verbs in [text, &String::from_utf8_lossy(&decoded)] {
        match Request::parse_verbs(verbs) {
            Ok(request) => both(&request),
            Err(error) => sentence(&error),
        }
    }
}
