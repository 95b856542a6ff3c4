//! Minting: a date is reserved durably, waited for, and becomes an item; see ibi(7) for the dates.

use std::cell::RefCell;

use rustix::io::Errno;

use super::far_ends::inverse;
use super::recovery_log::{ChangeDurability, Queued};
use super::{ArchiveError, Depositor, Event, Stranger, log_event};
use crate::archive::store::{Grant, GrantedItem, Item, Record, Speaker, StoreError};
use crate::archive::tree::{Filled, Owner, Place, StagedItem};
use crate::formats::item::{Names, Sidecar};
use ibi::distributor::Reservation;
use ibi::relation::{Language, RelationKind};
use ibi::{Ibip, Rep, Timestamp};

/// The relation of a newly minted item to an existing one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relative {
    /// Its next edition.
    Edition(Names),
    /// Its translation into a language.
    Translation(Names, Language),
    /// Its metadata.
    Metadata(Names),
}

impl Relative {
    /// The existing item.
    pub fn source(&self) -> &Names {
        match self {
            Relative::Edition(names)
            | Relative::Translation(names, _)
            | Relative::Metadata(names) => names,
        }
    }

    /// The relation that the existing item has to the new one.
    pub fn kind(&self) -> RelationKind {
        match self {
            Relative::Edition(_) => RelationKind::NextEdition,
            Relative::Translation(_, language) => RelationKind::Translation(*language),
            Relative::Metadata(_) => RelationKind::Metadata,
        }
    }
}

/// The first step of a mint that was asked for.
#[derive(Debug)]
pub enum Begun {
    /// The item exists.
    Minted(Box<Item>),
    /// A date is reserved.
    Reserved(Reservation),
}

