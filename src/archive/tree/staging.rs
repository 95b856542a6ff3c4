//! `staging/`: what is being made and is not visible yet. It holds nothing that lasts: a starting mount empties
//! it.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::action::Action;
use super::new_directory::{give_to, open_below};
use super::place::SIDECAR;
use super::place::{Filled, Place, TreeError, failed};
use super::root::Tree;
use crate::archive::owner::Owner;
use crate::os::charging;
use crate::os::deep::clear;
use crate::os::renaming;
use crate::os::writing;

/// An item that has been made and is not visible yet.
#[derive(Debug)]
pub struct StagedItem {
    staging: OwnedFd,
    name: String,
}

/// The number of names in `staging/` that are tried before giving up.
const TRIES: usize = 10_000;

impl Tree {
    /// Empties `staging/`. Only the one writer of a store may do so.
    pub(in crate::archive) fn clear_staging(&self) {
        if let Ok(staging) = self.open_beneath("staging", OFlags::RDONLY | OFlags::DIRECTORY) {
            log_left(clear(&staging));
        }
    }

    /// Makes an item in `staging/`, with its sidecar and, on request, `doc/`. [`Tree::place_item`] makes it
    /// visible as a whole. Only new levels above it are synced.
    pub(in crate::archive) fn stage_item(
        &self,
        place: &Place,
        sidecar: &[u8],
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<StagedItem, TreeError> {
        let failed = |errno| failed(Action::Make, place.as_str())(errno);
        self.make_levels(place.parent())?;
        let mode = Mode::from_raw_mode(owner.map_or(0o755, |owner| owner.mode) & 0o7777);
        let staging = self.open_directory("staging")?;
        let made = self.with_new_name("mint", |name| {
            charging::charged(|| rustix::fs::mkdirat(&staging, name, mode))
        });
        let (name, ()) = made.map_err(failed)?;
        let staged = StagedItem { name, staging };
        let filled = charging::charged(|| {
            let item = open_below(&staged.staging, &staged.name)?;
            if filled == Filled::WithDoc {
                rustix::fs::mkdirat(&item, "doc", mode)?;
            }
            let ids = owner.map(Owner::ids);
            drop(writing::create(&item, SIDECAR, sidecar, 0o644, ids)?);
            if let Some(owner) = owner {
                if filled == Filled::WithDoc {
                    let mode = owner.doc_mode;
                    give_to(&open_below(&item, "doc")?, Owner { mode, ..owner })?;
                }
                give_to(&item, owner)?;
            }
            Ok(())
        });
        match filled {
            Ok(()) => Ok(staged),
            Err(errno) => {
                self.discard(&staged);
                Err(failed(errno))
            }
        }
    }

    /// Makes an empty directory in `staging/` and opens it. The caller fills it; [`Tree::place_item`] makes
    /// it visible.
    pub fn stage_directory(&self, place: &Place) -> Result<(StagedItem, OwnedFd), TreeError> {
        let failed = |errno| failed(Action::Make, place.as_str())(errno);
        self.make_levels(place.parent())?;
        let staging = self.open_directory("staging")?;
        let made = self.with_new_name("import", |name| {
            rustix::fs::mkdirat(&staging, name, Mode::from_raw_mode(0o755))?;
            open_below(&staging, name)
        });
        let (name, directory) = made.map_err(failed)?;
        Ok((StagedItem { staging, name }, directory))
    }

    /// Removes a staged directory and everything in it.
    pub fn discard_all(&self, staged: &StagedItem) {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let (staging, name) = (&staged.staging, &staged.name);
        if let Ok(directory) = rustix::fs::openat2(staging, name, flags, Mode::empty(), resolve) {
            log_left(clear(&directory));
        }
        let _ = rustix::fs::unlinkat(staging, name, AtFlags::REMOVEDIR);
    }

    /// Moves a staged item to its place. EEXIST if the place is taken.
    pub fn place_item(&self, staged: &StagedItem, place: &Place) -> Result<(), TreeError> {
        let parent = self.open_directory(place.parent())?;
        let (from, name) = (&staged.staging, staged.name.as_str());
        charging::charged(|| renaming::rename_new(from, name, &parent, place.name()))
            .map_err(failed(Action::Make, place.as_str()))
    }

    /// Removes what has been made of a staged item that will not be placed.
    pub fn discard(&self, staged: &StagedItem) {
        // An item that cannot be removed stays invisible, and the next mount removes it.
        if let Ok(item) = open_below(&staged.staging, &staged.name) {
            let _ = rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty());
            let _ = rustix::fs::unlinkat(&item, "doc", AtFlags::REMOVEDIR);
        }
        let _ = rustix::fs::unlinkat(&staged.staging, &staged.name, AtFlags::REMOVEDIR);
    }

