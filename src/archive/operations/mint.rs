//! Minting: a date is reserved durably, waited for, and becomes an item; see ibi(7) for the dates.

use std::cell::RefCell;
use std::time::Instant;

use rustix::io::Errno;

use super::drafts::is_draft;
use super::far_ends::inverse;
use super::recovery_log::{ChangeDurability, Queued};
use super::{ArchiveError, Depositor, Event, Stranger, log_event};
use crate::archive::store::{By, DateRequest, Grant, Item, Record, Speaker, StoreError};
use crate::archive::tree::{Filled, Owner, Place, StagedItem};
use crate::formats::item::{Life, Names, Sidecar};
use ibi::distributor::Reservation;
use ibi::message::Localize;
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

/// The first step of several mints that were asked for together.
#[derive(Debug, Default)]
pub struct BegunTogether {
    /// The items that exist.
    pub minted: Vec<Item>,
    /// The dates that are reserved, in their order.
    pub reserved: Vec<Reservation>,
}

/// An item that is made in `staging/`, with its record.
struct Staged {
    item: StagedItem,
    record: Record,
    sidecar: Vec<u8>,
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

    /// Mints up to so many items, at least one, and waits in the calling thread.
    ///
    /// # Errors
    /// Nothing was minted.
    pub fn mint_some(&self, count: usize, owner: Option<Owner>) -> Result<Vec<Item>, ArchiveError> {
        loop {
            let begun = self.begin_together(count, owner, Filled::WithDoc)?;
            if let Some(last) = begun.reserved.last() {
                std::thread::sleep(last.wait);
            }
            match self.mint_together(begun, owner, Filled::WithDoc) {
                Err(ArchiveError::Exists(names)) => {
                    log::warn!("{names} is taken; minting the next");
                }
                other => return other,
            }
        }
    }

