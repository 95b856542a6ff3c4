//! Names beside an item: modifiers, relations, the metadata text, staged names.

use std::ffi::OsStr;
use std::io::Write;

use rustix::io::Errno;

use super::fixture::{Fixture, ibip, rep, split};
use crate::archive::Relative;
use crate::fuse::inode::View;
use crate::fuse::namespace::Options;
use crate::fuse::namespace::virtual_entries::{VirtualEntry, compute};
use ibi::relation::Language;

fn pt() -> Language {
    Language::parse("pt").expect("a language")
}

#[test]
fn modifiers_lead_to_related_items_in_their_tree() {
    let fixture = Fixture::with(Options {
        languages: vec![pt()],
        list_all: false,
        portable_names: false,
    });
    let item = fixture.mint(None);
    let names = item.names.clone();
    let edition = fixture.mint(Some(&Relative::EditionOf(names.clone())));
    let translation = fixture.mint(Some(&Relative::TranslationOf(names.clone(), pt())));
    let metadata = fixture.mint(Some(&Relative::MetadataOf(names)));
    let (in_rep, in_ibip) = (rep(&item), ibip(&item));
    for (tail, related) in [
        ("!", &edition),
        ("+(pt)", &translation),
        ("+", &translation),
        (":", &metadata),
        ("?GetLastEdition", &edition),
    ] {
        let target = format!("-> ../../../{}", rep(related));
        assert_eq!(
            fixture.describe(&format!("{in_rep}{tail}")),
            Ok(target),
            "{tail}"
        );
        let target = format!("-> ../{}", ibip(related));
        assert_eq!(
            fixture.describe(&format!("{in_ibip}{tail}")),
            Ok(target),
            "{tail}"
        );
    }
    for (tail, what) in [
        ("?GetFileList", Ok("generated")),
        ("!?GetFileList", Err(Errno::NOENT)),
        (":(oai_dc)", Ok("generated")),
        ("+(fr)", Err(Errno::NOENT)),
        ("!+", Err(Errno::NOENT)),
        ("!:", Err(Errno::NOENT)),
        ("!!!", Err(Errno::NOENT)),
    ] {
        let found = fixture.describe(&format!("{in_rep}{tail}"));
        assert_eq!(found.as_deref(), what.as_deref(), "{tail}");
    }
    let own = format!("{}!", rep(&edition));
    assert_eq!(
        fixture.describe(&own),
        Ok(format!("-> ../../../{}", rep(&edition))),
        "the last edition of an item without a next one is the item"
    );
}

#[test]
fn entries_are_computed_without_a_caller() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let edition = fixture.mint(Some(&Relative::EditionOf(item.names.clone())));
    let path = rep(&item);
    let (year, name) = split(&path);
    let year = fixture.node(year);
    let entry = |tail: &str| {
        let namespace = &fixture.namespace;
        let sibling = namespace.sibling(&year, &format!("{name}{tail}"))?;
        let sibling = sibling.ok_or(Errno::INVAL)?;
        compute(&namespace.archive, &[], View::Rep, &sibling)
    };
    let link = format!("../../../{}", rep(&edition)).into_bytes();
    let item = fixture.item(item.id);
    for (tail, computed) in [
        ("!", Ok(VirtualEntry::Link(link))),
        ("?GetFileList", Ok(VirtualEntry::FileList(item.clone()))),
        (
            "?GetLastEdition+GetFileList",
            Ok(VirtualEntry::FileList(fixture.item(edition.id))),
        ),
        ("?GetNothing", Err(Errno::INVAL)),
        ("+(pt)", Err(Errno::NOENT)),
        (":", Err(Errno::NOENT)),
        ("x", Err(Errno::INVAL)),
    ] {
        assert_eq!(entry(tail), computed, "{tail}");
    }
}

