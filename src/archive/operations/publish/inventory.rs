//! The contents of an item, as far as the public may read it, see [`crate::formats::inventory`].

use rustix::io::Errno;

use super::inspect_published;
use super::walk::{NextEntries, Walk};
use crate::archive::operations::{ArchiveError, ReadAs};
use crate::archive::store::Item;
use crate::archive::tree::{
    Action, METADATA_TEXT, OpenItem, PublicKind, PublicStat, SIDECAR, TreeError,
};
use crate::formats::inventory::{Entry, EntryKind, FileEntry, Page};
use crate::formats::item::Sidecar;

impl ReadAs<'_> {
    /// A page of an item's inventory: at most `most` entries after a path. The digests of files are not looked up.
    ///
    /// The sidecar and the metadata text are on the first page. The sidecar has only the relations to items that the
    /// public may see. Devices, and what the public may not read, are left out.
    pub fn inventory(&self, item: &Item, after: &[u8], most: usize) -> Result<Page, ArchiveError> {
        let mut page = self.acting(|| -> Result<_, ArchiveError> {
            let open = self.open_served(item)?;
            let mut entries = if after.is_empty() {
                first_entries(&open)?
            } else {
                Vec::new()
            };
            let mut walk = Walk::new(&open, after, NextEntries::FilesAndDirectories);
            let mut next = None;
            while let Some(path) = walk.next()? {
                if entries.len() >= most {
                    next = Page::continued_after(&entries);
                    break;
                }
                let found = entry(&open, path.strip_suffix(b"/").unwrap_or(&path));
                entries.extend(walk.readable(found, &path)?.flatten());
            }
            Ok(Page {
                names: item.names.clone(),
                entries,
                next,
            })
        })?;
        let texts = page.entries.iter_mut();
        for own in texts.filter(|entry| entry.path == SIDECAR.as_bytes()) {
            if let EntryKind::Text(text) = &mut own.kind {
                *text = self.sidecar_shown(item, text)?;
            }
        }
        Ok(page)
    }

    /// A sidecar without the relations to items that the public may not see, and without the name of a file that is withheld.
    fn sidecar_shown(&self, item: &Item, text: &[u8]) -> Result<Vec<u8>, ArchiveError> {
        let Ok(mut sidecar) = Sidecar::parse(text) else {
            return Ok(text.to_vec());
        };
        for (kind, names) in sidecar.relations() {
            if !self.is_shown(&names)? {
                sidecar.remove_relation(&kind);
            }
        }
        if self.withheld_until(item).is_some() {
            sidecar.remove_target();
        }
        Ok(sidecar.to_bytes())
    }
}

/// The entries that begin an inventory: the item's directory, its sidecar, and its metadata text.
fn first_entries(open: &OpenItem) -> Result<Vec<Entry>, TreeError> {
    let failed = |path: &str, errno| open.error(Action::Read, path.as_bytes(), errno);
    let root = open.public_stat(b"").map_err(|errno| failed(".", errno))?;
    let mut entries = vec![of(b"", EntryKind::Directory, &root)];
    for name in [SIDECAR, METADATA_TEXT] {
        let stat = match open.public_stat(name.as_bytes()) {
            Ok(stat) if stat.kind == PublicKind::File => stat,
            Ok(_) | Err(Errno::NOENT) => continue,
            Err(errno) => return Err(failed(name, errno)),
        };
        match open.read_small(name) {
            Ok(Some(text)) => entries.push(of(name.as_bytes(), EntryKind::Text(text), &stat)),
            Ok(None) => {}
            Err(error) if error.errno() == Errno::ACCESS => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

fn of(path: &[u8], kind: EntryKind, stat: &PublicStat) -> Entry {
    Entry {
        path: path.to_vec(),
        kind,
        stat: stat.stat,
        attributes: Vec::new(),
    }
}

/// An entry by its path. None for a device.
fn entry(open: &OpenItem, path: &[u8]) -> Result<Option<Entry>, Errno> {
    let stat = open.public_stat(path)?;
    let kind = match &stat.kind {
        PublicKind::Link(target) => EntryKind::Link(target.clone()),
        PublicKind::Fifo => EntryKind::Fifo,
        PublicKind::Socket => EntryKind::Socket,
        PublicKind::Device => return Ok(None),
        PublicKind::Directory => {
            inspect_published(open, path)?;
            EntryKind::Directory
        }
        PublicKind::File => {
            let found = inspect_published(open, path)?;
            EntryKind::File(FileEntry {
                size: found.length(),
                version: found.fingerprint().to_string(),
                digest: None,
                has_pieces: false,
                identity: stat.identity,
            })
        }
    };
    Ok(Some(of(path, kind, &stat)))
}
