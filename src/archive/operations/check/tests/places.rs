//! Items, sidecars and tombstones in the tree, compared with the index.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::archive::operations::check::scan::is_unreadable;
use crate::archive::tree::{Tree, TreeError};
use crate::formats::item::Sidecar;
use rustix::io::Errno;

const OTHER: &str = "a.example/b/2001/01.02.00.00";
const IBIP: &str = "8JMKD3MGP8W/35MMLL8";

fn directory(path: &Path) {
    std::fs::create_dir_all(path).expect("made");
}

fn file(path: &Path) {
    std::fs::write(path, "x").expect("written");
}

fn link(path: &Path) {
    std::os::unix::fs::symlink("elsewhere", path).expect("a link");
}

/// Damages a store that is not open, and compares the findings with those that a repair leaves.
#[track_caller]
fn check_closed(
    prepare: impl FnOnce(&TestArchive),
    damage: impl FnOnce(&TestParts),
    found: &[&str],
    left: &[&str],
) -> TestParts {
    let store = closed(prepare);
    damage(&store);
    assert_lines(&report(&store), found);
    repaired(&store);
    assert_lines(&report(&store), left);
    store
}

#[test]
fn what_is_not_an_item_is_reported_if_it_is_in_the_way() {
    for (make, path, code) in [
        (
            directory as fn(&Path),
            "col/a.example/b/2001/notes",
            Some("stray-name"),
        ),
        (file, "col/a.example/b/2001/notes", None),
        (
            file,
            "col/a.example/b/2001/01.03.00.00",
            Some("not-a-directory"),
        ),
        (file, "col/a.example/b/notes", None),
        (link, "col/a.example/b/notes", Some("not-a-directory")),
        (link, "ibip/notes", Some("not-a-directory")),
        (file, "ibip/8JMKD3MGP8W/notes", None),
        (file, "ibip/8JMKD3MGP8W/35MMLL9", Some("not-a-directory")),
        (directory, "ibip/8JMKD3MGP8W/notes here", Some("stray-name")),
    ] {
        let line = format!("{} {path}", code.unwrap_or_default());
        let expected: Vec<&str> = code.iter().map(|_| line.as_str()).collect();
        check_closed(
            |archive| drop(archive.copy(IBIP)),
            |store| make(&store.directory.join(path)),
            &expected,
            &expected,
        );
    }
}

/// Also where it cannot be text: the message writes the bytes that are not UTF-8, control characters and `%` as `%hh`.
#[test]
fn names_that_are_not_utf_8_are_reported_escaped() {
    for (make, path, shown) in [
        (
            directory as fn(&Path),
            &b"col/caf\xe9"[..],
            Some("col/caf%E9"),
        ),
        (link, b"col/caf\xe9", Some("col/caf%E9")),
        (file, b"col/caf\xe9", None),
        (
            directory,
            b"col/a.example/\xff\xfe",
            Some("col/a.example/%FF%FE"),
        ),
        (
            directory,
            b"col/a.example/b/2001/\xa0\xc3\xa9",
            Some("col/a.example/b/2001/%A0\u{e9}"),
        ),
        (file, b"col/a.example/b/2001/\xa0", None),
        (link, b"col/a.example/b/2001/\xa0", None),
        (
            directory,
            b"col/a.example/b/2001/a\n%",
            Some("col/a.example/b/2001/a%0A%25"),
        ),
        (directory, b"ibip/\xff", Some("ibip/%FF")),
        (
            file,
            b"deleted/col/a.example/b/2001/\xff",
            Some("deleted/col/a.example/b/2001/%FF"),
        ),
    ] {
        let line = format!("stray-name {}", shown.unwrap_or_default());
        let expected: Vec<&str> = shown.iter().map(|_| line.as_str()).collect();
        check_closed(
            |archive| drop(archive.copy(IBIP)),
            |store| {
                let path = store.directory.join(OsStr::from_bytes(path));
                directory(path.parent().expect("in the store"));
                make(&path);
            },
            &expected,
            &expected,
        );
    }
}

#[test]
fn two_spellings_of_one_level_are_reported() {
    let expected = ["spelled-twice col/a.example: col/A.example"];
    check_closed(
        |_| (),
        |store| directory(&store.directory.join("col/A.example")),
        &expected,
        &expected,
    );
}

