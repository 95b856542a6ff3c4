use super::super::testing::{OTHER_USER, TestArchive, elsewhere, language, names};
use super::super::{ArchiveError, Process};
use super::*;
use crate::formats::item::State;
use ibi::Ibi;

#[test]
fn a_minted_item_is_an_original_with_both_names() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let rep = item.names.rep().expect("a rep");
    assert_eq!(
        rep.as_str(),
        "archive.example/store/2026/01.02.03.04.05.005"
    );
    let ibip = item.names.ibip().expect("an IBIp");
    assert_eq!(ibip.timestamp(), rep.timestamp());
    assert_eq!(item.state, State::Original);
    let sidecar = archive.sidecar(&item);
    assert_eq!(sidecar.names(), &item.names);
    assert_eq!(sidecar.archive_service(), Some(&archive.facts().service));
    assert!(archive.file(&item, "doc").is_dir());
    for name in [rep.to_string(), ibip.to_string()] {
        let found = archive.find_named(&name).expect(&name);
        assert_eq!(found.map(|found| found.id), Some(item.id), "{name}");
    }
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn an_item_minted_empty_has_its_sidecar_alone() {
    let archive = TestArchive::new();
    archive.clock.advance_milliseconds(10);
    let date = archive.reserve().expect("a date").date;
    let item = archive.depositor(&Process).mint_empty(&date, None, None);
    let item = item.expect("an item");
    assert!(!archive.file(&item, "doc").exists());
    assert!(archive.file(&item, ".ibi").exists());
}

#[test]
fn minted_dates_rise() {
    let archive = TestArchive::new();
    let mut dates = Vec::new();
    for _ in 0..4 {
        // The clock does not move, and is set back once.
        let date = archive.reserve().expect("a date").date;
        dates.push(date);
    }
    archive.clock.advance_milliseconds(-500);
    dates.push(archive.reserve().expect("a date").date);
    assert!(dates.is_sorted_by(|one, next| one < next), "{dates:?}");
}

#[test]
fn a_date_is_not_minted_twice() {
    let archive = TestArchive::new();
    let date = archive.reserve().expect("a date").date;
    let mint = || archive.depositor(&Process).mint_reserved(&date, None, None);
    let item = mint().expect("an item");
    match mint() {
        Err(ArchiveError::Exists(taken)) => assert_eq!(*taken, item.names),
        other => panic!("{other:?}"),
    }
    assert_eq!(archive.store().held_items().expect("counted"), 2);
    // After a name that was taken, the next mint succeeds.
    let next = archive
        .depositor(&Process)
        .mint(None, None)
        .expect("an item");
    assert!(next.names.rep() > item.names.rep());
}

