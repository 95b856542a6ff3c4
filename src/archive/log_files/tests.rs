use std::collections::BTreeMap;
use std::fs;
use std::ops::{ControlFlow, Range};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

use super::check::LogFault;
use super::*;
use crate::formats::tlog::checkpoint::Checkpoint;
use crate::formats::tlog::merkle::{Hash, check_consistency, empty, leaf, root};
use crate::formats::tlog::policy::Policy;
use crate::formats::tlog::proof::Proof;
use crate::os::testing::TemporaryDirectory;

const ORIGIN: &str = "archive.example.org/log";
const MONTH: &str = "2026-11";

fn lines(numbers: Range<u64>) -> Vec<LogLine> {
    let line = |number: u64| LogLine {
        salt: u128::from(number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
            .to_be_bytes(),
        text: format!("event {number} of José"),
    };
    numbers.map(line).collect()
}

fn leaves(count: u64) -> Vec<Hash> {
    lines(0..count).iter().map(|it| leaf(&it.entry())).collect()
}

/// A store with a log, and what the tests do to it.
struct Fixture(TemporaryDirectory);

impl Fixture {
    /// A log of some entries, made in two months.
    fn new(count: u64) -> Fixture {
        let store = Fixture(TemporaryDirectory::new());
        let mut log = store.write();
        let first = count.min(2);
        log.append("2026-10", &lines(0..first)).expect("appended");
        log.append(MONTH, &lines(first..count)).expect("appended");
        store
    }

    fn writer(&self) -> Result<LogWriter, LogFileError> {
        LogWriter::open(self.0.opened().as_fd(), ORIGIN)
    }

    fn write(&self) -> LogWriter {
        self.writer().expect("a log")
    }

    fn reader(&self) -> Result<Option<LogReader>, LogFileError> {
        LogReader::open(self.0.opened().as_fd())
    }

    fn read(&self) -> LogReader {
        self.reader().expect("readable").expect("a log")
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(LOG_DIRECTORY).join(path)
    }

    /// All files of the log by their paths.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut waiting = vec![self.path("")];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(directory).expect("listed") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let below = path.strip_prefix(self.path("")).expect("below");
                let below = below.to_str().expect("text").to_owned();
                files.insert(below, fs::read(path).expect("read"));
            }
        }
        files
    }

    /// A store whose log has these files.
    fn with(files: &BTreeMap<String, Vec<u8>>) -> Fixture {
        let store = Fixture(TemporaryDirectory::new());
        for (path, bytes) in files {
            let path = store.path(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, bytes).expect("written");
        }
        store
    }

    /// Asserts that opening the log for writing fails, and changes nothing.
    fn assert_refused(&self, error: LogFileError, change: &str) {
        let files = self.files();
        assert_eq!(self.writer().err(), Some(error), "{change}");
        assert_eq!(self.files(), files, "{change}");
    }

    fn assert_whole(&self, size: u64) {
        let log = self.read();
        assert_eq!(log.check(), Ok(vec![]));
        assert_eq!(log.checkpoint().size, size);
        assert_eq!(Some(log.checkpoint().root), root(&leaves(size)));
    }
}

