use std::os::unix::fs::symlink;

use super::super::testing::TestArchive;
use super::super::{Clock, Fact, Process};
use super::*;
use crate::formats::item::State;
use ibi::Timestamp;

fn own(act: &mut dyn FnMut()) {
    act();
}

/// Credentials that cannot be taken.
fn denied(_: &mut dyn FnMut()) {}

/// An Archive with an item of these files.
fn item_with(files: &[&str]) -> (TestArchive, Item) {
    let archive = TestArchive::new();
    let item = archive.new_item();
    for name in files {
        let path = archive.file(&item, name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect(name);
        std::fs::write(path, *name).expect(name);
    }
    (archive, item)
}

fn content_path(archive: &TestArchive, item: &Item, path: Option<&str>) -> Option<String> {
    let path = path.map(str::as_bytes);
    let found = archive.read_as(&own).content_path(item, path);
    let found = found.expect("read");
    found.map(|path| String::from_utf8(path).expect("text"))
}

#[test]
fn a_path_means_a_file_of_doc_or_of_the_item() {
    let files = ["doc/a.pdf", "doc/b/c.pdf", "a.pdf", "source/x.tex"];
    let (archive, item) = item_with(&files);
    symlink("../.ibi", archive.file(&item, "doc/sidecar")).expect("a link");
    symlink("b/c.pdf", archive.file(&item, "doc/c.pdf")).expect("a link");
    for (path, expected) in [
        ("a.pdf", Some("doc/a.pdf")),
        ("/a.pdf", Some("doc/a.pdf")),
        ("//b/c.pdf", Some("doc/b/c.pdf")),
        ("c.pdf", Some("doc/c.pdf")),
        ("source/x.tex", Some("source/x.tex")),
        ("doc/a.pdf", Some("doc/a.pdf")),
        ("b", None),
        ("", None),
        ("missing", None),
        ("../a.pdf", None),
        ("./a.pdf", None),
        (".ibi", None),
        ("sidecar", None),
    ] {
        let found = content_path(&archive, &item, Some(path));
        assert_eq!(found.as_deref(), expected, "{path}");
    }
    let refused = archive.read_as(&denied).content_path(&item, Some(b"a.pdf"));
    assert!(refused.is_err());
}

#[test]
fn without_a_path_the_target_is_meant_or_the_only_file() {
    for (files, target, expected) in [
        (&["doc/a.pdf", "doc/b.pdf"][..], None, None),
        (
            &["doc/a.pdf", "doc/b.pdf"],
            Some("b.pdf"),
            Some("doc/b.pdf"),
        ),
        (&["doc/a.pdf", "doc/b.pdf"], Some("c.pdf"), None),
        (&["doc/a.pdf"], None, Some("doc/a.pdf")),
        (&["doc/a.pdf", "doc/b/c.pdf"], None, Some("doc/a.pdf")),
        (&["doc/b/c.pdf"], None, None),
        (
            &["doc/a.pdf", "doc/index.html"],
            None,
            Some("doc/index.html"),
        ),
        (&["a.pdf"], None, Some("a.pdf")),
        (&["a.pdf", "doc/b/c.pdf"], None, Some("a.pdf")),
        (&["a.pdf", "b.pdf"], None, None),
    ] {
        let (archive, item) = item_with(files);
        let item = Item {
            target: target.map(str::to_owned),
            ..item
        };
        let found = content_path(&archive, &item, None);
        assert_eq!(found.as_deref(), expected, "{files:?} {target:?}");
    }
}

/// Until the instant nothing in the item is found, whichever function is asked, and from then on all of it.
#[test]
fn nothing_is_found_in_an_item_that_is_withheld() {
    let (archive, item) = item_with(&["doc/a.pdf", "doc/b/c.pdf"]);
    let other = archive.new_item();
    let climb = "../".repeat(5) + &other.names.preferred() + "/x";
    symlink(climb, archive.file(&item, "doc/out")).expect("a link");
    let until = Timestamp::from_unix(archive.clock.now().seconds() + 60, 0);
    let fact = Fact::Available(Some(until.clone()));
    let set = archive.edit(&Process, |it| it.set_fact(&item.names, fact));
    set.expect("written");
    let item = archive.again(&item);
    let found = || {
        let reader = archive.read_as(&own);
        let paths = [
            "doc",
            "doc/a.pdf",
            "doc/b",
            "doc/b/c.pdf",
            "doc/out",
            "none",
        ];
        let opened = |path: &&str| {
            reader.open_content(&item, path.as_bytes()).is_ok()
                || reader.find_content_cached(&item, path.as_bytes()).is_ok()
                || reader.open_public_directory(&item, path.as_bytes()).is_ok()
                || content_path(&archive, &item, Some(path)).is_some()
                || reader
                    .link_out(&item, path.as_bytes())
                    .expect("read")
                    .is_some()
        };
        let inventory = reader.inventory(&item, b"", 100).expect("read");
        let directory = reader.open_public_directory(&item, b"").expect("opens");
        let mut names = 0;
        let visited = reader.next_public_entries(&directory, |_, _| names += 1);
        visited.expect("read");
        assert!(reader.open_content(&item, b"").is_ok());
        (
            paths.iter().filter(|path| opened(path)).count(),
            reader.listing(&item, b"", 100).expect("read").files.len(),
            reader.entries(&item, b"", 100).expect("read").files.len(),
            inventory.entries.len(),
            names,
        )
    };
    assert_eq!(found(), (0, 0, 0, 2, 0));
    archive.clock.set(until);
    assert_eq!(found(), (5, 2, 4, 7, 1));
}

#[test]
fn files_of_ibifs_are_not_opened() {
    let (archive, item) = item_with(&["doc/a.pdf", ".ibi.metadata", ".ibi.broken"]);
    symlink("../.ibi", archive.file(&item, "doc/sidecar")).expect("a link");
    symlink("a.pdf", archive.file(&item, "doc/link")).expect("a link");
    for (path, length) in [
        ("doc/a.pdf", Some(9)),
        ("doc/link", Some(9)),
        (".ibi", None),
        ("/.ibi", None),
        (".ibi.metadata", None),
        (".ibi.broken", None),
        ("doc/sidecar", None),
        ("doc/../.ibi", None),
        ("doc/./a.pdf", None),
        ("doc/missing", None),
    ] {
        let opened = archive.read_as(&own).open_content(&item, path.as_bytes());
        assert_eq!(opened.ok().map(|file| file.length()), length, "{path}");
        // A file that is not cached may be answered with EAGAIN, nothing else may be given.
        let cached = archive
            .read_as(&own)
            .open_content_cached(&item, path.as_bytes());
        match cached {
            Ok(file) => assert_eq!(Some(file.length()), length, "{path}"),
            Err(ArchiveError::Tree(error)) if error.errno() == Errno::AGAIN => {}
            Err(error) => assert_eq!(length, None, "{path}: {error}"),
        }
    }
    assert!(
        archive
            .read_as(&denied)
            .open_content(&item, b"doc/a.pdf")
            .is_err()
    );
}

#[test]
fn the_metadata_text_is_opened_as_such() {
    let (archive, item) = item_with(&["doc/a.pdf"]);
    let has = || archive.read_as(&own).has_metadata_text(&item);
    assert!(!has().expect("read"));
    assert!(archive.read_as(&own).open_metadata_text(&item).is_err());
    let text = archive.file(&item, METADATA_TEXT);
    std::fs::write(&text, "title x\n").expect("written");
    assert!(has().expect("read"));
    let opened = archive
        .read_as(&own)
        .open_metadata_text(&item)
        .expect("opened");
    assert_eq!(opened.length(), 8);
    std::fs::remove_file(&text).expect("removed");
    symlink("doc/a.pdf", &text).expect("a link");
    assert!(
        archive.read_as(&own).open_metadata_text(&item).is_err(),
        "a link"
    );
    std::fs::remove_file(&text).expect("removed");
    std::fs::create_dir(&text).expect("a directory");
    assert!(!has().expect("read"), "a directory");
    assert!(archive.read_as(&own).open_metadata_text(&item).is_err());
}

#[test]
fn an_item_was_updated_when_its_parts_were() {
    let (archive, item) = item_with(&["doc/a.pdf", "doc/b.pdf"]);
    let set = |name: &str, seconds: u64| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let file = std::fs::File::open(archive.file(&item, name)).expect(name);
        file.set_modified(time).expect(name);
    };
    let updated = |item: &Item| {
        let found = archive.read_as(&own).updated(item);
        found.expect("read").map(|date| date.seconds())
    };
    for (name, seconds) in [
        ("doc/a.pdf", 400),
        ("doc/b.pdf", 500),
        ("doc", 200),
        (".ibi", 300),
    ] {
        set(name, seconds);
    }
    let targeted = Item {
        target: Some("a.pdf".to_owned()),
        ..item.clone()
    };
    // Every file counts, not the target alone, and so does a directory below.
    assert_eq!((updated(&item), updated(&targeted)), (Some(500), Some(500)));
    set("doc/a.pdf", 600);
    assert_eq!(updated(&item), Some(600));
    std::fs::create_dir(archive.file(&item, "doc/sub")).expect("made");
    std::fs::write(archive.file(&item, "doc/sub/deep"), "x").expect("written");
    set("doc/sub/deep", 800);
    set("doc/sub", 700);
    set("doc", 450);
    assert_eq!(updated(&item), Some(800));
    std::fs::write(archive.file(&item, ".ibi.metadata"), "title: x").expect("written");
    set(".ibi.metadata", 900);
    assert_eq!(updated(&item), Some(900));
    let removed = Item {
        state: State::Deleted,
        removed_at: Some(Timestamp::from_unix(77, 0)),
        ..targeted
    };
    assert_eq!(updated(&removed), Some(77));
}

