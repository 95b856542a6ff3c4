//! The promises of the mounted tree: the meaning of each name, for each user, in plain words.

use std::collections::{BTreeMap, BTreeSet};

use super::archive::{Items, Names, Related, Step};
use super::files::{Body, Files, Ino};

/// The tree in which a directory or link is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    Rep,
    Ibip,
    Label,
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Root,
    /// Above the items, by its path.
    Level(String),
    /// An IBIp prefix.
    Prefix(String),
    Mint,
    File(Ino, View),
    /// A link that is on no disk.
    Link(String),
    Text(Vec<u8>),
    /// The Dublin Core of an item.
    DublinCore(usize),
    /// Beyond the mount point.
    Outside,
}

/// The user who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Root,
    Alice,
}

pub const ALICE: u32 = crate::posix::row::ALICE;
pub const STAFF: u32 = crate::posix::row::STAFF;

impl Who {
    pub fn owner(self) -> (u32, u32) {
        match self {
            Who::Root => (0, 0),
            Who::Alice => (ALICE, ALICE),
        }
    }
}

/// A request behind an identifier.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    Modifier(&'static [Step]),
    FileList,
}

use Step::{DublinCore, Last, Metadata, Translation};

/// The texts that may follow an identifier.
pub const TAILS: [(&str, Request); 26] = [
    ("!", Request::Modifier(&[Last])),
    ("+", Request::Modifier(&[Translation(None)])),
    (":", Request::Modifier(&[Metadata])),
    ("+(pt)", Request::Modifier(&[Translation(Some("pt"))])),
    ("+(en)", Request::Modifier(&[Translation(Some("en"))])),
    ("+(fr)", Request::Modifier(&[Translation(Some("fr"))])),
    (":(oai_dc)", Request::Modifier(&[DublinCore])),
    (":+", Request::Modifier(&[Metadata, Translation(None)])),
    ("!+", Request::Modifier(&[Last, Translation(None)])),
    (
        "!+(pt)",
        Request::Modifier(&[Last, Translation(Some("pt"))]),
    ),
    ("!:", Request::Modifier(&[Last, Metadata])),
    (
        "!+:",
        Request::Modifier(&[Last, Translation(None), Metadata]),
    ),
    (
        "!:+",
        Request::Modifier(&[Last, Metadata, Translation(None)]),
    ),
    (
        "!+:+",
        Request::Modifier(&[Last, Translation(None), Metadata, Translation(None)]),
    ),
    ("+!", Request::Modifier(&[Translation(None), Last])),
    (
        "+(en)!",
        Request::Modifier(&[Translation(Some("en")), Last]),
    ),
    ("+:", Request::Modifier(&[Translation(None), Metadata])),
    (
        "+!:",
        Request::Modifier(&[Translation(None), Last, Metadata]),
    ),
    (
        "+:+",
        Request::Modifier(&[Translation(None), Metadata, Translation(None)]),
    ),
    (
        "+!:+",
        Request::Modifier(&[Translation(None), Last, Metadata, Translation(None)]),
    ),
    ("?GetLastEdition", Request::Modifier(&[Last])),
    (
        "?GetTranslation(pt)",
        Request::Modifier(&[Translation(Some("pt"))]),
    ),
    ("?GetMetadata", Request::Modifier(&[Metadata])),
    (
        "?GetLastEdition+GetMetadata",
        Request::Modifier(&[Last, Metadata]),
    ),
    ("?GetMetadata(oai_dc)", Request::Modifier(&[DublinCore])),
    ("?GetFileList", Request::FileList),
];

/// In the place of an errno: that lies beyond the mount point.
pub const OUTSIDE: i32 = -1;

/// The mount's preferred languages.
pub const PREFERRED: [&str; 2] = ["en", "fr"];

