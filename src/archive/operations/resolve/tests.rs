use super::super::Process;
use super::super::testing::{TestArchive, language, names};
use super::*;

fn modifier(text: &str) -> Modifier {
    Modifier::parse(text).expect(text)
}

/// An item with three editions, and translations and metadata of the first and the last.
struct Shelf {
    archive: TestArchive,
    first: Item,
    last: Item,
    portuguese: Item,
    french: Item,
    metadata: Item,
}

fn shelf() -> Shelf {
    let archive = TestArchive::new();
    let [first, second, last] = [archive.new_item(), archive.new_item(), archive.new_item()];
    let [portuguese, french, metadata] =
        [archive.new_item(), archive.new_item(), archive.new_item()];
    archive.declare(&first, RelationKind::NextEdition, &second);
    archive.declare(&second, RelationKind::NextEdition, &last);
    archive.declare(
        &last,
        RelationKind::Translation(language("pt-BR")),
        &portuguese,
    );
    archive.declare(&last, RelationKind::Translation(language("fr")), &french);
    archive.declare(&last, RelationKind::Metadata, &metadata);
    Shelf {
        archive,
        first,
        last,
        portuguese,
        french,
        metadata,
    }
}

#[test]
fn a_modifier_is_followed_step_by_step() {
    let shelf = shelf();
    let cases = [
        (&shelf.first, "!", Some(&shelf.last)),
        (&shelf.last, "!", Some(&shelf.last)),
        (&shelf.first, "!+(pt-BR)", Some(&shelf.portuguese)),
        (&shelf.first, "!+(pt)", Some(&shelf.portuguese)),
        (&shelf.last, "+(fr)", Some(&shelf.french)),
        (&shelf.last, "+(de)", None),
        (&shelf.first, "+(fr)", None),
        (&shelf.portuguese, "+(fr)", Some(&shelf.french)),
        (&shelf.first, "!:", Some(&shelf.metadata)),
        (&shelf.first, ":", None),
        (&shelf.last, ":", Some(&shelf.metadata)),
        // No language is requested, so the preferences apply; the second one matches.
        (&shelf.last, "+", Some(&shelf.french)),
    ];
    for (item, text, expected) in cases {
        let preferences = [language("de"), language("fr")];
        let found = shelf
            .archive
            .resolve(&item.names, &modifier(text), &preferences);
        let expected = expected.map(|item| Related::Item(item.names.clone()));
        assert_eq!(found.expect(text), expected, "{text} of {}", item.names);
    }
}

#[test]
fn an_item_in_a_known_language_is_better_than_any_translation() {
    let shelf = shelf();
    let translation = |item: &Item| {
        let found = shelf.archive.resolve(&item.names, &modifier("+"), &[]);
        match found.expect("read") {
            Some(Related::Item(found)) => found,
            other => panic!("no translation: {other:?}"),
        }
    };
    let found = translation(&shelf.last);
    assert!([&shelf.portuguese.names, &shelf.french.names].contains(&&found));
    assert_eq!(translation(&shelf.french), shelf.french.names);
    shelf
        .archive
        .edit_raw(&shelf.last, |sidecar| sidecar.set_language(&language("en")));
    let accepted = shelf
        .archive
        .edit(&Process, |it| it.accept_sidecar(shelf.last.id));
    accepted.expect("accepted");
    assert_eq!(translation(&shelf.last), shelf.last.names);
}

#[test]
fn the_metadata_of_an_item_may_be_a_text_in_it() {
    let shelf = shelf();
    let resolve = |text: &str| {
        let found = shelf
            .archive
            .resolve(&shelf.first.names, &modifier(text), &[]);
        found.expect(text)
    };
    assert_eq!(resolve(":"), None);
    std::fs::write(
        shelf.archive.file(&shelf.first, ".ibi.metadata"),
        "title A map\n",
    )
    .expect("a text");
    assert_eq!(resolve(":"), Some(Related::Text(shelf.first.clone())));
    let core = |item: &Item| Related::Description {
        format: crate::formats::description::DescriptionFormat::OaiDc,
        item: item.clone(),
        from: None,
    };
    assert_eq!(resolve(":(oai_dc)"), Some(core(&shelf.first)));
    assert_eq!(
        resolve("!:(oai_dc)"),
        Some(core(&shelf.archive.again(&shelf.last)))
    );
}

