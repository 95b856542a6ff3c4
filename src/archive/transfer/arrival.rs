//! Copies an arriving item into a store on this machine: its directory as it is, with the sidecar last.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::holder::opened;
use super::local::Local;
use super::outcome::{ByteProgress, CompareWhen, Moved, TransferError};
use super::skip::Skip;
use crate::archive::backup::{self, ItemCopier, Staging, UNCOMPARED};
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::scrub::{marks_of, recorded_digests};
use crate::archive::store::{Item, Record};
use crate::archive::tree::Action;
use crate::archive::tree::{Creator, Place, SIDECAR, Tree};
use crate::archive::{
    Acceptance, ArchiveError, Event, OwnershipTransfer, Process, WriteIntent, names_in_mount,
};
use crate::formats::fixity::{Manifest, Mark, shown};
use crate::formats::item::{Life, Names, Sidecar, State};
use crate::os::deep::{DeepEntry, walk_noting};
use crate::os::directory::Directory;
use ibi::message;
use ibi::message::{Localize, Message};

/// An arriving item.
pub(super) struct Arrival<'a> {
    /// All its content, and its sidecar if that is used unchanged.
    pub directory: &'a Tree,
    /// Its names at the source.
    pub names: &'a Names,
    /// The Archive from which it comes.
    pub from: &'a Names,
    /// The sidecar that it gets.
    pub sidecar: Option<Vec<u8>>,
    /// Whether that is the sidecar in the directory.
    pub is_as_it_is: bool,
    /// The digests of its files.
    pub manifest: &'a dyn Fn(&mut ByteProgress<'_>) -> Result<Manifest, TransferError>,
}

/// An arriving item whose content was copied, and whose sidecar was not.
#[derive(Debug)]
pub(super) struct BegunArrival {
    item: Item,
    /// None where the daemon of a mount follows the change.
    changing: Option<WriteIntent>,
    /// The content that is expected; None where nothing is to be compared.
    wanted: Option<Manifest>,
    /// Whether its sidecar is to be copied.
    is_new: bool,
    moved: Moved,
}

/// Directories that were written and not synced: one of each filesystem.
#[derive(Debug)]
pub(super) struct Unsynced(RankedMutex<Vec<(Option<u64>, Tree)>>);

impl Default for Unsynced {
    fn default() -> Unsynced {
        Unsynced(RankedMutex::new(Rank::Leaf, Vec::new()))
    }
}

impl Unsynced {
    /// Adds a directory.
    fn add(&self, directory: Tree) {
        let device = device(&directory);
        let mut all = self.0.lock();
        if !all.iter().any(|(known, _)| *known == device) {
            all.push((device, directory));
        }
    }
}

