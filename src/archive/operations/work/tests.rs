use std::fs;
use std::path::PathBuf;

use super::super::Process;
use super::super::testing::{TestArchive, elsewhere, names};
use super::*;
use crate::formats::item::Sidecar;

const REP: &str = "a.example/b/2001/01.01.00.00";

/// Writes the directory of an item with a sidecar, beside the Archive.
fn write(archive: &TestArchive, rep: &str, edit: impl FnOnce(&mut Sidecar)) -> PathBuf {
    let place = archive.path().join("col").join(rep);
    fs::create_dir_all(&place).expect("a directory");
    let mut sidecar = Sidecar::new(&names(rep));
    sidecar.set_archive_service(&elsewhere());
    edit(&mut sidecar);
    fs::write(place.join(".ibi"), sidecar.to_bytes()).expect("a sidecar");
    place
}

/// Ends work, and returns what was taken in, one outcome a line.
fn end(archive: &TestArchive, work: LevelWork) -> Vec<String> {
    let mut lines = Vec::new();
    let mut watch = |taken: &[Taken], _| {
        lines.extend(taken.iter().map(|outcome| match outcome {
            Taken::Arrived(names) => format!("+ {}", names.preferred()),
            Taken::Changed(names) => format!("= {}", names.preferred()),
            Taken::Removed(names) => format!("- {}", names.preferred()),
            Taken::Refused(path, why) => format!("! {path}: {why}"),
        }));
        true
    };
    let ended = archive.keeper().end_work(work, &Process, &mut watch);
    ended.expect("taken in");
    lines
}

fn begin(archive: &TestArchive, level: &str) -> LevelWork {
    archive.keeper().begin_work(level, &Process).expect("begun")
}

fn regions(archive: &TestArchive) -> Vec<String> {
    archive.store().dirty_regions().expect("read")
}

#[test]
fn arrivals_changes_and_removals_are_taken_in() {
    let archive = TestArchive::new();
    let [gone, _, changed] =
        ["02", "03", "04"].map(|day| archive.copy(&format!("a.example/b/2001/01.{day}.00.00")));
    archive.new_item();
    let work = begin(&archive, "col");
    assert_eq!(regions(&archive).first().map(String::as_str), Some("col"));
    write(&archive, REP, |it| it.set_target("map.pdf"));
    write(&archive, "c.example/d/2002/01.01.00.00", |_| ());
    fs::remove_dir_all(archive.file(&gone, "")).expect("removed");
    archive.edit_raw(&changed, |it| it.set_target("other.pdf"));
    let mut taken = end(&archive, work);
    // Items that have not changed are read again where something came or went.
    let rep = |item: &Item| item.names.preferred();
    taken.retain(|line| !line.starts_with("= ") || line.contains(&rep(&changed)));
    taken.sort();
    let expected = [
        format!("+ {REP}"),
        "+ c.example/d/2002/01.01.00.00".to_owned(),
        format!("- {}", rep(&gone)),
        format!("= {}", rep(&changed)),
    ];
    assert_eq!(taken, expected);
    let found = archive.find_named(REP).expect("read").expect("an item");
    assert_eq!(
        (found.state, found.target.as_deref()),
        (State::Copy, Some("map.pdf"))
    );
    assert_eq!(archive.again(&gone).state, State::Deleted);
    assert!(
        archive
            .tree()
            .read_tombstone(&Place::of(&gone.names))
            .expect("read")
            .is_some()
    );
    assert_eq!(archive.again(&changed).target.as_deref(), Some("other.pdf"));
    assert_eq!(archive.findings(), Vec::<String>::new());
    archive.keeper().settle_now().expect("settled");
    assert_eq!(regions(&archive), Vec::<String>::new());
}

/// Others may remove an item between the listing of its directory and the reading of it.
#[test]
fn what_is_removed_meanwhile_is_passed_over() {
    let archive = TestArchive::new();
    let known = archive.copy("a.example/b/2001/01.02.00.00");
    let work = begin(&archive, "col/a.example");
    let new = write(&archive, REP, |_| ());
    write(&archive, "a.example/b/2001/01.03.00.00", |_| ());
    archive.edit_raw(&known, |it| it.set_target("other.pdf"));
    fs::create_dir(archive.path().join("col/a.example/b/2001/stray")).expect("a directory");
    let mut is_listed = false;
    let mut watch = |_: &[Taken], _| {
        if !is_listed {
            archive.remove_whole(&known);
            fs::remove_dir_all(&new).expect("removed");
        }
        is_listed = true;
        true
    };
    let ended = archive.keeper().end_work(work, &Process, &mut watch);
    ended.expect("taken in");
    assert!(is_listed);
    assert_eq!(archive.again(&known).state, State::Deleted);
    assert!(archive.find_named(REP).expect("read").is_none());
    assert!(
        archive
            .find_named("a.example/b/2001/01.03.00.00")
            .expect("read")
            .is_some()
    );
}

