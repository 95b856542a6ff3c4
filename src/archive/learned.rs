//! What the service for audits by other Archives learns of copies and of the files here, for a process that may write the ledger.
//!
//! `audit/` in the store has a file for each listed Archive. The service opens it before it gives up its rights, and adds to it.
//! The daemon and commands take from it what the service could know: of items that all users may read, a comparison by that
//! Archive, which is noted in the ledger, and files that are not what was recorded of them, which are marked.
//!
//! A file has a limit, and an Archive has one line in the ledger of an item, so that a listed Archive that asks all the time
//! fills nothing. What does not fit is learned again.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::audit::note_gone;
use super::copies::{CopyLedger, noted_copies};
use super::operations::{Archive, Clock, SystemClock};
use super::scrub::{ScrubError, mark_found};
use super::signing_key::{KeyError, errno_of, failed, key_directory};
use super::store::{By, Item};
use super::transfer::TransferError;
use super::tree::{Action, Place, Tree};
use crate::formats::audit::{SaidOfItself, is_name_of};
use crate::formats::base_url::BaseUrl;
use crate::formats::copies::{CopyKind, KnownCopy, Proof, note_copy_of};
use crate::formats::fixity::{Found, shown};
use crate::formats::history::EventKind;
use crate::formats::item::Names;
use crate::formats::learned::{Learned, LearnedFrom, batch_text, parse_batches};
use crate::formats::tlog::note::VerifierKey;
use crate::formats::tlog::witness::file_name;
use crate::os::caller::act_as_process;
use crate::os::directory::Directory;
use crate::os::mounts::is_trusted;
use crate::os::processors;
use crate::os::writing;
use ibi::Timestamp;

/// The directory in the store of keys and of what was learned.
pub const AUDIT: &str = "audit";
/// The longest file, in bytes: some 60,000 items.
const LONGEST: u64 = 4 << 20;
/// The time that it waits for another process, and the interval at which it looks.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(10);
/// The interval at which a daemon takes in what was learned.
const TAKEN_EVERY: Duration = Duration::from_secs(60);
/// The most events that the history gets at a time of what one Archive has shown.
const MOST_EVENTS: usize = 20;

/// The file for an Archive, open.
#[derive(Debug)]
pub(super) struct LearnedFile(Mutex<File>);

/// The name of the file for an Archive.
fn name_of(key: &VerifierKey) -> String {
    format!("learned-{}", file_name(&key.to_string()))
}

/// Opens a file, which must be of the owner of the directory, and have no other name.
fn opened(directory: &Directory, name: &str) -> Result<File, Errno> {
    let file = directory.file_to_change(name)?;
    let (found, above) = (rustix::fs::fstat(&file)?, directory.stat()?);
    let is_own = found.st_uid == above.st_uid || is_trusted(found.st_uid);
    (is_own && found.st_nlink == 1)
        .then_some(file)
        .ok_or(Errno::PERM)
}

/// Takes the lock of a file, which its owner may hold for ever.
fn lock(file: impl AsFd) -> Result<(), Errno> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(TURN),
            Err(Errno::INTR) => {}
            taken => return taken,
        }
    }
}

impl LearnedFile {
    /// Opens the file for an Archive; makes it where it is missing.
    ///
    /// # Errors
    /// The store cannot be written, or another user has made the file.
    pub(super) fn open(store: &Tree, key: &VerifierKey) -> Result<LearnedFile, KeyError> {
        let directory = key_directory(store, AUDIT)?;
        let name = name_of(key);
        let file = match opened(&directory, &name) {
            Err(Errno::NOENT) => writing::create(&directory, &name, b"", 0o600, None)
                .and_then(|_| opened(&directory, &name)),
            opened => opened,
        };
        let path = format!("{AUDIT}/{name}");
        let file = file.map_err(|errno| failed(Action::Open, &path, errno))?;
        Ok(LearnedFile(Mutex::new(file)))
    }

    /// Adds what was learned. It is not waited for the disk. Returns whether it could be added.
    pub(super) fn add(&self, from: &LearnedFrom, lines: &[Learned]) -> bool {
        if lines.is_empty() {
            return true;
        }
        let text = batch_text(from, lines);
        let file = self.0.lock();
        let add = || {
            lock(&*file)?;
            let length = u64::try_from(rustix::fs::fstat(&*file)?.st_size).unwrap_or(LONGEST);
            let fits = length + text.len() as u64 <= LONGEST;
            let added = if fits {
                file.write_all_at(text.as_bytes(), length)
            } else {
                Err(Errno::DQUOT.into())
            };
            let _ = rustix::fs::flock(&*file, FlockOperation::Unlock);
            added.map_err(|error| errno_of(&error))
        };
        let added = add();
        match added {
            Ok(()) => {}
            Err(Errno::DQUOT) => log::info!(
                "what an audit has shown is not noted: the file for it is full until 'ibifs copies' or a mount takes it in"
            ),
            Err(errno) => log::warn!("what an audit has shown is not noted: {errno}"),
        }
        added.is_ok()
    }
}

/// Takes in what the service has learned of all listed Archives, as far as this process may.
pub fn take_in(archive: &Archive) {
    for (url, key) in &archive.facts().audits {
        if let Err(error) = take_in_of(archive, url, key) {
            log::warn!("what audits by {url} have shown is not noted: {error}");
        }
    }
}

