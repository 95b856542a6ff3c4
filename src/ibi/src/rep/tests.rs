//! Reps and their prefixes: what is read, what is refused, and how each is written.

use super::*;

fn rep(text: &str) -> Rep {
    Rep::parse(text).expect(text)
}

#[track_caller]
fn good(text: &str, host: &str, port: u16, date: &str) {
    let rep = rep(text);
    assert_eq!(rep.to_string(), text);
    assert_eq!(rep.components().join("/"), text);
    assert_eq!(format!("{}/{}", rep.prefix(), rep.suffix()), text);
    assert_eq!((rep.host().as_str(), rep.port()), (host, port));
    assert_eq!(rep.timestamp().to_rfc3339(), date);
    assert_eq!(Rep::parse(&rep.canonical()).as_ref(), Ok(&rep));
    for (level, component) in rep.components().into_iter().enumerate() {
        assert_eq!(check_component(level + 1, component), Ok(()));
    }
}

#[track_caller]
fn bad(text: &str, sentence: &str) {
    assert_eq!(Rep::parse(text).expect_err(text).to_string(), sentence);
}

#[track_caller]
fn bad_component(level: usize, name: &str, sentence: &str) {
    assert_eq!(
        check_component(level, name).expect_err(name).to_string(),
        sentence
    );
}

#[track_caller]
fn minted(host: &str, port: u16, prefix: &str) {
    let made = RepPrefix::from_host(host, port).expect(host);
    assert_eq!(made.to_string(), prefix);
    assert_eq!(RepPrefix::parse(&made.canonical()).as_ref(), Ok(&made));
    let date = Timestamp::from_unix(1_234_806_360, 0);
    let rep = Rep::mint(&made, &date);
    assert_eq!(rep.to_string(), format!("{prefix}/2009/02.16.17.46"));
    assert_eq!(
        (rep.prefix(), rep.port(), rep.timestamp()),
        (prefix, port, date)
    );
    assert_eq!(Rep::parse(rep.as_str()), Ok(rep));
}

#[track_caller]
fn not_minted(host: &str, sentence: &str) {
    assert_eq!(
        RepPrefix::from_host(host, 80).expect_err(host).to_string(),
        sentence
    );
}

#[test]
#[rustfmt::skip] // one case, one line
fn reps_of_the_documents() {
    good("iconet.com.br/banon/2009/09.09.22.01", "banon.iconet.com.br", 80, "2009-09-09T22:01:00Z");
    good("dpi.inpe.br/banon-pc3@80/2009/11.10.13.03", "banon-pc3.dpi.inpe.br", 80, "2009-11-10T13:03:00Z");
    good("sid.inpe.br/mtc-m12@80/2006/08.28.17.53.20", "mtc-m12.sid.inpe.br", 80, "2006-08-28T17:53:20Z");
    good("sid.INPE.br/MTC-m18@80/2009/02.16.17.46", "mtc-m18.sid.inpe.br", 80, "2009-02-16T17:46:00Z");
    good("sid.inpe.br/mtc-m19/2013/09.04.12.27.57", "mtc-m19.sid.inpe.br", 80, "2013-09-04T12:27:57Z");
    good("sid.inpe.br/mtc-m18@1905/2009/02.16.17.46", "mtc-m18.sid.inpe.br", 1905, "2009-02-16T17:46:00Z");
    good("sid.inpe.br./mtc-m18.8080/2009/02.16.17.46", "mtc-m18.sid.inpe.br", 8080, "2009-02-16T17:46:00Z");
    good("br/9/2009/02.16.17.46.00", "9.br", 80, "2009-02-16T17:46:00Z");
    good("1a.x/a--b.00000/12009/02.16.17.46.00.50", "a--b.1a.x", 0, "12009-02-16T17:46:00.5Z");
    good("a.b-c/d/2008/02.29.23.59.59.123456789012345678", "d.a.b-c", 80, "2008-02-29T23:59:59.123456789012345678Z");
}