/// The mounted tree, its users apart.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub files: Files,
    pub items: Items,
    /// The folders of reps above the items, by their paths as recorded.
    pub levels: BTreeSet<String>,
    /// The folders of IBIp prefixes in the store.
    pub folders: BTreeSet<String>,
    pub labels: BTreeMap<String, usize>,
    /// By whom: no other user meets them.
    pub labelled_by: BTreeMap<String, Who>,
    /// The files and directories that tools have staged beside items.
    pub staged: BTreeMap<(Node, String), Ino>,
}

/// Splits a path into what is above and its last component.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

pub fn below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

pub fn is_year(path: &str) -> bool {
    path.split('/').count() == 3
}

impl Tree {
    /// The item whose directory this is.
    pub fn item_of(&self, root: Ino) -> Option<usize> {
        let mut items = self.items.items.iter();
        let found = items.find(|(_, item)| item.is_held && item.root == root);
        found.map(|(number, _)| *number)
    }

    pub fn is_directory(&self, node: &Node) -> bool {
        match node {
            Node::File(ino, _) => self.files.is_directory(*ino),
            Node::Link(_) | Node::Text(_) | Node::DublinCore(_) => false,
            _ => true,
        }
    }

    /// Returns the depth of a directory below its item, and the item.
    fn position(&self, directory: Ino) -> Option<(usize, usize)> {
        let (mut at, mut depth) = (directory, 0);
        loop {
            if let Some(item) = self.item_of(at) {
                return Some((depth, item));
            }
            at = self.files.above(at)?;
            depth += 1;
        }
    }

    /// Returns the text of a link on the disk as it is read at its place; None for anything else.
    pub fn read_link(&self, above: &Node, node: &Node) -> Option<String> {
        let (ino, view) = match node {
            Node::Link(target) => return Some(target.clone()),
            Node::File(ino, view) => (*ino, *view),
            _ => return None,
        };
        let Body::Link(target) = &self.files.get(ino).body else {
            return None;
        };
        let Node::File(directory, _) = above else {
            return Some(target.clone());
        };
        match (view, self.position(*directory)) {
            (View::Ibip | View::Label, Some((depth, item))) => {
                let names = &self.items.items[&item].names;
                Some(read_in_ibip_tree(target, depth, names))
            }
            _ => Some(target.clone()),
        }
    }

    /// Whether a link in a directory leads out of its item.
    fn climbs_out(&self, directory: Ino, target: &str) -> bool {
        let (count, _) = climb(plain(target).unwrap_or(target));
        let position = self.position(directory);
        position.is_some_and(|(depth, _)| count > depth)
    }

    /// Returns the text that is stored on the disk for a link that is made in a directory.
    pub fn link_to_keep(&self, directory: Ino, view: View, target: &str) -> String {
        match (view, self.position(directory)) {
            (View::Ibip | View::Label, Some((depth, item))) => {
                let names = &self.items.items[&item].names;
                written_in_ibip_tree(target, depth, names)
            }
            _ => target.to_owned(),
        }
    }

    /// The directory above a directory.
    pub fn above(&self, node: &Node) -> Node {
        match node {
            Node::Level(path) => match split(path) {
                ("", _) => Node::Root,
                (above, _) => Node::Level(above.to_owned()),
            },
            Node::Prefix(_) | Node::Mint => Node::Root,
            Node::File(ino, view) => match (self.item_of(*ino), view) {
                (None, _) => {
                    let above = self.files.above(*ino);
                    above.map_or(Node::Outside, |above| Node::File(above, *view))
                }
                (Some(item), View::Label) => {
                    if self.labels.values().any(|known| *known == item) {
                        Node::Mint
                    } else {
                        // The label is forgotten, and its place with it.
                        Node::Outside
                    }
                }
                (Some(item), view) => {
                    let names = &self.items.items[&item].names;
                    match (view, &names.rep) {
                        (View::Rep, Some(rep)) => Node::Level(split(rep).0.to_owned()),
                        _ => Node::Prefix(names.prefix().unwrap_or_default().to_owned()),
                    }
                }
            },
            _ => Node::Outside,
        }
    }

