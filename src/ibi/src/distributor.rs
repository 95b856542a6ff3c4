//! The temporal distributor: given the instant
//! of a request and the last date handed out, the next date, never the same one twice.
//!
//! All arithmetic is on whole nanoseconds. This is the rule only: it neither
//! reads the clock, nor waits, nor saves. The caller makes the date durable before it is shown, and
//! waits until the clock reaches the creation.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::message::{Localize, Message};
use crate::{Quoted, Timestamp, display_message, message};

const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;

/// The finest step between two dates: 60 s, or 1 s divided by a power of ten up to 10^9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Granularity {
    nanoseconds: i128,
}

impl Granularity {
    /// One minute.
    pub const MINUTE: Granularity = Granularity {
        nanoseconds: MINUTE,
    };
    /// One second.
    pub const SECOND: Granularity = Granularity {
        nanoseconds: SECOND,
    };

    /// Reads `60`, `1`, and parts of a second as `1/10` or `0.1` down to `1/1000000000`.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(text: &str) -> Result<Granularity, GranularityError> {
        if text == "60" {
            return Ok(Granularity::MINUTE);
        }
        let spells = |power: usize, divisor: i128| {
            let decimal = format!("0.{:0power$}", 1);
            text == format!("1/{divisor}") || text == if power == 0 { "1" } else { &decimal }
        };
        divisors()
            .enumerate()
            .find(|(power, divisor)| spells(*power, *divisor))
            .map(|(_, divisor)| Granularity {
                nanoseconds: SECOND / divisor,
            })
            .ok_or_else(|| GranularityError {
                text: text.to_owned(),
            })
    }

    /// The step between two dates.
    #[must_use]
    pub fn step(self) -> Duration {
        duration(self.nanoseconds)
    }

    /// This granularity and all coarser ones, the coarsest first.
    fn coarser(self) -> impl Iterator<Item = i128> {
        let parts = (0..=9).map(|power| SECOND / 10i128.pow(power));
        std::iter::once(MINUTE)
            .chain(parts)
            .filter(move |step| *step >= self.nanoseconds)
    }
}

/// 1, 10, 100 and so on to 10^9: what a second is divided by.
fn divisors() -> impl Iterator<Item = i128> {
    (0..=9).map(|power| 10i128.pow(power))
}

impl Default for Granularity {
    /// One thousandth of a second: fine enough to mint at once, and labels are shortened anyway.
    fn default() -> Granularity {
        Granularity {
            nanoseconds: SECOND / 1000,
        }
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanoseconds >= SECOND {
            write!(f, "{}", self.nanoseconds / SECOND)
        } else {
            write!(f, "1/{}", SECOND / self.nanoseconds)
        }
    }
}

impl FromStr for Granularity {
    type Err = GranularityError;

    fn from_str(text: &str) -> Result<Granularity, GranularityError> {
        Granularity::parse(text)
    }
}

/// A text is not one of the granularities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GranularityError {
    text: String,
}

impl Localize for GranularityError {
    fn message(&self) -> Message {
        message!(
            "granularity {text} is not one of 60, 1, 1/10, 1/100 and so on to 1/1000000000",
            text = Quoted(&self.text)
        )
    }
}

display_message!(GranularityError);

impl Error for GranularityError {}

/// Hands out suffix dates so that no two requests get the same.
///
/// ```
/// use std::time::Duration;
///
/// use ibi::Timestamp;
/// use ibi::distributor::{Granularity, TemporalDistributor};
///
/// let mut distributor = TemporalDistributor::new(Granularity::SECOND, None);
/// let limit = Duration::from_secs(10);
/// let now = Timestamp::from_unix(1_287_588_115, 346_200_000);
/// // Dates are shortened to the coarsest that is later than the last one.
/// let first = distributor.reserve(&now, limit)?;
/// let second = distributor.reserve(&now, limit)?;
/// assert_eq!(first.date.rep_suffix(), "2010/10.20.15.21.55");
/// assert_eq!(second.date.rep_suffix(), "2010/10.20.15.21.56");
/// assert_eq!(second.wait, Duration::from_nanos(653_800_000));
/// # Ok::<(), ibi::distributor::WaitTooLong>(())
/// ```
#[derive(Clone, Debug)]
pub struct TemporalDistributor {
    granularity: Granularity,
    last: Option<Timestamp>,
}

