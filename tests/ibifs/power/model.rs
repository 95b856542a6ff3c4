//! The state that must be found after a power cut, updated with each operation.
//!
//! Of each item the model knows the states that it may be found in: the last one that is promised to
//! be on disk, and those that came after it. An operation that is acknowledged and promised leaves
//! one; one that is in flight, or that is not synced, adds one. Nothing else is allowed.

use std::collections::{BTreeMap, VecDeque};

/// An item in the model. Numbers are never used again, so that a record can be read.
pub type Key = usize;

/// A file of an item: its number among the item's contents.
pub type FileKey = usize;

/// One name inside an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Directory,
    File(FileKey),
}

/// Whether an item is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Never,
    Here,
    Removed,
}

/// The names inside an item at one time, without its sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub presence: Presence,
    pub names: BTreeMap<String, Entry>,
}

/// The contents that a file has had, from the version on that is synced.
#[derive(Clone, Debug)]
pub struct Content {
    pub versions: Vec<Vec<u8>>,
}

/// In which pieces a file may be on disk: smaller than any block, and no piece is like another.
pub const PIECE: usize = 16;

impl Content {
    pub fn last(&self) -> &[u8] {
        self.versions.last().map_or(&[], Vec::as_slice)
    }

    /// The last version is on disk.
    pub fn sync(&mut self) {
        self.versions.drain(..self.versions.len().saturating_sub(1));
    }

    /// Whether these bytes may be found: a synced version as it is, else any pieces of the versions
    /// since, each in its place, or room for them.
    pub fn allows(&self, found: &[u8]) -> bool {
        if let [only] = self.versions.as_slice() {
            return only == found;
        }
        let mut from = 0;
        found.chunks(PIECE).all(|piece| {
            let range = from..from + piece.len();
            from += PIECE;
            let is_one = |version: &Vec<u8>| version.get(range.clone()) == Some(piece);
            // ext4 may have room for what is new, and the size, before the bytes.
            let is_room = |version: &Vec<u8>| {
                version.len() < range.end && piece.iter().all(|byte| *byte == 0)
            };
            self.versions.iter().any(|one| is_one(one) || is_room(one))
        })
    }
}

/// The other end of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// An item of the model.
    Item(Key),
    /// One that is being minted, whose name is not printed yet.
    Fresh,
    /// One that is not held here.
    Elsewhere(String),
}

/// The statements of a sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Facts {
    pub original: bool,
    /// By the name of the pair.
    pub relations: BTreeMap<String, End>,
    /// Language, target, and a note that ibifs does not know.
    pub words: BTreeMap<String, String>,
}

/// An item, and how it may be found.
#[derive(Clone, Debug)]
pub struct Item {
    pub rep: String,
    pub ibip: String,
    /// The last is what a reader sees now.
    pub shapes: VecDeque<Shape>,
    /// The same of its sidecar.
    pub facts: VecDeque<Facts>,
    /// The bytes that the sidecar of a copy may have; None: it has none, or an empty one.
    pub copied: Vec<Option<Vec<u8>>>,
    pub contents: Vec<Content>,
    /// Whether it answers to its rep and to its IBIp: a copy that was cut off may have lost one.
    pub answers: [bool; 2],
}

impl Item {
    /// A minted item: whole, and on disk.
    pub fn minted(rep: String, ibip: String, facts: Facts) -> Item {
        let names = BTreeMap::new();
        Item {
            rep,
            ibip,
            shapes: VecDeque::from([Shape {
                presence: Presence::Here,
                names,
            }]),
            facts: VecDeque::from([facts]),
            copied: Vec::new(),
            contents: Vec::new(),
            answers: [true; 2],
        }
    }

    /// An item that will be copied in.
    pub fn coming(rep: String, ibip: String) -> Item {
        let shape = Shape {
            presence: Presence::Never,
            names: BTreeMap::new(),
        };
        Item {
            rep,
            ibip,
            shapes: VecDeque::from([shape]),
            facts: VecDeque::from([Facts::default()]),
            copied: vec![None],
            contents: Vec::new(),
            answers: [true; 2],
        }
    }

    pub fn shape(&self) -> &Shape {
        self.shapes.back().expect("an item has a shape")
    }

    pub fn says(&self) -> &Facts {
        self.facts.back().expect("an item has facts")
    }

    pub fn is_here(&self) -> bool {
        self.shape().presence == Presence::Here
    }

    pub fn is_original(&self) -> bool {
        self.is_here() && self.says().original
    }

    /// From now on it may be found so, too.
    pub fn change(&mut self, change: impl FnOnce(&mut Shape)) {
        let mut shape = self.shape().clone();
        change(&mut shape);
        self.shapes.push_back(shape);
    }

    /// Notes that the names a reader sees are on disk.
    pub fn names_synced(&mut self) {
        self.shapes.drain(..self.shapes.len() - 1);
    }

    /// Notes that the statements of its sidecar are on disk.
    pub fn facts_synced(&mut self) {
        self.facts.drain(..self.facts.len() - 1);
    }

    /// A new empty file.
    pub fn new_file(&mut self) -> FileKey {
        self.contents.push(Content {
            versions: vec![Vec::new()],
        });
        self.contents.len() - 1
    }

    /// The paths of its files.
    pub fn files(&self) -> Vec<(String, FileKey)> {
        let files = self.shape().names.iter();
        files
            .filter_map(|(path, entry)| match entry {
                Entry::File(file) => Some((path.clone(), *file)),
                Entry::Directory => None,
            })
            .collect()
    }
}

/// Returns the relation that the far end states for a relation.
pub fn inverse(kind: &str) -> &'static str {
    match kind {
        "ibi.nextedition" => "ibi.editionof",
        "ibi.metadata" => "ibi.metadataof",
        _ => "ibi.translationof",
    }
}

/// The language of a translation.
pub fn language(kind: &str) -> Option<&str> {
    kind.strip_prefix("ibi.translation(")?.strip_suffix(')')
}
