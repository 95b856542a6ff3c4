//! Reads the whole tree. Several threads read, since most of the time is spent waiting for the disk. Results
//! are delivered in the order of the tree, because the first item that claims a name gets it.

use parking_lot::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rustix::io::Errno;

use super::super::identifiers::names_at;
use super::context::ReadRecord;
use super::finding::{CheckCode, CheckFinding};
use crate::archive::store::Record;
use crate::archive::tree::Action;
use crate::archive::tree::{Area, Place, TreeError, WalkEntry};
use crate::archive::{ArchiveError, Keeper};
use crate::formats::fixity::shown;
use crate::formats::item::{Names, State};
use ibi::Timestamp;
use ibi::message;
use ibi::message::{Localize, Message};

/// The number of reader threads.
const READERS: usize = 4;

/// The number of places in a group, and of groups that may be queued.
const GROUP: usize = 64;
const AHEAD: usize = 4 * READERS;

/// The suffix of a tombstone that was set aside; a number may follow.
pub(super) const ASIDE: &str = ".broken";

/// The things that were found at one place of the tree.
#[derive(Default)]
pub(super) struct ScannedPlace {
    /// The name that the place in the tree gives it.
    pub(super) place: Option<Names>,
    /// The item or tombstone.
    pub(super) record: Option<ReadRecord>,
    /// Whether it is an item and not a tombstone.
    pub(super) is_here: bool,
    /// An inconsistency found there.
    pub(super) finding: Option<CheckFinding>,
    /// A directory that could not be listed; its contents are unknown.
    pub(super) unlisted: Option<TreeError>,
    /// The date and the rep, if the rep is in the Archive's own name space.
    pub(super) own_date: Option<(Timestamp, String)>,
}

/// The kind of thing that a path in the tree should be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedAt {
    Item,
    Tombstone,
}

impl ExpectedAt {
    /// A path of an area, relative to the store, as findings show it.
    fn shown(self, area: Area, path: &[u8]) -> String {
        let (area, path) = (area.name(), shown(path));
        match self {
            ExpectedAt::Item => format!("{area}/{path}"),
            ExpectedAt::Tombstone => format!("deleted/{area}/{path}"),
        }
    }
}

/// A thing that the walk finds.
enum ScanTask {
    /// A path in the tree at which an item or a tombstone is expected.
    Named {
        area: Area,
        path: String,
        expected: ExpectedAt,
    },
    /// An inconsistency that is evident without reading the place.
    Wrong(CheckFinding, Option<TreeError>),
}

type ScanResults = Vec<Result<ScannedPlace, ArchiveError>>;

/// Places to be read, and the channel for the results.
type ScanJob = (Vec<ScanTask>, Sender<ScanResults>);

/// The receiver of the results is gone.
struct ReceiverGone;

/// Groups what the walk finds and passes the groups to the readers.
struct Coordinator {
    group: Vec<ScanTask>,
    work: SyncSender<ScanJob>,
    ordered: SyncSender<Receiver<ScanResults>>,
}

impl Coordinator {
    fn found(
        &mut self,
        area: Area,
        expected: ExpectedAt,
        seen: WalkEntry<'_>,
    ) -> Result<(), ReceiverGone> {
        let below = |path: &str| expected.shown(area, path.as_bytes());
        let task = match seen {
            // A tombstone that was set aside is beside the valid one.
            WalkEntry::Named(path) if expected == ExpectedAt::Tombstone && path.contains(ASIDE) => {
                return Ok(());
            }
            WalkEntry::NotText(path) => ScanTask::Wrong(
                CheckFinding::new(CheckCode::StrayName, expected.shown(area, path)),
                None,
            ),
            WalkEntry::Named(path) => ScanTask::Named {
                area,
                path: path.to_owned(),
                expected,
            },
            WalkEntry::Twice(first, second) => {
                let twice = CheckFinding::new(CheckCode::SpelledTwice, below(second));
                ScanTask::Wrong(twice.with_detail(Message::verbatim(below(first))), None)
            }
            // A file at the level of items is reported only if its name is that of an item.
            WalkEntry::Other(path)
                if is_item_level(area, path) && names_at(area, path).is_none() =>
            {
                return Ok(());
            }
            WalkEntry::Other(path) => ScanTask::Wrong(
                CheckFinding::new(CheckCode::NotADirectory, below(path)),
                None,
            ),
            WalkEntry::Unreadable(path, error) => {
                let path = below(path);
                let unreadable =
                    CheckFinding::new(CheckCode::Unreadable, path.trim_end_matches('/'));
                ScanTask::Wrong(unreadable.with_detail(&error), Some(error))
            }
        };
        self.group.push(task);
        match self.group.len() {
            GROUP.. => self.dispatch(),
            _ => Ok(()),
        }
    }

