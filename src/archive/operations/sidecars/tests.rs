use rustix::io::Errno;

use super::super::testing::{OTHER_USER, TestArchive, elsewhere, language, names, transfer};
use super::super::{Process, Stranger};
use super::{Acceptance, Fact, merged};
use crate::archive::ArchiveError;
use crate::archive::store::Item;
use crate::formats::item::{Names, State};
use ibi::AliasPair;
use ibi::relation::RelationKind;

/// The outcome of a sidecar, in a word.
fn outcome(of: &Acceptance) -> String {
    match of {
        Acceptance::Accepted(_) => "accepted".to_owned(),
        Acceptance::Unchanged => "unchanged".to_owned(),
        Acceptance::Rejected(error) => error.to_string(),
    }
}

fn accept(archive: &TestArchive, item: &Item) -> String {
    outcome(
        &archive
            .edit(&Process, |it| it.accept_sidecar(item.id))
            .expect("asked"),
    )
}

#[test]
fn a_copy_says_what_its_sidecar_says() {
    let archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    assert_eq!(item.state, State::Copy);
    assert_eq!(item.service, Some(elsewhere()));
    let alias = AliasPair::parse("lib/map").expect("an alias");
    archive.edit_raw(&item, |sidecar| {
        sidecar.set_language(&language("pt"));
        sidecar.set_target("map.pdf");
        sidecar.add_alias(&alias);
        sidecar.set_names(&Names::both(
            item.names.rep().cloned().expect("a rep"),
            "8JMKD3MGP8W/35MMLL8".parse().expect("an IBIp"),
        ));
    });
    assert_eq!(accept(&archive, &item), "accepted");
    let item = archive.again(&item);
    assert_eq!(item.language, Some(language("pt")));
    assert_eq!(item.target.as_deref(), Some("map.pdf"));
    for name in ["8JMKD3MGP8W/35MMLL8", "lib/map"] {
        let found = archive.find_named(name).expect(name);
        assert_eq!(found.map(|found| found.id), Some(item.id), "{name}");
    }
    assert_eq!(accept(&archive, &item), "unchanged");
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_accepted_changes_nothing() {
    let archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let before = archive.store().sidecar(item.id).expect("read");
    let cases: [(&[u8], &str); 3] = [
        (b"ibi {", "a.example/b/2001/01.01.00.00"),
        (
            b"ibi {rep x.example/y/2001/01.01.00.00}\n",
            "x.example/y/2001/01.01.00.00",
        ),
        (b"", "a.example/b/2001/01.01.00.00"),
    ];
    for (bytes, sentence) in cases {
        archive.write_raw(&item, bytes);
        let found = accept(&archive, &item);
        assert!(found.contains(sentence), "{found}");
        assert_eq!(archive.store().sidecar(item.id).expect("read"), before);
        assert_eq!(archive.again(&item), item);
        // The file is left as it was written.
        let on_disk = std::fs::read(archive.file(&item, ".ibi")).expect("a sidecar");
        assert_eq!(on_disk, bytes);
    }
    std::fs::remove_file(archive.file(&item, ".ibi")).expect("removed");
    assert_eq!(accept(&archive, &item), "unchanged");
    archive
        .edit(&Stranger, |it| it.restore_sidecar(item.id))
        .expect("restored");
    assert_eq!(archive.sidecar(&item).archive_service(), Some(&elsewhere()));
}

#[test]
fn an_original_keeps_its_own_name() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let before = std::fs::read(archive.file(&item, ".ibi")).expect("a sidecar");
    archive.write_raw(&item, b"ibi {rep x.example/y/2001/01.01.00.00}\n");
    assert!(accept(&archive, &item).contains("x.example"));
    let after = std::fs::read(archive.file(&item, ".ibi")).expect("a sidecar");
    assert_eq!(after, before);
}

#[test]
fn the_service_item_stays_the_original() {
    let archive = TestArchive::new();
    let service = archive.held(&archive.facts().service).expect("read");
    let service = service.expect("the service");
    archive.edit_raw(&service, |sidecar| {
        sidecar.set_archive_service(&elsewhere());
    });
    assert_ne!(accept(&archive, &service), "accepted");
    let named = archive.sidecar(&service).archive_service().cloned();
    assert_eq!(named, Some(archive.facts().service.clone()));
}

