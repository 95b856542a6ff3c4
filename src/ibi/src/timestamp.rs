//! The date of an identifier: whole Unix seconds and a decimal fraction, never floating point
//!, with the spellings it has in a rep, in an IBIp and in RFC 3339.
//!
//! It always lies in the years 0 to 262142, what the calendar library can hold and a rep can spell.
//! This module does not read the clock.

use chrono::{DateTime, Datelike, NaiveDate, Timelike, Utc};

use super::base27;
use super::error::{Cause, ParseError, Source};
use super::part::Part;

/// 1995-08-01T00:00:00Z, where the seconds of an IBIp begin.
pub(super) const IBIP_EPOCH: i64 = 807_235_200;

const FIRST: i64 = -62_167_219_200; // 0000-01-01T00:00:00Z
const LAST: i64 = 8_210_266_876_799; // 262142-12-31T23:59:59Z
const LAST_YEAR: i32 = 262_142;
const NANOSECONDS: i128 = 1_000_000_000;

/// The longest fraction of a second that is read, in digits.
pub(super) const FRACTION_DIGITS: usize = 18;

/// A date in UTC: whole Unix seconds and up to 18 digits of a second, ordered by time.
///
/// ```
/// use ibi::Timestamp;
///
/// let date = Timestamp::from_unix(1_234_806_360, 50_000_000);
/// assert_eq!(date.to_rfc3339(), "2009-02-16T17:46:00.05Z");
/// assert_eq!(date.rep_suffix(), "2009/02.16.17.46.00.05");
/// assert_eq!(date.ibip_suffix()?, "34PGRBSW27");
/// # Ok::<(), ibi::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    fraction: String, // no trailing zeros, so texts compare as the numbers do
}

/// The parts of a date as written, before anything about them is known.
pub(super) struct DateFields<'a> {
    pub(super) year: &'a str,
    pub(super) month: &'a str,
    pub(super) day: &'a str,
    pub(super) hour: &'a str,
    pub(super) minute: &'a str,
    pub(super) second: Option<&'a str>,
    pub(super) fraction: Option<&'a str>,
}

impl Timestamp {
    /// Makes the date of a clock reading: Unix seconds, and nanoseconds after them (a thousand
    /// million or more carry over). Years before 0 or after 262142 give the nearest date we hold.
    #[must_use]
    pub fn from_unix(seconds: i64, nanoseconds: u32) -> Timestamp {
        let total = i128::from(seconds) * NANOSECONDS + i128::from(nanoseconds);
        Timestamp::from_nanoseconds(total).unwrap_or(Timestamp {
            seconds: seconds.clamp(FIRST, LAST),
            fraction: String::new(),
        })
    }

    /// Makes a date of nanoseconds since 1970; `None` outside the years 0 to 262142.
    #[must_use]
    pub fn from_nanoseconds(nanoseconds: i128) -> Option<Timestamp> {
        let seconds = i64::try_from(nanoseconds.div_euclid(NANOSECONDS)).ok()?;
        let digits = format!("{:09}", nanoseconds.rem_euclid(NANOSECONDS));
        Timestamp::new(seconds, &digits)
    }

    /// Keeps the two promises of the type: years in range, no trailing zeros.
    pub(super) fn new(seconds: i64, digits: &str) -> Option<Timestamp> {
        let fraction = digits.trim_end_matches('0').to_owned();
        (FIRST..=LAST)
            .contains(&seconds)
            .then_some(Timestamp { seconds, fraction })
    }

    /// 1995-08-01T00:00:00Z: no IBIp carries an earlier date.
    #[must_use]
    pub fn first_of_ibip() -> Timestamp {
        Timestamp::from_unix(IBIP_EPOCH, 0)
    }

