//! Publishing by the Archive: the file of an item that a request means, and its last change.
//!
//! - [`walk`]: the entries of an item.
//! - [`inventory`]: the contents of an item, for a client that shows all of it.
//! - [`newest`]: its last change.

mod inventory;
mod newest;
pub(super) mod walk;

use rustix::io::Errno;

use super::{Archive, ArchiveError, ReadAs};
use crate::archive::store::{Item, PICTURES_FILE, PictureCache, StoreError, cache_file};
use crate::archive::tree::Action;
use crate::archive::tree::{
    Dependencies, METADATA_TEXT, OpenItem, Place, Published, SIDECAR, TreeError,
};
use crate::formats::item::Sidecar;
use ibi::Timestamp;
pub(super) use newest::NewestTimes;
use walk::{NextEntries, Walk};

/// The directory of an item's content, see ibifs-tree(7).
const DOC: &str = "doc";

impl ReadAs<'_> {
    /// The path of a file in an item, from a path relative to `doc/`, or of the item's target file
    /// if no path is given. None if the file does not exist or the reader may not read it.
    pub fn content_path(
        &self,
        item: &Item,
        path: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let target = match path {
            Some(_) => None,
            None => self.default_file(item)?,
        };
        self.acting(|| -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            match path.or(target.as_deref()) {
                Some(path) => {
                    let path = without_slashes(path);
                    for candidate in [[DOC.as_bytes(), b"/", path].concat(), path.to_vec()] {
                        if self
                            .open_recorded(&open, &candidate)
                            .is_ok_and(|found| found.is_file())
                        {
                            return Ok(Some(candidate));
                        }
                    }
                    Ok(None)
                }
                None => self.only_file(&open),
            }
        })
    }

    /// Opens a file or directory in an item with the credentials of `act`. Files that ibifs keeps
    /// beside the content are not visible.
    pub fn open_content(&self, item: &Item, path: &[u8]) -> Result<Published, ArchiveError> {
        self.acting(|| {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            self.published(&open, path)
        })
    }

    /// Like [`ReadAs::open_content`], but fails with EAGAIN where it would have to wait for a disk.
    /// The user must also have access to the directory of the item.
    pub fn open_content_cached(&self, item: &Item, path: &[u8]) -> Result<Published, ArchiveError> {
        let found = self.find_content_cached(item, path)?;
        self.open_found(&found, path)
    }

    /// Finds a file or directory in the same way, without opening it for reading: the user need not be
    /// allowed to read it.
    pub fn find_content_cached(&self, item: &Item, path: &[u8]) -> Result<Published, ArchiveError> {
        let place = Place::of(&item.names);
        self.acting(|| {
            let found = check(path)
                .map_err(|errno| self.tree.error(Action::Open, place.as_str(), errno))
                .and_then(|()| self.tree.find_cached(&place, path));
            match found {
                // A link or a mount point may be on the path to the item, or lead to a file in it.
                Err(error) if [Errno::LOOP, Errno::XDEV].contains(&error.errno()) => {
                    self.published(&self.tree.open_cached(&place)?, path)
                }
                found => Ok(found?),
            }
        })
    }

    /// Opens what was found at a path with the credentials of `act`.
    pub fn open_found(&self, found: &Published, path: &[u8]) -> Result<Published, ArchiveError> {
        self.acting(|| {
            found.opened().map_err(|errno| {
                let shown = String::from_utf8_lossy(path);
                self.tree.error(Action::Open, &shown, errno).into()
            })
        })
    }

    /// Opens the metadata text of an item that has no metadata item, with the credentials of `act`.
    pub fn open_metadata_text(&self, item: &Item) -> Result<Published, ArchiveError> {
        self.acting(|| {
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

    /// Whether an item has a metadata text of its own that the reader may read.
    pub fn has_metadata_text(&self, item: &Item) -> Result<bool, ArchiveError> {
        let path = METADATA_TEXT.as_bytes();
        self.acting(|| -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            let found = Dependencies::at(self.dependencies, &open, path, || {
                open.inspect(path).map_err(|error| error.errno())
            });
            Ok(found.is_ok_and(|found| found.is_file()))
        })
    }

    /// The single file in an item's `doc/`, or its `index.html`.
    fn only_file(&self, open: &OpenItem) -> Result<Option<Vec<u8>>, ArchiveError> {
        let index = format!("{DOC}/index.html").into_bytes();
        if self
            .open_recorded(open, &index)
            .is_ok_and(|found| found.is_file())
        {
            return Ok(Some(index));
        }
        let only = Dependencies::at(self.dependencies, open, DOC.as_bytes(), || only_name(open));
        let Ok(Some(only)) = only else {
            return Ok(None);
        };
        let path = [DOC.as_bytes(), b"/", &only].concat();
        let is_file = self
            .open_recorded(open, &path)
            .is_ok_and(|found| found.is_file());
        Ok(is_file.then_some(path))
    }

    /// Opens a path, and records it as a dependency before reading it.
    fn open_recorded(&self, open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
        check(path)?;
        Dependencies::at(self.dependencies, open, path, || {
            inspect_published(open, path)
        })
    }
}

impl Archive {
    /// Opens the pictures that were drawn of files of this store, and creates their database if necessary.
    pub fn picture_cache(&self) -> Result<PictureCache, StoreError> {
        let file = cache_file(PICTURES_FILE, self.facts.index.as_ref());
        PictureCache::open(self.tree.root(), &file)
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
    /// Its permissions, as `chmod` has them, without its access control list.
    pub permissions: u32,
    /// Its length in bytes.
    pub length: u64,
    /// Its last change.
    pub changed: Timestamp,
}

impl ReadAs<'_> {
    fn published(&self, open: &OpenItem, path: &[u8]) -> Result<Published, ArchiveError> {
        publish(open, path).map_err(|errno| {
            let shown = String::from_utf8_lossy(path);
            self.tree.error(Action::Open, &shown, errno).into()
        })
    }

    /// At most `most` of the item's files that the reader may read, in the order of their paths,
    /// after a path. Files that ibifs keeps beside the content are left out, and so is everything
    /// that is not a file.
    pub fn listing(&self, item: &Item, after: &[u8], most: usize) -> Result<Listing, ArchiveError> {
        self.listing_of(item, (after, most), NextEntries::Files)
    }

    /// The same with the directories. Entries that the reader may not read are left out, too. Any other error
    /// fails: what it concerns would be missing.
    pub fn entries(&self, item: &Item, after: &[u8], most: usize) -> Result<Listing, ArchiveError> {
        let with_directories = NextEntries::FilesAndDirectories;
        self.listing_of(item, (after, most), with_directories)
    }

    fn listing_of(
        &self,
        item: &Item,
        (after, most): (&[u8], usize),
        entries: NextEntries,
    ) -> Result<Listing, ArchiveError> {
        self.acting(|| -> Result<_, ArchiveError> {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            Ok(Walk::new(&open, after, entries).listing(most)?)
        })
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
