use super::super::testing::{TestArchive, language, names};
use super::*;
use crate::archive::Facts;
use crate::formats::base_url::BaseUrl;
use ibi::relation::RelationKind;

fn own(act: &mut dyn FnMut()) {
    act();
}

/// Credentials that cannot be taken.
fn denied(_: &mut dyn FnMut()) {}

fn values(core: &DublinCore, element: Element) -> Vec<String> {
    core.values(element).map(str::to_owned).collect()
}

#[test]
fn a_record_always_has_names_date_and_type() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let core = archive
        .read_as(&own)
        .described(&item, None)
        .expect("a record");
    let (rep, ibip) = (item.names.rep(), item.names.ibip());
    let (rep, ibip) = (rep.expect("a rep"), ibip.expect("an IBIp"));
    assert_eq!(
        values(&core, Element::Identifier),
        [
            rep.to_string(),
            ibip.to_string(),
            format!("http://store.archive.example/{ibip}")
        ]
    );
    assert_eq!(values(&core, Element::Date), [rep.timestamp().to_rfc3339()]);
    assert_eq!(values(&core, Element::Type), ["Collection"]);
    assert_eq!(values(&core, Element::Language), Vec::<String>::new());
    assert_eq!(values(&core, Element::Relation), Vec::<String>::new());
    let document = archive
        .read_as(&own)
        .document(
            &item,
            None,
            crate::formats::description::DescriptionFormat::OaiDc,
        )
        .expect("a record");
    assert_eq!(document, core.to_oai_dc());
    assert!(archive.read_as(&denied).described(&item, None).is_err());
    assert_eq!(archive.read_as(&own).title(&item).expect("a record"), None);
    assert!(archive.read_as(&denied).title(&item).is_err());
}

#[test]
fn a_text_of_the_item_adds_to_its_record() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let text = "title: A map\ndate: 2001\ntype: Map\n";
    std::fs::write(archive.file(&item, METADATA_TEXT), text).expect("written");
    let core = archive
        .read_as(&own)
        .described(&item, None)
        .expect("a record");
    assert_eq!(values(&core, Element::Title), ["A map"]);
    let title = archive.read_as(&own).title(&item).expect("a record");
    assert_eq!(title.as_deref(), Some("A map"));
    // A statement of the text is not added a second time.
    assert_eq!(values(&core, Element::Date).len(), 1, "{core:?}");
    assert_eq!(values(&core, Element::Type).len(), 1, "{core:?}");
}

#[test]
fn a_record_has_the_relations_to_other_items() {
    let archive = TestArchive::new();
    let [one, next, translation, metadata] = [(); 4].map(|()| archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &next);
    archive.declare(
        &one,
        RelationKind::Translation(language("pt")),
        &translation,
    );
    archive.declare(&one, RelationKind::Metadata, &metadata);
    let relations = |item: &Item| {
        let core = archive
            .read_as(&own)
            .described(item, None)
            .expect("a record");
        values(&core, Element::Relation)
    };
    let url = |item: &Item| archive.facts().persistent_url(&item.names);
    assert_eq!(
        relations(&one),
        [url(&next), url(&translation)],
        "each once, and not the metadata"
    );
    assert_eq!(relations(&next), [url(&one)], "not itself");
    let translated = archive.again(&translation);
    let core = archive
        .read_as(&own)
        .described(&translated, None)
        .expect("read");
    assert_eq!(values(&core, Element::Language), ["pt"]);
}

#[test]
fn of_several_records_the_best_is_read() {
    let bibtex = "@book{a, title = {From BibTeX}}\n";
    let refer = "%0 Book\n%T From refer\n";
    let dublin = {
        let mut core = DublinCore::default();
        core.push(Element::Title, "From Dublin Core");
        core.to_oai_dc()
    };
    let all = [
        ("a.bib", bibtex, "From BibTeX"),
        ("b.refer", refer, "From refer"),
        ("c.xml", dublin.as_str(), "From Dublin Core"),
    ];
    for (kept, expected) in [
        (&[0, 1, 2][..], "From Dublin Core"),
        (&[0, 1], "From BibTeX"),
        (&[1], "From refer"),
        (&[1, 2], "From Dublin Core"),
    ] {
        let archive = TestArchive::new();
        let (item, metadata) = (archive.new_item(), archive.new_item());
        archive.declare(&item, RelationKind::Metadata, &metadata);
        for at in kept {
            let (name, text, _) = all[*at];
            let path = archive.file(&metadata, &format!("doc/{name}"));
            std::fs::write(path, text).expect(name);
        }
        // A record beside doc/ does not count, nor a file that is not a record.
        std::fs::write(archive.file(&metadata, "d.xml"), &dublin).expect("written");
        std::fs::write(archive.file(&metadata, "doc/0.pdf"), "%PDF").expect("written");
        for (about, from) in [(&item, None), (&archive.new_item(), Some(&metadata.names))] {
            let core = archive
                .read_as(&own)
                .described(about, from)
                .expect("a record");
            assert_eq!(values(&core, Element::Title), [expected], "{kept:?}");
        }
    }
}

