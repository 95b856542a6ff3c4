//! One writer a store: an advisory lock on `STORE/lock`, which says who holds it, and on the store's
//! directory, which stays when somebody removes that file.
//!
//! The file holds a random word as well, which the ledger repeats and which changes at the start and at
//! the end of each process that writes the store: a copy of the two that was taken in between is known.

use std::ffi::OsString;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::{ArchiveError, Holder};
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::tree::Tree;
use crate::formats::hex::Hex;
use crate::os::random;
use ibi::message;
use ibi::pairs::{Pairs, Value, percent_decode, percent_encode};

/// How long another command is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that takes both locks takes less from the one to the other.
const MOMENT: Duration = Duration::from_secs(3);

/// How long somebody may hold the lock who only looks whether it is free, see [`holder`].
const GLANCE: Duration = Duration::from_millis(20);

/// File name of the lock.
pub(super) const FILE: &str = "lock";

/// The held lock; it ends with this value or with the process.
#[derive(Debug)]
pub(super) struct Lock {
    /// None where the filesystem locks no directories, such as NFS.
    _directory: Option<OwnedFd>,
    found: Found,
    told: RankedMutex<Told>,
}

/// What the lock file was when it was taken.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// See [`fingerprint`].
    pub(super) fingerprint: String,
    /// The word in it; none where an ibifs wrote it that knew of no words, or somebody else.
    pub(super) word: Option<String>,
}

/// What the lock file says now.
#[derive(Debug)]
struct Told {
    file: std::fs::File,
    word: Option<String>,
    mount_point: Option<PathBuf>,
}

