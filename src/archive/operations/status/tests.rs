use super::super::testing::{ManualClock, TestArchive};
use super::*;
use crate::archive::store;

fn status(archive: &TestArchive) -> Status {
    Status::of(archive.path(), &archive.clock)
}

#[test]
fn the_words_of_an_index() {
    let words = [
        IndexState::Current,
        IndexState::Behind,
        IndexState::Older,
        IndexState::Newer,
        IndexState::Missing,
        IndexState::Damaged,
        IndexState::Unreadable,
    ];
    assert_eq!(
        words.map(|state| state.word()),
        [
            "current",
            "behind",
            "older",
            "newer",
            "missing",
            "damaged",
            "unreadable"
        ]
    );
}

#[test]
fn items_are_counted_by_state_and_by_age() {
    let archive = TestArchive::new();
    archive.copy("a.example/b/2001/01.01.00.00");
    let removed = archive.new_item();
    archive.remove_whole(&removed);
    let minted = |archive: &TestArchive| {
        let minted = status(archive).minted.expect("the index is readable");
        (minted.hour, minted.day, minted.month)
    };
    // The service's own item was minted, too; a removed item was minted all the same.
    let start = minted(&archive);
    assert_eq!(start, (2, 2, 2));
    archive.clock.advance_milliseconds(2 * HOUR * 1000);
    archive.new_item();
    assert_eq!(minted(&archive), (1, 3, 3));
    archive.clock.advance_milliseconds(2 * DAY * 1000);
    archive.new_item();
    assert_eq!(minted(&archive), (1, 1, 4));
    archive.clock.advance_milliseconds(29 * DAY * 1000);
    assert_eq!(minted(&archive), (0, 0, 1));
    let found = status(&archive);
    let items = found.items.expect("the index is readable");
    assert_eq!((items.originals, items.copies, items.removed), (3, 1, 1));
    let last = found.minted.and_then(|minted| minted.last);
    assert!(last.is_some());
}

#[test]
fn originals_removed_lately_are_listed() {
    let archive = TestArchive::new();
    let copy = archive.copy("a.example/b/2001/01.01.00.00");
    let [first, second] = [archive.new_item(), archive.new_item()];
    for item in [&first, &copy, &second] {
        archive.clock.advance_milliseconds(60_000);
        archive.remove_whole(item);
    }
    let removed = |archive: &TestArchive| -> Vec<Names> {
        let removed = status(archive).removed.into_iter();
        removed.map(|removed| removed.names).collect()
    };
    assert_eq!(
        removed(&archive),
        [second.names.clone(), first.names.clone()]
    );
    let at = status(&archive).removed[0].at.clone();
    assert_eq!(Some(at), archive.again(&second).removed_at);
    archive.clock.advance_milliseconds(30 * DAY * 1000 - 30_000);
    assert_eq!(removed(&archive), [second.names]);
    archive.clock.advance_milliseconds(60_000);
    assert_eq!(removed(&archive), []);
}

#[test]
fn an_index_is_behind_after_a_crash_only() {
    let mut archive = TestArchive::new();
    archive.new_item();
    let state = |archive: &TestArchive| {
        let status = status(archive);
        assert_eq!(
            status.trouble.is_some(),
            status.index != IndexState::Current
        );
        status.index
    };
    assert_eq!(state(&archive), IndexState::Current, "the process runs");
    archive.reopen();
    assert_eq!(state(&archive), IndexState::Current);
    archive.new_item();
    let mut seen = None;
    let clock = archive.clock.clone();
    archive.crash_and(|path| seen = Some(Status::of(path, &clock).index));
    assert_eq!(seen, Some(IndexState::Behind));
    assert_eq!(state(&archive), IndexState::Current);
    let closed = archive.close_for_good();
    let closed = Status::of(closed.directory.path(), &clock);
    assert_eq!(closed.index, IndexState::Current, "no process has it open");
}

/// Sets the version of the schema, which SQLite keeps at byte 60 of the file.
fn set_schema(path: &Path, version: u32) {
    let mut bytes = std::fs::read(path).expect("an index");
    bytes[60..64].copy_from_slice(&version.to_be_bytes());
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn what_cannot_be_read_is_reported() {
    let clock = ManualClock::at("2026-01-02T03:04:05Z");
    let of = |damage: &dyn Fn(&Path)| {
        let archive = TestArchive::new();
        let parts = archive.close_for_good();
        damage(parts.directory.path());
        let status = Status::of(parts.directory.path(), &clock);
        assert!(status.trouble.is_some());
        assert!(status.items.is_none() && status.minted.is_none() && status.removed.is_empty());
        status.index
    };
    let remove = |path: &Path| std::fs::remove_file(path.join(store::FILE)).expect("removed");
    assert_eq!(of(&remove), IndexState::Missing);
    let garble = |path: &Path| {
        std::fs::write(path.join(store::FILE), [7; 8192]).expect("written");
    };
    assert_eq!(of(&garble), IndexState::Damaged);
    for (version, state) in [(1, IndexState::Older), (9999, IndexState::Newer)] {
        let set = |path: &Path| set_schema(&path.join(store::FILE), version);
        assert_eq!(of(&set), state);
    }
    let facts = |path: &Path| {
        std::fs::remove_file(path.join(super::super::own_files::FACTS)).expect("removed");
    };
    assert_eq!(of(&facts), IndexState::Unreadable);
}
