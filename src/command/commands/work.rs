//! `ibifs work`: runs a command that finds the directories of the store under the paths of items and levels in a mount.
//!
//! - [`level`]: a level, such as the root: the daemon is asked by a socket.
//! - [`snapshot`]: what changes in an item.
//!
//! An item's sidecar is open for writing through the mount meanwhile: the daemon has logged, durably, that it may
//! change, and reads it again when it is closed, however this process ends. The changes of the command are
//! found by comparing two snapshots, and the daemon invalidates what the kernel knows of it.

mod level;
mod snapshot;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, AtFlags, CWD, OFlags, ResolveFlags, XattrFlags};
use rustix::io::Errno;

use super::access::{self, Named};
use crate::archive::tree::{self, SIDECAR};
use crate::archive::{ArchiveError, Clock, SystemClock, attribute_of};
use crate::command::cli::Work;
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::fuse::mount::Mounted;
use crate::fuse::namespace::CHANGED_BESIDE;
use crate::os::directory::{Directory, random_name};
use crate::os::namespaces::{self, Bound, RunError};
use crate::os::opening;
use ibi::message;
use level::Level;
use snapshot::Snapshot;

/// The bytes of paths that the daemon is told of at once.
const BATCH: usize = 16_384;

/// An item that is worked on.
struct Item {
    /// Its directory in the mount.
    shown: Place,
    /// Its directory in the store.
    native: Place,
    /// Its sidecar, open through the mount; None for a user who may not write it.
    sidecar: Option<File>,
    before: Snapshot,
    refused: BTreeSet<Vec<u8>>,
}

/// A directory of an item, whose owner may exchange what is in it.
struct Place {
    path: PathBuf,
    directory: Directory,
}

impl Place {
    fn open(path: PathBuf) -> Result<Place, Failure> {
        let opened = Directory::open(&path);
        Place::of(path, opened)
    }

    /// A directory of the store, by its path below. Another user may own directories on the way, so no link is followed.
    fn in_store(store: &Path, below: &str) -> Result<Place, Failure> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = opening::found(store, OFlags::DIRECTORY)
            .and_then(|store| opening::beneath(store, below, flags, resolve));
        Place::of(store.join(below), opened.map(Directory::from))
    }

    fn named(&self) -> (&Path, BorrowedFd<'_>) {
        (&self.path, self.directory.as_fd())
    }

    fn of(path: PathBuf, opened: Result<Directory, Errno>) -> Result<Place, Failure> {
        match opened {
            Ok(directory) => Ok(Place { path, directory }),
            Err(errno) => {
                let error = std::io::Error::from(errno);
                Err(super::failed_at(&path, Exit::Failed, &error))
            }
        }
    }
}

