//! Permissions: who may change an item's sidecar, and who is its author.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, FileType, Mode};

use super::actor::may_replace;
use super::{Actor, Archive, ArchiveError, Depositor, Editor, OwnerOnDisk, Stranger};
use crate::archive::store::{Item, ItemId, Speaker};
use crate::archive::tree::{Action, Author, Place, speaks_for_owner};
use crate::formats::item::Names;

/// The number of items for which it is recorded in one transaction who speaks there.
const AT_ONCE: usize = 1_000;

/// The check of the levels above an item for a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traversal {
    /// The user must have access through the levels.
    Checked,
    /// The user has reached the item already.
    Skipped,
}

/// Two users at once, with the permissions that both have.
struct Both<'a>(&'a dyn Actor, &'a dyn Actor);

impl Actor for Both<'_> {
    fn may(&self, file: std::os::fd::BorrowedFd<'_>, access: Access) -> bool {
        self.0.may(file, access) && self.1.may(file, access)
    }

    fn owns(&self, uid: u32) -> bool {
        self.0.owns(uid) && self.1.owns(uid)
    }

    fn owner(&self) -> Option<(u32, u32)> {
        self.1.owner()
    }
}

impl Depositor<'_> {
    /// Whether a user may change an item's sidecar: write it in place or replace it, as on the native
    /// filesystem. If the traversal is checked, the user must also have access to the item through the
    /// levels of its rep.
    pub(super) fn may_write_sidecar(
        &self,
        names: &Names,
        traversal: Traversal,
    ) -> Result<bool, ArchiveError> {
        let place = Place::of(names);
        if traversal == Traversal::Checked && !self.may_reach(&place)? {
            return Ok(false);
        }
        let item = self.tree.open_item(&place)?;
        let sidecar = self.tree.open_sidecar(&place)?;
        let owner = match &sidecar {
            Some(file) if is_regular(file) => {
                if self.actor.may(item.as_fd(), Access::EXEC_OK)
                    && self.actor.may(file.as_fd(), Access::WRITE_OK)
                {
                    return Ok(true);
                }
                owner_of(file)
            }
            Some(file) => owner_of(file),
            None => None,
        };
        Ok(may_replace(self.actor, item.as_fd(), owner))
    }

    /// Refuses a user who may not change an item's sidecar.
    pub(super) fn refuse_others(&self, item: &Item) -> Result<(), ArchiveError> {
        if self.may_write_sidecar(&item.names, Traversal::Skipped)? {
            Ok(())
        } else {
            Err(ArchiveError::NotAllowed(item.names.clone().into()))
        }
    }

    /// Whether a user may pass through the levels above a place.
    fn may_reach(&self, place: &Place) -> Result<bool, ArchiveError> {
        let path = place.parent();
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let level = self.tree.open_directory(path.get(..end).unwrap_or(path))?;
            if !self.actor.may(level.as_fd(), Access::EXEC_OK) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a closure on behalf of a user who has just written or placed the sidecar. The permissions
    /// are at most those of the file's owner.
    pub(super) fn with_writer<T>(
        &self,
        names: &Names,
        act: impl FnOnce(&dyn Actor) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        match self.author(names)? {
            Some(owner) if self.actor.owner().is_some_and(|(uid, _)| uid == owner.uid) => {
                act(self.actor)
            }
            Some(owner) => act(&Both(self.actor, &owner)),
            None => act(&Stranger),
        }
    }

    /// The owner of an item's sidecar after a user has changed it. As on a native filesystem, the owner
    /// stays if the user may write the file in place; else it is the user, who replaces the file. The relations
    /// that the previous owner has declared do not get the rights of this user: the file is marked.
    pub(super) fn author_after(&self, names: &Names) -> Result<Author, ArchiveError> {
        let sidecar = self.tree.open_sidecar(&Place::of(names))?;
        let in_place = match &sidecar {
            Some(file) => is_regular(file) && self.actor.may(file.as_fd(), Access::WRITE_OK),
            None => false,
        };
        let Some((uid, gid)) = self.actor.owner().filter(|_| !in_place) else {
            return Ok(Author::Same);
        };
        let is_own = sidecar.as_ref().and_then(owner_of) == Some(uid);
        Ok(if is_own || !self.declares_anything(names)? {
            Author::User { uid, gid }
        } else {
            Author::Marked { uid, gid }
        })
    }

    /// Returns whether the accepted sidecar of an item declares any relation.
    pub(super) fn declares_anything(&self, names: &Names) -> Result<bool, ArchiveError> {
        Ok(match self.store.find_by_names(names)? {
            Some(item) => !self.store.relations_of(item.id)?.is_empty(),
            None => false,
        })
    }
}

impl Archive {
    /// Runs a closure on behalf of the author of an item's sidecar: the owner of the file, or [`Stranger`] where
    /// the file does not speak for its owner ([`speaks_for_owner`]).
    pub(super) fn with_author<T>(
        &self,
        names: &Names,
        act: impl FnOnce(&dyn Actor) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        match self.author(names)? {
            Some(owner) => act(&owner),
            None => act(&Stranger),
        }
    }

    /// Whether declarations of one item count for another: the author of its sidecar may write the
    /// other's. If this cannot be determined, they do not count.
    pub(super) fn may_declare_at(&self, declarer: &Item, item: &Item) -> bool {
        let may = |author: &dyn Actor| {
            self.depositor(author)
                .may_write_sidecar(&item.names, Traversal::Checked)
        };
        self.with_author(&declarer.names, may).unwrap_or(false)
    }

