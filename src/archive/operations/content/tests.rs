use std::cell::Cell;

use super::*;
use crate::archive::operations::Process;
use crate::archive::operations::testing::TestArchive;
use crate::archive::store::ContentStatistics;
use crate::archive::tree::Place;

const READER: u32 = 7;
const AT_ONCE: Duration = Duration::ZERO;

fn plainly(read: &mut dyn FnMut()) {
    read();
}

/// An Archive with one item, which has a file of five bytes.
fn with_item() -> (TestArchive, Item) {
    let archive = TestArchive::new();
    let item = archive.new_item();
    std::fs::create_dir_all(archive.file(&item, "doc")).expect("a directory");
    std::fs::write(archive.file(&item, "doc/text"), "hello").expect("a file");
    (archive, item)
}

fn count(archive: &Archive) {
    let keeper = archive.keeper();
    keeper.forget_fresh_content();
    while keeper.look_for_uncounted().expect("read") {}
    let none = HashSet::new();
    let counted = keeper.count_left_alone(READER, &plainly, &none, AT_ONCE);
    counted.expect("counted");
}

fn known(archive: &Archive, item: &Item) -> Option<ContentStatistics> {
    let reader = archive.read_as(&plainly).numbered(READER);
    reader.known_content(item).expect("read")
}

fn size(archive: &Archive, item: &Item) -> Option<(u64, u64)> {
    known(archive, item).map(|found| (found.files, found.bytes))
}

fn change(archive: &TestArchive, item: &Item, text: &str) {
    let _change = archive.change_content(item.id);
    std::fs::write(archive.file(item, "doc/text"), text).expect("written");
}

#[test]
fn what_is_known_is_not_looked_for() {
    let (archive, item) = with_item();
    assert_eq!(size(&archive, &item), None);
    count(&archive);
    assert_eq!(size(&archive, &item), Some((1, 5)));
    let public = archive.read_as(&plainly).numbered(READER);
    // A small item is looked through all the same.
    let small = public.updated(&item).expect("read").expect("a time");
    std::thread::sleep(Duration::from_millis(20));
    std::fs::write(archive.file(&item, "doc/0"), "").expect("a file");
    assert!(public.updated(&item).expect("read").expect("a time") > small);
    for number in 1..=200 {
        let name = format!("doc/{number}");
        std::fs::write(archive.file(&item, &name), "").expect("a file");
    }
    drop(archive.change_content(item.id));
    count(&archive);
    assert_eq!(size(&archive, &item), Some((202, 5)));
    let before = public.updated(&item).expect("read").expect("a time");
    let later = std::time::SystemTime::now() + Duration::from_secs(3600);
    let file = std::fs::File::options()
        .write(true)
        .open(archive.file(&item, "doc/text"))
        .expect("opened");
    file.set_modified(later).expect("set");
    let seen = || public.updated(&item).expect("read").expect("a time");
    assert_eq!(seen(), before, "it was walked through");
    // Another reader may read other files.
    let other = archive.read_as(&plainly).numbered(READER + 1);
    assert!(other.updated(&item).expect("read").expect("a time") > before);
    drop(archive.change_content(item.id));
    archive.keeper().forget_fresh_content();
    assert!(seen() > before);
    let exact = seen();
    count(&archive);
    assert_eq!(
        known(&archive, &item).expect("counted").newest,
        Some(exact.clone())
    );
    assert_eq!(seen(), exact);
}

#[test]
fn an_item_is_counted_when_it_is_left_alone() {
    let (archive, item) = with_item();
    count(&archive);
    let held = archive.change_content(item.id);
    std::fs::write(archive.file(&item, "doc/more"), "more").expect("written");
    count(&archive);
    assert_eq!(size(&archive, &item), None, "while a request changes it");
    drop(held);
    let keeper = archive.keeper();
    let open = HashSet::from([item.id]);
    let none = HashSet::new();
    let count = |open, quiet| keeper.count_left_alone(READER, &plainly, open, quiet);
    assert_eq!(
        count(&open, AT_ONCE).expect("counted"),
        0,
        "while it is open"
    );
    assert_eq!(count(&none, QUIET).expect("counted"), 0, "at once");
    assert_eq!(count(&none, AT_ONCE).expect("counted"), 1);
    assert_eq!(size(&archive, &item), Some((2, 9)));
}

