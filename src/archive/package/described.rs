//! The inventory of an OCFL object of another program, and the rules that concern it alone. No input or output.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;

use super::digests::Algorithm;
use super::inventory::INVENTORY;
use super::json::Json;
use super::rules::{Fault, Rule};

/// Paths by digest, as they are written.
type Paths = BTreeMap<String, Vec<String>>;

/// An inventory that could be read; the rules that it breaks are found beside.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) id: String,
    /// The last version of OCFL that its type names: 0 for 1.0, 1 for 1.1.
    pub(super) minor: Option<u8>,
    pub(super) algorithm: Option<&'static Algorithm>,
    /// The name of the algorithm, as it is written.
    pub(super) algorithm_name: String,
    pub(super) head: Option<u32>,
    /// The directory that it names.
    pub(super) content_directory: Option<String>,
    pub(super) manifest: Paths,
    pub(super) fixity: Vec<(&'static Algorithm, Paths)>,
    /// By their numbers.
    pub(super) versions: BTreeMap<u32, DescribedVersion>,
}

/// A version in an inventory.
#[derive(Clone, Debug)]
pub(super) struct DescribedVersion {
    pub(super) name: String,
    /// The digest of each logical path.
    pub(super) state: BTreeMap<String, String>,
    /// Its date, message and user.
    pub(super) made: [Option<Json>; 3],
}

impl Described {
    /// The name of the directory of content in each version.
    pub(super) fn content(&self) -> &str {
        self.content_directory.as_deref().unwrap_or("content")
    }
}

/// The number of a version with this name: `v1`, `v001`.
pub(super) fn version_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('v')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|number| is_number && *number > 0)
}

