//! Extended attributes, modes, generated texts, renames and sidecars.

use std::ffi::OsStr;
use std::sync::Arc;

use rustix::fs::{RenameFlags, XattrFlags};
use rustix::io::Errno;

use super::fixture::{Fixture, ibip, rep, split};
use crate::archive::{Bringing, Process, Relative};
use crate::fuse::inode::{Generated, Node};
use crate::fuse::namespace::modes::ACL;
use crate::fuse::namespace::{Closing, Options, PREFIX_PAGE, Stale};
use ibi::relation::Language;

fn pt() -> Language {
    Language::parse("pt").expect("a language")
}

fn xattr(fixture: &Fixture, node: &Node, name: &str) -> Result<String, Errno> {
    let name = format!("user.ibi.{name}");
    let value = fixture.namespace.xattr(node, OsStr::new(&name), 0)?;
    Ok(String::from_utf8(value).expect("text"))
}

fn set(fixture: &Fixture, node: &Node, name: &str, value: &str, flags: u32) -> Result<(), Errno> {
    let name = format!("user.ibi.{name}");
    let by = fixture.context();
    let namespace = &fixture.namespace;
    namespace.set_xattr(&by, node, OsStr::new(&name), value.as_bytes(), flags as i32)
}

fn remove(fixture: &Fixture, node: &Node, name: &str) -> Result<(), Errno> {
    let name = format!("user.ibi.{name}");
    let by = fixture.context();
    fixture
        .namespace
        .remove_xattr(&by, node, OsStr::new(&name), || false)
}

#[test]
fn virtual_attributes_say_what_the_item_is() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let names = item.names.clone();
    let edition = fixture.mint(Some(&Relative::Edition(names.clone())));
    let translation = fixture.mint(Some(&Relative::Translation(names, pt())));
    for path in [rep(&item), ibip(&item)] {
        let node = fixture.node(&path);
        for (name, value) in [
            ("rep", Ok(rep(&item))),
            ("ibip", Ok(ibip(&item))),
            ("state", Ok("Original".to_owned())),
            ("archiveservice", Ok(fixture.facts().service.preferred())),
            ("lastedition", Ok(edition.names.preferred())),
            ("nextedition", Ok(edition.names.preferred())),
            ("translation.pt", Ok(translation.names.preferred())),
            ("translation.fr", Err(Errno::NODATA)),
            ("language", Err(Errno::NODATA)),
            ("target", Err(Errno::NODATA)),
            ("alias", Err(Errno::NODATA)),
            ("metadata", Err(Errno::NODATA)),
            ("nonsense", Err(Errno::NODATA)),
        ] {
            assert_eq!(xattr(&fixture, &node, name), value, "{name} of {path}");
        }
        let names = fixture
            .namespace
            .xattr_names(&fixture.caller, &node, 0)
            .expect("a list");
        let names = String::from_utf8_lossy(&names).into_owned();
        assert!(!names.contains("user.ibi"), "{names}");
    }
}

#[test]
fn virtual_attributes_are_set_and_removed() {
    let fixture = Fixture::new();
    let (item, other) = (fixture.mint(None), fixture.mint(None));
    let node = fixture.node(&rep(&item));
    let (create, replace) = (XattrFlags::CREATE.bits(), XattrFlags::REPLACE.bits());
    for (name, value, shown, again) in [
        ("language", "pt", "pt".to_owned(), "en"),
        ("target", " a.pdf\n", "a.pdf".to_owned(), "b.pdf"),
        (
            "metadata",
            &*format!("/mnt/{}", rep(&other)),
            other.names.preferred(),
            &*ibip(&other),
        ),
        (
            "translation.pt",
            &*ibip(&other),
            other.names.preferred(),
            &*rep(&other),
        ),
    ] {
        let set = |value: &str, flags| set(&fixture, &node, name, value, flags);
        assert_eq!(set(value, replace), Err(Errno::NODATA), "{name}");
        assert_eq!(set(value, create), Ok(()), "{name}");
        assert_eq!(xattr(&fixture, &node, name), Ok(shown), "{name}");
        assert_eq!(set(value, create), Err(Errno::EXIST), "{name}");
        assert_eq!(set(again, replace), Ok(()), "{name}");
        assert_eq!(set(again, 0), Ok(()), "{name}");
        assert_eq!(remove(&fixture, &node, name), Ok(()), "{name}");
        assert_eq!(xattr(&fixture, &node, name), Err(Errno::NODATA), "{name}");
    }
    assert_eq!(set(&fixture, &node, "alias", "lib/map", 0), Ok(()));
    assert_eq!(xattr(&fixture, &node, "alias"), Ok("lib/map".to_owned()));
    for (name, value, errno) in [
        ("language", "portuguese", Errno::INVAL),
        ("target", "", Errno::INVAL),
        ("alias", "map", Errno::INVAL),
        ("metadata", "nowhere", Errno::INVAL),
        ("rep", "a.example/b/2001/01.01.00.00", Errno::PERM),
        ("nonsense", "x", Errno::PERM),
    ] {
        assert_eq!(set(&fixture, &node, name, value, 0), Err(errno), "{name}");
    }
    assert_eq!(
        remove(&fixture, &node, "metadata"),
        Err(Errno::NODATA),
        "a relation that is not declared"
    );
    assert_eq!(remove(&fixture, &node, "state"), Err(Errno::PERM));
    assert_eq!(
        set(&fixture, &fixture.node(".mint"), "language", "pt", 0),
        Err(Errno::OPNOTSUPP),
        "a virtual directory"
    );
}

