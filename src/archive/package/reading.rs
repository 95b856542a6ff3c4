//! Reads an item: copies all of it into its package, and describes what a package cannot represent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;
use sha2::Digest as _;

use super::naming::{MTREE, payload_path};
use super::writing::PackageWriter;
use super::{PackageError, Problem};
use crate::archive::Archive;
use crate::archive::manifest::{Content, SealedFiles};
use crate::archive::scrub;
use crate::archive::store::Item;
use crate::archive::tree::{Place, SIDECAR, Tree, each_entry_of, entry_stat, joined};
use crate::formats::entry::{Attribute, EntryStat};
use crate::formats::fixity::{self, Digest, Manifest, Notes, Verdict, Written};
use crate::formats::hex::Hex;
use crate::formats::item::Seal;
use crate::formats::mtree::{self, MtreeEntry, MtreeKind};

/// The number of bytes that are copied at once.
const BLOCK: usize = 1 << 20;

/// The number of times that a file is read that changes meanwhile.
const TRIES: usize = 3;

/// Digests of a file's content.
#[derive(Clone, Debug)]
pub(super) struct Digests {
    pub(super) sha256: Digest,
    pub(super) sha512: String,
    /// Its length in bytes.
    pub(super) length: u64,
}

/// Content that a package needs once only, and what it has of it already.
#[derive(Debug, Default)]
pub(super) struct HeldContent {
    /// Digests by SHA-512.
    pub(super) digests: BTreeSet<String>,
    /// The lengths of files with these digests.
    pub(super) lengths: BTreeSet<u64>,
}

/// An item copied into a package.
#[derive(Debug, Default)]
pub(super) struct StagedFiles {
    /// The files, by their paths in the package.
    pub(super) files: BTreeMap<String, Digests>,
    /// The total number of bytes of the files in `data/`.
    pub(super) bytes: u64,
    /// The path of a file that was written, by its digest by SHA-512.
    pub(super) written: BTreeMap<String, String>,
}

impl StagedFiles {
    pub(super) fn add(&mut self, path: String, digests: Digests, is_written: bool) {
        if is_written {
            self.written.insert(digests.sha512.clone(), path.clone());
        }
        self.files.insert(path, digests);
    }
}

/// Copies an item into a package, without content that `held` says is not needed again. `count` receives the bytes
/// read, and 0 at the start of each file.
pub(super) fn stage(
    archive: &Archive,
    item: &Item,
    writer: &mut PackageWriter<'_>,
    held: Option<HeldContent>,
    count: &mut dyn FnMut(u64),
) -> Result<StagedFiles, PackageError> {
    let place = Place::of(&item.names);
    let tree = archive.tree();
    let recorded = |name: &str| {
        let path = format!("{}/{}/{name}", scrub::DIRECTORY, place.as_str());
        tree.read_whole(&path)
    };
    let mut stager = Stager {
        tree,
        item: place.as_str(),
        writer,
        held,
        manifest: fixity::parse_manifest(&recorded(fixity::MANIFEST)?.unwrap_or_default()).0,
        notes: fixity::parse_notes(&recorded(fixity::WRITTEN)?.unwrap_or_default()),
        staged: StagedFiles::default(),
        entries: Vec::new(),
        count,
        buffer: vec![0; BLOCK],
    };
    stager.walk()?;
    stager.remembered_sidecar(archive, item)?;
    stager
        .entries
        .sort_by(|one, other| one.path.cmp(&other.path));
    let staged = &stager.staged.files;
    check_seal(&stager.entries, item.life.sealed.as_ref(), |path, _| {
        let digests = staged.get(&payload_path(path));
        Ok(digests.map(|digests| digests.sha256))
    })?;
    stager.several_names();
    let text = mtree::text(&format!("ibi {}", item.names), &stager.entries);
    stager.writer.whole(MTREE, &text)?;
    let digests = digests(&text);
    stager.staged.add(MTREE.to_owned(), digests, true);
    Ok(stager.staged)
}

/// Compares the entries of a sealed item with the digest of its seal. `digest` gets the path of a regular file, and that of its
/// content in the package.
pub(super) fn check_seal(
    entries: &[MtreeEntry],
    seal: Option<&Seal>,
    mut digest: impl FnMut(&[u8], &[u8]) -> Result<Option<Digest>, PackageError>,
) -> Result<(), PackageError> {
    if seal.is_none_or(|seal| seal.digest.is_none()) {
        return Ok(());
    }
    let mut files = SealedFiles::default();
    for entry in entries {
        let content = match &entry.kind {
            MtreeKind::Directory => continue,
            MtreeKind::Link(target) => Content::Link(target),
            MtreeKind::Fifo => Content::Other,
            MtreeKind::File { contents, .. } => match digest(&entry.path, contents)? {
                Some(digest) => Content::File(digest),
                None => continue,
            },
        };
        files.add(&entry.path, content);
    }
    files.check(seal).map_err(PackageError::BrokenSeal)
}

/// A file of an item that is in its package.
struct CopiedFile {
    entry: MtreeEntry,
    digests: Digests,
    /// Whether it was written, and not held already.
    is_written: bool,
}

