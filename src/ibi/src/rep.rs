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

/// Returns what all spellings of one component of a rep share: lower case, no dot at the end.
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

crate::text_arguments!(Rep, RepPrefix);

#[cfg(test)]
mod tests;
