//! `.mint`: labels, minting, what a depositor sees of a new item, and what is removed under a label.

use std::ffi::OsStr;
use std::time::Duration;

use rustix::io::Errno;

use super::fixture::{Fixture, rep, split};
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::{self, New, Removal};
use crate::fuse::namespace::NameLifetime;
use crate::os::caller::Caller;
use std::os::fd::AsFd;

fn item_of(kind: &NodeKind) -> crate::archive::store::ItemId {
    match kind {
        NodeKind::Item(id) => *id,
        other => panic!("not an item: {other:?}"),
    }
}

#[test]
fn mkdir_in_mint_makes_an_item_with_a_label() {
    let fixture = Fixture::new();
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let id = item_of(&entry.node.kind);
    let item = fixture.item(id);
    assert_eq!(entry.node.view, View::Mint);
    assert_eq!(entry.lifetime, NameLifetime::Uncached, "a label may end");
    assert_eq!(fixture.node(".mint/report").kind, NodeKind::Item(id));
    assert_eq!(fixture.node(&rep(&item)).kind, NodeKind::Item(id));
    let target = format!("-> ../{}", item.names.preferred());
    assert_eq!(fixture.describe(".mint/.report"), Ok(target));
    assert_eq!(
        fixture.list(".mint"),
        Ok(vec![".".into(), "..".into(), "report".into()])
    );
    for (name, errno) in [("report", Errno::EXIST), (".hidden", Errno::INVAL)] {
        assert_eq!(fixture.mkdir(".mint", name).err(), Some(errno), "{name}");
    }
    let other_user = Caller {
        uid: fixture.caller.uid + 1,
        ..fixture.caller
    };
    for path in [".mint/report", ".mint/.report"] {
        let found = fixture.find_as(&other_user, path);
        assert_eq!(found.err(), Some(Errno::NOENT), "{path}");
    }
}

#[test]
fn the_sidecar_is_not_in_the_way_of_its_depositor() {
    let fixture = Fixture::new();
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let item = fixture.item(item_of(&entry.node.kind));
    let own = |path: &str| fixture.find_as(&fixture.caller, path).map(|_| ());
    assert_eq!(own(".mint/report/.ibi"), Err(Errno::NOENT));
    assert_eq!(
        own(&format!("{}/.ibi", rep(&item))),
        Ok(()),
        "by its own name it is there"
    );
    let way = fixture
        .namespace
        .make_room(&fixture.caller, &entry.node, OsStr::new(".ibi"));
    assert_eq!(
        way,
        Ok(Some(OsStr::new(".ibi"))),
        "a sidecar of the depositor replaces it"
    );
    assert_eq!(own(&format!("{}/.ibi", rep(&item))), Err(Errno::NOENT));
}

#[test]
fn another_program_sees_the_sidecar_under_the_label() {
    let fixture = Fixture::new();
    fixture.mkdir(".mint", "report").expect("minted");
    assert!(fixture.find(".mint/report/.ibi").is_ok());
    let own = fixture.find_as(&fixture.caller, ".mint/report/.ibi");
    assert!(own.is_ok(), "and from then on the depositor, too");
}

#[test]
fn a_depositor_that_pauses_sees_the_sidecar() {
    let fixture = Fixture::new();
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let own = |path: &str| fixture.find_as(&fixture.caller, path).map(|_| ());
    let almost = Duration::from_millis(999);
    fixture.pass(almost);
    fixture.namespace.note_deposit(&fixture.caller, &entry.node);
    fixture.pass(almost);
    assert_eq!(own(".mint/report/.ibi"), Err(Errno::NOENT));
    let open = fixture
        .namespace
        .note_open_deposit(&fixture.caller, &entry.node);
    fixture.pass(10 * almost);
    assert_eq!(
        own(".mint/report/.ibi"),
        Err(Errno::NOENT),
        "a file is open"
    );
    drop(open);
    fixture.pass(almost);
    assert_eq!(own(".mint/report/.ibi"), Err(Errno::NOENT));
    fixture.pass(Duration::from_millis(1));
    assert_eq!(own(".mint/report/.ibi"), Ok(()));
}

