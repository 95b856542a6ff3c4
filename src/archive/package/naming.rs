//! Names of an item's files in a package: paths that BagIt and OCFL can represent and that every program
//! reads in the same way. No input or output.

use std::fmt::Write;

pub(super) use crate::formats::bag::PAYLOAD;
use crate::formats::hex::Hex;
use sha2::Digest as _;
use unicode_normalization::is_nfc;

/// The file in a package that describes it in the format mtree(5).
pub(super) const MTREE: &str = "ibifs.mtree";

/// The longest name that filesystems accept, in bytes.
const LONGEST: usize = 255;

/// The path in a package for a path in an item. Bytes that a program might read differently are written as
/// `=hh` each: `=` itself, `%` (programs differ on it), control characters, spaces at an end, other white
/// space, and non-ASCII bytes in a name that is not UTF-8 or not in composed form (NFC). A name that gets too
/// long is cut and ends in its digest instead.
pub fn payload_path(path: &[u8]) -> String {
    let mut payload = PAYLOAD.to_owned();
    for name in path.split(|byte| *byte == b'/') {
        payload.push('/');
        payload.push_str(&payload_name(name));
    }
    payload
}

fn payload_name(name: &[u8]) -> String {
    let text = std::str::from_utf8(name).ok();
    let is_composed = text.is_some_and(is_nfc);
    let mut written = String::new();
    let mut at = 0;
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let is_end = at == 0 || at + 1 == name.len();
            let stays = match letter {
                '=' | '%' => false,
                ' ' => !is_end,
                letter if letter.is_ascii() => letter.is_ascii_graphic(),
                letter => is_composed && !letter.is_control() && !letter.is_whitespace(),
            };
            let mut buffer = [0; 4];
            let bytes = letter.encode_utf8(&mut buffer).as_bytes();
            if stays {
                written.push(letter);
            } else {
                escape(&mut written, bytes);
            }
            at += bytes.len();
        }
        escape(&mut written, chunk.invalid());
        at += chunk.invalid().len();
    }
    if written.len() > LONGEST {
        shorten(&mut written, name);
    }
    written
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "={byte:02X}"); // writing to a String does not fail
    }
}

/// Leaves room for a `=` and the first 32 digits of the digest.
fn shorten(written: &mut String, name: &[u8]) {
    let mut length = LONGEST - 33;
    while !written.is_char_boundary(length) {
        length -= 1;
    }
    written.truncate(length);
    written.push('=');
    let digest = Hex(&sha2::Sha256::digest(name)).to_string();
    written.push_str(&digest[..32]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(path: &[u8], expected: &str) {
        assert_eq!(payload_path(path), format!("data/{expected}"));
    }

    #[test]
    fn names_that_every_program_reads_stay_as_they_are() {
        is(b"doc/@reference.bib", "doc/@reference.bib");
        is(
            b"doc/[a] {b} (1) #2 & \"4\".txt",
            "doc/[a] {b} (1) #2 & \"4\".txt",
        );
        is("doc/relatório.pdf".as_bytes(), "doc/relatório.pdf");
        is(b".ibi", ".ibi");
    }

    #[test]
    fn others_are_escaped_byte_by_byte() {
        is(b"relat\xf3rio.pdf", "relat=F3rio.pdf");
        is(b"\xc3\xa9\xff", "=C3=A9=FF");
        is("e\u{301}".as_bytes(), "e=CC=81");
        is(b"100%25", "100=2525");
        is(b"=3D", "=3D3D");
        is(b"new\nline\r", "new=0Aline=0D");
        is(b" a b ", "=20a b=20");
        is(
            "a\u{2028}\u{85}\u{a0}b".as_bytes(),
            "a=E2=80=A8=C2=85=C2=A0b",
        );
    }

    #[test]
    fn a_name_that_becomes_too_long_ends_in_its_digest() {
        let paths = [
            vec![0xe7; 255],
            vec![0xe7; 254],
            "é".repeat(127).into_bytes(),
        ];
        let payloads: Vec<String> = paths.iter().map(|path| payload_path(path)).collect();
        assert!(payloads[0].len() <= "data/".len() + LONGEST && payloads[0] != payloads[1]);
        assert_eq!(payloads[2], format!("data/{}", "é".repeat(127)));
    }
}
