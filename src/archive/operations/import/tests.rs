use super::super::testing::{OTHER_USER, TestArchive, elsewhere, language, names};
use super::*;
use crate::archive::{Archive, Process};
use crate::formats::table;

const ONE: &str = "a.example/b/2001/01.01.00.00";
const TWO: &str = "a.example/b/2001/01.02.00.00";
const THREE: &str = "a.example/b/2001/01.03.00.00";

/// The plan of a table: the rows that are accepted, and the sentences of the others.
fn plan(archive: &TestArchive, text: &str, replace: bool) -> (Vec<Planned>, Vec<String>) {
    let table = table::parse(text.as_bytes());
    assert_eq!(table.faults, [], "{text}");
    let (planned, faults) = archive
        .depositor(&Process)
        .plan(&table.rows, replace)
        .expect("a plan");
    (planned, faults.iter().map(ToString::to_string).collect())
}

fn apply(archive: &TestArchive, planned: &[Planned]) {
    for row in planned {
        archive
            .edit(&Process, |it| it.replace_sidecar(&row.names, &row.sidecar))
            .expect("written");
    }
}

#[test]
fn a_row_becomes_the_sidecar_of_its_item() {
    let archive = TestArchive::new();
    let (one, two) = (archive.copy(ONE), archive.copy(TWO));
    let text = format!(
        "rep,ibip,language,target,alias,relations\n\
         {ONE},8JMKD3MGP8W/35MMLL8,pt,map.pdf,lib/map,nextedition={TWO}\n"
    );
    let (planned, faults) = plan(&archive, &text, false);
    assert_eq!(faults, Vec::<String>::new());
    let [row] = &planned[..] else {
        panic!("{planned:?}");
    };
    assert_eq!((row.line, &row.names), (2, &one.names));
    assert_eq!(
        row.changed,
        ["ibi", "ibi.alias", "ibi.nextedition", "language", "target"]
    );
    assert_eq!(archive.again(&one), one, "a plan changes nothing");
    apply(&archive, &planned);
    let item = archive.again(&one);
    assert_eq!(item.language, Some(language("pt")));
    assert_eq!(item.target.as_deref(), Some("map.pdf"));
    for name in ["lib/map", "8JMKD3MGP8W/35MMLL8"] {
        let found = archive.find_named(name).expect(name);
        assert_eq!(found.map(|found| found.id), Some(one.id), "{name}");
    }
    let next = archive.next_edition(&one.names).expect("read");
    assert_eq!(next, Some(two.names));
    assert_eq!(item.service, Some(elsewhere()), "the rest is as it was");
    // The same table again changes nothing.
    let (again, faults) = plan(&archive, &text, false);
    assert_eq!((again[0].changed.len(), faults.len()), (0, 0));
    assert_eq!(archive.findings(), Vec::<String>::new());
}

/// Each row is refused with a sentence that has these words, and is accepted with `--replace` if
/// that is stated.
#[test]
fn rows_that_contradict_the_archive_are_refused() {
    let archive = TestArchive::new();
    let (one, two) = (archive.copy(ONE), archive.copy(TWO));
    let service = archive.facts().service.preferred();
    archive.edit_raw(&one, |sidecar| {
        sidecar.set_language(&language("pt"));
        sidecar.set_target("map.pdf");
        sidecar.set_relation(&RelationKind::NextEdition, &two.names);
    });
    archive.edit_raw(&two, |sidecar| {
        sidecar.add_alias(&alias("lib/map"));
        sidecar.set_names(&both(TWO, "8JMKD3MGP8W/35MMLL8"));
    });
    for item in [&one, &two] {
        archive
            .edit(&Process, |it| it.accept_sidecar(item.id))
            .expect("accepted");
    }
    let cases = [
        (
            format!("rep\n{THREE}\n"),
            "no item 'a.example/b/2001/01.03.00.00'",
            false,
        ),
        (
            format!("rep,language\n{ONE},fr\n"),
            "its language is pt already",
            true,
        ),
        (
            format!("rep,target\n{ONE},x.pdf\n"),
            "its target is map.pdf already",
            true,
        ),
        (
            format!("rep,relations\n{ONE},nextedition={THREE}\n"),
            "its ibi.nextedition is",
            true,
        ),
        (
            format!("rep,relations\n{ONE},metadata={ONE}\n"),
            "would be the item itself",
            false,
        ),
        (
            format!("rep,alias\n{ONE},lib/map\n"),
            "alias lib/map is that of",
            false,
        ),
        (
            format!("rep,alias\n{ONE},8JMKD3MGP8W/35MME4E\n"),
            "8JMKD3MGP8W/35MME4E",
            false,
        ),
        (
            format!("rep,state\n{ONE},Original\n"),
            "holds the original; transfer it there",
            true,
        ),
        (
            format!("rep,state\n{service},Copy\n"),
            "the Archive service's own item is the original",
            false,
        ),
        (
            format!("rep,ibip\n{ONE},8JMKD3MGP8W/35MMLL8\n"),
            "are those of two items here",
            false,
        ),
        (
            format!("rep,ibip\n{TWO},8JMKD3MGP8W/35MME4E\n"),
            "a name that is recorded does not change",
            false,
        ),
    ];
    for (text, words, is_replaced) in cases {
        let (planned, faults) = plan(&archive, &text, false);
        assert_eq!((planned.len(), faults.len()), (0, 1), "{text}");
        assert!(
            faults[0].starts_with("line 2: ") && faults[0].contains(words),
            "{faults:?}"
        );
        let (planned, faults) = plan(&archive, &text, true);
        assert_eq!(faults.is_empty(), is_replaced, "{text}: {faults:?}");
        assert_eq!(
            planned.iter().map(|row| row.changed.len()).sum::<usize>() > 0,
            is_replaced,
            "{text}"
        );
    }
}

