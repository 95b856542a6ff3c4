//! Sidecars: validating, accepting, editing and restoring them.

use rustix::io::Errno;

use super::full_disk::with_reserve;
use super::identifiers::is_ibip;
use super::recovery_log::{Declared, Durability};
use super::{Actor, Archive, ArchiveError};
use crate::archive::store::{Item, ItemId, Record, StoreError};
use crate::archive::tree::{Author, Place};
use crate::formats::item::{Names, Sidecar, State};
use ibi::message;
use ibi::relation::RelationKind;
use ibi::{AliasPair, Timestamp};

/// The outcome of a sidecar that was written into an item.
#[derive(Debug)]
pub enum Acceptance {
    /// It was accepted and is in the index.
    Accepted(Box<Item>),
    /// It is equal to the accepted sidecar, byte for byte.
    Unchanged,
    /// It stays on disk and has no effect; fsck reports it.
    Rejected(ArchiveError),
}

/// A change of a sidecar.
pub(super) type Edit = Box<dyn FnOnce(&mut Sidecar)>;

/// A change of an item's sidecar, and the owner that the sidecar gets.
pub(super) type EditOf = (Item, Edit, Author);

/// The previous contents on disk if they were overwritten; on failure, together with the error.
type Edited = Result<Option<Vec<u8>>, (ArchiveError, Option<Vec<u8>>)>;

impl Archive {
    /// The index record of a present item according to its sidecar. Its state follows from the
    /// Archive service that the sidecar names; the pairs of a tombstone are ignored.
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

    /// The index record of a removed item according to its tombstone. It has no relations.
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

