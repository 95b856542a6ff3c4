//! Lookups, listings and symbolic links of levels, prefixes and items.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::fixture::{Fixture, ibip, rep, split};
use crate::archive::Process;
use crate::fuse::inode::{NodeKind, View};
use crate::fuse::inside::{self, Removal};
use crate::fuse::namespace::{NameLifetime, Options, Stale};

#[test]
fn an_item_is_found_by_both_its_names() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    for (path, view) in [(rep(&item), View::Rep), (ibip(&item), View::Ibip)] {
        let entry = fixture.find(&path).expect("found");
        assert_eq!(entry.node.kind, NodeKind::Item(item.id), "{path}");
        assert_eq!(entry.node.view, view, "{path}");
        assert_eq!(entry.lifetime, NameLifetime::UntilInvalidated, "{path}");
    }
    let (rep, ibip) = (fixture.node(&rep(&item)), fixture.node(&ibip(&item)));
    assert_ne!(rep.id, ibip.id, "a directory has one parent");
    assert_eq!(rep.st_ino, ibip.st_ino);
}

#[test]
fn names_at_the_levels_are_found_in_any_spelling() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    let (subdomain, rest) = rep.split_once('/').expect("levels");
    let (repository, _) = rest.split_once('/').expect("levels");
    let (prefix, suffix) = split(&ibip);
    for (path, what) in [
        (subdomain.to_owned(), Ok("directory".to_owned())),
        (subdomain.to_uppercase(), Ok(format!("-> {subdomain}"))),
        (
            format!("{subdomain}/{repository}"),
            Ok("directory".to_owned()),
        ),
        (
            format!("{subdomain}/{}", repository.to_uppercase()),
            if repository == repository.to_uppercase() {
                Ok("directory".to_owned())
            } else {
                Ok(format!("-> {repository}"))
            },
        ),
        (prefix.to_owned(), Ok("directory".to_owned())),
        (prefix.to_lowercase(), Ok(format!("-> {prefix}"))),
        (
            format!("{prefix}/{}", suffix.to_lowercase()),
            Ok(format!("-> ../{ibip}")),
        ),
        (".mint".to_owned(), Ok("directory".to_owned())),
        ("missing.org".to_owned(), Err(Errno::NOENT)),
        ("no level".to_owned(), Err(Errno::NOENT)),
        ("ZZZZZZZZ".to_owned(), Err(Errno::NOENT)),
        (format!("{prefix}/ZZZZZZ"), Err(Errno::NOENT)),
        (format!("{rep}/missing"), Err(Errno::NOENT)),
        ("a".repeat(256), Err(Errno::NAMETOOLONG)),
    ] {
        assert_eq!(fixture.describe(&path), what, "{path}");
    }
}

#[test]
fn a_file_has_one_node_in_both_trees() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    fixture.write(&item, "report.txt", "text");
    let in_rep = fixture.node(&format!("{}/report.txt", rep(&item)));
    let in_ibip = fixture.node(&format!("{}/report.txt", ibip(&item)));
    assert_eq!(in_rep.id, in_ibip.id);
    assert_eq!(in_rep.learnt.sidecar_of(), None);
    let sidecar = fixture
        .find(&format!("{}/.ibi", rep(&item)))
        .expect("is there");
    assert_eq!(sidecar.node.learnt.sidecar_of(), Some(item.id));
    assert_eq!(
        sidecar.lifetime,
        NameLifetime::Uncached,
        "the file may be replaced at any time"
    );
    assert_eq!(
        fixture.describe(&format!("{}/report.txt/x", rep(&item))),
        Err(Errno::NOTDIR)
    );
}