fn both(rep: &str, ibip: &str) -> Names {
    Names::both(rep.parse().expect(rep), ibip.parse().expect(ibip))
}

fn alias(text: &str) -> ibi::AliasPair {
    ibi::AliasPair::parse(text).expect(text)
}

#[test]
fn rows_that_repeat_what_the_sidecar_has_are_accepted() {
    let archive = TestArchive::new();
    let (one, two) = (archive.copy(ONE), archive.copy(TWO));
    archive.edit_raw(&one, |sidecar| {
        sidecar.set_language(&language("pt"));
        sidecar.set_target("map.pdf");
        sidecar.add_alias(&alias("lib/map"));
        sidecar.set_relation(&RelationKind::Metadata, &two.names);
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(one.id))
        .expect("accepted");
    for column in [
        "language\nREP,pt",
        "target\nREP,map.pdf",
        "alias\nREP,lib/map",
        "relations\nREP,metadata=A.example/B/2001/01.02.00.00",
        "state\nREP,Copy",
    ] {
        let text = format!("rep,{}\n", column.replace("REP", ONE));
        let (planned, faults) = plan(&archive, &text, false);
        assert_eq!(faults, Vec::<String>::new(), "{text}");
        assert_eq!(planned[0].changed, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn two_rows_of_one_item_are_refused() {
    let archive = TestArchive::new();
    let [one, ..] = [ONE, TWO, THREE].map(|name| archive.copy(name));
    archive.edit_raw(&one, |sidecar| {
        sidecar.set_names(&both(ONE, "8JMKD3MGP8W/35MMLL8"));
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(one.id))
        .expect("accepted");
    for (text, words) in [
        (
            format!("rep,language\n{ONE},pt\n{ONE},fr\n"),
            "line 3: line 2 names the same item",
        ),
        (
            format!("rep,ibip\n{ONE},\n,8JMKD3MGP8W/35MMLL8\n"),
            "line 3: line 2 names the same item",
        ),
        // Of two items one IBIp.
        (
            format!("rep,ibip\n{TWO},8JMKD3MGP8W/35MME4E\n{THREE},8jmkd3mgp8w/35mme4e\n"),
            "line 3: line 2 names the same item",
        ),
    ] {
        let (planned, faults) = plan(&archive, &text, false);
        assert_eq!((planned.len(), planned[0].line), (1, 2), "{text}");
        assert!(faults[0].starts_with(words), "{faults:?}");
    }
}

#[test]
fn a_sidecar_that_was_changed_on_disk_is_not_written_over() {
    let archive = TestArchive::new();
    let one = archive.copy(ONE);
    archive.edit_raw(&one, |sidecar| sidecar.set_target("other.pdf"));
    let text = format!("rep,language\n{ONE},pt\n");
    let (planned, faults) = plan(&archive, &text, true);
    assert_eq!((planned.len(), faults.len()), (0, 1));
    assert!(faults[0].contains("ibifs fsck"), "{faults:?}");
    // A sidecar that is missing is written.
    std::fs::remove_file(archive.file(&one, ".ibi")).expect("removed");
    let (planned, faults) = plan(&archive, &text, true);
    assert_eq!((planned.len(), faults.len()), (1, 0), "{faults:?}");
    apply(&archive, &planned);
    assert_eq!(archive.again(&one).language, Some(language("pt")));
    assert_eq!(archive.sidecar(&one).archive_service(), Some(&elsewhere()));
}

#[test]
fn editions_of_a_table_do_not_go_in_a_circle() {
    let archive = TestArchive::new();
    let items = [ONE, TWO, THREE].map(|name| archive.copy(name));
    archive.edit_raw(&items[2], |sidecar| {
        sidecar.set_relation(&RelationKind::NextEdition, &items[0].names);
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(items[2].id))
        .expect("accepted");
    for (text, lines) in [
        (format!("rep,relations\n{ONE},nextedition={TWO}\n"), &[][..]),
        // The third one has the first as its next edition already.
        (
            format!("rep,relations\n{ONE},nextedition={TWO}\n{TWO},nextedition={THREE}\n"),
            &["line 2", "line 3"],
        ),
        (
            format!("rep,relations\n{TWO},editionof={ONE}\n{THREE},editionof={TWO}\n"),
            &["line 2", "line 3"],
        ),
        (
            format!("rep,relations\n{ONE},nextedition={THREE}\n"),
            &["line 2"],
        ),
        (format!("rep,relations\n{ONE},metadata={THREE}\n"), &[]),
        // The circle is among the others.
        (
            format!("rep,relations\n{TWO},nextedition={ONE}\n{ONE},nextedition={THREE}\n"),
            &["line 3"],
        ),
    ] {
        let (planned, faults) = plan(&archive, &text, true);
        let found: Vec<&str> = faults
            .iter()
            .filter(|fault| fault.contains("cycle"))
            .filter_map(|fault| fault.split(':').next())
            .collect();
        assert_eq!(found, lines, "{text}: {faults:?}");
        assert_eq!(planned.len() + faults.len(), text.lines().count() - 1);
    }
}

#[test]
fn originals_of_a_table_declare_relations_at_both_ends() {
    let archive = TestArchive::new();
    let (one, two) = (archive.copy(ONE), archive.copy(TWO));
    archive.copy(THREE);
    let text = format!(
        "rep,state,relations,language\n\
         {ONE},Original,nextedition={TWO} translation(pt)={THREE},en\n\
         {TWO},Original,,\n{THREE},,,\n"
    );
    let (planned, faults) = plan(&archive, &text, true);
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(planned[1].changed, ["ibi.archiveservice", "ibi.editionof"]);
    assert_eq!(planned[2].changed, Vec::<String>::new(), "a copy");
    apply(&archive, &planned);
    for item in [&one, &two] {
        assert_eq!(archive.again(item).state, State::Original);
    }
    let relations = archive.sidecar(&two).relations();
    assert_eq!(relations, [(RelationKind::EditionOf, one.names.clone())]);
    // A relation that the far end declares already stays.
    let text = format!("rep,relations\n{ONE},translation(fr)={TWO}\n{TWO},metadata={ONE}\n");
    let (planned, faults) = plan(&archive, &text, false);
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(
        planned[0].changed,
        ["ibi.metadataof", "ibi.translation(fr)"]
    );
    assert_eq!(planned[1].changed, ["ibi.metadata", "ibi.translationof"]);
}

#[test]
fn a_sidecar_is_replaced_by_those_who_may_write_it() {
    let archive = TestArchive::new();
    let one = archive.copy(ONE);
    let before = archive.sidecar(&one);
    let mut sidecar = before.clone();
    sidecar.set_language(&language("pt"));
    let bytes = sidecar.to_bytes();
    let refused = archive.edit(&OTHER_USER, |it| it.replace_sidecar(&one.names, &bytes));
    assert!(
        matches!(refused, Err(ArchiveError::NotAllowed(_))),
        "{refused:?}"
    );
    let unknown = archive.edit(&Process, |it| it.replace_sidecar(&names(TWO), &bytes));
    assert!(
        matches!(unknown, Err(ArchiveError::Unknown { .. })),
        "{unknown:?}"
    );
    assert_eq!(archive.sidecar(&one), before);
    let mut foreign = sidecar.clone();
    foreign.set_names(&names(THREE));
    let rejected = archive.edit(&Process, |it| {
        it.replace_sidecar(&one.names, &foreign.to_bytes())
    });
    assert!(rejected.is_err(), "another item's sidecar");
    archive
        .edit(&Process, |it| it.replace_sidecar(&one.names, &bytes))
        .expect("written");
    assert_eq!(archive.again(&one).language, Some(language("pt")));
    let reader = Archive::open_read_only(archive.path()).expect("a reader");
    let refused = reader.edit(&Process, |it| it.replace_sidecar(&one.names, &bytes));
    assert!(
        matches!(refused, Err(ArchiveError::ReadOnly)),
        "{refused:?}"
    );
}

/// Takes an item in with a file and, if given, a sidecar.
fn take_in(
    archive: &Archive,
    names: &Names,
    sidecar: Option<&Sidecar>,
) -> Result<Item, ArchiveError> {
    archive.depositor(&Process).take_in(names, |directory| {
        let write = |name: &str, bytes: &[u8]| {
            let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            let mode = rustix::fs::Mode::from_raw_mode(0o644);
            let file = rustix::fs::openat(directory, name, flags, mode).expect(name);
            rustix::io::write(&file, bytes).expect(name);
        };
        write("map.pdf", b"map");
        if let Some(sidecar) = sidecar {
            write(".ibi", &sidecar.to_bytes());
        }
        Ok::<(), ArchiveError>(())
    })
}

#[test]
fn a_whole_item_is_taken_in() {
    let archive = TestArchive::new();
    let two_names = both(ONE, "8JMKD3MGP8W/35MMLL8");
    let mut sidecar = Sidecar::new(&two_names);
    sidecar.set_archive_service(&elsewhere());
    sidecar.set_language(&language("pt"));
    let item = take_in(&archive, &two_names, Some(&sidecar)).expect("taken in");
    assert_eq!((&item.names, item.state), (&two_names, State::Copy));
    assert_eq!(item.language, Some(language("pt")));
    let content = std::fs::read(archive.file(&item, "map.pdf"));
    assert_eq!(content.expect("a file"), b"map");
    for name in [ONE, "8JMKD3MGP8W/35MMLL8"] {
        let again = take_in(&archive, &names(name), None);
        assert!(matches!(again, Err(ArchiveError::Exists(_))), "{again:?}");
    }
    // Without a sidecar, one with both names is written.
    let other = both(TWO, "8JMKD3MGP8W/35MME4E");
    let item = take_in(&archive, &other, None).expect("taken in");
    assert_eq!(archive.sidecar(&item).names(), &other);
    // One name is in the tree as the place of the item.
    let item = take_in(&archive, &names(THREE), None).expect("taken in");
    assert!(!archive.file(&item, ".ibi").exists());
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn an_item_that_cannot_be_filled_leaves_nothing() {
    let archive = TestArchive::new();
    let failed = archive
        .depositor(&Process)
        .take_in(&names(ONE), |_| Err(ArchiveError::ServiceItem));
    assert!(
        matches!(failed, Err(ArchiveError::ServiceItem)),
        "{failed:?}"
    );
    assert_eq!(archive.held(&names(ONE)).expect("read"), None);
    let own = format!(
        "{}/2099/01.01.00.00",
        archive.facts().rep_prefix().expect("a prefix")
    );
    let refused = take_in(&archive, &names(&own), None);
    assert!(
        matches!(refused, Err(ArchiveError::NotMintedYet { .. })),
        "{refused:?}"
    );
    let reader = Archive::open_read_only(archive.path()).expect("a reader");
    let refused = take_in(&reader, &names(ONE), None);
    assert!(
        matches!(refused, Err(ArchiveError::ReadOnly)),
        "{refused:?}"
    );
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn an_item_is_taken_in_at_the_levels_that_are_here() {
    let archive = TestArchive::new();
    archive.copy("a.example/B/2001/01.05.00.00");
    let item = take_in(&archive, &names("A.EXAMPLE/b/2001/01.06.00.00"), None);
    assert_eq!(
        item.expect("taken in").names.preferred(),
        "a.example/B/2001/01.06.00.00"
    );
}
