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

/// Who identified the item, as far as the prefix says.
#[derive(Clone, Debug)]
enum PrefixOwner {
    Address(IbipPrefix),
    Legacy(Box<LegacyIbip>),
}

impl Ibip {
    /// Reads an IBIp: in any case in base 27, as it is written in base 53. A prefix with a `Z` is of the
    /// latter.
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
        let prefix = read_prefix(source, prefix)?;
        let timestamp = read_suffix(source, suffix)?;
        Ok(Ibip {
            spelling: text.to_owned(),
            maker: PrefixOwner::Address(prefix),
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
            PrefixOwner::Address(_) => self.spelling.to_ascii_uppercase(),
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
            PrefixOwner::Legacy(_) => None,
        }
    }

    /// The same in base 53, if it is of that kind.
    #[must_use]
    pub fn legacy(&self) -> Option<&LegacyIbip> {
        match &self.maker {
            PrefixOwner::Address(_) => None,
            PrefixOwner::Legacy(legacy) => Some(legacy),
        }
    }

    /// The IP address in the prefix. The prefix of an IBIp in base 53 may be a host name, or not known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match &self.maker {
            PrefixOwner::Address(prefix) => Some(prefix.address),
            PrefixOwner::Legacy(legacy) => legacy.address().map(IpAddr::V4),
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
/// A text that is neither the one spelling of an address and port, nor a prefix in base 53.
pub fn check_prefix(text: &str) -> Result<(), ParseError> {
    if is_legacy(text) {
        return legacy::check_prefix(text);
    }
    IbipPrefix::parse(text).map(|_| ())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ibip(text: &str) -> Ibip {
        Ibip::parse(text).expect(text)
    }

    #[track_caller]
    fn good(text: &str, address: &str, port: u16, date: &str) {
        let ibip = ibip(text);
        assert_eq!(ibip.to_string(), text);
        assert_eq!(format!("{}/{}", ibip.prefix(), ibip.suffix()), text);
        assert_eq!(
            (ibip.address().map(|it| it.to_string()), ibip.port()),
            (Some(address.to_owned()), Some(port))
        );
        assert_eq!(ibip.timestamp().to_rfc3339(), date);
        let prefix = *ibip.maker().expect("an address and port");
        assert_eq!(Ibip::mint(&prefix, &ibip.timestamp()).as_ref(), Ok(&ibip));
        assert_eq!(ibip.canonical(), text.to_ascii_uppercase());
        assert_eq!(check_prefix(ibip.prefix()), Ok(()));
        assert_eq!(check_suffix(ibip.suffix()), Ok(()));
    }

    #[track_caller]
    fn bad(text: &str, sentence: &str) {
        assert_eq!(Ibip::parse(text).expect_err(text).to_string(), sentence);
    }

    #[track_caller]
    fn prefix(address: &str, port: u16, text: &str) {
        let made = IbipPrefix::from_address(address.parse().expect(address), port);
        assert_eq!(made.to_string(), text);
        assert_eq!(IbipPrefix::parse(text), Ok(made));
        assert_eq!(
            (made.address().to_string().as_str(), made.port()),
            (address, port)
        );
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn ibips_of_the_documents() {
        good("8JMKD3MGP8W/34PGRBS", "150.163.34.243", 800, "2009-02-16T17:46:00Z");
        good("8jmkd3mgp8w/34pgrbs", "150.163.34.243", 800, "2009-02-16T17:46:00Z");
        good("LK47B6W/362SFKH", "127.0.0.1", 800, "2009-09-09T22:01:00Z");
        good("8JMKD3MGP7W/3EPGUE5", "150.163.34.242", 800, "2013-09-04T12:27:57Z");
        good("J8LNKB5R7W/3FUQHC5", "150.163.34.64", 800, "2014-03-22T01:53:00Z");
        good("8JMKD3MGP8W/35MMLL8", "150.163.34.243", 800, "2009-07-21T14:43:00Z");
    }

    #[test]
    fn prefixes_of_addresses() {
        prefix("150.163.2.174", 800, "J8LNKAN8PW");
        prefix("150.163.2.174", 19050, "J8LNKAN8PWU5H");
        prefix("150.163.2.174", 1, "J8LNKAN8PW3");
        prefix("150.163.2.174", 0, "J8LNKAN8PW2");
        prefix("150.163.34.243", 800, "8JMKD3MGP8W");
        prefix("2001:252:0:1::2008:6", 800, "7URMDHLL9SSN2D89MX");
        prefix("0.0.0.0", 80, "53FJHW4U");
        prefix("0.1.2.3", 800, "5492SW");
        prefix("127.0.0.1", 800, "LK47B6W");
        prefix("::", 800, "CLX");
        prefix("::1", 800, "8MCX");
        prefix("0:1::", 800, "62JPX");
        prefix("0:0:1::1", 800, "3228DRRX");
        prefix("::ffff:1.2.3.4", 800, "359JQERSKN4S7X");
        prefix(
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            65535,
            "7A6EQ5LJDPH6BN7HPAS6JBQTBHLK6R62QTX5AS8",
        );
    }

    #[test]
    fn spellings_of_one_ibip() {
        assert_eq!(ibip("8jmkd3mgp8w/34PGRBS"), ibip("8JMKD3MGP8W/34pgrbs"));
        assert_ne!(ibip("8JMKD3MGP8W/34PGRBS"), ibip("8JMKD3MGP8W/34PGRBT"));
        assert!(ibip("8jmkd3mgp8w/34pgrbs") < ibip("8JMKD3MGP8W/34PGRBT"));
        let set: std::collections::HashSet<Ibip> =
            [ibip("8jmkd3mgp8w/34pgrbs"), ibip("8JMKD3MGP8W/34PGRBS")].into();
        assert_eq!(set.len(), 1);
        let hasher = std::hash::RandomState::new();
        let hash = |text: &str| std::hash::BuildHasher::hash_one(&hasher, ibip(text));
        assert_ne!(hash("8JMKD3MGP8W/34PGRBS"), hash("8JMKD3MGP8W/34PGRBT"));
    }

    /// An address has one spelling: the number of another writing of it is refused.
    #[test]
    fn another_writing_of_an_address_is_not_an_address() {
        for (text, base, separator) in [
            ("2001:db8::0:1", 17, 'X'),
            ("1:0:0:0:0:0:0:8", 17, 'X'),
            ("2001:0db8::1", 17, 'X'),
            ("1.2.3", 11, 'W'),
            ("1.2.3.256", 11, 'W'),
        ] {
            let digits: Vec<u8> = text.bytes().map(|byte| address_digit(byte, base)).collect();
            let prefix = format!("{}{separator}", base27::encode(&digits, base));
            let refused = IbipPrefix::parse(&prefix).expect_err(text).to_string();
            assert!(
                refused.contains(&format!("stands for '{text}'")),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_word_has_at_most_64_characters() {
        for (length, is_too_long) in [(64, false), (65, true)] {
            let prefix = format!("{}W", "U".repeat(length - 1));
            let refused = IbipPrefix::parse(&prefix).expect_err("no address");
            assert_eq!(
                refused.to_string().contains("is longer than 64"),
                is_too_long,
                "{refused}"
            );
        }
    }

    /// Case counts in base 53, and makes another identifier.
    #[test]
    fn ibips_in_base_53() {
        let written = ibip("83LX3pFwXQZeBBx/BbsHa");
        assert_eq!(written.canonical(), "83LX3pFwXQZeBBx/BbsHa");
        assert_eq!(written.timestamp().to_rfc3339(), "2004-02-16T09:30:00Z");
        assert_eq!((written.address(), written.port()), (None, None));
        assert_ne!(written, ibip("83LX3pFwXQZeBBx/BbsHA"));
        assert_ne!(written, ibip("83LX3PFwXQZeBBx/BbsHa"));
        assert_eq!(
            ibip("6RPa7umaZ/UaJFT").address(),
            "192.168.1.100".parse().ok()
        );
        assert_eq!(check_prefix("83LX3pFwXQZeBBx"), Ok(()));
        assert!(check_prefix("83LX3pFwXQZeBBl").is_err());
        assert_eq!(prefix_key("83LX3pFwXQZeBBx"), "83LX3pFwXQZeBBx");
        assert_eq!(prefix_key("8jmkd3mgp8w"), "8JMKD3MGP8W");
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn not_ibips() {
        bad("8JMKD3MGP8W", "IBIp '8JMKD3MGP8W' has 1 component, not 2");
        bad("8JMKD3MGP8W/", "empty suffix at byte 13 of IBIp '8JMKD3MGP8W/'");
        bad("/34PGRBS", "empty prefix at byte 1 of IBIp '/34PGRBS'");
        bad("6rpa7umaz/uajft", "character 'z' in the prefix at byte 9 of IBIp '6rpa7umaz/uajft' does not belong there: only 2 to 9 and letters except I, O, V, Y and Z do");
        bad("6RPa7umaZ/UaJFl", "character 'l' in the suffix at byte 15 of legacy IBIp '6RPa7umaZ/UaJFl' does not belong there: only 2 to 9 and letters except I, O, W, X, Y, Z and l do");
        bad("8JMKD3MGP8W/34PGRBé", "character 'é' in the suffix at byte 19 of IBIp '8JMKD3MGP8W/34PGRBé' does not belong there: only 2 to 9 and letters except I, O, V, Y and Z do");
        bad("8JMKD3MGP8/34PGRBS", "prefix '8JMKD3MGP8' at byte 1 of IBIp '8JMKD3MGP8/34PGRBS' has neither W (after an IPv4 address) nor X (after an IPv6 address)");
        bad("W/34PGRBS", "empty address at byte 1 of IBIp 'W/34PGRBS'");
        bad("8JMKD3MGP8WX/34PGRBS", "character 'X' in the port at byte 12 of IBIp '8JMKD3MGP8WX/34PGRBS' does not belong there: W and X separate, and have their place once");
        bad("28JMKD3MGP8W/34PGRBS", "address '28JMKD3MGP8' at byte 1 of IBIp '28JMKD3MGP8W/34PGRBS' begins with 2, the digit zero");
        bad("8JMKD3MGP8W24/34PGRBS", "port '24' at byte 12 of IBIp '8JMKD3MGP8W24/34PGRBS' begins with 2, the digit zero");
        bad("8JMKD3MGP8W34K/34PGRBS", "port '34K' at byte 12 of IBIp '8JMKD3MGP8W34K/34PGRBS' stands for port 800, which is left out");
        bad("8JMKD3MGP8WUUUU/34PGRBS", "port 'UUUU' at byte 12 of IBIp '8JMKD3MGP8WUUUU/34PGRBS' is beyond 65535");
        bad("2W/34PGRBS", "address '2' at byte 1 of IBIp '2W/34PGRBS' stands for '', which is not an IPv4 address in its usual writing");
        bad("UUUUW/34PGRBS", "address 'UUUU' at byte 1 of IBIp 'UUUUW/34PGRBS' stands for '333308', which is not an IPv4 address in its usual writing");
        bad("UUUUX/34PGRBS", "address 'UUUU' at byte 1 of IBIp 'UUUUX/34PGRBS' stands for '662f3', which is not an IPv6 address in its usual writing");
        bad("8JMKD3MGP8W/234PGRBS", "seconds '234PGRBS' at byte 13 of IBIp '8JMKD3MGP8W/234PGRBS' begins with 2, the digit zero");
        bad("8JMKD3MGP8W/34PGRBSX", "character 'X' in the seconds at byte 20 of IBIp '8JMKD3MGP8W/34PGRBSX' does not belong there: W and X separate, and have their place once");
        bad("8JMKD3MGP8W/W7", "empty seconds at byte 13 of IBIp '8JMKD3MGP8W/W7'");
        bad("8JMKD3MGP8W/34PGRBSW", "empty fraction at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSW'");
        bad("8JMKD3MGP8W/34PGRBSW2", "fraction '2' at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSW2' stands for digits that end with zero");
        bad("8JMKD3MGP8W/34PGRBSWC", "fraction 'C' at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSWC' stands for digits that end with zero");
        bad("8JMKD3MGP8W/34PGRBSW7W7", "character 'W' in the fraction at byte 22 of IBIp '8JMKD3MGP8W/34PGRBSW7W7' does not belong there: W and X separate, and have their place once");
        bad("8JMKD3MGP8W/34PGRBSW2222222222222222227", "fraction '2222222222222222227' at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSW2222222222222222227' has more than 18 digits");
        bad("8JMKD3MGP8W/UUUUUUUUUUUUUUUUUUUU", "seconds 'UUUUUUUUUUUUUUUUUUUU' at byte 13 of IBIp '8JMKD3MGP8W/UUUUUUUUUUUUUUUUUUUU' stands for a date later than we can hold");
        let long = format!("{}W", "U".repeat(64));
        bad(&format!("{long}/3"), &format!("prefix '{long}' at byte 1 of IBIp '{long}/3' is longer than 64 characters"));
    }

    #[test]
    fn whatever_is_minted_reads_back() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..5000 {
            let sparse: [u16; 8] = std::array::from_fn(|_| {
                if random() % 2 == 0 {
                    0
                } else {
                    random() as u16
                }
            });
            let address = match random() % 3 {
                0 => IpAddr::from((random() as u32).to_be_bytes()),
                1 => IpAddr::from(sparse),
                _ => IpAddr::from([0, 0, 0, 0, 0, 0xffff, sparse[0], sparse[1]]),
            };
            let prefix = IbipPrefix::from_address(address, random() as u16);
            let seconds = IBIP_EPOCH + (random() % 10_000_000_000) as i64;
            let fraction = (random() % 1_000_000_000_000_000_000).to_string();
            let kept = (random() % 19) as usize;
            let date = Timestamp::new(seconds, fraction.get(..kept).unwrap_or("")).expect("a date");
            let minted = Ibip::mint(&prefix, &date).expect("after 1995");
            let read = Ibip::parse(&minted.to_string().to_ascii_lowercase());
            assert_eq!(read.as_ref(), Ok(&minted));
            assert_eq!(
                read.map(|ibip| (ibip.address(), ibip.port(), ibip.timestamp())),
                Ok((Some(address), Some(prefix.port), date))
            );
        }
    }
}