#[test]
fn a_log_grows_in_batches_of_any_size() {
    let store = Fixture(TemporaryDirectory::new());
    assert!(store.reader().expect("readable").is_none());
    let mut sizes = Vec::new();
    let all = leaves(66_200);
    for batch in [0, 1, 1, 253, 1, 1, 255, 1, 257, 64_766, 1, 300, 363] {
        let mut log = store.write();
        let size = log.size();
        let added = lines(size..size + batch);
        log.append(MONTH, &added).expect("appended");
        assert_eq!(log.size(), size + batch);
        assert_eq!(
            log.last(batch.min(300)).as_deref(),
            Ok(&added[added.len() - batch.min(300) as usize..])
        );
        sizes.push(log.size());
        let log = store.read();
        assert_eq!(
            Some(log.checkpoint().root),
            root(&all[..log.checkpoint().size as usize]).or(Some(empty()))
        );
    }
    assert_eq!(sizes.last(), Some(&66_200));
    store.assert_whole(66_200);
    let log = store.read();
    for older in sizes {
        let hashes = log.consistency(older).expect("a proof");
        let older_root = root(&all[..older as usize]).unwrap_or_default();
        let Checkpoint { size, root, .. } = log.checkpoint();
        assert_eq!(
            check_consistency((older, &older_root), &hashes, (*size, root)),
            Ok(()),
            "{older}"
        );
    }
    assert_eq!(
        log.consistency(66_201),
        Err(LogFileError::Shorter { older: 66_201 })
    );
    let policy = Policy::parse(&format!("log {}\nquorum none\n", log.key())).expect("a policy");
    for number in [0, 1, 255, 256, 257, 65_535, 65_536, 66_047, 66_048, 66_199] {
        let proof = log.prove(number).expect("a proof").to_string();
        let proof = Proof::parse(&proof).expect("a proof");
        let line = &lines(number..number + 1)[0];
        assert_eq!(log.line(number).as_ref(), Ok(line));
        assert!(proof.check(&line.entry(), &policy).is_ok(), "{number}");
        let extra = [&line.salt, line.text.as_bytes()].concat();
        assert_eq!(proof.extra, Some(extra));
        assert_eq!(&proof.checkpoint, log.note());
    }
    assert_eq!(
        log.prove(66_200).err(),
        Some(LogFileError::NoEntry { number: 66_200 })
    );
    let mut next = 65_000;
    let mut see = |number: u64, line: LogLine| {
        assert_eq!((number, line), (next, lines(next..next + 1).remove(0)));
        next += 1;
        if next < 66_100 {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    log.lines(65_000, &mut see).expect("read");
    assert_eq!(next, 66_100);
    assert_eq!(store.write().last(1_000_000).expect("read").len(), 66_200);
}

#[test]
fn only_the_last_tiles_are_not_whole() {
    let store = Fixture::new(257);
    let mut log = store.write();
    log.append(MONTH, &lines(257..300)).expect("appended");
    let paths: Vec<_> = store.files().into_keys().collect();
    assert_eq!(
        paths,
        [
            "checkpoint",
            "events/2026-10.txt",
            "events/2026-11.txt",
            "key",
            "key.pub",
            "tile/0/000",
            "tile/0/001.p/44",
            "tile/1/000.p/1",
            "tile/entries/000",
            "tile/entries/001.p/44",
        ]
    );
    assert!(!store.path("tile/0/000.p").exists());
    for (path, mode) in [
        ("", 0o755),
        ("events", 0o700),
        ("tile/0/001.p", 0o755),
        ("checkpoint", 0o644),
        ("events/2026-10.txt", 0o600),
        ("key", 0o600),
        ("key.pub", 0o644),
        ("tile/0/000", 0o644),
        ("tile/entries/001.p/44", 0o644),
    ] {
        let found = fs::metadata(store.path(path)).expect("there");
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{path}");
    }
}

/// Power fails before the checkpoint is in place: any file that the append wrote may be there, or be cut.
#[test]
fn a_crash_loses_nothing() {
    // The last of these makes tiles whole.
    for (before, after, step) in [(0, 1, 3), (3, 5, 7), (254, 259, 997)] {
        let store = Fixture::new(before);
        let old = store.files();
        let added = lines(before..after);
        store.write().append(MONTH, &added).expect("appended");
        let new = store.files();
        let mut crashed = new.clone();
        crashed.extend(
            old.clone()
                .into_iter()
                .filter(|(path, _)| path != "events/2026-11.txt"),
        );
        crashed.insert("checkpoint.new".to_owned(), new["checkpoint"].clone());
        let mut cases = 0;
        for (path, bytes) in &crashed {
            let kept = old.get(path).map_or(0, Vec::len);
            // Only lines are written in place.
            let is_in_place = path.starts_with("events") && after < 100;
            let step = if is_in_place { 1 } else { step };
            for cut in (kept..=bytes.len()).step_by(step) {
                let mut files = crashed.clone();
                files.insert(path.clone(), bytes[..cut].to_vec());
                // Nothing that was written later is there.
                if cut == 0 {
                    files.remove(path);
                }
                let store = Fixture::with(&files);
                let mut log = store.write();
                assert_eq!(log.size(), before, "{path} {cut}");
                log.append(MONTH, &added).expect("appended");
                drop(log);
                store.assert_whole(after);
                let files = store.files();
                assert_eq!(files["checkpoint"], new["checkpoint"], "{path} {cut}");
                assert_eq!(
                    files["events/2026-11.txt"], new["events/2026-11.txt"],
                    "{path} {cut}"
                );
                cases += 1;
            }
        }
        assert!(cases > 20, "{cases}");
    }
}

/// A log that is older than what its witnesses have cosigned is not what they have seen, also if nothing is left of it.
#[test]
fn a_log_that_was_set_back_behind_its_witnesses() {
    let store = Fixture::new(5);
    let mut files = store.files();
    store
        .write()
        .append(MONTH, &lines(5..10))
        .expect("appended");
    let log = store.read();
    log.keep_witnessed(log.note()).expect("kept");
    assert_eq!(log.check(), Ok(Vec::new()));
    files.insert("witnessed".to_owned(), store.files()["witnessed"].clone());
    let back = Fixture::with(&files);
    assert_eq!(back.read().check(), Ok(vec![LogFault::Witnessed]));
    files.retain(|path, _| path == "witnessed" || path.starts_with("key"));
    let written = Fixture::with(&files).writer();
    assert!(
        matches!(written, Err(LogFileError::Missing { .. })),
        "{written:?}"
    );
}

/// Power fails when the checkpoint is in place: the last tile and bundle may be as they were, be cut, or have zeros. They are
/// made again from the lines when the log is opened for writing, and readers do not need them.
#[test]
fn the_last_tile_is_made_again() {
    for size in [1, 5, 300] {
        let store = Fixture::new(size - 1);
        let old = store.files();
        let last = lines(size - 1..size);
        store.write().append(MONTH, &last).expect("appended");
        let whole = store.files();
        let is_last = |path: &&String| path.contains(".p/") && !path.starts_with("tile/1");
        let paths: Vec<_> = whole.keys().filter(is_last).cloned().collect();
        assert_eq!(paths.len(), 2);
        let proof = store.read().prove(size - 1).expect("a proof");
        let changes = |path: &str| {
            let bytes = &whole[path];
            let mut forged = bytes.clone();
            forged[2] ^= 1;
            let half = bytes.len() / 2;
            let zeros = bytes.len() - half.max(size_of::<Hash>());
            let zeros = [&bytes[..zeros], &vec![0; bytes.len() - zeros]].concat();
            [
                (Some(bytes.clone()), true),
                (None, true),
                (Some(Vec::new()), true),
                (Some(bytes[..half].to_vec()), true),
                (Some(zeros), true),
                (Some(forged), false),
            ]
        };
        for (leaves, is_lost) in changes(&paths[0]) {
            for (entries, is_lost_too) in changes(&paths[1]) {
                let mut files = old.clone();
                files.extend(whole.clone());
                for (path, bytes) in paths.iter().zip([&leaves, &entries]) {
                    match bytes {
                        Some(bytes) => files.insert(path.clone(), bytes.clone()),
                        None => files.remove(path),
                    };
                }
                let change = format!("{size} {leaves:x?} {entries:x?}");
                let store = Fixture::with(&files);
                let log = store.read();
                let faults = log.check().expect("readable");
                if is_lost && is_lost_too {
                    assert_eq!(faults, [], "{change}");
                    assert_eq!(
                        log.entries((size - 1) / 256).map(|it| it.last().copied()),
                        Ok(Some(last[0].entry()))
                    );
                }
                // Without its tile a bundle accuses the line.
                assert_eq!(faults.is_empty(), is_lost && is_lost_too, "{change}");
                if is_lost {
                    assert_eq!(log.prove(size - 1).as_ref(), Ok(&proof), "{change}");
                } else {
                    assert!(log.prove(size - 1).is_err(), "{change}");
                }
                assert_eq!(store.write().size(), size, "{change}");
                for path in &paths {
                    assert_eq!(store.files()[path], whole[path], "{change}");
                }
                store.assert_whole(size);
                let more = lines(size..size + 300);
                store.write().append(MONTH, &more).expect("appended");
                store.assert_whole(size + 300);
                // The checkpoint decides about the lines.
                let Some(month) = files.get_mut("events/2026-11.txt") else {
                    continue;
                };
                let at = month.len() - 2;
                month[at] ^= 1;
                let forged = Fixture::with(&files);
                assert_ne!(forged.read().check(), Ok(vec![]), "{change}");
                let before = forged.files();
                if leaves.as_ref() != whole.get(&paths[0])
                    || entries.as_ref() != whole.get(&paths[1])
                {
                    assert!(forged.writer().is_err(), "{change}");
                    assert_eq!(forged.files(), before, "{change}");
                }
            }
        }
    }
}

/// The space of a file may be there without its content.
#[test]
fn rubbish_after_the_lines_is_cut_off() {
    let store = Fixture::new(5);
    let whole = store.files();
    for rubbish in [
        vec![0; 300_000],
        b"\n\n5 \n".to_vec(),
        b"x".repeat(70_000),
        b"99 x\n5 y\n\0".to_vec(),
    ] {
        for path in ["events/2026-11.txt", "events/2026-12.txt"] {
            let mut files = whole.clone();
            files.entry(path.to_owned()).or_default().extend(&rubbish);
            let store = Fixture::with(&files);
            assert_eq!(store.write().size(), 5);
            let cut = whole.get(path).cloned().unwrap_or_default();
            assert_eq!(store.files()[path], cut);
            store
                .write()
                .append("2026-12", &lines(5..7))
                .expect("appended");
            store.assert_whole(7);
        }
    }
}

#[test]
fn an_append_that_failed_is_made_again() {
    let store = Fixture::new(254);
    let added = lines(254..258);
    let mut log = store.write();
    for path in [
        "events/2026-12.txt",
        "tile/0/000.new",
        "tile/entries/001.p/2.new",
        "checkpoint.new",
    ] {
        fs::create_dir_all(store.path(path)).expect("made");
        log.append("2026-12", &added)
            .expect_err("a directory in the way");
        assert_eq!(log.size(), 254);
        assert_eq!(store.read().checkpoint().size, 254);
        fs::remove_dir(store.path(path)).expect("removed");
    }
    for text in ["a\nb".to_owned(), "x".repeat(65_536)] {
        let salt = [0; 16];
        let bad = [added.clone(), vec![LogLine { salt, text }]].concat();
        let number = 258;
        assert_eq!(
            log.append(MONTH, &bad),
            Err(LogFileError::Unwritable { number })
        );
    }
    log.append(MONTH, &added).expect("appended");
    store.assert_whole(258);
    // The checkpoint was in place, and only its directory could not be synced.
    for more in [lines(258..262), lines(262..264)] {
        store.write().append(MONTH, &more[..2]).expect("appended");
        log.is_unsure = true;
        log.append(MONTH, &more).expect("appended");
    }
    assert_eq!(log.size(), 264);
    store.assert_whole(264);
}

#[test]
fn numbers_go_up_when_the_clock_is_set_back() {
    let store = Fixture::new(3);
    let mut log = store.write();
    log.append("2026-09", &lines(3..5)).expect("appended");
    store.assert_whole(5);
    for month in ["2027-1", "../key", "9999-99x", ""] {
        assert!(log.append(month, &lines(5..6)).is_err(), "{month}");
        assert_eq!(log.size(), 5);
    }
    store.assert_whole(5);
}

#[test]
fn a_reader_keeps_its_checkpoint() {
    let store = Fixture::new(3);
    let log = store.read();
    let mut writer = store.write();
    for size in [5, 300] {
        writer
            .append(MONTH, &lines(writer.size()..size))
            .expect("appended");
        assert_eq!(log.checkpoint().size, 3);
        assert_eq!(log.check(), Ok(vec![]));
        assert!(log.prove(2).is_ok());
        assert_eq!(log.prove(3), Err(LogFileError::NoEntry { number: 3 }));
    }
}

/// The files of logs of 5 and of 300 entries that are made again from their lines.
const LAST: [&str; 4] = [
    "tile/0/000.p/5",
    "tile/entries/000.p/5",
    "tile/0/001.p/44",
    "tile/entries/001.p/44",
];

#[test]
fn a_changed_byte_is_found() {
    for (count, step) in [(5, 1), (300, 251)] {
        let store = Fixture::new(count);
        let whole = store.files();
        for (path, bytes) in whole.iter().filter(|(path, _)| *path != "key") {
            for at in (0..bytes.len()).step_by(step) {
                for flip in [0x01, 0x20] {
                    let mut changed = bytes.clone();
                    changed[at] ^= flip;
                    fs::write(store.path(path), &changed).expect("written");
                    let is_found = store.reader().map_or(true, |log| {
                        let log = log.expect("a log");
                        !log.check().expect("readable").is_empty()
                    });
                    assert!(is_found, "{path} {at} {flip:x}");
                }
            }
            fs::remove_file(store.path(path)).expect("removed");
            let is_found = match store.reader() {
                Ok(Some(log)) => !log.check().expect("readable").is_empty(),
                Ok(None) => path == "checkpoint",
                Err(_) => true,
            };
            assert_eq!(is_found, !LAST.contains(&path.as_str()), "{path}");
            fs::write(store.path(path), bytes).expect("written");
        }
        store.assert_whole(count);
    }
}

#[test]
fn faults_are_named() {
    let store = Fixture::new(600);
    let whole = store.files();
    let november = String::from_utf8(whole["events/2026-11.txt"].clone()).expect("text");
    let tile = |path: &str| LogFault::Tile {
        path: format!("log/{path}"),
    };
    let forged = |number| LogFault::Forged { number };
    let hole = |number| LogFault::Hole { number };
    let check = |path: &str, bytes: Option<&[u8]>| {
        let mut files = whole.clone();
        match bytes {
            Some(bytes) => files.insert(path.to_owned(), bytes.to_vec()),
            None => files.remove(path),
        };
        Fixture::with(&files).read().check().expect("readable")
    };
    let month = |text: &str| check("events/2026-11.txt", Some(text.as_bytes()));
    assert_eq!(
        month(&november.replace("event 300 ", "event 200 ")),
        [forged(300)]
    );
    assert_eq!(month(&november.replace("\n300 ", "\n900 ")), [forged(300)]);
    assert_eq!(month(&november.replace("\n300 ", "\n0300 ")), [forged(300)]);
    assert_eq!(month(&november.replace("\n300 ", "\n30x ")), [forged(300)]);
    assert_eq!(
        month(&november.replace("\n300 ", "\n300 \n300 ")),
        [forged(300)]
    );
    assert_eq!(
        month(&november.replace("\n300 ", " 300 ")),
        [forged(299), hole(300)]
    );
    let (head, tail) = november.split_once("\n300 ").expect("a line");
    assert_eq!(month(head), [forged(299), hole(300)]);
    let after = tail.split_once("\n305 ").expect("a line").1;
    assert_eq!(month(&format!("{head}\n305 {after}")), [hole(300)]);
    assert_eq!(month(&format!("{november}3 again\n")), []);
    assert_eq!(check("events/2026-11.txt", None), [hole(2)]);
    assert_eq!(check("events/2026-10.txt", None), [hole(0)]);
    for (path, bytes) in whole.iter().filter(|(path, _)| path.starts_with("tile/")) {
        let last = bytes.len() - 1;
        let mut changed = bytes.clone();
        changed[last] ^= 1;
        assert_eq!(check(path, Some(&changed)), [tile(path)], "{path}");
        let cut = [tile(path)];
        let cut = if path.ends_with(".p/88") {
            &[]
        } else {
            &cut[..]
        };
        assert_eq!(check(path, Some(&bytes[..last])), cut, "{path}");
        assert_eq!(check(path, None), cut, "{path}");
    }
    assert_eq!(month(&november.replace("José", "Jose")).len(), 100);
    // Who changes all files cannot change the root.
    let other = Fixture(TemporaryDirectory::new());
    let mut forged = lines(0..600);
    forged[300].text = "forged".to_owned();
    other.write().append(MONTH, &forged).expect("appended");
    let mut files = other.files();
    for path in ["checkpoint", "key", "key.pub"] {
        files.insert(path.to_owned(), whole[path].clone());
    }
    assert_eq!(
        Fixture::with(&files).read().check(),
        Ok(vec![LogFault::Root])
    );
}

#[test]
fn a_writer_refuses_what_is_not_its_log() {
    let store = Fixture::new(300);
    let whole = store.files();
    let missing = |path: &str| LogFileError::Missing {
        path: format!("log/{path}"),
    };
    let damaged = |path: &str| LogFileError::Damaged {
        path: format!("log/{path}"),
    };
    for (path, error) in [
        ("checkpoint", missing("checkpoint")),
        ("key", missing("key")),
        ("events/2026-11.txt", LogFileError::Line { number: 299 }),
        ("tile/1/000.p/1", missing("tile/1/000.p/1")),
    ] {
        let mut files = whole.clone();
        files.remove(path);
        Fixture::with(&files).assert_refused(error, path);
    }
    for (path, error) in [
        ("tile/1/000.p/1", damaged("tile")),
        ("key.pub", damaged("key.pub")),
        ("events/2026-11.txt", LogFileError::Line { number: 299 }),
    ] {
        let mut files = whole.clone();
        let bytes = files.get_mut(path).expect("a file");
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        Fixture::with(&files).assert_refused(error, path);
    }
    // A key or a checkpoint of another log.
    let other = Fixture::new(300).files();
    for path in ["key", "key.pub", "checkpoint"] {
        let mut files = whole.clone();
        files.insert(path.to_owned(), other[path].clone());
        let store = Fixture::with(&files);
        assert!(store.writer().is_err(), "{path}");
        assert_eq!(store.reader().is_err(), path != "key", "{path}");
        assert_eq!(store.files(), files, "{path}");
    }
    // An Archive that has got another name goes on with its log.
    let store = Fixture::with(&whole);
    let renamed = LogWriter::open(store.0.opened().as_fd(), "other.example.org/log");
    let mut renamed = renamed.expect("a log");
    renamed.append(MONTH, &lines(300..301)).expect("appended");
    store.assert_whole(301);
    assert_eq!(store.read().key().name(), ORIGIN);
    let origin = "a b".to_owned();
    let store = TemporaryDirectory::new();
    let unnamed = LogWriter::open(store.opened().as_fd(), &origin);
    assert_eq!(unnamed.err(), Some(LogFileError::Name { origin }));
    // The key and its public part are made before the checkpoint.
    for made in [&["key"][..], &["key", "key.pub"]] {
        let mut files = whole.clone();
        files.retain(|path, _| made.contains(&path.as_str()));
        let store = Fixture::with(&files);
        assert!(store.reader().expect("readable").is_none());
        store.write().append(MONTH, &lines(0..1)).expect("appended");
        assert_eq!(store.files()["key.pub"], whole["key.pub"]);
        store.assert_whole(1);
    }
}

/// Who owns the directory leads nobody elsewhere, and makes nobody wait.
#[test]
fn links_and_fifos_are_refused() {
    let whole = Fixture::new(5).files();
    let paths = whole.keys().map(String::as_str);
    let directories = [
        "",
        "events",
        "tile",
        "tile/0",
        "tile/0/000.p",
        "tile/entries",
    ];
    for path in paths.chain(directories) {
        for is_link in [true, false] {
            let store = Fixture::with(&whole);
            let at = store.path(path);
            let at = at.components().as_path();
            let elsewhere = store.0.join("elsewhere");
            fs::rename(at, &elsewhere).expect("moved");
            if is_link {
                symlink(&elsewhere, at).expect("made");
            } else {
                let mode = Mode::from_raw_mode(0o666);
                rustix::fs::mknodat(CWD, at, FileType::Fifo, mode, 0).expect("made");
            }
            let before = Fixture::with(&whole).files();
            // A writer reads the last lines only, and a reader no key.
            let is_refused = store.writer().is_err();
            assert!(is_refused || path == "events/2026-10.txt", "{path}");
            let is_found = match store.reader() {
                Ok(log) => {
                    let log = log.expect("a log");
                    log.check().map_or(true, |faults| !faults.is_empty())
                }
                Err(_) => true,
            };
            assert!(is_found || path == "key", "{path}");
            fs::remove_file(at).expect("removed");
            fs::rename(&elsewhere, at).expect("moved");
            assert_eq!(store.files(), before, "{path}");
        }
    }
}

#[test]
fn an_append_writes_nothing_elsewhere() {
    let store = Fixture::new(5);
    let secret = store.0.join("secret");
    fs::write(&secret, "secret").expect("written");
    let mut log = store.write();
    for path in [
        "checkpoint.new",
        "tile/0/000.p/6",
        "tile/0/000.p/6.new",
        "tile/entries/000.p/6.new",
    ] {
        symlink(&secret, store.path(path)).expect("made");
    }
    log.append(MONTH, &lines(5..6)).expect("appended");
    store.assert_whole(6);
    assert_eq!(fs::read(&secret).expect("read"), b"secret");
    // Another name of a file of another user.
    fs::hard_link(&secret, store.path("events/2026-12.txt")).expect("made");
    assert!(log.append("2026-12", &lines(6..7)).is_err());
    fs::remove_file(store.path("events/2026-12.txt")).expect("removed");
    symlink(&secret, store.path("events/2026-12.txt")).expect("made");
    assert!(log.append("2026-12", &lines(6..7)).is_err());
    assert_eq!(fs::read(&secret).expect("read"), b"secret");
}

/// A crash while a log gets another key leaves it with the one or the other, and both kinds of checkpoints are its own.
#[test]
fn a_log_gets_another_key() {
    let store = Fixture::new(5);
    let first = store.read();
    let mut log = store.write();
    let next = log.next_key().expect("a key");
    assert_eq!(log.next_key().as_ref(), Ok(&next));
    let before = store.files();
    log.replace_key(&next).expect("another key");
    // Another process has been quicker.
    log.replace_key(&next).expect("the same key");
    log.append(MONTH, &lines(5..6)).expect("appended");
    let after = store.files();
    let mode = fs::metadata(store.path("key"))
        .expect("there")
        .permissions();
    assert_eq!(mode.mode() & 0o7777, 0o600);
    let steps = ["checkpoint", "old-keys", "key", "key.pub"];
    for done in 0..=steps.len() {
        let mut files = before.clone();
        for path in &steps[..done] {
            files.insert((*path).to_owned(), after[*path].clone());
            if *path == "key" {
                files.remove("key.next");
            }
        }
        // Signed with both, as long as it does not grow.
        let both = after["old-keys"].split(|byte| *byte == b'\n').skip(1);
        if done > 0 {
            files.insert(
                "checkpoint".to_owned(),
                both.collect::<Vec<_>>().join(&b'\n'),
            );
        }
        let store = Fixture::with(&files);
        assert_eq!(store.read().check_keys(), Ok(()), "{done}");
        store.assert_whole(5);
        let mut log = store.write();
        log.append(MONTH, &lines(5..7)).expect("appended");
        let (old, new) = (first.key(), &next);
        let log = store.read();
        assert_eq!(log.key(), if done < 2 { old } else { new }, "{done}");
        assert_eq!(log.old_keys().expect("read").len(), usize::from(done > 1));
        assert_eq!(log.check_keys(), Ok(()), "{done}");
        store.assert_whole(7);
        assert_eq!(store.path("key.next").exists(), done < 2);
        assert_eq!(log.key_of(first.note()).as_ref(), Ok(old));
        assert_eq!(log.key_of(log.note()).as_ref(), Ok(log.key()));
    }
    let store = Fixture::with(&after);
    for _ in 0..3 {
        let mut log = store.write();
        let next = log.next_key().expect("a key");
        log.replace_key(&next).expect("another key");
        let log = store.read();
        assert_eq!(log.check_keys(), Ok(()));
        assert_eq!(log.key(), &next);
        assert_eq!(log.key_of(first.note()).as_ref(), Ok(first.key()));
    }
    assert_eq!(store.read().old_keys().expect("read").len(), 4);
    store.assert_whole(6);
}

/// A thief of an old key of a log cannot sign for it any more.
#[test]
fn an_old_key_says_nothing_more() {
    let store = Fixture::new(5);
    let stolen = store.files();
    let mut log = store.write();
    let next = log.next_key().expect("a key");
    log.replace_key(&next).expect("another key");
    log.append(MONTH, &lines(5..9)).expect("appended");
    let refused = Err(LogFileError::OldKey { size: 5 });
    let sound = store.files();
    // A longer log, and other entries.
    let thief = Fixture::with(&stolen);
    let other = Fixture::with(
        &stolen
            .into_iter()
            .filter(|(path, _)| path.starts_with("key"))
            .collect(),
    );
    thief.write().append(MONTH, &lines(5..6)).expect("appended");
    other
        .write()
        .append(MONTH, &lines(9..12))
        .expect("appended");
    for store_of in [&thief, &other] {
        let log = store_of.read();
        assert_eq!(store.read().key_of(log.note()), refused);
        let mut files = sound.clone();
        files.insert(
            "checkpoint".to_owned(),
            store_of.files()["checkpoint"].clone(),
        );
        assert!(Fixture::with(&files).reader().is_err());
        // What the thief says to have handed over is not what the log was.
        let mut log = store_of.write();
        let drawn = log.next_key().expect("a key");
        log.replace_key(&drawn).expect("another key");
        files.clone_from(&sound);
        files.insert("old-keys".to_owned(), store_of.files()["old-keys"].clone());
        let path = "log/old-keys".to_owned();
        let damaged = Err(LogFileError::Damaged { path });
        assert_eq!(Fixture::with(&files).read().check_keys(), damaged);
    }
    for (path, text) in [
        ("old-keys", "nonsense\n"),
        ("key", "00\n"),
        (
            "key.pub",
            &format!("{}\n", store.read().old_keys().expect("read")[0].key),
        ),
    ] {
        let mut files = sound.clone();
        files.insert(path.to_owned(), text.as_bytes().to_vec());
        let store = Fixture::with(&files);
        assert!(
            store
                .reader()
                .map_or(true, |log| log.is_none_or(|it| it.check_keys().is_err())),
            "{path}"
        );
    }
}
