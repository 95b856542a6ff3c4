//! A byte of a store is damaged: whenever an answer would be another one, `ibifs fsck` has found it.
//!
//! `IBIFS_TEST_DAMAGE` says how many bytes.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use ibi::relation::{Language, Modifier};
use ibi::{Ibi, Timestamp};
use ibifs::formats::item::State;
use ibifs::outside::archive::store::Item;
use ibifs::outside::archive::{Archive, ArchiveError, CheckFinding, Clock, Process};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::support::{Rng, TestEnv, seed, switch};

/// The number of bytes that are damaged in a short run.
const FEW: u64 = 150;

/// A clock that stands a little before the last date handed out: the next one follows from that.
#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::parse_rfc3339("2009-02-19T09:59:55Z").expect("a date")
    }
}

/// The clock when the last date was handed out.
#[derive(Debug)]
struct Then;

impl Clock for Then {
    fn now(&self) -> Timestamp {
        Timestamp::parse_rfc3339("2009-02-19T10:00:00Z").expect("a date")
    }
}

/// Returns the answers to all queries of an archive, in one text; queries without an answer count, too.
fn answers(store: &Path) -> String {
    match printed(store) {
        Ok(text) => text,
        Err(error) => format!("no answer: {error}"),
    }
}

fn printed(store: &Path) -> Result<String, ArchiveError> {
    let archive = Archive::open(store, Box::new(Stopped))?;
    let mut items = Vec::new();
    archive.store().each_item(|item| {
        items.push(item.clone());
        Ok(())
    })?;
    let mut text = String::new();
    let shown = |item: &Item| {
        format!(
            "{} {} {:?} {:?} {:?} {:?}",
            item.names, item.state, item.service, item.language, item.target, item.removed_at
        )
    };
    let wanted = [Language::parse("pt").expect("a language")];
    for item in &items {
        text += &format!("{}\n", shown(item));
        text += &format!("{:?}\n", archive.store().sidecar(item.id)?);
        text += &format!("{:?}\n", archive.relations(item)?);
        text += &format!("{:?}\n", archive.store().aliases_of(item.id)?);
        if item.state != State::Deleted {
            for modifier in Modifier::compositions() {
                // Numbers of items mean nothing outside one index.
                let related = match archive.resolve(&item.names, &modifier, &wanted) {
                    Ok(related) => format!("{related:?}"),
                    Err(error) => error.to_string(),
                };
                text += &format!("{modifier} {}\n", without_numbers(&related));
            }
        }
    }
    for name in NAMES {
        let found = archive.find_named(name)?;
        text += &format!("{name}: {:?}\n", found.as_ref().map(shown));
        if let Ok(Ibi::Rep(rep)) = Ibi::parse(name) {
            let below = rep.components();
            let level = format!("{}/{}", below[0], below[1]);
            let spelled = archive.store().spelling_of_level(&level)?;
            text += &format!("{level}: {spelled:?}\n");
        }
    }
    for prefix in archive.store().prefixes(false)? {
        let names = archive
            .store()
            .prefix_page(&prefix, false, None, usize::MAX)?;
        text += &format!("{prefix}: {names:?}\n");
    }
    text += &format!("{:?}\n", archive.store().prefixes(true)?);
    text += &format!(
        "next {}\n",
        archive.depositor(&Process).reserve()?.date.to_rfc3339()
    );
    Ok(text)
}

fn without_numbers(text: &str) -> String {
    let mut parts = text.split("ItemId(");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    kept
}

/// Every name in the sound store.
const NAMES: [&str; 13] = [
    "example.org/archive/2009/01.01.00.00",
    "example.org/archive/2009/02.16.17.46",
    "example.org/archive/2009/02.17.08.00",
    "example.org/archive/2009/02.18.09.30",
    "example.org/archive/2009/02.19.10.00",
    "32G4GKPW/34FTLP2",
    "32G4GKPW/34PGRBS",
    "32G4GKPW/34PUJHB",
    "sid.inpe.br/mtc-m18@80/2009/08.25.19.43",
    "8JMKD3MGP8W/34PGRBS",
    "8JMKD3MGP8W/35UA4UB",
    "dpi.inpe.br/banon/1999/01.01.00.00",
    "6RPa7umaZ/UaJFT",
];

