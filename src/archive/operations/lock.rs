//! One writer per store: advisory locks on `STORE/lock`, which names the holder, and on the store's
//! directory, which remains locked if the file is removed.
//!
//! The file also holds a random word. The ledger repeats it, and every process that writes the
//! store changes it at its start and at its end. A copy of the two files taken in between is
//! therefore detected.

use std::ffi::OsString;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::{ArchiveError, Holder};
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::store::StoreUse;
use crate::archive::tree::Tree;
use crate::formats::hex::Hex;
use crate::os::opening;
use crate::os::random;
use crate::os::system_files;
use ibi::message;
use ibi::pairs::{Pairs, Value, percent_decode, percent_encode};

/// Timeout for a lock held by another command, not by several that take turns.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The time that the lock file may be missing or free while the directory is locked. A process
/// that takes both locks needs less time between the two.
const MOMENT: Duration = Duration::from_secs(3);

/// The time that a process that only tests the lock may hold it, see [`holder`].
const GLANCE: Duration = Duration::from_millis(20);

/// The time that a process waits before it tries again to take a lock.
const PAUSE: Duration = Duration::from_millis(2);

/// The longest time that a process that waits for a lock goes without looking who holds it.
const LONGEST_UNTIL_LOOK: Duration = Duration::from_millis(500);

/// File name of the lock.
pub(super) const FILE: &str = "lock";

/// The held lock. It is released when this value is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    /// Not locked where the filesystem cannot lock directories, such as NFS.
    _directory: OwnedFd,
    previous: PreviousLock,
    file: RankedMutex<LockFile>,
}

/// The lock file as it was when the lock was taken.
#[derive(Clone, Debug)]
pub(super) struct PreviousLock {
    /// See [`fingerprint`].
    pub(super) fingerprint: String,
    /// The word in the file. None if another program wrote the file, or a version of ibifs without words.
    pub(super) word: Option<String>,
}

/// The current contents of the lock file.
#[derive(Debug)]
struct LockFile {
    file: std::fs::File,
    word: Option<String>,
    mount_point: Option<PathBuf>,
}

