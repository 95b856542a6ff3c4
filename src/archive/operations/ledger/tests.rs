use super::super::testing::TestArchive;
use super::super::{Process, Setup};
use super::*;
use crate::archive::Clock;
use ibi::distributor::Granularity;

fn ledger(archive: &TestArchive) -> String {
    std::fs::read_to_string(archive.path().join(LEDGER)).expect("a ledger")
}

#[test]
fn dates_that_were_not_used_are_given_back_at_a_regular_end() {
    let mut archive = TestArchive::new();
    let date = archive.reserve().expect("a date").date;
    assert!(archive.store().reserved_date().expect("read") > Some(date.clone()));
    archive.close();
    assert_eq!(archive.store().reserved_date().expect("read"), None);
    assert_eq!(
        archive.store().last_date().expect("read"),
        Some(date.clone())
    );
    assert_eq!(
        last_in_ledger(ledger(&archive).as_bytes()),
        Some(date.clone())
    );
    archive.reopen();
    assert!(archive.reserve().expect("a date").date > date);
}

#[test]
fn after_a_crash_all_reserved_dates_count_as_handed_out() {
    let mut archive = TestArchive::new();
    archive.reserve().expect("a date");
    let reserved = archive.store().reserved_date().expect("read");
    archive.crash();
    assert_eq!(archive.store().last_date().expect("read"), reserved);
    assert!(Some(archive.reserve().expect("a date").date) > reserved);
}

/// With a granularity of a minute the next date is up to a minute away; the one after it is too far.
#[test]
fn a_request_waits_for_one_step_of_the_granularity() {
    let archive = TestArchive::with(&Setup {
        granularity: Some(Granularity::MINUTE),
        ..Setup::default()
    });
    archive.clock.advance_milliseconds(120_000);
    let first = archive.reserve().expect("a date");
    archive.clock.set(first.date.clone());
    let second = archive.reserve().expect("a date");
    assert_eq!(second.wait.as_secs(), 60);
    let refused = archive.reserve();
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn no_date_is_handed_out_up_to_the_start() {
    let mut archive = TestArchive::new();
    archive.close();
    archive.clock.advance_milliseconds(60_000);
    archive.crash();
    let now = archive.clock.now();
    assert!(archive.reserve().expect("a date").date > now);
    // A clock that is set forward counts as a start.
    archive.clock.advance_milliseconds(60_000);
    let now = archive.clock.now();
    assert!(archive.reserve().expect("a date").date > now);
}

#[test]
fn a_copied_store_goes_on_from_the_present() {
    for damage in [
        |ledger: &str| ledger.replace("store ", "store 1"),
        |ledger: &str| ledger.replace("word ", "word 0"),
        |_: &str| String::new(),
    ] {
        let mut archive = TestArchive::new();
        archive.close();
        archive.clock.advance_milliseconds(60_000);
        let text = damage(&ledger(&archive));
        archive.crash_and(|store| std::fs::write(store.join(LEDGER), text).expect("written"));
        let last = archive.store().last_date().expect("read");
        assert_eq!(last, Some(archive.clock.now()));
    }
    let mut archive = TestArchive::new();
    archive.close();
    archive.clock.advance_milliseconds(60_000);
    archive.crash();
    assert!(archive.store().last_date().expect("read") < Some(archive.clock.now()));
}

#[test]
fn a_store_is_known_by_ledger_and_lock() {
    let previous = |word: Option<&str>| lock::PreviousLock {
        fingerprint: "12-34-56.7".to_owned(),
        word: word.map(str::to_owned),
    };
    for (ledger, word, is_so) in [
        ("store 12-34-56.7\nword a\n", Some("a"), true),
        ("store 12-34-56.7\nword a\n", Some("b"), false),
        ("store 12-34-99.7\nword a\n", Some("a"), false),
        ("store 12-34-56.7\n", None, true),
        ("", None, false),
        // A crash before the lock was written, and one after that.
        ("store 12-34-56.7\nword b\nbefore a\n", Some("a"), true),
        ("store 12-34-99.7\nword b\nbefore a\n", Some("a"), false),
        ("store 12-34-99.7\nword b\nbefore a\n", Some("b"), true),
        ("store 13-34-99.7\nword b\nbefore a\n", Some("b"), false),
        ("store 12-34-56.7\nword b\nbefore a\n", Some("c"), false),
        ("store 12-34-56.7\nword b\nbefore -\n", None, true),
    ] {
        assert_eq!(
            is_same(ledger.as_bytes(), &previous(word)),
            is_so,
            "{ledger} {word:?}"
        );
    }
}

#[test]
fn minting_goes_on_from_the_present_after_a_clock_ran_ahead() {
    let mut archive = TestArchive::new();
    archive.clock.advance_milliseconds(10);
    assert_eq!(archive.keeper().go_on_from_present().expect("asked"), None);
    let present = archive.clock.now();
    archive.clock.advance_milliseconds(86_400_000);
    let ahead = archive.new_item();
    archive.clock.set(present.clone());
    let wait = archive.depositor(&Process).check_wait();
    assert!(matches!(wait, Err(ArchiveError::Wait(_))), "{wait:?}");
    let refused = archive.reserve();
    assert!(matches!(refused, Err(ArchiveError::Wait(_))), "{refused:?}");
    let last = archive.keeper().go_on_from_present().expect("asked");
    assert_eq!(last, ahead.names.rep().map(ibi::Rep::timestamp));
    archive.depositor(&Process).check_wait().expect("no wait");
    archive.clock.advance_milliseconds(10);
    let date = archive.reserve().expect("a date").date;
    assert!(date > present && Some(date) < last);
    // The range is known after a crash as well.
    archive.crash();
    assert!(archive.dates.is_ahead(&last.expect("a date")));
    assert!(!archive.dates.is_ahead(&present));
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn dates_ahead_are_those_after_one_up_to_another() {
    let date = |text: &str| Timestamp::parse_rfc3339(text).expect(text);
    let text = b"store x\nafter 2026-01-01T00:00:00Z\nuntil 2026-02-01T00:00:00Z\n";
    let archive = TestArchive::new();
    archive.dates.set_ahead(Ahead::read(text));
    for (text, is_ahead) in [
        ("2026-01-01T00:00:00Z", false),
        ("2026-01-01T00:00:01Z", true),
        ("2026-02-01T00:00:00Z", true),
        ("2026-02-01T00:00:01Z", false),
    ] {
        assert_eq!(archive.dates.is_ahead(&date(text)), is_ahead, "{text}");
    }
    archive
        .dates
        .widen_ahead(&date("2025-12-01T00:00:00Z"), &date("2026-01-15T00:00:00Z"));
    assert!(archive.dates.is_ahead(&date("2025-12-02T00:00:00Z")));
    assert!(archive.dates.is_ahead(&date("2026-02-01T00:00:00Z")));
    assert!(Ahead::read(b"after 2026-01-01T00:00:00Z\n").is_none());
}
