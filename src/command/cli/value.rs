//! Values of options, and why one is refused.

use std::ffi::OsStr;
use std::fmt;

use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser,
};
use clap::error::{ContextKind, ContextValue};
use ibi::message;
use ibi::message::{Localize, Message};

use crate::archive::backup::Keep;
use crate::archive::is_email;
use crate::archive::scrub::{MOST_PARTS, ScrubPart};
use crate::formats::address::Address;
use crate::formats::base_url::BaseUrl;
use crate::formats::citation::style_names;
use crate::formats::search::Searched;
use crate::resolver::registry::RegistryPlace;
use crate::resolver::service::PeerResolver;
use crate::sql::index_url::{IndexPlace, IndexUrl, NamedBy, without_password};

/// The reason why a value is refused. [`super::refusal`] prints it in the chosen language.
#[derive(Debug)]
pub struct Invalid(Message);

impl Localize for Invalid {
    fn message(&self) -> Message {
        self.0.clone()
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Invalid {}

/// The style of a citation: any text; completion offers the names of styles.
#[derive(Clone, Copy, Debug)]
pub(super) struct StyleParser;

impl TypedValueParser for StyleParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(style_names().map(PossibleValue::new)))
    }
}

/// Reads what searches read, by its name.
pub(super) fn searched() -> impl TypedValueParser<Value = Searched> {
    let names = PossibleValuesParser::new(Searched::ALL.map(Searched::name));
    names.map(|name| Searched::from_name(&name).unwrap_or_default())
}

/// The URL of a service.
pub(super) fn base_url(text: &str) -> Result<BaseUrl, Invalid> {
    BaseUrl::parse(text).map_err(|error| Invalid(error.message()))
}

/// Reads a value as another parser, and hides a password in a refused one, which is repeated in the message.
#[derive(Clone, Debug)]
pub(super) struct HidingPassword<P>(pub(super) P);

impl<P: TypedValueParser> TypedValueParser for HidingPassword<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        let read = self.0.parse_ref(command, argument, value);
        read.map_err(|mut error| {
            if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
                let hidden = ContextValue::String(without_password(value));
                error.insert(ContextKind::InvalidValue, hidden);
            }
            error
        })
    }
}

/// The URL of an index in a database server.
pub(super) fn index_url(text: &str) -> Result<IndexUrl, Invalid> {
    let url = IndexUrl::parse(text).map_err(|error| Invalid(error.message()))?;
    Ok(url.named_by(NamedBy::Caller))
}

/// Reads the place of an index: a database server, or a file of the store.
pub(super) fn index_place(text: &str) -> Result<IndexPlace, Invalid> {
    match text {
        "file" => Ok(IndexPlace::File),
        url => index_url(url).map(IndexPlace::Server),
    }
}

/// Reads the place of the database of a resolver: a file, or a database of a server.
pub(super) fn registry_place() -> impl TypedValueParser<Value = RegistryPlace> {
    HidingPassword(
        OsStringValueParser::new()
            .try_map(|text| RegistryPlace::parse(&text).map_err(|error| Invalid(error.message()))),
    )
}

/// A peer of a resolver: its URL, `=` and its public key.
pub(super) fn peer(text: &str) -> Result<PeerResolver, Invalid> {
    PeerResolver::parse(text).map_err(|error| Invalid(error.message()))
}

/// `host` or `host:port`. Port 0 stands for the one that is taken.
pub(super) fn address(text: &str) -> Result<String, Invalid> {
    match Address::parse(text.strip_suffix(":0").unwrap_or(text)) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(Invalid(error.message())),
    }
}

/// A port of TCP.
pub(super) fn port(text: &str) -> Result<u16, Invalid> {
    number(text, 1, u16::MAX)
}

/// A year of identifiers.
pub(super) fn year(text: &str) -> Result<u32, Invalid> {
    number(text, 0, u32::MAX)
}

/// A number from the first to the last.
fn number<T: TryFrom<i64> + PartialOrd + Into<u64>>(
    text: &str,
    first: T,
    last: T,
) -> Result<T, Invalid> {
    let number: i64 = text
        .parse()
        .map_err(|error: std::num::ParseIntError| Invalid(Message::foreign(error.to_string())))?;
    match T::try_from(number) {
        Ok(valid) if first <= valid && valid <= last => Ok(valid),
        _ => {
            let (first, last): (u64, u64) = (first.into(), last.into());
            let refused = message!("{number} is not in {first}..={last}", number, first, last);
            Err(Invalid(refused))
        }
    }
}

/// A number of bytes, such as `50M`; at least 1.
pub fn bytes(text: &str) -> Result<u64, Invalid> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|number| *number > 0)
        .ok_or_else(|| Invalid(message!("not a number of bytes, such as 500K or 50M")))
}

