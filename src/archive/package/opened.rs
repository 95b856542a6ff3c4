//! Reads packages: the content is compared with the package's own description before any of it is used.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use sha2::digest::DynDigest;

use super::files::{DIRECTORY, files_below, open_file, read_small, read_through};
use super::inventory::INVENTORY;
use super::naming::{MTREE, PAYLOAD};
use super::object::inventory_of;
use super::unpack::holds_bag;
use super::{PackageError, Problem, bagit, object, ocfl};
use crate::archive::tree::{Action, SIDECAR, joined, open_far};
use crate::formats::bag;
use crate::formats::fixity;
use crate::formats::hex::Hex;
use crate::formats::item::{Names, Sidecar};
use crate::formats::mtree::{self, MtreeEntry, MtreeKind};
use crate::os::directory::{Directory, is_own};
use crate::os::opening;
use ibi::Ibi;
use ibi::pairs::Pairs;
use ibi::{Quoted, message};

/// The path of a file's content, and its digest in hexadecimal digits.
#[derive(Clone, Debug)]
pub(super) struct PackagedFile {
    pub(super) path: Vec<u8>,
    /// One for each algorithm of the package.
    digests: Vec<String>,
}

/// The algorithms of a bag's manifests, RFC 8493, section 2.4, and the hexadecimal digits of their digests, the
/// strongest first.
const ALGORITHMS: [(&str, usize); 4] = [("sha512", 128), ("sha256", 64), ("sha1", 40), ("md5", 32)];

/// A package that has been read and verified.
#[derive(Debug)]
pub struct Package {
    pub(super) root: OwnedFd,
    pub(super) entries: Vec<MtreeEntry>,
    /// By the paths that the entries use.
    pub(super) contents: BTreeMap<Vec<u8>, PackagedFile>,
    names: Option<Names>,
}