/// An item that begins to change is known at every moment, also while its row is removed.
#[test]
fn an_item_that_changes_is_not_new() {
    let (archive, item) = with_item();
    for round in 0..100 {
        count(&archive);
        change(&archive, &item, &format!("{round}"));
        std::thread::scope(|scope| {
            let forgetting = scope.spawn(|| archive.keeper().forget_fresh_content());
            while !forgetting.is_finished() {
                assert!(archive.was_known(item.id).expect("read"), "{round}");
            }
        });
        assert!(archive.was_known(item.id).expect("read"));
    }
}

/// The change begins while the item is walked through, or right before the row is written.
#[test]
fn a_change_during_the_count_is_not_lost() {
    for step in 0..4 {
        let (archive, item) = with_item();
        let steps = Cell::new(0);
        let act = |read: &mut dyn FnMut()| {
            if step == steps.replace(steps.get() + 1) {
                change(&archive, &item, "longer text");
            }
            read();
            if step == steps.replace(steps.get() + 1) {
                change(&archive, &item, "longer text");
            }
        };
        drop(archive.change_content(item.id));
        let keeper = archive.keeper();
        keeper.forget_fresh_content();
        let none = HashSet::new();
        let counted = keeper.count_left_alone(READER, &act, &none, AT_ONCE);
        counted.expect("counted");
        keeper.forget_fresh_content();
        let seen = size(&archive, &item);
        let is_changed = step < steps.get();
        assert_eq!(seen, (!is_changed).then_some((1, 5)), "step {step}");
        count(&archive);
        let bytes = if is_changed { 11 } else { 5 };
        assert_eq!(size(&archive, &item), Some((1, bytes)), "step {step}");
    }
}

#[test]
fn a_crash_makes_no_row_wrong() {
    let (mut archive, item) = with_item();
    let other = archive.new_item();
    count(&archive);
    assert!(size(&archive, &other).is_some());
    // A regular end keeps the rows of what has not changed.
    archive.reopen();
    assert_eq!(size(&archive, &item), Some((1, 5)));
    change(&archive, &item, "longer text");
    archive.reopen();
    assert_eq!(size(&archive, &item), None);
    assert!(size(&archive, &other).is_some());
    count(&archive);
    assert_eq!(size(&archive, &item), Some((1, 11)));
    archive.crash();
    assert_eq!(size(&archive, &item), Some((1, 11)), "nothing has changed");
    change(&archive, &item, "short");
    archive.crash();
    assert_eq!(size(&archive, &item), None);
    count(&archive);
    // Counted again after a change, and changed by a mapping that no request tells of: the mark stays.
    change(&archive, &item, "longest of all");
    count(&archive);
    assert_eq!(size(&archive, &item), Some((1, 14)));
    std::fs::write(archive.file(&item, "doc/text"), "").expect("written");
    archive.crash();
    assert_eq!(size(&archive, &item), None);
}

#[test]
fn a_file_with_names_in_two_items_is_counted_in_neither() {
    let (archive, item) = with_item();
    let other = archive.new_item();
    let inside = archive.file(&item, "doc/second");
    std::fs::hard_link(archive.file(&item, "doc/text"), &inside).expect("linked");
    count(&archive);
    assert_eq!(size(&archive, &item), Some((2, 10)));
    let changes = [&item, &other].map(|it| archive.change_content(it.id));
    std::fs::rename(inside, archive.file(&other, "text")).expect("moved");
    drop(changes);
    count(&archive);
    assert_eq!(size(&archive, &item), None);
    assert_eq!(size(&archive, &other), None);
}

#[test]
fn what_was_changed_beside_the_mount_is_counted_again() {
    let (mut archive, item) = with_item();
    count(&archive);
    let place = Place::of(&item.names);
    let work = |archive: &TestArchive, level: &str, text: &str| {
        let work = archive.keeper().begin_work(level, &Process).expect("begun");
        std::fs::write(archive.file(&item, "doc/text"), text).expect("written");
        work
    };
    let begun = work(&archive, place.parent(), "longer text");
    let ended = archive.keeper().end_work(begun, &Process, &mut |_, _| true);
    ended.expect("ended");
    assert_eq!(size(&archive, &item), None);
    count(&archive);
    assert_eq!(size(&archive, &item), Some((1, 11)));
    let begun = work(&archive, "col", "short");
    drop(begun);
    archive.reopen();
    assert_eq!(size(&archive, &item), None);
}
