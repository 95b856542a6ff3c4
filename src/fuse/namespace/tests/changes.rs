//! The part of the kernel's cache that a change makes stale.

use std::ffi::OsStr;

use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

use super::fixture::{Fixture, ibip, rep, split};
use crate::fuse::attr::Time;
use crate::fuse::inode::Node;
use crate::fuse::inside::{AttributeChange, NewTime, Removal};
use crate::fuse::namespace::modes::ACL;
use crate::fuse::namespace::{MkdirResult, Stale};

fn name(name: &str) -> &OsStr {
    OsStr::new(name)
}

fn mode(mode: u32) -> AttributeChange {
    AttributeChange {
        mode: Some(mode),
        ..AttributeChange::default()
    }
}

fn set(fixture: &Fixture, node: &Node, change: &AttributeChange) -> Result<(), Errno> {
    let by = fixture.context();
    let set = fixture
        .namespace
        .set_attributes(&by, node, None, change, || false);
    set.map(drop)
}

#[test]
fn a_directory_that_changes_in_one_tree_is_listed_again_in_the_other() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let here = fixture.node(&rep(&item));
    let make = |made: &str| {
        let made = namespace.make_directory(&by, &here, name(made), (0o755, 0));
        match made.expect("made") {
            MkdirResult::Done(entry) => entry.node,
            MkdirResult::Minting(_) => panic!("a directory in an item is not minted"),
        }
    };
    make("alone");
    assert_eq!(
        fixture.take_stale(),
        [],
        "the other tree has no cache of it"
    );
    let there = fixture.node(&ibip(&item));
    let listing = Stale::Listing(there.id);
    let gone = |gone: &str| Stale::Name(there.id, gone.into());
    let directory = make("d");
    assert_eq!(fixture.take_stale(), std::slice::from_ref(&listing));
    let flags = (OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL).bits() as i32;
    let created = namespace.create(&by, &here, name("a"), flags, (0o644, 0));
    let file = created.expect("a file").entry.node;
    assert_eq!(fixture.take_stale(), std::slice::from_ref(&listing));
    let linked = namespace.make_hard_link(&by, &file, &here, name("b"));
    assert_eq!(linked.expect("a link").node.id, file.id);
    assert_eq!(fixture.take_stale(), std::slice::from_ref(&listing));
    make("unseen");
    let unseen = fixture.node(&format!("{}/unseen", rep(&item)));
    fixture.take_stale();
    let removed = namespace.remove(&by, &here, name("unseen"), Removal::Rmdir);
    assert_eq!(removed, Ok(()));
    let links = Stale::Attributes(unseen.id);
    assert_eq!(
        fixture.take_stale(),
        [links, listing.clone()],
        "the other tree was not looked into: it has no cached names"
    );
    assert!(fixture.find(&format!("{}/none", ibip(&item))).is_err());
    let cases = [
        ("a", &file, Removal::Unlink),
        ("d", &directory, Removal::Rmdir),
    ];
    for (removed, node, removal) in cases {
        namespace
            .remove(&by, &here, name(removed), removal)
            .expect(removed);
        let links = Stale::Attributes(node.id);
        assert_eq!(
            fixture.take_stale(),
            [links, gone(removed), listing.clone()],
            "{removed}"
        );
    }
    assert_eq!(fixture.take_stale_after_reply(), []);
}