#[test]
fn a_year_is_shown_as_open_and_is_not_opened() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (year, _) = split(&path);
    let (node, above) = (fixture.node(year), fixture.node(split(year).0));
    let namespace = &fixture.namespace;
    let shown = namespace.attributes(&node).expect("attributes").permissions;
    assert_eq!(shown & 0o1222, 0o1222, "{shown:o}");
    let plain = namespace.attributes(&above).expect("attributes");
    assert_eq!(plain.permissions & 0o022, 0, "{:o}", plain.permissions);
    assert_eq!(namespace.mode_to_keep(&node, u32::from(shown)), None);
    assert_eq!(namespace.mode_to_keep(&node, 0o700), Some(0o700));
    assert_eq!(namespace.mode_to_keep(&node, 0o1722), Some(0o700));
    assert_eq!(namespace.mode_to_keep(&above, 0o1722), Some(0o1722));
    // An access control list of a mode: version 2; tag, permissions and number of owner, group, others.
    let list = |bits: [u8; 3]| {
        let mut list = vec![2, 0, 0, 0];
        for (tag, bits) in [1_u8, 4, 0x20].into_iter().zip(bits) {
            list.extend([tag, 0, bits, 0, 0xff, 0xff, 0xff, 0xff]);
        }
        list
    };
    let keep = |node: &Node, name: &str, bits: [u8; 3]| {
        let kept = namespace.list_to_keep(node, OsStr::new(name), &list(bits));
        [kept[6], kept[14], kept[22]]
    };
    assert_eq!(keep(&node, ACL, [7, 7, 7]), [7, 5, 5]);
    assert_eq!(keep(&node, ACL, [7, 5, 7]), [7, 5, 7], "not what is shown");
    assert_eq!(keep(&node, "user.x", [7, 7, 7]), [7, 7, 7]);
    assert_eq!(keep(&above, ACL, [7, 7, 7]), [7, 7, 7]);
    let mut longer = list([7, 7, 7]);
    longer.extend([0; 8]);
    let kept = namespace.list_to_keep(&node, OsStr::new(ACL), &longer);
    assert_eq!(kept, longer, "it has more than a mode");
}

#[test]
fn a_list_of_files_is_generated_again_when_it_changed() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    fixture.write(&item, "doc/a", "x");
    // The directories have not changed for a while.
    fixture
        .clock
        .set(ibi::Timestamp::from_unix(7_000_000_000, 0));
    let wanted = Generated::FileList(item.id);
    let generate = || {
        let text = fixture.namespace.generate(&fixture.caller, wanted);
        text.expect("a list")
    };
    assert_eq!(fixture.namespace.last_length(wanted), 0);
    let first = generate();
    assert_eq!(first.bytes(), b"doc/a\n");
    assert_eq!(fixture.namespace.last_length(wanted), 6);
    assert!(Arc::ptr_eq(&first, &generate()));
    fixture.write(&item, "doc/b", "x");
    assert_eq!(generate().bytes().len(), 12);
    let length = fixture.namespace.last_length(wanted);
    assert_eq!(length, 12, "it is cached after it was closed");
    let record = Generated::Record {
        item: item.id,
        from: None,
        format: crate::formats::description::DescriptionFormat::OaiDc,
    };
    let size = fixture
        .namespace
        .generated_attributes(&fixture.caller, record)
        .expect("a record")
        .size;
    let text = fixture.namespace.generate(&fixture.caller, record);
    assert_eq!(text.expect("a record").bytes().len() as u64, size);
    std::fs::remove_dir_all(fixture.file(&item, "doc")).expect("removed");
    fixture
        .edit(&Process, |it| it.remove(item.id))
        .expect("removed");
    let gone = fixture.namespace.generate(&fixture.caller, wanted);
    assert_eq!(gone.err(), Some(Errno::NOENT));
}

