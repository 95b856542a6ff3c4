//! The messages by which an Archive asks to be included or excluded (ibi-resolution(7), "Inclusion"): reading
//! and writing.

use std::net::IpAddr;

use super::{ArchiveKey, KeyError};
use ibi::ibip::{check_prefix, prefix_key};
use ibi::message::{Localize, Message};
use ibi::rep::{check_component, component_key};
use ibi::{Ibi, Quoted};
use ibi::{display_message, message};
use ibifs_formats::address::{Address, AddressError};
use ibifs_formats::base_url::{BaseUrl, BaseUrlError};
use ibifs_formats::item::Names;
use ibifs_formats::query::{Query, encoded};

/// The pair with the URL of the Archive, where that is not `http://` and its address.
const URL: &str = "archiveurl";
/// The pair with the prefixes of items that the Archive holds, separated by spaces.
const PREFIXES: &str = "archiveprefixes";
/// The header by which a resolver says which other pairs it reads: one of the documents may refuse a message that has them.
pub const PAIRS_READ: &str = "ibifs-pairs-read";
/// Its value.
pub const READ_HERE: &str = PREFIXES;
/// The longest text in a message, in bytes.
const LONGEST_TEXT: usize = 255;
/// The most prefixes that an Archive announces.
pub const MOST_ANNOUNCED: usize = 64;
/// The longest prefix, in bytes.
const LONGEST_PREFIX: usize = 128;

/// The facts that an Archive states of itself when it asks to be included or excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// The URL at which it is reached.
    pub url: BaseUrl,
    /// The identifier of its service.
    pub service: Names,
    /// The IP address of its machine.
    pub ip: IpAddr,
    /// The version of its software.
    pub version: String,
    /// The e-mail address of its administrator.
    pub email: String,
    /// Its registration key.
    pub key: ArchiveKey,
    /// The prefixes of items that it announces to hold. A resolver asks it first for these, and believes nothing
    /// else of it.
    pub prefixes: Vec<String>,
}

/// The reason why a message is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InclusionError {
    /// A pair is missing.
    Missing(&'static str),
    /// Not a `host` or `host:port`.
    Address(AddressError),
    /// Not the URL of a service.
    Url(BaseUrlError),
    /// Not an identifier.
    Service(String),
    /// Not an IP address.
    Ip(String),
    /// A protocol other than HTTP.
    Protocol(String),
    /// A text that is empty, too long, or has characters outside printable ASCII.
    Text(&'static str),
    /// Not a registration key.
    Key,
}

impl Localize for InclusionError {
    fn message(&self) -> Message {
        match self {
            InclusionError::Missing(name) => message!("the query has no {name}", name),
            InclusionError::Address(error) => error.message(),
            InclusionError::Url(error) => error.message(),
            InclusionError::Service(text) => {
                message!(
                    "archiveserviceibi {text} is not an identifier",
                    text = Quoted(text)
                )
            }
            InclusionError::Ip(text) => {
                message!("archiveip {text} is not an IP address", text = Quoted(text))
            }
            InclusionError::Protocol(text) => {
                message!(
                    "archiveprotocol {text} is not known here; use HTTP",
                    text = Quoted(text)
                )
            }
            InclusionError::Text(name) => message!(
                "{name} is 1 to {longest_text} printable ASCII characters",
                name,
                longest_text = LONGEST_TEXT
            ),
            InclusionError::Key => KeyError.message(),
        }
    }
}

display_message!(InclusionError);

impl std::error::Error for InclusionError {}

impl Inclusion {
    /// Reads the pairs of the message.
    ///
    /// # Errors A pair is missing or malformed.
    pub fn of(query: &Query) -> Result<Inclusion, InclusionError> {
        let get = |name: &'static str| query.get(name).ok_or(InclusionError::Missing(name));
        let text = |name: &'static str| {
            let text = get(name)?;
            let is_good = !text.is_empty()
                && text.len() <= LONGEST_TEXT
                && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            let good = is_good.then(|| text.to_owned());
            good.ok_or(InclusionError::Text(name))
        };
        let service = get("archiveserviceibi")?;
        let ip = get("archiveip")?;
        match get("archiveprotocol")? {
            "HTTP" => {}
            other => return Err(InclusionError::Protocol(other.to_owned())),
        }
        let address = Address::parse(get("archiveaddress")?).map_err(InclusionError::Address)?;
        let url = match query.get(URL) {
            Some(url) => BaseUrl::parse(url).map_err(InclusionError::Url)?,
            None => BaseUrl::of_address(address.as_str()),
        };
        Ok(Inclusion {
            url,
            service: Ibi::parse(service)
                .map(Names::from)
                .map_err(|_| InclusionError::Service(service.to_owned()))?,
            ip: ip.parse().map_err(|_| InclusionError::Ip(ip.to_owned()))?,
            version: text("archiveplatformversion")?,
            email: text("archiveadmemailaddress")?,
            key: ArchiveKey::parse(get("registrationkey")?).map_err(|_| InclusionError::Key)?,
            prefixes: prefixes(query.get(PREFIXES).unwrap_or_default()),
        })
    }

    /// The query of the message with this subject, with the pairs in the order of ibi-resolution(7),
    /// "Inclusion". Two of ibifs, which others pass over, have the URL where the address does not say all, and the
    /// prefixes.
    #[must_use]
    pub fn query(&self, subject: &str) -> String {
        let pairs = [
            ("servicesubject", subject.to_owned()),
            ("archiveaddress", self.url.address().to_owned()),
            ("archiveserviceibi", self.service.preferred()),
            ("archiveip", self.ip.to_string()),
            ("archiveprotocol", "HTTP".to_owned()),
            ("archiveplatformversion", self.version.clone()),
            ("archiveadmemailaddress", self.email.clone()),
            ("registrationkey", self.key.to_string()),
        ];
        let url = self.url.to_string();
        let url = (self.url.short() == url).then_some((URL, url));
        let is_announced = subject == "inclusionRequest" && !self.prefixes.is_empty();
        let prefixes = is_announced.then(|| (PREFIXES, self.prefixes.join(" ")));
        let pairs = pairs.into_iter().chain(url).chain(prefixes);
        let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(value.as_bytes())));
        pairs.collect::<Vec<_>>().join("&")
    }
}