    fn dispatch(&mut self) -> Result<(), ReceiverGone> {
        let (sender, receiver) = channel();
        let work = (std::mem::take(&mut self.group), sender);
        self.ordered.send(receiver).map_err(|_| ReceiverGone)?;
        self.work.send(work).map_err(|_| ReceiverGone)
    }
}

impl Keeper<'_> {
    /// Calls `visit` for every tombstone, then for every item of the tree. An item that was restored
    /// then counts as present and keeps the names in its tombstone.
    pub(super) fn scan_tree(
        &self,
        visit: &mut dyn FnMut(ScannedPlace) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let no_thread = |_| self.tree.error(Action::StartReader, "col", Errno::AGAIN);
        let (work, jobs) = sync_channel::<ScanJob>(AHEAD);
        let (ordered, results) = sync_channel(AHEAD);
        let jobs = Mutex::new(jobs);
        std::thread::scope(|scope| {
            // Moved in, so that the readers end with the walk, and the walk with the receiver of
            // its results.
            let (jobs, results) = (&jobs, results);
            let thread = || std::thread::Builder::new().name("reading".to_owned());
            let mut coordinator = Coordinator {
                group: Vec::with_capacity(GROUP),
                work,
                ordered,
            };
            for _ in 0..READERS {
                thread()
                    .spawn_scoped(scope, || self.scan_jobs(jobs))
                    .map_err(no_thread)?;
            }
            let walking = thread()
                .spawn_scoped(scope, move || self.walk(&mut coordinator).is_ok())
                .map_err(no_thread)?;
            for receiver in &results {
                for scanned in receiver.recv().unwrap_or_default() {
                    visit(scanned?)?;
                }
            }
            match walking.join() {
                Ok(_) => Ok(()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn walk(&self, coordinator: &mut Coordinator) -> Result<(), ReceiverGone> {
        for area in [Area::Col, Area::Ibip] {
            self.tree.survey_tombstones(area, &mut |seen| {
                coordinator.found(area, ExpectedAt::Tombstone, seen)
            })?;
        }
        for area in [Area::Col, Area::Ibip] {
            self.tree.survey_items(area, &mut |seen| {
                coordinator.found(area, ExpectedAt::Item, seen)
            })?;
        }
        coordinator.dispatch()
    }

    fn scan_jobs(&self, jobs: &Mutex<Receiver<ScanJob>>) {
        loop {
            let job = jobs.lock().recv();
            let Ok((group, sender)) = job else {
                return;
            };
            let results = group
                .into_iter()
                .map(|task| self.scan_place(task))
                .collect();
            // If the receiver is gone, the walk ends as well.
            let _ = sender.send(results);
        }
    }

    fn scan_place(&self, task: ScanTask) -> Result<ScannedPlace, ArchiveError> {
        let (area, path, expected) = match task {
            ScanTask::Named {
                area,
                path,
                expected,
            } => (area, path, expected),
            ScanTask::Wrong(finding, unlisted) => {
                return Ok(ScannedPlace {
                    finding: Some(finding),
                    unlisted,
                    ..ScannedPlace::default()
                });
            }
        };
        let shown = expected.shown(area, path.as_bytes());
        let Some(names) = names_at(area, &path) else {
            return Ok(ScannedPlace {
                finding: Some(CheckFinding::new(CheckCode::StrayName, shown)),
                ..ScannedPlace::default()
            });
        };
        let mut scanned = match expected {
            ExpectedAt::Item => self.scan_item(&names),
            ExpectedAt::Tombstone => self.scan_tombstone(&names, &shown),
        };
        if let Some(rep) = names.rep()
            && self.facts.is_own_rep(rep)?
        {
            scanned.own_date = Some((rep.timestamp(), rep.to_string()));
        }
        scanned.place = Some(names);
        Ok(scanned)
    }

    fn scan_tombstone(&self, names: &Names, shown: &str) -> ScannedPlace {
        let (bytes, unreadable) = match self.tree.read_tombstone(&Place::of(names)) {
            Ok(bytes) => (bytes.unwrap_or_default(), None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let rejection = match (unreadable, self.tombstone_from(names, &bytes)) {
            (Some(error), _) if is_unreadable(&error) => {
                CheckFinding::new(CheckCode::Unreadable, shown).with_detail(error)
            }
            (Some(error), _) => {
                CheckFinding::new(CheckCode::BrokenTombstone, shown).with_detail(error)
            }
            (None, Err(error)) => {
                CheckFinding::new(CheckCode::BrokenTombstone, shown).with_detail(in_short(&error))
            }
            (None, Ok(record)) => {
                return ScannedPlace {
                    record: Some(ReadRecord {
                        record,
                        is_accepted: true,
                    }),
                    ..ScannedPlace::default()
                };
            }
        };
        ScannedPlace {
            record: Some(ReadRecord::bare(names, State::Deleted)),
            finding: Some(CheckFinding {
                names: Some(Box::new(names.clone())),
                ..rejection
            }),
            ..ScannedPlace::default()
        }
    }

    /// The record from the bytes of a tombstone, if it belongs to the item of that place.
    pub(super) fn tombstone_from(
        &self,
        names: &Names,
        bytes: &[u8],
    ) -> Result<Record, ArchiveError> {
        let tombstone = self.parse_for(names, bytes)?;
        let names = tombstone.names().clone();
        Ok(self.record_of_removed(names, &tombstone, bytes.to_vec()))
    }

    fn scan_item(&self, names: &Names) -> ScannedPlace {
        let (record, rejection) = match self.read_item(names) {
            Ok(read) => read,
            Err(error) => (Record::bare(names.clone(), State::Copy), Some(error)),
        };
        let is_accepted = rejection.is_none();
        let finding = rejection.map(|error| {
            let code = match &error {
                ArchiveError::OtherItem { .. } => CheckCode::ForeignSidecar,
                ArchiveError::Tree(error) if is_unreadable(error) => CheckCode::Unreadable,
                _ => CheckCode::BrokenSidecar,
            };
            CheckFinding::of(code, names).with_detail(in_short(&error))
        });
        ScannedPlace {
            record: Some(ReadRecord {
                record,
                is_accepted,
            }),
            is_here: true,
            finding,
            ..ScannedPlace::default()
        }
    }
}

/// Whether the error is one of reading, so that the file itself may be intact.
pub(super) fn is_unreadable(error: &TreeError) -> bool {
    !matches!(
        error.errno(),
        Errno::INVAL | Errno::LOOP | Errno::FBIG | Errno::NXIO | Errno::ISDIR
    )
}

/// The cause of the error without the parts that the finding states anyway.
fn in_short(error: &ArchiveError) -> Message {
    match error {
        ArchiveError::Sidecar { cause, .. } => cause.with_cause(),
        ArchiveError::OtherItem { found, .. } => {
            message!("it names {found}", found = found.preferred())
        }
        other => other.message(),
    }
}

fn is_item_level(area: Area, path: &str) -> bool {
    let depth = path.split('/').count();
    match area {
        Area::Col => depth == 4,
        Area::Ibip => depth == 2,
    }
}
