//! Validated values of parameters. Each prints as it was given, except [`Password`], which does not print.

use std::fmt;
use std::net::Ipv6Addr;

use super::RequestError;
use ibi::{Ibi, RepPrefix, Timestamp};

/// The longest label of a host name, in bytes. The next constant is the longest host name.
const LONGEST_LABEL: usize = 63;
const LONGEST_HOST: usize = 253;

fn form(name: &'static str, value: &str, wanted: &'static str) -> RequestError {
    RequestError::Form {
        name,
        value: value.to_owned(),
        wanted,
    }
}

/// The provider of an actor's documents: a computer in a domain, and a port.
///
/// The prefix of identifiers made for it has its port after `@`, even 80, as in the protocol of 2009. An
/// Archive makes its own identifiers without a port, or with `.`, so the two never collide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    host: String,
    port: u16,
    prefix: RepPrefix,
}

impl Provider {
    /// Makes a provider from `computerName`, `domainName` and `port`.
    ///
    /// # Errors
    /// A computer that is not one label, an invalid domain, a port that is not 1 to 65535.
    pub fn new(computer: &str, domain: &str, port: &str) -> Result<Provider, RequestError> {
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let number = port.parse().ok().filter(|port| is_number && *port > 0);
        let port: u16 = number.ok_or_else(|| form("port", port, "a number from 1 to 65535"))?;
        if computer.contains(['.', '@', '/']) {
            let wanted = "the name of a computer alone, such as hermes; the rest is domainName";
            return Err(form("computerName", computer, wanted));
        }
        if domain.contains('/') {
            return Err(form("domainName", domain, "a domain, such as dpi.inpe.br"));
        }
        let prefix = RepPrefix::parse(&format!("{domain}/{computer}@{port}"))
            .map_err(RequestError::Prefix)?;
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        let host = format!("{computer}.{domain}").to_ascii_lowercase();
        let is_short = |label: &str| label.len() <= LONGEST_LABEL;
        if host.len() > LONGEST_HOST || !host.split('.').all(is_short) {
            let wanted = "short enough: a name of a host has 253 characters, a part of it 63";
            return Err(form("computerName.domainName", &host, wanted));
        }
        Ok(Provider { host, port, prefix })
    }

