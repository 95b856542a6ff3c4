//! Sidecars: how they are validated and accepted, changed, and written again.

use rustix::io::Errno;

use super::admission::is_ibip;
use super::full_disk::with_reserve;
use super::recovery_log::Durability;
use super::{Actor, Archive, ArchiveError};
use crate::archive::store::{Item, ItemId, Record, StoreError};
use crate::archive::tree::{Author, Place};
use crate::formats::item::{Names, Sidecar, State};
use ibi::message;
use ibi::relation::RelationKind;
use ibi::{AliasPair, Timestamp};

/// What came of a sidecar that was written into an item.
#[derive(Debug)]
pub enum Acceptance {
    /// It is the item's sidecar; the index says what it says.
    Accepted(Box<Item>),
    /// It was there before, byte for byte.
    Unchanged,
    /// It stays on disk as it is and changes nothing; fsck names it.
    Rejected(ArchiveError),
}

/// A change of a sidecar.
pub(super) type Edit = Box<dyn FnOnce(&mut Sidecar)>;

/// A change of an item's sidecar, and to whom that belongs afterwards.
pub(super) type EditOf = (Item, Edit, Author);

/// What was on disk before a change, where it is there no more; with the error of one that failed.
type Edited = Result<Option<Vec<u8>>, (ArchiveError, Option<Vec<u8>>)>;

impl Archive {
    /// What a sidecar makes of an item that is here, as a row of the index. State follows from the
    /// Archive service that the sidecar names; what a tombstone would say of it does not count.
    pub(super) fn record_of(&self, names: Names, sidecar: &Sidecar, bytes: Vec<u8>) -> Record {
        let service = sidecar.archive_service().cloned();
        let original = service
            .as_ref()
            .is_some_and(|service| service.matches(&self.facts.service));
        Record {
            names,
            state: if original {
                State::Original
            } else {
                State::Copy
            },
            service,
            language: sidecar.language().cloned(),
            target: sidecar.target(),
            removed_at: None,
            relations: sidecar.relations(),
            aliases: admitted_aliases(sidecar),
            sidecar: Some(bytes),
        }
    }

    /// What a tombstone makes of a removed item: it has no relations any more.
    pub(super) fn record_of_removed(
        &self,
        names: Names,
        tombstone: &Sidecar,
        bytes: Vec<u8>,
    ) -> Record {
        Record {
            state: State::Deleted,
            removed_at: tombstone.timestamp(),
            relations: Vec::new(),
            ..self.record_of(names, tombstone, bytes)
        }
    }

