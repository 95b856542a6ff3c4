//! The ledger of the copies of items: a file `copies` beside the records of a scrub, in `fixity/`, for each item, and a
//! file `backups.ibi` for the store, which no backup has.
//!
//! A command that compares a copy with its item notes it here: a copy to or from another store, a transfer; and one that writes
//! a package. The records belong to
//! the store, not to the item, survive a reindex and the removal of the item, and are in backups.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::archive::scrub::{self, DIRECTORY, ScrubError};
use crate::archive::tree::{Action, Place, Tree, TreeError};
use crate::formats::copies::{
    self, BackupNote, CopyKind, KnownCopy, Proof, backups_text, copies_text, note_copy,
    parse_backups, parse_copies,
};
use crate::os::writing::Durability;
use ibi::Timestamp;

/// The directory with a file for each copy whose original was said to be withdrawn or removed, so that they are found without a
/// walk through all ledgers.
const GONE: &str = "fixity/gone";

/// The file of an item, and that of the store.
const COPIES: &str = "copies";
pub const BACKUPS: &str = "backups.ibi";

/// The directory with the same record of the backups for services. Only the owner of the store and root may enter the one above it.
pub const SHOWN_BACKUPS: &str = "fixity/backups";

/// The time for which another process may write, and the interval at which it is looked whether it does.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(10);

/// A ledger that is being written: no other process writes it meanwhile.
#[derive(Debug)]
pub struct CopyLedger<'a> {
    tree: &'a Tree,
    _lock: OwnedFd,
}

/// The copies of an item that are noted in a store.
pub fn noted_copies(tree: &Tree, place: &Place) -> Result<Vec<KnownCopy>, TreeError> {
    let text = tree.read_small(&format!("{DIRECTORY}/{}/{COPIES}", place.as_str()))?;
    Ok(parse_copies(&text.unwrap_or_default()))
}

/// The backups of a store that are noted in it.
pub fn noted_backups(tree: &Tree) -> Result<Vec<BackupNote>, TreeError> {
    let text = match tree.read_small(BACKUPS) {
        Err(error) if error.errno() == Errno::ACCESS => {
            tree.read_small(&format!("{SHOWN_BACKUPS}/{BACKUPS}"))
        }
        read => read,
    };
    Ok(parse_backups(&text?.unwrap_or_default()))
}

/// Writes the backups of a store, also where a service reads them that has given up root and may not enter the store.
fn write_backups(tree: &Tree, backups: &[BackupNote]) -> Result<(), TreeError> {
    let text = backups_text(backups);
    tree.write_small(".", BACKUPS, text.as_bytes(), None)?;
    if tree.is_directory(SHOWN_BACKUPS) {
        show_backups(tree, &text)?;
    }
    Ok(())
}

fn show_backups(tree: &Tree, text: &str) -> Result<(), TreeError> {
    let unsynced = Durability::Unsynced;
    tree.write_beside(SHOWN_BACKUPS, BACKUPS, text.as_bytes(), unsynced)
}

/// Makes what a service needs that opens the store as root and gives that up: the records of later scrubs, copies and backups are
/// found from there.
///
/// # Errors
/// The store cannot be written.
pub fn prepare_for_service(tree: &Tree) -> Result<(), ScrubError> {
    scrub::prepare(tree)?;
    tree.make_directories(SHOWN_BACKUPS)?;
    Ok(show_backups(tree, &backups_text(&noted_backups(tree)?))?)
}

/// Notes a backup in a store. Of two that end at once one may be missing until it is made again.
pub fn note_backup(tree: &Tree, made: BackupNote) -> Result<(), TreeError> {
    let mut backups = noted_backups(tree)?;
    copies::note_backup(&mut backups, made);
    write_backups(tree, &backups)
}

/// Notes that a backup that is noted was proved by a drill.
pub fn note_drill(tree: &Tree, directory: &str, proof: Proof) -> Result<(), TreeError> {
    change_backup(tree, directory, |known| known.proof = Some(proof))
}

/// Notes where a backup is that is noted.
pub fn note_place(tree: &Tree, directory: &str, place: Vec<String>) -> Result<(), TreeError> {
    change_backup(tree, directory, |known| known.place = place)
}

fn change_backup(
    tree: &Tree,
    directory: &str,
    change: impl FnOnce(&mut BackupNote),
) -> Result<(), TreeError> {
    let mut backups = noted_backups(tree)?;
    let Some(known) = backups.iter_mut().find(|it| it.directory == directory) else {
        return Ok(());
    };
    change(known);
    write_backups(tree, &backups)
}

/// Notes that a package of an item was written, at the path by which the user calls it.
///
/// # Errors
/// The ledger cannot be written, or another process holds it.
pub fn note_export(
    tree: &Tree,
    place: &Place,
    path: &str,
    made: Timestamp,
) -> Result<(), ScrubError> {
    let copy = KnownCopy {
        made: Some(made),
        ..KnownCopy::new(CopyKind::Export, path.to_owned())
    };
    CopyLedger::of(tree)?.note(place, copy)
}

/// Marks a copy whose original is said to be withdrawn or removed.
pub fn mark_gone(tree: &Tree, place: &Place) -> Result<(), TreeError> {
    let path = format!("{GONE}/{}", place.as_str());
    let (directory, name) = path.rsplit_once('/').unwrap_or_default();
    tree.make_directories(directory)?;
    tree.write_beside(directory, name, b"", Durability::Unsynced)
}

/// The places of copies that were marked so, whatever was decided since.
pub fn marked_gone(tree: &Tree) -> Vec<String> {
    scrub::marked_items(tree, GONE)
}

impl CopyLedger<'_> {
    /// Begins to write the ledger of a store. It waits a while for another process that does.
    pub fn of(tree: &Tree) -> Result<CopyLedger<'_>, ScrubError> {
        scrub::prepare(tree)?;
        let failed = |errno| tree.error(Action::Lock, DIRECTORY, errno);
        let lock = tree.open_far(DIRECTORY.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY);
        let lock = lock.map_err(failed)?;
        let until = Instant::now() + BUSY_TIMEOUT;
        loop {
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                // The owner of the store may hold it for ever.
                Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(TURN),
                taken => break taken.map_err(failed)?,
            }
        }
        Ok(CopyLedger { tree, _lock: lock })
    }

    /// Notes a copy of an item.
    pub fn note(&self, place: &Place, copy: KnownCopy) -> Result<(), ScrubError> {
        self.change(place, |copies| note_copy(copies, copy))
    }

    /// Changes the known copies of an item. It is not waited for the disk: what a power cut loses is to be proved again.
    pub fn change(
        &self,
        place: &Place,
        act: impl FnOnce(&mut Vec<KnownCopy>),
    ) -> Result<(), ScrubError> {
        scrub::take_over(self.tree, place.as_str())?;
        let directory = format!("{DIRECTORY}/{}", place.as_str());
        self.tree.make_directories(&directory)?;
        let before = noted_copies(self.tree, place)?;
        let mut copies = before.clone();
        act(&mut copies);
        if copies.iter().all(|copy| copy.gone.is_none())
            && let Err(error) = scrub::remove_marks(self.tree, GONE, place.as_str())
        {
            log::debug!("{error}");
        }
        if copies == before {
            return Ok(());
        }
        let text = copies_text(&copies);
        let written =
            self.tree
                .write_beside(&directory, COPIES, text.as_bytes(), Durability::Unsynced);
        Ok(written?)
    }
}