#[test]
fn mkdir_of_a_modifier_mints_what_it_names() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (year, name) = split(&path);
    let made = fixture
        .mkdir(year, &format!("{name}+(pt)"))
        .expect("minted");
    let translation = fixture.item(item_of(&made.node.kind));
    assert_eq!(made.node.view, View::DeclaredInRep);
    let modifier = format!("{path}+(pt)");
    let link = format!("-> ../../../{}", rep(&translation));
    assert_eq!(
        fixture.describe(&modifier),
        Ok(link),
        "a link to other programs"
    );
    let own = fixture.find_as(&fixture.caller, &modifier).expect("found");
    assert_eq!(
        own.node.kind,
        NodeKind::Item(translation.id),
        "a directory to its depositor"
    );
    for (name, errno) in [
        (format!("{name}+(pt)"), Errno::EXIST),
        (format!("{name}+"), Errno::INVAL),
        (format!("{name}!:"), Errno::INVAL),
        (format!("{name}x+(pt)"), Errno::NOENT),
    ] {
        assert_eq!(fixture.mkdir(year, &name).err(), Some(errno), "{name}");
    }
}

/// An entry that any program removes under a label is removed, and an item with content stays.
#[test]
fn what_is_removed_under_a_label_is_removed_from_the_item() {
    let fixture = Fixture::new();
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let item = fixture.item(item_of(&entry.node.kind));
    let directory = entry.node.file().expect("open");
    inside::make(
        directory.as_fd(),
        OsStr::new("doc"),
        New::Directory,
        0o755,
        0,
        &fixture.caller,
    )
    .expect("made");
    fixture.write(&item, "doc/a.txt", "text");
    let (mint, doc) = (fixture.node(".mint"), fixture.node(".mint/report/doc"));
    let remove =
        |parent, name: &str, removal| namespace.remove(&by, parent, OsStr::new(name), removal);
    assert_eq!(
        remove(&mint, "report", Removal::Rmdir),
        Err(Errno::NOTEMPTY)
    );
    assert_eq!(remove(&doc, "a.txt", Removal::Unlink), Ok(()));
    assert!(!fixture.file(&item, "doc/a.txt").exists());
    assert_eq!(remove(&entry.node, "doc", Removal::Rmdir), Ok(()));
    assert_eq!(
        fixture.describe(&format!("{}/doc", rep(&item))),
        Err(Errno::NOENT)
    );
    assert_eq!(remove(&mint, "report", Removal::Rmdir), Ok(()));
    for path in [".mint/report", ".mint/.report", &rep(&item)] {
        assert_eq!(fixture.describe(path), Err(Errno::NOENT), "{path}");
    }
}

/// An item that readers may know leaves a public record: a mint with files is taken back within a day, one without them later, too.
#[test]
fn an_item_with_files_is_taken_back_within_a_day() {
    for (hours, has_file, is_public) in [
        (0, true, false),
        (23, true, false),
        (25, true, true),
        (25, false, false),
    ] {
        let fixture = Fixture::new();
        let (namespace, by) = (&fixture.namespace, fixture.context());
        let entry = fixture.mkdir(".mint", "report").expect("minted");
        let item = fixture.item(item_of(&entry.node.kind));
        let mint = fixture.node(".mint");
        let remove = |parent: &Node, name: &str, removal| {
            namespace.remove(&by, parent, OsStr::new(name), removal)
        };
        if has_file {
            fixture.write(&item, "a.txt", "text");
            let label = fixture.node(".mint/report");
            assert_eq!(remove(&label, "a.txt", Removal::Unlink), Ok(()));
        }
        fixture.pass(Duration::from_secs(hours * 3_600));
        assert_eq!(remove(&mint, "report", Removal::Rmdir), Ok(()));
        let told = fixture.tombstone(&item);
        assert_eq!(!told.is_unminted(), is_public, "{hours} hours, {has_file}");
    }
}