struct Stager<'a, 'w> {
    tree: &'a Tree,
    item: &'a str,
    writer: &'a mut PackageWriter<'w>,
    held: Option<HeldContent>,
    manifest: Manifest,
    notes: Notes,
    staged: StagedFiles,
    entries: Vec<MtreeEntry>,
    count: &'a mut dyn FnMut(u64),
    buffer: Vec<u8>,
}

impl Stager<'_, '_> {
    fn walk(&mut self) -> Result<(), PackageError> {
        let mut waiting = vec![Vec::new()];
        while let Some(path) = waiting.pop() {
            let unreadable = |errno| PackageError::file(&path, Problem::Unreadable(errno));
            let full = joined(self.item.as_bytes(), &path);
            let directory = self
                .tree
                .open_far(&full, OFlags::RDONLY | OFlags::DIRECTORY)
                .map_err(unreadable)?;
            let stat = rustix::fs::fstat(&directory).map_err(unreadable)?;
            let mut entry = entry(path.clone(), MtreeKind::Directory, &stat);
            entry.attributes = attributes(&directory).map_err(unreadable)?;
            self.entries.push(entry);
            let mut names = Vec::new();
            each_entry_of(&directory, |name, _| names.push(name.to_vec())).map_err(unreadable)?;
            for name in names {
                let below = joined(&path, &name);
                if self.add(&directory, &name, &below)? {
                    waiting.push(below);
                }
            }
        }
        Ok(())
    }

    /// Adds an entry of a directory; returns whether it is a directory itself.
    fn add(&mut self, above: &OwnedFd, name: &[u8], path: &[u8]) -> Result<bool, PackageError> {
        let unreadable = |errno| PackageError::file(path, Problem::Unreadable(errno));
        let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = match stat {
            // Removed meanwhile.
            Err(Errno::NOENT) => return Ok(false),
            stat => stat.map_err(unreadable)?,
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Ok(true),
            FileType::RegularFile => {
                self.file(path)?;
                return Ok(false);
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(above, name, Vec::new());
                MtreeKind::Link(target.map_err(unreadable)?.into_bytes())
            }
            FileType::Fifo => MtreeKind::Fifo,
            _ => return Err(PackageError::file(path, Problem::NoFile)),
        };
        self.entries.push(entry(path.to_vec(), kind, &stat));
        Ok(false)
    }

    fn file(&mut self, path: &[u8]) -> Result<(), PackageError> {
        let payload = payload_path(path);
        (self.count)(0);
        for _ in 0..TRIES {
            let Some(mut file) = self.copy(path, &payload)? else {
                continue;
            };
            let entry = &mut file.entry;
            let written = Written {
                size: file.digests.length,
                seconds: entry.stat.modified.0,
                nanoseconds: entry.stat.modified.1,
            };
            let (known, note) = (self.manifest.get(path), self.notes.get(path));
            if fixity::judge(known, note, &file.digests.sha256, &written) == Verdict::Damaged {
                return Err(PackageError::file(path, Problem::Damaged));
            }
            self.staged.bytes += written.size;
            entry.path = path.to_vec();
            self.entries.push(file.entry);
            self.staged.add(payload, file.digests, file.is_written);
            return Ok(());
        }
        Err(PackageError::file(path, Problem::Unsteady))
    }

    /// None where the file was written during the copy.
    fn copy(&mut self, path: &[u8], payload: &str) -> Result<Option<CopiedFile>, PackageError> {
        let unreadable = |errno| PackageError::file(path, Problem::Unreadable(errno));
        let full = joined(self.item.as_bytes(), path);
        let mut from = self.tree.open_to_read(&full).map_err(unreadable)?;
        let before = rustix::fs::fstat(&from).map_err(unreadable)?;
        if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let length = u64::try_from(before.st_size).unwrap_or_default();
        let mut is_written = true;
        self.writer.begin(payload)?;
        let mut digests = if let Some(mut shared) = self.writer.share(&from) {
            self.digest(path, &mut shared, None)?
        } else if self.may_hold(length) {
            let digests = self.digest(path, &mut from, None)?;
            is_written = !self.holds(&digests);
            if is_written {
                from.rewind().map_err(|error| unreadable(errno(&error)))?;
                self.digest(path, &mut from, Some(payload))?
            } else {
                self.writer.abandon(payload)?;
                digests
            }
        } else {
            self.digest(path, &mut from, Some(payload))?
        };
        let after = rustix::fs::fstat(&from).map_err(unreadable)?;
        let marks = |stat: &Stat| {
            let modified = (stat.st_mtime, stat.st_mtime_nsec);
            (stat.st_size, modified, stat.st_ctime, stat.st_ctime_nsec)
        };
        if marks(&before) != marks(&after) {
            if is_written {
                self.writer.abandon(payload)?;
            }
            return Ok(None);
        }
        digests.length = u64::try_from(after.st_size).unwrap_or_default();
        let kind = MtreeKind::File {
            contents: payload.as_bytes().to_vec(),
            size: digests.length,
        };
        let mut entry = entry(path.to_vec(), kind, &after);
        entry.attributes = attributes(&from).map_err(unreadable)?;
        entry.inode = (after.st_nlink > 1).then_some(after.st_ino);
        if let Some(held) = &mut self.held {
            // A file so long that it is worth reading one of the same length before it is copied.
            if digests.length >= BLOCK as u64 {
                held.lengths.insert(digests.length);
            }
            held.digests.insert(digests.sha512.clone());
        }
        Ok(Some(CopiedFile {
            entry,
            digests,
            is_written,
        }))
    }

