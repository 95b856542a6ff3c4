//! Copies the state of a store to a directory that is ready for it.

use std::collections::BTreeMap;
use std::path::Path;

use super::copier::Copier;
use super::earlier::Earlier;
use super::finding::{BackupError, BackupFinding, BackupTally};
use super::note::Sharing;
use super::settling::{self, LEDGER};
use super::unit::Vanished;
use crate::archive::copies::{BACKUPS, SHOWN_BACKUPS, note_backup};
use crate::archive::finding::Reporter;
use crate::archive::log_files::LOG_DIRECTORY;
use crate::archive::scrub::{self, DIRECTORY, Finished, MARKS, ScrubError};
use crate::archive::store::{self, StoreError};
use crate::archive::tree::{DAMAGED, Place, RESERVE, Tree, joined};
use crate::archive::{
    Archive, BACKUP_NOTE, Clock, DATABASE, FACTS, PUBLIC_SEARCH_FILE, PUBLIC_TEXT_FILE,
    SEARCH_FILE, SERVICE_FILES, TEXT_FILE, names_of_place,
};
use crate::formats::copies::BackupNote as CopyNote;
use crate::formats::fixity::{Digest, Found};
use ibi::Timestamp;
use ibi::pairs::Pairs;

/// The areas that are copied before the index, each with the number of levels above its units.
pub(super) const AREAS: [(&str, usize); 4] =
    [("col", 4), ("ibip", 2), ("deleted", 3), ("fixity", 5)];

/// Whether an entry of the store's own directory is not copied with the rest: the log, damaged files that are kept, files of the process that has the store open,
/// files made for the backup, indices that can be made again, and the record of what harvesters have received,
/// which a restored store must not claim to know.
fn is_left(path: &[u8]) -> bool {
    let own: [&[u8]; 10] = [
        BACKUPS.as_bytes(),
        DATABASE.as_bytes(),
        b"lock",
        b"ledger",
        b"staging",
        LOG_DIRECTORY.as_bytes(),
        RESERVE.as_bytes(),
        b"lost+found",
        // What was mended is copied; the damaged files are kept for the owner of this store.
        DAMAGED.as_bytes(),
        BACKUP_NOTE.as_bytes(),
    ];
    own.contains(&path)
        || path.starts_with(store::FILE.as_bytes())
        || path.starts_with(store::HARVEST_FILE.as_bytes())
        || path.starts_with(store::ACCESSES_FILE.as_bytes())
        || path.starts_with(store::PICTURES_FILE.as_bytes())
        || path.starts_with(SERVICE_FILES.as_bytes())
        || path.starts_with(SEARCH_FILE.as_bytes())
        || path.starts_with(PUBLIC_SEARCH_FILE.as_bytes())
        || path.starts_with(TEXT_FILE.as_bytes())
        || path.starts_with(PUBLIC_TEXT_FILE.as_bytes())
        || is_left_below(path)
        || AREAS.iter().any(|(area, _)| area.as_bytes() == path)
}

/// The same for a store whose facts name the server of its index, see [`without_server`].
fn is_left_or_facts(path: &[u8]) -> bool {
    is_left(path) || path == FACTS.as_bytes()
}

/// Within an area the positions of scrubs and the record of backups are not copied, nor the marks of damaged files, see [`mark_damaged`].
fn is_left_below(path: &[u8]) -> bool {
    let left = [MARKS.as_bytes(), SHOWN_BACKUPS.as_bytes()];
    path.starts_with(b"fixity/progress") || left.contains(&path)
}

/// Copies the store to a directory, and waits until all is on disk.
pub(super) fn fill(
    from: &Archive,
    to: &Tree,
    earlier: Option<Earlier<'_>>,
    clock: &dyn Clock,
    report: &mut Reporter<'_, BackupFinding>,
    progress: &mut dyn FnMut(u64),
) -> Result<(BackupTally, Option<Sharing>), BackupError> {
    let facts = from.tree().read_small(FACTS)?.unwrap_or_default();
    to.write_small(".", FACTS, &without_server(&facts), None)?;
    let mut copier = Copier::new(from.tree(), to, report, progress)?;
    copier.earlier = earlier;
    copier.damaged = damaged_files(from.tree());
    let mut vanished = Vec::new();
    for (area, depth) in AREAS {
        if from.tree().is_directory(area) {
            let of_items = matches!(area, "col" | "ibip");
            let units = if of_items {
                Vanished::Collect
            } else {
                Vanished::Remove
            };
            copier.levels(area.as_bytes(), depth, units, is_left_below, &mut vanished)?;
        }
    }
    // Then everything else in the store's own directory.
    let is_left = match from.facts().index {
        Some(_) => is_left_or_facts,
        None => is_left,
    };
    copier.levels(b"", 1, Vanished::Collect, is_left, &mut Vec::new())?;
    mark_damaged(from.tree(), to);
    settling::settle(from, &mut copier, &vanished, clock)?;
    if let Err(error) = copy_accesses(from, to) {
        log::warn!("the backup lacks {}: {error}", store::ACCESSES_FILE);
    }
    to.sync_all()?;
    let sharing = copier.earlier.as_ref().map(|earlier| earlier.sharing);
    Ok((copier.tally, sharing))
}

