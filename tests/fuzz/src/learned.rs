//! What the service for audits leaves for a process that has more rights than it.

use ibifs::formats::learned::{batch_text, parse_batches};

/// What is read is written as what reads back to the same.
pub fn check(data: &[u8]) {
    let batches = parse_batches(data);
    let texts = batches.iter().map(|(from, lines)| batch_text(from, lines));
    let text: String = texts.collect();
    assert_eq!(parse_batches(text.as_bytes()), batches);
}
