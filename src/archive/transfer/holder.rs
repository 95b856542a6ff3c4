//! Changes which Archive an item's sidecar names as the holder of the original.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::local::Local;
use super::outcome::TransferError;
use crate::archive::backup::{ItemCopier, write_sidecar};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::tree::{SIDECAR, STRANGERS, Tree};
use crate::archive::{Editor, closed};
use crate::formats::item::{Life, Names, Sidecar};
use crate::os::directory::Directory;
use crate::os::opening::set_mode;
use crate::os::private_directory::PrivateDirectory;
use ibi::message;

impl Local {
    /// Makes an item's sidecar name the Archive that holds the original; durable when this returns.
    pub(super) fn name_holder(&self, names: &Names, holder: &Names) -> Result<(), TransferError> {
        let item = self.item(names)?;
        self.change_sidecar(&item, |sidecar| sidecar.set_archive_service(holder))?;
        // The daemon may have rejected the sidecar.
        let item = self.item(names)?;
        if item.service.as_ref().is_some_and(|it| it.matches(holder)) {
            Ok(())
        } else {
            Err(TransferError::System(message!(
                "the sidecar of {names} was not accepted when it named {holder}; run 'ibifs fsck'",
                names = item.names,
                holder
            )))
        }
    }

    /// Withdraws a copy as the Archive that holds the original has: its sidecar says it in the same words, and then its
    /// directory is closed to all but its owner and group.
    pub fn withdraw_copy(&self, item: &Item, said: &Life) -> Result<(), TransferError> {
        let life = Life {
            available: item.life.available.clone(),
            sealed: item.life.sealed.clone(),
            ..said.clone()
        };
        if item.life != life {
            self.change_sidecar(item, |sidecar| sidecar.set_life(life))?;
        }
        if self.mount_point.is_none() {
            let names = &item.names;
            return Ok(self.archive.edit(self.actor(), |it| it.close(names))?);
        }
        let directory = self.directory_to_change(item)?;
        opened(&directory)
            .and_then(|item| {
                let mode = Mode::from_raw_mode(closed(item.stat()?.st_mode));
                set_mode(item.descriptor().as_fd(), mode)
            })
            .map_err(|errno| directory.error(Action::Write, ".", errno).into())
    }

    /// Changes the sidecar of an item, durably.
    fn change_sidecar(
        &self,
        item: &Item,
        change: impl FnOnce(&mut Sidecar),
    ) -> Result<(), TransferError> {
        if self.mount_point.is_none() {
            let changed = |it: &Editor<'_>| it.change_sidecar(item.id, change);
            return Ok(self.archive.edit(self.actor(), changed)?);
        }
        let mut sidecar = self.sidecar_of(item)?;
        change(&mut sidecar);
        let directory = self.directory_to_change(item)?;
        let is_strangers = is_strangers(&directory);
        opened(&directory)
            .and_then(|item| replace(&item, &sidecar.to_bytes(), is_strangers))
            .map_err(|errno| directory.error(Action::Write, SIDECAR, errno).into())
    }
}

/// Replaces a sidecar as a whole, synced.
pub(super) fn replace(item: &Directory, bytes: &[u8], is_strangers: bool) -> Result<(), Errno> {
    let staging = PrivateDirectory::make(item, ItemCopier::TEMPORARY)?;
    write_sidecar(&staging, item, bytes, is_strangers)?;
    staging.close()
}

/// The directory of an item, in which another user may write.
pub(super) fn opened(item: &Tree) -> Result<Directory, Errno> {
    let opened = item.open_far(b"", OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok(opened.into())
}

/// Whether the sidecar in an item's directory came from an Archive that has no rights here.
fn is_strangers(directory: &Tree) -> bool {
    rustix::fs::statat(directory.root(), SIDECAR, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| stat.st_mode & STRANGERS != 0)
}