/// A symbolic link that leaves its item is one node in the rep tree and another in the IBIp tree.
#[test]
fn a_link_is_stale_where_its_number_of_names_or_its_target_changes() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let here = fixture.node(&rep(&item));
    std::fs::create_dir(fixture.file(&item, "sub")).expect("made");
    let target = format!("../../../../{}/doc", rep(&item));
    std::os::unix::fs::symlink(&target, fixture.file(&item, "out")).expect("a link");
    let there = fixture.node(&format!("{}/out", ibip(&item)));
    let sub = fixture.node(&format!("{}/sub", rep(&item)));
    let links = Stale::Attributes(there.id);
    let target = Stale::Listing(there.id);
    let linked = namespace.make_hard_link(&by, &there, &sub, name("out2"));
    let second = linked.expect("a second name").node;
    assert_ne!(second.id, there.id);
    assert!(fixture.take_stale().contains(&links), "a name more");
    // Its second name lies in a directory that only the rep tree has met.
    namespace
        .remove(&by, &sub, name("out2"), Removal::Unlink)
        .expect("removed");
    assert!(fixture.take_stale().contains(&links), "a name less");
    std::os::unix::fs::symlink("x", fixture.file(&item, "sub/single")).expect("a link");
    fixture.write(&item, "sub/file", "x");
    std::fs::hard_link(
        fixture.file(&item, "sub/file"),
        fixture.file(&item, "sub/file2"),
    )
    .expect("a second name");
    for single in ["single", "file"] {
        fixture.node(&format!("{}/sub/{single}", rep(&item)));
        namespace
            .remove(&by, &sub, name(single), Removal::Unlink)
            .expect("removed");
        assert_eq!(fixture.take_stale(), [], "{single}");
    }
    // A link that is moved deeper has another target.
    let rename = |from: (&Node, &str), to: (&Node, &str), flags: RenameFlags| {
        let renamed = namespace.rename(
            &by,
            (from.0, name(from.1)),
            (to.0, name(to.1)),
            flags.bits(),
        );
        renamed.expect("renamed");
        fixture.take_stale()
    };
    let none = RenameFlags::empty();
    let within = rename((&here, "out"), (&here, "out3"), none);
    assert!(!within.contains(&target), "in one directory: {within:?}");
    let deeper = rename((&here, "out3"), (&sub, "out"), none);
    assert!(deeper.contains(&target), "{deeper:?}");
    fixture.write(&item, "plain", "x");
    let plain = rename((&here, "plain"), (&sub, "plain"), none);
    assert!(!plain.contains(&target), "a file: {plain:?}");
    let exchanged = rename((&sub, "out"), (&here, "doc"), RenameFlags::EXCHANGE);
    assert!(exchanged.contains(&target), "{exchanged:?}");
    let back = rename((&sub, "out"), (&here, "doc"), RenameFlags::EXCHANGE);
    assert!(back.contains(&target), "the link is the new name: {back:?}");
    let above = rename(
        (&here, "sub"),
        (&fixture.node(&format!("{}/doc", rep(&item))), "sub"),
        none,
    );
    assert!(above.contains(&target), "a directory above it: {above:?}");
}

#[test]
fn attributes_that_change_are_stale_where_else_they_are_shown() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (prefix, suffix) = (ibip(&item), ibip(&item));
    let (prefix, suffix) = (split(&prefix).0, split(&suffix).1);
    let here = fixture.node(&rep(&item));
    set(&fixture, &here, &mode(0o750)).expect("set");
    assert_eq!(fixture.take_stale(), [], "only one tree has met it");
    let there = fixture.node(&ibip(&item));
    set(&fixture, &here, &mode(0o700)).expect("set");
    assert_eq!(fixture.take_stale(), [Stale::Attributes(there.id)]);
    let by = fixture.context();
    let value = fixture
        .namespace
        .set_xattr(&by, &here, name("user.x"), b"y", 0);
    value.expect("set");
    assert_eq!(fixture.take_stale(), [Stale::Attributes(there.id)]);
    // Virtual directories are shown with the attributes of the root.
    let (prefix, mint) = (fixture.node(prefix), fixture.node(".mint"));
    let root = fixture.node("");
    let time = AttributeChange {
        modified: Some(NewTime::At(Time {
            seconds: 1_000_000_000,
            nanoseconds: 0,
        })),
        ..AttributeChange::default()
    };
    set(&fixture, &root, &time).expect("set");
    let mut stale = fixture.take_stale();
    stale.sort_by_key(|stale| *stale != Stale::Attributes(mint.id));
    assert_eq!(
        stale,
        [Stale::Attributes(mint.id), Stale::Attributes(prefix.id)]
    );
    set(&fixture, &here, &time).expect("set");
    assert_eq!(fixture.take_stale(), [Stale::Attributes(there.id)]);
    // The permissions of a level count on the path by the IBIp, too.
    let path = rep(&item);
    let year = fixture.node(split(&path).0);
    let met = Stale::Name(prefix.id, suffix.into());
    let caller = fixture.caller;
    for (change, is_checked_again) in [
        (mode(0o755), true),
        (
            AttributeChange {
                uid: Some(caller.uid),
                ..AttributeChange::default()
            },
            true,
        ),
        (
            AttributeChange {
                gid: Some(caller.gid),
                ..AttributeChange::default()
            },
            true,
        ),
        (time, false),
    ] {
        set(&fixture, &year, &change).expect("set");
        let expected: Vec<Stale> = is_checked_again.then(|| met.clone()).into_iter().collect();
        assert_eq!(fixture.take_stale(), expected, "{change:?}");
    }
    let list = mode_as_list([7, 5, 5]);
    let namespace = &fixture.namespace;
    for (attribute, value, is_checked_again) in
        [("user.x", &b"y"[..], false), (ACL, &list[..], true)]
    {
        let set = namespace.set_xattr(&by, &year, name(attribute), value, 0);
        set.expect(attribute);
        let expected: Vec<Stale> = is_checked_again.then(|| met.clone()).into_iter().collect();
        assert_eq!(fixture.take_stale(), expected, "{attribute}");
    }
    let other = fixture.mkdir("", "other.example").expect("a level").node;
    set(&fixture, &other, &mode(0o700)).expect("set");
    assert_eq!(fixture.take_stale(), [], "no item lies below it");
}

