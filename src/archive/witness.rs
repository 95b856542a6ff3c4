//! The witness of an Archive, which cosigns checkpoints of the logs of others (C2SP tlog-witness).
//!
//! `witness/` in the store has its key, and a file for each log with the checkpoint that was cosigned last. A checkpoint is
//! cosigned only if it is proved that the log has grown from that one, and is on disk before its cosignature is returned. So
//! no two cosignatures contradict each other, also if two processes cosign, or the power fails.
//!
//! The files are opened before the process gives up its rights, and are not replaced. A file has two places: what is new is
//! written in the place that has not the last checkpoint, so that a crash meanwhile leaves that one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{Advice, FlockOperation};
use rustix::io::Errno;

use super::signing_key::{KeyError, errno_of, failed, key, key_directory, make};
use super::tree::{Action, Tree};
use crate::formats::fixity::Digest;
use crate::formats::tlog::LogError;
use crate::formats::tlog::checkpoint::{Checkpoint, cosign};
use crate::formats::tlog::merkle::{check_consistency, empty};
use crate::formats::tlog::note::{KeyKind, Signature, SignerKey, VerifierKey};
use crate::formats::tlog::witness::{AddCheckpoint, file_name, record, recorded};
use crate::os::directory::Directory;

/// The directory of the witness in the store.
pub const WITNESS: &str = "witness";
/// The bytes of a place in the file of a log: what a disk writes at once is not in two of them.
const PLACE: usize = 4096;
/// The time that a request waits for another one, perhaps of another process, about the same log.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a checkpoint is not cosigned.
#[derive(Debug)]
pub enum NotCosigned {
    /// It is no checkpoint.
    Malformed(LogError),
    /// It is older than the one from which the hashes lead to it.
    Older,
    /// It is of a log that is not listed.
    UnknownLog,
    /// No listed key of the log has signed it.
    NotSigned,
    /// The checkpoint of the log that was cosigned last has this size, and perhaps another root.
    Conflict(u64),
    /// The hashes do not show that the log has grown from that checkpoint.
    NotGrown,
    /// Another request about the log takes too long.
    Busy,
    /// What is known of the log cannot be read or written.
    Failed(KeyError),
}

/// A witness, of a list of logs.
#[derive(Debug)]
pub struct Witness {
    key: SignerKey,
    logs: BTreeMap<String, Log>,
}

/// A log for which it cosigns.
#[derive(Debug)]
struct Log {
    keys: Vec<VerifierKey>,
    path: String,
    /// Locked by threads of this process; the file itself is locked by processes.
    file: Mutex<File>,
}

impl Witness {
    /// Opens the witness of a store, for the logs with these keys. It has this name, and a new key if it had none.
    ///
    /// # Errors
    /// The store cannot be written, or what was written before is damaged.
    pub fn open(store: &Tree, name: &str, keys: Vec<VerifierKey>) -> Result<Witness, KeyError> {
        let directory = key_directory(store, WITNESS)?;
        let key = key(&directory, WITNESS, (name, KeyKind::Cosignature))?;
        let mut logs: BTreeMap<String, Log> = BTreeMap::new();
        for key in keys {
            let log = match logs.entry(key.name().to_owned()) {
                Entry::Vacant(new) => new.insert(Log::open(&directory, key.name())?),
                Entry::Occupied(known) => known.into_mut(),
            };
            log.keys.push(key);
        }
        Ok(Witness { key, logs })
    }

    /// Returns its public key.
    pub fn key(&self) -> &VerifierKey {
        self.key.verifier()
    }

    /// Cosigns a checkpoint at a time, in seconds since 1970.
    ///
    /// # Errors
    /// The first reason, in the order of the specification, for which it does not.
    pub fn cosign(&self, asked: &AddCheckpoint, seconds: u64) -> Result<Signature, NotCosigned> {
        let text = &asked.note.text;
        let checkpoint = Checkpoint::parse(text).map_err(NotCosigned::Malformed)?;
        let log = self.logs.get(&checkpoint.origin);
        let log = log.ok_or(NotCosigned::UnknownLog)?;
        let mut keys = log.keys.iter();
        if !keys.any(|key| Checkpoint::open(&asked.note, key).is_ok()) {
            return Err(NotCosigned::NotSigned);
        }
        if asked.old > checkpoint.size {
            return Err(NotCosigned::Older);
        }
        log.advance(asked, &checkpoint)?;
        Ok(cosign(&self.key, text, seconds))
    }
}

