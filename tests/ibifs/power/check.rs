//! Comparison of the store after a cut with the model.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use ibifs::formats::item::{Names, Sidecar};
use rustix::fs::getxattr;

use super::model::{Content, End, Entry, Facts, Item, Key, Presence, Shape};

/// The state in which an item was found.
pub struct Found {
    original: bool,
    /// Paths without the sidecar; None for a directory.
    names: BTreeMap<String, Option<Vec<u8>>>,
    sidecar: Option<Vec<u8>>,
    answers: [bool; 2],
}

/// The names by which items of the model are known.
#[derive(Default)]
pub struct Directory {
    keys: BTreeMap<String, Key>,
}

impl Directory {
    pub fn of(items: &BTreeMap<Key, Item>) -> Directory {
        let names = items
            .iter()
            .flat_map(|(key, item)| [(item.rep.clone(), *key), (item.ibip.clone(), *key)]);
        Directory {
            keys: names.filter(|(name, _)| !name.is_empty()).collect(),
        }
    }

    pub fn add(&mut self, item: &Item, key: Key) {
        self.keys.insert(item.rep.clone(), key);
        self.keys.insert(item.ibip.clone(), key);
    }

    fn end(&self, names: &Names) -> End {
        let texts = names
            .rep()
            .map(ToString::to_string)
            .into_iter()
            .chain(names.ibip().map(ToString::to_string));
        for text in texts {
            if let Some(key) = self.keys.get(&text) {
                return End::Item(*key);
            }
        }
        End::Elsewhere(names.preferred())
    }

    fn facts(&self, original: bool, sidecar: &Sidecar) -> Facts {
        let relations = sidecar.relations();
        let relations = relations
            .iter()
            .map(|(kind, names)| (kind.pair_name(), self.end(names)));
        let words = ["language", "target", "note"]
            .into_iter()
            .filter_map(|name| {
                let value = sidecar.pairs().get(name)?;
                Some((name.to_owned(), value.words().join(" ")))
            });
        Facts {
            original,
            relations: relations.collect(),
            words: words.collect(),
        }
    }
}

pub fn attribute(path: &Path, name: &str) -> Result<String, String> {
    let mut value = vec![0; 4096];
    let length = getxattr(path, name, &mut value)
        .map_err(|error| format!("{name} of {}: {error}", path.display()))?;
    value.truncate(length);
    Ok(String::from_utf8_lossy(&value).into_owned())
}

fn printed<T>(path: &Path, outcome: std::io::Result<T>) -> Result<T, String> {
    outcome.map_err(|error| format!("{}: {error}", path.display()))
}

fn is_there(path: &Path) -> Result<bool, String> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn read_below(
    item: &Path,
    below: &str,
    names: &mut BTreeMap<String, Option<Vec<u8>>>,
) -> Result<(), String> {
    let directory = item.join(below);
    for entry in printed(&directory, fs::read_dir(&directory))? {
        let entry = printed(&directory, entry)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = match below {
            "" => name,
            below => format!("{below}/{name}"),
        };
        // Ours to check by what it says; what a repair has set aside (`.ibi.broken-1`,
        // `.ibi.before-1`) belongs to no item.
        if path == ".ibi" || path.starts_with(".ibi.b") {
            continue;
        }
        let whole = item.join(&path);
        if printed(&whole, entry.file_type())?.is_dir() {
            names.insert(path.clone(), None);
            read_below(item, &path, names)?;
        } else {
            names.insert(path, Some(printed(&whole, fs::read(&whole))?));
        }
    }
    Ok(())
}

/// Reads an item through the mount; None where it is not there by either name.
pub fn find(mount: &Path, item: &Item) -> Result<Option<Found>, String> {
    let mut paths = Vec::new();
    let mut answers = [false; 2];
    for (name, answers) in [&item.rep, &item.ibip].into_iter().zip(&mut answers) {
        *answers = !name.is_empty() && is_there(&mount.join(name))?;
        if *answers {
            paths.push(mount.join(name));
        }
    }
    let Some(path) = paths.first() else {
        return Ok(None);
    };
    let state = attribute(path, "user.ibi.state")?;
    let original = match state.as_str() {
        "Original" => true,
        "Copy" => false,
        other => return Err(format!("{} is {other}", path.display())),
    };
    let is_named = original || !item.copied.contains(&None);
    if is_named && paths.len() < 2 && !item.ibip.is_empty() {
        return Err(format!("{} is known by one name only", path.display()));
    }
    for other in &paths {
        let rep = attribute(other, "user.ibi.rep");
        if is_named && rep.as_ref() != Ok(&item.rep) {
            return Err(format!("{} says it is {rep:?}", other.display()));
        }
    }
    let mut names = BTreeMap::new();
    // The last of them: by its IBIp where that leads to it.
    let last = paths.last().unwrap_or(path);
    read_below(last, "", &mut names)?;
    let sidecar = match fs::read(path.join(".ibi")) {
        Ok(bytes) if bytes.is_empty() => None,
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{}/.ibi: {error}", path.display())),
    };
    Ok(Some(Found {
        original,
        names,
        sidecar,
        answers,
    }))
}

impl Found {
    pub fn is_original(&self) -> bool {
        self.original
    }

    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.names.keys()
    }

    fn fits(&self, item: &Item, shape: &Shape) -> bool {
        let same = shape.names.keys().eq(self.names.keys());
        shape.presence == Presence::Here
            && same
            && shape.names.iter().all(|(path, entry)| {
                match (entry, self.names.get(path).and_then(Option::as_ref)) {
                    (Entry::Directory, None) => true,
                    (Entry::File(file), Some(bytes)) => item.contents[*file].allows(bytes),
                    _ => false,
                }
            })
    }
}