    /// The whole seconds since 1970-01-01T00:00:00Z, rounded down.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        self.seconds
    }

    /// The digits after the decimal point of the second, without trailing zeros; empty for none.
    #[must_use]
    pub fn fraction(&self) -> &str {
        &self.fraction
    }

    /// The nanoseconds since 1970; digits of the fraction beyond the ninth are cut off.
    #[must_use]
    pub fn as_nanoseconds(&self) -> i128 {
        let nanoseconds = self
            .fraction
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0i128, |sum, byte| {
                sum * 10 + i128::from(byte.wrapping_sub(b'0'))
            });
        i128::from(self.seconds) * NANOSECONDS + nanoseconds
    }

    /// Writes the date as RFC 3339 does, `2009-02-16T17:46:00Z`, the fraction only where there is one.
    #[must_use]
    pub fn to_rfc3339(&self) -> String {
        let date = self.calendar();
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            date.year(),
            date.month(),
            date.day(),
            date.hour(),
            date.minute(),
            date.second()
        );
        if !self.fraction.is_empty() {
            text.push('.');
            text.push_str(&self.fraction);
        }
        text.push('Z');
        text
    }

    /// Reads a date as RFC 3339 writes it, in UTC and with `Z` only.
    ///
    /// # Errors
    /// Another shape, a part out of its range, a date not in the calendar, a fraction beyond 18 digits.
    pub fn parse_rfc3339(text: &str) -> Result<Timestamp, ParseError> {
        let source = Source::new(Part::Date, text);
        let shape = || source.fault(Part::Date, text, Cause::Pattern("YYYY-MM-DDThh:mm:ss[.f]Z"));
        let (date, time) = text
            .strip_suffix('Z')
            .and_then(|t| t.split_once('T'))
            .ok_or_else(shape)?;
        let date: Vec<&str> = date.split('-').collect();
        let time: Vec<&str> = time.split(':').collect();
        let ([year, month, day], [hour, minute, second]) = (&date[..], &time[..]) else {
            return Err(shape());
        };
        let (second, fraction) = match second.split_once('.') {
            Some((second, fraction)) => (second, Some(fraction)),
            None => (*second, None),
        };
        DateFields {
            year,
            month,
            day,
            hour,
            minute,
            second: Some(second),
            fraction,
        }
        .read(source)
    }

    /// Writes the date as the suffix of a rep: the second unless it is 00 with no fraction.
    #[must_use]
    pub fn rep_suffix(&self) -> String {
        let date = self.calendar();
        let mut text = format!(
            "{:04}/{:02}.{:02}.{:02}.{:02}",
            date.year(),
            date.month(),
            date.day(),
            date.hour(),
            date.minute()
        );
        if date.second() != 0 || !self.fraction.is_empty() {
            text.push_str(&format!(".{:02}", date.second()));
        }
        if !self.fraction.is_empty() {
            text.push('.');
            text.push_str(&self.fraction);
        }
        text
    }

    /// Writes the date as the suffix of an IBIp.
    ///
    /// # Errors
    /// A date before 1995-08-01, which an IBIp cannot carry.
    pub fn ibip_suffix(&self) -> Result<String, ParseError> {
        let Ok(seconds) = u64::try_from(self.seconds - IBIP_EPOCH) else {
            let date = self.to_rfc3339();
            return Err(Source::new(Part::Date, &date).fault(
                Part::Date,
                &date,
                Cause::BeforeEpoch,
            ));
        };
        let mut text = base27::encode_number(seconds);
        if !self.fraction.is_empty() {
            text.push('W');
            let rest = self.fraction.trim_start_matches('0');
            // A leading zero would vanish in the number: each is written by itself.
            text.extend(std::iter::repeat_n('2', self.fraction.len() - rest.len()));
            let digits: Vec<u8> = rest.bytes().map(|byte| byte.wrapping_sub(b'0')).collect();
            text.push_str(&base27::encode(&digits, 10));
        }
        Ok(text)
    }

    fn calendar(&self) -> DateTime<Utc> {
        // Never the default: the seconds are in the calendar's range by construction.
        DateTime::from_timestamp(self.seconds, 0).unwrap_or_default()
    }
}

