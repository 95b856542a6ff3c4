//! An item that is assembled from files that have arrived, each under its digest, and from its entries.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use super::inventory::{Inventory, InventoryEntry, InventoryKind};
use super::local::Local;
use super::outcome::TransferError;
use super::skip::Skip;
use crate::archive::backup;
use crate::archive::manifest::read_digest;
use crate::archive::store::Item;
use crate::archive::tree::{Action, Tree, times};
use crate::formats::fixity::{Digest, shown};
use crate::os::deep::split;
use ibi::message;

/// An item that is assembled from its files.
pub(super) struct Building<'a> {
    /// The store, and the directory in it with the files, by their digests.
    tree: &'a Tree,
    path: &'a str,
    /// The paths of the files that are the first with their digests.
    first: HashMap<[u8; 32], &'a [u8]>,
    local: &'a Local,
    held: Option<&'a Item>,
    directory: &'a Tree,
    inventory: &'a Inventory,
}

impl<'a> Building<'a> {
    /// Builds an item in a directory, from the files that have arrived in another one, and those of the local copy.
    pub(super) fn new(
        (tree, path): (&'a Tree, &'a str),
        (local, held): (&'a Local, Option<&'a Item>),
        directory: &'a Tree,
        inventory: &'a Inventory,
    ) -> Building<'a> {
        let mut first = HashMap::new();
        for (path, digest, _) in inventory.files() {
            first.entry(digest.0).or_insert(path);
        }
        Building {
            tree,
            path,
            first,
            local,
            held,
            directory,
            inventory,
        }
    }

    fn failed(&self, action: Action, path: &[u8], errno: Errno) -> TransferError {
        self.tree.error(action, &shown(path), errno).into()
    }

    /// Builds it.
    pub(super) fn make(&self) -> Result<(), TransferError> {
        for entry in &self.inventory.entries {
            self.put(entry)?;
        }
        // Last, because each name made in a directory changes its time; the deepest first.
        for entry in self.inventory.entries.iter().rev() {
            if entry.kind == InventoryKind::Directory {
                self.set_metadata(entry)?;
            }
        }
        Ok(())
    }

    fn set_metadata(&self, entry: &InventoryEntry) -> Result<(), TransferError> {
        set_metadata(self.directory, entry)
            .map_err(|errno| self.failed(Action::SetAttributes, &entry.path, errno))
    }

    /// Makes one entry of the item.
    fn put(&self, entry: &InventoryEntry) -> Result<(), TransferError> {
        let failed = |errno| self.failed(Action::Make, &entry.path, errno);
        let (parent, name) = split(&entry.path);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = self.directory.open_far(parent, flags).map_err(failed)?;
        match &entry.kind {
            InventoryKind::Directory if name.is_empty() => Ok(()),
            InventoryKind::Directory => {
                let mode = Mode::from_raw_mode(0o700);
                rustix::fs::mkdirat(&parent, name, mode).map_err(failed)
            }
            InventoryKind::Link(target) => {
                rustix::fs::symlinkat(&target[..], &parent, name).map_err(failed)?;
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::utimensat(&parent, name, &times(entry.stat), flags).map_err(failed)
            }
            InventoryKind::Same(first) => {
                let (above, last) = split(first);
                let above = self.directory.open_far(above, flags).map_err(failed)?;
                let flags = AtFlags::empty();
                rustix::fs::linkat(&above, last, &parent, name, flags).map_err(failed)
            }
            InventoryKind::File(digest, _) => {
                // The file that has arrived becomes that of the item, unless another one has the same content.
                let arrived = format!("{}/{digest}", self.path);
                if self.first.get(&digest.0) == Some(&entry.path.as_slice())
                    && rustix::fs::linkat(
                        self.tree.root(),
                        &arrived,
                        &parent,
                        name,
                        AtFlags::empty(),
                    )
                    .is_ok()
                {
                    return self.set_metadata(entry);
                }
                let from = self.content_of(digest)?;
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(0o600);
                let to = rustix::fs::openat(&parent, name, flags, mode).map_err(failed)?;
                backup::copy_content(&from, &to).map_err(failed)?;
                self.set_metadata(entry)
            }
        }
    }

    /// Opens a file with this digest: one that arrived, or one of the local copy.
    fn content_of(&self, digest: &Digest) -> Result<OwnedFd, TransferError> {
        let path = format!("{}/{digest}", self.path);
        let tree = self.tree;
        if let Ok(file) = tree.open_far(path.as_bytes(), OFlags::RDONLY) {
            return Ok(file);
        }
        if let Some(item) = self.held {
            let directory = self.local.directory(item)?;
            let same = |(_, known, _): &(&[u8], Digest, u64)| known == digest;
            let is_only = self.inventory.files().filter(same).count() == 1;
            for (path, ..) in self.inventory.files().filter(same) {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK;
                // Its content is compared at the end; one of several may be damaged.
                if let Ok(file) = directory.open_far(path, flags)
                    && (is_only || read_digest(&file).ok() == Some(*digest))
                {
                    return Ok(file);
                }
            }
        }
        let why = message!("the file with the digest {digest} has not arrived", digest);
        Err(Skip::NotTaken(why).into())
    }
}

/// Sets the attributes, permission bits and modification time of a file or directory.
fn set_metadata(directory: &Tree, entry: &InventoryEntry) -> Result<(), Errno> {
    let file = directory.open_far(&entry.path, OFlags::RDONLY | OFlags::NONBLOCK)?;
    set_metadata_of(&file, entry)
}

/// The same for an open file.
pub(super) fn set_metadata_of(file: &OwnedFd, entry: &InventoryEntry) -> Result<(), Errno> {
    for (name, value) in &entry.attributes {
        rustix::fs::fsetxattr(file, &name[..], value, XattrFlags::empty())?;
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(entry.stat.mode.into()))?;
    rustix::fs::futimens(file, &times(entry.stat))
}
