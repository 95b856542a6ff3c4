//! The IBIp, the opaque form of an identifier built on an IP address: `8JMKD3MGP8W/34PGRBS`.
//!
//! Reading is strict, so that reading and printing are inverses: one address, port and date have
//! one spelling, up to case. An IBIp keeps the case it was recorded with. Until about 2009 IBIps were
//! written in base 53, where case counts: these are read as well, see [`LegacyIbip`]. This module does not
//! know reps; the two forms of an item are recorded, never derived from one another.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::base27;
use super::error::{Cause, ParseError, Source};
use super::legacy::{self, LegacyIbip};
use super::part::{Alphabet, Part};
use super::timestamp::{FRACTION_DIGITS, IBIP_EPOCH, Timestamp};

/// The port of an IBIp that names none.
const DEFAULT_PORT: u16 = 800;

/// No address, port or date that we hold needs more; it also bounds the arithmetic.
const LONGEST: usize = 64;

/// An identifier in the form `address-and-port/date`, both in base 27, or a [`LegacyIbip`].
///
/// ```
/// use ibi::{Ibip, IbipPrefix, Timestamp};
///
/// let ibip = Ibip::parse("8jmkd3mgp8w/34pgrbs")?;
/// assert_eq!(ibip.canonical(), "8JMKD3MGP8W/34PGRBS");
///
/// let prefix = IbipPrefix::from_address("150.163.34.243".parse().unwrap(), 800);
/// assert_eq!(ibip.maker(), Some(&prefix));
/// let date = Timestamp::parse_rfc3339("2009-02-16T17:46:00Z")?;
/// assert_eq!(Ibip::mint(&prefix, &date)?, ibip);
/// # Ok::<(), ibi::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ibip {
    spelling: String,
    maker: PrefixOwner,
    timestamp: Timestamp,
}

/// The one who identified the item, as far as the prefix says.
#[derive(Clone, Debug)]
enum PrefixOwner {
    Address(IbipPrefix),
    Legacy(Box<LegacyIbip>),
    /// A prefix in base 27 that stands for no address and port.
    Opaque,
}

impl Ibip {
    /// Reads an IBIp: in any case in base 27, as it is written in base 53. A prefix with a `Z` is of the
    /// latter. A prefix in base 27 that stands for no address and port is kept as it is (ibi(7), "IBIP").
    ///
    /// # Errors
    /// Not two components, a character that an IBIp does not have, a prefix that is not the one
    /// spelling of an address and port, a suffix that is not the one spelling of a date.
    pub fn parse(text: &str) -> Result<Ibip, ParseError> {
        let source = Source::new(Part::Ibip, text);
        let components: Vec<&str> = text.split('/').collect();
        let [prefix, suffix] = components[..] else {
            let found = components.len();
            return Err(source.fault(Part::Ibip, text, Cause::Components { found, wanted: 2 }));
        };
        if is_legacy(prefix) {
            let legacy = LegacyIbip::parse(text)?;
            return Ok(Ibip {
                spelling: text.to_owned(),
                timestamp: legacy.timestamp(),
                maker: PrefixOwner::Legacy(Box::new(legacy)),
            });
        }
        let maker = match read_prefix(source, prefix) {
            Ok(prefix) => PrefixOwner::Address(prefix),
            Err(_) if is_opaque(prefix) => PrefixOwner::Opaque,
            Err(error) => return Err(error),
        };
        let timestamp = read_suffix(source, suffix)?;
        Ok(Ibip {
            spelling: text.to_owned(),
            maker,
            timestamp,
        })
    }

    /// Makes the IBIp of a prefix and a date.
    ///
    /// # Errors
    /// A date before 1995-08-01, which an IBIp cannot carry.
    pub fn mint(prefix: &IbipPrefix, date: &Timestamp) -> Result<Ibip, ParseError> {
        let spelling = format!("{prefix}/{}", date.ibip_suffix()?);
        Ok(Ibip {
            spelling,
            maker: PrefixOwner::Address(*prefix),
            timestamp: date.clone(),
        })
    }