#[test]
fn spellings_of_one_rep() {
    let first = rep("sid.INPE.br./MTC-m18@80/2009/02.16.17.46");
    assert_eq!(first, rep("sid.inpe.br/mtc-m18@80/2009/02.16.17.46"));
    assert_eq!(first.canonical(), "sid.inpe.br/mtc-m18@80/2009/02.16.17.46");
    assert_eq!(first.prefix(), "sid.INPE.br./MTC-m18@80");
    assert_ne!(first, rep("sid.inpe.br/mtc-m18.80/2009/02.16.17.46"));
    assert_ne!(first, rep("sid.inpe.br/mtc-m18/2009/02.16.17.46"));
    assert!(rep("a.b/c/2009/02.16.17.46") < rep("A.B/c/2009/02.16.17.47"));
    let set: std::collections::HashSet<Rep> =
        [first, rep("SID.inpe.br/mtc-m18@80/2009/02.16.17.46")].into();
    assert_eq!(set.len(), 1);
    let hasher = std::hash::RandomState::new();
    let hash = |text: &str| std::hash::BuildHasher::hash_one(&hasher, rep(text));
    assert_ne!(
        hash("a.b/c/2009/02.16.17.46"),
        hash("a.b/c/2009/02.16.17.47")
    );
    for (name, key) in [
        ("sid.INPE.br.", "sid.inpe.br"),
        ("MTC-m18@80", "mtc-m18@80"),
        ("", ""),
    ] {
        assert_eq!(component_key(name), key);
    }
    let prefix = RepPrefix::parse("sid.INPE.br./MTC-m18@80").expect("a prefix");
    assert_eq!(prefix.to_string(), "sid.inpe.br/mtc-m18@80");
}

#[test]
#[rustfmt::skip] // one case, one line
fn not_reps() {
    bad("", "rep '' has 1 component, not 4");
    bad("a.b/c/2009", "rep 'a.b/c/2009' has 3 components, not 4");
    bad("/c/2009/02.16.17.46", "empty subdomain at byte 1 of rep '/c/2009/02.16.17.46'");
    bad("a..b/c/2009/02.16.17.46", "empty word of the subdomain at byte 3 of rep 'a..b/c/2009/02.16.17.46'");
    bad("./c/2009/02.16.17.46", "empty word of the subdomain at byte 1 of rep './c/2009/02.16.17.46'");
    bad("a.1b/c/2009/02.16.17.46", "last word of the subdomain '1b' at byte 3 of rep 'a.1b/c/2009/02.16.17.46' does not begin with a letter");
    bad("a.b-/c/2009/02.16.17.46", "word of the subdomain 'b-' at byte 3 of rep 'a.b-/c/2009/02.16.17.46' begins or ends with a hyphen");
    bad("a.b/_c/2009/02.16.17.46", "character '_' in the word at byte 5 of rep 'a.b/_c/2009/02.16.17.46' does not belong there: only letters, digits and inner hyphens do");
    bad("a.b/é/2009/02.16.17.46", "character 'é' in the word at byte 5 of rep 'a.b/é/2009/02.16.17.46' does not belong there: only letters, digits and inner hyphens do");
    bad("a.b//2009/02.16.17.46", "empty word at byte 5 of rep 'a.b//2009/02.16.17.46'");
    bad("a.b/-c/2009/02.16.17.46", "word '-c' at byte 5 of rep 'a.b/-c/2009/02.16.17.46' begins or ends with a hyphen");
    bad("a.b/c@/2009/02.16.17.46", "empty port at byte 7 of rep 'a.b/c@/2009/02.16.17.46'");
    bad("a.b/c.d/2009/02.16.17.46", "character 'd' in the port at byte 7 of rep 'a.b/c.d/2009/02.16.17.46' does not belong there: only digits do");
    bad("a.b/c@65536/2009/02.16.17.46", "port '65536' at byte 7 of rep 'a.b/c@65536/2009/02.16.17.46' is beyond 65535");
    bad("a.b/c/209/02.16.17.46", "year '209' at byte 7 of rep 'a.b/c/209/02.16.17.46' does not have four or more digits");
    bad("a.b/c/999999/02.16.17.46", "year '999999' at byte 7 of rep 'a.b/c/999999/02.16.17.46' is later than 262142, the last year we can hold");
    bad("a.b/c/99999999999999999999/02.16.17.46", "year '99999999999999999999' at byte 7 of rep 'a.b/c/99999999999999999999/02.16.17.46' is later than 262142, the last year we can hold");
    bad("a.b/c/2009/02.16.17", "date '02.16.17' at byte 12 of rep 'a.b/c/2009/02.16.17' is not of the shape MM.DD.hh.mm[.ss[.f]]");
    bad("a.b/c/2009/2.16.17.46", "month '2' at byte 12 of rep 'a.b/c/2009/2.16.17.46' does not have two digits");
    bad("a.b/c/2009/02.30.17.46", "day '30' at byte 15 of rep 'a.b/c/2009/02.30.17.46' does not exist in month 02 of the year 2009");
    bad("a.b/c/2009/02.16.24.46", "hour '24' at byte 18 of rep 'a.b/c/2009/02.16.24.46' is not from 00 to 23");
    bad("a.b/c/2009/02.16.17.46.60", "second '60' at byte 24 of rep 'a.b/c/2009/02.16.17.46.60' is not from 00 to 59");
    bad("a.b/c/2009/02.16.17.46.", "empty second at byte 24 of rep 'a.b/c/2009/02.16.17.46.'");
    bad("a.b/c/2009/02.16.17.46.00.", "empty fraction at byte 27 of rep 'a.b/c/2009/02.16.17.46.00.'");
    bad("a.b/c/2009/02.16.17.46.00.1234567890123456789", "fraction '1234567890123456789' at byte 27 of rep 'a.b/c/2009/02.16.17.46.00.1234567890123456789' has more than 18 digits");
}

