//! The store's own files: facts, index, ledger, permissions, records of transfers.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::archive::Role;
use crate::archive::operations::check::Severity;
use crate::archive::operations::ledger::LEDGER;
use crate::archive::operations::own_files::FACTS;
use crate::archive::operations::testing::transfer;
use crate::archive::store::FILE as INDEX;
use ibi::Timestamp;

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
}

fn set_mode(path: &Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("a mode");
}

#[test]
fn what_can_be_written_again_is_repaired() {
    type Damage = dyn Fn(&Path);
    let ledger = |text: &'static str| move |store: &Path| write(&store.join(LEDGER), text);
    let cases: [(&Damage, &str); 13] = [
        (
            &|store| std::fs::remove_file(store.join(FACTS)).expect("removed"),
            "facts-missing archive.ibi",
        ),
        (
            &|store| write(&store.join(FACTS), "host"),
            "facts-broken archive.ibi: ",
        ),
        (
            &|store| std::fs::remove_file(store.join(INDEX)).expect("removed"),
            "index-missing relations.sqlite3",
        ),
        (
            &|store| write(&store.join(INDEX), &"no database".repeat(1000)),
            "index-damaged relations.sqlite3: ",
        ),
        (
            &|store| std::fs::remove_file(store.join(LEDGER)).expect("removed"),
            "ledger-broken ledger: it is not there",
        ),
        (&ledger("store {"), "ledger-broken ledger: "),
        (
            &ledger("last 2026-01-02T03:04:05Z\n"),
            "ledger-broken ledger: it does not name its store",
        ),
        (&ledger("store x\nlast never\n"), "ledger-broken ledger: "),
        (
            &ledger("store x\nlast 2026-01-02T03:04:35Z\n"),
            "ledger-differs ledger: 2026-01-02T03:04:35Z in the ledger, 2026-01-02T03:04:05.001Z in the index",
        ),
        (
            &ledger("store x\nlast 2020-01-01T00:00:00Z\n"),
            "ledger-differs ledger: 2020-01-01T00:00:00Z in the ledger",
        ),
        (
            &ledger("store x\n"),
            "ledger-differs ledger: nothing in the ledger, 2026-01-02T03:04:05.001Z in the index",
        ),
        (
            &|store| std::fs::create_dir(store.join("staging/x")).expect("made"),
            "staging-left staging/x",
        ),
        (
            &|store| set_mode(&store.join(LEDGER), 0o666),
            "loose-permissions ledger: mode 0666",
        ),
    ];
    for (damage, expected) in cases {
        let store = closed(|_| ());
        assert_lines(&report(&store), &[]);
        damage(store.directory.path());
        assert_lines(&report(&store), &[expected]);
        let repaired = repaired(&store);
        assert_lines(&repaired, &[expected]);
        assert!(
            repaired.findings.iter().all(|finding| finding.repaired),
            "{expected}"
        );
        assert!(!repaired.findings.iter().any(CheckFinding::is_left));
        assert_lines(&report(&store), &[]);
        let clock = Box::new(store.clock.clone());
        let archive = Archive::open(store.directory.path(), clock).expect("opened");
        let item = archive.held(&names(COPY)).expect("read");
        assert!(item.is_some(), "{expected}");
    }
}

#[test]
fn what_was_damaged_is_set_aside() {
    let store = closed(|_| ());
    for (name, text) in [(FACTS, "host"), (INDEX, "no database")] {
        let text = text.repeat(1000);
        write(&store.directory.join(name), &text);
        repaired(&store);
        let aside = store.directory.join(format!("{name}.broken-1"));
        let kept = std::fs::read_to_string(aside);
        assert_eq!(kept.expect("set aside"), text, "{name}");
    }
    write(&store.directory.join(INDEX), "no database");
    let aside = Archive::set_index_aside(store.directory.path()).expect("set aside");
    assert_eq!(aside.as_deref(), Some("relations.sqlite3.broken-2"));
    let aside = Archive::set_index_aside(store.directory.path()).expect("asked");
    assert_eq!(aside, None, "there is none any more");
}

