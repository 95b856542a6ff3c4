//! Damaged and lost files, as they are remembered: `fixity/damaged/<place of the item>` is a text for each item that has
//! some, so that all of them are found without a walk through all records.
//!
//! A mark is made where a file is found to differ from its record, and removed where it is found whole, edited or removed,
//! is accepted, or is mended. Two processes may mark files of one item: they take turns by a lock on the directory.

use rustix::fs::{AtFlags, FlockOperation, OFlags};
use rustix::io::Errno;

use super::digests::ItemDigests;
use super::finding::ScrubError;
use super::reading::written;
use super::records::{DIRECTORY, recorded};
use crate::archive::tree::{Action, Area, DeepEntry, Tree, TreeError, joined};
use crate::formats::fixity::{Digest, Found, Manifest, Mark, Marks, marks_text, parse_marks};
use crate::os::writing::Durability;
use ibi::Timestamp;

/// The directory of the store that holds the marks.
pub const MARKS: &str = "fixity/damaged";

/// The most files of a store that are marked as unreadable at a time. More of them are not those of a few bad sectors, but of a
/// disk or a network that is away, and are whole when it is back.
const MOST_UNREADABLE: usize = 100;

/// The marks of an item, by its place.
pub fn marks_of(tree: &Tree, item: &str) -> Result<Marks, ScrubError> {
    let text = tree.read_whole(&format!("{MARKS}/{item}"))?;
    Ok(parse_marks(&text.unwrap_or_default()))
}

/// The places of the items that have marks in a directory, in order. Fewer where a part of them cannot be read.
pub fn marked_items(tree: &Tree, marks: &str) -> Vec<String> {
    let mut items = Vec::new();
    for area in [Area::Col, Area::Ibip] {
        let root = format!("{marks}/{}", area.name());
        let walked = tree.each_deep_entry(&root, |entry| {
            if let DeepEntry::Entry(path) = entry
                && let Ok(path) = String::from_utf8(path)
                // One that a crash has left half written.
                && !path.ends_with(".new")
            {
                items.push(format!("{}/{path}", area.name()));
            }
        });
        match walked {
            Err(error) if error.errno() != Errno::NOENT => log::debug!("{error}"),
            _ => {}
        }
    }
    items.sort();
    items
}

/// The number of files that may be marked as unreadable still.
pub(super) fn room_for_unreadable(tree: &Tree) -> usize {
    let marks = marked_items(tree, MARKS).into_iter();
    let marks = marks.flat_map(|item| marks_of(tree, &item).unwrap_or_default());
    let is_unreadable = |(_, mark): &(_, Mark)| mark.found == Found::Unreadable;
    MOST_UNREADABLE.saturating_sub(marks.filter(is_unreadable).count())
}

/// The items that have damaged or lost files, by their places, with the number of these. Without those that were removed since.
pub fn damage(tree: &Tree) -> Vec<(String, u64)> {
    let count = |item: String| {
        let is_removed = tree.read_small(&format!("deleted/{item}"));
        let marks = marks_of(tree, &item).unwrap_or_default();
        let is_there = tree.is_directory(&item) || is_removed.is_ok_and(|it| it.is_none());
        (is_there && !marks.is_empty()).then_some((item, marks.len() as u64))
    };
    marked_items(tree, MARKS)
        .into_iter()
        .filter_map(count)
        .collect()
}

/// Changes the marks of an item, durably. `act` may be called twice.
pub fn change_marks(tree: &Tree, item: &str, act: impl Fn(&mut Marks)) -> Result<(), ScrubError> {
    let changed = || {
        let before = marks_of(tree, item)?;
        let mut after = before.clone();
        act(&mut after);
        Ok::<_, ScrubError>((after != before).then_some(after))
    };
    if changed()?.is_none() {
        return Ok(());
    }
    let path = format!("{MARKS}/{item}");
    let (directory, name) = path.rsplit_once('/').unwrap_or((MARKS, item));
    tree.make_directories(MARKS)?;
    let failed = |action| move |errno| ScrubError::from(tree.error(action, MARKS, errno));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let all = tree.open_far(MARKS.as_bytes(), flags);
    let all = all.map_err(failed(Action::Open))?;
    rustix::fs::flock(&all, FlockOperation::LockExclusive).map_err(failed(Action::Lock))?;
    match changed()? {
        None => Ok(()),
        // It is found whole again after a crash as well.
        Some(marks) if marks.is_empty() => Ok(remove_marks(tree, MARKS, item)?),
        Some(marks) => {
            tree.make_directories(directory)?;
            let text = marks_text(&marks);
            Ok(tree.write_beside(directory, name, &text, Durability::Synced)?)
        }
    }
}

