//! Names of items that are not held here: `.world` in the root, and the links that lead into it.
//!
//! Nothing here asks another Archive. A process of its own is mounted at `.world`; which one, and whether, this module
//! does not know.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;

use super::names::{below, is_year, level_below, text};
use super::virtual_entries::{link_outside, link_target, name_in};
use super::{Entry, Namespace};
use crate::formats::item::Names;
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::ErrnoResult;
use ibi::relation::{Request, from_portable, split_name};
use ibi::{Ibi, Ibip, Rep, ibip, rep};

/// The form of `.world`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldEntry {
    /// A directory, at which the other process mounts.
    Directory,
    /// A link to the directory at which it mounts.
    Link(PathBuf),
}

/// The place that a name of an item that is not held here leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// A level above the item, by its path.
    Level(String),
    /// The item, or what its modifier leads to, by its path.
    Item(String),
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
        match outside {
            Outside::Level(path) => self.cached_entry(View::Rep, NodeKind::Outside(path)),
            // The item is here, and known to have nothing of the kind.
            Outside::Item(_) if self.sibling(parent, name)?.is_some() => Err(Errno::NOENT),
            Outside::Item(path) => {
                let view = if is_prefix(path.split('/').next().unwrap_or_default()) {
                    View::Ibip
                } else {
                    View::Rep
                };
                self.virtual_entry(view, NodeKind::Link(link_outside(view, &path)))
            }
        }
    }
}

/// Whether a name in the root is a prefix of IBIps, and not the first component of reps.
fn is_prefix(name: &str) -> bool {
    !name.contains('.') && ibip::check_prefix(name).is_ok()
}

/// Returns what a name means below a path; None if it is not part of an identifier.
pub(crate) fn outside(path: &str, name: &str) -> Option<Outside> {
    let whole = below(path, name);
    if path.is_empty() && is_prefix(name) {
        return Some(Outside::Level(whole));
    }
    let parse: fn(&str) -> Option<Ibi> = if is_prefix(path) {
        |text| Ibip::parse(text).ok().map(Ibi::Ibip)
    } else if is_year(path) {
        |text| Rep::parse(text).ok().map(Ibi::Rep)
    } else {
        let is_level = rep::check_component(level_below(path), name).is_ok();
        return is_level.then_some(Outside::Level(whole));
    };
    if parse(&whole).is_some() {
        return Some(Outside::Item(whole));
    }
    let (base, tail) = split_name(name)?;
    let request = Request::parse_tail(tail).ok()?;
    let item = below(path, base);
    parse(&item)?;
    Some(Outside::Item(format!("{item}{request}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_items_lead_out() {
        let level = |path: &str| Some(Outside::Level(path.to_owned()));
        let item = |path: &str| Some(Outside::Item(path.to_owned()));
        for (path, name, expected) in [
            ("", "8JMKD3MGP8W", level("8JMKD3MGP8W")),
            ("", "6RPa7umaZ", level("6RPa7umaZ")),
            ("", "sid.inpe.br", level("sid.inpe.br")),
            ("", "no", level("no")),
            ("no", "esnotes8JMK", level("no/esnotes8JMK")),
            ("", ".Trash-0", None),
            ("", ".git", None),
            ("", "a:b", None),
            ("sid.inpe.br", "mtc-m18@80", level("sid.inpe.br/mtc-m18@80")),
            ("a.b/c", "2009", level("a.b/c/2009")),
            ("a.b/c", "x", None),
            ("a.b/c/2009", "02.16.17.46", item("a.b/c/2009/02.16.17.46")),
            (
                "a.b/c/2009",
                "02.16.17.46!",
                item("a.b/c/2009/02.16.17.46!"),
            ),
            ("a.b/c/2009", "02.30.17.46", None),
            ("a.b/c/2009", "doc", None),
            ("8JMKD3MGP8W", "34PGRBS", item("8JMKD3MGP8W/34PGRBS")),
            (
                "8JMKD3MGP8W",
                "34PGRBS?GetLastEdition+GetMetadata(bibtex)",
                item("8JMKD3MGP8W/34PGRBS!:(bibtex)"),
            ),
            ("8JMKD3MGP8W", "34PGRBS+(", None),
            ("8JMKD3MGP8W", ".34PGRBS.x1y2z3", None),
        ] {
            assert_eq!(outside(path, name), expected, "{path} {name}");
        }
    }
}
