//! The rep, the form of an identifier built on a host name: `sid.inpe.br/mtc-m18@80/2009/02.16.17.46`.
//!
//! A rep keeps the spelling it was recorded with; equality, order and hash ignore case and the
//! trailing dot of the subdomain. It never holds a date that does not exist. This module does not know
//! where items are stored, nor which spelling came first.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::error::{Cause, ParseError, Source};
use super::part::{Alphabet, Part};
use super::timestamp::{DateFields, Timestamp, check_year};

/// The port of a rep that names none.
const DEFAULT_PORT: u16 = 80;

/// An identifier in the form `subdomain/word[.port]/year/month.day.hour.minute[.second]`.
///
/// ```
/// use ibi::Rep;
///
/// let rep = Rep::parse("sid.inpe.br/MTC-m18@80/2009/02.16.17.46")?;
/// assert_eq!(rep.host(), "mtc-m18.sid.inpe.br");
/// assert_eq!(rep.timestamp().to_rfc3339(), "2009-02-16T17:46:00Z");
/// // It prints as it was written, and case does not count.
/// assert_eq!(rep.to_string(), "sid.inpe.br/MTC-m18@80/2009/02.16.17.46");
/// assert_eq!(rep, Rep::parse("sid.inpe.br/mtc-m18@80/2009/02.16.17.46")?);
/// // `@` and `.` before a port are different identifiers.
/// assert_ne!(rep, Rep::parse("sid.inpe.br/mtc-m18.80/2009/02.16.17.46")?);
/// # Ok::<(), ibi::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rep {
    spelling: String,
    prefix_length: usize,
    port: u16,
    timestamp: Timestamp,
}

impl Rep {
    /// Reads a rep in any case, with `.` or `@` before its port.
    ///
    /// # Errors
    /// Not four components, a component that does not fit the grammar, a port beyond 65535, a date
    /// that does not exist or that we cannot hold.
    pub fn parse(text: &str) -> Result<Rep, ParseError> {
        let source = Source::new(Part::Rep, text);
        let components: Vec<&str> = text.split('/').collect();
        let [subdomain, word, year, date] = components[..] else {
            let found = components.len();
            return Err(source.fault(Part::Rep, text, Cause::Components { found, wanted: 4 }));
        };
        check_subdomain(source, subdomain)?;
        let port = check_word_and_port(source, word)?;
        check_year(source, year)?;
        let timestamp = split_date(source, year, date)?.read(source)?;
        let prefix_length = subdomain.len() + 1 + word.len();
        Ok(Rep {
            spelling: text.to_owned(),
            prefix_length,
            port,
            timestamp,
        })
    }

    /// Makes the rep of a prefix and a date.
    #[must_use]
    pub fn mint(prefix: &RepPrefix, date: &Timestamp) -> Rep {
        Rep {
            spelling: format!("{prefix}/{}", date.rep_suffix()),
            prefix_length: prefix.text.len(),
            port: prefix.port,
            timestamp: date.clone(),
        }
    }

    /// The spelling that all spellings of this rep share: lower case, no dot at the subdomain's end.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.canonical_bytes().map(char::from).collect()
    }

    /// The spelling it was read with.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.spelling
    }

    /// The first two components as spelled: who identified the item.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.spelling.get(..self.prefix_length).unwrap_or_default()
    }

    /// The last two components as spelled: when the item was identified.
    #[must_use]
    pub fn suffix(&self) -> &str {
        self.spelling
            .get(self.prefix_length + 1..)
            .unwrap_or_default()
    }

    /// The four components as spelled, outermost folder first.
    #[must_use]
    pub fn components(&self) -> [&str; 4] {
        let mut components = self.spelling.split('/');
        std::array::from_fn(|_| components.next().unwrap_or_default())
    }

    /// The date in the suffix.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp.clone()
    }

    /// The host that the prefix was built on, word before subdomain, in lower case.
    #[must_use]
    pub fn host(&self) -> String {
        let [subdomain, word, ..] = self.components();
        let (word, _) = split_port(word);
        let subdomain = subdomain.strip_suffix('.').unwrap_or(subdomain);
        format!("{word}.{subdomain}").to_ascii_lowercase()
    }

    /// The port in the prefix, 80 when left out.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    fn canonical_bytes(&self) -> impl Iterator<Item = u8> {
        canonical_bytes(&self.spelling)
    }
}

impl fmt::Display for Rep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelling)
    }
}

impl FromStr for Rep {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Rep, ParseError> {
        Rep::parse(text)
    }
}

