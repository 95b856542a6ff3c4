//! Items that arrive over HTTP. Their files are stored one by one, each under its digest, in
//! `handover/incoming/` until all are there. A file that has arrived is not sent again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use sha2::Digest as _;

use super::arrival::{Arrival, of_the_item};
use super::inventory::{Inventory, InventoryEntry, InventoryKind};
use super::local::Local;
use super::outcome::{ByteProgress, CompareWhen, Moved, TransferError, not_drawn};
use super::skip::Skip;
use crate::archive::backup;
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::tree::{HANDOVER, Place, Tree, each_entry_of, joined};
use crate::formats::fixity::{Digest, shown};
use crate::formats::hex::Hex;
use crate::formats::item::{Names, Sidecar};
use crate::os::random;
use ibi::message;
use ibi::message::{Localize, Message};

/// Disk space that is kept free, in bytes.
const SPARE: u64 = 64 << 20;
/// A run of this many zero bytes becomes a hole.
const HOLE: usize = 64 << 10;

/// The directory of one arriving item.
#[derive(Debug)]
pub struct Incoming<'a> {
    tree: &'a Tree,
    /// Relative to the store.
    path: String,
}

/// An arriving file.
#[derive(Debug)]
pub struct Receiving<'a> {
    incoming: &'a Incoming<'a>,
    file: File,
    temporary: String,
    hasher: sha2::Sha256,
    digest: Digest,
    length: u64,
    left: u64,
}

impl<'a> Incoming<'a> {
    /// The directory of an item; it is made where it is missing.
    pub fn of(tree: &'a Tree, names: &Names) -> Result<Incoming<'a>, TransferError> {
        // An identifier may be longer than a file name.
        let name = names.preferred().to_ascii_lowercase();
        let key = Digest(sha2::Sha256::digest(name.as_bytes()).into());
        let path = format!("{HANDOVER}/incoming/{key}");
        drop(tree.open_handover_lock()?);
        tree.make_directories(&path)?;
        Ok(Incoming { tree, path })
    }

    fn file_path(&self, digest: &Digest) -> String {
        format!("{}/{digest}", self.path)
    }

    fn failed(&self, action: Action, path: &[u8], errno: Errno) -> TransferError {
        self.tree.error(action, &shown(path), errno).into()
    }

    /// The digests of the files that are neither here nor in the local copy. An error where there is no room
    /// for the item.
    pub fn missing(
        &self,
        inventory: &Inventory,
        held: &BTreeSet<[u8; 32]>,
    ) -> Result<Vec<Digest>, TransferError> {
        let mut missing = Vec::new();
        let mut known = BTreeSet::new();
        for (_, digest, _) in inventory.files() {
            let path = self.file_path(&digest);
            let has = || self.tree.open_far(path.as_bytes(), OFlags::PATH).is_ok();
            if known.insert(digest.0) && !held.contains(&digest.0) && !has() {
                missing.push(digest);
            }
        }
        self.has_room_for(inventory.bytes())?;
        Ok(missing)
    }

    fn has_room_for(&self, bytes: u64) -> Result<(), TransferError> {
        let room = rustix::fs::fstatvfs(self.tree.root())
            .map_err(|errno| self.failed(Action::AskForRoomIn, b".", errno))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        if bytes.saturating_add(SPARE) <= free {
            Ok(())
        } else {
            Err(Skip::NotTaken(message!(
                "there is not enough space for it: {bytes} bytes are needed, {free} are free",
                bytes,
                free
            ))
            .into())
        }
    }

    /// Begins to receive a file with this digest and length in bytes.
    pub fn receive(&self, digest: Digest, length: u64) -> Result<Receiving<'_>, TransferError> {
        self.has_room_for(length)?;
        let directory = self.tree.open_directory(&self.path)?;
        let drawn = random::draw::<8>().map_err(not_drawn)?;
        let temporary = format!("{digest}.{}", Hex(&drawn));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, &temporary, flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| self.failed(Action::Write, temporary.as_bytes(), errno))?;
        Ok(Receiving {
            incoming: self,
            file: file.into(),
            temporary,
            hasher: sha2::Sha256::new(),
            digest,
            length,
            left: length,
        })
    }

    /// Assembles the item and adds it to the store as a copy.
    pub fn complete(
        &self,
        local: &Local,
        names: &Names,
        from: &Names,
        inventory: &Inventory,
        sidecar: &[u8],
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let parsed = check_sidecar(local, names, sidecar)?;
        local.may_receive(names, from)?;
        let held = local.archive().held(names)?;
        if let Some(item) = &held
            && is_so_already(local, item, inventory, sidecar, progress)?
        {
            self.clear(&self.path)?;
            return Ok(Moved::default());
        }
        let root = format!("{}/item", self.path);
        self.clear(&root)?;
        self.tree.make_directories(&root)?;
        let directory = Tree::open_as_it_is(&self.tree.path().join(&root))?;
        let building = Building {
            incoming: self,
            local,
            held: held.as_ref(),
            directory: &directory,
            inventory,
        };
        building.make()?;
        let arrival = Arrival {
            directory: &directory,
            names: parsed.names(),
            from,
            sidecar: Some(sidecar.to_vec()),
            is_as_it_is: false,
            manifest: &|_| Ok(inventory.manifest()),
        };
        let moved = local
            .copy_in(&arrival, CompareWhen::Always, progress)
            .map_err(of_the_item)?;
        self.clear(&self.path)?;
        Ok(moved)
    }

    /// Removes a directory below the store, with everything in it.
    fn clear(&self, path: &str) -> Result<(), TransferError> {
        let mut waiting = vec![path.as_bytes().to_vec()];
        let mut directories = Vec::new();
        while let Some(path) = waiting.pop() {
            let failed = |errno| self.failed(Action::Clear, &path, errno);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match self.tree.open_far(&path, flags) {
                Ok(opened) => opened,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(failed(errno)),
            };
            let mut names = Vec::new();
            each_entry_of(&opened, |name, is_directory| {
                names.push((name.to_vec(), is_directory));
            })
            .map_err(failed)?;
            for (name, is_directory) in names {
                if is_directory {
                    waiting.push(joined(&path, &name));
                } else {
                    rustix::fs::unlinkat(&opened, &name[..], AtFlags::empty()).map_err(failed)?;
                }
            }
            directories.push(path);
        }
        for path in directories.iter().rev() {
            let (parent, name) = split(path);
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            self.tree
                .open_far(parent, flags)
                .and_then(|parent| rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR))
                .map_err(|errno| self.failed(Action::Clear, path, errno))?;
        }
        Ok(())
    }
}

