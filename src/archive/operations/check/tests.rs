use super::super::Process;
use super::super::identifiers::names_at;
use super::super::testing::{TestArchive, TestParts, elsewhere, names};
use super::{CheckCode, CheckFinding, CheckReport};
use crate::archive::store::{Item, Record};
use crate::archive::tree::{Area, Place};
use crate::archive::{Archive, ArchiveError};
use crate::formats::item::{Names, State};
use ibi::AliasPair;
use ibi::relation::RelationKind;

mod places;
mod store_files;

const COPY: &str = "a.example/b/2001/01.01.00.00";

fn none() -> Vec<String> {
    Vec::new()
}

/// Applies a change to a store outside the Archive, and compares the findings of a check, and those
/// left after a repair.
fn check(damage: impl FnOnce(&TestArchive), found: &[&str], left: &[&str]) {
    let mut archive = TestArchive::new();
    archive.copy(COPY);
    archive.close();
    damage(&archive);
    assert_eq!(archive.findings(), found);
    archive.repair();
    assert_eq!(archive.findings(), left);
}

/// A store with a copy, and what `prepare` adds. No process has it open.
fn closed(prepare: impl FnOnce(&TestArchive)) -> TestParts {
    let archive = TestArchive::new();
    archive.copy(COPY);
    prepare(&archive);
    archive.close_for_good()
}

/// The check of a store that no process has open.
fn report(store: &TestParts) -> CheckReport {
    let checked = Archive::check(store.directory.path(), &store.clock, &mut |_| ());
    checked.expect("a check")
}

/// The repair of such a store.
fn repaired(store: &TestParts) -> CheckReport {
    let clock = Box::new(store.clock.clone());
    let repaired = Archive::repair(store.directory.path(), clock, &mut |_| ());
    repaired.expect("a repair")
}

/// The findings of a report, one per line: the code, the subject and the detail.
fn lines(report: &CheckReport) -> Vec<String> {
    let line = |finding: &CheckFinding| {
        let detail = finding.detail.as_ref().map(|detail| format!(": {detail}"));
        let (code, subject) = (finding.code.word(), &finding.subject);
        format!("{code} {subject}{}", detail.unwrap_or_default())
    };
    report.findings.iter().map(line).collect()
}

/// Compares the beginnings of lines.
#[track_caller]
fn assert_lines(found: &CheckReport, expected: &[&str]) {
    let found = lines(found);
    let is_as_expected = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(line, it)| line.starts_with(it));
    assert!(is_as_expected, "{found:#?} instead of {expected:#?}");
}

fn copy(archive: &TestArchive) -> Item {
    let held = archive.held(&names(COPY)).expect("read");
    held.expect("the copy")
}

#[test]
fn a_sidecar_that_is_gone_is_written_again() {
    check(
        |archive| {
            let path = archive.file(&copy(archive), ".ibi");
            std::fs::remove_file(path).expect("removed");
        },
        &["missing-sidecar a.example/b/2001/01.01.00.00"],
        &[],
    );
}

#[test]
fn a_broken_sidecar_is_set_aside() {
    check(
        |archive| archive.write_raw(&copy(archive), b"ibi {"),
        &["broken-sidecar a.example/b/2001/01.01.00.00"],
        &[],
    );
}

#[test]
fn the_sidecar_of_another_item_is_set_aside() {
    check(
        |archive| archive.write_raw(&copy(archive), b"ibi {rep x.example/y/2001/01.01.00.00}\n"),
        &["foreign-sidecar a.example/b/2001/01.01.00.00"],
        &[],
    );
}

#[test]
fn a_sidecar_changed_on_disk_counts() {
    check(
        |archive| archive.edit_raw(&copy(archive), |sidecar| sidecar.set_target("x")),
        &["changed-sidecar a.example/b/2001/01.01.00.00"],
        &[],
    );
}

#[test]
fn an_item_that_is_gone_is_recorded_as_removed() {
    check(
        |archive| {
            let path = archive.file(&copy(archive), "");
            std::fs::remove_dir_all(path).expect("removed");
        },
        &["not-in-tree a.example/b/2001/01.01.00.00"],
        &[],
    );
}