    /// What a name in a directory means.
    pub fn look(&self, directory: &Node, name: &str) -> Result<Node, i32> {
        match directory {
            Node::Root if name == ".mint" => Ok(Node::Mint),
            Node::Root => self.level("", name).or_else(|_| self.prefix(name)),
            Node::Level(path) if is_year(path) => {
                let rep = below(path, name);
                let held = self
                    .items
                    .items
                    .values()
                    .find(|item| item.is_held && item.names.rep.as_deref() == Some(&rep));
                match held {
                    Some(item) => Ok(Node::File(item.root, View::Rep)),
                    None => self.sibling(directory, name),
                }
            }
            Node::Level(path) => self.level(path, name),
            Node::Prefix(prefix) => match self.below_prefix(prefix, name) {
                Some(item) => {
                    let item = &self.items.items[&item];
                    let recorded = item.names.ibip.clone().unwrap_or_default();
                    if split(&recorded).1 == name {
                        Ok(Node::File(item.root, View::Ibip))
                    } else {
                        Ok(Node::Link(format!("../{recorded}")))
                    }
                }
                None => self.sibling(directory, name),
            },
            Node::Mint => match name.strip_prefix('.') {
                Some(label) => {
                    let item = self.labels.get(label).ok_or(libc::ENOENT)?;
                    let names = &self.items.items[item].names;
                    Ok(Node::Link(format!("../{}", names.preferred())))
                }
                None => {
                    let item = self.labels.get(name).ok_or(libc::ENOENT)?;
                    Ok(Node::File(self.items.items[item].root, View::Label))
                }
            },
            Node::File(ino, view) => {
                let found = self.files.find(*ino, name).ok_or(libc::ENOENT)?;
                let view = match &self.files.get(found).body {
                    Body::File(_) => View::Rep,
                    // With the same text in all trees it is one file in all of them.
                    Body::Link(target) if !self.climbs_out(*ino, target) => View::Rep,
                    _ => *view,
                };
                Ok(Node::File(found, view))
            }
            Node::Outside => Err(OUTSIDE),
            _ => Err(libc::ENOENT),
        }
    }

    /// What a name in a directory means to a user: what is said of an item is for users who may read
    /// all that it is taken from.
    pub fn look_as(&self, who: Who, directory: &Node, name: &str) -> Result<Node, i32> {
        if *directory == Node::Mint && !self.is_label_of(who, name) {
            return Err(libc::ENOENT);
        }
        let asked = match who {
            Who::Root => None,
            Who::Alice => self.request(directory, name),
        };
        let Some((item, _, request)) = asked else {
            return self.look(directory, name);
        };
        let root = self.items.items[&item].root;
        self.allowed(who, root, 5)?;
        if let Request::Modifier(steps) = request {
            let names = &self.items.items[&item].names;
            let resolve = |count: usize| self.items.resolve(names, &steps[..count], &PREFERRED);
            // Each item on the way, whose relations are followed, and that of which a text is shown.
            for count in 1..=steps.len() {
                let met = match resolve(count) {
                    Ok(Related::Item(names)) if count < steps.len() => {
                        self.items.held_number(&names)
                    }
                    Ok(Related::TextOf(item)) if count == steps.len() => Some(item),
                    _ => None,
                };
                if let Some(met) = met {
                    self.allowed(who, self.items.items[&met].root, 5)?;
                }
            }
        }
        let node = self.look(directory, name)?;
        match (request, &node) {
            (Request::FileList, _) => self.listable(who, root)?,
            (_, Node::DublinCore(item)) => self.describable(who, *item)?,
            _ => {}
        }
        Ok(node)
    }

    /// Whether a name in `.mint` is one of this user's.
    pub fn is_label_of(&self, who: Who, name: &str) -> bool {
        let label = name.strip_prefix('.').unwrap_or(name);
        self.labelled_by.get(label) == Some(&who)
    }

    fn allowed(&self, who: Who, ino: Ino, wanted: u32) -> Result<(), i32> {
        if self.may(who, &Node::File(ino, View::Rep), wanted) {
            Ok(())
        } else {
            Err(libc::EACCES)
        }
    }

