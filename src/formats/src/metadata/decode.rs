//! Decodes records that do not declare their encoding, as BibTeX and refer never do.
//!
//! Valid UTF-8 is read as UTF-8. Everything else is read as Windows-1252, which is Latin-1 with printable
//! characters in place of the second set of control characters; every sequence of bytes is valid in it. No
//! other encoding is guessed.

use super::MetadataError;
use super::error::beginning;

/// Decodes UTF-8, with or without a byte order mark, or else Windows-1252.
pub(crate) fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(without_mark(bytes)) {
        Ok(text) => text.to_string(),
        Err(_) => windows_1252(bytes),
    }
}

/// The bytes without the byte order mark of UTF-8.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Decodes UTF-8 only.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, MetadataError> {
    std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))
}

fn not_utf8(bytes: &[u8], position: usize) -> MetadataError {
    let start = bytes[..position]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let rest = &bytes[start..];
    let end = rest
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len());
    MetadataError::NotUtf8 {
        line: line_at(bytes, position),
        text: beginning(&String::from_utf8_lossy(&rest[..end])),
    }
}

/// Decodes Windows-1252, in which each byte is a character.
pub(super) fn windows_1252(bytes: &[u8]) -> String {
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes);
    text.into_owned()
}

/// The line number, from 1, of a byte of a text.
pub(super) fn line_at(bytes: &[u8], position: usize) -> usize {
    1 + bytes
        .iter()
        .take(position)
        .filter(|&&byte| byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text() {
        let cases: [(&[u8], &str); 6] = [
            (b"", ""),
            ("São".as_bytes(), "São"),
            (b"\xef\xbb\xbfS\xc3\xa3o", "São"),
            (b"S\xe3o", "São"),
            (b"\x93S\xe3o\x94 \x80", "“São” €"),
            (b"\xff\xfe", "ÿþ"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        for (position, expected) in [(0, 1), (1, 1), (2, 2), (3, 3), (99, 3)] {
            assert_eq!(line_at(b"a\n\nb", position), expected);
        }
    }
}