impl Log {
    /// Opens the file of a log; makes it where it is missing.
    fn open(directory: &Directory, origin: &str) -> Result<Log, KeyError> {
        let name = file_name(origin);
        let path = format!("{WITNESS}/{name}");
        let failed = |errno| failed(Action::Open, &path, errno);
        let file = match directory.file_to_change(&name) {
            Err(Errno::NOENT) => {
                let nothing = Checkpoint {
                    origin: origin.to_owned(),
                    size: 0,
                    root: empty(),
                };
                let places = [place_of(&nothing), place_of(&nothing)].concat();
                make(directory, &name, &places, 0o600).map_err(failed)?;
                directory.file_to_change(&name)
            }
            opened => opened,
        };
        let file = file.map_err(failed)?;
        let log = Log {
            keys: Vec::new(),
            file: Mutex::new(file),
            path,
        };
        log.last(&log.file.lock(), origin)?;
        Ok(log)
    }

    /// Records a checkpoint if the log has grown to it from the one that was recorded last, or is as it was.
    fn advance(&self, asked: &AddCheckpoint, to: &Checkpoint) -> Result<(), NotCosigned> {
        let file = self.file.try_lock_for(BUSY_TIMEOUT);
        let file = file.ok_or(NotCosigned::Busy)?;
        let began = Instant::now();
        while let Err(errno) = rustix::fs::flock(&*file, FlockOperation::NonBlockingLockExclusive) {
            match errno {
                Errno::INTR => {}
                Errno::WOULDBLOCK if began.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Errno::WOULDBLOCK => return Err(NotCosigned::Busy),
                errno => return Err(self.failed(Action::Lock, errno)),
            }
        }
        let done = self.advance_locked(&file, asked, to);
        let _ = rustix::fs::flock(&*file, FlockOperation::Unlock);
        done
    }

    fn advance_locked(
        &self,
        file: &File,
        asked: &AddCheckpoint,
        to: &Checkpoint,
    ) -> Result<(), NotCosigned> {
        let last = self.last(file, &to.origin);
        let (last, place) = last.map_err(NotCosigned::Failed)?;
        let is_split = to.size == last.size && to.root != last.root;
        if is_split {
            log::warn!(
                "the log {:?} has a split view: of its {} entries it has signed the root {}, and before {}, which is cosigned here",
                to.origin,
                to.size,
                Digest(to.root),
                Digest(last.root)
            );
        } else if to.size < last.size {
            log::warn!(
                "the log {:?} shows {} entries, and has shown {} before: it was cut, or an old checkpoint is sent again",
                to.origin,
                to.size,
                last.size
            );
        }
        if is_split || asked.old != last.size {
            return Err(NotCosigned::Conflict(last.size));
        }
        check_consistency((last.size, &last.root), &asked.proof, (to.size, &to.root)).map_err(
            |_| {
                log::warn!(
                    "the log {:?} shows {} entries, which are not proved to have grown from the {} that it has shown before",
                    to.origin,
                    to.size,
                    last.size
                );
                NotCosigned::NotGrown
            },
        )?;
        // Also if it is as it was: whether an earlier write has reached the disk is not known after an error.
        let other = (1 - place) as u64 * PLACE as u64;
        let written = file.write_all_at(&place_of(to), other);
        written
            .and_then(|()| file.sync_data())
            .map_err(|error| self.failed(Action::Write, errno_of(&error)))
    }

    /// The checkpoint that was recorded last, and which place has it.
    fn last(&self, file: &File, origin: &str) -> Result<(Checkpoint, usize), KeyError> {
        // Another host may have written, and after an error memory may have what the disk has not.
        let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
        let mut places = [0; 2 * PLACE];
        let read = file.read_exact_at(&mut places, 0);
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.damaged(),
            _ => failed(Action::Read, &self.path, errno_of(&error)),
        })?;
        let read = |place: &[u8]| recorded(origin, std::str::from_utf8(place).ok()?.trim_end());
        let found = places.chunks(PLACE).map(read).enumerate();
        let found = found.filter_map(|(at, checkpoint)| Some((checkpoint?, at)));
        found
            .max_by_key(|(checkpoint, _)| checkpoint.size)
            .ok_or_else(|| self.damaged())
    }

    fn failed(&self, action: Action, errno: Errno) -> NotCosigned {
        NotCosigned::Failed(failed(action, &self.path, errno))
    }

    fn damaged(&self) -> KeyError {
        KeyError::Damaged {
            path: self.path.clone(),
            directory: WITNESS,
        }
    }
}

/// A place with the record of a checkpoint: a line that spaces fill.
fn place_of(checkpoint: &Checkpoint) -> Vec<u8> {
    format!("{:1$}\n", record(checkpoint), PLACE - 1).into_bytes()
}
