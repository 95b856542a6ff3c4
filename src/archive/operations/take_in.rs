//! Takes in a whole item, such as one from a package. It is built in the staging area and appears complete.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::recovery_log::ChangeDurability;
use super::{Acceptance, ArchiveError, Depositor, Editor, Event, log_event};
use crate::archive::store::{By, Item, Record};
use crate::archive::tree::{Author, Place, StagedItem};
use crate::formats::item::{Names, Sidecar, State};
use ibi::Ibi;

impl Depositor<'_> {
    /// Refuses an item that is held here already, or that has a name of this Archive's own name
    /// space that it has not given out.
    pub fn check_taking(&self, names: &Names) -> Result<(), ArchiveError> {
        let forms = [
            names.rep().cloned().map(Ibi::Rep),
            names.ibip().cloned().map(Ibi::Ibip),
        ];
        for ibi in forms.into_iter().flatten() {
            if let Some(item) = self.held(&Names::from(ibi))? {
                return Err(ArchiveError::Exists(item.names.into()));
            }
        }
        self.refuse_unminted(names)
    }

    /// Takes in an item that `fill` creates in an empty directory, including the sidecar. The item appears
    /// complete and is on disk when this returns. As for any copy, its state follows from its sidecar.
    pub fn take_in<E: From<ArchiveError>>(
        &self,
        names: &Names,
        fill: impl FnOnce(&OwnedFd) -> Result<(), E>,
    ) -> Result<Item, E> {
        self.writable()?;
        self.check_taking(names)?;
        let rep = names
            .rep()
            .map(|rep| self.as_spelled_here(rep))
            .transpose()?;
        let names = Names::new(rep, names.ibip().cloned()).unwrap_or_else(|| names.clone());
        let place = Place::of(&names);
        let staged = self
            .tree
            .stage_directory(&place)
            .map_err(ArchiveError::from)?;
        let (staged, directory) = staged;
        let made = fill(&directory).and_then(|()| {
            let synced = self.tree.sync_all().map_err(ArchiveError::from);
            Ok(synced.and_then(|()| {
                self.edit(self.actor, |it| it.publish_staged(&names, &place, &staged))
            })?)
        });
        if made.is_err() {
            self.tree.discard_all(&staged);
        }
        made
    }
}

impl Editor<'_> {
    fn publish_staged(
        &self,
        names: &Names,
        place: &Place,
        staged: &StagedItem,
    ) -> Result<Item, ArchiveError> {
        let change = self.recovery.begin(place, ChangeDurability::Unsynced)?;
        self.tree
            .place_item(staged, place)
            .map_err(|error| match error.errno() {
                Errno::EXIST | Errno::NOTEMPTY => ArchiveError::Exists(names.clone().into()),
                _ => error.into(),
            })?;
        let known = self.store.find_by_names(names)?;
        let is_restored = known.is_some();
        let bare = known.map_or_else(|| names.clone(), |item| item.names);
        let id = self.store.put(&Record {
            by: By::of(self.actor),
            ..Record::bare(bare, State::Copy)
        })?;
        if self.tree.read_sidecar(place)?.is_none()
            && names.rep().is_some()
            && names.ibip().is_some()
        {
            // The tree would not contain the second name otherwise.
            self.write_sidecar(names, &Sidecar::new(names).to_bytes(), Author::Same)?;
        }
        let acceptance = self.with_writer(names, |writer| self.by(writer).accept(id))?;
        self.tree.sync_item(place)?;
        change.done();
        match acceptance {
            Acceptance::Rejected(error) => Err(error),
            Acceptance::Accepted(_) | Acceptance::Unchanged => {
                let item = self.known(id)?;
                if is_restored {
                    log_event(Event::Restore, &item.names, self.actor);
                }
                Ok(item)
            }
        }
    }
}