impl PartialEq for Rep {
    fn eq(&self, other: &Rep) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rep {}

impl PartialOrd for Rep {
    fn partial_cmp(&self, other: &Rep) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rep {
    fn cmp(&self, other: &Rep) -> Ordering {
        self.canonical_bytes().cmp(other.canonical_bytes())
    }
}

impl Hash for Rep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.canonical_bytes() {
            state.write_u8(byte);
        }
        state.write_u8(0xff); // ends the text, as the hash of a str does
    }
}

/// The first two components of a rep, in canonical spelling: the name space of one Archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepPrefix {
    text: String,
    port: u16,
}

impl RepPrefix {
    /// Makes the prefix of a host, split at its first dot, and a port left out when it is 80.
    ///
    /// # Errors
    /// A host without a dot, or with labels that the grammar does not allow (an IP address, say).
    pub fn from_host(host: &str, port: u16) -> Result<RepPrefix, ParseError> {
        let source = Source::new(Part::Host, host);
        let (word, subdomain) = host
            .split_once('.')
            .ok_or_else(|| source.fault(Part::Host, host, Cause::NoDot))?;
        check_label(source, Part::Word, word)?;
        check_subdomain(source, subdomain)?;
        let subdomain = subdomain.strip_suffix('.').unwrap_or(subdomain);
        let mut text = format!("{subdomain}/{word}").to_ascii_lowercase();
        if port != DEFAULT_PORT {
            text.push_str(&format!(".{port}"));
        }
        Ok(RepPrefix { text, port })
    }

    /// Reads a prefix of two components in any case; it is kept in canonical spelling.
    ///
    /// # Errors
    /// Not two components, or one that does not fit the grammar.
    pub fn parse(text: &str) -> Result<RepPrefix, ParseError> {
        let source = Source::new(Part::RepPrefix, text);
        let components: Vec<&str> = text.split('/').collect();
        let [subdomain, word] = components[..] else {
            let found = components.len();
            return Err(source.fault(
                Part::RepPrefix,
                text,
                Cause::Components { found, wanted: 2 },
            ));
        };
        check_subdomain(source, subdomain)?;
        let port = check_word_and_port(source, word)?;
        Ok(RepPrefix {
            text: canonical_bytes(text).map(char::from).collect(),
            port,
        })
    }

    /// The canonical spelling, the one it prints.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.text.clone()
    }
}

impl fmt::Display for RepPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns whether a name can be a component of a rep at a level from 1 (subdomain) to 4 (month to second).
///
/// # Errors
/// A name that the grammar does not allow at that level. At level 4 every part is checked against
/// its own range; only [`Rep::parse`], which sees the year, knows whether the date exists.
pub fn check_component(level: usize, name: &str) -> Result<(), ParseError> {
    match level {
        1 => check_subdomain(Source::new(Part::Subdomain, name), name),
        2 => check_word_and_port(Source::new(Part::Word, name), name).map(|_| ()),
        3 => check_year(Source::new(Part::Year, name), name).map(|_| ()),
        4 => {
            let source = Source::new(Part::Date, name);
            split_date(source, "", name)?
                .check_parts(source)
                .map(|_| ())
        }
        _ => {
            Err(Source::new(Part::Component, name).fault(Part::Component, name, Cause::NoSuchLevel))
        }
    }
}

/// What all spellings of one component of a rep share: lower case, no dot at the end.
#[must_use]
pub fn component_key(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// `*(word ".") last-word ["."]`
fn check_subdomain(source: Source<'_>, text: &str) -> Result<(), ParseError> {
    if text.is_empty() {
        return Err(source.fault(Part::Subdomain, text, Cause::Empty));
    }
    let mut labels = text.strip_suffix('.').unwrap_or(text).split('.').peekable();
    while let Some(label) = labels.next() {
        check_label(source, Part::SubdomainWord, label)?;
        let is_last = labels.peek().is_none();
        if is_last && !label.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(source.fault(Part::LastSubdomainWord, label, Cause::NoLetterFirst));
        }
    }
    Ok(())
}

/// `word [("." | "@") port]`; returns the port.
fn check_word_and_port(source: Source<'_>, text: &str) -> Result<u16, ParseError> {
    let (word, port) = split_port(text);
    check_label(source, Part::Word, word)?;
    let Some(port) = port else {
        return Ok(DEFAULT_PORT);
    };
    source.check_digits(Part::Port, port)?;
    port.parse()
        .map_err(|_| source.fault(Part::Port, port, Cause::PortTooLarge))
}

fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.split_once(['.', '@']) {
        Some((word, port)) => (word, Some(port)),
        None => (text, None),
    }
}

/// `ALNUM | ALNUM *(ALNUM | "-") ALNUM`
fn check_label(source: Source<'_>, part: Part, label: &str) -> Result<(), ParseError> {
    if label.is_empty() {
        return Err(source.fault(part, label, Cause::Empty));
    }
    let takes = Alphabet::Label;
    source.check_characters(part, label, takes, |c| {
        c.is_ascii_alphanumeric() || c == '-'
    })?;
    if label.starts_with('-') || label.ends_with('-') {
        return Err(source.fault(part, label, Cause::EdgeHyphen));
    }
    Ok(())
}

/// `month "." day "." hour "." minute ["." second ["." fraction]]`
fn split_date<'a>(
    source: Source<'_>,
    year: &'a str,
    text: &'a str,
) -> Result<DateFields<'a>, ParseError> {
    let parts: Vec<&str> = text.split('.').collect();
    let (month, day, hour, minute, second, fraction) = match parts[..] {
        [month, day, hour, minute] => (month, day, hour, minute, None, None),
        [month, day, hour, minute, second] => (month, day, hour, minute, Some(second), None),
        [month, day, hour, minute, second, fraction] => {
            (month, day, hour, minute, Some(second), Some(fraction))
        }
        _ => return Err(source.fault(Part::Date, text, Cause::Pattern("MM.DD.hh.mm[.ss[.f]]"))),
    };
    Ok(DateFields {
        year,
        month,
        day,
        hour,
        minute,
        second,
        fraction,
    })
}