/// The second run of a program that changes nothing reads no sidecar.
#[test]
fn unchanged_items_are_not_read() {
    let archive = TestArchive::new();
    let item = archive.copy(REP);
    // The clock of files moves in steps.
    std::thread::sleep(Duration::from_millis(20));
    let work = begin(&archive, "col/a.example");
    assert_eq!(end(&archive, work), Vec::<String>::new());
    // A sidecar that is renamed into place keeps its old time of modification.
    let work = begin(&archive, "col/a.example/b/2001");
    let path = archive.file(&item, ".ibi");
    let old = fs::metadata(&path)
        .expect("a file")
        .modified()
        .expect("a time");
    let new = archive.file(&item, "new");
    let mut sidecar = archive.sidecar(&item);
    sidecar.set_target("map.pdf");
    fs::write(&new, sidecar.to_bytes()).expect("written");
    fs::File::options()
        .write(true)
        .open(&new)
        .expect("opened")
        .set_modified(old)
        .expect("a time");
    fs::rename(&new, &path).expect("renamed");
    assert_eq!(end(&archive, work), [format!("= {REP}")]);
    assert_eq!(archive.again(&item).target.as_deref(), Some("map.pdf"));
}

#[test]
fn a_start_takes_in_what_no_process_has() {
    for level in [
        "col",
        "col/a.example",
        "col/a.example/b",
        "col/a.example/b/2001",
    ] {
        let mut archive = TestArchive::new();
        let item = archive.copy("a.example/b/2001/01.02.00.00");
        let work = begin(&archive, level);
        write(&archive, REP, |_| ());
        archive.edit_raw(&item, |it| it.set_target("other.pdf"));
        drop(work);
        // Neither a settling nor a regular end clears the mark.
        archive.keeper().settle_now().expect("settled");
        archive.reopen();
        assert!(archive.find_named(REP).expect("read").is_some(), "{level}");
        assert_eq!(archive.again(&item).target.as_deref(), Some("other.pdf"));
        assert_eq!(archive.findings(), Vec::<String>::new());
    }
}

#[test]
fn what_is_refused_stays_and_is_named() {
    let archive = TestArchive::new();
    let own = archive.new_item().names.rep().expect("a rep").to_string();
    let (level, _) = own.rsplit_once('/').expect("a level");
    let unminted = format!("{level}/12.31.23.59");
    let work = begin(&archive, "col");
    write(&archive, &unminted, |it| it.set_target("x"));
    fs::create_dir_all(archive.path().join("col/a.example/b/2001/no date")).expect("made");
    fs::create_dir_all(archive.path().join("col/QABCDSTQQW/3RPGRBS/doc")).expect("made");
    let other = archive.path().join("col").join(REP);
    fs::create_dir_all(&other).expect("made");
    fs::write(
        other.join(".ibi"),
        "ibi {rep c.example/d/2002/01.01.00.00}\n",
    )
    .expect("written");
    let taken = end(&archive, work);
    let refused: Vec<&String> = taken.iter().filter(|line| line.starts_with('!')).collect();
    assert_eq!(refused.len(), 4, "{taken:?}");
    assert!(
        refused
            .iter()
            .any(|line| line.starts_with("! col/QABCDSTQQW: ")),
        "{taken:?}"
    );
    assert!(
        refused
            .iter()
            .any(|line| line.contains("no date: its name is not that of an item")),
        "{taken:?}"
    );
    assert!(
        refused.iter().any(|line| line.contains(&unminted)),
        "{taken:?}"
    );
    assert!(archive.find_named(&unminted).expect("read").is_none());
    assert!(archive.path().join("col").join(&unminted).exists());
    // Its place names it, and its sidecar has no effect.
    let bare = archive.find_named(REP).expect("read").expect("an item");
    assert_eq!((bare.state, bare.service), (State::Copy, None));
    let mut codes: Vec<String> = archive
        .findings()
        .iter()
        .map(|it| it.split(' ').next().expect("a code").to_owned())
        .collect();
    codes.sort();
    codes.dedup();
    assert_eq!(codes, ["foreign-sidecar", "not-minted", "stray-name"]);
}

#[test]
fn the_item_of_the_service_cannot_be_removed() {
    let archive = TestArchive::new();
    let service = archive
        .find_named(&archive.facts().service.preferred())
        .expect("read")
        .expect("an item");
    let work = begin(&archive, "col");
    let before = fs::read(archive.file(&service, ".ibi")).expect("a sidecar");
    fs::remove_dir_all(archive.file(&service, "")).expect("removed");
    let taken = end(&archive, work);
    assert!(
        taken
            .iter()
            .any(|line| line.starts_with("! ") && line.contains("made again")),
        "{taken:?}"
    );
    assert_eq!(
        fs::read(archive.file(&service, ".ibi")).expect("a sidecar"),
        before
    );
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn a_directory_that_is_renamed_moves_its_items() {
    let archive = TestArchive::new();
    let item = archive.copy(REP);
    let work = begin(&archive, "col");
    let col = archive.path().join("col");
    fs::rename(col.join("a.example"), col.join("A.Example")).expect("renamed");
    let taken = end(&archive, work);
    assert!(taken.iter().all(|line| !line.starts_with('!')), "{taken:?}");
    let found = archive.find_named(REP).expect("read").expect("an item");
    assert_eq!((found.id, found.state), (item.id, State::Copy));
    assert_eq!(found.names.preferred(), "A.Example/b/2001/01.01.00.00");
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn only_levels_are_worked_in() {
    let archive = TestArchive::new();
    archive.copy(REP);
    let rep = format!("col/{REP}");
    for level in [
        "",
        "staging",
        "deleted/col",
        "ibip",
        "col/missing",
        &rep,
        "col/../staging",
    ] {
        assert!(
            archive.keeper().begin_work(level, &Process).is_err(),
            "{level:?}"
        );
    }
    assert!(
        archive
            .store()
            .dirty_regions()
            .expect("read")
            .iter()
            .all(|it| it != "col")
    );
}