    /// Begins mints without relations, as [`Depositor::begin_mint`] does one: of at least one item, and of those up to
    /// `count` whose dates come soon after it. The dates are reserved in one write.
    pub fn begin_together(
        &self,
        count: usize,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<BegunTogether, ArchiveError> {
        if self.is_shared() {
            return self.begin_shared(count, owner, filled);
        }
        Ok(BegunTogether {
            reserved: self.reserve_some(count)?,
            ..BegunTogether::default()
        })
    }

    /// Creates the items of reserved dates, which have come. Their records are one transaction. Returns the items, and
    /// those that exist already, in the order of their dates.
    ///
    /// # Errors
    /// The first one, if there is no item at all; otherwise it is logged. A date that got none is not used again.
    pub fn mint_together(
        &self,
        begun: BegunTogether,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Vec<Item>, ArchiveError> {
        let BegunTogether {
            mut minted,
            reserved,
        } = begun;
        if reserved.is_empty() {
            return Ok(minted);
        }
        self.replay_first();
        let directory = self.directory_now()?;
        let mut first_error = None;
        let mut staged = Vec::new();
        for reservation in &reserved {
            let names = self.names_on(&reservation.date, &directory);
            match names.and_then(|names| self.stage(&names, None, owner, filled)) {
                Ok(one) => staged.push(one),
                Err(error) => {
                    // What is wrong with the disk or the user's quota is so for the next one, too.
                    note_first(&mut first_error, error);
                    break;
                }
            }
        }
        for made in self.record_staged(staged, owner) {
            match made {
                Ok(item) => {
                    log_event(Event::Mint, &item.names, self.actor);
                    minted.push(item);
                }
                Err(error) => note_first(&mut first_error, error),
            }
        }
        match first_error {
            Some(error) if minted.is_empty() => Err(error),
            _ => Ok(minted),
        }
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
        match self.current_relation(&source, &kind)? {
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
        let mut begun = self.begin_shared(1, owner, filled)?;
        match (begun.minted.pop(), begun.reserved.pop()) {
            (Some(item), _) => Ok(Begun::Minted(item.into())),
            (None, Some(reservation)) => Ok(Begun::Reserved(reservation)),
            (None, None) => Err(StoreError::Conflict.into()),
        }
    }

    /// Begins mints where hosts share the store: items whose dates come soon are recorded in the transaction that gives
    /// them, and placed when they have come.
    fn begin_shared(
        &self,
        count: usize,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<BegunTogether, ArchiveError> {
        self.writable()?;
        self.replay_first();
        let directory = self.directory_now()?;
        let asked = RefCell::new(Vec::new());
        let record = |date: &Timestamp| {
            let names = self.names_on(date, &directory)?;
            let sidecar = self.new_sidecar(&names, None)?;
            let bytes = sidecar.to_bytes();
            Ok(self.record_of(names, &sidecar, bytes))
        };
        let make = |dates: &[Timestamp]| {
            let records: Result<Vec<_>, ArchiveError> = dates.iter().map(record).collect();
            let records = records.map_err(|error| StoreError::Broken {
                what: error.message(),
            })?;
            asked.replace(records.iter().map(|record| record.names.clone()).collect());
            Ok(records)
        };
        let request = |limit| DateRequest {
            limit,
            item: Some(owner),
        };
        let requests = self.limits(count).into_iter().map(request).collect();
        let granted = self.grant(requests, &make);
        if let Err(ArchiveError::Store(error)) = &granted {
            for names in asked.take() {
                self.doubt(error, &names);
            }
        }
        let mut begun = BegunTogether::default();
        let mut first_error = None;
        let granted_at = Instant::now();
        for grant in granted? {
            let made = match grant {
                Grant::Recorded(item, wait) => {
                    std::thread::sleep(wait.saturating_sub(granted_at.elapsed()));
                    self.place_granted(&item, owner, filled).map(|()| item)
                }
                Grant::Taken(record) => Err(ArchiveError::Exists(record.names.into())),
                Grant::Given(reservation) => {
                    begun.reserved.push(reservation);
                    continue;
                }
                // `grant` waits for these.
                Grant::NotYet(_) | Grant::TooLong(_) => Err(StoreError::Conflict.into()),
            };
            match made {
                Ok(item) => begun.minted.push(item),
                Err(error) => note_first(&mut first_error, error),
            }
        }
        match first_error {
            Some(error) if begun.minted.is_empty() && begun.reserved.is_empty() => Err(error),
            _ => Ok(begun),
        }
    }

    /// Makes an item that got its date and its record in one transaction.
    fn place_granted(
        &self,
        item: &Item,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<(), ArchiveError> {
        let place = Place::of(&item.names);
        let sidecar = self.new_sidecar(&item.names, None)?.to_bytes();
        match self.tree.stage_item(&place, &sidecar, owner, filled) {
            Ok(staged) => self.place_recorded(item, &staged, &sidecar)?,
            Err(error) => {
                self.forget_recorded(item);
                return Err(error.into());
            }
        }
        log_event(Event::Mint, &item.names, self.actor);
        Ok(())
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
        let staged = self.stage(names, relative, owner, filled)?;
        let made = self.record_staged(vec![staged], owner).pop();
        let item = made.unwrap_or(Err(StoreError::Conflict.into()))?;
        if relative.is_some()
            && let Err(error) = self.edit(&Stranger, |it| it.record_speaker(&item))
        {
            log::warn!("who speaks in {} is not recorded: {error}", item.names);
        }
        Ok(item)
    }

    fn stage(
        &self,
        names: &Names,
        relative: Option<&Relative>,
        owner: Option<Owner>,
        filled: Filled,
    ) -> Result<Staged, ArchiveError> {
        let mut sidecar = self.new_sidecar(names, relative)?;
        let is_public = !owner.is_some_and(|owner| is_draft(owner.mode));
        if let Some(seal) = self.facts.seal_after(&self.clock.now())
            && is_public
        {
            sidecar.set_life(Life {
                sealed: Some(seal),
                ..Life::default()
            });
        }
        let bytes = sidecar.to_bytes();
        let place = Place::of(names);
        let item = self.tree.stage_item(&place, &bytes, owner, filled)?;
        let speaker = owner.map(|owner| Speaker {
            uid: owner.uid,
            gid: Some(owner.gid),
        });
        let record = Record {
            speaker,
            by: By::of(self.actor),
            ..self.record_of(names.clone(), &sidecar, bytes.clone())
        };
        Ok(Staged {
            item,
            record,
            sidecar: bytes,
        })
    }

    /// Records staged items in one transaction and makes them visible. Returns a result for each.
    fn record_staged(
        &self,
        staged: Vec<Staged>,
        owner: Option<Owner>,
    ) -> Vec<Result<Item, ArchiveError>> {
        let (records, staged): (Vec<Record>, Vec<_>) = staged
            .into_iter()
            .map(|one| (one.record, (one.item, one.sidecar)))
            .unzip();
        let recorded = self.store.mint(&records, owner);
        let made = recorded.into_iter().zip(staged).zip(&records);
        made.map(|((recorded, (staged, sidecar)), record)| match recorded {
            Ok(item) => {
                self.place_recorded(&item, &staged, &sidecar)?;
                Ok(item)
            }
            Err(error) => {
                self.tree.discard(&staged);
                Err(match error {
                    // Only an item from another Archive with this Archive's address can have the name.
                    StoreError::Taken { holder, .. } => ArchiveError::Exists(holder),
                    other => {
                        self.doubt(&other, &record.names);
                        other.into()
                    }
                })
            }
        })
        .collect()
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

fn note_first(first: &mut Option<ArchiveError>, error: ArchiveError) {
    log::warn!("one of the mints that were asked for together: {error}");
    first.get_or_insert(error);
}

#[cfg(test)]
mod tests;