fn reindexed(store: &Path) -> Result<(), ArchiveError> {
    reindexed_at(store, Box::new(Stopped))
}

fn reindexed_at(store: &Path, clock: Box<dyn Clock>) -> Result<(), ArchiveError> {
    let archive = Archive::open_for_reindex(store, clock)?;
    let done = archive.keeper().reindex(&mut |_| ()).map(drop);
    archive.close();
    done
}

impl Drop for Sample {
    fn drop(&mut self) {
        if let Ok(memory) = std::fs::canonicalize(self.store.join("..")) {
            let _ = std::fs::remove_dir_all(memory);
        }
    }
}

/// A store of which every byte is remembered.
struct Sample {
    store: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Sample {
    fn new(env: &TestEnv) -> Sample {
        let sound = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores/sound");
        // In memory where that can be: thousands of times the store is opened and synced.
        let memory = format!("/dev/shm/ibifs-damage-{}", std::process::id());
        env.sh(&format!(
            "mkdir {memory} 2> /dev/null && ln -s {memory} memory || mkdir memory
             cp -r {} memory/store; ln -s memory/store store",
            sound.display()
        ));
        let store = env.root().join("memory/store");
        reindexed_at(&store, Box::new(Then)).expect("a sound store");
        let list = env.sh("cd store/ && find . -type f ! -name lock");
        let read = |path: &str| std::fs::read(store.join(path)).expect(path);
        let files = list.lines().map(|path| (path.into(), read(path))).collect();
        Sample { store, files }
    }

    fn restore(&self) {
        for name in ["relations.sqlite3-wal", "relations.sqlite3-shm"] {
            let _ = std::fs::remove_file(self.store.join(name));
        }
        for (path, bytes) in &self.files {
            let path = self.store.join(path);
            if std::fs::read(&path).ok().as_ref() != Some(bytes) {
                std::fs::write(&path, bytes).expect("written");
            }
        }
    }

    /// Changes one byte of a file whose path contains this, and says which.
    fn damage_file(&self, rng: &mut Rng, part: &str) -> String {
        let those: Vec<&PathBuf> = self
            .files
            .keys()
            .filter(|path| path.to_string_lossy().contains(part))
            .collect();
        let path = *rng.of(&those).expect(part);
        let mut bytes = self.files[path].clone();
        let said = change(rng, &mut bytes);
        std::fs::write(self.store.join(path), bytes).expect("written");
        format!("{}: {said}", path.display())
    }

    /// Changes one byte of a value of the index; None where SQLite does not take it.
    fn damage_row(&self, rng: &mut Rng) -> Option<String> {
        // This process opens no database but by the descriptor of its directory.
        let store = std::fs::File::open(&self.store).expect("the store");
        let path = format!("/proc/self/fd/{}/relations.sqlite3", store.as_raw_fd());
        let index = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let index = index.expect("the index opens");
        index
            .execute_batch("PRAGMA foreign_keys = off; PRAGMA ignore_check_constraints = on")
            .ok()?;
        let (table, keys) = *rng.of(&TABLES)?;
        let columns: Vec<String> = {
            let sql = format!("SELECT name FROM pragma_table_info('{table}')");
            let mut statement = index.prepare(&sql).ok()?;
            let found = statement.query_map([], |row| row.get(0)).ok()?;
            found.collect::<Result<_, _>>().ok()?
        };
        let column = rng.of(&columns)?;
        let rows: i64 = index
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })
            .ok()?;
        let at = rng.below(usize::try_from(rows).ok()?);
        let row = format!("SELECT {keys} FROM {table} ORDER BY {keys} LIMIT 1 OFFSET {at}");
        let value: Value = index
            .query_row(
                &format!("SELECT {column} FROM {table} WHERE ({keys}) = ({row})"),
                [],
                |row| row.get(0),
            )
            .ok()?;
        let (changed, said, cast) = match value {
            Value::Null => return None,
            Value::Integer(number) => {
                let mut bytes = number.to_be_bytes();
                let said = change(rng, &mut bytes);
                (Value::Integer(i64::from_be_bytes(bytes)), said, "?1")
            }
            Value::Real(_) => return None,
            Value::Text(text) => {
                let mut bytes = text.into_bytes();
                let said = change(rng, &mut bytes);
                (Value::Blob(bytes), said, "CAST(?1 AS TEXT)")
            }
            Value::Blob(mut bytes) => {
                let said = change(rng, &mut bytes);
                (Value::Blob(bytes), said, "?1")
            }
        };
        index
            .execute(
                &format!("UPDATE {table} SET {column} = {cast} WHERE ({keys}) = ({row})"),
                [changed],
            )
            .ok()?;
        index
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .ok()?;
        Some(format!("row {at} of {table}.{column}: {said}"))
    }
}