/// A date handed out, and when it may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The date of the suffix.
    pub date: Timestamp,
    /// The instant that the clock must have reached before the date is given to the asker.
    pub creation: Timestamp,
    /// From the instant of the request to the creation; zero when there is nothing to wait for.
    pub wait: Duration,
}

impl TemporalDistributor {
    /// Carries on after the last date handed out; `None` for an Archive that never handed one out.
    #[must_use]
    pub fn new(granularity: Granularity, last: Option<Timestamp>) -> TemporalDistributor {
        TemporalDistributor { granularity, last }
    }

    /// The last date handed out, which must be kept for ever.
    #[must_use]
    pub fn last(&self) -> Option<&Timestamp> {
        self.last.as_ref()
    }

    /// The granularity in use.
    #[must_use]
    pub fn granularity(&self) -> Granularity {
        self.granularity
    }

    /// Hands out no date up to this instant, as if it had been handed out itself.
    pub fn pass_over(&mut self, until: &Timestamp) {
        if self.last.as_ref().is_none_or(|last| last < until) {
            self.last = Some(until.clone());
        }
    }

    /// Hands out the date for a request made at `now`, none before the first
    /// that an IBIp can carry.
    ///
    /// # Errors
    /// A wait longer than `limit`; then nothing is handed out and nothing changes.
    pub fn reserve(
        &mut self,
        now: &Timestamp,
        limit: Duration,
    ) -> Result<Reservation, WaitTooLong> {
        let step = self.granularity.nanoseconds;
        let instant = now.as_nanoseconds();
        let rounded = floor(instant, step);
        let last = match &self.last {
            Some(last) => floor(last.as_nanoseconds(), step),
            None => rounded - step,
        };
        let first = Timestamp::first_of_ibip().as_nanoseconds();
        let creation = rounded.max(last + step).max(first);
        let wait = duration(creation - instant);
        let too_long = WaitTooLong {
            next: Timestamp::from_nanoseconds(creation),
            wait,
            limit,
        };
        if wait > limit {
            return Err(too_long);
        }
        // Creation itself is later than `last`, so the finest step always fits.
        let mut shortened = self
            .granularity
            .coarser()
            .map(|coarse| floor(creation, coarse));
        let date = shortened.find(|date| *date > last).unwrap_or(creation);
        // Past the last year of the calendar no date is left; waiting will not bring one.
        let (Some(date), Some(creation)) = (
            Timestamp::from_nanoseconds(date),
            Timestamp::from_nanoseconds(creation),
        ) else {
            return Err(too_long);
        };
        self.last = Some(date.clone());
        Ok(Reservation {
            date,
            creation,
            wait,
        })
    }
}

fn floor(instant: i128, step: i128) -> i128 {
    instant - instant.rem_euclid(step)
}

/// Nothing for what is past.
fn duration(nanoseconds: i128) -> Duration {
    let seconds = u64::try_from(nanoseconds.div_euclid(SECOND)).unwrap_or_default();
    let rest = u32::try_from(nanoseconds.rem_euclid(SECOND)).unwrap_or_default();
    if nanoseconds <= 0 {
        Duration::ZERO
    } else {
        Duration::new(seconds, rest)
    }
}

/// A request would have to wait longer than it may: a clock set back, or a long queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitTooLong {
    /// The date that is waited for; `None` past the last year of the calendar.
    pub next: Option<Timestamp>,
    /// The length of the wait.
    pub wait: Duration,
    /// The longest wait that is allowed.
    pub limit: Duration,
}

impl Localize for WaitTooLong {
    fn message(&self) -> Message {
        let next = self.next.as_ref().map(Timestamp::to_rfc3339);
        message!(
            "the next free date, {next}, is {wait} s away and the limit is {limit} s: the clock was set back or \
             the queue is long",
            next = next.map_or_else(|| message!("past the last year"), Message::verbatim),
            wait = format!("{:.1}", self.wait.as_secs_f64()),
            limit = self.limit.as_secs_f64().to_string()
        )
    }
}

display_message!(WaitTooLong);

