//! The names in one directory of an item, read while they are sent: neither the names nor what is known of the
//! files is collected.

use super::public::is_refusal;
use super::publish::{inspect_published, publish};
use super::{ArchiveError, ReadAs};
use crate::archive::store::Item;
use crate::archive::tree::{Action, OpenItem, Place, Published};
use crate::formats::entry::EntryStat;
use crate::formats::item::Names;

/// A directory of an item, open for reading its names.
#[derive(Debug)]
pub struct PublicDirectory {
    item: OpenItem,
    /// Its path in the item, with a slash at the end; empty for the item itself.
    path: Vec<u8>,
    directory: Published,
}

impl PublicDirectory {
    /// The directory itself.
    #[must_use]
    pub fn itself(&self) -> &Published {
        &self.directory
    }
}

impl ReadAs<'_> {
    /// The directory of an item with these names, if the reader may read it.
    pub fn visible_item(&self, names: &Names) -> Result<Option<Published>, ArchiveError> {
        let found = self.acting(|| self.tree.open_for_reader(&Place::of(names))?.publish(b""));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_refusal(error.errno()) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns what is known of a level of reps, of all items if its path is empty, if the reader may get there.
    pub fn visible_level(&self, path: &str) -> Result<Option<EntryStat>, ArchiveError> {
        match self.acting(|| self.tree.stat_level(path)) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if is_refusal(error.errno()) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a directory of an item with the credentials of `act`. A file is returned as what it is.
    pub fn open_public_directory(
        &self,
        item: &Item,
        path: &[u8],
    ) -> Result<PublicDirectory, ArchiveError> {
        self.acting(|| {
            let item = self.open_served(item)?;
            let directory =
                publish(&item, path).map_err(|errno| item.error(Action::Open, path, errno))?;
            let mut path = path.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            Ok(PublicDirectory {
                item,
                path,
                directory,
            })
        })
    }

    /// Calls `visit` with the next names in a directory, and the files and directories that have them, in no order.
    /// Left out is what the reader may not read, what is neither file nor directory, a link to a directory, and what
    /// ibifs keeps. Returns false after the last name.
    ///
    /// # Errors A file cannot be examined for another reason: the list would be incomplete.
    pub fn next_public_entries(
        &self,
        directory: &PublicDirectory,
        mut visit: impl FnMut(&[u8], &Published),
    ) -> Result<bool, ArchiveError> {
        let PublicDirectory {
            item,
            path,
            directory,
        } = directory;
        self.acting(|| {
            let mut failed = None;
            let has_more = directory.next_names(|name, is_directory| {
                let path = [path.as_slice(), name].concat();
                match inspect_published(item, &path) {
                    // A directory that a link leads to would be met twice, or for ever.
                    Ok(found) if found.is_file() != is_directory => visit(name, &found),
                    Ok(_) => {}
                    Err(errno) if is_refusal(errno) => {}
                    Err(errno) => failed = Some(item.error(Action::Read, &path, errno)),
                }
            });
            match failed {
                Some(error) => Err(error.into()),
                None => Ok(has_more.map_err(|errno| item.error(Action::List, path, errno))?),
            }
        })
    }
}
