//! An item of a backup that is put back into its store, or written to a directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::arrival::{Arrival, is_marked, unmark};
use super::batch::SentItem;
use super::holder::opened;
use super::incoming::Incoming;
use super::inventory::Inventory;
use super::local::Local;
use super::outcome::{ByteProgress, CompareWhen, Moved, TransferError};
use super::skip::Skip;
use crate::archive::backup::{BackupFinding, ItemCopier, Staging, UNCOMPARED};
use crate::archive::store::Item;
use crate::archive::tree::{Action, Place, SIDECAR, Tree};
use crate::archive::{Archive, ArchiveError, scrub};
use crate::formats::fixity::{Found, Manifest, shown};
use crate::formats::item::Names;
use crate::os::directory::Directory;
use ibi::message;

/// The text of the mark of an item that is being put back.
const PUT_BACK: &[u8; 9] = b"put back\n";

/// Puts an item of a backup back into the store that it is of, where it was removed or lost. One that is there is refused.
pub fn restore(
    backup: &Local,
    names: &Names,
    to: &Local,
    progress: &mut ByteProgress<'_>,
) -> Result<Moved, TransferError> {
    if !backup.service().matches(to.service()) {
        let why = message!(
            "the backup is of the Archive {service}, which is another one",
            service = backup.service()
        );
        return Err(Skip::NotTaken(why).into());
    }
    let item = backup.item(names)?;
    refuse_other_record(backup, &item, to)?;
    let manifest = |progress: &mut ByteProgress<'_>| backup.manifest_in_backup(&item, progress);
    SentItem::of(backup, names, None)?.with(|arrival| {
        let arrival = Arrival {
            manifest: &manifest,
            sidecar: arrival.sidecar.clone(),
            ..*arrival
        };
        put_back(&arrival, to, progress)
    })
}

/// Refuses an item of which the backup has not the digests that were recorded here before the backup was begun.
fn refuse_other_record(backup: &Local, item: &Item, to: &Local) -> Result<(), TransferError> {
    let place = Place::of(&item.names);
    let (here, there) = (to.archive().tree(), backup.archive().tree());
    let recorded = scrub::recorded_change(here, place.as_str());
    let begun = Archive::begun_backup(there.path()).map(|it| it.seconds());
    let is_its_own = recorded.is_some() && recorded < begun;
    let digests = |tree| scrub::recorded_digests(tree, place.as_str());
    if !is_its_own || digests(here)? == digests(there)? {
        return Ok(());
    }
    let why = message!(
        "its digests in the backup are not those that were recorded here before; name another generation or backup, or copy what is there with cp(1)"
    );
    Err(Skip::NotTaken(why).into())
}

/// Puts a lost item back as it is recorded, from a backup of its store, or from a copy of it in another one.
pub fn bring_back(
    from: &Local,
    names: &Names,
    to: &Local,
    progress: &mut ByteProgress<'_>,
) -> Result<Moved, TransferError> {
    let item = from.item(names)?;
    let is_backup = from.service().matches(to.service());
    let recorded = match recorded_of_lost(to, names) {
        // A backup may have an item of which nothing is recorded.
        Err(TransferError::Skip(_)) if is_backup => None,
        recorded => Some(recorded?),
    };
    if recorded.is_some() {
        refuse_other_sizes((from, &item), (to, names))?;
    }
    let found = from.sound_manifest(&item, progress)?;
    if let Some(recorded) = recorded {
        refuse_other_content(&recorded, &found)?;
    }
    if is_backup {
        return restore(from, names, to, progress);
    }
    let accepted = accepted_sidecar(to, names, &item.names)?;
    SentItem::with_sidecar(from, item, accepted)?.with(|arrival| put_back(arrival, to, progress))
}