/// Lower case, and no dot before the first slash.
fn canonical_bytes(text: &str) -> impl Iterator<Item = u8> {
    let bytes = text.as_bytes();
    let dot = bytes.windows(2).position(|pair| pair == b"./");
    let slash = bytes.iter().position(|byte| *byte == b'/');
    let left_out = dot.filter(|dot| Some(dot + 1) == slash);
    let kept = bytes
        .iter()
        .enumerate()
        .filter(move |(at, _)| Some(*at) != left_out);
    kept.map(|(_, byte)| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rep(text: &str) -> Rep {
        Rep::parse(text).expect(text)
    }

    #[track_caller]
    fn good(text: &str, host: &str, port: u16, date: &str) {
        let rep = rep(text);
        assert_eq!(rep.to_string(), text);
        assert_eq!(rep.components().join("/"), text);
        assert_eq!(format!("{}/{}", rep.prefix(), rep.suffix()), text);
        assert_eq!((rep.host().as_str(), rep.port()), (host, port));
        assert_eq!(rep.timestamp().to_rfc3339(), date);
        assert_eq!(Rep::parse(&rep.canonical()).as_ref(), Ok(&rep));
        for (level, component) in rep.components().into_iter().enumerate() {
            assert_eq!(check_component(level + 1, component), Ok(()));
        }
    }

    #[track_caller]
    fn bad(text: &str, sentence: &str) {
        assert_eq!(Rep::parse(text).expect_err(text).to_string(), sentence);
    }

    #[track_caller]
    fn bad_component(level: usize, name: &str, sentence: &str) {
        assert_eq!(
            check_component(level, name).expect_err(name).to_string(),
            sentence
        );
    }

    #[track_caller]
    fn minted(host: &str, port: u16, prefix: &str) {
        let made = RepPrefix::from_host(host, port).expect(host);
        assert_eq!(made.to_string(), prefix);
        assert_eq!(RepPrefix::parse(&made.canonical()).as_ref(), Ok(&made));
        let date = Timestamp::from_unix(1_234_806_360, 0);
        let rep = Rep::mint(&made, &date);
        assert_eq!(rep.to_string(), format!("{prefix}/2009/02.16.17.46"));
        assert_eq!(
            (rep.prefix(), rep.port(), rep.timestamp()),
            (prefix, port, date)
        );
        assert_eq!(Rep::parse(rep.as_str()), Ok(rep));
    }

    #[track_caller]
    fn not_minted(host: &str, sentence: &str) {
        assert_eq!(
            RepPrefix::from_host(host, 80).expect_err(host).to_string(),
            sentence
        );
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn reps_of_the_documents() {
        good("iconet.com.br/banon/2009/09.09.22.01", "banon.iconet.com.br", 80, "2009-09-09T22:01:00Z");
        good("dpi.inpe.br/banon-pc3@80/2009/11.10.13.03", "banon-pc3.dpi.inpe.br", 80, "2009-11-10T13:03:00Z");
        good("sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20", "mtc-m12.sid.inpe.br", 80, "2006-08-28T17:53:20Z");
        good("sid.INPE.br/MTC-m18@80/2009/02.16.17.46", "mtc-m18.sid.inpe.br", 80, "2009-02-16T17:46:00Z");
        good("sid.inpe.br/mtc-m19/2013/09.04.12.27.57", "mtc-m19.sid.inpe.br", 80, "2013-09-04T12:27:57Z");
        good("sid.inpe.br/mtc-m18@1905/2009/02.16.17.46", "mtc-m18.sid.inpe.br", 1905, "2009-02-16T17:46:00Z");
        good("sid.inpe.br./mtc-m18.8080/2009/02.16.17.46", "mtc-m18.sid.inpe.br", 8080, "2009-02-16T17:46:00Z");
        good("br/9/2009/02.16.17.46.00", "9.br", 80, "2009-02-16T17:46:00Z");
        good("1a.x/a--b.00000/12009/02.16.17.46.00.50", "a--b.1a.x", 0, "12009-02-16T17:46:00.5Z");
        good("a.b-c/d/2008/02.29.23.59.59.123456789012345678", "d.a.b-c", 80, "2008-02-29T23:59:59.123456789012345678Z");
    }

    #[test]
    fn spellings_of_one_rep() {
        let first = rep("sid.INPE.br./MTC-m18@80/2009/02.16.17.46");
        assert_eq!(first, rep("sid.inpe.br/mtc-m18@80/2009/02.16.17.46"));
        assert_eq!(first.canonical(), "sid.inpe.br/mtc-m18@80/2009/02.16.17.46");
        assert_eq!(first.prefix(), "sid.INPE.br./MTC-m18@80");
        assert_ne!(first, rep("sid.inpe.br/mtc-m18.80/2009/02.16.17.46"));
        assert_ne!(first, rep("sid.inpe.br/mtc-m18/2009/02.16.17.46"));
        assert!(rep("a.b/c/2009/02.16.17.46") < rep("A.B/c/2009/02.16.17.47"));
        let set: std::collections::HashSet<Rep> =
            [first, rep("SID.inpe.br/mtc-m18@80/2009/02.16.17.46")].into();
        assert_eq!(set.len(), 1);
        let hasher = std::hash::RandomState::new();
        let hash = |text: &str| std::hash::BuildHasher::hash_one(&hasher, rep(text));
        assert_ne!(
            hash("a.b/c/2009/02.16.17.46"),
            hash("a.b/c/2009/02.16.17.47")
        );
        for (name, key) in [
            ("sid.INPE.br.", "sid.inpe.br"),
            ("MTC-m18@80", "mtc-m18@80"),
            ("", ""),
        ] {
            assert_eq!(component_key(name), key);
        }
        let prefix = RepPrefix::parse("sid.INPE.br./MTC-m18@80").expect("a prefix");
        assert_eq!(prefix.to_string(), "sid.inpe.br/mtc-m18@80");
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn not_reps() {
        bad("", "rep '' has 1 component, not 4");
        bad("a.b/c/2009", "rep 'a.b/c/2009' has 3 components, not 4");
        bad("/c/2009/02.16.17.46", "empty subdomain at byte 1 of rep '/c/2009/02.16.17.46'");
        bad("a..b/c/2009/02.16.17.46", "empty word of the subdomain at byte 3 of rep 'a..b/c/2009/02.16.17.46'");
        bad("./c/2009/02.16.17.46", "empty word of the subdomain at byte 1 of rep './c/2009/02.16.17.46'");
        bad("a.1b/c/2009/02.16.17.46", "last word of the subdomain '1b' at byte 3 of rep 'a.1b/c/2009/02.16.17.46' does not begin with a letter");
        bad("a.b-/c/2009/02.16.17.46", "word of the subdomain 'b-' at byte 3 of rep 'a.b-/c/2009/02.16.17.46' begins or ends with a hyphen");
        bad("a.b/_c/2009/02.16.17.46", "character '_' in the word at byte 5 of rep 'a.b/_c/2009/02.16.17.46' does not belong there: only letters, digits and inner hyphens do");
        bad("a.b/é/2009/02.16.17.46", "character 'é' in the word at byte 5 of rep 'a.b/é/2009/02.16.17.46' does not belong there: only letters, digits and inner hyphens do");
        bad("a.b//2009/02.16.17.46", "empty word at byte 5 of rep 'a.b//2009/02.16.17.46'");
        bad("a.b/-c/2009/02.16.17.46", "word '-c' at byte 5 of rep 'a.b/-c/2009/02.16.17.46' begins or ends with a hyphen");
        bad("a.b/c@/2009/02.16.17.46", "empty port at byte 7 of rep 'a.b/c@/2009/02.16.17.46'");
        bad("a.b/c.d/2009/02.16.17.46", "character 'd' in the port at byte 7 of rep 'a.b/c.d/2009/02.16.17.46' does not belong there: only digits do");
        bad("a.b/c@65536/2009/02.16.17.46", "port '65536' at byte 7 of rep 'a.b/c@65536/2009/02.16.17.46' is beyond 65535");
        bad("a.b/c/209/02.16.17.46", "year '209' at byte 7 of rep 'a.b/c/209/02.16.17.46' does not have four or more digits");
        bad("a.b/c/999999/02.16.17.46", "year '999999' at byte 7 of rep 'a.b/c/999999/02.16.17.46' is later than 262142, the last year we can hold");
        bad("a.b/c/99999999999999999999/02.16.17.46", "year '99999999999999999999' at byte 7 of rep 'a.b/c/99999999999999999999/02.16.17.46' is later than 262142, the last year we can hold");
        bad("a.b/c/2009/02.16.17", "date '02.16.17' at byte 12 of rep 'a.b/c/2009/02.16.17' is not of the shape MM.DD.hh.mm[.ss[.f]]");
        bad("a.b/c/2009/2.16.17.46", "month '2' at byte 12 of rep 'a.b/c/2009/2.16.17.46' does not have two digits");
        bad("a.b/c/2009/02.30.17.46", "day '30' at byte 15 of rep 'a.b/c/2009/02.30.17.46' does not exist in month 02 of the year 2009");
        bad("a.b/c/2009/02.16.24.46", "hour '24' at byte 18 of rep 'a.b/c/2009/02.16.24.46' is not from 00 to 23");
        bad("a.b/c/2009/02.16.17.46.60", "second '60' at byte 24 of rep 'a.b/c/2009/02.16.17.46.60' is not from 00 to 59");
        bad("a.b/c/2009/02.16.17.46.", "empty second at byte 24 of rep 'a.b/c/2009/02.16.17.46.'");
        bad("a.b/c/2009/02.16.17.46.00.", "empty fraction at byte 27 of rep 'a.b/c/2009/02.16.17.46.00.'");
        bad("a.b/c/2009/02.16.17.46.00.1234567890123456789", "fraction '1234567890123456789' at byte 27 of rep 'a.b/c/2009/02.16.17.46.00.1234567890123456789' has more than 18 digits");
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn components_alone() {
        assert_eq!(check_component(4, "02.30.17.46"), Ok(()));
        bad_component(1, "", "empty subdomain");
        bad_component(1, ".mint", "empty word of the subdomain at byte 1 of subdomain '.mint'");
        bad_component(1, "lost+found", "character '+' in the word of the subdomain at byte 5 of subdomain 'lost+found' does not belong there: only letters, digits and inner hyphens do");
        bad_component(2, "a-", "word 'a-' begins or ends with a hyphen");
        bad_component(3, "99", "year '99' does not have four or more digits");
        bad_component(4, "02.32.17.46", "day '32' at byte 4 of date '02.32.17.46' is not from 01 to 31");
        bad_component(4, "doc", "date 'doc' is not of the shape MM.DD.hh.mm[.ss[.f]]");
        bad_component(5, "doc", "component 'doc' is met at a level that a rep does not have");
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn prefixes_of_hosts() {
        minted("mtc-m18.sid.inpe.br", 80, "sid.inpe.br/mtc-m18");
        minted("MTC-m18.sid.INPE.br", 1905, "sid.inpe.br/mtc-m18.1905");
        minted("banon.iconet.com.br.", 8080, "iconet.com.br/banon.8080");
        not_minted("localhost", "host 'localhost' has no dot, so there is no subdomain to name items under; give the full host name, such as archive.example.org");
        not_minted("10.0.0.1", "last word of the subdomain '1' at byte 8 of host '10.0.0.1' does not begin with a letter");
        not_minted("a_b.example.org", "character '_' in the word at byte 2 of host 'a_b.example.org' does not belong there: only letters, digits and inner hyphens do");
        not_minted("a.", "empty subdomain at byte 3 of host 'a.'");
    }
}
