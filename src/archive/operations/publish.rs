//! What the Archive gives to anybody: which file of an item is meant, and when it last changed.

use std::collections::BinaryHeap;

use rustix::io::Errno;

use super::{Act, Archive, ArchiveError};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::tree::{
    Dependencies, METADATA_TEXT, OpenItem, Place, Published, SIDECAR, TreeError,
};
use crate::formats::item::State;
use ibi::Timestamp;

/// Where an item's content lies in it (SPEC 5).
const DOC: &str = "doc";

impl Archive {
    /// The path in an item of the file that is meant by a path relative to `doc/`, or of the item's
    /// target file where none is given; None where there is no such file, or not for whoever acts.
    pub fn content_path(
        &self,
        item: &Item,
        path: Option<&[u8]>,
        act: Act<'_>,
        dependencies: &Dependencies,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        self.acting(act, || -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            match path.or(item.target.as_ref().map(String::as_bytes)) {
                Some(path) => {
                    let path = without_slashes(path);
                    for candidate in [[DOC.as_bytes(), b"/", path].concat(), path.to_vec()] {
                        if look(&open, &candidate, dependencies).is_ok_and(|found| found.is_file())
                        {
                            return Ok(Some(candidate));
                        }
                    }
                    Ok(None)
                }
                None => self.only_file(&open, dependencies),
            }
        })
    }

    /// The one file in an item's `doc/`, if there is one alone; or its `index.html`.
    fn only_file(
        &self,
        open: &OpenItem,
        dependencies: &Dependencies,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let index = format!("{DOC}/index.html").into_bytes();
        if look(open, &index, dependencies).is_ok_and(|found| found.is_file()) {
            return Ok(Some(index));
        }
        let only = dependencies.at(open, DOC.as_bytes(), || only_name(open));
        let Ok(Some(only)) = only else {
            return Ok(None);
        };
        let path = [DOC.as_bytes(), b"/", &only].concat();
        let is_file = look(open, &path, dependencies).is_ok_and(|found| found.is_file());
        Ok(is_file.then_some(path))
    }

    /// Opens what lies at a path in an item, as whoever acts may: a file, or a directory. What ibifs
    /// keeps beside the content is not there.
    pub fn open_content(
        &self,
        item: &Item,
        path: &[u8],
        act: Act<'_>,
    ) -> Result<Published, ArchiveError> {
        self.acting(act, || {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            self.published(&open, path)
        })
    }

    /// The same for whoever cannot wait for a disk: EAGAIN where somebody would have to. Whoever acts must
    /// be let through to the item, too.
    pub fn open_content_cached(
        &self,
        item: &Item,
        path: &[u8],
        act: Act<'_>,
    ) -> Result<Published, ArchiveError> {
        let place = Place::of(&item.names);
        self.acting(act, || {
            let opened = check(path)
                .map_err(|errno| self.tree.error(Action::Open, place.as_str(), errno))
                .and_then(|()| self.tree.publish_cached(&place, path));
            match opened {
                // Either may lie on the way to the item, or lead to what is in it.
                Err(error) if [Errno::LOOP, Errno::XDEV].contains(&error.errno()) => {
                    self.published(&self.tree.open_cached(&place)?, path)
                }
                opened => Ok(opened?),
            }
        })
    }

    fn published(&self, open: &OpenItem, path: &[u8]) -> Result<Published, ArchiveError> {
        publish(open, path).map_err(|errno| {
            let shown = String::from_utf8_lossy(path);
            self.tree.error(Action::Open, &shown, errno).into()
        })
    }

    /// Opens the metadata text of an item whose metadata are no item, as whoever acts may.
    pub fn open_metadata_text(&self, item: &Item, act: Act<'_>) -> Result<Published, ArchiveError> {
        self.acting(act, || {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            let found = open.publish(METADATA_TEXT.as_bytes())?;
            if found.is_file() && found.led_to().is_none() {
                Ok(found)
            } else {
                Err(self
                    .tree
                    .error(Action::Open, METADATA_TEXT, Errno::NOENT)
                    .into())
            }
        })
    }

    /// When an item last changed: its target file, its content or what is said of it, the latest.
    /// When it was removed, of a removed one.
    pub fn updated(
        &self,
        item: &Item,
        act: Act<'_>,
        dependencies: &Dependencies,
    ) -> Result<Option<Timestamp>, ArchiveError> {
        if item.state == State::Deleted {
            return Ok(item.removed_at.clone());
        }
        let target = item.target.as_ref().map(|path| format!("{DOC}/{path}"));
        let paths = [Some(DOC), Some(SIDECAR), target.as_deref()];
        self.acting(act, || -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            let found = paths.into_iter().flatten().filter_map(|path| {
                let path = path.as_bytes();
                let found = || open.inspect(path).map_err(|error| error.errno());
                dependencies.at(&open, path, found).ok()
            });
            Ok(found.map(|found| found.changed()).max())
        })
    }

    /// Whether an item has a metadata text of its own that who acts may read.
    pub fn has_metadata_text(
        &self,
        item: &Item,
        act: Act<'_>,
        dependencies: &Dependencies,
    ) -> Result<bool, ArchiveError> {
        let path = METADATA_TEXT.as_bytes();
        self.acting(act, || -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            let found = dependencies.at(&open, path, || {
                open.inspect(path).map_err(|error| error.errno())
            });
            Ok(found.is_ok_and(|found| found.is_file()))
        })
    }
}

