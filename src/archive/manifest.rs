//! The digest of an item's manifest, with which the seal in its sidecar is compared. It needs no index, and is the same for
//! every copy, whatever tool has made it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::archive::tree::{DeepEntry, SIDECAR, open_far};
use crate::formats::fixity::{self, Digest};
use crate::formats::item::Seal;
use crate::os::deep;
use crate::os::opening;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The bytes of a file that are read at a time.
const PART: usize = 1 << 18;

/// Whether a path in an item is that of its sidecar, of its metadata text, or of another file of ibifs, or of one that is about
/// to become one of these, as rsync names it.
#[must_use]
pub fn is_beside(path: &[u8]) -> bool {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    let first = first
        .strip_prefix(b".")
        .filter(|rest| rest.starts_with(b"."))
        .unwrap_or(first);
    first.starts_with(SIDECAR.as_bytes())
}

/// A file that cannot be in a manifest, and why.
type Flaw = (Vec<u8>, Message);

/// The kind of a file in a manifest, with its digest or target.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// The digest of a regular file.
    File(Digest),
    /// The target of a symbolic link.
    Link(&'a [u8]),
    /// Another kind of file.
    Other,
}

/// The manifest of an item: a line for each file, in the order of the paths, with its SHA-256 digest, two spaces and its
/// path, as in those of BagIt; that of a symbolic link with the digest of its target, and one of another kind of file with
/// zeros. Directories, times, modes, owners and what ibifs keeps beside the files do not count, so that a copy has the same.
#[derive(Debug, Default)]
pub struct SealedFiles(BTreeMap<Vec<u8>, (char, Digest)>);

impl SealedFiles {
    /// Adds a file, unless it lies beside the item's own.
    pub fn add(&mut self, path: &[u8], content: Content<'_>) {
        if !is_beside(path) {
            let line = match content {
                Content::File(digest) => (' ', digest),
                Content::Link(target) => ('@', Digest(Sha256::digest(target).into())),
                Content::Other => ('?', Digest([0; 32])),
            };
            self.0.insert(path.to_vec(), line);
        }
    }

    /// The digest of the manifest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = Sha256::new();
        for (path, (kind, digest)) in &self.0 {
            hasher.update(format!("{digest} {kind}"));
            hasher.update(fixity::encode(path));
            hasher.update(b"\n");
        }
        Digest(hasher.finalize().into())
    }

    /// Compares the files with the digest of a seal, if there is one.
    ///
    /// # Errors
    /// They are not those that were sealed.
    pub fn check(&self, seal: Option<&Seal>) -> Result<(), BrokenSeal> {
        match seal.and_then(|seal| seal.digest) {
            Some(sealed) if sealed != self.digest() => Err(BrokenSeal {
                found: self.digest(),
                sealed,
            }),
            _ => Ok(()),
        }
    }
}

/// The files of an item are not those that were sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenSeal {
    /// The digest of the files.
    pub found: Digest,
    /// That of the seal.
    pub sealed: Digest,
}

impl Localize for BrokenSeal {
    fn message(&self) -> Message {
        message!(
            "their digest is {found}, and that of the seal is {sealed}; restore the files from a copy, or let the owner of the item end the seal with 'ibifs unseal'",
            found = self.found,
            sealed = self.sealed
        )
    }
}

display_message!(BrokenSeal);

/// The files in an item's directory. `digest` gets each regular file, found with O_PATH.
pub fn sealed_files(
    directory: &OwnedFd,
    mut digest: impl FnMut(&[u8], &OwnedFd, &Stat) -> Result<Digest, Message>,
) -> Result<SealedFiles, Flaw> {
    let of = |errno: Errno| std::io::Error::from(errno).message();
    let (mut paths, mut unreadable) = (Vec::new(), None);
    deep::walk(directory, b"", |entry| match entry {
        DeepEntry::Entry(path) if is_beside(&path) => {}
        DeepEntry::Entry(path) => paths.push(path),
        DeepEntry::Unreadable(path, errno) => unreadable = Some((path, of(errno))),
    })
    .map_err(|errno| (Vec::new(), of(errno)))?;
    if let Some(flaw) = unreadable {
        return Err(flaw);
    }
    let mut files = SealedFiles::default();
    for path in paths {
        let found = open_far(directory, &path, OFlags::PATH | OFlags::NOFOLLOW);
        let read = found.map_err(of).and_then(|found| {
            let stat = rustix::fs::fstat(&found).map_err(of)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {
                    files.add(&path, Content::File(digest(&path, &found, &stat)?));
                }
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&found, "", Vec::new()).map_err(of)?;
                    files.add(&path, Content::Link(target.as_bytes()));
                }
                _ => files.add(&path, Content::Other),
            }
            Ok(())
        });
        if let Err(why) = read {
            return Err((path, why));
        }
    }
    Ok(files)
}

/// The digest of a regular file that was found with O_PATH, for [`sealed_files`].
pub fn read_digest(found: &OwnedFd) -> Result<Digest, Message> {
    digest_of(found).map_err(|errno| std::io::Error::from(errno).message())
}

/// The digest of a regular file that was found with O_PATH. A lease that another program has on it is not waited for.
fn digest_of(found: &OwnedFd) -> Result<Digest, Errno> {
    let file = opening::again(found, OFlags::RDONLY | OFlags::NONBLOCK)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; PART]);
    loop {
        match rustix::io::read(&file, &mut buffer) {
            Ok(0) => return Ok(Digest(hasher.finalize().into())),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_the_files() {
        for (path, expected) in [
            (".ibi", true),
            (".ibi.metadata", true),
            ("..ibi.AbCd12", true),
            (".ibi.d/x", true),
            ("doc/.ibi", false),
            ("ibi", false),
            ("...ibi", false),
            (".git/config", false),
            ("", false),
        ] {
            assert_eq!(is_beside(path.as_bytes()), expected, "{path}");
        }
    }
}
