//! The findings of a scrub after a change to the files of an item.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::{
    DIRECTORY, Finished, ItemDigests, LastScrub, Scrub, ScrubError, ScrubFinding, ScrubOptions,
    ScrubPart, ScrubTally, contents_with_pieces, digests_in_backup, item_digests, recorded_pieces,
};
use crate::archive::tree::{SIDECAR, Tree};
use crate::formats::fixity::{self, Digest};
use crate::formats::inventory::CHUNK;
use crate::os::testing::TemporaryDirectory;
use ibi::Timestamp;

const ITEM: &str = "col/a.example/b/2020/01.02.03.04.05";

struct Fixture {
    directory: TemporaryDirectory,
    tree: Tree,
}

impl Fixture {
    /// A store with one item, whose file `file` was written long ago.
    fn new() -> Fixture {
        let directory = TemporaryDirectory::new();
        let tree = Tree::create(directory.path()).expect("a store");
        tree.make_own_directories().expect("directories");
        let fixture = Fixture { directory, tree };
        std::fs::create_dir_all(fixture.item().join("d")).expect("made");
        write_long_ago(&fixture.item().join("file"), "text");
        write_long_ago(&fixture.item().join("d/other"), "more");
        std::fs::write(fixture.item().join(SIDECAR), "").expect("written");
        fixture
    }

    fn item(&self) -> std::path::PathBuf {
        self.directory.path().join(ITEM)
    }

    fn recorded(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(DIRECTORY).join(ITEM).join(name)
    }

    /// Returns what a scrub of the whole store reports, a line each, and what it counts.
    fn scrub(&self, options: &ScrubOptions) -> (Vec<String>, ScrubTally) {
        let mut found = Vec::new();
        let mut report = |finding: &ScrubFinding| {
            let path = String::from_utf8_lossy(&finding.path).into_owned();
            let accepted = if finding.accepted { " accepted" } else { "" };
            found.push(format!("{} {path}{accepted}", finding.code.word()));
            Ok(())
        };
        let mut progress = |_, _| ();
        let scrub = Scrub::new(&self.tree, options.clone(), &mut report, &mut progress);
        let tally = scrub.expect("no other scrub").all().expect("a pass");
        (found, tally)
    }
}

fn write_long_ago(path: &Path, content: &str) {
    std::fs::write(path, content).expect("written");
    let long_ago = SystemTime::now() - Duration::from_secs(100_000);
    let file = std::fs::File::options().write(true).open(path);
    file.and_then(|file| file.set_modified(long_ago))
        .expect("dated");
}

/// Writes other content of the same length, and sets the time of modification back.
fn damage(path: &Path) {
    let before = path.metadata().expect("there");
    std::fs::write(path, "TEXT").expect("written");
    let file = std::fs::File::options().write(true).open(path);
    let modified = before.modified().expect("a time");
    file.and_then(|file| file.set_modified(modified))
        .expect("dated");
}

#[test]
fn each_change_has_its_code() {
    type Change = fn(&Fixture);
    let changes: [(Change, &[&str], bool); 6] = [
        (|_| (), &[], false),
        (
            |fixture| std::fs::write(fixture.item().join("file"), "edited").expect("written"),
            &["changed file"],
            false,
        ),
        (
            |fixture| std::fs::write(fixture.item().join("d/new"), "").expect("written"),
            &["new d/new"],
            false,
        ),
        (
            |fixture| std::fs::remove_file(fixture.item().join("file")).expect("removed"),
            &["missing file"],
            false,
        ),
        (
            |fixture| damage(&fixture.item().join("file")),
            &["damaged file"],
            true,
        ),
        (
            |fixture| {
                let path = fixture.recorded(fixity::MANIFEST);
                let text = std::fs::read_to_string(&path).expect("a manifest");
                std::fs::write(&path, format!("{text}no line\n")).expect("written");
            },
            &["broken-manifest "],
            true,
        ),
    ];
    for (change, expected, is_wrong) in changes {
        let fixture = Fixture::new();
        let (found, tally) = fixture.scrub(&ScrubOptions::default());
        assert!(found.is_empty(), "{found:?}");
        assert_eq!((tally.items, tally.files, tally.recorded), (1, 2, 1));
        change(&fixture);
        let dry_run = ScrubOptions {
            dry_run: true,
            ..ScrubOptions::default()
        };
        for options in [dry_run, ScrubOptions::default()] {
            let (found, tally) = fixture.scrub(&options);
            assert_eq!(found, expected);
            assert_eq!(tally.is_wrong, is_wrong, "{expected:?}");
        }
        // An edit is reported once; what is wrong until it is accepted.
        let (again, _) = fixture.scrub(&ScrubOptions::default());
        assert_eq!(again, if is_wrong { expected } else { &[] });
        let accept = ScrubOptions {
            accept: true,
            ..ScrubOptions::default()
        };
        let (found, tally) = fixture.scrub(&accept);
        assert_eq!(found.len(), again.len());
        assert!(found.iter().all(|line| line.ends_with(" accepted")));
        assert!(!tally.is_wrong);
        let (found, _) = fixture.scrub(&ScrubOptions::default());
        assert!(found.is_empty(), "{found:?}");
    }
}

