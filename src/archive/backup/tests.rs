//! Backups of an Archive in a temporary directory.

use std::path::PathBuf;

use super::super::operations::testing::TestArchive;
use super::*;
use crate::archive::BACKUP_NOTE;
use crate::os::testing::TemporaryDirectory;

/// The findings of a backup, one line each, and its counts.
fn backup(from: &TestArchive, to: &Path) -> Result<(Vec<String>, BackupTally), BackupError> {
    let mut found = Vec::new();
    let mut report = |finding: &BackupFinding| {
        let path = String::from_utf8_lossy(&finding.path).into_owned();
        found.push(format!("{} {path}", finding.code.word()));
        Ok(())
    };
    let tally = make(from, to, &from.clock, &mut report, &mut |_| ())?;
    Ok((found, tally))
}

/// All files below a directory with their content, sorted.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in std::fs::read_dir(&path).expect("listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let content = std::fs::read(&path).expect("read");
                let below = path.strip_prefix(directory).expect("below");
                found.push((below.to_owned(), content));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_backup_is_the_store_and_a_second_one_moves_nothing() {
    let archive = TestArchive::new();
    let (first, second) = (archive.new_item(), archive.new_item());
    std::fs::create_dir_all(archive.file(&first, "doc/deep")).expect("made");
    std::fs::write(archive.file(&first, "doc/deep/file"), "text").expect("written");
    std::fs::write(archive.file(&second, "gone"), "later").expect("written");
    archive.clock.advance_milliseconds(5000);
    archive.reserve().expect("the items are settled");
    let directory = TemporaryDirectory::new();
    let to = directory.path().join("backup");
    let (found, tally) = backup(&archive, &to).expect("a backup");
    assert!(found.is_empty(), "{found:?}");
    // Including the item of the service.
    assert_eq!(tally.items, 3);
    for area in ["col", "ibip", "deleted"] {
        assert_eq!(
            contents(&to.join(area)),
            contents(&archive.path().join(area))
        );
    }
    let note = std::fs::read_to_string(to.join(BACKUP_NOTE)).expect("a note");
    assert!(note.contains("\nstarted 2026-") && note.contains("\nfinished 2026-"));

    std::fs::remove_file(archive.file(&second, "gone")).expect("removed");
    let (found, tally) = backup(&archive, &to).expect("a second backup");
    assert!(found.is_empty(), "{found:?}");
    assert_eq!((tally.items, tally.removed), (3, 1));
    assert_eq!(
        contents(&to.join("col")),
        contents(&archive.path().join("col"))
    );
    let (_, tally) = backup(&archive, &to).expect("a third backup");
    // The manifest of the store is written first, and then copied once more.
    assert_eq!((tally.copied, tally.removed), (1, 0));
}

#[test]
fn a_backup_does_not_overwrite_what_is_not_its_own() {
    let archive = TestArchive::new();
    let directory = TemporaryDirectory::new();
    let inside = archive.path().join("backup");
    assert!(matches!(
        backup(&archive, &inside),
        Err(BackupError::Nested)
    ));
    let other = directory.path().join("other");
    std::fs::create_dir(&other).expect("made");
    std::fs::write(other.join("file"), "").expect("written");
    assert!(matches!(
        backup(&archive, &other),
        Err(BackupError::NotABackup { .. })
    ));
    assert_eq!(contents(&other).len(), 1);
    let to = directory.path().join("backup");
    backup(&archive, &to).expect("a backup");
    let setup = super::super::Setup {
        host: Some("another.archive.example".to_owned()),
        ip: Some("192.0.2.2".parse().expect("an address")),
        ..Default::default()
    };
    let stranger = TestArchive::with(&setup);
    assert!(matches!(
        backup(&stranger, &to),
        Err(BackupError::OtherArchive { .. })
    ));
}

#[test]
fn a_backup_that_was_used_as_a_store_is_kept() {
    let archive = TestArchive::new();
    let directory = TemporaryDirectory::new();
    let to = directory.path().join("backup");
    backup(&archive, &to).expect("a backup");
    archive.clock.advance_milliseconds(60_000);
    let clock = Box::new(archive.clock.clone());
    let used = Archive::open(&to, clock).expect("the backup as a store");
    archive.clock.advance_milliseconds(60_000);
    let reservation = used
        .depositor(&super::super::Process)
        .reserve()
        .expect("a date");
    archive.clock.advance_milliseconds(5000);
    let minted =
        used.depositor(&super::super::Process)
            .mint_reserved(&reservation.date, None, None);
    minted.expect("an item of the backup");
    drop(used);
    assert!(matches!(
        backup(&archive, &to),
        Err(BackupError::Used { .. })
    ));
}
