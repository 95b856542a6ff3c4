//! Paths of any length and directories of any depth.
//!
//! No call accepts a path of more than 4,095 bytes: it is walked in pieces.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::entries::each_entry_of;
use super::opening;

/// The longest path that is passed to the system in one call.
const PIECE: usize = 4000;

/// The number of directories that a walk holds open, the deepest ones.
pub const HELD: usize = 64;

/// The flags with which a directory is opened for listing it.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A directory between the start of a walk and its position.
struct OpenLevel {
    /// The number of bytes of the path that lead here.
    length: usize,
    directory: Option<OwnedFd>,
    /// The subdirectories that are still to be visited.
    waiting: Vec<Vec<u8>>,
}

impl OpenLevel {
    /// Lists a directory: returns its level, and the names in it that are not directories.
    fn of(directory: OwnedFd, here: &[u8]) -> Result<(OpenLevel, Vec<Vec<u8>>), Errno> {
        let (mut waiting, mut entries) = (Vec::new(), Vec::new());
        each_entry_of(&directory, |name, is_directory| {
            if is_directory {
                waiting.push(name.to_vec());
            } else {
                entries.push(name.to_vec());
            }
        })?;
        let level = OpenLevel {
            length: here.len(),
            directory: Some(directory),
            waiting,
        };
        Ok((level, entries))
    }
}

/// An entry met below a directory.
#[derive(Debug)]
pub enum DeepEntry {
    /// A path that is not a directory.
    Entry(Vec<u8>),
    /// A directory whose names cannot be read, and why.
    Unreadable(Vec<u8>, Errno),
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

/// Calls `visit` with all that lies below the directory `path` of an open directory. The paths are relative to `path`.
///
/// Each directory is opened from the one above it: with whole paths, the time would grow with the square of
/// the depth.
pub fn walk(from: &OwnedFd, path: &[u8], visit: impl FnMut(DeepEntry)) -> Result<(), Errno> {
    walk_noting(from, path, visit, |_, _| ())
}

/// Like [`walk`]; `note` gets every directory before it is listed, with its path.
pub fn walk_noting(
    from: &OwnedFd,
    path: &[u8],
    mut visit: impl FnMut(DeepEntry),
    mut note: impl FnMut(&OwnedFd, &[u8]),
) -> Result<(), Errno> {
    let mut here = Vec::new();
    let mut levels: Vec<OpenLevel> = Vec::new();
    let mut next = open_far(from, path, LIST);
    loop {
        if let Ok(directory) = &next {
            note(directory, &here);
        }
        match next.and_then(|directory| OpenLevel::of(directory, &here)) {
            Ok((level, entries)) => {
                for name in entries {
                    visit(DeepEntry::Entry(joined(&here, &name)));
                }
                levels.push(level);
                if let Some(far) = levels.len().checked_sub(HELD + 1) {
                    levels[far].directory = None;
                }
            }
            Err(errno) if levels.is_empty() => return Err(errno),
            // Removed in the meantime.
            Err(Errno::NOENT) => {}
            Err(errno) => visit(DeepEntry::Unreadable(here.clone(), errno)),
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
    levels: &mut [OpenLevel],
    name: &[u8],
) -> Result<OwnedFd, Errno> {
    open_far(held(from, path, here, levels)?, name, LIST)
}

/// The directory of the last level, which is opened again where it is no longer held open.
fn held<'a>(
    from: &OwnedFd,
    path: &[u8],
    here: &[u8],
    levels: &'a mut [OpenLevel],
) -> Result<&'a OwnedFd, Errno> {
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
    last.ok_or(Errno::NOENT)
}

/// Removes everything below a directory, on its own filesystem and without following a link. It goes on where something
/// cannot be removed, and returns the first reason.
pub fn clear(directory: &OwnedFd) -> Result<(), Errno> {
    let mut failure = None;
    let mut note = |errno| match errno {
        // Removed in the meantime.
        Errno::NOENT => {}
        errno => {
            failure.get_or_insert(errno);
        }
    };
    let mut here = Vec::new();
    let mut levels: Vec<OpenLevel> = Vec::new();
    let mut next = open_far(directory, b"", LIST);
    loop {
        match next.and_then(|opened| OpenLevel::of(opened, &here)) {
            Ok((level, entries)) => {
                if let Some(opened) = &level.directory {
                    for name in entries {
                        rustix::fs::unlinkat(opened, &name[..], AtFlags::empty())
                            .unwrap_or_else(&mut note);
                    }
                }
                levels.push(level);
                if let Some(far) = levels.len().checked_sub(HELD + 1) {
                    levels[far].directory = None;
                }
            }
            // An empty directory can be removed without being listed.
            Err(errno) => {
                let removed = remove_last(directory, &mut here, &mut levels);
                removed.or(Err(errno)).unwrap_or_else(&mut note);
            }
        }
        let name = loop {
            let Some(level) = levels.last_mut() else {
                return failure.map_or(Ok(()), Err);
            };
            if let Some(name) = level.waiting.pop() {
                break name;
            }
            here.truncate(level.length);
            levels.pop();
            if !levels.is_empty() {
                remove_last(directory, &mut here, &mut levels).unwrap_or_else(&mut note);
            }
        };
        next = held(directory, b"", &here, &mut levels).and_then(|above| {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            opening::beneath(above, &name[..], LIST, resolve)
        });
        here.truncate(levels.last().map_or(0, |level| level.length));
        here = joined(&here, &name);
    }
}

/// Removes the empty directory at the end of the path `here`, which lies in the last level; its name is cut off.
fn remove_last(from: &OwnedFd, here: &mut Vec<u8>, levels: &mut [OpenLevel]) -> Result<(), Errno> {
    let above = levels.last().map_or(0, |level| level.length);
    let name = here.split_off(above);
    let name = name.strip_prefix(b"/").unwrap_or(&name);
    let above = held(from, b"", here, levels)?;
    rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)
}

/// A name below a path that may be empty.
pub fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    match (path, name) {
        ([], name) => name.to_vec(),
        (path, []) => path.to_vec(),
        (path, name) => [path, b"/", name].concat(),
    }
}

/// The directory of a path, which is empty at the top, and the last component: what [`joined`] puts together.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (b"", path),
    }
}