#[test]
fn links_that_climb_are_read_as_their_tree_needs() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    let in_rep = fixture.node(&rep);
    let file = in_rep.file().expect("a directory");
    // The link leaves the item: four levels up in the rep tree, two in the IBIp tree.
    let target = format!("../../../../{rep}/doc");
    for (name, target) in [("out", target.as_str()), ("in", "doc"), ("abs", "/etc")] {
        rustix::fs::symlinkat(target, &*file, name).expect("a link");
    }
    for (path, what) in [
        (format!("{rep}/out"), format!("-> {target}")),
        (format!("{ibip}/out"), format!("-> ../../{rep}/doc")),
        (format!("{rep}/in"), "-> doc".to_owned()),
        (format!("{ibip}/in"), "-> doc".to_owned()),
        (format!("{ibip}/abs"), "-> /etc".to_owned()),
    ] {
        assert_eq!(fixture.describe(&path), Ok(what), "{path}");
    }
    let here = fixture.node(&format!("{ibip}/in"));
    assert_eq!(here.id, fixture.node(&format!("{rep}/in")).id);
    let out = fixture.find(&format!("{ibip}/out")).expect("is there");
    let length = format!("../../{rep}/doc").len();
    assert_eq!(
        out.attr.size, length as u64,
        "a link is as long as its target"
    );
    let in_ibip = fixture.node(&ibip);
    let kept = fixture
        .namespace
        .link_to_keep(&in_ibip, format!("../../{rep}/doc").as_bytes());
    assert_eq!(kept, Ok(target.into_bytes()));
    assert_eq!(
        fixture.namespace.read_link(&fixture.node(".mint")),
        Err(Errno::INVAL),
        "a directory is not a link"
    );
}

#[test]
fn listings_show_each_item_once_or_everything() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let service = fixture.namespace.archive.facts().service.clone();
    let (rep, ibip) = (rep(&item), ibip(&item));
    let (year, name) = split(&rep);
    let (prefix, suffix) = split(&ibip);
    let (subdomain, _) = rep.split_once('/').expect("levels");
    assert_eq!(
        fixture.list(""),
        Ok(vec![".".into(), "..".into(), subdomain.into()])
    );
    let mut names = vec![".", "..", name];
    let service_rep = service.rep().expect("a rep").to_string();
    let (service_year, service_name) = split(&service_rep);
    if service_year == year {
        names.push(service_name);
    }
    names.sort_unstable();
    assert_eq!(fixture.list(year).expect("listed"), names);
    let listed = fixture.list(prefix).expect("listed");
    assert!(listed.contains(&suffix.to_owned()), "{listed:?}");
    assert_eq!(
        fixture.list(&rep),
        Err(Errno::NOTDIR),
        "a filesystem lists an item"
    );
}

#[test]
fn list_all_shows_prefixes_modifiers_and_mint() {
    let fixture = Fixture::with(Options {
        list_all: true,
        ..Options::default()
    });
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    let (year, name) = split(&rep);
    let (prefix, _) = split(&ibip);
    fixture
        .mkdir(year, &format!("{name}+(pt)"))
        .expect("minted");
    let root = fixture.list("").expect("listed");
    assert!(root.contains(&".mint".to_owned()) && root.contains(&prefix.to_owned()));
    let listed = fixture.list(year).expect("listed");
    assert!(listed.contains(&format!("{name}+(pt)")), "{listed:?}");
    for line in fixture
        .namespace
        .list(&fixture.caller, &fixture.node(year))
        .expect("listed")
    {
        let path = format!("{year}/{}", line.name.to_string_lossy());
        if line.name != "." && line.name != ".." {
            let found = fixture.find(&path).expect("a listed name is found");
            assert_eq!(found.attr.kind, line.kind, "{path}");
            assert_eq!(found.node.st_ino, line.st_ino, "{path}");
        }
    }
}