impl Lock {
    /// Takes the lock, or fails with the holder's name. It waits for a command, which ends by
    /// itself, but not for a mount.
    pub(super) fn take(tree: &Tree) -> Result<Lock, ArchiveError> {
        let path = tree.path().join(FILE);
        let failed = |error: std::io::Error| ArchiveError::Lock {
            what: message!(
                "cannot lock '{path}': {error}; it must be a writable file, or not exist",
                path = path.display(),
                error
            ),
        };
        let open = || {
            tree.open_own(FILE).map_err(|error| {
                // The file is written to, so it must not be a link to a file of another owner.
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
        let mut turn = Turn::begun(started);
        let (mut next_look, mut until_look) = (started, GLANCE);
        let directory = open_directory(tree.root()).map_err(|errno| failed(errno.into()))?;
        loop {
            // The directory is locked first, so that a removed lock file is not created again while
            // another process holds the directory.
            let locked = lock_directory(&directory, WRITER);
            if locked != Err(Errno::WOULDBLOCK) {
                let file = open()?;
                let taken = match locked {
                    // Another process that has the file locked only tests it, or is on another machine.
                    Ok(()) => lock_soon(&file),
                    Err(_) => rustix::fs::flock(&file, WRITER),
                };
                match taken {
                    Ok(()) => return Lock::of(file, directory).map_err(failed),
                    Err(Errno::WOULDBLOCK) => {
                        let _ = rustix::fs::flock(&directory, FlockOperation::Unlock);
                    }
                    Err(errno) => return Err(failed(errno.into())),
                }
            }
            std::thread::sleep(PAUSE);
            if Instant::now() < next_look {
                continue;
            }
            // Others cannot take a lock while it is tested, which takes some filesystems milliseconds.
            next_look = Instant::now() + until_look;
            until_look = LONGEST_UNTIL_LOOK.min(until_look * 2);
            let file = read(tree.path());
            let holder = file.as_ref().map(read_holder).unwrap_or_default();
            let is_mounted = Instant::now() > started + GLANCE && is_mounted(tree.path(), &holder);
            // The lock file of a daemon has been removed, or a process is between the two locks.
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
            let is_over = turn.lasts(holder.pid, Instant::now()) > TIMEOUT;
            if is_mounted || is_removed || is_over {
                return Err(ArchiveError::Busy(named_holder(tree.path(), file.as_ref())));
            }
        }
    }

    /// Takes the lock together with others that share the store, or fails with the holder's name. A command that has
    /// the store to itself is waited for.
    pub(super) fn share(tree: &Tree) -> Result<SharedLock, ArchiveError> {
        let failed = |error: std::io::Error| ArchiveError::Lock {
            what: message!(
                "cannot lock '{path}': {error}; it must be a writable file, or not exist",
                path = tree.path().join(FILE).display(),
                error
            ),
        };
        let directory = open_directory(tree.root()).map_err(|errno| failed(errno.into()))?;
        let file = tree
            .open_own(FILE)
            .map_err(|error| failed(error.errno().into()))?;
        let until = Instant::now() + TIMEOUT;
        loop {
            let locked = lock_directory(&directory, READER);
            if locked != Err(Errno::WOULDBLOCK) {
                match rustix::fs::flock(&file, READER) {
                    Err(Errno::WOULDBLOCK) => {}
                    Err(errno) => return Err(failed(errno.into())),
                    Ok(()) => {
                        return Ok(SharedLock {
                            _file: file,
                            _directory: directory,
                        });
                    }
                }
            }
            let _ = rustix::fs::flock(&directory, FlockOperation::Unlock);
            let holder = named_holder(tree.path(), Some(&file));
            if is_mounted(tree.path(), &holder) || Instant::now() > until {
                return Err(ArchiveError::Busy(holder));
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn of(file: std::fs::File, directory: OwnedFd) -> std::io::Result<Lock> {
        let previous = PreviousLock {
            fingerprint: fingerprint(&file)?,
            word: word_in(&read_text(&file), "word"),
        };
        Ok(Lock {
            file: RankedMutex::new(
                Rank::Leaf,
                LockFile {
                    file,
                    word: previous.word.clone(),
                    mount_point: None,
                },
            ),
            _directory: directory,
            previous,
        })
    }

    /// Sets the mount point that [`Lock::describe`] writes from the next call on.
    pub(super) fn mounted_at(&self, mount_point: &Path) {
        self.file.lock().mount_point = Some(mount_point.to_owned());
    }

    /// Writes the holder, the mount point and a new word to the lock file, and syncs it. A lock
    /// file that was removed or replaced is created again.
    pub(super) fn describe(&self, tree: &Tree, word: &str) -> std::io::Result<()> {
        let mut current = self.file.lock();
        let named = tree.read_own(FILE).ok().flatten();
        if named.and_then(identity) != identity(&current.file)
            && let Ok(file) = tree.open_own(FILE)
            && lock_soon(&file).is_ok()
        {
            log::warn!("the lock file was removed or replaced; it is made again");
            current.file = file;
        }
        // The word comes first: after a power cut a short file is left with its beginning, old or new.
        let mut text = format!("word {word}\npid {}\n", std::process::id());
        if let Some(mount_point) = &current.mount_point {
            let path = percent_encode(mount_point.as_os_str().as_bytes());
            text.push_str(&format!("mountpoint {path}\n"));
        }
        let mut file = &current.file;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)?;
        file.sync_all()?;
        current.word = Some(word.to_owned());
        Ok(())
    }

    /// The current word of the lock.
    pub(super) fn word(&self) -> Option<String> {
        self.file.lock().word.clone()
    }

    /// The lock file as it was when the lock was taken.
    pub(super) fn previous(&self) -> &PreviousLock {
        &self.previous
    }

    /// The fingerprint of the lock file as it is now.
    pub(super) fn fingerprint(&self) -> std::io::Result<String> {
        fingerprint(&self.file.lock().file)
    }
}

/// A lock on a store that others share. Meanwhile the files' words of a single writer mean nothing.
#[derive(Debug)]
pub(super) struct SharedLock {
    _file: std::fs::File,
    _directory: OwnedFd,
}

/// The way in which a process has a store open for writing.
#[derive(Debug)]
pub(super) enum Hold {
    /// No other process has.
    Alone(Lock),
    /// Others may have that share it.
    Shared(#[allow(dead_code, reason = "held, not read")] SharedLock),
}

/// The turn of the process that holds a lock.
#[derive(Debug)]
struct Turn {
    pid: Option<u32>,
    since: Instant,
}

impl Turn {
    fn begun(since: Instant) -> Turn {
        Turn { pid: None, since }
    }

    /// Returns how long this process has been found to hold the lock.
    fn lasts(&mut self, pid: Option<u32>, now: Instant) -> Duration {
        if self.pid != pid {
            *self = Turn { pid, since: now };
        }
        now - self.since
    }
}

/// Draws a new random word, different from that of any other lock.
pub(super) fn new_word() -> std::io::Result<String> {
    Ok(Hex(&random::draw::<16>()?).to_string())
}

/// Whether two fingerprints are of the same file, regardless of writes in between.
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

/// Opens the directory of a store for locking: a descriptor of its own.
fn open_directory(root: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(root, ".", flags, Mode::empty())
}

/// Returns WOULDBLOCK if another process holds the lock, and another error if the filesystem cannot lock directories.
fn lock_directory(directory: &OwnedFd, how: FlockOperation) -> Result<(), Errno> {
    let locked = rustix::fs::flock(directory, how);
    if let Err(errno) = locked
        && errno != Errno::WOULDBLOCK
    {
        log::debug!("the store's directory cannot be locked, its lock file is: {errno}");
    }
    locked
}

/// Locks a file exclusively, and retries while other processes only test the lock.
fn lock_soon(file: &std::fs::File) -> Result<(), Errno> {
    let until = Instant::now() + GLANCE * 10;
    loop {
        match rustix::fs::flock(file, WRITER) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            locked => return locked,
        }
    }
}

/// A shared lock for reading a whole store. No process starts to write the store meanwhile, unless
/// one already does.
#[derive(Debug)]
pub(super) struct ReadLock {
    /// Hold the locks, which are shared with other readers.
    _file: Option<std::fs::File>,
    _directory: Option<OwnedFd>,
    is_alone: bool,
}

impl ReadLock {
    /// Starts to read a store. Nothing is written.
    pub(super) fn of(store: &Path) -> ReadLock {
        let file = read(store);
        let locked = file.as_ref().map(|file| rustix::fs::flock(file, READER));
        let directory = shared_directory(store);
        ReadLock {
            is_alone: !matches!(locked, Some(Err(_))) && directory.is_ok(),
            _file: file,
            _directory: directory.unwrap_or_default(),
        }
    }

    /// Tells whether another process may be writing the store.
    pub(super) fn store_use(&self) -> StoreUse {
        if self.is_alone {
            StoreUse::Idle
        } else {
            StoreUse::InUse
        }
    }

    /// Whether no process writes the store.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }
}

/// Distinguishes this store from a copy of it, and from itself after a backup was restored over it.
/// No copy has the inode and birth time of the lock file, and every write changes the change time.
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

/// Opens the lock file of a store for reading, if it exists.
fn read(store: &Path) -> Option<std::fs::File> {
    Tree::open_as_it_is(store).ok()?.read_own(FILE).ok()?
}

fn shared_directory(store: &Path) -> Result<Option<OwnedFd>, Errno> {
    let Ok(tree) = Tree::open_as_it_is(store) else {
        return Ok(None);
    };
    let directory = match open_directory(tree.root()) {
        // A user may have search permission on the directory without read permission.
        Err(Errno::ACCESS) => return Ok(None),
        directory => directory?,
    };
    match lock_directory(&directory, READER) {
        Ok(()) => Ok(Some(directory)),
        Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
        Err(_) => Ok(None),
    }
}

/// Whether a process has a file locked alone.
pub(super) fn is_locked(file: &std::fs::File) -> bool {
    // This takes a free lock for an instant; a process that wants it then retries. `/proc/locks`
    // would not disturb others, but it skips lines while other processes lock and unlock.
    let locked = rustix::fs::flock(file, READER);
    // Dropping the files takes longer, so the lock is released here.
    let _ = rustix::fs::flock(file, FlockOperation::Unlock);
    locked == Err(Errno::WOULDBLOCK)
}

/// Returns the current holder of the store, if it is locked.
pub fn holder(store: &Path) -> Option<Holder> {
    let file = read(store);
    let is_held = file.as_ref().is_some_and(is_locked)
        || shared_directory(store).err() == Some(Errno::WOULDBLOCK);
    is_held.then(|| named_holder(store, file.as_ref()))
}

/// The holder of a locked store: from the lock file, or, if that was removed, from the system's
/// records of the store's directory.
fn named_holder(store: &Path, file: Option<&std::fs::File>) -> Holder {
    let named = file.map(read_holder).unwrap_or_default();
    match named.pid {
        Some(_) => named,
        None => Holder {
            pid: process_that_locks(store),
            ..named
        },
    }
}

/// Whether the lock file says that the store is mounted, and that is not of a process before the one that has it now: a
/// process writes the file a moment after it has taken the lock.
fn is_mounted(store: &Path, holder: &Holder) -> bool {
    let is_old = |pid| !is_held_by(store, pid) && process_that_locks(store).is_some();
    holder.mount_point.is_some() && !holder.pid.is_some_and(is_old)
}

/// The process that has the directory of a store locked, if the caller has permission to see it.
fn process_that_locks(store: &Path) -> Option<u32> {
    let directory = identity_at(store)?;
    let processes = system_files::names_in("/proc").filter_map(|name| name.parse().ok());
    let mut holding = processes.filter(|pid| holds(*pid, &[directory]));
    holding.next()
}

/// Whether a process holds the store for writing. Any user who may write in the store can write any number
/// into the lock file, so this asks the system which of the process's open files has the lock.
pub fn is_held_by(store: &Path, pid: u32) -> bool {
    let file = read(store).and_then(|file| identity(&file));
    let locks: Vec<Identity> = file.into_iter().chain(identity_at(store)).collect();
    holds(pid, &locks)
}

/// Whether a process holds an exclusive lock on one of these files.
fn holds(pid: u32, locks: &[Identity]) -> bool {
    // Threads share their files, so one thread is enough. In a killed process, the threads that
    // have ended have no files.
    let threads: Vec<String> = system_files::names_in(&format!("/proc/{pid}/task")).collect();
    let files = threads.into_iter().map(|thread| {
        let of_thread = format!("/proc/{pid}/task/{thread}");
        let files: Vec<String> = system_files::names_in(&format!("{of_thread}/fdinfo")).collect();
        (of_thread, files)
    });
    let mut files = files.filter(|(_, files)| !files.is_empty());
    files.next().is_some_and(|(of_thread, files)| {
        files.iter().any(|file| {
            let info = system_files::read_text(format!("{of_thread}/fdinfo/{file}"));
            info.is_ok_and(|info| info.lines().any(is_writers_lock))
                && identity_at(format!("{of_thread}/fd/{file}"))
                    .is_some_and(|identity| locks.contains(&identity))
        })
    })
}

/// Whether a line of `fdinfo` describes an exclusive lock such as [`Lock`].
fn is_writers_lock(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], ["lock:", _, "FLOCK", _, "WRITE", ..])
}

/// Identifies a file on this machine.
type Identity = (u32, u32, u64);

/// Uses cached attributes: a network or FUSE filesystem might not answer.
fn identity(file: impl AsFd) -> Option<Identity> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(file, "", flags, StatxFlags::INO).ok()?;
    Some((stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
}

fn identity_at(path: impl Arg) -> Option<Identity> {
    identity(opening::found(path, OFlags::empty()).ok()?)
}

/// The text of a lock file; empty if it cannot be read.
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
    // A process that has just taken the lock may not have replaced the previous holder's entry yet.
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

#[cfg(test)]
mod tests;
