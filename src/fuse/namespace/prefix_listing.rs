//! The listing of an IBIp prefix, which may have millions of items.
//!
//! The index is read a page at a time, so that the first names are returned at once and the memory does not
//! depend on the number of items. A place in the listing is the number of an item, after which it continues in
//! the order of IBIps: it stays valid while items are added and removed.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::{DirectoryEntry, Namespace};
use crate::archive::store::{ItemId, PrefixRow};
use crate::archive::tree::Place;
use crate::fuse::errno;
use crate::fuse::inode::Node;
use crate::fuse::inside::ErrnoResult;

/// The number of items that are read from the index at a time.
pub const PAGE: usize = 256;

/// The place after `.` and `..`; that after an item is the item's number more.
const AFTER_DOTS: u64 = 2;

/// The number of directories that are held open while a part is listed.
const HELD: usize = 64;

/// An open listing of a prefix.
#[derive(Debug)]
pub struct PrefixListing {
    prefix: String,
    without_rep: bool,
    /// The page that was read last: the kernel continues in it when its answer was full.
    page: Mutex<Vec<PrefixRow>>,
}

impl Namespace {
    /// Opens the listing of a prefix. Where the prefix itself is listed in the root, because some of its
    /// items have no rep, it has only these: the others are met in the rep tree.
    pub fn open_prefix(&self, prefix: &str) -> ErrnoResult<PrefixListing> {
        let store = self.archive.store();
        let without_rep = !self.options.list_all
            && store
                .has_items_without_rep(prefix)
                .map_err(errno::of_index)?;
        Ok(PrefixListing {
            prefix: prefix.to_owned(),
            without_rep,
            page: Mutex::default(),
        })
    }

    /// Lists a prefix from a place on. `is_full` gets each line with the place after it, and returns true to
    /// stop. EINVAL for a place after an item that is no longer known.
    pub fn list_prefix(
        &self,
        listing: &PrefixListing,
        node: &Node,
        from: u64,
        mut is_full: impl FnMut(&DirectoryEntry, u64) -> bool,
    ) -> ErrnoResult<()> {
        for (after, name) in [(1, "."), (AFTER_DOTS, "..")] {
            let line = DirectoryEntry {
                name: name.into(),
                st_ino: node.st_ino,
                kind: FileType::Directory,
            };
            if from < after && is_full(&line, after) {
                return Ok(());
            }
        }
        let mut parents = HashMap::new();
        let (mut rows, mut next) = self.page_at(listing, from)?;
        while let Some(row) = rows.get(next) {
            let after = row.item.0.unsigned_abs() + AFTER_DOTS;
            let line = self.line_of(row, &mut parents);
            if line.is_some_and(|line| is_full(&line, after)) {
                break;
            }
            next += 1;
            if next == rows.len() && rows.len() == PAGE {
                (rows, next) = (self.page_after(listing, Some(&row.key))?, 0);
            }
        }
        *listing.page.lock() = rows;
        Ok(())
    }

    /// The page in which a listing continues, and at which of its rows.
    fn page_at(&self, listing: &PrefixListing, from: u64) -> ErrnoResult<(Vec<PrefixRow>, usize)> {
        let Some(item) = from.checked_sub(AFTER_DOTS).filter(|number| *number > 0) else {
            return Ok((self.page_after(listing, None)?, 0));
        };
        let item = ItemId(i64::try_from(item).map_err(|_| Errno::INVAL)?);
        // Taken out: no lock is held while the index is read.
        let last = std::mem::take(&mut *listing.page.lock());
        let known = last.iter().position(|row| row.item == item);
        match known {
            Some(index) if index + 1 < last.len() || last.len() < PAGE => Ok((last, index + 1)),
            Some(index) => Ok((self.page_after(listing, Some(&last[index].key))?, 0)),
            None => {
                let key = self
                    .archive
                    .store()
                    .ibip_key(item)
                    .map_err(errno::of_index)?;
                let key = key.ok_or(Errno::INVAL)?;
                Ok((self.page_after(listing, Some(&key))?, 0))
            }
        }
    }

    fn page_after(
        &self,
        listing: &PrefixListing,
        after: Option<&str>,
    ) -> ErrnoResult<Vec<PrefixRow>> {
        let store = self.archive.store();
        store
            .prefix_page(&listing.prefix, listing.without_rep, after, PAGE)
            .map_err(errno::of_index)
    }

    /// The line of an item, unless its directory is gone.
    fn line_of(
        &self,
        row: &PrefixRow,
        parents: &mut HashMap<String, Option<OwnedFd>>,
    ) -> Option<DirectoryEntry> {
        let place = Place::of(&row.names);
        if parents.len() >= HELD && !parents.contains_key(place.parent()) {
            parents.clear();
        }
        let open = || self.archive.tree().open_directory(place.parent()).ok();
        let parent = parents.entry(place.parent().to_owned());
        let parent = parent.or_insert_with(open).as_ref()?;
        let stat = rustix::fs::statat(parent, place.name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        (kind == FileType::Directory).then_some(DirectoryEntry {
            name: row.names.ibip()?.suffix().into(),
            st_ino: self.nodes.st_ino(stat.st_dev, stat.st_ino),
            kind,
        })
    }
}
