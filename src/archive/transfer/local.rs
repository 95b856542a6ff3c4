//! A store on this machine as one end of a transfer, mounted or not.
//!
//! A store that is not mounted is changed by the Archive, which holds its lock. A mounted store is changed
//! through its mount, as by any program: the daemon notices the changes, and the caller's rights apply.
//! Reading uses the store's own directories in both cases.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, Stat};

use super::outcome::{ByteProgress, TransferError};
use super::skip::Skip;
use crate::archive::manifest::sealed_files;
use crate::archive::scrub;
use crate::archive::store::{By, Item};
use crate::archive::tree::{Action, DeepEntry, Place, SIDECAR, Tree};
use crate::archive::{
    Actor, Archive, ArchiveError, Event, Process, Stranger, SystemClock, TransferLock, log_event,
};
use crate::formats::fixity::{Manifest, shown};
use crate::formats::history::EventKind;
use crate::formats::item::{Names, Sidecar};
use crate::os::serving;
use ibi::message;

/// A store on this machine.
#[derive(Debug)]
pub struct Local {
    pub(super) archive: Archive,
    /// The mount point; None where this holds the store's lock, or only reads.
    pub(super) mount_point: Option<PathBuf>,
    /// None where this only reads.
    lock: Option<TransferLock>,
    /// Whether arriving items come from an Archive that has no rights here.
    pub(super) is_for_strangers: bool,
    /// The one who has them arrive, for the history.
    by: By,
}

/// Compares an item's directory, whose files have these digests, with the seal in its sidecar.
pub(super) fn check_seal(
    directory: &Tree,
    digests: &Manifest,
    sidecar: &Sidecar,
) -> Result<(), TransferError> {
    let Some(seal) = sidecar
        .life()
        .sealed
        .as_ref()
        .filter(|seal| seal.digest.is_some())
    else {
        return Ok(());
    };
    let listed = directory.open_far(b"", OFlags::RDONLY | OFlags::DIRECTORY);
    let listed = listed.map_err(|errno| directory.error(Action::Open, ".", errno))?;
    let digest = |path: &[u8], _: &OwnedFd, _: &Stat| {
        let digest = digests.get(path).copied();
        digest.ok_or_else(|| message!("it was written each time that it was read"))
    };
    let files = sealed_files(&listed, digest).map_err(|(path, why)| {
        Skip::Unread(message!("'{path}': {why}", path = shown(&path), why))
    })?;
    Ok(files
        .check(Some(seal))
        .map_err(|broken| Skip::BrokenSeal(broken.into()))?)
}

/// The state of an item's files, by which a change is noticed.
pub(super) type FileStates = Vec<(Vec<u8>, [i64; 5])>;

impl Local {
    /// Opens a store for reading.
    pub fn reading(store: &Path) -> Result<Local, TransferError> {
        Archive::open_read_only(store)
            .map(Local::of)
            .map_err(Into::into)
    }

    /// The store of an Archive that is open for reading.
    pub fn of(archive: Archive) -> Local {
        Local {
            archive,
            mount_point: None,
            lock: None,
            is_for_strangers: false,
            by: By::of(&Process),
        }
    }

    /// A mount of which this user may not enter the store, with the Archive that its daemon has described. Items are made
    /// and changed through the mount, with the rights of this user.
    pub fn in_mount(archive: Archive, mount_point: &Path) -> Local {
        Local {
            mount_point: Some(mount_point.to_owned()),
            ..Local::of(archive)
        }
    }

    /// Opens a store for changes, through its mount where it has one. A lock prevents other transfers from or
    /// to it meanwhile.
    pub fn changing(store: &Path, mount_point: Option<&Path>) -> Result<Local, TransferError> {
        let archive = match mount_point {
            Some(_) => Archive::open_read_only(store)?,
            None => Archive::open_beside(store, Box::new(SystemClock))?,
        };
        let local = Local {
            lock: Archive::lock_handovers(archive.tree())?,
            archive,
            mount_point: mount_point.map(Path::to_owned),
            is_for_strangers: false,
            by: By::of(&Process),
        };
        if local.lock.is_none() {
            return Err(TransferError::Busy(store.display().to_string()));
        }
        if mount_point.is_none() {
            // No other process writes it: what is there was left by an interrupted run.
            local.archive.keeper().clear_staging()?;
        }
        Ok(local)
    }

