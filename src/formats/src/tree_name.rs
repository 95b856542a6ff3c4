//! The grammar of names in the tree of an Archive, the same in the mount of a store, in that of other Archives and over
//! WebDAV.
//!
//! In the root are the first components of reps and the prefixes of IBIps. Three components of a rep are a year, whose
//! names are those of items; so are the names below a prefix. The name of an item may be followed by a modifier.

use ibi::ibip::{check_prefix, prefix_key};
use ibi::relation::{Request, split_name};
use ibi::rep::{check_component, component_key};
use ibi::{Ibi, Ibip, Rep};

/// The longest accepted name, in bytes.
const LONGEST_NAME: usize = 255;
/// The number of components of a level whose names are those of items.
const YEAR: usize = 3;

/// A directory above items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LevelPath {
    /// The directory of all items.
    Root,
    /// One to three components of a rep.
    Rep(String),
    /// The prefix of IBIps.
    Prefix(String),
}

/// The meaning of a name below a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeName {
    /// A further level.
    Level(LevelPath),
    /// An item, as it is spelled.
    Item(Ibi),
    /// The thing that is asked for beside an item, by a modifier or verbs.
    Sibling(Ibi, Request),
}

/// The path of a name in a level; the root's path is empty.
#[must_use]
pub fn below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

/// Returns which of the four components of a rep the names in a level are, counted from 1.
#[must_use]
pub fn component_below(path: &str) -> usize {
    match path {
        "" => 1,
        path => path.split('/').count() + 1,
    }
}

/// Whether a level is the third, in which items lie.
#[must_use]
pub fn is_year(path: &str) -> bool {
    path.split('/').count() == YEAR
}

/// Whether a name in the root is a prefix of IBIps, and not the first component of reps.
#[must_use]
pub fn is_prefix(name: &str) -> bool {
    !name.contains(['.', '/']) && check_prefix(name).is_ok()
}

/// Splits `<name><mdf>` or `<name>?<verbs>` into the name of an item and what is asked for, which is None without a
/// sign. None if the sign begins no request.
#[must_use]
pub fn split_request(name: &str) -> Option<(&str, Option<Request>)> {
    match split_name(name) {
        None => Some((name, None)),
        Some((base, tail)) => Some((base, Some(Request::parse_tail(tail).ok()?))),
    }
}

impl LevelPath {
    /// Parses a path, which is empty for the root. None if it can be none above items.
    #[must_use]
    pub fn parse(path: &str) -> Option<LevelPath> {
        if path.is_empty() {
            return Some(LevelPath::Root);
        }
        if path.len() > (LONGEST_NAME + 1) * YEAR {
            return None;
        }
        if is_prefix(path) {
            return Some(LevelPath::Prefix(path.to_owned()));
        }
        let mut depth = 0;
        for component in path.split('/') {
            depth += 1;
            if depth > YEAR || check_component(depth, component).is_err() {
                return None;
            }
        }
        Some(LevelPath::Rep(path.to_owned()))
    }

