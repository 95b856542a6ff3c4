//! Seals: items of which no file changes any more, and the digest by which a copy is compared with its own sidecar.
//!
//! The seal holds in memory first (`archive/store/sealed.rs`), so that nothing is opened for writing while what is open is
//! looked for and the digest is computed; the pair in the sidecar, and the index, follow. After a crash the item is sealed if
//! its sidecar says so.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Actor, Archive, ArchiveError, Editor, Event, Process, log_event};
use crate::archive::manifest::{read_digest, sealed_files};
use crate::archive::store::{By, Item, ItemId};
use crate::archive::tree::Place;
use crate::formats::fixity;
use crate::formats::history::EventKind;
use crate::formats::item::{Life, Names, Seal, State};
use crate::os::caller::act_as_process;
use crate::os::opening;
use crate::os::processors;
use ibi::message::Message;
use ibi::{Timestamp, message};

/// The time that requests have to end, and files to be closed: a program that has closed a file is not waited for by close(2).
const CLOSING: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The interval at which a daemon looks for seals whose instant has come.
const LOOKED: Duration = Duration::from_secs(10);
/// The time after which a digest that could not be computed is tried again.
const REFUSED: Duration = Duration::from_secs(600);

impl Archive {
    /// Refuses a sealed item.
    pub(super) fn refuse_sealed(&self, item: &Item) -> Result<(), ArchiveError> {
        match &item.life.sealed {
            Some(seal) if item.state != State::Deleted && seal.holds_at(&self.clock.now()) => {
                Err(ArchiveError::Sealed {
                    names: item.names.clone().into(),
                    at: seal.at.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses decisions that change the seal of an item where only a command of its owner may. A copy follows its original
    /// until its seal holds, and gets its digest then.
    pub(in crate::archive) fn refuse_other_seal(
        &self,
        item: &Item,
        life: &Life,
    ) -> Result<(), ArchiveError> {
        let Some(seal) = item
            .life
            .sealed
            .as_ref()
            .filter(|_| item.life.sealed != life.sealed)
        else {
            return Ok(());
        };
        let is_completed = seal.digest.is_none()
            && life
                .sealed
                .as_ref()
                .is_some_and(|completed| completed.at == seal.at);
        if self.store.is_arriving_sealed(item.id) || item.state == State::Copy && is_completed {
            return Ok(());
        }
        self.refuse_sealed(item)?;
        if item.state == State::Original {
            let why = message!(
                "its seal from {at} on is announced; 'ibifs unseal' takes that back",
                at = seal.at.to_rfc3339()
            );
            return Err(refused(item, why));
        }
        Ok(())
    }

    /// Seals an item for its owner: from now on no file of it changes, or after so many seconds. Returns the seal. One that
    /// was announced comes sooner, or gets its digest.
    ///
    /// # Errors
    /// The user is not its owner; it is sealed already, or no original. If it is sealed now: a program has a file of it open
    /// for writing, or works in it beside the mount; a file has another name elsewhere, or cannot be read.
    pub fn seal(
        &self,
        names: &Names,
        after: Option<i64>,
        actor: &dyn Actor,
    ) -> Result<Seal, ArchiveError> {
        self.writable()?;
        let item = self.owned_by(names, actor)?;
        let now = self.clock.now();
        let at = Timestamp::from_unix(now.seconds() + after.unwrap_or_default(), 0);
        let at = match &item.life.sealed {
            Some(seal) if after.is_none() && seal.digest.is_none() => seal.at.clone().min(at),
            _ => at,
        };
        if after.is_some()
            || item
                .life
                .sealed
                .as_ref()
                .is_some_and(|it| it.digest.is_some())
        {
            self.refuse_sealed(&item)?;
        }
        if item.state != State::Original {
            return Err(ArchiveError::NotOriginal {
                what: message!("{names}, of which a copy is held here,", names = item.names),
            });
        }
        if after.is_none() {
            return self.seal_now(&item, at, actor);
        }
        let seal = Seal { at, digest: None };
        let announced = seal.clone();
        self.edit(actor, |it| it.announce(&item, announced))?;
        log_event(Event::AnnounceSeal, &item.names, actor);
        Ok(seal)
    }

    /// Seals an item from an instant on which has come.
    fn seal_now(
        &self,
        item: &Item,
        at: Timestamp,
        actor: &dyn Actor,
    ) -> Result<Seal, ArchiveError> {
        if self.is_worked_in() {
            let why = message!(
                "a program works in the store beside the mount; seal it when that has ended"
            );
            return Err(refused(item, why));
        }
        if !self.store.begin_seal(item.id) {
            let why = message!("it is being sealed");
            return Err(refused(item, why));
        }
        let sealed = self.seal_closed(item, at, actor);
        if sealed.is_err() {
            let known = self.store.item(item.id).ok().flatten();
            let known = known.unwrap_or_else(|| item.clone());
            self.store.end_seal(item.id, known.life.sealed.as_ref());
        }
        sealed
    }

    /// Seals an item of which nothing is opened for writing any more.
    fn seal_closed(
        &self,
        item: &Item,
        at: Timestamp,
        actor: &dyn Actor,
    ) -> Result<Seal, ArchiveError> {
        let until = Instant::now() + CLOSING;
        while self.is_changing(item.id) {
            if Instant::now() > until {
                return Err(refused(item, message!("its files are being changed")));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let directory = self.tree.open_item(&Place::of(&item.names))?;
        let mut names: HashMap<u64, (u64, u64)> = HashMap::new();
        let files = sealed_files(&directory, |_, file, stat| {
            #[allow(clippy::unnecessary_cast, reason = "the types depend on the platform")]
            let links = stat.st_nlink as u64;
            names.entry(stat.st_ino).or_insert((0, links)).0 += 1;
            while opening::is_open_for_writing(file.as_fd()) {
                if Instant::now() > until {
                    return Err(message!(
                        "it is open for writing; close it, and seal the item then"
                    ));
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            read_digest(file)
        });
        let files = files.map_err(|(path, why)| {
            let path = fixity::shown(&path);
            refused(item, message!("'{path}': {why}", path, why))
        })?;
        if names.values().any(|(found, links)| found < links) {
            let why = message!(
                "a file in it has another name (a hard link) elsewhere, by which it could be changed; 'find -links +1' in the item shows it"
            );
            return Err(refused(item, why));
        }
        let seal = Seal {
            at,
            digest: Some(files.digest()),
        };
        let written = seal.clone();
        self.edit(actor, |it| it.write_seal(item, Some(written)))?;
        log_event(Event::Seal, &item.names, actor);
        Ok(seal)
    }

    /// Computes the digest of an item whose seal holds since an instant that was announced.
    fn complete_seal(&self, id: ItemId) -> Result<(), ArchiveError> {
        let Some(item) = self.store.item(id)? else {
            return Ok(());
        };
        match &item.life.sealed {
            // A copy gets the digest of its original.
            Some(seal) if item.state == State::Original && seal.digest.is_none() => {
                self.seal_now(&item, seal.at.clone(), &Process).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Ends the seal of an item for its owner, or takes back that it was announced.
    ///
    /// # Errors
    /// The user is not its owner, or it is not sealed.
    pub fn unseal(
        &self,
        names: &Names,
        reason: &str,
        actor: &dyn Actor,
    ) -> Result<(), ArchiveError> {
        self.writable()?;
        let item = self.owned_by(names, actor)?;
        if item.life.sealed.is_none() {
            return Err(refused(&item, message!("it is not sealed")));
        }
        self.edit(actor, |it| it.write_seal(&item, None))?;
        log_event(Event::Unseal(reason), &item.names, actor);
        self.tell(
            By::of(actor),
            EventKind::Unsealed,
            Some(&item.names),
            reason,
        );
        Ok(())
    }

    /// An item that is here, of a user or for root.
    fn owned_by(&self, names: &Names, actor: &dyn Actor) -> Result<Item, ArchiveError> {
        let item = self.held(names)?.ok_or_else(|| ArchiveError::Unknown {
            name: names.preferred(),
        })?;
        if actor.owns(self.stat_of_directory(&item)?.st_uid) {
            Ok(item)
        } else {
            Err(refused(&item, message!("only its owner may do this")))
        }
    }
}

impl Editor<'_> {
    /// Announces that an item is to be sealed; an earlier instant replaces a later one.
    fn announce(&self, item: &Item, seal: Seal) -> Result<(), ArchiveError> {
        match &item.life.sealed {
            Some(announced) if announced.at < seal.at => {
                let why = message!(
                    "it is sealed from {at} on already; 'ibifs unseal' takes that back",
                    at = announced.at.to_rfc3339()
                );
                Err(refused(item, why))
            }
            _ => self.write_seal(item, Some(seal)),
        }
    }

    /// Announces the seal that `archive.ibi` has for what is published, of an original that was just published.
    pub fn announce_published(&self, id: ItemId) -> Result<(), ArchiveError> {
        let Some(seal) = self.facts.seal_after(&self.clock.now()) else {
            return Ok(());
        };
        let item = self.known(id)?;
        if item.state != State::Original || item.life.sealed.is_some() {
            return Ok(());
        }
        self.write_seal(&item, Some(seal))
    }

    /// Writes the seal of an item that still has the seal which it had when it was looked at.
    fn write_seal(&self, item: &Item, seal: Option<Seal>) -> Result<(), ArchiveError> {
        if self.known(item.id)?.life.sealed != item.life.sealed {
            return Err(refused(item, message!("its seal has changed meanwhile")));
        }
        self.edit_sidecar(item, move |sidecar| {
            let mut life = sidecar.life().clone();
            life.sealed = seal;
            sidecar.set_life(life);
        })
    }
}

/// Computes the digests of seals that were announced, in a thread that ends with the Archive.
pub fn watch_seals(archive: &Arc<Archive>) -> std::io::Result<()> {
    let archive = Arc::downgrade(archive);
    processors::spawn_unbound("seals", move || {
        act_as_process();
        processors::give_way();
        let mut refused: HashMap<ItemId, Instant> = HashMap::new();
        while let Some(archive) = archive.upgrade() {
            refused.retain(|_, at| at.elapsed() < REFUSED);
            for id in archive.store.due_seals() {
                if refused.contains_key(&id) {
                    continue;
                }
                if let Err(error) = archive.complete_seal(id) {
                    log::warn!("the digest of its seal is computed later: {error}");
                }
                refused.insert(id, Instant::now());
            }
            drop(archive);
            std::thread::sleep(LOOKED);
        }
    })
}

fn refused(item: &Item, why: Message) -> ArchiveError {
    ArchiveError::SealRefused {
        names: item.names.clone().into(),
        why,
    }
}