    /// Whether a user may list a directory with all that are below it.
    fn listable(&self, who: Who, directory: Ino) -> Result<(), i32> {
        self.allowed(who, directory, 4)?;
        for ino in self.files.names(directory).values() {
            if self.files.is_directory(*ino) {
                self.allowed(who, directory, 1)?;
                self.listable(who, *ino)?;
            }
        }
        Ok(())
    }

    /// Whether a user may read every file below a directory.
    fn readable(&self, who: Who, directory: Ino) -> Result<(), i32> {
        for ino in self.files.names(directory).values() {
            self.allowed(who, directory, 1)?;
            match self.files.get(*ino).body {
                Body::Directory(_) => self.readable(who, *ino)?,
                Body::File(_) => self.allowed(who, *ino, 4)?,
                Body::Link(_) => {}
            }
        }
        Ok(())
    }

    /// Whether a user may read what describes an item.
    fn describable(&self, who: Who, number: usize) -> Result<(), i32> {
        let item = &self.items.items[&number];
        if let Some(record) = self.items.target(&item.names, super::archive::METADATA) {
            let Some(record) = self.items.held(&record) else {
                return Ok(());
            };
            self.listable(who, record.root)?;
            return match self.files.find(record.root, "doc") {
                Some(doc) if self.files.is_directory(doc) => {
                    self.allowed(who, record.root, 1)?;
                    self.readable(who, doc)
                }
                _ => Ok(()),
            };
        }
        match self.files.find(item.root, ".ibi.metadata") {
            Some(text) => self.allowed(who, text, 4),
            None => Ok(()),
        }
    }

    /// A level is a directory as recorded, and a link to it in any other case.
    fn level(&self, path: &str, name: &str) -> Result<Node, i32> {
        let wanted = below(path, name);
        if self.levels.contains(&wanted) {
            return Ok(Node::Level(wanted));
        }
        let mut levels = self.levels.iter();
        let recorded = levels.find(|level| level.eq_ignore_ascii_case(&wanted));
        let link = |recorded: &String| Node::Link(split(recorded).1.to_owned());
        recorded.map(link).ok_or(libc::ENOENT)
    }

    fn prefix(&self, name: &str) -> Result<Node, i32> {
        let held = self.items.items.values().filter(|item| item.is_held);
        let of_items = held.filter_map(|item| item.names.prefix());
        let mut all = of_items.chain(self.folders.iter().map(String::as_str));
        match all.find(|prefix| prefix.eq_ignore_ascii_case(name)) {
            Some(prefix) if prefix == name => Ok(Node::Prefix(name.to_owned())),
            Some(prefix) => Ok(Node::Link(prefix.to_owned())),
            None => Err(libc::ENOENT),
        }
    }

    fn below_prefix(&self, prefix: &str, name: &str) -> Option<usize> {
        self.items.held_number(&Names {
            rep: None,
            ibip: Some(format!("{prefix}/{name}")),
        })
    }

    /// The item and the request in a name beside it.
    pub fn request(
        &self,
        directory: &Node,
        name: &str,
    ) -> Option<(usize, &'static str, &'static Request)> {
        for (tail, request) in &TAILS {
            let Some(base) = name.strip_suffix(tail) else {
                continue;
            };
            let item = match directory {
                Node::Level(path) if is_year(path) => self.items.held_number(&Names {
                    rep: Some(below(path, base)),
                    ibip: None,
                }),
                Node::Prefix(prefix) => self.below_prefix(prefix, base),
                _ => None,
            };
            if let Some(item) = item {
                return Some((item, tail, request));
            }
        }
        None
    }