#[test]
#[rustfmt::skip] // one case, one line
fn components_alone() {
    assert_eq!(check_component(4, "02.30.17.46"), Ok(()));
    bad_component(1, "", "empty subdomain");
    bad_component(1, ".mint", "empty word of the subdomain at byte 1 of subdomain '.mint'");
    bad_component(1, "lost+found", "character '+' in the word of the subdomain at byte 5 of subdomain 'lost+found' does not belong there: only letters, digits and inner hyphens do");
    bad_component(2, "a-", "word 'a-' begins or ends with a hyphen");
    bad_component(3, "99", "year '99' does not have four or more digits");
    bad_component(4, "02.32.17.46", "day '32' at byte 4 of date '02.32.17.46' is not from 01 to 31");
    bad_component(4, "doc", "date 'doc' is not of the shape MM.DD.hh.mm[.ss[.f]]");
    bad_component(5, "doc", "component 'doc' is met at a level that a rep does not have");
}

#[test]
#[rustfmt::skip] // one case, one line
fn prefixes_of_hosts() {
    minted("mtc-m18.sid.inpe.br", 80, "sid.inpe.br/mtc-m18");
    minted("MTC-m18.sid.INPE.br", 1905, "sid.inpe.br/mtc-m18.1905");
    minted("banon.iconet.com.br.", 8080, "iconet.com.br/banon.8080");
    not_minted("localhost", "host 'localhost' has no dot, so there is no subdomain to name items under; give the full host name, such as archive.example.org");
    not_minted("10.0.0.1", "last word of the subdomain '1' at byte 8 of host '10.0.0.1' does not begin with a letter");
    not_minted("a_b.example.org", "character '_' in the word at byte 2 of host 'a_b.example.org' does not belong there: only letters, digits and inner hyphens do");
    not_minted("a.", "empty subdomain at byte 3 of host 'a.'");
}
