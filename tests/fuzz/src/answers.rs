//! What the process of `ibifs world` reads: questions of commands, its answers, its cache, headers of Archives.

use ibifs::outside::world::texts;

use super::{text, two_lines};

/// What is read is written as what reads back to the same.
pub fn check(data: &[u8]) {
    if let Some(written) = texts::cached(data) {
        assert_eq!(texts::cached(&written), Some(written));
    }
    let _ = texts::next(data);
    let Some(text) = text(data) else {
        return;
    };
    if let Some(written) = texts::question(text) {
        assert_eq!(texts::question(&written), Some(written));
    }
    let (line, _) = two_lines(data);
    let line = std::str::from_utf8(line).expect("text");
    if let Some(written) = texts::answer(line) {
        assert_eq!(texts::answer(&written), Some(written));
    }
    if let Some(digest) = texts::digest(line) {
        assert!(line.contains("sha-256=:"), "{digest}");
    }
}