    /// A modifier, or what has been staged.
    fn sibling(&self, directory: &Node, name: &str) -> Result<Node, i32> {
        let Some((number, _, request)) = self.request(directory, name) else {
            let staged = self.staged.get(&(directory.clone(), name.to_owned()));
            let staged = staged.ok_or(libc::ENOENT)?;
            return Ok(Node::File(*staged, View::Rep));
        };
        let item = &self.items.items[&number];
        let steps = match request {
            Request::FileList => return Ok(Node::Text(self.file_list(item.root))),
            Request::Modifier(steps) => steps,
        };
        match self.items.resolve(&item.names, steps, &PREFERRED)? {
            Related::Item(names) => Ok(Node::Link(path_from(directory, &names))),
            Related::DublinCore(item) => Ok(Node::DublinCore(item)),
            Related::TextOf(item) => {
                let root = self.items.items[&item].root;
                let text = self.files.find(root, ".ibi.metadata");
                Ok(Node::File(text.ok_or(libc::ENOENT)?, View::Rep))
            }
        }
    }

    fn file_list(&self, root: Ino) -> Vec<u8> {
        let mut files = Vec::new();
        let mut waiting = vec![(String::new(), root)];
        while let Some((path, directory)) = waiting.pop() {
            for (name, ino) in self.files.names(directory) {
                let path = below(&path, name);
                match self.files.is_directory(*ino) {
                    true => waiting.push((path, *ino)),
                    false if path == ".ibi" || path == ".ibi.metadata" => {}
                    false => files.push(path),
                }
            }
        }
        files.sort();
        files
            .iter()
            .map(|path| format!("{path}\n"))
            .collect::<String>()
            .into_bytes()
    }

    fn levels_below(&self, path: &str) -> Vec<String> {
        let of = |level: &&String| match path {
            "" => !level.contains('/'),
            path => split(level).0 == path,
        };
        let levels = self.levels.iter().filter(of);
        levels.map(|level| split(level).1.to_owned()).collect()
    }

