//! A store on this machine as one end of a transfer, mounted or not.
//!
//! A store that is not mounted is changed by the Archive, which holds its lock. A mounted store is changed
//! through its mount, as by any program: the daemon notices the changes, and the caller's rights apply.
//! Reading uses the store's own directories in both cases.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{ByteProgress, Destination, Moved, RemoteStatus, Skip, TransferError, not_drawn};
use crate::archive::backup::{self, ItemCopier, UNCOMPARED};
use crate::archive::scrub;
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::tree::{Creator, DeepEntry, Place, SIDECAR, STRANGERS, Tree};
use crate::archive::{
    Acceptance, Actor, Archive, ArchiveError, Handover, HandoverLock, Process, Role, Stranger,
    SystemClock,
};
use crate::formats::fixity::{Manifest, shown};
use crate::formats::hex::Hex;
use crate::formats::item::{Names, Sidecar, State};
use crate::os::random;
use crate::os::writing::{self, Durability};
use ibi::message;
use ibi::message::{Localize, Message};

/// The length of a one-time token, in bytes.
const TOKEN_BYTES: usize = 16;

/// A store on this machine.
#[derive(Debug)]
pub struct Local {
    archive: Archive,
    /// The mount point; None where this holds the store's lock, or only reads.
    mount_point: Option<PathBuf>,
    /// None where this only reads.
    lock: Option<HandoverLock>,
    /// Whether arriving items come from an Archive that has no rights here.
    is_for_strangers: bool,
}

/// The state of an item's files, by which a change is noticed.
pub(super) type FileStates = Vec<(Vec<u8>, [i64; 5])>;

/// An arriving item.
pub(super) struct Arrival<'a> {
    /// All its content, and its sidecar if that is used unchanged.
    pub directory: &'a Tree,
    /// Its names at the source.
    pub names: &'a Names,
    /// The sidecar that it gets.
    pub sidecar: Option<Vec<u8>>,
    /// Whether that is the sidecar in the directory.
    pub is_as_it_is: bool,
    /// The digests of its files.
    pub manifest: &'a dyn Fn(&mut ByteProgress<'_>) -> Result<Manifest, TransferError>,
}

impl Local {
    /// Opens a store for reading.
    pub fn reading(store: &Path) -> Result<Local, TransferError> {
        Ok(Local {
            archive: Archive::open_read_only(store)?,
            mount_point: None,
            lock: None,
            is_for_strangers: false,
        })
    }

    /// Opens a store for changes, through its mount where it has one. A lock prevents other transfers from or
    /// to it meanwhile.
    pub fn changing(store: &Path, mount_point: Option<&Path>) -> Result<Local, TransferError> {
        let archive = match mount_point {
            Some(_) => Archive::open_read_only(store)?,
            None => Archive::open(store, Box::new(SystemClock))?,
        };
        let local = Local {
            lock: Archive::lock_handovers(archive.tree())?,
            archive,
            mount_point: mount_point.map(Path::to_owned),
            is_for_strangers: false,
        };
        if local.lock.is_none() {
            return Err(TransferError::Busy(store.display().to_string()));
        }
        if mount_point.is_none() {
            // No other process writes it: what is there was left by an interrupted run.
            local.archive.tree().clear_staging();
        }
        Ok(local)
    }

    /// Declares that arriving items come from an Archive that has no rights here.
    #[must_use]
    pub fn for_strangers(self) -> Local {
        Local {
            is_for_strangers: true,
            ..self
        }
    }

