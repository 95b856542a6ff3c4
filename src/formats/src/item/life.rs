//! What was decided about an item beside its state: until when its files are withheld, that they change no more, and that
//! it is not shown any more. These are pairs of its sidecar, so they travel with it.

use std::fmt;

use ibi::pairs::{Pairs, Value, percent_decode, percent_encode};
use ibi::{ParseError, Timestamp};

use super::error::PairCause;
use crate::fixity::Digest;

const AVAILABLE: &str = "available";
const SEALED: &str = "sealed";
const WITHDRAWN: &str = "withdrawn";
const COPY_WITHDRAWN: &str = "copywithdrawn";
const CITATION: &str = "citation";

/// The most characters of a reason and of a citation.
pub const MOST_CHARACTERS: usize = 1_000;

/// The decisions about an item; most items have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// The instant until which its files are withheld from those who may not read them anyway (`available DATE`).
    pub available: Option<Timestamp>,
    /// The seal (`sealed {DATE DIGEST}`), or the announcement of one (`sealed DATE`).
    pub sealed: Option<Seal>,
    /// The withdrawal (`withdrawn {DATE REASON}`), or that of a copy alone (`copywithdrawn {DATE REASON}`).
    pub withdrawn: Option<Withdrawal>,
    /// The citation of an item that was public, and is withdrawn or removed (`citation {TEXT}`): what of it stays public.
    pub citation: Option<String>,
}

/// From when the files of an item change no more, and which they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The instant of the seal.
    pub at: Timestamp,
    /// The SHA-256 digest of the item's manifest; None before that instant, and until it has been computed.
    pub digest: Option<Digest>,
}

impl Seal {
    /// Whether it holds at an instant. One with a digest does, whatever the clock says.
    #[must_use]
    pub fn holds_at(&self, now: &Timestamp) -> bool {
        self.digest.is_some() || self.at <= *now
    }
}

/// Since when and why an item is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The instant of the withdrawal.
    pub at: Timestamp,
    /// The reason, in the words of who withdrew it; empty if none was given.
    pub reason: String,
    /// Whether a copy was withdrawn or removed by its own Archive, and the original was not.
    pub is_of_copy: bool,
}

impl fmt::Display for Withdrawal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{} {}", self.at.to_rfc3339(), self.reason);
        f.write_str(text.trim_end())
    }
}

impl Life {
    /// The decisions of an item that another Archive has withdrawn, in its words.
    #[must_use]
    pub fn withdrawn(at: Timestamp, reason: &str, citation: Option<&str>) -> Life {
        let reason = printable(reason);
        Life {
            withdrawn: Some(Withdrawal {
                at,
                reason,
                is_of_copy: false,
            }),
            citation: citation.map(printable),
            ..Life::default()
        }
    }

    /// Parses the decisions as [`Life::text`] writes them.
    ///
    /// # Errors
    /// The text is not a list of pairs, or the value of a pair is not valid.
    pub fn parse(text: &str) -> Result<Life, PairCause> {
        let mut life = Life::default();
        let pairs = Pairs::parse(text.as_bytes());
        for (name, value) in pairs
            .map_err(|_| PairCause::NotOneWord(text.to_owned()))?
            .iter()
        {
            life.read(name, value)?;
        }
        Ok(life)
    }

