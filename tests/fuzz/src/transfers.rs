//! What another Archive sends with an item, the record of a transfer, and the file of tokens.

use std::collections::HashSet;

use ibi::Ibi;
use ibifs::archive::{HandoverRecord, Inventory, Tokens};
use ibifs::formats::item::Names;

use super::{sentence, text};

/// What is read is written and read back as the same, and no path leads out of the item.
pub fn check(data: &[u8]) {
    if let Some(handover) = HandoverRecord::parse(data) {
        let names = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp"));
        assert_eq!(
            HandoverRecord::parse(&handover.to_bytes(&names)).as_ref(),
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

fn listed(inventory: &Inventory) {
    assert_eq!(
        Inventory::parse(&inventory.to_string()).as_ref(),
        Ok(inventory)
    );
    let mut paths = HashSet::new();
    for entry in &inventory.entries {
        let path = entry.path.as_slice();
        let is_item = path.is_empty();
        let mut names = path.split(|byte| *byte == b'/');
        assert!(
            is_item || names.all(|name| !matches!(name, b"" | b"." | b"..") && name.len() < 256)
        );
        assert!(!path.contains(&0) && path != b".ibi" && entry.mode <= 0o1777);
        assert_eq!(is_item, paths.is_empty());
        let above = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        assert!(is_item || paths.contains(&path[..above]));
        assert!(paths.insert(path));
        assert!(entry.modified.1 < 1_000_000_000);
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
