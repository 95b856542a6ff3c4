//! Names in the mount: below levels and prefixes, with modifiers, in the portable spelling, and below `.find`.

use ibi::Ibi;
use ibi::relation::{Request, from_portable, portable_name, split_name};
use ibifs::formats::item::Names;
use ibifs::{fuse, world};

use super::text;

/// Each component of a path is looked up below the one before, in the mount of a store and in that of other Archives:
/// it means the same in both, and what it means is named so.
pub fn check(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let mut level = String::new();
    for name in text.split('/') {
        // No program can look these up.
        if matches!(name, "" | "." | "..") || name.contains('\0') {
            return;
        }
        portable(name);
        below_find(name);
        let meaning = fuse::texts::meaning(&level, name);
        let in_world = world::texts::meaning(&level, name);
        match (meaning, in_world) {
            (Some((path, true)), other) => {
                assert_eq!(Some((path.clone(), true)), other);
                level = path;
            }
            (Some((path, false)), Some((other, false))) => {
                assert_eq!(parsed(&path), parsed(&other), "{path} and {other}");
                named_again(&level, &path);
                return;
            }
            (None, None) => return,
            (one, other) => panic!("{level:?} {name:?}: {one:?} and {other:?}"),
        }
    }
}

/// The identifier of a path, and what is asked for behind it.
fn parsed(path: &str) -> (Ibi, Option<Request>) {
    let (ibi, request) = match split_name(path) {
        Some((ibi, tail)) => (ibi, Some(Request::parse_tail(tail).expect("a request"))),
        None => (path, None),
    };
    (Ibi::parse(ibi).expect("an identifier"), request)
}

/// What an item's name means has that meaning as a name, and in the portable spelling.
fn named_again(level: &str, path: &str) {
    let name = path
        .strip_prefix(level)
        .and_then(|name| name.strip_prefix('/'));
    let name = name.expect("below its level");
    let again = fuse::texts::meaning(level, name).expect("a meaning");
    assert_eq!(again, (path.to_owned(), false));
    if let (_, Some(request)) = parsed(path) {
        let (base, _) = split_name(name).expect("a modifier");
        let plain = from_portable(&portable_name(base, &request)).expect("a portable name");
        let again = fuse::texts::meaning(level, &plain).expect("a meaning");
        assert_eq!(parsed(&again.0), parsed(path));
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
