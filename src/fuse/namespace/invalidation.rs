//! The part of the kernel's cache that a change makes stale.
//!
//! The kernel caches names and attributes for up to a minute, in each tree by itself, and learns only of
//! changes that go through it in that tree. Names that a change makes stale in other trees, or above the
//! items, are invalidated by us.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Stat};

use super::Namespace;
use super::level_stamps::Stamp;
use crate::archive::tree::{METADATA_TEXT, Place, SIDECAR};
use crate::formats::item::Names;
use crate::fuse::inode::{Node, NodeId, NodeKind, ROOT, View};
use crate::fuse::inside::ErrnoResult;
use crate::os::caller::Caller;

/// A thing that the kernel must look up again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// A name in a directory.
    Name(NodeId, OsString),
    /// A node's attributes.
    Attributes(NodeId),
    /// A directory's listing and attributes.
    Listing(NodeId),
    /// The name of a directory that the kernel knows by another one: its number, and its path in the mount.
    Moved(NodeId, PathBuf),
}

/// The kernel's cache of names and attributes.
pub trait Invalidate: Send + Sync {
    /// Invalidates before the request is answered. Returns when that is done, or after a short time.
    fn invalidate(&self, stale: Vec<Stale>);
    /// Invalidates after the answer: names in a directory that the kernel locks until then.
    fn invalidate_after_reply(&self, stale: Vec<Stale>);
}

/// The process on whose behalf a change is made, and the cache that it may make stale.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The process that asks.
    pub caller: &'a Caller,
    /// The kernel's cache.
    pub cache: &'a dyn Invalidate,
}

/// An item that was added.
#[derive(Debug)]
pub(super) struct Added {
    names: Names,
    /// The directory in which a request asked for it. The kernel itself drops the attributes of that.
    by_kernel_in: Option<NodeId>,
}

/// The file that a name is about to lose.
#[derive(Debug, Default)]
pub(super) struct Losing {
    /// What becomes stale: its link count.
    pub(super) stale: Vec<Stale>,
    /// The sidecar that it is by another name, if that is known.
    pub(super) sidecar: Option<Arc<Node>>,
}

/// The attributes of a name in a directory, links not followed.
fn stat_of(parent: &Node, name: &OsStr) -> ErrnoResult<Stat> {
    rustix::fs::statat(&*parent.file()?, name, AtFlags::SYMLINK_NOFOLLOW)
}

impl Namespace {
    /// Invalidates what the Archive itself has changed of items, and passes a result on.
    pub(super) fn settle<T>(&self, by: &Context<'_>, result: ErrnoResult<T>) -> ErrnoResult<T> {
        self.invalidate_items(by.cache);
        result
    }

    /// Invalidates what our own changes since the last call have made stale: the directories of items whose
    /// sidecars or metadata texts were written, and the levels above items that were added.
    pub(super) fn invalidate_items(&self, cache: &dyn Invalidate) {
        let mut stale = self.stale_items();
        let placed = std::mem::take(&mut *self.placed.lock());
        let mut levels: Vec<(NodeId, Stamp)> = Vec::new();
        for added in &placed {
            for (level, stamp) in self.levels_above(&added.names) {
                if !self.level_stamps.is_changed(level, stamp) || levels.contains(&(level, stamp)) {
                    continue;
                }
                levels.push((level, stamp));
                if added.by_kernel_in != Some(level) {
                    stale.push(Stale::Attributes(level));
                }
            }
        }
        cache.invalidate(stale);
        self.level_stamps.record(levels);
    }

    /// The directories of items whose sidecars or metadata texts we have written since the last call.
    fn stale_items(&self) -> Vec<Stale> {
        let mut stale = Vec::new();
        let changed = std::mem::take(&mut *self.changed.lock());
        for names in &changed {
            // The text has got its name, or lost it, by now.
            let item = self.archive.store().find_by_names(names);
            if let Ok(Some(item)) = item
                && let Err(error) = self.archive.note_described(item.id)
            {
                log::warn!("searches may not find what {names} is described as: {error}");
            }
            let name = |node| Stale::Name(node, METADATA_TEXT.into());
            stale.extend(self.known_directory_of(names).into_iter().map(name));
        }
        for names in self.archive.take_rewritten().iter().chain(&changed) {
            let known = self.known_directory_of(names);
            stale.extend(known.into_iter().map(Stale::Listing));
        }
        stale
    }