/// `rm .mint/.NAME` removes the label alone.
#[test]
fn a_label_is_removed_by_its_link() {
    let fixture = Fixture::new();
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let item = fixture.item(item_of(&entry.node.kind));
    let mint = fixture.node(".mint");
    let unlink = |name: &str| namespace.remove(&by, &mint, OsStr::new(name), Removal::Unlink);
    assert_eq!(unlink("report"), Err(Errno::PERM));
    assert_eq!(unlink(".other"), Err(Errno::NOENT));
    assert_eq!(unlink(".report"), Ok(()));
    for path in [".mint/report", ".mint/.report"] {
        assert_eq!(fixture.describe(path), Err(Errno::NOENT), "{path}");
    }
    assert!(fixture.find(&rep(&item)).is_ok(), "the item stays");
    assert!(
        fixture.mkdir(".mint", "report").is_ok(),
        "a label is free again"
    );
}

/// A label ends with its item, and its sidecar is no longer masked; other deposits go on.
#[test]
fn a_removed_item_leaves_other_labels() {
    let fixture = Fixture::new();
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let [one, _] = ["one", "two"].map(|label| fixture.mkdir(".mint", label).expect("minted"));
    let path = rep(&fixture.item(item_of(&one.node.kind)));
    let (year, name) = split(&path);
    namespace
        .remove(&by, &fixture.node(year), OsStr::new(name), Removal::Rmdir)
        .expect("an empty item");
    assert_eq!(fixture.describe(".mint/one"), Err(Errno::NOENT));
    let sidecar = fixture.find_as(&fixture.caller, ".mint/two/.ibi");
    assert_eq!(sidecar.err(), Some(Errno::NOENT), "a deposit that goes on");
}

/// Listing and lookup agree for the depositor and for others, under the label and in the tree.
#[test]
fn a_masked_sidecar_is_not_listed() {
    let fixture = Fixture::new();
    let namespace = &fixture.namespace;
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let path = rep(&fixture.item(item_of(&entry.node.kind)));
    let here = fixture.node(&path);
    let (own, other) = (fixture.caller, fixture.other_program());
    assert!(namespace.is_sidecar_masked(&own, &entry.node));
    assert!(!namespace.is_sidecar_masked(&other, &entry.node));
    assert!(!namespace.is_sidecar_masked(&own, &here));
    let found = fixture.find_as(&own, ".mint/report/.ibi").err();
    assert_eq!(
        found,
        Some(Errno::NOENT),
        "another's listing unmasks nothing"
    );
    namespace
        .remove(
            &fixture.context(),
            &here,
            OsStr::new(".ibi"),
            Removal::Unlink,
        )
        .expect("removed");
    assert!(namespace.is_sidecar_masked(&own, &here), "for a second");
    fixture.pass(Duration::from_secs(1));
    assert!(!namespace.is_sidecar_masked(&own, &here));
    assert!(!namespace.is_sidecar_masked(&own, &entry.node));
}

/// `tar -x` removes a file before it makes it again.
#[test]
fn a_sidecar_that_a_program_removes_is_restored_for_others() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let here = fixture.node(&path);
    namespace
        .remove(&by, &here, OsStr::new(".ibi"), Removal::Unlink)
        .expect("removed");
    let sidecar = format!("{path}/.ibi");
    let own = || fixture.find_as(&fixture.caller, &sidecar).map(drop);
    assert_eq!(own(), Err(Errno::NOENT));
    assert!(fixture.find(&sidecar).is_ok(), "another program finds it");
    fixture.pass(Duration::from_millis(999));
    assert_eq!(own(), Err(Errno::NOENT));
    fixture.pass(Duration::from_millis(1));
    assert_eq!(own(), Ok(()));
}

/// A program that writes `.ibi.new` and renames it must not find the masked sidecar in the way.
#[test]
fn a_depositor_renames_its_own_sidecar_into_place() {
    let fixture = Fixture::new();
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let item = fixture.item(item_of(&entry.node.kind));
    let mut sidecar = fixture.sidecar(&item);
    sidecar.set_target("map.pdf");
    std::fs::write(fixture.file(&item, "new"), sidecar.to_bytes()).expect("written");
    let renamed = fixture.namespace.rename(
        &fixture.context(),
        (&entry.node, OsStr::new("new")),
        (&entry.node, OsStr::new(".ibi")),
        rustix::fs::RenameFlags::NOREPLACE.bits(),
    );
    assert_eq!(renamed, Ok(()));
    assert_eq!(fixture.item(item.id).target.as_deref(), Some("map.pdf"));
}