    /// Whether the package may have the content of a file of this length.
    fn may_hold(&self, length: u64) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| held.lengths.contains(&length))
    }

    fn holds(&self, digests: &Digests) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| held.digests.contains(&digests.sha512))
    }

    /// Reads a file to its end, and writes it to the file of the package that was begun, if that is named.
    fn digest(
        &mut self,
        path: &[u8],
        from: &mut File,
        payload: Option<&str>,
    ) -> Result<Digests, PackageError> {
        let (mut sha256, mut sha512) = (sha2::Sha256::new(), sha2::Sha512::new());
        let mut length = 0;
        loop {
            let count = match from.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(PackageError::file(path, Problem::Unreadable(errno(&error))));
                }
            };
            let bytes = &self.buffer[..count];
            sha256.update(bytes);
            sha512.update(bytes);
            if let Some(payload) = payload {
                self.writer.write(payload, bytes)?;
            }
            length += count as u64;
            (self.count)(count as u64);
        }
        Ok(Digests {
            sha256: Digest(sha256.finalize().into()),
            sha512: Hex(&sha512.finalize()).to_string(),
            length,
        })
    }

    /// Adds the sidecar from the index, if the item's directory has lost it.
    fn remembered_sidecar(&mut self, archive: &Archive, item: &Item) -> Result<(), PackageError> {
        let is_there = self
            .entries
            .iter()
            .any(|entry| entry.path == SIDECAR.as_bytes());
        let Some(bytes) = archive.store().sidecar(item.id)?.filter(|_| !is_there) else {
            return Ok(());
        };
        let payload = payload_path(SIDECAR.as_bytes());
        self.writer.whole(&payload, &bytes)?;
        let root = self.entries.iter().find(|entry| entry.path.is_empty());
        if let Some(root) = root.cloned() {
            self.entries.push(MtreeEntry {
                path: SIDECAR.as_bytes().to_vec(),
                kind: MtreeKind::File {
                    contents: payload.as_bytes().to_vec(),
                    size: bytes.len() as u64,
                },
                stat: EntryStat {
                    mode: 0o644,
                    ..root.stat
                },
                attributes: Vec::new(),
                ..root
            });
        }
        self.staged.bytes += bytes.len() as u64;
        self.staged.add(payload, digests(&bytes), true);
        Ok(())
    }

    /// Numbers the files that have several names in the item, in their order. Inode numbers of the filesystem
    /// would make each export differ from the last.
    fn several_names(&mut self) {
        let mut counts: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        for entry in &self.entries {
            if let Some(inode) = entry.inode {
                let next = counts.len() as u64 + 1;
                counts.entry(inode).or_insert((next, 0)).1 += 1;
            }
        }
        for entry in &mut self.entries {
            let known = entry.inode.and_then(|inode| counts.get(&inode));
            entry.inode = known
                .filter(|(_, count)| *count > 1)
                .map(|(number, _)| *number);
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

pub(super) fn entry(path: Vec<u8>, kind: MtreeKind, stat: &Stat) -> MtreeEntry {
    MtreeEntry {
        path,
        kind,
        stat: entry_stat(stat),
        uid: stat.st_uid,
        gid: stat.st_gid,
        inode: None,
        attributes: Vec::new(),
    }
}

/// The digests of bytes in memory.
pub(super) fn digests(bytes: &[u8]) -> Digests {
    Digests {
        sha256: Digest(sha2::Sha256::digest(bytes).into()),
        sha512: Hex(&sha2::Sha512::digest(bytes)).to_string(),
        length: bytes.len() as u64,
    }
}

/// The users' own extended attributes and the access control lists; attributes of the system are omitted.
fn attributes(file: impl std::os::fd::AsFd) -> Result<Vec<Attribute>, Errno> {
    let mut buffer = vec![0; 65_536];
    let count = match rustix::fs::flistxattr(file.as_fd(), &mut buffer[..]) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        count => count?,
    };
    buffer.truncate(count);
    let mut attributes = Vec::new();
    let names = buffer.split(|byte| *byte == 0);
    for name in names.filter(|name| is_portable(name)) {
        let mut value = vec![0; 65_536];
        match rustix::fs::fgetxattr(file.as_fd(), name, &mut value[..]) {
            Ok(count) => {
                value.truncate(count);
                attributes.push((name.to_vec(), value));
            }
            // Removed meanwhile.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    attributes.sort();
    Ok(attributes)
}

/// Whether an extended attribute is one that a package keeps.
pub(super) fn is_portable(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_")
}
