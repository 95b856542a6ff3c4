//! OCFL objects of other programs, versions 1.0 and 1.1: everything that the specification demands of an object is
//! compared before anything of it is used.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::fs::FileType;

use super::described::{Described, Reader, sidecar_name, version_number};
use super::digests::{Algorithm, Contents, PackagedFile, differing};
use super::files::{below, read_small};
use super::inventory::INVENTORY;
use super::rules::{Fault, Rule};
use super::{PackageError, Problem};
use crate::archive::tree::{Action, open_far};
use crate::formats::fixity::shown;
use crate::os::directory::Directory;

/// The beginning of the name of a declaration of an object.
const DECLARED: &str = "0=ocfl_object_";
/// The directories of extensions and of the logs of programs.
const EXTENSIONS: &str = "extensions";
const LOGS: &str = "logs";

/// An object that is valid.
pub(super) struct Object {
    /// The files of the last version, by their logical paths.
    pub(super) contents: Contents,
    pub(super) id: String,
    pub(super) warnings: Vec<Fault>,
}

/// Whether a directory with entries of these names is an object, even without a declaration.
pub(super) fn is_object(names: &[(Vec<u8>, FileType)]) -> bool {
    let has = |begin: &str| {
        names
            .iter()
            .any(|(name, _)| name.starts_with(begin.as_bytes()))
    };
    has(DECLARED)
        || has("inventory.json.") && names.iter().any(|(name, _)| name == INVENTORY.as_bytes())
}

/// Opens an object, and compares all its files.
///
/// # Errors
/// All rules that it breaks, or a failed system call.
pub(super) fn open(root: &OwnedFd, count: &mut dyn FnMut(u64)) -> Result<Object, PackageError> {
    let mut validation = Validation {
        root,
        faults: Vec::new(),
    };
    let object = validation.object(count)?;
    let is_broken = validation.faults.iter().any(Fault::is_error);
    match object.filter(|_| !is_broken) {
        Some((contents, id)) => Ok(Object {
            contents,
            id,
            warnings: validation.faults,
        }),
        None => {
            let mut faults = validation.faults;
            faults.retain(Fault::is_error);
            Err(PackageError::Object(faults))
        }
    }
}

struct Validation<'a> {
    root: &'a OwnedFd,
    faults: Vec<Fault>,
}

/// The digests that inventories give the files, and the rules that these break otherwise.
type Claims = BTreeMap<Vec<u8>, (PackagedFile, Vec<Rule>)>;
/// The version directories, by their numbers.
type Versions = BTreeMap<u32, String>;

