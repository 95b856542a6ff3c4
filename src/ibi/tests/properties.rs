//! Properties of all values, beside the tables of cases in the modules: what is printed reads back
//! equal, spellings of one identifier are equal, the distributor never repeats a date, and a list
//! of pairs preserves what is not changed.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use ibi::distributor::{Granularity, TemporalDistributor};
use ibi::pairs::{Pairs, Value, percent_decode, percent_encode};
use ibi::persistent::{PersistentKind, PersistentName, Reader};
use ibi::relation::{Modifier, Request};
use ibi::{Ibi, Ibip, IbipPrefix, Rep, RepPrefix, Timestamp};
use proptest::prelude::*;

/// Any date that both forms can carry, with up to nine digits of a second.
fn date() -> impl Strategy<Value = Timestamp> {
    (807_235_200i64..8_210_266_876_799, 0u32..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| Timestamp::from_unix(seconds, nanoseconds))
}

fn host() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]([a-zA-Z0-9-]{0,8}[a-zA-Z0-9])?(\\.[a-zA-Z]([a-zA-Z0-9-]{0,8}[a-zA-Z0-9])){1,3}"
}

fn rep() -> impl Strategy<Value = Rep> {
    (host(), any::<u16>(), date()).prop_map(|(host, port, date)| {
        let prefix = RepPrefix::from_host(&host, port).expect("a good host");
        Rep::mint(&prefix, &date)
    })
}

fn ibip() -> impl Strategy<Value = Ibip> {
    (any::<IpAddr>(), any::<u16>(), date()).prop_map(|(address, port, date)| {
        let prefix = IbipPrefix::from_address(address, port);
        Ibip::mint(&prefix, &date).expect("a date after 1995")
    })
}

/// The same text with the case of some letters changed.
fn with_other_case(text: &str, mask: u64) -> String {
    let flip = |(at, c): (usize, char)| match mask >> (at % 64) & 1 == 1 {
        true if c.is_ascii_uppercase() => c.to_ascii_lowercase(),
        true => c.to_ascii_uppercase(),
        false => c,
    };
    text.chars().enumerate().map(flip).collect()
}

#[track_caller]
fn reads_back(ibi: &Ibi, mask: u64) {
    let text = ibi.to_string();
    let again = Ibi::parse(&text).expect("what is printed parses");
    assert_eq!((&again, again.to_string()), (ibi, text.clone()));
    let other = Ibi::parse(&with_other_case(&text, mask)).expect("case does not count");
    let hasher = RandomState::new();
    assert_eq!(&other, ibi);
    assert_eq!(hasher.hash_one(&other), hasher.hash_one(ibi));
    assert_eq!(other.canonical(), ibi.canonical());
}

