//! Headers with a client's preferences: ranges with a quality (RFC 9110, section 12.4.2).

use axum::http::HeaderMap;
use axum::http::header::HeaderName;

/// The quality of a range without the parameter `q`.
pub(super) const BEST: u16 = 1000;

/// The ranges in all lines of a header, each with its raw parameters.
pub fn ranges<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let lines = headers.get_all(name).iter();
    let texts = lines.filter_map(|line| line.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

/// The quality that a parameter gives. None for another parameter.
pub(super) fn quality(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    let is_quality = name.trim().eq_ignore_ascii_case("q");
    is_quality.then(|| value.trim())
}

/// A quality from 0 to 1, in thousandths. Some clients omit the first digit, or write more than three
/// decimals.
pub(super) fn thousandths(quality: &str) -> Option<u16> {
    let (whole, fraction) = quality.split_once('.').unwrap_or((quality, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(fraction) || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    match whole {
        "" | "0" => format!("{fraction:0<3}").get(..3)?.parse().ok(),
        "1" if fraction.bytes().all(|byte| byte == b'0') => Some(BEST),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualities() {
        assert_eq!(quality("q=0.5"), Some("0.5"));
        assert_eq!(quality("Q = 1"), Some("1"));
        assert_eq!(quality("charset=utf-8"), None);
        assert_eq!(quality("q"), None);
        for (text, expected) in [
            ("1", Some(1000)),
            ("1.000", Some(1000)),
            ("0", Some(0)),
            ("0.", Some(0)),
            ("0.8", Some(800)),
            (".2", Some(200)),
            ("0.001", Some(1)),
            ("0.33333333", Some(333)),
            ("", None),
            (".", None),
            ("1.001", None),
            ("2", None),
            ("-0.5", None),
            ("0.5e1", None),
            ("much", None),
        ] {
            assert_eq!(thousandths(text), expected, "{text}");
        }
    }
}