#[test]
fn a_listing_goes_on_after_any_path() {
    let files = [
        ".ibi.metadata",
        "a",
        "b/1",
        "b/2/x",
        "b-",
        "c.pdf",
        "doc/a",
        "doc/z/1",
    ];
    let (archive, item) = item_with(&files);
    symlink(".ibi", archive.file(&item, "link")).expect("a link");
    symlink("nowhere", archive.file(&item, "broken")).expect("a link");
    symlink("a", archive.file(&item, "good")).expect("a link");
    let listing = |after: &str, most: usize| {
        let listing = archive.read_as(&own).listing(&item, after.as_bytes(), most);
        let listing = listing.expect("read");
        let paths = listing.files.into_iter();
        let paths = paths.map(|file| String::from_utf8(file.path).expect("text"));
        (paths.collect::<Vec<_>>(), listing.has_more)
    };
    let (all, has_more) = listing("", 100);
    // In the order of their bytes.
    let expected = [
        "a", "b-", "b/1", "b/2/x", "c.pdf", "doc/a", "doc/z/1", "good",
    ];
    assert_eq!(
        (all.as_slice(), has_more),
        (&expected.map(str::to_owned)[..], false)
    );
    for most in 1..=all.len() {
        for (at, after) in all.iter().enumerate() {
            let rest = &all[at + 1..];
            let page = &rest[..most.min(rest.len())];
            let (found, has_more) = listing(after, most);
            assert_eq!(
                (found.as_slice(), has_more),
                (page, rest.len() > most),
                "{after} {most}"
            );
        }
    }
    assert_eq!(
        listing("b/1x", 1).0,
        ["b/2/x"],
        "after a path that is not there"
    );
    let file = archive
        .read_as(&own)
        .listing(&item, b"b/", 1)
        .expect("read");
    assert_eq!(file.files[0].length, 3);
    assert!(archive.read_as(&denied).listing(&item, b"", 1).is_err());
}
