//! The content of an item, in memory: the entries of all pages, by path and by directory.

use std::collections::HashMap;
use std::sync::Arc;

use crate::archive::tree::SIDECAR;
use crate::formats::inventory::{Entry, EntryKind, Page};
use crate::formats::item::{Names, Sidecar};
use crate::world::error::ForeignError;
use ibi::Timestamp;

/// The most entries of an item.
const MOST_ENTRIES: usize = 1_200_000;

/// The number of an entry in its inventory.
pub(crate) type Position = u32;

/// The item's own directory.
pub(crate) const ROOT: Position = 0;

/// Everything that is in an item.
#[derive(Debug)]
pub(crate) struct ForeignInventory {
    names: Names,
    entries: Vec<Arc<Entry>>,
    positions: HashMap<Vec<u8>, Position>,
    /// The entries of each directory.
    below: HashMap<Position, Vec<Position>>,
    /// By the identity of a file with several names, the first one, and how many there are.
    identities: HashMap<u64, (Position, u32)>,
}

impl ForeignInventory {
    /// The inventory that pages form.
    pub(crate) fn of_pages(pages: Vec<Page>) -> Result<ForeignInventory, ForeignError> {
        let broken = |what: &str| ForeignError::Broken(format!("an inventory: {what}"));
        let names = pages.first().map(|page| page.names.clone());
        let names = names.ok_or_else(|| broken("it has no page"))?;
        if pages.iter().any(|page| page.names != names) {
            return Err(broken("its pages are those of several items"));
        }
        let entries = pages.into_iter().flat_map(|page| page.entries);
        let entries: Vec<Arc<Entry>> = entries.map(Arc::new).collect();
        if entries.len() > MOST_ENTRIES {
            return Err(broken("it has more entries than an item may have"));
        }
        let mut positions = HashMap::with_capacity(entries.len());
        let mut below: HashMap<Position, Vec<Position>> = HashMap::new();
        let mut identities: HashMap<u64, (Position, u32)> = HashMap::new();
        for (entry, position) in entries.iter().zip(0..) {
            let is_root = entry.path.is_empty();
            if is_root != (position == ROOT) {
                return Err(broken("it does not begin with the item's directory"));
            }
            if !is_root {
                let cut = entry.path.iter().rposition(|byte| *byte == b'/');
                let above = cut.map_or(&b""[..], |cut| &entry.path[..cut]);
                let above: Option<&Position> = positions.get(above);
                let is_directory = |at: &&Position| {
                    let found = entries.get(**at as usize);
                    found.is_some_and(|found| found.kind == EntryKind::Directory)
                };
                let above = above.filter(is_directory).copied();
                let above = above.ok_or_else(|| broken("an entry is in no directory"))?;
                below.entry(above).or_default().push(position);
            }
            if let EntryKind::File(file) = &entry.kind
                && let Some(identity) = file.identity
            {
                let (_, count) = identities.entry(identity).or_insert((position, 0));
                *count += 1;
            }
            if positions.insert(entry.path.clone(), position).is_some() {
                return Err(broken("a path occurs twice"));
            }
        }
        if entries.is_empty() {
            return Err(broken("it does not begin with the item's directory"));
        }
        Ok(ForeignInventory {
            names,
            entries,
            positions,
            below,
            identities,
        })
    }

    /// Whether the sidecar says that the files of the item are withheld at this time.
    pub(crate) fn is_withheld(&self, now: &Timestamp) -> bool {
        let own = self.position(SIDECAR.as_bytes());
        let Some(EntryKind::Text(text)) = own.map(|own| &self.entry(own).kind) else {
            return false;
        };
        let sidecar = Sidecar::parse(text).ok();
        sidecar.is_some_and(|it| {
            it.life()
                .available
                .as_ref()
                .is_some_and(|until| until > now)
        })
    }

    /// The item's names.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// An entry. The item's own directory for a number that none has.
    pub(crate) fn entry(&self, position: Position) -> &Arc<Entry> {
        let found = self.entries.get(position as usize);
        found.unwrap_or(&self.entries[0])
    }

