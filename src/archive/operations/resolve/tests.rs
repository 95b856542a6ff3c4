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
    let accepted = shelf.archive.accept_sidecar(&Process, shelf.last.id);
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
    let core = |item: &Item| Related::DublinCore {
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
    let one = archive.copy("a.example/b/2001/01.01.00.00");
    let two = archive.copy("a.example/b/2001/01.02.00.00");
    for (item, other) in [(&one, &two), (&two, &one)] {
        archive.edit_raw(item, |sidecar| {
            sidecar.set_relation(&RelationKind::NextEdition, &other.names);
        });
        archive.accept_sidecar(&Process, item.id).expect("accepted");
    }
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
        let found = meeting(translations.iter(), &language(wanted));
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
    let mut met = Met::default();
    assert!(met.note(&names(ibip)));
    assert!(!met.note(&both.expect("two forms")));
    // The other form was added in passing.
    assert!(!met.note(&names(rep)));
}
