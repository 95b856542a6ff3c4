//! The directories whose entries are items, below a level: what the tree has there, and what the index has.

use std::collections::{BTreeMap, BTreeSet};

use super::identifiers::names_at;
use super::{ArchiveError, Keeper};
use crate::archive::store::{Item, key_after_level, level_bounds};
use crate::archive::tree::{Area, Place};
use crate::formats::item::Names;

/// The components of the path of a directory of items with reps, below `col/`.
const YEAR: usize = 3;

/// A directory whose entries are items: a year of reps or a prefix of IBIps.
pub(super) struct Leaf {
    /// Its path below the store.
    pub(super) path: String,
    /// The directories in it whose names are identifiers.
    pub(super) present: Vec<Present>,
    /// The directories in it whose names are not.
    pub(super) strays: Vec<String>,
    /// The items of the index that were not in it when it was listed.
    pub(super) absent: BTreeMap<Place, Item>,
}

/// The directory of an item, and the item if the index has it.
pub(super) struct Present {
    pub(super) names: Names,
    pub(super) item: Option<Item>,
}

impl Keeper<'_> {
    /// The directories of items below a level of the tree, such as `col` or `col/example.org`, or that level itself. First
    /// come those that the tree does not have any more, so that a name that was moved is free when it is met again.
    ///
    /// # Errors
    /// Those of reading the tree and the index.
    pub(super) fn leaf_paths(&self, level: &str) -> Result<Vec<String>, ArchiveError> {
        let Some((area, path)) = area_of(level) else {
            return Ok(Vec::new());
        };
        let depth = area.depth() - 1 - path.split('/').filter(|name| !name.is_empty()).count();
        let mut found = BTreeSet::new();
        if depth == 0 {
            found.insert(level.to_owned());
        } else {
            self.tree.each_directory_at(level, depth, |below| {
                found.insert(format!("{level}/{below}"));
                Ok::<_, ArchiveError>(())
            })?;
        }
        let lower: BTreeSet<String> = found.iter().map(|it| it.to_ascii_lowercase()).collect();
        let known = self.leaves_of_index(area, path)?;
        let is_gone = |leaf: &String| !lower.contains(&leaf.to_ascii_lowercase());
        Ok(known.into_iter().filter(is_gone).chain(found).collect())
    }

    /// The directories of items below a path of an area, according to the index.
    fn leaves_of_index(&self, area: Area, path: &str) -> Result<Vec<String>, ArchiveError> {
        let mut leaves = Vec::new();
        match area {
            Area::Ibip if path.is_empty() => {
                let prefixes = self.store.prefixes(true)?;
                leaves.extend(prefixes.iter().map(|prefix| format!("ibip/{prefix}")));
            }
            Area::Ibip => leaves.push(format!("ibip/{path}")),
            Area::Col => {
                let (mut after, end) = level_bounds(path);
                while let Some(row) = self.store.rep_page(&after, &end, 1)?.pop() {
                    leaves.extend(row.names.map(|names| Place::of(&names).parent().to_owned()));
                    after = key_after_level(&row.key, YEAR).unwrap_or(row.key);
                }
            }
        }
        Ok(leaves)
    }

    /// Lists a directory of items, and compares it with the index.
    ///
    /// # Errors
    /// Those of reading the tree and the index.
    pub(super) fn leaf(&self, path: &str) -> Result<Leaf, ArchiveError> {
        let mut leaf = Leaf {
            path: path.to_owned(),
            present: Vec::new(),
            strays: Vec::new(),
            absent: BTreeMap::new(),
        };
        let Some((area, below)) = area_of(path) else {
            return Ok(leaf);
        };
        // The index first: an item that is added meanwhile is then met as one that it does not have.
        let known = match area {
            Area::Col => self.store.items_below(below)?,
            Area::Ibip => self.store.items_of_prefix(below)?,
        };
        leaf.absent = known
            .into_iter()
            .map(|item| (Place::of(&item.names), item))
            .collect();
        if !self.tree.is_directory(path) {
            return Ok(leaf);
        }
        for name in self.tree.directories_in(path)? {
            match names_at(area, &format!("{below}/{name}")) {
                Some(names) => {
                    let item = leaf.absent.remove(&Place::of(&names));
                    leaf.present.push(Present { names, item });
                }
                None => leaf.strays.push(name),
            }
        }
        Ok(leaf)
    }
}

/// The area of a path below the store, and the rest of the path, which is empty for the area itself.
pub(super) fn area_of(path: &str) -> Option<(Area, &str)> {
    [Area::Col, Area::Ibip].into_iter().find_map(|area| {
        let below = path.strip_prefix(area.name())?;
        match below.strip_prefix('/') {
            Some(below) => Some((area, below)),
            None => below.is_empty().then_some((area, "")),
        }
    })
}
