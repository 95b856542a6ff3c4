//! Which node a name means, and what is known of it.
//!
//! The levels above an item answer to every name that may be part of an identifier, without asking anybody, and list
//! nothing. An item is asked for when it is looked up; what is in it needs no further request.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use crate::formats::inventory::{Entry, EntryKind};
use crate::formats::item::Names;
use crate::formats::links::read_in_ibip_tree;
use crate::world::cache::Cache;
use crate::world::content::{Content, RemoteFile};
use crate::world::inventory::{self, Inventory, Position};
use crate::world::items::{Item, Items, Related, Slot};
use crate::world::nodes::{Inside, Node, NodeKind, Nodes, View};
use crate::world::remote::Remote;
use crate::world::trouble::Trouble;
use ibi::relation::{Request, split_name};
use ibi::{Ibi, Ibip, Rep, ibip, rep};

/// The longest target of a link, in bytes.
const LONGEST_LINK: usize = 4095;

/// What a program can read of a node.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// Bytes that are there.
    Text(Arc<[u8]>),
    /// A file of an Archive.
    File(Arc<RemoteFile>),
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Its name.
    pub(crate) name: Vec<u8>,
    /// Its node, as long as the kernel does not know it.
    pub(crate) kind: NodeKind,
}

/// What a name asks for.
enum Asked {
    /// A node that is known.
    Known(NodeKind),
    /// An item.
    Item(Ibi, View),
    /// What a modifier leads to: the name as a whole.
    Related(String, View),
}

/// The names of all items.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// The nodes that the kernel knows.
    pub(crate) nodes: Nodes,
    /// The items that are known.
    pub(crate) items: Arc<Items>,
    /// Reads files.
    pub(crate) content: Arc<Content>,
    /// What has been fetched.
    pub(crate) cache: Arc<Cache>,
    /// Whom it asks.
    pub(crate) remote: Arc<Remote>,
}

impl Namespace {
    /// The names of the items that these Archives hold.
    pub(crate) fn new(remote: Remote, cache: Arc<Cache>) -> Namespace {
        let remote = Arc::new(remote);
        Namespace {
            nodes: Nodes::default(),
            items: Arc::new(Items::new(Arc::clone(&remote), Arc::clone(&cache))),
            content: Arc::new(Content::new(Arc::clone(&remote), Arc::clone(&cache))),
            cache,
            remote,
        }
    }

    /// A name that can be answered without asking anybody. None if somebody has to be asked.
    pub(crate) fn lookup_now(
        &self,
        parent: &Node,
        name: &OsStr,
    ) -> Option<Result<Arc<Node>, Trouble>> {
        match asked(parent, name) {
            Err(trouble) => Some(Err(trouble)),
            Ok(Asked::Known(kind)) => Some(Ok(self.nodes.remember(kind))),
            Ok(Asked::Item(ibi, view)) => {
                let found = self.items.now(&ibi)?;
                Some(found.and_then(|slot| self.root_of(slot, view)))
            }
            Ok(Asked::Related(..)) => None,
        }
    }

    /// The node of a name.
    pub(crate) async fn lookup(&self, parent: &Node, name: &OsStr) -> Result<Arc<Node>, Trouble> {
        match asked(parent, name)? {
            Asked::Known(kind) => Ok(self.nodes.remember(kind)),
            Asked::Item(ibi, view) => self.root_of(self.items.find(&ibi).await?, view),
            Asked::Related(name, view) => {
                let kind = match self.items.related(&name).await? {
                    Related::Item(names) => NodeKind::Link(link_target(view, &names)),
                    Related::Text(text) => NodeKind::Text(text),
                };
                Ok(self.nodes.remember(kind))
            }
        }
    }

    fn root_of(&self, slot: Arc<Slot>, view: View) -> Result<Arc<Node>, Trouble> {
        let inside = inside(&slot, view, inventory::ROOT)?;
        Ok(self.nodes.remember(NodeKind::Inside(inside)))
    }

