//! The nodes that names lead to: the mounted tree above and beside the items.
//!
//! Names at the levels of identifiers have a meaning; inside an item they are a filesystem's. This module
//! decides lookups and changes of the former, and which requests go to the latter. It uses nodes, attributes
//! and errno, no FUSE type, and keeps only state that ends with the mount: labels, staged names, and what
//! has just been minted.
//!
//! - `names`, `requests`, `modes`, `virtual_entries`: pure decisions, or what a name leads to as data.
//! - `levels`, `items`, `siblings`, `labels`, `found`, `listing`, `prefix_listing`, `links`: lookups and listings.
//! - `changes`, `rename`, `declarations`, `minting`, `attributes`, `xattrs`, `sidecars`, `authors`,
//!   `staged_directories`: changes.
//! - `content`: the items whose content changes.
//! - `outside`: what is not held here.
//! - `changed_beside`, `taken`: changes that did not come through the mount.
//! - `invalidation`: what a change makes stale in the kernel's cache.

mod actor;
mod attributes;
mod authors;
mod changed_beside;
mod changes;
mod content;
mod declarations;
pub(crate) mod found;
mod generated;
mod invalidation;
mod item_xattrs;
mod items;
mod just_minted;
mod labels;
mod level_stamps;
mod levels;
mod links;
mod listing;
mod metadata_text;
mod minting;
mod modes;
mod names;
pub(crate) mod outside;
mod prefix_listing;
mod rename;
mod requests;
mod search;
mod siblings;
mod sidecars;
mod spellings;
mod staged_directories;
mod staging;
mod taken;
mod timer;
mod virtual_entries;
mod xattrs;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::archive::{Archive, ArchiveError};
use crate::formats::item::Names;
use crate::fuse::attr::Attr;
use crate::fuse::descriptors::{self, Descriptors, Links, Pinned, Pinning};
use crate::fuse::inode::{Node, NodeId, NodeKind, NodeTable, Real, View};
use crate::fuse::inside::{self, ErrnoResult};
use crate::os::caller::Caller;
use crate::os::serving::Server;
use ibi::relation::Language;

pub use changed_beside::CHANGED_BESIDE;
pub use changes::Created;
pub use generated::GeneratedText;
use invalidation::Added;
pub use invalidation::{Context, Invalidate, Stale};
pub use just_minted::OpenDeposit;
pub use listing::DirectoryEntry;
pub use minting::MkdirResult;
pub use names::WORLD;
pub use outside::WorldEntry;
pub use prefix_listing::{PAGE as PREFIX_PAGE, PrefixListing};

use crate::formats::tree_name::is_year;
use content::{item_in, met_in};
use found::Searches;
use generated::GeneratedTexts;
use just_minted::JustMinted;
use labels::Labels;
use level_stamps::LevelStamps;
pub use sidecars::Closing;
use sidecars::mark_sidecar;
use spellings::Spellings;
use staging::Staging;
use timer::{SystemTimer, Timer};
pub use xattrs::FALLBACK;

/// The longest name above the items, as on nearly every filesystem. statfs reports the native one's limit.
const LONGEST_NAME: usize = 255;
/// Options of a mount.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Languages that `+` prefers, best first.
    pub languages: Vec<Language>,
    /// Whether listings show everything that can be looked up.
    pub list_all: bool,
    /// Whether modifiers answer to their portable names as well, and are listed by them.
    pub portable_names: bool,
    /// The way to the items of other Archives, if there is one.
    pub world: Option<WorldEntry>,
    /// Whether names of items that are not held here lead there. Not for a mount that is written to: what does not
    /// exist must be free to be made.
    pub fallback: bool,
}

/// The node that a name leads to.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The node.
    pub node: Arc<Node>,
    /// Its attributes.
    pub attr: Attr,
    /// The time for which the kernel may cache that the name leads to this node.
    pub lifetime: NameLifetime,
}

/// The time for which the kernel may cache that a name leads to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLifetime {
    /// Until the name is invalidated.
    UntilInvalidated,
    /// Not at all: the name may lead to another node the next time.
    Uncached,
}

/// The mounted tree.
#[derive(Debug)]
pub struct Namespace {
    archive: Arc<Archive>,
    /// The nodes that the kernel knows.
    pub nodes: Arc<NodeTable>,
    options: Options,
    collection: OwnedFd,
    descriptors: Arc<Descriptors>,
    labels: Labels,
    just_minted: Arc<JustMinted>,
    /// Items that were added since the last invalidation.
    placed: Mutex<Vec<Added>>,
    level_stamps: LevelStamps,
    /// Items whose own directories have got or lost a name by a change beside them.
    changed: Mutex<Vec<Names>>,
    /// Sidecars that were refused when a process closed them and that another may still write: under which
    /// name in their item each is kept.
    refused: Mutex<HashMap<NodeId, String>>,
    /// What metadata texts that are being written said before.
    texts_before: Mutex<HashMap<NodeId, Vec<u8>>>,
    staging: Staging,
    spellings: Spellings,
    texts: GeneratedTexts,
    searches: Searches,
    timer: Arc<dyn Timer>,
    began: Instant,
}