#[test]
fn levels_are_made_and_removed_by_the_rules_of_names() {
    let fixture = Fixture::new();
    let made = |parent: &str, name: &str| {
        fixture
            .mkdir(parent, name)
            .map(|entry| entry.node.kind.clone())
    };
    assert_eq!(
        made("", "Sid.inpe.br"),
        Ok(NodeKind::Level("Sid.inpe.br".into()))
    );
    assert_eq!(fixture.describe("SID.inpe.br"), Ok("-> Sid.inpe.br".into()));
    assert_eq!(
        made("", "8JMKD3MGP8W"),
        Ok(NodeKind::Prefix("8JMKD3MGP8W".into()))
    );
    assert_eq!(made("", "not a name"), Err(Errno::INVAL));
    made("Sid.inpe.br", "banon").expect("a level");
    made("Sid.inpe.br/banon", "2001").expect("a level");
    let item = made("Sid.inpe.br/banon/2001", "02.10.22.55").expect("an item");
    assert!(matches!(item, NodeKind::Item(_)));
    assert_eq!(made("Sid.inpe.br/banon/2001", "notes"), Err(Errno::INVAL));
    assert_eq!(
        made("Sid.inpe.br/banon/2001", "02.10.22.56!"),
        Err(Errno::NOENT)
    );
    let remove = |parent: &str, name: &str| {
        let parent = fixture.node(parent);
        let namespace = &fixture.namespace;
        let removed = namespace.remove_directory(&fixture.caller, &parent, OsStr::new(name));
        removed.map(|_| ())
    };
    assert_eq!(remove("", "Sid.inpe.br"), Err(Errno::NOTEMPTY));
    assert_eq!(remove("", ".mint"), Err(Errno::PERM));
    assert_eq!(remove("Sid.inpe.br/banon/2001", "02.10.22.55"), Ok(()));
    assert_eq!(
        fixture.describe("Sid.inpe.br/banon/2001/02.10.22.55"),
        Err(Errno::NOENT)
    );
    assert_eq!(remove("", "8JMKD3MGP8W"), Ok(()));
    assert_eq!(fixture.describe("8JMKD3MGP8W"), Err(Errno::NOENT));
}

#[test]
fn an_item_with_content_is_not_removed() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    fixture.write(&item, "report.txt", "text");
    let rep = rep(&item);
    let (year, name) = split(&rep);
    let parent = fixture.node(year);
    let removed = fixture
        .namespace
        .remove_directory(&fixture.caller, &parent, OsStr::new(name));
    assert_eq!(removed, Err(Errno::NOTEMPTY));
    assert!(fixture.find(&rep).is_ok());
}

#[test]
fn a_removed_item_is_stale_in_the_other_tree() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    let directory = fixture.node(&rep);
    inside::remove(
        directory.file().expect("open").as_fd(),
        OsStr::new("doc"),
        Removal::Rmdir,
    )
    .expect("empty");
    let (prefix, suffix) = split(&ibip);
    let prefix = fixture.node(prefix);
    let (year, name) = split(&rep);
    let year = fixture.node(year);
    let stale = fixture
        .namespace
        .remove_directory(&fixture.caller, &year, OsStr::new(name))
        .expect("removed");
    let name_there = Stale::Name(prefix.id, suffix.into());
    assert!(stale.contains(&name_there), "{stale:?}");
    assert!(
        !stale
            .iter()
            .any(|stale| matches!(stale, Stale::Name(id, _) if *id == year.id)),
        "the kernel holds the directory of the name itself"
    );
    assert_eq!(fixture.describe(&ibip), Err(Errno::NOENT));
}

#[test]
fn names_that_are_too_long_are_refused_above_items() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    for above in ["", ".mint", split(&ibip).0, split(&rep).0] {
        for (length, errno) in [(255, Errno::NOENT), (256, Errno::NAMETOOLONG)] {
            let found = fixture.describe(&format!("{above}/{}", "a".repeat(length)));
            assert_eq!(found, Err(errno), "{length} in {above}");
        }
    }
}

#[test]
fn virtual_directories_are_cached_and_virtual_links_are_not() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let (rep, ibip) = (rep(&item), ibip(&item));
    for (path, lasting) in [
        (".mint".to_owned(), true),
        (split(&ibip).0.to_owned(), true),
        (split(&ibip).0.to_lowercase(), false),
        (format!("{rep}!"), false),
        (split(&rep).0.to_owned(), true),
    ] {
        let entry = fixture.find(&path).expect("found");
        let is_cached = entry.lifetime == NameLifetime::UntilInvalidated;
        assert_eq!(is_cached, lasting, "{path}");
    }
}

