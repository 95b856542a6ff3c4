//! Validators of cached answers. A validator holds fingerprints of all paths that an answer depends on, and
//! checks later, without disk access, that none of them has changed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, Statx};
use rustix::io::Errno;

use super::{OpenItem, Place, Tree};
use ibi::Timestamp;

/// The most paths of an answer: an answer that depends on more is not cached.
const MOST_PATHS: usize = 256;
/// The coarsest clock of a filesystem, in seconds. A file that changed more recently than this may change
/// again and show the same time.
const COARSE: i64 = 2;

/// The fields of stat(2), at least one of which differs after a change to the content, the names or the
/// permissions of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    device: u64,
    node: u64,
    length: i64,
    content: (i64, u64),
    change: (i64, u64),
}

impl fmt::Display for Fingerprint {
    /// Without the device, whose number may be another one after a restart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((modified, of_modified), (changed, of_changed)) = (self.content, self.change);
        let (node, length) = (self.node, self.length);
        write!(
            f,
            "{node:x}-{length:x}-{modified:x}-{of_modified:x}-{changed:x}-{of_changed:x}"
        )
    }
}

impl Fingerprint {
    pub(super) fn of(stat: &Stat) -> Fingerprint {
        Fingerprint {
            device: stat.st_dev,
            node: stat.st_ino,
            length: stat.st_size,
            content: (stat.st_mtime, stat.st_mtime_nsec),
            change: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    pub(super) fn of_attributes(found: &Statx) -> Fingerprint {
        let time = |time: rustix::fs::StatxTimestamp| (time.tv_sec, u64::from(time.tv_nsec));
        Fingerprint {
            device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            node: found.stx_ino,
            length: i64::try_from(found.stx_size).unwrap_or(i64::MAX),
            content: time(found.stx_mtime),
            change: time(found.stx_ctime),
        }
    }

    pub(super) fn length(&self) -> u64 {
        u64::try_from(self.length).unwrap_or(0)
    }

    /// Returns when the content was last changed.
    pub(super) fn modified(&self) -> Timestamp {
        let (seconds, fraction) = self.content;
        Timestamp::from_unix(seconds, u32::try_from(fraction).unwrap_or(0))
    }

    /// A value that no other file has, with the fingerprint.
    pub fn with_device(&self) -> String {
        format!("{:x}-{self}", self.device)
    }
}

/// The time that a change may stay invisible, in nanoseconds, on a filesystem with sub-second times.
const FINE: i128 = 100_000_000;

impl Fingerprint {
    /// Whether a change after `now`, in nanoseconds since 1970, gives another fingerprint.
    pub fn is_settled(&self, now: i128) -> bool {
        let (seconds, fraction) = self.change;
        let coarse = match fraction {
            0 => i128::from(COARSE) * 1_000_000_000,
            _ => FINE,
        };
        i128::from(seconds) * 1_000_000_000 + i128::from(fraction) + coarse < now
    }
}

/// The paths recorded in an item, each with its fingerprint; None where nothing is visible.
type Fingerprints = BTreeMap<Vec<u8>, Option<Fingerprint>>;

/// Records what an answer depends on. A path is recorded before it is read, so that a change in between
/// invalidates the answer.
#[derive(Debug, Default)]
pub struct Dependencies {
    fingerprints: RefCell<BTreeMap<Place, Fingerprints>>,
    count: Cell<usize>,
    is_given_up: Cell<bool>,
    /// The time until when the other things that the answer depends on are valid.
    until: Cell<Option<Instant>>,
}

impl Dependencies {
    /// Prevents a validator: the answer depends on something that cannot be checked again.
    pub fn give_up(&self) {
        self.is_given_up.set(true);
    }

    /// Limits the validity of the answer.
    pub fn end_at(&self, until: Instant) {
        let before = self.until.get();
        self.until
            .set(Some(before.map_or(until, |it| it.min(until))));
    }

    /// Calls `read` after recording a path of an item and all levels above it in the item, if anything is recorded.
    pub fn at<T>(
        recorded: Option<&Dependencies>,
        item: &OpenItem,
        path: &[u8],
        read: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        recorded.inspect(|it| it.note(item, path));
        let found = read();
        // Any other error, such as too many open files, may not occur the next time.
        if let Err(errno) = &found
            && unseen(*errno).is_err()
            && let Some(recorded) = recorded
        {
            recorded.give_up();
        }
        found
    }

    fn note(&self, item: &OpenItem, path: &[u8]) {
        if self.is_given_up.get() {
            return;
        }
        let mut all = self.fingerprints.borrow_mut();
        let fingerprints = all.entry(item.place.clone()).or_default();
        let ends = path.iter().enumerate();
        let slashes = ends.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let root = std::iter::once(0);
        for end in root.chain(slashes).chain(std::iter::once(path.len())) {
            let part = path.get(..end).unwrap_or_default();
            let fingerprint = match fingerprints.get(part) {
                Some(known) => *known,
                None => {
                    let Ok(found) = fingerprint_of(item, part) else {
                        return self.give_up();
                    };
                    fingerprints.insert(part.to_vec(), found);
                    self.count.set(self.count.get() + 1);
                    found
                }
            };
            // Nothing can exist below it.
            if fingerprint.is_none() {
                break;
            }
        }
        if self.count.get() > MOST_PATHS {
            self.give_up();
        }
    }

    /// The validator of everything recorded. None where one of the paths had changed shortly before `began`,
    /// the time of the first record in seconds since 1970: a later change of it may be invisible.
    pub fn validator(self, began: i64) -> Option<Validator> {
        let fingerprints = self.fingerprints.into_inner();
        let mut known = fingerprints.values().flat_map(BTreeMap::values).flatten();
        let is_settled =
            known.all(|fingerprint| fingerprint.change.0 < began.saturating_sub(COARSE));
        (is_settled && !self.is_given_up.get()).then(|| Validator {
            until: self.until.get(),
            items: fingerprints
                .into_iter()
                .map(|(place, fingerprints)| (place, fingerprints.into_iter().collect()))
                .collect(),
        })
    }
}

/// The fingerprint of a path; None where nothing is visible there. ELOOP for a symbolic link.
fn fingerprint_of(item: &OpenItem, path: &[u8]) -> Result<Option<Fingerprint>, Errno> {
    let found = match path {
        [] => rustix::fs::fstat(&item.directory),
        path => rustix::fs::statat(&item.directory, path, AtFlags::SYMLINK_NOFOLLOW),
    };
    match found {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Err(Errno::LOOP),
        Ok(stat) => Ok(Some(Fingerprint::of(&stat))),
        Err(errno) => unseen(errno).map(|()| None),
    }
}

/// Succeeds for errors that mean that nothing is visible at a path, and returns all others.
fn unseen(errno: Errno) -> Result<(), Errno> {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::NAMETOOLONG => Ok(()),
        errno => Err(errno),
    }
}

/// The fingerprints of all paths that an answer depends on, by item.
#[derive(Debug)]
pub struct Validator {
    items: Vec<(Place, Paths)>,
    until: Option<Instant>,
}

/// [`Fingerprints`] as a list.
type Paths = Vec<(Vec<u8>, Option<Fingerprint>)>;

impl Validator {
    /// Whether nothing has changed; false where the kernel cannot answer without waiting for a disk.
    pub fn is_current(&self, tree: &Tree) -> bool {
        let is_over = self.until.is_some_and(|until| until <= Instant::now());
        !is_over
            && self.items.iter().all(|(place, fingerprints)| {
                let Ok(item) = tree.open_cached(place) else {
                    return false;
                };
                let mut fingerprints = fingerprints.iter();
                fingerprints.all(|(path, fingerprint)| {
                    fingerprint_cached(&item, path).is_ok_and(|found| found == *fingerprint)
                })
            })
    }

    /// The approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        let of_marks = |fingerprints: &Paths| -> usize {
            let each = fingerprints
                .iter()
                .map(|(path, _)| path.len() + size_of::<(Vec<u8>, Option<Fingerprint>)>());
            each.sum()
        };
        let items = self.items.iter();
        items
            .map(|(place, fingerprints)| place.as_str().len() + 64 + of_marks(fingerprints))
            .sum()
    }
}

/// Like [`fingerprint_of`], but without waiting for a disk.
fn fingerprint_cached(item: &OpenItem, path: &[u8]) -> Result<Option<Fingerprint>, Errno> {
    if path.is_empty() {
        return rustix::fs::fstat(&item.directory).map(|stat| Some(Fingerprint::of(&stat)));
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
    match rustix::fs::openat2(&item.directory, path, flags, Mode::empty(), resolve) {
        Ok(found) => rustix::fs::fstat(&found).map(|stat| Some(Fingerprint::of(&stat))),
        Err(errno) => unseen(errno).map(|()| None),
    }
}
