//! Dates of the protocol: days and seconds, in UTC.

use ibi::Timestamp;

const SECONDS_OF_A_DAY: i64 = 24 * 60 * 60;

/// A date as given in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Date {
    /// The first second of a day.
    Day(i64),
    Second(i64),
}

impl Date {
    /// Parses `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`; None for any other text.
    pub(super) fn parse(text: &str) -> Option<Date> {
        let is_like = |pattern: &str| {
            text.len() == pattern.len()
                && text
                    .bytes()
                    .zip(pattern.bytes())
                    .all(|(byte, wanted)| match wanted {
                        b'0' => byte.is_ascii_digit(),
                        wanted => byte == wanted,
                    })
        };
        // The schema of the protocol, whose answers repeat what was asked, has no year 0.
        if text.starts_with("0000") {
            return None;
        }
        let seconds = |text: &str| Some(Timestamp::parse_rfc3339(text).ok()?.seconds());
        if is_like("0000-00-00") {
            Some(Date::Day(seconds(&format!("{text}T00:00:00Z"))?))
        } else if is_like("0000-00-00T00:00:00Z") {
            Some(Date::Second(seconds(text)?))
        } else {
            None
        }
    }

    pub(super) fn first_second(self) -> i64 {
        match self {
            Date::Day(second) | Date::Second(second) => second,
        }
    }

    pub(super) fn last_second(self) -> i64 {
        match self {
            Date::Day(second) => second + SECONDS_OF_A_DAY - 1,
            Date::Second(second) => second,
        }
    }

    pub(super) fn is_as_fine_as(self, other: Date) -> bool {
        matches!(self, Date::Day(_)) == matches!(other, Date::Day(_))
    }
}

/// A second as the protocol writes it.
pub(super) fn written(second: i64) -> String {
    Timestamp::from_unix(second, 0).to_rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(Date::parse("1970-01-02"), Some(Date::Day(86_400)));
        assert_eq!(Date::parse("1970-01-01T00:01:02Z"), Some(Date::Second(62)));
        for text in [
            "",
            "1970",
            "1970-01",
            "1970-1-2",
            "0000-01-01",
            "1970-02-30",
            "1970-13-01",
            "1970-01-01T00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.5Z",
            "1970-01-01T00:00:00+01:00",
            "1970-01-01t00:00:00z",
            "12970-01-01",
            "\u{661}970-01-0",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        let day = Date::Day(86_400);
        assert_eq!(written(day.first_second()), "1970-01-02T00:00:00Z");
        assert_eq!(written(day.last_second()), "1970-01-02T23:59:59Z");
    }
}