/// Holds what was found of an item against what may be found.
pub fn check(
    item: &Item,
    found: Option<&Found>,
    directory: &Directory,
    unseen: &BTreeSet<Key>,
) -> Result<(), String> {
    let Some(found) = found else {
        return if item
            .shapes
            .iter()
            .any(|shape| shape.presence != Presence::Here)
        {
            Ok(())
        } else {
            Err(format!("{} {} is lost", item.rep, item.ibip))
        };
    };
    if !item.shapes.iter().any(|shape| found.fits(item, shape)) {
        let lengths: Vec<String> = found
            .names
            .iter()
            .map(|(path, bytes)| format!("{path}:{:?}", bytes.as_ref().map(Vec::len)))
            .collect();
        let allowed: Vec<String> = item.shapes.iter().map(|shape| shown(item, shape)).collect();
        return Err(format!(
            "{} holds {lengths:?}, none of\n  {}",
            item.rep,
            allowed.join("\n  ")
        ));
    }
    if !found.original {
        let may_be_a_copy = item.facts.iter().any(|facts| !facts.original);
        return if may_be_a_copy && item.copied.contains(&found.sidecar) {
            Ok(())
        } else {
            Err(format!(
                "{} is a copy with the sidecar {:?}, not one of {:?}; {:?}",
                item.rep,
                found.sidecar.as_deref().map(String::from_utf8_lossy),
                item.copied,
                item.facts
            ))
        };
    }
    let bytes = found.sidecar.as_deref().unwrap_or_default();
    let sidecar =
        Sidecar::parse(bytes).map_err(|error| format!("sidecar of {}: {error}", item.rep))?;
    let facts = directory.facts(true, &sidecar);
    let allows = |allowed: &Facts| {
        let mut relations = allowed.relations.clone();
        for (kind, end) in &mut relations {
            if *end == End::Fresh
                && let Some(End::Item(key)) = facts.relations.get(kind)
                && unseen.contains(key)
            {
                *end = End::Item(*key);
            }
        }
        allowed.original && relations == facts.relations && allowed.words == facts.words
    };
    if item.facts.iter().any(allows) {
        Ok(())
    } else {
        Err(format!(
            "{} says {facts:?}, none of\n  {:?}",
            item.rep, item.facts
        ))
    }
}

fn shown(item: &Item, shape: &Shape) -> String {
    let names: Vec<String> = shape
        .names
        .iter()
        .map(|(path, entry)| match entry {
            Entry::Directory => format!("{path}:None"),
            Entry::File(file) => {
                let versions = &item.contents[*file].versions;
                let lengths: Vec<usize> = versions.iter().map(Vec::len).collect();
                format!("{path}:{lengths:?}")
            }
        })
        .collect();
    format!("{:?} {names:?}", shape.presence)
}

/// The item as it was found: all of it is on disk now.
pub fn settled(item: &Item, found: Option<&Found>, directory: &Directory) -> Item {
    let mut settled = item.clone();
    settled.contents.clear();
    settled.copied.clear();
    let Some(found) = found else {
        let presence = if item
            .shapes
            .iter()
            .any(|shape| shape.presence == Presence::Removed)
        {
            Presence::Removed
        } else {
            Presence::Never
        };
        let names = BTreeMap::new();
        settled.shapes = [Shape { presence, names }].into();
        settled.facts = [item.says().clone()].into();
        return settled;
    };
    let mut names = BTreeMap::new();
    for (path, bytes) in &found.names {
        let entry = match bytes {
            None => Entry::Directory,
            Some(bytes) => {
                settled.contents.push(Content {
                    versions: vec![bytes.clone()],
                });
                Entry::File(settled.contents.len() - 1)
            }
        };
        names.insert(path.clone(), entry);
    }
    let presence = Presence::Here;
    settled.shapes = [Shape { presence, names }].into();
    let sidecar = found.sidecar.as_deref().map(Sidecar::parse);
    settled.facts = match sidecar {
        Some(Ok(sidecar)) if found.original => [directory.facts(true, &sidecar)].into(),
        _ => [Facts::default()].into(),
    };
    settled.answers = found.answers;
    settled.copied = match found.sidecar {
        Some(_) => vec![found.sidecar.clone()],
        None => item.copied.clone(),
    };
    settled
}

/// The items that the rep tree and the IBIp trees without reps list.
pub fn listed(mount: &Path) -> Result<BTreeSet<String>, String> {
    let mut listed = BTreeSet::new();
    let mut waiting = vec![String::new()];
    while let Some(level) = waiting.pop() {
        let directory = mount.join(&level);
        for entry in printed(&directory, fs::read_dir(&directory))? {
            let name = printed(&directory, entry)?.file_name();
            let name = name.to_string_lossy();
            let path = match level.as_str() {
                "" => name.into_owned(),
                level => format!("{level}/{name}"),
            };
            // A prefix has no dot, the first component of a rep has.
            let levels = if path
                .split('/')
                .next()
                .is_some_and(|first| first.contains('.'))
            {
                4
            } else {
                2
            };
            if path.split('/').count() == levels {
                listed.insert(path);
            } else {
                waiting.push(path);
            }
        }
    }
    Ok(listed)
}