impl Lock {
    /// Takes the lock or says who has it. A command ends by itself and is waited for; a mount is not.
    pub(super) fn take(tree: &Tree) -> Result<Lock, ArchiveError> {
        let path = tree.path().join(FILE);
        let failed = |error: std::io::Error| ArchiveError::Lock {
            what: message!(
                "cannot lock '{path}': {error}; it must be a file that may be written (or none, \
                 and it is made)",
                path = path.display(),
                error
            ),
        };
        let open = || {
            tree.open_own(FILE).map_err(|error| {
                // It is written to: it must be no link to somebody else's file.
                match error.errno() {
                    Errno::LOOP | Errno::MLINK => ArchiveError::Lock {
                        what: message!(
                            "'{path}' is not a file of this store alone; remove it",
                            path = path.display()
                        ),
                    },
                    errno => failed(errno.into()),
                }
            })
        };
        let started = Instant::now();
        let mut removed = None;
        loop {
            // The directory first: where it is taken, no file is made in the place of a removed one.
            let taken = match lock_directory(tree.root(), WRITER) {
                Ok(directory) => Some(directory),
                Err(Errno::WOULDBLOCK) => None,
                Err(errno) => return Err(failed(errno.into())),
            };
            if let Some(directory) = taken {
                let file = open()?;
                match rustix::fs::flock(&file, WRITER) {
                    Ok(()) => return Lock::of(file, directory).map_err(failed),
                    Err(Errno::WOULDBLOCK) => {}
                    Err(errno) => return Err(failed(errno.into())),
                }
            }
            let file = read(tree.path());
            let holder = file.as_ref().map(read_holder).unwrap_or_default();
            let is_mounted = holder.mount_point.is_some() && Instant::now() > started + GLANCE;
            // The file of a daemon has been removed, or a process is between the two locks.
            let is_free = |file| {
                let locked = rustix::fs::flock(file, READER);
                let _ = rustix::fs::flock(file, FlockOperation::Unlock);
                locked.is_ok()
            };
            removed = if file.as_ref().is_none_or(is_free) {
                removed.or(Some(Instant::now()))
            } else {
                None
            };
            let is_removed = removed.is_some_and(|since| since.elapsed() > MOMENT);
            if is_mounted || is_removed || Instant::now() > started + PATIENCE {
                return Err(ArchiveError::Busy(told_holder(tree.path(), file.as_ref())));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn of(file: std::fs::File, directory: Option<OwnedFd>) -> std::io::Result<Lock> {
        let found = Found {
            fingerprint: fingerprint(&file)?,
            word: word_in(&read_text(&file), "word"),
        };
        Ok(Lock {
            told: RankedMutex::new(
                Rank::Leaf,
                Told {
                    file,
                    word: found.word.clone(),
                    mount_point: None,
                },
            ),
            _directory: directory,
            found,
        })
    }

    /// Has the lock say where the store is mounted from the next [`Lock::describe`] on.
    pub(super) fn mounted_at(&self, mount_point: &Path) {
        self.told.lock().mount_point = Some(mount_point.to_owned());
    }

    /// Writes down who holds the lock, and where the store is mounted, with a new word. It is on disk
    /// when this returns. A lock file that was removed or replaced meanwhile is made again.
    pub(super) fn describe(&self, tree: &Tree, word: &str) -> std::io::Result<()> {
        let mut told = self.told.lock();
        let named = tree.read_own(FILE).ok().flatten();
        if named.and_then(identity) != identity(&told.file)
            && let Ok(file) = tree.open_own(FILE)
            && lock_soon(&file)
        {
            log::warn!("the lock file was removed or replaced; it is made again");
            told.file = file;
        }
        // The word first: what a power cut leaves of a short file is its beginning, old or new.
        let mut text = format!("word {word}\npid {}\n", std::process::id());
        if let Some(mount_point) = &told.mount_point {
            let path = percent_encode(mount_point.as_os_str().as_bytes());
            text.push_str(&format!("mountpoint {path}\n"));
        }
        let mut file = &told.file;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)?;
        file.sync_all()?;
        told.word = Some(word.to_owned());
        Ok(())
    }

    /// The word that the lock has now.
    pub(super) fn word(&self) -> Option<String> {
        self.told.lock().word.clone()
    }

    /// What the lock file was when it was taken.
    pub(super) fn found(&self) -> &Found {
        &self.found
    }

    /// What the lock file is now.
    pub(super) fn fingerprint(&self) -> std::io::Result<String> {
        fingerprint(&self.told.lock().file)
    }
}

/// A new word, which no other lock has.
pub(super) fn new_word() -> std::io::Result<String> {
    Ok(Hex(&random::draw::<16>()?).to_string())
}

/// Whether two fingerprints are of one file, whatever has been written in it in between.
pub(super) fn is_same_file(this: &str, that: &str) -> bool {
    let file = |fingerprint: &str| {
        fingerprint
            .rsplit_once('-')
            .map(|(file, _)| file.to_owned())
    };
    file(this).is_some() && file(this) == file(that)
}

const WRITER: FlockOperation = FlockOperation::NonBlockingLockExclusive;
const READER: FlockOperation = FlockOperation::NonBlockingLockShared;

/// Locks the directory of a store, by a descriptor of its own; WOULDBLOCK where somebody else has it.
/// None where the filesystem locks no directories.
fn lock_directory(root: impl AsFd, how: FlockOperation) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(root, ".", flags, Mode::empty()) {
        Ok(directory) => directory,
        // Some may look into it who may not list it.
        Err(Errno::ACCESS) if how == READER => return Ok(None),
        Err(errno) => return Err(errno),
    };
    match rustix::fs::flock(&directory, how) {
        Ok(()) => Ok(Some(directory)),
        Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
        Err(errno) => {
            log::debug!("the store's directory cannot be locked, its lock file is: {errno}");
            Ok(None)
        }
    }
}

/// Locks a file as a writer, past those who only look whether it is free.
fn lock_soon(file: &std::fs::File) -> bool {
    let until = Instant::now() + GLANCE * 10;
    loop {
        match rustix::fs::flock(file, WRITER) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            locked => return locked.is_ok(),
        }
    }
}

/// Who reads a whole store: nobody begins to write it meanwhile, unless somebody does already.
#[derive(Debug)]
pub(super) struct Reading {
    /// Hold the locks, shared with other readers.
    _file: Option<std::fs::File>,
    _directory: Option<OwnedFd>,
    is_alone: bool,
}

