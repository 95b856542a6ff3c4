//! Names beside an item: modifiers, relations, the metadata text, staged names.

use std::ffi::OsStr;
use std::io::Write;

use rustix::io::Errno;

use super::fixture::{Fixture, ibip, rep, split};
use crate::archive::Relative;
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
        ..Options::default()
    });
    let item = fixture.mint(None);
    let names = item.names.clone();
    let edition = fixture.mint(Some(&Relative::Edition(names.clone())));
    let translation = fixture.mint(Some(&Relative::Translation(names.clone(), pt())));
    let metadata = fixture.mint(Some(&Relative::Metadata(names)));
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
    let edition = fixture.mint(Some(&Relative::Edition(item.names.clone())));
    let path = rep(&item);
    let (year, name) = split(&path);
    let year = fixture.node(year);
    let entry = |tail: &str| {
        let namespace = &fixture.namespace;
        let sibling = namespace.sibling(&year, &format!("{name}{tail}"))?;
        let sibling = sibling.ok_or(Errno::INVAL)?;
        compute(&namespace.archive, &[], &sibling)
    };
    let link = edition.names.clone();
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

#[test]
fn links_name_an_item_by_its_path_from_here_or_by_a_url() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.mint(None), fixture.mint(None));
    let (namespace, caller) = (&fixture.namespace, &fixture.caller);
    for (path, target) in [(rep(&one), rep(&other)), (ibip(&one), ibip(&other))] {
        let (above, name) = split(&path);
        let parent = fixture.node(above);
        let modifier = format!("{name}!");
        let last = split(&target).1;
        for text in [
            last.to_owned(),
            format!("./{last}"),
            format!("http://a.example/{target}"),
        ] {
            let declared =
                namespace.link_beside(caller, &parent, OsStr::new(&modifier), text.as_bytes());
            assert!(declared.is_ok(), "{text}: {declared:?}");
            let edition = fixture.describe(&format!("{}!", rep(&one)));
            assert_eq!(
                edition,
                Ok(format!("-> ../../../{}", rep(&other))),
                "{text}"
            );
            namespace
                .remove_beside(caller, &parent, OsStr::new(&modifier))
                .expect("removed");
        }
    }
}

#[test]
fn names_are_staged_only_where_items_lie() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (year, _) = split(&path);
    let (year, root) = (fixture.node(year), fixture.node(""));
    let (namespace, caller) = (&fixture.namespace, &fixture.caller);
    let (from, to) = (OsStr::new("CuAb12Cd"), OsStr::new("backup~"));
    let link = |parent| namespace.link_beside(caller, parent, from, b"x").map(drop);
    assert_eq!(link(&root), Err(Errno::PERM));
    assert_eq!(link(&year), Ok(()));
    let rename = |new_parent, to| namespace.rename_beside(caller, &year, from, new_parent, to, 0);
    assert_eq!(rename(&root, to), Err(Errno::PERM));
    assert_eq!(rename(&year, to), Ok(()));
    let found = |name: &str| fixture.describe(&format!("{}/{name}", split(&path).0));
    assert_eq!(found("CuAb12Cd"), Err(Errno::NOENT));
    assert_eq!(found("backup~"), Ok("-> x".to_owned()));
}

#[test]
fn a_staged_file_becomes_the_metadata_text_if_it_is_small() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (year, name) = split(&path);
    let parent = fixture.node(year);
    let (namespace, caller) = (&fixture.namespace, &fixture.caller);
    let staged = OsStr::new("CuAb12Cd");
    let flags = (rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CREATE).bits() as i32;
    let (entry, file) = namespace
        .create_beside(caller, &parent, staged, flags, 0o40_666, 0o022)
        .expect("staged");
    assert_eq!(entry.attr.permissions, 0o644);
    let file = std::fs::File::from(file);
    let rename = |to: &str| {
        let to = format!("{name}{to}");
        namespace.rename_beside(caller, &parent, staged, &parent, OsStr::new(&to), 0)
    };
    assert_eq!(rename("!"), Err(Errno::PERM), "a file is no edition");
    let limit = crate::archive::tree::SMALL_FILE_LIMIT;
    file.set_len(limit + 1).expect("longer");
    assert_eq!(rename(":"), Err(Errno::FBIG));
    file.set_len(limit).expect("as long as allowed");
    assert_eq!(rename(":"), Err(Errno::INVAL), "NUL bytes are no metadata");
    let text = b"title: Rain\n".to_vec();
    let lines = [text, vec![b'\n'; limit as usize - 12]].concat();
    std::os::unix::fs::FileExt::write_all_at(&file, &lines, 0).expect("written");
    assert_eq!(rename(":"), Ok(()));
    assert_eq!(fixture.describe(&format!("{path}:")), Ok("file".into()));
    let text = format!("{name}:");
    let away = |to: &str| {
        let to = OsStr::new(to);
        namespace.rename_beside(caller, &parent, OsStr::new(&text), &parent, to, 0)
    };
    assert_eq!(away("notes"), Err(Errno::PERM), "a user's name");
    assert_eq!(away(".text.swp"), Ok(()));
}

/// The rights in the item's directory decide, not those in the directory of the name.
#[test]
fn who_may_not_write_in_an_item_changes_nothing_beside_it() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let (item, other) = (fixture.mint(None), fixture.mint(None));
    let path = rep(&item);
    let (year, name) = split(&path);
    let parent = fixture.node(year);
    fixture.write(&item, ".ibi.metadata", "%T x\n");
    let (namespace, caller) = (&fixture.namespace, &fixture.caller);
    let may_always = rustix::process::geteuid().is_root();
    let denied = |outcome: Result<(), Errno>, what: &str| {
        let expected = if may_always {
            None
        } else {
            Some(Errno::ACCESS)
        };
        assert_eq!(outcome.err(), expected, "{what}");
    };
    let set_mode = |path: std::path::PathBuf, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("a mode");
    };
    set_mode(fixture.file(&item, ""), 0o555);
    let target = rep(&other);
    let modifier = |tail: &str| format!("{name}{tail}");
    let link = |tail: &str| {
        let name = modifier(tail);
        let made = namespace.link_beside(caller, &parent, OsStr::new(&name), target.as_bytes());
        made.map(drop)
    };
    denied(link("+(pt)"), "a relation");
    let made = fixture.mkdir(year, &modifier("+(fr)"));
    denied(made.map(drop), "an item that is related");
    let text = modifier(":");
    denied(
        namespace.remove_beside(caller, &parent, OsStr::new(&text)),
        "the metadata text",
    );
    // An item that cannot be read shows nothing beside it either.
    set_mode(fixture.file(&item, ""), 0o300);
    denied(fixture.describe(&format!("{path}!")).map(drop), "a link");
    let list = fixture.describe(&format!("{path}?GetFileList"));
    denied(list.map(drop), "the list of files");
    set_mode(fixture.file(&item, ""), 0o755);
    // Items are made by users who may write in the level.
    set_mode(fixture.file(&item, ".."), 0o555);
    let made = fixture.mkdir(year, "01.01.00.00");
    set_mode(fixture.file(&item, ".."), 0o755);
    denied(made.map(drop), "an item");
}
