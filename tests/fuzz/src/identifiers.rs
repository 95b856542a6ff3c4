//! Identifiers in both forms, aliases, prefixes, dates, persistent names.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use ibi::ibip::{check_prefix, check_suffix};
use ibi::persistent::{Identifier, PersistentKind, PersistentName, Reader};
use ibi::rep::check_component;
use ibi::{AliasPair, Ibi, Ibip, IbipPrefix, Rep, RepPrefix, Timestamp};

use super::{sentence, text, two_lines};

/// Two lines, each read as everything that an identifier or a part of one can be.
pub fn check(data: &[u8]) {
    let (first, second) = two_lines(data);
    let (Some(first), Some(second)) = (text(first), text(second)) else {
        return;
    };
    one(first);
    one(second);
    if let (Ok(first), Ok(second)) = (Ibi::parse(first), Ibi::parse(second)) {
        two(&first, &second);
    }
    if let (Ok(first), Ok(second)) = (
        Timestamp::parse_rfc3339(first),
        Timestamp::parse_rfc3339(second),
    ) {
        let by_number = first.as_nanoseconds().cmp(&second.as_nanoseconds());
        assert!(by_number.is_eq() || by_number == first.cmp(&second));
    }
}

fn one(text: &str) {
    match Ibi::parse(text) {
        Ok(ibi) => identifier(text, &ibi),
        Err(error) => sentence(&error),
    }
    match Timestamp::parse_rfc3339(text) {
        Ok(date) => timestamp(&date),
        Err(error) => sentence(&error),
    }
    match RepPrefix::parse(text) {
        Ok(prefix) => {
            assert_eq!(RepPrefix::parse(&prefix.to_string()).as_ref(), Ok(&prefix));
            assert_eq!(prefix.to_string(), prefix.canonical());
        }
        Err(error) => sentence(&error),
    }
    match RepPrefix::from_host(text, 8080) {
        Ok(prefix) => {
            let read = RepPrefix::parse(&prefix.to_string());
            assert_eq!(read.as_ref(), Ok(&prefix));
        }
        Err(error) => sentence(&error),
    }
    match IbipPrefix::parse(text) {
        Ok(prefix) => {
            assert!(prefix.to_string().eq_ignore_ascii_case(text));
            assert_eq!(IbipPrefix::parse(&prefix.to_string()), Ok(prefix));
            assert_eq!(check_prefix(text), Ok(()));
        }
        Err(error) => sentence(&error),
    }
    match AliasPair::parse(text) {
        Ok(alias) => assert_eq!(alias.as_str(), text),
        Err(error) => sentence(&error),
    }
    persistent_name(text);
    for level in 0..6 {
        if let Err(error) = check_component(level, text) {
            sentence(&error);
        }
    }
    if let Err(error) = check_suffix(text) {
        sentence(&error);
    }
    // Four good components make a rep, unless their date is not in the calendar.
    let parts: Vec<&str> = text.split('/').collect();
    let all_good = (1..)
        .zip(&parts)
        .all(|(level, part)| check_component(level, part).is_ok());
    if parts.len() == 4 && all_good {
        if let Err(error) = Rep::parse(text) {
            assert!(error.to_string().contains("does not exist"), "{error}");
        }
    } else {
        assert!(Rep::parse(text).is_err(), "{text:?}");
    }
}

