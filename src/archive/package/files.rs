//! The files of a package: opened without following a link, read in parts or as a whole.

use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::PackageError;
use crate::archive::tree::{Action, each_entry_of, joined, open_far};

/// The most bytes of a file that describes a package; a larger one is refused.
const LARGEST_TEXT: u64 = 1 << 28;

/// The flags with which a directory of a package is opened.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Reads a file of a package to its end, in parts.
pub(super) fn read_through(
    file: &mut impl Read,
    path: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<(), PackageError>,
) -> Result<(), PackageError> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => take(&buffer[..read])?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(PackageError::io(Action::Read, path)(errno));
            }
        }
    }
}

/// The paths below a directory, each with its name in front.
#[derive(Debug, Default)]
pub(super) struct Below {
    /// All entries that are not directories.
    pub(super) files: Vec<Vec<u8>>,
    /// The directories without entries.
    pub(super) empty: Vec<Vec<u8>>,
}

/// The entries below a directory.
pub(super) fn below(root: &OwnedFd, name: &str) -> Result<Below, PackageError> {
    let mut found = Below::default();
    let mut waiting = vec![name.as_bytes().to_vec()];
    while let Some(path) = waiting.pop() {
        let place = if path.is_empty() { b"." } else { &path[..] };
        let mut is_empty = true;
        let listed = open_far(root, place, DIRECTORY).and_then(|directory| {
            each_entry_of(&directory, |name, is_directory| {
                let below = joined(&path, name);
                is_empty = false;
                if is_directory {
                    waiting.push(below);
                } else {
                    found.files.push(below);
                }
            })
        });
        listed.map_err(PackageError::io(Action::List, place))?;
        if is_empty {
            found.empty.push(path);
        }
    }
    Ok(found)
}

/// The bytes of a file of a package, or of a link there.
pub(super) fn length(root: &OwnedFd, path: &[u8]) -> Result<u64, PackageError> {
    let found = open_far(root, path, OFlags::PATH | OFlags::NOFOLLOW).and_then(rustix::fs::fstat);
    let stat = found.map_err(PackageError::io(Action::Read, path))?;
    Ok(u64::try_from(stat.st_size).unwrap_or_default())
}

/// Opens a regular file of a package without following a link.
pub(super) fn open_file(root: &OwnedFd, path: &[u8]) -> Result<std::fs::File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_far(root, path, flags)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(Errno::INVAL),
    }
}

/// Reads a whole text of a package; None where it does not exist.
pub(super) fn read_small(root: &OwnedFd, path: &[u8]) -> Result<Option<Vec<u8>>, PackageError> {
    let failed = |errno| PackageError::io(Action::Read, path)(errno);
    let file = match open_file(root, path) {
        Ok(file) => file,
        Err(errno) if is_missing(errno) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    };
    let mut bytes = Vec::new();
    let read = (&file).take(LARGEST_TEXT + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    if bytes.len() as u64 > LARGEST_TEXT {
        Err(failed(Errno::FBIG))
    } else {
        Ok(Some(bytes))
    }
}

/// Whether an error means that a file does not exist.
pub(super) fn is_missing(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR)
}
