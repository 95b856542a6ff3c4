use super::super::Process;
use super::super::recovery_log::MANY;
use super::super::testing::{TestArchive, elsewhere, maker, names};
use super::*;
use ibi::relation::RelationKind;

fn none() -> Vec<String> {
    Vec::new()
}

/// The recovery log is empty after a regular end.
#[test]
fn a_regular_end_leaves_nothing_to_recover() {
    let mut archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &other);
    archive.copy("a.example/b/2001/01.01.00.00");
    assert_ne!(archive.store().dirty_regions().expect("read"), none());
    assert_ne!(archive.store().unsettled().expect("read").len(), 0);
    archive.close();
    assert_eq!(archive.store().dirty_regions().expect("read"), none());
    assert_eq!(archive.store().unsettled().expect("read").len(), 0);
    archive.reopen();
    assert_eq!(archive.findings(), none());
}

#[test]
fn a_copy_that_the_crash_took_is_forgotten() {
    let mut archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let path = archive.file(&item, "");
    archive.crash_and(|_| std::fs::remove_dir_all(&path).expect("removed"));
    assert_eq!(archive.held(&item.names).expect("read"), None);
    assert_eq!(archive.findings(), none());
}

#[test]
fn a_directory_that_the_index_does_not_know_is_registered() {
    let mut archive = TestArchive::new();
    archive.copy("a.example/b/2001/01.01.00.00");
    archive.crash_and(|store| {
        std::fs::create_dir(store.join("col/a.example/b/2001/01.02.00.00")).expect("made");
    });
    let found = archive
        .find_named("a.example/b/2001/01.02.00.00")
        .expect("read");
    assert_eq!(found.map(|item| item.state), Some(State::Copy));
    assert_eq!(archive.findings(), none());
}

#[test]
fn a_sidecar_that_was_not_synced_comes_back() {
    for lost in [&b""[..], &[0; 120][..]] {
        let mut archive = TestArchive::new();
        let item = archive.copy("a.example/b/2001/01.01.00.00");
        let path = archive.file(&item, ".ibi");
        let before = std::fs::read(&path).expect("a sidecar");
        archive.crash_and(|_| std::fs::write(&path, lost).expect("written"));
        assert_eq!(std::fs::read(&path).expect("a sidecar"), before);
        archive.crash_and(|_| std::fs::remove_file(&path).expect("removed"));
        assert_eq!(std::fs::read(&path).expect("a sidecar"), before);
        assert_eq!(archive.findings(), none());
    }
}

#[test]
fn a_sidecar_that_the_index_has_not_seen_is_accepted() {
    let mut archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let mut sidecar = archive.sidecar(&item);
    sidecar.set_target("map.pdf");
    let path = archive.file(&item, ".ibi");
    archive.crash_and(|_| std::fs::write(&path, sidecar.to_bytes()).expect("written"));
    assert_eq!(archive.again(&item).target.as_deref(), Some("map.pdf"));
    assert_eq!(archive.findings(), none());
}

#[test]
fn a_relation_at_one_end_only_is_finished() {
    for kept in [0, 1] {
        let mut archive = TestArchive::new();
        let ends = [archive.new_item(), archive.new_item()];
        let before = std::fs::read(archive.file(&ends[1 - kept], ".ibi")).expect("a sidecar");
        archive.declare(&ends[0], RelationKind::NextEdition, &ends[1]);
        // The crash loses the new declaration of one of the two.
        let path = archive.file(&ends[1 - kept], ".ibi");
        archive.crash_and(|_| std::fs::write(&path, before).expect("written"));
        let says = |item: &Item| archive.sidecar(item).relations().len();
        let [near, far] = &ends;
        assert_eq!(says(near), says(far), "kept {kept}");
        assert_eq!(archive.findings(), none());
    }
}

#[test]
fn a_removal_that_was_cut_short_is_taken_back() {
    let mut archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let place = Place::of(&item.names);
    let tombstone = archive.tombstone_of(&item).expect("a tombstone").to_bytes();
    archive
        .tree()
        .write_tombstone(&place, &tombstone)
        .expect("written");
    archive.crash();
    assert_eq!(archive.again(&item).state, State::Copy);
    assert_eq!(archive.tree().read_tombstone(&place).expect("read"), None);
    assert_eq!(archive.findings(), none());
}