/// A link that stays in its item has one text, and so is one file, in both trees.
#[test]
fn links_that_stay_in_their_item_are_the_same_in_both_trees() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    std::fs::create_dir(fixture.file(&item, "sub")).expect("made");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, fixture.file(&item, name)).expect("a link");
    };
    link("../doc", "sub/in");
    link("../../other", "sub/out");
    let [in_rep, in_ibip] = [rep(&item), ibip(&item)];
    for (name, is_one) in [("sub/in", true), ("sub/out", false)] {
        let here = fixture.find(&format!("{in_rep}/{name}")).expect("found");
        let there = fixture.find(&format!("{in_ibip}/{name}")).expect("found");
        assert_eq!(here.node.id == there.node.id, is_one, "{name}");
        assert_eq!(here.node.view == there.node.view, is_one, "{name}");
    }
    // It may leave its item once it is moved.
    let there = fixture.find(&format!("{in_ibip}/sub/in")).expect("found");
    assert_eq!(there.lifetime, NameLifetime::Uncached);
    // In the rep tree links are stored as they are.
    let (here, there) = (fixture.node(&in_rep), fixture.node(&in_ibip));
    let keep = |parent, target: &str| {
        let kept = fixture.namespace.link_to_keep(parent, target.as_bytes());
        String::from_utf8(kept.expect("kept")).expect("text")
    };
    for target in ["../../x", "/etc", "doc"] {
        assert_eq!(keep(&here, target), target);
    }
    assert_eq!(keep(&there, "/etc"), "/etc");
    assert_ne!(keep(&there, "../../x/y"), "../../x/y");
}

#[test]
fn a_translated_link_is_as_long_as_a_link_can_be() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let out = fixture.file(&item, "out");
    let read = |length: usize| {
        let _ = std::fs::remove_file(&out);
        let target = format!("../{}", "x".repeat(length));
        std::os::unix::fs::symlink(target, &out).expect("a link");
        let node = fixture.node(&format!("{}/out", ibip(&item)));
        let read = fixture.namespace.read_link(&node);
        fixture.namespace.nodes.forget(node.id, 1);
        read.map(|target| target.len())
    };
    let more = read(1).expect("short") - 1;
    assert!(more > 3, "by way of the root");
    assert_eq!(read(4095 - more), Ok(4095));
    assert_eq!(read(4096 - more), Err(Errno::NAMETOOLONG));
}

#[test]
fn a_listing_shows_identifiers_only() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let path = rep(&item);
    let (year, name) = split(&path);
    std::fs::create_dir(fixture.file(&item, "../notes")).expect("made");
    std::fs::create_dir(fixture.file(&item, "../../2001")).expect("made");
    std::fs::write(fixture.file(&item, "../../2002"), "x").expect("written");
    let listed = fixture.list(year).expect("listed");
    assert!(listed.contains(&name.to_owned()), "{listed:?}");
    assert!(!listed.contains(&"notes".to_owned()), "{listed:?}");
    let listed = fixture.list(split(year).0).expect("listed");
    assert!(listed.contains(&"2001".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"2002".to_owned()), "a file: {listed:?}");
}

#[test]
fn empty_levels_are_removed_from_below() {
    let fixture = Fixture::new();
    fixture.mkdir("", "Sid.inpe.br").expect("a level");
    fixture.mkdir("Sid.inpe.br", "banon").expect("a level");
    fixture.mkdir("Sid.inpe.br/banon", "2001").expect("a level");
    let made = fixture.mkdir("Sid.inpe.br/banon/2001", "02.10.22.56!x");
    assert_eq!(made.err(), Some(Errno::INVAL), "not a modifier");
    for (parent, name) in [
        ("Sid.inpe.br/banon", "2001"),
        ("Sid.inpe.br", "banon"),
        ("", "Sid.inpe.br"),
    ] {
        let parent = fixture.node(parent);
        let namespace = &fixture.namespace;
        let removed = namespace.remove_directory(&fixture.caller, &parent, OsStr::new(name));
        assert_eq!(removed.map(drop), Ok(()), "{name}");
    }
    assert_eq!(fixture.describe("Sid.inpe.br"), Err(Errno::NOENT));
}

/// An alias leads to its item by a link, until the item is removed.
#[test]
fn an_alias_ends_with_its_item() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let alias = ibi::AliasPair::parse("LK47B6/x1").expect("an alias");
    let fact = crate::archive::Fact::Alias(alias);
    fixture
        .edit(&fixture.caller, |it| it.set_fact(&item.names, fact))
        .expect("an alias");
    let target = format!("-> ../{}", ibip(&item));
    assert_eq!(fixture.describe("LK47B6/x1"), Ok(target));
    std::fs::remove_dir(fixture.file(&item, "doc")).expect("removed");
    fixture
        .edit(&Process, |it| it.remove(item.id))
        .expect("removed");
    assert_eq!(fixture.describe("LK47B6/x1"), Err(Errno::NOENT));
}
