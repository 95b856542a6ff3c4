//! Answers of an Archive in a temporary directory, read as its owner.

use super::*;
use crate::archive::operations::testing::{TestArchive, language};
use ibi::relation::RelationKind;

/// The pairs of an answer, one on each line.
fn ask(archive: &TestArchive, ibi: &str, wanted: WantedItems) -> Vec<String> {
    let act = |read: &mut dyn FnMut()| read();
    let service = Service {
        archive: archive.read_as(&act),
        url: &BaseUrl::of_address("a.example:1905"),
    };
    let question = UrlRequest {
        ibi: ibi.to_owned(),
        filepath: None,
        wanted,
    };
    let answer = service.answer(&question).expect("an answer");
    let bytes = answer.with_key(|item| format!("key-{item}"));
    let text = String::from_utf8(bytes).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

fn by(verbs: &str) -> WantedItems {
    WantedItems::By(Request::parse_verbs(verbs).expect(verbs))
}

fn value<'a>(lines: &'a [String], name: &str) -> Option<&'a str> {
    let mut pairs = lines.iter().filter_map(|line| line.split_once(' '));
    pairs
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

#[test]
fn an_item_that_is_unknown_has_an_empty_answer() {
    let archive = TestArchive::new();
    let unknown = ask(
        &archive,
        "a.example/b/2001/01.01.00.00",
        WantedItems::Itself,
    );
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn the_pairs_of_an_item_are_in_order_and_have_a_key() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    std::fs::write(archive.file(&item, "doc/map.txt"), "x").expect("a file");
    let name = item.names.preferred();
    let lines = ask(&archive, &name, WantedItems::Itself);
    let names: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(value(&lines, "archiveaddress"), Some("a.example:1905"));
    assert_eq!(value(&lines, "state"), Some("Original"));
    assert_eq!(value(&lines, "contenttype"), Some("Data"));
    let key = value(&lines, "urlkey").unwrap_or_default();
    assert_eq!(key, format!("key-{name}"));
    let url = format!(
        "http://a.example:1905/{}",
        content_url(&item.names, b"doc/map.txt")
    );
    assert_eq!(value(&lines, "url"), Some(url.as_str()));
}

#[test]
fn verbs_choose_the_subjects() {
    let archive = TestArchive::new();
    let (item, next) = (archive.new_item(), archive.new_item());
    let (portuguese, metadata) = (archive.new_item(), archive.new_item());
    archive.declare(&next, RelationKind::EditionOf, &item);
    let translation = RelationKind::Translation(language("pt"));
    archive.declare(&item, translation, &portuguese);
    archive.declare(&metadata, RelationKind::MetadataOf, &item);
    let name = item.names.preferred();
    let subjects = |wanted: WantedItems| -> Vec<String> {
        let lines = ask(&archive, &name, wanted);
        let urls = lines
            .iter()
            .filter_map(|line| line.split(' ').next()?.strip_prefix("url"));
        urls.filter(|relation| *relation != "key")
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(subjects(WantedItems::Itself), [""]);
    assert_eq!(subjects(by("GetLastEdition")), [".lastedition"]);
    assert_eq!(subjects(by("GetTranslation")), [".translation(pt)"]);
    let all = subjects(WantedItems::All);
    for relation in ["", ".lastedition", ".metadata", ".translation(pt)"] {
        assert!(
            all.iter().any(|found| found == relation),
            "{relation:?} in {all:?}"
        );
    }
    let lines = ask(&archive, &name, by("GetMetadata"));
    assert_eq!(value(&lines, "contenttype.metadata"), Some("Metadata"));
    assert!(value(&lines, "ibi.nextedition").is_some(), "{lines:?}");
}

#[test]
fn a_removed_item_has_its_state_and_no_key() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    archive.remove_whole(&item);
    let lines = ask(&archive, &item.names.preferred(), WantedItems::All);
    assert_eq!(value(&lines, "state"), Some("Deleted"));
    assert!(value(&lines, "timestamp").is_some(), "{lines:?}");
    assert_eq!(value(&lines, "urlkey"), None);
    assert_eq!(value(&lines, "url"), None);
}

#[test]
fn what_the_public_may_not_read_is_not_answered() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    // The read does not run, so nothing is public.
    let act = |_: &mut dyn FnMut()| ();
    let service = Service {
        archive: archive.read_as(&act),
        url: &BaseUrl::of_address("a.example"),
    };
    let question = UrlRequest {
        ibi: item.names.preferred(),
        filepath: None,
        wanted: WantedItems::All,
    };
    assert_eq!(
        service.answer(&question).expect("an answer"),
        UrlAnswer::default()
    );
}
