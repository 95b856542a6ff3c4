//! The legacy IBIp, in use until about 2009: `83LX3pFwXQZ5Jpy/Bkjzd`.
//!
//! Both components are numbers in base 53, where case counts. The source documents give examples and no
//! grammar; the one here was found by comparing identifiers of the living system with the reps of the
//! same items, and reads all of them:
//!
//! ```text
//! legacy  = prefix "/" b53(seconds)
//! prefix  = (host / address)
//! host    = label *("X" label) "Z" label ["Y" [b53(port)]]   ; dpi.inpe.br/lise
//! address = number "Z"                                       ; 192.168.1.100
//! ```
//!
//! The seconds count from the same instant as those of an IBIp. A prefix of another shape is kept as it
//! is written: what it means is not known.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use crate::base27::convert;
use crate::error::{Cause, ParseError, Source};
use crate::part::{Alphabet, Part};
use crate::timestamp::{IBIP_EPOCH, Timestamp};

/// The digits from 0 to 52. `W` to `Z` separate, `I`, `O` and `l` are not used.
const DIGITS: &[u8; 53] = b"23456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUV";

/// The digits, in base 37, of the labels of a host name. Where `?` stands the letter is not known: no
/// identifier that was seen has it.
const LETTERS: &[u8; 37] = b"abcoiemn?srld?pt??????????0123456789-";

/// The digits, in base 11, of an address.
const ADDRESS: &[u8; 11] = b"0123456789.";

/// The longest component, in characters; it also bounds the arithmetic.
const LONGEST: usize = 64;

/// The longest number of seconds, in digits: more than a date can have.
const LONGEST_SECONDS: usize = 10;

/// An identifier of the form `prefix/date` in base 53, where case counts.
///
/// ```
/// use ibi::LegacyIbip;
///
/// let legacy = LegacyIbip::parse("83LX3pFwXQZ5Jpy/Bkjzd")?;
/// assert_eq!(legacy.timestamp().to_rfc3339(), "2004-03-02T15:20:00Z");
/// assert_eq!(legacy.likely_rep_prefix().as_deref(), Some("dpi.inpe.br/lise"));
///
/// let legacy = LegacyIbip::parse("6RPa7umaZ/UaJFT")?;
/// assert_eq!(legacy.address().map(|it| it.to_string()).as_deref(), Some("192.168.1.100"));
/// # Ok::<(), ibi::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LegacyIbip {
    text: String,
    timestamp: Timestamp,
}

impl LegacyIbip {
    /// Reads a legacy IBIp. A text is never both this and an IBIp in base 27: the prefix of this one has a
    /// `Z`.
    ///
    /// # Errors
    /// Not two components, a character that base 53 does not have, no `Z` in the prefix, a suffix that
    /// is not the one spelling of a date.
    pub fn parse(text: &str) -> Result<LegacyIbip, ParseError> {
        let source = Source::new(Part::LegacyIbip, text);
        let components: Vec<&str> = text.split('/').collect();
        let [prefix, suffix] = components[..] else {
            let found = components.len();
            return Err(source.fault(
                Part::LegacyIbip,
                text,
                Cause::Components { found, wanted: 2 },
            ));
        };
        read_prefix(source, prefix)?;
        check_length(source, Part::Suffix, suffix)?;
        let takes = Alphabet::Base53Number;
        source.check_characters(Part::Suffix, suffix, takes, is_digit)?;
        if suffix.len() > 1 && suffix.starts_with('2') {
            return Err(source.fault(Part::Suffix, suffix, Cause::LeadingZero));
        }
        let timestamp = (suffix.len() <= LONGEST_SECONDS)
            .then(|| number(suffix))
            .flatten()
            .and_then(|seconds| IBIP_EPOCH.checked_add_unsigned(seconds))
            .and_then(|seconds| Timestamp::new(seconds, ""))
            .ok_or_else(|| source.fault(Part::Suffix, suffix, Cause::NotADate))?;
        Ok(LegacyIbip {
            text: text.to_owned(),
            timestamp,
        })
    }

