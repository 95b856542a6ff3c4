//! The recorded digests of the pieces of long files, for readers that fetch and compare one piece at a time.
//!
//! A file `<digest>.pieces` beside the manifest of an item belongs to all its files whose content has that digest: a
//! piece that was damaged is found by it as the whole file is by the manifest. Each line has 64 hexadecimal digits, so
//! that the line of any piece is found without reading the others.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::finding::ScrubError;
use super::records::DIRECTORY;
use crate::archive::tree::{Action, Tree, each_entry_of};
use crate::formats::fixity::{Digest, Manifest};
use crate::formats::inventory::CHUNK;
use crate::os::writing::Durability;

/// The end of the name of such a file, after the digest.
const ENDING: &str = ".pieces";
/// The length of a line in bytes: 64 digits, and the line feed.
const LINE: u64 = 65;

fn name_of(digest: &Digest) -> String {
    format!("{digest}{ENDING}")
}

fn digest_in(name: &[u8]) -> Option<Digest> {
    Digest::parse(name.strip_suffix(ENDING.as_bytes())?)
}

fn open_to_list(tree: &Tree, directory: &str) -> Result<OwnedFd, Errno> {
    tree.open_far(directory.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)
}

/// The digests of the contents of an item, by its place, whose pieces have recorded digests.
pub fn contents_with_pieces(tree: &Tree, item: &str) -> HashSet<Digest> {
    let directory = open_to_list(tree, &format!("{DIRECTORY}/{item}"));
    let mut found = HashSet::new();
    if let Ok(directory) = directory {
        // A user who cannot read all of them has fewer, and fetches whole files.
        let _ = each_entry_of(&directory, |name, _| found.extend(digest_in(name)));
    }
    found
}

/// The digests of at most `most` pieces, from number `first` on, of a content of this size in an item. None where they
/// are not recorded.
pub fn recorded_pieces(
    tree: &Tree,
    item: &str,
    (digest, size): (&Digest, u64),
    first: u64,
    most: u64,
) -> Option<Vec<Digest>> {
    let path = format!("{DIRECTORY}/{item}/{}", name_of(digest));
    let file = tree.open_to_read(path.as_bytes()).ok()?;
    let count = size.div_ceil(CHUNK);
    // One that a power cut has left short.
    if file.metadata().ok()?.len() != count * LINE {
        return None;
    }
    let wanted = most.min(count.checked_sub(first)?);
    let mut text = vec![0; usize::try_from(wanted * LINE).ok()?];
    file.read_exact_at(&mut text, first * LINE).ok()?;
    let lines = text.chunks_exact(LINE as usize);
    lines
        .map(|line| Digest::parse(line.strip_suffix(b"\n")?))
        .collect()
}

/// Writes the digests of pieces of these contents, where the directory does not have them.
pub(super) fn write(
    tree: &Tree,
    directory: &str,
    pieces: &HashMap<Digest, Vec<Digest>>,
    durability: Durability,
) -> Result<(), ScrubError> {
    for (digest, pieces) in pieces {
        let name = name_of(digest);
        let text: String = pieces.iter().map(|piece| format!("{piece}\n")).collect();
        let known = tree.read_whole(&format!("{directory}/{name}"))?;
        if known.as_deref() != Some(text.as_bytes()) {
            tree.write_beside(directory, &name, text.as_bytes(), durability)?;
        }
    }
    Ok(())
}

/// Removes what is recorded of contents that no file of the manifest has.
pub(super) fn remove_others(
    tree: &Tree,
    directory: &str,
    manifest: &Manifest,
) -> Result<(), ScrubError> {
    let failed = |action| move |errno| ScrubError::from(tree.error(action, directory, errno));
    let opened = open_to_list(tree, directory).map_err(failed(Action::List))?;
    let kept: HashSet<&Digest> = manifest.values().collect();
    let mut others = Vec::new();
    each_entry_of(&opened, |name, _| {
        if digest_in(name).is_some_and(|digest| !kept.contains(&digest)) {
            others.push(name.to_vec());
        }
    })
    .map_err(failed(Action::List))?;
    for name in others {
        match rustix::fs::unlinkat(&opened, OsStr::from_bytes(&name), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(Action::Remove)(errno)),
        }
    }
    Ok(())
}
