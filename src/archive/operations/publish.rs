//! What the Archive publishes: the file of an item that a request means, and its last change.

use std::collections::BinaryHeap;

use rustix::io::Errno;

use super::public::is_refusal;
use super::{Archive, ArchiveError, RunAs};
use crate::archive::store::{Item, PictureCache, StoreError};
use crate::archive::tree::Action;
use crate::archive::tree::{
    Dependencies, METADATA_TEXT, OpenItem, Place, Published, SIDECAR, TreeError,
};
use crate::formats::item::{Sidecar, State};
use ibi::Timestamp;

/// The directory of an item's content, see ibifs-tree(7).
const DOC: &str = "doc";

impl Archive {
    /// Opens the pictures that were drawn of files of this store, and creates their database if necessary.
    pub fn picture_cache(&self) -> Result<PictureCache, StoreError> {
        PictureCache::open(self.tree.root())
    }

    /// The bytes of the name of an item's default file, which need not be UTF-8; see ibifs-tree(7),
    /// "SIDECARS". The index has it as text; a name that is not text is read from the sidecar.
    pub fn default_file(&self, item: &Item) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(text) = &item.target else {
            return Ok(None);
        };
        if text.contains(char::REPLACEMENT_CHARACTER)
            && let Some(sidecar) = self.store.sidecar(item.id)?
            && let Ok(sidecar) = Sidecar::parse(&sidecar)
        {
            return Ok(sidecar.target_bytes());
        }
        Ok(Some(text.clone().into_bytes()))
    }

    /// The path of a file in an item, from a path relative to `doc/`, or of the item's target file
    /// if no path is given. None if the file does not exist or the reader may not read it.
    pub fn content_path(
        &self,
        item: &Item,
        path: Option<&[u8]>,
        act: RunAs<'_>,
        dependencies: &Dependencies,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let target = match path {
            Some(_) => None,
            None => self.default_file(item)?,
        };
        self.acting(act, || -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            match path.or(target.as_deref()) {
                Some(path) => {
                    let path = without_slashes(path);
                    for candidate in [[DOC.as_bytes(), b"/", path].concat(), path.to_vec()] {
                        if open_recorded(&open, &candidate, dependencies)
                            .is_ok_and(|found| found.is_file())
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

    /// The single file in an item's `doc/`, or its `index.html`.
    fn only_file(
        &self,
        open: &OpenItem,
        dependencies: &Dependencies,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let index = format!("{DOC}/index.html").into_bytes();
        if open_recorded(open, &index, dependencies).is_ok_and(|found| found.is_file()) {
            return Ok(Some(index));
        }
        let only = dependencies.at(open, DOC.as_bytes(), || only_name(open));
        let Ok(Some(only)) = only else {
            return Ok(None);
        };
        let path = [DOC.as_bytes(), b"/", &only].concat();
        let is_file = open_recorded(open, &path, dependencies).is_ok_and(|found| found.is_file());
        Ok(is_file.then_some(path))
    }

    /// Opens a file or directory in an item with the credentials of `act`. Files that ibifs keeps
    /// beside the content are not visible.
    pub fn open_content(
        &self,
        item: &Item,
        path: &[u8],
        act: RunAs<'_>,
    ) -> Result<Published, ArchiveError> {
        self.acting(act, || {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            self.published(&open, path)
        })
    }

    /// Like [`Archive::open_content`], but fails with EAGAIN where it would have to wait for a disk.
    /// The user must also have access to the directory of the item.
    pub fn open_content_cached(
        &self,
        item: &Item,
        path: &[u8],
        act: RunAs<'_>,
    ) -> Result<Published, ArchiveError> {
        let place = Place::of(&item.names);
        self.acting(act, || {
            let opened = check(path)
                .map_err(|errno| self.tree.error(Action::Open, place.as_str(), errno))
                .and_then(|()| self.tree.publish_cached(&place, path));
            match opened {
                // A link or a mount point may be on the path to the item, or lead to a file in it.
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

    /// Opens the metadata text of an item that has no metadata item, with the credentials of `act`.
    pub fn open_metadata_text(
        &self,
        item: &Item,
        act: RunAs<'_>,
    ) -> Result<Published, ArchiveError> {
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

    /// The last change of an item: of its target file, its content or its description, whichever is
    /// latest. For a removed item, the time of its removal.
    pub fn updated(
        &self,
        item: &Item,
        act: RunAs<'_>,
        dependencies: &Dependencies,
    ) -> Result<Option<Timestamp>, ArchiveError> {
        if item.state == State::Deleted {
            return Ok(item.removed_at.clone());
        }
        let target = self.default_file(item)?;
        let target = target.map(|path| [DOC.as_bytes(), b"/", &path].concat());
        let paths = [
            Some(DOC.as_bytes()),
            Some(SIDECAR.as_bytes()),
            target.as_deref(),
        ];
        self.acting(act, || -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            let found = paths.into_iter().flatten().filter_map(|path| {
                let found = || open.inspect(path).map_err(|error| error.errno());
                dependencies.at(&open, path, found).ok()
            });
            Ok(found.map(|found| found.changed()).max())
        })
    }

    /// Whether an item has a metadata text of its own that the reader may read.
    pub fn has_metadata_text(
        &self,
        item: &Item,
        act: RunAs<'_>,
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

/// The only name in `doc/` apart from directories.
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

/// Opens a path, and records it as a dependency before reading it.
fn open_recorded(
    open: &OpenItem,
    path: &[u8],
    dependencies: &Dependencies,
) -> Result<Published, Errno> {
    check(path)?;
    dependencies.at(open, path, || inspect_published(open, path))
}

/// Opens a path unless the file is one of ibifs, regardless of spelling and links.
pub(super) fn publish(open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
    check(path)?;
    not_ours(open.publish(path))
}

/// Like [`publish`], for a caller that reads no content.
pub(super) fn inspect_published(open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
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

/// Rejects a path with `.` or `..`, and that of a file of ibifs, with ENOENT.
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

/// Some of an item's files, as they are published.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files, in the order of their paths.
    pub files: Vec<PublicFile>,
    /// Whether more files follow.
    pub has_more: bool,
}

/// A published file, or a directory.
#[derive(Debug)]
pub struct PublicFile {
    /// Its path in the item. That of a directory ends with a slash.
    pub path: Vec<u8>,
    /// Its permissions, as `chmod` has them.
    pub permissions: u32,
    /// Its length in bytes.
    pub length: u64,
    /// Its last change.
    pub changed: Timestamp,
}

impl Archive {
    /// At most `most` of the item's files that the reader may read, in the order of their paths,
    /// after a path. Files that ibifs keeps beside the content are left out, and so is everything
    /// that is not a file.
    pub fn listing(
        &self,
        item: &Item,
        after: &[u8],
        most: usize,
        act: RunAs<'_>,
    ) -> Result<Listing, ArchiveError> {
        self.listing_of(item, (after, most), NextEntries::Files, act)
    }

    /// The same with the directories. What the reader may not read is left out here, too. Any other error
    /// fails: what it concerns would be missing.
    pub fn entries(
        &self,
        item: &Item,
        after: &[u8],
        most: usize,
        act: RunAs<'_>,
    ) -> Result<Listing, ArchiveError> {
        let with_directories = NextEntries::FilesAndDirectories;
        self.listing_of(item, (after, most), with_directories, act)
    }

    fn listing_of(
        &self,
        item: &Item,
        (after, most): (&[u8], usize),
        entries: NextEntries,
        act: RunAs<'_>,
    ) -> Result<Listing, ArchiveError> {
        self.acting(act, || -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            Ok(Walk::new(&open, after, entries).listing(most)?)
        })
    }
}

/// How many names of a directory are held and sorted at once. A longer directory is read again for
/// the names that follow.
const MOST_NAMES: usize = 20_000;

/// A step that remains in the walk.
enum Next {
    /// An entry with this path that is not a directory.
    Entry(Vec<u8>),
    /// The entries of a directory, whose path ends with a slash, that follow this path in it.
    Below(Vec<u8>, Vec<u8>),
}

/// The entries that a walk is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextEntries {
    /// Files. Where a directory cannot be read, the files below it are left out.
    Files,
    /// Files and directories. Only what the reader may not read is left out.
    FilesAndDirectories,
}

/// A walk through the published entries of an item, in the order of their paths.
struct Walk<'a> {
    open: &'a OpenItem,
    /// The path after which it begins.
    after: &'a [u8],
    entries: NextEntries,
    /// A stack: the next step is last.
    waiting: Vec<Next>,
}

impl Walk<'_> {
    fn new<'a>(open: &'a OpenItem, after: &'a [u8], entries: NextEntries) -> Walk<'a> {
        Walk {
            open,
            after,
            entries,
            waiting: vec![Next::Below(Vec::new(), Vec::new())],
        }
    }

    fn listing(&mut self, most: usize) -> Result<Listing, TreeError> {
        let mut listing = Listing::default();
        while let Some(next) = self.waiting.pop() {
            let (path, is_directory) = match next {
                Next::Entry(path) => (path, false),
                Next::Below(directory, beyond) => {
                    let is_new = !directory.is_empty() && beyond.is_empty();
                    let is_wanted = self.entries == NextEntries::FilesAndDirectories;
                    let is_listed = is_wanted && is_new && directory.as_slice() > self.after;
                    let path = directory.clone();
                    self.names_below(directory, &beyond)?;
                    if !is_listed {
                        continue;
                    }
                    (path, true)
                }
            };
            let Some(found) = self.readable(inspect_published(self.open, &path), &path)? else {
                continue;
            };
            if found.is_file() == is_directory {
                continue;
            }
            if listing.files.len() == most {
                listing.has_more = true;
                break;
            }
            listing.files.push(PublicFile {
                length: if is_directory { 0 } else { found.length() },
                changed: found.changed(),
                permissions: found.permissions(),
                path,
            });
        }
        Ok(listing)
    }

    /// What was found, or None where it is left out.
    fn readable<T>(&self, found: Result<T, Errno>, path: &[u8]) -> Result<Option<T>, TreeError> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(errno) if self.entries == NextEntries::Files || is_refusal(errno) => Ok(None),
            Err(errno) => Err(self.open.error(Action::Read, path, errno)),
        }
    }

    /// Adds the entries of a directory after a path in it that can lead to entries after the start of the
    /// walk, the last one first. Adds nothing if the reader may not read the directory.
    fn names_below(&mut self, directory: Vec<u8>, beyond: &[u8]) -> Result<(), TreeError> {
        let after = self.after;
        let mut first = BinaryHeap::new();
        let mut has_more = false;
        let read = publish(self.open, &directory).and_then(|found| {
            found.each_name(|name, is_directory| {
                let mut path = [&directory, name].concat();
                if is_directory {
                    path.push(b'/');
                }
                let is_before =
                    path.as_slice() <= after && !(is_directory && after.starts_with(&path));
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
        if self.readable(read, &directory)?.is_none() {
            return Ok(());
        }
        let paths = first.into_sorted_vec();
        if has_more && let Some(last) = paths.last() {
            self.waiting.push(Next::Below(directory, last.clone()));
        }
        let next = paths.into_iter().rev();
        self.waiting.extend(next.map(|path| {
            if path.ends_with(b"/") {
                Next::Below(path, Vec::new())
            } else {
                Next::Entry(path)
            }
        }));
        Ok(())
    }
}

/// Whether a path in an item is that of a file of ibifs: the sidecar, the metadata text (which is
/// published as metadata), or a file that a repair has set aside.
fn is_ours(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    let first = parts.find(|part| !part.is_empty());
    first.is_some_and(|first| first.starts_with(SIDECAR.as_bytes()))
}

#[cfg(test)]
mod tests;