#[test]
fn all_relations_of_an_item() {
    let shelf = shelf();
    let item = shelf.archive.again(&shelf.last);
    let relations = shelf.archive.relations(&item).expect("read");
    let found: Vec<(&str, &Names)> = relations
        .iter()
        .map(|(name, names)| (name.as_str(), names))
        .collect();
    let second = shelf
        .archive
        .next_edition(&shelf.first.names)
        .expect("read");
    assert_eq!(
        found,
        [
            ("editionof", &second.expect("an edition")),
            ("lastedition", &shelf.last.names),
            ("metadata", &shelf.metadata.names),
            ("translation(fr)", &shelf.french.names),
            ("translation(pt-BR)", &shelf.portuguese.names),
        ]
    );
    assert!(
        shelf
            .archive
            .is_metadata_here(&shelf.metadata)
            .expect("read")
    );
    assert!(!shelf.archive.is_metadata_here(&item).expect("read"));
}

#[test]
fn a_circle_of_editions_ends() {
    let archive = TestArchive::new();
    let [one, _] = archive.circle_of_editions();
    let found = archive.last_edition(&one.names);
    assert!(
        matches!(found, Err(ArchiveError::Cycle { .. })),
        "{found:?}"
    );
    let relations = archive.relations(&one).expect("read");
    assert!(relations.iter().all(|(name, _)| name != "lastedition"));
}

#[test]
fn what_meets_a_language() {
    let of = |text: &str| (language(text), names("8JMKD3MGP8W/35MMLL8"));
    let translations = [of("pt-PT"), of("pt-BR"), of("fr")];
    for (wanted, expected) in [
        ("pt-BR", Some("pt-BR")),
        ("pt", Some("pt-PT")),
        ("fr", Some("fr")),
        ("de", None),
    ] {
        let found = matching_translation(translations.iter(), &language(wanted));
        let found = found.map(|(language, _)| *language);
        assert_eq!(found, expected.map(language), "{wanted}");
    }
}

#[test]
fn names_are_met_by_either_form() {
    let (rep, ibip) = (
        "sid.inpe.br/mtc-m18/2001/01.01.00.00",
        "8JMKD3MGP8W/35MMLL8",
    );
    let both = Names::new(names(rep).rep().cloned(), names(ibip).ibip().cloned());
    let mut visited = Visited::default();
    assert!(visited.note(&names(ibip)));
    assert!(!visited.note(&both.expect("two forms")));
    // The other form was added in passing.
    assert!(!visited.note(&names(rep)));
}

#[test]
fn metadata_in_a_format_is_taken_from_what_the_modifier_names() {
    let shelf = shelf();
    let archive = &shelf.archive;
    let translated = archive.new_item();
    archive.declare(
        &shelf.metadata,
        RelationKind::Translation(language("pt")),
        &translated,
    );
    let last = archive.again(&shelf.last);
    let resolve = |item: &Item, text: &str| {
        let found = archive.resolve(&item.names, &modifier(text), &[]);
        found.expect(text)
    };
    assert_eq!(
        resolve(&last, ":(oai_dc)+(pt)"),
        Some(Related::Description {
            format: crate::formats::description::DescriptionFormat::OaiDc,
            item: last.clone(),
            from: Some(translated.names.clone()),
        })
    );
    assert_eq!(
        resolve(&last, ":+(pt)"),
        Some(Related::Item(translated.names))
    );
    // Without a metadata item, none of it has a translation.
    std::fs::write(archive.file(&shelf.first, ".ibi.metadata"), "title x\n").expect("a text");
    for text in [":+(pt)", ":(oai_dc)+(pt)", ":(marc21)"] {
        assert_eq!(resolve(&shelf.first, text), None, "{text}");
    }
    let unknown = archive.resolve(
        &names("a.example/b/2001/01.01.00.00"),
        &modifier(":(oai_dc)"),
        &[],
    );
    assert_eq!(unknown.expect("read"), None, "it is not held here");
}

