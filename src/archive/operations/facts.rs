//! The Archive's own facts, `archive.ibi`: a list of pairs in plain text.

use std::net::IpAddr;
use std::num::NonZeroU16;

use super::ArchiveError;
use crate::formats::item::Names;
use ibi::distributor::Granularity;
use ibi::message;
use ibi::pairs::{Pairs, Value};
use ibi::{IbipPrefix, RepPrefix};

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
}

impl Facts {
    /// The prefix of the reps minted here.
    pub fn rep_prefix(&self) -> Result<RepPrefix, ArchiveError> {
        Ok(RepPrefix::from_host(&self.host, self.port)?)
    }

    /// The prefix of the IBIps minted here.
    pub fn ibip_prefix(&self) -> IbipPrefix {
        IbipPrefix::from_address(self.ip, self.ip_port)
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
        };
        // A host must be valid as the prefix of a rep.
        facts
            .rep_prefix()
            .map_err(|_| refuse("host", &facts.host))?;
        Ok(facts)
    }

    /// The text of `archive.ibi`.
    pub fn to_text(&self) -> String {
        let address = match self.port {
            80 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        };
        format!(
            "host {}\nport {}\nip {}\nip.port {}\ngranularity {}\nibi.archiveservice {}\narchiveaddress {address}\n",
            self.host, self.port, self.ip, self.ip_port, self.granularity, self.service
        )
    }
}