#[test]
fn metadata_that_is_not_held_here_gives_no_record() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let far = names("a.example/b/2001/01.01.00.00");
    let core = archive
        .read_as(&own)
        .described(&item, Some(&far))
        .expect("read");
    assert_eq!(values(&core, Element::Title), Vec::<String>::new());
    assert_eq!(values(&core, Element::Type), ["Collection"]);
}

#[test]
fn a_list_of_files_has_a_line_for_each() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    std::fs::create_dir(archive.file(&item, "doc/b")).expect("a directory");
    for name in ["doc/a", "doc/b/50%\n\u{7f}", "doc/é", "map", METADATA_TEXT] {
        std::fs::write(archive.file(&item, name), "x").expect(name);
    }
    let list = archive.read_as(&own).file_list(&item).expect("a list");
    let text = String::from_utf8(list.text.clone()).expect("text");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["doc/a", "doc/b/50%25%0A%7F", "doc/é", "map"]);
    assert!(text.ends_with('\n'));
    assert!(list.size() >= text.len());
    assert!(archive.read_as(&denied).file_list(&item).is_err());
}

/// The clock of the fixture is far after the changes of the directories, or before them.
#[test]
fn a_list_lasts_until_a_directory_changes() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    std::fs::write(archive.file(&item, "doc/a"), "x").expect("written");
    archive.clock.set(ibi::Timestamp::from_unix(0, 0));
    let list = archive.read_as(&own).file_list(&item).expect("a list");
    assert!(!list.lasts(), "a directory may still change unseen");
    assert!(!archive.read_as(&own).is_list_still(&item, &list));
    let later = ibi::Timestamp::parse_rfc3339("2200-01-01T00:00:00Z");
    archive.clock.set(later.expect("a date"));
    let list = archive.read_as(&own).file_list(&item).expect("a list");
    assert!(list.lasts());
    assert!(list.size() > list.text.capacity());
    assert!(archive.read_as(&own).is_list_still(&item, &list));
    assert!(!archive.read_as(&denied).is_list_still(&item, &list));
    std::fs::write(archive.file(&item, "doc/b"), "x").expect("written");
    assert!(!archive.read_as(&own).is_list_still(&item, &list));
    let given = FileList::from(b"a\n".to_vec());
    assert!(!given.lasts() && given.size() >= 2);
    assert!(!archive.read_as(&own).is_list_still(&item, &given));
}

#[test]
fn persistent_urls() {
    let both = ibi::Ibi::parse("8JMKD3MGP8W/35MMLL8").expect("an IBIp");
    let rep = names("sid.inpe.br/mtc-m18@80/2008/03.17.15.17");
    let both = Names::from(both);
    let mut facts = TestArchive::new().facts().clone();
    let read = |text: &str| BaseUrl::parse(text).ok();
    let urls = |facts: &Facts| [&rep, &both].map(|names| facts.persistent_url(names));
    let begins = |facts: &Facts, base: &str| {
        let wanted = [
            "sid.inpe.br/mtc-m18@80/2008/03.17.15.17",
            "8JMKD3MGP8W/35MMLL8",
        ];
        assert_eq!(urls(facts), wanted.map(|path| format!("{base}/{path}")));
    };
    begins(&facts, &format!("http://{}", facts.host));
    facts.port = 8080;
    begins(&facts, &format!("http://{}:8080", facts.host));
    facts.url = read("https://archive.example.org/x");
    begins(&facts, "https://archive.example.org/x");
    facts.resolver = read("http://urlib.net/");
    begins(&facts, "http://urlib.net");
}

#[test]
fn an_empty_metadata_item_hides_no_text() {
    let archive = TestArchive::new();
    let [one, metadata] = [(); 2].map(|()| archive.new_item());
    std::fs::write(archive.file(&one, METADATA_TEXT), "title: A map\n").expect("written");
    archive.declare(&one, RelationKind::Metadata, &metadata);
    let title = || archive.read_as(&own).title(&one).expect("a record");
    assert_eq!(title().as_deref(), Some("A map"));
    let record = archive.file(&metadata, "doc/record.bib");
    std::fs::create_dir_all(record.parent().expect("doc")).expect("made");
    std::fs::write(record, "@misc{a, title = {A plan}}\n").expect("written");
    assert_eq!(title().as_deref(), Some("A plan"));
}
