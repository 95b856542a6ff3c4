//! Reads packages: the content is compared with the package's own description before any of it is used.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use sha2::Digest as _;

use super::digests::{Contents, differing};
use super::files::{DIRECTORY, open_file, read_small, read_through};
use super::identity::PackageIdentity;
use super::naming::{MTREE, PAYLOAD};
use super::reading::{check_seal, entry};
use super::rules::Fault;
use super::unpack::holds_bag;
use super::{PackageError, Problem, bagit, object, ocfl, validity};
use crate::archive::tree::{Action, SIDECAR, joined, open_far};
use crate::formats::bag;
use crate::formats::entry::stays_below;
use crate::formats::fixity::Digest;
use crate::formats::hex::Hex;
use crate::formats::history::earlier::MOST_EARLIER;
use crate::formats::item::{Names, Sidecar};
use crate::formats::mtree::{self, MtreeEntry, MtreeKind};
use crate::formats::premis;
use crate::os::directory::{Directory, is_own};
use crate::os::opening;
use ibi::Ibi;
use ibi::pairs::Pairs;

/// A package that has been read and verified.
#[derive(Debug)]
pub struct Package {
    pub(super) root: OwnedFd,
    pub(super) entries: Vec<MtreeEntry>,
    /// By the paths that the entries use.
    pub(super) contents: Contents,
    names: Option<Names>,
    /// The tags of a bag's metadata; of an object, its identifier.
    pub(super) info: Vec<(String, String)>,
    warnings: Vec<Fault>,
    pub(super) kind: Kind,
}

impl Package {
    /// Returns what distinguishes the package from others.
    pub fn identity(&self) -> PackageIdentity {
        let mut hasher = sha2::Sha256::new();
        let mut is_any = false;
        for (path, content) in self
            .contents
            .iter()
            .filter(|(path, _)| self.kind == Kind::Object || path.starts_with(b"data/"))
        {
            let digest = content.digests.first();
            let digest = digest.map_or("", |(_, digest)| digest).to_ascii_lowercase();
            hasher.update([path, &b"\0"[..], digest.as_bytes(), b"\n"].concat());
            is_any = true;
        }
        let identifiers = self
            .info
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(bag::IDENTIFIER));
        PackageIdentity {
            digest: is_any.then(|| Hex(&hasher.finalize()).to_string()),
            identifiers: identifiers.map(|(_, value)| value.clone()).collect(),
        }
    }

    /// The rules that a valid package should keep and does not.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }

    /// The names of the item; None if the package does not name any.
    pub fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// The events in its record for preservation systems; none if it has no such record, or one that is too long.
    pub fn events(&self) -> Vec<String> {
        let path = premis::PREMIS.as_bytes();
        // A bag need not list it with its digest.
        let content = self.contents.get(path);
        let path = content.map_or(path, |content| &content.path);
        let file = open_file(&self.root, path).ok();
        let mut text = String::new();
        let read = file.map(|file| file.take(LONGEST_RECORD + 1).read_to_string(&mut text));
        match read {
            Some(Ok(length)) if length as u64 <= LONGEST_RECORD => {
                premis::events_in(&text, MOST_EARLIER)
            }
            _ => Vec::new(),
        }
    }

    /// Whether an item's own directory has an entry of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut paths = self.entries.iter().map(|entry| entry.path.as_slice());
        paths.any(|path| {
            let rest = path.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }
}

/// The longest record of events that is read, in bytes.
const LONGEST_RECORD: u64 = 32 << 20;

/// Files that systems make in each directory.
const SYSTEM_FILES: [&[u8]; 2] = [b".DS_Store", b"Thumbs.db"];

/// The packages at and below an open directory, by their paths below it, sorted: bags, OCFL objects, and zip files that
/// hold a bag. The inside of a package is not searched, and no symbolic link is followed. Errors name the directory
/// `source`.
///
/// # Errors
/// The directory cannot be read, or holds no package.
pub fn find(root: &OwnedFd, source: &Path) -> Result<Vec<PathBuf>, PackageError> {
    find_with_others(root, source).map(|(found, _)| found)
}

