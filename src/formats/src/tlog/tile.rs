//! The files of a log (C2SP tlog-tiles): tiles of 256 hashes in levels, and bundles of 256 entries. The last one of each may
//! have fewer.

use std::fmt;

use super::merkle::{Hash, empty, leaf, node, root};

/// The number of hashes of a whole tile, and of entries of a whole bundle.
pub const WIDTH: usize = 256;

/// The highest level of a log.
const HIGHEST: u8 = 63;

/// A file of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The level of its hashes, 0 for those of entries; None for a bundle of entries.
    pub level: Option<u8>,
    /// Its number in the level.
    pub number: u64,
    /// The number of its hashes or entries, from 1 to [`WIDTH`].
    pub width: usize,
}

impl fmt::Display for Tile {
    /// The path, `tile/0/x001/234.p/5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            Some(level) => write!(f, "tile/{level}")?,
            None => f.write_str("tile/entries")?,
        }
        let groups = |number: u64| {
            std::iter::successors(Some(number), |it| (*it >= 1000).then_some(it / 1000))
        };
        let mut groups: Vec<u64> = groups(self.number).map(|it| it % 1000).collect();
        let last = groups.first().copied().unwrap_or_default();
        for group in groups.drain(1..).rev() {
            write!(f, "/x{group:03}")?;
        }
        write!(f, "/{last:03}")?;
        match self.width {
            WIDTH => Ok(()),
            width => write!(f, ".p/{width}"),
        }
    }
}

impl Tile {
    /// Reads a path, which is written in one way alone: `tile/0/x001/234.p/5`. None if it is none of a tile.
    #[must_use]
    pub fn parse(path: &str) -> Option<Tile> {
        let (level, rest) = path.strip_prefix("tile/")?.split_once('/')?;
        let level = match level {
            "entries" => None,
            level => Some(level.parse().ok().filter(|it| *it <= HIGHEST)?),
        };
        let (groups, width) = match rest.split_once(".p/") {
            Some((groups, width)) => (groups, width.parse().ok().filter(|it| *it < WIDTH)?),
            None => (rest, WIDTH),
        };
        let number = groups.split('/').try_fold(0_u64, |number, group| {
            let group = group.strip_prefix('x').unwrap_or(group);
            let group: u16 = group.parse().ok()?;
            number.checked_mul(1000)?.checked_add(group.into())
        })?;
        let tile = Tile {
            level,
            number,
            width,
        };
        (width > 0 && tile.to_string() == path).then_some(tile)
    }
}

/// An entry of a bundle: its length in two bytes, and the entry. None if it is longer than 65,535 bytes.
#[must_use]
pub fn bundled(entry: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(entry.len()).ok()?;
    Some([&length.to_be_bytes(), entry].concat())
}

/// The entries of a bundle. None if it is cut.
#[must_use]
pub fn entries_in(mut bundle: &[u8]) -> Option<Vec<&[u8]>> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = bundle.split_first_chunk::<2>() {
        let (entry, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        entries.push(entry);
        bundle = rest;
    }
    bundle.is_empty().then_some(entries)
}

/// The last tile of each level of a log, to which entries are added: what is needed to go on, and for its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    levels: Vec<Vec<Hash>>,
}

