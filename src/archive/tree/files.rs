//! The files of an item one by one, for a program that reads them all, and writing of whole files beside
//! them.
//!
//! A path may be longer than the system accepts in one call: it is walked in pieces.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Action;
use super::place::failed;
use super::walk::each_entry_of;
use super::{Tree, TreeError};
use crate::os::opening;
use crate::os::writing;

/// The longest path that is passed to the system in one call.
const PIECE: usize = 4000;

/// How many directories a walk holds open, the deepest ones.
const HELD: usize = 64;

/// How a directory is opened for listing it.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A directory between the start of a walk and its position.
struct Level {
    /// How many bytes of the path lead here.
    length: usize,
    directory: Option<OwnedFd>,
    /// The subdirectories that are still to be visited.
    waiting: Vec<Vec<u8>>,
}

impl Level {
    /// Lists a directory: returns its level, and the names in it that are not directories.
    fn of(directory: OwnedFd, here: &[u8]) -> Result<(Level, Vec<Vec<u8>>), Errno> {
        let (mut waiting, mut entries) = (Vec::new(), Vec::new());
        each_entry_of(&directory, |name, is_directory| {
            if is_directory {
                waiting.push(name.to_vec());
            } else {
                entries.push(name.to_vec());
            }
        })?;
        let level = Level {
            length: here.len(),
            directory: Some(directory),
            waiting,
        };
        Ok((level, entries))
    }
}

/// An entry met below a directory.
#[derive(Debug)]
pub enum Met {
    /// A path that is not a directory.
    Entry(Vec<u8>),
    /// A directory whose names cannot be read, and why.
    Unreadable(Vec<u8>, Errno),
}

impl Tree {
    /// Opens something below the store by a path of any length, never through a symbolic link.
    pub fn open_far(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let (directory, below) = self.kept_above_bytes(path);
        open_far(directory, below, flags)
    }

    /// Opens a file for reading it once, without waiting for a FIFO or changing the access time.
    pub fn open_to_read(&self, path: &[u8]) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.open_far(path, flags | OFlags::NOATIME) {
            // Only the owner of a file may open it with O_NOATIME.
            Err(Errno::PERM) => self.open_far(path, flags),
            other => other,
        }
        .map(File::from)
    }

    /// Calls `meet` with every entry below a directory that is not a directory, by its relative path, and
    /// with the directories that cannot be read. ENOENT where the directory does not exist.
    pub fn each_met_below(&self, path: &str, meet: impl FnMut(Met)) -> Result<(), TreeError> {
        let (directory, below) = self.kept_above_bytes(path.as_bytes());
        walk(directory, below, meet).map_err(failed(Action::List, path))
    }

    /// Reads one of the store's own files, of any size; None where it does not exist.
    pub fn read_whole(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        let read = |mut file: File| {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes)
                .map(|_| bytes)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        };
        match self.open_to_read(path.as_bytes()).and_then(read) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(failed(Action::Read, path)(errno)),
        }
    }

    /// Replaces a file as a whole, in a directory that only the caller writes to. With `now` it is on disk
    /// when this returns. The unfinished file lies beside it and not in `staging/`, which a starting mount
    /// empties.
    pub fn write_beside(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        now: bool,
    ) -> Result<(), TreeError> {
        let shown = format!("{directory}/{name}");
        let failed = |errno| failed(Action::Write, &shown)(errno);
        let opened = self.open_directory(directory)?;
        let temporary = format!("{name}.new");
        // Left behind by a crash: only the caller writes here.
        let _ = rustix::fs::unlinkat(&opened, &temporary, AtFlags::empty());
        let file = writing::create(&opened, &temporary, bytes, 0o644, None).map_err(failed)?;
        writing::rename_into_place(&file, (&opened, &temporary), (&opened, name), now)
            .map_err(failed)?;
        if now {
            self.sync_directory(directory)
        } else {
            Ok(())
        }
    }

    /// Makes a directory and the missing ones above it, without waiting for the disk.
    pub fn make_directories(&self, path: &str) -> Result<(), TreeError> {
        if self.is_directory(path) {
            return Ok(());
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        if parent != "." {
            self.make_directories(parent)?;
        }
        let parent = self.open_directory(parent)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed(Action::Make, path)(errno)),
        }
    }

    /// Visits every directory `depth` levels below another one, sorted; none where that one is missing.
    pub fn each_directory_at<E: From<TreeError>>(
        &self,
        path: &str,
        depth: usize,
        mut visit: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_directory(path) {
            self.descend(path, "", depth, false, &mut |seen| match seen.named()? {
                Some(below) => visit(below),
                None => Ok(()),
            })
        } else {
            Ok(())
        }
    }
}

/// Opens something below a directory by a path of any length, never through a symbolic link. The path is
/// passed to the system in pieces, because no call accepts more than 4,095 bytes.
pub fn open_far(below: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut reached: Option<OwnedFd> = None;
    let mut rest = path;
    loop {
        let from = reached.as_ref().unwrap_or(below);
        if rest.len() <= PIECE {
            return open_piece(from, rest, flags);
        }
        let cut = rest[..PIECE].iter().rposition(|byte| *byte == b'/');
        let cut = cut.ok_or(Errno::NAMETOOLONG)?;
        reached = Some(open_piece(
            from,
            &rest[..cut],
            OFlags::PATH | OFlags::DIRECTORY,
        )?);
        rest = &rest[cut + 1..];
    }
}

