//! Walking a store: the names in a directory, the files of an item, all items and tombstones.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, OFlags, RawDir};
use rustix::io::Errno;

use super::Action;
use super::files::{Met, open_far, walk_noting};
use super::place::failed;
use super::validator::Fingerprint;
use super::{Area, OpenItem, Tree, TreeError};
use ibi::rep::component_key;

/// An item with more directories than this has no record of their state.
const MOST_DIRECTORIES: usize = 1024;

/// The paths of an item's files, and the directories in which they were found.
#[derive(Debug)]
pub struct Files {
    /// The paths of all entries that are not directories, sorted, relative to the item.
    pub paths: Vec<Vec<u8>>,
    /// Their state when they were listed; None where there are too many.
    pub directories: Option<Directories>,
}

/// The state of an item's directories at one time.
#[derive(Debug)]
pub struct Directories(Vec<(Vec<u8>, Fingerprint)>);

impl Directories {
    /// Whether a change after `now`, in nanoseconds, would be visible in all of them.
    pub fn are_settled(&self, now: i128) -> bool {
        self.0.iter().all(|(_, mark)| mark.is_settled(now))
    }

    /// The approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        let each =
            |(path, _): &(Vec<u8>, Fingerprint)| path.len() + size_of::<(Vec<u8>, Fingerprint)>();
        self.0.iter().map(each).sum()
    }
}

/// The most bytes of all paths of an item's files together: a million paths of 250 bytes.
const LONGEST_LIST: usize = 250_000_000;

impl Tree {
    /// Calls `visit` with every name in a directory and whether the name is a directory.
    pub fn each_name(&self, path: &str, visit: impl FnMut(&[u8], bool)) -> Result<(), TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))?;
        each_name_of(&directory, path, visit)
    }

    /// The spelling of a name in a directory, compared without regard to case.
    pub fn spelling_in(&self, path: &str, name: &str) -> Result<Option<String>, TreeError> {
        if self.is_directory(&format!("{path}/{name}")) {
            return Ok(Some(name.to_owned()));
        }
        if !self.is_directory(path) {
            return Ok(None);
        }
        let names = self.directories_in(path)?;
        let key = component_key(name);
        Ok(names.into_iter().find(|known| component_key(known) == key))
    }

    /// The paths of all entries below an item that are not directories, sorted, relative to the item. EFBIG
    /// where the paths together are too long to be held in memory.
    pub fn files_in(&self, item: &OpenItem) -> Result<Files, TreeError> {
        let mut files = Vec::new();
        let mut directories = Some(Vec::new());
        let (mut bytes, mut unreadable) = (0, None);
        let meet = |met| match met {
            Met::Entry(path) => {
                bytes += path.len();
                if bytes <= LONGEST_LIST {
                    files.push(path);
                }
            }
            Met::Unreadable(path, errno) => unreadable = Some((path, errno)),
        };
        let note = |directory: &OwnedFd, path: &[u8]| {
            let mark = rustix::fs::fstat(directory).map(|stat| Fingerprint::of(&stat));
            match (&mut directories, mark) {
                (Some(noted), Ok(mark)) if noted.len() < MOST_DIRECTORIES => {
                    noted.push((path.to_vec(), mark));
                }
                _ => directories = None,
            }
        };
        walk_noting(&item.directory, b".", meet, note)
            .map_err(failed(Action::Open, item.place.as_str()))?;
        if let Some((path, errno)) = unreadable {
            let shown = item.shown(&String::from_utf8_lossy(&path));
            return Err(failed(Action::Open, &shown)(errno));
        }
        if bytes > LONGEST_LIST {
            return Err(failed(Action::List, item.place.as_str())(Errno::FBIG));
        }
        files.sort();
        Ok(Files {
            paths: files,
            directories: directories.map(Directories),
        })
    }

    /// Whether the listed directories are unchanged, and the calling user may read them.
    pub fn are_so_still(&self, item: &OpenItem, directories: &Directories) -> bool {
        directories.0.iter().all(|(path, mark)| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = open_far(&item.directory, path, flags);
            let stat = opened.and_then(rustix::fs::fstat);
            stat.is_ok_and(|stat| Fingerprint::of(&stat) == *mark)
        })
    }

    /// The names of directories in a directory, sorted. A name that is not UTF-8 is skipped: it is not part
    /// of an identifier.
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

    /// Visits every item directory: four levels below `col/`, two below `ibip/`. `visit` gets the path below
    /// that area, and decides about names that are not identifiers.
    pub fn each_item<E: From<TreeError>>(
        &self,
        visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each(visit, Tree::survey_items)
    }

    /// Visits every tombstone with its place, like [`Tree::each_item`].
    pub fn each_tombstone<E: From<TreeError>>(
        &self,
        visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each(visit, Tree::survey_tombstones)
    }

    fn each<E: From<TreeError>>(
        &self,
        mut visit: impl FnMut(Area, &str) -> Result<(), E>,
        survey: fn(&Tree, Area, Visit<'_, E>) -> Result<(), E>,
    ) -> Result<(), E> {
        for area in [Area::Col, Area::Ibip] {
            survey(self, area, &mut |seen| match seen.named()? {
                Some(path) => visit(area, path),
                None => Ok(()),
            })?;
        }
        Ok(())
    }

    /// Visits the items of an area, and everything on the way to them that does not belong there.
    pub fn survey_items<E>(&self, area: Area, visit: Visit<'_, E>) -> Result<(), E> {
        self.descend(area.name(), "", area.depth(), false, visit)
    }

    /// Visits the tombstones of an area, like [`Tree::survey_items`].
    pub fn survey_tombstones<E>(&self, area: Area, visit: Visit<'_, E>) -> Result<(), E> {
        let root = format!("deleted/{}", area.name());
        self.descend(&root, "", area.depth(), true, visit)
    }

    pub(super) fn descend<E>(
        &self,
        root: &str,
        path: &str,
        depth: usize,
        to_files: bool,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        let join = |above: &str, name: &str| match above {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        };
        let level = match self.level(&join(root, path), depth == 1 && to_files) {
            Ok(level) => level,
            // Removed since it was listed.
            Err(error) if error.errno() == Errno::NOENT => return Ok(()),
            Err(error) => return visit(Seen::Unreadable(path, error)),
        };
        for (first, second) in twins(&level.names) {
            visit(Seen::Twice(&join(path, first), &join(path, second)))?;
        }
        for name in &level.names {
            let below = join(path, name);
            match depth {
                1 => visit(Seen::Named(&below))?,
                _ => self.descend(root, &below, depth - 1, to_files, visit)?,
            }
        }
        for (name, is_link) in &level.others {
            if *is_link || depth == 1 {
                visit(Seen::Other(&join(path, name)))?;
            }
        }
        Ok(())
    }

    /// The content of a directory above the items: the names that lead to items, and the others. A name that
    /// is not UTF-8 is skipped: it is not part of an identifier.
    fn level(&self, path: &str, wants_files: bool) -> Result<Level, TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))?;
        let mut level = Level::default();
        each_typed_of(&directory, |name, file_type| {
            if let Ok(name) = std::str::from_utf8(name) {
                match file_type == FileType::Directory {
                    is_directory if is_directory != wants_files => {
                        level.names.push(name.to_owned());
                    }
                    _ => level
                        .others
                        .push((name.to_owned(), file_type == FileType::Symlink)),
                }
            }
        })
        .map_err(failed(Action::List, path))?;
        level.names.sort();
        level.others.sort();
        Ok(level)
    }
}