impl Local {
    /// Rejects an item that must not be copied over the local one.
    pub(super) fn may_receive(&self, names: &Names, from: &Names) -> Result<(), TransferError> {
        let noted = self.archive.handover(names)?;
        if let Some(given) = noted.filter(OwnershipTransfer::is_pending)
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

    /// Copies an item's directory, its sidecar last. If anything is new, everything is compared before that.
    pub(super) fn copy_in(
        &self,
        arrival: &Arrival<'_>,
        comparison: CompareWhen,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let begun = self.begin(arrival, comparison, progress)?;
        let unsynced = Unsynced::default();
        self.note_unsynced(&begun, &unsynced)?;
        self.sync(&unsynced)?;
        let unsynced = Unsynced::default();
        let moved = self.finish(arrival, begun, &unsynced, progress)?;
        self.sync(&unsynced)?;
        Ok(moved)
    }

    /// Notes that the content of an item is to be synced, if it is to be compared.
    pub(super) fn note_unsynced(
        &self,
        begun: &BegunArrival,
        unsynced: &Unsynced,
    ) -> Result<(), TransferError> {
        match begun.wanted {
            Some(_) => self.to_sync(self.directory_to_change(&begun.item)?, unsynced),
            None => Ok(()),
        }
    }

    /// Notes that an item is to be synced. Where this user may not enter the store, and so not sync its filesystem, each
    /// file is synced at once.
    fn to_sync(&self, item: Tree, unsynced: &Unsynced) -> Result<(), TransferError> {
        if !self.archive.tree().is_mount() {
            unsynced.add(item);
            return Ok(());
        }
        let failed = |path: &[u8], errno| item.error(Action::Sync, &shown(path), errno);
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        let file = |entry| match entry {
            DeepEntry::Entry(path) | DeepEntry::Unreadable(path, _) => files.push(path),
        };
        let walked = opened(&item).and_then(|item| {
            let directory = |_: &OwnedFd, path: &[u8]| directories.push(path.to_vec());
            walk_noting(item.descriptor(), b"", file, directory)
        });
        walked.map_err(|errno| failed(b".", errno))?;
        for path in files.into_iter().chain(directories) {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
            match item.open_far(&path, flags).and_then(rustix::fs::fsync) {
                // A symbolic link, a FIFO or a socket.
                Err(Errno::LOOP | Errno::NXIO | Errno::INVAL) => {}
                done => done.map_err(|errno| failed(&path, errno))?,
            }
        }
        Ok(())
    }

    /// Copies the content of an item. It is to be synced before [`Local::finish`].
    pub(super) fn begin(
        &self,
        arrival: &Arrival<'_>,
        comparison: CompareWhen,
        progress: &mut ByteProgress<'_>,
    ) -> Result<BegunArrival, TransferError> {
        let item = self.arriving(arrival.names)?;
        let sidecar = arrival.sidecar.as_deref().map(Sidecar::parse);
        let life = match &sidecar {
            Some(Ok(sidecar)) => sidecar.life(),
            _ => &Life::default(),
        };
        self.archive.refuse_other_seal(&item, life)?;
        let changing = match self.mount_point {
            Some(_) => None,
            None => Some(self.archive.begin_write(item.id)?),
        };
        let to = self.directory_to_change(&item)?;
        let marked = opened(&to).map_err(|errno| to.error(Action::Open, ".", errno))?;
        let there = self.archive.tree().read_sidecar(&Place::of(&item.names))?;
        let is_new = there != arrival.sidecar || there.is_none();
        let marks = marks_of(self.archive.tree(), Place::of(&item.names).as_str());
        let marks = marks.unwrap_or_default();
        let is_due = is_new
            || comparison != CompareWhen::IfNew
            || !marks.is_empty()
            || is_marked(&marked)
            || ItemCopier::is_due(arrival.directory, &to)?;
        // A damaged file must not overwrite a good copy.
        let wanted = if is_due {
            Some((arrival.manifest)(progress)?)
        } else {
            None
        };
        let mut afresh = BTreeSet::new();
        if let Some(wanted) = &wanted {
            let is_recorded =
                |(path, mark): &(&Vec<u8>, &Mark)| wanted.get(*path) == Some(&mark.recorded);
            afresh.extend(
                marks
                    .iter()
                    .filter(is_recorded)
                    .map(|(path, _)| path.clone()),
            );
            if comparison == CompareWhen::Verify {
                self.add_different(arrival, (&item, &to), wanted, &mut afresh, progress)?;
            }
        }
        let mended = afresh.len() as u64;
        if wanted.is_some() && there.is_some() {
            let done = mark(&marked);
            done.map_err(|errno| exchanged(to.error(Action::Mark, UNCOMPARED, errno).into()))?;
        }
        let (moved, left) = self.with_copier(arrival.directory, &to, afresh, |copier| {
            if !copier.content()? {
                return Err(Skip::RemovedHere.into());
            }
            let tally = copier.tally();
            Ok(Moved {
                files: tally.copied + tally.removed,
                bytes: tally.bytes,
                mended,
                ..Moved::default()
            })
        })?;
        if let Some(left) = left {
            return Err(Skip::NotCopied(left).into());
        }
        Ok(BegunArrival {
            item,
            changing,
            wanted,
            is_new,
            moved,
        })
    }

    /// Compares the content of an item, which is on disk, and copies its sidecar. Files to be synced after
    /// that are added to `unsynced`.
    pub(super) fn finish(
        &self,
        arrival: &Arrival<'_>,
        begun: BegunArrival,
        unsynced: &Unsynced,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let BegunArrival {
            item,
            changing,
            wanted,
            is_new,
            mut moved,
        } = begun;
        let to = self.directory_to_change(&item)?;
        if let Some(wanted) = &wanted {
            self.compare(&item, wanted, progress)?;
            moved.is_proved = true;
        }
        let described = self.with_copier(arrival.directory, &to, BTreeSet::new(), |copier| {
            if is_new && let Some(bytes) = &arrival.sidecar {
                moved.files += 1;
                // An unchanged sidecar keeps its owner and times; one from an Archive without rights is marked.
                let is_as_it_is =
                    arrival.is_as_it_is && !self.is_for_strangers && copier.sidecar()?;
                if copier.tally().incomplete > 0 {
                    return Ok(false);
                }
                if !is_as_it_is {
                    copier
                        .write_sidecar(bytes, self.is_for_strangers)
                        .map_err(|errno| to.error(Action::Write, SIDECAR, errno))?;
                }
            }
            // What fails before this is done again by the same command; the directories get their times last.
            if wanted.is_some() {
                opened(&to)
                    .and_then(|marked| unmark(&marked))
                    .map_err(|errno| to.error(Action::Unmark, UNCOMPARED, errno))?;
            }
            copier.finish()?;
            Ok(true)
        })?;
        if let (false, Some(left)) = described {
            return Err(Skip::NotCopied(left).into());
        }
        if let Some(changing) = changing {
            // This process may give names to the items that it adds; claims about other items need rights.
            if let Acceptance::Rejected(error) = self
                .archive
                .edit(&Process, |it| it.accept_brought(self.actor(), item.id))?
            {
                return Err(error.into());
            }
            changing.done();
        } else if is_new {
            self.refuse_unnamed(arrival.names)?;
        }
        if moved.files > 0 {
            self.to_sync(to, unsynced)?;
            self.tell(Event::Receive(arrival.from), arrival.names);
        }
        Ok(moved)
    }

    /// Adds the files that are like those that arrive, by size and time, and have other content. One whose recorded digest here is
    /// not that of the file that arrives is not overwritten.
    fn add_different(
        &self,
        arrival: &Arrival<'_>,
        (item, to): (&Item, &Tree),
        wanted: &Manifest,
        afresh: &mut BTreeSet<Vec<u8>>,
        progress: &mut ByteProgress<'_>,
    ) -> Result<(), TransferError> {
        let found = self.content(item, progress)?.manifest;
        let here = recorded_digests(self.archive.tree(), Place::of(&item.names).as_str());
        let here = here.unwrap_or_default();
        for (path, digest) in &found {
            let is_alike = || {
                let stat = |tree: &Tree| tree.stat_far(path).ok();
                let both = stat(arrival.directory).zip(stat(to));
                both.is_some_and(|(one, other)| ItemCopier::is_copy(&one, &other))
            };
            if wanted.get(path).is_some_and(|wanted| wanted != digest) && is_alike() {
                if here
                    .get(path)
                    .is_some_and(|here| wanted.get(path) != Some(here))
                {
                    return Err(Skip::Disputed(shown(path)).into());
                }
                afresh.insert(path.clone());
            }
        }
        Ok(())
    }

    /// Runs `act` with a copier. Also returns the first entry that it could not copy, with the reason.
    fn with_copier<T>(
        &self,
        from: &Tree,
        to: &Tree,
        afresh: BTreeSet<Vec<u8>>,
        act: impl FnOnce(&mut ItemCopier<'_>) -> Result<T, TransferError>,
    ) -> Result<(T, Option<Message>), TransferError> {
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
        let staging = self.staging(to)?;
        let copier = ItemCopier::new(from, to, staging, &mut report, &mut units);
        let mut copier = copier.afresh(afresh);
        let done = act(&mut copier).map_err(exchanged)?;
        drop(copier);
        Ok((done, first.take()))
    }

    /// The local item to copy to; an empty one is made where it is missing.
    pub(super) fn arriving(&self, names: &Names) -> Result<Item, TransferError> {
        let Some(mount_point) = &self.mount_point else {
            // The user who runs the command owns it until the copy gets its owner.
            let creator = Creator {
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
                mode: 0o755,
                umask: 0,
            };
            let item = self.archive.depositor(self.actor());
            let item = item.expected(names, creator)?;
            let place = Place::of(&item.names);
            if !self.archive.tree().is_directory(place.as_str()) {
                self.archive.tree().make_item(&place, creator)?;
            }
            return Ok(item);
        };
        if let Some(item) = self.archive.held(names)?
            && !self.has_lost(&item)
        {
            return Ok(item);
        }
        let path = mount_point.join(names.preferred());
        #[expect(clippy::disallowed_methods, reason = "the daemon makes an item of it")]
        std::fs::create_dir_all(&path)
            .map_err(|error| not_made(self.archive.tree(), &path, &error))?;
        // The daemon writes the item into the index, which is read here, when it is asked for it.
        let there = names_in_mount(&path);
        if let Some(there) = there.filter(|_| self.archive.tree().is_mount()) {
            let record = Record::bare(there, State::Copy);
            self.archive.store().put(&record)?;
        }
        match self.archive.held(names)? {
            Some(item) => Ok(item),
            None => Err(TransferError::System(message!(
                "the mount at '{mount_point}' does not report the identifiers of {names}",
                mount_point = mount_point.display(),
                names
            ))),
        }
    }

    /// Whether an item has no directory, though it was not removed.
    pub fn has_lost(&self, item: &Item) -> bool {
        let tree = self.archive.tree();
        !tree.is_mount() && !tree.is_directory(Place::of(&item.names).as_str())
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

    /// Rejects an item that the mount has added without all of its names, because it has not accepted the
    /// sidecar.
    fn refuse_unnamed(&self, names: &Names) -> Result<(), TransferError> {
        let path = self.mount_point.as_ref();
        let known = path.and_then(|it| names_in_mount(&it.join(names.preferred())));
        let known = known.map_or_else(|| self.item(names).map(|item| item.names), Ok)?;
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

    /// Returns where incomplete files lie. On a mount only the item itself is on the same filesystem.
    fn staging(&self, item: &Tree) -> Result<Staging, TransferError> {
        match self.mount_point {
            Some(_) => {
                let opened = opened(item);
                let item = opened.map_err(|errno| item.error(Action::Open, ".", errno))?;
                Ok(Staging::InItem(item, None))
            }
            None => {
                let staging = self.archive.tree().open_directory("staging")?;
                Ok(Staging::Own(staging.into()))
            }
        }
    }

    /// Waits until all writes are on disk, if there are any, first those that the kernel has not passed to the
    /// mount yet.
    pub(super) fn sync(&self, unsynced: &Unsynced) -> Result<(), TransferError> {
        let unsynced = unsynced.0.lock();
        if unsynced.is_empty() {
            return Ok(());
        }
        let store = self.archive.tree();
        let of_store = device(store);
        for (device, directory) in unsynced.iter() {
            if *device != of_store {
                directory.sync_all()?;
            }
        }
        Ok(store.sync_all()?)
    }
}

/// The filesystem of a directory.
fn device(tree: &Tree) -> Option<u64> {
    rustix::fs::fstat(tree.root()).ok().map(|stat| stat.st_dev)
}

/// Turns a refusal of the Archive that concerns one item alone into a skipped item.
pub(super) fn of_the_item(error: TransferError) -> TransferError {
    match error {
        TransferError::Archive(
            error @ (ArchiveError::NotMintedYet { .. }
            | ArchiveError::NotMintedHere(_)
            | ArchiveError::MayNotName { .. }
            | ArchiveError::Exists(_)
            | ArchiveError::Sealed { .. }),
        ) => Skip::NotTaken(error.message()).into(),
        other => other,
    }
}

/// Turns what another user may cause who exchanges names in an item into a skipped item.
fn exchanged(error: TransferError) -> TransferError {
    let TransferError::Archive(ArchiveError::Tree(cause)) = &error else {
        return error;
    };
    match cause.errno() {
        Errno::EXIST
        | Errno::NOENT
        | Errno::NOTDIR
        | Errno::ISDIR
        | Errno::NOTEMPTY
        | Errno::LOOP
        | Errno::AGAIN
        | Errno::STALE => Skip::NotCopied(cause.message()).into(),
        _ => error,
    }
}

/// Whether a copy was begun here and has not been compared since.
pub(super) fn is_marked(item: &Directory) -> bool {
    item.entry(UNCOMPARED).is_ok()
}

/// Marks an item durably as an incomplete copy. While the mark exists, every run compares all files.
pub(super) fn mark(item: &Directory) -> Result<(), Errno> {
    let marked = match item.file(UNCOMPARED) {
        Ok(there) => there,
        // A file that another user has put there may be a FIFO, a link or a leased file.
        Err(_) => {
            unmark(item)?;
            item.create(UNCOMPARED, 0o600)?
        }
    };
    rustix::fs::fsync(&marked)
}

pub(super) fn unmark(item: &Directory) -> Result<(), Errno> {
    let removed = match item.remove_file(UNCOMPARED) {
        Err(Errno::ISDIR) => {
            item.directory(UNCOMPARED)?.clear()?;
            item.remove_directory(UNCOMPARED)
        }
        other => other,
    };
    match removed {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// The meaning of a mount's error on making an item.
fn not_made(tree: &Tree, path: &Path, error: &std::io::Error) -> TransferError {
    match Errno::from_io_error(error) {
        Some(Errno::PERM) => Skip::NotTaken(message!(
            "its name is of the destination's own name space and later than its last date"
        ))
        .into(),
        _ => {
            let path = path.to_string_lossy();
            tree.io_error(Action::Make, &path, error).into()
        }
    }
}
