//! Inventories of items that another Archive sends.

use ibifs::formats::inventory::{EntryKind, MOST_ENTRIES, Page};

use super::sentence;

/// A page that is read is written and read back as the same, and no path in it leads out of the item.
pub fn check(data: &[u8]) {
    let page = match Page::parse(data) {
        Ok(page) => page,
        Err(error) => return sentence(&error),
    };
    // The item's directory and its texts are beside what the limit counts.
    assert!(page.entries.len() <= MOST_ENTRIES + 8);
    for entry in &page.entries {
        let mut names = entry.path.split(|byte| *byte == b'/');
        let is_item = entry.path.is_empty() && entry.kind == EntryKind::Directory;
        assert!(is_item || names.all(|name| !matches!(name, b"" | b"." | b"..")));
        assert!(!entry.path.contains(&0));
    }
    assert_eq!(Page::parse(page.to_string().as_bytes()).as_ref(), Ok(&page));
}
