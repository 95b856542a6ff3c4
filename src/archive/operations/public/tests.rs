use super::super::testing::{TestArchive, language, names};
use super::*;
use ibi::relation::RelationKind;

fn own(act: &mut dyn FnMut()) {
    act();
}

/// Takes the directory of an item away, as for a reader who may not see it.
fn hide(archive: &TestArchive, item: &Item) {
    let path = archive.file(item, "");
    let path = path.to_str().expect("text").trim_end_matches('/');
    std::fs::rename(path, archive.path().join("hidden")).expect("hidden");
}

#[test]
fn an_item_is_visible_where_its_directory_can_be_read() {
    let archive = TestArchive::new();
    let (one, hidden) = (archive.new_item(), archive.new_item());
    let is_public = |item: &Item| {
        let found = archive.read_as(&own).is_public(item);
        found.expect("read")
    };
    assert!(is_public(&one) && is_public(&hidden));
    hide(&archive, &hidden);
    assert!(is_public(&one) && !is_public(&hidden));
    let is_shown = |names: &Names| {
        let found = archive.read_as(&own).is_shown(names);
        found.expect("read")
    };
    assert!(is_shown(&one.names) && !is_shown(&hidden.names));
    assert!(is_shown(&names("a.example/b/2001/01.01.00.00")), "unknown");
    let denied = |_: &mut dyn FnMut()| ();
    let dependencies = Dependencies::default();
    assert!(
        !archive
            .read_as(&denied)
            .recording(&dependencies)
            .is_public(&one)
            .expect("read")
    );
    assert!(
        dependencies.validator(i64::MAX).is_none(),
        "cannot be checked"
    );
    let service = archive.held(&archive.facts().service).expect("read");
    let service = service.expect("the service");
    let found = archive.read_as(&denied).is_public(&service);
    assert!(found.expect("read"), "the service is always visible");
}

#[test]
fn a_tombstone_is_visible_where_it_can_be_read() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    archive.remove_whole(&item);
    let item = archive.again(&item);
    let dependencies = Dependencies::default();
    assert!(
        archive
            .read_as(&own)
            .recording(&dependencies)
            .is_public(&item)
            .expect("read")
    );
    assert!(dependencies.validator(i64::MAX).is_none());
    let denied = |_: &mut dyn FnMut()| ();
    assert!(archive.read_as(&denied).is_public(&item).is_err());
}

#[test]
fn editions_end_before_one_that_is_not_visible() {
    let archive = TestArchive::new();
    let [first, second, third] = [archive.new_item(), archive.new_item(), archive.new_item()];
    archive.declare(&first, RelationKind::NextEdition, &second);
    archive.declare(&second, RelationKind::NextEdition, &third);
    let last = |item: &Item| {
        let found = archive.read_as(&own).last_edition_shown(&item.names);
        found.expect("read")
    };
    assert_eq!(last(&first), third.names);
    assert_eq!(last(&third), third.names);
    hide(&archive, &second);
    assert_eq!(last(&first), first.names);
    let shown = archive.read_as(&own).relations_shown(&first).expect("read");
    assert_eq!(shown, [("lastedition".to_owned(), first.names.clone())]);
    let shown = archive.read_as(&own).relations_shown(&third).expect("read");
    assert_eq!(shown, [("lastedition".to_owned(), third.names)]);
}

#[test]
fn editions_in_a_circle_have_no_last_one() {
    let archive = TestArchive::new();
    let [one, _] = archive.circle_of_editions();
    let found = archive.read_as(&own).last_edition_shown(&one.names);
    assert!(
        matches!(found, Err(ArchiveError::Cycle { .. })),
        "{found:?}"
    );
}

/// An item with an edition, a translation and metadata of the edition. The edition has its own
/// metadata text.
struct Shelf {
    archive: TestArchive,
    first: Item,
    last: Item,
    translation: Item,
    metadata: Item,
}

