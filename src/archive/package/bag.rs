//! Bags that others have made: all that RFC 8493 and the versions before it demand of a bag.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use unicode_normalization::UnicodeNormalization;

use super::digests::{Algorithm, Contents, PackagedFile};
use super::files::{DIRECTORY, below, length, read_small};
use super::naming::PAYLOAD;
use super::{PackageError, Problem};
use crate::archive::tree::open_far;
use crate::formats::bag::{self, Declaration};
use crate::formats::fixity::shown;
use ibi::{Quoted, message};

/// A bag that is complete; its digests are not compared yet.
pub(super) struct Bag {
    pub(super) contents: Contents,
    /// The tags of its metadata.
    pub(super) info: Vec<(String, String)>,
    info_name: &'static str,
}

impl Bag {
    /// Compares the payload with its number of bytes and files, such as `377.6`. A problem of a file says more, and is
    /// looked for before.
    pub(super) fn check_sum(&self, root: &OwnedFd) -> Result<(), PackageError> {
        let tags = self.info.iter();
        for (_, said) in tags.filter(|(name, _)| name.eq_ignore_ascii_case(bag::OXUM)) {
            let (mut bytes, mut files) = (0, 0);
            for path in self
                .contents
                .keys()
                .filter(|path| path.starts_with(b"data/"))
            {
                bytes += length(root, path)?;
                files += 1;
            }
            let sum = said.split_once('.');
            let sum =
                sum.and_then(|(bytes, files)| Some((bytes.parse().ok()?, files.parse().ok()?)));
            if sum != Some((bytes, files)) {
                let what = message!(
                    "its {tag} is {said}, and the payload has {found}",
                    tag = bag::OXUM,
                    said = Quoted(said),
                    found = format!("{bytes}.{files}")
                );
                return Err(PackageError::broken(self.info_name, what));
            }
        }
        Ok(())
    }
}

/// The algorithm of a payload or tag manifest with this name.
fn manifest_of(name: &str, prefix: &str) -> Option<&'static Algorithm> {
    let algorithm = name.strip_prefix(prefix)?.strip_suffix(".txt")?;
    Algorithm::of_manifest(algorithm)
}

/// Whether a file of this name makes a directory with a payload a bag, even without a declaration.
pub(super) fn is_manifest(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| manifest_of(name, "manifest-").is_some())
}