    /// The identifier as written; it has no other spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first component: who identified the item.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.text.split_once('/').map_or("", |(prefix, _)| prefix)
    }

    /// The second component: when the item was identified.
    #[must_use]
    pub fn suffix(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, suffix)| suffix)
    }

    /// The date in the suffix.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp.clone()
    }

    /// The address in the prefix, where it is one.
    #[must_use]
    pub fn address(&self) -> Option<Ipv4Addr> {
        let number = self.prefix().strip_suffix('Z')?;
        let text = written(number, 11, ADDRESS)?;
        // The zero at the head of 0.1.2.3 is lost in a number.
        let text = if text.starts_with('.') {
            format!("0{text}")
        } else {
            text
        };
        text.parse().ok()
    }

    /// The prefix of the rep that the prefix stands for, as far as it can be read: `dpi.inpe.br/lise`.
    /// It is a hint, not a name: a label that begins with `a` loses that letter, as a number loses its
    /// zeros.
    #[must_use]
    pub fn likely_rep_prefix(&self) -> Option<String> {
        let (subdomain, last) = self.prefix().split_once('Z')?;
        let (word, port) = match last.split_once('Y') {
            Some((word, "")) => (word, Some(80)),
            Some((word, port)) => (word, Some(number(port)?)),
            None => (last, None),
        };
        let labels = subdomain.split('X').map(label);
        let subdomain = labels.collect::<Option<Vec<String>>>()?.join(".");
        let word = label(word)?;
        let text = match port {
            Some(port) => format!("{subdomain}/{word}@{port}"),
            None => format!("{subdomain}/{word}"),
        };
        crate::RepPrefix::parse(&text).ok().map(|_| text)
    }
}

impl fmt::Display for LegacyIbip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for LegacyIbip {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<LegacyIbip, ParseError> {
        LegacyIbip::parse(text)
    }
}

/// Returns whether a text is the prefix of a legacy IBIp.
pub(crate) fn check_prefix(text: &str) -> Result<(), ParseError> {
    read_prefix(Source::new(Part::IbipPrefix, text), text)
}

fn read_prefix(source: Source<'_>, prefix: &str) -> Result<(), ParseError> {
    check_length(source, Part::Prefix, prefix)?;
    let takes = Alphabet::Base53;
    source.check_characters(Part::Prefix, prefix, takes, |character| {
        is_digit(character) || matches!(character, 'W'..='Z')
    })?;
    if !prefix.contains('Z') {
        return Err(source.fault(Part::Prefix, prefix, Cause::NoLegacySeparator));
    }
    Ok(())
}

fn check_length(source: Source<'_>, part: Part, found: &str) -> Result<(), ParseError> {
    if found.is_empty() {
        return Err(source.fault(part, found, Cause::Empty));
    }
    if found.len() > LONGEST {
        return Err(source.fault(part, found, Cause::TooLong { limit: LONGEST }));
    }
    Ok(())
}

fn is_digit(character: char) -> bool {
    value(character).is_some()
}

fn value(character: char) -> Option<u8> {
    let byte = u8::try_from(character).ok()?;
    let index = DIGITS.iter().position(|digit| *digit == byte)?;
    u8::try_from(index).ok()
}

/// A number in base 53; `None` where it is not one or does not fit.
fn number(text: &str) -> Option<u64> {
    text.chars().try_fold(0u64, |number, character| {
        number
            .checked_mul(53)?
            .checked_add(u64::from(value(character)?))
    })
}

/// Returns what a number in base 53 stands for when its digits in another base are written with these characters.
fn written(text: &str, base: u16, characters: &[u8]) -> Option<String> {
    let digits: Option<Vec<u8>> = text.chars().map(value).collect();
    let digits = convert(&digits?, 53, base);
    let character = |digit: &u8| characters.get(usize::from(*digit)).copied();
    let text = digits.iter().map(character).collect::<Option<Vec<u8>>>()?;
    String::from_utf8(text).ok()
}

