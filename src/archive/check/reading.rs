//! Reading the whole tree: several readers, since most of it is waiting for a disk, and what they
//! have read in the order of the tree, since the first to tell a name has it.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rustix::io::Errno;

use super::{Finding, names_at};
use crate::archive::{Archive, ArchiveError};
use crate::ibi::Timestamp;
use crate::item::{Names, Sidecar, State};
use crate::locks::locked;
use crate::store::Record;
use crate::tree::{Area, Place, TreeError};

/// How many read at once.
const READERS: usize = 4;

/// How many places are handed to a reader at a time, and how many such groups may lie ahead.
const GROUP: usize = 64;
const AHEAD: usize = 4 * READERS;

/// What one place of the tree shows.
#[derive(Default)]
pub(super) struct Sight {
    /// The item or tombstone, and whether its sidecar is believed.
    pub(super) record: Option<(Record, bool)>,
    /// Whether it is an item rather than a tombstone.
    pub(super) is_here: bool,
    /// What is wrong.
    pub(super) finding: Option<Finding>,
    /// Its date, where it is of the Archive's own name space.
    pub(super) own_date: Option<Timestamp>,
}

/// A name in the tree where an item or a tombstone lies.
struct Spot {
    area: Area,
    path: String,
    is_tombstone: bool,
}

type Sights = Vec<Result<Sight, ArchiveError>>;

/// Places to be read, and where what they show is waited for.
type Work = (Vec<Spot>, Sender<Sights>);

/// Why the walk ends early.
enum Stop {
    Failed(TreeError),
    /// Nobody wants to know more.
    Unheard,
}

impl From<TreeError> for Stop {
    fn from(error: TreeError) -> Stop {
        Stop::Failed(error)
    }
}

/// Groups what is met on the walk, and hands it out.
struct Foreman {
    group: Vec<Spot>,
    work: SyncSender<Work>,
    ordered: SyncSender<Receiver<Sights>>,
}

impl Foreman {
    fn meet(&mut self, area: Area, path: &str, is_tombstone: bool) -> Result<(), Stop> {
        self.group.push(Spot {
            area,
            path: path.to_owned(),
            is_tombstone,
        });
        match self.group.len() {
            GROUP.. => self.hand_out(),
            _ => Ok(()),
        }
    }

    fn hand_out(&mut self) -> Result<(), Stop> {
        let (told, heard) = channel();
        let work = (std::mem::take(&mut self.group), told);
        self.ordered.send(heard).map_err(|_| Stop::Unheard)?;
        self.work.send(work).map_err(|_| Stop::Unheard)
    }
}

impl Archive {
    /// Calls `see` with every tombstone and every item of the tree, in this order, so that an item
    /// that is back counts as here and keeps the names its tombstone tells.
    pub(super) fn each_sight(
        &self,
        see: &mut dyn FnMut(Sight) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let no_thread = |_| self.tree.error("start a reader of", "col", Errno::AGAIN);
        let (work, jobs) = sync_channel::<Work>(AHEAD);
        let (ordered, sights) = sync_channel(AHEAD);
        let jobs = Mutex::new(jobs);
        std::thread::scope(|scope| {
            // Moved in, so that the readers end with the walk, and the walk with whoever listens.
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
                .spawn_scoped(scope, move || self.walk(&mut foreman))
                .map_err(no_thread)?;
            for heard in &sights {
                for sight in heard.recv().unwrap_or_default() {
                    see(sight?)?;
                }
            }
            match walking.join() {
                Ok(Err(Stop::Failed(error))) => Err(error.into()),
                Ok(_) => Ok(()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn walk(&self, foreman: &mut Foreman) -> Result<(), Stop> {
        self.tree
            .each_tombstone(|area, path| foreman.meet(area, path, true))?;
        self.tree
            .each_item(|area, path| foreman.meet(area, path, false))?;
        foreman.hand_out()
    }

    fn read_jobs(&self, jobs: &Mutex<Receiver<Work>>) {
        loop {
            let job = locked(jobs).recv();
            let Ok((group, told)) = job else {
                return;
            };
            let sights = group.iter().map(|spot| self.look_at(spot)).collect();
            // Where nobody hears it, the walk ends, too.
            let _ = told.send(sights);
        }
    }

    fn look_at(&self, spot: &Spot) -> Result<Sight, ArchiveError> {
        let area = spot.area.name();
        let Some(names) = names_at(spot.area, &spot.path) else {
            return Ok(Sight {
                finding: Some(match spot.is_tombstone {
                    true => Finding::new(
                        "stray-name",
                        format!("deleted/{area}/{}", spot.path),
                        "this name is no identifier",
                    ),
                    false => Finding::new(
                        "stray-name",
                        format!("{area}/{}", spot.path),
                        "this directory's name is no identifier; the mount does not show it",
                    ),
                }),
                ..Sight::default()
            });
        };
        let mut sight = match spot.is_tombstone {
            true => self.look_at_tombstone(&names, &format!("deleted/{area}/{}", spot.path))?,
            false => self.look_at_item(&names)?,
        };
        if let Some(rep) = names.rep()
            && self.is_own_rep(rep)?
        {
            sight.own_date = Some(rep.timestamp());
        }
        Ok(sight)
    }

    fn look_at_tombstone(&self, names: &Names, shown: &str) -> Result<Sight, ArchiveError> {
        let place = Place::of(names);
        let bytes = self.tree.read_tombstone(&place)?.unwrap_or_default();
        Ok(match Sidecar::parse(&bytes) {
            Ok(tombstone) => {
                let names = tombstone.names().clone();
                Sight {
                    record: Some((self.record_of_removed(names, &tombstone, bytes), true)),
                    ..Sight::default()
                }
            }
            Err(error) => Sight {
                record: Some((Record::bare(names.clone(), State::Deleted), false)),
                finding: Some(Finding::new("broken-tombstone", shown, error)),
                ..Sight::default()
            },
        })
    }

    fn look_at_item(&self, names: &Names) -> Result<Sight, ArchiveError> {
        let (record, disbelief) = self.read_item(names)?;
        let believed = disbelief.is_none();
        let finding = disbelief.map(|error| {
            let code = match error {
                ArchiveError::OtherItem { .. } => "foreign-sidecar",
                _ => "broken-sidecar",
            };
            Finding::new(code, names, error)
        });
        Ok(Sight {
            record: Some((record, believed)),
            is_here: true,
            finding,
            own_date: None,
        })
    }
}
