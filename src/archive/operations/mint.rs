//! Minting: a date is reserved durably, waited for, and becomes an item; see ibi(7) for the dates.

use rustix::io::Errno;

use super::far_ends::inverse;
use super::recovery_log::{ChangeDurability, Queued};
use super::{Actor, Archive, ArchiveError, Event, log_event};
use crate::archive::store::{Item, StoreError};
use crate::archive::tree::{Filled, Owner, Place};
use crate::formats::item::{Names, Sidecar};
use ibi::relation::{Language, RelationKind};
use ibi::{Ibip, Rep, Timestamp};

/// The relation of a newly minted item to an existing one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relative {
    /// Its next edition.
    EditionOf(Names),
    /// Its translation into a language.
    TranslationOf(Names, Language),
    /// Its metadata.
    MetadataOf(Names),
}

impl Relative {
    /// The existing item.
    pub fn source(&self) -> &Names {
        match self {
            Relative::EditionOf(names)
            | Relative::TranslationOf(names, _)
            | Relative::MetadataOf(names) => names,
        }
    }

    /// The relation that the existing item has to the new one.
    pub fn kind(&self) -> RelationKind {
        match self {
            Relative::EditionOf(_) => RelationKind::NextEdition,
            Relative::TranslationOf(_, language) => RelationKind::Translation(*language),
            Relative::MetadataOf(_) => RelationKind::Metadata,
        }
    }
}

impl Archive {
    /// Creates the item of a reserved date: both names, the original here, `doc/` in it, and its
    /// relation to another item. It is on disk when this returns.
    pub fn mint_reserved(
        &self,
        actor: &dyn Actor,
        date: &Timestamp,
        relative: Option<&Relative>,
        owner: Option<Owner>,
    ) -> Result<Item, ArchiveError> {
        self.mint_filled(actor, date, relative, owner, Filled::WithDoc)
    }

    /// Like [`Archive::mint_reserved`], without `doc/`: for a program that expects a new directory to
    /// be empty, and fills it.
    pub fn mint_empty(
        &self,
        actor: &dyn Actor,
        date: &Timestamp,
        relative: Option<&Relative>,
        owner: Option<Owner>,
    ) -> Result<Item, ArchiveError> {
        self.mint_filled(actor, date, relative, owner, Filled::Empty)
    }

