//! The entries that names beside an item lead to, as data: no caller, no rights, no node.

use super::names::WORLD;
use super::requests::Sibling;
use crate::archive::store::{Item, ItemId};
use crate::archive::{Archive, Related};
use crate::formats::description::DescriptionFormat;
use crate::formats::item::Names;
use crate::fuse::inode::View;
use crate::fuse::inside::ErrnoResult;
use ibi::relation::{Language, Modifier, Request};
use rustix::io::Errno;

/// The entry of a name beside an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VirtualEntry {
    /// A symbolic link to a related item, by its names.
    Link(Names),
    /// The metadata text of an item, a file in its directory.
    MetadataText(Item),
    /// The list of an item's files.
    FileList(Item),
    /// The record of an item, which is made from the files of a metadata item held here.
    Record {
        /// The item described.
        item: Item,
        /// The metadata item, if it is not the item's own.
        from: Option<ItemId>,
        /// The format of the text.
        format: DescriptionFormat,
    },
    /// The record of an item, which is made from what is known of it and its metadata text.
    ShortRecord {
        /// The item described.
        item: Item,
        /// The metadata item, which is not held here, if it is not the item's own.
        from: Option<Names>,
        /// The format of the text.
        format: DescriptionFormat,
    },
}

impl VirtualEntry {
    /// The item of which the entry says more than its names.
    pub(super) fn shown(&self) -> Option<&Item> {
        match self {
            VirtualEntry::Link(_) => None,
            VirtualEntry::MetadataText(item)
            | VirtualEntry::FileList(item)
            | VirtualEntry::Record { item, .. }
            | VirtualEntry::ShortRecord { item, .. } => Some(item),
        }
    }
}

/// The items held here whose relations a name with several steps follows after those of the first.
pub(super) fn passed(
    archive: &Archive,
    languages: &[Language],
    sibling: &Sibling,
) -> ErrnoResult<Vec<Item>> {
    let modifier = match &sibling.request {
        Request::Modifier(modifier) | Request::FileList(Some(modifier)) => modifier,
        Request::FileList(None) => return Ok(Vec::new()),
    };
    let steps = modifier.steps();
    let mut items = Vec::new();
    for count in 1..steps.len() {
        let Some(begin) = Modifier::from_steps(steps[..count].to_vec()) else {
            continue;
        };
        let related = archive.resolve(&sibling.item.names, &begin, languages)?;
        if let Some(Related::Item(names)) = related {
            items.extend(archive.held(&names)?);
        }
    }
    Ok(items)
}

/// Computes the entry of a name; ENOENT if it leads nowhere.
pub(super) fn compute(
    archive: &Archive,
    languages: &[Language],
    sibling: &Sibling,
) -> ErrnoResult<VirtualEntry> {
    let item = &sibling.item;
    let modifier = match &sibling.request {
        Request::Modifier(modifier) => modifier,
        Request::FileList(None) => return Ok(VirtualEntry::FileList(item.clone())),
        Request::FileList(Some(modifier)) => {
            return match related(archive, languages, item, modifier)? {
                Related::Item(names) => {
                    let listed = archive.held(&names)?;
                    listed.map(VirtualEntry::FileList).ok_or(Errno::NOENT)
                }
                _ => Err(Errno::NOENT),
            };
        }
    };
    Ok(match related(archive, languages, item, modifier)? {
        Related::Item(names) => VirtualEntry::Link(names),
        Related::Text(item) => VirtualEntry::MetadataText(item),
        Related::Description { item, from, format } => {
            let metadata = match &from {
                Some(names) => Some(names.clone()),
                None => archive.metadata(&item.names)?,
            };
            let is_held = match &metadata {
                Some(names) => archive.held(names)?.is_some(),
                None => false,
            };
            if is_held {
                let from = from.map(|names| archive.held(&names)).transpose()?;
                let from = from.flatten().map(|from| from.id);
                VirtualEntry::Record { item, from, format }
            } else {
                VirtualEntry::ShortRecord { item, from, format }
            }
        }
    })
}

/// Returns what a modifier of an item leads to; ENOENT if that is nothing.
pub(super) fn related(
    archive: &Archive,
    languages: &[Language],
    item: &Item,
    modifier: &Modifier,
) -> ErrnoResult<Related> {
    let related = archive.resolve(&item.names, modifier, languages)?;
    related.ok_or(Errno::NOENT)
}

/// The target of a link beside an item to another item, in the same tree if that item has a name there.
pub(super) fn link_target(view: View, names: &Names) -> Vec<u8> {
    format!("{}/{}", climb(view), name_in(view, names)).into_bytes()
}

/// The target of a link from there to a name that is not held here.
pub(super) fn link_outside(view: View, name: &str) -> Vec<u8> {
    format!("{}/{WORLD}/{name}", climb(view)).into_bytes()
}

/// The name of an item in a tree, if it has one there.
pub(super) fn name_in(view: View, names: &Names) -> String {
    match (view, names.ibip()) {
        (View::Ibip, Some(ibip)) => ibip.to_string(),
        _ => names.preferred(),
    }
}

/// The way from the directory in which items lie to the root.
fn climb(view: View) -> &'static str {
    match view {
        View::Ibip => "..",
        _ => "../../..",
    }
}
