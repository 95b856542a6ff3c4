//! The Archive's own facts, `archive.ibi`: a list of pairs in plain text.

use std::net::IpAddr;
use std::num::NonZeroU16;

use super::ArchiveError;
use crate::formats::base_url::BaseUrl;
use crate::formats::copies::{COLLECTION, CollectionPolicy, CopyPolicy, decoded_words};
use crate::formats::item::{Names, Seal, Sidecar, period, period_text};
use crate::formats::search::Searched;
use crate::formats::tlog::note::{KeyKind, VerifierKey};
use crate::sql::index_url::IndexUrl;
use ibi::distributor::Granularity;
use ibi::message;
use ibi::pairs::{Pairs, Value, percent_encode};
use ibi::{Ibi, IbipPrefix, Rep, RepPrefix, Timestamp};

/// The identity of this Archive: the parts of its identifiers, and its service's identifier.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Host name, lower case.
    pub host: String,
    /// HTTP port of the host; 80 is left out of reps.
    pub port: u16,
    /// The address in its IBIps.
    pub ip: IpAddr,
    /// The port in its IBIps; 800 is left out.
    pub ip_port: u16,
    /// The smallest step between two dates.
    pub granularity: Granularity,
    /// The Archive service's own item.
    pub service: Names,
    /// The URL at which it is served, if an administrator has given one.
    pub url: Option<BaseUrl>,
    /// The resolver that persistent links name. None if they name the Archive itself.
    pub resolver: Option<BaseUrl>,
    /// The promise of the Archive to readers of its identifiers, if an administrator has made one.
    pub commitment: Option<String>,
    /// The address for mail about the Archive, if an administrator has named one.
    pub contact: Option<String>,
    /// The texts that searches read.
    pub searched: Searched,
    /// Whether what is in hidden directories of items is served by HTTP, and searched.
    pub serves_hidden: bool,
    /// Whether new items are drafts.
    pub drafts: bool,
    /// The seconds after which what is published is sealed.
    pub sealed_after: Option<i64>,
    /// Whether the store keeps a log of what is done.
    pub history: bool,
    /// The Archives that cosign its log, and their keys.
    pub witnesses: Vec<(BaseUrl, VerifierKey)>,
    /// The Archives with which it compares its items, and their keys.
    pub audits: Vec<(BaseUrl, VerifierKey)>,
    /// Where the Archive is; two Archives that say the same are in one place.
    pub place: Vec<String>,
    /// The threats to that place, in words of the administrator.
    pub threats: Vec<String>,
    /// The copies of each item that it wants.
    pub policy: CopyPolicy,
    /// Those of parts of the items.
    pub collections: Vec<CollectionPolicy>,
    /// Whether an audit mends originals, too.
    pub repairs_originals: bool,
    /// The index in a database server; None if it is a file in the store.
    pub index: Option<IndexUrl>,
}

impl Facts {
    /// The seal of what is published at an instant.
    pub(super) fn seal_after(&self, now: &Timestamp) -> Option<Seal> {
        let at = Timestamp::from_unix(now.seconds() + self.sealed_after?, 0);
        Some(Seal { at, digest: None })
    }

    /// The copies that the Archive wants of an item.
    #[must_use]
    pub fn policy_of(&self, names: &Names) -> CopyPolicy {
        CollectionPolicy::choose(&self.collections, names, self.policy)
    }

    /// Whether it wants anything of the copies of any item.
    #[must_use]
    pub fn has_policy(&self) -> bool {
        self.policy.is_any() || !self.collections.is_empty()
    }

    /// The prefix of the reps minted here.
    pub fn rep_prefix(&self) -> Result<RepPrefix, ArchiveError> {
        Ok(RepPrefix::from_host(&self.host, self.port)?)
    }

    /// The prefix of the IBIps minted here.
    pub fn ibip_prefix(&self) -> IbipPrefix {
        IbipPrefix::from_address(self.ip, self.ip_port)
    }

