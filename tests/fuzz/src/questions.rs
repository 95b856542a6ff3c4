//! The messages between a command and the daemon of a mount: either end may be another user's program.

use ibifs::formats::question::{Address, Line};
use ibifs::outside::archive::lines;

use super::text;

/// What is read is written as what reads back to the same.
pub fn check(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    if let Some(address) = Address::parse(text) {
        assert_eq!(Address::parse(&address.to_text()), Some(address));
    }
    if let Some((key, line)) = Line::parse_question(text) {
        let written = line.to_question(key);
        assert_eq!(Line::parse_question(&written), Some((key, line)));
    }
    let Some(line) = Line::parse(text) else {
        return;
    };
    assert_eq!(Line::parse(&line.to_text()), Some(line.clone()));
    if let Some(written) = lines::record(&line) {
        assert_eq!(lines::record(&written), Some(written));
    }
    if let Some(written) = lines::event(&line) {
        assert_eq!(lines::event(&written), Some(written));
    }
}
