//! Reads the whole tree. Several threads read, since most of the time is spent waiting for the disk. Results
//! are delivered in the order of the tree, because the first item that claims a name gets it.

use parking_lot::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rustix::io::Errno;

use super::super::identifiers::names_at;
use super::{CheckCode, CheckFinding};
use crate::archive::store::Record;
use crate::archive::tree::Action;
use crate::archive::tree::{Area, Place, TreeError, WalkEntry};
use crate::archive::{Archive, ArchiveError};
use crate::formats::item::{Names, State};
use ibi::Timestamp;
use ibi::message;
use ibi::message::{Localize, Message};

/// The number of reader threads.
const READERS: usize = 4;

/// How many places form a group, and how many groups may be queued.
const GROUP: usize = 64;
const AHEAD: usize = 4 * READERS;

/// The suffix of a tombstone that was set aside; a number may follow.
pub(super) const ASIDE: &str = ".broken";

/// What was found at one place of the tree.
#[derive(Default)]
pub(super) struct Sight {
    /// The name that the place in the tree gives it.
    pub(super) place: Option<Names>,
    /// The item or tombstone, and whether its sidecar is accepted.
    pub(super) record: Option<(Record, bool)>,
    /// Whether it is an item and not a tombstone.
    pub(super) is_here: bool,
    /// An inconsistency found there.
    pub(super) finding: Option<CheckFinding>,
    /// A directory that could not be listed; its contents are unknown.
    pub(super) unlisted: Option<TreeError>,
    /// The date and the rep, if the rep is in the Archive's own name space.
    pub(super) own_date: Option<(Timestamp, String)>,
}

/// What the walk finds.
enum Spot {
    /// A path in the tree at which an item or a tombstone is expected.
    Named {
        area: Area,
        path: String,
        is_tombstone: bool,
    },
    /// An inconsistency that is evident without reading the place.
    Wrong(CheckFinding, Option<TreeError>),
}

type Sights = Vec<Result<Sight, ArchiveError>>;

/// Places to be read, and the channel for the results.
type Work = (Vec<Spot>, Sender<Sights>);

/// The receiver of the results is gone.
struct Unheard;

/// Groups what the walk finds and passes the groups to the readers.
struct Foreman {
    group: Vec<Spot>,
    work: SyncSender<Work>,
    ordered: SyncSender<Receiver<Sights>>,
}

impl Foreman {
    fn meet(&mut self, area: Area, is_tombstone: bool, seen: WalkEntry<'_>) -> Result<(), Unheard> {
        let below = |path: &str| {
            if is_tombstone {
                format!("deleted/{}/{path}", area.name())
            } else {
                format!("{}/{path}", area.name())
            }
        };
        let spot = match seen {
            // A tombstone that was set aside is beside the valid one.
            WalkEntry::Named(path) if is_tombstone && path.contains(ASIDE) => return Ok(()),
            WalkEntry::Named(path) => Spot::Named {
                area,
                path: path.to_owned(),
                is_tombstone,
            },
            WalkEntry::Twice(first, second) => {
                let twice = CheckFinding::new(CheckCode::SpelledTwice, below(second));
                Spot::Wrong(twice.saying(Message::verbatim(below(first))), None)
            }
            // A file at the level of items is reported only if its name is that of an item.
            WalkEntry::Other(path)
                if is_item_level(area, path) && names_at(area, path).is_none() =>
            {
                return Ok(());
            }
            WalkEntry::Other(path) => Spot::Wrong(
                CheckFinding::new(CheckCode::NotADirectory, below(path)),
                None,
            ),
            WalkEntry::Unreadable(path, error) => {
                let path = below(path);
                let unreadable =
                    CheckFinding::new(CheckCode::Unreadable, path.trim_end_matches('/'));
                Spot::Wrong(unreadable.saying(&error), Some(error))
            }
        };
        self.group.push(spot);
        match self.group.len() {
            GROUP.. => self.hand_out(),
            _ => Ok(()),
        }
    }

    fn hand_out(&mut self) -> Result<(), Unheard> {
        let (told, heard) = channel();
        let work = (std::mem::take(&mut self.group), told);
        self.ordered.send(heard).map_err(|_| Unheard)?;
        self.work.send(work).map_err(|_| Unheard)
    }
}

