//! Addresses of Archives on the network, as texts: `host` or `host:port`. Nothing is looked up.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ibi::message::{Localize, Message};
use ibi::{Quoted, display_message, message};

/// The longest address, in bytes.
const LONGEST_ADDRESS: usize = 255;

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl Localize for AddressError {
    fn message(&self) -> Message {
        message!(
            "{text} is not an archiveaddress; write host or host:port, without http://",
            text = Quoted(&self.0)
        )
    }
}

display_message!(AddressError);

impl std::error::Error for AddressError {}

/// The address of an Archive: `host` or `host:port` (RFC 3986, `host [":" port]`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address(String);

impl Address {
    /// Parses an address.
    ///
    /// # Errors The host is neither a name nor an IP address, or the port is not valid.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let refuse = || AddressError(text.to_owned());
        let end = if text.starts_with('[') {
            text.find(']').map(|at| at + 1).ok_or_else(refuse)?
        } else {
            text.find(':').unwrap_or(text.len())
        };
        let (host, port) = text.split_at_checked(end).ok_or_else(refuse)?;
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let is_host = match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
            None => is_name(host),
        };
        let is_port = match port.strip_prefix(':') {
            // `parse` accepts a sign, and a port has none.
            Some(port) => !port.starts_with('+') && port.parse::<u16>().is_ok_and(|port| port > 0),
            None => port.is_empty(),
        };
        if is_host && is_port && text.len() <= LONGEST_ADDRESS {
            Ok(Address(text.to_ascii_lowercase()))
        } else {
            Err(refuse())
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The host of an address. An IPv6 address has no brackets.
pub(super) fn host_of(address: &str) -> &str {
    match address.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => address.split(':').next().unwrap_or(address),
    }
}

fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_good)
    };
    host.trim_end_matches('.').split('.').all(is_label)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether an address belongs to the public Internet. Those that are private, local or reserved do
/// not.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_documentation()
                || first == 0
                || first >= 224
                || (first == 100 && (64..128).contains(&second))
                || (first == 192 && second == 0 && third == 0)
                || (first == 192 && second == 88 && third == 99)
                || (first == 198 && (18..20).contains(&second)))
        }
        // Of 2000::/3, ranges that can embed an IPv4 address and those for documentation are excluded.
        IpAddr::V6(address) => {
            let [first, second, ..] = Ipv6Addr::segments(&address);
            (0x2000..0x4000).contains(&first)
                && first != 0x2002
                && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
                && first != 0x3fff
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "localhost",
            "127.0.0.1:8080",
            "a-b.example.org:80",
            "[::1]:8080",
            "[::1]",
            "archive_a:8080",
            "example.org.",
        ] {
            assert_eq!(Address::parse(good).expect(good).as_str(), good);
        }
        assert_eq!(
            Address::parse("Example.ORG").expect("a host").as_str(),
            "example.org"
        );
        for bad in [
            "",
            ":80",
            "a:0",
            "a:65536",
            "a:",
            "a:+80",
            "a b",
            "a/b",
            "a@b",
            "[::1",
            "[x]",
            "::1",
            "a..b",
            "a?b",
            "a#b",
            &"a".repeat(64),
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn public_addresses() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(text.parse().expect(text)), "{text}");
        }
        for text in ["150.163.34.243", "2001:4860:4860::8888"] {
            assert!(is_public(text.parse().expect(text)), "{text}");
        }
    }
}
