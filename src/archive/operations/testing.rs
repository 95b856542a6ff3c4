//! An Archive in a temporary directory, with a clock that the test sets. It needs neither a mount nor root.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{getegid, geteuid};

use super::{
    Archive, ArchiveError, CheckFinding, Clock, OwnerOnDisk, OwnershipTransfer, Process, Role,
    Setup,
};
use crate::archive::store::{Item, ItemId, Record, Store};
use crate::archive::tree::{Creator, Place};
use crate::formats::item::{Names, Sidecar};
use crate::os::testing::TemporaryDirectory;
use ibi::distributor::Reservation;
use ibi::relation::{Language, RelationKind};
use ibi::{Ibi, Timestamp};

/// A user who owns nothing and is in no group of the process.
pub(crate) const OTHER_USER: OwnerOnDisk = OwnerOnDisk {
    uid: 0x7fff_0001,
    gid: None,
};

/// A clock that the test sets.
#[derive(Clone, Debug)]
pub(crate) struct ManualClock {
    now: Arc<Mutex<Timestamp>>,
    /// The step by which it moves each time it is read.
    step_milliseconds: i64,
}

impl ManualClock {
    /// A clock that does not move by itself.
    pub(crate) fn at(text: &str) -> ManualClock {
        let now = Timestamp::parse_rfc3339(text).expect(text);
        ManualClock {
            now: Arc::new(Mutex::new(now)),
            step_milliseconds: 0,
        }
    }

    /// A clock that is a second later each time it is read, so that minting does not wait.
    pub(crate) fn ticking_from(text: &str) -> ManualClock {
        ManualClock {
            step_milliseconds: 1000,
            ..ManualClock::at(text)
        }
    }

    pub(crate) fn set(&self, now: Timestamp) {
        *self.now.lock() = now;
    }

    pub(crate) fn advance_milliseconds(&self, milliseconds: i64) {
        let mut now = self.now.lock();
        let later = now.as_nanoseconds() + i128::from(milliseconds) * 1_000_000;
        *now = Timestamp::from_nanoseconds(later).expect("a date");
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let now = self.now.lock().clone();
        self.advance_milliseconds(self.step_milliseconds);
        now
    }
}

const START: &str = "2026-01-02T03:04:05Z";

/// An open Archive at the host `store.archive.example` and the address 192.0.2.1, in the year 2026.
pub(crate) struct TestArchive {
    archive: Option<Arc<Archive>>,
    pub(crate) clock: ManualClock,
    directory: TemporaryDirectory,
}

impl Deref for TestArchive {
    type Target = Archive;

    fn deref(&self) -> &Archive {
        self.archive.as_ref().expect("an open Archive")
    }
}

impl TestArchive {
    pub(crate) fn new() -> TestArchive {
        TestArchive::with(&Setup::default())
    }

    /// An Archive with other options.
    pub(crate) fn with(setup: &Setup) -> TestArchive {
        TestArchive::over(TemporaryDirectory::new(), setup)
    }

    /// An Archive with a clock that ticks, see [`ManualClock::ticking_from`].
    pub(crate) fn ticking() -> TestArchive {
        let clock = ManualClock::ticking_from(START);
        TestArchive::made(TemporaryDirectory::new(), &Setup::default(), clock)
    }

    /// An Archive over an existing directory.
    pub(crate) fn over(directory: TemporaryDirectory, setup: &Setup) -> TestArchive {
        TestArchive::made(directory, setup, ManualClock::at(START))
    }

