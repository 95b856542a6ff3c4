//! The list of federated Archives, `federatedArchives.txt` (ibi-resolution(7), "Federated Archives"): one
//! Archive a line, as a list of pairs; and its signature, by which peers know it.

mod key;
mod signed;

use std::collections::HashMap;

use ibi::message::{Localize, Message};
use ibi::pairs::{Pairs, PairsError, Value};
use ibi::{Ibip, Rep, display_message, message};

use super::address::{Address, AddressError};
use super::base_url::{BaseUrl, BaseUrlError};
use super::item::{Names, NamesError};

pub use key::{PublicKey, PublicKeyError, SigningKey};
pub use signed::{SignedList, SignedListError, signature_line};

/// The path at which a resolver publishes its list, without the slash.
pub const PATH: &str = "federatedArchives.txt";
/// The longest list, in bytes.
pub const LONGEST_LIST: usize = 1 << 20;
/// The most lines of a list, comments and empty lines among them.
pub const MOST_LINES: usize = 8192;
/// The most Archives of a list.
pub const MOST_ARCHIVES: usize = 4096;
/// The longest line, in bytes.
const LONGEST_LINE: usize = 1024;

/// The pair with the address of an Archive.
const ADDRESS: &str = "archiveaddress";
/// The pair with the URL of an Archive, where that is not `http://` and its address. Other resolvers pass over it.
const URL: &str = "archiveurl";
/// The pair with the identifier of an Archive's service.
const SERVICE: &str = "ibi.archiveservice";

/// An Archive of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederatedArchive {
    /// The URL at which it is reached.
    pub url: BaseUrl,
    /// The identifier of its service.
    pub service: Names,
}

/// The reason why a list is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationError {
    /// The line, counted from 1. None for a fault of the whole list.
    line: Option<usize>,
    fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Long,
    Lines,
    Archives,
    LongLine,
    Pairs(PairsError),
    Missing(&'static str),
    Twice(&'static str),
    Address(AddressError),
    Url(BaseUrlError),
    Service(NamesError),
    NotPublic(String),
    Repeated(usize),
}

impl Localize for Fault {
    fn message(&self) -> Message {
        match self {
            Fault::Long => message!("the list has more than {most} bytes", most = LONGEST_LIST),
            Fault::Lines => message!("the list has more than {most} lines", most = MOST_LINES),
            Fault::Archives => message!(
                "the list has more than {most} Archives",
                most = MOST_ARCHIVES
            ),
            Fault::LongLine => message!("the line has more than {most} bytes", most = LONGEST_LINE),
            Fault::Pairs(error) => error.message(),
            Fault::Missing(name) => message!("the pair {name} is missing", name),
            Fault::Twice(name) => message!("the pair {name} is there twice", name),
            Fault::Address(error) => error.message(),
            Fault::Url(error) => error.message(),
            Fault::Service(error) => error.message(),
            Fault::NotPublic(address) => message!("{address} is not a public address", address),
            Fault::Repeated(line) => {
                message!("it has the same address or service as line {line}", line)
            }
        }
    }
}

impl Localize for FederationError {
    fn message(&self) -> Message {
        let what = self.fault.message();
        match self.line {
            Some(line) => message!("line {line}: {what}", line, what),
            None => what,
        }
    }
}

display_message!(FederationError);

impl std::error::Error for FederationError {}

/// The addresses that a list may have: all, or public ones, unlike 10.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// All addresses.
    All,
    /// Addresses of the public Internet, and names.
    Public,
}

/// Reads a list. An empty line, and one that begins with `#`, says nothing.
///
/// # Errors
/// The list is too long, or a line is not an Archive, has an address that is not admitted, or repeats the
/// address or the service of an earlier one. No part of such a list is used.
pub fn parse(bytes: &[u8], admitted: Admitted) -> Result<Vec<FederatedArchive>, FederationError> {
    let whole = |fault| FederationError { line: None, fault };
    if bytes.len() > LONGEST_LIST {
        return Err(whole(Fault::Long));
    }
    let mut found: Vec<FederatedArchive> = Vec::new();
    // The lines of services and places, by their names.
    let mut taken: HashMap<String, usize> = HashMap::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = at + 1;
        let refused = |fault| FederationError {
            line: Some(number),
            fault,
        };
        if at >= MOST_LINES && !line.is_empty() {
            return Err(whole(Fault::Lines));
        }
        if line.len() > LONGEST_LINE {
            return Err(refused(Fault::LongLine));
        }
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let archive = archive(line).map_err(refused)?;
        if admitted == Admitted::Public && !archive.url.may_be_public() {
            return Err(refused(Fault::NotPublic(archive.url.address().to_owned())));
        }
        let (rep, ibip) = (archive.service.rep(), archive.service.ibip());
        let names = rep.map(Rep::canonical).into_iter();
        let names = names.chain(ibip.map(Ibip::canonical));
        for name in names.chain([format!("//{}", archive.url.place())]) {
            if let Some(earlier) = taken.insert(name, number) {
                return Err(refused(Fault::Repeated(earlier)));
            }
        }
        if found.len() >= MOST_ARCHIVES {
            return Err(whole(Fault::Archives));
        }
        found.push(archive);
    }
    Ok(found)
}

/// Reads a line. Pairs of other names say nothing here.
fn archive(line: &[u8]) -> Result<FederatedArchive, Fault> {
    let pairs = Pairs::parse(line).map_err(Fault::Pairs)?;
    let one = |name: &'static str| {
        let mut values = pairs.iter().filter(|(found, _)| *found == name);
        let value = values.next().ok_or(Fault::Missing(name))?.1;
        match values.next() {
            None => Ok(value),
            Some(_) => Err(Fault::Twice(name)),
        }
    };
    let address = Address::parse(&one(ADDRESS)?.to_string()).map_err(Fault::Address)?;
    let url = match one(URL) {
        Ok(url) => BaseUrl::parse(&url.to_string()).map_err(Fault::Url)?,
        Err(Fault::Missing(_)) => BaseUrl::of_address(address.as_str()),
        Err(fault) => return Err(fault),
    };
    Ok(FederatedArchive {
        url,
        service: Names::from_value(one(SERVICE)?).map_err(Fault::Service)?,
    })
}

/// Writes a list.
#[must_use]
pub fn written<'a>(archives: impl IntoIterator<Item = &'a FederatedArchive>) -> String {
    let lines = archives.into_iter().map(|archive| {
        let mut pairs = Pairs::default();
        pairs.set(ADDRESS, Value::Word(archive.url.address().to_owned()));
        let url = archive.url.to_string();
        if archive.url.short() == url {
            pairs.set(URL, Value::Word(url));
        }
        pairs.set(SERVICE, archive.service.to_value());
        let line = pairs.to_string();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        format!("{}\n", words.join(" "))
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
