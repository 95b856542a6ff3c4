use super::testing::{TestArchive, TestParts, creator, elsewhere, names};
use super::{Archive, ArchiveError, BACKUP_NOTE, Process, SystemClock, holder, own_files};
use crate::archive::store::ItemId;
use crate::archive::tree::Place;
use crate::formats::item::{Names, Sidecar, State};
use ibi::Timestamp;
use std::path::Path;

#[test]
fn an_item_is_registered_once() {
    let archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    assert_eq!(item.state, State::Copy);
    let again = archive.depositor(&Process).register(&item.names, creator());
    assert!(matches!(again, Err(ArchiveError::Exists(_))), "{again:?}");
    let other_case = names("A.EXAMPLE/B/2001/01.01.00.00");
    let again = archive.depositor(&Process).register(&other_case, creator());
    assert!(matches!(again, Err(ArchiveError::Exists(_))), "{again:?}");
}

#[test]
fn a_removed_item_leaves_a_tombstone_and_can_come_back() {
    let archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    archive.edit_raw(&item, |sidecar| {
        sidecar.set_names(&Names::both(
            item.names.rep().cloned().expect("a rep"),
            "8JMKD3MGP8W/35MMLL8".parse().expect("an IBIp"),
        ));
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(item.id))
        .expect("accepted");
    let item = archive.again(&item);
    std::fs::write(archive.file(&item, "map"), "x").expect("a file");
    let full = archive.edit(&Process, |it| it.remove(item.id));
    assert!(matches!(full, Err(ArchiveError::NotEmpty(_))), "{full:?}");
    std::fs::remove_file(archive.file(&item, "map")).expect("removed");
    archive.clock.advance_milliseconds(60_500);
    archive
        .edit(&Process, |it| it.remove(item.id))
        .expect("removed");
    let removed = archive.again(&item);
    assert_eq!(removed.state, State::Deleted);
    // With a precision of one second.
    assert_eq!(
        removed.removed_at,
        Timestamp::parse_rfc3339("2026-01-02T03:05:05Z").ok()
    );
    assert_eq!(archive.held(&item.names).expect("read"), None);
    let place = Place::of(&item.names);
    let bytes = archive.tree().read_tombstone(&place).expect("read");
    let tombstone = Sidecar::parse(&bytes.expect("a tombstone")).expect("readable");
    assert_eq!(tombstone.state(), Some(State::Deleted));
    assert_eq!(tombstone.archive_service(), Some(&elsewhere()));
    assert_eq!(archive.findings(), Vec::<String>::new());
    // It is restored with both of its names.
    let rep = names("a.example/b/2001/01.01.00.00");
    let back = archive
        .depositor(&Process)
        .register(&rep, creator())
        .expect("registered");
    assert_eq!(
        (back.id, &back.names, back.state),
        (item.id, &item.names, State::Copy)
    );
    // Its tombstone goes when its sidecar is there again.
    let mut sidecar = Sidecar::new(&item.names);
    sidecar.set_archive_service(&elsewhere());
    archive.write_raw(&back, &sidecar.to_bytes());
    archive
        .edit(&Process, |it| it.accept_sidecar(back.id))
        .expect("accepted");
    assert_eq!(archive.tree().read_tombstone(&place).expect("read"), None);
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn an_item_of_the_index_is_found_by_its_rep() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let rep = item.names.rep().expect("a rep");
    std::fs::remove_dir_all(archive.file(&item, "")).expect("removed");
    assert_eq!(
        archive.item_at(rep).expect("known"),
        item,
        "without its directory"
    );
    let unknown = "a.example/b/2001/01.01.00.00".parse().expect("a rep");
    let found = archive.item_at(&unknown);
    assert!(
        matches!(found, Err(ArchiveError::Unknown { .. })),
        "{found:?}"
    );
    // A directory that the index lacks is registered.
    std::fs::create_dir_all(archive.path().join("col").join(unknown.as_str())).expect("made");
    let found = archive.item_at(&unknown).expect("registered");
    assert_eq!(
        (found.names.rep(), found.state),
        (Some(&unknown), State::Copy)
    );
    archive.remove_whole(&found);
    let removed = archive.item_at(&unknown);
    assert!(
        matches!(removed, Err(ArchiveError::Unknown { .. })),
        "{removed:?}"
    );
}

#[test]
fn the_service_item_is_not_removed() {
    let archive = TestArchive::new();
    let service = archive.held(&archive.facts().service).expect("read");
    let service = service.expect("the service");
    std::fs::remove_dir(archive.file(&service, "doc")).expect("removed");
    let refused = archive.edit(&Process, |it| it.remove(service.id));
    assert!(
        matches!(refused, Err(ArchiveError::ServiceItem)),
        "{refused:?}"
    );
    let unknown = archive.edit(&Process, |it| it.remove(ItemId(4711)));
    assert!(
        matches!(unknown, Err(ArchiveError::Unknown { .. })),
        "{unknown:?}"
    );
}

#[test]
fn a_removed_original_is_not_minted_again() {
    let mut archive = TestArchive::new();
    let item = archive.new_item();
    archive.remove_whole(&item);
    archive.crash();
    assert_eq!(archive.again(&item).state, State::Deleted);
    assert!(!archive.file(&item, "").exists());
    assert_eq!(archive.findings(), Vec::<String>::new());
    let back = archive.depositor(&Process).register(&item.names, creator());
    assert_eq!(back.expect("registered").state, State::Copy);
}

#[test]
fn one_process_writes_a_store() {
    let archive = TestArchive::new();
    archive.describe_mount(Path::new("/mnt/archive"));
    let clock = Box::new(archive.clock.clone());
    match Archive::open(archive.path(), clock) {
        Err(ArchiveError::Busy(holder)) => {
            assert_eq!(holder.pid, Some(std::process::id()));
            assert_eq!(
                holder.mount_point.as_deref(),
                Some(Path::new("/mnt/archive"))
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        holder(archive.path()).and_then(|it| it.pid),
        Some(std::process::id())
    );
    // Readers can open it.
    let reader = Archive::open_read_only(archive.path()).expect("a reader");
    let service = reader.held(&reader.facts().service).expect("read");
    for refused in [
        reader.depositor(&Process).reserve().map(drop),
        reader.edit(&Process, |it| it.remove(service.expect("the service").id)),
        reader
            .depositor(&Process)
            .register(&elsewhere(), creator())
            .map(drop),
    ] {
        assert!(
            matches!(refused, Err(ArchiveError::ReadOnly)),
            "{refused:?}"
        );
    }
}

#[test]
fn a_directory_that_is_not_a_store_is_refused() {
    let directory = crate::os::testing::TemporaryDirectory::new();
    let clock = || Box::new(SystemClock);
    let refused = Archive::open(directory.path(), clock());
    assert!(
        matches!(refused, Err(ArchiveError::NotAStore { .. })),
        "{refused:?}"
    );
    std::fs::write(directory.path().join(BACKUP_NOTE), "finished 2026\n").expect("a note");
    Archive::refuse_unfinished(directory.path()).expect("a finished backup");
    std::fs::write(directory.path().join(BACKUP_NOTE), "started 2026\n").expect("a note");
    let refused = Archive::refuse_unfinished(directory.path());
    assert!(
        matches!(refused, Err(ArchiveError::Unfinished { .. })),
        "{refused:?}"
    );
}

#[test]
fn changed_facts_are_refused() {
    let archive = TestArchive::new();
    let TestParts { directory, clock } = archive.close_for_good();
    let file = directory.path().join(own_files::FACTS);
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, text.replace("store.archive", "other.archive")).expect("written");
    let open = || Archive::open(directory.path(), Box::new(clock.clone()));
    let refused = open();
    assert!(
        matches!(refused, Err(ArchiveError::FactsChanged)),
        "{refused:?}"
    );
    let archive = Archive::open_for_reindex(directory.path(), Box::new(clock.clone()));
    archive.expect("opened").close();
    assert_eq!(
        open().expect("opened").facts().host,
        "other.archive.example"
    );
}

#[test]
fn changed_urls_are_accepted() {
    let archive = TestArchive::new();
    let TestParts { directory, clock } = archive.close_for_good();
    let file = directory.path().join(own_files::FACTS);
    let text = std::fs::read_to_string(&file).expect("read");
    let open = || Archive::open(directory.path(), Box::new(clock.clone()));
    let urls = "url https://archive.example/x/\nresolver http://urlib.net/\n";
    std::fs::write(&file, format!("{text}{urls}")).expect("written");
    let archive = open().expect("opened");
    let url = archive.facts().base_url().to_string();
    assert_eq!(url, "https://archive.example/x");
    archive.close();
    drop(archive);
    std::fs::write(&file, format!("{text}url archive.example\n")).expect("written");
    let refused = open().expect_err("not a URL").to_string();
    assert_eq!(
        refused,
        "archive.ibi: the value of 'url': 'archive.example' is not the URL of a service; write https://host, \
         https://host:port or https://host/path, without a query; correct it, or restore it from a backup"
    );
}

#[test]
fn own_reps() {
    let archive = TestArchive::new();
    for (rep, is_own) in [
        ("archive.example/store/2026/01.01.00.00", true),
        ("ARCHIVE.example/Store/2026/01.01.00.00", true),
        ("archive.example/store@81/2026/01.01.00.00", false),
        ("archive.example/stores/2026/01.01.00.00", false),
        ("a.example/store/2026/01.01.00.00", false),
    ] {
        let found = archive
            .facts
            .is_own_rep(&rep.parse().expect(rep))
            .expect(rep);
        assert_eq!(found, is_own, "{rep}");
    }
}

#[test]
fn levels_keep_the_spelling_that_they_have() {
    let archive = TestArchive::new();
    archive.copy("a.example/B/2001/01.01.00.00");
    for (asked, expected) in [
        (
            "A.example/b/2001/01.02.00.00",
            "a.example/B/2001/01.02.00.00",
        ),
        (
            "A.example/c/2001/01.02.00.00",
            "a.example/c/2001/01.02.00.00",
        ),
        (
            "C.example/b/2001/01.02.00.00",
            "C.example/b/2001/01.02.00.00",
        ),
    ] {
        let spelled = archive.as_spelled_here(&asked.parse().expect(asked));
        assert_eq!(spelled.expect(asked).as_str(), expected);
    }
}
