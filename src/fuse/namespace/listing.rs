//! Listings above the items. They show rep trees, so that a recursive tool sees each item once. Names that
//! only lookups find (IBIp prefixes, modifiers, `.mint`) are listed with `-o list=all`.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Namespace;
use crate::archive::tree::Place;
use crate::formats::tree_name::{below, component_below, is_year};
use crate::fuse::errno;
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::{self, ErrnoResult};
use crate::os::caller::Caller;
use ibi::relation::{Request, portable_name};
use ibi::{Rep, rep};

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name.
    pub name: OsString,
    /// The inode number that `stat` would report.
    pub st_ino: u64,
    /// The file type that a lookup would give.
    pub kind: FileType,
}

/// Whether a level shows a name of its directory.
fn is_in_level(path: &str, name: &CStr, kind: FileType) -> bool {
    let level = component_below(path);
    name.to_str().is_ok_and(|name| {
        matches!(kind, FileType::Directory | FileType::Unknown)
            && rep::check_component(level, name).is_ok()
            && (level < 4 || Rep::parse(&below(path, name)).is_ok())
    })
}

impl Namespace {
    /// Whether a directory above the items is listed in parts, and not when it is opened.
    pub fn is_listed_in_parts(&self, node: &Node) -> bool {
        matches!(node.kind, NodeKind::Prefix(_)) || self.is_listed_directly(node)
    }

    /// Whether a listing of a level has only names of its directory.
    pub fn is_listed_directly(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Level(path) => !(self.options.list_all && is_year(path)),
            _ => false,
        }
    }

    /// Whether the listing of a level shows a name of its directory, or that of a directory inside an item.
    pub fn shows(&self, node: &Node, name: &CStr, kind: FileType) -> bool {
        match &node.kind {
            NodeKind::Level(path) => is_in_level(path, name, kind),
            _ => !matches!(name.to_bytes(), b"." | b".."),
        }
    }

    /// The whole listing of the root, of `.mint`, of what was found, or of a level.
    pub fn list(&self, caller: &Caller, node: &Node) -> ErrnoResult<Vec<DirectoryEntry>> {
        let mut listed = match &node.kind {
            NodeKind::Root => self.list_root(node)?,
            NodeKind::Level(path) => self.list_level(node, path)?,
            NodeKind::Mint => self.list_labels(caller)?,
            // Any query has a name here.
            NodeKind::Find => Vec::new(),
            NodeKind::Found(path) => self.list_found(caller, path)?,
            // Names are found there that no user here could list.
            NodeKind::World | NodeKind::Outside(_) => return Err(Errno::ACCESS),
            _ => return Err(Errno::NOTDIR),
        };
        for name in ["..", "."] {
            listed.insert(
                0,
                DirectoryEntry {
                    name: name.into(),
                    st_ino: node.st_ino,
                    kind: FileType::Directory,
                },
            );
        }
        Ok(listed)
    }

    fn list_root(&self, node: &Node) -> ErrnoResult<Vec<DirectoryEntry>> {
        let mut listed = self.list_level(node, "")?;
        let store = self.archive.store();
        let prefixes = store
            .prefixes(!self.options.list_all)
            .map_err(errno::of_index)?;
        for prefix in prefixes {
            listed.push(self.virtual_listed(prefix.clone(), NodeKind::Prefix(prefix)));
        }
        if self.options.list_all {
            listed.push(self.virtual_listed(".mint".to_owned(), NodeKind::Mint));
            listed.push(self.virtual_listed(".find".to_owned(), NodeKind::Find));
        }
        Ok(listed)
    }

    pub(super) fn virtual_listed(&self, name: String, kind: NodeKind) -> DirectoryEntry {
        DirectoryEntry {
            name: name.into(),
            st_ino: self.nodes.id_of_virtual(&kind).0,
            kind: match kind {
                NodeKind::Link(_) | NodeKind::OwnLink(..) => FileType::Symlink,
                NodeKind::Text(_) | NodeKind::Generated(_) => FileType::RegularFile,
                _ => FileType::Directory,
            },
        }
    }

    /// The directories whose names are valid components; nothing else in `col/` is shown.
    fn list_level(&self, node: &Node, path: &str) -> ErrnoResult<Vec<DirectoryEntry>> {
        let real = node.real.as_ref().ok_or(Errno::IO)?;
        let descriptor = inside::open_directory(real.file.open()?.as_fd())?;
        let mut listed = Vec::new();
        inside::list(descriptor.as_fd(), 0, |name, inode, kind, _| {
            if is_in_level(path, name, kind) {
                listed.push(DirectoryEntry {
                    name: OsStr::from_bytes(name.to_bytes()).into(),
                    st_ino: self.nodes.st_ino(real.device, inode),
                    kind: FileType::Directory,
                });
            }
            true
        })?;
        if self.options.list_all && is_year(path) {
            for index in 0..listed.len() {
                let name = listed[index].name.to_string_lossy().into_owned();
                if let Ok(rep) = Rep::parse(&below(path, &name)) {
                    listed.extend(self.modifiers_of(node, &name, &rep)?);
                }
            }
        }
        Ok(listed)
    }

    /// The modifiers that lead somewhere, for `-o list=all`.
    fn modifiers_of(&self, node: &Node, name: &str, rep: &Rep) -> ErrnoResult<Vec<DirectoryEntry>> {
        let item = self.archive.item_at(rep)?;
        let mut listed = Vec::new();
        let shown = |tail: &str| match Request::parse_tail(tail) {
            Ok(request) if self.options.portable_names => portable_name(name, &request),
            _ => format!("{name}{tail}"),
        };
        let mut link = |tail: String, names| {
            let target = self.link_to(node.view, names)?;
            listed.push(self.virtual_listed(shown(&tail), NodeKind::Link(target)));
            ErrnoResult::Ok(())
        };
        for (relation, names) in &self.archive.relations(&item)? {
            match relation.as_str() {
                "lastedition" => link("!".to_owned(), names)?,
                "metadata" => link(":".to_owned(), names)?,
                other => {
                    if let Some(language) = other.strip_prefix("translation(") {
                        link(format!("+({language}"), names)?;
                    }
                }
            }
        }
        Ok(listed)
    }

    /// The labels of the caller's user.
    fn list_labels(&self, caller: &Caller) -> ErrnoResult<Vec<DirectoryEntry>> {
        let mut listed = Vec::new();
        for (label, id) in self.labels.of(caller.uid) {
            if let Some(item) = self.archive.store().item(id).map_err(errno::of_index)? {
                listed.extend(self.item_listed(label, &Place::of(&item.names)));
            }
        }
        Ok(listed)
    }

    /// An item's line, unless its directory is gone.
    fn item_listed(&self, name: String, place: &Place) -> Option<DirectoryEntry> {
        let descriptor = self.archive.tree().open_item(place).ok()?;
        let stat = rustix::fs::fstat(&descriptor).ok()?;
        Some(DirectoryEntry {
            name: name.into(),
            st_ino: self.nodes.st_ino(stat.st_dev, stat.st_ino),
            kind: FileType::Directory,
        })
    }
}