#[test]
fn links_declare_and_remove_relations() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.mint(None), fixture.mint(None));
    let (path, target) = (rep(&one), rep(&other));
    let (year, name) = split(&path);
    let parent = fixture.node(year);
    let namespace = &fixture.namespace;
    let link = |tail: &str, target: &str| {
        let name = format!("{name}{tail}");
        let made = namespace.link_beside(
            &fixture.caller,
            &parent,
            OsStr::new(&name),
            target.as_bytes(),
        );
        made.map(|_| ())
    };
    let remove = |tail: &str| {
        let name = format!("{name}{tail}");
        namespace.remove_beside(&fixture.caller, &parent, OsStr::new(&name))
    };
    assert_eq!(link("!", "nowhere"), Err(Errno::INVAL));
    assert_eq!(
        link(":(oai_dc)", &target),
        Err(Errno::INVAL),
        "not a relation"
    );
    assert_eq!(link("!", &format!("../../../{target}")), Ok(()));
    let declared = format!("-> ../../../{target}");
    assert_eq!(fixture.describe(&format!("{path}!")), Ok(declared.clone()));
    assert_eq!(link("+(pt)", &format!("/mnt/{}", ibip(&other))), Ok(()));
    assert_eq!(fixture.describe(&format!("{path}+(pt)")), Ok(declared));
    assert_eq!(remove("!"), Ok(()));
    assert_eq!(
        fixture.describe(&format!("{path}!")),
        Ok(format!("-> ../../../{path}"))
    );
    assert_eq!(remove("+(pt)"), Ok(()));
    assert_eq!(fixture.describe(&format!("{path}+(pt)")), Err(Errno::NOENT));
    assert_eq!(remove("?GetFileList"), Err(Errno::PERM));
    assert_eq!(remove("+(pt)"), Err(Errno::NOENT));
}

#[test]
fn a_staged_link_replaces_a_modifier() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.mint(None), fixture.mint(None));
    let (path, target) = (rep(&one), rep(&other));
    let (year, name) = split(&path);
    let parent = fixture.node(year);
    let (namespace, caller) = (&fixture.namespace, &fixture.caller);
    let staged = OsStr::new("CuAb12Cd");
    let target = format!("../../../{target}");
    namespace
        .link_beside(caller, &parent, staged, target.as_bytes())
        .expect("staged");
    assert_eq!(
        fixture.describe(&format!("{year}/CuAb12Cd")),
        Ok(format!("-> {target}"))
    );
    let not_staged = namespace.link_beside(caller, &parent, OsStr::new("notes"), b"x");
    assert_eq!(not_staged.err(), Some(Errno::PERM));
    let modifier = format!("{name}!");
    let rename = |from: &OsStr, to: &str, flags| {
        namespace.rename_beside(caller, &parent, from, &parent, OsStr::new(to), flags)
    };
    assert_eq!(rename(staged, "notes", 0), Err(Errno::PERM));
    assert_eq!(
        rename(staged, &modifier, rustix::fs::RenameFlags::EXCHANGE.bits()),
        Err(Errno::INVAL)
    );
    assert_eq!(rename(staged, &modifier, 0), Ok(()));
    assert_eq!(
        fixture.describe(&format!("{path}!")),
        Ok(format!("-> {target}"))
    );
    assert_eq!(
        fixture.describe(&format!("{year}/CuAb12Cd")),
        Err(Errno::NOENT)
    );
}

#[test]
fn the_metadata_text_is_a_file_beside_the_item() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (year, name) = split(&path);
    let parent = fixture.node(year);
    let (namespace, caller) = (&fixture.namespace, &fixture.caller);
    let text = format!("{name}:");
    let create = |name: &str| {
        let flags = (rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CREATE).bits() as i32;
        namespace.create_beside(caller, &parent, OsStr::new(name), flags, 0o644, 0)
    };
    let (_, file) = create(&text).expect("made");
    std::fs::File::from(file)
        .write_all(b"%T A title\n")
        .expect("written");
    assert_eq!(fixture.describe(&format!("{path}:")), Ok("file".into()));
    let record = fixture
        .describe(&format!("{path}:(oai_dc)"))
        .expect("a record");
    assert!(record.starts_with("text of "), "{record}");
    assert_eq!(create(&format!("{name}!")).err(), Some(Errno::PERM));
    assert_eq!(create("notes").err(), Some(Errno::PERM));
    namespace
        .rename_beside(
            caller,
            &parent,
            OsStr::new(&text),
            &parent,
            OsStr::new(&format!("{name}:~")),
            0,
        )
        .expect("an editor keeps a backup");
    assert_eq!(fixture.describe(&format!("{path}:")), Err(Errno::NOENT));
    namespace
        .rename_beside(
            caller,
            &parent,
            OsStr::new(&format!("{name}:~")),
            &parent,
            OsStr::new(&text),
            0,
        )
        .expect("and puts it back");
    assert_eq!(fixture.describe(&format!("{path}:")), Ok("file".into()));
    namespace
        .remove_beside(caller, &parent, OsStr::new(&text))
        .expect("removed");
    assert_eq!(fixture.describe(&format!("{path}:")), Err(Errno::NOENT));
}