pub(super) fn run(options: &Work) -> Result<Exit, Failure> {
    let mut items: Vec<Item> = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    for text in &options.items {
        if let Some(level) = Level::begin(Path::new(text))? {
            levels.push(level);
            continue;
        }
        let item = Item::begin(text, options.store.as_deref())?;
        if items
            .iter()
            .all(|known| known.shown.path != item.shown.path)
        {
            items.push(item);
        }
    }
    // A directory that hides another one is mounted first.
    let of_items = items.iter().map(|item| (&item.native, &item.shown));
    let of_levels = levels.iter().map(|level| (&level.native, &level.shown));
    let mut places: Vec<(&Place, &Place)> = of_levels.chain(of_items).collect();
    places.sort_by_key(|(_, shown)| shown.path.as_os_str().len());
    let bound = places
        .into_iter()
        .map(|(native, shown)| Bound::new(native.named(), shown.named()));
    let bound = bound.collect::<std::io::Result<_>>();
    let bound = bound.map_err(|error| super::failed_at(Path::new("."), Exit::Failed, &error))?;
    let ended = namespaces::run(command(options), bound);
    let mut is_refused = false;
    for item in items {
        is_refused |= !item.end();
    }
    let mut failure = None;
    for level in levels {
        match level.end() {
            Ok(is_accepted) => is_refused |= !is_accepted,
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    if let (Some(failure), Ok(0)) = (failure, &ended) {
        return Err(failure);
    }
    match ended {
        Ok(0) if is_refused => Ok(Exit::Refused),
        // The status is that of the command, whatever it means.
        Ok(0) => Ok(Exit::Done),
        Ok(status) => std::process::exit(i32::from(status)),
        Err(RunError::Namespace(errno)) => Err(Failure::new(
            Exit::Failed,
            message!(
                "no mount namespace: {error}; an ordinary user needs user namespaces, see user_namespaces(7)",
                error = std::io::Error::from(errno)
            ),
        )),
        Err(RunError::Command(error)) => {
            let program = command(options).get_program().to_owned();
            Err(super::failed_at(Path::new(&program), Exit::Failed, &error))
        }
    }
}

fn command(options: &Work) -> Command {
    match options.command.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        None => Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
    }
}

/// The directory of an item in a mount that a path names or lies in.
fn item_above(path: &Path) -> Option<PathBuf> {
    let resolved = std::fs::canonicalize(path).ok()?;
    Mounted::containing(&resolved)?;
    let names = ["user.ibi.rep", "user.ibi.ibip"];
    let is_item = |above: &&Path| names.iter().any(|name| attribute_of(above, name).is_some());
    resolved.ancestors().find(is_item).map(Path::to_owned)
}

impl Item {
    fn begin(text: &str, store: Option<&Path>) -> Result<Item, Failure> {
        let Named { access, names, .. } = access::find(text, store)?;
        let shown = item_above(Path::new(text)).or_else(|| access.path_in_mount(&names));
        let Some(shown) = shown else {
            return Err(Failure::new(
                Exit::Refused,
                message!(
                    "'{store}' is not mounted; mount it first, with 'ibifs mount'",
                    store = access.store.display()
                ),
            ));
        };
        let found = std::fs::canonicalize(&shown);
        let shown = found.map_err(|error| super::failed_at(&shown, Exit::NotFound, &error))?;
        let native = access.store.join(tree::Place::of(&names).as_str());
        let enter = Access::READ_OK | Access::EXEC_OK;
        if let Err(errno) = rustix::fs::accessat(CWD, &native, enter, AtFlags::EACCESS) {
            return Err(Failure::new(
                Exit::Refused,
                message!(
                    "'{path}': {error}; this user works in it through the mount only, unless the owner of the store opens its directories",
                    path = native.display(),
                    error = std::io::Error::from(errno)
                ),
            ));
        }
        let known = access.read()?.store().find_by_names(&names)?;
        let seal = known.and_then(|item| item.life.sealed);
        if let Some(seal) = seal.filter(|seal| seal.holds_at(&SystemClock.now())) {
            return Err(ArchiveError::Sealed {
                names: names.into(),
                at: seal.at,
            }
            .into());
        }
        let shown = Place::open(shown)?;
        let native = Place::in_store(&access.store, tree::Place::of(&names).as_str())?;
        Ok(Item {
            sidecar: shown.directory.file_to_change(SIDECAR).ok(),
            before: Snapshot::of(&native.directory),
            refused: refused_in(&native.directory),
            shown,
            native,
        })
    }

    /// Has the sidecar read again, and what was changed looked up again. False for a sidecar that was refused.
    fn end(self) -> bool {
        let (shown, native) = (&self.shown.directory, &self.native.directory);
        let changed = Snapshot::of(native).changed_since(&self.before);
        let mut batch = Vec::new();
        let tell = |batch: &mut Vec<u8>| {
            // The open file has the attribute even if the command has removed its name.
            let flags = XattrFlags::empty();
            let told = match &self.sidecar {
                Some(file) => rustix::fs::fsetxattr(file, CHANGED_BESIDE, batch, flags),
                None => shown.entry(SIDECAR).and_then(|sidecar| {
                    opening::set_attribute(sidecar.as_fd(), CHANGED_BESIDE, batch, flags)
                }),
            };
            batch.clear();
            told
        };
        let mut told = Ok(());
        // The directory itself.
        batch.extend(b"=\0");
        for path in changed {
            batch.extend(path);
            batch.push(0);
            if batch.len() > BATCH {
                told = told.and(tell(&mut batch));
            }
        }
        if !batch.is_empty() {
            told = told.and(tell(&mut batch));
        }
        if let Err(errno) = told {
            log::warn!(
                "the mount shows some changes late: {}",
                std::io::Error::from(errno)
            );
        }
        let mut is_refused = false;
        let after = native.entry(SIDECAR);
        let after = after.map(|found| (found.stat().st_dev, found.stat().st_ino));
        if after.is_ok_and(|number| Some(number) != self.before.number_of(SIDECAR.as_bytes())) {
            // Another file than the one that is open: the mount judges it as one that is renamed into place.
            let arriving = random_name(".ibi.work-").unwrap_or_default();
            if native.rename_new(SIDECAR, native, &arriving).is_ok()
                && shown.rename_over(&arriving, shown, SIDECAR).is_err()
            {
                // Its text is kept under another name.
                is_refused = true;
                let _ = shown.remove_file(&arriving);
            }
        }
        // The daemon now reads the sidecar again, and restores one that was removed.
        is_refused |= self
            .sidecar
            .is_some_and(|file| namespaces::closed(file).is_err());
        if native.entry(SIDECAR).is_err() {
            // Removed through the mount, it is restored as well.
            drop(shown.create(SIDECAR, 0o666));
            let _ = shown.remove_file(SIDECAR);
        }
        let refused = refused_in(native);
        let item = self.shown.path.display();
        let kept: Vec<_> = refused.difference(&self.refused).collect();
        for name in &kept {
            let sentence = message!(
                "the sidecar in '{item}' was refused, and the one in force stays; it is kept as '{name}'",
                item,
                name = String::from_utf8_lossy(name).as_ref()
            );
            eprintln!("ibifs: {}", localized(&sentence));
        }
        if is_refused && kept.is_empty() {
            let sentence = message!(
                "the sidecar in '{item}' was refused again, and the one in force stays",
                item
            );
            eprintln!("ibifs: {}", localized(&sentence));
        }
        !is_refused && kept.is_empty()
    }
}

/// The sidecars in an item that were refused.
fn refused_in(native: &Directory) -> BTreeSet<Vec<u8>> {
    let listed = native.entries().unwrap_or_default();
    let names = listed.into_iter().map(|(name, _)| name);
    names
        .filter(|name| name.starts_with(b".ibi.broken-"))
        .collect()
}