/// What a walk through an area meets; paths are relative to the area.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A path at the depth of an item or a tombstone; its name may not be an identifier.
    Named(&'a str),
    /// A link in place of a level, or anything but a directory in place of an item.
    Other(&'a str),
    /// Two directories whose names differ only in spelling.
    Twice(&'a str, &'a str),
    /// A directory that cannot be listed.
    Unreadable(&'a str, TreeError),
}

impl<'a> Seen<'a> {
    /// The path of an item or a tombstone; an error for a directory that cannot be listed.
    pub(super) fn named(self) -> Result<Option<&'a str>, TreeError> {
        match self {
            Seen::Named(path) => Ok(Some(path)),
            Seen::Unreadable(_, error) => Err(error),
            Seen::Other(_) | Seen::Twice(..) => Ok(None),
        }
    }
}

/// The callback of a walk.
pub type Visit<'a, E> = &'a mut dyn FnMut(Seen<'_>) -> Result<(), E>;

#[derive(Default)]
struct Level {
    names: Vec<String>,
    others: Vec<(String, bool)>,
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

pub(super) fn each_name_of(
    directory: &OwnedFd,
    path: &str,
    visit: impl FnMut(&[u8], bool),
) -> Result<(), TreeError> {
    each_entry_of(directory, visit).map_err(failed(Action::List, path))
}

/// Calls `visit` with every name in an open directory and whether the name is a directory.
pub fn each_entry_of(directory: &OwnedFd, mut visit: impl FnMut(&[u8], bool)) -> Result<(), Errno> {
    each_typed_of(directory, |name, file_type| {
        visit(name, file_type == FileType::Directory);
    })
}

fn each_typed_of(directory: &OwnedFd, mut visit: impl FnMut(&[u8], FileType)) -> Result<(), Errno> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let file_type = match entry.file_type() {
            FileType::Unknown => {
                rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| {
                        FileType::from_raw_mode(stat.st_mode)
                    })
            }
            known => known,
        };
        visit(name, file_type);
    }
    Ok(())
}