/// Reads prefixes. Those that are not valid, and those beyond the limit, are passed over: they are no more than a
/// hint.
pub(super) fn prefixes(text: &str) -> Vec<String> {
    let key = |word: &str| match word.split_once('/') {
        Some((subdomain, word)) => {
            check_component(1, subdomain).ok()?;
            check_component(2, word).ok()?;
            Some(format!(
                "{}/{}",
                component_key(subdomain),
                component_key(word)
            ))
        }
        None => check_prefix(word).ok().map(|()| prefix_key(word)),
    };
    let words = text.split(' ').filter(|word| word.len() <= LONGEST_PREFIX);
    words.filter_map(key).take(MOST_ANNOUNCED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example of the message from the documents of the protocol.
    const EXAMPLE: &str = "servicesubject=inclusionRequest&archiveaddress=mtc-m21.sid.inpe.br\
        &archiveserviceibi=sid.inpe.br/mtc-m21/2012/06.05.15.34.39&archiveip=150.163.34.239\
        &archiveprotocol=HTTP&archiveplatformversion=2014:11.09.02.16.15\
        &archiveadmemailaddress=banon@dpi.inpe.br&registrationkey=1234567890";

    #[test]
    fn the_example_of_the_documents_is_read_and_written() {
        let query = Query::parse(EXAMPLE).expect("a query");
        let inclusion = Inclusion::of(&query).expect("an inclusion");
        assert_eq!(inclusion.url.short(), "mtc-m21.sid.inpe.br");
        assert_eq!(inclusion.query("inclusionRequest"), EXAMPLE);
        let other = EXAMPLE.replace("inclusionRequest", "exclusionRequest");
        assert_eq!(inclusion.query("exclusionRequest"), other);
        let by_tls = format!("{EXAMPLE}&archiveurl=https://mtc-m21.sid.inpe.br/x");
        let query = Query::parse(&by_tls).expect("a query");
        let inclusion = Inclusion::of(&query).expect("an inclusion");
        assert_eq!(inclusion.url.to_string(), "https://mtc-m21.sid.inpe.br/x");
        assert_eq!(inclusion.query("inclusionRequest"), by_tls);
    }

    #[test]
    fn prefixes_are_a_hint() {
        let more = "&archiveprefixes=SID.inpe.br/Mtc-m18@80%208jmkd3mgp8w%20x%20a/b/c%20%20../..";
        let query = Query::parse(&format!("{EXAMPLE}{more}")).expect("a query");
        let inclusion = Inclusion::of(&query).expect("an inclusion");
        assert_eq!(
            inclusion.prefixes,
            ["sid.inpe.br/mtc-m18@80", "8JMKD3MGP8W"]
        );
        let announced = "&archiveprefixes=sid.inpe.br/mtc-m18@80%208JMKD3MGP8W";
        let written = inclusion.query("inclusionRequest");
        assert_eq!(written, format!("{EXAMPLE}{announced}"));
        assert!(!inclusion.query("exclusionRequest").contains("prefixes"));
        let many: Vec<String> = (0..1000).map(|it| format!("a.org/p{it}")).collect();
        assert_eq!(prefixes(&many.join(" ")).len(), MOST_ANNOUNCED);
        assert!(prefixes(&format!("a.org/{}", "p".repeat(LONGEST_PREFIX))).is_empty());
    }

    #[track_caller]
    fn bad(from: &str, to: &str, sentence: &str) {
        let text = EXAMPLE.replace(from, to);
        let query = Query::parse(&text).expect("a query");
        let error = Inclusion::of(&query).expect_err(to);
        assert_eq!(error.to_string(), sentence);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn messages_that_are_refused() {
        bad("&archiveip=150.163.34.239", "", "the query has no archiveip");
        bad("150.163.34.239", "150.163", "archiveip '150.163' is not an IP address");
        bad("=HTTP", "=USP", "archiveprotocol 'USP' is not known here; use HTTP");
        bad("mtc-m21.sid.inpe.br&", "http://x&", "'http://x' is not an archiveaddress; write host or host:port, without http://");
        bad("&archiveip", "&archiveurl=x&archiveip", "'x' is not the URL of a service; write https://host, https://host:port or https://host/path, without a query");
        bad("sid.inpe.br/mtc-m21/2012/06.05.15.34.39", "x", "archiveserviceibi 'x' is not an identifier");
        bad("banon@dpi.inpe.br", "", "archiveadmemailaddress is 1 to 255 printable ASCII characters");
        bad("banon@dpi.inpe.br", "a%0d%0ab", "archiveadmemailaddress is 1 to 255 printable ASCII characters");
        bad("1234567890", "12345", &KeyError.to_string());
    }
}