    /// The number of the entry at a path.
    pub(crate) fn position(&self, path: &[u8]) -> Option<Position> {
        self.positions.get(path).copied()
    }

    /// The entries of a directory, in the order of their paths.
    pub(crate) fn below(&self, position: Position) -> &[Position] {
        self.below.get(&position).map_or(&[], Vec::as_slice)
    }

    /// The first name of a file, and how many it has.
    pub(crate) fn first_name(&self, position: Position) -> (Position, u32) {
        match &self.entry(position).kind {
            EntryKind::File(file) => {
                let known = file.identity.and_then(|it| self.identities.get(&it));
                known.copied().unwrap_or((position, 1))
            }
            EntryKind::Directory => {
                let is_directory = |at: &&Position| self.entry(**at).kind == EntryKind::Directory;
                let count = self.below(position).iter().filter(is_directory).count();
                (position, u32::try_from(count + 2).unwrap_or(u32::MAX))
            }
            _ => (position, 1),
        }
    }

    /// All entries, in the order of their paths.
    pub(crate) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<ForeignInventory, ForeignError> {
        let text = format!("inventory 1\nibi {{ibip 8JMKD3MGP8W/34PGRBS}}\n{lines}end\n");
        ForeignInventory::of_pages(vec![Page::parse(text.as_bytes()).expect("a page")])
    }

    #[test]
    fn entries_are_found_by_path_and_directory() {
        let found = read(
            "directory 755 1.0 .\ndirectory 755 1.0 doc\nfile 644 1.0 doc/a 1 1 - 7\n\
             directory 755 1.0 doc/b\nfile 644 1.0 doc/b/c 1 1 - 7\nlink 777 1.0 doc/l a\n",
        )
        .expect("an inventory");
        let doc = found.position(b"doc").expect("a directory");
        let names: Vec<_> = found
            .below(doc)
            .iter()
            .map(|at| found.entry(*at).path.clone())
            .collect();
        assert_eq!(names, [&b"doc/a"[..], b"doc/b", b"doc/l"]);
        assert_eq!(found.first_name(ROOT), (ROOT, 3));
        let (a, c) = (found.position(b"doc/a"), found.position(b"doc/b/c"));
        assert_eq!(
            found.first_name(c.expect("a file")),
            (a.expect("a file"), 2)
        );
        assert_eq!(found.position(b"doc/x"), None);
    }

    #[test]
    fn what_is_in_no_directory_is_refused() {
        for bad in [
            "",
            "directory 755 1.0 doc\n",
            "directory 755 1.0 .\nfile 644 1.0 doc/a 1 1 -\n",
            "directory 755 1.0 .\nfile 644 1.0 doc 1 1 -\nfile 644 1.0 doc/a 1 1 -\n",
            "directory 755 1.0 .\nfile 644 1.0 a 1 1 -\ndirectory 755 1.0 a\n",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pages_of_several_items_and_paths_that_occur_twice_are_refused() {
        let page = |item: &str, lines: &str| {
            let text = format!("inventory 1\nibi {{ibip 8JMKD3MGP8W/{item}}}\n{lines}");
            Page::parse(text.as_bytes()).expect("a page")
        };
        let first = || {
            page(
                "34PGRBS",
                "directory 755 1.0 .\nfile 644 1.0 a 1 1 -\nmore a\n",
            )
        };
        for (second, is_good) in [
            (page("34PGRBS", "file 644 1.0 b 1 1 -\nend\n"), true),
            (page("34PGRB2", "file 644 1.0 b 1 1 -\nend\n"), false),
            (page("34PGRBS", "file 644 1.0 a 1 1 -\nend\n"), false),
            (page("34PGRBS", "directory 755 1.0 .\nend\n"), false),
        ] {
            let found = ForeignInventory::of_pages(vec![first(), second]);
            assert_eq!(found.is_ok(), is_good, "{found:?}");
        }
        assert!(ForeignInventory::of_pages(Vec::new()).is_err());
    }
}