/// The same, and the files that are in no package and do not belong to a storage root.
///
/// # Errors
/// As above.
pub fn find_with_others(
    root: &OwnedFd,
    source: &Path,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), PackageError> {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let shown = source.join(OsStr::from_bytes(&path));
        let failed = |errno| PackageError::io(Action::Open, shown.as_os_str().as_bytes())(errno);
        let listed = open_far(root, &path, DIRECTORY).and_then(|directory| {
            let directory = Directory::from(directory);
            Ok((directory.entries()?, directory))
        });
        let (entries, directory) = listed.map_err(failed)?;
        let descriptor = directory.descriptor();
        let kind = kind_of(descriptor).map_err(failed)?;
        if kind.is_some() {
            found.push(PathBuf::from(OsString::from_vec(path)));
            continue;
        }
        let is_root = entries
            .iter()
            .any(|(name, _)| name.starts_with(b"0=ocfl_1."));
        for (name, kind) in entries {
            let is_extension = name == b"extensions" && directory.entry(ocfl::ROOT).is_ok();
            let is_staging = name == bagit::STAGING.as_bytes();
            let below = joined(&path, &name);
            match kind {
                FileType::Directory if !is_extension && !is_staging => waiting.push(below),
                FileType::RegularFile
                    if name.ends_with(b".zip") && directory.file(&name).is_ok_and(holds_bag) =>
                {
                    found.push(PathBuf::from(OsString::from_vec(below)));
                }
                FileType::Directory => {}
                _ if is_root || SYSTEM_FILES.contains(&&name[..]) => {}
                _ => others.push(PathBuf::from(OsString::from_vec(below))),
            }
        }
    }
    found.sort();
    if found.is_empty() {
        Err(PackageError::Nothing {
            path: source.to_owned(),
        })
    } else {
        Ok((found, others))
    }
}

/// Whether a file or directory is another user's, or others may write to it.
pub(super) fn is_of_others(file: impl AsFd) -> bool {
    rustix::fs::fstat(file).map_or(true, |stat| !is_own(&stat) || stat.st_mode & 0o022 != 0)
}

/// A package as it was found.
#[derive(Debug)]
pub enum Found {
    /// A bag, or an OCFL object.
    Directory(OwnedFd),
    /// Perhaps a zip or tar file.
    File(File),
}

impl Found {
    /// Whether another user than the caller may have written it.
    pub fn is_of_others(&self) -> bool {
        match self {
            Found::Directory(directory) => is_of_others(directory),
            Found::File(file) => is_of_others(file),
        }
    }

    /// Opens what [`find`] has found below a directory, or another directory or regular file there. No symbolic link is
    /// followed: others may write there meanwhile.
    ///
    /// # Errors
    /// It is something else by now, or cannot be opened.
    pub fn below(root: &OwnedFd, path: &Path) -> Result<Found, PackageError> {
        let path = path.as_os_str().as_bytes();
        match open_far(root, path, DIRECTORY) {
            Ok(directory) => Ok(Found::Directory(directory)),
            Err(Errno::NOTDIR) => open_file(root, path).map(Found::File),
            Err(errno) => Err(errno),
        }
        .map_err(PackageError::io(Action::Open, path))
    }

    /// Opens the regular file that a user named.
    ///
    /// # Errors
    /// It is something else, or cannot be opened.
    pub fn named(path: &Path) -> Result<Found, PackageError> {
        let opened = opening::regular(path, OFlags::empty()).map(Found::File);
        opened.map_err(PackageError::io(Action::Open, path.as_os_str().as_bytes()))
    }
}

/// The formats of packages, as they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bag,
    Object,
}

/// The format of a package, which may be broken; None if a directory is not one.
pub(super) fn kind_of(root: impl AsFd) -> Result<Option<Kind>, Errno> {
    let names = Directory::reopened(root)?.entries()?;
    let is_kind = |name: &str, kind| {
        names
            .iter()
            .any(|(it, found)| it == name.as_bytes() && *found == kind)
    };
    let is_bag = || {
        is_kind(PAYLOAD, FileType::Directory)
            && names.iter().any(|(name, _)| super::bag::is_manifest(name))
    };
    Ok(
        if is_kind(bag::DECLARATION, FileType::RegularFile) || is_bag() {
            Some(Kind::Bag)
        } else {
            validity::is_object(&names).then_some(Kind::Object)
        },
    )
}

/// Opens a bag, or the last version of an object, and compares all digests.
///
/// # Errors
/// The package is not complete, or its descriptions are not valid.
pub fn open(root: OwnedFd, count: &mut dyn FnMut(u64)) -> Result<Package, PackageError> {
    let kind = kind_of(&root).map_err(PackageError::io(Action::List, "."))?;
    let (contents, info, warnings) = match kind {
        Some(Kind::Bag) => {
            let bag = super::bag::open(&root)?;
            for content in bag.contents.values() {
                if differing(&root, content, count)?.is_some() {
                    return Err(PackageError::file(&content.path, Problem::Differs));
                }
            }
            bag.check_sum(&root)?;
            (bag.contents, bag.info, Vec::new())
        }
        Some(Kind::Object) => {
            let object = validity::open(&root, count)?;
            let info = vec![(bag::IDENTIFIER.to_owned(), object.id)];
            (object.contents, info, object.warnings)
        }
        None => return Err(PackageError::Undeclared),
    };
    let entries = entries(&root, &contents, kind)?;
    let named = info
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(bag::IDENTIFIER));
    let named: Vec<&str> = named.map(|(_, value)| value.as_str()).collect();
    let sidecar = sidecar(&root, &entries, &contents)?;
    let seal = sidecar.as_ref().and_then(|it| it.life().sealed.as_ref());
    check_seal(&entries, seal, |_, content| {
        let content = contents.get(content);
        let digest = content.map(|content| sha256(&root, &content.path, count));
        digest.transpose()
    })?;
    let names = match names(&root, sidecar.as_ref(), &contents, &named) {
        Ok(names) => Some(names),
        Err(PackageError::Nameless) => None,
        Err(error) => return Err(error),
    };
    let kind = kind.unwrap_or(Kind::Bag);
    Ok(Package {
        kind,
        root,
        entries,
        contents,
        names,
        info,
        warnings,
    })
}