#[test]
fn an_item_without_a_row_is_indexed() {
    check(
        |archive| {
            let path = archive.path().join("col/a.example/b/2001/01.02.00.00");
            std::fs::create_dir(path).expect("made");
        },
        &["not-indexed a.example/b/2001/01.02.00.00"],
        &[],
    );
}

/// Copies an item in by its IBIp outside the Archive, with a sidecar that also gives it a rep.
fn copy_in_by_ibip(archive: &TestArchive) {
    let item = archive.path().join("ibip/8JMKD3MGP8W/35UA4UC");
    std::fs::create_dir_all(&item).expect("made");
    let both = format!("ibi {{rep {UNMOVED} ibip 8JMKD3MGP8W/35UA4UC}}\n");
    std::fs::write(item.join(".ibi"), both).expect("written");
}

const UNMOVED: &str = "x.example/y/2001/01.01.00.00";

#[test]
fn a_move_that_was_not_finished_is_finished() {
    for has_index in [true, false] {
        check(
            |archive| {
                copy_in_by_ibip(archive);
                if has_index {
                    archive
                        .store
                        .put(&Record::bare(names("8JMKD3MGP8W/35UA4UC"), State::Copy))
                        .expect("recorded");
                }
            },
            if has_index {
                &["not-moved 8JMKD3MGP8W/35UA4UC"]
            } else {
                &[
                    "not-moved 8JMKD3MGP8W/35UA4UC",
                    "not-indexed 8JMKD3MGP8W/35UA4UC",
                ]
            },
            &[],
        );
    }
}

#[test]
fn a_move_to_the_place_of_another_item_is_refused() {
    let finding = "name-refused 8JMKD3MGP8W/35UA4UC";
    check(
        |archive| {
            copy_in_by_ibip(archive);
            archive.copy(UNMOVED);
        },
        &[finding, "not-indexed 8JMKD3MGP8W/35UA4UC"],
        &[finding],
    );
}

/// An IBIp in base 53 may be the alias of an item. Another item cannot take it from there.
#[test]
fn the_alias_of_an_item_is_not_the_ibip_of_another() {
    let former = "6RPa7umaZ/UaJFT";
    let other = "x.example/y/2001/01.02.00.00";
    let taken = format!("name-taken {other}");
    let mut archive = TestArchive::new();
    let one = archive.copy(COPY);
    let alias = AliasPair::parse(former).expect("an alias");
    archive.edit_raw(&one, |sidecar| sidecar.add_alias(&alias));
    let accepted = archive.edit(&Process, |it| it.accept_sidecar(one.id));
    accepted.expect("accepted");
    let claims = archive.copy(other);
    let both = Names::both(
        other.parse().expect(other),
        former.parse().expect("an IBIp in base 53"),
    );
    archive.edit_raw(&claims, |sidecar| sidecar.set_names(&both));
    assert!(archive.findings().contains(&taken));
    archive.reopen();
    archive.keeper().reindex(&mut |_| ()).expect("an index");
    let found = archive.find_named(former).expect("read");
    assert_eq!(found.map(|item| item.names), Some(names(COPY)));
}

#[test]
fn a_name_that_was_not_minted_is_only_reported() {
    let finding = "not-minted archive.example/store/2027/01.02.00.00";
    check(
        |archive| {
            let path = archive
                .path()
                .join("col/archive.example/store/2027/01.02.00.00");
            std::fs::create_dir_all(path).expect("made");
        },
        &[finding],
        &[finding],
    );
}

#[test]
fn a_missing_index_is_made_from_the_tree() {
    let mut archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &other);
    let removed = archive.copy(COPY);
    archive.remove_whole(&removed);
    archive.reopen();
    let before = archive.dump();
    archive.close();
    archive.crash_and(|store| {
        for suffix in ["", "-wal", "-shm"] {
            let name = format!("{}{suffix}", crate::archive::store::FILE);
            let _ = std::fs::remove_file(store.join(name));
        }
    });
    assert_eq!(archive.dump(), before);
    assert_eq!(archive.findings(), none());
    // Dates that were minted before are not given out again.
    let last = other.names.rep().map(ibi::Rep::timestamp);
    assert!(archive.reserve().expect("a date").date > last.expect("a date"));
}