/// The tables of the index that answers come from, and what identifies a row.
const TABLES: [(&str, &str); 5] = [
    ("item", "id"),
    ("relation", "source, kind"),
    ("alias", "name"),
    ("ledger", "one"),
    ("facts", "one"),
];

/// The characters of sidecars: damage with them makes another good sidecar of a good one.
const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .{}/-";

/// Gives one byte another value: any, or one that differs in a bit, or another letter or digit.
fn change(rng: &mut Rng, bytes: &mut [u8]) -> String {
    let at = rng.below(bytes.len());
    let Some(byte) = bytes.get_mut(at) else {
        return "nothing".to_owned();
    };
    let before = *byte;
    while *byte == before {
        *byte = match rng.below(3) {
            0 => rng.byte(),
            1 => before ^ (1 << rng.below(8)),
            _ => rng.of(LETTERS).copied().unwrap_or_default(),
        };
    }
    format!("byte {at} from {before:#04x} to {byte:#04x}")
}

/// Random bytes of sidecars, tombstones, the facts, the ledger, the values of the index and its file:
/// each damage that changes an answer is found, and no sidecar is accepted without a request.
#[test]
fn every_damage_that_changes_an_answer_is_found() {
    let mut rng = Rng::from_seed(seed());
    let env = TestEnv::new();
    let sample = Sample::new(&env);
    sample.restore();
    let sound = answers(&sample.store);
    assert!(sound.contains("next 2009-02-19T10:00:00.001Z"), "{sound}");
    sample.restore();
    assert_eq!(
        reindexed(&sample.store)
            .map(|()| answers(&sample.store))
            .expect("an index"),
        sound
    );
    let mut tally: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    let mut missed = Vec::new();
    let kinds = [
        "/.ibi",
        "deleted/",
        "archive.ibi",
        "ledger",
        "row",
        "relations.sqlite3",
    ];
    let wanted = switch("IBIFS_TEST_DAMAGE").unwrap_or(FEW);
    let mut done = 0;
    while done < wanted {
        sample.restore();
        let kind = *rng.of(&kinds).expect("a kind");
        let damage = match kind {
            "row" => sample.damage_row(&mut rng),
            part => Some(sample.damage_file(&mut rng, part)),
        };
        let Some(damage) = damage else { continue };
        done += 1;
        let found = Archive::check(&sample.store, &Stopped, &mut |_| ());
        let found = match &found {
            Ok(report) => report.findings.iter().any(CheckFinding::is_left),
            Err(error) => panic!("{damage}: {error}"),
        };
        let direct = answers(&sample.store);
        let is_text = kind == "/.ibi" || kind == "deleted/";
        let after = if is_text {
            assert_eq!(direct, sound, "{damage}: believed without being asked");
            match reindexed(&sample.store) {
                Ok(()) => answers(&sample.store),
                Err(error) => error.to_string(),
            }
        } else {
            direct
        };
        let counts = tally.entry(kind).or_default();
        counts[0] += 1;
        counts[1] += u64::from(after != sound);
        counts[2] += u64::from(found);
        if after != sound && !found {
            missed.push(damage);
        }
    }
    // A row that holds nothing to change is passed over, but not all of them.
    assert_eq!(tally.len(), kinds.len(), "{tally:?}");
    for (kind, [damages, changed, found]) in &tally {
        println!("{kind}: {damages} bytes, {changed} changed an answer, {found} found");
    }
    assert!(missed.is_empty(), "missed {}: {missed:#?}", missed.len());
}