/// The entries of the item: as the mtree(5) text of the package lists them or, for a package of another
/// program, its files as they are.
fn entries(
    root: &OwnedFd,
    contents: &Contents,
    kind: Option<Kind>,
) -> Result<Vec<MtreeEntry>, PackageError> {
    if let Some(content) = contents.get(MTREE.as_bytes()) {
        let text = read_small(root, &content.path)?.unwrap_or_default();
        let mut entries = mtree::parse(&text)?;
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let mut left: std::collections::BTreeSet<&[u8]> = contents
            .keys()
            .map(Vec::as_slice)
            .filter(|path| path.starts_with(b"data/"))
            .collect();
        for entry in &entries {
            if let MtreeKind::File { contents: path, .. } = &entry.kind {
                if !contents.contains_key(path) {
                    return Err(PackageError::file(path, Problem::Differs));
                }
                left.remove(path.as_slice());
            }
        }
        return match left.first() {
            Some(path) => Err(PackageError::file(path, Problem::Stray)),
            None => Ok(entries),
        };
    }
    // An object that ibifs has exported has its item there.
    let has_payload = kind == Some(Kind::Bag) || contents.contains_key(&b"data/.ibi"[..]);
    let mut entries = Vec::new();
    for (path, content) in contents {
        let below = if has_payload {
            path.strip_prefix(b"data/")
        } else {
            Some(path.as_slice())
        };
        let Some(below) = below else {
            continue;
        };
        let file = open_file(root, &content.path).and_then(rustix::fs::fstat);
        let stat = file.map_err(PackageError::io(Action::Read, &content.path))?;
        if !stays_below(below) {
            return Err(PackageError::file(path, Problem::Stray));
        }
        let kind = MtreeKind::File {
            contents: path.clone(),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
        };
        let mut entry = entry(below.to_vec(), kind, &stat);
        entry.stat.mode &= 0o777;
        entries.push(entry);
    }
    Ok(entries)
}

/// The item's sidecar.
fn sidecar(
    root: &OwnedFd,
    entries: &[MtreeEntry],
    contents: &Contents,
) -> Result<Option<Sidecar>, PackageError> {
    let sidecar = entries
        .iter()
        .find(|entry| entry.path == SIDECAR.as_bytes());
    let content = match sidecar.map(|entry| &entry.kind) {
        Some(MtreeKind::File { contents: path, .. }) => contents.get(path),
        _ => None,
    };
    let Some(content) = content else {
        return Ok(None);
    };
    let bytes = read_small(root, &content.path)?.unwrap_or_default();
    Ok(Some(Sidecar::parse(&bytes)?))
}

/// The SHA-256 digest of a file of a package.
fn sha256(root: &OwnedFd, path: &[u8], count: &mut dyn FnMut(u64)) -> Result<Digest, PackageError> {
    let mut file = open_file(root, path).map_err(PackageError::io(Action::Open, path))?;
    let mut hasher = sha2::Sha256::new();
    read_through(&mut file, path, |bytes| {
        hasher.update(bytes);
        count(bytes.len() as u64);
        Ok(())
    })?;
    Ok(Digest(hasher.finalize().into()))
}

/// The names of the item: from its sidecar, else from the identifier that ibifs wrote beside the files, else
/// from the package's metadata.
fn names(
    root: &OwnedFd,
    sidecar: Option<&Sidecar>,
    contents: &Contents,
    named: &[&str],
) -> Result<Names, PackageError> {
    if let Some(sidecar) = sidecar {
        return Ok(sidecar.names().clone());
    }
    if let Some(content) = contents.get(MTREE.as_bytes()) {
        let text = read_small(root, &content.path)?.unwrap_or_default();
        let pairs = mtree::comments(&text).find_map(|comment| Pairs::parse(comment).ok());
        let names = pairs.as_ref().and_then(|pairs| pairs.get("ibi"));
        if let Some(names) = names.and_then(|value| Names::from_value(value).ok()) {
            return Ok(names);
        }
    }
    let identifiers = named.iter().filter_map(|text| {
        let text = text.strip_prefix(object::RESOLVER).unwrap_or(text);
        Ibi::parse(text).ok()
    });
    Names::collect(identifiers).ok_or(PackageError::Nameless)
}
