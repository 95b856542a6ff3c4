//! One item copied to where it lies elsewhere, as a backup copies it: all that a filesystem keeps of it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, Stat};

use super::copying::Copier;
use super::{BackupError, Tally, Tell, metadata};
use crate::archive::tree::{Met, SIDECAR, Tree};

/// A name in an item whose copy was begun and has not been compared since.
pub const UNCOMPARED: &str = ".ibifs-copy-uncompared";

/// All that is no directory, but for what is not copied with the rest.
fn files_of(tree: &Tree) -> Result<BTreeMap<Vec<u8>, Stat>, BackupError> {
    let mut paths = Vec::new();
    tree.each_met_below("", |met| match met {
        Met::Entry(path) | Met::Unreadable(path, _) => paths.push(path),
    })?;
    paths.retain(|path| path != SIDECAR.as_bytes() && path != UNCOMPARED.as_bytes());
    let stat = |path: Vec<u8>| {
        let opened = tree.open_far(&path, OFlags::PATH | OFlags::NOFOLLOW);
        let stat = opened.and_then(rustix::fs::fstat).ok()?;
        Some((path, stat))
    };
    Ok(paths.into_iter().filter_map(stat).collect())
}

/// An item's directory that is made the same as another.
#[allow(missing_debug_implementations, reason = "it holds closures")]
pub struct ItemCopier<'a>(Copier<'a>);

impl<'a> ItemCopier<'a> {
    /// From one item's directory to another's. What is not complete yet lies in `staging`, which is on
    /// the filesystem of the copy; where that is the item itself, nothing else in it may begin with
    /// [`ItemCopier::TEMPORARY`].
    pub fn new(
        from: &'a Tree,
        to: &'a Tree,
        staging: OwnedFd,
        tell: &'a mut Tell<'a>,
        progress: &'a mut dyn FnMut(u64),
    ) -> ItemCopier<'a> {
        let temporaries = format!("{}{}-", ItemCopier::TEMPORARY, std::process::id());
        let copier = Copier::over(from, to, staging, temporaries, tell, progress);
        ItemCopier(
            copier.leaving(|path| path == SIDECAR.as_bytes() || path == UNCOMPARED.as_bytes()),
        )
    }

    /// How the names begin of what is not complete yet.
    pub const TEMPORARY: &'static str = ".ibifs-copy-";

    /// Whether a file is there on one side only, or differs as far as one can see without reading it.
    pub fn is_due(from: &Tree, to: &Tree) -> Result<bool, BackupError> {
        let [here, there] = [files_of(from)?, files_of(to)?];
        Ok(here.len() != there.len()
            || here.iter().any(|(path, original)| {
                let copy = there.get(path);
                !copy.is_some_and(|copy| metadata::is_copied(original, copy))
            }))
    }

    /// Copies everything but the sidecar, and removes what the copy has beside that. False where there
    /// is no such item.
    pub fn content(&mut self) -> Result<bool, BackupError> {
        self.0.unit(b"")
    }

    /// Copies the sidecar, where there is one.
    pub fn sidecar(&mut self) -> Result<bool, BackupError> {
        self.0.one(SIDECAR.as_bytes())
    }

    /// Gives the copy's directory the time of the original's again, after something was made in it.
    pub fn finish(&mut self) -> Result<(), BackupError> {
        self.0.set_metadata(b"", None).map(drop)
    }

    /// What was done so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.0.tally
    }
}
