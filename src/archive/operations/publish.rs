//! Publishing by the Archive: the file of an item that a request means, and its last change.
//!
//! - [`walk`]: the entries of an item.
//! - [`inventory`]: the contents of an item, for a client that shows all of it.
//! - [`again`]: its files, read again.
//! - [`newest`]: its last change.

mod again;
mod inventory;
mod newest;
pub(super) mod walk;

use rustix::io::Errno;

use super::{Archive, ArchiveError, ReadAs};
use crate::archive::store::{Item, ItemId, PICTURES_FILE, PictureCache, StoreError, cache_file};
use crate::archive::tree::Action;
use crate::archive::tree::{
    Dependencies, METADATA_TEXT, OpenItem, Place, Published, SIDECAR, TreeError,
};
use crate::formats::item::Sidecar;
pub use again::ReadAgain;
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
            let open = self.open_served(item)?;
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
            let open = self.open_served(item)?;
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
            let is_without_hidden = !self.facts.serves_hidden;
            let refused = |errno| self.tree.error(Action::Open, place.as_str(), errno);
            if self.withheld_until(item).is_some() {
                return Err(refused(Errno::ACCESS).into());
            }
            check(is_without_hidden, path).map_err(refused)?;
            match self.tree.find_cached(&place, path) {
                // A link or a mount point may be on the path to the item, or lead to a file in it.
                Err(error) if [Errno::LOOP, Errno::XDEV].contains(&error.errno()) => {
                    let open = self.tree.open_cached(&place)?;
                    self.published(&open.without_hidden(is_without_hidden), path)
                }
                found => Ok(not_withheld(is_without_hidden, path, found?).map_err(refused)?),
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

    /// Opens an item for reading what is served of it. All of its content is withheld during an embargo, and what is
    /// found then is not cached.
    pub(super) fn open_served(&self, item: &Item) -> Result<OpenItem, TreeError> {
        let open = self.tree.open_for_reader(&Place::of(&item.names))?;
        let is_withheld = self.withheld_until(item).is_some();
        if is_withheld {
            self.give_up();
        }
        let open = open.without_hidden(!self.facts.serves_hidden);
        Ok(open.withholding(is_withheld))
    }

    /// The `index.html` or the single file in an item's `doc/`, or, if there is no file in that, in the item itself: a
    /// directory that was copied to `.mint/` may have none.
    fn only_file(&self, open: &OpenItem) -> Result<Option<Vec<u8>>, ArchiveError> {
        for directory in [format!("{DOC}/"), String::new()] {
            let is_file = |path: &Vec<u8>| {
                let found = self.open_recorded(open, path);
                found.is_ok_and(|found| found.is_file())
            };
            let index = format!("{directory}index.html").into_bytes();
            if is_file(&index) {
                return Ok(Some(index));
            }
            let above = directory.trim_end_matches('/').as_bytes();
            let files = Dependencies::at(self.dependencies, open, above, || files_in(open, above));
            match files.unwrap_or_default() {
                Files::None => {}
                Files::One(name) => {
                    let path = [directory.as_bytes(), &name].concat();
                    return Ok(Some(path).filter(is_file));
                }
                Files::Several => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Opens a path, and records it as a dependency before reading it.
    fn open_recorded(&self, open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
        check_in(open, path)?;
        Dependencies::at(self.dependencies, open, path, || {
            inspect_published(open, path)
        })
    }
}

impl Archive {
    /// The instant until which the files of an item are withheld, if that is to come.
    #[must_use]
    pub fn withheld_until<'item>(&self, item: &'item Item) -> Option<&'item Timestamp> {
        let until = item.life.available.as_ref();
        until.filter(|until| **until > self.clock.now())
    }

    /// Whether the files of an item are withheld now from a local user, who is in the groups that `belongs_to` says: from
    /// all but its owner and its group.
    pub fn is_withheld_from(
        &self,
        item: ItemId,
        user: u32,
        belongs_to: impl Fn(u32) -> bool,
    ) -> Result<bool, ArchiveError> {
        let until = self.store.withheld_until(item);
        if until.is_none_or(|until| until <= self.clock.now()) {
            return Ok(false);
        }
        let Some(item) = self.store.item(item)? else {
            return Ok(false);
        };
        let stat = self.stat_of_directory(&item)?;
        Ok(stat.st_uid != user && !belongs_to(stat.st_gid))
    }

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

/// The names in a directory that are not those of directories.
#[derive(Debug, Default)]
enum Files {
    #[default]
    None,
    One(Vec<u8>),
    Several,
}

fn files_in(open: &OpenItem, directory: &[u8]) -> Result<Files, Errno> {
    let mut files = Files::None;
    publish(open, directory)?.each_name(|name, is_directory| {
        if !(is_directory || directory.is_empty() && is_ours(name)) {
            files = match files {
                Files::None => Files::One(name.to_vec()),
                _ => Files::Several,
            };
        }
    })?;
    Ok(files)
}

/// Opens a path unless the file is one of ibifs, or withheld, regardless of spelling and links.
pub(super) fn publish(open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
    check_in(open, path)?;
    let found = open.publish(path).map_err(|error| error.errno())?;
    not_withheld(open.is_without_hidden(), path, found)
}

/// Like [`publish`], for a caller that reads no content.
pub(super) fn inspect_published(open: &OpenItem, path: &[u8]) -> Result<Published, Errno> {
    check_in(open, path)?;
    let found = open.inspect(path).map_err(|error| error.errno())?;
    not_withheld(open.is_without_hidden(), path, found)
}

fn not_withheld(
    is_without_hidden: bool,
    path: &[u8],
    found: Published,
) -> Result<Published, Errno> {
    let reached = found.led_to().unwrap_or(path);
    let is_hidden =
        is_without_hidden && (is_below_hidden(reached) || !found.is_file() && is_hidden(reached));
    if is_hidden || found.led_to().is_some_and(is_ours) {
        Err(Errno::NOENT)
    } else {
        Ok(found)
    }
}

/// Rejects every path of an item whose content is withheld with EACCES, and others as [`check`] does.
fn check_in(open: &OpenItem, path: &[u8]) -> Result<(), Errno> {
    if open.is_withheld() && !path.is_empty() {
        return Err(Errno::ACCESS);
    }
    check(open.is_without_hidden(), path)
}

/// Rejects a path with `.` or `..`, that of a file of ibifs, and one that is withheld, with ENOENT.
fn check(is_without_hidden: bool, path: &[u8]) -> Result<(), Errno> {
    let mut parts = path.split(|byte| *byte == b'/');
    let is_withheld = is_ours(path) || is_without_hidden && is_below_hidden(path);
    if parts.any(|part| part == b".." || part == b".") || is_withheld {
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
            let open = self.open_served(item)?;
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

/// Whether the last name of a path begins with a dot.
fn is_hidden(path: &[u8]) -> bool {
    let last = path
        .rsplit(|byte| *byte == b'/')
        .find(|part| !part.is_empty());
    last.is_some_and(|last| last.starts_with(b"."))
}

/// Whether a path in an item lies in a hidden directory. That of a directory may end with a slash, and is in itself then.
pub fn is_below_hidden(path: &[u8]) -> bool {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(end) => path
            .get(..end)
            .unwrap_or_default()
            .split(|byte| *byte == b'/')
            .any(is_hidden),
        None => false,
    }
}

#[cfg(test)]
mod tests;