/// Declares a relation in the sidecar of a copy.
fn copy_declares(archive: &TestArchive, name: &str, kind: RelationKind, target: &Item) -> Item {
    let copy = archive.copy(name);
    archive.edit_raw(&copy, |sidecar| {
        sidecar.set_language(&language("pt"));
        sidecar.set_relation(&kind, &target.names);
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(copy.id))
        .expect("accepted");
    archive.again(&copy)
}

#[test]
fn of_several_declarations_one_is_followed_and_the_others_are_claims() {
    for (kind, direct) in [
        (RelationKind::EditionOf, RelationKind::NextEdition),
        (RelationKind::MetadataOf, RelationKind::Metadata),
    ] {
        let archive = TestArchive::new();
        let item = archive.copy("a.example/b/2001/01.01.00.00");
        let first = copy_declares(&archive, "a.example/b/2001/01.02.00.00", kind, &item);
        let second = copy_declares(&archive, "a.example/b/2001/01.03.00.00", kind, &item);
        let followed = archive.direct_target(&item, &direct).expect("read");
        assert_eq!(followed.as_ref(), Some(&first.names), "{kind:?}");
        let claims = archive.claims(&item).expect("read").listed;
        assert_eq!(claims, [(kind, second.names.clone())]);
        // The item's own sidecar has precedence.
        archive.edit_raw(&item, |sidecar| {
            sidecar.set_relation(&direct, &second.names);
        });
        archive
            .edit(&Process, |it| it.accept_sidecar(item.id))
            .expect("accepted");
        let followed = archive.direct_target(&item, &direct).expect("read");
        assert_eq!(followed, Some(second.names));
        let claims = archive.claims(&item).expect("read").listed;
        assert_eq!(claims, [(kind, first.names)]);
        let removed = Item {
            state: State::Deleted,
            ..item
        };
        assert_eq!(archive.claims(&removed).expect("read").listed, []);
        assert_eq!(archive.relations(&removed).expect("read"), []);
    }
}

#[test]
fn translations_of_one_original_are_translations_of_each_other() {
    let archive = TestArchive::new();
    let source = archive.copy("a.example/b/2001/01.01.00.00");
    archive.edit_raw(&source, |sidecar| sidecar.set_language(&language("en")));
    archive
        .edit(&Process, |it| it.accept_sidecar(source.id))
        .expect("accepted");
    let kind = RelationKind::TranslationOf;
    let first = copy_declares(&archive, "a.example/b/2001/01.02.00.00", kind, &source);
    let second = copy_declares(&archive, "a.example/b/2001/01.03.00.00", kind, &source);
    for item in [&source, &first, &second] {
        let mut found = archive.translations(&item.names).expect("read");
        found.sort();
        let pt = language("pt");
        let mut expected = vec![
            (language("en"), source.names.clone()),
            (pt, first.names.clone()),
            (pt, second.names.clone()),
        ];
        expected.sort();
        assert_eq!(found, expected, "{}", item.names);
    }
    assert_eq!(archive.claims(&source).expect("read").listed, []);
    let en = RelationKind::Translation(language("en"));
    let back = archive.direct_target(&first, &en).expect("read");
    assert_eq!(back.as_ref(), Some(&source.names));
    // An item is not a translation of itself.
    let own = archive.direct_target(&source, &en).expect("read");
    assert_eq!(own, None);
    assert_eq!(archive.direct_target(&first, &kind).expect("read"), None);
}

#[test]
fn an_item_that_describes_itself_is_not_metadata_of_another() {
    let archive = TestArchive::new();
    let item = archive.copy("a.example/b/2001/01.01.00.00");
    let far = names("a.example/b/2001/01.09.00.00");
    for (target, expected) in [(item.names.clone(), false), (far, false)] {
        archive.edit_raw(&item, |sidecar| {
            sidecar.set_relation(&RelationKind::MetadataOf, &target);
        });
        archive
            .edit(&Process, |it| it.accept_sidecar(item.id))
            .expect("accepted");
        let found = archive.is_metadata_here(&archive.again(&item));
        assert_eq!(found.expect("read"), expected, "{target}");
    }
    let other = archive.copy("a.example/b/2001/01.09.00.00");
    let item = archive.again(&item);
    assert!(archive.is_metadata_here(&item).expect("read"));
    archive.remove_whole(&other);
    assert!(
        archive.is_metadata_here(&item).expect("read"),
        "it was held"
    );
}

#[test]
fn a_text_that_is_too_large_is_there() {
    let shelf = shelf();
    let file = std::fs::File::create(shelf.archive.file(&shelf.first, ".ibi.metadata"));
    file.expect("a file")
        .set_len(1 << 30)
        .expect("a sparse file");
    let found = shelf
        .archive
        .resolve(&shelf.first.names, &modifier(":"), &[]);
    assert_eq!(
        found.expect("read"),
        Some(Related::Text(shelf.first.clone()))
    );
}

#[test]
fn metadata_describes_one_item() {
    let shelf = shelf();
    let described = shelf.archive.metadata_of(&shelf.metadata).expect("read");
    assert_eq!(described, Some(shelf.last.names));
    let described = shelf.archive.metadata_of(&shelf.first).expect("read");
    assert_eq!(described, None);
}

/// A text that is too large for a record can still be read and removed by its name beside the item.
#[test]
fn a_metadata_text_that_is_too_large_is_there() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let path = archive.file(&item, ".ibi.metadata");
    let found = || archive.resolve(&item.names, &modifier(":"), &[]);
    assert_eq!(found().expect("read"), None);
    std::fs::write(&path, vec![b' '; 2 << 20]).expect("written");
    assert_eq!(found().expect("read"), Some(Related::Text(item.clone())));
    std::fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
    let refused = found();
    assert!(matches!(refused, Err(ArchiveError::Tree(_))), "{refused:?}");
}