    fn mint_filled(
        &self,
        actor: &dyn Actor,
        date: &Timestamp,
        relative: Option<&Relative>,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Item, ArchiveError> {
        self.replay_first();
        let rep = self.as_spelled_here(&Rep::mint(&self.facts.rep_prefix()?, date))?;
        let ibip = Ibip::mint(&self.facts.ibip_prefix(), date)?;
        let names = Names::both(rep, ibip);
        let made = self.mint_named(actor, &names, relative, owner, filled);
        if let Ok(item) = &made {
            log_event(Event::Mint, &item.names, actor);
        }
        made
    }

    fn mint_named(
        &self,
        actor: &dyn Actor,
        names: &Names,
        relative: Option<&Relative>,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Item, ArchiveError> {
        let Some(relative) = relative else {
            return self.make(names, None, owner, filled);
        };
        let source = Place::of(&self.complete(relative.source())?);
        let joint = self.recovery.begin_joint(names, &[], &[source])?;
        let mut made = self.make(names, Some(relative), owner, filled);
        if let Ok(item) = &made
            && let Err(error) = self.relate(actor, relative.source(), &relative.kind(), names)
        {
            // A request for a related item must not leave an unrelated one.
            self.unmake(item)?;
            made = Err(error);
        }
        self.recovery.end_joint(joint);
        made
    }

    /// Fails if a newly minted item could not have the relation, before a date is used.
    pub fn check_relative(
        &self,
        actor: &dyn Actor,
        relative: &Relative,
    ) -> Result<(), ArchiveError> {
        let source = self
            .held(relative.source())?
            .ok_or_else(|| ArchiveError::Unknown {
                name: relative.source().preferred(),
            })?;
        self.refuse_others(actor, &source)?;
        let kind = relative.kind();
        let declared = self.store.relations_of(source.id)?;
        match declared.into_iter().find(|(known, _)| *known == kind) {
            Some((_, target)) => Err(ArchiveError::HasOne {
                names: source.names.into(),
                kind: kind.pair_name(),
                target: target.into(),
            }),
            None => Ok(()),
        }
    }

    /// Mints and waits in the calling thread. The first date after the store was opened may be a
    /// whole step of the granularity away.
    pub fn mint(
        &self,
        actor: &dyn Actor,
        relative: Option<&Relative>,
        owner: Option<Owner>,
    ) -> Result<Item, ArchiveError> {
        if let Some(relative) = relative {
            self.check_relative(actor, relative)?;
        }
        loop {
            let reservation = self.reserve()?;
            std::thread::sleep(reservation.wait);
            match self.mint_reserved(actor, &reservation.date, relative, owner) {
                Err(ArchiveError::Exists(names)) => {
                    log::warn!("{names} is taken; minting the next");
                }
                other => return other,
            }
        }
    }

    /// Creates an original's directory with its sidecar. The directory appears complete.
    ///
    /// A single sync, that of the index, makes the mint durable: from then on, a start after a
    /// crash creates the directory again if it is not on disk. The index is therefore written
    /// first, and the directory is synced later together with others.
    pub(super) fn make(
        &self,
        names: &Names,
        relative: Option<&Relative>,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Item, ArchiveError> {
        let mut sidecar = Sidecar::new(names);
        sidecar.set_archive_service(&self.facts.service);
        if let Some(Relative::TranslationOf(_, language)) = relative {
            sidecar.set_language(language);
        }
        if let Some(relative) = relative {
            // The item then has its relation from the start, even if a crash follows.
            let source = self.complete(relative.source())?;
            sidecar.set_relation(&inverse(&relative.kind()), &source);
        }
        let bytes = sidecar.to_bytes();
        let place = Place::of(names);
        let staged = self.tree.stage_item(&place, &bytes, owner, filled)?;
        let record = self.record_of(names.clone(), &sidecar, bytes);
        let item = match self.store.mint(&record, owner) {
            Ok(item) => item,
            Err(error) => {
                self.tree.discard(&staged);
                return Err(match error {
                    // Only an item from another Archive with this Archive's address can have the name.
                    StoreError::Taken { holder, .. } => ArchiveError::Exists(holder),
                    other => other.into(),
                });
            }
        };
        if let Err(error) = self.tree.place_item(&staged, &place) {
            self.tree.discard(&staged);
            if self.is_made_by_other(&place, &sidecar) {
                self.minted.add(item.id, place);
                return Ok(item);
            }
            if let Err(error) = self.store.forget(item.id) {
                log::warn!("{names} is forgotten later: {error}");
                let queued = Queued::at(place, ChangeDurability::NotPlaced);
                self.recovery.queue(queued);
            }
            return Err(match error.errno() {
                // A directory that the index does not know can have it as well.
                Errno::EXIST | Errno::NOTEMPTY => ArchiveError::Exists(names.clone().into()),
                _ => error.into(),
            });
        }
        self.minted.add(item.id, place);
        Ok(item)
    }

    /// Whether another host that shares the store has made a minted item, since it took this one for dead.
    fn is_made_by_other(&self, place: &Place, sidecar: &Sidecar) -> bool {
        let made = || self.tree.read_sidecar(place).ok().flatten();
        self.is_shared() && made() == Some(sidecar.to_bytes())
    }

    /// Removes an item that was just created and not returned to any caller.
    fn unmake(&self, item: &Item) -> Result<(), ArchiveError> {
        let place = Place::of(&item.names);
        let taken_back = self.tree.take_back(&place).map_err(ArchiveError::from);
        let undone = taken_back.and_then(|()| Ok(self.store.forget(item.id)?));
        if undone.is_err() {
            // If the item stays, it has the relation that it declares.
            self.recovery.queue(Queued {
                before: Some(Vec::new()),
                ..Queued::at(place, ChangeDurability::NotPlaced)
            });
        }
        undone
    }
}

#[cfg(test)]
mod tests;
