//! Names of items that are not held here: `.world` in the root, and the links that lead into it.
//!
//! Nothing here asks another Archive. A process of its own is mounted at `.world`; which one, and whether, this module
//! does not know.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;

use super::names::text;
use super::virtual_entries::{link_outside, link_target, name_in};
use super::{Entry, Namespace};
use crate::formats::item::Names;
use crate::formats::tree_name::{LevelPath, TreeName};
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::ErrnoResult;
use ibi::Ibi;
use ibi::relation::from_portable;

/// The form of `.world`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldEntry {
    /// A directory, at which the other process mounts.
    Directory,
    /// A link to the directory at which it mounts.
    Link(PathBuf),
}

impl Namespace {
    /// The entry of `.world`.
    pub(super) fn lookup_world(&self) -> ErrnoResult<Entry> {
        match &self.options.world {
            None => Err(Errno::NOENT),
            Some(WorldEntry::Directory) => self.cached_entry(View::Rep, NodeKind::World),
            Some(WorldEntry::Link(place)) => {
                let target = place.as_os_str().as_bytes().to_vec();
                self.virtual_entry(View::Rep, NodeKind::Link(target))
            }
        }
    }

    /// The target of a link beside an item to another item. One that is not held here is in `.world`, if there is that.
    pub(super) fn link_to(&self, view: View, names: &Names) -> ErrnoResult<Vec<u8>> {
        let is_outside = self.options.world.is_some() && self.archive.held(names)?.is_none();
        Ok(if is_outside {
            link_outside(view, &name_in(view, names))
        } else {
            link_target(view, names)
        })
    }

    /// Returns what was found under a name above the items. With the fallback, a name of an item that is not held here
    /// leads into `.world`.
    pub(super) fn or_outside(
        &self,
        parent: &Node,
        path: &str,
        name: &OsStr,
        found: ErrnoResult<Entry>,
    ) -> ErrnoResult<Entry> {
        if !self.options.fallback || found.as_ref().err() != Some(&Errno::NOENT) {
            return found;
        }
        let name = text(name)?;
        let portable = self
            .options
            .portable_names
            .then(|| from_portable(name))
            .flatten();
        let outside = outside(path, portable.as_deref().unwrap_or(name)).ok_or(Errno::NOENT)?;
        let (ibi, request) = match outside {
            TreeName::Level(level) => {
                let kind = NodeKind::Outside(level.as_str().to_owned());
                return self.cached_entry(View::Rep, kind);
            }
            TreeName::Item(ibi) => (ibi, None),
            TreeName::Sibling(ibi, request) => (ibi, Some(request)),
        };
        // The item is here, and known to have nothing of the kind.
        if self.sibling(parent, name)?.is_some() {
            return Err(Errno::NOENT);
        }
        let view = match ibi {
            Ibi::Rep(_) => View::Rep,
            Ibi::Ibip(_) => View::Ibip,
        };
        let tail = request.map(|request| request.to_string());
        let path = format!("{ibi}{}", tail.unwrap_or_default());
        self.virtual_entry(view, NodeKind::Link(link_outside(view, &path)))
    }
}

/// Returns what a name means below a path; None if it is not part of an identifier.
pub(crate) fn outside(path: &str, name: &str) -> Option<TreeName> {
    LevelPath::parse(path)?.meaning(name)
}
