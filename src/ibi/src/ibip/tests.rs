//! IBIps, prefixes and suffixes: what is read, what is refused, and how each is written.

use super::*;

fn ibip(text: &str) -> Ibip {
    Ibip::parse(text).expect(text)
}

#[track_caller]
fn good(text: &str, address: &str, port: u16, date: &str) {
    let ibip = ibip(text);
    assert_eq!(ibip.to_string(), text);
    assert_eq!(format!("{}/{}", ibip.prefix(), ibip.suffix()), text);
    assert_eq!(
        (ibip.address().map(|it| it.to_string()), ibip.port()),
        (Some(address.to_owned()), Some(port))
    );
    assert_eq!(ibip.timestamp().to_rfc3339(), date);
    let prefix = *ibip.maker().expect("an address and port");
    assert_eq!(Ibip::mint(&prefix, &ibip.timestamp()).as_ref(), Ok(&ibip));
    assert_eq!(ibip.canonical(), text.to_ascii_uppercase());
    assert_eq!(check_prefix(ibip.prefix()), Ok(()));
    assert_eq!(check_suffix(ibip.suffix()), Ok(()));
}

#[track_caller]
fn bad(text: &str, sentence: &str) {
    assert_eq!(Ibip::parse(text).expect_err(text).to_string(), sentence);
}

#[track_caller]
fn prefix(address: &str, port: u16, text: &str) {
    let made = IbipPrefix::from_address(address.parse().expect(address), port);
    assert_eq!(made.to_string(), text);
    assert_eq!(IbipPrefix::parse(text), Ok(made));
    assert_eq!(
        (made.address().to_string().as_str(), made.port()),
        (address, port)
    );
}

#[test]
#[rustfmt::skip] // one case, one line
fn ibips_of_the_documents() {
    good("8JMKD3MGP8W/34PGRBS", "150.163.34.243", 800, "2009-02-16T17:46:00Z");
    good("8jmkd3mgp8w/34pgrbs", "150.163.34.243", 800, "2009-02-16T17:46:00Z");
    good("LK47B6W/362SFKH", "127.0.0.1", 800, "2009-09-09T22:01:00Z");
    good("8JMKD3MGP7W/3EPGUE5", "150.163.34.242", 800, "2013-09-04T12:27:57Z");
    good("J8LNKB5R7W/3FUQHC5", "150.163.34.64", 800, "2014-03-22T01:53:00Z");
    good("8JMKD3MGP8W/35MMLL8", "150.163.34.243", 800, "2009-07-21T14:43:00Z");
}

#[test]
fn prefixes_of_addresses() {
    prefix("150.163.2.174", 800, "J8LNKAN8PW");
    prefix("150.163.2.174", 19050, "J8LNKAN8PWU5H");
    prefix("150.163.2.174", 1, "J8LNKAN8PW3");
    prefix("150.163.2.174", 0, "J8LNKAN8PW2");
    prefix("150.163.34.243", 800, "8JMKD3MGP8W");
    prefix("2001:252:0:1::2008:6", 800, "7URMDHLL9SSN2D89MX");
    prefix("0.0.0.0", 80, "53FJHW4U");
    prefix("0.1.2.3", 800, "5492SW");
    prefix("127.0.0.1", 800, "LK47B6W");
    prefix("::", 800, "CLX");
    prefix("::1", 800, "8MCX");
    prefix("0:1::", 800, "62JPX");
    prefix("0:0:1::1", 800, "3228DRRX");
    prefix("::ffff:1.2.3.4", 800, "359JQERSKN4S7X");
    prefix(
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        65535,
        "7A6EQ5LJDPH6BN7HPAS6JBQTBHLK6R62QTX5AS8",
    );
}

#[test]
fn spellings_of_one_ibip() {
    assert_eq!(ibip("8jmkd3mgp8w/34PGRBS"), ibip("8JMKD3MGP8W/34pgrbs"));
    assert_ne!(ibip("8JMKD3MGP8W/34PGRBS"), ibip("8JMKD3MGP8W/34PGRBT"));
    assert!(ibip("8jmkd3mgp8w/34pgrbs") < ibip("8JMKD3MGP8W/34PGRBT"));
    let set: std::collections::HashSet<Ibip> =
        [ibip("8jmkd3mgp8w/34pgrbs"), ibip("8JMKD3MGP8W/34PGRBS")].into();
    assert_eq!(set.len(), 1);
    let hasher = std::hash::RandomState::new();
    let hash = |text: &str| std::hash::BuildHasher::hash_one(&hasher, ibip(text));
    assert_ne!(hash("8JMKD3MGP8W/34PGRBS"), hash("8JMKD3MGP8W/34PGRBT"));
}