/// A search shows what its user may read: whichever request has changed that.
#[test]
fn a_change_of_who_may_read_an_item_is_noted_for_searches() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let here = fixture.node(&rep(&item));
    let (namespace, by, caller) = (&fixture.namespace, fixture.context(), fixture.caller);
    let noted = || {
        let last = namespace.archive.store().last_change();
        last.expect("a number").number
    };
    let owner = AttributeChange {
        uid: Some(caller.uid),
        gid: Some(caller.gid),
        ..AttributeChange::default()
    };
    let before = noted();
    set(&fixture, &here, &mode(0o700)).expect("set");
    assert_eq!(noted(), before + 1);
    set(&fixture, &here, &mode(0o700)).expect("set");
    set(&fixture, &here, &owner).expect("set");
    assert_eq!(noted(), before + 1, "nothing has changed");
    let list = mode_as_list([7, 5, 5]);
    let set = namespace.set_xattr(&by, &here, name(ACL), &list, 0);
    set.expect("set");
    assert_eq!(noted(), before + 2, "`cp -a` sets the mode so");
    let removed = namespace.remove_xattr(&by, &here, name(ACL), || false);
    removed.expect("removed");
    assert_eq!(noted(), before + 3);
}

/// An access control list of a mode: version 2; tag, permissions and number of owner, group, others.
fn mode_as_list(bits: [u8; 3]) -> Vec<u8> {
    let mut list = vec![2, 0, 0, 0];
    for (tag, bits) in [1_u8, 4, 0x20].into_iter().zip(bits) {
        list.extend([tag, 0, bits, 0, 0xff, 0xff, 0xff, 0xff]);
    }
    list
}

#[test]
fn a_copied_mode_does_not_open_a_year() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let year = fixture.node(split(&path).0);
    let on_disk = || {
        use std::os::unix::fs::PermissionsExt;
        let above = fixture.file(&item, "..");
        let metadata = std::fs::metadata(above).expect("a year");
        metadata.permissions().mode() & 0o7777
    };
    let before = on_disk();
    let shown = fixture.namespace.attributes(&year).expect("attributes");
    set(&fixture, &year, &mode(u32::from(shown.permissions))).expect("set");
    assert_eq!(on_disk(), before);
    set(&fixture, &year, &mode(0o700)).expect("set");
    assert_eq!(on_disk(), 0o700);
}

#[test]
fn virtual_directories_and_links_accept_attributes_and_keep_theirs() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    for path in [split(&ibip).0, ".mint", &format!("{rep}!")] {
        let node = fixture.node(path);
        let before = fixture.namespace.attributes(&node);
        assert_eq!(set(&fixture, &node, &mode(0o700)), Ok(()), "{path}");
        assert_eq!(fixture.namespace.attributes(&node), before, "{path}");
    }
    let list = fixture.node(&format!("{rep}?GetFileList"));
    assert_eq!(set(&fixture, &list, &mode(0o700)), Err(Errno::PERM));
}

#[test]
fn only_items_have_devices_and_hard_links() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    fixture.write(&item, "a", "a");
    let path = rep(&item);
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let (year, here) = (fixture.node(split(&path).0), fixture.node(&path));
    let file = fixture.node(&format!("{path}/a"));
    let pipe = 0o010_644;
    for (parent, result) in [(&year, Err(Errno::PERM)), (&here, Ok(()))] {
        let made = namespace.make_node(&by, parent, name("pipe"), 0, (pipe, 0));
        assert_eq!(made.map(drop), result);
        let made = namespace.make_hard_link(&by, &file, parent, name("b"));
        assert_eq!(made.map(drop), result);
    }
}

#[test]
fn what_is_removed_above_items_goes_by_the_rules_of_names() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.mint(None), fixture.mint(None));
    let path = rep(&one);
    let (year, last) = split(&path);
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let parent = fixture.node(year);
    let modifier = format!("{last}!");
    let target = rep(&other);
    namespace
        .make_link(&by, &parent, name(&modifier), target.as_bytes())
        .expect("declared");
    let remove = |removed: &str, removal| namespace.remove(&by, &parent, name(removed), removal);
    assert_eq!(remove(&modifier, Removal::Unlink), Ok(()));
    let edition = fixture.describe(&format!("{path}!"));
    assert_eq!(edition, Ok(format!("-> ../../../{path}")));
    assert_eq!(
        remove(last, Removal::Unlink),
        Err(Errno::PERM),
        "an item is no file"
    );
    fixture.take_stale_after_reply();
    fixture.write(&one, "a", "a");
    assert_eq!(remove(last, Removal::Rmdir), Err(Errno::NOTEMPTY));
    let again = Stale::Name(parent.id, last.into());
    assert_eq!(fixture.take_stale_after_reply(), [again]);
    std::fs::remove_file(fixture.file(&one, "a")).expect("removed");
    std::fs::remove_dir(fixture.file(&one, "doc")).expect("removed");
    assert_eq!(remove(last, Removal::Rmdir), Ok(()));
    assert_eq!(fixture.describe(&path), Err(Errno::NOENT));
}