fn identifier(text: &str, ibi: &Ibi) {
    assert_eq!(ibi.to_string(), text);
    let canonical = ibi.canonical();
    let is_folded = !matches!(ibi, Ibi::Ibip(ibip) if ibip.legacy().is_some());
    let others = [text.to_ascii_lowercase(), text.to_ascii_uppercase()];
    let others = others.into_iter().filter(|_| is_folded);
    for spelling in std::iter::once(canonical.clone()).chain(others) {
        let read = Ibi::parse(&spelling).expect("another spelling of an identifier");
        two(ibi, &read);
        assert_eq!(read, *ibi);
        assert_eq!(read.canonical(), canonical);
    }
    let shown = ibi.explain();
    assert_eq!(shown.canonical, canonical);
    let date = Timestamp::parse_rfc3339(&shown.date).expect("a date as it is explained");
    timestamp(&date);
    match ibi {
        Ibi::Rep(rep) => {
            assert_eq!(rep.components().join("/"), text);
            assert_eq!(format!("{}/{}", rep.prefix(), rep.suffix()), text);
            assert_eq!(rep.timestamp(), date);
            let prefix = RepPrefix::parse(rep.prefix()).expect("the prefix of a rep");
            let minted = Rep::mint(&prefix, &date);
            assert_eq!(Rep::parse(minted.as_str()).as_ref(), Ok(&minted));
            assert_eq!(minted.timestamp(), date);
            assert_eq!((minted.host(), minted.port()), (rep.host(), rep.port()));
            let made = RepPrefix::from_host(&rep.host(), rep.port()).expect("the host of a rep");
            assert_eq!(RepPrefix::parse(&made.to_string()).as_ref(), Ok(&made));
        }
        Ibi::Ibip(ibip) => {
            assert_eq!(format!("{}/{}", ibip.prefix(), ibip.suffix()), text);
            assert_eq!(ibip.timestamp(), date);
            assert_eq!(check_prefix(ibip.prefix()), Ok(()));
            let Some(prefix) = ibip.maker() else {
                assert_eq!(canonical, text);
                return;
            };
            assert_eq!(Some(prefix.address()), ibip.address());
            assert_eq!(Ibip::mint(prefix, &date).as_ref(), Ok(ibip));
            // One address, port and date have one spelling, up to case.
            assert_eq!(
                format!("{prefix}/{}", shown.ibip_suffix.expect("it has one")),
                canonical
            );
        }
    }
}

/// What a text names is named by its identifier alone, too, and behind the keywords of links.
fn persistent_name(text: &str) {
    for reader in [
        Reader::new(),
        Reader::new().literal(),
        Reader::new().with_aliases(),
    ] {
        let name = match reader.parse(text) {
            Ok(name) => name,
            Err(error) => {
                sentence(&error);
                continue;
            }
        };
        let alone = name.identifier.to_string();
        let read = match name.identifier {
            Identifier::Level(_) => PersistentName::parse(&format!("/rep-/{alone}")),
            _ => Reader::new().with_aliases().parse(&alone),
        };
        assert_eq!(
            read.expect("an identifier alone").identifier,
            name.identifier
        );
        if let Identifier::Ibi(ibi) = &name.identifier {
            assert_eq!(Ibi::parse(&alone).as_ref(), Ok(ibi));
            let linked = PersistentName::parse(&format!("http://a.b/rep/{alone}"));
            let linked = linked.expect("a link to an identifier");
            assert_eq!(
                (linked.kind, linked.identifier),
                (PersistentKind::Item, name.identifier)
            );
        }
    }
}

fn timestamp(date: &Timestamp) {
    assert_eq!(
        Timestamp::parse_rfc3339(&date.to_rfc3339()).as_ref(),
        Ok(date)
    );
    let rep = Rep::parse(&format!("a.b/c/{}", date.rep_suffix())).expect("the suffix of a rep");
    assert_eq!(rep.timestamp(), *date);
    match date.ibip_suffix() {
        Ok(suffix) => {
            let ibip = Ibip::parse(&format!("LK47B6W/{suffix}")).expect("the suffix of an IBIp");
            assert_eq!(ibip.timestamp(), *date);
        }
        Err(error) => sentence(&error),
    }
    let kept = Timestamp::from_nanoseconds(date.as_nanoseconds()).expect("a date that is held");
    assert!(kept <= *date);
    assert!(kept == *date || date.fraction().len() > 9);
}

/// Equality, order and hash agree with one another and with the canonical spelling.
fn two(first: &Ibi, second: &Ibi) {
    let same = first.canonical() == second.canonical();
    assert_eq!(first == second, same);
    assert_eq!(first.cmp(second).is_eq(), same);
    assert_eq!(first.cmp(second), second.cmp(first).reverse());
    if same {
        assert_eq!(hash(first), hash(second));
    }
}

fn hash(ibi: &Ibi) -> u64 {
    let mut hasher = DefaultHasher::new();
    ibi.hash(&mut hasher);
    hasher.finish()
}
