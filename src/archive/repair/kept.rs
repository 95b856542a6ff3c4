//! The damaged files that are kept, in `damaged/<identifier>/<path>`, to be examined. Only the owner of the store reaches them; a
//! second one of a path gets a number.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use crate::archive::backup::{copy_content, copy_metadata};
use crate::archive::tree::{DAMAGED, Tree};
use crate::os::deep::split;
use crate::os::directory::{Directory, is_same_file};
use crate::os::opening::{again, link};

/// The most damaged files of one path.
const MOST: u32 = 10_000;

/// A damaged file that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    directory: Directory,
    name: Vec<u8>,
    /// Its path, relative to the store.
    pub(super) path: Vec<u8>,
    /// Whether it is the file itself, by another name, and not a copy of it.
    pub(super) is_linked: bool,
}

impl Kept {
    /// Keeps a file, found with O_PATH, durably.
    pub(super) fn keep(
        tree: &Tree,
        identifier: &str,
        path: &[u8],
        (file, stat): (&OwnedFd, &Stat),
    ) -> Result<Kept, Errno> {
        let below = [identifier.as_bytes(), path].join(&b'/');
        let (parents, last) = split(&below);
        let mut directory = Directory::reopened(tree.root())?;
        let all = std::iter::once(DAMAGED.as_bytes()).chain(parents.split(|byte| *byte == b'/'));
        for name in all {
            directory = match directory.directory(name) {
                Err(Errno::NOENT) => {
                    let made = directory.make_directory(name, 0o700)?;
                    directory.sync()?;
                    made
                }
                opened => opened?,
            };
        }
        for number in 0..MOST {
            let name = match number {
                0 => last.to_vec(),
                number => [last, format!(".{number}").as_bytes()].concat(),
            };
            let is_linked = match put(&directory, &name, file, stat) {
                // A run that was interrupted has kept it.
                Err(Errno::EXIST) => match directory.entry(&name) {
                    Ok(there) if is_same_file(there.stat(), stat) => true,
                    _ => continue,
                },
                put => put?,
            };
            directory.sync()?;
            let parents = [DAMAGED.as_bytes(), parents].join(&b'/');
            return Ok(Kept {
                path: [&parents, &name[..]].join(&b'/'),
                directory,
                name,
                is_linked,
            });
        }
        Err(Errno::EXIST)
    }

    /// Removes it again: the file was not replaced.
    pub(super) fn discard(self) {
        let _ = self.directory.remove_file(&self.name);
    }
}

/// Gives a file another name, or copies it where it can have none. Returns whether it is the same file.
fn put(directory: &Directory, name: &[u8], file: &OwnedFd, stat: &Stat) -> Result<bool, Errno> {
    if link(file.as_fd(), directory, name)? {
        return Ok(true);
    }
    let to = OwnedFd::from(directory.create(name, 0o600)?);
    let copied = again(file, OFlags::RDONLY).and_then(|from| {
        copy_content(&from, &to)?;
        copy_metadata(&from, stat, &to)?;
        rustix::fs::fsync(&to)
    });
    if let Err(errno) = copied {
        let _ = directory.remove_file(name);
        return Err(errno);
    }
    Ok(false)
}
