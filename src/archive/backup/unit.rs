//! Copies units, such as items, and the levels above them.

use rustix::fs::Stat;
use rustix::io::Errno;

use super::copier::{Copier, Leave, TRIES};
use super::directories::{failed, fstat, is_directory, list, names_of, remove};
use super::entry::CopiedLinks;
use super::finding::{BackupCode, BackupError};
use super::metadata;
use crate::archive::tree::{Action, joined};
use crate::os::deep::split;
use ibi::message;

/// The treatment of units and levels that only the copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vanished {
    Remove,
    Collect,
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

impl Copier<'_> {
    /// Copies the levels above units (above all, items), and the units below them. Entries that the original
    /// no longer has are removed from the copy. Units and levels are removed or, with
    /// [`Vanished::Collect`], added to `vanished`.
    pub(super) fn levels(
        &mut self,
        path: &[u8],
        depth: usize,
        vanished_units: Vanished,
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
            Err(errno) => {
                self.not_copied(path, errno)?;
                return self.keep_directory(path).map(drop);
            }
        };
        names.retain(|(name, _)| !leave(&joined(path, name)));
        names.sort();
        let mut links = CopiedLinks::default();
        for (name, _) in names_of(self.to, path)? {
            let below = joined(path, &name);
            let is_there = names
                .binary_search_by(|(known, _)| known.cmp(&name))
                .is_ok();
            if is_there || leave(&below) {
                continue;
            }
            if vanished_units == Vanished::Collect && is_directory(&pair.to, &name) {
                vanished.push(below);
            } else {
                self.removed(path, &name)?;
            }
        }
        for (name, is_directory) in names {
            if is_directory {
                self.levels(
                    &joined(path, &name),
                    depth - 1,
                    vanished_units,
                    leave,
                    vanished,
                )?;
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

    /// Copies a directory and everything below it once. False where it does not exist.
    pub(super) fn unit_as_it_is(&mut self, path: &[u8]) -> Result<bool, BackupError> {
        Ok(!matches!(self.unit_once(path)?, End::Gone))
    }

    fn unit_once(&mut self, path: &[u8]) -> Result<End, BackupError> {
        let mut waiting = vec![path.to_vec()];
        let mut met: Vec<(Vec<u8>, Stat)> = Vec::new();
        let mut links = CopiedLinks::default();
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
                    self.keep_directory(&path)?;
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
                    && !self.staging.is_at(&joined(&path, &name))
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

    /// Removes a unit from the copy.
    pub(super) fn remove_unit(&mut self, path: &str) -> Result<(), BackupError> {
        let (parent, name) = split(path.as_bytes());
        self.removed(parent, name)?;
        self.set_metadata_above(path.as_bytes())
    }

    fn removed(&mut self, path: &[u8], name: &[u8]) -> Result<(), BackupError> {
        self.tally.removed += 1;
        remove(self.to, path, name)
    }
}