    /// The actor for changes to an unmounted store, which determines their rights.
    fn actor(&self) -> &'static dyn Actor {
        if self.is_for_strangers {
            &Stranger
        } else {
            &Process
        }
    }

    /// Closes a store that is not mounted and was opened for changes.
    pub fn close(&self) {
        if self.mount_point.is_none() && self.lock.is_some() {
            self.archive.close();
        }
    }

    /// Whether this holds the store's lock and changes the store itself.
    pub(super) fn is_held(&self) -> bool {
        self.mount_point.is_none() && self.lock.is_some()
    }

    /// The Archive, for queries.
    #[must_use]
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The names of the item of its service.
    #[must_use]
    pub fn service(&self) -> &Names {
        &self.archive.facts().service
    }

    /// The index entry of an item.
    pub fn item(&self, names: &Names) -> Result<Item, TransferError> {
        let found = self.archive.store().find_by_names(names)?;
        let unknown = || ArchiveError::Unknown {
            name: names.preferred(),
        };
        Ok(found.ok_or_else(unknown)?)
    }

    /// Opens an item's directory in the store itself.
    pub fn directory(&self, item: &Item) -> Result<Tree, TransferError> {
        let store = self.archive.tree().path();
        let place = Place::of(&item.names);
        Ok(Tree::open_as_it_is(&store.join(place.as_str()))?)
    }

    /// Opens an item's directory for changes.
    fn directory_to_change(&self, item: &Item) -> Result<Tree, TransferError> {
        match &self.mount_point {
            Some(mount_point) => {
                let path = mount_point.join(item.names.preferred());
                Ok(Tree::open_as_it_is(&path)?)
            }
            None => self.directory(item),
        }
    }

    /// The state of an item's files, without reading their content.
    pub(super) fn file_states(&self, names: &Names) -> Result<FileStates, TransferError> {
        let directory = self.directory(&self.item(names)?)?;
        let mut paths = Vec::new();
        directory.each_deep_entry("", |entry| match entry {
            DeepEntry::Entry(path) if path == SIDECAR.as_bytes() => {}
            DeepEntry::Entry(path) | DeepEntry::Unreadable(path, _) => paths.push(path),
        })?;
        paths.sort();
        let state_of = |path: Vec<u8>| {
            let stat = directory
                .open_far(&path, OFlags::PATH | OFlags::NOFOLLOW)
                .and_then(rustix::fs::fstat);
            // Zeros stand for a file that has been removed meanwhile.
            let seen = stat.map_or([0; 5], |stat| {
                let [inode, fraction] = [stat.st_ino, stat.st_ctime_nsec].map(u64::cast_signed);
                [inode, stat.st_size, stat.st_mtime, stat.st_ctime, fraction]
            });
            (path, seen)
        };
        Ok(paths.into_iter().map(state_of).collect())
    }

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
            replace(&directory, &sidecar.to_bytes(), is_strangers)
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

    /// An item's sidecar as it is, or the last accepted one where it has none.
    fn sidecar_of(&self, item: &Item) -> Result<Sidecar, TransferError> {
        let bytes = self.archive.tree().read_sidecar(&Place::of(&item.names))?;
        let Some(bytes) = bytes.or(self.archive.store().sidecar(item.id)?) else {
            return Ok(Sidecar::new(&item.names));
        };
        let broken = |cause| ArchiveError::Sidecar {
            names: item.names.clone().into(),
            cause: Box::new(cause),
        };
        Ok(Sidecar::parse(&bytes).map_err(broken)?)
    }

    /// The sidecar to send: as it is, or changed to name the service of the original's Archive.
    pub fn sidecar_to_send(
        &self,
        item: &Item,
        original_at: Option<&Names>,
    ) -> Result<Option<Vec<u8>>, TransferError> {
        match original_at {
            None => Ok(self.archive.tree().read_sidecar(&Place::of(&item.names))?),
            Some(service) => {
                let mut sidecar = self.sidecar_of(item)?;
                sidecar.set_archive_service(service);
                Ok(Some(sidecar.to_bytes()))
            }
        }
    }

    /// The content of an item's files.
    pub(super) fn content(
        &self,
        item: &Item,
        progress: &mut ByteProgress<'_>,
    ) -> Result<scrub::ItemDigests, TransferError> {
        let place = Place::of(&item.names);
        let mut report = |_, bytes| progress(bytes);
        Ok(scrub::item_digests(
            self.archive.tree(),
            place.as_str(),
            &mut report,
        )?)
    }

    /// The digests of an item to send; an error if a file is damaged or cannot be read.
    pub fn sound_manifest(
        &self,
        item: &Item,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Manifest, TransferError> {
        let content = self.content(item, progress)?;
        if let Some(path) = content.damaged.first() {
            return Err(Skip::Damaged(shown(path)).into());
        }
        match content.unread.first() {
            Some((path, why)) => {
                Err(Skip::Unread(message!("'{path}': {why}", path = shown(path), why)).into())
            }
            None => Ok(content.manifest),
        }
    }

    /// Compares an item's content here with what is expected.
    fn compare(
        &self,
        item: &Item,
        wanted: &Manifest,
        progress: &mut ByteProgress<'_>,
    ) -> Result<(), TransferError> {
        let mut found = self.content(item, progress)?.manifest;
        found.remove(UNCOMPARED.as_bytes());
        let mut paths = wanted.keys().chain(found.keys());
        match paths.find(|path| wanted.get(*path) != found.get(*path)) {
            Some(path) => Err(Skip::Differs(shown(path)).into()),
            None => Ok(()),
        }
    }

    /// Rejects an item that must not be copied over the local one.
    pub(super) fn may_receive(&self, names: &Names, from: &Names) -> Result<(), TransferError> {
        let noted = self.archive.handover(names)?;
        if let Some(given) = noted.filter(Handover::is_pending)
            && !given.other.matches(from)
        {
            let other = given.other;
            let why = message!("it is transferring it to the Archive {other} itself", other);
            return Err(Skip::NotTaken(why).into());
        }
        let held = self.archive.held(names)?;
        if held.is_some_and(|item| item.state == State::Original) {
            Err(Skip::OriginalThere.into())
        } else {
            Ok(())
        }
    }

    /// The local item to copy to; an empty one is made where it is missing.
    fn arriving(&self, names: &Names) -> Result<Item, TransferError> {
        let Some(mount_point) = &self.mount_point else {
            // The user who runs the command owns it until the copy gets its owner.
            let creator = Creator {
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
                mode: 0o755,
                umask: 0,
            };
            return Ok(self.archive.expected(self.actor(), names, creator)?);
        };
        if let Some(item) = self.archive.held(names)? {
            return Ok(item);
        }
        let path = mount_point.join(names.preferred());
        std::fs::create_dir_all(&path).map_err(|error| not_made(&path, &error))?;
        match self.archive.held(names)? {
            Some(item) => Ok(item),
            None => Err(TransferError::System(message!(
                "the mount at '{mount_point}' does not report the identifiers of {names}",
                mount_point = mount_point.display(),
                names
            ))),
        }
    }

    /// Copies an item's directory, its sidecar last. If anything is new, everything is compared before that.
    pub(super) fn copy_in(
        &self,
        arrival: &Arrival<'_>,
        is_compared: bool,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let item = self.arriving(arrival.names)?;
        let changing = match self.mount_point {
            Some(_) => None,
            None => Some(self.archive.begin_write(item.id)?),
        };
        let to = self.directory_to_change(&item)?;
        let there = self.archive.tree().read_sidecar(&Place::of(&item.names))?;
        let is_new = there != arrival.sidecar || there.is_none();
        let is_due =
            is_new || is_compared || is_marked(&to) || ItemCopier::is_due(arrival.directory, &to)?;
        // A damaged file must not overwrite a good copy.
        let wanted = if is_due {
            Some((arrival.manifest)(progress)?)
        } else {
            None
        };
        if wanted.is_some() && there.is_some() {
            mark(&to).map_err(|errno| to.error(Action::Mark, UNCOMPARED, errno))?;
        }
        let first = RefCell::new(None);
        let mut report = |finding: &backup::BackupFinding| {
            let sentence = || {
                message!(
                    "'{path}' {finding}",
                    path = shown(&finding.path),
                    finding = finding.sentence()
                )
            };
            first.borrow_mut().get_or_insert_with(sentence);
            Ok(())
        };
        let mut units = |_| ();
        let staging = self.staging(&to)?;
        let mut copier = ItemCopier::new(arrival.directory, &to, staging, &mut report, &mut units);
        if !copier.content()? {
            return Err(Skip::RemovedHere.into());
        }
        if let Some(first) = first.take() {
            return Err(Skip::NotCopied(first).into());
        }
        let tally = copier.tally();
        let mut moved = Moved {
            files: tally.copied + tally.removed,
            bytes: tally.bytes,
        };
        if let Some(wanted) = &wanted {
            self.sync(&to)?;
            self.compare(&item, wanted, progress)?;
            unmark(&to).map_err(|errno| to.error(Action::Unmark, UNCOMPARED, errno))?;
        }
        if is_new && arrival.sidecar.is_some() {
            moved.files += 1;
            // An unchanged sidecar keeps its owner and times; one from an Archive without rights is marked.
            let is_as_it_is = arrival.is_as_it_is && !self.is_for_strangers && copier.sidecar()?;
            if let (false, Some(bytes)) = (is_as_it_is, &arrival.sidecar) {
                replace(&to, bytes, self.is_for_strangers)
                    .map_err(|errno| to.error(Action::Write, SIDECAR, errno))?;
            }
        }
        copier.finish()?;
        if let Some(changing) = changing {
            // This process may give names to the items that it adds; claims about other items need rights.
            if let Acceptance::Rejected(error) =
                self.archive
                    .accept_brought(&Process, self.actor(), item.id)?
            {
                return Err(error.into());
            }
            changing.done();
        } else if is_new {
            self.refuse_unnamed(arrival.names)?;
        }
        if moved.files > 0 {
            self.sync(&to)?;
        }
        Ok(moved)
    }

    /// Rejects an item that the mount has added without all of its names, because it has not accepted the
    /// sidecar.
    fn refuse_unnamed(&self, names: &Names) -> Result<(), TransferError> {
        let known = self.item(names)?.names;
        let lacks_rep = known.rep().is_none() && names.rep().is_some();
        let lacks_ibip = known.ibip().is_none() && names.ibip().is_some();
        if lacks_rep || lacks_ibip {
            Err(Skip::NotTaken(message!(
                "the destination does not accept the names {names} for it",
                names
            ))
            .into())
        } else {
            Ok(())
        }
    }

    /// The directory for incomplete files. On a mount only the item itself is on the same filesystem.
    fn staging(&self, item: &Tree) -> Result<OwnedFd, TransferError> {
        match self.mount_point {
            Some(_) => {
                let opened = item.open_far(b"", OFlags::PATH | OFlags::DIRECTORY);
                Ok(opened.map_err(|errno| item.error(Action::Open, ".", errno))?)
            }
            None => Ok(self.archive.tree().open_directory("staging")?),
        }
    }

    /// Waits until all writes are on disk, first those that the kernel has not passed to the mount yet.
    fn sync(&self, directory: &Tree) -> Result<(), TransferError> {
        directory.sync_all()?;
        Ok(self.archive.tree().sync_all()?)
    }
}

