//! Copies one entry that is not a directory: a file, another name of one, a symbolic link or a special file.
//!
//! A file is completed where no other user reaches it and then renamed, so the previous copy is intact
//! until it is replaced. A copy is left as it is if it has the size and modification time of the original and
//! was made after the original's inode last changed: a file that decays on disk changes none of these, and
//! does not overwrite its good copy.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::content::{self, ContentError};
use super::copier::{Copier, DirectoryPair, TRIES};
use super::directories::{failed, fstat, remove};
use super::finding::{BackupCode, BackupError};
use super::metadata;
use crate::archive::manifest::read_digest;
use crate::archive::tree::{Action, joined};
use crate::os::deep::split;
use crate::os::directory::{Directory, is_own, is_same_file};
use crate::os::opening::link;
use ibi::message;

/// Files of one unit that have several names.
#[derive(Default)]
pub(super) struct CopiedLinks {
    /// By device and inode number of the original: the path of its copy, and the copy's inode number.
    copied: HashMap<(u64, u64), (Vec<u8>, u64)>,
    /// Inode numbers of copies that belong to an original already.
    taken: HashSet<u64>,
}

/// The result of copying an entry that is not a directory.
enum Copied {
    /// It is in the copy.
    Placed,
    /// It cannot be copied, and this has been reported.
    Left,
    /// It no longer exists, or has another file type.
    Gone,
}