/// Reads inventories, and collects what is wrong with them.
pub(super) struct Reader<'a> {
    /// The file, for faults.
    pub(super) path: &'a str,
    pub(super) faults: &'a mut Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, rule: Rule, detail: Option<&str>) {
        self.faults.push(Fault {
            rule,
            path: self.path.to_owned(),
            detail: detail.map(shown),
        });
    }

    /// Reads an inventory; None if it is not JSON at all.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<Described> {
        let json = Json::parse(bytes).filter(|json| json.members().is_some());
        let Some(json) = json else {
            self.fault(Rule::E033, None);
            return None;
        };
        self.keys(
            &json,
            &[
                "id",
                "type",
                "digestAlgorithm",
                "head",
                "contentDirectory",
                "manifest",
                "versions",
                "fixity",
            ],
        );
        let mut text = |name: &str, wrong: Rule| match json.get(name) {
            None => {
                self.fault(Rule::E036, Some(name));
                None
            }
            Some(value) => {
                let text = value.text().filter(|text| !text.is_empty());
                if text.is_none() {
                    self.fault(wrong, None);
                }
                text.map(str::to_owned)
            }
        };
        let id = text("id", Rule::E037).unwrap_or_default();
        let kind = text("type", Rule::E038);
        let algorithm_name = text("digestAlgorithm", Rule::E025).unwrap_or_default();
        let head_name = text("head", Rule::E040);
        if !id.is_empty() && !is_uri(&id) {
            self.fault(Rule::W005, Some(&id));
        }
        let minor = match kind.as_deref() {
            Some("https://ocfl.io/1.0/spec/#inventory") => Some(0),
            Some("https://ocfl.io/1.1/spec/#inventory") => Some(1),
            Some(other) => {
                self.fault(Rule::E038, Some(other));
                None
            }
            None => None,
        };
        let algorithm =
            Algorithm::named(&algorithm_name).filter(|it| matches!(it.name, "sha512" | "sha256"));
        match algorithm.map(|algorithm| algorithm.name) {
            Some("sha512") => {}
            Some(_) => self.fault(Rule::W004, Some(&algorithm_name)),
            None if algorithm_name.is_empty() => {}
            None => self.fault(Rule::E025, Some(&algorithm_name)),
        }
        let content_directory = json
            .get("contentDirectory")
            .and_then(|value| match value.text() {
                Some(name @ ("." | "..")) => {
                    self.fault(Rule::E018, Some(name));
                    None
                }
                Some(name) if !name.is_empty() && !name.contains('/') => Some(name.to_owned()),
                other => {
                    self.fault(Rule::E017, other);
                    None
                }
            });
        let manifest = self.manifest(json.get("manifest"));
        let versions = self.versions(json.get("versions"), &manifest);
        let head = head_name.as_deref().and_then(|head| {
            let last = versions.last_key_value();
            let found = last.filter(|(_, version)| version.name == head);
            if found.is_none() {
                self.fault(Rule::E040, Some(head));
            }
            found.map(|(number, _)| *number)
        });
        let used: BTreeSet<&String> = versions
            .values()
            .flat_map(|version| version.state.values())
            .collect();
        for digest in manifest.keys().filter(|digest| !used.contains(digest)) {
            self.fault(Rule::E107, Some(digest));
        }
        let fixity = self.fixity(json.get("fixity"));
        Some(Described {
            id,
            minor,
            algorithm,
            algorithm_name,
            head,
            content_directory,
            manifest,
            fixity,
            versions,
        })
    }

    /// Finds keys that are there twice, or unknown.
    fn keys(&mut self, object: &Json, known: &[&str]) {
        let mut seen = BTreeSet::new();
        for (key, _) in object.members().unwrap_or_default() {
            if !seen.insert(key) {
                self.fault(Rule::E033, Some(key));
            } else if !known.contains(&key.as_str()) {
                self.fault(Rule::E102, Some(key));
            }
        }
    }

    /// Lists of content paths by digest.
    fn paths(&mut self, value: &Json, not_lists: Rule, twice: Rule) -> Paths {
        let (mut paths, mut digests) = (Paths::new(), BTreeSet::new());
        let mut all = Tree::default();
        for (digest, value) in value.members().unwrap_or_default() {
            if !digests.insert(digest.to_ascii_lowercase()) {
                self.fault(twice, Some(digest));
            }
            let Some(list) = texts(value) else {
                self.fault(not_lists, Some(digest));
                continue;
            };
            for path in &list {
                if let Some(rule) = path_fault(path, Rule::E099, Rule::E100) {
                    self.fault(rule, Some(path));
                }
                if !all.insert(path) {
                    self.fault(Rule::E101, Some(path));
                }
            }
            paths.insert(digest.clone(), list);
        }
        if let Some(path) = all.conflict() {
            self.fault(Rule::E101, Some(&path));
        }
        paths
    }

    fn manifest(&mut self, value: Option<&Json>) -> Paths {
        match value.filter(|value| value.members().is_some()) {
            Some(value) => self.paths(value, Rule::E092, Rule::E096),
            None => {
                self.fault(Rule::E041, None);
                Paths::new()
            }
        }
    }

    fn fixity(&mut self, value: Option<&Json>) -> Vec<(&'static Algorithm, Paths)> {
        let Some(value) = value else {
            return Vec::new();
        };
        if value.members().is_none() {
            self.fault(Rule::E111, None);
        }
        let mut fixity = Vec::new();
        for (name, value) in value.members().unwrap_or_default() {
            if value.members().is_none() {
                self.fault(Rule::E057, Some(name));
            }
            let paths = self.paths(value, Rule::E057, Rule::E097);
            // One that is not known is passed over (E028).
            fixity.extend(Algorithm::named(name).map(|algorithm| (algorithm, paths)));
        }
        fixity
    }

    fn versions(
        &mut self,
        value: Option<&Json>,
        manifest: &Paths,
    ) -> BTreeMap<u32, DescribedVersion> {
        let mut versions = BTreeMap::new();
        let Some(value) = value else {
            self.fault(Rule::E043, None);
            return versions;
        };
        let Some(members) = value.members() else {
            self.fault(Rule::E044, None);
            return versions;
        };
        if members.is_empty() {
            self.fault(Rule::E008, None);
        }
        for (name, value) in members {
            let version = self.version(name, value, manifest);
            match version_number(name) {
                None => self.fault(Rule::E046, Some(name)),
                Some(number) => {
                    if versions.insert(number, version).is_some() {
                        self.fault(Rule::E033, Some(name));
                    }
                }
            }
        }
        versions
    }

    fn version(&mut self, name: &str, value: &Json, manifest: &Paths) -> DescribedVersion {
        let made = ["created", "message", "user"].map(|key| value.get(key).cloned());
        let mut version = DescribedVersion {
            name: name.to_owned(),
            state: BTreeMap::new(),
            made,
        };
        if value.members().is_none() {
            self.fault(Rule::E047, Some(name));
            return version;
        }
        self.keys(value, &["created", "state", "message", "user"]);
        match value.get("created") {
            None => self.fault(Rule::E048, Some(name)),
            Some(created) => {
                // A date, `T` and a time to the second; the library also reads others.
                let is_date = created.text().is_some_and(|text| {
                    let is_exact = text
                        .as_bytes()
                        .get(10)
                        .is_some_and(|byte| matches!(byte, b'T' | b't'));
                    is_exact && DateTime::parse_from_rfc3339(text).is_ok()
                });
                if !is_date {
                    self.fault(Rule::E049, Some(name));
                }
            }
        }
        match (value.get("message"), value.get("user")) {
            (Some(_), Some(_)) => {}
            _ => self.fault(Rule::W007, Some(name)),
        }
        if value
            .get("message")
            .is_some_and(|message| message.text().is_none())
        {
            self.fault(Rule::E094, Some(name));
        }
        if let Some(user) = value.get("user") {
            self.keys(user, &["name", "address"]);
            let text = |key: &str| user.get(key).and_then(Json::text);
            if text("name").is_none_or(str::is_empty) {
                self.fault(Rule::E054, Some(name));
            }
            match (user.get("address"), text("address")) {
                (None, _) => self.fault(Rule::W008, Some(name)),
                (_, Some(address)) if is_uri(address) => {}
                _ => self.fault(Rule::W009, Some(name)),
            }
        }
        match value.get("state") {
            None => self.fault(Rule::E048, Some(name)),
            Some(state) => version.state = self.state(name, state, manifest),
        }
        version
    }

    fn state(&mut self, name: &str, value: &Json, manifest: &Paths) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        let mut all = Tree::default();
        let Some(members) = value.members() else {
            self.fault(Rule::E050, Some(name));
            return state;
        };
        let mut digests = BTreeSet::new();
        for (digest, value) in members {
            if !digests.insert(digest) {
                self.fault(Rule::E033, Some(digest));
            }
            if !manifest.contains_key(digest) {
                self.fault(Rule::E050, Some(digest));
            }
            let Some(list) = texts(value) else {
                self.fault(Rule::E051, Some(digest));
                continue;
            };
            for path in list {
                if let Some(rule) = path_fault(&path, Rule::E052, Rule::E053) {
                    self.fault(rule, Some(&path));
                }
                if !all.insert(&path) {
                    self.fault(Rule::E095, Some(&path));
                }
                state.insert(path, digest.clone());
            }
        }
        if let Some(path) = all.conflict() {
            self.fault(Rule::E095, Some(&path));
        }
        state
    }
}