    /// The entries of a directory.
    pub(crate) fn list(&self, node: &Node) -> Result<Vec<Listed>, Trouble> {
        let NodeKind::Inside(found) = &node.kind else {
            return match node.kind {
                NodeKind::Link(_) | NodeKind::Text(_) => Err(Trouble::NotDirectory),
                _ => Err(Trouble::Unlisted),
            };
        };
        let item = found.slot.item().ok_or(Trouble::Changed)?;
        let position = item.inventory.position(&found.entry.path);
        let position = position.ok_or(Trouble::Changed)?;
        let below = item.inventory.below(position).iter();
        below
            .map(|at| {
                let entry = item.inventory.entry(*at);
                Ok(Listed {
                    name: split(&entry.path).1.to_vec(),
                    kind: NodeKind::Inside(inside(&found.slot, found.view, *at)?),
                })
            })
            .collect()
    }

    /// The target of a link.
    pub(crate) fn target(&self, node: &Node) -> Result<Vec<u8>, Trouble> {
        match &node.kind {
            NodeKind::Link(target) => Ok(target.clone()),
            NodeKind::Inside(inside) => target_of(inside).ok_or(Trouble::Invalid),
            _ => Err(Trouble::Invalid),
        }
    }

    /// What a program reads of a node.
    pub(crate) fn open(&self, node: &Node) -> Result<Opened, Trouble> {
        match &node.kind {
            NodeKind::Text(text) => Ok(Opened::Text(Arc::clone(text))),
            NodeKind::Inside(inside) => match &inside.entry.kind {
                EntryKind::File(file) => {
                    let url = inside.item.file_url(&inside.entry.path);
                    Ok(Opened::File(Arc::new(RemoteFile::new(url, file.clone()))))
                }
                EntryKind::Text(text) => Ok(Opened::Text(text.as_slice().into())),
                EntryKind::Directory => Err(Trouble::IsDirectory),
                _ => Err(Trouble::Invalid),
            },
            NodeKind::Link(_) => Err(Trouble::Loop),
            _ => Err(Trouble::IsDirectory),
        }
    }

    /// An attribute that is read by its name and not listed, so that no program copies it.
    pub(crate) fn attribute(&self, node: &Node, name: &OsStr) -> Option<Vec<u8>> {
        let name = name.to_str()?.strip_prefix("user.ibi.")?;
        if let (NodeKind::Root, "status") = (&node.kind, name) {
            return Some(self.status().into_bytes());
        }
        let NodeKind::Inside(inside) = &node.kind else {
            return None;
        };
        let item = inside.slot.item().unwrap_or(Arc::clone(&inside.item));
        let names = item.inventory.names();
        let text = match name {
            "age" => item.age().as_secs().to_string(),
            "archive" => item.base.clone(),
            "source" if inside.entry.path.is_empty() => item.url(),
            "source" => item.file_url(&inside.entry.path),
            "rep" => names.rep()?.to_string(),
            "ibip" => names.ibip()?.to_string(),
            _ => return None,
        };
        Some(text.into_bytes())
    }

    /// What the process holds and has done, as a list of pairs.
    fn status(&self) -> String {
        format!(
            "{} items {} nodes {} requests {} silent {{{}}}",
            self.cache.usage(),
            self.items.len(),
            self.nodes.len(),
            self.remote.requests(),
            self.remote.silent().join(" ")
        )
    }

    /// What the kernel must forget when an item has changed: by the node of a directory, a name in it, or what it knows
    /// of the directory itself.
    pub(crate) fn stale(&self, slot: &Slot, before: &Item, after: Option<&Item>) -> Vec<Stale> {
        let mut stale = Vec::new();
        let Some(after) = after else {
            for (above, name) in places(&before.inventory) {
                let above = self.nodes.number(&above);
                stale.extend(above.map(|above| Stale::Name(above, name)));
            }
            return stale;
        };
        for view in [View::Rep, View::Ibip] {
            let number = |path: &[u8]| self.nodes.directory(slot.key(), view, path);
            for entry in before.inventory.entries() {
                let now = after.inventory.position(&entry.path);
                if now.is_some_and(|at| after.inventory.entry(at) == entry) {
                    continue;
                }
                if entry.kind == EntryKind::Directory {
                    stale.extend(number(&entry.path).map(Stale::Directory));
                }
                let (above, name) = split(&entry.path);
                if !name.is_empty() {
                    let name = name.to_vec();
                    stale.extend(number(above).map(|above| Stale::Name(above, name)));
                }
            }
        }
        stale
    }
}