impl Package {
    /// The names of the item; None if the package does not name any.
    pub fn names(&self) -> Option<&Names> {
        self.names.as_ref()
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

/// The packages at and below an open directory, by their paths below it, sorted: bags, OCFL objects, and zip files that
/// hold a bag. The inside of a package is not searched, and no symbolic link is followed. Errors name the directory
/// `source`.
///
/// # Errors
/// The directory cannot be read, or holds no package.
pub fn find(root: &OwnedFd, source: &Path) -> Result<Vec<PathBuf>, PackageError> {
    let mut found = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let shown = source.join(OsStr::from_bytes(&path));
        let failed = PackageError::io(Action::Open, shown.as_os_str().as_bytes());
        let listed = open_far(root, &path, DIRECTORY).and_then(|directory| {
            let directory = Directory::from(directory);
            Ok((directory.entries()?, directory))
        });
        let (entries, directory) = listed.map_err(failed)?;
        let descriptor = directory.descriptor();
        if read_small(descriptor, bag::DECLARATION.as_bytes())?.is_some()
            || object::is_object(descriptor)?
        {
            found.push(PathBuf::from(OsString::from_vec(path)));
            continue;
        }
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
                _ => {}
            }
        }
    }
    found.sort();
    if found.is_empty() {
        Err(PackageError::Nothing {
            path: source.to_owned(),
        })
    } else {
        Ok(found)
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

/// Opens a bag, or the last version of an object, and compares all digests.
///
/// # Errors
/// The package is not complete, or its descriptions are not valid.
pub fn open(root: OwnedFd, count: &mut dyn FnMut(u64)) -> Result<Package, PackageError> {
    let is_bag = read_small(&root, bag::DECLARATION.as_bytes())?.is_some();
    let (contents, named) = if is_bag {
        open_bag(&root)?
    } else {
        open_object(&root)?
    };
    for content in contents.values() {
        verify(&root, content, count)?;
    }
    let entries = entries(&root, &contents)?;
    let names = match names(&root, &entries, &contents, &named) {
        Ok(names) => Some(names),
        Err(PackageError::Nameless) => None,
        Err(error) => return Err(error),
    };
    Ok(Package {
        root,
        entries,
        contents,
        names,
    })
}

type Contents = BTreeMap<Vec<u8>, PackagedFile>;

/// The files of a bag, and the identifiers in its metadata.
fn open_bag(root: &OwnedFd) -> Result<(Contents, Vec<String>), PackageError> {
    let declaration = read_small(root, bag::DECLARATION.as_bytes())?.unwrap_or_default();
    let declared = tags(&declaration);
    let is_utf8 = declared.iter().any(|(name, value)| {
        name == "tag-file-character-encoding" && value.eq_ignore_ascii_case("UTF-8")
    });
    if !is_utf8 {
        return Err(PackageError::broken(
            bag::DECLARATION,
            message!("its texts are not in UTF-8"),
        ));
    }
    if read_small(root, b"fetch.txt")?.is_some() {
        let what = message!("files of the bag are elsewhere, and have to be fetched first");
        return Err(PackageError::broken("fetch.txt", what));
    }
    let mut contents = Contents::new();
    let mut is_any = false;
    for (algorithm, digits) in ALGORITHMS {
        for prefix in ["manifest", "tagmanifest"] {
            let name = format!("{prefix}-{algorithm}.txt");
            let Some(text) = read_small(root, name.as_bytes())? else {
                continue;
            };
            is_any |= prefix == "manifest";
            let (manifest, bad) = fixity::parse_hex_manifest(&text, digits);
            if let Some(line) = bad.first() {
                let what = message!("line {line} is not a digest and a path", line);
                return Err(PackageError::broken(&name, what));
            }
            for (path, digest) in manifest {
                let content = contents.entry(path.clone()).or_insert(PackagedFile {
                    path,
                    digests: Vec::new(),
                });
                content.digests.push(digest);
            }
        }
    }
    if !is_any {
        let what = message!(
            "no manifest is there of an algorithm that ibifs reads: SHA-512, SHA-256, SHA-1, MD5"
        );
        return Err(PackageError::broken(bag::DECLARATION, what));
    }
    for path in files_below(root, PAYLOAD)? {
        if !contents.contains_key(&path) {
            return Err(PackageError::file(&path, Problem::Stray));
        }
    }
    let info = read_small(root, bag::INFO.as_bytes())?.unwrap_or_default();
    let named = tags(&info).into_iter();
    let named = named.filter(|(name, _)| name.eq_ignore_ascii_case(bag::IDENTIFIER));
    Ok((contents, named.map(|(_, value)| value).collect()))
}

/// The `Name: value` lines of a text, with names in lower case.
pub(super) fn tags(text: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(text);
    let tags = text.lines().filter_map(|line| line.split_once(':'));
    tags.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect()
}

/// The files of an object's last version, and its identifier.
fn open_object(root: &OwnedFd) -> Result<(Contents, Vec<String>), PackageError> {
    let inventory = inventory_of(root)?;
    let mut contents = Contents::new();
    for (digest, paths) in &inventory.state {
        let content = inventory
            .manifest
            .get(digest)
            .and_then(|paths| paths.first());
        let content = content.ok_or_else(|| {
            PackageError::broken(
                INVENTORY,
                message!(
                    "it does not name the place of {digest}",
                    digest = Quoted(digest)
                ),
            )
        })?;
        for path in paths {
            let content = PackagedFile {
                path: content.clone().into_bytes(),
                digests: vec![digest.clone()],
            };
            contents.insert(path.clone().into_bytes(), content);
        }
    }
    Ok((contents, vec![inventory.id]))
}

/// The hash function whose digests have so many hexadecimal digits.
fn hasher(digits: usize) -> Option<Box<dyn DynDigest>> {
    Some(match digits {
        128 => Box::new(sha2::Sha512::default()),
        64 => Box::new(sha2::Sha256::default()),
        40 => Box::new(sha1::Sha1::default()),
        32 => Box::new(md5::Md5::default()),
        _ => return None,
    })
}

/// Compares a file with all its digests; the length of a digest gives the algorithm.
fn verify(
    root: &OwnedFd,
    content: &PackagedFile,
    count: &mut dyn FnMut(u64),
) -> Result<(), PackageError> {
    let differs = || PackageError::file(&content.path, Problem::Differs);
    let mut file = match open_file(root, &content.path) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::INVAL) => return Err(differs()),
        Err(errno) => return Err(PackageError::io(Action::Open, &content.path)(errno)),
    };
    count(0);
    let hashers = content.digests.iter().map(|digest| hasher(digest.len()));
    let mut hashers: Vec<Box<dyn DynDigest>> =
        hashers.collect::<Option<_>>().ok_or_else(differs)?;
    read_through(&mut file, &content.path, |bytes| {
        for hasher in &mut hashers {
            hasher.update(bytes);
        }
        count(bytes.len() as u64);
        Ok(())
    })?;
    let found = hashers
        .into_iter()
        .map(|hasher| Hex(&hasher.finalize()).to_string());
    if found.eq(content
        .digests
        .iter()
        .map(|digest| digest.to_ascii_lowercase()))
    {
        Ok(())
    } else {
        Err(differs())
    }
}

/// The entries of the item: as the mtree(5) text of the package lists them or, for a package of another
/// program, its files as they are.
fn entries(root: &OwnedFd, contents: &Contents) -> Result<Vec<MtreeEntry>, PackageError> {
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
    let has_payload = contents.keys().any(|path| path.starts_with(b"data/"));
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
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
        if !below.split(|byte| *byte == b'/').all(is_name) {
            return Err(PackageError::file(path, Problem::Stray));
        }
        entries.push(MtreeEntry {
            path: below.to_vec(),
            kind: MtreeKind::File {
                contents: path.clone(),
                size: u64::try_from(stat.st_size).unwrap_or_default(),
            },
            mode: stat.st_mode & 0o777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            seconds: stat.st_mtime,
            nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or_default(),
            inode: None,
            attributes: Vec::new(),
        });
    }
    Ok(entries)
}

/// The names of the item: from its sidecar, else from the identifier that ibifs wrote beside the files, else
/// from the package's metadata.
fn names(
    root: &OwnedFd,
    entries: &[MtreeEntry],
    contents: &Contents,
    named: &[String],
) -> Result<Names, PackageError> {
    let sidecar = entries
        .iter()
        .find(|entry| entry.path == SIDECAR.as_bytes());
    if let Some(MtreeEntry {
        kind: MtreeKind::File { contents: path, .. },
        ..
    }) = sidecar
        && let Some(content) = contents.get(path)
    {
        let bytes = read_small(root, &content.path)?.unwrap_or_default();
        return Ok(Sidecar::parse(&bytes)?.names().clone());
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
