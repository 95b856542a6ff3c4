//! Walks an area of the store: all items or all tombstones, and everything that does not belong there.

use std::collections::HashMap;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::Action;
use super::place::failed;
use super::{Area, Tree, TreeError};
use crate::os::deep::joined;
use crate::os::entries::each_typed_of;
use ibi::rep::component_key;

impl Tree {
    /// Visits every item directory: four levels below `col/`, two below `ibip/`. `visit` gets the path below
    /// that area, and decides about names that are not identifiers.
    pub fn each_item<E: From<TreeError>>(
        &self,
        mut visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for area in [Area::Col, Area::Ibip] {
            self.survey_items(area, &mut |seen| match seen.named()? {
                Some(path) => visit(area, path),
                None => Ok(()),
            })?;
        }
        Ok(())
    }

    /// Visits the items of an area, and everything on the way to them that does not belong there.
    pub fn survey_items<E>(&self, area: Area, visit: Visit<'_, E>) -> Result<(), E> {
        self.descend(area.name(), "", area.depth(), Leaf::Directory, visit)
    }

    /// Visits the tombstones of an area, like [`Tree::survey_items`].
    pub fn survey_tombstones<E>(&self, area: Area, visit: Visit<'_, E>) -> Result<(), E> {
        let root = format!("deleted/{}", area.name());
        self.descend(&root, "", area.depth(), Leaf::File, visit)
    }

    pub(super) fn descend<E>(
        &self,
        root: &str,
        path: &str,
        depth: usize,
        leaf: Leaf,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        let join = |above: &str, name: &str| match above {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        };
        let wanted = match depth {
            1 => leaf,
            _ => Leaf::Directory,
        };
        let level = match self.level(&join(root, path), wanted) {
            Ok(level) => level,
            // Removed since it was listed.
            Err(error) if error.errno() == Errno::NOENT => return Ok(()),
            Err(error) => return visit(WalkEntry::Unreadable(path, error)),
        };
        for (first, second) in twins(&level.names) {
            visit(WalkEntry::Twice(&join(path, first), &join(path, second)))?;
        }
        for name in &level.names {
            let below = join(path, name);
            match depth {
                1 => visit(WalkEntry::Named(&below))?,
                _ => self.descend(root, &below, depth - 1, leaf, visit)?,
            }
        }
        for (name, is_link) in &level.others {
            if *is_link || depth == 1 {
                visit(WalkEntry::Other(&join(path, name)))?;
            }
        }
        for (name, is_link) in &level.not_text {
            if !*is_link || depth > 1 {
                visit(WalkEntry::NotText(&joined(path.as_bytes(), name)))?;
            }
        }
        Ok(())
    }

    /// The content of a directory above the items: the names that lead to items, and the others.
    fn level(&self, path: &str, wanted: Leaf) -> Result<LevelNames, TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))?;
        let mut level = LevelNames::default();
        each_typed_of(&directory, |name, file_type| {
            let is_wanted = (file_type == FileType::Directory) == (wanted == Leaf::Directory);
            let is_link = file_type == FileType::Symlink;
            match std::str::from_utf8(name) {
                Ok(name) if is_wanted => level.names.push(name.to_owned()),
                Ok(name) => level.others.push((name.to_owned(), is_link)),
                Err(_) if is_wanted || is_link => level.not_text.push((name.to_owned(), is_link)),
                Err(_) => {}
            }
        })
        .map_err(failed(Action::List, path))?;
        level.names.sort();
        level.others.sort();
        level.not_text.sort();
        Ok(level)
    }

    /// Visits every directory `depth` levels below another one, sorted; none where that one is missing.
    pub fn each_directory_at<E: From<TreeError>>(
        &self,
        path: &str,
        depth: usize,
        mut visit: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_directory(path) {
            self.descend(
                path,
                "",
                depth,
                Leaf::Directory,
                &mut |seen| match seen.named()? {
                    Some(below) => visit(below),
                    None => Ok(()),
                },
            )
        } else {
            Ok(())
        }
    }
}

/// The thing at the end of the levels of an area.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    /// The directory of an item.
    Directory,
    /// A tombstone or another small file.
    File,
}

/// An entry that a walk through an area meets; paths are relative to the area.
#[derive(Debug)]
pub enum WalkEntry<'a> {
    /// A path at the depth of an item or a tombstone; its name may not be an identifier.
    Named(&'a str),
    /// A link in place of a level, or anything but a directory in place of an item.
    Other(&'a str),
    /// Something in place of a level, an item or a tombstone whose name is not UTF-8, so that it is not part of an
    /// identifier.
    NotText(&'a [u8]),
    /// Two directories whose names differ only in spelling.
    Twice(&'a str, &'a str),
    /// A directory that cannot be listed.
    Unreadable(&'a str, TreeError),
}

impl<'a> WalkEntry<'a> {
    /// The path of an item or a tombstone; an error for a directory that cannot be listed.
    pub(super) fn named(self) -> Result<Option<&'a str>, TreeError> {
        match self {
            WalkEntry::Named(path) => Ok(Some(path)),
            WalkEntry::Unreadable(_, error) => Err(error),
            WalkEntry::Other(_) | WalkEntry::NotText(_) | WalkEntry::Twice(..) => Ok(None),
        }
    }
}

/// The callback of a walk.
pub type Visit<'a, E> = &'a mut dyn FnMut(WalkEntry<'_>) -> Result<(), E>;

#[derive(Default)]
struct LevelNames {
    names: Vec<String>,
    others: Vec<(String, bool)>,
    not_text: Vec<(Vec<u8>, bool)>,
}

/// Pairs of names that differ only in spelling.
fn twins(names: &[String]) -> Vec<(&str, &str)> {
    let mut known = HashMap::new();
    let mut twins = Vec::new();
    let cased = |name: &&String| name.bytes().any(|byte| byte.is_ascii_alphabetic());
    for name in names.iter().filter(cased) {
        if let Some(first) = known.insert(component_key(name), name.as_str()) {
            twins.push((first, name.as_str()));
        }
    }
    twins
}
