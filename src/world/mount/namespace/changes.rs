//! Names and directories that the kernel must forget when an item has changed.

use super::ForeignTree;
use crate::formats::inventory::EntryKind;
use crate::formats::tree_name::LevelPath;
use crate::os::deep::split;
use crate::world::mount::nodes::{ForeignNodeKind, ForeignView};
use crate::world::remote::inventory::ForeignInventory;
use crate::world::remote::items::{ForeignItem, ItemSlot};

/// A thing that the kernel must forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForeignStale {
    /// A name in a directory.
    Name(u64, Vec<u8>),
    /// The attributes of a directory.
    Directory(u64),
}

/// Returns where an item is: the directories above it, and its names there.
fn places(inventory: &ForeignInventory) -> Vec<(ForeignNodeKind, Vec<u8>)> {
    let names = inventory.names();
    let rep = names.rep().map(|rep| {
        let [host, word, year, date] = rep.components();
        let above = LevelPath::Rep(format!("{host}/{word}/{year}"));
        (ForeignNodeKind::Level(above), date.as_bytes().to_vec())
    });
    let ibip = names.ibip().map(|ibip| {
        let above = LevelPath::Prefix(ibip.prefix().to_owned());
        (
            ForeignNodeKind::Level(above),
            ibip.suffix().as_bytes().to_vec(),
        )
    });
    rep.into_iter().chain(ibip).collect()
}

impl ForeignTree {
    /// Returns what the kernel must forget when an item has changed: by the node of a directory, a name in it, or what
    /// it knows of the directory itself.
    pub(crate) fn stale(
        &self,
        slot: &ItemSlot,
        before: &ForeignItem,
        after: Option<&ForeignItem>,
    ) -> Vec<ForeignStale> {
        let mut stale = Vec::new();
        let Some(after) = after else {
            for (above, name) in places(&before.inventory) {
                let above = self.nodes.number(&above);
                stale.extend(above.map(|above| ForeignStale::Name(above, name)));
            }
            return stale;
        };
        for view in [ForeignView::Rep, ForeignView::Ibip] {
            let number = |path: &[u8]| self.nodes.directory(slot.key(), view, path);
            for entry in before.inventory.entries() {
                let now = after.inventory.position(&entry.path);
                if now.is_some_and(|at| after.inventory.entry(at) == entry) {
                    continue;
                }
                if entry.kind == EntryKind::Directory {
                    stale.extend(number(&entry.path).map(ForeignStale::Directory));
                }
                let (above, name) = split(&entry.path);
                if !name.is_empty() {
                    let name = name.to_vec();
                    stale.extend(number(above).map(|above| ForeignStale::Name(above, name)));
                }
            }
        }
        stale
    }
}
