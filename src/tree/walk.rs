//! Walking a store: names of a directory, files of an item, items and tombstones of the whole.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use super::place::failed;
use super::{Area, Place, Tree, TreeError};

impl Tree {
    /// Calls `visit` with every name in a directory and whether it is itself a directory.
    pub fn each_name(&self, path: &str, visit: impl FnMut(&[u8], bool)) -> Result<(), TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed("open", path))?;
        each_name_of(&directory, path, visit)
    }

    /// How a name is spelled in a directory, if it is there in any case of its letters.
    pub fn spelling_in(&self, path: &str, name: &str) -> Result<Option<String>, TreeError> {
        if self.is_directory(&format!("{path}/{name}")) {
            return Ok(Some(name.to_owned()));
        }
        if !self.is_directory(path) {
            return Ok(None);
        }
        let names = self.directories_in(path)?;
        Ok(names
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The paths of all that is no directory below an item, sorted, relative to the item.
    pub fn files_in(&self, place: &Place) -> Result<Vec<Vec<u8>>, TreeError> {
        let mut files = Vec::new();
        let mut waiting = vec![Vec::new()];
        while let Some(directory) = waiting.pop() {
            let mut path = place.as_str().as_bytes().to_vec();
            if !directory.is_empty() {
                path.push(b'/');
                path.extend_from_slice(&directory);
            }
            let shown = String::from_utf8_lossy(&path).into_owned();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let opened = rustix::fs::openat2(
                &self.root,
                &path[..],
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            )
            .map_err(failed("open", &shown))?;
            each_name_of(&opened, &shown, |name, is_directory| {
                let mut below = directory.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(name);
                match is_directory {
                    true => waiting.push(below),
                    false => files.push(below),
                }
            })?;
        }
        files.sort();
        Ok(files)
    }

    /// The directory names in a directory, sorted. Names that are not UTF-8 are passed over: no
    /// identifier is spelled so.
    pub fn directories_in(&self, path: &str) -> Result<Vec<String>, TreeError> {
        let mut names = Vec::new();
        self.each_name(path, |name, is_directory| {
            if let (true, Ok(name)) = (is_directory, std::str::from_utf8(name)) {
                names.push(name.to_owned());
            }
        })?;
        names.sort();
        Ok(names)
    }

    /// Visits every item directory: four levels below `col/`, two below `ibip/`. `visit` gets
    /// the path below that area; names that are no identifiers are the visitor's to judge.
    pub fn each_item<E: From<TreeError>>(
        &self,
        mut visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for area in [Area::Col, Area::Ibip] {
            self.descend(area.name(), "", area.depth(), &mut |path, _| {
                visit(area, path)
            })?;
        }
        Ok(())
    }

    /// Visits every tombstone with its place, like [`Tree::each_item`].
    pub fn each_tombstone<E: From<TreeError>>(
        &self,
        mut visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for area in [Area::Col, Area::Ibip] {
            let root = format!("deleted/{}", area.name());
            if !self.is_directory(&root) {
                continue;
            }
            self.descend(&root, "", area.depth() - 1, &mut |path, root| {
                let mut names = Vec::new();
                self.each_name(&format!("{root}/{path}"), |name, is_directory| {
                    if !is_directory {
                        names.push(String::from_utf8_lossy(name).into_owned());
                    }
                })?;
                names.sort();
                names
                    .iter()
                    .try_for_each(|name| visit(area, &format!("{path}/{name}")))
            })?;
        }
        Ok(())
    }

    pub(super) fn descend<E: From<TreeError>>(
        &self,
        root: &str,
        path: &str,
        depth: usize,
        visit: &mut dyn FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if depth == 0 {
            return visit(path, root);
        }
        let here = if path.is_empty() {
            root.to_owned()
        } else {
            format!("{root}/{path}")
        };
        for name in self.directories_in(&here)? {
            let below = if path.is_empty() {
                name
            } else {
                format!("{path}/{name}")
            };
            self.descend(root, &below, depth - 1, visit)?;
        }
        Ok(())
    }
}

fn each_name_of(
    directory: &OwnedFd,
    path: &str,
    visit: impl FnMut(&[u8], bool),
) -> Result<(), TreeError> {
    each_entry_of(directory, visit).map_err(failed("list", path))
}

pub(super) fn each_entry_of(
    directory: &OwnedFd,
    mut visit: impl FnMut(&[u8], bool),
) -> Result<(), Errno> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            rustix::fs::FileType::Directory => true,
            rustix::fs::FileType::Unknown => {
                rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| {
                        rustix::fs::FileType::from_raw_mode(stat.st_mode)
                            == rustix::fs::FileType::Directory
                    })
            }
            _ => false,
        };
        visit(name, is_directory);
    }
    Ok(())
}