    /// The host name, in lower case.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The domain to which limits apply: the last two labels of the name, or three where the last two belong
    /// to a country, such as `com.br`. The owner of a domain can make any name below it.
    #[must_use]
    pub fn domain(&self) -> &str {
        let parts: Vec<&str> = self.host.rsplit('.').collect();
        let is_of_country = |parts: &[&str]| matches!(parts, [country, kind, ..] if country.len() == 2 && kind.len() <= 3);
        let count = if is_of_country(&parts) { 3 } else { 2 };
        let dots = self.host.rmatch_indices('.');
        let start = dots.map(|(at, _)| at + 1).nth(count - 1).unwrap_or(0);
        self.host.get(start..).unwrap_or(&self.host)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The prefix of identifiers made for it: `dpi.inpe.br/hermes@80`.
    #[must_use]
    pub fn prefix(&self) -> &RepPrefix {
        &self.prefix
    }
}

/// An e-mail address: `name@host`, printable ASCII without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// Parses an address; `name` is the name of the parameter, for the error.
    ///
    /// # Errors
    /// The text is not an e-mail address.
    pub fn parse(name: &'static str, text: &str) -> Result<Email, RequestError> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        let sides = text.rsplit_once('@');
        let has_sides = sides.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
        if is_printable && has_sides {
            Ok(Email(text.to_owned()))
        } else {
            Err(form(
                name,
                text,
                "an e-mail address, such as banon@dpi.inpe.br",
            ))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A password: 6 to 128 bytes without control characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    const SHORTEST: usize = 6;
    const LONGEST: usize = 128;

    /// Parses a password; `name` is the name of the parameter, for the error.
    ///
    /// # Errors
    /// The password is too short or too long, or has control characters.
    pub fn parse(name: &'static str, text: &str) -> Result<Password, RequestError> {
        let is_long = (Password::SHORTEST..=Password::LONGEST).contains(&text.len());
        if is_long && !text.chars().any(char::is_control) {
            Ok(Password(text.to_owned()))
        } else {
            let wanted = "6 to 128 bytes without control characters";
            Err(RequestError::Password(name, wanted))
        }
    }

    /// The password itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Does not print the password.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// A URL of `http` or `https`, without user name and password. Characters that may not occur in a URL are
/// percent-encoded, because a URL that a form encodes once arrives decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl {
    text: String,
    host: String,
    port: u16,
}

impl WebUrl {
    /// Parses a URL; `name` is the name of the parameter, for the error.
    ///
    /// # Errors
    /// The text is not such a URL.
    pub fn parse(name: &'static str, text: &str) -> Result<WebUrl, RequestError> {
        WebUrl::read(text).ok_or_else(|| {
            let wanted = "a URL such as http://hermes.dpi.inpe.br/a.pdf: http or https, the name of a \
                          host, no control characters";
            form(name, text, wanted)
        })
    }

    fn read(text: &str) -> Option<WebUrl> {
        let (scheme, rest) = text.split_once("://")?;
        let usual = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        let end = if authority.starts_with('[') {
            authority.find(']')? + 1
        } else {
            authority.find(':').unwrap_or(authority.len())
        };
        let (host, port) = authority.split_at_checked(end)?;
        let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => usual,
            Some("") => usual,
            Some(port) if is_number(port) => port.parse().ok().filter(|port| *port > 0)?,
            _ => return None,
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_host = match host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
        {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => is_name(&host),
        };
        let is_good = is_host && !text.bytes().any(|byte| byte.is_ascii_control());
        is_good.then(|| WebUrl {
            text: text.bytes().map(in_url).collect(),
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
        })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host, in lower case; an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, or the default port of the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// A byte as it is written in a URL (RFC 3986); a `%` is left as the start of an encoded byte.
fn in_url(byte: u8) -> String {
    if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= LONGEST_LABEL && label.bytes().all(is_good)
    };
    host.len() <= LONGEST_HOST && host.split('.').all(is_label)
}

/// The time of the last change: RFC 3339, with the UTC offset as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastUpdate(String);

impl LastUpdate {
    /// Parses a date and time; `name` is the name of the parameter, for the error.
    ///
    /// # Errors
    /// The text has another form, or the date does not exist.
    pub fn parse(name: &'static str, text: &str) -> Result<LastUpdate, RequestError> {
        LastUpdate::read(text).ok_or_else(|| {
            let wanted = "a date and time with its offset, such as 2008-07-17T17:22:06-03:00 or \
                          2008-07-17T20:22:06Z; in a URL + is written %2B";
            form(name, text, wanted)
        })
    }

    fn read(text: &str) -> Option<LastUpdate> {
        let text = match text.split_once(' ') {
            Some((text, stamp)) if is_stamp(stamp) => text,
            Some(_) => return None,
            None => text,
        };
        let (local, sign, offset) = match text.strip_suffix('Z') {
            Some(local) => (local, '+', "00:00"),
            None => {
                let at = text.len().checked_sub("+00:00".len())?;
                let (local, offset) = text.split_at_checked(at)?;
                let sign = offset.chars().next().filter(|sign| "+-".contains(*sign))?;
                (local, sign, offset.get(1..)?)
            }
        };
        let (hours, minutes) = offset.split_once(':')?;
        let part = |digits: &str, most: i64| {
            let is_good = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse::<i64>().ok();
            number.filter(|number| is_good && *number <= most)
        };
        let seconds = part(hours, 23)? * 3600 + part(minutes, 59)? * 60;
        let local = Timestamp::parse_rfc3339(&format!("{local}Z")).ok()?;
        // The time in UTC must be in the calendar, too.
        let seconds = if sign == '+' { -seconds } else { seconds };
        let moment = local.as_nanoseconds() + i128::from(seconds) * 1_000_000_000;
        Timestamp::from_nanoseconds(moment)?;
        Some(LastUpdate(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a text has the form of the second date in the protocol's example, `2009:03.12.16.20.53`.
fn is_stamp(text: &str) -> bool {
    let mut parts = text.split([':', '.']);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.clone().count() == 6 && parts.all(is_number)
}

/// An MD5 digest: 32 hexadecimal digits, stored in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFingerprint(String);

impl DocumentFingerprint {
    /// Parses a fingerprint.
    ///
    /// # Errors
    /// The text is not 32 hexadecimal digits.
    pub fn parse(text: &str) -> Result<DocumentFingerprint, RequestError> {
        let is_good = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_good {
            Ok(DocumentFingerprint(text.to_ascii_lowercase()))
        } else {
            Err(form(
                "fingerprint",
                text,
                "the 32 hexadecimal digits of MD5",
            ))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The actor of a request, with its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The identifier of the actor.
    pub actor: Ibi,
    /// Its password.
    pub password: Password,
}