    /// The decisions as pairs of a sidecar; None if there are none.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let mut pairs = Pairs::default();
        self.write(&mut pairs);
        (pairs.iter().next().is_some()).then(|| pairs.to_string())
    }

    /// Stores the value of a pair; returns whether it is a decision.
    pub(super) fn read(&mut self, name: &str, value: &Value) -> Result<bool, PairCause> {
        let words = value.words();
        let fault = || PairCause::Decision(value.to_string());
        match name {
            AVAILABLE => match words {
                [date] => self.available = Some(instant(date)?),
                _ => return Err(fault()),
            },
            SEALED => {
                let (date, digest) = match words {
                    [date] => (date, None),
                    [date, digest] => {
                        let digest = Digest::parse(digest.as_bytes()).ok_or_else(fault)?;
                        (date, Some(digest))
                    }
                    _ => return Err(fault()),
                };
                let at = Timestamp::parse_rfc3339(date)?;
                self.sealed = Some(Seal { at, digest });
            }
            WITHDRAWN | COPY_WITHDRAWN => match words {
                [date, reason @ ..] => {
                    self.withdrawn = Some(Withdrawal {
                        at: Timestamp::parse_rfc3339(date)?,
                        reason: decoded(reason),
                        is_of_copy: name == COPY_WITHDRAWN,
                    });
                }
                [] => return Err(fault()),
            },
            CITATION => self.citation = Some(decoded(words)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the decisions into the pairs of a sidecar, and removes those that are none.
    pub(super) fn write(&self, pairs: &mut Pairs) {
        let date = |at: &Timestamp| at.to_rfc3339();
        let available = self.available.as_ref().map(|at| Value::Word(date(at)));
        let sealed = self.sealed.as_ref();
        let sealed = sealed.map(|seal| match &seal.digest {
            Some(digest) => Value::List(vec![date(&seal.at), digest.to_string()]),
            None => Value::Word(date(&seal.at)),
        });
        let withdrawal = |is_of_copy: bool| {
            let withdrawn = self.withdrawn.as_ref();
            let withdrawn = withdrawn.filter(|it| it.is_of_copy == is_of_copy)?;
            let words = encoded(&withdrawn.reason);
            let words = std::iter::once(date(&withdrawn.at)).chain(words);
            Some(Value::List(words.collect()))
        };
        let citation = self.citation.as_ref();
        let citation = citation.map(|text| Value::List(encoded(text).collect()));
        for (name, value) in [
            (AVAILABLE, available),
            (SEALED, sealed),
            (WITHDRAWN, withdrawal(false)),
            (COPY_WITHDRAWN, withdrawal(true)),
            (CITATION, citation),
        ] {
            match value {
                Some(value) => pairs.set(name, value),
                None => {
                    pairs.remove(name);
                }
            }
        }
    }
}

/// The words of a text in a pair.
fn encoded(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(percent_encode)
}

/// The text of words in a pair.
fn decoded(words: &[String]) -> String {
    printable(&String::from_utf8_lossy(&percent_decode(&words.join(" "))))
}

/// A text as one line, of characters that can be printed.
fn printable(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect();
    one_line(&text).chars().take(MOST_CHARACTERS).collect()
}

/// A text in which each run of white space is one space.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An instant, or the begin of a day in UTC, `2027-01-31`.
///
/// # Errors
/// The text is neither.
pub fn instant(text: &str) -> Result<Timestamp, ParseError> {
    if text.contains('T') {
        Timestamp::parse_rfc3339(text).or_else(|error| moment(text).ok_or(error))
    } else {
        Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z"))
    }
}

/// An instant as other programs write one in ISO 8601: in another zone than UTC, without a zone, which is taken for UTC, without
/// seconds, or only a year, a month or a day, which is taken for its begin. None of anything else.
#[must_use]
pub fn moment(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00"));
    let rest = match date.len() {
        4 => "-01-01",
        7 => "-01",
        _ => "",
    };
    let (time, zone) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    let seconds = if time.len() == 5 { ":00" } else { "" };
    let local = Timestamp::parse_rfc3339(&format!("{date}{rest}T{time}{seconds}Z")).ok()?;
    if matches!(zone, "" | "Z") {
        return Some(local);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes =
        i64::from(hours.parse::<u8>().ok()?) * 60 + i64::from(minutes.parse::<u8>().ok()?);
    let ahead = if zone.starts_with('-') {
        -minutes
    } else {
        minutes
    };
    Some(Timestamp::from_unix(local.seconds() - ahead * 60, 0))
}

/// The longest period, in seconds: a hundred years.
const LONGEST_PERIOD: i64 = 36_525 * 86_400;

/// The seconds of a period, such as `30d`: a number from 1 on, and `s`, `m`, `h` or `d`.
#[must_use]
pub fn period(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = text.get(..text.len() - 1)?;
    let number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = number.then(|| digits.parse().ok())??;
    let seconds = number.checked_mul(unit)?;
    (1..=LONGEST_PERIOD).contains(&seconds).then_some(seconds)
}

/// The text of a period, as [`period`] reads it.
#[must_use]
pub fn period_text(seconds: i64) -> String {
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let fits = |(unit, _): &&(i64, char)| seconds % unit == 0;
    let (unit, letter) = units.iter().find(fits).unwrap_or(&(1, 's'));
    format!("{}{letter}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_other_programs_are_in_utc() {
        for (text, expected) in [
            ("2020-01-01T10:00:00.5Z", "2020-01-01T10:00:00.5Z"),
            ("2020-01-01T00:30:00+01:00", "2019-12-31T23:30:00Z"),
            ("2020-01-01T22:30:00.25-03:30", "2020-01-02T02:00:00Z"),
            ("2020-01-01T10:00:00", "2020-01-01T10:00:00Z"),
            ("2020-01-01T10:00Z", "2020-01-01T10:00:00Z"),
            ("2020-02-03", "2020-02-03T00:00:00Z"),
            ("2020-02", "2020-02-01T00:00:00Z"),
            ("2020", "2020-01-01T00:00:00Z"),
        ] {
            let moment = moment(text).expect(text);
            assert_eq!(moment.to_rfc3339(), expected, "{text}");
        }
        let none = [
            "",
            "T",
            "x",
            "é020",
            "2020-13",
            "2020-01-01T10:00+",
            "2020-01-01T10:00+é:0",
        ];
        for text in none
            .into_iter()
            .chain(["2020-01-01T10:00+999:00", "2020T10:00+1:-1"])
        {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    #[test]
    fn decisions_are_pairs() {
        let digest = "0123456789abcdef".repeat(4);
        let text = format!(
            "available 2027-01-31T00:00:00Z\nsealed {{2026-11-29T06:00:00Z {digest}}}\n\
             withdrawn {{2026-11-30T06:00:00Z Raz%C3%A3o: 100%25 %7Bwrong%7D}}\n\
             citation {{Silva, A. Chuva.}}\n"
        );
        let life = Life::parse(&text).expect("valid");
        assert_eq!(life.text().as_deref(), Some(text.as_str()));
        let withdrawal = life.withdrawn.as_ref().expect("withdrawn");
        assert_eq!(withdrawal.reason, "Razão: 100% {wrong}");
        assert_eq!(life.citation.as_deref(), Some("Silva, A. Chuva."));
        let hostile = format!("citation {{a%0Ab%1B[2J {}}}", "x".repeat(5_000));
        let hostile = Life::parse(&hostile).expect("a text");
        let cut = hostile.citation.unwrap_or_default();
        assert!(cut.starts_with("a b [2J xxx"), "{cut}");
        assert_eq!(cut.chars().count(), MOST_CHARACTERS);
        let of_copy = "copywithdrawn {2026-11-30T06:00:00Z moved}\n";
        let copy = Life::parse(of_copy).expect("valid");
        assert_eq!(copy.text().as_deref(), Some(of_copy));
        assert!(copy.withdrawn.is_some_and(|it| it.is_of_copy));
        assert_eq!(Life::parse(""), Ok(Life::default()));
        assert_eq!(Life::default().text(), None);
        let day = Life::parse("available 2027-01-31\n").expect("a day");
        assert_eq!(day.available, life.available);
        let announced = "sealed 2027-01-31T00:00:00Z\n";
        let life = Life::parse(announced).expect("announced");
        assert_eq!(life.text().as_deref(), Some(announced));
        let seal = life.sealed.expect("announced");
        let at = seal.at.clone();
        let before = instant("2027-01-30").expect("a day");
        assert!(seal.holds_at(&at) && !seal.holds_at(&before));
        let without = Life::parse("withdrawn 2026-11-30T06:00:00Z\n").expect("without a reason");
        assert_eq!(without.withdrawn.map(|it| it.reason).as_deref(), Some(""));
    }

    #[test]
    fn what_is_no_decision() {
        for (text, sentence) in [
            (
                "available {}",
                "value '{}' is not in the form that ibifs-tree(7) has for it",
            ),
            (
                "available soon",
                "date 'soonT00:00:00Z' is not of the shape YYYY-MM-DDThh:mm:ss[.f]Z",
            ),
            (
                "sealed {2026-11-29T06:00:00Z abc}",
                "value '{2026-11-29T06:00:00Z abc}' is not in the form that ibifs-tree(7) has for it",
            ),
        ] {
            let error = Life::parse(text).expect_err(text);
            assert_eq!(error.to_string(), sentence, "{text}");
        }
    }

    #[test]
    fn periods() {
        for (text, expected) in [
            ("1s", Some(1)),
            ("90m", Some(5_400)),
            ("2h", Some(7_200)),
            ("30d", Some(2_592_000)),
            ("36525d", Some(LONGEST_PERIOD)),
            ("36526d", None),
            ("99999999999999999999d", None),
            ("0d", None),
            ("-1d", None),
            ("+1d", None),
            ("30", None),
            ("d", None),
            ("30é", None),
            ("", None),
        ] {
            assert_eq!(period(text), expected, "{text}");
            if let Some(seconds) = expected {
                assert_eq!(period(&period_text(seconds)), expected, "{text}");
            }
        }
    }
}
