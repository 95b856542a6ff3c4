//! Items that arrive from other Archives: `handover/incoming/<key>`, a directory of each until it is complete.
//!
//! A process that receives an item holds a shared lock of its directory. An item that was not continued for
//! [`LIFETIME`] is abandoned: a process that finds it so takes the lock alone, looks again, and removes it. A lock that
//! is waited for may be that of a directory that is removed, so the name is looked up again afterwards.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, FlockOperation, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::transfer_records::HANDOVER;
use super::{Action, Tree, TreeError};
use crate::os::deep::clear;
use crate::os::entries::each_entry_of;

/// The time that the arrived part of an item is kept after its last byte.
pub const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The directory below `handover/` with the items that arrive.
const INCOMING: &str = "incoming";

/// The time for which a lock is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl Tree {
    /// The directory of an arriving item, relative to the store.
    #[must_use]
    pub fn arriving_path(key: &str) -> String {
        format!("{HANDOVER}/{INCOMING}/{key}")
    }

    /// Opens the directory of an arriving item with a shared lock, and makes it where it is missing. Its
    /// lifetime begins again. Returns None where another process holds the lock alone.
    pub fn open_arriving(&self, key: &str) -> Result<Option<OwnedFd>, TreeError> {
        let path = Tree::arriving_path(key);
        let failed = |action| move |errno| self.error(action, &Tree::arriving_path(key), errno);
        drop(self.open_handover_lock()?);
        let started = Instant::now();
        loop {
            self.make_directories(&path)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match self.open_far(path.as_bytes(), flags) {
                Err(Errno::NOENT) => continue,
                other => other.map_err(failed(Action::Open))?,
            };
            match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) if started.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Ok(None),
                other => other.map_err(failed(Action::Lock))?,
            }
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: rustix::fs::UTIME_NOW,
            };
            let times = Timestamps {
                last_access: now,
                last_modification: now,
            };
            rustix::fs::futimens(&opened, &times).map_err(failed(Action::Write))?;
            if self.is_still(&path, &opened) {
                return Ok(Some(opened));
            }
        }
    }

    /// Whether a directory still has this name.
    fn is_still(&self, path: &str, opened: &OwnedFd) -> bool {
        let named = self.open_far(path.as_bytes(), OFlags::PATH | OFlags::DIRECTORY);
        let stat = |file: OwnedFd| rustix::fs::fstat(&file);
        match (named.and_then(stat), rustix::fs::fstat(opened)) {
            (Ok(named), Ok(opened)) => {
                (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
            }
            _ => false,
        }
    }

    /// The keys of arriving items that were not continued for [`LIFETIME`].
    pub fn abandoned_arrivals(&self, now: SystemTime) -> Result<Vec<String>, TreeError> {
        let root = format!("{HANDOVER}/{INCOMING}");
        let opened = match self.open_far(root.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            other => other.map_err(|errno| self.error(Action::Open, &root, errno))?,
        };
        let mut keys = Vec::new();
        let listed = each_entry_of(&opened, |name, is_directory| {
            if is_directory && let Ok(key) = std::str::from_utf8(name) {
                keys.push(key.to_owned());
            }
        });
        listed.map_err(|errno| self.error(Action::List, &root, errno))?;
        keys.sort();
        keys.retain(|key| {
            let path = Tree::arriving_path(key);
            let opened = self.open_far(path.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY);
            opened.is_ok_and(|opened| self.lock_abandoned(&opened, now))
        });
        Ok(keys)
    }

    /// Takes the lock of an arriving item alone, and returns whether it is abandoned.
    fn lock_abandoned(&self, opened: &OwnedFd, now: SystemTime) -> bool {
        rustix::fs::flock(opened, FlockOperation::NonBlockingLockExclusive).is_ok()
            && last_arrival(opened, now).is_ok_and(|last| {
                // A time in the future is that of a clock that was set back.
                now.duration_since(last).is_ok_and(|age| age > LIFETIME)
            })
    }

    /// Removes an arriving item if it is abandoned; returns whether it was.
    pub fn remove_abandoned(&self, key: &str, now: SystemTime) -> Result<bool, TreeError> {
        let path = Tree::arriving_path(key);
        let opened = match self.open_far(path.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => return Ok(false),
            other => other.map_err(|errno| self.error(Action::Open, &path, errno))?,
        };
        if !self.lock_abandoned(&opened, now) || !self.is_still(&path, &opened) {
            return Ok(false);
        }
        self.clear_arriving(&path)?;
        Ok(true)
    }

    /// Removes a directory of an arriving item, with everything in it.
    pub fn clear_arriving(&self, path: &str) -> Result<(), TreeError> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let removed = self
            .open_far(path.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)
            .and_then(|directory| clear(&directory))
            .and_then(|()| self.open_far(parent.as_bytes(), OFlags::PATH | OFlags::DIRECTORY))
            .and_then(|parent| rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.error(Action::Clear, path, errno)),
        }
    }
}

/// Returns when the last byte of an arriving item came, or its directory was last used.
fn last_arrival(directory: &OwnedFd, now: SystemTime) -> Result<SystemTime, Errno> {
    let mut last = modified(&rustix::fs::fstat(directory)?);
    let mut names = Vec::new();
    each_entry_of(directory, |name, _| names.push(name.to_vec()))?;
    for name in names {
        let stat = rustix::fs::statat(directory, &name[..], AtFlags::SYMLINK_NOFOLLOW)?;
        let at = modified(&stat);
        // A file with a second name in the item that is assembled has the times that its sender gave it.
        let is_received = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_received && at <= now {
            last = last.max(at);
        }
    }
    Ok(last)
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(seconds)
}
