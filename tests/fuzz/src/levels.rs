//! Levels that another Archive sends.

use ibifs::formats::level::{LevelPage, MOST_NAMES};
use ibifs::formats::tree_name::LevelPath;

use super::sentence;

/// A page that is read is written and read back as the same, and no name in it leads out of the level or occurs twice.
pub fn check(data: &[u8]) {
    let page = match LevelPage::parse(data) {
        Ok(page) => page,
        Err(error) => return sentence(&error),
    };
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
    assert_eq!(
        LevelPage::parse(page.to_string().as_bytes()).as_ref(),
        Ok(&page)
    );
}