/// The most items that are minted by one command.
pub const MOST_MINTS: usize = 10_000;

/// A number of items to be minted.
pub fn count_of_mints(text: &str) -> Result<usize, Invalid> {
    let count: Option<usize> = text.parse().ok();
    count
        .filter(|count| (1..=MOST_MINTS).contains(count))
        .ok_or_else(|| {
            Invalid(message!(
                "not a number from 1 to {most}; run the command again for more",
                most = MOST_MINTS
            ))
        })
}

/// A part of a store, such as `2/3`.
pub fn part(text: &str) -> Result<ScrubPart, Invalid> {
    let numbers = text.split_once('/');
    let part = numbers
        .and_then(|(number, count)| ScrubPart::new(number.parse().ok()?, count.parse().ok()?));
    part.ok_or_else(|| {
        Invalid(message!(
            "not a part of a store, such as 2/3; {most} parts at most",
            most = MOST_PARTS
        ))
    })
}

/// Reads which generations of a backup are kept.
pub(super) fn keep(text: &str) -> Result<Keep, Invalid> {
    Keep::parse(text).ok_or_else(|| {
        Invalid(message!(
            "write numbers of days, weeks, months and years, such as 7d,4w,12m,3y"
        ))
    })
}

/// A number of bytes, as the options have it.
pub fn byte_count(text: &str) -> Option<u64> {
    bytes(text).ok()
}

/// A point of the log of a store.
#[derive(Clone, Debug)]
pub enum LogPoint {
    /// The event with this number.
    Number(u64),
    /// The first event since an instant.
    Since(ibi::Timestamp),
}

/// The number of an event, or a day or instant.
pub(super) fn log_point(text: &str) -> Result<LogPoint, Invalid> {
    match text.parse() {
        Ok(number) => Ok(LogPoint::Number(number)),
        Err(_) => instant(text).map(LogPoint::Since),
    }
}

/// A day, whose begin in UTC is meant, or an instant.
pub(super) fn instant(text: &str) -> Result<ibi::Timestamp, Invalid> {
    crate::formats::item::instant(text).map_err(|_| {
        Invalid(message!(
            "write a day as 2027-01-31, or an instant in UTC as 2027-01-31T12:00:00Z"
        ))
    })
}

/// A period, in seconds.
pub(super) fn period(text: &str) -> Result<i64, Invalid> {
    crate::formats::item::period(text).ok_or_else(|| {
        Invalid(message!(
            "write a period as 30d: a number from 1 on, and d, h, m or s"
        ))
    })
}

/// An e-mail address.
pub(super) fn email(text: &str) -> Result<String, Invalid> {
    if is_email(text) {
        Ok(text.to_owned())
    } else {
        Err(Invalid(message!("write it as name@host")))
    }
}

/// The host whose reps begin as those of an e-mail address: `name@host.org` as `host.org/name`.
pub(super) fn host_of_email(address: &str) -> Result<String, Invalid> {
    let address = email(address)?;
    let (name, host) = address.split_once('@').unwrap_or_default();
    if name.contains('.') {
        return Err(Invalid(message!(
            "the part before @ has a dot, which a rep cannot hold; choose another address or --host"
        )));
    }
    Ok(format!("{name}.{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses<T: fmt::Debug>(value: Result<T, Invalid>, expected: &str) {
        assert_eq!(value.expect_err("it is refused").to_string(), expected);
    }

    #[test]
    fn values_are_read_and_refused() {
        assert_eq!(port("80").ok(), Some(80));
        assert_eq!(port("65535").ok(), Some(65535));
        refuses(port("65536"), "65536 is not in 1..=65535");
        refuses(port("0"), "0 is not in 1..=65535");
        refuses(port("-1"), "-1 is not in 1..=65535");
        refuses(port("x"), "invalid digit found in string");
        refuses(port(""), "cannot parse integer from empty string");
        assert_eq!(year("2026").ok(), Some(2026));
        refuses(year("4294967296"), "4294967296 is not in 0..=4294967295");
        assert_eq!(bytes("2k").ok(), Some(2048));
        assert_eq!(bytes("1").ok(), Some(1));
        for text in ["", "0", "K", "5x", "99999999999G", "é"] {
            refuses(bytes(text), "not a number of bytes, such as 500K or 50M");
        }
        assert_eq!(email("a@b.org").ok().as_deref(), Some("a@b.org"));
        assert_eq!(host_of_email("a@b.org").ok().as_deref(), Some("a.b.org"));
        refuses(
            host_of_email("a.c@b.org"),
            "the part before @ has a dot, which a rep cannot hold; choose another address or --host",
        );
        for text in ["a", "@b.org", "a@b", "a@b.", "a b@c.org"] {
            refuses(email(text), "write it as name@host");
        }
    }
}
