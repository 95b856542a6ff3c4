use super::super::testing::{OTHER_USER, TestArchive, elsewhere, language, names};
use super::super::{Acceptance, Actor, ArchiveError, Fact, Process, Relative};
use crate::archive::store::Item;
use crate::formats::item::Names;
use ibi::relation::RelationKind;

/// The relations in an item's sidecar, one per line: `ibi.nextedition REP`.
fn declared(archive: &TestArchive, item: &Item) -> Vec<String> {
    let relations = archive.sidecar(item).relations();
    relations
        .iter()
        .map(|(kind, names)| format!("{} {}", kind.pair_name(), names.rep().expect("a rep")))
        .collect()
}

fn line(pair: &str, item: &Item) -> String {
    format!("{pair} {}", item.names.rep().expect("a rep"))
}

#[test]
fn a_relation_is_written_at_both_ends() {
    let pt = language("pt");
    for (kind, there, back) in [
        (
            RelationKind::NextEdition,
            "ibi.nextedition",
            "ibi.editionof",
        ),
        (RelationKind::Metadata, "ibi.metadata", "ibi.metadataof"),
        (
            RelationKind::Translation(pt),
            "ibi.translation(pt)",
            "ibi.translationof",
        ),
    ] {
        let archive = TestArchive::new();
        let (one, other) = (archive.new_item(), archive.new_item());
        archive.declare(&one, kind, &other);
        assert_eq!(declared(&archive, &one), [line(there, &other)]);
        assert_eq!(declared(&archive, &other), [line(back, &one)]);
        assert_eq!(archive.findings(), Vec::<String>::new(), "{there}");
        archive
            .edit(&Process, |it| it.unrelate(&one.names, &kind))
            .expect(there);
        assert!(declared(&archive, &one).is_empty() && declared(&archive, &other).is_empty());
        let again = archive.edit(&Process, |it| it.unrelate(&one.names, &kind));
        assert!(
            matches!(again, Err(ArchiveError::NoRelation { .. })),
            "{again:?}"
        );
    }
}

/// `ln -sfn` with the same target, and a second `ibifs relate`.
#[test]
fn a_relation_declared_again_stays_at_both_ends() {
    for kind in [
        RelationKind::NextEdition,
        RelationKind::Metadata,
        RelationKind::Translation(language("pt")),
    ] {
        let archive = TestArchive::new();
        let (one, other) = (archive.new_item(), archive.new_item());
        archive.declare(&one, kind, &other);
        // Pairs behind the relation at each end: their order stays, too.
        for item in [&one, &other] {
            let target = Fact::Target(Some(b"map.pdf".to_vec()));
            archive
                .edit(&Process, |it| it.set_fact(&item.names, target))
                .expect("a target");
        }
        let texts = || {
            [&one, &other]
                .map(|item| std::fs::read_to_string(archive.file(item, ".ibi")).expect("a sidecar"))
        };
        let declared = texts();
        archive.declare(&one, kind, &other);
        assert_eq!(texts(), declared);
    }
}

#[test]
fn an_inverse_relation_is_the_same_relation() {
    let archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.declare(&other, RelationKind::EditionOf, &one);
    assert_eq!(declared(&archive, &one), [line("ibi.nextedition", &other)]);
    assert_eq!(declared(&archive, &other), [line("ibi.editionof", &one)]);
    let taken_back = archive.edit(&Process, |it| {
        it.unrelate(&other.names, &RelationKind::EditionOf)
    });
    taken_back.expect("taken back");
    assert!(declared(&archive, &one).is_empty() && declared(&archive, &other).is_empty());
}