    /// Removes an item that has just been placed: moves it to `staging/` first, then deletes it.
    pub fn take_back(&self, place: &Place) -> Result<(), TreeError> {
        let staged = StagedItem {
            staging: self.open_directory("staging")?,
            name: self.temporary("mint"),
        };
        let parent = self.open_directory(place.parent())?;
        rustix::fs::renameat(&parent, place.name(), &staged.staging, &staged.name)
            .map_err(failed(Action::TakeBack, place.as_str()))?;
        self.discard(&staged);
        Ok(())
    }

    /// The names in `staging/`. While no process writes the store, they are left over from a crash.
    pub fn left_in_staging(&self) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        let _ = self.each_name("staging", |name, _| names.push(name.to_vec()));
        names.sort();
        names
    }

    /// Makes something in `staging/` under a new name, and returns the name with it. If another user, or an
    /// earlier process with the same process number, has taken a name, the next one is tried.
    pub(super) fn with_new_name<T>(
        &self,
        what: &str,
        mut make: impl FnMut(&str) -> Result<T, Errno>,
    ) -> Result<(String, T), Errno> {
        for _ in 0..TRIES {
            let name = self.temporary(what);
            match make(&name) {
                Err(Errno::EXIST) => {}
                made => return made.map(|made| (name, made)),
            }
        }
        Err(Errno::EXIST)
    }

    pub(super) fn temporary(&self, what: &str) -> String {
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        format!("{what}-{}-{number}", self.stager())
    }

    /// Gives names in `staging/` the number of this process among those that share the store.
    pub fn stage_as(&self, host: i64) {
        self.stager.store(host, Ordering::Relaxed);
    }

    /// The word in names in `staging/` that says which process has made them.
    pub fn stager(&self) -> String {
        match self.stager.load(Ordering::Relaxed) {
            0 => std::process::id().to_string(),
            host => format!("h{host:016x}"),
        }
    }

    /// Removes from `staging/` what processes have left that do not share the store any more. `are_there` returns the
    /// numbers of those that do, and is called after the names were read: a process that made one was there before.
    pub fn clear_left_staging<E>(
        &self,
        are_there: impl FnOnce() -> Result<HashSet<i64>, E>,
    ) -> Result<(), E> {
        let names = self.left_in_staging();
        if names.is_empty() {
            return Ok(());
        }
        let there = are_there()?;
        let is_used = |name: &Vec<u8>| {
            let mut words = name.split(|byte| *byte == b'-');
            words.any(|word| stager_of(word).is_some_and(|host| there.contains(&host)))
        };
        let Ok(staging) = self.open_beneath("staging", OFlags::RDONLY | OFlags::DIRECTORY) else {
            return Ok(());
        };
        for name in names.iter().filter(|name| !is_used(name)) {
            let is_directory = open_below(&staging, &name[..]).is_ok();
            remove(&staging, name, is_directory);
        }
        Ok(())
    }
}

/// The number in a word of [`Tree::stager`].
fn stager_of(word: &[u8]) -> Option<i64> {
    let word = std::str::from_utf8(word).ok()?;
    let digits = word.strip_prefix('h').filter(|digits| digits.len() == 16)?;
    i64::from_str_radix(digits, 16).ok()
}

/// Logs that something cannot be removed. It stays invisible, and the next mount tries again.
fn log_left(cleared: Result<(), Errno>) {
    if let Err(errno) = cleared {
        log::warn!("staging: something that was left behind cannot be removed: {errno}");
    }
}

/// Removes a name and everything below it.
fn remove(directory: &OwnedFd, name: &[u8], is_directory: bool) {
    if is_directory {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        if let Ok(below) = rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve) {
            log_left(clear(&below));
        }
    }
    let flags = if is_directory {
        AtFlags::REMOVEDIR
    } else {
        AtFlags::empty()
    };
    let _ = rustix::fs::unlinkat(directory, name, flags);
}