#[test]
fn facts_that_someone_has_changed_are_only_reported() {
    let store = closed(|_| ());
    let path = store.directory.join(FACTS);
    let before = std::fs::read_to_string(&path).expect("facts");
    for (text, detail) in [
        (
            before.replace("store.archive", "other.archive"),
            "it says 'host other.archive.example' and said 'host store.archive.example'",
        ),
        (
            before.replace("\nport 80\n", "\nurl https://a.example\nport 81\n"),
            "it says 'port 81' and said 'port 80'",
        ),
    ] {
        write(&path, &text);
        let expected = format!("facts-changed archive.ibi: {detail}");
        assert_lines(&report(&store), &[&expected]);
        let left = repaired(&store);
        assert_lines(&left, &[&expected]);
        assert!(left.findings.iter().all(CheckFinding::is_left));
        assert_eq!(std::fs::read_to_string(&path).expect("facts"), text);
    }
}

#[test]
fn urls_that_someone_has_changed_are_none_of_its_faults() {
    let store = closed(|_| ());
    let path = store.directory.join(FACTS);
    let before = std::fs::read_to_string(&path).expect("facts");
    write(&path, &format!("{before}url https://a.example/x\n"));
    assert_lines(&report(&store), &[]);
    write(&path, &format!("{before}url a.example\n"));
    let detail = "archive.ibi: the value of 'url': 'a.example' is not the URL of a service; write https://host, \
                  https://host:port or https://host/path, without a query";
    assert_lines(
        &report(&store),
        &[&format!("facts-broken archive.ibi: {detail}")],
    );
}

/// The facts determine every name: without a copy of them nothing else is said of the store.
#[test]
fn facts_without_a_copy_are_not_repaired() {
    let store = closed(|_| ());
    for name in [INDEX, FACTS] {
        std::fs::remove_file(store.directory.join(name)).expect("removed");
        let refused = name == FACTS;
        let checked = Archive::check(store.directory.path(), &store.clock, &mut |_| ());
        assert_eq!(
            matches!(checked, Err(ArchiveError::NotAStore { .. })),
            refused,
            "{checked:?}"
        );
    }
    let store = closed(|_| ());
    std::fs::remove_file(store.directory.join(INDEX)).expect("removed");
    write(&store.directory.join(FACTS), "host");
    let found = report(&store);
    assert_lines(
        &found,
        &[
            "index-missing relations.sqlite3",
            "facts-broken archive.ibi: ",
        ],
    );
    let repairable: Vec<bool> = found.findings.iter().map(|it| it.repairable).collect();
    assert_eq!(repairable, [true, false]);
}

#[test]
fn a_copy_of_the_facts_that_is_not_valid_is_replaced() {
    let store = closed(|archive| archive.store().set_facts(b"host").expect("set"));
    let expected = "index-differs archive.ibi: the index has no valid copy of it";
    assert_lines(&report(&store), &[expected]);
    repaired(&store);
    assert_lines(&report(&store), &[]);
}

/// An index of another version is not compared: what it says may mean something else.
#[test]
fn an_index_of_another_version_is_reported_alone() {
    for (version, code, is_repairable) in [
        (1_u32, "index-older relations.sqlite3: ", true),
        (9999, "index-newer relations.sqlite3: ", false),
    ] {
        let store = closed(|_| ());
        let path = store.directory.join(INDEX);
        let mut bytes = std::fs::read(&path).expect("an index");
        // SQLite keeps the version of the schema here.
        bytes[60..64].copy_from_slice(&version.to_be_bytes());
        std::fs::write(&path, bytes).expect("written");
        std::fs::remove_dir_all(store.directory.join(format!("col/{COPY}"))).expect("removed");
        let found = report(&store);
        assert_lines(&found, &[code]);
        assert!(
            found
                .findings
                .iter()
                .all(|it| it.repairable == is_repairable)
        );
    }
}

#[test]
fn the_directory_of_a_store_is_its_owners() {
    let store = closed(|_| ());
    set_mode(store.directory.path(), 0o703);
    assert_lines(
        &report(&store),
        &["store-open .: mode 0703", "loose-permissions .: mode 0703"],
    );
    let left = repaired(&store);
    let left: Vec<bool> = left.findings.iter().map(CheckFinding::is_left).collect();
    // The permission to enter may be meant for a service.
    assert_eq!(left, [true, false]);
    assert_lines(&report(&store), &["store-open .: mode 0701"]);
}