#[test]
fn a_new_target_takes_the_place_of_the_old_one() {
    let archive = TestArchive::new();
    let [one, first, second] = [archive.new_item(), archive.new_item(), archive.new_item()];
    archive.declare(&one, RelationKind::NextEdition, &first);
    archive.declare(&one, RelationKind::NextEdition, &second);
    assert_eq!(declared(&archive, &one), [line("ibi.nextedition", &second)]);
    assert!(declared(&archive, &first).is_empty());
    assert_eq!(declared(&archive, &second), [line("ibi.editionof", &one)]);
}

#[test]
fn an_inverse_relation_replaces_nothing() {
    let archive = TestArchive::new();
    let [one, first, second] = [archive.new_item(), archive.new_item(), archive.new_item()];
    archive.declare(&one, RelationKind::NextEdition, &first);
    archive.declare(&second, RelationKind::EditionOf, &one);
    assert_eq!(declared(&archive, &one), [line("ibi.nextedition", &first)]);
    assert_eq!(declared(&archive, &second), [line("ibi.editionof", &one)]);
}

#[test]
fn of_two_sources_the_target_names_the_one_that_is_left() {
    let archive = TestArchive::new();
    let [one, two, target] = [archive.new_item(), archive.new_item(), archive.new_item()];
    archive.declare(&one, RelationKind::NextEdition, &target);
    archive.declare(&two, RelationKind::NextEdition, &target);
    assert_eq!(declared(&archive, &target), [line("ibi.editionof", &two)]);
    let taken_back = archive.edit(&Process, |it| {
        it.unrelate(&two.names, &RelationKind::NextEdition)
    });
    taken_back.expect("taken back");
    assert_eq!(declared(&archive, &target), [line("ibi.editionof", &one)]);
}

/// An item is a translation of the other as long as one language of it is declared.
#[test]
fn a_target_of_two_languages_names_its_source_until_both_are_removed() {
    let [pt, es] = ["pt", "es"].map(|text| RelationKind::Translation(language(text)));
    let translation_of = |item: &Item| [line("ibi.translationof", item)];
    type Removal = fn(&TestArchive, &Item, &RelationKind, &Item);
    let removals: [(&str, Removal); 3] = [
        ("unrelate", |archive, one, kind, _| {
            archive
                .edit(&Process, |it| it.unrelate(&one.names, kind))
                .expect("done");
        }),
        ("another target", |archive, one, kind, other| {
            archive.declare(one, *kind, other);
        }),
        ("an editor", |archive, one, kind, _| {
            archive.edit_raw(one, |sidecar| {
                sidecar.remove_relation(kind);
            });
            archive
                .edit(&Process, |it| it.accept_sidecar(one.id))
                .expect("accepted");
        }),
    ];
    for (how, remove) in removals {
        let archive = TestArchive::new();
        let [one, other, target] = [archive.new_item(), archive.new_item(), archive.new_item()];
        archive.declare(&one, pt, &target);
        archive.declare(&one, es, &target);
        remove(&archive, &one, &es, &other);
        assert_eq!(declared(&archive, &target), translation_of(&one), "{how}");
        assert_eq!(archive.findings(), Vec::<String>::new(), "{how}");
        remove(&archive, &one, &pt, &other);
        assert!(declared(&archive, &target).is_empty(), "{how}");
        assert_eq!(archive.findings(), Vec::<String>::new(), "{how}");
    }
    let archive = TestArchive::new();
    let [one, target] = [archive.new_item(), archive.new_item()];
    archive.declare(&one, pt, &target);
    archive.declare(&one, es, &target);
    let taken_back = archive.edit(&Process, |it| {
        it.unrelate(&target.names, &RelationKind::TranslationOf)
    });
    taken_back.expect("taken back");
    assert!(declared(&archive, &one).is_empty() && declared(&archive, &target).is_empty());
}

