//! The entries of items and levels in all texts that have them: inventories, levels, transfers, the metadata of packages;
//! and the record of a transfer, and the file of tokens.

use std::collections::HashSet;
use std::fmt::Display;

use ibi::Ibi;
use ibifs::formats::inventory::{MOST_ENTRIES, Page};
use ibifs::formats::item::Names;
use ibifs::formats::level::{LevelPage, MOST_NAMES};
use ibifs::formats::mtree;
use ibifs::formats::tree_name::LevelPath;
use ibifs::outside::archive::{Inventory, Tokens, TransferRecord};

use super::{sentence, text};

/// What is read is written and read back as the same, and no path leads out of the item or level.
pub fn check(data: &[u8]) {
    if let Some(page) = read_back(data, Page::parse) {
        assert!(page.entries.len() <= MOST_ENTRIES);
        stay_below(page.entries.iter().map(|entry| &entry.path));
    }
    if let Some(page) = read_back(data, LevelPage::parse) {
        level(&page);
    }
    match mtree::parse(data) {
        Ok(entries) => {
            stay_below(entries.iter().map(|entry| &entry.path));
            let text = mtree::text("fuzz", &entries);
            assert_eq!(mtree::parse(&text), Ok(entries));
        }
        Err(error) => sentence(&error),
    }
    if let Some(handover) = TransferRecord::parse(data) {
        let names = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp"));
        assert_eq!(
            TransferRecord::parse(&handover.to_bytes(&names)).as_ref(),
            Some(&handover)
        );
    }
    let Some(text) = text(data) else {
        return;
    };
    match Tokens::parse(text) {
        Ok(tokens) => {
            let lines = text
                .lines()
                .filter_map(|line| line.split_whitespace().next());
            for token in lines.filter(|token| !token.starts_with('#')) {
                assert!(
                    token.len() >= 32 && tokens.giver(token).is_some(),
                    "{token}"
                );
            }
            assert_eq!(tokens.giver(""), None);
        }
        Err(error) => sentence(&error),
    }
    match Inventory::parse(text) {
        Ok(inventory) => listed(&inventory),
        Err(error) => sentence(&error),
    }
}

/// A text that is read; what is written of it is read as the same.
fn read_back<T, E>(data: &[u8], parse: fn(&[u8]) -> Result<T, E>) -> Option<T>
where
    T: Display + PartialEq + std::fmt::Debug,
    E: std::error::Error + PartialEq + 'static,
{
    match parse(data) {
        Ok(read) => {
            assert_eq!(parse(read.to_string().as_bytes()).as_ref(), Ok(&read));
            Some(read)
        }
        Err(error) => {
            sentence(&error);
            None
        }
    }
}

fn stay_below<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) {
    for path in paths.filter(|path| !path.is_empty()) {
        let mut names = path.split(|byte| *byte == b'/');
        assert!(names.all(|name| !matches!(name, b"" | b"." | b"..")));
        assert!(!path.contains(&0));
    }
}

fn level(page: &LevelPage) {
    assert!(page.names.len() <= MOST_NAMES);
    assert_eq!(
        LevelPath::parse(page.path.as_str()).as_ref(),
        Some(&page.path)
    );
    let mut last = None;
    for name in &page.names {
        assert!(!name.name.contains(['/', '\0']) && !name.name.is_empty());
        assert!(!matches!(name.name.as_str(), "." | ".."));
        let order = page.path.order(&name.name, name.kind);
        assert!(order.is_some() && order > last);
        last = order;
    }
}

fn listed(inventory: &Inventory) {
    assert_eq!(
        Inventory::parse(&inventory.to_string()).as_ref(),
        Ok(inventory)
    );
    stay_below(inventory.entries.iter().map(|entry| &entry.path));
    let mut paths = HashSet::new();
    for entry in &inventory.entries {
        let path = entry.path.as_slice();
        let is_item = path.is_empty();
        assert!(path != b".ibi" && entry.stat.mode <= 0o1777);
        assert_eq!(is_item, paths.is_empty());
        let above = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        assert!(is_item || paths.contains(&path[..above]));
        assert!(paths.insert(path));
        assert!(entry.stat.modified.1 < 1_000_000_000);
        for (name, _) in &entry.attributes {
            assert!(name.starts_with(b"user."));
        }
    }
    assert!(inventory.files().count() <= inventory.manifest().len());
    assert!(
        inventory
            .manifest()
            .keys()
            .all(|path| paths.contains(path.as_slice()))
    );
}