    /// The spelling that all spellings of this IBIp share: upper case, or the only one in base 53.
    #[must_use]
    pub fn canonical(&self) -> String {
        match self.maker {
            PrefixOwner::Address(_) | PrefixOwner::Opaque => self.spelling.to_ascii_uppercase(),
            PrefixOwner::Legacy(_) => self.spelling.clone(),
        }
    }

    /// The spelling it was read with.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.spelling
    }

    /// The first component as spelled: who identified the item.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.spelling
            .split_once('/')
            .map_or("", |(prefix, _)| prefix)
    }

    /// The second component as spelled: when the item was identified.
    #[must_use]
    pub fn suffix(&self) -> &str {
        self.spelling
            .split_once('/')
            .map_or("", |(_, suffix)| suffix)
    }

    /// The address and port in the prefix, in base 27.
    #[must_use]
    pub fn maker(&self) -> Option<&IbipPrefix> {
        match &self.maker {
            PrefixOwner::Address(prefix) => Some(prefix),
            PrefixOwner::Legacy(_) | PrefixOwner::Opaque => None,
        }
    }

    /// The same in base 53, if it is of that kind.
    #[must_use]
    pub fn legacy(&self) -> Option<&LegacyIbip> {
        match &self.maker {
            PrefixOwner::Address(_) | PrefixOwner::Opaque => None,
            PrefixOwner::Legacy(legacy) => Some(legacy),
        }
    }

    /// The IP address in the prefix. The prefix of an IBIp in base 53 may be a host name, or not known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match &self.maker {
            PrefixOwner::Address(prefix) => Some(prefix.address),
            PrefixOwner::Legacy(legacy) => legacy.address().map(IpAddr::V4),
            PrefixOwner::Opaque => None,
        }
    }

    /// The port in the prefix, 800 when left out. None in base 53.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.maker().map(|prefix| prefix.port)
    }

    /// The date in the suffix.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp.clone()
    }

    fn canonical_bytes(&self) -> impl Iterator<Item = u8> {
        let is_folded = self.legacy().is_none();
        let fold = move |byte: u8| {
            if is_folded {
                byte.to_ascii_uppercase()
            } else {
                byte
            }
        };
        self.spelling.bytes().map(fold)
    }
}

impl fmt::Display for Ibip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelling)
    }
}

impl FromStr for Ibip {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Ibip, ParseError> {
        Ibip::parse(text)
    }
}

impl PartialEq for Ibip {
    fn eq(&self, other: &Ibip) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ibip {}

impl PartialOrd for Ibip {
    fn partial_cmp(&self, other: &Ibip) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ibip {
    fn cmp(&self, other: &Ibip) -> Ordering {
        self.canonical_bytes().cmp(other.canonical_bytes())
    }
}

impl Hash for Ibip {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.canonical_bytes() {
            state.write_u8(byte);
        }
        state.write_u8(0xff); // ends the text, as the hash of a str does
    }
}

/// The first component of an IBIp: an address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IbipPrefix {
    address: IpAddr,
    port: u16,
}

impl IbipPrefix {
    /// Makes the prefix of an address and a port.
    #[must_use]
    pub fn from_address(address: IpAddr, port: u16) -> IbipPrefix {
        IbipPrefix { address, port }
    }

    /// Reads a prefix in any case.
    ///
    /// # Errors
    /// A text that is not the one spelling of an address and port.
    pub fn parse(text: &str) -> Result<IbipPrefix, ParseError> {
        read_prefix(Source::new(Part::IbipPrefix, text), text)
    }

    /// The IP address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The port, 800 when left out.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for IbipPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, base, separator) = match self.address {
            IpAddr::V4(address) => (address.to_string(), 11, 'W'),
            IpAddr::V6(address) => (ipv6_text(address), 17, 'X'),
        };
        let digits: Vec<u8> = text.bytes().map(|byte| address_digit(byte, base)).collect();
        write!(f, "{}{separator}", base27::encode(&digits, base))?;
        if self.port != DEFAULT_PORT {
            f.write_str(&base27::encode_number(u64::from(self.port)))?;
        }
        Ok(())
    }
}