/// A file is missing, but its directory last changed before the item was last scrubbed.
#[test]
fn a_file_that_was_not_removed_is_lost() {
    let fixture = Fixture::new();
    fixture.scrub(&ScrubOptions::default());
    std::fs::remove_file(fixture.item().join("d/other")).expect("removed");
    let notes = std::fs::File::open(fixture.recorded(fixity::WRITTEN));
    let soon = SystemTime::now() + Duration::from_secs(100);
    notes.and_then(|it| it.set_modified(soon)).expect("dated");
    let (found, tally) = fixture.scrub(&ScrubOptions::default());
    assert_eq!(
        (found, tally.is_wrong),
        (vec!["lost d/other".to_owned()], true)
    );
}

/// In a backup the time at which a directory or file was modified decides what was done there after the backup was finished.
#[test]
fn a_change_of_a_finished_backup_is_damage() {
    let at = |seconds_ago: u64| SystemTime::now() - Duration::from_secs(seconds_ago);
    let date = |path: &Path, time| {
        let file = std::fs::File::open(path);
        file.and_then(|it| it.set_modified(time)).expect("dated");
    };
    let seconds = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).expect("later");
        since.as_secs().cast_signed()
    };
    let finished = || Finished(Some(Timestamp::from_unix(seconds(at(500)), 0)));
    let (before, between, soon) = (
        at(2000),
        at(700),
        SystemTime::now() + Duration::from_secs(9),
    );
    let ends_soon = Finished(Some(Timestamp::from_unix(seconds(soon), 0)));
    // The time of what is changed, and whether that is lost in the backup, and damaged there.
    for (changed, finished, is_lost, is_damaged) in [
        (Some(between), Some(finished()), false, false),
        (Some(before), Some(finished()), true, false),
        (Some(before), Some(ends_soon), false, false),
        (None, Some(finished()), true, true),
        (Some(soon), Some(finished()), false, false),
        (None, Some(Finished(None)), false, false),
        (Some(before), None, false, false),
    ] {
        let fixture = Fixture::new();
        fixture.scrub(&ScrubOptions::default());
        date(&fixture.recorded(fixity::WRITTEN), at(1000));
        let item = fixture.item();
        std::fs::write(item.join("file"), "edited").expect("written");
        std::fs::write(item.join("new"), "new").expect("written");
        std::fs::remove_file(item.join("d/other")).expect("removed");
        if let Some(changed) = changed {
            for name in ["file", "new", "d", ""] {
                date(&item.join(name), changed);
            }
        }
        let ItemDigests {
            mut damaged,
            absent,
            ..
        } = match &finished {
            Some(finished) => {
                digests_in_backup(&fixture.tree, ITEM, finished.clone(), &mut |_, _| ())
            }
            None => item_digests(&fixture.tree, ITEM, &mut |_, _| ()),
        }
        .expect("read");
        damaged.sort();
        let expected: &[&[u8]] = if is_damaged { &[b"file", b"new"] } else { &[] };
        assert_eq!(damaged, expected, "{changed:?} {finished:?}");
        assert_eq!(
            absent.len(),
            usize::from(is_lost),
            "{changed:?} {finished:?}"
        );
    }
}

#[test]
fn an_item_that_is_gone_is_lost_unless_it_was_removed() {
    for is_removed in [false, true] {
        let fixture = Fixture::new();
        fixture.scrub(&ScrubOptions::default());
        std::fs::remove_dir_all(fixture.item()).expect("removed");
        if is_removed {
            let tombstone = fixture.directory.path().join("deleted").join(ITEM);
            std::fs::create_dir_all(tombstone.parent().expect("above")).expect("made");
            std::fs::write(tombstone, "state deleted\n").expect("written");
        }
        let (found, tally) = fixture.scrub(&ScrubOptions::default());
        let expected: &[&str] = if is_removed { &[] } else { &["lost "] };
        assert_eq!(found, expected);
        assert_eq!(tally.is_wrong, !is_removed);
    }
}

