//! The position of a pass, in `fixity/progress`. A running scrub holds a lock on that file. Passes over parts of the
//! store, which several hosts may run at once, have files of their own beside it, and share the lock on that one.
//!
//! The position is written after each item, and so survives the end of the process. It is synced every few
//! seconds, and so survives a power cut. It is the first line: an incomplete line is ignored, and the pass begins
//! from the start. The second line has the time at which the last pass was completed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::finding::ScrubError;
use super::part::ScrubPart;
use super::records::DIRECTORY;
use crate::archive::tree::Action;
use crate::archive::tree::Tree;
use crate::os::writing::Durability;
use ibi::Timestamp;
use ibi::pairs::{percent_decode, percent_encode};

const NAME: &str = "progress";

/// The interval at which the position is synced.
const SYNCED_EVERY: Duration = Duration::from_secs(5);

/// The locked file.
#[derive(Debug)]
pub(super) struct ScrubPosition {
    file: File,
    name: String,
    /// The file of whole passes, and which part of one this is.
    whole: Option<(File, ScrubPart)>,
    last: Option<String>,
    /// The time at which a pass was last completed, in Unix seconds.
    completed: Option<i64>,
    synced: Instant,
}

/// Makes what a scrub records in, so that a service that opens it as root finds there what later scrubs record.
///
/// # Errors The store cannot be written.
pub fn prepare(tree: &Tree) -> Result<(), ScrubError> {
    opened(tree, NAME)?;
    for area in ["col", "ibip", "damaged"] {
        tree.make_directories(&format!("{DIRECTORY}/{area}"))?;
    }
    Ok(())
}

/// The file of the position in `fixity/`; both are made where they are missing.
fn opened(tree: &Tree, name: &str) -> Result<File, ScrubError> {
    // A user who may not look into the items may not see names and digests of files.
    match rustix::fs::mkdirat(tree.root(), DIRECTORY, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(tree.error(Action::Make, DIRECTORY, errno).into()),
    }
    let directory = tree.open_directory(DIRECTORY)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o644);
    let opened = rustix::fs::openat(&directory, name, flags, mode);
    Ok(File::from(
        opened.map_err(|errno| failed(tree, name, errno.into()))?,
    ))
}

fn lock(tree: &Tree, name: &str, file: &File, how: FlockOperation) -> Result<(), ScrubError> {
    match rustix::fs::flock(file, how) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(ScrubError::Busy),
        Err(errno) => Err(failed(tree, name, errno.into())),
    }
}

/// The file of a part.
fn name_of(part: ScrubPart) -> String {
    format!("{NAME}-{}-of-{}", part.number(), part.count())
}

impl ScrubPosition {
    /// Makes `fixity/` where it is missing, takes the lock and reads the position of an interrupted pass.
    pub(super) fn take(tree: &Tree, part: Option<ScrubPart>) -> Result<ScrubPosition, ScrubError> {
        let whole = opened(tree, NAME)?;
        let (file, name, whole) = match part {
            None => (whole, NAME.to_owned(), None),
            Some(part) => {
                lock(tree, NAME, &whole, FlockOperation::NonBlockingLockShared)?;
                let name = name_of(part);
                (opened(tree, &name)?, name, Some((whole, part)))
            }
        };
        lock(tree, &name, &file, FlockOperation::NonBlockingLockExclusive)?;
        let noted = read(&file).map_err(|error| failed(tree, &name, error))?;
        Ok(ScrubPosition {
            file,
            name,
            whole,
            last: noted.last,
            completed: noted.completed,
            synced: Instant::now(),
        })
    }

    /// The last item that an interrupted pass completed.
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Whether the next position is to be synced.
    pub(super) fn is_sync_due(&self) -> bool {
        self.synced.elapsed() > SYNCED_EVERY
    }

    /// Records that an item is done.
    pub(super) fn mark(
        &mut self,
        tree: &Tree,
        item: &str,
        durability: Durability,
    ) -> Result<(), ScrubError> {
        let mut text = format!("last {}\n", percent_encode(item));
        if let Some(completed) = self.completed {
            text.push_str(&completed_line(completed));
        }
        self.write(tree, &text, durability)
    }

    /// Records that the pass is done.
    pub(super) fn finish(&mut self, tree: &Tree) -> Result<(), ScrubError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since.map_or(0, |since| since.as_secs().cast_signed());
        self.completed = Some(now);
        let text = format!("\n{}", completed_line(now));
        self.write(tree, &text, Durability::Synced)?;
        let Some((whole, part)) = &self.whole else {
            return Ok(());
        };
        // A pass is complete when all parts are, as of the one that was completed first.
        let mut first = now;
        for part in part.all() {
            let name = name_of(part);
            let path = format!("{DIRECTORY}/{name}");
            let file = tree.open_far(path.as_bytes(), OFlags::RDONLY | OFlags::NOFOLLOW);
            let completed = file
                .ok()
                .and_then(|file| read(&File::from(file)).ok()?.completed);
            match completed {
                Some(completed) => first = first.min(completed),
                None => return Ok(()),
            }
        }
        let text = format!("\n{}", completed_line(first));
        write(whole, &text, Durability::Synced).map_err(|error| failed(tree, NAME, error))
    }

    fn write(&mut self, tree: &Tree, text: &str, durability: Durability) -> Result<(), ScrubError> {
        let written = write(&self.file, text, durability);
        if durability == Durability::Synced {
            self.synced = Instant::now();
        }
        written.map_err(|error| failed(tree, &self.name, error))
    }
}

fn write(file: &File, text: &str, durability: Durability) -> std::io::Result<()> {
    // A line is read up to its end: the rest of a longer old one does no harm until it is cut off.
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)?;
    match durability {
        Durability::Synced => file.sync_data(),
        Durability::Unsynced => Ok(()),
    }
}

fn completed_line(seconds: i64) -> String {
    let time = Timestamp::from_unix(seconds, 0);
    format!("completed {}\n", time.to_rfc3339())
}

/// The file with the last completed pass. It stays open, since a service that has given up root cannot open it: a scrub
/// never replaces it.
#[derive(Debug)]
pub struct LastScrub(File);

impl LastScrub {
    /// Opens the file. None if the store was never scrubbed.
    pub fn open(tree: &Tree) -> Option<LastScrub> {
        let path = format!("{DIRECTORY}/{NAME}");
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = tree.open_far(path.as_bytes(), flags).ok()?;
        Some(LastScrub(File::from(file)))
    }

    /// Returns when the last pass was completed, in Unix seconds. None if none was.
    pub fn completed(&self) -> Option<i64> {
        read(&self.0).ok()?.completed
    }
}

/// The contents of the file.
#[derive(Debug, Default)]
struct Noted {
    last: Option<String>,
    completed: Option<i64>,
}

fn read(file: &File) -> std::io::Result<Noted> {
    let mut bytes = vec![0; 64 * 1024];
    let count = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let Some((first, rest)) = text.split_once('\n') else {
        return Ok(Noted::default());
    };
    let last = first.strip_prefix("last ");
    let last = last.and_then(|path| String::from_utf8(percent_decode(path)).ok());
    let completed = rest.split_once('\n').and_then(|(line, _)| {
        let time = line.strip_prefix("completed ")?;
        Some(Timestamp::parse_rfc3339(time).ok()?.seconds())
    });
    Ok(Noted { last, completed })
}

fn failed(tree: &Tree, name: &str, error: std::io::Error) -> ScrubError {
    let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
    tree.error(Action::Use, &format!("{DIRECTORY}/{name}"), errno)
        .into()
}