/// The only name in `doc/` but for directories.
fn only_name(open: &OpenItem) -> Result<Option<Vec<u8>>, Errno> {
    let doc = publish(open, DOC.as_bytes())?;
    let (mut count, mut only) = (0_usize, None);
    doc.each_name(|name, is_directory| {
        if !is_directory {
            count += 1;
            if count == 1 {
                only = Some(name.to_vec());
            }
        }
    })?;
    Ok(only.filter(|_| count == 1))
}

/// The same, noted before it is looked at.
fn look(open: &OpenItem, path: &[u8], dependencies: &Dependencies) -> Result<Published, Errno> {
    check(path)?;
    dependencies.at(open, path, || sight(open, path))
}

/// Opens what lies at a path, but for what is ours, however it is spelled and whatever links to it.
fn publish(open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
    check(path)?;
    not_ours(open.publish(path))
}

/// The same for who reads no content.
fn sight(open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
    check(path)?;
    not_ours(open.inspect(path))
}

fn not_ours(found: Result<Published, TreeError>) -> Result<Published, Errno> {
    let found = found.map_err(|error| error.errno())?;
    if found.led_to().is_some_and(is_ours) {
        Err(Errno::NOENT)
    } else {
        Ok(found)
    }
}

/// ENOENT for a path that climbs, or that of what is ours.
fn check(path: &[u8]) -> Result<(), Errno> {
    let mut parts = path.split(|byte| *byte == b'/');
    if parts.any(|part| part == b".." || part == b".") || is_ours(path) {
        Err(Errno::NOENT)
    } else {
        Ok(())
    }
}

fn without_slashes(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/');
    path.get(start.unwrap_or(path.len())..).unwrap_or_default()
}

/// Some of an item's files, as they are given to anybody.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files, in the order of their paths.
    pub files: Vec<PublicFile>,
    /// Whether there are more after these.
    pub has_more: bool,
}

/// A file that anybody may read.
#[derive(Debug)]
pub struct PublicFile {
    /// Its path in the item.
    pub path: Vec<u8>,
    /// Its length in bytes.
    pub length: u64,
    /// When it changed last.
    pub changed: Timestamp,
}

impl Archive {
    /// The item's files that whoever acts may read, in the order of their paths: so many, of those
    /// after a path. What ibifs keeps beside the content is left out, and so is what is no file.
    pub fn listing(
        &self,
        item: &Item,
        after: &[u8],
        most: usize,
        act: Act<'_>,
    ) -> Result<Listing, ArchiveError> {
        self.acting(act, || -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            Ok(listed(&open, after, most))
        })
    }
}

/// So many names of a directory are held and sorted at once; a longer one is read again for those that
/// follow.
const MOST_NAMES: usize = 20_000;

/// What is still to be looked at.
enum Next {
    /// What has this path and is no directory.
    Entry(Vec<u8>),
    /// What is in a directory, whose path ends with a slash, and comes after this path in it.
    Below(Vec<u8>, Vec<u8>),
}

fn listed(open: &OpenItem, after: &[u8], most: usize) -> Listing {
    let mut listing = Listing::default();
    // The next one last.
    let mut waiting = vec![Next::Below(Vec::new(), Vec::new())];
    while let Some(next) = waiting.pop() {
        let path = match next {
            Next::Entry(path) => path,
            Next::Below(directory, beyond) => {
                names_below(open, directory, after, &beyond, &mut waiting);
                continue;
            }
        };
        let Ok(found) = sight(open, &path) else {
            continue;
        };
        if !found.is_file() {
            continue;
        }
        if listing.files.len() == most {
            listing.has_more = true;
            break;
        }
        listing.files.push(PublicFile {
            length: found.length(),
            changed: found.changed(),
            path,
        });
    }
    listing
}

/// Adds what is in a directory, beyond a path in it, and may have to do with files after a path, the last
/// one first; nothing where it cannot be read.
fn names_below(
    open: &OpenItem,
    directory: Vec<u8>,
    after: &[u8],
    beyond: &[u8],
    waiting: &mut Vec<Next>,
) {
    let mut first = BinaryHeap::new();
    let mut has_more = false;
    let read = publish(open, &directory).and_then(|found| {
        found.each_name(|name, is_directory| {
            let mut path = [&directory, name].concat();
            if is_directory {
                path.push(b'/');
            }
            let is_before = path.as_slice() <= after && !(is_directory && after.starts_with(&path));
            if is_before || path.as_slice() <= beyond || is_ours(&path) {
                return;
            }
            first.push(path);
            if first.len() > MOST_NAMES {
                first.pop();
                has_more = true;
            }
        })
    });
    if read.is_err() {
        return;
    }
    let paths = first.into_sorted_vec();
    if has_more && let Some(last) = paths.last() {
        waiting.push(Next::Below(directory, last.clone()));
    }
    let next = paths.into_iter().rev();
    waiting.extend(next.map(|path| {
        if path.ends_with(b"/") {
            Next::Below(path, Vec::new())
        } else {
            Next::Entry(path)
        }
    }));
}

/// Whether a path in an item is that of what ibifs keeps there: the sidecar, the metadata text, which is
/// had as metadata, and what a repair has set aside.
fn is_ours(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    let first = parts.find(|part| !part.is_empty());
    first.is_some_and(|first| first.starts_with(SIDECAR.as_bytes()))
}
