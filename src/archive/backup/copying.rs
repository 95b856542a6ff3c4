//! Copies directories from one store to another: names, content and metadata.
//!
//! All access goes through descriptors and never through a symbolic link on either side, because a user with
//! write permission in an item may swap names meanwhile. A file is completed in the `staging/` of the
//! destination and then renamed, so the previous copy is intact until it is replaced. A copy is left as it is
//! if it has the size and modification time of the original and was made after the original's inode last
//! changed: a file that decays on disk changes none of these, and does not overwrite its good copy.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::content::{self, ContentError};
use super::metadata;
use super::{BackupCode, BackupError, BackupFinding, BackupTally};
use crate::archive::finding::Reporter;
use crate::archive::tree::Action;
use crate::archive::tree::{Tree, TreeError, joined};
use ibi::message;
use ibi::message::{Localize, Message};

/// How many times an entry is copied that changes meanwhile.
const TRIES: usize = 3;

/// Selects names at the top of an area that are not copied.
pub(super) type Leave = fn(&[u8]) -> bool;

/// Copies units, such as items, from one store to another.
pub(super) struct Copier<'a> {
    pub(super) from: &'a Tree,
    pub(super) to: &'a Tree,
    staging: OwnedFd,
    /// The name prefix of incomplete files in `staging`.
    temporaries: String,
    next: u64,
    /// Selects the parts of a unit that are not copied.
    leave: Leave,
    pub(super) tally: BackupTally,
    pub(super) report: &'a mut Reporter<'a, BackupFinding>,
    progress: &'a mut dyn FnMut(u64),
}

/// Files of one unit that have several names.
#[derive(Default)]
struct Links {
    /// By device and inode number of the original: the path of its copy, and the copy's inode number.
    copied: HashMap<(u64, u64), (Vec<u8>, u64)>,
    /// Inode numbers of copies that belong to an original already.
    taken: HashSet<u64>,
}

/// A directory in both stores while it is copied.
struct Pair {
    path: Vec<u8>,
    from: OwnedFd,
    to: OwnedFd,
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

/// The result of copying a unit.
enum End {
    /// It did not change meanwhile.
    Steady,
    /// Names or content changed meanwhile.
    Changing,
    /// It does not exist.
    Gone,
}

impl<'a> Copier<'a> {
    pub(super) fn new(
        from: &'a Tree,
        to: &'a Tree,
        report: &'a mut Reporter<'a, BackupFinding>,
        progress: &'a mut dyn FnMut(u64),
    ) -> Result<Copier<'a>, BackupError> {
        let staging = to.open_directory("staging")?;
        // Left behind by an interrupted backup.
        for (name, _) in names_of(to, b"staging")? {
            remove(to, b"staging", &name)?;
        }
        let temporaries = "backup-".to_owned();
        Ok(Copier::over(
            from,
            to,
            staging,
            temporaries,
            report,
            progress,
        ))
    }