#[test]
fn something_else_in_the_place_of_a_sidecar_is_set_aside() {
    let make: [fn(&Path); 3] = [
        |path| std::fs::create_dir(path).expect("made"),
        link,
        |path| std::fs::write(path, vec![b' '; 2 << 20]).expect("written"),
    ];
    for make in make {
        let broken = format!("broken-sidecar {COPY}: ");
        let store = check_closed(
            |_| (),
            |store| {
                let sidecar = store.directory.join(format!("col/{COPY}/.ibi"));
                std::fs::remove_file(&sidecar).expect("removed");
                make(&sidecar);
            },
            &[&broken],
            &[],
        );
        let aside = store.directory.join(format!("col/{COPY}/.ibi.broken-1"));
        assert!(aside.symlink_metadata().is_ok());
    }
}

#[test]
fn only_errors_of_the_disk_leave_open_what_a_file_holds() {
    let error = |errno| {
        let store = closed(|_| ());
        let tree = Tree::open_as_it_is(store.directory.path()).expect("opened");
        let error: TreeError = tree.error(crate::archive::tree::Action::Read, "x", errno);
        is_unreadable(&error)
    };
    for (errno, expected) in [
        (Errno::IO, true),
        (Errno::ACCESS, true),
        (Errno::LOOP, false),
        (Errno::FBIG, false),
        (Errno::ISDIR, false),
    ] {
        assert_eq!(error(errno), expected, "{errno}");
    }
}

fn tombstone(store: &TestParts) -> PathBuf {
    store.directory.join(format!("deleted/col/{OTHER}"))
}

#[test]
fn records_of_removals_are_compared_with_the_index() {
    type Damage = fn(&Path);
    let damages: [(Damage, String); 3] = [
        (
            |path| std::fs::remove_file(path).expect("removed"),
            format!("missing-tombstone {OTHER}"),
        ),
        (
            |path| std::fs::write(path, "ibi {").expect("written"),
            format!("broken-tombstone deleted/col/{OTHER}: "),
        ),
        (
            |path| {
                let mut text = std::fs::read_to_string(path).expect("a tombstone");
                text.push_str("note x\n");
                std::fs::write(path, text).expect("written");
            },
            format!("changed-tombstone {OTHER}: only in pairs that ibifs does not read"),
        ),
    ];
    for (damage, expected) in damages {
        let store = check_closed(
            |archive| archive.remove_whole(&archive.copy(OTHER)),
            |store| damage(&tombstone(store)),
            &[&expected],
            &[],
        );
        let bytes = std::fs::read(tombstone(&store)).expect("a tombstone");
        let sidecar = Sidecar::parse(&bytes).expect("valid");
        assert_eq!(sidecar.state(), Some(State::Deleted), "{expected}");
    }
}

#[test]
fn a_record_of_removal_of_an_item_that_is_there_is_removed() {
    let left = format!("left-tombstone {COPY}");
    let store = check_closed(
        |archive| {
            let item = copy(archive);
            let tombstone = archive
                .edit(&Process, |it| it.tombstone_of(&item))
                .expect("a tombstone");
            let place = Place::of(&item.names);
            let written = archive
                .tree()
                .write_tombstone(&place, &tombstone.to_bytes());
            written.expect("written");
        },
        |_| (),
        &[&left],
        &[],
    );
    assert!(!store.directory.join(format!("deleted/col/{COPY}")).exists());
}