impl Validation<'_> {
    fn fault(&mut self, rule: Rule, path: &str) {
        let fault = Fault {
            rule,
            path: path.to_owned(),
            detail: None,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn object(
        &mut self,
        count: &mut dyn FnMut(u64),
    ) -> Result<Option<(Contents, String)>, PackageError> {
        let entries = self.entries("")?;
        let minor = self.declaration(&entries)?;
        let Some((text, described)) = self.inventory(INVENTORY)? else {
            if !self.faults.iter().any(|fault| fault.rule == Rule::E033) {
                self.fault(Rule::E063, INVENTORY);
            }
            return Ok(None);
        };
        if minor.is_some() && described.minor.is_some() && minor != described.minor {
            self.fault(Rule::E038, INVENTORY);
        }
        let versions = self.root_entries(&entries, &described)?;
        self.sequence(&versions, &described);
        // All content files, and what the inventories say of them.
        let mut files = BTreeSet::new();
        let mut claims = Claims::new();
        let mut before: Option<u8> = None;
        for (number, name) in &versions {
            self.version(name, &described, &mut files)?;
            let path = format!("{name}/{INVENTORY}");
            let known = self.faults.len();
            let Some((of_version, inventory)) = self.inventory(&path)? else {
                if read_small(self.root, path.as_bytes())?.is_none() {
                    self.fault(Rule::W010, name);
                }
                continue;
            };
            if of_version == text {
                // The faults in it are known.
                let found = self.faults.split_off(known);
                let beside = |fault: &Fault| fault.path != path || fault.rule == Rule::E060;
                self.faults.extend(found.into_iter().filter(beside));
            }
            if inventory.minor.is_some() && inventory.minor < before {
                self.fault(Rule::E103, &path);
            }
            before = inventory.minor.or(before);
            if inventory.head != Some(*number) {
                self.fault(Rule::E040, &path);
            }
            if Some(*number) == versions.keys().next_back().copied() {
                if of_version != text {
                    self.fault(Rule::E064, &path);
                }
                // It is the same as the first.
                continue;
            }
            self.earlier(&path, &inventory, &described);
            self.manifest(&path, &inventory, &files, &mut claims);
        }
        self.manifest(INVENTORY, &described, &files, &mut claims);
        for (path, (mut content, rules)) in claims {
            content.path = path;
            self.content(&content, &rules, count)?;
        }
        let head = described
            .head
            .and_then(|head| described.versions.get(&head));
        let Some(head) = head else {
            return Ok(None);
        };
        let contents = head.state.iter().filter_map(|(path, digest)| {
            let content = described.manifest.get(digest)?.first()?;
            let content = PackagedFile {
                path: content.clone().into_bytes(),
                digests: described
                    .algorithm
                    .map(|it| (it, digest.clone()))
                    .into_iter()
                    .collect(),
            };
            Some((path.clone().into_bytes(), content))
        });
        Ok(Some((contents.collect(), described.id)))
    }

    fn entries(&self, path: &str) -> Result<Vec<(Vec<u8>, FileType)>, PackageError> {
        let flags = super::files::DIRECTORY;
        let place = if path.is_empty() { "." } else { path };
        let listed = open_far(self.root, place.as_bytes(), flags)
            .and_then(|directory| Directory::from(directory).entries());
        listed.map_err(PackageError::io(Action::List, place))
    }

    /// The version of OCFL that is declared.
    fn declaration(&mut self, entries: &[(Vec<u8>, FileType)]) -> Result<Option<u8>, PackageError> {
        let names = entries
            .iter()
            .map(|(name, _)| String::from_utf8_lossy(name));
        let declared: Vec<_> = names.filter(|name| name.starts_with("0=")).collect();
        let minor = match declared.as_slice() {
            [name] if name == "0=ocfl_object_1.0" => 0,
            [name] if name == "0=ocfl_object_1.1" => 1,
            _ => {
                self.fault(
                    Rule::E003,
                    &declared
                        .first()
                        .map_or("0=ocfl_object_1.1".into(), |name| shown(name.as_bytes())),
                );
                return Ok(None);
            }
        };
        let name = &declared[0];
        let text = read_small(self.root, name.as_bytes())?;
        if text != Some(format!("{}\n", &name[2..]).into_bytes()) {
            self.fault(Rule::E007, name);
        }
        Ok(Some(minor))
    }

    /// Reads an inventory and compares it with the digest beside it; None if it is missing or not JSON.
    fn inventory(&mut self, path: &str) -> Result<Option<(Vec<u8>, Described)>, PackageError> {
        let Some(text) = read_small(self.root, path.as_bytes())? else {
            return Ok(None);
        };
        let read = Reader {
            path,
            faults: &mut self.faults,
        }
        .read(&text);
        let Some(described) = read else {
            return Ok(None);
        };
        let above = path.strip_suffix(INVENTORY).unwrap_or_default();
        let sidecar = format!("{above}{}", sidecar_name(&described.algorithm_name));
        let digest = match read_small(self.root, sidecar.as_bytes())? {
            Some(digest) => digest,
            None => {
                self.fault(Rule::E058, &sidecar);
                return Ok(Some((text, described)));
            }
        };
        let digest = String::from_utf8_lossy(&digest);
        let line = digest.strip_suffix('\n').unwrap_or(&digest);
        let parts = line.split_once([' ', '\t']);
        let digest = parts.filter(|(_, name)| name.trim_start_matches([' ', '\t']) == INVENTORY);
        match (digest, described.algorithm) {
            (None, _) => self.fault(Rule::E061, &sidecar),
            (Some((digest, _)), Some(algorithm))
                if !digest.eq_ignore_ascii_case(&algorithm.digest(&text)) =>
            {
                self.fault(Rule::E060, path);
            }
            _ => {}
        }
        Ok(Some((text, described)))
    }

    /// Finds what does not belong in the object's directory. Returns the version directories.
    fn root_entries(
        &mut self,
        entries: &[(Vec<u8>, FileType)],
        described: &Described,
    ) -> Result<Versions, PackageError> {
        let mut versions = Versions::new();
        let sidecar = sidecar_name(&described.algorithm_name);
        for (name, kind) in entries {
            let text = String::from_utf8_lossy(name);
            match (version_number(&text), kind) {
                (Some(number), FileType::Directory) => {
                    if let Some(other) = versions.insert(number, text.clone().into_owned()) {
                        self.fault(Rule::E011, &other);
                    }
                }
                (_, FileType::Directory) if text == LOGS => {}
                (_, FileType::Directory) if text == EXTENSIONS => self.extensions()?,
                (_, FileType::RegularFile)
                    if text == INVENTORY || text == sidecar.as_str() || text.starts_with("0=") => {}
                (_, FileType::RegularFile | FileType::Directory) => {
                    self.fault(Rule::E001, &shown(name));
                }
                _ => self.fault(Rule::E090, &shown(name)),
            }
        }
        Ok(versions)
    }

    fn extensions(&mut self) -> Result<(), PackageError> {
        for (name, kind) in self.entries(EXTENSIONS)? {
            let path = format!("{EXTENSIONS}/{}", shown(&name));
            // The names of the registered ones begin with their numbers.
            let number = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let is_registered = number == 4 && name.get(4) == Some(&b'-');
            if kind != FileType::Directory {
                self.fault(Rule::E067, &path);
            } else if !is_registered {
                self.fault(Rule::W013, &path);
            }
        }
        Ok(())
    }

    /// Compares the version directories with each other and with the inventory.
    fn sequence(&mut self, versions: &Versions, described: &Described) {
        let names: BTreeSet<&String> = versions
            .values()
            .chain(described.versions.values().map(|it| &it.name))
            .collect();
        let is_padded = |name: &String| name.starts_with("v0");
        let lengths: BTreeSet<usize> = names.iter().map(|name| name.len()).collect();
        if names.iter().any(|name| is_padded(name)) {
            match names.iter().find(|name| !is_padded(name)) {
                Some(name) => self.fault(Rule::E011, name),
                None if lengths.len() > 1 => self.fault(Rule::E011, INVENTORY),
                None => self.fault(Rule::W001, INVENTORY),
            }
        }
        let all: BTreeSet<u32> = versions
            .keys()
            .chain(described.versions.keys())
            .copied()
            .collect();
        if all.is_empty() {
            self.fault(Rule::E008, INVENTORY);
        }
        for (number, wanted) in all.iter().zip(1..) {
            if *number != wanted {
                let rule = if wanted == 1 { Rule::E009 } else { Rule::E010 };
                self.fault(rule, &format!("v{wanted}"));
                break;
            }
        }
        for number in all {
            match (versions.get(&number), described.versions.get(&number)) {
                (Some(name), Some(version)) if *name == version.name => {}
                (Some(name), _) => self.fault(Rule::E046, name),
                (None, Some(version)) => self.fault(Rule::E010, &version.name),
                (None, None) => {}
            }
        }
    }

    /// Finds what does not belong in a version, and collects the files of its content directory.
    fn version(
        &mut self,
        name: &str,
        described: &Described,
        files: &mut BTreeSet<Vec<u8>>,
    ) -> Result<(), PackageError> {
        let content = described.content();
        for (entry, kind) in self.entries(name)? {
            let text = String::from_utf8_lossy(&entry);
            let path = format!("{name}/{}", shown(&entry));
            match kind {
                FileType::Directory if text == content => {
                    let found = below(self.root, &format!("{name}/{text}"))?;
                    if found.files.is_empty() {
                        self.fault(Rule::W003, &path);
                    }
                    for directory in found.empty.iter().filter(|it| **it != path.as_bytes()) {
                        self.fault(Rule::E024, &shown(directory));
                    }
                    files.extend(found.files);
                }
                FileType::Directory => self.fault(Rule::W002, &path),
                FileType::RegularFile if text == INVENTORY => {}
                FileType::RegularFile if self.is_sidecar(name, &text)? => {}
                FileType::RegularFile => self.fault(Rule::E015, &path),
                _ => self.fault(Rule::E090, &path),
            }
        }
        Ok(())
    }

    /// Whether a file of a version has the digest of its inventory, whose algorithm may be another one.
    fn is_sidecar(&self, version: &str, name: &str) -> Result<bool, PackageError> {
        let algorithm = name.strip_prefix("inventory.json.");
        let is_known = algorithm.is_some_and(|name| Algorithm::named(name).is_some());
        let path = format!("{version}/{INVENTORY}");
        Ok(is_known && read_small(self.root, path.as_bytes())?.is_some())
    }

    /// Compares the inventory of an earlier version with that of the object.
    fn earlier(&mut self, path: &str, earlier: &Described, last: &Described) {
        if earlier.id != last.id {
            self.fault(Rule::E037, path);
        }
        if earlier.content() != last.content() {
            self.fault(Rule::E019, path);
        }
        for (number, version) in &earlier.versions {
            let Some(now) = last.versions.get(number) else {
                self.fault(Rule::E066, path);
                continue;
            };
            let is_same = version.state.len() == now.state.len()
                && version.state.iter().all(|(logical, digest)| {
                    now.state.get(logical).is_some_and(|other| {
                        let is_one = earlier.algorithm == last.algorithm;
                        if is_one {
                            return digest.eq_ignore_ascii_case(other);
                        }
                        let files = |described: &Described, digest: &String| -> BTreeSet<String> {
                            described
                                .manifest
                                .get(digest)
                                .into_iter()
                                .flatten()
                                .cloned()
                                .collect()
                        };
                        !files(earlier, digest).is_disjoint(&files(last, other))
                    })
                });
            if !is_same {
                self.fault(Rule::E066, path);
            }
            if version.made != now.made {
                self.fault(Rule::W011, path);
            }
        }
    }

    /// Compares the lists of an inventory with the files that are there up to its version.
    fn manifest(
        &mut self,
        path: &str,
        described: &Described,
        files: &BTreeSet<Vec<u8>>,
        claims: &mut Claims,
    ) {
        let listed: BTreeSet<&[u8]> = described
            .manifest
            .values()
            .flatten()
            .map(String::as_bytes)
            .collect();
        for file in files
            .iter()
            .filter(|file| !listed.contains(file.as_slice()))
        {
            self.faults.push(Fault {
                rule: Rule::E023,
                path: shown(file),
                detail: Some(path.to_owned()),
            });
        }
        let lists = described
            .algorithm
            .map(|algorithm| (Rule::E092, algorithm, &described.manifest));
        let fixity = described
            .fixity
            .iter()
            .map(|(algorithm, paths)| (Rule::E093, *algorithm, paths));
        for (rule, algorithm, paths) in lists.into_iter().chain(fixity) {
            for (digest, path) in paths
                .iter()
                .flat_map(|(digest, paths)| paths.iter().map(move |path| (digest, path)))
            {
                if !files.contains(path.as_bytes()) {
                    self.fault(rule, &shown(path.as_bytes()));
                    continue;
                }
                let (content, rules) = claims.entry(path.clone().into_bytes()).or_default();
                let claim = (algorithm, digest.clone());
                if !content.digests.contains(&claim) {
                    content.digests.push(claim);
                    rules.push(rule);
                }
            }
        }
    }

    /// Compares a file with what the inventories say of it.
    fn content(
        &mut self,
        content: &PackagedFile,
        rules: &[Rule],
        count: &mut dyn FnMut(u64),
    ) -> Result<(), PackageError> {
        let path = shown(&content.path);
        match differing(self.root, content, count) {
            Ok(None) => {}
            Ok(Some(number)) => self.fault(rules.get(number).copied().unwrap_or(Rule::E092), &path),
            Err(PackageError::File {
                problem: Problem::NotRegular,
                ..
            }) => self.fault(Rule::E090, &path),
            Err(PackageError::File { .. }) => self.fault(Rule::E092, &path),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