impl Reading {
    /// Begins to read a store; nothing is written for it.
    pub(super) fn of(store: &Path) -> Reading {
        let file = read(store);
        let locked = file.as_ref().map(|file| rustix::fs::flock(file, READER));
        let directory = shared_directory(store);
        Reading {
            is_alone: !matches!(locked, Some(Err(_))) && directory.is_ok(),
            _file: file,
            _directory: directory.unwrap_or_default(),
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

fn shared_directory(store: &Path) -> Result<Option<OwnedFd>, Errno> {
    match Tree::open_as_it_is(store) {
        Ok(tree) => lock_directory(tree.root(), READER),
        Err(_) => Ok(None),
    }
}

/// Who holds the store right now, if anybody does.
pub fn holder(store: &Path) -> Option<Holder> {
    let file = read(store);
    // This takes a free lock for an instant; whoever wants it then tries again. The system's table
    // of locks would disturb nobody, but it skips lines while others lock and unlock.
    let is_held = |file| {
        let locked = rustix::fs::flock(file, READER);
        // The rest takes a while.
        let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        locked == Err(Errno::WOULDBLOCK)
    };
    let is_held = file.as_ref().is_some_and(is_held)
        || shared_directory(store).err() == Some(Errno::WOULDBLOCK);
    is_held.then(|| told_holder(store, file.as_ref()))
}

/// Who holds a store that is held: as its lock says, or, where that has been removed, as the system
/// says of the store's directory.
fn told_holder(store: &Path, file: Option<&std::fs::File>) -> Holder {
    let told = file.map(read_holder).unwrap_or_default();
    match told.pid {
        Some(_) => told,
        None => Holder {
            pid: process_that_locks(store),
            ..told
        },
    }
}

/// The process that has the directory of a store locked, where the caller may see that.
fn process_that_locks(store: &Path) -> Option<u32> {
    let directory = identity_at(store)?;
    let processes = names_in("/proc").filter_map(|name| name.parse().ok());
    let mut holding = processes.filter(|pid| holds(*pid, &[directory]));
    holding.next()
}

/// Whether a process holds the store for writing. Whoever may write in the store can write any number
/// into the lock file, so the system is asked which of the process's open files has the lock.
pub fn is_held_by(store: &Path, pid: u32) -> bool {
    let file = read(store).and_then(|file| identity(&file));
    let locks: Vec<Identity> = file.into_iter().chain(identity_at(store)).collect();
    holds(pid, &locks)
}

/// Whether a process has one of these files locked as a writer does.
fn holds(pid: u32, locks: &[Identity]) -> bool {
    // Threads share their files, so that one thread is enough; of a killed process, those that are gone
    // have none any more.
    let threads: Vec<String> = names_in(&format!("/proc/{pid}/task")).collect();
    let files = threads.into_iter().map(|thread| {
        let of_thread = format!("/proc/{pid}/task/{thread}");
        let files: Vec<String> = names_in(&format!("{of_thread}/fdinfo")).collect();
        (of_thread, files)
    });
    let mut files = files.filter(|(_, files)| !files.is_empty());
    files.next().is_some_and(|(of_thread, files)| {
        files.iter().any(|file| {
            let told = std::fs::read_to_string(format!("{of_thread}/fdinfo/{file}"));
            told.is_ok_and(|told| told.lines().any(is_writers_lock))
                && identity_at(format!("{of_thread}/fd/{file}").as_ref())
                    .is_some_and(|identity| locks.contains(&identity))
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

fn identity_at(path: &Path) -> Option<Identity> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    identity(rustix::fs::open(path, flags, Mode::empty()).ok()?)
}

/// What a lock file says; nothing where it cannot be read.
fn read_text(mut file: &std::fs::File) -> Vec<u8> {
    let mut text = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(8192).read_to_end(&mut text));
    match read {
        Ok(_) => text,
        Err(_) => Vec::new(),
    }
}

/// The word of this name in a text of the store's own.
pub(super) fn word_in(text: &[u8], name: &str) -> Option<String> {
    match Pairs::parse(text).ok()?.get(name)? {
        Value::Word(word) => Some(word.clone()),
        Value::List(_) => None,
    }
}

fn read_holder(file: &std::fs::File) -> Holder {
    let text = read_text(file);
    let word = |name: &str| word_in(&text, name);
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
