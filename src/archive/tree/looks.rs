//! What was looked at to find something out, and whether it still is as it was then.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::{OpenItem, Place, Tree};

/// What needs more looks is not worth looking at again.
const MOST_LOOKS: usize = 256;
/// The clocks of filesystems are so coarse, in seconds: what has changed later than so long ago may have
/// changed once more and show the same time.
const COARSE: i64 = 2;

/// What differs as soon as a file or directory, what is in it, or who may do what with it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    device: u64,
    node: u64,
    length: i64,
    content: (i64, u64),
    change: (i64, u64),
}

impl Mark {
    pub(super) fn of(stat: &Stat) -> Mark {
        Mark {
            device: stat.st_dev,
            node: stat.st_ino,
            length: stat.st_size,
            content: (stat.st_mtime, stat.st_mtime_nsec),
            change: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// How long a change may go unseen, in nanoseconds, on a filesystem whose times have a fraction.
const FINE: i128 = 100_000_000;

impl Mark {
    /// Whether a change after this instant, in nanoseconds, shows.
    pub(super) fn is_settled(&self, now: i128) -> bool {
        let (seconds, fraction) = self.change;
        let coarse = match fraction {
            0 => i128::from(COARSE) * 1_000_000_000,
            _ => FINE,
        };
        i128::from(seconds) * 1_000_000_000 + i128::from(fraction) + coarse < now
    }
}

/// The paths looked at in an item, each with its mark; None where nothing could be seen.
type Marks = BTreeMap<Vec<u8>, Option<Mark>>;

/// Notes what is looked at: before it is, so that a change in between is seen afterwards.
#[derive(Debug, Default)]
pub struct Looks {
    marks: RefCell<BTreeMap<Place, Marks>>,
    count: Cell<usize>,
    is_spoiled: Cell<bool>,
}

impl Looks {
    /// Something was looked at that cannot be seen to be the same again.
    pub fn spoil(&self) {
        self.is_spoiled.set(true);
    }

    /// Looks at a path in an item, having noted it with all above it in the item.
    pub fn at<T>(
        &self,
        item: &OpenItem,
        path: &[u8],
        look: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.note(item, path);
        let found = look();
        // Any other error, such as too many open files, may be gone the next time.
        if let Err(errno) = &found
            && unseen(*errno).is_err()
        {
            self.spoil();
        }
        found
    }

    fn note(&self, item: &OpenItem, path: &[u8]) {
        if self.is_spoiled.get() {
            return;
        }
        let mut all = self.marks.borrow_mut();
        let marks = all.entry(item.place.clone()).or_default();
        let ends = path.iter().enumerate();
        let slashes = ends.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let root = std::iter::once(0);
        for end in root.chain(slashes).chain(std::iter::once(path.len())) {
            let part = path.get(..end).unwrap_or_default();
            let mark = match marks.get(part) {
                Some(known) => *known,
                None => {
                    let Ok(found) = look(item, part) else {
                        return self.spoil();
                    };
                    marks.insert(part.to_vec(), found);
                    self.count.set(self.count.get() + 1);
                    found
                }
            };
            // Nothing can be below it.
            if mark.is_none() {
                break;
            }
        }
        if self.count.get() > MOST_LOOKS {
            self.spoil();
        }
    }

    /// What was seen, where all of it lasts: what had changed shortly before `began`, when the first look
    /// was, in seconds, may have changed since without showing it.
    pub fn sight(self, began: i64) -> Option<Sight> {
        let marks = self.marks.into_inner();
        let mut known = marks.values().flat_map(BTreeMap::values).flatten();
        let is_settled = known.all(|mark| mark.change.0 < began.saturating_sub(COARSE));
        (is_settled && !self.is_spoiled.get()).then(|| Sight {
            items: marks
                .into_iter()
                .map(|(place, marks)| (place, marks.into_iter().collect()))
                .collect(),
        })
    }
}

/// The mark of what lies at a path; None where there is nothing to be seen. An error where a link does.
fn look(item: &OpenItem, path: &[u8]) -> Result<Option<Mark>, Errno> {
    let found = match path {
        [] => rustix::fs::fstat(&item.directory),
        path => rustix::fs::statat(&item.directory, path, AtFlags::SYMLINK_NOFOLLOW),
    };
    match found {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Err(Errno::LOOP),
        Ok(stat) => Ok(Some(Mark::of(&stat))),
        Err(errno) => unseen(errno).map(|()| None),
    }
}

/// Whether an error means that there is nothing, or nothing to be seen.
fn unseen(errno: Errno) -> Result<(), Errno> {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::NAMETOOLONG => Ok(()),
        errno => Err(errno),
    }
}

/// What was seen of items once.
#[derive(Debug)]
pub struct Sight {
    items: Vec<(Place, Paths)>,
}

/// The same as [`Marks`], to be gone through.
type Paths = Vec<(Vec<u8>, Option<Mark>)>;

impl Sight {
    /// Whether all is as it was, as far as the kernel can tell without waiting for a disk: false where
    /// it cannot.
    pub fn is_so_still(&self, tree: &Tree) -> bool {
        self.items.iter().all(|(place, marks)| {
            let Ok(item) = tree.open_at_hand(place) else {
                return false;
            };
            let mut marks = marks.iter();
            marks.all(|(path, mark)| look_again(&item, path).is_ok_and(|found| found == *mark))
        })
    }

    /// How many bytes it takes, roughly.
    pub fn size(&self) -> usize {
        let of_marks = |marks: &Paths| -> usize {
            let each = marks
                .iter()
                .map(|(path, _)| path.len() + size_of::<(Vec<u8>, Option<Mark>)>());
            each.sum()
        };
        let items = self.items.iter();
        items
            .map(|(place, marks)| place.as_str().len() + 64 + of_marks(marks))
            .sum()
    }
}

/// Like [`look`], without waiting for a disk.
fn look_again(item: &OpenItem, path: &[u8]) -> Result<Option<Mark>, Errno> {
    if path.is_empty() {
        return rustix::fs::fstat(&item.directory).map(|stat| Some(Mark::of(&stat)));
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
    match rustix::fs::openat2(&item.directory, path, flags, Mode::empty(), resolve) {
        Ok(found) => rustix::fs::fstat(&found).map(|stat| Some(Mark::of(&stat))),
        Err(errno) => unseen(errno).map(|()| None),
    }
}
