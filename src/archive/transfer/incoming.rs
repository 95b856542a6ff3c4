//! Items that arrive over HTTP. Their files are stored one by one, each under its digest, in
//! `handover/incoming/` until all are there. A file that has arrived is not sent again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use sha2::Digest as _;

use super::arrival::{Arrival, of_the_item};
use super::building::{Building, set_metadata_of};
use super::holder::replace;
use super::inventory::{Inventory, InventoryKind};
use super::local::{Local, check_seal};
use super::outcome::{ByteProgress, CompareWhen, Moved, TransferError, not_drawn};
use super::part::{Part, arrived};
use super::skip::Skip;
use crate::archive::Event;
use crate::archive::scrub::{RecordedDigests, item_digests};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::tree::{Place, Tree, each_entry_of, entry_stat, open_far};
use crate::formats::fixity::{Digest, Written, shown};
use crate::formats::hex::Hex;
use crate::formats::item::{Names, Sidecar};
use crate::os::directory::Directory;
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
    /// Its lock: while that exists, no process takes it for abandoned.
    directory: OwnedFd,
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
        let key = key.to_string();
        let directory = tree.open_arriving(&key)?.ok_or_else(|| busy(tree))?;
        let path = Tree::arriving_path(&key);
        Ok(Incoming {
            tree,
            path,
            directory,
        })
    }

    fn file_path(&self, digest: &Digest) -> String {
        format!("{}/{digest}", self.path)
    }

    fn failed(&self, action: Action, path: &[u8], errno: Errno) -> TransferError {
        self.tree.error(action, &shown(path), errno).into()
    }

    /// Keeps other processes out of this directory, as long as this exists.
    pub fn lock(&self) -> Result<(), TransferError> {
        match rustix::fs::flock(&self.directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => Err(busy(self.tree)),
            Err(errno) => Err(self.failed(Action::Lock, self.path.as_bytes(), errno)),
        }
    }

    /// Whether a file with this digest has arrived.
    #[must_use]
    pub fn has(&self, digest: &Digest) -> bool {
        let path = self.file_path(digest);
        self.tree.open_far(path.as_bytes(), OFlags::PATH).is_ok()
    }

    /// The digest of the file that has arrived in parts with this key.
    pub fn arrived(&self, key: &str) -> Result<Option<Digest>, TransferError> {
        Ok(arrived(&self.tree.open_directory(&self.path)?, key))
    }

    /// A file that arrives in parts, with a key of the sender's by which it is found again, and its size in bytes.
    pub fn part(&self, key: &str, size: u64) -> Result<Part, TransferError> {
        let part = Part::open(self.tree.open_directory(&self.path)?, key, size);
        part.map_err(|error| self.not_written(key, &error))
    }

    /// The error of a file that arrives in parts.
    #[must_use]
    pub fn not_written(&self, key: &str, error: &std::io::Error) -> TransferError {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        self.failed(
            Action::Write,
            format!("{}/{key}", self.path).as_bytes(),
            errno,
        )
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
            if known.insert(digest.0) && !held.contains(&digest.0) && !self.has(&digest) {
                missing.push(digest);
            }
        }
        self.has_room_for(inventory.bytes())?;
        Ok(missing)
    }

    /// An error where there is no room for so many bytes.
    pub fn has_room_for(&self, bytes: u64) -> Result<(), TransferError> {
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
        // A copy is withdrawn by the Archive that holds the original alone.
        let holder = held.as_ref().and_then(|item| item.service.as_ref());
        if parsed.life().withdrawn.is_some() && holder.is_some_and(|holder| !holder.matches(from)) {
            let why = message!("the Archive that holds the original has not withdrawn it");
            return Err(Skip::NotTaken(why).into());
        }
        if let Some(item) = &held
            && is_so_already(local, item, inventory, sidecar, progress)?
        {
            self.clear(&self.path)?;
            return Ok(Moved::default());
        }
        if let Some(item) = &held {
            refuse_disputed(local, item, inventory)?;
        }
        let directory = self.assembled((local, held.as_ref()), inventory)?;
        check_seal(&directory, &inventory.manifest(), &parsed)?;
        let moved = if held.is_none() && local.is_held() {
            self.add(local, (&parsed, sidecar), &directory, inventory)
        } else {
            let arrival = Arrival {
                directory: &directory,
                names: parsed.names(),
                from,
                sidecar: Some(sidecar.to_vec()),
                is_as_it_is: false,
                manifest: &|_| Ok(inventory.manifest()),
            };
            local.copy_in(&arrival, CompareWhen::Always, progress)
        };
        match moved.map_err(of_the_item) {
            Ok(moved) => {
                self.clear(&self.path)?;
                if held.is_none() && local.is_held() {
                    local.tell(Event::Receive(from), parsed.names());
                }
                Ok(moved)
            }
            Err(error) => {
                if matches!(error, TransferError::Skip(Skip::Differs(_))) {
                    // The file under a digest here does not have it: it is to be sent again.
                    self.clear(&self.path)?;
                }
                Err(error)
            }
        }
    }

    /// Assembles the item in a directory of its own. Files that have not arrived are those of the item that is held.
    pub(super) fn assembled(
        &self,
        (local, held): (&Local, Option<&Item>),
        inventory: &Inventory,
    ) -> Result<Tree, TransferError> {
        let root = format!("{}/item", self.path);
        self.clear(&root)?;
        self.tree.make_directories(&root)?;
        let directory = Tree::open_as_it_is(&self.tree.path().join(&root))?;
        let arrived = (self.tree, self.path.as_str());
        Building::new(arrived, (local, held), &directory, inventory).make()?;
        Ok(directory)
    }

    /// Adds the assembled item to a store in which it is not: it appears as a whole.
    fn add(
        &self,
        local: &Local,
        (sidecar, text): (&Sidecar, &[u8]),
        directory: &Tree,
        inventory: &Inventory,
    ) -> Result<Moved, TransferError> {
        let found = item_digests(directory, "", &mut |_, _| ())?.manifest;
        let wanted = inventory.manifest();
        let mut paths = wanted.keys().chain(found.keys());
        if let Some(path) = paths.find(|path| wanted.get(*path) != found.get(*path)) {
            return Err(Skip::Differs(shown(path)).into());
        }
        let fill = |to: &OwnedFd| -> Result<(), TransferError> {
            let failed = |errno| self.failed(Action::Make, b"", errno);
            let mut names = Vec::new();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let listed = directory.open_far(b"", flags).map_err(failed)?;
            each_entry_of(&listed, |name, _| names.push(name.to_vec())).map_err(failed)?;
            for name in names {
                rustix::fs::renameat(directory.root(), &name[..], to, &name[..]).map_err(failed)?;
            }
            let item = Directory::from(open_far(to, b".", flags).map_err(failed)?);
            replace(&item, text, local.is_for_strangers).map_err(failed)?;
            let root = inventory.entries.first();
            root.map_or(Ok(()), |root| set_metadata_of(item.descriptor(), root))
                .map_err(failed)
        };
        let names = sidecar.names();
        let entries = inventory.entries.iter();
        let files = entries.filter(|entry| entry.kind != InventoryKind::Directory);
        local
            .archive()
            .depositor(local.actor())
            .take_in(names, fill)?;
        Ok(Moved {
            files: files.count() as u64 + 1,
            bytes: inventory.bytes(),
            ..Moved::default()
        })
    }

    /// The directory.
    pub fn directory(&self) -> Result<Directory, Errno> {
        Directory::reopened(&self.directory)
    }

    /// Removes all that has arrived.
    pub fn discard(&self) -> Result<(), TransferError> {
        self.clear(&self.path)
    }

    fn clear(&self, path: &str) -> Result<(), TransferError> {
        Ok(self.tree.clear_arriving(path)?)
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

    /// The digest of what has come so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(self.hasher.clone().finalize().into())
    }

    /// Completes the file: it is on disk under its digest, or an error is returned and it is not kept.
    pub fn finish(self) -> Result<(), TransferError> {
        if self.left > 0 {
            return Err(self.not_it(message!("it is shorter than announced")));
        }
        if self.digest() != self.digest {
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

/// Another process receives the item.
fn busy(tree: &Tree) -> TransferError {
    TransferError::Busy(tree.path().display().to_string())
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

/// Refuses a file that has the size and time of the one here, and another digest than was recorded of that.
fn refuse_disputed(local: &Local, item: &Item, inventory: &Inventory) -> Result<(), TransferError> {
    let place = Place::of(&item.names);
    let recorded = RecordedDigests::of(local.archive().tree(), place.as_str(), i64::MAX);
    let recorded = recorded.unwrap_or_default();
    let directory = local.directory(item)?;
    for entry in &inventory.entries {
        let InventoryKind::File(digest, size) = entry.kind else {
            continue;
        };
        let written = Written {
            size,
            seconds: entry.stat.modified.0,
            nanoseconds: entry.stat.modified.1,
        };
        let known = recorded.get(&entry.path, &written);
        let is_there = || {
            let stat = directory.stat_far(&entry.path);
            stat.is_ok_and(|stat| {
                entry_stat(&stat).modified == entry.stat.modified
                    && u64::try_from(stat.st_size) == Ok(size)
            })
        };
        if known.is_some_and(|known| known != digest) && is_there() {
            return Err(Skip::Disputed(shown(&entry.path)).into());
        }
    }
    Ok(())
}

/// Whether the local copy is identical to what is sent, in every entry.
fn is_so_already(
    local: &Local,
    item: &Item,
    inventory: &Inventory,
    sidecar: &[u8],
    progress: &mut ByteProgress<'_>,
) -> Result<bool, TransferError> {
    if !local.has_accepted(item, sidecar)? {
        return Ok(false);
    }
    let manifest = local.content(item, progress)?.manifest;
    let held = Inventory::of(&local.directory(item)?, &manifest);
    Ok(held.as_ref() == Ok(inventory))
}