/// A user may have changed the sidecar of an original by mistake: what it was is kept.
#[test]
fn a_changed_sidecar_of_an_original_is_kept_as_it_was() {
    let mut rep = String::new();
    let mut before = Vec::new();
    let store = closed(|archive| {
        let item = archive.new_item();
        rep = item.names.rep().expect("a rep").to_string();
        before = std::fs::read(archive.file(&item, ".ibi")).expect("a sidecar");
    });
    for name in [COPY, &rep] {
        let path = store.directory.join(format!("col/{name}/.ibi"));
        let mut text = std::fs::read_to_string(&path).expect("a sidecar");
        text.push_str("target x\n");
        std::fs::write(&path, text).expect("written");
    }
    let found = report(&store);
    let changed = |name: &str| format!("changed-sidecar {name}: ");
    let own = names(&rep);
    let codes: Vec<CheckCode> = found.findings.iter().map(|it| it.code).collect();
    assert_eq!(codes, [CheckCode::ChangedSidecar; 2], "{:?}", lines(&found));
    assert!(
        lines(&found)
            .iter()
            .any(|line| line.starts_with(&changed(COPY)))
    );
    repaired(&store);
    assert_lines(&report(&store), &[]);
    let kept =
        |name: &str| std::fs::read(store.directory.join(format!("col/{name}/.ibi.before-1")));
    assert_eq!(kept(&rep).expect("kept"), before);
    assert!(kept(COPY).is_err(), "a copy can be fetched again");
    let clock = Box::new(store.clock.clone());
    let archive = Archive::open(store.directory.path(), clock).expect("opened");
    let item = archive.held(&own).expect("read").expect("the item");
    assert_eq!(item.target.as_deref(), Some("x"));
}

#[test]
fn the_service_item_is_an_original_again() {
    let mut service = String::new();
    let store = closed(|archive| service = archive.facts().service.preferred());
    let path = std::fs::read_dir(store.directory.join("col/archive.example/store/2026"));
    let item = path
        .expect("a year")
        .next()
        .expect("an item")
        .expect("read");
    let sidecar = item.path().join(".ibi");
    let mut changed = Sidecar::parse(&std::fs::read(&sidecar).expect("read")).expect("valid");
    changed.set_archive_service(&elsewhere());
    std::fs::write(&sidecar, changed.to_bytes()).expect("written");
    let expected = format!("service-missing {service}");
    assert_lines(&report(&store), &[&expected]);
    repaired(&store);
    assert_lines(&report(&store), &[]);
    let restored = Sidecar::parse(&std::fs::read(&sidecar).expect("read")).expect("valid");
    assert_eq!(restored.archive_service(), Some(changed.names()));
}

#[test]
fn a_row_of_the_index_that_the_tree_contradicts_is_replaced() {
    let expected = format!("index-differs {COPY}");
    let store = check_closed(
        |archive| {
            let item = copy(archive);
            let bytes = std::fs::read(archive.file(&item, ".ibi")).expect("a sidecar");
            let (record, _) = archive.read_item(&item.names).expect("read");
            let put = archive.store().put(&Record {
                target: Some("x".into()),
                sidecar: Some(bytes),
                ..record
            });
            put.expect("recorded");
        },
        |_| (),
        &[&expected],
        &[],
    );
    let clock = Box::new(store.clock.clone());
    let archive = Archive::open(store.directory.path(), clock).expect("opened");
    let item = archive.held(&names(COPY)).expect("read").expect("the copy");
    assert_eq!(item.target, None);
}

/// A disk that is not mounted looks like the loss of all items. Nothing is repaired then.
#[test]
fn an_area_that_is_missing_is_not_taken_for_the_removal_of_its_items() {
    for (area, is_gone) in [("col", true), ("col", false), ("ibip", true)] {
        let store = closed(|archive| drop(archive.copy(IBIP)));
        let (path, away) = (store.directory.join(area), store.directory.join("away"));
        std::fs::rename(&path, &away).expect("moved");
        if !is_gone {
            directory(&path);
        }
        let found = report(&store);
        let missing = format!("area-missing {area}: the index knows ");
        let areas: Vec<String> = lines(&found)
            .into_iter()
            .filter(|line| line.starts_with("area-missing"))
            .collect();
        assert!(
            matches!(&areas[..], [line] if line.starts_with(&missing)),
            "{:?}",
            lines(&found)
        );
        assert!(!found.has(CheckCode::NotInTree), "{:?}", lines(&found));
        assert!(found.findings.iter().all(|finding| !finding.repairable));
        repaired(&store);
        if !is_gone {
            std::fs::remove_dir(&path).expect("still empty");
        }
        std::fs::rename(&away, &path).expect("moved back");
        assert_lines(&report(&store), &[]);
    }
    // Single items that are gone are not a missing area.
    let gone = format!("not-in-tree {IBIP}");
    check_closed(
        |archive| drop(archive.copy(IBIP)),
        |store| {
            let path = store.directory.join(format!("ibip/{IBIP}"));
            std::fs::remove_dir_all(path).expect("removed");
        },
        &[&gone],
        &[],
    );
}