#[test]
fn a_related_item_is_minted_with_the_relation_at_both_ends() {
    let archive = TestArchive::new();
    let source = archive.new_item();
    let pt = language("pt");
    let cases = [
        (
            Relative::Edition(source.names.clone()),
            "ibi.nextedition",
            "ibi.editionof",
        ),
        (
            Relative::Translation(source.names.clone(), pt),
            "ibi.translation(pt)",
            "ibi.translationof",
        ),
        (
            Relative::Metadata(source.names.clone()),
            "ibi.metadata",
            "ibi.metadataof",
        ),
    ];
    for (relative, there, here) in cases {
        assert_eq!(relative.source(), &source.names);
        archive
            .depositor(&Process)
            .check_relative(&relative)
            .expect(there);
        let item = archive
            .depositor(&Process)
            .mint(Some(&relative), None)
            .expect(there);
        let says = |item: &Item, pair: &str, of: &Names| {
            let sidecar = archive.sidecar(item);
            let mut declared = sidecar.relations().into_iter();
            declared.any(|(kind, names)| kind.pair_name() == pair && names == *of)
        };
        assert!(says(&source, there, &item.names), "{there}");
        assert!(says(&item, here, &source.names), "{here}");
        assert_eq!(
            archive.sidecar(&item).language().copied(),
            (there == "ibi.translation(pt)").then_some(pt)
        );
        // A second one is refused before a date is used.
        match archive.depositor(&Process).check_relative(&relative) {
            Err(ArchiveError::HasOne { kind, target, .. }) => {
                assert_eq!((kind.as_str(), *target), (there, item.names));
            }
            other => panic!("{there}: {other:?}"),
        }
    }
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn an_item_that_may_not_be_related_is_not_minted() {
    let archive = TestArchive::new();
    let source = archive.new_item();
    let relative = Relative::Edition(source.names.clone());
    let refused = archive.depositor(&OTHER_USER).check_relative(&relative);
    assert!(
        matches!(refused, Err(ArchiveError::NotAllowed(_))),
        "{refused:?}"
    );
    let unknown = Relative::Edition(elsewhere());
    let refused = archive.depositor(&Process).check_relative(&unknown);
    assert!(
        matches!(refused, Err(ArchiveError::Unknown { .. })),
        "{refused:?}"
    );
    let before = archive.store().held_items().expect("counted");
    archive.clock.advance_milliseconds(10);
    let date = archive.reserve().expect("a date").date;
    let refused = archive
        .depositor(&OTHER_USER)
        .mint_reserved(&date, Some(&relative), None);
    assert!(
        matches!(refused, Err(ArchiveError::NotAllowed(_))),
        "{refused:?}"
    );
    assert_eq!(archive.store().held_items().expect("counted"), before);
    let rep = Rep::mint(&archive.facts().rep_prefix().expect("a prefix"), &date);
    assert!(!archive.tree().is_directory(Place::of_rep(&rep).as_str()));
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn a_minted_item_outlives_a_crash_that_takes_its_directory() {
    let mut archive = TestArchive::new();
    let item = archive.new_item();
    let path = archive.file(&item, "");
    archive.crash_and(|_| std::fs::remove_dir_all(&path).expect("removed"));
    assert_eq!(archive.sidecar(&item).names(), &item.names);
    assert_eq!(archive.again(&item).state, State::Original);
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn a_directory_in_the_way_is_left_alone() {
    let archive = TestArchive::new();
    let date = archive.reserve().expect("a date").date;
    let rep = Rep::mint(&archive.facts().rep_prefix().expect("a prefix"), &date);
    let path = archive.path().join(Place::of_rep(&rep).as_str());
    std::fs::create_dir_all(path.join("doc")).expect("a directory");
    let refused = archive.depositor(&Process).mint_reserved(&date, None, None);
    assert!(
        matches!(refused, Err(ArchiveError::Exists(_))),
        "{refused:?}"
    );
    assert!(path.join("doc").is_dir() && !path.join(".ibi").exists());
    let found = archive.find(&Ibi::Rep(rep)).expect("read");
    assert_eq!(found, None);
    assert_eq!(archive.tree().left_in_staging(), Vec::<Vec<u8>>::new());
}

#[test]
fn a_relative_has_the_kind_of_its_pair() {
    let of = names("8JMKD3MGP8W/35MMLL8");
    let pt = language("pt");
    for (relative, kind) in [
        (Relative::Edition(of.clone()), RelationKind::NextEdition),
        (
            Relative::Translation(of.clone(), pt),
            RelationKind::Translation(pt),
        ),
        (Relative::Metadata(of.clone()), RelationKind::Metadata),
    ] {
        assert_eq!((relative.kind(), relative.source()), (kind, &of));
    }
}

fn dates(items: &[Item]) -> Vec<Timestamp> {
    let date = |item: &Item| item.names.rep().expect("a rep").timestamp();
    items.iter().map(date).collect()
}

/// Mints items together. The clock skips the wait.
fn mint_together(archive: &TestArchive, count: usize) -> Result<Vec<Item>, ArchiveError> {
    let depositor = archive.depositor(&Process);
    archive.clock.advance_milliseconds(1000);
    let begun = depositor.begin_together(count, None, Filled::WithDoc)?;
    archive.clock.advance_milliseconds(1000);
    depositor.mint_together(begun, None, Filled::WithDoc)
}

#[test]
fn items_minted_together_have_rising_dates_of_one_reservation() {
    let archive = TestArchive::new();
    archive.clock.advance_milliseconds(1000);
    let depositor = archive.depositor(&Process);
    // The clock was set forward, which counts as a start, and stands still: the dates are those that follow.
    let begun = depositor
        .begin_together(32, None, Filled::WithDoc)
        .expect("dates");
    let waits: Vec<u128> = begun
        .reserved
        .iter()
        .map(|it| it.wait.as_millis())
        .collect();
    assert_eq!(waits, (1..33).collect::<Vec<_>>());
    let last = begun.reserved.last().map(|it| it.date.clone());
    // They are on disk before any of them is seen.
    assert_eq!(archive.store().last_date().expect("read"), last);
    assert!(archive.store().reserved_date().expect("read") > last);
    let reserved: Vec<Timestamp> = begun.reserved.iter().map(|it| it.date.clone()).collect();
    let items = depositor
        .mint_together(begun, None, Filled::WithDoc)
        .expect("items");
    assert_eq!(dates(&items), reserved);
    assert!(reserved.is_sorted_by(|one, next| one < next));
    for item in &items {
        assert!(archive.file(item, "doc").is_dir());
        assert_eq!(archive.sidecar(item).names(), &item.names);
    }
    assert_eq!(archive.store().held_items().expect("counted"), 33);
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn a_name_that_is_taken_costs_the_others_nothing() {
    let archive = TestArchive::new();
    archive.clock.advance_milliseconds(1000);
    let depositor = archive.depositor(&Process);
    let begun = depositor
        .begin_together(4, None, Filled::Empty)
        .expect("dates");
    let at = |number: usize| {
        let date = &begun.reserved.get(number).expect("a date").date;
        Rep::mint(&archive.facts().rep_prefix().expect("a prefix"), date)
    };
    // One has an item already, and one a directory that the index does not know.
    let taken = depositor.mint_empty(&begun.reserved[1].date, None, None);
    let taken = taken.expect("an item");
    let place = archive.path().join(Place::of_rep(&at(2)).as_str());
    std::fs::create_dir_all(place.join("doc")).expect("a directory");
    let expected = [at(0), at(3)];
    let items = depositor
        .mint_together(begun, None, Filled::Empty)
        .expect("items");
    let reps: Vec<_> = items.iter().filter_map(|item| item.names.rep()).collect();
    assert_eq!(reps, expected.iter().collect::<Vec<_>>());
    assert_eq!(archive.again(&taken).names, taken.names);
    assert!(place.join("doc").is_dir() && !place.join(".ibi").exists());
    assert_eq!(archive.tree().left_in_staging(), Vec::<Vec<u8>>::new());
}

#[test]
fn one_error_is_that_of_all_if_nothing_was_minted() {
    let archive = TestArchive::new();
    archive.clock.advance_milliseconds(1000);
    let depositor = archive.depositor(&Process);
    let begun = depositor
        .begin_together(2, None, Filled::Empty)
        .expect("dates");
    for reservation in &begun.reserved {
        let item = depositor.mint_empty(&reservation.date, None, None);
        item.expect("an item");
    }
    let refused = depositor.mint_together(begun, None, Filled::Empty);
    assert!(
        matches!(refused, Err(ArchiveError::Exists(_))),
        "{refused:?}"
    );
    // The next dates are others.
    assert_eq!(mint_together(&archive, 2).expect("items").len(), 2);
}

#[test]
fn dates_that_are_far_away_are_left_to_the_next_request() {
    let archive = TestArchive::with(&crate::archive::operations::Setup {
        granularity: Some(ibi::distributor::Granularity::SECOND),
        ..Default::default()
    });
    let one = mint_together(&archive, 32).expect("an item");
    let two = mint_together(&archive, 32).expect("an item");
    assert_eq!((one.len(), two.len()), (1, 1));
    assert!(dates(&one) < dates(&two));
    // A clock that was set back by more than the limit gives none, and uses none.
    archive.clock.advance_milliseconds(-60_000);
    let last = archive.dates.last();
    let refused = mint_together(&archive, 32);
    assert!(matches!(refused, Err(ArchiveError::Wait(_))), "{refused:?}");
    assert_eq!(archive.dates.last(), last);
}

#[test]
fn dates_of_a_crash_between_reservation_and_rows_are_not_used_again() {
    let mut archive = TestArchive::new();
    archive.clock.advance_milliseconds(1000);
    let depositor = archive.depositor(&Process);
    let begun = depositor.begin_together(8, None, Filled::Empty);
    let begun = begun.expect("dates").reserved;
    archive.crash();
    let items = mint_together(&archive, 8).expect("items");
    let last = begun.last().map(|it| it.date.clone());
    assert!(dates(&items).first() > last.as_ref(), "{items:?} {begun:?}");
    // After the rows, and before the directories are on disk, all are made again.
    let paths: Vec<_> = items.iter().map(|item| archive.file(item, "")).collect();
    archive.crash_and(|_| {
        for path in &paths {
            std::fs::remove_dir_all(path).expect("removed");
        }
    });
    for item in &items {
        assert_eq!(archive.sidecar(item).names(), &item.names);
    }
    assert_eq!(archive.store().held_items().expect("counted"), 9);
    assert_eq!(archive.findings(), Vec::<String>::new());
}
