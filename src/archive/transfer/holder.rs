//! Changes which Archive an item's sidecar names as the holder of the original.

use std::os::fd::BorrowedFd;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::local::Local;
use super::outcome::TransferError;
use crate::archive::backup::ItemCopier;
use crate::archive::tree::Action;
use crate::archive::tree::{SIDECAR, STRANGERS, Tree};
use crate::formats::item::{Names, Sidecar};
use crate::os::writing::{self, Durability};
use ibi::message;

impl Local {
    /// Makes an item's sidecar name the Archive that holds the original; durable when this returns.
    pub(super) fn name_holder(&self, names: &Names, holder: &Names) -> Result<(), TransferError> {
        let item = self.item(names)?;
        if self.mount_point.is_none() {
            let set = |sidecar: &mut Sidecar| sidecar.set_archive_service(holder);
            self.archive.change_sidecar(self.actor(), item.id, set)?;
        } else {
            let mut sidecar = self.sidecar_of(&item)?;
            sidecar.set_archive_service(holder);
            let directory = self.directory_to_change(&item)?;
            let is_strangers = is_strangers(&directory);
            replace(directory.root(), &sidecar.to_bytes(), is_strangers)
                .map_err(|errno| directory.error(Action::Write, SIDECAR, errno))?;
        }
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
}

/// Replaces a sidecar as a whole, synced.
pub(super) fn replace(root: BorrowedFd<'_>, bytes: &[u8], is_strangers: bool) -> Result<(), Errno> {
    let name = format!("{}{}-sidecar", ItemCopier::TEMPORARY, std::process::id());
    let _ = rustix::fs::unlinkat(root, &name, AtFlags::empty());
    // The mark is set before the rename, because the sidecar may be accepted at once under its name.
    let mode = 0o644 | if is_strangers { STRANGERS } else { 0 };
    let file = writing::create(root, &name, bytes, mode, None)?;
    writing::rename_into_place(&file, (root, &name), (root, SIDECAR), Durability::Synced)
}

/// Whether the sidecar in an item's directory came from an Archive that has no rights here.
fn is_strangers(directory: &Tree) -> bool {
    rustix::fs::statat(directory.root(), SIDECAR, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| stat.st_mode & STRANGERS != 0)
}