    /// A copier between any two directories, with a directory for incomplete files.
    pub(super) fn over(
        from: &'a Tree,
        to: &'a Tree,
        staging: OwnedFd,
        temporaries: String,
        report: &'a mut Reporter<'a, BackupFinding>,
        progress: &'a mut dyn FnMut(u64),
    ) -> Copier<'a> {
        Copier {
            from,
            to,
            staging,
            temporaries,
            next: 0,
            leave: |_| false,
            tally: BackupTally::default(),
            report,
            progress,
        }
    }

    /// Selects parts of a unit that are neither copied nor removed from the copy.
    pub(super) fn leaving(self, leave: Leave) -> Copier<'a> {
        Copier { leave, ..self }
    }

    pub(super) fn found(
        &mut self,
        code: BackupCode,
        path: &[u8],
        detail: Option<Message>,
    ) -> Result<(), BackupError> {
        let finding = BackupFinding {
            code,
            path: path.to_vec(),
            detail,
        };
        self.tally.found += 1;
        (self.report)(&finding).map_err(BackupError::Report)
    }

    /// Copies the levels above units (above all, items), and the units below them. What the original no
    /// longer has is removed from the copy. Units and levels are removed only with `prune`; otherwise they
    /// are added to `vanished`.
    pub(super) fn levels(
        &mut self,
        path: &[u8],
        depth: usize,
        prune: bool,
        leave: Leave,
        vanished: &mut Vec<Vec<u8>>,
    ) -> Result<(), BackupError> {
        if depth == 0 {
            self.unit(path)?;
            return Ok(());
        }
        let Some(pair) = self.pair(path)? else {
            return Ok(());
        };
        let mut names = match list(&pair.from) {
            Ok(names) => names,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return self.not_copied(path, errno),
        };
        names.retain(|(name, _)| !leave(&joined(path, name)));
        names.sort();
        let mut links = Links::default();
        for (name, _) in names_of(self.to, path)? {
            let below = joined(path, &name);
            let is_there = names
                .binary_search_by(|(known, _)| known.cmp(&name))
                .is_ok();
            if is_there || leave(&below) {
                continue;
            }
            if !prune && is_directory(&pair.to, &name) {
                vanished.push(below);
            } else {
                self.removed(path, &name)?;
            }
        }
        for (name, is_directory) in names {
            if is_directory {
                self.levels(&joined(path, &name), depth - 1, prune, leave, vanished)?;
            } else {
                self.entry(&pair, &name, &mut links)?;
            }
        }
        let stat = fstat(self.from, &pair.from, path)?;
        metadata::directory(&pair.from, &stat, &pair.to)
            .map_err(|errno| failed(self.to, Action::CopyAttributes, path, errno))
    }

    /// Copies a directory and everything below it. False where it does not exist.
    pub(super) fn unit(&mut self, path: &[u8]) -> Result<bool, BackupError> {
        self.tally.units += 1;
        (self.progress)(self.tally.units);
        for _ in 0..TRIES {
            match self.unit_once(path)? {
                End::Gone => return Ok(false),
                End::Steady => return Ok(true),
                End::Changing => {}
            }
        }
        self.found(
            BackupCode::Unsteady,
            path,
            Some(message!("names appeared and disappeared")),
        )?;
        Ok(true)
    }

    fn unit_once(&mut self, path: &[u8]) -> Result<End, BackupError> {
        let mut waiting = vec![path.to_vec()];
        let mut met: Vec<(Vec<u8>, Stat)> = Vec::new();
        let mut links = Links::default();
        let mut steady = true;
        while let Some(path) = waiting.pop() {
            let Some(pair) = self.pair(&path)? else {
                if met.is_empty() {
                    return Ok(End::Gone);
                } else {
                    steady = false;
                }
                continue;
            };
            let stat = fstat(self.from, &pair.from, &path)?;
            met.push((path.clone(), stat));
            let mut names = match list(&pair.from) {
                Ok(names) => names,
                // Removed while it was open.
                Err(Errno::NOENT) => {
                    steady = false;
                    continue;
                }
                Err(errno) => {
                    self.not_copied(&path, errno)?;
                    continue;
                }
            };
            names.retain(|(name, _)| !(self.leave)(&joined(&path, name)));
            names.sort();
            for (name, _) in names_of(self.to, &path)? {
                if names
                    .binary_search_by(|(known, _)| known.cmp(&name))
                    .is_err()
                    && !(self.leave)(&joined(&path, &name))
                {
                    self.removed(&path, &name)?;
                }
            }
            for (name, is_directory) in names {
                if is_directory {
                    waiting.push(joined(&path, &name));
                } else {
                    steady &= self.entry(&pair, &name, &mut links)?;
                }
            }
        }
        // Last, because each name made in a directory changes its time; the deepest first.
        for (path, before) in met.iter().rev() {
            steady &= self.set_metadata(path, Some(before))?;
        }
        Ok(if steady { End::Steady } else { End::Changing })
    }

    /// Sets the metadata of all directories above a path.
    pub(super) fn set_metadata_above(&mut self, path: &[u8]) -> Result<(), BackupError> {
        let mut above = path;
        while let Some(cut) = above.iter().rposition(|byte| *byte == b'/') {
            above = &above[..cut];
            self.set_metadata(above, None)?;
        }
        Ok(())
    }

    /// Gives a directory's copy its owner, permission bits, attributes and times. False where the original
    /// has changed since `before`.
    pub(super) fn set_metadata(
        &mut self,
        path: &[u8],
        before: Option<&Stat>,
    ) -> Result<bool, BackupError> {
        let Some(pair) = self.pair(path)? else {
            return Ok(false);
        };
        let stat = fstat(self.from, &pair.from, path)?;
        metadata::directory(&pair.from, &stat, &pair.to)
            .map_err(|errno| failed(self.to, Action::CopyAttributes, path, errno))?;
        Ok(before.is_none_or(|before| metadata::is_same(before, &stat)))
    }

    /// Copies one file of the store's own directory by its name. False where there is no regular file.
    pub(super) fn one(&mut self, name: &[u8]) -> Result<bool, BackupError> {
        let Some(pair) = self.pair(b"")? else {
            return Ok(false);
        };
        Ok(matches!(self.file(&pair, name)?, Copied::Placed))
    }

    /// Opens a directory on both sides and makes it in the copy. None where the original has none.
    fn pair(&mut self, path: &[u8]) -> Result<Option<Pair>, BackupError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let from = match self.from.open_far(path, flags) {
            Ok(from) => from,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => {
                self.not_copied(path, errno)?;
                return Ok(None);
            }
        };
        let to = match self.to.open_far(path, flags) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.make_directory(path)?;
                self.to.open_far(path, flags)
            }
            other => other,
        }
        .map_err(|errno| failed(self.to, Action::Open, path, errno))?;
        Ok(Some(Pair {
            path: path.to_vec(),
            from,
            to,
        }))
    }

    fn make_directory(&mut self, path: &[u8]) -> Result<(), BackupError> {
        let (parent, name) = split(path);
        let failed = |errno| failed(self.to, Action::Make, path, errno);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = match self.to.open_far(parent, flags) {
            Err(Errno::NOENT) => {
                self.make_directory(parent)?;
                self.to.open_far(parent, flags)
            }
            other => other,
        };
        let opened = opened.map_err(failed)?;
        match rustix::fs::unlinkat(&opened, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        // Closed to other users until it has its own permission bits.
        rustix::fs::mkdirat(&opened, name, Mode::from_raw_mode(0o700)).map_err(failed)
    }

    fn removed(&mut self, path: &[u8], name: &[u8]) -> Result<(), BackupError> {
        self.tally.removed += 1;
        remove(self.to, path, name)
    }

    /// Removes a unit from the copy.
    pub(super) fn remove_unit(&mut self, path: &str) -> Result<(), BackupError> {
        let (parent, name) = split(path.as_bytes());
        self.removed(parent, name)?;
        self.set_metadata_above(path.as_bytes())
    }

    fn not_copied(&mut self, path: &[u8], errno: Errno) -> Result<(), BackupError> {
        let why = std::io::Error::from(errno).message();
        self.found(BackupCode::NotCopied, path, Some(why))
    }

    /// Copies an entry that is not a directory. False where it has changed since it was listed.
    fn entry(&mut self, pair: &Pair, name: &[u8], links: &mut Links) -> Result<bool, BackupError> {
        let path = joined(&pair.path, name);
        let stat = match rustix::fs::statat(&pair.from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => {
                self.not_copied(&path, errno)?;
                return Ok(true);
            }
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            return Ok(false);
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
        let is_copied = old.as_ref().is_some_and(|old| {
            metadata::is_copied(&stat, old)
                && !links.taken.contains(&old.st_ino)
                && (many || old.st_nlink == 1)
        });
        let number = match (&old, is_copied) {
            (Some(old), true) => {
                self.tally.unchanged += 1;
                old.st_ino
            }
            _ => {
                let copied = match kind {
                    FileType::RegularFile => self.file(pair, name)?,
                    _ => self.special(pair, name, &stat)?,
                };
                match copied {
                    Copied::Placed => {}
                    Copied::Left => return Ok(true),
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

    fn temporary(&mut self) -> String {
        self.next += 1;
        format!("{}{}", self.temporaries, self.next)
    }

    /// Renames a complete file from `staging/` to its name.
    fn place(&self, temporary: &str, pair: &Pair, name: &[u8]) -> Result<(), BackupError> {
        let placed = loop {
            match rustix::fs::renameat(&self.staging, temporary, &pair.to, name) {
                Err(Errno::ISDIR) => remove(self.to, &pair.path, name)?,
                other => break other,
            }
        };
        // If both are names of one file, rename does nothing and keeps both.
        let _ = rustix::fs::unlinkat(&self.staging, temporary, AtFlags::empty());
        placed.map_err(|errno| failed(self.to, Action::Write, &joined(&pair.path, name), errno))
    }

    fn link(&mut self, pair: &Pair, name: &[u8], first: &[u8]) -> Result<(), BackupError> {
        let temporary = self.temporary();
        let (parent, last) = split(first);
        let linked = self
            .to
            .open_far(parent, OFlags::PATH | OFlags::DIRECTORY)
            .and_then(|parent| {
                let flags = AtFlags::empty();
                rustix::fs::linkat(&parent, last, &self.staging, &temporary, flags)
            });
        linked.map_err(|errno| failed(self.to, Action::Link, &joined(&pair.path, name), errno))?;
        self.place(&temporary, pair, name)
    }

    /// Copies a regular file.
    fn file(&mut self, pair: &Pair, name: &[u8]) -> Result<Copied, BackupError> {
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
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o600);
            let to = rustix::fs::openat(&self.staging, &temporary, flags, mode)
                .map_err(|errno| failed(self.to, Action::Write, &path, errno))?;
            match content::copy(&from, &to, &before) {
                Ok(bytes) => self.tally.bytes += bytes,
                Err(ContentError::From(errno)) => {
                    let _ = rustix::fs::unlinkat(&self.staging, &temporary, AtFlags::empty());
                    self.not_copied(&path, errno)?;
                    return Ok(Copied::Left);
                }
                Err(ContentError::To(errno)) => {
                    let _ = rustix::fs::unlinkat(&self.staging, &temporary, AtFlags::empty());
                    return Err(failed(self.to, Action::Write, &path, errno));
                }
            }
            metadata::file(&from, &before, &to)
                .map_err(|errno| failed(self.to, Action::CopyAttributes, &path, errno))?;
            let after = fstat(self.from, &from, &path)?;
            let steady = metadata::is_same(&before, &after);
            if !steady && attempt < TRIES {
                let _ = rustix::fs::unlinkat(&self.staging, &temporary, AtFlags::empty());
                continue;
            }
            self.place(&temporary, pair, name)?;
            self.tally.copied += 1;
            if !steady {
                let why = message!("it was written during each attempt");
                self.found(BackupCode::Unsteady, &path, Some(why))?;
            }
            break;
        }
        Ok(Copied::Placed)
    }

    /// Copies a symbolic link, a FIFO, a socket or a device.
    fn special(&mut self, pair: &Pair, name: &[u8], stat: &Stat) -> Result<Copied, BackupError> {
        let path = joined(&pair.path, name);
        let temporary = self.temporary();
        let kind = FileType::from_raw_mode(stat.st_mode);
        let made = match kind {
            FileType::Symlink => match rustix::fs::readlinkat(&pair.from, name, Vec::new()) {
                Ok(target) => rustix::fs::symlinkat(&target, &self.staging, &temporary),
                Err(_) => return Ok(Copied::Gone),
            },
            kind => {
                let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
                rustix::fs::mknodat(&self.staging, &temporary, kind, mode, stat.st_rdev)
            }
        };
        match made.and_then(|()| metadata::special(stat, &self.staging, &temporary)) {
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

fn failed(tree: &Tree, action: Action, path: &[u8], errno: Errno) -> BackupError {
    let shown = crate::formats::fixity::shown(path);
    BackupError::Archive(tree.error(action, &shown, errno).into())
}

fn fstat(tree: &Tree, file: &OwnedFd, path: &[u8]) -> Result<Stat, BackupError> {
    rustix::fs::fstat(file).map_err(|errno| failed(tree, Action::Read, path, errno))
}

fn is_directory(parent: &OwnedFd, name: &[u8]) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// The directory of a path, and the last component.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (b".", path),
    }
}

fn list(directory: &OwnedFd) -> Result<Vec<(Vec<u8>, bool)>, Errno> {
    let mut names = Vec::new();
    crate::archive::tree::each_entry_of(directory, |name, is_directory| {
        names.push((name.to_vec(), is_directory));
    })?;
    Ok(names)
}

fn names_of(tree: &Tree, path: &[u8]) -> Result<Vec<(Vec<u8>, bool)>, BackupError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    tree.open_far(path, flags)
        .and_then(|directory| list(&directory))
        .map_err(|errno| failed(tree, Action::List, path, errno))
}

/// Removes a name and, for a directory, everything below it.
fn remove(tree: &Tree, path: &[u8], name: &[u8]) -> Result<(), BackupError> {
    let root = joined(path, name);
    let mut directories = vec![root.clone()];
    let mut at = 0;
    let unlink = |path: &[u8], flags: AtFlags| {
        let (parent, name) = split(path);
        let removed = tree
            .open_far(parent, OFlags::PATH | OFlags::DIRECTORY)
            .and_then(|parent| rustix::fs::unlinkat(&parent, name, flags));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    };
    match unlink(&root, AtFlags::empty()) {
        Ok(()) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(failed(tree, Action::Remove, &root, errno)),
    }
    while let Some(directory) = directories.get(at).cloned() {
        at += 1;
        for (name, is_directory) in names_of(tree, &directory)? {
            let below = joined(&directory, &name);
            if is_directory {
                directories.push(below);
            } else {
                unlink(&below, AtFlags::empty())
                    .map_err(|errno| failed(tree, Action::Remove, &below, errno))?;
            }
        }
    }
    for directory in directories.iter().rev() {
        unlink(directory, AtFlags::REMOVEDIR)
            .map_err(|errno| failed(tree, Action::Remove, directory, errno))?;
    }
    Ok(())
}

impl From<TreeError> for BackupError {
    fn from(error: TreeError) -> BackupError {
        BackupError::Archive(error.into())
    }
}