impl Destination for Local {
    fn service(&self) -> &Names {
        Local::service(self)
    }

    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError> {
        let item = self.archive.store().find_by_names(names)?;
        Ok(
            item.map_or_else(RemoteStatus::default, |item| RemoteStatus {
                state: Some(item.state),
                service: item.service,
                removed_at: item.removed_at,
            }),
        )
    }

    fn receive(
        &mut self,
        source: &Local,
        names: &Names,
        original_at: Option<&Names>,
        is_compared: bool,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let from = source.item(names)?;
        self.may_receive(names, source.service())?;
        let arrival = Arrival {
            directory: &source.directory(&from)?,
            names: &from.names,
            sidecar: source.sidecar_to_send(&from, original_at)?,
            is_as_it_is: original_at.is_none(),
            manifest: &|progress| source.sound_manifest(&from, progress),
        };
        let moved = self.copy_in(&arrival, is_compared, progress);
        moved.map_err(of_the_item)
    }

    fn expect(&mut self, names: &Names, from: &Names) -> Result<String, TransferError> {
        let drawn = random::draw::<TOKEN_BYTES>().map_err(not_drawn)?;
        let word = Hex(&drawn).to_string();
        let handover = Handover {
            role: Role::Expects,
            other: from.clone(),
            word: word.clone(),
            is_taken: false,
        };
        self.may_receive(names, from)?;
        self.archive.note_handover(names, &handover)?;
        Ok(word)
    }

