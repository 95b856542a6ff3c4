//! Conditional and range requests: whether a file is sent, and which part of it (RFC 9110, sections 13 and
//! 14).

use std::time::SystemTime;

use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue};

/// The validators of a file.
#[derive(Debug)]
pub(crate) struct FileVersion {
    /// The strong entity tag, with its quotes.
    pub(crate) tag: String,
    /// The time of the last change, to the second. None if HTTP cannot express the date.
    pub(crate) changed: Option<SystemTime>,
    /// Whether that second was over when the file was examined, so that the date identifies the content.
    pub(crate) is_settled: bool,
}

/// The result of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionResult {
    /// The file is sent.
    Send,
    /// The client has the file already: 304.
    NotModified,
    /// A precondition failed: 412.
    Failed,
}

/// The part of a file that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilePart {
    Whole,
    /// From the first offset up to the second, exclusive.
    Range(u64, u64),
    /// The range is outside the file: 416.
    Nothing,
}

/// Evaluates the conditions in the order of RFC 9110, section 13.2.2.
pub(crate) fn evaluate(headers: &HeaderMap, version: &FileVersion) -> ConditionResult {
    if headers.contains_key(header::IF_MATCH) {
        if !names(headers, header::IF_MATCH, version, Comparison::Strong) {
            return ConditionResult::Failed;
        }
    } else if let (Some(date), Some(changed)) =
        (date(headers, header::IF_UNMODIFIED_SINCE), version.changed)
        && changed > date
    {
        return ConditionResult::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        if names(headers, header::IF_NONE_MATCH, version, Comparison::Weak) {
            return ConditionResult::NotModified;
        }
    } else if let (Some(date), Some(changed)) =
        (date(headers, header::IF_MODIFIED_SINCE), version.changed)
        && changed <= date
    {
        return ConditionResult::NotModified;
    }
    ConditionResult::Send
}

/// The requested part. Multiple or malformed ranges are ignored.
pub(crate) fn part(headers: &HeaderMap, version: &FileVersion, length: u64) -> FilePart {
    let mut lines = headers.get_all(header::RANGE).iter();
    let (Some(range), None) = (lines.next(), lines.next()) else {
        return FilePart::Whole;
    };
    if let Some(value) = headers.get(header::IF_RANGE)
        && !is_still(value, version)
    {
        return FilePart::Whole;
    }
    let asked = range.to_str().ok().and_then(|text| range_in(text, length));
    asked.unwrap_or(FilePart::Whole)
}

fn range_in(text: &str, length: u64) -> Option<FilePart> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (start, end) = match (first.trim(), last.trim()) {
        ("", count) => (length.saturating_sub(number(count)?), length),
        (first, "") => (number(first)?, length),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            (first, last.saturating_add(1).min(length))
        }
    };
    Some(if start < end {
        FilePart::Range(start, end)
    } else {
        FilePart::Nothing
    })
}

/// A decimal number. A number that is too large for u64 becomes the maximum.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The way in which entity tags are compared (RFC 9110, section 8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// A weak tag matches nothing.
    Strong,
    /// A weak tag matches as a strong one does.
    Weak,
}

/// Whether a list of entity tags matches a version.
fn names(
    headers: &HeaderMap,
    name: HeaderName,
    version: &FileVersion,
    comparison: Comparison,
) -> bool {
    let lines = headers.get_all(name).iter();
    let mut tags = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim);
    tags.any(|tag| {
        let tag = match tag.strip_prefix("W/") {
            Some(tag) if comparison == Comparison::Weak => tag,
            _ => tag,
        };
        tag == "*" || tag == version.tag
    })
}

