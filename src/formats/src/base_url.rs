//! The URL at which a service is reached, as a text: `https://host[:port][/path]`. Nothing is looked up.

use std::fmt;

use ibi::message::{Localize, Message};
use ibi::{Quoted, display_message, message};

use super::address::{Address, host_of, is_public};

/// The longest URL, in bytes.
const LONGEST_URL: usize = 1024;

/// A text that is not the URL of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrlError(String);

impl Localize for BaseUrlError {
    fn message(&self) -> Message {
        message!(
            "{text} is not the URL of a service; write https://host, https://host:port or https://host/path, without a query",
            text = Quoted(&self.0)
        )
    }
}

display_message!(BaseUrlError);

impl std::error::Error for BaseUrlError {}

/// The scheme by which a service is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// The name, without the colon.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port that a URL leaves out.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// The URL at which a service is reached, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    scheme: Scheme,
    /// `host` or `host:port`.
    address: String,
    /// The path in front of all paths of the service: empty, or `/archive`.
    prefix: String,
}

impl BaseUrl {
    /// Parses `http://` or `https://`, a host, and possibly a port and a path. The port that the scheme has
    /// anyway is left out.
    ///
    /// # Errors
    /// Another scheme, a host or port that is not valid, a user, a query or a fragment, or a path with other
    /// characters than letters, digits and `-._~`.
    pub fn parse(text: &str) -> Result<BaseUrl, BaseUrlError> {
        BaseUrl::read(text).ok_or_else(|| BaseUrlError(text.to_owned()))
    }

    fn read(text: &str) -> Option<BaseUrl> {
        if text.len() > LONGEST_URL {
            return None;
        }
        let (scheme, rest) = text.split_once("://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (address, path) = rest.split_at(end);
        let address = Address::parse(address).ok()?.to_string();
        let port = format!(":{}", scheme.default_port());
        let address = address.strip_suffix(&port).unwrap_or(&address);
        let path = path.trim_matches('/');
        let is_part = |part: &str| {
            let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            !part.is_empty() && part.bytes().all(is_good) && part != "." && part != ".."
        };
        let is_path = path.is_empty() || path.split('/').all(is_part);
        is_path.then(|| BaseUrl {
            scheme,
            address: address.to_owned(),
            prefix: match path {
                "" => String::new(),
                path => format!("/{path}"),
            },
        })
    }

    /// The same with `https`.
    #[must_use]
    pub fn of_tls_address(address: &str) -> BaseUrl {
        BaseUrl {
            scheme: Scheme::Https,
            ..BaseUrl::of_address(address)
        }
    }

    /// The URL with `http` of a service at an address, `host` or `host:port`, which is not checked.
    #[must_use]
    pub fn of_address(address: &str) -> BaseUrl {
        BaseUrl {
            scheme: Scheme::Http,
            address: address.to_owned(),
            prefix: String::new(),
        }
    }

    /// Parses what [`BaseUrl::short`] gives: an address, `host` or `host:port`, or a URL.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse_short(text: &str) -> Result<BaseUrl, Message> {
        if text.contains("://") {
            return BaseUrl::parse(text).map_err(|error| error.message());
        }
        let address = Address::parse(text).map_err(|error| error.message())?;
        Ok(BaseUrl::of_address(address.as_str()))
    }

    /// The host. An IPv6 address has no brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        host_of(&self.address)
    }

    /// Whether its host is a name, which must be looked up, or an address of the public Internet.
    #[must_use]
    pub fn may_be_public(&self) -> bool {
        self.host().parse().map_or(true, is_public)
    }

    /// Whether both are the same host, port and path. The port that a scheme has anyway may be left out.
    #[must_use]
    pub fn is_same_place(&self, other: &BaseUrl) -> bool {
        self.place() == other.place()
    }

    /// Host, port and path, in the spelling that is the same for the same place.
    #[must_use]
    pub fn place(&self) -> String {
        let port = format!(":{}", self.scheme.default_port());
        let address = self.address.strip_suffix(&port).unwrap_or(&self.address);
        format!("{address}{}", self.prefix)
    }

    /// Returns the scheme by which the service is reached.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns where it is reached: `host` or `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The path in front of all paths of the service: empty, or `/archive`.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The URL of a path of the service, with or without a slash in front.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{self}/{}", path.strip_prefix('/').unwrap_or(path))
    }

    /// The URL as an address, where `http` and no path are understood: `host`, `host:port`, or else the whole URL.
    #[must_use]
    pub fn short(&self) -> String {
        match (self.scheme, self.prefix.as_str()) {
            (Scheme::Http, "") => self.address.clone(),
            _ => self.to_string(),
        }
    }

    /// The path of a request without the prefix of the service, beginning with a slash. None for a path that is
    /// not below the prefix.
    #[must_use]
    pub fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        match path.strip_prefix(&self.prefix)? {
            "" => Some("/"),
            rest if rest.starts_with('/') => Some(rest),
            _ => None,
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.name();
        write!(f, "{scheme}://{}{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (text, url, prefix, short) in [
            ("https://a.org", "https://a.org", "", "https://a.org"),
            ("HTTPS://A.org:443/", "https://a.org", "", "https://a.org"),
            ("http://a.org:80", "http://a.org", "", "a.org"),
            ("http://[::1]:8080/", "http://[::1]:8080", "", "[::1]:8080"),
            (
                "https://a.org:80/x/y~1/",
                "https://a.org:80/x/y~1",
                "/x/y~1",
                "https://a.org:80/x/y~1",
            ),
            ("http://a.org/x", "http://a.org/x", "/x", "http://a.org/x"),
        ] {
            let read = BaseUrl::parse(text).expect(text);
            assert_eq!(
                (
                    read.to_string().as_str(),
                    read.prefix(),
                    read.short().as_str()
                ),
                (url, prefix, short)
            );
            assert_eq!(read.at("/oai"), format!("{url}/oai"));
            assert_eq!(read.at("oai"), format!("{url}/oai"));
        }
        for bad in [
            "a.org",
            "https://",
            "https:///x",
            "ftp://a.org",
            "https://a.org?x",
            "https://a.org/?x",
            "https://a.org#x",
            "https://u@a.org",
            "https://u:p@a.org/",
            "https://a.org/a b",
            "https://a.org/a%20b",
            "https://a.org/../x",
            "https://a.org//x//y",
            "https://a.org:0",
            "https://https://a.org",
            "https://a.org/\u{e9}",
            "https://a\nb/",
            &format!("https://a.org/{}", "a".repeat(LONGEST_URL)),
        ] {
            assert!(BaseUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_below() {
        let url = BaseUrl::parse("https://a.org/x").expect("a URL");
        assert_eq!(url.below("/x"), Some("/"));
        assert_eq!(url.below("/x/"), Some("/"));
        assert_eq!(url.below("/x/y"), Some("/y"));
        assert_eq!(url.below("/xy"), None);
        assert_eq!(url.below("/"), None);
        assert_eq!(BaseUrl::of_address("a").below("/y"), Some("/y"));
    }
}