    fn made(directory: TemporaryDirectory, setup: &Setup, clock: ManualClock) -> TestArchive {
        let mut setup = setup.clone();
        setup
            .host
            .get_or_insert_with(|| "store.archive.example".to_owned());
        setup
            .ip
            .get_or_insert_with(|| "192.0.2.1".parse().expect("an address"));
        setup.adopts = true;
        let boxed = Box::new(clock.clone());
        let made = Archive::init(directory.path(), &setup, boxed, &mut |_| ());
        TestArchive {
            archive: Some(Arc::new(made.expect("a store").0)),
            clock,
            directory,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The Archive for what keeps a share of it. It stays open until the last share is dropped.
    pub(crate) fn share(&self) -> Arc<Archive> {
        Arc::clone(self.archive.as_ref().expect("an open Archive"))
    }

    /// Closes the Archive regularly and opens it again.
    pub(crate) fn reopen(&mut self) {
        self.close();
        self.crash();
    }

    /// Ends the Archive without the work of a regular end, as after `kill -9`, and opens it again.
    pub(crate) fn crash(&mut self) {
        self.crash_and(|_| ());
    }

    /// Like [`TestArchive::crash`], with a change of the store in between.
    pub(crate) fn crash_and(&mut self, act: impl FnOnce(&Path)) {
        self.archive = None;
        act(self.directory.path());
        let clock = Box::new(self.clock.clone());
        let again = Archive::open(self.path(), clock).expect("the store again");
        self.archive = Some(Arc::new(again));
    }

    pub(crate) fn reserve(&self) -> Result<Reservation, ArchiveError> {
        self.depositor(&Process).reserve()
    }

    /// Mints an item of this Archive. The clock skips the wait.
    pub(crate) fn new_item(&self) -> Item {
        self.clock.advance_milliseconds(5);
        let reservation = self.reserve().expect("a date");
        self.clock.advance_milliseconds(5);
        self.depositor(&Process)
            .mint_reserved(&reservation.date, None, None)
            .expect("an item")
    }

    /// A copy of an item of another Archive, with the sidecar of that Archive.
    pub(crate) fn copy(&self, name: &str) -> Item {
        let names = names(name);
        let item = self
            .depositor(&Process)
            .register(&names, creator())
            .expect(name);
        let mut sidecar = Sidecar::new(&names);
        sidecar.set_archive_service(&elsewhere());
        self.write_raw(&item, &sidecar.to_bytes());
        self.edit(&Process, |it| it.accept_sidecar(item.id))
            .expect(name);
        self.again(&item)
    }

    /// The item as the index has it now.
    pub(crate) fn again(&self, item: &Item) -> Item {
        let found = self.store().item(item.id).expect("read");
        found.expect("an item of the index")
    }

    /// The path of a file in an item's directory.
    pub(crate) fn file(&self, item: &Item, name: &str) -> PathBuf {
        let place = Place::of(&item.names);
        self.path().join(place.as_str()).join(name)
    }

    /// Writes the sidecar of an item without the Archive.
    pub(crate) fn write_raw(&self, item: &Item, bytes: &[u8]) {
        std::fs::write(self.file(item, ".ibi"), bytes).expect("a sidecar");
    }

    /// The sidecar of an item on disk.
    pub(crate) fn sidecar(&self, item: &Item) -> Sidecar {
        let bytes = std::fs::read(self.file(item, ".ibi")).expect("a sidecar");
        Sidecar::parse(&bytes).expect("a readable sidecar")
    }

    /// Changes the sidecar of an item without the Archive.
    pub(crate) fn edit_raw(&self, item: &Item, edit: impl FnOnce(&mut Sidecar)) {
        let mut sidecar = self.sidecar(item);
        edit(&mut sidecar);
        self.write_raw(item, &sidecar.to_bytes());
    }

    /// Declares a relation as the user of the process.
    pub(crate) fn declare(&self, source: &Item, kind: RelationKind, target: &Item) {
        let related = self.edit(&Process, |it| {
            it.relate(&source.names, &kind, &target.names)
        });
        related.expect("a relation");
    }

    /// Two copies, each of which says that the other is its next edition.
    pub(crate) fn circle_of_editions(&self) -> [Item; 2] {
        let items = [
            "a.example/b/2001/01.01.00.00",
            "a.example/b/2001/01.02.00.00",
        ];
        let items = items.map(|name| self.copy(name));
        let [one, two] = &items;
        for (item, other) in [(one, two), (two, one)] {
            self.edit_raw(item, |sidecar| {
                sidecar.set_relation(&RelationKind::NextEdition, &other.names);
            });
            self.edit(&Process, |it| it.accept_sidecar(item.id))
                .expect("accepted");
        }
        items
    }

    /// Empties an item and removes it.
    pub(crate) fn remove_whole(&self, item: &Item) {
        let doc = self.file(item, "doc");
        if doc.exists() {
            std::fs::remove_dir_all(doc).expect("an empty item");
        }
        self.edit(&Process, |it| it.remove(item.id))
            .expect("removed");
    }

    /// The items of the index with their states and relations, one per line.
    pub(crate) fn dump(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let each = self.store().each_item(|item| {
            lines.push(format!(
                "{} {} {:?}",
                item.names, item.state, item.removed_at
            ));
            Ok(())
        });
        each.expect("the index");
        for item in self
            .store()
            .items_after(ItemId(0), 1000)
            .expect("the index")
        {
            for (kind, target) in self.store().relations_of(item.id).expect("the index") {
                lines.push(format!("{} {} {target}", item.names, kind.pair_name()));
            }
        }
        lines.sort();
        lines
    }

    /// Closes the Archive, and keeps the store and the clock.
    pub(crate) fn close_for_good(self) -> TestParts {
        self.close();
        let TestArchive {
            clock, directory, ..
        } = self;
        TestParts { clock, directory }
    }

    /// The findings of a check, one per line: the code and the subject.
    pub(crate) fn findings(&self) -> Vec<String> {
        let report = Archive::check(self.path(), &self.clock, &mut |_| ()).expect("a check");
        report.findings.iter().map(line_of).collect()
    }

    /// The findings of a repair in the same form, with `repaired` where it applies. The Archive is
    /// closed meanwhile.
    pub(crate) fn repair(&mut self) -> Vec<String> {
        self.close();
        self.archive = None;
        let clock = Box::new(self.clock.clone());
        let report = Archive::repair(self.path(), clock, &mut |_| ()).expect("a repair");
        let lines = report.findings.iter().map(|finding| {
            let end = if finding.repaired { " repaired" } else { "" };
            format!("{}{end}", line_of(finding))
        });
        let lines = lines.collect();
        self.crash();
        lines
    }
}

/// A closed store and its clock.
pub(crate) struct TestParts {
    pub(crate) clock: ManualClock,
    pub(crate) directory: TemporaryDirectory,
}

fn line_of(finding: &CheckFinding) -> String {
    format!("{} {}", finding.code.word(), finding.subject)
}

/// Records an item without a tree.
pub(crate) fn put(store: &Store, record: &Record) {
    store.put(record).expect("recorded");
}

pub(crate) fn names(text: &str) -> Names {
    Names::from(text.parse::<Ibi>().expect(text))
}

pub(crate) fn language(text: &str) -> Language {
    Language::parse(text).expect(text)
}

/// The service of another Archive.
pub(crate) fn elsewhere() -> Names {
    names("sid.inpe.br/mtc-m18@80/2008/03.17.15.17")
}

/// A transfer of ownership between this Archive and another one.
pub(crate) fn transfer(role: Role, is_taken: bool) -> OwnershipTransfer {
    OwnershipTransfer {
        role,
        other: elsewhere(),
        token: "0123abcd".to_owned(),
        is_taken,
    }
}

/// The creator of directories: this process.
pub(crate) fn creator() -> Creator {
    Creator {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        mode: 0o755,
        umask: 0o022,
    }
}
