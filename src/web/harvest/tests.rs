//! Records of an Archive in a temporary directory, on its clock.

use super::*;
use crate::archive::operations::testing::{TestArchive, elsewhere, names};
use ibi::relation::RelationKind;

/// Updates all items and records, and lists the records as harvesters see them: the name, and the seconds
/// since `began` or None for a deleted record.
fn harvested(archive: &TestArchive, harvest: &Harvest, began: i64) -> Vec<(String, Option<i64>)> {
    let harvester = Harvester {
        format: crate::formats::oai::FORMAT,
        archive: archive.read_as(&|read: &mut dyn FnMut()| read()),
        harvest,
        clock: &archive.clock,
        file: Box::new(|_, path| (String::from_utf8_lossy(path).into_owned(), "text/plain")),
    };
    let mut after = Some(ItemId(0));
    while let Some(id) = after {
        after = harvester.go_through_items(id, 2).expect("the items");
    }
    let mut after = Some(String::new());
    while let Some(name) = after {
        after = harvester.go_through_records(&name, 2).expect("the records");
    }
    let window = Window {
        from: None,
        until: None,
        after: None,
        ..Window::default()
    };
    let part = harvester
        .records(&window, 100, 1 << 20)
        .expect("the records");
    assert_eq!(part.next, None);
    let records = part.found.into_iter().map(|found| {
        let since = found.stamped.datestamp - began;
        assert_eq!(found.metadata.is_none(), found.stamped.is_deleted);
        (
            found.stamped.name,
            (!found.stamped.is_deleted).then_some(since),
        )
    });
    let mut records: Vec<_> = records.collect();
    records.sort();
    records
}

fn name(item: &Item) -> String {
    local_name(&item.names)
}

#[test]
fn every_public_item_has_a_record_but_the_service_and_metadata() {
    let archive = TestArchive::new();
    let harvest = Harvest::temporary().expect("a database");
    let (item, metadata) = (archive.new_item(), archive.new_item());
    archive.declare(&metadata, RelationKind::MetadataOf, &item);
    let began = archive.clock.now().seconds();
    let found = harvested(&archive, &harvest, began);
    assert_eq!(found, [(name(&item), Some(0))]);
}

#[test]
fn a_removed_item_has_a_deleted_record() {
    let archive = TestArchive::new();
    let harvest = Harvest::temporary().expect("a database");
    let item = archive.new_item();
    let began = archive.clock.now().seconds();
    assert_eq!(
        harvested(&archive, &harvest, began),
        [(name(&item), Some(0))]
    );
    archive.remove_whole(&item);
    assert_eq!(harvested(&archive, &harvest, began), [(name(&item), None)]);
}

#[test]
fn a_record_that_is_the_same_keeps_its_datestamp() {
    let archive = TestArchive::new();
    let harvest = Harvest::temporary().expect("a database");
    let item = archive.new_item();
    let began = archive.clock.now().seconds();
    harvested(&archive, &harvest, began);
    archive.clock.advance_milliseconds(60_000);
    let later = archive.new_item();
    let found = harvested(&archive, &harvest, began);
    assert!(found.contains(&(name(&item), Some(0))), "{found:?}");
    assert!(found.contains(&(name(&later), Some(60))), "{found:?}");
}

#[test]
fn an_item_that_was_never_seen_has_no_record() {
    let archive = TestArchive::new();
    let harvest = Harvest::temporary().expect("a database");
    let harvester = Harvester {
        format: crate::formats::oai::FORMAT,
        archive: archive.read_as(&|read: &mut dyn FnMut()| read()),
        harvest: &harvest,
        clock: &archive.clock,
        file: Box::new(|_, path| (String::from_utf8_lossy(path).into_owned(), "text/plain")),
    };
    let unknown = local_name(&names("a.example/b/2001/01.01.00.00"));
    assert_eq!(harvester.record(&unknown).expect("read"), None);
    let item = archive.new_item();
    let record = harvester.record(&name(&item)).expect("read");
    assert!(record.is_some_and(|record| !record.stamped.is_deleted));
    assert_ne!(item.names, elsewhere());
}