/// Runs a thread that takes in what the service learns, until the Archive is closed. Does nothing if no Archive is listed.
///
/// # Errors
/// There can be no more threads.
pub fn keep_taking_in(archive: &Arc<Archive>) -> std::io::Result<()> {
    if archive.facts().audits.is_empty() {
        return Ok(());
    }
    let archive = Arc::downgrade(archive);
    processors::spawn_unbound("learned", move || {
        act_as_process();
        while let Some(archive) = archive.upgrade() {
            take_in(&archive);
            drop(archive);
            std::thread::sleep(TAKEN_EVERY);
        }
    })
}

fn take_in_of(archive: &Archive, url: &BaseUrl, key: &VerifierKey) -> Result<(), KeyError> {
    let name = name_of(key);
    let path = format!("{AUDIT}/{name}");
    let failed = |action| move |errno| failed(action, &path, errno);
    let found = Directory::reopened(archive.tree().root())
        .and_then(|store| store.directory(AUDIT))
        .and_then(|directory| opened(&directory, &name));
    let file = match found {
        // Nothing was learned, or this user does not note it.
        Err(Errno::NOENT | Errno::ACCESS | Errno::ROFS) => return Ok(()),
        found => found.map_err(failed.clone()(Action::Open))?,
    };
    let is_empty = rustix::fs::fstat(&file).is_ok_and(|found| found.st_size == 0);
    if is_empty {
        return Ok(());
    }
    lock(&file).map_err(failed.clone()(Action::Lock))?;
    let mut bytes = Vec::new();
    let read = (&file).take(LONGEST).read_to_end(&mut bytes);
    read.map_err(|error| failed.clone()(Action::Read)(errno_of(&error)))?;
    let mut taking = Taking {
        archive,
        url,
        key,
        events: 0,
    };
    taking.all(&bytes);
    // What a crash before this leaves is taken in again, and changes nothing then.
    let emptied = file.set_len(0);
    emptied.map_err(|error| failed(Action::Write)(errno_of(&error)))
}

/// The lines of one Archive that are taken in.
struct Taking<'a> {
    archive: &'a Archive,
    url: &'a BaseUrl,
    key: &'a VerifierKey,
    /// The events that the history has got.
    events: usize,
}

impl Taking<'_> {
    fn all(&mut self, bytes: &[u8]) {
        let now = SystemClock.now();
        for (from, lines) in parse_batches(bytes) {
            if from.at > now {
                continue;
            }
            for line in lines {
                if let Err(error) = self.line(&from, &line) {
                    log::warn!("{}: {error}", line.item());
                }
            }
        }
    }

    fn line(&mut self, from: &LearnedFrom, line: &Learned) -> Result<(), TransferError> {
        let names = Names::from(line.item().clone());
        if let Learned::Gone(_, gone) = line {
            let is_it = |holder: &str| is_name_of(holder, self.url, self.key);
            let is_told = self.events < MOST_EVENTS;
            let is_new = gone.at <= SystemClock.now()
                && note_gone(self.archive, &names, gone, &is_it, is_told)?;
            self.events += usize::from(is_new);
            return Ok(());
        }
        let Some(item) = self.archive.held(&names)? else {
            return Ok(());
        };
        let is_public = item.life.withdrawn.is_none()
            && self.archive.tree().is_for_all(&Place::of(&item.names));
        if !is_public {
            return Ok(());
        }
        match line {
            Learned::Compared(_, is_good) => Ok(self.compared(from, &item, *is_good)?),
            Learned::Damaged(_, path, found) => Ok(self.damaged(&item, path, *found)?),
            Learned::Gone(..) => Ok(()),
        }
    }

    fn compared(
        &mut self,
        from: &LearnedFrom,
        item: &Item,
        is_good: bool,
    ) -> Result<(), ScrubError> {
        let (tree, place) = (self.archive.tree(), Place::of(&item.names));
        let is_its = |copy: &KnownCopy| {
            copy.kind == CopyKind::Archive && is_name_of(&copy.holder, self.url, self.key)
        };
        let known = noted_copies(tree, &place)?;
        let proofs = known.iter().filter(|copy| is_its(copy));
        let last = proofs.filter_map(|copy| copy.proof.as_ref());
        let last = last.max_by(|one, other| one.at.cmp(&other.at)).cloned();
        if last.as_ref().is_some_and(|last| last.at > from.at) {
            return Ok(());
        }
        let holder = SaidOfItself::holder(from.service.as_deref(), self.url, self.key);
        let copy = KnownCopy {
            place: from.place.clone(),
            proof: Some(Proof {
                at: Timestamp::from_unix(from.at.seconds(), 0),
                is_good,
            }),
            ..KnownCopy::new(CopyKind::Archive, holder.clone())
        };
        CopyLedger::of(tree)?.change(&place, |copies| note_copy_of(copies, copy, &is_its))?;
        // As an audit from here does it.
        if last.is_none_or(|it| it.is_good) != is_good {
            let kind = if is_good {
                EventKind::Audited
            } else {
                EventKind::Differs
            };
            self.tell(kind, item, &holder);
        }
        Ok(())
    }

    fn damaged(&mut self, item: &Item, path: &[u8], found: Found) -> Result<(), ScrubError> {
        let place = Place::of(&item.names);
        if mark_found(self.archive.tree(), place.as_str(), path, found)? {
            let word = if found == Found::Nothing {
                "lost"
            } else {
                "damaged"
            };
            let note = format!("{word} {}", shown(path));
            self.tell(EventKind::Damaged, item, &note);
        }
        Ok(())
    }

    fn tell(&mut self, kind: EventKind, item: &Item, note: &str) {
        if self.events < MOST_EVENTS {
            self.events += 1;
            self.archive
                .tell(By::Program, kind, Some(&item.names), note);
        }
    }
}