#[test]
fn a_new_item_changes_the_times_of_the_levels_above_it() {
    let fixture = Fixture::new();
    fixture.mkdir("", "a.example").expect("a level");
    fixture.mkdir("a.example", "b").expect("a level");
    fixture.mkdir("a.example/b", "2001").expect("a level");
    let year = fixture.node("a.example/b/2001");
    fixture.take_stale();
    let (namespace, by) = (&fixture.namespace, fixture.context());
    namespace
        .make_directory(&by, &year, name("01.01.00.00"), (0o755, 0))
        .expect("an item");
    // The kernel itself drops the attributes of the year.
    let levels = ["", "a.example", "a.example/b"];
    let expected = levels.map(|level| Stale::Attributes(fixture.node(level).id));
    assert_eq!(fixture.take_stale(), expected);
}

#[test]
fn a_metadata_text_that_is_made_beside_its_item_is_listed_in_it() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (year, last) = split(&path);
    let (parent, here, there) = (
        fixture.node(year),
        fixture.node(&path),
        fixture.node(&ibip(&item)),
    );
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let text = format!("{last}:");
    let flags = (OFlags::WRONLY | OFlags::CREATE).bits() as i32;
    let created = namespace.create(&by, &parent, name(&text), flags, (0o644, 0));
    created.expect("a text");
    let nodes = [here.id, there.id];
    let names = nodes.map(|node| Stale::Name(node, ".ibi.metadata".into()));
    let stale = [names, nodes.map(Stale::Listing)].concat();
    assert_eq!(fixture.take_stale(), stale);
    namespace
        .remove(&by, &parent, name(&text), Removal::Unlink)
        .expect("removed");
    assert_eq!(fixture.take_stale(), stale);
}

/// The kernel takes the node of the replaced name for removed.
#[test]
fn a_link_renamed_to_itself_in_another_tree_is_another_node() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    std::os::unix::fs::symlink("../../x", fixture.file(&item, "out")).expect("a link");
    let (here, there) = (fixture.node(&rep(&item)), fixture.node(&ibip(&item)));
    let out = format!("{}/out", ibip(&item));
    fixture.node(&format!("{}/out", rep(&item)));
    let rename = |flags: RenameFlags| {
        let before = fixture.node(&out).id;
        let renamed = fixture.namespace.rename(
            &fixture.context(),
            (&here, name("out")),
            (&there, name("out")),
            flags.bits(),
        );
        renamed.expect("the same link");
        fixture.node(&out).id != before
    };
    assert!(!rename(RenameFlags::EXCHANGE));
    assert!(rename(RenameFlags::empty()));
    let names = [
        Stale::Name(there.id, "out".into()),
        Stale::Name(here.id, "out".into()),
    ];
    assert_eq!(
        fixture.take_stale_after_reply(),
        [names.clone(), names].concat()
    );
}

/// A link of which the text is another one in each tree only as long as it climbs out of its item.
#[test]
fn a_link_that_is_moved_is_looked_up_again() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    std::os::unix::fs::symlink("..", fixture.file(&item, "out")).expect("a link");
    let (root, doc) = (ibip(&item), format!("{}/doc", ibip(&item)));
    let (root, inside) = (fixture.node(&root), fixture.node(&doc));
    let before = fixture.node(&format!("{}/out", ibip(&item)));
    let rename = |from: (&Node, &OsStr), to: (&Node, &OsStr)| {
        let by = fixture.context();
        let renamed = fixture.namespace.rename(&by, from, to, 0);
        renamed.expect("renamed");
        fixture.take_stale_after_reply()
    };
    let moved = rename((&root, name("out")), (&inside, name("in")));
    assert_eq!(moved, [Stale::Name(inside.id, "in".into())]);
    assert!(fixture.node(&format!("{doc}/in")).id != before.id);
    assert_eq!(
        rename((&inside, name("in")), (&inside, name("there"))),
        Vec::new()
    );
}

#[test]
fn only_changes_of_the_sidecar_are_logged() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let here = fixture.node(&rep(&item));
    let doc = fixture.node(&format!("{}/doc", rep(&item)));
    for (parent, changed, is_logged) in [
        (&here, ".ibi", true),
        (&here, "a", false),
        (&doc, ".ibi", false),
    ] {
        let change = fixture.namespace.changing(parent, name(changed));
        assert_eq!(change.expect("noted").is_some(), is_logged, "{changed}");
    }
}