    fn take(&mut self, names: &Names, from: &Names, word: &str) -> Result<(), TransferError> {
        let not_taken = |why: Message| TransferError::from(Skip::NotTaken(why));
        let Some(item) = self.archive.held(names)? else {
            return Err(not_taken(message!("it has no copy of it")));
        };
        let noted = self.archive.handover(names)?;
        let expected = noted.filter(|noted| noted.role == Role::Expects);
        if item.state == State::Original {
            if expected.is_some() {
                self.archive.forget_handover(names)?;
            }
            return Ok(());
        }
        if !expected.is_some_and(|it| it.word == word && it.other.matches(from)) {
            return Err(not_taken(message!(
                "it does not expect it, or with another one-time token"
            )));
        }
        if !item.service.as_ref().is_some_and(|it| it.matches(from)) {
            return Err(not_taken(message!(
                "its copy names another Archive as the original's"
            )));
        }
        let service = self.service().clone();
        self.name_holder(names, &service)?;
        Ok(self.archive.forget_handover(names)?)
    }
}

/// Turns a refusal of the Archive that concerns one item alone into a skipped item.
pub(super) fn of_the_item(error: TransferError) -> TransferError {
    match error {
        TransferError::Archive(
            error @ (ArchiveError::NotMintedYet { .. }
            | ArchiveError::NotMintedHere(_)
            | ArchiveError::MayNotName { .. }
            | ArchiveError::Exists(_)),
        ) => Skip::NotTaken(error.message()).into(),
        other => other,
    }
}

