//! The files of all items, as plain maps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A file, directory or link, by a number of our own.
pub type Ino = u64;

/// The content of a file.
#[derive(Clone, Debug)]
pub enum Body {
    File(Vec<u8>),
    Directory(BTreeMap<String, Ino>),
    /// With what the rep tree reads.
    Link(String),
}

/// One file.
#[derive(Clone, Debug)]
pub struct Inode {
    pub body: Body,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub attributes: BTreeMap<String, Vec<u8>>,
    /// The number of possible changes of its content, and the time of the last one.
    pub changes: u64,
    pub changed: Instant,
    /// The number of those, of changes of its attributes, and of opens for writing.
    pub touched: u64,
    /// A removed directory: nothing can be made in it any more.
    pub is_dead: bool,
}

/// All files, and who has which name.
#[derive(Clone, Debug, Default)]
pub struct Files {
    inodes: BTreeMap<Ino, Inode>,
    last: Ino,
}

impl Files {
    pub fn make(&mut self, body: Body, mode: u32, (uid, gid): (u32, u32)) -> Ino {
        self.last += 1;
        let inode = Inode {
            body,
            mode,
            uid,
            gid,
            attributes: BTreeMap::new(),
            changes: 0,
            changed: Instant::now(),
            touched: 0,
            is_dead: false,
        };
        self.inodes.insert(self.last, inode);
        self.last
    }

    pub fn get(&self, ino: Ino) -> &Inode {
        self.inodes.get(&ino).expect("a file that was made")
    }

    pub fn change(&mut self, ino: Ino) -> &mut Inode {
        let inode = self.change_attributes(ino);
        inode.changes += 1;
        inode.changed = Instant::now();
        inode
    }

    /// A change that leaves the time of change of the content.
    pub fn change_attributes(&mut self, ino: Ino) -> &mut Inode {
        let inode = self.inodes.get_mut(&ino).expect("a file that was made");
        inode.touched += 1;
        inode
    }

    pub fn is_directory(&self, ino: Ino) -> bool {
        matches!(self.get(ino).body, Body::Directory(_))
    }

    /// The names in a directory.
    pub fn names(&self, directory: Ino) -> &BTreeMap<String, Ino> {
        match &self.get(directory).body {
            Body::Directory(names) => names,
            other => panic!("{directory} is {other:?}"),
        }
    }

    pub fn find(&self, directory: Ino, name: &str) -> Option<Ino> {
        self.names(directory).get(name).copied()
    }

    /// Gives a file a name, which another one may have had.
    pub fn enter(&mut self, directory: Ino, name: &str, ino: Ino) {
        match &mut self.change(directory).body {
            Body::Directory(names) => names.insert(name.to_owned(), ino),
            other => panic!("{directory} is {other:?}"),
        };
    }

    pub fn leave(&mut self, directory: Ino, name: &str) {
        match &mut self.change(directory).body {
            Body::Directory(names) => names.remove(name),
            other => panic!("{directory} is {other:?}"),
        };
    }

    /// A directory is removed, with whatever is below it.
    pub fn kill(&mut self, directory: Ino) {
        for ino in self.names(directory).clone().into_values() {
            if self.is_directory(ino) {
                self.kill(ino);
            }
        }
        // Its own time of change is that of the names in it, not of its end.
        let changed = self.get(directory).changed;
        let inode = self.change(directory);
        inode.changed = changed;
        inode.is_dead = true;
        inode.body = Body::Directory(BTreeMap::new());
    }

    /// Returns the number of names of a file; of a directory, two and one for each directory in it.
    pub fn links(&self, ino: Ino) -> u64 {
        if self.is_directory(ino) {
            let below = self.names(ino).values();
            let directories = below.filter(|below| self.is_directory(**below)).count();
            return if self.get(ino).is_dead {
                0
            } else {
                2 + directories as u64
            };
        }
        let mut links = 0;
        for inode in self.inodes.values() {
            if let Body::Directory(names) = &inode.body {
                links += names.values().filter(|named| **named == ino).count();
            }
        }
        links as u64
    }

    /// The directory in which a directory lies; None for an item's own.
    pub fn above(&self, directory: Ino) -> Option<Ino> {
        let has = |inode: &Inode| match &inode.body {
            Body::Directory(names) => names.values().any(|named| *named == directory),
            _ => false,
        };
        let found = self.inodes.iter().find(|(_, inode)| has(inode));
        found.map(|(above, _)| *above)
    }

    /// The path of a file below a directory, by the first of its names there.
    pub fn path_below(&self, directory: Ino, wanted: Ino) -> Option<String> {
        for (name, ino) in self.names(directory) {
            if *ino == wanted {
                return Some(name.clone());
            }
            if self.is_directory(*ino)
                && let Some(path) = self.path_below(*ino, wanted)
            {
                return Some(format!("{name}/{path}"));
            }
        }
        None
    }

    /// Forgets what can no longer be reached from these.
    pub fn forget_all_but(&mut self, roots: impl IntoIterator<Item = Ino>) {
        let mut kept = BTreeSet::new();
        let mut waiting: Vec<Ino> = roots.into_iter().collect();
        while let Some(ino) = waiting.pop() {
            if kept.insert(ino)
                && let Body::Directory(names) = &self.get(ino).body
            {
                waiting.extend(names.values());
            }
        }
        self.inodes.retain(|ino, _| kept.contains(ino));
    }
}
