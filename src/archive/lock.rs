//! One writer a store: an advisory lock on `STORE/lock` that says who holds it.

use std::ffi::OsString;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::{ArchiveError, Holder};
use crate::pairs::{Pairs, Value, percent_decode, percent_encode};
use crate::tree::Tree;

/// How long another command is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long somebody may hold the lock who only looks whether it is free, see [`holder`].
const GLANCE: Duration = Duration::from_millis(20);

/// File name of the lock.
pub(super) const FILE: &str = "lock";

/// The held lock; it ends with this value or with the process.
#[derive(Debug)]
pub(super) struct Lock {
    file: std::fs::File,
    found: String,
}

impl Lock {
    /// Takes the lock or says who has it. A command ends by itself and is waited for; a mount is not.
    pub(super) fn take(tree: &Tree) -> Result<Lock, ArchiveError> {
        let path = tree.path().join(FILE);
        let failed = |error: std::io::Error| ArchiveError::Lock {
            what: format!(
                "cannot lock '{}': {error}; it must be a file that may be written (or none, \
                 and it is made)",
                path.display()
            ),
        };
        let file = tree.open_own(FILE).map_err(|error| {
            // It is written to: it must be no link to somebody else's file.
            match error.errno() {
                Errno::LOOP | Errno::MLINK => ArchiveError::Lock {
                    what: format!(
                        "'{}' is not a file of this store alone; remove it",
                        path.display()
                    ),
                },
                errno => failed(errno.into()),
            }
        })?;
        let started = Instant::now();
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
            let holder = read_holder(&file);
            let is_mounted = holder.mount_point.is_some() && Instant::now() > started + GLANCE;
            if is_mounted || Instant::now() > started + PATIENCE {
                return Err(ArchiveError::Busy(holder));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let found = fingerprint(&file).map_err(failed)?;
        Ok(Lock { file, found })
    }

    /// Writes down who holds the lock, and where the store is mounted.
    pub(super) fn describe(&self, mount_point: Option<&Path>) -> std::io::Result<()> {
        let mut text = format!("pid {}\n", std::process::id());
        if let Some(mount_point) = mount_point {
            let path = percent_encode(mount_point.as_os_str().as_bytes());
            text.push_str(&format!("mountpoint {path}\n"));
        }
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)
    }

    /// What the lock file was when it was taken, see [`fingerprint`].
    pub(super) fn found(&self) -> &str {
        &self.found
    }

    /// What the lock file is now.
    pub(super) fn fingerprint(&self) -> std::io::Result<String> {
        fingerprint(&self.file)
    }
}

/// Who reads a whole store: nobody begins to write it meanwhile, unless somebody does already.
#[derive(Debug)]
pub(super) struct Reading {
    /// Holds the lock, shared with other readers.
    _file: Option<std::fs::File>,
    is_alone: bool,
}

impl Reading {
    /// Begins to read a store; nothing is written for it.
    pub(super) fn of(store: &Path) -> Reading {
        // Where there is no lock, nobody has ever written the store.
        let file = read(store);
        let locked = file
            .as_ref()
            .map(|file| rustix::fs::flock(file, FlockOperation::NonBlockingLockShared));
        Reading {
            is_alone: !matches!(locked, Some(Err(_))),
            _file: file,
        }
    }

    /// Whether nobody writes the store.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }
}

/// What tells this store from a copy of it, and from itself with a backup put back over it: no copy
/// has the lock file's inode and birth, and nobody can write a file without its change time.
fn fingerprint(file: &std::fs::File) -> std::io::Result<String> {
    let metadata = file.metadata()?;
    let born = metadata
        .created()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |age| age.as_nanos());
    let (inode, changed) = (metadata.ino(), metadata.ctime());
    Ok(format!(
        "{inode}-{born}-{changed}.{:09}",
        metadata.ctime_nsec()
    ))
}

/// Opens the lock of a store, where there is one, to be read.
fn read(store: &Path) -> Option<std::fs::File> {
    Tree::open_as_it_is(store).ok()?.read_own(FILE).ok()?
}

/// Who holds the store right now, if anybody does.
pub fn holder(store: &Path) -> Option<Holder> {
    let file = read(store)?;
    // This takes a free lock for an instant; whoever wants it then tries again. The system's table
    // of locks would disturb nobody, but it skips lines while others lock and unlock.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(read_holder(&file)),
        _ => None,
    }
}

/// Whether a process holds the store for writing. Whoever may write in the store can write any number
/// into the lock file, so the system is asked which of the process's open files has the lock.
pub fn is_held_by(store: &Path, pid: u32) -> bool {
    let Some(lock) = read(store).and_then(|file| identity(&file)) else {
        return false;
    };
    // Threads share their files; of a killed process, those that are gone have none any more.
    names_in(&format!("/proc/{pid}/task")).any(|thread| {
        let of_thread = format!("/proc/{pid}/task/{thread}");
        names_in(&format!("{of_thread}/fdinfo")).any(|file| {
            let told = std::fs::read_to_string(format!("{of_thread}/fdinfo/{file}"));
            told.is_ok_and(|told| told.lines().any(is_writers_lock))
                && identity_at(&format!("{of_thread}/fd/{file}")) == Some(lock)
        })
    })
}

/// Whether the system tells so of a lock such as [`Lock`].
fn is_writers_lock(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], ["lock:", _, "FLOCK", _, "WRITE", ..])
}

fn names_in(directory: &str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// Which file it is, of all on this machine.
type Identity = (u32, u32, u64);

/// Nobody's daemon is asked, which might not answer.
fn identity(file: impl AsFd) -> Option<Identity> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(file, "", flags, StatxFlags::INO).ok()?;
    Some((stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
}

fn identity_at(path: &str) -> Option<Identity> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    identity(rustix::fs::open(path, flags, Mode::empty()).ok()?)
}

fn read_holder(mut file: &std::fs::File) -> Holder {
    let mut text = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(8192).read_to_end(&mut text));
    let (Ok(_), Ok(pairs)) = (read, Pairs::parse(&text)) else {
        return Holder::default();
    };
    let word = |name: &str| match pairs.get(name) {
        Some(Value::Word(word)) => Some(word.clone()),
        _ => None,
    };
    let pid: Option<u32> = word("pid").and_then(|pid| pid.parse().ok());
    // Whoever has just taken the lock may not have written its name over the last one's yet.
    let is_there = pid.is_none_or(|pid| Path::new(&format!("/proc/{pid}")).exists());
    if !is_there {
        return Holder::default();
    }
    Holder {
        pid,
        mount_point: word("mountpoint")
            .map(|path| PathBuf::from(OsString::from_vec(percent_decode(&path)))),
    }
}