fn open_piece(from: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    opening::beneath(from, path, flags, resolve)
}

/// Walks what lies below a directory, like [`Tree::each_met_below`].
///
/// Each directory is opened from the one above it: with whole paths, the time would grow with the square of
/// the depth.
pub(super) fn walk(from: &OwnedFd, path: &[u8], meet: impl FnMut(Met)) -> Result<(), Errno> {
    walk_noting(from, path, meet, |_, _| ())
}

/// Like [`walk`]; `note` gets every directory before it is listed, with its path.
pub(super) fn walk_noting(
    from: &OwnedFd,
    path: &[u8],
    mut meet: impl FnMut(Met),
    mut note: impl FnMut(&OwnedFd, &[u8]),
) -> Result<(), Errno> {
    let mut here = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    let mut next = open_far(from, path, LIST);
    loop {
        if let Ok(directory) = &next {
            note(directory, &here);
        }
        match next.and_then(|directory| Level::of(directory, &here)) {
            Ok((level, entries)) => {
                for name in entries {
                    meet(Met::Entry(joined(&here, &name)));
                }
                levels.push(level);
                if let Some(far) = levels.len().checked_sub(HELD + 1) {
                    levels[far].directory = None;
                }
            }
            Err(errno) if levels.is_empty() => return Err(errno),
            // Removed in the meantime.
            Err(Errno::NOENT) => {}
            Err(errno) => meet(Met::Unreadable(here.clone(), errno)),
        }
        let name = loop {
            match levels.last_mut().map(|level| level.waiting.pop()) {
                None => return Ok(()),
                Some(Some(name)) => break name,
                Some(None) => drop(levels.pop()),
            }
        };
        next = enter(from, path, &here, &mut levels, &name);
        here.truncate(levels.last().map_or(0, |level| level.length));
        if !here.is_empty() {
            here.push(b'/');
        }
        here.extend(name);
    }
}

/// Opens a directory of the last level, which is opened again where it is no longer held open.
fn enter(
    from: &OwnedFd,
    path: &[u8],
    here: &[u8],
    levels: &mut [Level],
    name: &[u8],
) -> Result<OwnedFd, Errno> {
    if levels.last().is_some_and(|level| level.directory.is_none()) {
        // As many levels above it as may be held are opened with it; otherwise every step up would walk the
        // path again.
        let first = levels.len().saturating_sub(HELD);
        let mut above: Option<(usize, &OwnedFd)> = None;
        for level in levels.iter_mut().skip(first) {
            let opened = match above {
                None => open_far(from, &joined(path, &here[..level.length]), LIST)?,
                Some((length, directory)) => {
                    let name = &here[length..level.length];
                    open_far(directory, name.strip_prefix(b"/").unwrap_or(name), LIST)?
                }
            };
            above = Some((level.length, level.directory.insert(opened)));
        }
    }
    let last = levels.last().and_then(|level| level.directory.as_ref());
    open_far(last.ok_or(Errno::NOENT)?, name, LIST)
}

/// A name below a path that may be empty.
pub fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    match (path, name) {
        ([], name) => name.to_vec(),
        (path, []) => path.to_vec(),
        (path, name) => [path, b"/", name].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_left_half_written_is_replaced() {
        let name = format!("ibifs-beside-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let tree = Tree::create(&root).expect("a store");
        std::fs::write(root.join("col/text.new"), "hal").expect("written");
        for (now, content) in [(false, "first"), (true, "second")] {
            let written = tree.write_beside("col", "text", content.as_bytes(), now);
            assert_eq!(written, Ok(()));
            let path = root.join("col/text");
            assert_eq!(std::fs::read_to_string(path).expect("read"), content);
            assert!(!root.join("col/text.new").exists());
        }
        std::fs::remove_dir_all(&root).expect("it was ours");
    }

    /// A tree deeper than the directories held open, with a second directory at every level to return to.
    #[test]
    fn a_deep_tree_is_met_whole() {
        const DEPTH: usize = 3 * HELD;
        let name = format!("ibifs-walk-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let tree = Tree::create(&root).expect("a store");
        let mut expected = Vec::new();
        let mut way = String::new();
        for level in 0..DEPTH {
            for other in ["b", "d"] {
                let aside = format!("{way}{other}{level}");
                std::fs::create_dir_all(root.join("col").join(&aside)).expect("a directory");
                std::fs::write(root.join("col").join(&aside).join("f"), "").expect("a file");
                expected.push(format!("{aside}/f").into_bytes());
            }
            way.push_str("c/");
        }
        let mut found = Vec::new();
        let walked = tree.each_met_below("col", |met| match met {
            Met::Entry(path) => found.push(path),
            Met::Unreadable(path, errno) => panic!("{path:?}: {errno}"),
        });
        std::fs::remove_dir_all(&root).expect("it was ours");
        assert!(walked.is_ok());
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }
}