impl Archive {
    /// Calls `see` for every tombstone, then for every item of the tree. An item that was restored
    /// then counts as present and keeps the names in its tombstone.
    pub(super) fn each_sight(
        &self,
        see: &mut dyn FnMut(Sight) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let no_thread = |_| self.tree.error(Action::StartReader, "col", Errno::AGAIN);
        let (work, jobs) = sync_channel::<Work>(AHEAD);
        let (ordered, sights) = sync_channel(AHEAD);
        let jobs = Mutex::new(jobs);
        std::thread::scope(|scope| {
            // Moved in, so that the readers end with the walk, and the walk with the receiver of
            // its results.
            let (jobs, sights) = (&jobs, sights);
            let thread = || std::thread::Builder::new().name("reading".to_owned());
            let mut foreman = Foreman {
                group: Vec::with_capacity(GROUP),
                work,
                ordered,
            };
            for _ in 0..READERS {
                thread()
                    .spawn_scoped(scope, || self.read_jobs(jobs))
                    .map_err(no_thread)?;
            }
            let walking = thread()
                .spawn_scoped(scope, move || self.walk(&mut foreman).is_ok())
                .map_err(no_thread)?;
            for heard in &sights {
                for sight in heard.recv().unwrap_or_default() {
                    see(sight?)?;
                }
            }
            match walking.join() {
                Ok(_) => Ok(()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn walk(&self, foreman: &mut Foreman) -> Result<(), Unheard> {
        for area in [Area::Col, Area::Ibip] {
            self.tree
                .survey_tombstones(area, &mut |seen| foreman.meet(area, true, seen))?;
        }
        for area in [Area::Col, Area::Ibip] {
            self.tree
                .survey_items(area, &mut |seen| foreman.meet(area, false, seen))?;
        }
        foreman.hand_out()
    }

    fn read_jobs(&self, jobs: &Mutex<Receiver<Work>>) {
        loop {
            let job = jobs.lock().recv();
            let Ok((group, told)) = job else {
                return;
            };
            let sights = group.into_iter().map(|spot| self.look_at(spot)).collect();
            // If the receiver is gone, the walk ends as well.
            let _ = told.send(sights);
        }
    }

    fn look_at(&self, spot: Spot) -> Result<Sight, ArchiveError> {
        let (area, path, is_tombstone) = match spot {
            Spot::Named {
                area,
                path,
                is_tombstone,
            } => (area, path, is_tombstone),
            Spot::Wrong(finding, unlisted) => {
                return Ok(Sight {
                    finding: Some(finding),
                    unlisted,
                    ..Sight::default()
                });
            }
        };
        let shown = if is_tombstone {
            format!("deleted/{}/{path}", area.name())
        } else {
            format!("{}/{path}", area.name())
        };
        let Some(names) = names_at(area, &path) else {
            return Ok(Sight {
                finding: Some(CheckFinding::new(CheckCode::StrayName, shown)),
                ..Sight::default()
            });
        };
        let mut sight = if is_tombstone {
            self.look_at_tombstone(&names, &shown)
        } else {
            self.look_at_item(&names)
        };
        if let Some(rep) = names.rep()
            && self.is_own_rep(rep)?
        {
            sight.own_date = Some((rep.timestamp(), rep.to_string()));
        }
        sight.place = Some(names);
        Ok(sight)
    }

    fn look_at_tombstone(&self, names: &Names, shown: &str) -> Sight {
        let (bytes, unreadable) = match self.tree.read_tombstone(&Place::of(names)) {
            Ok(bytes) => (bytes.unwrap_or_default(), None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let disbelief = match (unreadable, self.tombstone_from(names, &bytes)) {
            (Some(error), _) if is_unreadable(&error) => {
                CheckFinding::new(CheckCode::Unreadable, shown).saying(error)
            }
            (Some(error), _) => CheckFinding::new(CheckCode::BrokenTombstone, shown).saying(error),
            (None, Err(error)) => {
                CheckFinding::new(CheckCode::BrokenTombstone, shown).saying(in_short(&error))
            }
            (None, Ok(record)) => {
                return Sight {
                    record: Some((record, true)),
                    ..Sight::default()
                };
            }
        };
        Sight {
            record: Some((Record::bare(names.clone(), State::Deleted), false)),
            finding: Some(CheckFinding {
                names: Some(Box::new(names.clone())),
                ..disbelief
            }),
            ..Sight::default()
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

    fn look_at_item(&self, names: &Names) -> Sight {
        let (record, disbelief) = match self.read_item(names) {
            Ok(read) => read,
            Err(error) => (Record::bare(names.clone(), State::Copy), Some(error)),
        };
        let believed = disbelief.is_none();
        let finding = disbelief.map(|error| {
            let code = match &error {
                ArchiveError::OtherItem { .. } => CheckCode::ForeignSidecar,
                ArchiveError::Tree(error) if is_unreadable(error) => CheckCode::Unreadable,
                _ => CheckCode::BrokenSidecar,
            };
            CheckFinding::of(code, names).saying(in_short(&error))
        });
        Sight {
            record: Some((record, believed)),
            is_here: true,
            finding,
            ..Sight::default()
        }
    }
}

/// Whether the error is one of reading, so that the file itself may be intact.
fn is_unreadable(error: &TreeError) -> bool {
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