/// The pieces of a long file have digests, as long as the item has a file with that content.
#[test]
fn pieces_of_long_files_are_recorded() {
    let fixture = Fixture::new();
    let long = fixture.item().join("long");
    let content: Vec<u8> = (0..CHUNK + 1000).map(|n| (n % 251) as u8).collect();
    std::fs::write(&long, &content).expect("written");
    fixture.scrub(&ScrubOptions::default());
    let digest = Digest(Sha256::digest(&content).into());
    let expected = content.chunks(CHUNK as usize);
    let expected: Vec<Digest> = expected
        .map(|piece| Digest(Sha256::digest(piece).into()))
        .collect();
    let recorded =
        |first, most| recorded_pieces(&fixture.tree, ITEM, (&digest, CHUNK + 1000), first, most);
    assert_eq!(recorded(0, 16).as_deref(), Some(&expected[..]));
    assert_eq!(recorded(1, 1).as_deref(), Some(&expected[1..]));
    assert_eq!(recorded(3, 1), None);
    assert_eq!(
        contents_with_pieces(&fixture.tree, ITEM),
        HashSet::from([digest])
    );
    // A file that a power cut has left short is not used, and is written again.
    let path = fixture.recorded(&format!("{digest}.pieces"));
    std::fs::write(&path, "").expect("written");
    assert_eq!(recorded(0, 16), None);
    fixture.scrub(&ScrubOptions::default());
    assert_eq!(recorded(0, 16).as_deref(), Some(&expected[..]));
    std::fs::write(&long, "short").expect("written");
    fixture.scrub(&ScrubOptions::default());
    assert!(contents_with_pieces(&fixture.tree, ITEM).is_empty());
}

#[test]
fn a_dry_run_records_nothing() {
    let fixture = Fixture::new();
    let dry_run = ScrubOptions {
        dry_run: true,
        ..ScrubOptions::default()
    };
    fixture.scrub(&dry_run);
    assert!(!fixture.directory.path().join(DIRECTORY).exists());
}

#[test]
fn one_scrub_is_at_work_at_a_time() {
    let fixture = Fixture::new();
    let (mut report, mut progress) = (|_: &ScrubFinding| Ok(()), |_, _| ());
    let (mut second, mut count) = (|_: &ScrubFinding| Ok(()), |_, _| ());
    let options = ScrubOptions::default();
    let scrub = Scrub::new(&fixture.tree, options.clone(), &mut report, &mut progress);
    assert!(scrub.is_ok());
    let other = Scrub::new(&fixture.tree, options, &mut second, &mut count);
    assert!(matches!(other, Err(ScrubError::Busy)));
}

#[test]
fn a_pass_goes_on_after_the_last_item() {
    let fixture = Fixture::new();
    fixture.scrub(&ScrubOptions::default());
    damage(&fixture.item().join("file"));
    let progress = fixture.directory.path().join(DIRECTORY).join("progress");
    for (line, restart, expected) in [
        (format!("last {ITEM}\n"), false, 0),
        (format!("last {ITEM}\n"), true, 1),
        (format!("last {ITEM}"), false, 1),
        ("nonsense\n".to_owned(), false, 1),
    ] {
        std::fs::write(&progress, line).expect("written");
        let options = ScrubOptions {
            restart,
            ..ScrubOptions::default()
        };
        assert_eq!(fixture.scrub(&options).0.len(), expected);
    }
}

/// Parts are scrubbed at once, have every item in one of them, and are together a whole pass.
#[test]
fn parts_are_together_the_store() {
    let fixture = Fixture::new();
    for number in 10..40 {
        let item = fixture
            .directory
            .path()
            .join(format!("col/a.example/b/2021/01.02.03.04.{number}"));
        std::fs::create_dir_all(&item).expect("made");
        write_long_ago(&item.join("file"), "text");
        std::fs::write(item.join(SIDECAR), "").expect("written");
    }
    let options = |number| ScrubOptions {
        part: ScrubPart::new(number, 3),
        ..ScrubOptions::default()
    };
    let (mut report, mut progress) = (|_: &ScrubFinding| Ok(()), |_, _| ());
    let first = Scrub::new(&fixture.tree, options(1), &mut report, &mut progress).expect("locked");
    let (mut report, mut progress) = (|_: &ScrubFinding| Ok(()), |_, _| ());
    let same = Scrub::new(&fixture.tree, options(1), &mut report, &mut progress);
    assert!(matches!(same, Err(ScrubError::Busy)));
    let (mut report, mut progress) = (|_: &ScrubFinding| Ok(()), |_, _| ());
    let whole = ScrubOptions::default();
    let whole = Scrub::new(&fixture.tree, whole, &mut report, &mut progress);
    assert!(matches!(whole, Err(ScrubError::Busy)), "a part runs");
    let completed = || LastScrub::open(&fixture.tree).and_then(|last| last.completed());
    let counted = [fixture.scrub(&options(2)).1, fixture.scrub(&options(3)).1].map(|it| it.items);
    assert_eq!(completed(), None);
    let counted = [first.all().expect("a pass").items, counted[0], counted[1]];
    assert!(counted.iter().all(|items| *items > 0), "{counted:?}");
    assert_eq!(counted.iter().sum::<u64>(), 31, "{counted:?}");
    assert!(completed().is_some());
    // An item is lost in its own part, and all are there for a whole pass.
    std::fs::remove_dir_all(fixture.item()).expect("removed");
    let lost = (1..=3).map(|number| fixture.scrub(&options(number)).0.len());
    assert_eq!(lost.sum::<usize>(), 1);
    assert_eq!(fixture.scrub(&ScrubOptions::default()).1.items, 30);
    for (number, count) in [(0, 3), (4, 3), (1, 0), (1, 1001)] {
        assert_eq!(ScrubPart::new(number, count), None);
    }
}
