//! `.mint`: labels, minting, what a depositor sees of a new item, and what `rm` under a label removes.

use std::ffi::OsStr;
use std::time::Duration;

use rustix::io::Errno;

use super::fixture::{Fixture, rep, split};
use crate::fuse::inode::{NodeKind, View};
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
    assert_eq!(
        entry.lifetime,
        NameLifetime::Uncached,
        "a label ends with rmdir"
    );
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
    let mint = fixture.node(".mint");
    let removed = fixture
        .namespace
        .remove_directory(&fixture.caller, &mint, OsStr::new("report"));
    assert_eq!(removed, Ok(Vec::new()));
    assert_eq!(fixture.describe(".mint/report"), Err(Errno::NOENT));
    assert!(fixture.find(&rep(&item)).is_ok(), "the item stays");
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

#[test]
fn what_another_program_removes_under_a_label_stays_in_the_item() {
    let fixture = Fixture::new();
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let item = fixture.item(item_of(&entry.node.kind));
    let other = fixture.other_program();
    let (namespace, parent) = (&fixture.namespace, &entry.node);
    let directory = parent.file().expect("open");
    for name in ["doc", "other"] {
        let new = New::Directory;
        inside::make(directory.as_fd(), OsStr::new(name), new, 0o755, 0, &other).expect("made");
    }
    fixture.write(&item, "doc/a.txt", "text");
    let doc = fixture.node(".mint/report/doc");
    assert!(namespace.whites_out(&other, parent));
    assert!(
        !namespace.whites_out(&fixture.caller, parent),
        "its depositor removes"
    );
    assert!(!namespace.whites_out(&other, &fixture.node(&rep(&item))));
    let remove = |parent, name: &str, removal| {
        let removed = namespace.white_out(&other, parent, OsStr::new(name), removal);
        removed.map(|_| ())
    };
    assert_eq!(remove(parent, "doc", Removal::Rmdir), Err(Errno::NOTEMPTY));
    assert_eq!(remove(parent, "doc", Removal::Unlink), Err(Errno::ISDIR));
    assert_eq!(remove(&doc, "a.txt", Removal::Rmdir), Err(Errno::NOTDIR));
    assert_eq!(remove(&doc, "missing", Removal::Unlink), Err(Errno::NOENT));
    assert_eq!(remove(&doc, "a.txt", Removal::Unlink), Ok(()));
    assert_eq!(
        fixture.describe(".mint/report/doc/a.txt"),
        Err(Errno::NOENT)
    );
    let file = format!("{}/doc/a.txt", rep(&item));
    assert_eq!(fixture.describe(&file), Ok("file".into()), "the file stays");
    assert_eq!(remove(parent, "doc", Removal::Rmdir), Ok(()));
    assert_eq!(fixture.describe(".mint/report/doc"), Err(Errno::NOENT));
    assert_eq!(
        fixture.describe(".mint/report/other"),
        Ok("directory".into())
    );
    let way = namespace.make_room(&other, parent, OsStr::new("doc"));
    assert_eq!(way, Err(Errno::EXIST), "a directory comes back");
    assert_eq!(fixture.describe(".mint/report/doc"), Ok("directory".into()));
}

/// What was hidden under a label is hidden no longer when the label ends, or its item.
#[test]
fn whiteouts_end_with_their_label_or_item() {
    let fixture = Fixture::new();
    let other = fixture.other_program();
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let entries = ["one", "two", "three"].map(|label| {
        let entry = fixture.mkdir(".mint", label).expect("minted");
        let item = fixture.item(item_of(&entry.node.kind));
        fixture.write(&item, "a", "text");
        let stale = namespace.white_out(&other, &entry.node, OsStr::new("a"), Removal::Unlink);
        assert_eq!(stale, Ok(vec![]), "the kernel has not met the file");
        (entry.node, item)
    });
    let hidden = || {
        let is_hidden = |at: usize| {
            let (node, _) = entries.get(at).expect("one of three");
            namespace.is_whited_out(node, OsStr::new("a"), None)
        };
        [is_hidden(0), is_hidden(1), is_hidden(2)]
    };
    assert_eq!(hidden(), [true, true, true]);
    let mint = fixture.node(".mint");
    namespace
        .remove(&by, &mint, OsStr::new("one"), Removal::Rmdir)
        .expect("the label ends");
    assert_eq!(hidden(), [false, true, true]);
    let [_, (_, item), _] = &entries;
    std::fs::remove_file(fixture.file(item, "a")).expect("removed");
    let path = rep(item);
    let (year, name) = split(&path);
    namespace
        .remove(&by, &fixture.node(year), OsStr::new(name), Removal::Rmdir)
        .expect("an empty item");
    assert_eq!(hidden(), [false, false, true]);
    assert_eq!(fixture.describe(".mint/two"), Err(Errno::NOENT));
    assert!(fixture.find(".mint/three").is_ok());
    let sidecar = fixture.find_as(&fixture.caller, ".mint/three/.ibi");
    assert_eq!(sidecar.err(), Some(Errno::NOENT), "a deposit that goes on");
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

#[test]
fn each_name_under_a_label_is_hidden_by_itself() {
    let fixture = Fixture::new();
    let entry = fixture.mkdir(".mint", "report").expect("minted");
    let item = fixture.item(item_of(&entry.node.kind));
    let other = fixture.other_program();
    for name in ["a", "b", "c"] {
        fixture.write(&item, name, "text");
    }
    let white_out = |name: &str| {
        let gone =
            fixture
                .namespace
                .white_out(&other, &entry.node, OsStr::new(name), Removal::Unlink);
        gone.expect(name);
    };
    let shown =
        || ["a", "b", "c"].map(|name| fixture.describe(&format!(".mint/report/{name}")).is_ok());
    white_out("a");
    white_out("b");
    assert_eq!(shown(), [false, false, true]);
    // Another file of that name is shown.
    std::fs::rename(fixture.file(&item, "c"), fixture.file(&item, "a")).expect("replaced");
    assert_eq!(shown(), [true, false, false]);
    let caller = &fixture.caller;
    let way = fixture
        .namespace
        .make_room(caller, &entry.node, OsStr::new("b"));
    assert_eq!(
        way,
        Ok(Some(OsStr::new("b"))),
        "what was hidden is replaced"
    );
    assert!(!fixture.file(&item, "b").exists());
}