#[test]
fn a_removal_that_the_index_has_not_seen_is_finished() {
    let mut archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let place = Place::of(&item.names);
    let tombstone = archive.tombstone_of(&item).expect("a tombstone").to_bytes();
    archive
        .tree()
        .write_tombstone(&place, &tombstone)
        .expect("written");
    let path = archive.file(&item, "");
    archive.crash_and(|_| std::fs::remove_dir_all(&path).expect("removed"));
    let found = archive.again(&item);
    assert_eq!(found.state, State::Deleted);
    assert!(found.removed_at.is_some());
    assert_eq!(archive.findings(), none());
}

#[test]
fn a_change_that_was_dropped_is_read_before_the_next() {
    let archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let change = archive.begin_write(item.id).expect("begun");
    archive.edit_raw(&item, |sidecar| sidecar.set_target("map.pdf"));
    drop(change);
    assert_eq!(archive.again(&item).target, None);
    // Any change that takes the lock for changes triggers the recovery.
    archive.restore_sidecar(item.id).expect("nothing to do");
    assert_eq!(archive.again(&item).target.as_deref(), Some("map.pdf"));
    // A change that is done is not read again.
    let change = archive.begin_write(item.id).expect("begun");
    archive.edit_raw(&item, |sidecar| sidecar.set_target("other.pdf"));
    change.done();
    archive.restore_sidecar(item.id).expect("nothing to do");
    assert_eq!(archive.again(&item).target.as_deref(), Some("map.pdf"));
}

#[test]
fn a_move_that_the_index_has_not_seen_is_read_before_the_next_change() {
    let (old, new) = ("8JMKD3MGP8W/35MMLL8", "a.example/b/2001/01.01.00.00");
    let places = [old, new].map(|name| Place::of(&names(name)));
    for order in [[0, 1], [1, 0]] {
        for is_accepted in [false, true] {
            let archive = TestArchive::new();
            let item = if is_accepted {
                archive.copy(old)
            } else {
                archive
                    .register(&Process, &names(old), maker())
                    .expect("registered")
            };
            let both = format!("ibi {{rep {new} ibip {old}}}\n");
            archive.write_raw(&item, both.as_bytes());
            let [from, to] = &places;
            // The move fails where it is synced, and cannot be undone.
            archive.tree.move_item(from, to).expect("moved");
            for place in order.map(|index| places[index].clone()) {
                archive.recovery.queue(place, Durability::Unsynced);
            }
            archive.restore_sidecar(item.id).ok();
            let found = archive.held(&names(old)).expect("read").expect("the item");
            assert_eq!(found.names, names_of(&both));
            assert_eq!(archive.findings(), none());
        }
    }
}

fn names_of(sidecar: &str) -> Names {
    let sidecar = Sidecar::parse(sidecar.as_bytes()).expect("a sidecar");
    sidecar.names().clone()
}

#[test]
fn many_levels_are_not_all_kept_in_the_log() {
    let archive = TestArchive::new();
    for year in 0..MANY {
        archive.copy(&format!("a.example/b/{}/01.01.00.00", 1900 + year));
    }
    // They are synced in a separate thread.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while archive.store().dirty_regions().expect("read").len() >= MANY {
        assert!(std::time::Instant::now() < until, "still {MANY}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn an_item_is_registered_on_sight() {
    let archive = TestArchive::new();
    let place = archive.path().join("col/a.example/b/2001/01.01.00.00");
    std::fs::create_dir_all(&place).expect("a directory");
    let mut sidecar = Sidecar::new(&super::super::testing::names(
        "a.example/b/2001/01.01.00.00",
    ));
    sidecar.set_archive_service(&elsewhere());
    std::fs::write(place.join(".ibi"), sidecar.to_bytes()).expect("a sidecar");
    let rep = "a.example/b/2001/01.01.00.00".parse().expect("a rep");
    let item = archive.item_at(&rep).expect("an item");
    assert_eq!(item.service, Some(elsewhere()));
    let rep = "a.example/b/2001/01.02.00.00".parse().expect("a rep");
    let absent = archive.item_at(&rep);
    assert!(
        matches!(absent, Err(ArchiveError::Unknown { .. })),
        "{absent:?}"
    );
    assert_eq!(archive.findings(), none());
}