fn is_still(value: &HeaderValue, version: &FileVersion) -> bool {
    let Ok(text) = value.to_str() else {
        return false;
    };
    let date = httpdate::parse_http_date(text).ok();
    text.trim() == version.tag || version.is_settled && date.is_some() && date == version.changed
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn version() -> FileVersion {
        FileVersion {
            tag: "\"a-1\"".to_owned(),
            changed: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)),
            is_settled: true,
        }
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        lines.iter().map(line).collect()
    }

    #[track_caller]
    fn evaluated(lines: &[(&'static str, &'static str)], expected: ConditionResult) {
        assert_eq!(evaluate(&headers(lines), &version()), expected, "{lines:?}");
    }

    #[track_caller]
    fn ranged(range: &'static str, expected: FilePart) {
        let lines = headers(&[("range", range)]);
        assert_eq!(part(&lines, &version(), 100), expected, "{range}");
    }

    #[track_caller]
    fn if_range(value: &'static str, is_settled: bool, expected: FilePart) {
        let lines = headers(&[("range", "bytes=0-9"), ("if-range", value)]);
        let version = FileVersion {
            is_settled,
            ..version()
        };
        assert_eq!(part(&lines, &version, 100), expected, "{value}");
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn conditions_are_evaluated_in_order() {
        use ConditionResult::{Failed, NotModified, Send};
        evaluated(&[], Send);
        evaluated(&[("if-none-match", "\"a-1\"")], NotModified);
        evaluated(&[("if-none-match", "\"x\", W/\"a-1\"")], NotModified);
        evaluated(&[("if-none-match", "*")], NotModified);
        evaluated(&[("if-none-match", "\"x\"")], Send);
        evaluated(&[("if-none-match", "a-1")], Send);
        // A tag has precedence over a date.
        evaluated(&[("if-none-match", "\"x\""), ("if-modified-since", AFTER)], Send);
        evaluated(&[("if-modified-since", BEFORE)], Send);
        evaluated(&[("if-modified-since", THEN)], NotModified);
        evaluated(&[("if-modified-since", AFTER)], NotModified);
        evaluated(&[("if-modified-since", "yesterday")], Send);
        evaluated(&[("if-match", "\"a-1\"")], Send);
        evaluated(&[("if-match", "*")], Send);
        evaluated(&[("if-match", "\"x\"")], Failed);
        evaluated(&[("if-match", "W/\"a-1\"")], Failed);
        evaluated(&[("if-match", "\"a-1\""), ("if-unmodified-since", BEFORE)], Send);
        evaluated(&[("if-unmodified-since", BEFORE)], Failed);
        evaluated(&[("if-unmodified-since", THEN)], Send);
        evaluated(&[("if-match", "\"a-1\""), ("if-none-match", "\"a-1\"")], NotModified);
    }

    #[test]
    fn ranges() {
        ranged("bytes=0-0", FilePart::Range(0, 1));
        ranged("bytes=10-19", FilePart::Range(10, 20));
        ranged("Bytes = 10 - 19", FilePart::Range(10, 20));
        ranged("bytes=90-", FilePart::Range(90, 100));
        ranged("bytes=90-1000", FilePart::Range(90, 100));
        ranged(
            "bytes=90-99999999999999999999999999",
            FilePart::Range(90, 100),
        );
        ranged("bytes=-10", FilePart::Range(90, 100));
        ranged("bytes=-1000", FilePart::Range(0, 100));
        ranged("bytes=100-", FilePart::Nothing);
        ranged("bytes=99999999999999999999999999-", FilePart::Nothing);
        ranged("bytes=-0", FilePart::Nothing);
        for other in [
            "bytes=0-1,5-6",
            "bytes=9-1",
            "bytes=-",
            "bytes=+1-2",
            "bytes=a-b",
            "lines=1-2",
            "bytes",
            "",
        ] {
            ranged(other, FilePart::Whole);
        }
        let twice = headers(&[("range", "bytes=0-1"), ("range", "bytes=2-3")]);
        assert_eq!(part(&twice, &version(), 100), FilePart::Whole);
        assert_eq!(
            part(&headers(&[("range", "bytes=0-")]), &version(), 0),
            FilePart::Nothing
        );
        if_range("\"a-1\"", true, FilePart::Range(0, 10));
        if_range("\"x\"", true, FilePart::Whole);
        if_range("W/\"a-1\"", true, FilePart::Whole);
        if_range(THEN, true, FilePart::Range(0, 10));
        if_range(THEN, false, FilePart::Whole);
        if_range(AFTER, true, FilePart::Whole);
    }
}