impl Edge {
    /// The edge of a log of a size, of which `read` gives the hashes of a tile.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(
        size: u64,
        mut read: impl FnMut(Tile) -> Result<Vec<Hash>, E>,
    ) -> Result<Edge, E> {
        let mut levels = Vec::new();
        for (level, tile) in (0..).zip(Edge::tiles_of(size)) {
            debug_assert!(
                tile.is_none_or(|tile| tile.level == Some(level)),
                "{tile:?}"
            );
            levels.push(tile.map(&mut read).transpose()?.unwrap_or_default());
        }
        Ok(Edge { size, levels })
    }

    /// The last tile of each level, where it is not whole.
    fn tiles_of(size: u64) -> impl Iterator<Item = Option<Tile>> {
        let sizes = std::iter::successors((size > 0).then_some(size), |it| {
            let above = *it / WIDTH as u64;
            (above > 0).then_some(above)
        });
        (0..).zip(sizes).map(|(level, size)| {
            let width = (size % WIDTH as u64) as usize;
            let number = size / WIDTH as u64;
            let level = Some(level);
            (width > 0).then_some(Tile {
                level,
                number,
                width,
            })
        })
    }

    /// The number of entries.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds an entry. Calls `whole` with each tile that has become whole, and its hashes.
    ///
    /// # Errors
    /// Those of `whole`; the edge is unusable then.
    pub fn add<E>(
        &mut self,
        entry: &[u8],
        mut whole: impl FnMut(Tile, &[Hash]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut hash = leaf(entry);
        self.size += 1;
        let mut size = self.size;
        for level in 0_u8.. {
            if self.levels.len() <= level.into() {
                self.levels.push(Vec::new());
            }
            let Some(hashes) = self.levels.get_mut(usize::from(level)) else {
                break;
            };
            hashes.push(hash);
            if hashes.len() < WIDTH {
                break;
            }
            size /= WIDTH as u64;
            let tile = Tile {
                level: Some(level),
                number: size - 1,
                width: WIDTH,
            };
            whole(tile, hashes)?;
            hash = root(hashes).unwrap_or_else(empty);
            hashes.clear();
        }
        Ok(())
    }

    /// The tiles that are not whole, with their hashes.
    pub fn partial(&self) -> impl Iterator<Item = (Tile, &[Hash])> {
        let tiles = Edge::tiles_of(self.size).zip(&self.levels);
        tiles.filter_map(|(tile, hashes)| Some((tile?, hashes.as_slice())))
    }

    /// The root of the log.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut right = None;
        for hashes in &self.levels {
            // From the right: the parts of a level are smaller than those before them.
            let mut rest = hashes.as_slice();
            while !rest.is_empty() {
                let part = 1 << rest.len().trailing_zeros();
                let (before, last) = rest.split_at(rest.len() - part);
                right = match (root(last), right) {
                    (Some(last), Some(right)) => Some(node(&last, &right)),
                    (last, right) => last.or(right),
                };
                rest = before;
            }
        }
        right.unwrap_or_else(empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    #[test]
    fn paths_are_those_of_the_specification() {
        let path = |level, number, width| {
            let tile = Tile {
                level,
                number,
                width,
            };
            tile.to_string()
        };
        assert_eq!(path(Some(0), 0, 1), "tile/0/000.p/1");
        assert_eq!(path(Some(0), 1_234_067, 256), "tile/0/x001/x234/067");
        assert_eq!(path(Some(1), 1_000, 256), "tile/1/x001/000");
        assert_eq!(path(Some(5), 999, 255), "tile/5/999.p/255");
        assert_eq!(path(None, 1_234_067, 8), "tile/entries/x001/x234/067.p/8");
    }

    #[test]
    fn a_path_is_read_as_it_is_written_alone() {
        for path in [
            "tile/0/000",
            "tile/63/x001/x234/067.p/255",
            "tile/entries/999.p/1",
            "tile/1/x018/x446/x744/x073/x709/x551/615",
        ] {
            let read = Tile::parse(path).map(|it| it.to_string());
            assert_eq!(read.as_deref(), Some(path));
        }
        for path in [
            "",
            "tile",
            "tile/0",
            "tile/0/",
            "tile/0/0",
            "tile/0/0000",
            "tile/0/x000/000",
            "tile/0/001/000",
            "tile/0/x001",
            "tile/00/000",
            "tile/64/000",
            "tile/-1/000",
            "tile/+1/000",
            "tile/0/+00",
            "tile/0/000/",
            "tile/0/000.p",
            "tile/0/000.p/0",
            "tile/0/000.p/01",
            "tile/0/000.p/256",
            "tile/0/000.p/1/1",
            "tile/0/../../key",
            "tile/entries/x1000/000",
            "tile/1/x018/x446/x744/x073/x709/x551/616",
            "/tile/0/000",
            "events/2026-01.txt",
        ] {
            assert_eq!(Tile::parse(path), None, "{path}");
        }
    }

    #[test]
    fn bundles_are_read_as_they_were_written() {
        let entries: [&[u8]; 3] = [b"", b"a", &[7; 65_535]];
        let bundle: Vec<u8> = entries
            .iter()
            .filter_map(|entry| bundled(entry))
            .flatten()
            .collect();
        assert_eq!(entries_in(&bundle).as_deref(), Some(&entries[..]));
        assert_eq!(entries_in(&bundle[..bundle.len() - 1]), None);
        assert_eq!(entries_in(b"\0"), None);
        assert_eq!(bundled(&[0; 65_536]), None);
    }

    #[test]
    fn a_log_grows_as_its_tree_does() {
        let mut edge = Edge::default();
        let mut leaves = Vec::new();
        let mut files: BTreeMap<String, Vec<Hash>> = BTreeMap::new();
        assert_eq!(edge.root(), empty());
        for number in 0..WIDTH * WIDTH + 300 {
            let entry = number.to_be_bytes();
            leaves.push(leaf(&entry));
            let keep = |tile: Tile, hashes: &[Hash]| {
                files.insert(tile.to_string(), hashes.to_vec());
                Ok::<(), Infallible>(())
            };
            let Ok(()) = edge.add(&entry, keep);
            let size = leaves.len();
            let is_near_whole = size.abs_diff(WIDTH * WIDTH) < 2;
            if size % 37 < 2 && size < 1_000 || is_near_whole || size == WIDTH * WIDTH + 300 {
                assert_eq!(Some(edge.root()), root(&leaves), "{size}");
                let partial: BTreeMap<String, Vec<Hash>> = edge
                    .partial()
                    .map(|(tile, hashes)| (tile.to_string(), hashes.to_vec()))
                    .collect();
                // The files are enough to go on.
                let again = Edge::read(edge.size(), |tile| {
                    let path = tile.to_string();
                    let hashes = files.get(&path).or_else(|| partial.get(&path));
                    hashes.cloned().ok_or(path)
                });
                assert_eq!(again.as_ref().map(Edge::root), Ok(edge.root()), "{size}");
                assert_eq!(again.map(|it| it.size()), Ok(size as u64));
            }
        }
        assert_eq!(files.get("tile/0/255").map(Vec::len), Some(WIDTH));
        let top = files.get("tile/1/000").expect("256 tiles");
        assert_eq!(root(top), root(&leaves[..WIDTH * WIDTH]));
    }
}