#[test]
fn editions_do_not_go_in_a_circle() {
    let archive = TestArchive::new();
    let [one, two, three] = [archive.new_item(), archive.new_item(), archive.new_item()];
    archive.declare(&one, RelationKind::NextEdition, &two);
    archive.declare(&two, RelationKind::NextEdition, &three);
    let cases = [
        (&three, RelationKind::NextEdition, &one),
        (&one, RelationKind::EditionOf, &three),
        (&one, RelationKind::NextEdition, &one),
        (&one, RelationKind::Metadata, &one),
    ];
    for (source, kind, target) in cases {
        let refused = archive.edit(&Process, |it| {
            it.relate(&source.names, &kind, &target.names)
        });
        assert!(
            matches!(refused, Err(ArchiveError::Cycle { .. })),
            "{kind:?}: {refused:?}"
        );
    }
    // Metadata may point back.
    archive.declare(&three, RelationKind::Metadata, &one);
}

#[test]
fn others_declare_nothing() {
    let archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    let kind = RelationKind::NextEdition;
    let refused = archive.edit(&OTHER_USER, |it| it.relate(&one.names, &kind, &other.names));
    assert!(
        matches!(refused, Err(ArchiveError::NotAllowed(_))),
        "{refused:?}"
    );
    archive.declare(&one, kind, &other);
    for (item, kind) in [(&one, kind), (&other, RelationKind::EditionOf)] {
        let refused = archive.edit(&OTHER_USER, |it| it.unrelate(&item.names, &kind));
        assert!(
            matches!(refused, Err(ArchiveError::NotAllowed(_))),
            "{refused:?}"
        );
    }
    assert_eq!(declared(&archive, &one), [line("ibi.nextedition", &other)]);
}

#[test]
fn between_two_copies_nothing_is_declared() {
    let archive = TestArchive::new();
    let copies = [
        "a.example/b/2001/01.01.00.00",
        "a.example/b/2001/01.02.00.00",
    ]
    .map(|it| archive.copy(it));
    let [one, other] = &copies;
    let kind = RelationKind::NextEdition;
    let refused = archive.edit(&Process, |it| it.relate(&one.names, &kind, &other.names));
    assert!(
        matches!(refused, Err(ArchiveError::NotOriginal { .. })),
        "{refused:?}"
    );
    // An original can be the target of a relation of a copy, and declares the inverse.
    let original = archive.new_item();
    archive.declare(one, RelationKind::Translation(language("pt")), &original);
    assert_eq!(
        declared(&archive, &original),
        [line("ibi.translationof", one)]
    );
    assert!(declared(&archive, one).is_empty());
    assert_eq!(archive.sidecar(&original).language(), Some(&language("pt")));
}

#[test]
fn the_language_of_a_translation_is_needed_and_passed_on() {
    let archive = TestArchive::new();
    let (source, translation) = (archive.new_item(), archive.new_item());
    let kind = RelationKind::TranslationOf;
    let refused = archive.edit(&Process, |it| {
        it.relate(&translation.names, &kind, &source.names)
    });
    assert!(
        matches!(refused, Err(ArchiveError::NoRelation { .. })),
        "{refused:?}"
    );
    let fact = Fact::Language(Some(language("pt")));
    archive
        .edit(&Process, |it| it.set_fact(&translation.names, fact))
        .expect("a language");
    archive.declare(&translation, kind, &source);
    assert_eq!(
        declared(&archive, &source),
        [line("ibi.translation(pt)", &translation)]
    );
}

#[test]
fn names_are_found_at_the_end_of_a_path() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let rep = item.names.rep().expect("a rep").to_string();
    let cases = [
        (format!("../../{rep}/"), Some(rep.clone())),
        (
            "/mnt/8JMKD3MGP8W/35MMLL8".to_owned(),
            Some("8JMKD3MGP8W/35MMLL8".to_owned()),
        ),
        (
            "8JMKD3MGP8W/./35MMLL8//".to_owned(),
            Some("8JMKD3MGP8W/35MMLL8".to_owned()),
        ),
        ("x".to_owned(), None),
        (String::new(), None),
    ];
    for (path, expected) in cases {
        let found = archive
            .names_at_end_of(&path)
            .map(|names| names.preferred());
        let expected = expected.map(|text| names(&text).preferred());
        assert_eq!(found, expected, "{path}");
    }
    assert_eq!(archive.complete(&names(&rep)).expect("read"), item.names);
    assert_eq!(archive.complete(&elsewhere()).expect("read"), elsewhere());
}