#[test]
fn state_follows_from_the_service() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let own = archive.facts().service.clone();
    for (service, state) in [(elsewhere(), State::Copy), (own, State::Original)] {
        archive.edit_raw(&item, |sidecar| sidecar.set_archive_service(&service));
        assert_eq!(accept(&archive, &item), "accepted");
        assert_eq!(archive.again(&item).state, state);
        assert_eq!(archive.again(&item).service, Some(service));
    }
}

#[test]
fn an_item_moves_from_its_ibip_to_its_rep() {
    let archive = TestArchive::new();
    let name = "8JMKD3MGP8W/35MMLL8";
    let item = archive.copy(name);
    std::fs::write(archive.file(&item, "map"), "x").expect("a file");
    let old = archive.file(&item, "");
    archive.edit_raw(&item, |sidecar| {
        sidecar.set_names(&Names::both(
            "a.example/b/2001/01.01.00.00".parse().expect("a rep"),
            name.parse().expect("an IBIp"),
        ));
    });
    assert_eq!(accept(&archive, &item), "accepted");
    let item = archive.again(&item);
    assert_eq!(
        archive.file(&item, "map"),
        archive.path().join("col/a.example/b/2001/01.01.00.00/map")
    );
    assert!(archive.file(&item, "map").is_file() && !old.exists());
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn what_an_original_declares_is_written_at_the_far_end() {
    let archive = TestArchive::new();
    let [near, far, next] = [archive.new_item(), archive.new_item(), archive.new_item()];
    let back = |item: &Item| {
        let relations = archive.sidecar(item).relations();
        relations.into_iter().map(|(_, names)| names).next()
    };
    for (target, other) in [(&far, &next), (&next, &far)] {
        archive.edit_raw(&near, |sidecar| {
            sidecar.set_relation(&RelationKind::NextEdition, &target.names);
        });
        assert_eq!(accept(&archive, &near), "accepted");
        assert_eq!(back(target).as_ref(), Some(&near.names));
        assert_eq!(back(other), None);
    }
}

#[test]
fn a_stranger_accepts_nothing_new() {
    let archive = TestArchive::new();
    let (near, far) = (archive.new_item(), archive.new_item());
    archive.edit_raw(&near, |sidecar| {
        sidecar.set_relation(&RelationKind::NextEdition, &far.names);
    });
    let accepted = archive
        .edit(&Stranger, |it| it.accept_sidecar(near.id))
        .expect("asked");
    assert_eq!(outcome(&accepted), "accepted");
    // The near end declares it; the stranger may not write the far end.
    assert!(archive.sidecar(&far).relations().is_empty());
}

#[test]
fn facts_of_an_original() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let alias = AliasPair::parse("lib/map").expect("an alias");
    let set = |fact: Fact| {
        archive
            .edit(&Process, |it| it.set_fact(&item.names, fact))
            .expect("a fact");
    };
    set(Fact::Language(Some(language("pt"))));
    set(Fact::Target(Some(b"map.pdf".to_vec())));
    set(Fact::Alias(alias.clone()));
    let found = archive.again(&item);
    assert_eq!(
        (found.language, found.target.as_deref()),
        (Some(language("pt")), Some("map.pdf"))
    );
    let taken = archive.edit(&Process, |it| {
        it.set_fact(&archive.new_item().names, Fact::Alias(alias))
    });
    assert!(
        matches!(taken, Err(ArchiveError::AliasTaken { .. })),
        "{taken:?}"
    );
    set(Fact::Language(None));
    set(Fact::Target(None));
    let found = archive.again(&item);
    assert_eq!((found.language, found.target), (None, None));
    let other = archive.edit(&OTHER_USER, |it| {
        it.set_fact(&item.names, Fact::Target(None))
    });
    assert!(
        matches!(other, Err(ArchiveError::NotAllowed(_))),
        "{other:?}"
    );
    let unknown = archive.edit(&Process, |it| it.set_fact(&elsewhere(), Fact::Target(None)));
    assert!(
        matches!(unknown, Err(ArchiveError::Unknown { .. })),
        "{unknown:?}"
    );
    let copy = archive.copy("a.example/b/2001/01.01.00.00");
    let copied = archive.edit(&Process, |it| it.set_fact(&copy.names, Fact::Target(None)));
    assert!(
        matches!(copied, Err(ArchiveError::NotOriginal { .. })),
        "{copied:?}"
    );
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn a_sidecar_that_was_changed_on_disk_is_not_written_over() {
    let archive = TestArchive::new();
    let (item, other) = (archive.new_item(), archive.new_item());
    archive.edit_raw(&item, |sidecar| sidecar.set_target("x"));
    let kind = RelationKind::NextEdition;
    let refused = archive.edit(&Process, |it| it.relate(&item.names, &kind, &other.names));
    assert!(
        matches!(refused, Err(ArchiveError::Changed(_))),
        "{refused:?}"
    );
    // Neither end was changed.
    assert!(archive.sidecar(&other).relations().is_empty());
    assert_eq!(archive.sidecar(&item).target().as_deref(), Some("x"));
    let refused = archive.edit(&Process, |it| it.relate(&other.names, &kind, &item.names));
    assert!(
        matches!(refused, Err(ArchiveError::Changed(_))),
        "{refused:?}"
    );
    assert!(archive.sidecar(&other).relations().is_empty());
    assert_eq!(archive.store().relations_of(other.id).expect("read"), []);
}

#[test]
fn rewritten_sidecars_are_reported_once() {
    let archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.take_rewritten();
    archive.declare(&one, RelationKind::NextEdition, &other);
    assert_eq!(archive.take_rewritten(), [one.names, other.names]);
    assert_eq!(archive.take_rewritten(), []);
}

#[test]
fn names_of_both_sides_are_merged() {
    let (rep, ibip) = ("a.example/b/2001/01.01.00.00", "8JMKD3MGP8W/35MMLL8");
    let other_rep = "x.example/y/2001/01.01.00.00";
    let both =
        |rep: &str, ibip: &str| Names::both(rep.parse().expect(rep), ibip.parse().expect(ibip));
    for (known, given, expected) in [
        (names(rep), names(ibip), both(rep, ibip)),
        (names(ibip), names(rep), both(rep, ibip)),
        (names(rep), both(other_rep, ibip), both(rep, ibip)),
        (names(ibip), names("8JMKD3MGP8W/35MMLL9"), names(ibip)),
        (both(rep, ibip), names(rep), both(rep, ibip)),
    ] {
        assert_eq!(merged(&known, &given), expected, "{known} {given}");
    }
}

#[test]
fn what_is_not_a_small_file_is_left_and_not_accepted() {
    let archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let path = archive.file(&item, ".ibi");
    for (make, errno) in [
        (
            (|path| std::os::unix::fs::symlink("x", path).expect("a link")) as fn(&std::path::Path),
            Errno::LOOP,
        ),
        (
            |path| std::fs::write(path, vec![b' '; 2 << 20]).expect("written"),
            Errno::FBIG,
        ),
    ] {
        std::fs::remove_file(&path).expect("removed");
        make(&path);
        let accepted = archive
            .edit(&Process, |it| it.accept_sidecar(item.id))
            .expect("asked");
        let Acceptance::Rejected(ArchiveError::Tree(error)) = accepted else {
            panic!("{accepted:?}");
        };
        assert_eq!(error.errno(), errno);
        assert!(path.symlink_metadata().is_ok());
    }
    assert_eq!(archive.again(&item), item);
}

/// Of an item that another Archive has claimed, the sidecar may be out of date.
#[test]
fn an_item_that_was_given_and_claimed_is_read_as_a_copy() {
    use super::super::Role;
    let archive = TestArchive::new();
    let item = archive.new_item();
    let own = archive.facts().service.clone();
    for (role, is_taken, state, service) in [
        (Role::Gives, true, State::Copy, elsewhere()),
        (Role::Gives, false, State::Original, own.clone()),
        (Role::Expects, true, State::Original, own),
    ] {
        let handover = transfer(role, is_taken);
        let noted = archive.note_handover(&item.names, &handover);
        noted.expect("noted");
        let (record, error) = archive.read_item(&item.names).expect("read");
        assert!(error.is_none());
        assert_eq!(
            (record.state, record.service),
            (state, Some(service)),
            "{role:?}"
        );
    }
}

#[test]
fn a_removed_item_declares_nothing() {
    let archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.edit_raw(&one, |sidecar| {
        sidecar.set_relation(&RelationKind::Metadata, &elsewhere());
        sidecar.set_relation(&RelationKind::NextEdition, &other.names);
    });
    assert_eq!(accept(&archive, &one), "accepted");
    assert_eq!(archive.store().relations_of(one.id).expect("read").len(), 2);
    archive.remove_whole(&one);
    assert_eq!(archive.store().relations_of(one.id).expect("read"), []);
    // The other one keeps its side, as history.
    let removed = format!("removed-target {}", other.names.preferred());
    assert_eq!(archive.findings(), [removed]);
}