    /// Reads an item's directory into a record, with the error if its sidecar is not accepted.
    pub(super) fn read_item(
        &self,
        names: &Names,
    ) -> Result<(Record, Option<ArchiveError>), ArchiveError> {
        let place = Place::of(names);
        let bare = |names: &Names| -> Result<Record, ArchiveError> {
            // An item that is restored file by file keeps the names in its tombstone.
            let tombstone = self.tree.read_tombstone(&place)?;
            let known = tombstone.and_then(|bytes| self.parse_for(names, &bytes).ok());
            let names = known.map_or_else(|| names.clone(), |given| merged(names, given.names()));
            Ok(Record::bare(names, State::Copy))
        };
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok((bare(names)?, None)),
            Err(error) => return Ok((bare(names)?, Some(error.into()))),
        };
        match self.record_from(names, bytes) {
            Ok(record) if record.state == State::Original => {
                // For an item in a transfer of ownership, the transfer record says which Archive
                // has the original.
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

    /// A record from the bytes of an item's sidecar, if they are valid.
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

    /// Accepts the sidecar in an item's directory, with its names, state and relations. An item in
    /// the directory of its IBIp is moved to that of its rep.
    pub fn accept_sidecar(
        &self,
        actor: &dyn Actor,
        id: ItemId,
    ) -> Result<Acceptance, ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        self.accept_as(actor, actor, id)
    }

    /// Like [`Archive::accept_sidecar`], if one user brings the item and its names, and another is
    /// the author of the sidecar.
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

    /// Even if a sidecar is unchanged, the index may still differ from the tree after an earlier error.
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

    /// The same without checking the recovery queue.
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
            // Something other than a small file was created at the path. It stays there and is not accepted.
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
                    // Another item's content was copied into an original, which keeps its identity.
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
                // The user may have kept an earlier sidecar. It must not reclaim the original,
                // which the other Archive may have by now.
                self.restore(&item)?;
                return Ok(Acceptance::Rejected(ArchiveError::Given(item.names.into())));
            }
            // The item was removed, is restored now, and another Archive has claimed it in between.
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
        if new_place == place {
            return self.apply_accepted(actor, &item, &place, names, &sidecar, bytes);
        }
        let missing = self.tree.missing_levels(new_place.parent());
        let accepted = self
            .make_levels(bringer, &new_place)
            .and_then(|()| self.apply_accepted(actor, &item, &place, names, &sidecar, bytes));
        if !matches!(accepted, Ok(Acceptance::Accepted(_))) {
            self.tree.remove_levels(&missing)?;
        }
        accepted
    }

    /// Records a sidecar in the index, moves the item to the place of its names, and updates
    /// related items.
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
            // The language of this translation is known only now.
            before.retain(|(kind, _)| *kind != RelationKind::TranslationOf);
        }
        let record = self.record_of(names, sidecar, bytes);
        if item.state == State::Original
            || record.state == State::Original
            || self.has_tombstone(&record.names)?
        {
            // The Archive that holds the original must not lose its sidecar, even if the author did
            // not sync it; nor must it lose the names in a tombstone.
            self.tree.sync_item(&new_place)?;
        }
        let ends = match record.state {
            State::Original => self.ends_of(actor, &before, &record.relations)?,
            _ => Vec::new(),
        };
        let joint = if ends.is_empty() {
            self.recovery.clear_joint(&new_place)?;
            None
        } else {
            Some(self.recovery.begin_joint(&record.names, &before, &ends)?)
        };
        match self.store.put(&record) {
            Ok(id) => {
                if let Some(moving) = moving {
                    moving.done();
                }
                // From here on the next close finds the sidecar accepted, although the far ends are
                // not written yet.
                let change = self.recovery.begin(&new_place, Durability::Synced)?;
                let change = change.of_relations(Some(before.clone()));
                let item = self.known(id)?;
                self.remove_tombstones(&item.names)?;
                self.update_far_ends(actor, &item, &before, |_| true)?;
                if let Some(joint) = joint {
                    self.recovery.end_joint(joint);
                }
                change.done();
                Ok(Acceptance::Accepted(item.into()))
            }
            Err(error @ StoreError::Taken { .. }) => {
                if let Some(joint) = joint {
                    self.recovery.end_joint(joint);
                }
                if let Some(moving) = moving {
                    self.tree.move_item(&new_place, place)?;
                    moving.done();
                }
                Ok(Acceptance::Rejected(error.into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the tombstones of a present item, under all of its names.
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

    /// Restores the last accepted sidecar of an item. Does nothing if a sidecar is there or none
    /// was accepted.
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

    /// The items whose sidecars the Archive has written since the last call. A front end
    /// invalidates its caches of their directories.
    pub fn take_rewritten(&self) -> Vec<Names> {
        self.rewritten.take()
    }

    /// The last accepted sidecar, or a new one that contains only the names.
    pub(super) fn accepted_sidecar(&self, item: &Item) -> Result<Sidecar, ArchiveError> {
        match self.store.sidecar(item.id)? {
            Some(bytes) => Sidecar::parse(&bytes).map_err(|cause| ArchiveError::Sidecar {
                names: item.names.clone().into(),
                cause: cause.into(),
            }),
            None => Ok(Sidecar::new(&item.names)),
        }
    }

    /// The tombstone of an item: its last sidecar, with the state Deleted and the present time.
    pub(super) fn tombstone_of(&self, item: &Item) -> Result<Sidecar, ArchiveError> {
        Ok(self.tombstone_after(self.accepted_sidecar(item)?))
    }

    /// A tombstone with the contents of a sidecar, the state Deleted and the present time.
    pub(super) fn tombstone_after(&self, last: Sidecar) -> Sidecar {
        let mut tombstone = last;
        tombstone.set_state(State::Deleted);
        tombstone.set_timestamp(&Timestamp::from_unix(self.clock.now().seconds(), 0));
        tombstone
    }

    /// Changes an original's sidecar on disk and in the index. The caller holds `edits`.
    pub(super) fn edit_sidecar(
        &self,
        actor: &dyn Actor,
        item: &Item,
        edit: impl FnOnce(&mut Sidecar) + 'static,
    ) -> Result<(), ArchiveError> {
        let author = self.author_after(actor, &item.names)?;
        self.edit_sidecars(vec![(item.clone(), Box::new(edit), author)])
    }

    /// Changes the sidecars of originals, all or none: after an error, changes already made are
    /// reverted. The first is the item whose relations change; the others follow from it. The
    /// caller holds `edits`.
    pub(super) fn edit_sidecars(&self, edits: Vec<EditOf>) -> Result<(), ArchiveError> {
        let place = |(item, ..): &EditOf| Place::of(&item.names);
        let Some(((first, ..), others)) = edits.split_first() else {
            return Ok(());
        };
        if others.is_empty() {
            self.recovery.clear_joint(&Place::of(&first.names))?;
            return self.edit_each(edits, None);
        }
        let before = self.store.relations_of(first.id)?;
        let others: Vec<Place> = others.iter().map(place).collect();
        let joint = self.recovery.begin_joint(&first.names, &before, &others)?;
        let edited = self.edit_each(edits, Some(before));
        if edited.is_err() && self.recovery.is_queued() {
            return edited;
        }
        self.recovery.end_joint(joint);
        edited
    }

    /// `before` is what the first item declared, if the others follow from it.
    pub(super) fn edit_each(
        &self,
        edits: Vec<EditOf>,
        mut before: Option<Declared>,
    ) -> Result<(), ArchiveError> {
        // All places are marked before the first sidecar is changed.
        let marked = |(item, edit, author): EditOf| {
            let place = Place::of(&item.names);
            let change = self.recovery.begin(&place, Durability::Synced)?;
            Ok((item, edit, author, change.of_relations(before.take())))
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

    /// Changes one sidecar. Returns the previous contents on disk if they were overwritten.
    fn edit_one(&self, item: &Item, edit: Edit, author: Author) -> Edited {
        let untouched = |error: ArchiveError| (error, None);
        let place = Place::of(&item.names);
        let on_disk = self.tree.read_sidecar(&place);
        // The file on disk is authoritative, not the index: a sidecar that was not accepted is not
        // overwritten.
        let read = on_disk.map_err(|error| untouched(error.into()))?;
        let mut sidecar = match &read {
            Some(bytes) => self.parse_for(&item.names, bytes),
            None => self.accepted_sidecar(item),
        }
        .map_err(untouched)?;
        let known = self.store.sidecar(item.id);
        let known = known.map_err(|error| untouched(error.into()))?;
        if read.is_some() && read != known {
            // A sidecar that was changed outside the Archive is not accepted in passing.
            return Err(untouched(ArchiveError::Changed(item.names.clone().into())));
        }
        let before = read.unwrap_or_else(|| sidecar.to_bytes());
        edit(&mut sidecar);
        let bytes = sidecar.to_bytes();
        if bytes == before && known.as_ref() == Some(&bytes) {
            return Ok(None);
        }
        // A failed sync comes after the rename, so the previous contents were overwritten.
        let written = self.write_sidecar(&item.names, &bytes, author);
        written.map_err(|error| (error, Some(before.clone())))?;
        let record = self.record_of(item.names.clone(), &sidecar, bytes);
        match self.store.put(&record) {
            Ok(_) => Ok(Some(before)),
            Err(error) => Err((error.into(), Some(before))),
        }
    }

    /// Sets or removes a language or a target file of an original, or adds an alias.
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
            self.update_translated_item(actor, &self.known(item.id)?)
        } else {
            Ok(())
        }
    }
}

/// The aliases that a sidecar gives its item, unless another item has them.
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

/// A simple fact about an item that its sidecar can state.
#[derive(Clone, Debug)]
pub enum Fact {
    /// The item's language.
    Language(Option<ibi::relation::Language>),
    /// Its target file below `doc/`.
    Target(Option<Vec<u8>>),
    /// An alias to be recorded.
    Alias(ibi::AliasPair),
}

/// Combines the names from two sources. The place gives the rep, or the IBIp of an item without a
/// rep; the sidecar gives the other form.
pub(super) fn merged(known: &Names, given: &Names) -> Names {
    let rep = known.rep().or(given.rep()).cloned();
    let ibip = match rep {
        Some(_) => given.ibip().or(known.ibip()).cloned(),
        None => known.ibip().cloned(),
    };
    Names::new(rep, ibip).unwrap_or_else(|| known.clone())
}

#[cfg(test)]
mod tests;