/// The same for an item whose files have arrived from another Archive.
pub fn bring_back_arrived(
    incoming: &Incoming<'_>,
    (names, from): (&Names, &Names),
    inventory: &Inventory,
    to: &Local,
) -> Result<Moved, TransferError> {
    let item = to.item(names)?;
    refuse_other_content(&recorded_of_lost(to, &item.names)?, &inventory.manifest())?;
    // What an interrupted run has put there did not arrive again.
    let place = Place::of(&item.names);
    let is_begun = to.archive().tree().is_directory(place.as_str());
    let held = is_begun.then_some(&item);
    let arrival = Arrival {
        directory: &incoming.assembled((to, held), inventory)?,
        names,
        from,
        sidecar: Some(accepted_sidecar(to, &item.names, names)?),
        is_as_it_is: false,
        manifest: &|_| Ok(inventory.manifest()),
    };
    let moved = put_back(&arrival, to, &mut |_| ())?;
    incoming.discard()?;
    Ok(moved)
}

/// Refuses content that is not what is recorded here.
fn refuse_other_content(recorded: &Manifest, found: &Manifest) -> Result<(), TransferError> {
    let mut paths = found.keys().chain(recorded.keys());
    match paths.find(|path| found.get(*path) != recorded.get(*path)) {
        Some(path) => Err(not_as_recorded(path)),
        None => Ok(()),
    }
}

/// Refuses it before anything is read: the owner of the other store may have made a file as long as they like.
fn refuse_other_sizes(
    (from, item): (&Local, &Item),
    (to, names): (&Local, &Names),
) -> Result<(), TransferError> {
    let (here, there) = (Place::of(names), Place::of(&item.names));
    let recorded = (to.archive().tree(), here.as_str());
    match scrub::other_size(recorded, (from.archive().tree(), there.as_str()))? {
        Some(path) => Err(not_as_recorded(&path)),
        None => Ok(()),
    }
}

fn not_as_recorded(path: &[u8]) -> TransferError {
    let path = shown(path);
    Skip::NotTaken(message!(
        "'{path}' is not there as it was recorded here",
        path
    ))
    .into()
}

/// The record of a lost item; an error if nothing is, by which copies of other Archives are not believed.
pub fn recorded_of_lost(to: &Local, names: &Names) -> Result<Manifest, TransferError> {
    let recorded = scrub::recorded_digests(to.archive().tree(), Place::of(names).as_str())?;
    if recorded.is_empty() {
        return Err(Skip::NotTaken(message!(
            "no digests of it are recorded here, with which a copy could be compared"
        ))
        .into());
    }
    Ok(recorded)
}

/// The sidecar that a lost item had: who has a copy may have changed that, and does not say which item it is.
fn accepted_sidecar(to: &Local, names: &Names, there: &Names) -> Result<Vec<u8>, TransferError> {
    let known = to.archive().held(names)?.filter(|it| it.names == *there);
    let accepted = match &known {
        Some(known) => to.archive().store().sidecar(known.id)?,
        None => None,
    };
    accepted.ok_or_else(|| {
        Skip::NotTaken(message!(
            "its description is not known here; copy it with 'ibifs copy'"
        ))
        .into()
    })
}

fn put_back(
    arrival: &Arrival<'_>,
    to: &Local,
    progress: &mut ByteProgress<'_>,
) -> Result<Moved, TransferError> {
    if arrival.names.matches(to.service()) {
        let why = message!(
            "it is the item of the Archive's own service, which 'ibifs fsck --repair' makes again"
        );
        return Err(Skip::NotTaken(why).into());
    }
    let held = to.archive().held(arrival.names)?;
    if let Some(item) = held
        && !to.is_lost(&item)?
        && !is_begun(to, &item)?
    {
        return Err(ArchiveError::Exists(item.names.into()).into());
    }
    // Nothing damaged is put back.
    (arrival.manifest)(progress)?;
    let item = to.arriving(arrival.names)?;
    let directory = to.directory_to_change(&item)?;
    // The same command finishes what is interrupted.
    opened(&directory)
        .and_then(|marked| mark_put_back(&marked))
        .map_err(|errno| directory.error(Action::Mark, ".", errno))?;
    to.copy_in(arrival, CompareWhen::Always, progress)
}

/// Whether an item has nothing yet but what an interrupted restore has left.
fn is_begun(to: &Local, item: &Item) -> Result<bool, TransferError> {
    let place = Place::of(&item.names);
    if to.archive().tree().read_sidecar(&place)?.is_some() {
        return Ok(false);
    }
    let there = to.directory_to_change(item)?;
    let begun = opened(&there).and_then(|it| Ok(is_marked(&it) || it.entries()?.is_empty()));
    Ok(begun.map_err(|errno| there.error(Action::Open, ".", errno))?)
}