    /// Declares that arriving items come from an Archive that has no rights here, and who has them arrive.
    #[must_use]
    pub fn for_strangers(self, by: By) -> Local {
        Local {
            is_for_strangers: true,
            by,
            ..self
        }
    }

    /// The actor for changes to an unmounted store, which determines their rights.
    pub(super) fn actor(&self) -> &'static dyn Actor {
        if self.is_for_strangers {
            &Stranger
        } else {
            &Process
        }
    }

    /// Logs what happened to an item, and tells the history what its row does not say.
    pub(super) fn tell(&self, event: Event<'_>, names: &Names) {
        log_event(event, names, self.actor());
        let (kind, other) = match event {
            Event::Receive(from) => (EventKind::CopiedIn, from),
            Event::Claim(from) => (EventKind::Claimed, from),
            _ => return,
        };
        self.tell_of(kind, names, other);
    }

    /// Tells the history what happened to an item, and which other Archive had a part in it.
    pub(super) fn tell_of(&self, kind: EventKind, names: &Names, other: &Names) {
        self.archive
            .tell(self.by, kind, Some(names), &other.preferred());
    }

    /// The events of an item for those who get it; none where they cannot be read.
    pub fn events_to_tell(&self, names: &Names, is_public: bool) -> Vec<String> {
        let events = self.archive.events_to_tell(names, is_public);
        events.unwrap_or_else(|error| {
            log::warn!("what was done to {names} is not told: {error}");
            Vec::new()
        })
    }

    /// Records what the one from whom an item comes tells of it.
    pub fn tell_earlier(&self, names: &Names, teller: &str, events: &[String]) {
        self.archive
            .tell_earlier(self.by, names, (teller, ""), events);
    }

    /// Closes a store that is not mounted and was opened for changes.
    pub fn close(&self) {
        if self.mount_point.is_none() && self.lock.is_some() {
            self.archive.close();
        }
    }

    /// Whether this was opened for changes.
    #[must_use]
    pub fn is_for_changes(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether this holds the store's lock and changes the store itself.
    pub fn is_held(&self) -> bool {
        self.mount_point.is_none() && self.lock.is_some()
    }

    /// The Archive, for queries.
    #[must_use]
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The names of the item of its service.
    #[must_use]
    pub fn service(&self) -> &Names {
        &self.archive.facts().service
    }

    /// The index entry of an item.
    pub fn item(&self, names: &Names) -> Result<Item, TransferError> {
        let found = self.archive.store().find_by_names(names)?;
        let unknown = || ArchiveError::Unknown {
            name: names.preferred(),
        };
        Ok(found.ok_or_else(unknown)?)
    }

    /// Whether an item has this sidecar, and it was accepted. One that an interrupted copy has left may not be: then the item
    /// lacks a name. The daemon of a mount sees to that itself.
    pub fn has_accepted(&self, item: &Item, sidecar: &[u8]) -> Result<bool, TransferError> {
        let is_it = |it: Option<Vec<u8>>| it.as_deref() == Some(sidecar);
        let there = self.archive.tree().read_sidecar(&Place::of(&item.names))?;
        Ok(is_it(there)
            && (self.mount_point.is_some() || is_it(self.archive.store().sidecar(item.id)?)))
    }

    /// Opens an item's directory in the store itself.
    pub fn directory(&self, item: &Item) -> Result<Tree, TransferError> {
        Ok(self
            .archive
            .tree()
            .open_item_alone(&Place::of(&item.names))?)
    }

    /// Opens an item's directory for changes.
    pub(super) fn directory_to_change(&self, item: &Item) -> Result<Tree, TransferError> {
        match &self.mount_point {
            Some(mount_point) => {
                let path = mount_point.join(item.names.preferred());
                Ok(Tree::open_as_it_is(&path)?)
            }
            None => self.directory(item),
        }
    }

    /// The state of an item's files, without reading their content.
    pub(super) fn file_states(&self, names: &Names) -> Result<FileStates, TransferError> {
        let directory = self.directory(&self.item(names)?)?;
        let mut paths = Vec::new();
        directory.each_deep_entry("", |entry| match entry {
            DeepEntry::Entry(path) if path == SIDECAR.as_bytes() => {}
            DeepEntry::Entry(path) | DeepEntry::Unreadable(path, _) => paths.push(path),
        })?;
        paths.sort();
        let state_of = |path: Vec<u8>| {
            let stat = directory
                .open_far(&path, OFlags::PATH | OFlags::NOFOLLOW)
                .and_then(serving::attributes);
            // Zeros stand for a file that has been removed meanwhile.
            let seen = stat.map_or([0; 5], |stat| {
                let [inode, size] = [stat.stx_ino, stat.stx_size].map(u64::cast_signed);
                let (modified, changed) = (stat.stx_mtime, stat.stx_ctime);
                [
                    inode,
                    size,
                    modified.tv_sec,
                    changed.tv_sec,
                    changed.tv_nsec.into(),
                ]
            });
            (path, seen)
        };
        Ok(paths.into_iter().map(state_of).collect())
    }

    /// An item's sidecar as it is, or the last accepted one where it has none.
    pub(super) fn sidecar_of(&self, item: &Item) -> Result<Sidecar, TransferError> {
        let bytes = self.archive.tree().read_sidecar(&Place::of(&item.names))?;
        let Some(bytes) = bytes.or(self.archive.store().sidecar(item.id)?) else {
            return Ok(Sidecar::new(&item.names));
        };
        let broken = |cause| ArchiveError::Sidecar {
            names: item.names.clone().into(),
            cause: Box::new(cause),
        };
        Ok(Sidecar::parse(&bytes).map_err(broken)?)
    }

    /// The sidecar to send: as it is, or changed to name the service of the original's Archive.
    pub fn sidecar_to_send(
        &self,
        item: &Item,
        original_at: Option<&Names>,
    ) -> Result<Option<Vec<u8>>, TransferError> {
        match original_at {
            None => Ok(self.archive.tree().read_sidecar(&Place::of(&item.names))?),
            Some(service) => {
                let mut sidecar = self.sidecar_of(item)?;
                sidecar.set_archive_service(service);
                Ok(Some(sidecar.to_bytes()))
            }
        }
    }

    /// The content of an item's files.
    pub(super) fn content(
        &self,
        item: &Item,
        progress: &mut ByteProgress<'_>,
    ) -> Result<scrub::ItemDigests, TransferError> {
        let place = Place::of(&item.names);
        let mut report = |_, bytes| progress(bytes);
        let tree = self.archive.tree();
        let found = scrub::item_digests(tree, place.as_str(), &mut report)?;
        scrub::remember_if_possible(tree, place.as_str(), &found);
        Ok(found)
    }

    /// The digests of an item to send; an error if a file is damaged or cannot be read.
    pub fn sound_manifest(
        &self,
        item: &Item,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Manifest, TransferError> {
        let content = self.content(item, progress)?;
        if let Some(path) = content.damaged.first() {
            return Err(Skip::Damaged(shown(path)).into());
        }
        self.readable_manifest(item, content)
    }

    /// The digests of an item of a backup to restore; an error if it is not as it was when the backup was finished, also where
    /// a file was lost.
    pub(super) fn manifest_in_backup(
        &self,
        item: &Item,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Manifest, TransferError> {
        let place = Place::of(&item.names);
        let tree = self.archive.tree();
        let finished = Archive::finished_backup(tree.path());
        let mut report = |_, bytes| progress(bytes);
        let content = scrub::digests_in_backup(tree, place.as_str(), finished, &mut report)?;
        match content.damaged.iter().chain(&content.absent).next() {
            Some(path) => Err(Skip::DamagedInBackup(shown(path)).into()),
            None => self.readable_manifest(item, content),
        }
    }

    fn readable_manifest(
        &self,
        item: &Item,
        content: scrub::ItemDigests,
    ) -> Result<Manifest, TransferError> {
        match content.unread.first() {
            Some((path, why)) => {
                Err(Skip::Unread(message!("'{path}': {why}", path = shown(path), why)).into())
            }
            None => {
                let sidecar = self.sidecar_of(item)?;
                check_seal(&self.directory(item)?, &content.manifest, &sidecar)?;
                Ok(content.manifest)
            }
        }
    }
}