#[test]
fn dates_of_items_are_compared_with_the_last_one_given_out() {
    let store = closed(|_| ());
    let later = "archive.example/store/2026/05.01.00.00";
    std::fs::create_dir_all(store.directory.join(format!("col/{later}"))).expect("made");
    store
        .clock
        .set(Timestamp::parse_rfc3339("2026-06-01T00:00:00Z").expect("a date"));
    let (new, behind) = (
        format!("not-indexed {later}"),
        format!("date-behind {later}"),
    );
    assert_lines(&report(&store), &[&new, &behind]);
    repaired(&store);
    assert_lines(&report(&store), &[]);
}

#[test]
fn a_last_date_in_the_future_is_reported() {
    for is_of_an_item in [true, false] {
        let mut last = None;
        let mut rep = String::new();
        let store = closed(|archive| {
            rep = archive.new_item().names.rep().expect("a rep").to_string();
            if !is_of_an_item {
                archive.clock.advance_milliseconds(2000);
                archive.reserve().expect("a date");
            }
            last = archive.store().last_date().expect("read");
            last = last
                .take()
                .max(archive.store().reserved_date().expect("read"));
        });
        let last = last.expect("a date").seconds();
        store.clock.set(Timestamp::from_unix(last - 60, 0));
        assert_lines(&report(&store), &[]);
        store.clock.set(Timestamp::from_unix(last - 62, 0));
        let found = lines(&report(&store));
        let [line] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(line.starts_with("date-ahead 2026-01-02T03:04:0"), "{line}");
        let its = format!(": it is that of {rep}");
        assert_eq!(line.ends_with(&its), is_of_an_item, "{line}");
    }
}

#[test]
fn transfers_that_have_not_ended_are_reported() {
    for (role, is_taken, expected) in [
        (Role::Gives, false, Some("handover-pending")),
        (Role::Gives, true, None),
        (Role::Expects, false, None),
        (Role::TakesBack, false, Some("handover-pending")),
    ] {
        let store = closed(|archive| {
            let handover = transfer(role, is_taken);
            let noted = archive.note_handover(&names(COPY), &handover);
            noted.expect("noted");
            let all = archive.handovers().expect("read");
            assert_eq!(all, [(names(COPY), handover)]);
        });
        let to = format!("to the Archive {}", elsewhere());
        let line = match role {
            Role::TakesBack => {
                format!("handover-pending {COPY}: its transfer {to} is being cancelled")
            }
            _ => format!("{} {COPY}: {to}", expected.unwrap_or_default()),
        };
        let expected: Vec<&str> = expected.iter().map(|_| line.as_str()).collect();
        assert_lines(&report(&store), &expected);
        write(
            &store.directory.join(format!("handover/col/{COPY}")),
            "word {",
        );
        let broken = format!("handover-broken {COPY}: ");
        assert_lines(&report(&store), &[&broken]);
    }
}

#[test]
fn a_check_counts_items_and_says_whether_the_store_is_in_use() {
    let archive = TestArchive::new();
    archive.copy(COPY);
    let removed = archive.copy("a.example/b/2001/01.02.00.00");
    archive.remove_whole(&removed);
    let mut counted = Vec::new();
    let checked = Archive::check(archive.path(), &archive.clock, &mut |count| {
        counted.push(count);
    });
    let checked = checked.expect("a check");
    assert!(checked.in_use);
    // The service's own item is one of them, the removed one is not.
    assert_eq!((checked.items, counted), (2, vec![1, 2]));
    let store = archive.close_for_good();
    assert!(!report(&store).in_use);
    let other = crate::os::testing::TemporaryDirectory::new();
    let refused = Archive::check(other.path(), &store.clock, &mut |_| ());
    assert!(
        matches!(refused, Err(ArchiveError::NotAStore { .. })),
        "{refused:?}"
    );
}

#[test]
fn findings_that_are_left_count_by_their_severity() {
    let finding = |code, repaired| CheckFinding {
        repaired,
        ..CheckFinding::new(code, "x")
    };
    let report = CheckReport {
        findings: vec![
            finding(CheckCode::FactsMissing, true),
            finding(CheckCode::FactsBroken, false),
            finding(CheckCode::AreaMissing, false),
            finding(CheckCode::StrayName, false),
            finding(CheckCode::StagingLeft, false),
        ],
        ..CheckReport::default()
    };
    let left: Vec<bool> = report.findings.iter().map(CheckFinding::is_left).collect();
    assert_eq!(left, [false, true, true, true, false]);
    for (severity, count) in [
        (Severity::Error, 2),
        (Severity::Warning, 1),
        (Severity::Notice, 1),
    ] {
        assert_eq!(report.count(severity), count, "{severity}");
    }
}
