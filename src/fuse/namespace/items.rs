//! The item that a name means, and the entry of its directory.

use std::os::fd::OwnedFd;

use super::requests::Sibling;
use super::{Entry, NameLifetime, Namespace};
use crate::archive::Stranger;
use crate::archive::store::{Item, Remembered};
use crate::archive::tree::Place;
use crate::formats::item::{Names, State};
use crate::formats::tree_name::{LevelPath, below, is_year, split_request};
use crate::fuse::errno;
use crate::fuse::inode::{Node, NodeId, NodeKind, View};
use crate::fuse::inside::ErrnoResult;
use ibi::relation::{Request, from_portable};
use ibi::{AliasPair, Ibi, Ibip, Rep};

impl Namespace {
    /// A node in words: the path of a level, the names of an item.
    pub(crate) fn place(&self, id: NodeId) -> String {
        let Some(node) = self.nodes.get(id) else {
            return format!("node {}", id.0);
        };
        match &node.kind {
            NodeKind::Root => "the root".to_owned(),
            NodeKind::Level(path) | NodeKind::Outside(path) | NodeKind::Prefix(path) => {
                format!("{path:?}")
            }
            NodeKind::Item(id) => match self.archive.store().item(*id) {
                Ok(Some(item)) => item.names.preferred(),
                _ => format!("item {}", id.0),
            },
            NodeKind::Inside => "an item".to_owned(),
            NodeKind::Mint => ".mint".to_owned(),
            NodeKind::Find | NodeKind::Found(_) => ".find".to_owned(),
            NodeKind::World => ".world".to_owned(),
            NodeKind::Link(_)
            | NodeKind::OwnLink(..)
            | NodeKind::Text(_)
            | NodeKind::Generated(_) => "a virtual file".to_owned(),
        }
    }

    /// The item of a name below an IBIp prefix, and whether that is its recorded name.
    pub(super) fn item_below_prefix(
        &self,
        prefix: &str,
        name: &str,
    ) -> ErrnoResult<Option<(Item, bool)>> {
        let store = self.archive.store();
        let whole = format!("{prefix}/{name}");
        if let Ok(ibip) = Ibip::parse(&whole) {
            let found = store.find_by_ibip(&ibip).map_err(errno::of_index)?;
            if let Some(item) = found.filter(|item| item.state != State::Deleted) {
                // The directory itself is the recorded spelling of the prefix.
                let is_recorded = item
                    .names
                    .ibip()
                    .is_some_and(|known| known.suffix() == name);
                return Ok(Some((item, is_recorded)));
            }
            // A crash may have come between a folder made here and the index.
            let names = Names::from(Ibi::Ibip(ibip));
            if self.archive.tree().is_directory(Place::of(&names).as_str()) {
                return Ok(Some((
                    self.archive
                        .edit(&Stranger, |it| it.register_in_place(&names))?,
                    true,
                )));
            }
        }
        if let Ok(alias) = AliasPair::parse(&whole) {
            let found = store.find_by_alias(&alias).map_err(errno::of_index)?;
            if let Some(item) = found.filter(|item| item.state != State::Deleted) {
                return Ok(Some((item, false)));
            }
        }
        Ok(None)
    }

    /// Parses `<ibi><mdf>` and `<ibi>?<verbs>` of an item held here; None for any other name.
    pub(super) fn sibling(&self, parent: &Node, name: &str) -> ErrnoResult<Option<Sibling>> {
        let Some((base, request)) = self.base_and_request(name) else {
            return Ok(None);
        };
        let base = base.as_str();
        let item = match &parent.kind {
            NodeKind::Level(path) if is_year(path) => match Rep::parse(&below(path, base)) {
                Ok(rep) => {
                    let found = self
                        .archive
                        .store()
                        .find_by_rep(&rep)
                        .map_err(errno::of_index)?;
                    found.filter(|item| item.state != State::Deleted)
                }
                Err(_) => None,
            },
            NodeKind::Prefix(prefix) => self.item_below_prefix(prefix, base)?.map(|(item, _)| item),
            _ => None,
        };
        Ok(item.map(|item| Sibling { item, request }))
    }

    /// The name of the item in `<ibi><mdf>` or `<ibi>?<verbs>`, and what is asked for.
    fn base_and_request(&self, name: &str) -> Option<(String, Request)> {
        let portable = if self.options.portable_names {
            from_portable(name)
        } else {
            None
        };
        let (base, request) = split_request(portable.as_deref().unwrap_or(name))?;
        Some((base.to_owned(), request?))
    }

    /// Reads at once what is asked for to follow the relations of a name, see `Store::near`.
    pub(super) fn read_near(&self, parent: &Node, name: &str) -> ErrnoResult<Option<Remembered>> {
        let Some((base, _)) = self.base_and_request(name) else {
            return Ok(None);
        };
        let ibi = match &parent.kind {
            NodeKind::Level(path) => LevelPath::Rep(path.clone()).item(&base),
            NodeKind::Prefix(prefix) => LevelPath::Prefix(prefix.clone()).item(&base),
            _ => None,
        };
        let store = self.archive.store();
        let near = ibi.map(|ibi| store.near(&Names::from(ibi)));
        near.transpose().map_err(errno::of_index)
    }

    /// Whether names with modifiers are valid in this directory.
    pub(super) fn has_siblings(&self, parent: &Node) -> bool {
        match &parent.kind {
            NodeKind::Level(path) => is_year(path),
            NodeKind::Prefix(_) => true,
            _ => false,
        }
    }

    /// The entry of an item's directory in a tree.
    pub(super) fn item_entry(&self, item: &Item, view: View) -> ErrnoResult<Entry> {
        let descriptor = self.archive.tree().open_item(&Place::of(&item.names))?;
        // A label may end, and a modifier's name is a directory for its depositor alone.
        let lifetime = match view {
            View::Rep | View::Ibip => NameLifetime::UntilInvalidated,
            _ => NameLifetime::Uncached,
        };
        self.real(descriptor, view, NodeKind::Item(item.id), lifetime)
    }

    /// An item's directory, open with O_PATH.
    pub(super) fn item_directory(&self, item: &Item) -> ErrnoResult<OwnedFd> {
        let tree = self.archive.tree();
        Ok(tree.open_item(&Place::of(&item.names))?)
    }
}