/// The files of a store that are marked as damaged, by path, with the content in which they were found.
fn damaged_files(from: &Tree) -> BTreeMap<Vec<u8>, Digest> {
    let of_item = |item: String| {
        let marks = scrub::marks_of(from, &item).unwrap_or_default();
        marks.into_iter().filter_map(move |(path, mark)| {
            let Found::Content(digest) = mark.found else {
                return None;
            };
            Some((joined(item.as_bytes(), &path), digest))
        })
    };
    scrub::marked_items(from, MARKS)
        .into_iter()
        .flat_map(of_item)
        .collect()
}

/// Marks in a backup what is marked in the store, and is damaged in the backup, too: a damaged file is not copied over its copy.
fn mark_damaged(from: &Tree, to: &Tree) {
    let mut items = [from, to]
        .map(|tree| scrub::marked_items(tree, MARKS))
        .concat();
    items.sort();
    items.dedup();
    for item in items {
        if names_of_place(&item).is_some()
            && to.is_directory(&item)
            && let Err(error) = mark(from, to, &item)
        {
            log::warn!("{item}: what is damaged is not marked in the backup: {error}");
        }
    }
}

fn mark(from: &Tree, to: &Tree, item: &str) -> Result<(), ScrubError> {
    let marked = scrub::marks_of(from, item)?;
    let found = scrub::digests_in_backup(to, item, Finished(None), &mut |_, _| ())?;
    scrub::change_marks(to, item, |marks| {
        marks.extend(marked.clone());
        marks.retain(|path, _| {
            let is_lost = marked.contains_key(path) && !found.manifest.contains_key(path);
            is_lost || found.damaged.contains(path) || found.unreadable.contains(path)
        });
    })
}

/// Copies some items of a store, with what is recorded of them and the index of all, so that they can be read there.
pub(super) fn fill_some(
    from: &Archive,
    to: &Tree,
    places: &[Place],
    report: &mut Reporter<'_, BackupFinding>,
) -> Result<BackupTally, BackupError> {
    for name in [FACTS, LEDGER] {
        let text = from.tree().read_small(name)?.unwrap_or_default();
        to.write_small(".", name, &without_server(&text), None)?;
    }
    let mut progress = |_| ();
    let mut copier = Copier::new(from.tree(), to, report, &mut progress)?;
    for place in places {
        for path in [
            place.as_str().to_owned(),
            format!("{DIRECTORY}/{}", place.as_str()),
        ] {
            if from.tree().is_directory(&path) {
                copier.unit(path.as_bytes())?;
                copier.set_metadata_above(path.as_bytes())?;
            }
        }
        copier.tally.items += 1;
    }
    from.store().copy_to(to.root())?;
    to.sync_all()?;
    Ok(copier.tally)
}

/// Notes in the store that it has a backup. What cannot be noted does not make the backup fail; a generation is not written.
pub(super) fn note_in_store(from: &Archive, to: &Path, made: Timestamp, items: u64) {
    if Archive::is_generation(from.tree().path()) {
        return;
    }
    let to = std::fs::canonicalize(to).unwrap_or_else(|_| to.to_owned());
    let made = CopyNote {
        directory: to.to_string_lossy().into_owned(),
        made,
        items,
        place: Vec::new(),
        proof: None,
    };
    if let Err(error) = note_backup(from.tree(), made) {
        log::info!("the store does not note its backup: {error}");
    }
}

/// `archive.ibi` of a backup, which has its index in a file: a server would give it that of the store.
fn without_server(facts: &[u8]) -> Vec<u8> {
    match Pairs::parse(facts) {
        Ok(mut pairs) if pairs.get("index").is_some() => {
            pairs.remove("index");
            pairs.to_bytes()
        }
        _ => facts.to_vec(),
    }
}

/// Copies the access counts of items. Nothing else in a backup depends on them.
fn copy_accesses(from: &Archive, to: &Tree) -> Result<(), StoreError> {
    match store::Accesses::open_if_there(from.tree().root(), from.facts().index.as_ref())? {
        Some(accesses) => accesses.copy_to(to.root(), None),
        None => Ok(()),
    }
}