    /// The path as it is spelled, empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            LevelPath::Root => "",
            LevelPath::Rep(path) | LevelPath::Prefix(path) => path,
        }
    }

    /// Its last component, empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        let path = self.as_str();
        path.rsplit_once('/').map_or(path, |(_, name)| name)
    }

    /// Returns what all spellings of the path share.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            LevelPath::Root => String::new(),
            LevelPath::Rep(path) => {
                let parts: Vec<String> = path.split('/').map(component_key).collect();
                parts.join("/")
            }
            LevelPath::Prefix(prefix) => prefix_key(prefix),
        }
    }

    /// Whether the names below it are those of items.
    #[must_use]
    pub fn has_items(&self) -> bool {
        match self {
            LevelPath::Root => false,
            LevelPath::Rep(path) => is_year(path),
            LevelPath::Prefix(_) => true,
        }
    }

    /// The level with this name below it. None if no level can have it.
    #[must_use]
    pub fn below(&self, name: &str) -> Option<LevelPath> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains('/') {
            return None;
        }
        match self {
            LevelPath::Root => LevelPath::parse(name),
            LevelPath::Rep(path) => LevelPath::parse(&below(path, name)),
            LevelPath::Prefix(_) => None,
        }
    }

    /// The item with this name below the level. None if no item can have it.
    #[must_use]
    pub fn item(&self, name: &str) -> Option<Ibi> {
        if !self.has_items() || name.contains('/') || name.len() > LONGEST_NAME {
            return None;
        }
        let text = below(self.as_str(), name);
        match self {
            LevelPath::Prefix(_) => Ibip::parse(&text).ok().map(Ibi::Ibip),
            _ => Rep::parse(&text).ok().map(Ibi::Rep),
        }
    }

    /// The canonical identifier of the item with this name below the level. None if no item can have it.
    #[must_use]
    pub fn item_key(&self, name: &str) -> Option<String> {
        self.item(name).map(|ibi| ibi.canonical())
    }

    /// The meaning of a name below the level. None if it is not part of an identifier.
    #[must_use]
    pub fn meaning(&self, name: &str) -> Option<TreeName> {
        if !self.has_items() {
            return self.below(name).map(TreeName::Level);
        }
        if let Some(ibi) = self.item(name) {
            return Some(TreeName::Item(ibi));
        }
        let (base, request) = split_request(name)?;
        Some(TreeName::Sibling(self.item(base)?, request?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted_by_their_components() {
        for (path, component, year) in [
            ("", 1, false),
            ("iconet.com.br", 2, false),
            ("iconet.com.br/banon", 3, false),
            ("iconet.com.br/banon/2001", 4, true),
        ] {
            assert_eq!(component_below(path), component, "{path:?}");
            assert_eq!(is_year(path), year, "{path:?}");
        }
        assert_eq!(below("", "a"), "a");
        assert_eq!(below("a/b", "c"), "a/b/c");
    }

    #[test]
    fn only_names_of_identifiers_have_a_meaning() {
        let level = |path: &str| Some(TreeName::Level(LevelPath::Rep(path.to_owned())));
        let prefix = |prefix: &str| Some(TreeName::Level(LevelPath::Prefix(prefix.to_owned())));
        let item = |text: &str| Some(TreeName::Item(Ibi::parse(text).expect("an identifier")));
        let sibling = |text: &str, tail: &str| {
            let ibi = Ibi::parse(text).expect("an identifier");
            let request = Request::parse_tail(tail).expect("a request");
            Some(TreeName::Sibling(ibi, request))
        };
        for (path, name, expected) in [
            ("", "8JMKD3MGP8W", prefix("8JMKD3MGP8W")),
            ("", "6RPa7umaZ", prefix("6RPa7umaZ")),
            ("", "sid.inpe.br", level("sid.inpe.br")),
            ("", "no", level("no")),
            ("no", "esnotes8JMK", level("no/esnotes8JMK")),
            ("", "", None),
            ("", ".", None),
            ("", "..", None),
            ("", ".Trash-0", None),
            ("", ".world", None),
            ("", "a:b", None),
            ("", "a.b/c", None),
            ("sid.inpe.br", "mtc-m18@80", level("sid.inpe.br/mtc-m18@80")),
            ("a.b/c", "2009", level("a.b/c/2009")),
            ("a.b/c", "x", None),
            ("a.b/c/2009", "02.16.17.46", item("a.b/c/2009/02.16.17.46")),
            (
                "a.b/c/2009",
                "02.16.17.46!",
                sibling("a.b/c/2009/02.16.17.46", "!"),
            ),
            (
                "a.b/c/2009",
                "02.16.17.46?GetLastEdition+GetFileList",
                sibling("a.b/c/2009/02.16.17.46", "?GetLastEdition+GetFileList"),
            ),
            ("a.b/c/2009", "02.30.17.46", None),
            ("a.b/c/2009", "doc", None),
            ("a.b/c/2009", "!", None),
            ("8JMKD3MGP8W", "34PGRBS", item("8JMKD3MGP8W/34PGRBS")),
            (
                "8JMKD3MGP8W",
                "34PGRBS?GetLastEdition+GetMetadata(bibtex)",
                sibling("8JMKD3MGP8W/34PGRBS", "!:(bibtex)"),
            ),
            ("8JMKD3MGP8W", "34PGRBS+(", None),
            ("8JMKD3MGP8W", "34PGRBS/x", None),
            ("8JMKD3MGP8W", ".34PGRBS.x1y2z3", None),
        ] {
            let level = LevelPath::parse(path).expect("a level");
            assert_eq!(level.meaning(name), expected, "{path} {name}");
        }
    }

    #[test]
    fn a_level_is_as_long_as_names_may_be() {
        let longest = "a".repeat(LONGEST_NAME);
        for (path, is_level) in [
            ("a.b/c/2009/02.16.17.46", false),
            ("a.b//2009", false),
            ("/a.b", false),
            ("a.b/../c", false),
            ("8JMKD3MGP8W/34PGRBS", false),
            ("a.b/c", true),
        ] {
            assert_eq!(LevelPath::parse(path).is_some(), is_level, "{path}");
        }
        assert!(LevelPath::Root.below(&format!("{longest}a")).is_none());
        let key = LevelPath::parse("A.b/C/2009").expect("a level").key();
        assert_eq!(key, LevelPath::parse("a.B/c/2009").expect("a level").key());
    }
}
