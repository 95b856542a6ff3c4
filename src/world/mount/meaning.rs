//! The meaning of a name in a directory, and of a link.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use crate::archive::{Clock, SystemClock};
use crate::formats::inventory::EntryKind;
use crate::formats::item::Names;
use crate::formats::links::read_in_ibip_tree;
use crate::formats::tree_name::TreeName;
use crate::world::error::ForeignError;
use crate::world::mount::nodes::{ForeignNode, ForeignNodeKind, ForeignView, Inside};
use crate::world::remote::inventory::Position;
use crate::world::remote::items::ItemSlot;
use crate::world::remote::related::RelatedQuestion;
use ibi::{Ibi, Ibip, Rep};

/// The longest target of a link, in bytes.
const LONGEST_LINK: usize = 4095;

/// The thing that a name asks for.
pub(crate) enum NameMeaning {
    /// A node that is known.
    Known(ForeignNodeKind),
    /// An item.
    Item(Ibi, ForeignView),
    /// The item that a modifier leads to, or the list of files.
    Related(RelatedQuestion, ForeignView),
}

/// Returns what is at a position of an item, by the first name of its file.
pub(crate) fn inside(
    slot: &Arc<ItemSlot>,
    view: ForeignView,
    position: Position,
) -> Result<Inside, ForeignError> {
    let item = slot.value().ok_or(ForeignError::Missing)?;
    let (first, links) = item.inventory.first_name(position);
    let entry = Arc::clone(item.inventory.entry(first));
    Ok(Inside {
        slot: Arc::clone(slot),
        view,
        entry,
        item,
        links,
    })
}

/// The target of a link in an item, as the tree in which it is seen needs it.
pub(crate) fn target_of(inside: &Inside) -> Option<Vec<u8>> {
    let EntryKind::Link(target) = &inside.entry.kind else {
        return None;
    };
    if inside.view == ForeignView::Rep || !target.starts_with(b".") {
        return Some(target.clone());
    }
    let depth = inside
        .entry
        .path
        .iter()
        .filter(|byte| **byte == b'/')
        .count();
    let names = inside.item.inventory.names();
    let rep = names.rep().map(Rep::components);
    let read = read_in_ibip_tree(target, depth, rep, names.ibip().map(Ibip::prefix));
    (read.len() <= LONGEST_LINK).then_some(read)
}

/// A link from beside an item to another item.
pub(crate) fn link_target(view: ForeignView, names: &Names) -> Vec<u8> {
    let (climb, name) = match (view, names.ibip()) {
        (ForeignView::Ibip, Some(ibip)) => ("..", ibip.to_string()),
        (ForeignView::Ibip, None) => ("..", names.preferred()),
        (ForeignView::Rep, _) => ("../../..", names.preferred()),
    };
    format!("{climb}/{name}").into_bytes()
}