impl DateFields<'_> {
    /// Checks every part, then the whole against the calendar.
    pub(super) fn read(&self, source: Source<'_>) -> Result<Timestamp, ParseError> {
        let year = check_year(source, self.year)?;
        let [month, day, hour, minute, second] = self.check_parts(source)?;
        let no_such_day = || {
            let (month, year) = (self.month.to_owned(), self.year.to_owned());
            source.fault(Part::Day, self.day, Cause::NoSuchDay { month, year })
        };
        let date = NaiveDate::from_ymd_opt(year, month, day).ok_or_else(no_such_day)?;
        let date = date
            .and_hms_opt(hour, minute, second)
            .ok_or_else(no_such_day)?;
        let seconds = date.and_utc().timestamp();
        Timestamp::new(seconds, self.fraction.unwrap_or_default()).ok_or_else(no_such_day)
    }

    /// Checks each part after the year by itself: two digits, and in its range.
    pub(super) fn check_parts(&self, source: Source<'_>) -> Result<[u32; 5], ParseError> {
        let parts = [
            two_digits(source, Part::Month, self.month, 1, 12)?,
            two_digits(source, Part::Day, self.day, 1, 31)?,
            two_digits(source, Part::Hour, self.hour, 0, 23)?,
            two_digits(source, Part::Minute, self.minute, 0, 59)?,
            self.second.map_or(Ok(0), |second| {
                two_digits(source, Part::Second, second, 0, 59)
            })?,
        ];
        if let Some(fraction) = self.fraction {
            source.check_digits(Part::Fraction, fraction)?;
            if fraction.len() > FRACTION_DIGITS {
                return Err(source.fault(Part::Fraction, fraction, Cause::FractionTooLong));
            }
        }
        Ok(parts)
    }
}

/// Reads a year: four digits or more, up to 262142.
pub(super) fn check_year(source: Source<'_>, text: &str) -> Result<i32, ParseError> {
    source.check_digits(Part::Year, text)?;
    if text.len() < 4 {
        return Err(source.fault(Part::Year, text, Cause::NotFourDigits));
    }
    match text.parse() {
        Ok(year) if year <= LAST_YEAR => Ok(year),
        _ => Err(source.fault(Part::Year, text, Cause::YearTooFar)),
    }
}