/// Opens a bag.
///
/// # Errors
/// It is not valid, but for the digests of its files.
pub(super) fn open(root: &OwnedFd) -> Result<Bag, PackageError> {
    let broken = PackageError::broken;
    let declaration = read_small(root, bag::DECLARATION.as_bytes())?;
    let declaration = declaration.ok_or_else(|| {
        broken(
            bag::DECLARATION,
            message!("a bag without it does not say its version"),
        )
    })?;
    let declared =
        Declaration::parse(&declaration).map_err(|what| broken(bag::DECLARATION, what))?;
    let files = Files::of(root)?;
    let text = |name: &str| -> Result<Option<Vec<u8>>, PackageError> {
        let text = read_small(root, name.as_bytes())?;
        Ok(text.map(|text| declared.decode(&text)))
    };
    let mut info_name = bag::INFO;
    let mut info = text(info_name)?;
    if info.is_none() {
        info_name = bag::OLD_INFO;
        info = text(info_name)?;
    }
    let info = bag::tags(&info.unwrap_or_default()).map_err(|line| {
        broken(
            info_name,
            message!("line {line} is not a name, ':' and a value", line),
        )
    })?;
    let mut fetched = BTreeSet::new();
    if let Some(text) = read_small(root, bag::FETCH.as_bytes())? {
        for paths in declared
            .fetched(&text)
            .map_err(|what| broken(bag::FETCH, what))?
        {
            fetched.insert(files.find(&paths).ok_or_else(|| {
                let what = message!(
                    "the file {path} of the bag is elsewhere, and has to be fetched first",
                    path = shown(paths.first().map_or(b"", Vec::as_slice))
                );
                broken(bag::FETCH, what)
            })?);
        }
    }
    let mut contents = Contents::new();
    // The files of each payload manifest, and of each tag manifest.
    let (mut payloads, mut tags) = (BTreeMap::new(), BTreeMap::new());
    for (name, prefix, lists) in files
        .top
        .iter()
        .flat_map(|name| [(name, "manifest-", true), (name, "tagmanifest-", false)])
    {
        let Some(algorithm) = manifest_of(name, prefix) else {
            continue;
        };
        let text = read_small(root, name.as_bytes())?.unwrap_or_default();
        let entries = declared
            .manifest(&text, algorithm.digits)
            .map_err(|what| broken(name, what))?;
        let mut listed = BTreeSet::new();
        for entry in entries {
            let first = entry.paths.first().map_or(&b""[..], Vec::as_slice);
            if lists && !first.starts_with(b"data/") {
                let what = message!("it has {path}, which is not in data", path = shown(first));
                return Err(broken(name, what));
            }
            let path = files.find(&entry.paths);
            let path = path.ok_or_else(|| PackageError::file(first, Problem::Missing))?;
            let content = contents
                .entry(path.clone())
                .or_insert_with(|| PackagedFile {
                    path: path.clone(),
                    digests: Vec::new(),
                });
            content.digests.push((algorithm, entry.digest));
            listed.insert(path);
        }
        if lists { &mut payloads } else { &mut tags }.insert(name, listed);
    }
    if payloads.is_empty() {
        let what = message!(
            "no manifest is there of an algorithm that ibifs reads: SHA-512, SHA-384, SHA-256, SHA-224, SHA-1, MD5"
        );
        return Err(broken(bag::DECLARATION, what));
    }
    let lacks = |name: &str, path: &[u8]| {
        broken(
            name,
            message!("it does not list {path}", path = shown(path)),
        )
    };
    for path in files.payload().chain(&fetched) {
        let has = |listed: &BTreeSet<Vec<u8>>| listed.contains(path);
        if !payloads.values().any(has) {
            return Err(PackageError::file(path, Problem::Stray));
        }
        // Each of them, since RFC 8493, section 3.
        let lacking = payloads.iter().find(|(_, listed)| !has(listed));
        if let Some((name, _)) = lacking.filter(|_| declared.is_final) {
            return Err(lacks(name, path));
        }
    }
    for (name, listed) in tags.iter().filter(|_| declared.is_final) {
        if let Some(payload) = payloads
            .keys()
            .find(|payload| !listed.contains(payload.as_bytes()))
        {
            return Err(lacks(name, payload.as_bytes()));
        }
    }
    Ok(Bag {
        contents,
        info,
        info_name,
    })
}

/// The files of a bag.
struct Files {
    all: BTreeSet<Vec<u8>>,
    /// Those with names that are not ASCII, by their composed forms (NFC).
    composed: BTreeMap<String, Vec<Vec<u8>>>,
    /// The names of tag files beside the payload.
    top: Vec<String>,
}

impl Files {
    fn of(root: &OwnedFd) -> Result<Files, PackageError> {
        if open_far(root, PAYLOAD.as_bytes(), DIRECTORY).is_err() {
            let what = message!("the bag has no such directory");
            return Err(PackageError::broken(PAYLOAD, what));
        }
        let all: BTreeSet<Vec<u8>> = below(root, "")?.files.into_iter().collect();
        let mut composed: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for path in all.iter().filter(|path| !path.is_ascii()) {
            if let Ok(text) = std::str::from_utf8(path) {
                composed
                    .entry(text.nfc().collect())
                    .or_default()
                    .push(path.clone());
            }
        }
        let top = all.iter().filter(|path| !path.contains(&b'/'));
        let top = top
            .filter_map(|path| String::from_utf8(path.clone()).ok())
            .collect();
        Ok(Files { all, composed, top })
    }

    /// The file that one of these paths means: filesystems and tools differ in the form of Unicode.
    fn find(&self, paths: &[Vec<u8>]) -> Option<Vec<u8>> {
        if let Some(path) = paths.iter().find(|path| self.all.contains(*path)) {
            return Some(path.clone());
        }
        paths.iter().find_map(|path| {
            let composed: String = std::str::from_utf8(path).ok()?.nfc().collect();
            match self.composed.get(&composed)?.as_slice() {
                [path] => Some(path.clone()),
                _ => None,
            }
        })
    }

    fn payload(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.all.iter().filter(|path| path.starts_with(b"data/"))
    }
}