    /// Like [`Archive::may_declare_at`], by names.
    pub(super) fn may_declare_for(
        &self,
        declarer: &Names,
        item: &Names,
    ) -> Result<bool, ArchiveError> {
        Ok(match (self.held(declarer)?, self.held(item)?) {
            (Some(declarer), Some(item)) => self.may_declare_at(&declarer, &item),
            _ => false,
        })
    }

    /// The user who speaks in an item's sidecar as it is on disk.
    pub(super) fn speaker_on_disk(&self, names: &Names) -> Option<Speaker> {
        let author = self.author(names).ok().flatten()?;
        let (uid, gid) = (author.uid, author.gid);
        Some(Speaker { uid, gid })
    }

    /// The users whose declarations about an item count: they may write its sidecar.
    pub(super) fn speakers_that_count(&self, item: &Item) -> Result<Vec<Speaker>, ArchiveError> {
        let mut speakers = self.store.speakers_to(&item.names)?;
        speakers.retain(|speaker| self.may_speak_at(*speaker, item));
        Ok(speakers)
    }

    /// Returns whether declarations in which this user speaks count for an item. If this cannot be determined, they do not.
    pub(super) fn may_speak_at(&self, speaker: Speaker, item: &Item) -> bool {
        let Speaker { uid, gid } = speaker;
        let user = OwnerOnDisk { uid, gid };
        self.depositor(&user)
            .may_write_sidecar(&item.names, Traversal::Checked)
            .unwrap_or(false)
    }

    /// Records who speaks in an item's sidecar, after the owner, the mode or the names of the file have changed.
    pub fn note_speaker(&self, id: ItemId) -> Result<(), ArchiveError> {
        self.writable()?;
        if self.store.relations_of(id)?.is_empty() {
            return Ok(());
        }
        self.edit(&Stranger, |it| it.record_speaker(&it.known(id)?))
    }

    /// The owner of an item's sidecar; None if it does not speak for its owner.
    fn author(&self, names: &Names) -> Result<Option<OwnerOnDisk>, ArchiveError> {
        let owner = self.owner_of_sidecar(names)?;
        Ok(owner.and_then(|(owner, speaks)| speaks.then_some(owner)))
    }

    /// The owner of an item's sidecar, and whether it speaks for that user.
    pub(super) fn owner_of_sidecar(
        &self,
        names: &Names,
    ) -> Result<Option<(OwnerOnDisk, bool)>, ArchiveError> {
        let place = Place::of(names);
        let Some(file) = self.tree.open_sidecar(&place)? else {
            return Ok(None);
        };
        let Ok(stat) = rustix::fs::fstat(&file) else {
            return Ok(None);
        };
        let above = self.tree.open_directory(place.parent())?;
        let above = rustix::fs::fstat(&above);
        let item = rustix::fs::fstat(self.tree.open_item(&place)?);
        // A directory with the setgid bit passes its group on to new files of any user.
        let is_own_group = above.is_ok_and(|above| {
            !Mode::from_raw_mode(above.st_mode).contains(Mode::SGID) || above.st_gid != stat.st_gid
        }) && item
            .is_ok_and(|item| item.st_gid == stat.st_gid && item.st_uid == stat.st_uid);
        let owner = OwnerOnDisk {
            uid: stat.st_uid,
            gid: is_own_group.then_some(stat.st_gid),
        };
        Ok(Some((owner, speaks_for_owner(&stat))))
    }
}

impl Editor<'_> {
    /// The owner of the accepted sidecar of an item that is written again where it is lost: the owner of the item, with
    /// the mark of a stranger if that user was not the one who spoke there.
    pub(super) fn author_of_lost(&self, item: &Item) -> Result<Author, ArchiveError> {
        if self.store.relations_of(item.id)?.is_empty() {
            return Ok(Author::Unknown);
        }
        let place = Place::of(&item.names);
        let stat = rustix::fs::fstat(self.tree.open_item(&place)?);
        let stat = stat.map_err(|errno| self.tree.error(Action::Read, place.as_str(), errno))?;
        let (uid, gid) = (stat.st_uid, stat.st_gid);
        Ok(match self.store.speaker(item.id)? {
            Some(speaker) if speaker.uid == uid => Author::Unknown,
            _ => Author::Marked { uid, gid },
        })
    }

    /// Does what [`Archive::note_speaker`] does, while items are changed.
    pub(super) fn record_speaker(&self, item: &Item) -> Result<(), ArchiveError> {
        if self.store.relations_of(item.id)?.is_empty() {
            return Ok(());
        }
        let speaker = self.speaker_on_disk(&item.names);
        if speaker != self.store.speaker(item.id)? {
            self.store.set_speakers(&[(item.id, speaker)])?;
        }
        Ok(())
    }

    /// Records who speaks in the sidecars for which an earlier version has not recorded it.
    pub(super) fn record_all_speakers(&self) -> Result<(), ArchiveError> {
        let mut after = ItemId(0);
        loop {
            let items = self.store.unspoken(after, AT_ONCE)?;
            let Some(last) = items.last() else {
                return Ok(());
            };
            after = last.id;
            let spoken = items.iter();
            let spoken = spoken.map(|item| (item.id, self.speaker_on_disk(&item.names)));
            self.store.set_speakers(&spoken.collect::<Vec<_>>())?;
        }
    }
}

fn is_regular(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn owner_of(file: &OwnedFd) -> Option<u32> {
    rustix::fs::fstat(file).ok().map(|stat| stat.st_uid)
}

#[cfg(test)]
mod tests;