fn shelf() -> Shelf {
    let archive = TestArchive::new();
    let [first, last] = [archive.new_item(), archive.new_item()];
    let [translation, metadata] = [archive.new_item(), archive.new_item()];
    archive.declare(&first, RelationKind::NextEdition, &last);
    archive.declare(
        &last,
        RelationKind::Translation(language("pt")),
        &translation,
    );
    archive.declare(&last, RelationKind::Metadata, &metadata);
    std::fs::write(archive.file(&first, ".ibi.metadata"), "title A map\n").expect("a text");
    let translation = archive.again(&translation);
    let last = archive.again(&last);
    Shelf {
        archive,
        first,
        last,
        translation,
        metadata,
    }
}

impl Shelf {
    fn resolve(&self, item: &Item, text: &str) -> Option<Related> {
        let modifier = Modifier::parse(text).expect(text);
        let found =
            self.archive
                .read_as(&own)
                .resolve_shown(&item.names, &modifier, &[language("pt")]);
        found.expect(text)
    }
}

#[test]
fn a_modifier_is_followed_through_visible_items() {
    let shelf = shelf();
    let to = |item: &Item| Some(Related::Item(item.names.clone()));
    let core = |item: &Item, from: Option<&Item>| {
        Some(Related::Description {
            format: crate::formats::description::DescriptionFormat::OaiDc,
            item: item.clone(),
            from: from.map(|item| item.names.clone()),
        })
    };
    let cases = [
        (&shelf.first, "!", to(&shelf.last)),
        (&shelf.first, "!+(pt)", to(&shelf.translation)),
        (&shelf.first, "!+", to(&shelf.translation)),
        (&shelf.first, "+(pt)", None),
        (&shelf.first, "!:", to(&shelf.metadata)),
        (&shelf.first, ":", Some(Related::Text(shelf.first.clone()))),
        (&shelf.first, ":+(pt)", None),
        (&shelf.translation, ":", None),
        (&shelf.first, ":(oai_dc)", core(&shelf.first, None)),
        (&shelf.first, "!:(oai_dc)", core(&shelf.last, None)),
        (&shelf.last, "+(fr)", None),
    ];
    for (item, text, expected) in cases {
        assert_eq!(
            shelf.resolve(item, text),
            expected,
            "{text} of {}",
            item.names
        );
        // With all items visible, the reader finds what the Archive finds.
        let modifier = Modifier::parse(text).expect(text);
        let found = shelf
            .archive
            .resolve(&item.names, &modifier, &[language("pt")]);
        assert_eq!(found.expect(text), expected, "{text}");
    }
}

#[test]
fn a_modifier_does_not_lead_through_a_hidden_item() {
    let shelf = shelf();
    hide(&shelf.archive, &shelf.last);
    let first = &shelf.first;
    for (item, text, expected) in [
        // The last edition that is visible is the first.
        (first, "!", Some(Related::Item(first.names.clone()))),
        (first, "!+(pt)", None),
        (first, "!:", Some(Related::Text(first.clone()))),
        (
            first,
            "!:(oai_dc)",
            Some(Related::Description {
                format: crate::formats::description::DescriptionFormat::OaiDc,
                item: first.clone(),
                from: None,
            }),
        ),
        (&shelf.last, ":(oai_dc)", None),
        (
            &shelf.last,
            ":",
            Some(Related::Item(shelf.metadata.names.clone())),
        ),
    ] {
        assert_eq!(
            shelf.resolve(item, text),
            expected,
            "{text} of {}",
            item.names
        );
    }
}

#[test]
fn a_hidden_item_is_not_a_result() {
    let shelf = shelf();
    hide(&shelf.archive, &shelf.translation);
    assert_eq!(shelf.resolve(&shelf.last, "+(pt)"), None);
    let item = &shelf.last;
    let shown = shelf.archive.read_as(&own).relations_shown(item);
    let shown: Vec<String> = shown.expect("read").into_iter().map(|it| it.0).collect();
    assert_eq!(shown, ["editionof", "lastedition", "metadata"]);
}