/// An item that is assembled from its files.
struct Building<'a> {
    incoming: &'a Incoming<'a>,
    local: &'a Local,
    held: Option<&'a Item>,
    directory: &'a Tree,
    inventory: &'a Inventory,
}

impl Building<'_> {
    fn make(&self) -> Result<(), TransferError> {
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
        set_metadata(self.directory, entry).map_err(|errno| {
            self.incoming
                .failed(Action::SetAttributes, &entry.path, errno)
        })
    }

    /// Makes one entry of the item.
    fn put(&self, entry: &InventoryEntry) -> Result<(), TransferError> {
        let failed = |errno| self.incoming.failed(Action::Make, &entry.path, errno);
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
                rustix::fs::utimensat(&parent, name, &times(entry), flags).map_err(failed)
            }
            InventoryKind::Same(first) => {
                let (above, last) = split(first);
                let above = self.directory.open_far(above, flags).map_err(failed)?;
                let flags = AtFlags::empty();
                rustix::fs::linkat(&above, last, &parent, name, flags).map_err(failed)
            }
            InventoryKind::File(digest, _) => {
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
        let path = self.incoming.file_path(digest);
        let tree = self.incoming.tree;
        if let Ok(file) = tree.open_far(path.as_bytes(), OFlags::RDONLY) {
            return Ok(file);
        }
        if let Some(item) = self.held {
            let directory = self.local.directory(item)?;
            for (path, known, _) in self.inventory.files() {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK;
                // Its content is compared at the end.
                if known == *digest
                    && let Ok(file) = directory.open_far(path, flags)
                {
                    return Ok(file);
                }
            }
        }
        let why = message!("the file with the digest {digest} has not arrived", digest);
        Err(Skip::NotTaken(why).into())
    }
}

