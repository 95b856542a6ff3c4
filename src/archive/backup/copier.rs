//! A directory of one store and its copy in another: opened, made, and given its metadata.
//!
//! All access goes through descriptors and never through a symbolic link on either side, because a user with
//! write permission in an item may swap names meanwhile. The entries that are copied,
//! and their order, are in [`super::entry`] and [`super::unit`].

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::directories::{failed, fstat, names_of, remove};
use super::earlier::Earlier;
use super::finding::{BackupCode, BackupError, BackupFinding, BackupTally};
use super::metadata;
use super::staging::{PREFIX, Staging};
use crate::archive::finding::Reporter;
use crate::archive::tree::Action;
use crate::archive::tree::Tree;
use crate::formats::fixity::Digest;
use crate::os::deep::split;
use ibi::message::{Localize, Message};

/// The number of times that an entry is copied that changes meanwhile.
pub(super) const TRIES: usize = 3;

/// Selects names at the top of an area that are not copied.
pub(super) type Leave = fn(&[u8]) -> bool;

/// Copies units, such as items, from one store to another.
pub(super) struct Copier<'a> {
    pub(super) from: &'a Tree,
    pub(super) to: &'a Tree,
    pub(super) staging: Staging,
    /// The name prefix of incomplete files in `staging`.
    pub(super) temporaries: String,
    pub(super) next: u64,
    /// Selects the parts of a unit that are not copied.
    pub(super) leave: Leave,
    /// Whether files may grow while they are copied, and no more of them is needed than is there.
    pub(super) is_growing: bool,
    /// Whether files become further names of the originals, where they can.
    pub(super) is_linking: bool,
    /// The files whose copies are not good, whatever their size and time.
    pub(super) afresh: BTreeSet<Vec<u8>>,
    /// The files that do not replace their copies as long as they have this content, which is damaged.
    pub(super) damaged: BTreeMap<Vec<u8>, Digest>,
    /// Whether the uppermost directory keeps its own owner, mode and attributes.
    pub(super) is_top_kept: bool,
    /// The earlier generation, with which this one shares files.
    pub(super) earlier: Option<Earlier<'a>>,
    pub(super) tally: BackupTally,
    pub(super) report: &'a mut Reporter<'a, BackupFinding>,
    pub(super) progress: &'a mut dyn FnMut(u64),
}

/// A directory in both stores while it is copied.
pub(super) struct DirectoryPair {
    pub(super) path: Vec<u8>,
    pub(super) from: OwnedFd,
    pub(super) to: OwnedFd,
    /// That of the earlier generation.
    pub(super) earlier: Option<OwnedFd>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(
        from: &'a Tree,
        to: &'a Tree,
        report: &'a mut Reporter<'a, BackupFinding>,
        progress: &'a mut dyn FnMut(u64),
    ) -> Result<Copier<'a>, BackupError> {
        let staging = Staging::Own(to.open_directory("staging")?.into());
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
        staging: Staging,
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
            is_growing: false,
            is_linking: false,
            afresh: BTreeSet::new(),
            damaged: BTreeMap::new(),
            is_top_kept: false,
            earlier: None,
            tally: BackupTally::default(),
            report,
            progress,
        }
    }

    /// Selects parts of a unit that are neither copied nor removed from the copy.
    pub(super) fn leaving(self, leave: Leave) -> Copier<'a> {
        Copier { leave, ..self }
    }

    /// Removes the directory for incomplete files from the item.
    pub(super) fn remove_staging(&mut self) -> Result<(), BackupError> {
        let removed = self.staging.remove();
        removed.map_err(|errno| failed(self.to, Action::Remove, PREFIX.as_bytes(), errno))
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
        self.tally.incomplete += u64::from(code.is_incomplete());
        (self.report)(&finding).map_err(BackupError::Report)
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
        if !(self.is_top_kept && path.is_empty()) {
            metadata::directory(&pair.from, &stat, &pair.to)
                .map_err(|errno| failed(self.to, Action::CopyAttributes, path, errno))?;
        }
        Ok(before.is_none_or(|before| metadata::is_same(before, &stat)))
    }

    /// Opens a directory on both sides and makes it in the copy. None where the original has none.
    pub(super) fn pair(&mut self, path: &[u8]) -> Result<Option<DirectoryPair>, BackupError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let from = match self.from.open_far(path, flags) {
            Ok(from) => from,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => {
                self.not_copied(path, errno)?;
                self.keep_directory(path)?;
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
        Ok(Some(DirectoryPair {
            path: path.to_vec(),
            from,
            to,
            earlier: self.earlier.as_ref().and_then(|it| it.directory(path)),
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

    pub(super) fn not_copied(&mut self, path: &[u8], errno: Errno) -> Result<(), BackupError> {
        let why = std::io::Error::from(errno).message();
        self.found(BackupCode::NotCopied, path, Some(why))
    }
}
