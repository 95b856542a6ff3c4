//! Links as they stand in running text: what is around them, and what printing and copying make of them.

/// Signs that follow a link in running text and are none of its own: `!`, `:` and `?` may be.
pub(super) const PUNCTUATION: &[char] = &[
    '.', ',', ';', ')', ']', '}', '>', '"', '\'', '»', '”', '’', '…',
];
/// Signs in which a link is enclosed in running text, and those that end it.
const ENCLOSING: [(char, char); 9] = [
    ('<', '>'),
    ('(', ')'),
    ('[', ']'),
    ('{', '}'),
    ('"', '"'),
    ('\'', '\''),
    ('«', '»'),
    ('“', '”'),
    ('‘', '’'),
];
/// The most such signs after a link.
pub(super) const MOST_SIGNS: usize = 4;

/// A link without the blanks, brackets and quotation marks around it, and without `URL:` (RFC 3986, appendix
/// C).
pub(super) fn link_in(text: &str) -> &str {
    let mut link = text.trim_matches(is_blank);
    while let Some((open, close)) = ENCLOSING.iter().find(|(open, _)| link.starts_with(*open)) {
        link = link.strip_prefix(*open).unwrap_or(link);
        let end = link.rfind(*close).unwrap_or(link.len());
        link = link.get(..end).unwrap_or(link).trim_matches(is_blank);
    }
    match link.split_at_checked("url:".len()) {
        Some((label, rest)) if label.eq_ignore_ascii_case("url:") => rest.trim_matches(is_blank),
        _ => link,
    }
}

fn is_blank(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '\u{200b}' | '\u{feff}')
}

/// A text with the signs that keyboards have in place of those that printed pages, word processors and
/// extracted text have, and without the blanks and line ends around its slashes and behind its scheme. None
/// if nothing is to be mended.
///
/// A break behind a hyphen or a dot stays: the hyphen may be that of the page, and the dot the end of the
/// sentence. So does a soft hyphen, which may stand for a hyphen or for none.
pub(super) fn mended(text: &str) -> Option<String> {
    let plain = text.chars().map(|sign| match sign {
        '\u{ff1a}' | '\u{2236}' => ':',
        '\u{ff0f}' | '\u{2044}' | '\u{2215}' => '/',
        '\u{ff0e}' => '.',
        '\u{ff20}' => '@',
        '\u{2010}'..='\u{2013}' | '\u{2212}' | '\u{ff0d}' => '-',
        sign if is_blank(sign) => ' ',
        sign => sign,
    });
    let plain: String = plain.collect();
    let parts: Vec<&str> = plain.split('/').map(str::trim).collect();
    let mut joined = parts.join("/");
    for scheme in ["ibi:", "upn:"] {
        let start = joined.get(..scheme.len());
        if start.is_some_and(|start| start.eq_ignore_ascii_case(scheme)) {
            let rest = joined.get(scheme.len()..).unwrap_or_default();
            joined = format!("{scheme}{}", rest.trim_start());
        }
    }
    (joined != text).then_some(joined)
}
