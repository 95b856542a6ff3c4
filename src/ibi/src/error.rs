//! The error of a text that is not an identifier: one for all forms, made where the fault is met.
//!
//! Every sentence names the part, quotes what was found there, says at which byte of which text (counted from 1) and
//! why it will not do. It knows neither errno nor HTTP status.

use std::error::Error;
use std::fmt;

use crate::message::{Localize, Message};
use crate::part::{Alphabet, Part};
use crate::{display_message, message, plural};

/// Prints a text in single quotes, for an error message: control characters are escaped, and the
/// text is cut after 120 characters.
///
/// ```
/// assert_eq!(ibi::Quoted("a\nb").to_string(), "'a\\nb'");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 120;
        f.write_str("'")?;
        for (count, character) in self.0.chars().enumerate() {
            if count == LONGEST {
                f.write_str("...")?;
                break;
            }
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                write!(f, "{character}")?;
            }
        }
        f.write_str("'")
    }
}

/// A text is not the identifier, prefix, suffix or date that it was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(Box<ParseFault>); // boxed: errors are rare, and every Result here carries the space for one

#[derive(Clone, Debug, PartialEq, Eq)]
struct ParseFault {
    form: Part,
    text: String,
    part: Part,
    start: usize,
    length: usize,
    cause: Cause,
}

/// The causes, each a predicate about the part that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Shape,
    Empty,
    Components { found: usize, wanted: usize },
    Foreign { takes: Alphabet },
    EdgeHyphen,
    NoLetterFirst,
    Pattern(&'static str),
    NotTwoDigits,
    NotFourDigits,
    Range { low: u32, high: u32 },
    NoSuchDay { month: String, year: String },
    YearTooFar,
    FractionTooLong,
    PortTooLarge,
    TooLong { limit: usize },
    NoDot,
    BeforeEpoch,
    NoSeparator,
    NoLegacySeparator,
    LeadingZero,
    TrailingZero,
    DefaultPort,
    NotIpv4 { decoded: String },
    NotIpv6 { decoded: String },
    NotADate,
    NoSuchLevel,
}

impl Localize for Cause {
    fn message(&self) -> Message {
        match self {
            Cause::Shape => message!(
                "is neither a rep (four components, as in sid.inpe.br/mtc-m18/2009/02.16.17.46) nor an IBIp (two, as \
                 in 8JMKD3MGP8W/34PGRBS)"
            ),
            Cause::Empty => message!("is empty"),
            Cause::Components { found, wanted } => plural!(
                "has {found} component, not {wanted}",
                "has {found} components, not {wanted}",
                found = *found,
                wanted
            ),
            Cause::Foreign { takes } => message!("does not belong there: {takes}", takes),
            Cause::EdgeHyphen => message!("begins or ends with a hyphen"),
            Cause::NoLetterFirst => message!("does not begin with a letter"),
            Cause::Pattern(pattern) => message!("is not of the shape {pattern}", pattern),
            Cause::NotTwoDigits => message!("does not have two digits"),
            Cause::NotFourDigits => message!("does not have four or more digits"),
            Cause::Range { low, high } => message!(
                "is not from {low} to {high}",
                low = format!("{low:02}"),
                high = format!("{high:02}")
            ),
            Cause::NoSuchDay { month, year } => message!(
                "does not exist in month {month} of the year {year}",
                month,
                year
            ),
            Cause::YearTooFar => message!("is later than 262142, the last year we can hold"),
            Cause::FractionTooLong => message!("has more than 18 digits"),
            Cause::PortTooLarge => message!("is beyond 65535"),
            Cause::TooLong { limit } => message!("is longer than {limit} characters", limit),
            Cause::NoDot => message!(
                "has no dot, so there is no subdomain to name items under; give the full host name, such as \
                 archive.example.org"
            ),
            Cause::BeforeEpoch => {
                message!("is before 1995-08-01T00:00:00Z, the first date that an IBIp can carry")
            }
            Cause::NoSeparator => {
                message!("has neither W (after an IPv4 address) nor X (after an IPv6 address)")
            }
            Cause::NoLegacySeparator => message!("has no Z, as the prefix of a legacy IBIp has"),
            Cause::LeadingZero => message!("begins with 2, the digit zero"),
            Cause::TrailingZero => message!("stands for digits that end with zero"),
            Cause::DefaultPort => message!("stands for port 800, which is left out"),
            Cause::NotIpv4 { decoded } => message!(
                "stands for {decoded}, which is not an IPv4 address in its usual writing",
                decoded = Quoted(decoded)
            ),
            Cause::NotIpv6 { decoded } => message!(
                "stands for {decoded}, which is not an IPv6 address in its usual writing",
                decoded = Quoted(decoded)
            ),
            Cause::NotADate => message!("stands for a date later than we can hold"),
            Cause::NoSuchLevel => message!("is met at a level that a rep does not have"),
        }
    }
}