/// The meaning of a name in a directory.
pub(crate) fn asked(parent: &ForeignNode, name: &OsStr) -> Result<NameMeaning, ForeignError> {
    match &parent.kind {
        ForeignNodeKind::Level(level) => {
            let name = name.to_str().ok_or(ForeignError::Missing)?;
            let view = ForeignView::below(level);
            Ok(match level.meaning(name).ok_or(ForeignError::Missing)? {
                TreeName::Level(level) => NameMeaning::Known(ForeignNodeKind::Level(level)),
                TreeName::Item(ibi) => NameMeaning::Item(ibi, view),
                TreeName::Sibling(ibi, request) => {
                    NameMeaning::Related(RelatedQuestion::of(&ibi, request), view)
                }
            })
        }
        ForeignNodeKind::Inside(found) => {
            if found.entry.kind != EntryKind::Directory {
                return Err(ForeignError::NotDirectory);
            }
            let path = match found.entry.path.as_slice() {
                [] => name.as_bytes().to_vec(),
                above => [above, b"/", name.as_bytes()].concat(),
            };
            let item = found.slot.value().ok_or(ForeignError::Missing)?;
            let position = item.inventory.position(&path);
            let position = position.ok_or_else(|| {
                // The inventory does not say which names it leaves out.
                if item.inventory.is_withheld(&SystemClock.now()) {
                    ForeignError::Withheld
                } else {
                    ForeignError::Missing
                }
            })?;
            let inside = inside(&found.slot, found.view, position)?;
            Ok(NameMeaning::Known(ForeignNodeKind::Inside(inside)))
        }
        ForeignNodeKind::Link(_) | ForeignNodeKind::Text(_) => Err(ForeignError::NotDirectory),
        // The kernel looks the item up then.
        ForeignNodeKind::Unseen(..) => Err(ForeignError::Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tree_name::LevelPath;

    fn node(kind: ForeignNodeKind) -> ForeignNode {
        ForeignNode { id: 2, kind }
    }

    fn meaning(kind: ForeignNodeKind, name: &str) -> String {
        match asked(&node(kind), OsStr::new(name)) {
            Ok(NameMeaning::Known(kind)) => format!("{kind:?}"),
            Ok(NameMeaning::Item(ibi, view)) => format!("{ibi} {view:?}"),
            Ok(NameMeaning::Related(wanted, view)) => format!("{wanted:?} {view:?}"),
            Err(trouble) => format!("{trouble:?}"),
        }
    }

    #[test]
    fn names_are_those_of_a_store() {
        let level = |path: &str| ForeignNodeKind::Level(LevelPath::parse(path).expect("a level"));
        for (parent, name, expected) in [
            (level(""), "8JMKD3MGP8W", "Level(Prefix(\"8JMKD3MGP8W\"))"),
            (level("no"), "esnotes8JMK", "Level(Rep(\"no/esnotes8JMK\"))"),
            (level(""), ".world", "Missing"),
            (
                level("a.b/c/2009"),
                "02.16.17.46",
                "a.b/c/2009/02.16.17.46 Rep",
            ),
            (
                level("a.b/c/2009"),
                "02.16.17.46!",
                "Modifier(\"a.b/c/2009/02.16.17.46!\") Rep",
            ),
            (
                level("a.b/c/2009"),
                "02.16.17.46?GetLastEdition+GetFileList",
                "Files(\"a.b/c/2009/02.16.17.46!\") Rep",
            ),
            (level("8JMKD3MGP8W"), "34PGRBS", "8JMKD3MGP8W/34PGRBS Ibip"),
            (
                level("8JMKD3MGP8W"),
                "34PGRBS:(bibtex)",
                "Modifier(\"8JMKD3MGP8W/34PGRBS:(bibtex)\") Ibip",
            ),
            (
                level("8JMKD3MGP8W"),
                "34PGRBS?GetFileList",
                "Files(\"8JMKD3MGP8W/34PGRBS\") Ibip",
            ),
            (ForeignNodeKind::Link(b"x".to_vec()), "a", "NotDirectory"),
        ] {
            assert_eq!(meaning(parent.clone(), name), expected, "{parent:?} {name}");
        }
    }

    #[test]
    fn links_to_other_items_climb_out_of_their_tree() {
        let names = |text: &str| Names::from(Ibi::parse(text).expect("an identifier"));
        let (rep, ibip) = ("a.b/c/2009/02.16.17.46", "8JMKD3MGP8W/34PGRBS");
        for (view, name, expected) in [
            (ForeignView::Rep, rep, format!("../../../{rep}")),
            (ForeignView::Rep, ibip, format!("../../../{ibip}")),
            (ForeignView::Ibip, rep, format!("../{rep}")),
            (ForeignView::Ibip, ibip, format!("../{ibip}")),
        ] {
            let target = link_target(view, &names(name));
            assert_eq!(target, expected.into_bytes(), "{view:?} {name}");
        }
    }

    #[test]
    fn a_name_that_is_no_text_is_missing() {
        let root = ForeignNodeKind::Level(LevelPath::Root);
        let name = OsStr::from_bytes(b"8JMK\xff");
        assert!(matches!(
            asked(&node(root), name),
            Err(ForeignError::Missing)
        ));
        let unseen = ForeignNodeKind::Unseen("8JMKD3MGP8W/34PGRBS".to_owned(), ForeignView::Ibip);
        assert_eq!(meaning(unseen, "a"), "Changed");
    }
}