fn two_digits(
    source: Source<'_>,
    part: Part,
    text: &str,
    low: u32,
    high: u32,
) -> Result<u32, ParseError> {
    source.check_digits(part, text)?;
    if text.len() != 2 {
        return Err(source.fault(part, text, Cause::NotTwoDigits));
    }
    match text.parse() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(source.fault(part, text, Cause::Range { low, high })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn date(seconds: i64, nanoseconds: u32, rfc3339: &str, rep: &str, ibip: &str) {
        let timestamp = Timestamp::from_unix(seconds, nanoseconds);
        assert_eq!(timestamp.to_rfc3339(), rfc3339);
        assert_eq!(timestamp.rep_suffix(), rep);
        assert_eq!(timestamp.ibip_suffix().as_deref().unwrap_or("none"), ibip);
        assert_eq!(Timestamp::parse_rfc3339(rfc3339), Ok(timestamp.clone()));
        assert_eq!(
            Timestamp::from_nanoseconds(timestamp.as_nanoseconds()),
            Some(timestamp)
        );
    }

    #[track_caller]
    fn refused(text: &str, sentence: &str) {
        let error = Timestamp::parse_rfc3339(text).expect_err(text);
        assert_eq!(error.to_string(), sentence);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn spellings() {
        date(1_234_806_360, 0, "2009-02-16T17:46:00Z", "2009/02.16.17.46", "34PGRBS");
        date(IBIP_EPOCH, 0, "1995-08-01T00:00:00Z", "1995/08.01.00.00", "2");
        date(IBIP_EPOCH + 1, 0, "1995-08-01T00:00:01Z", "1995/08.01.00.00.01", "3");
        date(IBIP_EPOCH + 19_050, 0, "1995-08-01T05:17:30Z", "1995/08.01.05.17.30", "U5H");
        let half = 500_000_000;
        date(IBIP_EPOCH, half, "1995-08-01T00:00:00.5Z", "1995/08.01.00.00.00.5", "2W7");
        date(IBIP_EPOCH, half / 10, "1995-08-01T00:00:00.05Z", "1995/08.01.00.00.00.05", "2W27");
        date(IBIP_EPOCH, half / 100, "1995-08-01T00:00:00.005Z", "1995/08.01.00.00.00.005", "2W227");
        date(IBIP_EPOCH - 1, 0, "1995-07-31T23:59:59Z", "1995/07.31.23.59.59", "none");
        date(-1, half, "1969-12-31T23:59:59.5Z", "1969/12.31.23.59.59.5", "none");
        date(FIRST, 0, "0000-01-01T00:00:00Z", "0000/01.01.00.00", "none");
        date(LAST, 0, "262142-12-31T23:59:59Z", "262142/12.31.23.59.59", "343Q3BKL4U");
    }

    #[test]
    fn clock_readings_outside_the_calendar_give_its_edge() {
        assert_eq!(Timestamp::from_unix(i64::MAX, u32::MAX).seconds(), LAST);
        assert_eq!(Timestamp::from_unix(i64::MIN, 0).seconds(), FIRST);
        assert_eq!(
            Timestamp::from_unix(0, 1_500_000_000),
            Timestamp::from_unix(1, 500_000_000)
        );
        assert_eq!(Timestamp::from_nanoseconds(i128::MAX), None);
        assert_eq!(
            Timestamp::from_nanoseconds(i128::from(FIRST) * NANOSECONDS - 1),
            None
        );
    }

    #[test]
    fn order_is_that_of_time() {
        let rising = [
            "00:00:00Z",
            "00:00:00.05Z",
            "00:00:00.4Z",
            "00:00:00.45Z",
            "00:00:00.5Z",
            "00:00:01Z",
        ];
        let dates =
            rising.map(|time| Timestamp::parse_rfc3339(&format!("2009-02-16T{time}")).expect(time));
        assert!(dates.is_sorted_by(|a, b| a < b));
        assert_eq!(
            Timestamp::parse_rfc3339("2009-02-16T00:00:00.50Z").as_ref(),
            Ok(&dates[4])
        );
    }

    #[test]
    fn nanoseconds_are_cut_not_rounded() {
        let date = Timestamp::parse_rfc3339("1970-01-01T00:00:01.0000000019Z").expect("a date");
        assert_eq!(date.fraction(), "0000000019");
        assert_eq!(date.as_nanoseconds(), 1_000_000_001);
        let longest = "1970-01-01T00:00:01.123456789012345678Z";
        let date = Timestamp::parse_rfc3339(longest).expect("18 digits");
        assert_eq!(
            (date.fraction(), date.to_rfc3339().as_str()),
            ("123456789012345678", longest)
        );
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn what_is_not_a_date() {
        let shape = "is not of the shape YYYY-MM-DDThh:mm:ss[.f]Z";
        refused("", &format!("date '' {shape}"));
        refused("2009-02-16", &format!("date '2009-02-16' {shape}"));
        refused("2009-02-16T17:46:00+00:00", &format!("date '2009-02-16T17:46:00+00:00' {shape}"));
        refused("2009-02-16T17:46Z", &format!("date '2009-02-16T17:46Z' {shape}"));
        refused("209-02-16T17:46:00Z", "year '209' at byte 1 of date '209-02-16T17:46:00Z' does not have four or more digits");
        refused("262143-01-01T00:00:00Z", "year '262143' at byte 1 of date '262143-01-01T00:00:00Z' is later than 262142, the last year we can hold");
        refused("2009-13-16T17:46:00Z", "month '13' at byte 6 of date '2009-13-16T17:46:00Z' is not from 01 to 12");
        refused("2009-02-29T17:46:00Z", "day '29' at byte 9 of date '2009-02-29T17:46:00Z' does not exist in month 02 of the year 2009");
        refused("2009-02-16T17:46:60Z", "second '60' at byte 18 of date '2009-02-16T17:46:60Z' is not from 00 to 59");
        refused("2009-02-16T17:46:00.Z", "empty fraction at byte 21 of date '2009-02-16T17:46:00.Z'");
        refused("2009-02-16T17:46:00.1234567890123456789Z", "fraction '1234567890123456789' at byte 21 of date '2009-02-16T17:46:00.1234567890123456789Z' has more than 18 digits");
        let error = Timestamp::from_unix(0, 0)
            .ibip_suffix()
            .expect_err("before the epoch");
        assert_eq!(
            error.to_string(),
            "date '1970-01-01T00:00:00Z' is before 1995-08-01T00:00:00Z, the first date that an IBIp can carry"
        );
    }
}