/// What the kernel must forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// A name in a directory.
    Name(u64, Vec<u8>),
    /// The attributes of a directory.
    Directory(u64),
}

/// The directory of an entry, and its name there.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (b"", path),
    }
}

/// Where an item is: the directories above it, and its names there.
fn places(inventory: &Inventory) -> Vec<(NodeKind, Vec<u8>)> {
    let names = inventory.names();
    let rep = names.rep().map(|rep| {
        let [host, word, year, date] = rep.components();
        let above = NodeKind::Level(format!("{host}/{word}/{year}"));
        (above, date.as_bytes().to_vec())
    });
    let ibip = names.ibip().map(|ibip| {
        let above = NodeKind::Prefix(ibip.prefix().to_owned());
        (above, ibip.suffix().as_bytes().to_vec())
    });
    rep.into_iter().chain(ibip).collect()
}

/// What is at a position of an item, by the first name of its file.
fn inside(slot: &Arc<Slot>, view: View, position: Position) -> Result<Inside, Trouble> {
    let item = slot.item().ok_or(Trouble::Missing)?;
    let (first, links) = item.inventory.first_name(position);
    let entry: Entry = item.inventory.entry(first).clone();
    Ok(Inside {
        slot: Arc::clone(slot),
        view,
        entry: Arc::new(entry),
        item,
        links,
    })
}

/// The target of a link in an item, as the tree in which it is seen needs it.
pub(crate) fn target_of(inside: &Inside) -> Option<Vec<u8>> {
    let EntryKind::Link(target) = &inside.entry.kind else {
        return None;
    };
    if inside.view == View::Rep || !target.starts_with(b".") {
        return Some(target.clone());
    }
    let depth = inside
        .entry
        .path
        .iter()
        .filter(|byte| **byte == b'/')
        .count();
    let rep = inside.item.inventory.names().rep().map(Rep::components);
    let read = read_in_ibip_tree(target, depth, rep);
    (read.len() <= LONGEST_LINK).then_some(read)
}

/// A link from beside an item to another item.
fn link_target(view: View, names: &Names) -> Vec<u8> {
    let (climb, name) = match (view, names.ibip()) {
        (View::Ibip, Some(ibip)) => ("..", ibip.to_string()),
        (View::Ibip, None) => ("..", names.preferred()),
        (View::Rep, _) => ("../../..", names.preferred()),
    };
    format!("{climb}/{name}").into_bytes()
}

fn asked(parent: &Node, name: &OsStr) -> Result<Asked, Trouble> {
    let text = || name.to_str().ok_or(Trouble::Missing);
    match &parent.kind {
        NodeKind::Root => {
            let name = text()?;
            if !name.contains('.') && ibip::check_prefix(name).is_ok() {
                Ok(Asked::Known(NodeKind::Prefix(name.to_owned())))
            } else {
                level("", name)
            }
        }
        NodeKind::Level(path) if path.split('/').count() == 3 => {
            of_item(path, text()?, View::Rep, |text| {
                Rep::parse(text).ok().map(Ibi::Rep)
            })
        }
        NodeKind::Level(path) => level(path, text()?),
        NodeKind::Prefix(prefix) => of_item(prefix, text()?, View::Ibip, |text| {
            Ibip::parse(text).ok().map(Ibi::Ibip)
        }),
        NodeKind::Inside(found) => {
            if found.entry.kind != EntryKind::Directory {
                return Err(Trouble::NotDirectory);
            }
            let path = match found.entry.path.as_slice() {
                [] => name.as_bytes().to_vec(),
                above => [above, b"/", name.as_bytes()].concat(),
            };
            let item = found.slot.item().ok_or(Trouble::Missing)?;
            let position = item.inventory.position(&path).ok_or(Trouble::Missing)?;
            let inside = inside(&found.slot, found.view, position)?;
            Ok(Asked::Known(NodeKind::Inside(inside)))
        }
        NodeKind::Link(_) | NodeKind::Text(_) => Err(Trouble::NotDirectory),
    }
}