/// Whether a copy was begun here and has not been compared since.
fn is_marked(directory: &Tree) -> bool {
    let path = UNCOMPARED.as_bytes();
    directory
        .open_far(path, OFlags::PATH | OFlags::NOFOLLOW)
        .is_ok()
}

/// Marks an item durably as an incomplete copy. While the mark exists, every run compares all files.
fn mark(directory: &Tree) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let file = rustix::fs::openat(directory.root(), UNCOMPARED, flags, mode)?;
    rustix::fs::fsync(&file)
}

fn unmark(directory: &Tree) -> Result<(), Errno> {
    match rustix::fs::unlinkat(directory.root(), UNCOMPARED, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Replaces a sidecar as a whole, synced.
fn replace(directory: &Tree, bytes: &[u8], is_strangers: bool) -> Result<(), Errno> {
    let name = format!("{}{}-sidecar", ItemCopier::TEMPORARY, std::process::id());
    let root = directory.root();
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

/// The meaning of a mount's error on making an item.
fn not_made(path: &Path, error: &std::io::Error) -> TransferError {
    match Errno::from_io_error(error) {
        Some(Errno::PERM) => Skip::NotTaken(message!(
            "its name is of the destination's own name space and later than its last date"
        ))
        .into(),
        _ => TransferError::System(message!(
            "cannot make '{path}': {error}",
            path = path.display(),
            error
        )),
    }
}
