//! Changes the sidecars of originals, on disk and in the index: all of them, or none.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::super::recovery_log::{ChangeDurability, Declared};
use crate::archive::store::{By, Item, Record};
use crate::archive::tree::{Author, Place};
use crate::archive::{ArchiveError, Editor};
use crate::formats::item::{Names, Sidecar, State};
use ibi::{Timestamp, message};

/// A change of a sidecar.
pub(in crate::archive::operations) type Edit = Box<dyn FnOnce(&mut Sidecar)>;

/// A change of an item's sidecar, and the owner that the sidecar gets.
pub(in crate::archive::operations) type EditOf = (Item, Edit, Author);

/// The previous contents on disk if they were overwritten; on failure, together with the error.
type Edited = Result<Option<Vec<u8>>, (ArchiveError, Option<Vec<u8>>)>;

/// The sidecar of an item in the tree, and in the index.
type OnDiskAndKnown = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The time for which a filesystem may show the previous sidecar after another host has replaced it: those in user
/// space keep names and attributes for a second.
const LATE: Duration = Duration::from_millis(1_500);

/// The interval at which it is looked whether the present one is there.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A simple fact about an item that its sidecar can state.
#[derive(Clone, Debug)]
pub enum Fact {
    /// The item's language.
    Language(Option<ibi::relation::Language>),
    /// Its target file below `doc/`.
    Target(Option<Vec<u8>>),
    /// The instant until which its files are withheld.
    Available(Option<Timestamp>),
    /// An alias to be recorded.
    Alias(ibi::AliasPair),
}

impl Editor<'_> {
    /// The sidecar of an item in the tree and in the index. Another host has changed both together, and a filesystem
    /// that several hosts have mounted may show this one the previous file for a while; it is waited for then.
    fn on_disk_and_known(&self, item: &Item) -> Result<OnDiskAndKnown, ArchiveError> {
        let place = Place::of(&item.names);
        let known = self.store.sidecar(item.id)?;
        let until = Instant::now() + LATE;
        loop {
            let read = self.tree.read_sidecar(&place);
            let is_late = self.is_shared()
                && match &read {
                    Ok(read) => read.is_some() && *read != known,
                    Err(error) => error.errno() == Errno::STALE,
                };
            if !is_late || Instant::now() > until {
                return Ok((read?, known));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Changes an original's sidecar on disk and in the index.
    pub(in crate::archive::operations) fn edit_sidecar(
        &self,
        item: &Item,
        edit: impl FnOnce(&mut Sidecar) + 'static,
    ) -> Result<(), ArchiveError> {
        let author = self.author_after(&item.names)?;
        self.edit_sidecars(vec![(item.clone(), Box::new(edit), author)])
    }

    /// Changes the sidecars of originals, all or none: after an error, changes already made are
    /// reverted. The first is the item whose relations change; the others follow from it.
    pub(in crate::archive::operations) fn edit_sidecars(
        &self,
        edits: Vec<EditOf>,
    ) -> Result<(), ArchiveError> {
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
    pub(in crate::archive::operations) fn edit_each(
        &self,
        edits: Vec<EditOf>,
        mut before: Option<Declared>,
    ) -> Result<(), ArchiveError> {
        // All places are marked before the first sidecar is changed.
        let marked = |(item, edit, author): EditOf| {
            let place = Place::of(&item.names);
            let change = self.recovery.begin(&place, ChangeDurability::Synced)?;
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
        self.record_speaker(item)
    }

    /// Changes one sidecar. Returns the previous contents on disk if they were overwritten.
    fn edit_one(&self, item: &Item, edit: Edit, author: Author) -> Edited {
        let untouched = |error: ArchiveError| (error, None);
        // The file on disk is authoritative, not the index: a sidecar that was not accepted is not
        // overwritten.
        let (read, known) = self.on_disk_and_known(item).map_err(untouched)?;
        let mut sidecar = match &read {
            Some(bytes) => self.parse_for(&item.names, bytes),
            None => self.accepted_sidecar(item),
        }
        .map_err(untouched)?;
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
        let record = Record {
            by: By::of(self.actor),
            ..self.record_of(item.names.clone(), &sidecar, bytes)
        };
        match self.store.put(&record) {
            Ok(_) => Ok(Some(before)),
            Err(error) => Err((error.into(), Some(before))),
        }
    }

    /// An item that is held here, whose sidecar the user may change.
    pub(in crate::archive::operations) fn held_by(
        &self,
        names: &Names,
    ) -> Result<Item, ArchiveError> {
        let item = self.held(names)?.ok_or_else(|| ArchiveError::Unknown {
            name: names.preferred(),
        })?;
        self.refuse_others(&item)?;
        Ok(item)
    }

    /// Sets or removes a language or a target file of an original, or adds an alias.
    pub fn set_fact(&self, names: &Names, fact: Fact) -> Result<(), ArchiveError> {
        let item = self.held_by(names)?;
        if item.state != State::Original {
            return Err(ArchiveError::NotOriginal {
                what: message!("{names}, of which a copy is held here,", names = item.names),
            });
        }
        if let Fact::Alias(alias) = &fact {
            self.check_alias(&item, alias)?;
        }
        let said_language = matches!(fact, Fact::Language(Some(_)));
        self.edit_sidecar(&item, move |sidecar| match &fact {
            Fact::Language(Some(language)) => sidecar.set_language(language),
            Fact::Target(Some(target)) => sidecar.set_target(target),
            Fact::Alias(alias) => sidecar.add_alias(alias),
            Fact::Available(at) => {
                let mut life = sidecar.life().clone();
                life.available.clone_from(at);
                sidecar.set_life(life);
            }
            Fact::Language(None) => sidecar.remove_language(),
            Fact::Target(None) => sidecar.remove_target(),
        })?;
        if said_language {
            // The language of a translation is known only now. Its item was declared before.
            self.with_writer(&item.names, |writer| {
                self.by(writer)
                    .update_translated_item(&self.known(item.id)?)
            })
        } else {
            Ok(())
        }
    }
}