impl Localize for ParseError {
    fn message(&self) -> Message {
        let ParseFault {
            form,
            text,
            part,
            start,
            cause,
            ..
        } = &*self.0;
        let found = self.found();
        let whole = found.len() == text.len();
        let (at, found, text) = (start + 1, Quoted(found), Quoted(text));
        match cause {
            Cause::Shape => message!("{text} {cause}", text, cause),
            Cause::Empty if whole => message!("empty {part}", part),
            Cause::Empty => message!(
                "empty {part} at byte {at} of {form} {text}",
                part,
                at,
                form,
                text
            ),
            Cause::Foreign { .. } => message!(
                "character {found} in the {part} at byte {at} of {form} {text} {cause}",
                found,
                part,
                at,
                form,
                text,
                cause
            ),
            _ if whole => message!("{part} {found} {cause}", part, found, cause),
            _ => message!(
                "{part} {found} at byte {at} of {form} {text} {cause}",
                part,
                found,
                at,
                form,
                text,
                cause
            ),
        }
    }
}

display_message!(ParseError);

impl Error for ParseError {}

impl ParseError {
    /// The byte of the text at which the faulty part begins, counted from 0.
    ///
    /// ```
    /// let error = ibi::Rep::parse("a.b/c/2009/13.01.00.00").unwrap_err();
    /// assert_eq!(error.offset(), 11);
    /// assert_eq!(error.found(), "13");
    /// ```
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.start
    }

    /// The faulty part, as it stands in the text.
    #[must_use]
    pub fn found(&self) -> &str {
        let ParseFault {
            text,
            start,
            length,
            ..
        } = &*self.0;
        text.get(*start..start + length).unwrap_or_default()
    }

    /// The text that was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

/// The text being read and what it is read as; makes the errors, so that parsers need not count bytes.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    form: Part,
    text: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(form: Part, text: &'a str) -> Source<'a> {
        Source { form, text }
    }

    /// An error about `found`, which must be a slice of this source's text; its address gives its position.
    pub(super) fn fault(self, part: Part, found: &str, cause: Cause) -> ParseError {
        let offset = found
            .as_ptr()
            .addr()
            .wrapping_sub(self.text.as_ptr().addr());
        let inside = offset.saturating_add(found.len()) <= self.text.len();
        ParseError(Box::new(ParseFault {
            form: self.form,
            text: self.text.to_owned(),
            part,
            start: if inside { offset } else { 0 },
            length: if inside { found.len() } else { self.text.len() },
            cause,
        }))
    }

    /// Refuses the first character of `found` that `belongs` does not know; `takes` says what would do.
    pub(super) fn check_characters(
        self,
        part: Part,
        found: &str,
        takes: Alphabet,
        belongs: impl Fn(char) -> bool,
    ) -> Result<(), ParseError> {
        match found
            .char_indices()
            .find(|(_, character)| !belongs(*character))
        {
            None => Ok(()),
            Some((at, character)) => {
                let stranger = found.get(at..at + character.len_utf8()).unwrap_or(found);
                Err(self.fault(part, stranger, Cause::Foreign { takes }))
            }
        }
    }

    /// Refuses an empty part and one with anything but decimal digits in it.
    pub(super) fn check_digits(self, part: Part, found: &str) -> Result<(), ParseError> {
        if found.is_empty() {
            return Err(self.fault(part, found, Cause::Empty));
        }
        self.check_characters(part, found, Alphabet::Digits, |c| c.is_ascii_digit())
    }
}

crate::text_arguments!(Quoted<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn sentence(text: &str, found: std::ops::Range<usize>, cause: Cause, expected: &str) {
        let error = Source::new(Part::Rep, text).fault(Part::Word, &text[found], cause);
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn sentences_say_what_and_where() {
        sentence("a/b-/c", 2..4, Cause::EdgeHyphen, "word 'b-' at byte 3 of rep 'a/b-/c' begins or ends with a hyphen");
        sentence("b-", 0..2, Cause::EdgeHyphen, "word 'b-' begins or ends with a hyphen");
        sentence("a//c", 2..2, Cause::Empty, "empty word at byte 3 of rep 'a//c'");
        sentence("", 0..0, Cause::Empty, "empty word");
        sentence("_", 0..1, Cause::Foreign { takes: Alphabet::Digits }, "character '_' in the word at byte 1 of rep '_' does not belong there: only digits do");
        sentence("a\n", 0..1, Cause::EdgeHyphen, "word 'a' at byte 1 of rep 'a\\n' begins or ends with a hyphen");
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "é".repeat(200);
        assert_eq!(
            Quoted(&long).to_string(),
            format!("'{}...'", "é".repeat(120))
        );
    }
}