    /// The URL at which it is served: the one given, else that of its host and port.
    pub fn base_url(&self) -> BaseUrl {
        let url = self.url.clone();
        url.unwrap_or_else(|| BaseUrl::of_address(&self.address()))
    }

    /// The persistent URL of an item, by its IBIp if it has one, see ibi(7). It begins with the URL of the resolver
    /// that the administrator has named, else with that of the Archive.
    pub fn persistent_url(&self, names: &Names) -> String {
        let base = match &self.resolver {
            Some(resolver) => resolver.clone(),
            None => self.base_url(),
        };
        base.at(&match names.ibip() {
            Some(ibip) => ibip.to_string(),
            None => names.preferred(),
        })
    }

    /// The name of its log, and of the key that signs it.
    pub(super) fn log_origin(&self) -> String {
        format!("{}/log", self.address())
    }

    /// Host and port, as an address.
    pub(in crate::archive) fn address(&self) -> String {
        match self.port {
            80 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    /// Whether a name is in this Archive's own name space. The port of a rep may follow `.` or `@`,
    /// or be left out if it is 80: only one of these is minted, but all belong to this host.
    pub(super) fn is_own(&self, ibi: &Ibi) -> bool {
        match ibi {
            Ibi::Rep(rep) => {
                let host = self.host.trim_end_matches('.');
                rep.host().eq_ignore_ascii_case(host) && rep.port() == self.port
            }
            // No Archive of today makes identifiers in base 53. An IPv4-mapped IPv6 address is the same host as the IPv4 one.
            Ibi::Ibip(ibip) => ibip.maker().is_some_and(|maker| {
                maker.address().to_canonical() == self.ip.to_canonical()
                    && maker.port() == self.ip_port
            }),
        }
    }

    /// Whether a sidecar says that this Archive has the original.
    pub(super) fn claims_original(&self, sidecar: &Sidecar) -> bool {
        let service = sidecar.archive_service();
        service.is_some_and(|service| service.matches(&self.service))
    }

    /// Whether a rep is in this Archive's own name space.
    pub(super) fn is_own_rep(&self, rep: &Rep) -> Result<bool, ArchiveError> {
        let own = self.rep_prefix()?.canonical();
        Ok(rep
            .canonical()
            .strip_prefix(&own)
            .is_some_and(|rest| rest.starts_with('/')))
    }

    /// Whether both mint the same names: they differ in URLs, in what is searched, in whether new items are drafts, in when
    /// items are sealed, in places and copies and in where the index is at most.
    pub(in crate::archive) fn is_same_archive(&self, other: &Facts) -> bool {
        let minting = |facts: &Facts| {
            let facts = Facts {
                url: None,
                resolver: None,
                commitment: None,
                contact: None,
                searched: Searched::default(),
                serves_hidden: false,
                drafts: false,
                sealed_after: None,
                history: false,
                witnesses: Vec::new(),
                audits: Vec::new(),
                place: Vec::new(),
                threats: Vec::new(),
                policy: CopyPolicy::default(),
                collections: Vec::new(),
                repairs_originals: false,
                index: None,
                ..facts.clone()
            };
            facts.to_text()
        };
        minting(self) == minting(other)
    }

    /// Parses `archive.ibi`.
    pub fn parse(bytes: &[u8]) -> Result<Facts, ArchiveError> {
        let pairs = Pairs::parse(bytes)?;
        let word = |name: &str| match pairs.get(name) {
            Some(Value::Word(word)) => Ok(word.clone()),
            _ => Err(ArchiveError::Facts {
                what: message!("a word is missing after '{name}'", name),
            }),
        };
        let refuse = |name: &str, value: &str| ArchiveError::Facts {
            what: message!("'{value}' is not a valid value of '{name}'", value, name),
        };
        let number = |name: &str| {
            let text = word(name)?;
            let number = text.parse().ok().map(NonZeroU16::get);
            number.ok_or_else(|| refuse(name, &text))
        };
        let url = |name: &str| match pairs.get(name) {
            None => Ok(None),
            Some(_) => {
                let text = word(name)?;
                BaseUrl::parse(&text)
                    .map(Some)
                    .map_err(|error| ArchiveError::Facts {
                        what: message!("the value of '{name}': {error}", name, error),
                    })
            }
        };
        let commitment = pairs.get("commitment").map(|text| text.words().join(" "));
        let contact = match pairs.get("contact") {
            None => None,
            Some(_) => {
                let text = word("contact")?;
                if !is_email(&text) {
                    return Err(refuse("contact", &text));
                }
                Some(text)
            }
        };
        let searched = match pairs.get("search") {
            None => Searched::default(),
            Some(_) => {
                let text = word("search")?;
                Searched::from_name(&text).ok_or_else(|| refuse("search", &text))?
            }
        };
        let serves_hidden = match pairs.get("serve") {
            None => false,
            Some(value) => match value.words().join(" ").as_str() {
                "hidden yes" => true,
                "hidden no" => false,
                other => return Err(refuse("serve", other)),
            },
        };
        let repairs_originals = match pairs.get("repair") {
            None => false,
            Some(value) => match value.words().join(" ").as_str() {
                "original yes" => true,
                "original no" => false,
                other => return Err(refuse("repair", other)),
            },
        };
        let drafts = match pairs.get("drafts") {
            None => false,
            Some(_) => match word("drafts")?.as_str() {
                "yes" => true,
                "no" => false,
                other => return Err(refuse("drafts", other)),
            },
        };
        let history = match pairs.get("history") {
            None => false,
            Some(_) => match word("history")?.as_str() {
                "yes" => true,
                "no" => false,
                other => return Err(refuse("history", other)),
            },
        };
        let archives = |name: &str, kind: KeyKind| match pairs.get(name) {
            None => Ok(Vec::new()),
            Some(value) => {
                let refused = || refuse(name, &value.words().join(" "));
                let archive = |pair: &[String]| {
                    let [url, key] = pair else { return None };
                    let key = VerifierKey::parse(key)
                        .ok()
                        .filter(|key| key.kind() == kind)?;
                    Some((BaseUrl::parse(url).ok()?, key))
                };
                let archives = value.words().chunks(2).map(archive).collect();
                Option::<Vec<_>>::ok_or_else(archives, refused)
            }
        };
        let sealed_after = match pairs.get("seal") {
            None => None,
            Some(_) => {
                let text = word("seal")?;
                Some(period(&text).ok_or_else(|| refuse("seal", &text))?)
            }
        };
        let words = |name: &str| pairs.get(name).map(decoded_words).unwrap_or_default();
        let policy = CopyPolicy::of(&pairs).map_err(|name| {
            let value = pairs.get(name).map(|it| it.words().join(" "));
            let value = value.unwrap_or_default();
            let what = match name {
                "proved" => message!(
                    "'{value}' is not a valid value of '{name}': it is a period such as 90d",
                    value,
                    name
                ),
                _ => message!(
                    "'{value}' is not a valid value of '{name}': it is a number from 1 to 100, and not more than 'copies'",
                    value,
                    name
                ),
            };
            ArchiveError::Facts { what }
        })?;
        let collections = CollectionPolicy::all_of(&pairs, policy);
        let collections = collections.map_err(|value| ArchiveError::Facts {
            what: message!(
                "'{value}' is not a valid value of '{name}': it is the beginning of identifiers and pairs of 'copies', 'minimum', 'places' and 'proved'",
                value,
                name = COLLECTION
            ),
        })?;
        let index = match pairs.get("index") {
            None => None,
            Some(_) => {
                Some(
                    IndexUrl::parse(&word("index")?).map_err(|error| ArchiveError::Facts {
                        what: message!("the value of '{name}': {error}", name = "index", error),
                    })?,
                )
            }
        };
        let ip = word("ip")?;
        let granularity = word("granularity")?;
        let service = match pairs.get("ibi.archiveservice") {
            Some(value) => Names::from_value(value).ok(),
            None => None,
        };
        let facts = Facts {
            host: word("host")?,
            port: number("port")?,
            ip: ip.parse().map_err(|_| refuse("ip", &ip))?,
            ip_port: number("ip.port")?,
            granularity: Granularity::parse(&granularity)
                .map_err(|_| refuse("granularity", &granularity))?,
            service: service.ok_or_else(|| ArchiveError::Facts {
                what: message!("an identifier is missing after 'ibi.archiveservice'"),
            })?,
            url: url("url")?,
            resolver: url("resolver")?,
            commitment,
            contact,
            searched,
            serves_hidden,
            drafts,
            sealed_after,
            history,
            witnesses: archives("witness", KeyKind::Cosignature)?,
            audits: archives("audit", KeyKind::Ed25519)?,
            place: words("place"),
            threats: words("threat"),
            policy,
            collections,
            repairs_originals,
            index,
        };
        // A host must be valid as the prefix of a rep.
        facts
            .rep_prefix()
            .map_err(|_| refuse("host", &facts.host))?;
        Ok(facts)
    }

    /// The text of `archive.ibi`.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "host {}\nport {}\nip {}\nip.port {}\ngranularity {}\nibi.archiveservice {}\narchiveaddress {}\n",
            self.host,
            self.port,
            self.ip,
            self.ip_port,
            self.granularity,
            self.service,
            self.address()
        );
        for (name, url) in [("url", &self.url), ("resolver", &self.resolver)] {
            if let Some(url) = url {
                text.push_str(&format!("{name} {url}\n"));
            }
        }
        if let Some(commitment) = &self.commitment {
            text.push_str(&format!("commitment {{{commitment}}}\n"));
        }
        if let Some(contact) = &self.contact {
            text.push_str(&format!("contact {contact}\n"));
        }
        if self.searched != Searched::default() {
            text.push_str(&format!("search {}\n", self.searched.name()));
        }
        if self.serves_hidden {
            text.push_str("serve {hidden yes}\n");
        }
        if self.drafts {
            text.push_str("drafts yes\n");
        }
        if let Some(seconds) = self.sealed_after {
            text.push_str(&format!("seal {}\n", period_text(seconds)));
        }
        if self.history {
            text.push_str("history yes\n");
        }
        for (name, archives) in [("witness", &self.witnesses), ("audit", &self.audits)] {
            if !archives.is_empty() {
                let archive = |(url, key): &(BaseUrl, VerifierKey)| format!("{url} {key}");
                let archives: Vec<String> = archives.iter().map(archive).collect();
                text.push_str(&format!("{name} {{{}}}\n", archives.join(" ")));
            }
        }
        for (name, words) in [("place", &self.place), ("threat", &self.threats)] {
            if !words.is_empty() {
                let words: Vec<String> = words.iter().map(percent_encode).collect();
                text.push_str(&format!("{name} {{{}}}\n", words.join(" ")));
            }
        }
        text.push_str(&self.policy.to_text());
        text.extend(self.collections.iter().map(CollectionPolicy::to_text));
        if self.repairs_originals {
            text.push_str("repair {original yes}\n");
        }
        if let Some(index) = &self.index {
            text.push_str(&format!("index {index}\n"));
        }
        text
    }
}

/// Whether a text is an e-mail address.
#[must_use]
pub fn is_email(text: &str) -> bool {
    let is_host = |host: &str| host.contains('.') && !host.split('.').any(str::is_empty);
    let is_word = text.bytes().all(|byte| byte.is_ascii_graphic());
    let parts = text.split_once('@');
    is_word && parts.is_some_and(|(name, host)| !name.is_empty() && is_host(host))
}