/// An address has one spelling: the number of another writing of it is refused.
#[test]
fn another_writing_of_an_address_is_not_an_address() {
    for (text, base, separator) in [
        ("2001:db8::0:1", 17, 'X'),
        ("1:0:0:0:0:0:0:8", 17, 'X'),
        ("2001:0db8::1", 17, 'X'),
        ("1.2.3", 11, 'W'),
        ("1.2.3.256", 11, 'W'),
    ] {
        let digits: Vec<u8> = text.bytes().map(|byte| address_digit(byte, base)).collect();
        let prefix = format!("{}{separator}", base27::encode(&digits, base));
        let refused = IbipPrefix::parse(&prefix).expect_err(text).to_string();
        assert!(
            refused.contains(&format!("stands for '{text}'")),
            "{refused}"
        );
    }
}

#[test]
fn a_word_has_at_most_64_characters() {
    for (length, is_too_long) in [(64, false), (65, true)] {
        let prefix = format!("{}W", "U".repeat(length - 1));
        let refused = IbipPrefix::parse(&prefix).expect_err("no address");
        assert_eq!(
            refused.to_string().contains("is longer than 64"),
            is_too_long,
            "{refused}"
        );
    }
}

/// Case counts in base 53, and makes another identifier.
#[test]
fn ibips_in_base_53() {
    let written = ibip("83LX3pFwXQZeBBx/BbsHa");
    assert_eq!(written.canonical(), "83LX3pFwXQZeBBx/BbsHa");
    assert_eq!(written.timestamp().to_rfc3339(), "2004-02-16T09:30:00Z");
    assert_eq!((written.address(), written.port()), (None, None));
    assert_ne!(written, ibip("83LX3pFwXQZeBBx/BbsHA"));
    assert_ne!(written, ibip("83LX3PFwXQZeBBx/BbsHa"));
    assert_eq!(
        ibip("6RPa7umaZ/UaJFT").address(),
        "192.168.1.100".parse().ok()
    );
    assert_eq!(check_prefix("83LX3pFwXQZeBBx"), Ok(()));
    assert!(check_prefix("83LX3pFwXQZeBBl").is_err());
    assert_eq!(prefix_key("83LX3pFwXQZeBBx"), "83LX3pFwXQZeBBx");
    assert_eq!(prefix_key("8jmkd3mgp8w"), "8JMKD3MGP8W");
}

#[test]
#[rustfmt::skip] // one case, one line
fn not_ibips() {
    bad("8JMKD3MGP8W", "IBIp '8JMKD3MGP8W' has 1 component, not 2");
    bad("8JMKD3MGP8W/", "empty suffix at byte 13 of IBIp '8JMKD3MGP8W/'");
    bad("/34PGRBS", "empty prefix at byte 1 of IBIp '/34PGRBS'");
    bad("6rpa7umaz/uajft", "character 'z' in the prefix at byte 9 of IBIp '6rpa7umaz/uajft' does not belong there: only 2 to 9 and letters except I, O, V, Y and Z do");
    bad("6RPa7umaZ/UaJFl", "character 'l' in the suffix at byte 15 of legacy IBIp '6RPa7umaZ/UaJFl' does not belong there: only 2 to 9 and letters except I, O, W, X, Y, Z and l do");
    bad("8JMKD3MGP8W/34PGRBé", "character 'é' in the suffix at byte 19 of IBIp '8JMKD3MGP8W/34PGRBé' does not belong there: only 2 to 9 and letters except I, O, V, Y and Z do");
    bad("8JMKD3MGP8/34PGRBS", "prefix '8JMKD3MGP8' at byte 1 of IBIp '8JMKD3MGP8/34PGRBS' has neither W (after an IPv4 address) nor X (after an IPv6 address)");
    bad("W/34PGRBS", "empty address at byte 1 of IBIp 'W/34PGRBS'");
    bad("28JMKD3MGP8W/34PGRBS", "address '28JMKD3MGP8' at byte 1 of IBIp '28JMKD3MGP8W/34PGRBS' begins with 2, the digit zero");
    bad("8JMKD3MGP8W24/34PGRBS", "port '24' at byte 12 of IBIp '8JMKD3MGP8W24/34PGRBS' begins with 2, the digit zero");
    bad("8JMKD3MGP8W34K/34PGRBS", "port '34K' at byte 12 of IBIp '8JMKD3MGP8W34K/34PGRBS' stands for port 800, which is left out");
    bad("2W/34PGRBS", "address '2' at byte 1 of IBIp '2W/34PGRBS' stands for '', which is not an IPv4 address in its usual writing");
    bad("UUUUW/34PGRBS", "address 'UUUU' at byte 1 of IBIp 'UUUUW/34PGRBS' stands for '333308', which is not an IPv4 address in its usual writing");
    bad("UUUUX/34PGRBS", "address 'UUUU' at byte 1 of IBIp 'UUUUX/34PGRBS' stands for '662f3', which is not an IPv6 address in its usual writing");
    bad("8JMKD3MGP8W/234PGRBS", "seconds '234PGRBS' at byte 13 of IBIp '8JMKD3MGP8W/234PGRBS' begins with 2, the digit zero");
    bad("8JMKD3MGP8W/34PGRBSX", "character 'X' in the seconds at byte 20 of IBIp '8JMKD3MGP8W/34PGRBSX' does not belong there: W and X separate, and have their place once");
    bad("8JMKD3MGP8W/W7", "empty seconds at byte 13 of IBIp '8JMKD3MGP8W/W7'");
    bad("8JMKD3MGP8W/34PGRBSW", "empty fraction at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSW'");
    bad("8JMKD3MGP8W/34PGRBSW2", "fraction '2' at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSW2' stands for digits that end with zero");
    bad("8JMKD3MGP8W/34PGRBSWC", "fraction 'C' at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSWC' stands for digits that end with zero");
    bad("8JMKD3MGP8W/34PGRBSW7W7", "character 'W' in the fraction at byte 22 of IBIp '8JMKD3MGP8W/34PGRBSW7W7' does not belong there: W and X separate, and have their place once");
    bad("8JMKD3MGP8W/34PGRBSW2222222222222222227", "fraction '2222222222222222227' at byte 21 of IBIp '8JMKD3MGP8W/34PGRBSW2222222222222222227' has more than 18 digits");
    bad("8JMKD3MGP8W/UUUUUUUUUUUUUUUUUUUU", "seconds 'UUUUUUUUUUUUUUUUUUUU' at byte 13 of IBIp '8JMKD3MGP8W/UUUUUUUUUUUUUUUUUUUU' stands for a date later than we can hold");
    let long = format!("{}W", "U".repeat(64));
    bad(&format!("{long}/3"), &format!("prefix '{long}' at byte 1 of IBIp '{long}/3' is longer than 64 characters"));
}