/// Removes the file of an item in a directory of marks, with the directories above it that have none any more.
pub fn remove_marks(tree: &Tree, marks: &str, item: &str) -> Result<(), TreeError> {
    let path = format!("{marks}/{item}");
    let remove = |path: &str, flags| {
        let (above, name) = path.rsplit_once('/').unwrap_or_default();
        let above = tree.open_far(above.as_bytes(), OFlags::PATH | OFlags::DIRECTORY)?;
        rustix::fs::unlinkat(&above, name, flags)
    };
    match remove(&path, AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(tree.error(Action::Remove, &path, errno)),
    }
    let mut left = path.as_str();
    while let Some((above, _)) = left.rsplit_once('/')
        && above != marks
        && remove(above, AtFlags::REMOVEDIR).is_ok()
    {
        left = above;
    }
    Ok(())
}

/// Adds a mark; one of the same damage keeps its time.
pub(super) fn mark(marks: &mut Marks, path: &[u8], recorded: Digest, found: Found) {
    let is_known = |it: &Mark| (it.recorded, it.found) == (recorded, found);
    if !marks.get(path).is_some_and(is_known) {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_secs().cast_signed());
        let mark = Mark {
            recorded,
            found,
            since: Timestamp::from_unix(since, 0),
        };
        marks.insert(path.to_vec(), mark);
    }
}

/// Adds marks of what a reading of all files of an item has found damaged, of at most so many that cannot be read.
fn add(marks: &mut Marks, known: &Manifest, found: &ItemDigests, mut room: usize) {
    for path in found.damaged.iter().chain(&found.absent) {
        if let Some(recorded) = known.get(path) {
            let digest = found.manifest.get(path);
            let now = digest.map_or(Found::Nothing, |it| Found::Content(*it));
            mark(marks, path, *recorded, now);
        }
    }
    for path in &found.unreadable {
        let is_marked = marks.contains_key(path);
        if (is_marked || room > 0)
            && let Some(recorded) = known.get(path)
        {
            room -= usize::from(!is_marked);
            mark(marks, path, *recorded, Found::Unreadable);
        }
    }
}

/// The marks of what a reading of all files of an item has found damaged, where none are written.
pub fn damage_found(tree: &Tree, item: &str, found: &ItemDigests) -> Result<Marks, ScrubError> {
    let mut marks = Marks::new();
    let known = recorded(tree, item)?.manifest;
    add(&mut marks, &known, found, usize::MAX);
    Ok(marks)
}

/// Remembers what a reading of all files of an item has found damaged, and forgets what it has found whole.
fn remember(tree: &Tree, item: &str, found: &ItemDigests) -> Result<(), ScrubError> {
    let known = recorded(tree, item)?.manifest;
    let room = if found.unreadable.is_empty() {
        0
    } else {
        room_for_unreadable(tree)
    };
    change_marks(tree, item, |marks| {
        marks.retain(|path, _| !found.manifest.contains_key(path) || found.damaged.contains(path));
        add(marks, &known, found, room);
    })
}

/// Marks a file of which another process has found that it is lost, or has another digest than the recorded one, unless it was
/// removed or written since it was recorded. Returns whether that was not known.
pub fn mark_found(tree: &Tree, item: &str, path: &[u8], found: Found) -> Result<bool, ScrubError> {
    let old = recorded(tree, item)?;
    let Some(known) = old.manifest.get(path) else {
        return Ok(false);
    };
    let is_so = match found {
        Found::Content(digest) => {
            let full = joined(item.as_bytes(), path);
            let now = tree.stat_far(&full).map(|now| written(&now));
            let note = old.notes.get(path).and_then(|note| note.written);
            *known != digest && note.is_some() && now.ok() == note
        }
        Found::Nothing => old.has_lost(tree, item, path),
        Found::Unreadable => false,
    };
    if !is_so || marks_of(tree, item)?.contains_key(path) {
        return Ok(false);
    }
    change_marks(tree, item, |marks| mark(marks, path, *known, found))?;
    Ok(true)
}

/// The same for a user who may not be allowed to write it.
pub fn remember_if_possible(tree: &Tree, item: &str, found: &ItemDigests) {
    // An item that is built is none of the store.
    if tree.is_mount() || !tree.is_directory(DIRECTORY) {
        return;
    }
    if let Err(error) = remember(tree, item, found) {
        log::debug!("{item}: what is damaged is not remembered: {error}");
    }
}