fn level(path: &str, name: &str) -> Result<Asked, Trouble> {
    let number = if path.is_empty() {
        1
    } else {
        path.split('/').count() + 1
    };
    if rep::check_component(number, name).is_err() {
        return Err(Trouble::Missing);
    }
    let below = if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    };
    Ok(Asked::Known(NodeKind::Level(below)))
}

/// A name below a year or a prefix: that of an item, or with a modifier.
fn of_item(
    above: &str,
    name: &str,
    view: View,
    parse: impl Fn(&str) -> Option<Ibi>,
) -> Result<Asked, Trouble> {
    if let Some(ibi) = parse(&format!("{above}/{name}")) {
        return Ok(Asked::Item(ibi, view));
    }
    let (first, tail) = split_name(name).ok_or(Trouble::Missing)?;
    let request = Request::parse_tail(tail).map_err(|_| Trouble::Missing)?;
    let ibi = parse(&format!("{above}/{first}")).ok_or(Trouble::Missing)?;
    match request {
        Request::Modifier(modifier) => Ok(Asked::Related(format!("{ibi}{modifier}"), view)),
        Request::FileList(_) => Err(Trouble::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: NodeKind) -> Node {
        Node { id: 2, kind }
    }

    fn meaning(kind: NodeKind, name: &str) -> String {
        match asked(&node(kind), OsStr::new(name)) {
            Ok(Asked::Known(kind)) => format!("{kind:?}"),
            Ok(Asked::Item(ibi, view)) => format!("{ibi} {view:?}"),
            Ok(Asked::Related(name, view)) => format!("{name} {view:?}"),
            Err(trouble) => format!("{trouble:?}"),
        }
    }

    #[test]
    fn names_are_those_of_a_store() {
        let level = |path: &str| NodeKind::Level(path.to_owned());
        let prefix = |prefix: &str| NodeKind::Prefix(prefix.to_owned());
        for (parent, name, expected) in [
            (NodeKind::Root, "8JMKD3MGP8W", "Prefix(\"8JMKD3MGP8W\")"),
            (NodeKind::Root, "6RPa7umaZ", "Prefix(\"6RPa7umaZ\")"),
            (NodeKind::Root, "sid.inpe.br", "Level(\"sid.inpe.br\")"),
            (NodeKind::Root, ".Trash-0", "Missing"),
            (NodeKind::Root, ".world", "Missing"),
            (
                level("sid.inpe.br"),
                "mtc-m18@80",
                "Level(\"sid.inpe.br/mtc-m18@80\")",
            ),
            (level("a.b/c"), "2009", "Level(\"a.b/c/2009\")"),
            (level("a.b/c"), "x", "Missing"),
            (
                level("a.b/c/2009"),
                "02.16.17.46",
                "a.b/c/2009/02.16.17.46 Rep",
            ),
            (
                level("a.b/c/2009"),
                "02.16.17.46!",
                "a.b/c/2009/02.16.17.46! Rep",
            ),
            (level("a.b/c/2009"), "99.16.17.46", "Missing"),
            (prefix("8JMKD3MGP8W"), "34PGRBS", "8JMKD3MGP8W/34PGRBS Ibip"),
            (
                prefix("8JMKD3MGP8W"),
                "34PGRBS:(bibtex)",
                "8JMKD3MGP8W/34PGRBS:(bibtex) Ibip",
            ),
            (prefix("8JMKD3MGP8W"), "34PGRBS+(", "Missing"),
            (NodeKind::Link(b"x".to_vec()), "a", "NotDirectory"),
        ] {
            assert_eq!(meaning(parent.clone(), name), expected, "{parent:?} {name}");
        }
    }
}
