//! Symbolic links in an item that lead out of it, into another item: see ibifs-tree(7), "SYMBOLIC LINKS".

use std::collections::VecDeque;

use super::{ArchiveError, ReadAs};
use crate::archive::store::Item;
use crate::archive::tree::{OpenItem, Place, TreeError};
use crate::formats::item::Names;
use ibi::{Ibi, Ibip, Rep};

/// The number of links that a path may have, as the kernel counts.
const LINKS: usize = 40;

/// The components of a path, first to last.
type Components = VecDeque<Vec<u8>>;

impl ReadAs<'_> {
    /// The item, and the path in it, to which a symbolic link on a path in an item leads. None if no link on
    /// the path leads to another item that is held here, or the reader may not read the link.
    pub fn link_out(
        &self,
        item: &Item,
        path: &[u8],
    ) -> Result<Option<(Item, Vec<u8>)>, ArchiveError> {
        let place = Place::of(&item.names);
        let from_root = self.acting(|| -> Result<_, TreeError> {
            let open = self.open_served(item)?;
            if open.is_withheld() {
                return Ok(None);
            }
            Ok(path_from_root(&open, &place, path))
        })?;
        let Some((names, path)) = from_root.as_ref().and_then(names_before) else {
            return Ok(None);
        };
        let other = self.held(&names)?.filter(|other| other.id != item.id);
        Ok(other.map(|other| (other, path)))
    }
}

fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(<[u8]>::to_vec)
}

/// Returns where a path in an item leads, from the root of the tree. None if it stays in the item, or a link is
/// absolute or cannot be read.
fn path_from_root(open: &OpenItem, place: &Place, path: &[u8]) -> Option<Components> {
    let mut rest: Components = components(path).collect();
    let mut at: Vec<Vec<u8>> = Vec::new();
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == b".." {
            if at.pop().is_none() {
                return Some(climbed(place, rest));
            }
            continue;
        }
        at.push(part);
        let Some(target) = open.link_target(&at.join(&b'/')) else {
            continue;
        };
        links += 1;
        if links > LINKS || target.starts_with(b"/") {
            return None;
        }
        at.pop();
        components(&target)
            .rev()
            .for_each(|part| rest.push_front(part));
    }
    None
}

/// The path from the root that is left after the first `..` out of an item. Further levels up end at the root.
fn climbed(place: &Place, rest: Components) -> Components {
    let (_, item) = place.as_str().split_once('/').unwrap_or_default();
    let mut path: Components = components(item.as_bytes()).collect();
    path.pop_back();
    for part in rest {
        if part == b".." {
            path.pop_back();
        } else {
            path.push_back(part);
        }
    }
    // Links of collections of former times name the mount point itself.
    if path.front().is_some_and(|first| first == b"col") {
        path.pop_front();
    }
    path
}

/// The item that a path from the root names first, and the path below it.
fn names_before(path: &Components) -> Option<(Names, Vec<u8>)> {
    let named = |count: usize| {
        let parts: Option<Vec<&str>> = path
            .iter()
            .take(count)
            .map(|part| std::str::from_utf8(part).ok())
            .collect();
        parts.map(|parts| parts.join("/"))
    };
    let below = |count: usize| {
        let parts: Vec<&[u8]> = path.iter().skip(count).map(Vec::as_slice).collect();
        parts.join(&b'/')
    };
    if let Ok(rep) = Rep::parse(&named(4)?) {
        return Some((Names::from(Ibi::Rep(rep)), below(4)));
    }
    let ibip = Ibip::parse(&named(2)?).ok()?;
    Some((Names::from(Ibi::Ibip(ibip)), below(2)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::testing::TestArchive;

    fn own(act: &mut dyn FnMut()) {
        act();
    }

    #[test]
    fn links_lead_to_files_of_other_items() {
        let archive = TestArchive::new();
        let (from, to) = (archive.new_item(), archive.new_item());
        let file = |name: &str| archive.file(&from, name);
        std::fs::create_dir_all(file("doc/a/b")).expect("made");
        let rep = to.names.rep().expect("a rep").to_string();
        let ibip = to.names.ibip().expect("an IBIp").to_string();
        let own_rep = from.names.rep().expect("a rep").to_string();
        let climb = "../".repeat(5);
        for (name, target) in [
            ("doc/rep", format!("{climb}{rep}/doc/x")),
            ("doc/ibip", format!("{climb}{ibip}/doc/x")),
            ("doc/whole", format!("{climb}{rep}")),
            ("doc/a/b/deep", format!("../../{climb}./{rep}/doc/../doc/x")),
            ("doc/col", format!("{climb}../col/{rep}/doc/x")),
            ("doc/first", "a/b/deep".to_owned()),
            ("doc/back", format!("{climb}{own_rep}/doc/a")),
            ("doc/absolute", format!("/{rep}/doc/x")),
            ("doc/above", climb.clone()),
            (
                "doc/unknown",
                format!("{climb}a.example/b/2001/01.01.00.00/doc/x"),
            ),
            ("doc/loop", "loop".to_owned()),
        ] {
            symlink(target, file(name)).expect(name);
        }
        for (path, expected) in [
            ("doc/rep", Some("doc/x")),
            ("doc/ibip", Some("doc/x")),
            ("doc/whole", Some("")),
            ("doc/whole/doc/y", Some("doc/y")),
            ("doc/a/b/deep", Some("doc/x")),
            ("doc/col", Some("doc/x")),
            ("doc/first", Some("doc/x")),
            ("doc/back", None),
            ("doc/absolute", None),
            ("doc/above", None),
            ("doc/unknown", None),
            ("doc/loop", None),
            ("doc/a", None),
            ("doc/missing", None),
        ] {
            let found = archive.read_as(&own).link_out(&from, path.as_bytes());
            let found = found.expect("read");
            let found = found.map(|(item, path)| (item.id, path));
            let expected = expected.map(|path| (to.id, path.as_bytes().to_vec()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