#[test]
fn a_removed_item_is_passed_over() {
    let shelf = shelf();
    let archive = &shelf.archive;
    let second = archive.next_edition(&shelf.first.names);
    let second = second.expect("read").expect("an edition");
    let second = archive.held(&second).expect("read").expect("an item");
    let last = |item: &Item| archive.last_edition(&item.names).expect("an edition");
    archive.remove_whole(&second);
    assert_eq!(last(&shelf.first), shelf.last.names);
    let before = archive.previous_edition(&shelf.last).expect("read");
    assert_eq!(before.as_ref(), Some(&shelf.first.names));
    for item in [
        &shelf.last,
        &shelf.portuguese,
        &shelf.french,
        &shelf.metadata,
    ] {
        archive.remove_whole(item);
    }
    assert_eq!(last(&shelf.first), shelf.first.names);
    let removed = archive.removed_relations(&shelf.first).expect("read");
    let [relation] = &removed[..] else {
        panic!("{removed:?}");
    };
    assert_eq!(
        (&relation.name[..], &relation.target, relation.is_withdrawn),
        ("nextedition", &second.names, false)
    );
    // The relation may be declared again, or taken back.
    let relative = crate::archive::Relative::Edition(shelf.first.names.clone());
    let checked = archive.depositor(&Process).check_relative(&relative);
    checked.expect("room for an edition");
    let next = archive.new_item();
    archive.declare(&next, RelationKind::EditionOf, &shelf.first);
    assert_eq!(last(&shelf.first), next.names);
    let removed = archive.removed_relations(&shelf.first).expect("read");
    assert!(removed.is_empty());
}

/// The original of a copy that was removed here is elsewhere.
#[test]
fn a_removed_copy_is_followed_elsewhere() {
    let archive = TestArchive::new();
    let (one, copy) = (
        archive.new_item(),
        archive.copy("b.example/c/2001/01.01.00.00"),
    );
    archive.declare(&one, RelationKind::NextEdition, &copy);
    archive.remove_whole(&copy);
    let last = archive.last_edition(&one.names).expect("an edition");
    assert_eq!(last, copy.names);
    assert!(archive.removed_relations(&one).expect("read").is_empty());
}
