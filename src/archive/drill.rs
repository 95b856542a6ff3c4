//! A restore that is tried: a backup is restored to a scratch directory, opened there and compared.
//!
//! Each file that was restored is compared with the backup, and with the digest that a scrub has recorded of it.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::archive::backup::{self, BackupError, BackupFinding};
use crate::archive::finding::{Reporter, findings};
use crate::archive::scrub::{self, Finished};
use crate::archive::store::{ItemId, Store};
use crate::archive::transfer::{Local, TransferError};
use crate::archive::tree::{Place, joined};
use crate::archive::{Archive, ArchiveError, Clock, SystemClock};
use crate::formats::item::State;
use crate::os::directory::{Directory, is_own};
use crate::os::mounts::is_trusted;
use crate::os::private_directory::PrivateDirectory;
use crate::os::random;
use ibi::message;
use ibi::message::{Localize, Message};

/// The number of items that are read from the index at once.
const PAGE: usize = 1000;
/// The beginning of the name of the directory of a drill, and its lock.
const PREFIX: &str = "ibifs-drill-";
const ALONE: FlockOperation = FlockOperation::NonBlockingLockExclusive;

findings! {
    /// The kind of a finding of a drill.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DrillCode {
        // It is not what a scrub had recorded.
        Damaged "damaged" Error
            "does not have the digest that is recorded in the backup, or was written there later"
        // The restored file is another one.
        Differs "differs" Error
            "is not restored as it is in the backup"
        // It was not restored, or cannot be read again.
        NotRestored "not-restored" Error
            "cannot be restored"
    }
}

/// One finding of a drill.
#[derive(Clone, Debug)]
pub struct DrillFinding {
    /// The kind of finding.
    pub code: DrillCode,
    /// The path, relative to the store.
    pub path: Vec<u8>,
    /// More about this case.
    pub detail: Option<Message>,
}

/// Counts of what a drill has done.
#[derive(Clone, Debug, Default)]
pub struct DrillTally {
    /// Items that were restored.
    pub items: u64,
    /// Bytes that were written for them.
    pub bytes: u64,
    /// Items that were compared.
    pub compared: u64,
    /// Their files.
    pub files: u64,
    /// Those of which a digest was recorded.
    pub recorded: u64,
    /// Number of findings.
    pub found: u64,
    /// The time that it took.
    pub took: Duration,
}

/// Restores all items of a backup, or so many, to a scratch directory below another one, and compares them.
pub fn drill(
    path: &Path,
    scratch: &Path,
    sample: Option<usize>,
    clock: &dyn Clock,
    report: &mut Reporter<'_, DrillFinding>,
) -> Result<DrillTally, TransferError> {
    let started = Instant::now();
    let failed = |errno| {
        TransferError::System(message!(
            "making a directory in '{scratch}': {error}",
            scratch = scratch.display(),
            error = std::io::Error::from(errno)
        ))
    };
    let above = Directory::open(scratch).map_err(failed)?;
    let stat = above.stat().map_err(failed)?;
    let is_sticky = stat.st_mode & 0o1000 != 0;
    if !is_trusted(stat.st_uid) || (stat.st_mode & 0o022 != 0 && !is_sticky) {
        let path = scratch.to_owned();
        return Err(BackupError::OfOthers { path }.into());
    }
    remove_left(&above).map_err(failed)?;
    let made = PrivateDirectory::make(&above, PREFIX).map_err(failed)?;
    rustix::fs::flock(&*made, ALONE).map_err(failed)?;
    let place = scratch.join(made.name()).join("store");
    let done = restored(path, &place, sample, clock, report);
    let closed = made.close();
    let mut tally = done?;
    closed.map_err(failed)?;
    tally.took = started.elapsed();
    Ok(tally)
}

/// Removes what drills of this user have left that were killed: a running one holds a lock.
fn remove_left(scratch: &Directory) -> Result<(), Errno> {
    for (name, _) in scratch.entries()? {
        if name.starts_with(PREFIX.as_bytes())
            && let Ok(left) = scratch.directory(&name)
            && is_own(&left.stat()?)
            && rustix::fs::flock(&left, ALONE).is_ok()
        {
            left.clear()?;
            scratch.remove_directory(&name)?;
        }
    }
    Ok(())
}