impl Namespace {
    /// The tree of an Archive.
    pub fn new(archive: Arc<Archive>, options: Options) -> Result<Namespace, ArchiveError> {
        Namespace::with_timer(archive, options, Arc::new(SystemTimer))
    }

    /// Returns who has the files of the store.
    pub fn server(&self) -> Server {
        self.descriptors.server()
    }

    fn with_timer(
        archive: Arc<Archive>,
        options: Options,
        timer: Arc<dyn Timer>,
    ) -> Result<Namespace, ArchiveError> {
        let collection = archive.tree().open_directory("col")?;
        let staging = Staging::new(&archive)?;
        // A quarter for nodes; the others are for open files.
        let limit = descriptors::limit() / 4;
        let descriptors = Descriptors::new(archive.tree().root(), limit).map_err(|errno| {
            archive
                .tree()
                .error(crate::archive::tree::Action::Open, "col", errno)
        })?;
        Ok(Namespace {
            nodes: Arc::new(
                NodeTable::new(rustix::fs::fstat(&collection).map_or(0, |stat| stat.st_dev))
                    .of_shared_store(archive.is_shared()),
            ),
            options,
            collection,
            descriptors: Arc::new(descriptors),
            labels: Labels::default(),
            just_minted: Arc::new(JustMinted::new(Arc::clone(&timer))),
            placed: Mutex::default(),
            level_stamps: LevelStamps::default(),
            changed: Mutex::default(),
            refused: Mutex::default(),
            texts_before: Mutex::default(),
            staging,
            spellings: Spellings::default(),
            texts: GeneratedTexts::default(),
            searches: Searches::default(),
            began: timer.now(),
            timer,
            archive,
        })
    }

    /// The mount's root.
    pub fn root(&self) -> ErrnoResult<Entry> {
        let descriptor = inside::find(self.collection.as_fd(), OsStr::new("."))?;
        self.real(
            descriptor,
            View::Rep,
            NodeKind::Root,
            NameLifetime::UntilInvalidated,
        )
    }

    /// The entry of a real file.
    fn real(
        &self,
        descriptor: OwnedFd,
        view: View,
        kind: NodeKind,
        lifetime: NameLifetime,
    ) -> ErrnoResult<Entry> {
        let stat = rustix::fs::fstat(&descriptor)?;
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let (view, lifetime) = if is_link {
            self.link_as_met(descriptor.as_fd(), view, lifetime)
        } else {
            (view, lifetime)
        };
        // The path of the open descriptor shows where a link lies: one that is translated stays open.
        let pinning = if is_link && view != View::Rep {
            Pinning::ByDescriptor
        } else {
            Pinning::ByHandle
        };
        let file = self.descriptors.keep(descriptor, &stat, pinning);
        Ok(self.entry(stat, file, view, kind, lifetime))
    }

    fn entry(
        &self,
        stat: Stat,
        file: Pinned,
        view: View,
        kind: NodeKind,
        lifetime: NameLifetime,
    ) -> Entry {
        let attr = Attr::from(stat);
        // Only directories and symbolic links differ between the trees.
        let view = match attr.kind {
            FileType::Directory | FileType::Symlink => view,
            _ => View::Rep,
        };
        let real = Real {
            file,
            device: stat.st_dev,
            inode: stat.st_ino,
            is_link: attr.kind == FileType::Symlink,
        };
        let node = self.nodes.remember(real, view, kind);
        Entry {
            attr: self.as_met(&node, attr),
            node,
            lifetime,
        }
    }

    /// The entry of a virtual node. Its name may lead to another node the next time.
    fn virtual_entry(&self, view: View, kind: NodeKind) -> ErrnoResult<Entry> {
        let attr = self.virtual_attr(&kind)?;
        Ok(Entry {
            node: self.nodes.remember_virtual(view, kind),
            attr,
            lifetime: NameLifetime::Uncached,
        })
    }

    /// Finds an entry with attributes that no change has made stale before the table had its node: such a change did not
    /// find the node, and invalidated nothing.
    fn fresh(&self, find: impl FnOnce() -> ErrnoResult<Entry>) -> ErrnoResult<Entry> {
        let searches = self.nodes.searches();
        let mut entry = find()?;
        if self.nodes.searches() != searches
            && let Ok(attr) = self.attributes(&entry.node)
        {
            entry.attr = attr;
        }
        Ok(entry)
    }

    /// Finds a name in a directory. The kernel asks this before it makes, renames or removes a
    /// name, so one that is too long is refused here for all of them.
    pub fn lookup(&self, caller: &Caller, parent: &Node, name: &OsStr) -> ErrnoResult<Entry> {
        self.fresh(|| self.find(caller, parent, name))
    }

