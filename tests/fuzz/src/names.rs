//! Names in the mount: below levels and prefixes, with modifiers, in the portable spelling, and below `.find`.

use ibi::Ibi;
use ibi::relation::{from_portable, portable_name, split_name};
use ibifs::formats::item::Names;
use ibifs::formats::tree_name::{LevelPath, TreeName};
use ibifs::outside::fuse;

use super::text;

/// Each component of a path is looked up below the one before, and what it means is named so.
pub fn check(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let mut level = LevelPath::Root;
    for name in text.split('/') {
        // No program can look these up.
        if matches!(name, "" | "." | "..") || name.contains('\0') {
            return;
        }
        portable(name);
        below_find(name);
        match level.meaning(name) {
            Some(TreeName::Level(below)) => {
                assert_eq!(LevelPath::parse(below.as_str()).as_ref(), Some(&below));
                assert_eq!(below.name(), name);
                level = below;
            }
            Some(TreeName::Sibling(ibi, request)) => {
                let (base, _) = split_name(name).expect("a modifier");
                let meaning = Some(TreeName::Sibling(ibi, request.clone()));
                assert_eq!(level.meaning(&format!("{base}{request}")), meaning);
                let plain = from_portable(&portable_name(base, &request));
                assert_eq!(level.meaning(&plain.expect("a portable name")), meaning);
                return;
            }
            Some(TreeName::Item(ibi)) => {
                assert_eq!(ibi.to_string(), format!("{}/{name}", level.as_str()));
                return;
            }
            None => return,
        }
    }
}

fn portable(name: &str) {
    if let Some(plain) = from_portable(name) {
        assert_ne!(plain, name);
        assert!(plain.len() <= name.len());
    }
}

/// A link below `.find` leads to the item of its name.
fn below_find(name: &str) {
    if let Some(names) = fuse::texts::found(name) {
        let link = fuse::texts::link(&names);
        assert!(!link.contains('/'));
        assert_eq!(fuse::texts::found(&link).as_ref(), Some(&names));
    }
    if let Ok(ibi) = Ibi::parse(&name.replace('_', "/")) {
        let names = Names::from(ibi);
        assert_eq!(fuse::texts::found(&fuse::texts::link(&names)), Some(names));
    }
}
