//! The text of a file, for searches: whether it has one, and the words of it.
//!
//! A file is what its content says, not its name. Marks of HTML and XML are not words.

use super::metadata::decode;

/// A kind of file that has a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// UTF-8, or else Windows-1252.
    Plain,
    /// The same with marks between `<` and `>`.
    Marked,
    /// PDF.
    Pdf,
}

/// The bytes at the beginning of a file that say what it is.
pub const HEAD: usize = 4096;

impl TextKind {
    /// Returns what the beginning of a file says. None if it has no text.
    #[must_use]
    pub fn of_head(head: &[u8]) -> Option<TextKind> {
        // Some programs write before the header (ISO 32000-1, annex H.3.4.1).
        let start = head.get(..1024).unwrap_or(head);
        if start.windows(5).any(|five| five == b"%PDF-") {
            return Some(TextKind::Pdf);
        }
        // PostScript, and keys.
        let is_program = [&b"%!PS"[..], b"-----BEGIN "]
            .iter()
            .any(|known| head.starts_with(known));
        if head.is_empty() || is_program || !is_text(head) {
            return None;
        }
        let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        Some(match (first, head.first()) {
            (Some(b'<'), _) | (_, Some(b'<')) => TextKind::Marked,
            _ => TextKind::Plain,
        })
    }
}

/// Whether bytes have no control characters but those of lines, tabulators, pages and terminals.
fn is_text(bytes: &[u8]) -> bool {
    let is_control =
        |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    !bytes.iter().any(is_control)
}

/// The words of a text file whose beginning this is, of at most so many bytes. None if it has none.
#[must_use]
pub fn text_of(kind: TextKind, bytes: &[u8], longest: usize) -> Option<String> {
    if !is_text(bytes) {
        return None;
    }
    // A character may be cut at the end.
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    let mut text = decode(whole);
    if kind == TextKind::Marked {
        text = without_marks(&text);
    }
    let mut end = text.len().min(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    Some(text)
}

/// A text without what is between `<` and `>`, without programs and styles, and with the characters that have names.
fn without_marks(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('<') {
        plain.push_str(&rest[..begin]);
        plain.push(' ');
        let mark = &rest[begin..];
        let ends = |with: &str| mark.find(with).map(|at| at + with.len());
        let is = |name: &str| {
            let named = mark.get(1..=name.len());
            named.is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        let end = if mark.starts_with("<!--") {
            ends("-->")
        } else if is("script") {
            ends("</script>").or_else(|| ends("</SCRIPT>"))
        } else if is("style") {
            ends("</style>").or_else(|| ends("</STYLE>"))
        } else {
            ends(">")
        };
        rest = end.map_or("", |end| &mark[end..]);
    }
    plain.push_str(rest);
    match quick_xml::escape::unescape(&plain) {
        Ok(text) => text.into_owned(),
        Err(_) => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Option<String> {
        let kind = TextKind::of_head(bytes)?;
        let text = text_of(kind, bytes, 20)?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn files_are_what_they_contain() {
        for (bytes, expected) in [
            (&b"Rain\r\n\tfall\x0c"[..], Some("Rain fall")),
            ("São".as_bytes(), Some("São")),
            (b"S\xe3o", Some("São")),
            // A character that is cut.
            (b"Rain \xc3\xa3 \xc3", Some("Rain ã")),
            (b"<p>Rain&amp;<b>fall</b></p>", Some("Rain& fall")),
            (b"\xef\xbb\xbf<!-- x > --><r a='1'>R", Some("R")),
            (b"<SCRIPT>if (a<b)</SCRIPT>R<style>b{}", Some("R")),
            (b"<p>R&eacute;", Some("R&eacute;")),
            (b"a long text that is cut", Some("a long text that is")),
            (b"", None),
            (b"R\0", None),
            (b"\x1b[31mred", Some("\u{1b}[31mred")),
            (b"\x89PNG\r\n\x1a\n", None),
            (b"%!PS-Adobe-3.0\n", None),
        ] {
            assert_eq!(words(bytes).as_deref(), expected, "{bytes:?}");
        }
        assert_eq!(TextKind::of_head(b"\n%PDF-1.4\n\0"), Some(TextKind::Pdf));
        let late = [vec![b'a'; 5000], vec![0]].concat();
        assert_eq!(text_of(TextKind::Plain, &late, 20), None);
    }
}
