//! Bytes that a word of a list of pairs has no place for, written `%hh`.

use std::fmt::Write;

/// Writes what is not ASCII, space, `%`, `{`, `}` and control characters as `%hh`, byte by byte.
#[must_use]
pub fn percent_encode(text: impl AsRef<[u8]>) -> String {
    let mut encoded = String::new();
    for byte in text.as_ref() {
        if byte.is_ascii_graphic() && !matches!(byte, b'%' | b'{' | b'}') {
            encoded.push(char::from(*byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}"); // writing to a String does not fail
        }
    }
    encoded
}

/// Reads `%hh` back into bytes, in either case; a `%` without two digits stands for itself.
#[must_use]
pub fn percent_decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => match (hexadecimal(*high), hexadecimal(*low)) {
                (Some(high), Some(low)) => {
                    decoded.push(high << 4 | low);
                    rest = after;
                }
                _ => decoded.push(b'%'),
            },
            _ => decoded.push(*first),
        }
    }
    decoded
}

fn hexadecimal(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn both(text: &str, encoded: &str) {
        assert_eq!(percent_encode(text), encoded);
        assert_eq!(percent_decode(encoded), text.as_bytes());
    }

    #[test]
    fn there_and_back() {
        both("", "");
        both("CCSDS 650.0-B-1.pdf", "CCSDS%20650.0-B-1.pdf");
        both("@reference.bib", "@reference.bib");
        both("relatório.pdf", "relat%C3%B3rio.pdf");
        both("100%{a}\n\u{7f}", "100%25%7Ba%7D%0A%7F");
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(percent_decode(&percent_encode(&all)), all);
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        assert_eq!(percent_decode("%"), b"%");
        assert_eq!(percent_decode("%4"), b"%4");
        assert_eq!(percent_decode("%zz%e9%E9"), b"%zz\xe9\xe9");
        assert_eq!(percent_decode("%é"), "%é".as_bytes());
    }
}
