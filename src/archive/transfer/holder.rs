//! Changes which Archive an item's sidecar names as the holder of the original.

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::local::Local;
use super::outcome::TransferError;
use crate::archive::backup::{ItemCopier, write_sidecar};
use crate::archive::tree::Action;
use crate::archive::tree::{SIDECAR, STRANGERS, Tree};
use crate::formats::item::{Names, Sidecar};
use crate::os::directory::Directory;
use crate::os::private_directory::PrivateDirectory;
use ibi::message;

impl Local {
    /// Makes an item's sidecar name the Archive that holds the original; durable when this returns.
    pub(super) fn name_holder(&self, names: &Names, holder: &Names) -> Result<(), TransferError> {
        let item = self.item(names)?;
        if self.mount_point.is_none() {
            let set = |sidecar: &mut Sidecar| sidecar.set_archive_service(holder);
            self.archive
                .edit(self.actor(), |it| it.change_sidecar(item.id, set))?;
        } else {
            let mut sidecar = self.sidecar_of(&item)?;
            sidecar.set_archive_service(holder);
            let directory = self.directory_to_change(&item)?;
            let is_strangers = is_strangers(&directory);
            opened(&directory)
                .and_then(|item| replace(&item, &sidecar.to_bytes(), is_strangers))
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