    fn find(&self, caller: &Caller, parent: &Node, name: &OsStr) -> ErrnoResult<Entry> {
        // Inside an item the native filesystem knows its own limit.
        if !matches!(parent.kind, NodeKind::Item(_) | NodeKind::Inside) && name.len() > LONGEST_NAME
        {
            return Err(Errno::NAMETOOLONG);
        }
        if let NodeKind::Root | NodeKind::Level(_) = parent.kind
            && let Some(staged) = self.find_staged_directory(parent, name)
        {
            return staged;
        }
        match &parent.kind {
            NodeKind::Root => self.or_outside(parent, "", name, self.lookup_in_root(name)),
            NodeKind::Level(path) if is_year(path) => {
                let found = self.lookup_in_year(caller, parent, path, name);
                self.or_outside(parent, path, name, found)
            }
            NodeKind::Level(path) => {
                let found = self.lookup_in_level(parent, path, name);
                self.or_outside(parent, path, name, found)
            }
            NodeKind::Item(item) => {
                if self.is_masked_for(caller, parent, name) {
                    return Err(Errno::NOENT);
                }
                let mut entry = self.lookup_inside(parent, name)?;
                mark_sidecar(&mut entry, *item, name);
                Ok(entry)
            }
            NodeKind::Inside => self.lookup_inside(parent, name),
            NodeKind::Prefix(prefix) => {
                let found = self.lookup_in_prefix(caller, parent, prefix, name);
                self.or_outside(parent, prefix, name, found)
            }
            NodeKind::Outside(path) => self.or_outside(parent, path, name, Err(Errno::NOENT)),
            // The process that knows the names is not there (yet): it is not said that they do not exist.
            NodeKind::World => Err(Errno::HOSTUNREACH),
            NodeKind::Mint => self.lookup_label(caller, name),
            NodeKind::Find => self.lookup_found(caller, "", name),
            NodeKind::Found(path) => self.lookup_found(caller, path, name),
            NodeKind::Link(_)
            | NodeKind::OwnLink(..)
            | NodeKind::Text(_)
            | NodeKind::Generated(_) => Err(Errno::NOTDIR),
        }
    }

    fn lookup_inside(&self, parent: &Node, name: &OsStr) -> ErrnoResult<Entry> {
        parent.learnt.set_looked_into();
        let directory = parent.file()?;
        let view = parent.view;
        let links = if view == View::Rep {
            Links::ByHandle
        } else {
            Links::Opened
        };
        let entry = match self.descriptors.find(directory.as_fd(), name, links)? {
            Some((stat, file)) => self.entry(
                stat,
                file,
                view,
                NodeKind::Inside,
                NameLifetime::UntilInvalidated,
            ),
            None => {
                let descriptor = inside::find(directory.as_fd(), name)?;
                self.real(
                    descriptor,
                    view,
                    NodeKind::Inside,
                    NameLifetime::UntilInvalidated,
                )?
            }
        };
        met_in(&entry, item_in(parent));
        Ok(entry)
    }

    /// The entry of a regular file that has just been made inside an item and is open.
    pub fn made_open(
        &self,
        parent: &Node,
        name: &OsStr,
        file: BorrowedFd<'_>,
    ) -> ErrnoResult<Entry> {
        let mut entry = match self.descriptors.note_open(file)? {
            Some((stat, file)) => self.entry(
                stat,
                file,
                parent.view,
                NodeKind::Inside,
                NameLifetime::UntilInvalidated,
            ),
            None => self.real(
                inside::find_open(file)?,
                parent.view,
                NodeKind::Inside,
                NameLifetime::UntilInvalidated,
            )?,
        };
        met_in(&entry, item_in(parent));
        if let NodeKind::Item(item) = parent.kind {
            mark_sidecar(&mut entry, item, name);
        }
        Ok(entry)
    }

    /// The entry of a name that was listed.
    pub fn listed(&self, caller: &Caller, parent: &Node, name: &OsStr) -> ErrnoResult<Entry> {
        match &parent.kind {
            NodeKind::Item(item) => self.fresh(|| {
                let mut entry = self.lookup_inside(parent, name)?;
                mark_sidecar(&mut entry, *item, name);
                Ok(entry)
            }),
            _ => self.lookup(caller, parent, name),
        }
    }

    /// The entry of a file that has just been made inside an item.
    pub fn made_inside(
        &self,
        parent: &Node,
        name: &OsStr,
        descriptor: OwnedFd,
    ) -> ErrnoResult<Entry> {
        let mut entry = self.real(
            descriptor,
            parent.view,
            NodeKind::Inside,
            NameLifetime::UntilInvalidated,
        )?;
        met_in(&entry, item_in(parent));
        if let NodeKind::Item(item) = parent.kind {
            mark_sidecar(&mut entry, item, name);
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests;