impl Error for WaitTooLong {}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn at(seconds: i64, nanoseconds: u32) -> Timestamp {
        Timestamp::from_unix(seconds, nanoseconds)
    }

    fn distributor(granularity: &str, last: Option<Timestamp>) -> TemporalDistributor {
        TemporalDistributor::new(Granularity::parse(granularity).expect(granularity), last)
    }

    #[track_caller]
    fn handed(distributor: &mut TemporalDistributor, now: Timestamp, rep_suffix: &str, wait: u64) {
        let reservation = distributor.reserve(&now, LIMIT).expect("a short wait");
        assert_eq!(reservation.date.rep_suffix(), rep_suffix);
        assert_eq!(reservation.wait, Duration::from_nanos(wait));
        assert!(reservation.date <= reservation.creation);
        assert_eq!(distributor.last(), Some(&reservation.date));
        let reached = now
            .as_nanoseconds()
            .max(reservation.creation.as_nanoseconds());
        assert_eq!(now.as_nanoseconds() + i128::from(wait), reached);
    }

    #[track_caller]
    fn refused(distributor: &mut TemporalDistributor, now: Timestamp, sentence: &str) {
        let before = distributor.last().cloned();
        let error = distributor.reserve(&now, LIMIT).expect_err("a long wait");
        assert_eq!(error.to_string(), sentence);
        assert_eq!(distributor.last().cloned(), before);
    }

    #[track_caller]
    fn granularity(text: &str, printed: &str) {
        let granularity = Granularity::parse(text).expect(text);
        assert_eq!(granularity.to_string(), printed);
        assert_eq!(Granularity::parse(printed), Ok(granularity));
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn the_worked_example_of_the_document() {
        let mut seconds = distributor("1", None);
        let mut seen = Vec::new();
        let mut row = |now: Timestamp, date: i64, rep_suffix: &str, wait: u64| {
            handed(&mut seconds, now, rep_suffix, wait);
            assert_eq!(seconds.last().map(Timestamp::seconds), Some(date));
            assert!(!seen.contains(&date));
            seen.push(date);
        };
        row(at(1_287_587_646, 394_023_000), 1_287_587_646, "2010/10.20.15.14.06", 0);
        row(at(1_287_588_012, 293_000_000), 1_287_588_000, "2010/10.20.15.20", 0);
        row(at(1_287_588_115, 186_234_000), 1_287_588_060, "2010/10.20.15.21", 0);
        row(at(1_287_588_115, 346_200_000), 1_287_588_115, "2010/10.20.15.21.55", 0);
        row(at(1_287_588_115, 996_230_000), 1_287_588_116, "2010/10.20.15.21.56", 3_770_000);
        row(at(1_287_588_116, 720_000_000), 1_287_588_117, "2010/10.20.15.21.57", 280_000_000);
        row(at(1_287_588_539, 788_342_000), 1_287_588_480, "2010/10.20.15.28", 0);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn thousandths() {
        let mut thousandths = distributor("1/1000", None);
        let now = at(1_287_588_115, 186_234_000);
        handed(&mut thousandths, now.clone(), "2010/10.20.15.21.55.186", 0);
        handed(&mut thousandths, now.clone(), "2010/10.20.15.21.55.187", 766_000);
        handed(&mut thousandths, at(1_287_588_115, 199_000_000), "2010/10.20.15.21.55.19", 0);
        handed(&mut thousandths, at(1_287_588_115, 299_000_000), "2010/10.20.15.21.55.2", 0);
        handed(&mut thousandths, at(1_287_588_117, 0), "2010/10.20.15.21.57", 0);
        handed(&mut thousandths, at(1_287_588_175, 0), "2010/10.20.15.22", 0);
    }

    #[test]
    fn minutes() {
        let mut minutes = distributor("60", None);
        handed(&mut minutes, at(1_287_588_115, 0), "2010/10.20.15.21", 0);
        handed(
            &mut minutes,
            at(1_287_588_115, 0),
            "2010/10.20.15.22",
            5_000_000_000,
        );
    }

    /// The instant itself may have been handed out: the next date is later, however it is shortened.
    #[test]
    fn what_is_passed_over_is_not_handed_out() {
        for granularity in ["60", "1", "1/10", "1/1000", "1/1000000000"] {
            for until in [at(1_287_588_060, 0), at(1_287_588_115, 186_234_001)] {
                let mut dates = distributor(granularity, Some(at(1_287_580_000, 0)));
                dates.pass_over(&until);
                let reservation = dates.reserve(&until, Duration::MAX).expect("a date");
                assert!(reservation.date > until, "{granularity}: {reservation:?}");
                let mut later = distributor(granularity, Some(at(1_287_600_000, 0)));
                later.pass_over(&until);
                assert_eq!(later.last(), Some(&at(1_287_600_000, 0)));
            }
        }
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn a_change_of_granularity_repeats_no_date() {
        let last = at(1_287_588_115, 500_000_000);
        let mut seconds = distributor("1", Some(last));
        handed(&mut seconds, at(1_287_588_115, 600_000_000), "2010/10.20.15.21.56", 400_000_000);
        let mut minutes = distributor("60", seconds.last().cloned());
        handed(&mut minutes, at(1_287_588_119, 0), "2010/10.20.15.22", 1_000_000_000);
        let mut tenths = distributor("0.1", minutes.last().cloned());
        handed(&mut tenths, at(1_287_588_119, 950_000_000), "2010/10.20.15.22.00.1", 150_000_000);
        let finer_than_held =
            Timestamp::parse_rfc3339("2010-10-20T15:30:00.0000000019Z").expect("a date");
        let mut finest = distributor("1/1000000000", Some(finer_than_held.clone()));
        handed(&mut finest, finer_than_held, "2010/10.20.15.30.00.000000002", 1);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn a_clock_set_back_is_waited_for_or_refused() {
        let mut seconds = distributor("1", Some(at(1_287_588_115, 0)));
        handed(&mut seconds, at(1_287_588_106, 0), "2010/10.20.15.21.56", 10_000_000_000);
        refused(&mut seconds, at(1_287_588_106, 500_000_000), "the next free date, 2010-10-20T15:21:57Z, is 10.5 s away and the limit is 10 s: the clock was set back or the queue is long");
        handed(&mut seconds, at(1_287_588_107, 0), "2010/10.20.15.21.57", 10_000_000_000);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn no_date_is_before_the_first_of_ibip() {
        let first = Timestamp::first_of_ibip().seconds();
        let mut seconds = distributor("1", None);
        refused(&mut seconds, at(first - 3600, 0), "the next free date, 1995-08-01T00:00:00Z, is 3600.0 s away and the limit is 10 s: the clock was set back or the queue is long");
        handed(&mut seconds, at(first - 3, 0), "1995/08.01.00.00", 3_000_000_000);
        handed(&mut seconds, at(first, 0), "1995/08.01.00.00.01", 1_000_000_000);
        let mut older = distributor("1", Some(at(first - 3600, 0)));
        handed(&mut older, at(first - 3, 0), "1995/08.01.00.00", 3_000_000_000);
    }

    #[test]
    fn the_end_of_the_calendar_repeats_no_date() {
        let end = at(i64::MAX, 0);
        let mut seconds = distributor("1", Some(end.clone()));
        assert!(seconds.reserve(&end, Duration::MAX).is_err());
        assert_eq!(seconds.last(), Some(&end));
    }

    #[test]
    fn no_two_requests_get_the_same_date() {
        let mut state = 7u64;
        let mut last: Option<Timestamp> = None;
        let mut clock: i128 = 1_287_587_646 * SECOND;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let random = i128::from(state >> 33);
            clock += random * random % (3 * SECOND) - SECOND / 2;
            let granularity = ["60", "1", "1/10", "1/1000", "1/1000000000"][(random % 5) as usize];
            let mut distributor = distributor(granularity, last.clone());
            let now = Timestamp::from_nanoseconds(clock).expect("this century");
            if let Ok(reservation) = distributor.reserve(&now, LIMIT) {
                assert!(last.is_none_or(|last| reservation.date > last));
                last = Some(reservation.date);
            }
        }
    }

    #[test]
    fn steps() {
        for (text, nanoseconds) in [
            ("60", 60_000_000_000),
            ("1", 1_000_000_000),
            ("1/10", 100_000_000),
            ("1/1000000000", 1),
        ] {
            let distributor = distributor(text, None);
            let step = distributor.granularity().step();
            assert_eq!(step, Duration::from_nanos(nanoseconds), "{text}");
        }
    }

    #[test]
    fn granularities() {
        granularity("60", "60");
        granularity("1", "1");
        granularity("1/1", "1");
        granularity("0.1", "1/10");
        granularity("1/10", "1/10");
        granularity("0.001", "1/1000");
        granularity("1/1000", "1/1000");
        granularity("0.000000001", "1/1000000000");
        for text in [
            "", "0", "2", "10", "61", "1/", "1/2", "1/20", "0.", "0.2", "0.11", "0.0.1", "-1",
            "1.0",
        ] {
            let error = Granularity::parse(text).expect_err(text);
            let expected = format!(
                "granularity '{text}' is not one of 60, 1, 1/10, 1/100 and so on to 1/1000000000"
            );
            assert_eq!(error.to_string(), expected);
        }
        assert!(Granularity::parse("1/10000000000").is_err());
    }
}