impl Copier<'_> {
    /// Copies one file of the store's own directory by its name. False where there is no regular file.
    pub(super) fn one(&mut self, name: &[u8]) -> Result<bool, BackupError> {
        let Some(pair) = self.pair(b"")? else {
            return Ok(false);
        };
        Ok(matches!(self.file(&pair, name)?, Copied::Placed))
    }

    /// Copies an entry that is not a directory. False where it has changed since it was listed.
    pub(super) fn entry(
        &mut self,
        pair: &DirectoryPair,
        name: &[u8],
        links: &mut CopiedLinks,
    ) -> Result<bool, BackupError> {
        let path = joined(&pair.path, name);
        let stat = match rustix::fs::statat(&pair.from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => {
                self.not_copied(&path, errno)?;
                self.keep_entry(pair, name)?;
                return Ok(true);
            }
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            return Ok(false);
        }
        if self.is_damaged(pair, name, &path) {
            self.keep_entry(pair, name)?;
            if rustix::fs::statat(&pair.to, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                self.tally.unchanged += 1;
                return Ok(true);
            }
        }
        let many = stat.st_nlink > 1;
        let key = (stat.st_dev, stat.st_ino);
        let old = rustix::fs::statat(&pair.to, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        if let (true, Some((first, number))) = (many, links.copied.get(&key)) {
            if old.as_ref().is_none_or(|old| old.st_ino != *number) {
                let first = first.clone();
                self.link(pair, name, &first)?;
            }
            return Ok(true);
        }
        let earlier = self.unchanged(pair, name, &stat);
        let earlier = earlier.filter(|earlier| !links.taken.contains(&earlier.st_ino));
        let is_copied = old.as_ref().is_some_and(|old| {
            let is_linked = self.is_linking && is_same_file(&stat, old);
            // The time of change of a file that is shared is that of its last name.
            let is_alone = self.earlier.is_none() || old.st_nlink == 1;
            let is_earlier = earlier.is_some_and(|earlier| is_same_file(&earlier, old));
            is_linked
                || is_earlier
                || is_alone
                    && !self.afresh.contains(&path)
                    && metadata::is_copied(&stat, old)
                    && !links.taken.contains(&old.st_ino)
                    && (many || old.st_nlink == 1)
        });
        let number = match (&old, is_copied) {
            (Some(old), true) => {
                self.tally.unchanged += 1;
                old.st_ino
            }
            _ => {
                let is_shared = match &earlier {
                    Some(earlier) => self.is_shared(pair, name, earlier)?,
                    None => false,
                };
                if is_shared {
                    self.tally.unchanged += 1;
                }
                let copied = match kind {
                    _ if is_shared => Copied::Placed,
                    FileType::RegularFile => self.file(pair, name)?,
                    _ => self.special(pair, name, &stat)?,
                };
                match copied {
                    Copied::Placed => {}
                    Copied::Left => {
                        self.keep_entry(pair, name)?;
                        return Ok(true);
                    }
                    Copied::Gone => return Ok(false),
                }
                let new = rustix::fs::statat(&pair.to, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|errno| failed(self.to, Action::Read, &path, errno))?;
                new.st_ino
            }
        };
        if many {
            links.copied.insert(key, (path, number));
            links.taken.insert(number);
        }
        Ok(true)
    }

    /// Whether a file is marked as damaged, and has not been written since.
    fn is_damaged(&self, pair: &DirectoryPair, name: &[u8], path: &[u8]) -> bool {
        self.damaged.get(path).is_some_and(|damaged| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&pair.from, name, flags, Mode::empty());
            file.is_ok_and(|file| read_digest(&file).is_ok_and(|digest| digest == *damaged))
        })
    }

    pub(super) fn temporary(&mut self) -> String {
        self.next += 1;
        format!("{}{}", self.temporaries, self.next)
    }

    /// The directory for incomplete files.
    pub(super) fn staging(&mut self, path: &[u8]) -> Result<&Directory, BackupError> {
        let to = self.to;
        let made = self.staging.directory();
        made.map_err(|errno| failed(to, Action::Make, path, errno))
    }

    /// Moves what is complete to its name.
    pub(super) fn place(
        &mut self,
        temporary: &str,
        pair: &DirectoryPair,
        name: &[u8],
    ) -> Result<(), BackupError> {
        let (path, to) = (joined(&pair.path, name), self.to);
        let staging = self.staging(&path)?;
        let mut placed = rustix::fs::renameat(staging, temporary, &pair.to, name);
        if placed == Err(Errno::ISDIR) {
            remove(to, &pair.path, name)?;
            placed = rustix::fs::renameat(staging, temporary, &pair.to, name);
        }
        // If both are names of one file, rename does nothing and keeps both.
        let _ = staging.remove_file(temporary);
        placed.map_err(|errno| failed(to, Action::Write, &path, errno))
    }

    fn link(&mut self, pair: &DirectoryPair, name: &[u8], first: &[u8]) -> Result<(), BackupError> {
        let (temporary, path, to) = (self.temporary(), joined(&pair.path, name), self.to);
        let (parent, last) = split(first);
        let staging = self.staging(&path)?;
        let linked = to
            .open_far(parent, OFlags::PATH | OFlags::DIRECTORY)
            .and_then(|parent| {
                rustix::fs::linkat(&parent, last, staging, &temporary, AtFlags::empty())
            });
        linked.map_err(|errno| failed(to, Action::Link, &path, errno))?;
        self.place(&temporary, pair, name)
    }

    /// Makes the copy another name of a file that belongs to this user, and that no other user may write. False where it
    /// has to be copied.
    fn is_linked(
        &mut self,
        from: &OwnedFd,
        stat: &Stat,
        temporary: &str,
        path: &[u8],
    ) -> Result<bool, BackupError> {
        if !is_own(stat) || stat.st_mode & 0o022 != 0 {
            return Ok(false);
        }
        let linked = link(from.as_fd(), self.staging(path)?, temporary);
        linked.map_err(|errno| failed(self.to, Action::Link, path, errno))
    }

    /// Copies a regular file.
    fn file(&mut self, pair: &DirectoryPair, name: &[u8]) -> Result<Copied, BackupError> {
        let path = joined(&pair.path, name);
        for attempt in 1..=TRIES {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = |flags| rustix::fs::openat(&pair.from, name, flags, Mode::empty());
            // Only the owner of a file may open it with O_NOATIME.
            let opened = match open(flags | OFlags::NOATIME) {
                Err(Errno::PERM) => open(flags),
                other => other,
            };
            let from = match opened {
                Ok(from) => from,
                Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
                    return Ok(Copied::Gone);
                }
                Err(errno) => {
                    self.not_copied(&path, errno)?;
                    return Ok(Copied::Left);
                }
            };
            let before = fstat(self.from, &from, &path)?;
            if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
                return Ok(Copied::Gone);
            }
            let temporary = self.temporary();
            if self.is_linking && self.is_linked(&from, &before, &temporary, &path)? {
                self.place(&temporary, pair, name)?;
                self.tally.copied += 1;
                break;
            }
            let made = self.staging(&path)?.create(&temporary, 0o600);
            let to: OwnedFd = made
                .map_err(|errno| failed(self.to, Action::Write, &path, errno))?
                .into();
            let is_cloned = self.is_cloned(pair, name, &before, &to);
            let copied = if is_cloned {
                Ok(0)
            } else {
                content::copy(&from, &to, &before)
            };
            match copied {
                Ok(bytes) => self.tally.bytes += bytes,
                Err(ContentError::From(errno)) => {
                    let _ = self.staging(&path)?.remove_file(&temporary);
                    self.not_copied(&path, errno)?;
                    return Ok(Copied::Left);
                }
                Err(ContentError::To(errno)) => {
                    let _ = self.staging(&path)?.remove_file(&temporary);
                    return Err(failed(self.to, Action::Write, &path, errno));
                }
            }
            metadata::file(&from, &before, &to)
                .map_err(|errno| failed(self.to, Action::CopyAttributes, &path, errno))?;
            let after = fstat(self.from, &from, &path)?;
            let steady = self.is_growing || metadata::is_same(&before, &after);
            if !steady && attempt < TRIES {
                let _ = self.staging(&path)?.remove_file(&temporary);
                continue;
            }
            self.place(&temporary, pair, name)?;
            if is_cloned {
                self.tally.unchanged += 1;
            } else {
                self.tally.copied += 1;
            }
            if !steady {
                let why = message!("it was written during each attempt");
                self.found(BackupCode::Unsteady, &path, Some(why))?;
            }
            break;
        }
        Ok(Copied::Placed)
    }

    /// Copies a symbolic link, a FIFO, a socket or a device.
    fn special(
        &mut self,
        pair: &DirectoryPair,
        name: &[u8],
        stat: &Stat,
    ) -> Result<Copied, BackupError> {
        let (path, temporary) = (joined(&pair.path, name), self.temporary());
        let staging = self.staging(&path)?;
        let made = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => match rustix::fs::readlinkat(&pair.from, name, Vec::new()) {
                Ok(target) => rustix::fs::symlinkat(&target, staging, &temporary)
                    .and_then(|()| staging.entry(&temporary)),
                Err(_) => return Ok(Copied::Gone),
            },
            kind => staging.make_node(&temporary, kind, 0o600, stat.st_rdev),
        };
        match made.and_then(|made| metadata::special(stat, &made)) {
            Ok(()) => {}
            // Only root may make devices.
            Err(errno @ (Errno::PERM | Errno::ACCESS)) => {
                self.not_copied(&path, errno)?;
                return Ok(Copied::Left);
            }
            Err(errno) => return Err(failed(self.to, Action::Make, &path, errno)),
        }
        self.place(&temporary, pair, name)?;
        self.tally.copied += 1;
        Ok(Copied::Placed)
    }
}