proptest! {
    #[test]
    fn minted_reps_read_back(rep in rep(), mask in any::<u64>()) {
        prop_assert_eq!(&Rep::parse(rep.as_str()).expect("parses").timestamp(), &rep.timestamp());
        reads_back(&Ibi::Rep(rep), mask);
    }

    #[test]
    fn minted_ibips_read_back(ibip in ibip(), mask in any::<u64>()) {
        let again = Ibip::parse(ibip.as_str()).expect("parses");
        prop_assert_eq!((again.address(), again.port()), (ibip.address(), ibip.port()));
        prop_assert_eq!(again.timestamp(), ibip.timestamp());
        reads_back(&Ibi::Ibip(ibip), mask);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in any::<String>()) {
        let _ = Ibi::parse(&text);
        let _ = Modifier::parse(&text);
        let _ = Request::parse_verbs(&text);
        let _ = Request::parse_tail(&text);
        let _ = Pairs::parse(text.as_bytes());
        let _ = Timestamp::parse_rfc3339(&text);
        let _ = Granularity::parse(&text);
    }

    #[test]
    fn an_error_points_into_its_text(text in "[a-z0-9./@W!-]{0,40}") {
        if let Err(error) = Ibi::parse(&text) {
            prop_assert_eq!(error.text(), &text);
            prop_assert!(text[error.offset()..].starts_with(error.found()));
        }
    }

    #[test]
    fn dates_read_back_in_order(one in date(), other in date()) {
        prop_assert_eq!(Timestamp::parse_rfc3339(&one.to_rfc3339()), Ok(one.clone()));
        prop_assert_eq!(one.cmp(&other), one.as_nanoseconds().cmp(&other.as_nanoseconds()));
    }

    #[test]
    fn modifiers_read_back(which in 0usize..14) {
        let modifier = Modifier::compositions().nth(which).expect("there are fourteen");
        prop_assert_eq!(Modifier::parse(&modifier.to_string()), Ok(modifier.clone()));
        prop_assert_eq!(
            Request::parse_verbs(&modifier.verbs()),
            Ok(Request::Modifier(modifier))
        );
    }

    /// The clock may go forward, go back or stand still.
    #[test]
    fn no_date_is_handed_out_twice(steps in prop::collection::vec(-5_000_000_000i64..5_000_000_000, 1..60)) {
        let granularity = Granularity::parse("1/10").expect("a granularity");
        let mut distributor = TemporalDistributor::new(granularity, None);
        let mut now: i128 = 1_287_587_646_000_000_000;
        let mut seen = HashSet::new();
        let mut last: Option<Timestamp> = None;
        for step in steps {
            now += i128::from(step);
            let instant = Timestamp::from_nanoseconds(now).expect("this century");
            let Ok(reservation) = distributor.reserve(&instant, Duration::from_secs(10)) else {
                continue;
            };
            prop_assert!(seen.insert(reservation.date.clone()));
            prop_assert!(reservation.date <= reservation.creation);
            prop_assert!(last.is_none_or(|last| last < reservation.date));
            last = Some(reservation.date);
        }
    }

    #[test]
    fn a_changed_list_of_pairs_keeps_the_rest(
        names in prop::collection::vec("[a-z]{1,6}", 1..8),
        value in "[!-z]{1,12}",
    ) {
        let text: String = names.iter().map(|name| format!("{name}  {{x y}}\r\n")).collect();
        let mut pairs = Pairs::parse(text.as_bytes()).expect("a list of pairs");
        prop_assert_eq!(pairs.to_string(), text.clone());
        let changed = names[0].clone();
        pairs.set(&changed, Value::Word(value));
        let kept = |pairs: &Pairs| -> Vec<String> {
            let others = pairs.iter().filter(|(name, _)| *name != changed);
            others.map(|(name, value)| format!("{name} {value}")).collect()
        };
        let before = Pairs::parse(text.as_bytes()).expect("a list of pairs");
        let after = Pairs::parse(&pairs.to_bytes()).expect("reads back");
        prop_assert_eq!(&after, &pairs);
        prop_assert_eq!(kept(&after), kept(&before));
    }

    #[test]
    fn percent_encoding_reads_back(bytes in any::<Vec<u8>>()) {
        prop_assert_eq!(percent_decode(&percent_encode(&bytes)), bytes);
    }

    /// The same identifier is read from each form of a link.
    #[test]
    fn links_name_what_they_were_made_of(rep in rep(), ibip in ibip(), host in host()) {
        for ibi in [Ibi::from(rep), Ibi::from(ibip)] {
            for (link, kind) in [
                (format!("{ibi}"), PersistentKind::Item),
                (format!("ibi:{ibi}"), PersistentKind::Item),
                (format!("http://{host}/{ibi}"), PersistentKind::Item),
                (format!("http://{host}:8080/rep/{ibi}?metadatarepository=a.b/c/2009/02.16.17.46"), PersistentKind::Item),
                (format!("https://{host}/ibi-/{ibi}"), PersistentKind::FileList),
                (format!("http://{host}/col/{ibi}/doc/a"), PersistentKind::File),
                (format!("http://{host}/col/x/y/goto-/{ibi}!"), PersistentKind::Item),
                (format!("upn:ABCDEF:{ibi}"), PersistentKind::Item),
            ] {
                let name = PersistentName::parse(&link).expect(&link);
                prop_assert_eq!(name.identifier.to_string(), ibi.to_string());
                prop_assert_eq!(name.kind, kind);
            }
        }
    }

    /// No text makes the reader of persistent names panic.
    #[test]
    fn any_text_is_read_or_refused(
        text in "((https?|ibi|upn)://?)?[a-z.:/%?#!+()=-]{0,40}(8JMKD3MGP8W/34PGRBS)?.{0,20}",
    ) {
        for reader in [Reader::new(), Reader::new().literal(), Reader::new().with_aliases()] {
            if let Err(error) = reader.parse(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