    /// The names that a listing has, with their nodes.
    pub fn list(&self, directory: &Node) -> Vec<String> {
        let held = self.items.items.values().filter(|item| item.is_held);
        let names: Vec<&Names> = held.map(|item| &item.names).collect();
        match directory {
            Node::Root => {
                let without_rep = names.iter().filter(|names| names.rep.is_none());
                let prefixes = without_rep.filter_map(|names| names.prefix());
                let all: BTreeSet<String> = self
                    .levels_below("")
                    .into_iter()
                    .chain(prefixes.map(str::to_owned))
                    .collect();
                all.into_iter().collect()
            }
            Node::Level(path) if is_year(path) => {
                let reps = names.iter().filter_map(|names| names.rep.as_ref());
                let below = reps.filter(|rep| split(rep).0 == path);
                below.map(|rep| split(rep).1.to_owned()).collect()
            }
            Node::Level(path) => self.levels_below(path),
            Node::Prefix(prefix) => {
                let below = names.iter().filter(|names| {
                    names
                        .prefix()
                        .is_some_and(|known| known.eq_ignore_ascii_case(prefix))
                });
                let below: Vec<&&Names> = below.collect();
                let any_without_rep = below.iter().any(|names| names.rep.is_none());
                let shown = below
                    .iter()
                    .filter(|names| !any_without_rep || names.rep.is_none());
                let suffix =
                    |names: &&&Names| names.ibip.as_ref().map(|ibip| split(ibip).1.to_owned());
                shown.filter_map(suffix).collect()
            }
            Node::Mint => self.labels.keys().cloned().collect(),
            Node::File(ino, _) => self.files.names(*ino).keys().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a user may read (4), write (2) or enter (1) a node.
    pub fn may(&self, who: Who, node: &Node, wanted: u32) -> bool {
        let Node::File(ino, _) = node else {
            return who == Who::Root || wanted & 2 == 0;
        };
        let inode = self.files.get(*ino);
        let (uid, gid) = who.owner();
        match who {
            Who::Root => true,
            _ if inode.uid == uid => inode.mode >> 6 & wanted == wanted,
            _ if inode.gid == gid || inode.gid == STAFF => inode.mode >> 3 & wanted == wanted,
            _ => inode.mode & wanted == wanted,
        }
    }

    /// Goes along a path; a link at its end is followed or not.
    pub fn walk(&self, who: Who, start: &Node, path: &str, follow: bool) -> Result<Node, i32> {
        let (mut at, mut links) = (start.clone(), 0);
        let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        while let Some(name) = todo.pop() {
            if name.is_empty() {
                continue;
            }
            if !self.is_directory(&at) {
                return Err(libc::ENOTDIR);
            }
            if !self.may(who, &at, 1) {
                return Err(libc::EACCES);
            }
            if name == "." {
                continue;
            }
            if name == ".." {
                at = self.above(&at);
                continue;
            }
            let node = self.look_as(who, &at, &name)?;
            if (follow || !todo.is_empty())
                && let Some(target) = self.read_link(&at, &node)
            {
                links += 1;
                if links > 40 {
                    return Err(libc::ELOOP);
                }
                if target.starts_with('/') {
                    at = Node::Outside;
                }
                todo.extend(target.split('/').rev().map(str::to_owned));
                continue;
            }
            at = node;
        }
        match at {
            Node::Outside => Err(OUTSIDE),
            at => Ok(at),
        }
    }
}

/// The way from beside an item to another one, in the same tree where it has a name there.
pub fn path_from(directory: &Node, names: &Names) -> String {
    match (directory, &names.ibip) {
        (Node::Prefix(_), Some(ibip)) => format!("../{ibip}"),
        (Node::Prefix(_), None) => format!("../{}", names.preferred()),
        _ => format!("../../../{}", names.preferred()),
    }
}

/// Returns the number of steps that a target goes up, and the rest of it.
fn climb(target: &str) -> (usize, &str) {
    let (mut count, mut rest) = (0, target);
    while let Some(after) = rest.strip_prefix("../") {
        (count, rest) = (count + 1, after);
    }
    match rest {
        ".." => (count + 1, ""),
        rest => (count, rest),
    }
}

fn climbing(count: usize, rest: &str) -> String {
    let up = vec![".."; count].join("/");
    match rest {
        "" => up,
        rest => format!("{up}/{rest}"),
    }
}

/// The beginning of a link on the disk that was written in the IBIp tree and climbs to its prefix.
const FROM_PREFIX: &str = "./../../../";

/// Such a link without what marks it.
fn plain(target: &str) -> Option<&str> {
    target
        .strip_prefix("./")
        .filter(|_| target.starts_with(FROM_PREFIX))
}

/// A link on the disk is as the rep tree reads it, where items lie four levels deep, not two.
fn read_in_ibip_tree(target: &str, depth: usize, names: &Names) -> String {
    if let (Some(written), Some(prefix)) = (target.strip_prefix(FROM_PREFIX), names.prefix()) {
        let (count, rest) = climb(written);
        if let Some(down) = rest.strip_prefix(prefix).filter(|_| count == depth + 1) {
            return format!("{}{down}", climbing(count, ""));
        }
    }
    let plain = plain(target);
    let dot = plain.map_or("", |_| "./");
    let (count, rest) = climb(plain.unwrap_or(target));
    match (count.saturating_sub(depth), &names.rep) {
        (0, _) => target.to_owned(),
        (4.., _) => format!("{dot}{}", climbing(count - 2, rest)),
        (above, Some(rep)) => {
            let parts: Vec<&str> = rep.split('/').take(4 - above).collect();
            climbing(
                depth + 2,
                below(&parts.join("/"), rest).trim_end_matches('/'),
            )
        }
        (_, None) => target.to_owned(),
    }
}

fn written_in_ibip_tree(target: &str, depth: usize, names: &Names) -> String {
    let (count, _) = climb(target);
    match (count.saturating_sub(depth), names.prefix()) {
        (0, _) => target.to_owned(),
        (2.., _) => format!("../../{target}"),
        (_, Some(prefix)) => {
            let (up, down) = target.split_at(climbing(count, "").len());
            format!("{FROM_PREFIX}{up}/{prefix}{down}")
        }
        (_, None) => target.to_owned(),
    }
}