/// An editor removes the pair from the sidecar of one end.
#[test]
fn a_pair_removed_from_a_sidecar_is_removed_at_the_far_end() {
    let pt = language("pt");
    for kind in [
        RelationKind::NextEdition,
        RelationKind::Metadata,
        RelationKind::Translation(pt),
    ] {
        for is_far in [false, true] {
            let archive = TestArchive::new();
            let (one, other) = (archive.new_item(), archive.new_item());
            archive.declare(&one, kind, &other);
            let item = if is_far { &other } else { &one };
            archive.edit_raw(item, |sidecar| {
                for (kind, _) in sidecar.relations() {
                    sidecar.remove_relation(&kind);
                }
            });
            archive
                .edit(&Process, |it| it.accept_sidecar(item.id))
                .expect("accepted");
            assert!(declared(&archive, &one).is_empty(), "{kind:?} {is_far}");
            assert!(declared(&archive, &other).is_empty(), "{kind:?} {is_far}");
        }
    }
}

/// An editor writes the pair into the sidecar of one end.
#[test]
fn a_pair_added_to_a_sidecar_is_added_at_the_far_end() {
    for (kind, there) in [
        (RelationKind::NextEdition, "ibi.editionof"),
        (RelationKind::EditionOf, "ibi.nextedition"),
        (RelationKind::Metadata, "ibi.metadataof"),
        (RelationKind::MetadataOf, "ibi.metadata"),
        (
            RelationKind::Translation(language("pt")),
            "ibi.translationof",
        ),
        (RelationKind::TranslationOf, "ibi.translation(en)"),
    ] {
        let archive = TestArchive::new();
        let (one, other) = (archive.new_item(), archive.new_item());
        archive.edit_raw(&one, |sidecar| {
            sidecar.set_language(&language("en"));
            sidecar.set_relation(&kind, &other.names);
        });
        archive
            .edit(&Process, |it| it.accept_sidecar(one.id))
            .expect("accepted");
        assert_eq!(declared(&archive, &other), [line(there, &one)], "{kind:?}");
        assert_eq!(archive.findings(), Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn only_another_original_of_the_same_relation_is_named_instead() {
    let archive = TestArchive::new();
    let [one, other, target] = [archive.new_item(), archive.new_item(), archive.new_item()];
    let copy = archive.copy("a.example/b/2001/01.01.00.00");
    archive.edit_raw(&copy, |sidecar| {
        sidecar.set_relation(&RelationKind::NextEdition, &target.names);
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(copy.id))
        .expect("accepted");
    archive.declare(&other, RelationKind::Metadata, &target);
    archive.declare(&one, RelationKind::NextEdition, &target);
    let unrelated = archive.edit(&Process, |it| {
        it.unrelate(&one.names, &RelationKind::NextEdition)
    });
    unrelated.expect("taken back");
    assert_eq!(
        declared(&archive, &target),
        [line("ibi.metadataof", &other)]
    );
}

#[test]
fn a_relative_is_refused_before_a_date_is_used() {
    let archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    let pt = language("pt");
    archive.declare(&one, RelationKind::NextEdition, &other);
    archive.declare(&one, RelationKind::Translation(pt), &other);
    let check =
        |actor: &dyn Actor, relative: &Relative| archive.depositor(actor).check_relative(relative);
    let names = || one.names.clone();
    for relative in [
        Relative::Edition(names()),
        Relative::Translation(names(), pt),
    ] {
        let refused = check(&Process, &relative);
        let Err(ArchiveError::HasOne { kind, target, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(kind, relative.kind().pair_name());
        assert_eq!(*target, other.names);
    }
    for relative in [
        Relative::Metadata(names()),
        Relative::Translation(names(), language("fr")),
        Relative::Edition(other.names.clone()),
    ] {
        check(&Process, &relative).expect("free");
        let refused = check(&OTHER_USER, &relative);
        assert!(
            matches!(refused, Err(ArchiveError::NotAllowed(_))),
            "{refused:?}"
        );
    }
    let refused = check(&Process, &Relative::Edition(elsewhere()));
    assert!(
        matches!(refused, Err(ArchiveError::Unknown { .. })),
        "{refused:?}"
    );
}

#[test]
fn an_alias_at_the_end_of_a_path_names_its_item() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let alias = ibi::AliasPair::parse("LK47B6/x1").expect("an alias");
    archive
        .edit(&Process, |it| it.set_fact(&item.names, Fact::Alias(alias)))
        .expect("an alias");
    for (path, expected) in [
        ("/mnt/LK47B6/x1", Some(&item.names)),
        ("LK47B6/x1/", Some(&item.names)),
        ("LK47B6/x2", None),
        ("x1", None),
    ] {
        assert_eq!(archive.names_at_end_of(path).as_ref(), expected, "{path}");
    }
}

/// Lets all users write the sidecar of an item.
fn open_to_all(archive: &TestArchive, item: &Item) {
    set_mode(archive, item, 0o666);
}

fn set_mode(archive: &TestArchive, item: &Item, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(archive.file(item, ".ibi"), mode).expect("a mode");
}

#[test]
fn an_original_keeps_its_edition_against_a_copy() {
    let archive = TestArchive::new();
    let (original, next) = (archive.new_item(), archive.new_item());
    let copy = archive.copy("a.example/b/2001/01.01.00.00");
    let follow = |archive: &TestArchive| {
        let kind = RelationKind::EditionOf;
        archive.edit(&Process, |it| {
            it.relate(&copy.names, &kind, &original.names)
        })
    };
    follow(&archive).expect("free");
    assert_eq!(
        declared(&archive, &original),
        [line("ibi.nextedition", &copy)]
    );
    follow(&archive).expect("it is that one");
    archive.declare(&original, RelationKind::NextEdition, &next);
    let refused = follow(&archive);
    assert!(
        matches!(refused, Err(ArchiveError::HasOne { .. })),
        "{refused:?}"
    );
    assert_eq!(
        declared(&archive, &original),
        [line("ibi.nextedition", &next)]
    );
}

#[test]
fn a_translation_is_known_once_its_language_is() {
    for is_in_the_sidecar in [false, true] {
        let archive = TestArchive::new();
        let (source, translation) = (archive.new_item(), archive.new_item());
        archive.edit_raw(&translation, |sidecar| {
            sidecar.set_relation(&RelationKind::TranslationOf, &source.names);
        });
        let accept = || {
            archive
                .edit(&Process, |it| it.accept_sidecar(translation.id))
                .expect("accepted")
        };
        accept();
        assert!(
            declared(&archive, &source).is_empty(),
            "a translation into what?"
        );
        if is_in_the_sidecar {
            archive.edit_raw(&translation, |sidecar| {
                sidecar.set_language(&language("pt"));
            });
            accept();
        } else {
            let fact = Fact::Language(Some(language("pt")));
            let set = archive.edit(&Process, |it| it.set_fact(&translation.names, fact));
            set.expect("a language");
        }
        let expected = [line("ibi.translation(pt)", &translation)];
        assert_eq!(declared(&archive, &source), expected);
    }
}

/// The previous target may have another source by now.
#[test]
fn a_previous_target_keeps_what_it_says_of_another_source() {
    let archive = TestArchive::new();
    let [one, two, target, next] = [(); 4].map(|()| archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &target);
    archive.declare(&two, RelationKind::NextEdition, &target);
    archive.declare(&one, RelationKind::NextEdition, &next);
    assert_eq!(declared(&archive, &target), [line("ibi.editionof", &two)]);
    assert_eq!(declared(&archive, &next), [line("ibi.editionof", &one)]);
}

#[test]
fn a_user_changes_the_ends_that_the_user_may_write() {
    let archive = TestArchive::new();
    let [one, target, next] = [(); 3].map(|()| archive.new_item());
    let kind = RelationKind::NextEdition;
    archive.declare(&one, kind, &target);
    open_to_all(&archive, &one);
    let related = archive.edit(&OTHER_USER, |it| it.relate(&one.names, &kind, &next.names));
    related.expect("one end is enough");
    assert_eq!(declared(&archive, &one), [line("ibi.nextedition", &next)]);
    assert_eq!(declared(&archive, &target), [line("ibi.editionof", &one)]);
    assert!(declared(&archive, &next).is_empty());
}

/// A declaration at the other end that would remain valid makes the removal fail.
#[test]
fn a_relation_is_removed_where_the_other_end_does_not_keep_it() {
    let next_edition = RelationKind::NextEdition;
    // The sidecars that each may write: 0o1644 is that of a sidecar whose author has no rights here.
    for (one_mode, other_mode, kind, is_refused) in [
        (0o666, 0o666, next_edition, false),
        (0o666, 0o644, next_edition, true),
        (0o666, 0o1644, next_edition, false),
        (0o644, 0o666, next_edition, true),
        (0o666, 0o644, RelationKind::EditionOf, true),
        (0o644, 0o666, RelationKind::EditionOf, false),
    ] {
        let archive = TestArchive::new();
        let (one, other) = (archive.new_item(), archive.new_item());
        archive.declare(&one, next_edition, &other);
        set_mode(&archive, &one, one_mode);
        set_mode(&archive, &other, other_mode);
        let at = if kind == next_edition { &one } else { &other };
        let removed = archive.edit(&OTHER_USER, |it| it.unrelate(&at.names, &kind));
        let case = format!("{one_mode:o} {other_mode:o} {kind:?}: {removed:?}");
        assert_eq!(
            matches!(removed, Err(ArchiveError::NotAllowed(_))),
            is_refused,
            "{case}"
        );
        let is_changed = |item: &Item| declared(&archive, item).is_empty();
        let may = |mode: u32| !is_refused && mode == 0o666;
        assert_eq!(is_changed(&one), may(one_mode), "{case}");
        assert_eq!(is_changed(&other), may(other_mode), "{case}");
    }
}

/// A user writes the sidecar of one end, and may not write the other one.
#[test]
fn a_far_end_that_the_user_may_not_write_stays_as_it_is() {
    let archive = TestArchive::new();
    let [one, target, next] = [(); 3].map(|()| archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &target);
    archive.edit_raw(&one, |sidecar| {
        sidecar.set_relation(&RelationKind::NextEdition, &next.names);
    });
    let accepted = archive.edit(&OTHER_USER, |it| it.accept_sidecar(one.id));
    accepted.expect("accepted");
    assert_eq!(declared(&archive, &target), [line("ibi.editionof", &one)]);
    assert!(declared(&archive, &next).is_empty());
}

/// An item that follows another one by its own sidecar does not displace the one that follows already.
#[test]
fn an_inverse_pair_in_a_sidecar_replaces_nothing() {
    let archive = TestArchive::new();
    let [one, next, claimant] = [(); 3].map(|()| archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &next);
    archive.edit_raw(&claimant, |sidecar| {
        sidecar.set_relation(&RelationKind::EditionOf, &one.names);
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(claimant.id))
        .expect("accepted");
    assert_eq!(declared(&archive, &one), [line("ibi.nextedition", &next)]);
    assert_eq!(declared(&archive, &claimant), [line("ibi.editionof", &one)]);
}

#[test]
fn links_at_the_end_of_a_text_name_items() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let alias = ibi::AliasPair::parse("LK47B6/x1").expect("an alias");
    archive
        .edit(&Process, |it| it.set_fact(&item.names, Fact::Alias(alias)))
        .expect("an alias");
    let rep = item.names.rep().expect("a rep").to_string();
    let ibip = item.names.ibip().expect("an IBIp").to_string();
    for (link, expected) in [
        (format!("http://a.example/{rep}"), Some(names(&rep))),
        (format!("http://urlib.net/{ibip}"), Some(names(&ibip))),
        (
            "http://urlib.net/LK47B6/x1".to_owned(),
            Some(item.names.clone()),
        ),
        ("http://urlib.net/LK47B6/x2".to_owned(), None),
        (format!("http://urlib.net/{rep}!"), None),
        (format!("http://urlib.net/{rep}+(pt)"), None),
        ("http://urlib.net/".to_owned(), None),
        ("http://urlib.net/a.example".to_owned(), None),
    ] {
        assert_eq!(archive.names_at_end_of(&link), expected, "{link}");
    }
}

#[test]
fn what_is_declared_already_is_not_written_again() {
    let archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &other);
    archive.take_rewritten();
    archive.declare(&one, RelationKind::NextEdition, &other);
    assert_eq!(archive.take_rewritten(), []);
}

/// Relations are declared and removed in any order, and editors write what they add: no end lacks its
/// pair.
#[test]
fn no_order_of_declarations_leaves_one_end_alone() {
    let languages = ["pt", "es", "fr"].map(language);
    let kinds = [
        RelationKind::NextEdition,
        RelationKind::EditionOf,
        RelationKind::Metadata,
        RelationKind::MetadataOf,
        RelationKind::TranslationOf,
        RelationKind::Translation(languages[0]),
        RelationKind::Translation(languages[1]),
        RelationKind::Translation(languages[2]),
    ];
    for seed in 1..=20_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut below = |limit: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % limit
        };
        let archive = TestArchive::new();
        let items: [Item; 4] = std::array::from_fn(|_| archive.new_item());
        let mut done = Vec::new();
        for _ in 0..60 {
            let (near, far, kind) = (below(4), below(4), kinds[below(kinds.len())]);
            let spoken = languages[below(3)];
            let act = below(5);
            let (item, other) = (&items[near], &items[far].names);
            let result = match act {
                0 | 1 => archive.edit(&Process, |it| it.relate(&item.names, &kind, other)),
                2 => archive.edit(&Process, |it| it.unrelate(&item.names, &kind)),
                3 => archive.edit(&Process, |it| {
                    it.set_fact(&item.names, Fact::Language(Some(spoken)))
                }),
                _ => {
                    let before = archive.sidecar(item).to_bytes();
                    archive.edit_raw(item, |sidecar| sidecar.set_relation(&kind, other));
                    match archive
                        .edit(&Process, |it| it.accept_sidecar(item.id))
                        .expect("read")
                    {
                        Acceptance::Rejected(reason) => {
                            archive.write_raw(item, &before);
                            Err(reason)
                        }
                        Acceptance::Accepted(_) | Acceptance::Unchanged => Ok(()),
                    }
                }
            };
            let came = if result.is_ok() { "done" } else { "refused" };
            let kind = kind.pair_name();
            done.push(format!("{act}: {near} {kind} {far} {spoken}: {came}"));
            let alone = archive.store.one_sided().expect("read");
            let number = |names: &Names| items.iter().position(|item| item.names == *names);
            let alone = alone.iter().map(|end| {
                let kind = end.kind.pair_name();
                (number(&end.near), kind, number(&end.far))
            });
            let alone: Vec<_> = alone.collect();
            assert!(alone.is_empty(), "seed {seed}: {alone:?} after {done:#?}");
        }
    }
}