/// Paths, none of which is there twice or above another one.
#[derive(Default)]
struct Tree(BTreeSet<String>);

impl Tree {
    fn insert(&mut self, path: &str) -> bool {
        self.0.insert(path.to_owned())
    }

    /// A path that is also a directory of another one.
    fn conflict(&self) -> Option<String> {
        let mut paths = self.0.iter();
        let is_above = |path: &&String| {
            let below = format!("{path}/");
            self.0
                .range(below.clone()..)
                .next()
                .is_some_and(|next| next.starts_with(&below))
        };
        paths.find(is_above).cloned()
    }
}

fn path_fault(path: &str, part: Rule, ends: Rule) -> Option<Rule> {
    if path.starts_with('/') || path.ends_with('/') {
        return Some(ends);
    }
    path.split('/')
        .any(|name| matches!(name, "" | "." | ".."))
        .then_some(part)
}

fn texts(value: &Json) -> Option<Vec<String>> {
    let Json::List(list) = value else {
        return None;
    };
    list.iter()
        .map(|value| value.text().map(str::to_owned))
        .collect()
}

fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        let is_scheme = scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
        let begins = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic());
        is_scheme && begins && !rest.is_empty() && !rest.contains(char::is_whitespace)
    })
}

/// A text of others for one line, of bounded length.
fn shown(text: &str) -> String {
    crate::formats::fixity::abridged(text.as_bytes())
}

/// The name of the file with the digest of an inventory.
pub(super) fn sidecar_name(algorithm: &str) -> String {
    format!("{INVENTORY}.{algorithm}")
}
