//! The published entries of an item, in the order of their paths.

use std::collections::BinaryHeap;

use rustix::io::Errno;

use super::{Listing, PublicFile, inspect_published, is_below_hidden, is_ours, publish};
use crate::archive::operations::public::is_refusal;
use crate::archive::tree::Action;
use crate::archive::tree::{OpenItem, TreeError};

/// The number of names of a directory that are held and sorted at once. A longer directory is read
/// again for the names that follow.
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
pub(in crate::archive::operations) enum NextEntries {
    /// Files. Where a directory cannot be read, the files below it are left out.
    Files,
    /// Files and directories. Only what the reader may not read is left out.
    FilesAndDirectories,
}

/// A walk through the published entries of an item, in the order of their paths.
pub(in crate::archive::operations) struct Walk<'a> {
    open: &'a OpenItem,
    /// The path after which it begins.
    after: &'a [u8],
    entries: NextEntries,
    /// A stack: the next step is last.
    waiting: Vec<Next>,
}

impl<'a> Walk<'a> {
    /// A walk that begins after a path. It meets nothing in an item whose content is withheld.
    pub(in crate::archive::operations) fn new(
        open: &'a OpenItem,
        after: &'a [u8],
        entries: NextEntries,
    ) -> Walk<'a> {
        let whole = Next::Below(Vec::new(), Vec::new());
        Walk {
            open,
            after,
            entries,
            waiting: if open.is_withheld() {
                Vec::new()
            } else {
                vec![whole]
            },
        }
    }

    /// The path of the next entry. That of a directory ends with a slash.
    pub(in crate::archive::operations) fn next(&mut self) -> Result<Option<Vec<u8>>, TreeError> {
        while let Some(next) = self.waiting.pop() {
            match next {
                Next::Entry(path) => return Ok(Some(path)),
                Next::Below(directory, beyond) => {
                    let is_new = !directory.is_empty() && beyond.is_empty();
                    let is_wanted = self.entries == NextEntries::FilesAndDirectories;
                    let is_listed = is_wanted && is_new && directory.as_slice() > self.after;
                    let path = directory.clone();
                    self.names_below(directory, &beyond)?;
                    if is_listed {
                        return Ok(Some(path));
                    }
                }
            }
        }
        Ok(None)
    }

    pub(in crate::archive::operations) fn listing(
        &mut self,
        most: usize,
    ) -> Result<Listing, TreeError> {
        let mut listing = Listing::default();
        while let Some(path) = self.next()? {
            let is_directory = path.ends_with(b"/");
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
            let Some(permissions) = self.readable(found.permissions_without_list(), &path)? else {
                continue;
            };
            listing.files.push(PublicFile {
                length: if is_directory { 0 } else { found.length() },
                changed: found.changed(),
                permissions,
                path,
            });
        }
        Ok(listing)
    }

    /// Returns what was found, or None where it is left out.
    pub(in crate::archive::operations) fn readable<T>(
        &self,
        found: Result<T, Errno>,
        path: &[u8],
    ) -> Result<Option<T>, TreeError> {
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
                if self.open.is_without_hidden() && is_below_hidden(&path) {
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