impl Depositor<'_> {
    /// Creates the item of a reserved date: both names, the original here, `doc/` in it, and its
    /// relation to another item. It is on disk when this returns.
    pub fn mint_reserved(
        &self,
        date: &Timestamp,
        relative: Option<&Relative>,
        owner: Option<Owner>,
    ) -> Result<Item, ArchiveError> {
        self.mint_filled(date, relative, owner, Filled::WithDoc)
    }

    /// Like [`Depositor::mint_reserved`], without `doc/`: for a program that expects a new directory to
    /// be empty, and fills it.
    pub fn mint_empty(
        &self,
        date: &Timestamp,
        relative: Option<&Relative>,
        owner: Option<Owner>,
    ) -> Result<Item, ArchiveError> {
        self.mint_filled(date, relative, owner, Filled::Empty)
    }

    fn mint_filled(
        &self,
        date: &Timestamp,
        relative: Option<&Relative>,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Item, ArchiveError> {
        self.replay_first();
        let names = self.names_on(date, &self.directory_now()?)?;
        let made = self.mint_named(&names, relative, owner, filled);
        if let Ok(item) = &made {
            log_event(Event::Mint, &item.names, self.actor);
        }
        made
    }

    fn mint_named(
        &self,
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
            && let Err(error) = self.edit(self.actor, |it| {
                it.relate(relative.source(), &relative.kind(), names)
            })
        {
            // A request for a related item must not leave an unrelated one.
            self.unmake(item)?;
            made = Err(error);
        }
        self.recovery.end_joint(joint);
        made
    }

    /// Fails if a newly minted item could not have the relation, before a date is used.
    pub fn check_relative(&self, relative: &Relative) -> Result<(), ArchiveError> {
        let source = self
            .held(relative.source())?
            .ok_or_else(|| ArchiveError::Unknown {
                name: relative.source().preferred(),
            })?;
        self.refuse_others(&source)?;
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
        relative: Option<&Relative>,
        owner: Option<Owner>,
    ) -> Result<Item, ArchiveError> {
        if let Some(relative) = relative {
            self.check_relative(relative)?;
        }
        loop {
            let minted = match self.begin_mint(relative, owner, Filled::WithDoc) {
                Ok(Begun::Reserved(reservation)) => {
                    std::thread::sleep(reservation.wait);
                    self.mint_reserved(&reservation.date, relative, owner)
                }
                Ok(Begun::Minted(item)) => Ok(*item),
                Err(error) => Err(error),
            };
            match minted {
                Err(ArchiveError::Exists(names)) => {
                    log::warn!("{names} is taken; minting the next");
                }
                other => return other,
            }
        }
    }

    /// Begins a mint. Where hosts share the store, an item without a relation is created at once, if there is nothing to
    /// wait for: its date and its record are one transaction. Otherwise the date is reserved, and the caller waits for
    /// it and calls [`Depositor::mint_reserved`] or [`Depositor::mint_empty`]; other callers are not blocked meanwhile.
    ///
    /// # Errors
    /// The wait would exceed ten seconds and one step of the granularity.
    /// [`ArchiveError::Exists`] if an item has the name already; the next one is different.
    pub fn begin_mint(
        &self,
        relative: Option<&Relative>,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Begun, ArchiveError> {
        if !self.is_shared() || relative.is_some() {
            return Ok(Begun::Reserved(self.reserve()?));
        }
        self.replay_first();
        let directory = self.directory_now()?;
        let asked = RefCell::new(None);
        let record = |date: &Timestamp| {
            let names = self.names_on(date, &directory).ok()?;
            asked.replace(Some(names.clone()));
            let sidecar = self.new_sidecar(&names, None).ok()?;
            let bytes = sidecar.to_bytes();
            Some(self.record_of(names, &sidecar, bytes))
        };
        let item = GrantedItem {
            record: &record,
            owner,
        };
        let granted = self.grant(Some(&item));
        if let (Err(ArchiveError::Store(error)), Some(names)) = (&granted, asked.take()) {
            self.doubt(error, &names);
        }
        match granted? {
            Grant::Recorded(item) => {
                let place = Place::of(&item.names);
                let sidecar = self.new_sidecar(&item.names, None)?.to_bytes();
                match self.tree.stage_item(&place, &sidecar, owner, filled) {
                    Ok(staged) => self.place_recorded(&item, &staged, &sidecar)?,
                    Err(error) => {
                        self.forget_recorded(&item);
                        return Err(error.into());
                    }
                }
                log_event(Event::Mint, &item.names, self.actor);
                Ok(Begun::Minted(item.into()))
            }
            Grant::Taken(record) => Err(ArchiveError::Exists(record.names.into())),
            Grant::Given(reservation) => Ok(Begun::Reserved(reservation)),
            // `grant` waits for these.
            Grant::NotYet(_) | Grant::TooLong(_) => Err(StoreError::Conflict.into()),
        }
    }

    /// The directory in which an item of this instant lies, as it is spelled here.
    fn directory_now(&self) -> Result<Rep, ArchiveError> {
        self.as_spelled_here(&Rep::mint(&self.facts.rep_prefix()?, &self.clock.now()))
    }

    /// Both names of a date. `near` is a rep here: one of the same year lies in the same directory.
    fn names_on(&self, date: &Timestamp, near: &Rep) -> Result<Names, ArchiveError> {
        let minted = Rep::mint(&self.facts.rep_prefix()?, date);
        let [subdomain, word, year, _] = near.components();
        let [minted_subdomain, minted_word, minted_year, time] = minted.components();
        let is_same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        let is_near = is_same(subdomain, minted_subdomain)
            && is_same(word, minted_word)
            && is_same(year, minted_year);
        let rep = if is_near {
            Rep::parse(&format!("{subdomain}/{word}/{year}/{time}"))?
        } else {
            self.as_spelled_here(&minted)?
        };
        Ok(Names::both(
            rep,
            Ibip::mint(&self.facts.ibip_prefix(), date)?,
        ))
    }

    /// The sidecar of a new item.
    fn new_sidecar(
        &self,
        names: &Names,
        relative: Option<&Relative>,
    ) -> Result<Sidecar, ArchiveError> {
        let mut sidecar = Sidecar::new(names);
        sidecar.set_archive_service(&self.facts.service);
        if let Some(Relative::Translation(_, language)) = relative {
            sidecar.set_language(language);
        }
        if let Some(relative) = relative {
            // The item then has its relation from the start, even if a crash follows.
            let source = self.complete(relative.source())?;
            sidecar.set_relation(&inverse(&relative.kind()), &source);
        }
        Ok(sidecar)
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
        let sidecar = self.new_sidecar(names, relative)?;
        let bytes = sidecar.to_bytes();
        let place = Place::of(names);
        let staged = self.tree.stage_item(&place, &bytes, owner, filled)?;
        let speaker = owner.map(|owner| Speaker {
            uid: owner.uid,
            gid: Some(owner.gid),
        });
        let record = Record {
            speaker,
            ..self.record_of(names.clone(), &sidecar, bytes.clone())
        };
        let item = match self.store.mint(&record, owner) {
            Ok(item) => item,
            Err(error) => {
                self.tree.discard(&staged);
                return Err(match error {
                    // Only an item from another Archive with this Archive's address can have the name.
                    StoreError::Taken { holder, .. } => ArchiveError::Exists(holder),
                    other => {
                        self.doubt(&other, names);
                        other.into()
                    }
                });
            }
        };
        self.place_recorded(&item, &staged, &bytes)?;
        if relative.is_some()
            && let Err(error) = self.edit(&Stranger, |it| it.record_speaker(&item))
        {
            log::warn!("who speaks in {} is not recorded: {error}", item.names);
        }
        Ok(item)
    }

    /// Makes a minted item visible that is recorded, or forgets it.
    fn place_recorded(
        &self,
        item: &Item,
        staged: &StagedItem,
        sidecar: &[u8],
    ) -> Result<(), ArchiveError> {
        let place = Place::of(&item.names);
        if let Err(error) = self.tree.place_item(staged, &place) {
            self.tree.discard(staged);
            if !self.is_made_by_other(item, &place, sidecar) {
                self.forget_recorded(item);
                return Err(match error.errno() {
                    // A directory that the index does not know can have it as well.
                    Errno::EXIST | Errno::NOTEMPTY => {
                        ArchiveError::Exists(item.names.clone().into())
                    }
                    _ => error.into(),
                });
            }
        }
        self.minted.add(item.id, place);
        Ok(())
    }

    /// After an error of a mint: if a server was lost whose answer would have said that the item is recorded, the item is
    /// forgotten as soon as the server is back, since the caller was told that it does not exist.
    fn doubt(&self, error: &StoreError, names: &Names) {
        if matches!(error, StoreError::Away { .. }) {
            let place = Place::of(names);
            let queued = Queued::at(place, ChangeDurability::NotPlaced);
            self.recovery.queue(queued);
        }
    }

    /// Forgets an item that is recorded and could not be placed.
    fn forget_recorded(&self, item: &Item) {
        if let Err(error) = self.store.forget(item.id) {
            log::warn!("{} is forgotten later: {error}", item.names);
            let place = Place::of(&item.names);
            let queued = Queued::at(place, ChangeDurability::NotPlaced);
            self.recovery.queue(queued);
        }
    }

    /// Whether another host that shares the store has made a minted item, since it took this one for dead: its mark is
    /// not this host's any more.
    fn is_made_by_other(&self, item: &Item, place: &Place, sidecar: &[u8]) -> bool {
        let made = || self.tree.read_sidecar(place).ok().flatten();
        self.is_shared()
            && made().as_deref() == Some(sidecar)
            && matches!(self.store.has_own_mark(item.id), Ok(false))
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