/// Adds a pair to the sidecar of an item of a store that is not open.
fn add_pair(store: &TestParts, name: &str, edit: impl FnOnce(&mut Sidecar)) {
    let path = store.directory.join(format!("col/{name}/.ibi"));
    let mut sidecar = Sidecar::parse(&std::fs::read(&path).expect("read")).expect("valid");
    edit(&mut sidecar);
    std::fs::write(path, sidecar.to_bytes()).expect("written");
}

#[test]
fn the_first_to_have_an_alias_keeps_it() {
    let alias = AliasPair::parse("lib/map").expect("an alias");
    // In the order of the tree, the item that takes the alias comes before its holder or after it.
    for (holder, taker) in [(COPY, OTHER), (OTHER, COPY)] {
        let store = closed(|archive| {
            let other = archive.copy(OTHER);
            let item = if holder == OTHER {
                other
            } else {
                copy(archive)
            };
            archive.edit_raw(&item, |sidecar| sidecar.add_alias(&alias));
            archive
                .edit(&Process, |it| it.accept_sidecar(item.id))
                .expect("accepted");
        });
        add_pair(&store, taker, |sidecar| sidecar.add_alias(&alias));
        let taken = format!("alias-taken {taker}: lib/map is {holder}");
        assert_lines(&report(&store), &[&taken]);
        repaired(&store);
        let clock = Box::new(store.clock.clone());
        let archive = Archive::open_for_reindex(store.directory.path(), clock).expect("opened");
        archive.keeper().reindex(&mut |_| ()).expect("an index");
        let found = archive.store().find_by_alias(&alias).expect("read");
        assert_eq!(found.map(|item| item.names), Some(names(holder)));
    }
}

fn both(rep: &str) -> Names {
    Names::both(rep.parse().expect(rep), IBIP.parse().expect(IBIP))
}

/// Without the previous index the item that comes first in the tree has the name.
#[test]
fn one_of_two_items_has_the_name_that_both_claim() {
    let store = closed(|archive| drop(archive.copy(OTHER)));
    for name in [COPY, OTHER] {
        add_pair(&store, name, |sidecar| sidecar.set_names(&both(name)));
    }
    std::fs::remove_file(store.directory.join(crate::archive::store::FILE)).expect("removed");
    let taken = format!("name-taken {OTHER}: ");
    assert_lines(&report(&store), &["index-missing", &taken]);
    repaired(&store);
    let clock = Box::new(store.clock.clone());
    let archive = Archive::open(store.directory.path(), clock).expect("opened");
    let found = |name: &str| {
        let item = archive.held(&names(name)).expect("read");
        item.map(|item| item.names)
    };
    assert_eq!(found(IBIP), Some(both(COPY)));
    assert_eq!(found(OTHER), Some(names(OTHER)));
}

/// An item in the directory of an IBIp has that name; a sidecar only claims it.
#[test]
fn the_place_gives_a_name_before_a_sidecar_does() {
    let store = closed(|archive| {
        let item = copy(archive);
        archive.edit_raw(&item, |sidecar| sidecar.set_names(&both(COPY)));
        let accepted = archive.edit(&Process, |it| it.accept_sidecar(item.id));
        accepted.expect("accepted");
        assert_eq!(archive.again(&item).names, both(COPY));
    });
    directory(&store.directory.join(format!("ibip/{IBIP}")));
    let found = lines(&report(&store));
    assert!(
        found
            .iter()
            .any(|line| line.starts_with(&format!("name-taken {COPY}"))),
        "{found:?}"
    );
    repaired(&store);
    let clock = Box::new(store.clock.clone());
    let archive = Archive::open(store.directory.path(), clock).expect("opened");
    let held = |name: &str| {
        let item = archive.held(&names(name)).expect("read");
        item.map(|item| item.names)
    };
    assert_eq!(held(IBIP), Some(names(IBIP)));
    assert_eq!(held(COPY), Some(names(COPY)));
}