fn rename(
    fixture: &Fixture,
    from: (&str, &str),
    to: (&str, &str),
    flags: RenameFlags,
) -> Result<(), Errno> {
    let (parent, new_parent) = (fixture.node(from.0), fixture.node(to.0));
    fixture.namespace.rename(
        &fixture.context(),
        (&parent, OsStr::new(from.1)),
        (&new_parent, OsStr::new(to.1)),
        flags.bits(),
    )
}

#[test]
fn files_are_renamed_in_one_tree() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (in_rep, in_ibip) = (rep(&item), ibip(&item));
    fixture.write(&item, "a", "a");
    fixture.write(&item, "b", "b");
    let none = RenameFlags::empty();
    fixture.node(&format!("{in_ibip}/a"));
    assert_eq!(
        rename(
            &fixture,
            (&in_rep, "a"),
            (&in_rep, "b"),
            RenameFlags::NOREPLACE
        ),
        Err(Errno::EXIST)
    );
    assert_eq!(
        rename(&fixture, (&in_rep, "a"), (&in_rep, "c"), none),
        Ok(())
    );
    assert_eq!(fixture.describe(&format!("{in_rep}/a")), Err(Errno::NOENT));
    assert_eq!(fixture.describe(&format!("{in_ibip}/c")), Ok("file".into()));
    let other = fixture.node(&in_ibip);
    let stale = fixture.cache.before_reply.lock().clone();
    for name in ["a", "c"] {
        let there = Stale::Name(other.id, name.into());
        assert!(stale.contains(&there), "{name}: {stale:?}");
    }
    assert_eq!(
        rename(&fixture, (&in_rep, "b"), (&in_ibip, "d"), none),
        Err(Errno::XDEV)
    );
    // Both names lead to the same file.
    assert_eq!(
        rename(&fixture, (&in_rep, "b"), (&in_ibip, "b"), none),
        Ok(())
    );
    assert_eq!(fixture.describe(&format!("{in_rep}/b")), Ok("file".into()));
    let year = split(&in_rep).0.to_owned();
    assert_eq!(
        rename(&fixture, (&in_rep, "b"), (&year, "b"), none),
        Err(Errno::XDEV)
    );
}

#[test]
fn a_sidecar_that_is_renamed_into_an_item_counts() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let before = fixture.sidecar(&item);
    let mut sidecar = before.clone();
    sidecar.set_language(&pt());
    let text = String::from_utf8(sidecar.to_bytes()).expect("text");
    fixture.write(&item, "new", &text);
    let none = RenameFlags::empty();
    assert_eq!(
        rename(&fixture, (&path, "new"), (&path, ".ibi"), none),
        Ok(())
    );
    assert_eq!(fixture.item(item.id).language, Some(pt()));
    let node = fixture.node(&format!("{path}/.ibi"));
    assert_eq!(node.learnt.sidecar_of(), Some(item.id));
    // One that is renamed away is written again.
    assert_eq!(
        rename(&fixture, (&path, ".ibi"), (&path, "old"), none),
        Ok(())
    );
    assert_eq!(fixture.sidecar(&item).language(), Some(&pt()));
    // A file written in place counts when it is closed.
    let node = fixture
        .find(&format!("{path}/.ibi"))
        .expect("restored")
        .node;
    fixture.write_raw(&item, &before.to_bytes());
    let by = fixture.context();
    let intent = fixture.namespace.changing_file(&node).expect("noted");
    assert!(intent.is_some());
    let last = Closing {
        bringing: Bringing::Other,
        is_last: true,
    };
    let closed = fixture
        .namespace
        .file_closed(&by, &node, &fixture.caller, last);
    assert_eq!(closed, Ok(None));
    assert_eq!(fixture.item(item.id).language, None);
    fixture.write(&item, "other", "x");
    let file = fixture.node(&format!("{path}/other"));
    let intent = fixture.namespace.changing_file(&file).expect("noted");
    assert!(intent.is_none(), "another file");
}