/// Returns whether a name is a prefix of an IBIp, the folder that holds the items of one maker.
///
/// # Errors
/// A text that is neither the one spelling of an address and port, nor a prefix in base 53, nor one of the
/// shape of an IBIp's that stands for no address.
pub fn check_prefix(text: &str) -> Result<(), ParseError> {
    if is_legacy(text) {
        return legacy::check_prefix(text);
    }
    match IbipPrefix::parse(text) {
        Err(error) if !is_opaque(text) => Err(error),
        _ => Ok(()),
    }
}

/// The spelling that all spellings of a prefix share: upper case, or the only one in base 53.
#[must_use]
pub fn prefix_key(text: &str) -> String {
    if is_legacy(text) {
        text.to_owned()
    } else {
        text.to_ascii_uppercase()
    }
}

/// Whether a prefix is one in base 53: these have a `Z`, which base 27 does not.
fn is_legacy(prefix: &str) -> bool {
    prefix.contains('Z')
}

/// Whether a text is a prefix although it stands for no address and port: a number, `W` or `X`, and digits and
/// separators. One with a digit only: a word such as `text` is not taken for a prefix. Neither is a second
/// spelling of an address or port.
fn is_opaque(text: &str) -> bool {
    let is_digit = |digit: char| base27::value(digit).is_some();
    let Some((number, port)) = text.split_once(is_separator) else {
        return false;
    };
    let is_default = base27::decode_number(port) == Some(u64::from(DEFAULT_PORT));
    !number.is_empty()
        && !number.starts_with('2')
        && !port.starts_with('2')
        && text.chars().all(|c| is_digit(c) || is_separator(c))
        && !is_default
        && text.len() <= LONGEST
        && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns whether a name is a suffix of an IBIp.
///
/// # Errors
/// A text that is not the one spelling of a date.
pub fn check_suffix(text: &str) -> Result<(), ParseError> {
    read_suffix(Source::new(Part::IbipSuffix, text), text).map(|_| ())
}

/// `b27(address) ("W" | "X") [b27(port)]`
fn read_prefix(source: Source<'_>, text: &str) -> Result<IbipPrefix, ParseError> {
    check_word(source, Part::Prefix, text)?;
    let at = text
        .find(is_separator)
        .ok_or_else(|| source.fault(Part::Prefix, text, Cause::NoSeparator))?;
    let (number, rest) = text.split_at(at);
    let (separator, port) = rest.split_at(1);
    check_number(source, Part::Address, number)?;
    let address = if separator.eq_ignore_ascii_case("W") {
        let decoded = address_text(number, 11);
        decoded
            .parse::<Ipv4Addr>()
            .map(IpAddr::V4)
            .map_err(|_| Cause::NotIpv4 { decoded })
    } else {
        let decoded = address_text(number, 17);
        match decoded.parse::<Ipv6Addr>() {
            Ok(address) if ipv6_text(address) == decoded => Ok(IpAddr::V6(address)),
            _ => Err(Cause::NotIpv6 { decoded }),
        }
    };
    let address = address.map_err(|cause| source.fault(Part::Address, number, cause))?;
    if port.is_empty() {
        return Ok(IbipPrefix {
            address,
            port: DEFAULT_PORT,
        });
    }
    check_number(source, Part::Port, port)?;
    match base27::decode_number(port).and_then(|number| u16::try_from(number).ok()) {
        Some(DEFAULT_PORT) => Err(source.fault(Part::Port, port, Cause::DefaultPort)),
        Some(port) => Ok(IbipPrefix { address, port }),
        None => Err(source.fault(Part::Port, port, Cause::PortTooLarge)),
    }
}

/// `b27(seconds) ["W" b27(fraction)]`
fn read_suffix(source: Source<'_>, text: &str) -> Result<Timestamp, ParseError> {
    check_word(source, Part::Suffix, text)?;
    let (number, fraction) = match text.split_once(['W', 'w']) {
        Some((number, fraction)) => (number, read_fraction(source, fraction)?),
        None => (text, String::new()),
    };
    check_number(source, Part::Seconds, number)?;
    base27::decode_number(number)
        .and_then(|seconds| IBIP_EPOCH.checked_add_unsigned(seconds))
        .and_then(|seconds| Timestamp::new(seconds, &fraction))
        .ok_or_else(|| source.fault(Part::Seconds, number, Cause::NotADate))
}

/// Each leading `2` is a zero by itself, the rest is a number.
fn read_fraction(source: Source<'_>, text: &str) -> Result<String, ParseError> {
    check_digits(source, Part::Fraction, text)?;
    let rest = text.trim_start_matches('2');
    let mut fraction = "0".repeat(text.len() - rest.len());
    let digits = base27::decode(rest, 10).unwrap_or_default(); // its digits are checked
    fraction.extend(digits.iter().map(|digit| char::from(b'0' + digit)));
    if fraction.ends_with('0') {
        return Err(source.fault(Part::Fraction, text, Cause::TrailingZero));
    }
    if fraction.len() > FRACTION_DIGITS {
        return Err(source.fault(Part::Fraction, text, Cause::FractionTooLong));
    }
    Ok(fraction)
}

fn is_separator(character: char) -> bool {
    matches!(character, 'W' | 'w' | 'X' | 'x')
}

/// `1*( "2".."9" | letters except I O V Y Z )`
fn check_word(source: Source<'_>, part: Part, text: &str) -> Result<(), ParseError> {
    if text.is_empty() {
        return Err(source.fault(part, text, Cause::Empty));
    }
    let takes = Alphabet::Base27;
    source.check_characters(part, text, takes, |c| {
        base27::value(c).is_some() || is_separator(c)
    })?;
    if text.len() > LONGEST {
        return Err(source.fault(part, text, Cause::TooLong { limit: LONGEST }));
    }
    Ok(())
}

/// Base 27 digits, one at least.
fn check_digits(source: Source<'_>, part: Part, text: &str) -> Result<(), ParseError> {
    if text.is_empty() {
        return Err(source.fault(part, text, Cause::Empty));
    }
    let takes = Alphabet::Base27Number;
    source.check_characters(part, text, takes, |c| base27::value(c).is_some())
}

/// A number in base 27 with no leading zero digit, except the number 0 itself.
fn check_number(source: Source<'_>, part: Part, text: &str) -> Result<(), ParseError> {
    check_digits(source, part, text)?;
    if text.len() > 1 && text.starts_with('2') {
        return Err(source.fault(part, text, Cause::LeadingZero));
    }
    Ok(())
}

/// The value of a character of an address: base 11 has ".", base 17 has "a" to "f" and ":".
fn address_digit(byte: u8, base: u16) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ if base == 11 => 10,
        _ => 16,
    }
}

/// The text of the address that a base 27 number stands for, its first 0 put back.
fn address_text(number: &str, base: u16) -> String {
    let digits = base27::decode(number, base).unwrap_or_default(); // its digits are checked
    let written = if base == 11 {
        b"0123456789.".as_slice()
    } else {
        b"0123456789abcdef:"
    };
    let text: String = digits
        .iter()
        .filter_map(|digit| written.get(usize::from(*digit)))
        .map(|byte| char::from(*byte))
        .collect();
    let lost_zero = text.starts_with('.') || text.starts_with(':') && !text.starts_with("::");
    if lost_zero { format!("0{text}") } else { text }
}

/// RFC 5952 in hexadecimal throughout: std writes IPv4-mapped addresses with dots, which base 17
/// has no digit for. Their five zero groups are always the run to shorten.
fn ipv6_text(address: Ipv6Addr) -> String {
    let [.., high, low] = address.segments();
    match address.to_ipv4_mapped() {
        Some(_) => format!("::ffff:{high:x}:{low:x}"),
        None => address.to_string(),
    }
}

crate::text_arguments!(Ibip, IbipPrefix);

#[cfg(test)]
mod tests;