    /// The numbers by which the kernel knows the directory of an item; none if the item was removed.
    pub(super) fn known_directory_of(&self, names: &Names) -> Vec<NodeId> {
        match self.archive.tree().open_item(&Place::of(names)) {
            Ok(directory) => self.known_directory(directory.as_fd()),
            Err(_) => Vec::new(),
        }
    }

    /// The numbers by which the kernel knows a directory.
    pub(super) fn known_directory(&self, directory: BorrowedFd<'_>) -> Vec<NodeId> {
        let Ok(stat) = rustix::fs::fstat(directory) else {
            return Vec::new();
        };
        self.nodes.in_all_views(stat.st_dev, stat.st_ino)
    }

    /// Notes that an item's own directory has got or lost its metadata text.
    pub(super) fn note_changed(&self, names: &Names) {
        self.changed.lock().push(names.clone());
    }

    /// Notes that an item was added.
    pub(super) fn note_placed(&self, names: &Names) {
        self.note_added(names, None);
    }

    /// Notes that an item was added by a request for a name in this directory.
    pub(super) fn note_made_in(&self, parent: &Node, names: &Names) {
        self.note_added(names, Some(parent.id));
    }

    fn note_added(&self, names: &Names, by_kernel_in: Option<NodeId>) {
        self.placed.lock().push(Added {
            names: names.clone(),
            by_kernel_in,
        });
    }

    /// The levels above an item that the kernel knows, whose attributes change when it is added or removed.
    pub(super) fn levels_above(&self, names: &Names) -> Vec<(NodeId, Stamp)> {
        let mut levels = Vec::new();
        if let Ok(stat) = rustix::fs::fstat(&self.collection) {
            levels.push((ROOT, Stamp::of(&stat)));
        }
        let mut path = String::new();
        for component in names
            .rep()
            .iter()
            .flat_map(|rep| rep.components().into_iter().take(3))
        {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(component);
            let stat = rustix::fs::statat(&self.collection, &path, AtFlags::SYMLINK_NOFOLLOW);
            let Ok(stat) = stat else {
                break;
            };
            let known = self.nodes.in_all_views(stat.st_dev, stat.st_ino);
            levels.extend(known.into_iter().map(|node| (node, Stamp::of(&stat))));
        }
        levels
    }

    /// Returns what becomes stale in other trees when a directory changes; `name` is the name that was replaced
    /// or removed. A new name is in no cache, nor is any name of a directory in which the kernel has not looked
    /// for one: the label of an item that is used by another path. To be called after the change.
    pub(super) fn stale_names(&self, parent: &Node, name: Option<&OsStr>) -> Vec<Stale> {
        let mut stale = Vec::new();
        for number in self.nodes.in_other_views(parent) {
            let node = self.nodes.get(number);
            let is_looked_into = node.is_some_and(|node| node.learnt.is_looked_into());
            if let (Some(name), true) = (name, is_looked_into) {
                stale.push(Stale::Name(number, name.to_owned()));
            }
            stale.push(Stale::Listing(number));
        }
        stale
    }

    /// Returns what becomes stale in other trees when the attributes of a directory or link change.
    pub(super) fn stale_attributes(&self, node: &Node) -> Vec<Stale> {
        let mut numbers = self.nodes.in_other_views(node);
        if node.kind == NodeKind::Root {
            // Virtual directories have the attributes of the root.
            numbers.extend(self.nodes.virtual_directories());
        }
        numbers.into_iter().map(Stale::Attributes).collect()
    }