    /// Reads an item's directory into a row, with the reason where its sidecar is not accepted.
    pub(super) fn read_item(
        &self,
        names: &Names,
    ) -> Result<(Record, Option<ArchiveError>), ArchiveError> {
        let place = Place::of(names);
        let bare = |names: &Names| -> Result<Record, ArchiveError> {
            // An item that comes back piece by piece keeps the names its tombstone tells.
            let tombstone = self.tree.read_tombstone(&place)?;
            let known = tombstone.and_then(|bytes| self.parse_for(names, &bytes).ok());
            let names = known.map_or_else(|| names.clone(), |told| merged(names, told.names()));
            Ok(Record::bare(names, State::Copy))
        };
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok((bare(names)?, None)),
            Err(error) => return Ok((bare(names)?, Some(error.into()))),
        };
        match self.record_from(names, bytes) {
            Ok(record) if record.state == State::Original => {
                // One that is being handed over says itself whose the original is.
                let given = self.given(&record.names).ok().flatten();
                match given.filter(|given| given.is_taken) {
                    None => Ok((record, None)),
                    Some(given) => {
                        let (state, service) = (State::Copy, Some(given.other));
                        let record = Record {
                            state,
                            service,
                            ..record
                        };
                        Ok((record, None))
                    }
                }
            }
            Ok(record) => Ok((record, None)),
            Err(error) => Ok((bare(names)?, Some(error))),
        }
    }

    /// A row from the bytes of an item's sidecar, if they are valid.
    pub(super) fn record_from(
        &self,
        names: &Names,
        bytes: Vec<u8>,
    ) -> Result<Record, ArchiveError> {
        let sidecar = self.parse_for(names, &bytes)?;
        let names = merged(names, sidecar.names());
        Ok(self.record_of(names, &sidecar, bytes))
    }

    pub(super) fn parse_for(&self, names: &Names, bytes: &[u8]) -> Result<Sidecar, ArchiveError> {
        let sidecar = Sidecar::parse(bytes).map_err(|cause| ArchiveError::Sidecar {
            names: names.clone().into(),
            cause: cause.into(),
        })?;
        let found = sidecar.names();
        let differs = match (names.rep(), found.rep()) {
            (Some(ours), Some(theirs)) => ours != theirs,
            (Some(_), None) => !found.matches(names),
            (None, _) => false,
        } || match (names.ibip(), found.ibip()) {
            (Some(ours), Some(theirs)) => ours != theirs,
            (Some(_), None) => names.rep().is_none(),
            (None, _) => false,
        };
        if differs {
            return Err(ArchiveError::OtherItem {
                names: names.clone().into(),
                found: found.clone().into(),
            });
        }
        Ok(sidecar)
    }

    /// Takes in the sidecar that now lies in an item's directory: names, state, relations. An item
    /// that lay under its IBIp is moved to the place that its rep gives it.
    pub fn accept_sidecar(
        &self,
        actor: &dyn Actor,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        self.accept_as(actor, actor, id)
    }

    /// The same where one user brings the item, and with that its names, and another says what the
    /// sidecar says.
    pub fn accept_brought(
        &self,
        bringer: &dyn Actor,
        writer: &dyn Actor,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        self.accept_as(bringer, writer, id)
    }

    fn accept_as(
        &self,
        bringer: &dyn Actor,
        writer: &dyn Actor,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        let item = self.known(id)?;
        self.with_writer(writer, &item.names, |writer| {
            let accepted = self.accept_now(bringer, writer, id)?;
            self.replayed(accepted, id)
        })
    }

    /// Where a sidecar is unchanged, the index may still differ from the tree by an earlier error.
    fn replayed(&self, accepted: Acceptance, id: ItemId) -> Result<Acceptance, ArchiveError> {
        if matches!(accepted, Acceptance::Unchanged) {
            self.replay_at(&Place::of(&self.known(id)?.names))?;
        }
        Ok(accepted)
    }

    /// The same for a caller that holds `edits`.
    pub(super) fn accept(&self, actor: &dyn Actor, id: ItemId) -> Result<Acceptance, ArchiveError> {
        let accepted = self.accept_now(actor, actor, id)?;
        self.replayed(accepted, id)
    }

    /// The same without a look at the recovery queue.
    pub(super) fn accept_now(
        &self,
        bringer: &dyn Actor,
        actor: &dyn Actor,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        let item = self.known(id)?;
        let place = Place::of(&item.names);
        let _region = self.recovery.enter(&place, Durability::Unsynced)?;
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Acceptance::Unchanged),
            // Something else than a small file has been put there; it is there all the same.
            Err(error) if is_no_small_file(error.errno()) => {
                return Ok(Acceptance::Rejected(error.into()));
            }
            Err(error) => return Err(error.into()),
        };
        if self.store.sidecar(id)?.as_deref() == Some(&bytes) {
            return Ok(Acceptance::Unchanged);
        }
        let (mut sidecar, mut bytes) = match self.parse_for(&item.names, &bytes) {
            Ok(sidecar) => (sidecar, bytes),
            Err(error) => {
                if let (ArchiveError::OtherItem { .. }, State::Original) = (&error, item.state) {
                    // Content of another item copied into an original: the original stays itself.
                    self.restore(&item)?;
                }
                return Ok(Acceptance::Rejected(error));
            }
        };
        let is_service = item.names.matches(&self.facts.service);
        if is_service
            && !sidecar
                .archive_service()
                .is_some_and(|service| service.matches(&self.facts.service))
        {
            self.restore(&item)?;
            return Ok(Acceptance::Rejected(ArchiveError::ServiceItem));
        }
        let claims = sidecar
            .archive_service()
            .is_some_and(|service| service.matches(&self.facts.service));
        if claims
            && item.state != State::Original
            && let Some(given) = self.given(&item.names)?
        {
            if self.store.sidecar(id)?.is_some() {
                // What said so before counts, whoever has kept it: the other Archive may have it by now.
                self.restore(&item)?;
                return Ok(Acceptance::Rejected(ArchiveError::Given(item.names.into())));
            }
            // It comes back where it was removed, and another Archive has claimed it since.
            sidecar.set_archive_service(&given.other);
            bytes = sidecar.to_bytes();
            self.write_sidecar(&item.names, &bytes, Author::Same)?;
        }
        let mut names = merged(&item.names, sidecar.names());
        if let (None, Some(rep)) = (item.names.rep(), names.rep()) {
            let rep = self.as_spelled_here(rep)?;
            names = Names::new(Some(rep), names.ibip().cloned()).unwrap_or(names);
        }
        if let Some(refusal) = self.refusal(bringer, &item, &names, &sidecar)? {
            return Ok(Acceptance::Rejected(refusal));
        }
        self.log_refused_aliases(&item, &sidecar);
        let new_place = Place::of(&names);
        if new_place != place {
            self.make_levels(bringer, &new_place)?;
        }
        self.apply_accepted(actor, &item, &place, names, &sidecar, bytes)
    }

    /// Records what a sidecar says in the index, moves the item to the place of its names, and updates
    /// the items that it is related to.
    fn apply_accepted(
        &self,
        actor: &dyn Actor,
        item: &Item,
        place: &Place,
        names: Names,
        sidecar: &Sidecar,
        bytes: Vec<u8>,
    ) -> Result<Acceptance, ArchiveError> {
        let new_place = Place::of(&names);
        let mut moving = None;
        if new_place != *place {
            moving = Some(self.recovery.begin(&new_place, Durability::Unsynced)?);
            self.tree.move_item(place, &new_place)?;
        }
        let mut before = match item.state {
            State::Original => self.store.relations_of(item.id)?,
            _ => Vec::new(),
        };
        if sidecar.language() != item.language.as_ref() {
            // Into which language it translates another is said only now.
            before.retain(|(kind, _)| *kind != RelationKind::TranslationOf);
        }
        let record = self.record_of(names, sidecar, bytes);
        if item.state == State::Original
            || record.state == State::Original
            || self.has_tombstone(&record.names)?
        {
            // What the Archive that holds the original says it does not forget, whether or not
            // whoever wrote it has synced it; nor does it forget the names that a tombstone tells.
            self.tree.sync_item(&new_place)?;
        }
        let ends = match record.state {
            State::Original => self.ends_of(&record.names, &before, &record.relations)?,
            _ => Vec::new(),
        };
        if ends.is_empty() {
            self.recovery.clear_joint(&new_place)?;
        } else {
            self.recovery.begin_joint(&ends)?;
        }
        match self.store.put(&record) {
            Ok(id) => {
                if let Some(moving) = moving {
                    moving.done();
                }
                // The next close finds the sidecar accepted, and must not take that for all.
                let change = self.recovery.begin(&new_place, Durability::Synced)?;
                let item = self.known(id)?;
                self.remove_tombstones(&item.names)?;
                self.tell_far_ends(actor, &item, &before)?;
                self.recovery.end_joint(&ends);
                change.done();
                Ok(Acceptance::Accepted(item.into()))
            }
            Err(error @ StoreError::Taken { .. }) => {
                self.recovery.end_joint(&ends);
                Ok(Acceptance::Rejected(error.into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// An item that is here was not removed, under whichever of its names it was known when it was.
    pub(super) fn remove_tombstones(&self, names: &Names) -> Result<(), ArchiveError> {
        for place in Place::all_of(names) {
            self.tree.remove_tombstone(&place)?;
        }
        Ok(())
    }

    fn has_tombstone(&self, names: &Names) -> Result<bool, ArchiveError> {
        for place in Place::all_of(names) {
            if self.tree.read_tombstone(&place)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes an item's sidecar again as it was last accepted; nothing where there never was one.
    pub fn restore_sidecar(&self, id: ItemId) -> Result<(), ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        let item = self.known(id)?;
        if self.tree.read_sidecar(&Place::of(&item.names))?.is_some() {
            return Ok(());
        }
        self.restore(&item)
    }

    pub(super) fn restore(&self, item: &Item) -> Result<(), ArchiveError> {
        match self.store.sidecar(item.id)? {
            Some(bytes) => with_reserve(&self.tree, || {
                self.write_sidecar(&item.names, &bytes, Author::Unknown)
            }),
            None => Ok(()),
        }
    }

    pub(super) fn write_sidecar(
        &self,
        names: &Names,
        bytes: &[u8],
        author: Author,
    ) -> Result<(), ArchiveError> {
        self.tree.write_sidecar(&Place::of(names), bytes, author)?;
        self.rewritten.add(names.clone());
        Ok(())
    }

    /// The items whose sidecars the Archive has written since the last call: what a front end has cached
    /// of their directories is stale.
    pub fn take_rewritten(&self) -> Vec<Names> {
        self.rewritten.take()
    }

    /// The sidecar as last accepted, or a new one that says no more than the names.
    pub(super) fn accepted_sidecar(&self, item: &Item) -> Result<Sidecar, ArchiveError> {
        match self.store.sidecar(item.id)? {
            Some(bytes) => Sidecar::parse(&bytes).map_err(|cause| ArchiveError::Sidecar {
                names: item.names.clone().into(),
                cause: cause.into(),
            }),
            None => Ok(Sidecar::new(&item.names)),
        }
    }

    /// What a removed item leaves: its last sidecar, with state and the present time.
    pub(super) fn tombstone_of(&self, item: &Item) -> Result<Sidecar, ArchiveError> {
        Ok(self.tombstone_after(self.accepted_sidecar(item)?))
    }

    /// A tombstone that says what this sidecar said, with state and the present time.
    pub(super) fn tombstone_after(&self, last: Sidecar) -> Sidecar {
        let mut tombstone = last;
        tombstone.set_state(State::Deleted);
        tombstone.set_timestamp(&Timestamp::from_unix(self.clock.now().seconds(), 0));
        tombstone
    }

    /// Changes an original's sidecar, on disk and in the index. The caller holds `edits`.
    pub(super) fn edit_sidecar(
        &self,
        actor: &dyn Actor,
        item: &Item,
        edit: impl FnOnce(&mut Sidecar) + 'static,
    ) -> Result<(), ArchiveError> {
        let author = self.author_after(actor, &item.names)?;
        self.edit_sidecars(vec![(item.clone(), Box::new(edit), author)])
    }

    /// Changes the sidecars of originals, all or none: what an error leaves undone is put back. The
    /// caller holds `edits`.
    pub(super) fn edit_sidecars(&self, edits: Vec<EditOf>) -> Result<(), ArchiveError> {
        let place = |(item, ..): &EditOf| Place::of(&item.names);
        let ends: Vec<Place> = edits.iter().map(place).collect();
        if let [end] = &ends[..] {
            self.recovery.clear_joint(end)?;
            return self.edit_each(edits);
        }
        self.recovery.begin_joint(&ends)?;
        let edited = self.edit_each(edits);
        if edited.is_err() && self.recovery.is_queued() {
            return edited;
        }
        self.recovery.end_joint(&ends);
        edited
    }

    fn edit_each(&self, edits: Vec<EditOf>) -> Result<(), ArchiveError> {
        // All are marked before the first is changed.
        let marked = |(item, edit, author): EditOf| {
            let place = Place::of(&item.names);
            let change = self.recovery.begin(&place, Durability::Synced)?;
            Ok((item, edit, author, change))
        };
        let edits: Result<Vec<_>, ArchiveError> = edits.into_iter().map(marked).collect();
        let mut edits = edits?.into_iter();
        let mut before = Vec::new();
        while let Some((item, edit, author, change)) = edits.next() {
            match self.edit_one(&item, edit, author) {
                Ok(bytes) => before.push((item, bytes, change)),
                Err((error, bytes)) => {
                    before.push((item, bytes, change));
                    edits.for_each(|(.., change)| change.done());
                    for (item, bytes, change) in before.into_iter().rev() {
                        match bytes.map_or(Ok(()), |bytes| self.put_back(&item, bytes)) {
                            Ok(()) => change.done(),
                            Err(error) => log::warn!("{} stays changed: {error}", item.names),
                        }
                    }
                    return Err(error);
                }
            }
        }
        for (_, _, change) in before {
            change.done();
        }
        Ok(())
    }

    fn put_back(&self, item: &Item, bytes: Vec<u8>) -> Result<(), ArchiveError> {
        self.write_sidecar(&item.names, &bytes, Author::Same)?;
        let sidecar = self.parse_for(&item.names, &bytes)?;
        if self.store.sidecar(item.id)?.as_deref() != Some(&bytes) {
            self.store
                .put(&self.record_of(item.names.clone(), &sidecar, bytes))?;
        }
        Ok(())
    }

    /// Changes one sidecar, and gives what was on disk before where that has been written over.
    fn edit_one(&self, item: &Item, edit: Edit, author: Author) -> Edited {
        let untouched = |error: ArchiveError| (error, None);
        let place = Place::of(&item.names);
        let on_disk = self.tree.read_sidecar(&place);
        // The file on disk counts, not what the index has: one that was not accepted is not overwritten.
        let read = on_disk.map_err(|error| untouched(error.into()))?;
        let mut sidecar = match &read {
            Some(bytes) => self.parse_for(&item.names, bytes),
            None => self.accepted_sidecar(item),
        }
        .map_err(untouched)?;
        let known = self.store.sidecar(item.id);
        let known = known.map_err(|error| untouched(error.into()))?;
        if read.is_some() && read != known {
            // Nor is one that was changed outside the Archive accepted on the way.
            return Err(untouched(ArchiveError::Changed(item.names.clone().into())));
        }
        let before = read.unwrap_or_else(|| sidecar.to_bytes());
        edit(&mut sidecar);
        let bytes = sidecar.to_bytes();
        if bytes == before && known.as_ref() == Some(&bytes) {
            return Ok(None);
        }
        // A sync that fails comes after the rename.
        let written = self.write_sidecar(&item.names, &bytes, author);
        written.map_err(|error| (error, Some(before.clone())))?;
        let record = self.record_of(item.names.clone(), &sidecar, bytes);
        match self.store.put(&record) {
            Ok(_) => Ok(Some(before)),
            Err(error) => Err((error.into(), Some(before))),
        }
    }

    /// Sets a plain fact of an original: its language or its target file, or takes it away.
    pub fn set_fact(
        &self,
        actor: &dyn Actor,
        names: &Names,
        fact: Fact,
    ) -> Result<(), ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        let item = self.held(names)?.ok_or_else(|| ArchiveError::Unknown {
            name: names.preferred(),
        })?;
        self.refuse_others(actor, &item)?;
        if item.state != State::Original {
            return Err(ArchiveError::NotOriginal {
                what: message!("{names}, of which a copy is held here,", names = item.names),
            });
        }
        if let Fact::Alias(alias) = &fact {
            self.check_alias(&item, alias)?;
        }
        let said_language = matches!(fact, Fact::Language(Some(_)));
        self.edit_sidecar(actor, &item, move |sidecar| match &fact {
            Fact::Language(Some(language)) => sidecar.set_language(language),
            Fact::Target(Some(target)) => sidecar.set_target(target),
            Fact::Alias(alias) => sidecar.add_alias(alias),
            Fact::Language(None) => sidecar.remove_language(),
            Fact::Target(None) => sidecar.remove_target(),
        })?;
        if said_language {
            // The language of a translation is known only now.
            self.tell_of_translation(actor, &self.known(item.id)?)
        } else {
            Ok(())
        }
    }
}

/// The aliases that an item gets by its sidecar, unless another has them.
fn admitted_aliases(sidecar: &Sidecar) -> Vec<AliasPair> {
    let aliases = sidecar.aliases().iter();
    aliases.filter(|alias| !is_ibip(alias)).cloned().collect()
}

fn is_no_small_file(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INVAL | Errno::LOOP | Errno::FBIG | Errno::NXIO
    )
}

/// A plain fact that a sidecar can say of its item.
#[derive(Clone, Debug)]
pub enum Fact {
    /// The item's language.
    Language(Option<ibi::relation::Language>),
    /// Its target file below `doc/`.
    Target(Option<String>),
    /// A recorded alias.
    Alias(ibi::AliasPair),
}

/// The names known from either side, as the tree spells them: the place tells the rep, or the IBIp
/// of an item that has none; the sidecar tells the rest.
pub(super) fn merged(known: &Names, told: &Names) -> Names {
    let rep = known.rep().or(told.rep()).cloned();
    let ibip = match rep {
        Some(_) => told.ibip().or(known.ibip()).cloned(),
        None => known.ibip().cloned(),
    };
    Names::new(rep, ibip).unwrap_or_else(|| known.clone())
}

#[cfg(test)]
mod tests;