/// An item without a rep is listed below its prefix, by both spellings of which it is found.
#[test]
fn items_without_a_rep_are_listed_below_their_prefix() {
    let fixture = Fixture::new();
    let (one, two) = (
        fixture.copy("8JMKD3MGP8W/35MMLL8"),
        fixture.copy("8JMKD3MGP8W/35MME4E"),
    );
    let names = |path: &str| fixture.list(path).expect("a listing");
    assert!(names("").contains(&"8JMKD3MGP8W".to_owned()));
    assert_eq!(names("8JMKD3MGP8W"), [".", "..", "35MME4E", "35MMLL8"]);
    let listed = fixture.lines("8JMKD3MGP8W").expect("a listing");
    for (item, suffix) in [(&one, "35MMLL8"), (&two, "35MME4E")] {
        let node = fixture.node(&ibip(item));
        let line = listed.iter().find(|line| line.name == suffix);
        assert_eq!(line.map(|line| line.st_ino), Some(node.st_ino), "{suffix}");
    }
    assert_eq!(
        fixture.describe("8JMKD3MGP8W/35mmll8"),
        Ok("-> ../8JMKD3MGP8W/35MMLL8".to_owned())
    );
    fixture
        .edit(&Process, |it| it.remove(one.id))
        .expect("removed");
    assert_eq!(names("8JMKD3MGP8W"), [".", "..", "35MME4E"]);
    assert_eq!(fixture.describe("8JMKD3MGP8W/35MMLL8"), Err(Errno::NOENT));
}

#[test]
fn labels_are_listed_with_the_numbers_of_their_items() {
    let fixture = Fixture::with(Options {
        list_all: true,
        ..Options::default()
    });
    let made = fixture.mkdir(".mint", "report").expect("minted");
    let listed = fixture
        .namespace
        .list(&fixture.caller, &fixture.node(".mint"))
        .expect("a listing");
    let line = listed.iter().find(|line| line.name == "report");
    assert_eq!(line.map(|line| line.st_ino), Some(made.node.st_ino));
    let other = crate::os::caller::Caller {
        uid: fixture.caller.uid + 1,
        ..fixture.caller
    };
    let listed = fixture.namespace.list(&other, &fixture.node(".mint"));
    assert_eq!(
        listed.expect("a listing").len(),
        2,
        "labels of another user"
    );
}

/// A place in the listing of a prefix holds while items are added and removed, also the one it is after, and
/// one name at a time gives the same as all at once.
#[test]
fn a_listing_of_a_prefix_goes_on_where_it_was() {
    let fixture = Fixture::new();
    let suffix = |number: usize| format!("35MM{}", ["2", "4", "6", "8", "A", "C", "E"][number]);
    let items: Vec<_> = (0..7)
        .map(|number| fixture.copy(&format!("8JMKD3MGP8W/{}", suffix(number))))
        .collect();
    let node = fixture.node("8JMKD3MGP8W");
    let namespace = &fixture.namespace;
    let listing = namespace.open_prefix("8JMKD3MGP8W").expect("opened");
    let step = |from: u64| {
        let mut found = None;
        let listed = namespace.list_prefix(&listing, &node, from, |line, after| {
            found = Some((line.name.to_string_lossy().into_owned(), after));
            true
        });
        listed.map(|()| found)
    };
    let (mut place, mut names, mut places) = (0, Vec::new(), Vec::new());
    while let Some((name, after)) = step(place).expect("a line") {
        names.push(name);
        places.push(after);
        place = after;
    }
    assert_eq!(names, fixture.list("8JMKD3MGP8W").expect("listed"));
    // After the third item, which is removed meanwhile, as is the fourth.
    fixture
        .edit(&Process, |it| it.remove(items[2].id))
        .expect("removed");
    fixture
        .edit(&Process, |it| it.remove(items[3].id))
        .expect("removed");
    let again = namespace.open_prefix("8JMKD3MGP8W").expect("opened");
    let mut rest = Vec::new();
    let listed = namespace.list_prefix(&again, &node, places[4], |line, _| {
        rest.push(line.name.to_string_lossy().into_owned());
        false
    });
    listed.expect("listed");
    assert_eq!(rest, [suffix(4), suffix(5), suffix(6)]);
    assert_eq!(step(1 << 40), Err(Errno::INVAL), "no such item");
}

/// A page of the listing is read at a time: nothing is read of the items after it.
#[test]
fn the_first_names_of_a_prefix_are_listed_without_the_others() {
    let fixture = Fixture::new();
    let item = fixture.copy("8JMKD3MGP8W/35MMLL8");
    let (store, more) = (fixture.store(), 3 * PREFIX_PAGE);
    let key = |number: usize| format!("8JMKD3MGP8W/35MN{number:05}");
    let digits = |key: String| key.replace('0', "U").replace('1', "T");
    for number in 0..more {
        fixture.copy(&digits(key(number)));
    }
    let first = store.prefix_page("8JMKD3MGP8W", true, None, PREFIX_PAGE);
    let first = first.expect("read");
    assert_eq!(first.len(), PREFIX_PAGE);
    assert!(first.iter().any(|row| row.item == item.id) && first.is_sorted_by_key(|row| &row.key));
    assert_eq!(fixture.list("8JMKD3MGP8W").expect("listed").len(), more + 3);
}