/// A label of a host name; `None` where a letter is not known.
fn label(text: &str) -> Option<String> {
    written(text, 37, LETTERS).filter(|label| !label.is_empty() && !label.contains('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn good(text: &str, date: &str, prefix: Option<&str>) {
        let legacy = LegacyIbip::parse(text).expect(text);
        assert_eq!(legacy.to_string(), text);
        assert_eq!(legacy.as_str(), text);
        assert_eq!(format!("{}/{}", legacy.prefix(), legacy.suffix()), text);
        assert_eq!(legacy.timestamp().to_rfc3339(), date);
        assert_eq!(legacy.likely_rep_prefix().as_deref(), prefix);
        let ibip = crate::Ibip::parse(text).expect(text);
        assert_eq!(ibip.legacy(), Some(&legacy));
    }

    #[track_caller]
    fn bad(text: &str, sentence: &str) {
        assert_eq!(
            LegacyIbip::parse(text).expect_err(text).to_string(),
            sentence
        );
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn identifiers_of_the_living_system() {
        good("CBnmVX32PXQZeBBx/qg53m", "2001-05-25T16:44:00Z", Some("iconet.com.br/banon"));
        good("83LX3pFwXQZeBBx/BbsHa", "2004-02-16T09:30:00Z", Some("dpi.inpe.br/banon"));
        good("83LX3pFwXQZ5Jpy/Bkjzd", "2004-03-02T15:20:00Z", Some("dpi.inpe.br/lise"));
        good("6qtX3pFwXQZGivnK2Y/TLEBM", "2008-04-15T13:39:00Z", Some("sid.inpe.br/mtc-m17@80"));
        good("6qtX3pFwXQZGivnK2Y/SskcB", "2007-12-14T14:17:00Z", Some("sid.inpe.br/mtc-m17@80"));
        good("6RPa7umaZ/UaJFT", "2008-05-16T17:13:00Z", None);
        let address = LegacyIbip::parse("6RPa7umaZ/UaJFT").expect("good").address();
        assert_eq!(address, Some(Ipv4Addr::new(192, 168, 1, 100)));
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn a_prefix_that_cannot_be_read_is_kept() {
        good("WZZW/qg53m", "2001-05-25T16:44:00Z", None);
        good("WZZW/2", "1995-08-01T00:00:00Z", None);
        good("jjjXQZjjj/qg53m", "2001-05-25T16:44:00Z", None);
        good(&format!("{}/qg53m", "Z".repeat(LONGEST)), "2001-05-25T16:44:00Z", None);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn not_legacy_ibips() {
        bad("8JMKD3MGP8W/34PGRBS", "prefix '8JMKD3MGP8W' at byte 1 of legacy IBIp '8JMKD3MGP8W/34PGRBS' has no Z, as the prefix of a legacy IBIp has");
        bad("6RPa7umaZ", "legacy IBIp '6RPa7umaZ' has 1 component, not 2");
        let long = "Z".repeat(LONGEST + 1);
        bad(&format!("{long}/qg53m"), &format!("prefix '{long}' at byte 1 of legacy IBIp '{long}/qg53m' is longer than {LONGEST} characters"));
        bad("6RPa7umaZ/", "empty suffix at byte 11 of legacy IBIp '6RPa7umaZ/'");
        bad("6RPa7umaZ/UaJFl", "character 'l' in the suffix at byte 15 of legacy IBIp '6RPa7umaZ/UaJFl' does not belong there: only 2 to 9 and letters except I, O, W, X, Y, Z and l do");
        bad("6RPa7uma-Z/UaJF", "character '-' in the prefix at byte 9 of legacy IBIp '6RPa7uma-Z/UaJF' does not belong there: only 2 to 9 and letters except I, O and l do");
        bad("6RPa7umaZ/2aJFT", "suffix '2aJFT' at byte 11 of legacy IBIp '6RPa7umaZ/2aJFT' begins with 2, the digit zero");
        bad("6RPa7umaZ/UaJFTUaJFTUaJFT", "suffix 'UaJFTUaJFTUaJFT' at byte 11 of legacy IBIp '6RPa7umaZ/UaJFTUaJFTUaJFT' stands for a date later than we can hold");
    }
}