impl Local {
    /// Whether an item of the index was lost, or was lost and was not put back to its end. Its sidecar may be there again: what ends
    /// an interrupted change writes it. Marks say that nothing of it was removed.
    pub fn is_lost(&self, item: &Item) -> Result<bool, TransferError> {
        if self.has_lost(item) {
            return Ok(true);
        }
        let place = Place::of(&item.names);
        let marks = scrub::marks_of(self.archive().tree(), place.as_str())?;
        let is_all_lost = !marks.is_empty() && marks.values().all(|it| it.found == Found::Nothing);
        let there = self.directory(item)?;
        let entries = opened(&there).and_then(|it| Ok((is_put_back(&it), it.entries()?)));
        let (is_put_back, entries) =
            entries.map_err(|errno| there.error(Action::Open, ".", errno))?;
        let own = [SIDECAR.as_bytes(), UNCOMPARED.as_bytes()];
        let is_empty = entries.iter().all(|(name, _)| own.contains(&&name[..]));
        Ok(is_put_back || is_all_lost && is_empty)
    }
}

/// Marks an item as one that is being put back.
fn mark_put_back(item: &Directory) -> Result<(), Errno> {
    if is_put_back(item) {
        return Ok(());
    }
    // What another user has put there may be a further name of any file.
    unmark(item)?;
    let marked = item.create(UNCOMPARED, 0o600)?;
    rustix::io::pwrite(&marked, PUT_BACK, 0)?;
    rustix::fs::fsync(&marked)
}

fn is_put_back(item: &Directory) -> bool {
    let mut text = [0; PUT_BACK.len()];
    let read = item.file(UNCOMPARED);
    let read = read.and_then(|it| rustix::io::pread(&it, &mut text, 0));
    read == Ok(PUT_BACK.len()) && text == *PUT_BACK
}

/// Writes an item of a backup to a new directory, as it is in the backup.
pub fn restore_to(
    backup: &Local,
    names: &Names,
    path: &Path,
    progress: &mut ByteProgress<'_>,
) -> Result<Moved, TransferError> {
    let item = backup.item(names)?;
    let from = backup.directory(&item)?;
    let wanted = backup.manifest_in_backup(&item, progress)?;
    let failed = |errno: Errno| {
        let path = path.display();
        TransferError::System(match errno {
            Errno::EXIST => message!("'{path}' exists; name a new directory", path),
            errno => message!(
                "making '{path}': {error}",
                path,
                error = std::io::Error::from(errno)
            ),
        })
    };
    let absolute = std::path::absolute(path);
    let absolute =
        absolute.map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    let (Some(above), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(failed(Errno::EXIST));
    };
    let made =
        Directory::open(above).and_then(|above| above.make_directory(name.as_bytes(), 0o700));
    let made = made.map_err(failed)?;
    let staging = made.again().map_err(failed)?;
    let to = Tree::over(absolute.clone(), made.into());
    let mut first = None;
    let mut report = |finding: &BackupFinding| {
        first.get_or_insert_with(|| {
            message!(
                "'{path}' {finding}",
                path = shown(&finding.path),
                finding = finding.sentence()
            )
        });
        Ok(())
    };
    let mut units = |_| ();
    let staging = Staging::InItem(staging, None);
    let mut copier = ItemCopier::new(&from, &to, staging, &mut report, &mut units);
    copier.content()?;
    copier.sidecar()?;
    copier.finish()?;
    let moved = Moved {
        files: copier.tally().copied,
        bytes: copier.tally().bytes,
        ..Moved::default()
    };
    drop(copier);
    if let Some(left) = first {
        return Err(Skip::NotCopied(left).into());
    }
    to.sync_all()?;
    let mut count = |_, bytes| progress(bytes);
    let found = scrub::item_digests(&to, ".", &mut count)?.manifest;
    let mut paths = wanted.keys().chain(found.keys());
    match paths.find(|path| wanted.get(*path) != found.get(*path)) {
        Some(path) => Err(Skip::Differs(shown(path)).into()),
        None => Ok(moved),
    }
}