#[test]
fn the_service_item_is_made_again() {
    let mut archive = TestArchive::new();
    archive.copy(COPY);
    let service = archive.facts().service.clone();
    let path = archive.path().join(Place::of(&service).as_str());
    archive.close();
    std::fs::remove_dir_all(&path).expect("removed");
    let found = archive.findings();
    let subject = service.preferred();
    assert!(
        found.contains(&format!("service-missing {subject}")),
        "{found:?}"
    );
    archive.repair();
    let item = archive.held(&service).expect("read").expect("the service");
    assert_eq!(item.state, State::Original);
    assert_eq!(archive.findings(), none());
}

#[test]
fn relations_at_one_end_are_found_and_finished() {
    let mut archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.close();
    archive.edit_raw(&one, |sidecar| {
        sidecar.set_relation(&RelationKind::NextEdition, &other.names);
    });
    archive.keeper().reindex(&mut |_| ()).expect("an index");
    assert_eq!(
        archive.findings(),
        [format!("one-sided {}", one.names.preferred())]
    );
    archive.repair();
    assert_eq!(archive.findings(), none());
    assert_eq!(archive.sidecar(&other).relations().len(), 1);
}

#[test]
fn editions_in_a_circle_are_only_reported() {
    let archive = TestArchive::new();
    let items = [COPY, "a.example/b/2001/01.02.00.00"].map(|name| archive.copy(name));
    for (item, next) in [(0, 1), (1, 0)] {
        archive.edit_raw(&items[item], |sidecar| {
            sidecar.set_relation(&RelationKind::NextEdition, &items[next].names);
        });
        archive
            .edit(&Process, |it| it.accept_sidecar(items[item].id))
            .expect("accepted");
    }
    let expected = items.map(|item| format!("edition-cycle {}", item.names.preferred()));
    assert_eq!(archive.findings(), expected);
}

#[test]
fn two_archives_do_not_hold_one_original() {
    let archive = TestArchive::new();
    let (original, copy) = (archive.new_item(), archive.copy(COPY));
    let ask = |states: [Option<State>; 2]| {
        let found = archive.check_with::<ArchiveError>(&elsewhere(), |names| {
            let is_original = names.matches(&original.names);
            let is_copy = names.matches(&copy.names);
            Ok(states[usize::from(is_copy)].filter(|_| is_original || is_copy))
        });
        let found = found.expect("asked");
        found.iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    let (original, copy, deleted) = (State::Original, State::Copy, State::Deleted);
    assert_eq!(ask([Some(copy), Some(original)]), []);
    assert_eq!(ask([Some(original), None]), [CheckCode::TwoOriginals]);
    assert_eq!(ask([None, Some(deleted)]), [CheckCode::OriginalRemoved]);
}

#[test]
fn what_lies_in_col_already_is_taken_over() {
    let directory = crate::os::testing::TemporaryDirectory::new();
    for rep in ["archive.example/store/2025/01.01.00.00", COPY] {
        let path = directory.path().join("col").join(rep);
        std::fs::create_dir_all(path).expect("made");
    }
    let archive = TestArchive::over(directory, &super::super::Setup::default());
    let state = |name: &str| {
        let item = archive.held(&names(name)).expect("read");
        item.map(|item| item.state)
    };
    assert_eq!(
        state("archive.example/store/2025/01.01.00.00"),
        Some(State::Original)
    );
    assert_eq!(state(COPY), Some(State::Copy));
}

#[test]
fn names_of_a_place() {
    for (area, path, expected) in [
        (Area::Col, "a.example/b/2001/01.01.00.00", true),
        (Area::Col, "8JMKD3MGP8W/35MMLL8", false),
        (Area::Col, "a.example/b/2001", false),
        (Area::Ibip, "8JMKD3MGP8W/35MMLL8", true),
        (Area::Ibip, "a.example/b/2001/01.01.00.00", false),
        (Area::Ibip, "8JMKD3MGP8W", false),
    ] {
        assert_eq!(
            names_at(area, path),
            expected.then(|| names(path)),
            "{path}"
        );
    }
}
