//! An item of a backup that is put back into its store, or written to a directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::arrival::{is_marked, mark};
use super::batch::SentItem;
use super::holder::opened;
use super::local::Local;
use super::outcome::{ByteProgress, CompareWhen, Moved, TransferError};
use super::skip::Skip;
use crate::archive::backup::{BackupFinding, ItemCopier, Staging};
use crate::archive::store::Item;
use crate::archive::tree::{Action, Place, Tree};
use crate::archive::{ArchiveError, scrub};
use crate::formats::fixity::shown;
use crate::formats::item::Names;
use crate::os::directory::Directory;
use ibi::message;

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
    if names.matches(to.service()) {
        return Err(Skip::Service.into());
    }
    let sent = SentItem::of(backup, names, None)?;
    sent.with(|arrival| {
        let held = to.archive().held(arrival.names)?;
        if let Some(item) = held
            && !to.has_lost(&item)
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
            .and_then(|marked| mark(&marked))
            .map_err(|errno| directory.error(Action::Mark, ".", errno))?;
        to.copy_in(arrival, CompareWhen::Always, progress)
    })
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

/// Writes an item of a backup to a new directory, as it is in the backup.
pub fn restore_to(
    backup: &Local,
    names: &Names,
    path: &Path,
    progress: &mut ByteProgress<'_>,
) -> Result<Moved, TransferError> {
    let item = backup.item(names)?;
    let from = backup.directory(&item)?;
    let wanted = backup.sound_manifest(&item, progress)?;
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