fn restored(
    path: &Path,
    place: &Path,
    sample: Option<usize>,
    clock: &dyn Clock,
    report: &mut Reporter<'_, DrillFinding>,
) -> Result<DrillTally, TransferError> {
    let backup = Local::reading(path)?;
    let mut drill = Drill {
        finished: Archive::finished_backup(path),
        tally: DrillTally::default(),
        report,
    };
    let mut left = Vec::new();
    let mut note = |finding: &BackupFinding| {
        // What is wrong in the store itself is so in the backup, and no fault of it.
        if finding.code.is_incomplete() {
            left.push((finding.path.clone(), finding.sentence()));
        }
        Ok(())
    };
    let mut places = places_of(backup.archive().store())?;
    let made = match sample {
        None => backup::make_unnoted(backup.archive(), place, clock, &mut note, &mut |_| ())?,
        Some(count) => {
            choose(&mut places, count)?;
            backup::make_of_some(backup.archive(), place, &places, &mut note)?
        }
    };
    (drill.tally.items, drill.tally.bytes) = (made.items, made.bytes);
    for (path, why) in left {
        drill.found(DrillCode::NotRestored, path, Some(why))?;
    }
    // As one who goes on with it would.
    let again = Archive::open(place, Box::new(SystemClock))?;
    for place in &places {
        drill.compare(backup.archive(), &again, place)?;
    }
    again.close();
    Ok(drill.tally)
}

/// The places of all items.
fn places_of(index: &Store) -> Result<Vec<Place>, ArchiveError> {
    let (mut places, mut after) = (Vec::new(), ItemId(0));
    loop {
        let items = index.items_after(after, PAGE)?;
        let Some(last) = items.last() else {
            return Ok(places);
        };
        after = last.id;
        let held = items.iter().filter(|item| item.state != State::Deleted);
        places.extend(held.map(|item| Place::of(&item.names)));
    }
}

/// Leaves so many, chosen by chance.
fn choose(places: &mut Vec<Place>, count: usize) -> Result<(), TransferError> {
    let count = count.min(places.len());
    for at in 0..count {
        let drawn = random::draw::<8>()
            .map_err(|errno| TransferError::System(std::io::Error::from(errno).message()))?;
        let rest = (places.len() - at) as u64;
        let other = usize::try_from(u64::from_le_bytes(drawn) % rest).unwrap_or_default();
        places.swap(at, at + other);
    }
    places.truncate(count);
    Ok(())
}

struct Drill<'a, 'b> {
    finished: Finished,
    tally: DrillTally,
    report: &'a mut Reporter<'b, DrillFinding>,
}

impl Drill<'_, '_> {
    fn found(
        &mut self,
        code: DrillCode,
        path: Vec<u8>,
        detail: Option<Message>,
    ) -> Result<(), TransferError> {
        self.tally.found += 1;
        let finding = DrillFinding { code, path, detail };
        (self.report)(&finding).map_err(|error| TransferError::System(error.message()))
    }

    /// Compares an item as it was restored with the backup.
    fn compare(
        &mut self,
        backup: &Archive,
        restored: &Archive,
        place: &Place,
    ) -> Result<(), TransferError> {
        self.tally.compared += 1;
        let path_of = |path: &[u8]| joined(place.as_str().as_bytes(), path);
        if !backup.tree().is_directory(place.as_str()) {
            let why = message!(
                "it is in the index and has no directory; the backup has lost it, or the store had lost it before"
            );
            return self.found(DrillCode::NotRestored, path_of(b""), Some(why));
        }
        let found = match scrub::item_digests(restored.tree(), place.as_str(), &mut |_, _| ()) {
            Ok(found) => found,
            Err(error) => {
                return self.found(DrillCode::NotRestored, path_of(b""), Some(error.message()));
            }
        };
        let finished = self.finished.clone();
        let (tree, mut progress) = (backup.tree(), |_, _| ());
        let wanted = scrub::digests_in_backup(tree, place.as_str(), finished, &mut progress)?;
        self.tally.files += wanted.manifest.len() as u64;
        self.tally.recorded += wanted.recorded;
        for path in &wanted.damaged {
            self.found(DrillCode::Damaged, path_of(path), None)?;
        }
        for path in &wanted.altered {
            let why = message!("its digest has been altered, not the file");
            self.found(DrillCode::Damaged, path_of(path), Some(why))?;
        }
        for path in &wanted.absent {
            let why = message!(
                "it is recorded and not there; the backup has lost it, or the store had lost it before"
            );
            self.found(DrillCode::NotRestored, path_of(path), Some(why))?;
        }
        for (path, why) in found.unread.into_iter().chain(wanted.unread) {
            self.found(DrillCode::NotRestored, path_of(&path), Some(why))?;
        }
        let (found, wanted) = (found.manifest, wanted.manifest);
        let mut paths: Vec<_> = found.keys().chain(wanted.keys()).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            if found.get(path) != wanted.get(path) {
                self.found(DrillCode::Differs, path_of(path), None)?;
            }
        }
        let sidecar = |archive: &Archive| archive.tree().read_sidecar(place);
        if sidecar(backup)? != sidecar(restored)? {
            let path = path_of(crate::archive::tree::SIDECAR.as_bytes());
            self.found(DrillCode::Differs, path, None)?;
        }
        Ok(())
    }
}
