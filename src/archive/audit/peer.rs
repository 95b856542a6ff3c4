//! Places with which items are compared.

use std::time::Duration;

use rustix::io::Errno;

use super::gone::note_gone;
use crate::archive::scrub::{
    BytesBefore, ItemDigests, ScrubError, digests_in_backup, item_digests, marks_of,
    remember_if_possible,
};
use crate::archive::store::By;
use crate::archive::transfer::{Local, TransferError};
use crate::archive::tree::Place;
use crate::archive::{Archive, Process};
use crate::formats::copies::{CopyKind, Gone, KnownCopy};
use crate::formats::fixity::shown;
use crate::formats::history::EventKind;
use crate::formats::item::Names;

/// Reads an item here, with the digests of other bytes and each file if there are such bytes. None if it is not there.
pub type ReadHere<'a> =
    dyn FnMut(&Names, Option<&BytesBefore<'_>>) -> Result<Option<ItemDigests>, TransferError> + 'a;

/// The result of comparing an item with others at once.
#[derive(Debug)]
pub enum Comparison {
    /// It is the same in both places, and what was recorded here.
    Same(ItemDigests),
    /// The other place has none.
    Missing,
    /// It has withdrawn or removed it.
    Gone(Gone),
    /// It is to be compared file by file.
    Open,
}

/// A place that has copies of items.
pub trait AuditPeer {
    /// The name by which the user called it.
    fn name(&self) -> &str;

    /// The copy of an item there, as a ledger notes it, without a proof.
    fn copy(&self) -> KnownCopy;

    /// Whether it may have an item, and may learn its name. `is_public` tells whether all may.
    ///
    /// # Errors
    /// It cannot be asked.
    fn may_hold(
        &mut self,
        names: &Names,
        is_public: &dyn Fn() -> bool,
    ) -> Result<bool, TransferError>;

    /// Reads an item in both places now; None where it is not. `here` reads it in the store here, and `progress` receives the
    /// bytes that were read there.
    ///
    /// # Errors
    /// It cannot be read here, or cannot be asked.
    fn both(
        &mut self,
        names: &Names,
        here: &mut ReadHere<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<[Option<ItemDigests>; 2], TransferError>;

    /// The most items of which it can say at once whether they are the same in both places.
    fn batch(&self) -> usize {
        1
    }

    /// Compares items in both places at once, for at most this time. Returns what it found of the first of them, or of all.
    ///
    /// # Errors
    /// As [`AuditPeer::both`].
    fn compare(
        &mut self,
        items: &[Names],
        time: Duration,
        here: &mut ReadHere<'_>,
    ) -> Result<Vec<Comparison>, TransferError>;

    /// Whether a ledger names it so.
    fn is_named(&self, holder: &str) -> bool {
        holder == self.copy().holder
    }

    /// The time at which it was begun, in seconds since 1970, if it is a backup: all earlier changes of the store are in it.
    fn begun(&self) -> Option<i64> {
        None
    }

    /// Its word on the item that was read last, if that was public and is withdrawn or removed there.
    fn said_gone(&mut self) -> Option<Gone>;

    /// Tells it what the Archive here, by the name of its service, has withdrawn or removed. Nothing is told to a backup.
    ///
    /// # Errors
    /// It cannot be told.
    fn tell_gone(&mut self, own: &str, gone: &[(Names, Gone)]) -> Result<(), TransferError>;

    /// Marks there what is damaged or lost by its own record, if this side is to do that. Nothing was found of an item whose
    /// directory is missing.
    fn remember(&mut self, _names: &Names, _found: Option<&ItemDigests>) {}

    /// Notes the comparison there, if this side is to do that.
    fn note(&mut self, _names: &Names, _copy: &KnownCopy) {}
}

/// A store on this machine, or a backup.
#[derive(Debug)]
pub struct StorePeer {
    store: Local,
    name: String,
    /// The holder that the ledger has for a backup of the store that is audited; None of another Archive.
    backup: Option<String>,
    is_generation: bool,
    /// Whether its ledger may be written still.
    notes: bool,
    gone: Option<Gone>,
}

impl StorePeer {
    /// A store that is open for reading, by the name that the user called it. One of the same Archive is a backup, which
    /// ledgers have by its directory.
    #[must_use]
    pub fn new(store: Local, name: &str, backup: Option<String>) -> StorePeer {
        let path = store.archive().tree().path();
        let is_generation = Archive::is_generation(path);
        StorePeer {
            notes: backup.is_none(),
            store,
            name: name.to_owned(),
            backup,
            is_generation,
            gone: None,
        }
    }

    /// The end of an item there.
    fn gone(&self, names: &Names) -> Result<Option<Gone>, TransferError> {
        let archive = self.store.archive();
        match archive.store().find_by_names(names)? {
            Some(item) if self.backup.is_none() => Ok(archive.gone_in_public(&item)?),
            _ => Ok(None),
        }
    }
}

impl AuditPeer for StorePeer {
    fn name(&self) -> &str {
        &self.name
    }

    fn copy(&self) -> KnownCopy {
        let facts = self.store.archive().facts();
        let (kind, holder, place) = match &self.backup {
            Some(directory) => (CopyKind::Backup, directory.clone(), Vec::new()),
            None => (
                CopyKind::Archive,
                facts.service.preferred(),
                facts.place.clone(),
            ),
        };
        KnownCopy {
            place,
            ..KnownCopy::new(kind, holder)
        }
    }

    fn may_hold(
        &mut self,
        names: &Names,
        _is_public: &dyn Fn() -> bool,
    ) -> Result<bool, TransferError> {
        Ok(self.store.archive().held(names)?.is_some() || self.gone(names)?.is_some())
    }

    fn both(
        &mut self,
        names: &Names,
        here: &mut ReadHere<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<[Option<ItemDigests>; 2], TransferError> {
        let here = here(names, None)?;
        self.gone = self.gone(names)?;
        let Some(item) = self.store.archive().held(names)? else {
            return Ok([here, None]);
        };
        let place = Place::of(&item.names);
        let tree = self.store.archive().tree();
        let mut count = |_, bytes| progress(bytes);
        let found = match &self.backup {
            None => item_digests(tree, place.as_str(), &mut count),
            Some(_) => {
                let finished = Archive::finished_backup(tree.path());
                digests_in_backup(tree, place.as_str(), finished, &mut count)
            }
        };
        let mut there = match found {
            // It is lost there.
            Err(ScrubError::Tree(error)) if error.errno() == Errno::NOENT => {
                return Ok([here, None]);
            }
            found => found?,
        };
        // The next backup mends that.
        let is_left = |path: &Vec<u8>| !there.changed_in_backup.contains(path);
        there.damaged.retain(is_left);
        there.absent.retain(is_left);
        Ok([here, Some(there)])
    }

    fn compare(
        &mut self,
        items: &[Names],
        _time: Duration,
        _here: &mut ReadHere<'_>,
    ) -> Result<Vec<Comparison>, TransferError> {
        let of = |names| {
            let gone = self.gone(names)?.filter(|gone| gone.is_removed);
            Ok(gone.map_or(Comparison::Open, Comparison::Gone))
        };
        items.iter().map(of).collect()
    }

    fn begun(&self) -> Option<i64> {
        self.backup.as_ref()?;
        let begun = Archive::begun_backup(self.store.archive().tree().path());
        begun.map(|it| it.seconds())
    }

    fn said_gone(&mut self) -> Option<Gone> {
        self.gone.take()
    }

    fn tell_gone(&mut self, own: &str, gone: &[(Names, Gone)]) -> Result<(), TransferError> {
        let (archive, is_it) = (self.store.archive(), |holder: &str| holder == own);
        for (names, gone) in gone {
            note_gone(archive, names, gone, &is_it, true)?;
        }
        Ok(())
    }

    fn remember(&mut self, names: &Names, found: Option<&ItemDigests>) {
        // A generation stays as it is.
        if !self.is_generation {
            remember(&self.store, names, found, self.backup.is_none());
        }
    }

    fn note(&mut self, names: &Names, copy: &KnownCopy) {
        // The owner of that store may lock the ledger for ever.
        self.notes = self.notes && self.store.note_copy(std::slice::from_ref(names), copy);
    }
}

/// Marks what is damaged or lost in a store, as far as this process may, and tells its history of what was not known.
pub(super) fn remember(store: &Local, names: &Names, found: Option<&ItemDigests>, is_told: bool) {
    let archive = store.archive();
    let Ok(Some(item)) = archive.held(names) else {
        return;
    };
    let place = Place::of(&item.names);
    let lost;
    let found = match found {
        Some(found) => found,
        None => {
            lost = ItemDigests::of_lost(archive.tree(), place.as_str()).unwrap_or_default();
            &lost
        }
    };
    let known = marks_of(archive.tree(), place.as_str()).unwrap_or_default();
    let wrong = [&found.damaged, &found.absent, &found.unreadable];
    if known.is_empty() && wrong.iter().all(|it| it.is_empty()) {
        return;
    }
    remember_if_possible(archive.tree(), place.as_str(), found);
    let is_new = |path: &&Vec<u8>| !known.contains_key(*path);
    let new = found.damaged.iter().filter(is_new);
    let new: Vec<String> = new.map(|path| format!("damaged {}", shown(path))).collect();
    if is_told && !new.is_empty() {
        let (by, kind) = (By::of(&Process), EventKind::Damaged);
        archive.tell(by, kind, Some(&item.names), &new.join(", "));
    }
}