impl Receiving<'_> {
    /// Appends a part of the file.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), TransferError> {
        self.left = match self.left.checked_sub(piece.len() as u64) {
            Some(left) => left,
            None => return Err(self.not_it(message!("it is longer than announced"))),
        };
        self.hasher.update(piece);
        let written = piece.chunks(HOLE).try_for_each(|part| {
            if part.iter().all(|byte| *byte == 0) {
                self.file.seek_relative(part.len() as i64)
            } else {
                self.file.write_all(part)
            }
        });
        written.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            self.failed(errno)
        })
    }

    /// Completes the file: it is on disk under its digest, or an error is returned and it is not kept.
    pub fn finish(self) -> Result<(), TransferError> {
        if self.left > 0 {
            return Err(self.not_it(message!("it is shorter than announced")));
        }
        if Digest(self.hasher.clone().finalize().into()) != self.digest {
            return Err(self.not_it(message!("it has another digest")));
        }
        let directory = self.incoming.tree.open_directory(&self.incoming.path)?;
        let name = self.digest.to_string();
        // The file may end with a hole.
        rustix::fs::ftruncate(&self.file, self.length)
            .and_then(|()| rustix::fs::fsync(&self.file))
            .and_then(|()| rustix::fs::renameat(&directory, &self.temporary, &directory, &name))
            .map_err(|errno| self.failed(errno))
    }

    fn failed(&self, errno: Errno) -> TransferError {
        let path = self.temporary.as_bytes();
        self.incoming.failed(Action::Write, path, errno)
    }

    fn not_it(&self, why: Message) -> TransferError {
        let length = self.length;
        Skip::NotTaken(message!(
            "a file of {length} bytes arrived incomplete: {why}; try again when it is no longer written",
            length,
            why
        ))
        .into()
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        // A completed file no longer has this name.
        if let Ok(directory) = self.incoming.tree.open_directory(&self.incoming.path) {
            let _ = rustix::fs::unlinkat(&directory, &self.temporary, AtFlags::empty());
        }
    }
}

/// Rejects a sidecar that is not the item's, or that would make the item an original.
fn check_sidecar(local: &Local, names: &Names, sidecar: &[u8]) -> Result<Sidecar, TransferError> {
    let not_good = |why: Message| TransferError::from(Skip::NotTaken(why));
    let parsed = Sidecar::parse(sidecar).map_err(|error| not_good(error.message()))?;
    if !parsed.names().matches(names) || parsed.names().contradicts(names) {
        return Err(not_good(message!(
            "its sidecar names {parsed}",
            parsed = parsed.names()
        )));
    }
    let claims = |service: &Names| service.matches(local.service());
    if parsed.archive_service().is_some_and(claims) {
        Err(not_good(message!("its sidecar names this Archive already")))
    } else {
        Ok(parsed)
    }
}

/// Whether the local copy is identical to what is sent, in every entry.
fn is_so_already(
    local: &Local,
    item: &Item,
    inventory: &Inventory,
    sidecar: &[u8],
    progress: &mut ByteProgress<'_>,
) -> Result<bool, TransferError> {
    let place = Place::of(&item.names);
    if local.archive().tree().read_sidecar(&place)?.as_deref() != Some(sidecar) {
        return Ok(false);
    }
    let manifest = local.content(item, progress)?.manifest;
    let held = Inventory::of(&local.directory(item)?, &manifest);
    Ok(held.as_ref() == Ok(inventory))
}

/// The directory of a path, and the last component.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (b"", path),
    }
}

fn times(entry: &InventoryEntry) -> Timestamps {
    let time = Timespec {
        tv_sec: entry.modified.0,
        tv_nsec: entry.modified.1.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// Sets the attributes, permission bits and modification time of a file or directory.
fn set_metadata(directory: &Tree, entry: &InventoryEntry) -> Result<(), Errno> {
    let file = directory.open_far(&entry.path, OFlags::RDONLY | OFlags::NONBLOCK)?;
    for (name, value) in &entry.attributes {
        rustix::fs::fsetxattr(&file, &name[..], value, XattrFlags::empty())?;
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
    rustix::fs::futimens(&file, &times(entry))
}