#[test]
fn whatever_is_minted_reads_back() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..5000 {
        let sparse: [u16; 8] = std::array::from_fn(|_| {
            if random() % 2 == 0 {
                0
            } else {
                random() as u16
            }
        });
        let address = match random() % 3 {
            0 => IpAddr::from((random() as u32).to_be_bytes()),
            1 => IpAddr::from(sparse),
            _ => IpAddr::from([0, 0, 0, 0, 0, 0xffff, sparse[0], sparse[1]]),
        };
        let prefix = IbipPrefix::from_address(address, random() as u16);
        let seconds = IBIP_EPOCH + (random() % 10_000_000_000) as i64;
        let fraction = (random() % 1_000_000_000_000_000_000).to_string();
        let kept = (random() % 19) as usize;
        let date = Timestamp::new(seconds, fraction.get(..kept).unwrap_or("")).expect("a date");
        let minted = Ibip::mint(&prefix, &date).expect("after 1995");
        let read = Ibip::parse(&minted.to_string().to_ascii_lowercase());
        assert_eq!(read.as_ref(), Ok(&minted));
        assert_eq!(
            read.map(|ibip| (ibip.address(), ibip.port(), ibip.timestamp())),
            Ok((Some(address), Some(prefix.port), date))
        );
    }
}

#[test]
fn a_prefix_that_stands_for_no_address_is_kept() {
    for text in [
        "83LX3W/34PGRBS",
        "8jmkd3wuuuuu/34pgrbs",
        "AB3X/34PGRBS",
        "8JMKD3MGP8WUUUU/34PGRBS",
        "8JMKD3MGP8WX/34PGRBS",
    ] {
        let ibip = Ibip::parse(text).expect(text);
        assert_eq!(ibip.to_string(), text);
        assert_eq!(ibip.canonical(), text.to_ascii_uppercase());
        assert_eq!(Ibip::parse(&text.to_ascii_uppercase()), Ok(ibip.clone()));
        assert_eq!(
            (ibip.maker(), ibip.address(), ibip.port()),
            (None, None, None)
        );
        assert_eq!(ibip.timestamp().seconds(), 1_234_806_360);
        assert!(ibip.legacy().is_none());
        assert_eq!(check_prefix(ibip.prefix()), Ok(()));
    }
    for text in [
        "text", "raw", "3W2", "28JMKD3W", "W3", "8JMKD3", "2W", "83LW3V",
    ] {
        assert!(check_prefix(text).is_err(), "{text}");
        assert!(Ibip::parse(&format!("{text}/34PGRBS")).is_err(), "{text}");
    }
}