    /// Looks at the file that a name is about to lose, by a removal or to another file. A directory that the kernel knows is
    /// opened: a process whose working directory it is must find an empty directory, not a stale one.
    pub(super) fn losing(&self, parent: &Node, name: &OsStr) -> Losing {
        let mut losing = Losing::default();
        let Ok(stat) = stat_of(parent, name) else {
            return losing;
        };
        let known = || self.nodes.in_all_views(stat.st_dev, stat.st_ino);
        let kind = FileType::from_raw_mode(stat.st_mode);
        let has_others = stat.st_nlink > 1;
        if kind == FileType::Directory {
            self.keep_nodes_open(known());
        } else if has_others && name != SIDECAR {
            let node = self
                .nodes
                .get(self.nodes.id_of(stat.st_dev, stat.st_ino, View::Rep));
            losing.sidecar = node.filter(|node| node.learnt.sidecar_of().is_some());
        }
        // The kernel may know a symbolic link with several names by another of them, in another tree.
        let is_linked = kind == FileType::Symlink && has_others;
        if is_linked || self.is_known_elsewhere(parent) {
            losing.stale = known().into_iter().map(Stale::Attributes).collect();
        }
        losing
    }

    /// Returns what becomes stale when a file is moved to another directory: the targets of symbolic links that
    /// leave their item, in the trees that translate them.
    pub(super) fn stale_links(&self, parent: &Node, name: &OsStr) -> Vec<Stale> {
        let Ok(stat) = stat_of(parent, name) else {
            return Vec::new();
        };
        let links = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => self.nodes.in_all_views(stat.st_dev, stat.st_ino),
            // Only their paths would show which of them lie in the directory.
            FileType::Directory => self.nodes.translated_links(),
            _ => Vec::new(),
        };
        links.into_iter().map(Stale::Listing).collect()
    }

    /// Returns the name of a symbolic link that was moved to another directory: it may be another node there
    /// ([`Namespace::link_as_met`]), and the kernel has moved the one that it knew.
    pub(super) fn moved_link(&self, parent: &Node, name: &OsStr) -> Option<Stale> {
        let is_link = !parent.view.has_disk_depth()
            && stat_of(parent, name)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        is_link.then(|| Stale::Name(parent.id, name.to_owned()))
    }

    /// Returns what the kernel must look up in other trees after a directory was renamed, if it knows it there.
    pub(super) fn moved(&self, parent: &Node, name: &OsStr) -> Vec<Stale> {
        let Ok(stat) = stat_of(parent, name) else {
            return Vec::new();
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Vec::new();
        }
        let known = self.nodes.in_all_views(stat.st_dev, stat.st_ino);
        let known = known
            .into_iter()
            .filter_map(|number| self.nodes.get(number));
        let elsewhere = known.filter(|node| node.view != parent.view);
        let moved = |node: Arc<Node>| {
            let path = self.path_in(node.view, parent, name)?;
            Some(Stale::Moved(node.id, path))
        };
        elsewhere.filter_map(moved).collect()
    }

    /// Whether the kernel knows this directory or link in another tree, too.
    pub(super) fn is_known_elsewhere(&self, node: &Node) -> bool {
        !self.nodes.in_other_views(node).is_empty()
    }

    /// The type of the one file that two names lead to; none if they lead to two.
    pub(super) fn same_file(
        &self,
        one: (&Node, &OsStr),
        other: (&Node, &OsStr),
    ) -> Option<FileType> {
        let [one, other] = [one, other].map(|(parent, name)| stat_of(parent, name).ok());
        let (one, other) = (one?, other?);
        let is_same = (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino);
        is_same.then(|| FileType::from_raw_mode(one.st_mode))
    }

    /// After a rename that replaced a file by itself under another name: the kernel considers the node of
    /// the replaced name removed, and the other one moved.
    pub(super) fn renamed_to_itself(&self, parent: &Node, name: &OsStr) {
        if let Ok(stat) = stat_of(parent, name) {
            let number = self.nodes.id_of(stat.st_dev, stat.st_ino, parent.view);
            self.nodes.retire(number);
        }
    }

    /// Opens nodes, so that a process whose working directory they are finds an empty directory, not a stale one.
    pub(super) fn keep_nodes_open(&self, numbers: Vec<NodeId>) {
        for node in numbers
            .into_iter()
            .filter_map(|number| self.nodes.get(number))
        {
            // An error means that it was removed already.
            let _ = node.file();
        }
    }
}
