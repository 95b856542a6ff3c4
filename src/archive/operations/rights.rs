//! Who may change what an item says, and who has said what its sidecar says now.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, FileType, Mode};

use super::actor::may_replace;
use super::{Actor, Archive, ArchiveError, OwnerOnDisk, Stranger};
use crate::archive::store::Item;
use crate::archive::tree::{Author, Place};
use crate::formats::item::Names;

/// Two users at once: what both may do.
struct Both<'a>(&'a dyn Actor, &'a dyn Actor);

impl Actor for Both<'_> {
    fn may(&self, file: std::os::fd::BorrowedFd<'_>, access: Access) -> bool {
        self.0.may(file, access) && self.1.may(file, access)
    }

    fn owns(&self, uid: u32) -> bool {
        self.0.owns(uid) && self.1.owns(uid)
    }

    fn run(&self, _: &mut dyn FnMut()) -> bool {
        false
    }

    fn owner(&self) -> Option<(u32, u32)> {
        self.1.owner()
    }
}

impl Archive {
    /// Whether a user may change what an item says of itself: write its sidecar in place, or put
    /// another there, as the native filesystem has it. With `way`, also get there by its rep.
    pub(super) fn may_say(
        &self,
        actor: &dyn Actor,
        names: &Names,
        way: bool,
    ) -> Result<bool, ArchiveError> {
        let place = Place::of(names);
        if way && !self.may_reach(actor, &place)? {
            return Ok(false);
        }
        let item = self.tree.open_item(&place)?;
        let sidecar = self.tree.open_sidecar(&place)?;
        let owner = match &sidecar {
            Some(file) if is_regular(file) => {
                if actor.may(item.as_fd(), Access::EXEC_OK)
                    && actor.may(file.as_fd(), Access::WRITE_OK)
                {
                    return Ok(true);
                }
                owner_of(file)
            }
            Some(file) => owner_of(file),
            None => None,
        };
        Ok(may_replace(actor, item.as_fd(), owner))
    }

    /// Refuses a user who may not change what an item says of itself.
    pub(super) fn refuse_others(&self, actor: &dyn Actor, item: &Item) -> Result<(), ArchiveError> {
        if self.may_say(actor, &item.names, false)? {
            Ok(())
        } else {
            Err(ArchiveError::NotAllowed(item.names.clone().into()))
        }
    }

    /// Whether a user may pass through the levels above a place.
    fn may_reach(&self, actor: &dyn Actor, place: &Place) -> Result<bool, ArchiveError> {
        let path = place.parent();
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let level = self.tree.open_directory(path.get(..end).unwrap_or(path))?;
            if !actor.may(level.as_fd(), Access::EXEC_OK) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs something on behalf of the user who says what an item's sidecar says: the owner of that file.
    /// One that came from another Archive over the network is a stranger's until a user of this system
    /// writes it again.
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

    /// The same where a user has just written the sidecar, or put it there: what it says is not said
    /// with more rights than its owner has.
    pub(super) fn with_writer<T>(
        &self,
        actor: &dyn Actor,
        names: &Names,
        act: impl FnOnce(&dyn Actor) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        match self.author(names)? {
            Some(owner) if actor.owner().is_some_and(|(uid, _)| uid == owner.uid) => act(actor),
            Some(owner) => act(&Both(actor, &owner)),
            None => act(&Stranger),
        }
    }

    /// Whether what one item says of another counts there: the owner of its sidecar may write the other's.
    /// What cannot be looked at counts for nothing.
    pub(super) fn may_speak_for(&self, sayer: &Item, item: &Item) -> bool {
        let may = |author: &dyn Actor| self.may_say(author, &item.names, true);
        self.with_author(&sayer.names, may).unwrap_or(false)
    }

    /// The same by names.
    pub(super) fn may_speak(&self, sayer: &Names, item: &Names) -> Result<bool, ArchiveError> {
        Ok(match (self.held(sayer)?, self.held(item)?) {
            (Some(sayer), Some(item)) => self.may_speak_for(&sayer, &item),
            _ => false,
        })
    }

    /// To whom an item's sidecar belongs when a user has it changed: as natively, to whom it belonged
    /// where the user may write it in place, else to the user, who may put another there.
    pub(super) fn author_after(
        &self,
        actor: &dyn Actor,
        names: &Names,
    ) -> Result<Author, ArchiveError> {
        let sidecar = self.tree.open_sidecar(&Place::of(names))?;
        let in_place = match &sidecar {
            Some(file) => is_regular(file) && actor.may(file.as_fd(), Access::WRITE_OK),
            None => false,
        };
        Ok(match actor.owner() {
            Some((uid, gid)) if !in_place => Author::User { uid, gid },
            _ => Author::Same,
        })
    }

    /// The owner of an item's sidecar; None where that is a stranger.
    fn author(&self, names: &Names) -> Result<Option<OwnerOnDisk>, ArchiveError> {
        let place = Place::of(names);
        let Some(file) = self.tree.open_sidecar(&place)? else {
            return Ok(None);
        };
        let Ok(stat) = rustix::fs::fstat(&file) else {
            return Ok(None);
        };
        if Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX) {
            return Ok(None);
        }
        let above = self.tree.open_directory(place.parent())?;
        let above = rustix::fs::fstat(&above);
        let item = rustix::fs::fstat(self.tree.open_item(&place)?);
        // A directory hands its group on to what is made in it, whoever makes it.
        let is_own_group = above.is_ok_and(|above| {
            !Mode::from_raw_mode(above.st_mode).contains(Mode::SGID) || above.st_gid != stat.st_gid
        }) && item
            .is_ok_and(|item| item.st_gid == stat.st_gid && item.st_uid == stat.st_uid);
        Ok(Some(OwnerOnDisk {
            uid: stat.st_uid,
            gid: is_own_group.then_some(stat.st_gid),
        }))
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
